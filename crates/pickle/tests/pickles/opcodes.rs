//! Every opcode, legal and cut off at each byte.

use std::collections::BTreeSet;

use weigh_pickle::opcode::Opcode;
use weigh_pickle::{Limits, run};

use crate::assembler::{bytes, global, short, show, text};

/// Pickles with what they are pickles of: `Err` with the code of an error for opcodes that no file may have.
fn table() -> Vec<(Opcode, Vec<u8>, Result<&'static str, &'static str>)> {
    use Opcode as O;
    vec![
        (O::Mark, pickle!(b"(t."), Ok("()")),
        (O::Stop, pickle!(b"N."), Ok("None")),
        (O::Pop, pickle!(b"NK\x010."), Ok("None")),
        (O::Dup, pickle!(b"(K\x012t."), Ok("(1, 1)")),
        (O::Float, pickle!(b"F-1.5e3\n."), Ok("-1500.0")),
        (O::Int, pickle!(b"I-12\n."), Ok("-12")),
        (O::Long, pickle!(b"L-12L\n."), Ok("-12")),
        (O::None, pickle!(b"N."), Ok("None")),
        (O::PersId, pickle!(b"P0\n."), Err("pickle-persistent-id")),
        (O::Reduce, pickle!(global("m", "f"), b")R."), Ok("Reduce <m.f>()")),
        (O::String, pickle!(b"S'a\\x00\\''\n."), Ok(r#"b"a\x00\'""#)),
        (O::Unicode, pickle!(b"Va\\u0041\xe9\n."), Ok("\"aAé\"")),
        (O::Append, pickle!(b"]Na."), Ok("[None]")),
        (O::Build, pickle!(global("m", "f"), b")R}b."), Ok("Reduce <m.f>() states [{}]")),
        (O::Global, pickle!(global("m", "f"), b"."), Ok("<m.f>")),
        (O::Dict, pickle!(b"(K\x01Nd."), Ok("{1: None}")),
        (O::Get, pickle!(b"Np7\n0g7\n."), Ok("None")),
        (O::Inst, pickle!(b"(K\x01im\nf\n."), Ok("Inst <m.f>(1)")),
        (O::List, pickle!(b"(K\x01l."), Ok("[1]")),
        (O::Put, pickle!(b"Np7\n."), Ok("None")),
        (O::SetItem, pickle!(b"}K\x01Ns."), Ok("{1: None}")),
        (O::Tuple, pickle!(b"(K\x01K\x02t."), Ok("(1, 2)")),
        (O::PopMark, pickle!(b"N(K\x01K\x021."), Ok("None")),
        (O::BinInt, pickle!(b"J\xff\xff\xff\xff."), Ok("-1")),
        (O::BinInt1, pickle!(b"K\xff."), Ok("255")),
        (O::BinInt2, pickle!(b"M\xff\xff."), Ok("65535")),
        (O::BinPersId, pickle!(b"K\x01Q."), Ok("persistent 1")),
        (O::BinString, pickle!(b"T\x02\0\0\0a\xff."), Ok(r#"b"a\xff""#)),
        (O::ShortBinString, pickle!(b"U\x02a\xff."), Ok(r#"b"a\xff""#)),
        (O::BinUnicode, pickle!(text("é"), b"."), Ok("\"é\"")),
        (O::Appends, pickle!(b"](K\x01K\x02e."), Ok("[1, 2]")),
        (O::BinFloat, pickle!(b"G", 1.5_f64.to_be_bytes(), b"."), Ok("1.5")),
        (O::BinGet, pickle!(b"Nq\xff0h\xff."), Ok("None")),
        (O::LongBinGet, pickle!(b"Nr\0\0\0\xff0j\0\0\0\xff."), Ok("None")),
        (O::EmptyList, pickle!(b"]."), Ok("[]")),
        (O::EmptyTuple, pickle!(b")."), Ok("()")),
        (O::EmptyDict, pickle!(b"}."), Ok("{}")),
        (O::Obj, pickle!(b"(", global("m", "f"), b"K\x01o."), Ok("Obj <m.f>(1)")),
        (O::BinPut, pickle!(b"Nq\xff."), Ok("None")),
        (O::LongBinPut, pickle!(b"Nr\xff\xff\xff\xff."), Ok("None")),
        (O::SetItems, pickle!(b"}(K\x01NK\x02Nu."), Ok("{1: None, 2: None}")),
        (O::Proto, pickle!(b"\x80\x05N."), Ok("None")),
        (O::NewObj, pickle!(global("m", "f"), b")\x81."), Ok("NewObj <m.f>()")),
        (O::Ext1, pickle!(b"\x82\x01."), Err("pickle-extension")),
        (O::Ext2, pickle!(b"\x83\x01\0."), Err("pickle-extension")),
        (O::Ext4, pickle!(b"\x84\x01\0\0\0."), Err("pickle-extension")),
        (O::Tuple1, pickle!(b"K\x01\x85."), Ok("(1)")),
        (O::Tuple2, pickle!(b"K\x01K\x02\x86."), Ok("(1, 2)")),
        (O::Tuple3, pickle!(b"K\x01K\x02K\x03\x87."), Ok("(1, 2, 3)")),
        (O::NewTrue, pickle!(b"\x88."), Ok("True")),
        (O::NewFalse, pickle!(b"\x89."), Ok("False")),
        (
            O::Long1,
            pickle!(b"\x8a\x09\0\0\0\0\0\0\0\x80\0."),
            Ok("long [00, 00, 00, 00, 00, 00, 00, 80, 00]"),
        ),
        (O::Long4, pickle!(b"\x8b\x02\0\0\0\xff\xff."), Ok("-1")),
        (O::BinBytes, pickle!(bytes(b"a\xff"), b"."), Ok(r#"b"a\xff""#)),
        (O::ShortBinBytes, pickle!(b"C\x02a\xff."), Ok(r#"b"a\xff""#)),
        (O::ShortBinUnicode, pickle!(short("é"), b"."), Ok("\"é\"")),
        (O::BinUnicode8, pickle!(b"\x8d\x02\0\0\0\0\0\0\0\xc3\xa9."), Ok("\"é\"")),
        (O::BinBytes8, pickle!(b"\x8e\x02\0\0\0\0\0\0\0a\xff."), Ok(r#"b"a\xff""#)),
        (O::EmptySet, pickle!(b"\x8f."), Ok("set {}")),
        (O::AddItems, pickle!(b"\x8f(K\x01K\x02\x90."), Ok("set {1, 2}")),
        (O::FrozenSet, pickle!(b"(K\x01\x91."), Ok("frozenset {1}")),
        (O::NewObjEx, pickle!(global("m", "f"), b")}\x92."), Ok("NewObjEx <m.f>() **{}")),
        (O::StackGlobal, pickle!(short("m"), short("f"), b"\x93."), Ok("<m.f>")),
        (O::Memoize, pickle!(b"N\x940h\0."), Ok("None")),
        (O::Frame, pickle!(b"\x95\x02\0\0\0\0\0\0\0N."), Ok("None")),
        (O::ByteArray8, pickle!(b"\x96\x02\0\0\0\0\0\0\0a\xff."), Ok(r#"bytearray b"a\xff""#)),
        (O::NextBuffer, pickle!(b"\x97."), Err("pickle-buffer")),
        (O::ReadOnlyBuffer, pickle!(b"N\x98."), Err("pickle-buffer")),
    ]
}

#[test]
fn the_table_has_every_opcode_and_each_is_in_its_pickle() {
    let table = table();
    let named: BTreeSet<_> = table.iter().map(|(opcode, ..)| opcode.byte()).collect();
    assert_eq!(named.len(), Opcode::ALL.len());
    for (opcode, pickle, _) in table {
        assert!(pickle.contains(&opcode.byte()), "{}", opcode.name());
    }
}

#[test]
fn every_opcode_does_what_it_is_for() {
    for (opcode, pickle, expected) in table() {
        let program = run(&pickle, &Limits::default());
        let shown = match (&program.root, &program.error) {
            (Some(root), None) => Ok(show(&program.graph, *root)),
            (_, error) => Err(error.as_ref().unwrap().code),
        };
        assert_eq!(shown.as_deref().map_err(|code| *code), expected, "{}", opcode.name());
        if expected.is_ok() {
            assert_eq!(program.len, u64::try_from(pickle.len()).unwrap(), "{}", opcode.name());
        } else {
            let error = program.error.unwrap();
            assert_eq!(error.opcode, Some(opcode.name()));
            let place = pickle.iter().position(|byte| *byte == opcode.byte()).unwrap();
            assert_eq!(error.offset, Some(u64::try_from(place).unwrap()), "{}", opcode.name());
        }
    }
}

#[test]
fn a_pickle_cut_off_anywhere_is_an_error_at_the_last_opcode() {
    for (opcode, pickle, expected) in table() {
        for end in 0..pickle.len() {
            let program = run(&pickle[..end], &Limits::default());
            let error = program.error.unwrap_or_else(|| panic!("{} at {end}", opcode.name()));
            if expected.is_ok() {
                assert_eq!(error.code, "pickle-truncated", "{} at {end}: {error}", opcode.name());
                assert!(program.root.is_none());
            }
            assert!(error.offset.unwrap() <= u64::try_from(end).unwrap());
        }
    }
}
