//! What pickles come to: nothing outside the table is ever given a meaning.

use proptest::prelude::*;
use weigh_format::Severity;
use weigh_pickle::known::{all, known};
use weigh_pickle::{Known, Limits, Verdict, run, run_all};

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
            .any(|(rule, _)| weigh_pickle::rules::is_ambiguous(rule.code));
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
