//! Arguments that are lines of text, as `CPython` 3.11's C unpickler reads them.

use weigh_pickle::{Limits, run};

use crate::assembler::show;

/// What a pickle of one opcode is of, or the code of the error.
fn read(opcode: u8, line: &[u8]) -> Result<String, &'static str> {
    let pickle = pickle!([opcode], line, b"\n.");
    let program = run(&pickle, &Limits::default());
    match (program.root, program.error) {
        (Some(root), None) => Ok(show(&program.graph, root)),
        (_, error) => Err(error.unwrap().code),
    }
}

fn check(opcode: u8, table: &[(&[u8], &str)]) {
    for (line, expected) in table {
        let result = read(opcode, line);
        let shown = result.as_deref().unwrap_or_else(|code| code);
        assert_eq!(shown, *expected, "{:?} {}", char::from(opcode), line.escape_ascii());
    }
}

const WRONG: &str = "pickle-argument";

#[test]
fn int_is_read_as_strtol_and_then_as_python() {
    check(
        b'I',
        &[
            (b"0", "0"),
            (b"00", "False"),
            (b"01", "True"),
            (b"02", "2"),
            (b"000", "0"),
            (b"001", "1"),
            // Any two characters that come to 0 or 1.
            (b"+1", "True"),
            (b" 1", "True"),
            (b"-0", "False"),
            (b"1 ", "1"),
            (b"010", "8"),
            (b"0x1f", "31"),
            (b"0o17", "15"),
            (b"0b11", "3"),
            (b"1_0", "10"),
            (b"09", WRONG),
            (b"1__0", WRONG),
            (b"1_", WRONG),
            (b"_1", WRONG),
            (b"0x", WRONG),
            (b"", WRONG),
            (b"-", WRONG),
            (b"- 1", WRONG),
            (b"1L", WRONG),
            (b"1\x005", "1"),
            (b"9223372036854775807", "9223372036854775807"),
            (b"9223372036854775808", "long [00, 00, 00, 00, 00, 00, 00, 80, 00]"),
            (b"-9223372036854775808", "-9223372036854775808"),
            (b"-9223372036854775809", "long [ff, ff, ff, ff, ff, ff, ff, 7f, ff]"),
            // Octal, as far as strtol goes.
            (b"0777777777777777777777", "9223372036854775807"),
            (b"01000000000000000000000", WRONG),
        ],
    );
}

#[test]
fn long_is_read_as_python_and_may_end_in_l() {
    check(
        b'L',
        &[
            (b"5", "5"),
            (b"5L", "5"),
            (b"5 L", "5"),
            (b"-5L", "-5"),
            (b"00", "0"),
            (b"01", WRONG),
            (b"5LL", WRONG),
            (b"L", WRONG),
            (b"", WRONG),
            (b"0x5L", "5"),
            (b"99999999999999999999", "long [ff, ff, 0f, 63, 2d, 5e, c7, 6b, 05]"),
        ],
    );
}

#[test]
fn an_integer_has_as_many_bytes_as_the_limit() {
    // 2^8184 - 1 has 1023 bytes of ones, and one for the sign.
    let digits = |count: usize| pickle!(b"0x", vec![b'f'; count]);
    assert!(read(b'L', &digits(2046)).is_ok());
    assert_eq!(read(b'L', &digits(2050)), Err("limit-integer"));
    let limits = Limits { integer_bytes: 4, ..Limits::default() };
    let four = pickle!(b"\x8a\x04abcd.");
    let five = pickle!(b"\x8a\x05abcde.");
    assert!(run(&four, &limits).error.is_none());
    assert_eq!(run(&five, &limits).error.unwrap().code, "limit-integer");
}

#[test]
fn float_is_read_without_white_space_and_overflow() {
    check(
        b'F',
        &[
            (b"1", "1.0"),
            (b"-1.5e3", "-1500.0"),
            (b".5", "0.5"),
            (b"5.", "5.0"),
            (b"inf", "inf"),
            (b"-Infinity", "-inf"),
            (b"NaN", "NaN"),
            (b"1e-400", "0.0"),
            (b"1e400", WRONG),
            (b" 1", WRONG),
            (b"1 ", WRONG),
            (b"1_0", WRONG),
            (b"1e", WRONG),
            (b".", WRONG),
            (b"", WRONG),
            (b"0x1p3", WRONG),
            (b"1\x002", "1.0"),
        ],
    );
}

#[test]
fn a_string_is_quoted_and_has_the_escapes_of_bytes() {
    check(
        b'S',
        &[
            (b"'a'", r#"b"a""#),
            (b"\"a\"", r#"b"a""#),
            (b"''", r#"b"""#),
            (b"'a'b'", r#"b"a\'b""#),
            (b"'\\\\\\''", r#"b"\\\'""#),
            (b"'\\a\\b\\t\\n\\v\\f\\r'", r#"b"\x07\x08\t\n\x0b\x0c\r""#),
            (b"'\\x41\\101\\1\\1234'", r#"b"AA\x01S4""#),
            (b"'\\777'", r#"b"\xff""#),
            (b"'\\q\\8\\u0041'", r#"b"\\q\\8\\u0041""#),
            (b"'\xff'", r#"b"\xff""#),
            (b"'a", WRONG),
            (b"'a\"", WRONG),
            (b"'", WRONG),
            (b"a", WRONG),
            (b"", WRONG),
            (b" 'a'", WRONG),
            (b"'a\\'", WRONG),
            (b"'\\x4'", WRONG),
            (b"'\\xg1'", WRONG),
        ],
    );
}

#[test]
fn unicode_is_latin_1_with_two_escapes() {
    check(
        b'V',
        &[
            (b"", "\"\""),
            (b"a", "\"a\""),
            (b"\xe9", "\"é\""),
            (b"\\u0041\\U0001f600", "\"A😀\""),
            (b"\\n\\x41", r#""\\n\\x41""#),
            (b"\\\\u0041", r#""\\\\u0041""#),
            (b"\\\\\\u0041", r#""\\\\A""#),
            (b"a\\", r#""a\\""#),
            (b"\\\xe9", r#""\\é""#),
            (b"\\ud83d", "surrogates [ed, a0, bd]"),
            (b"\\ud83d\\ude00", "surrogates [ed, a0, bd, ed, b8, 80]"),
            (b"\\U0010ffff", "\"\\u{10ffff}\""),
            (b"\\U00110000", WRONG),
            (b"\\u004", WRONG),
            (b"\\ug000", WRONG),
        ],
    );
}

#[test]
fn memo_indices_are_decimal_and_not_negative() {
    for (line, expected) in [
        (&b"1"[..], None),
        (b" 1 ", None),
        (b"1_0", None),
        (b"007", None),
        (b"9223372036854775807", None),
        (b"9223372036854775808", Some("pickle-argument")),
        (b"-1", Some("pickle-argument")),
        (b"0x1", Some("pickle-argument")),
        (b"", Some("pickle-argument")),
    ] {
        let pickle = pickle!(b"Np", line, b"\n0g", line, b"\n.");
        let error = run(&pickle, &Limits::default()).error.map(|error| error.code);
        assert_eq!(error, expected, "{}", line.escape_ascii());
    }
}

#[test]
fn names_are_utf_8_and_not_empty() {
    for (pickle, expected) in [
        (&b"cm\nf\n."[..], None),
        (b"c\xc3\xa9\nf\n.", None),
        (b"c\xff\nf\n.", Some("pickle-argument")),
        (b"c\nf\n.", Some("pickle-argument")),
        (b"cm\n\n.", Some("pickle-argument")),
        (b"(im\nf\n.", None),
        (b"(i\xc3\xa9\nf\n.", Some("pickle-argument")),
    ] {
        let error = run(pickle, &Limits::default()).error.map(|error| error.code);
        assert_eq!(error, expected, "{}", pickle.escape_ascii());
    }
}

#[test]
fn text_is_utf_8_or_has_surrogates() {
    for (bytes, valid) in [
        (&b"a"[..], true),
        (b"\xc3\xa9", true),
        (b"\xed\xa0\x80", true),
        (b"a\xed\xb0\x80b\xed\xa0\x80", true),
        (b"\xed\xa0", false),
        (b"\xed\xa0\x80\xff", false),
        (b"\xff", false),
        (b"\xc0\x80", false),
        (b"\xf4\x90\x80\x80", false),
    ] {
        let pickle = pickle!([0x8c, u8::try_from(bytes.len()).unwrap()], bytes, b".");
        let program = run(&pickle, &Limits::default());
        assert_eq!(program.error.is_none(), valid, "{}", bytes.escape_ascii());
        let lone = valid && core::str::from_utf8(bytes).is_err();
        assert_eq!(program.findings.first("text-surrogates").is_some(), lone);
    }
}

#[test]
fn lengths_are_compared_with_what_is_left_before_anything_else() {
    for (pickle, code) in [
        (pickle!(b"\x8d", (1_u64 << 40).to_le_bytes(), b"x."), "pickle-truncated"),
        (pickle!(b"\x8e", u64::MAX.to_le_bytes(), b"x."), "pickle-truncated"),
        (pickle!(b"\x96", u64::MAX.to_le_bytes(), b"x."), "pickle-truncated"),
        (pickle!(b"\x95", u64::MAX.to_le_bytes(), b"N."), "pickle-truncated"),
        (pickle!(b"X\xff\xff\xff\xffx."), "pickle-truncated"),
        (pickle!(b"\x8b\xff\xff\xff\x7fx."), "pickle-truncated"),
        (pickle!(b"\x8b\xff\xff\xff\xffx."), "pickle-argument"),
        (pickle!(b"T\xff\xff\xff\xffx."), "pickle-argument"),
        (pickle!(b"\x84\xff\xff\xff\xff."), "pickle-argument"),
        (pickle!(b"\x80\x06N."), "pickle-argument"),
    ] {
        assert_eq!(run(&pickle, &Limits::default()).error.unwrap().code, code);
    }
    let limits = Limits { string_bytes: 3, ..Limits::default() };
    assert!(run(b"U\x03abc.", &limits).error.is_none());
    assert_eq!(run(b"U\x04abcd.", &limits).error.unwrap().code, "limit-string");
    assert_eq!(run(b"S'ab'\n.", &limits).error.unwrap().code, "limit-string");
}
