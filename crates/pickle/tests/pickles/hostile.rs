//! Pickles made to exhaust whoever reads them, and bytes of no meaning at all.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use weigh_pickle::opcode::Opcode;
use weigh_pickle::reach::Reach;
use weigh_pickle::{Limits, Verdict, run, run_all, weights_only};

/// Generous: builds for tests are not optimized much, and machines are busy.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn deep_nesting_is_no_recursion() {
    for (open, close) in [(&b"("[..], &b"t"[..]), (b"(", b"l"), (b"", b"\x85")] {
        let start = Instant::now();
        let pickle = pickle!(open.repeat(400_000), b"N", close.repeat(400_000), b".");
        let program = run(&pickle, &Limits::default());
        assert!(program.error.is_none());
        let tree = Reach::of(&program.graph, program.root.unwrap(), |_| true);
        assert_eq!((tree.visits, tree.cycle), (400_001, None));
        assert_eq!(program.verdict(), Verdict::DataOnly);
        drop(program);
        assert!(start.elapsed() < SOON);
    }
}

#[test]
fn text_that_is_encoded_again_and_again_is_no_recursion() {
    let start = Instant::now();
    let function = b"\x80\x02c_codecs\nencode\nq\x010X\x01\0\0\0aq\0";
    let pickle = pickle!(function, b"0h\x01h\0\x85Rq\0".repeat(100_000), b".");
    assert!(run(&pickle, &Limits::default()).error.is_none());
    assert!(start.elapsed() < SOON);
}

#[test]
fn one_tuple_of_many_arguments_is_not_walked_for_each_call() {
    for function in ["torch._utils\n_rebuild_tensor_v2", "torch\nSize", "torch\nTensor"] {
        let start = Instant::now();
        let (ones, calls) = (b"K\x01".repeat(100_000), b"h\x01h\0R0".repeat(100_000));
        let begin = pickle!(b"\x80\x02(", ones, b"tq\x000c", function, b"\nq\x010");
        let pickle = pickle!(begin, calls, b"N.");
        assert!(run(&pickle, &Limits::default()).error.is_none());
        assert!(start.elapsed() < SOON, "{function}");
    }
}

/// Lists of ten times the list before, `levels` of them.
fn laughs(levels: u8) -> Vec<u8> {
    let mut pickle = b"\x80\x02]q\0".to_vec();
    for level in 1..=levels {
        pickle.extend(pickle!(b"0](", [b'h', level - 1].repeat(10), b"eq", [level]));
    }
    pickle.push(b'.');
    pickle
}

#[test]
fn billion_laughs_are_ambiguous_and_a_few_are_not() {
    for (levels, nodes, expected) in [
        (5, 111_111, Verdict::DataOnly),
        (6, 1_111_111, Verdict::Ambiguous),
        (40, u64::MAX, Verdict::Ambiguous),
        (200, u64::MAX, Verdict::Ambiguous),
    ] {
        let pickle = laughs(levels);
        let program = run(&pickle, &Limits::default());
        assert!(program.error.is_none(), "{:?}", program.error);
        let tree = Reach::of(&program.graph, program.root.unwrap(), |_| true);
        assert_eq!(tree.visits, nodes, "{levels}");
        assert_eq!(program.verdict(), expected, "{levels}");
        assert_eq!(
            program.findings.first("graph-expansion").is_some(),
            expected != Verdict::DataOnly
        );
    }
}

#[test]
fn one_dictionary_under_many_keys_is_no_attack() {
    // A dictionary of twenty entries under each of 200 000 keys.
    let mut pickle = b"\x80\x02}q\0(".to_vec();
    for key in 0..20 {
        pickle.extend(pickle!([b'K', key], b"N"));
    }
    pickle.extend(b"u0}(");
    for key in 0..200_000_i32 {
        pickle.extend(pickle!(b"J", key.to_le_bytes(), b"h\0"));
    }
    pickle.extend(b"u.");
    let verdict = |limits: &Limits| run(&pickle, limits).verdict();
    assert_eq!(verdict(&Limits::default()), Verdict::DataOnly);
    assert_eq!(verdict(&Limits { tree: 4, ..Limits::default() }), Verdict::Ambiguous);
}

#[test]
fn what_is_within_itself_is_walked_once() {
    for pickle in
        [&b"]q\0h\0a."[..], b"}q\0Nh\0s.", b"]q\0(]q\x01h\0ah\x01e.", b"cm\nf\n)Rq\0h\0b."]
    {
        let program = run(pickle, &Limits::default());
        assert!(Reach::of(&program.graph, program.root.unwrap(), |_| true).cycle.is_some());
        assert!(program.findings.first("graph-cycle").is_some());
    }
}

#[test]
fn limits_are_errors_of_their_names() {
    let limits = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    for (code, limits, inside, beyond) in [
        ("limit-opcodes", limits(|l| l.opcodes = 3), &b"NN."[..], &b"NNN."[..]),
        ("limit-nodes", limits(|l| l.nodes = 2), b"]].", b"]]]."),
        ("limit-graph", limits(|l| l.graph_bytes = 100), b"].", b"]]]]]."),
        ("limit-stack", limits(|l| l.stack = 2), b"NN.", b"NNN."),
        ("limit-stack", limits(|l| l.stack = 2), b"N((11.", b"N(((111."),
        ("limit-memo", limits(|l| l.memo = 2), b"Nq\0q\x01.", b"Nq\0q\x01q\x02."),
        ("limit-calls", limits(|l| l.foreign = 1), b"cm\nf\n)R.", b"cm\nf\nq\0)R0h\0)R."),
        ("limit-pickle", limits(|l| l.pickle_bytes = 3), b"K\x01.", b"M\x01\x01."),
        ("limit-string", limits(|l| l.string_bytes = 1), b"U\x01a.", b"U\x02aa."),
    ] {
        assert!(run(inside, &limits).error.is_none(), "{code}");
        assert_eq!(run(beyond, &limits).error.unwrap().code, code);
    }
}

#[test]
fn many_of_anything_is_soon_read() {
    let many = |part: &[u8]| part.repeat(200_000);
    for (what, pickle) in [
        ("names", pickle!(many(b"cos\nsystem\n0"), b"N.")),
        ("calls", pickle!(many(b"cm\nf\n)R0"), b"N.")),
        ("pickles in strings", pickle!(many(b"C\x0ecos\ngetpid\n)R.0"), b"N.")),
        ("pickles in strings of pickles", pickle!(b"B\0\0\x10\0", vec![b'('; 1 << 20], b".")),
        ("pickles", many(b"N.")),
        ("marks", many(b"(")),
        ("huge memo numbers", pickle!(b"N", many(b"r\xff\xff\xff\x7fr\xff\xff\xff\xef"), b".")),
        ("failures", many(b"0")),
        ("base64 in base64", pickle!(b"X\0\0\x0f\0", many(b"Tk5OTk5O"), b".")),
        ("calls of storages", many(b"ctorch.storage\n_load_from_bytes\n(C\x0ecos\ngetpid\n)R.tR0")),
    ] {
        let start = Instant::now();
        let programs = run_all(&pickle, &Limits::default());
        for program in &programs {
            assert!(program.graph.len() <= pickle.len() * 2 + 8, "{what}");
            assert!(program.findings.list().len() <= 8000, "{what}");
        }
        assert!(programs.len() <= 10_000);
        let _ = weights_only(&pickle, &Limits::default());
        assert!(start.elapsed() < 4 * SOON, "{what}: {:?}", start.elapsed());
    }
}

/// Opcodes in any order, with arguments that are often legal.
fn opcodes() -> impl Strategy<Value = Vec<u8>> {
    let one = (0..Opcode::ALL.len(), proptest::collection::vec(any::<u8>(), 0..4)).prop_map(
        |(place, noise)| {
            let opcode = Opcode::ALL[place];
            match opcode.argument() {
                weigh_pickle::opcode::ArgumentKind::Counted1 => {
                    pickle!([opcode.byte(), u8::try_from(noise.len()).unwrap()], noise)
                }
                weigh_pickle::opcode::ArgumentKind::Byte => pickle!([opcode.byte(), 1]),
                weigh_pickle::opcode::ArgumentKind::Line => pickle!([opcode.byte()], b"1\n"),
                weigh_pickle::opcode::ArgumentKind::TwoLines => pickle!([opcode.byte()], b"m\nf\n"),
                _ => pickle!([opcode.byte()], noise),
            }
        },
    );
    proptest::collection::vec(one, 0..60).prop_map(|parts| parts.concat())
}

fn is_survived(bytes: &[u8]) -> Result<(), TestCaseError> {
    for program in run_all(bytes, &Limits::default()) {
        prop_assert!(program.graph.len() <= bytes.len() * 4 + 8);
        prop_assert!(program.end() <= u64::try_from(bytes.len()).unwrap());
        prop_assert_eq!(
            program.root.is_none(),
            program.error.as_ref().is_some_and(|error| error.code != "pickle-frame")
        );
        prop_assert!(program.error.is_none() || program.verdict() >= Verdict::Call);
        prop_assert!(program.foreign.len() <= bytes.len());
    }
    let taken = weights_only(bytes, &Limits::default());
    prop_assert!(taken.is_err() || taken.unwrap() <= u64::try_from(bytes.len()).unwrap());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_of_no_meaning_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        is_survived(&bytes)?;
    }

    #[test]
    fn opcodes_in_any_order_are_survived(bytes in opcodes()) {
        is_survived(&bytes)?;
    }

    #[test]
    fn a_pickle_with_a_byte_changed_is_survived(place: usize, byte: u8) {
        let mut bytes = laughs(10);
        let len = bytes.len();
        bytes[place % len] = byte;
        is_survived(&bytes)?;
    }
}
