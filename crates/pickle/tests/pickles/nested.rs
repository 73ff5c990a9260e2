//! Pickles in the strings of pickles.

use weigh_pickle::nested::Spelling;
use weigh_pickle::{Limits, Verdict, run};

use crate::assembler::{bytes, global, short, text};

fn payload() -> Vec<u8> {
    pickle!(b"\x80\x04", short("os"), short("getpid"), b"\x93)R.")
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes
        .chunks(3)
        .flat_map(|chunk| {
            let word = chunk
                .iter()
                .chain([&0, &0])
                .take(3)
                .fold(0_usize, |word, byte| (word << 8) | usize::from(*byte));
            (0..4).map(move |place| {
                let digit = char::from(DIGITS[(word >> (18 - 6 * place)) & 63]);
                if place > chunk.len() { '=' } else { digit }
            })
        })
        .collect()
}

#[test]
fn a_pickle_in_a_string_counts_however_it_is_written() {
    let latin1: String = payload().iter().map(|byte| char::from(*byte)).collect();
    for (what, literal, spelling) in [
        ("bytes", bytes(&payload()), Spelling::Plain),
        ("protocol 0", bytes(b"cos\ngetpid\n)R."), Spelling::Plain),
        ("protocol 0 in text", text("cos\ngetpid\n)R."), Spelling::Plain),
        ("text in Latin-1", text(&latin1), Spelling::Latin1),
        ("hexadecimal", text(&hex(&payload())), Spelling::Hex),
        ("base64", text(&base64(&payload())), Spelling::Base64),
        ("base64 in bytes", bytes(base64(&payload()).as_bytes()), Spelling::Base64),
    ] {
        let pickle = pickle!(b"]", literal, b"a.");
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.verdict(), Verdict::Call, "{what}");
        let nested = &program.nested[0];
        assert_eq!((nested.spelling, nested.depth, nested.offset), (spelling, 1, 1), "{what}");
        assert_eq!(nested.calls, [Some(("os".into(), "getpid".into()))], "{what}");
        assert!(program.findings.first("nested-pickle").is_some(), "{what}");
    }
}

#[test]
fn strings_that_are_no_pickles_are_nothing() {
    for literal in [
        text("layer.0.weight"),
        text("A sentence.\nAnd another one.\n"),
        text("cos\ngetpid\n"),
        text("cos\ngetpid\n)"),
        text("c1\n2\n."),
        text("c1\n2\n)R"),
        text("cat\ndog\nbird\nRest\n"),
        text("(a sentence,\nand another)R"),
        bytes(b"\x93NUMPY\x01\0.\n"),
        bytes(&[0x93; 64]),
        text("deadbeefdeadbeefdeadbeef"),
        text("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="),
        bytes(b"N.N.N.N.\n"),
    ] {
        let pickle = pickle!(literal, b".");
        let program = run(&pickle, &Limits::default());
        assert!(program.nested.is_empty(), "{:?}", program.nested);
        assert_eq!(program.verdict(), Verdict::DataOnly);
    }
}

#[test]
fn a_pickle_that_breaks_off_counts_for_what_it_called_before() {
    let getpid = || global("os", "getpid");
    let latin1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    for (what, broken, expected) in [
        ("REDUCE and no STOP", pickle!(getpid(), b")R"), Verdict::Call),
        ("REDUCE and no opcode", pickle!(getpid(), b")R\xff\xff."), Verdict::Call),
        ("REDUCE and an empty stack", pickle!(getpid(), b")R000."), Verdict::Call),
        ("REDUCE and a name of no module", pickle!(getpid(), b")Rc!\n?\n0"), Verdict::Call),
        ("INST", pickle!(b"(ios\ngetpid\n\xff"), Verdict::Call),
        ("OBJ", pickle!(b"(", getpid(), b"o\xff"), Verdict::Call),
        ("NEWOBJ", pickle!(getpid(), b")\x81\xff"), Verdict::Call),
        ("NEWOBJ_EX", pickle!(getpid(), b")}\x92\xff"), Verdict::Call),
        ("STACK_GLOBAL", pickle!(short("os"), short("getpid"), b"\x93)R\xff"), Verdict::Call),
        ("a state for a module", pickle!(global("os", "path"), b"}Nb\xff"), Verdict::DataOnly),
        ("attributes of a module", pickle!(global("os", "path"), b"}b\xff"), Verdict::Call),
        ("an item in a list first", pickle!(b"]NNs0", getpid(), b")R\xff"), Verdict::Call),
        ("an attribute of a list first", pickle!(b"]}b0", getpid(), b")R\xff"), Verdict::Call),
        ("an id as text first", pickle!(b"Pa\n0", getpid(), b")R\xff"), Verdict::Call),
        (
            "a frame that is not kept",
            pickle!(b"\x95", 1_u64.to_le_bytes(), getpid(), b")R\xff"),
            Verdict::Call,
        ),
        (
            "a huge integer first",
            pickle!(b"\x8b", 2000_u32.to_le_bytes(), [0; 2000], b"0", getpid(), b")R."),
            Verdict::Ambiguous,
        ),
        ("PROTO, a name and no end", pickle!(b"\x80\x02", getpid(), b"\xff"), Verdict::Error),
        ("behind another", pickle!(b"N.", getpid(), b")R\xff"), Verdict::Call),
        ("a name and no call", pickle!(getpid(), b"\xff"), Verdict::DataOnly),
        (
            "a known call",
            pickle!(global("collections", "OrderedDict"), b")R\xff"),
            Verdict::DataOnly,
        ),
        ("an error before the call", pickle!(b"0", getpid(), b")R"), Verdict::DataOnly),
        ("arguments that are no tuple", pickle!(getpid(), b"]R0c"), Verdict::Call),
    ] {
        for (how, literal) in [
            ("bytes", bytes(&broken)),
            ("Latin-1", text(&latin1(&broken))),
            ("hexadecimal", text(&hex(&broken))),
            ("base64", text(&base64(&broken))),
        ] {
            let pickle = pickle!(b"]", literal, b"a.");
            let program = run(&pickle, &Limits::default());
            assert_eq!(program.verdict(), expected, "{what}, in {how}");
        }
    }
}

#[test]
fn many_calls_in_a_string_are_counted_and_the_first_are_listed() {
    let inner = pickle!(b"\x80\x02", global("os", "getpid"), b"q\0", b"h\0)R0".repeat(500), b".");
    let pickle = pickle!(bytes(&inner), b".");
    let program = run(&pickle, &Limits::default());
    assert_eq!((program.nested[0].call_count, program.nested[0].calls.len()), (500, 100));
}

#[test]
fn a_pickle_of_data_in_a_string_is_data() {
    let inner = pickle!(b"\x80\x02", global("collections", "OrderedDict"), b")R.");
    let pickle = pickle!(bytes(&inner), b".");
    let program = run(&pickle, &Limits::default());
    assert_eq!((program.nested.len(), program.verdict()), (1, Verdict::DataOnly));
    let broken = pickle!(bytes(&pickle!(&inner[..inner.len() - 1], b"\xff.\n")), b".");
    assert_eq!(run(&broken, &Limits::default()).verdict(), Verdict::Error);
}

#[test]
fn three_levels_are_followed_and_a_fourth_is_a_finding() {
    let mut inner = payload();
    for depth in 1..=5_u32 {
        let pickle = pickle!(b"\x80\x04", global("torch", "float32"), bytes(&inner), b".");
        let program = run(&pickle, &Limits::default());
        let deepest = program.nested.iter().map(|nested| nested.depth).max().unwrap();
        assert_eq!(deepest, depth.min(3));
        let over = program.findings.first("nested-limit").is_some();
        assert_eq!(over, depth > 3);
        let expected = if depth > 3 { Verdict::Ambiguous } else { Verdict::Call };
        assert_eq!(program.verdict(), expected);
        inner = pickle;
    }
}

#[test]
fn a_storage_in_bytes_is_data_if_it_was_read() {
    // torch's stream format: the magic number, the protocol, a dictionary, the object, the keys, raw bytes.
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    let storage = |extra: &[u8]| {
        pickle!(
            magic,
            b"\x80\x02M\xe9\x03.",
            b"\x80\x02}.",
            b"\x80\x02(",
            text("storage"),
            global("torch", "FloatStorage"),
            text("0"),
            text("cpu"),
            b"K\x01NtQ",
            extra,
            b".",
            b"\x80\x02]",
            text("0"),
            b"a.",
            1_u64.to_le_bytes(),
            [0; 4]
        )
    };
    let load =
        |bytes: &[u8]| pickle!(global("torch.storage", "_load_from_bytes"), b"(", bytes, b"tR.");
    let honest = storage(b"");
    let call = pickle!(global("os", "getpid"), b")R0");
    let text_of = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    let encoded =
        pickle!(global("_codecs", "encode"), b"(", text(&text_of(&honest)), text("latin1"), b"tR");
    for (what, pickle, expected) in [
        ("a storage", load(&bytes(&honest)), Verdict::DataOnly),
        ("a storage in encoded text", load(&encoded), Verdict::DataOnly),
        ("a storage with a call", load(&bytes(&storage(&call))), Verdict::Call),
        ("half of one", load(&bytes(&honest[..30])), Verdict::Call),
        ("no literal", load(b"]"), Verdict::Call),
    ] {
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.verdict(), expected, "{what}");
    }
}
