//! The stack, the marks, the memo and the objects, as Python has them.

use weigh_format::Finding;
use weigh_pickle::{Limits, Node, run};

use crate::assembler::{bytes, global, short, show, stack_global, text};

fn result(pickle: &[u8]) -> Result<String, &'static str> {
    let program = run(pickle, &Limits::default());
    match (program.root, program.error) {
        (Some(root), None) => Ok(show(&program.graph, root)),
        (_, error) => Err(error.unwrap().code),
    }
}

fn check(table: &[(&str, Vec<u8>, Result<&str, &str>)]) {
    for (what, pickle, expected) in table {
        assert_eq!(result(pickle).as_deref().map_err(|code| *code), *expected, "{what}");
    }
}

#[test]
fn an_object_is_the_same_wherever_it_is() {
    check(&[
        (
            "a dictionary that grows after it was put in another",
            pickle!(b"}q\0}K\x01h\0sK\x02h\0sh\0K\x03Ns\x86."),
            Ok("({1: {3: None}, 2: {3: None}}, {3: None})"),
        ),
        (
            "a dictionary reached in two ways, filled through one of them",
            pickle!(b"(}q\0h\0K\x03Nst."),
            Ok("({3: None}, {3: None})"),
        ),
        (
            "a list that is extended after it was memoized",
            pickle!(b"(]q\0h\0(K\x01K\x02eh\0K\x03at."),
            Ok("([1, 2, 3], [1, 2, 3], [1, 2, 3])"),
        ),
        ("a duplicate", pickle!(b"(]2K\x01at."), Ok("([1], [1])")),
        (
            "a call that is built after it was memoized",
            pickle!(b"(", global("m", "f"), b")Rq\0h\0}bt."),
            Ok("(Reduce <m.f>() states [{}], Reduce <m.f>() states [{}])"),
        ),
    ]);
}

#[test]
fn ids_say_what_is_the_same() {
    let program = run(b"(}q\0h\0}t.", &Limits::default());
    let items = program.graph.sequence(program.root.unwrap()).unwrap();
    assert_eq!(items[0], items[1]);
    assert_ne!(items[0], items[2]);
}

#[test]
fn the_memo_counts_as_python_does() {
    check(&[
        ("MEMOIZE takes the count", pickle!(b"K\x01\x94K\x02\x94h\x01\x85."), Ok("(2)")),
        (
            "PUT beyond, then MEMOIZE",
            pickle!(b"(K\x01q\x05K\x02\x94h\x01h\x05t."),
            Ok("(1, 2, 2, 1)"),
        ),
        (
            "PUT twice at one place counts once",
            pickle!(b"(K\x01q\0K\x02q\0K\x03\x94h\x01t."),
            Ok("(1, 2, 3, 3)"),
        ),
        (
            "MEMOIZE replaces what PUT put at the count",
            pickle!(b"(K\x01q\x01K\x02\x94h\x01t."),
            Ok("(1, 2, 2)"),
        ),
        ("a huge index", pickle!(b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff."), Ok("None")),
        (
            "an index of 63 bits",
            pickle!(b"Np9223372036854775807\n0g9223372036854775807\n."),
            Ok("None"),
        ),
        ("an index that was never set", pickle!(b"Nq\0h\x01."), Err("pickle-memo")),
        ("nothing to put", pickle!(b"q\0."), Err("pickle-stack")),
        ("a mark to put", pickle!(b"N(q\0."), Err("pickle-stack")),
    ]);
}

#[test]
fn marks_are_kept_apart_from_values() {
    check(&[
        ("POP on a mark takes the mark", pickle!(b"N(0."), Ok("None")),
        ("POP on a value takes the value", pickle!(b"(N0t."), Ok("()")),
        ("POP on nothing", pickle!(b"0."), Err("pickle-stack")),
        ("POP_MARK takes the values too", pickle!(b"N(K\x01(K\x0211."), Ok("None")),
        ("POP_MARK without a mark", pickle!(b"N1."), Err("pickle-mark")),
        ("TUPLE2 beyond a mark", pickle!(b"N(N\x86."), Err("pickle-stack")),
        ("TUPLE without a mark", pickle!(b"Nt."), Err("pickle-mark")),
        ("REDUCE beyond a mark", pickle!(global("m", "f"), b"()R."), Err("pickle-stack")),
        ("DUP on a mark", pickle!(b"N(2."), Err("pickle-stack")),
        ("STOP on a mark", pickle!(b"N(."), Err("pickle-stack")),
        ("STOP on nothing", pickle!(b"."), Err("pickle-stack")),
        ("STOP on several values", pickle!(b"K\x01K\x02."), Ok("2")),
        ("STOP above a mark", pickle!(b"K\x01(K\x02."), Ok("2")),
        ("OBJ without a class", pickle!(b"(o."), Err("pickle-stack")),
        ("APPENDS of nothing", pickle!(b"](e."), Ok("[]")),
        ("APPENDS of nothing to nothing", pickle!(b"(e."), Err("pickle-stack")),
        ("SETITEMS of a key alone", pickle!(b"}(Nu."), Err("pickle-items")),
        ("DICT of a key alone", pickle!(b"(Nd."), Err("pickle-items")),
        ("BUILD on a mark", pickle!(b"](Nb."), Err("pickle-stack")),
    ]);
}

#[test]
fn what_is_left_on_the_stack_is_a_finding() {
    for (pickle, found) in [(&b"N."[..], false), (b"NN.", true), (b"(N.", true)] {
        let program = run(pickle, &Limits::default());
        assert_eq!(program.findings.first("stack-not-empty").is_some(), found);
        assert!(program.error.is_none());
    }
}

#[test]
fn items_go_where_they_may() {
    let ordered = || pickle!(global("collections", "OrderedDict"), b")R");
    let tensor = || pickle!(global("torch._utils", "_rebuild_tensor_v2"), b")R");
    let unknown = || pickle!(global("m", "f"), b")R");
    check(&[
        (
            "SETITEM on OrderedDict",
            pickle!(ordered(), b"K\x01Ns."),
            Ok("Reduce <collections.OrderedDict>() pairs {1: None}"),
        ),
        (
            "SETITEMS on OrderedDict",
            pickle!(ordered(), b"(K\x01Nu."),
            Ok("Reduce <collections.OrderedDict>() pairs {1: None}"),
        ),
        (
            "SETITEM on an unknown object",
            pickle!(unknown(), b"K\x01Ns."),
            Ok("Reduce <m.f>() pairs {1: None}"),
        ),
        (
            "APPEND on an unknown object",
            pickle!(unknown(), b"Na."),
            Ok("Reduce <m.f>() items [None]"),
        ),
        (
            "ADDITEMS on a set that was called",
            pickle!(global("builtins", "set"), b")R(N\x90."),
            Ok("Reduce <builtins.set>() items [None]"),
        ),
        ("SETITEM on a tensor", pickle!(tensor(), b"K\x01Ns."), Err("pickle-item-target")),
        ("SETITEMS on a tensor", pickle!(tensor(), b"(K\x01Nu."), Err("pickle-item-target")),
        ("APPEND on a tensor", pickle!(tensor(), b"Na."), Err("pickle-item-target")),
        ("SETITEM on a storage", pickle!(b"K\x01QK\x01Ns."), Err("pickle-item-target")),
        ("SETITEM on a list", pickle!(b"]K\x01Ns."), Err("pickle-item-target")),
        ("SETITEM on a name", pickle!(global("m", "f"), b"K\x01Ns."), Err("pickle-item-target")),
        ("APPEND on a tuple", pickle!(b")Na."), Err("pickle-item-target")),
        ("APPEND on a name", pickle!(global("m", "f"), b"Na."), Err("pickle-item-target")),
        ("APPEND on a dictionary", pickle!(b"}Na."), Err("pickle-item-target")),
        ("ADDITEMS on a list", pickle!(b"](N\x90."), Err("pickle-item-target")),
        ("BUILD on a name", pickle!(global("m", "f"), b"}b."), Err("pickle-build-target")),
        ("BUILD on a dictionary", pickle!(b"}}b."), Err("pickle-build-target")),
        ("BUILD on a storage", pickle!(b"K\x01Q}b."), Err("pickle-build-target")),
        ("BUILD twice", pickle!(unknown(), b"NbNb."), Ok("Reduce <m.f>() states [None, None]")),
    ]);
}

#[test]
fn names_on_the_stack_are_text() {
    check(&[
        ("text", pickle!(stack_global("m", "f"), b"."), Ok("<m.f>")),
        ("strings of Python 2", pickle!(b"U\x01mS'f'\n\x93."), Ok("<m.f>")),
        (
            "from the memo",
            pickle!(text("m"), b"\x94", text("f"), b"\x9400h\0h\x01\x93."),
            Ok("<m.f>"),
        ),
        ("bytes", pickle!(bytes(b"m"), bytes(b"f"), b"\x93."), Err("pickle-global")),
        (
            "a string of Python 2 that is not ASCII",
            pickle!(b"U\x01\xff", short("f"), b"\x93."),
            Err("pickle-global"),
        ),
        ("surrogates", pickle!(short("m"), b"\x8c\x03\xed\xa0\x80\x93."), Err("pickle-global")),
        ("a number", pickle!(short("m"), b"K\x01\x93."), Err("pickle-global")),
        ("nothing", pickle!(short("m"), b"\x93."), Err("pickle-stack")),
    ]);
}

#[test]
fn names_of_python_2_are_renamed_below_protocol_3() {
    for protocol in 0..=5_u8 {
        let head = [0x80, protocol];
        let expected = if protocol < 3 { "<builtins.set>" } else { "<__builtin__.set>" };
        for pickle in [
            pickle!(head, global("__builtin__", "set"), b"."),
            pickle!(head, stack_global("__builtin__", "set"), b"."),
        ] {
            assert_eq!(result(&pickle).unwrap(), expected);
            let program = run(&pickle, &Limits::default());
            assert_eq!(program.graph.known(program.root.unwrap()).is_some(), protocol < 3);
        }
    }
    let later = pickle!(b"\x80\x04", b"\x80\x02", global("commands", "getoutput"), b".");
    assert_eq!(result(&later).unwrap(), "<subprocess.getoutput>");
}

#[test]
fn arguments_of_calls_are_tuples_and_the_call_is_listed_either_way() {
    for (pickle, error) in [
        (pickle!(global("m", "f"), b")R."), None),
        (pickle!(global("m", "f"), b"]R."), Some("pickle-arguments")),
        (pickle!(global("m", "f"), b"N\x81."), Some("pickle-arguments")),
        (pickle!(global("m", "f"), b")N\x92."), Some("pickle-arguments")),
        // What a call makes may be a tuple.
        (pickle!(global("m", "f"), global("torch", "Size"), b")RR."), None),
    ] {
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.error.map(|error| error.code), error);
        assert!(!program.calls.is_empty());
    }
}

#[test]
fn a_run_that_fails_keeps_what_it_saw_and_goes_on() {
    let pickle = pickle!(global("a", "b"), b")R0", b")Na0", global("c", "d"), b")R.");
    let program = run(&pickle, &Limits::default());
    let error = program.error.as_ref().unwrap();
    assert_eq!((error.code, error.opcode), ("pickle-item-target", Some("APPEND")));
    assert!(program.root.is_none());
    let callees: Vec<_> = program.calls.iter().filter_map(|call| program.callee(*call)).collect();
    assert_eq!(callees, [("a", "b"), ("c", "d")]);
}

#[test]
fn frames_hold_whole_opcodes_one_after_the_other() {
    let frame = |len: u64, inner: &[u8]| pickle!(b"\x95", len.to_le_bytes(), inner);
    for (what, pickle, error, finding) in [
        ("a frame", pickle!(b"\x80\x04", frame(2, b"N.")), None, None),
        ("two frames", pickle!(frame(1, b"N"), frame(2, b"0N"), b"."), None, None),
        ("an argument beyond", frame(1, b"K\x01."), Some("pickle-frame"), Some("frame-straddled")),
        ("a frame within", frame(11, &frame(2, b"N.")), Some("pickle-frame"), Some("frame-nested")),
        ("too long", frame(3, b"N."), Some("pickle-truncated"), None),
        ("longer than the pickle", frame(3, b"N.N"), None, Some("frame-past-stop")),
    ] {
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.error.as_ref().map(|error| error.code), error, "{what}");
        let found = program
            .findings
            .list()
            .iter()
            .map(Finding::code)
            .find(|code| code.starts_with("frame"));
        assert_eq!(found, finding, "{what}");
    }
}

#[test]
fn what_a_straddled_frame_hides_is_seen() {
    // The C unpickler runs what a disassembler shows as bytes of a frame.
    let pickle = pickle!(b"\x95", 1_u64.to_le_bytes(), global("os", "getpid"), b")R.");
    let program = run(&pickle, &Limits::default());
    assert_eq!(program.foreign.len(), 1);
    assert!(program.error.is_some());
}

#[test]
fn proto_is_first_and_opcodes_are_of_it() {
    for (pickle, code) in [
        (&b"\x80\x02N."[..], None),
        (b"N\x80\x020N.", Some("proto-not-first")),
        (b"\x80\x02\x80\x04N.", Some("proto-not-first")),
        (b"\x80\x02\x8f.", Some("opcode-above-protocol")),
        (b"\x88.", Some("opcode-above-protocol")),
        (b"(NNd.", None),
        (b"].", None),
    ] {
        let program = run(pickle, &Limits::default());
        assert!(program.error.is_none());
        assert_eq!(program.findings.list().first().map(Finding::code), code);
    }
}

#[test]
fn errors_have_the_byte_and_the_opcode() {
    let error = run(b"\x80\x02N\x85K", &Limits::default()).error.unwrap();
    assert_eq!(error.to_string(), "byte 4, BININT1: the pickle ends in the argument");
    let error = run(b"N\xff", &Limits::default()).error.unwrap();
    assert_eq!(error.to_string(), "byte 1: byte 0xff is no opcode");
    let error = run(b"N", &Limits::default()).error.unwrap();
    assert_eq!(error.to_string(), "byte 1: the pickle ends without STOP");
}

#[test]
fn bytes_are_borrowed_from_the_pickle() {
    let pickle = pickle!(text("weight"), b".");
    let program = run(&pickle, &Limits::default());
    let Node::Text(std::borrow::Cow::Borrowed(text)) = program.graph.node(program.root.unwrap())
    else {
        panic!("owned");
    };
    assert!(pickle.as_ptr_range().contains(&text.as_ptr()));
}
