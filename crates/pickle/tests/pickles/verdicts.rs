//! What pickles come to: nothing outside the table is ever given a meaning.

use proptest::prelude::*;
use weigh_format::Severity;
use weigh_pickle::known::{all, known};
use weigh_pickle::{CallKind, Known, Limits, Verdict, run, run_all};

use crate::assembler::{bytes, global, stack_global, text};

fn verdict(pickle: &[u8]) -> Verdict {
    run(pickle, &Limits::default()).verdict()
}

#[test]
fn verdicts_are_as_they_are_documented() {
    for (what, pickle, expected) in [
        ("data", pickle!(b"}", text("a"), b"K\x01s."), Verdict::DataOnly),
        ("a known name", pickle!(global("torch", "float32"), b"."), Verdict::DataOnly),
        ("a known call", pickle!(global("collections", "OrderedDict"), b")R."), Verdict::DataOnly),
        ("an unknown name", pickle!(global("m", "f"), b"."), Verdict::UnknownGlobal),
        (
            "an unknown name that is dropped",
            pickle!(global("m", "f"), b"0N."),
            Verdict::UnknownGlobal,
        ),
        ("REDUCE", pickle!(global("m", "f"), b")R."), Verdict::Call),
        ("INST", pickle!(b"(im\nf\n."), Verdict::Call),
        ("OBJ", pickle!(b"(", global("m", "f"), b"o."), Verdict::Call),
        ("NEWOBJ", pickle!(global("m", "f"), b")\x81."), Verdict::Call),
        ("NEWOBJ_EX", pickle!(global("m", "f"), b")}\x92."), Verdict::Call),
        ("a call that is dropped", pickle!(global("m", "f"), b")R0N."), Verdict::Call),
        ("a call that is built", pickle!(global("m", "f"), b")R}b."), Verdict::Call),
        ("a call and then an error", pickle!(global("m", "f"), b")R\xff"), Verdict::Call),
        ("an error", pickle!(b"N\xff"), Verdict::Error),
        ("an unknown name and then an error", pickle!(global("m", "f"), b"\xff"), Verdict::Error),
        (
            "a call of the result of a call",
            pickle!(global("collections", "OrderedDict"), b")R)R."),
            Verdict::Call,
        ),
        ("a call of a storage", pickle!(b"K\x01Q)R."), Verdict::Call),
        (
            "an array of numpy's that is called",
            pickle!(global("numpy", "ndarray"), b"K\x01\x85R."),
            Verdict::Call,
        ),
        ("a call of a dtype", pickle!(global("torch", "float32"), b")R."), Verdict::Call),
        (
            "a dotted name",
            pickle!(stack_global("collections", "OrderedDict.fromkeys"), b"."),
            Verdict::UnknownGlobal,
        ),
        ("an extension", pickle!(b"\x82\x01)R."), Verdict::Error),
        ("attributes of a module", pickle!(global("m", "f"), b"}b."), Verdict::Call),
        ("another state of a module", pickle!(global("m", "f"), b"Nb."), Verdict::Error),
    ] {
        assert_eq!(verdict(&pickle), expected, "{what}");
    }
}

#[test]
fn known_names_that_would_call_further_are_foreign_unless_they_call_the_table() {
    let rebuild = |function: &[u8], class: &[u8], args: &[u8]| {
        pickle!(
            global("torch._tensor", "_rebuild_from_type_v2"),
            b"(",
            function,
            class,
            args,
            b"}tR."
        )
    };
    let tensor = global("torch._utils", "_rebuild_tensor_v2");
    let parameter = global("torch.nn.parameter", "Parameter");
    let system = global("os", "system");
    let again = global("torch._tensor", "_rebuild_from_type_v2");
    let wrapper = global("torch._utils", "_rebuild_wrapper_subclass");
    let encode = |args: &[u8]| pickle!(global("_codecs", "encode"), b"(", args, b"tR.");
    let reconstruct = |class: &[u8]| {
        pickle!(global("numpy.core.multiarray", "_reconstruct"), b"(", class, b")C\x01btR.")
    };
    for (what, pickle, expected) in [
        ("a tensor", rebuild(&tensor, &parameter, b")"), Verdict::DataOnly),
        ("another function", rebuild(&system, &parameter, b")"), Verdict::Call),
        ("another class", rebuild(&tensor, &system, b")"), Verdict::Call),
        ("no function", rebuild(b"N", &parameter, b")"), Verdict::Call),
        ("arguments that are no tuple", pickle!(&again, &again, b")RR."), Verdict::Call),
        (
            "within another one",
            rebuild(&again, &parameter, &pickle!(b"(", &tensor, &parameter, b")}t")),
            Verdict::DataOnly,
        ),
        (
            "another function within",
            rebuild(&again, &parameter, &pickle!(b"(", &system, &parameter, b")}t")),
            Verdict::Call,
        ),
        (
            "another class to wrap",
            rebuild(&wrapper, &parameter, &pickle!(b"(", &system, b"t")),
            Verdict::Call,
        ),
        ("text to encode", encode(&pickle!(text("a"), text("latin1"))), Verdict::DataOnly),
        ("another encoding", encode(&pickle!(text("a"), text("my_codec"))), Verdict::Call),
        ("what is no text to encode", encode(&pickle!(b"]", text("latin1"))), Verdict::Call),
        ("an array", reconstruct(&global("numpy", "ndarray")), Verdict::DataOnly),
        ("another class of arrays", reconstruct(&system), Verdict::Call),
        (
            "bytes to unpickle",
            pickle!(global("torch.storage", "_load_from_bytes"), b"(", bytes(b"x"), b"tR."),
            Verdict::Call,
        ),
    ] {
        assert_eq!(verdict(&pickle), expected, "{what}");
    }
}

#[test]
fn an_attribute_that_python_may_call_is_a_call() {
    let namespace = || pickle!(global("argparse", "Namespace"), b")\x81");
    let ordered = || pickle!(global("collections", "OrderedDict"), b")R");
    let system = || global("os", "system");
    let attributes = |name: &str, value: &[u8]| pickle!(b"}", text(name), value, b"s");
    let built = |object: &[u8], state: &[u8]| pickle!(object, state, b"b.");
    let class = "pytorch_lightning.utilities.parsing";
    let typed = global("torch._tensor", "_rebuild_from_type_v2");
    let tensor = global("torch._utils", "_rebuild_tensor_v2");
    let parameter = global("torch.nn.parameter", "Parameter");
    let load = global("torch.storage", "_load_from_bytes");
    for (what, pickle, expected) in [
        (
            "__setstate__",
            built(&namespace(), &attributes("__setstate__", &system())),
            Verdict::Call,
        ),
        ("keys", built(&ordered(), &attributes("keys", &system())), Verdict::Call),
        ("any other", built(&namespace(), &attributes("a", &system())), Verdict::Call),
        (
            "in slots",
            built(&namespace(), &pickle!(b"N", attributes("append", &system()), b"\x86")),
            Verdict::Call,
        ),
        (
            "in a state that is a mapping",
            built(&namespace(), &pickle!(ordered(), text("a"), system(), b"s")),
            Verdict::Call,
        ),
        (
            "set in the state later",
            pickle!(namespace(), b"}q\0bh\0", text("a"), system(), b"s0."),
            Verdict::Call,
        ),
        (
            "of a tensor",
            pickle!(&typed, b"(", &tensor, &parameter, b")", attributes("a", &system()), b"tR."),
            Verdict::Call,
        ),
        (
            "found like an attribute",
            pickle!(
                global(class, "AttributeDict"),
                b")\x81",
                text("__setstate__"),
                system(),
                b"s."
            ),
            Verdict::Call,
        ),
        (
            "given like an attribute",
            pickle!(global(class, "AttributeDict"), attributes("a", &system()), b"\x85R."),
            Verdict::Call,
        ),
        (
            "a function of torch",
            built(&namespace(), &attributes("__setstate__", &load)),
            Verdict::Call,
        ),
        (
            "a dtype",
            built(&namespace(), &attributes("a", &global("torch", "float32"))),
            Verdict::DataOnly,
        ),
        ("a class", built(&namespace(), &attributes("a", &parameter)), Verdict::DataOnly),
        ("a number", built(&namespace(), &attributes("__setstate__", b"K\x01")), Verdict::DataOnly),
        ("an item", pickle!(ordered(), text("a"), system(), b"s."), Verdict::UnknownGlobal),
        ("a key", pickle!(b"}", system(), b"Ns."), Verdict::UnknownGlobal),
    ] {
        assert_eq!(verdict(&pickle), expected, "{what}");
    }
    let pickle = built(&namespace(), &attributes("a", &system()));
    let program = run(&pickle, &Limits::default());
    assert!(program.findings.first("foreign-attribute").is_some());
    assert_eq!(program.foreign[0].kind, CallKind::Build);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_made_of_a_number_is_limited() {
    let call =
        |module: &str, name: &str, args: &[u8]| pickle!(global(module, name), b"(", args, b"tR");
    let builtin = |name: &str, args: &[u8]| call("builtins", name, args);
    let huge = b"\x8a\x06\0\0\0\0\0\x01";
    let range = |number: &[u8]| builtin("range", number);
    let size = |numbers: &[u8]| call("torch", "Size", &pickle!(b"(", numbers, b"t"));
    let dtype = |name: &str| call("numpy", "dtype", &pickle!(text(name), b"\x89\x88"));
    let array = global("numpy", "ndarray");
    let reconstruct = |shape: &[u8], dtype: &[u8]| {
        call("numpy.core.multiarray", "_reconstruct", &pickle!(&array, shape, b"\x85", dtype))
    };
    let long_list = pickle!(b"](", b"N".repeat(1 << 16), b"eq\0");
    let storage = |elements: &[u8]| {
        pickle!(
            b"(",
            text("storage"),
            global("torch", "QInt8Storage"),
            text("0"),
            text("cpu"),
            elements,
            b"tQ"
        )
    };
    let quantized = |stored: &[u8], size: &[u8]| {
        call(
            "torch._utils",
            "_rebuild_qtensor",
            &pickle!(storage(stored), b"K\0", size, b"\x85NNNN"),
        )
    };
    for (what, pickle, expected) in [
        ("a bytearray", builtin("bytearray", huge), Verdict::Ambiguous),
        ("a small bytearray", builtin("bytearray", b"K\x10"), Verdict::DataOnly),
        ("a bytearray of bytes", builtin("bytearray", &bytes(b"abc")), Verdict::DataOnly),
        ("a bytearray of a range", builtin("bytearray", &range(huge)), Verdict::Ambiguous),
        (
            "a bytearray of what is not known",
            builtin("bytearray", &builtin("int", &text("1"))),
            Verdict::Ambiguous,
        ),
        ("bytes", builtin("bytes", huge), Verdict::Ambiguous),
        ("no bytes", builtin("bytes", b""), Verdict::DataOnly),
        ("a range", range(huge), Verdict::DataOnly),
        ("a list of a range", builtin("list", &range(huge)), Verdict::Ambiguous),
        ("a list of a small range", builtin("list", &range(b"K\x10")), Verdict::DataOnly),
        (
            "a list of a range that is empty",
            builtin("list", &range(&pickle!(huge, b"K\x01"))),
            Verdict::DataOnly,
        ),
        (
            "a list of a range down",
            builtin("list", &range(&pickle!(huge, b"K\x01J\xff\xff\xff\xff"))),
            Verdict::Ambiguous,
        ),
        (
            "a list of a range in large steps",
            builtin("list", &range(&pickle!(b"K\0", huge, huge))),
            Verdict::DataOnly,
        ),
        ("a tuple of a range", builtin("tuple", &range(huge)), Verdict::Ambiguous),
        ("a set of a range", builtin("set", &range(huge)), Verdict::Ambiguous),
        ("a frozen set of a range", builtin("frozenset", &range(huge)), Verdict::Ambiguous),
        ("a counter of a range", call("collections", "Counter", &range(huge)), Verdict::Ambiguous),
        ("a size of a range", call("torch", "Size", &range(huge)), Verdict::Ambiguous),
        (
            "a list of a list of a range",
            builtin("list", &builtin("list", &range(huge))),
            Verdict::Ambiguous,
        ),
        ("text of a list", builtin("str", &pickle!(b"]")), Verdict::Ambiguous),
        ("a tensor", call("torch", "Tensor", huge), Verdict::Ambiguous),
        ("a tensor of small sizes", call("torch", "Tensor", b"K\x02K\x03"), Verdict::DataOnly),
        (
            "a tensor of two sizes",
            call("torch", "FloatTensor", b"J\0\0\x10\0J\0\0\x10\0"),
            Verdict::Ambiguous,
        ),
        ("a tensor of a size", call("torch", "Tensor", &size(huge)), Verdict::Ambiguous),
        (
            "a new tensor",
            pickle!(global("torch", "Tensor"), b"(", huge, b"t\x81"),
            Verdict::Ambiguous,
        ),
        (
            "a new empty tensor",
            pickle!(global("torch", "FloatTensor"), b")\x81"),
            Verdict::DataOnly,
        ),
        ("a storage", call("torch", "FloatStorage", huge), Verdict::Ambiguous),
        ("an untyped storage", call("torch.storage", "UntypedStorage", huge), Verdict::Ambiguous),
        ("an array", reconstruct(huge, &text("b")), Verdict::Ambiguous),
        ("an empty array", reconstruct(b"K\0", &bytes(b"b")), Verdict::DataOnly),
        (
            "an array of large elements",
            reconstruct(b"K\x01", &text("V1000000000")),
            Verdict::Ambiguous,
        ),
        (
            "a large element",
            call("numpy.core.multiarray", "scalar", &dtype("V1000000000")),
            Verdict::Ambiguous,
        ),
        (
            "an element",
            call("numpy.core.multiarray", "scalar", &pickle!(dtype("i4"), bytes(b"abcd"))),
            Verdict::DataOnly,
        ),
        ("a quantized tensor", quantized(huge, huge), Verdict::DataOnly),
        ("a quantized tensor of a small storage", quantized(b"K\x01", huge), Verdict::Ambiguous),
        (
            "copies of a list",
            pickle!(
                &long_list,
                pickle!(global("builtins", "list"), b"h\0\x85R0").repeat(1000),
                b"N"
            ),
            Verdict::Ambiguous,
        ),
        (
            "a few copies of a list",
            pickle!(
                &long_list,
                pickle!(global("builtins", "list"), b"h\0\x85R0").repeat(100),
                b"N"
            ),
            Verdict::DataOnly,
        ),
    ] {
        let pickle = pickle!(pickle, b".");
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.verdict(), expected, "{what}: {:?}", program.findings.list());
        let found = program.findings.first("allocation").is_some();
        assert_eq!(found, expected == Verdict::Ambiguous, "{what}");
    }
    let pickle = pickle!(builtin("bytearray", b"J\0\0\x20\0"), b".");
    for (made_bytes, expected) in
        [(1 << 21, Verdict::DataOnly), ((1 << 21) - 1, Verdict::Ambiguous)]
    {
        let limits = Limits { made_bytes, ..Limits::default() };
        assert_eq!(run(&pickle, &limits).verdict(), expected);
    }
}

#[test]
fn the_state_of_a_dtype_says_what_its_name_says() {
    let dtype = |name: &str, args: &[u8], state: &[u8]| {
        let made = pickle!(global("numpy", "dtype"), b"(", text(name), args, b"tR");
        pickle!(made, b"(", state, b"tb")
    };
    let honest = b"\x89\x88";
    let minus = b"J\xff\xff\xff\xff";
    let plain = |flags: u8| pickle!(b"K\x03", text("<"), b"NNN", minus, minus, [b'K', flags]);
    let sized = |size: u8, flags: u8| {
        pickle!(b"K\x03", text("|"), b"NNN", [b'K', size, b'K', 1, b'K', flags])
    };
    let float = dtype("f4", honest, &plain(0));
    let object = dtype("O8", honest, &plain(63));
    let fields = |of: &[u8], offset: u8, size: u8, flags: u8| {
        let pairs = pickle!(b"}", text("a"), of, [b'K', offset], b"\x86s");
        pickle!(
            b"K\x03",
            text("|"),
            b"N",
            text("a"),
            b"\x85",
            pairs,
            [b'K', size, b'K', 1, b'K', flags]
        )
    };
    let parts = |of: &[u8], count: u8, size: u8, flags: u8| {
        pickle!(
            b"K\x03",
            text("|"),
            of,
            [b'K', count],
            b"\x85\x86NN",
            [b'K', size, b'K', 1, b'K', flags]
        )
    };
    for (what, pickle, expected) in [
        ("numbers", float.clone(), Verdict::DataOnly),
        ("objects", object.clone(), Verdict::DataOnly),
        ("numbers that are objects", dtype("f4", honest, &plain(63)), Verdict::Call),
        ("numbers that are addresses", dtype("i8", honest, &plain(4)), Verdict::Call),
        ("objects that are none", dtype("O8", honest, &plain(0)), Verdict::Call),
        ("a dtype that is not copied", dtype("f4", b"\x89\x89", &plain(0)), Verdict::Call),
        ("numbers with fields", dtype("f4", honest, &fields(&float, 0, 4, 0)), Verdict::Call),
        ("text", dtype("U4", honest, &sized(16, 8)), Verdict::DataOnly),
        ("text of another size", dtype("U4", honest, &sized(4, 8)), Verdict::Call),
        ("bytes", dtype("V8", honest, &sized(8, 0)), Verdict::DataOnly),
        ("bytes of another size", dtype("V8", honest, &sized(16, 0)), Verdict::Call),
        ("bytes that are objects", dtype("V8", honest, &sized(8, 63)), Verdict::Call),
        ("a field", dtype("V8", honest, &fields(&float, 4, 8, 16)), Verdict::DataOnly),
        ("a field beyond the end", dtype("V8", honest, &fields(&float, 5, 8, 16)), Verdict::Call),
        ("a field of objects", dtype("V8", honest, &fields(&object, 0, 8, 27)), Verdict::DataOnly),
        (
            "a field of hidden objects",
            dtype("V8", honest, &fields(&object, 0, 8, 16)),
            Verdict::Call,
        ),
        ("an array", dtype("V8", honest, &parts(&float, 2, 8, 0)), Verdict::DataOnly),
        ("an array of another size", dtype("V8", honest, &parts(&float, 3, 8, 0)), Verdict::Call),
        (
            "an array of objects",
            dtype("V16", honest, &parts(&object, 2, 16, 63)),
            Verdict::DataOnly,
        ),
        (
            "an array of hidden objects",
            dtype("V16", honest, &parts(&object, 2, 16, 0)),
            Verdict::Call,
        ),
        ("a name that is a list of parts", dtype("O,O", honest, &sized(16, 0)), Verdict::Call),
    ] {
        let pickle = pickle!(pickle, b".");
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.verdict(), expected, "{what}");
        let found = program.findings.first("numpy-state").is_some();
        assert_eq!(found, expected == Verdict::Call, "{what}");
    }
}

#[test]
fn a_gadget_is_worse_and_anything_else_is_not_better() {
    for (module, name, severity) in
        [("os", "system", Severity::Error), ("mymodule", "myname", Severity::Deviation)]
    {
        let program_bytes = pickle!(global(module, name), b".");
        let program = run(&program_bytes, &Limits::default());
        let finding = program.findings.first("unknown-global").unwrap();
        assert_eq!(finding.severity, severity);
        assert!(finding.message.contains(&format!("{module}.{name}")));
        assert_eq!(program.verdict(), Verdict::UnknownGlobal);
    }
}

#[test]
fn findings_have_stable_codes() {
    let unknown = || pickle!(global("m", "f"), b")R");
    for (code, pickle) in [
        ("unknown-global", pickle!(global("m", "f"), b".")),
        ("dotted-name", pickle!(global("m", "f.g"), b".")),
        ("foreign-call", pickle!(unknown(), b".")),
        ("foreign-items", pickle!(unknown(), b"NNs.")),
        ("build-target", pickle!(global("m", "f"), b"}b.")),
        ("item-target", pickle!(b")Na.")),
        ("extension-registry", pickle!(b"\x82\x01.")),
        ("persistent-id-text", pickle!(b"Pa\n.")),
        ("memo-mixed", pickle!(b"Nq\0\x94.")),
        ("graph-cycle", pickle!(b"]q\0h\0a.")),
        ("trailing-bytes", pickle!(b"N.\xff")),
        ("several-pickles", pickle!(b"N.N.")),
    ] {
        let programs = run_all(&pickle, &Limits::default());
        let found = programs.iter().find_map(|program| program.findings.first(code));
        assert!(found.is_some(), "{code}");
    }
}

#[test]
fn several_pickles_and_what_is_behind_them() {
    for (bytes, pickles, trailing) in [
        (&b"N."[..], 1, 0),
        (b"N.]..", 2, 1),
        (b"N.\xff\xff", 1, 2),
        (b"N.PK\x03\x04rest", 1, 8),
        (b"N.cos\nsystem\n.x", 2, 1),
        // It fails, and yet it names something.
        (b"N.cos\nsystem\n)R\xff", 2, 0),
        (b"\xff", 1, 0),
    ] {
        let programs = run_all(bytes, &Limits::default());
        let last = programs.last().unwrap();
        let left = last.findings.first("trailing-bytes").map_or(0, |finding| {
            let span = finding.place.span.clone().unwrap();
            span.end - span.start
        });
        assert_eq!((programs.len(), left), (pickles, trailing), "{}", bytes.escape_ascii());
    }
    let programs = run_all(b"N.cos\nsystem\n)R.", &Limits::default());
    let global = programs[1].globals[0];
    assert_eq!((programs[1].start, global.offset), (2, 2));
}

/// The five ways to call, of a name that is on the stack already.
fn call(kind: usize, name: &[u8]) -> Vec<u8> {
    match kind {
        0 => pickle!(name, b")R."),
        1 => pickle!(name, b")\x81."),
        2 => pickle!(name, b")}\x92."),
        3 => pickle!(b"(", name, b"o."),
        _ => pickle!(name, b")R0N."),
    }
}

proptest! {
    #[test]
    fn what_is_outside_the_table_is_unknown_and_to_call_it_is_a_call(
        module in "[a-z_]{1,8}(\\.[a-z_]{1,8}){0,2}",
        name in "[A-Za-z_]{1,10}(\\.[a-z]{1,4})?",
        protocol in 0..=5_u8,
        kind in 0..5_usize,
        stacked: bool,
        place in 0..10_000_usize,
        mixed in 0..4_u8,
    ) {
        // Names of the table with another's module, or a little more or less, are outside as well.
        let rows: Vec<_> = all().collect();
        let (known_module, known_name, _) = rows[place % rows.len()];
        let (module, name) = match mixed {
            0 => (module, name),
            1 => (known_module.to_string(), name),
            2 => (module, known_name.to_string()),
            _ => (known_module.to_string(), format!("{known_name}.{name}")),
        };
        let renamed = weigh_pickle::python2::renamed(&module, &name);
        prop_assume!(known(&module, &name).is_none() && known(renamed.0, renamed.1).is_none());
        let put = if stacked { stack_global(&module, &name) } else { global(&module, &name) };
        let named = pickle!([0x80, protocol], &put, b".");
        prop_assert_eq!(verdict(&named), Verdict::UnknownGlobal);
        let pickle = pickle!([0x80, protocol], call(kind, &put));
        let program = run(&pickle, &Limits::default());
        prop_assert_eq!(program.verdict(), Verdict::Call);
        prop_assert_eq!(program.foreign.len(), 1);
        prop_assert_eq!(program.graph.known(program.globals[0].node), None);
    }
}

#[test]
fn every_name_of_the_table_is_data_alone() {
    for (module, name, meaning) in all() {
        let pickle = pickle!(b"\x80\x04", stack_global(module, name), b".");
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.verdict(), Verdict::DataOnly);
        assert_eq!(program.graph.known(program.root.unwrap()), Some(meaning));
    }
    assert_eq!(known("collections", "OrderedDict"), Some(Known::OrderedDict));
}

#[test]
fn what_is_behind_the_last_pickle_is_no_data() {
    let of_all = |pickle: &[u8]| {
        let programs = run_all(pickle, &Limits::default());
        let ambiguous = programs
            .iter()
            .flat_map(|program| program.findings.counts())
            .any(|(rule, _)| rule.is_ambiguous);
        let verdict = programs.iter().fold(Verdict::DataOnly, |all, it| all.with(it.verdict()));
        (verdict, ambiguous)
    };
    assert_eq!(of_all(b"N."), (Verdict::DataOnly, false));
    assert_eq!(of_all(b"N.N."), (Verdict::DataOnly, false));
    for behind in [&b"\xff"[..], b"\xffpayload", b"\x1f\x8b\x08"] {
        assert!(of_all(&[b"N.", behind].concat()).1, "{behind:?}");
    }
}

#[test]
fn pickles_in_a_string_beyond_those_that_are_looked_at_are_a_limit() {
    let calls = pickle!(global("os", "getpid"), b")R.");
    for (number, expected) in
        [(63, Verdict::Call), (64, Verdict::Ambiguous), (500, Verdict::Ambiguous)]
    {
        let inner = [b"N.".repeat(number), calls.clone()].concat();
        let length = u32::try_from(inner.len()).unwrap().to_le_bytes();
        let outer = [b"\x80\x03B", &length[..], &inner, b"."].concat();
        assert!(
            verdict(&outer) >= expected.min(Verdict::Ambiguous),
            "{number}: {:?}",
            verdict(&outer)
        );
    }
}

#[test]
fn pickles_in_strings_in_strings_are_followed_or_a_limit() {
    let calls = pickle!(global("os", "getpid"), b")R.");
    let within = |inner: &[u8]| {
        let length = u32::try_from(inner.len()).unwrap().to_le_bytes();
        [b"\x80\x03B", &length[..], inner, b"."].concat()
    };
    let mut pickle = calls;
    for depth in 1..=6 {
        pickle = within(&pickle);
        let program = run(&pickle, &Limits::default());
        let is_over = program.findings.first("nested-limit").is_some();
        if depth <= 3 {
            assert_eq!((program.verdict(), is_over), (Verdict::Call, false), "{depth}");
        } else {
            assert!(program.verdict() == Verdict::Call || is_over, "{depth}");
        }
    }
    let mut data = b"\x80\x03X\x0b\0\0\0only a text.".to_vec();
    for depth in 1..=3 {
        data = within(&data);
        assert_eq!(verdict(&data), Verdict::DataOnly, "{depth}");
    }
}
