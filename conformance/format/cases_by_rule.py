# SPDX-License-Identifier: Apache-2.0
# fmt: off
# ruff: noqa: E501
"""Cases written for one rule each, with both sides of its boundary where it has one.

The tensors are mostly of type U8, which cannot be misaligned, so that a case shows one thing.
"""

from corpus_case import DEVIATES, INVALID, VALID, Collection, read_marked

COLLECTION = Collection()

# Two complete entries and the bytes that they describe.
A = r'"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
B = r'"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}'
FOUR = "%01%02%03%04"
EIGHT = "%01%02%03%04%05%06%07%08"


def entry(name, dtype, shape, offsets):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}'


def zeros(count):
    return "%00" * count


def padded(header):
    """The header text with spaces, so that the data section begins at a multiple of 8."""
    header_bytes, _ = read_marked(header)
    return header + " " * (-len(header_bytes) % 8)


# The bases that derived.tsv changes.

case = COLLECTION.group("base")
case(
    "base_small", VALID,
    r'{"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
    r'"b":{"dtype":"F16","shape":[],"data_offsets":[2,4]}}', "%01%02%00<",
    note="two tensors and metadata",
)
case(
    "base_tokens", DEVIATES,
    r'{"__metadata__":{"e\u00e9\"\\":"\ud83d\ude00"},"t":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2],'
    r'«entry-field-unknown»"x":[true,false,null,-1.5e+3,{"y":"z"},{},[]]}}', "%01%02",
    note="every kind of JSON token and escape",
)
case(
    "base_aligned", VALID,
    padded("{" + entry("w", "F32", "[2,2]", "[0,16]") + "}"), zeros(16),
    note="the data section begins at a multiple of 8",
)
case(
    "base_empties", VALID,
    "{" + entry("e", "F32", "[0]", "[0,0]") + "," + entry("a", "U8", "[4]", "[0,4]") + ","
    + entry("f", "U8", "[2,0]", "[4,4]") + "}", FOUR,
    note="empty tensors at both ends",
)
case("base_no_tensors", VALID, "{}", note="nothing but the object")

# F1 to F4: the frame.

case = COLLECTION.group("frame")
case("frame_1_byte", INVALID, whole="«file-too-short»%02")
case("frame_7_zeros", INVALID, whole="«file-too-short»" + zeros(7), note="one byte less than all-zero needs")
case("frame_8_zeros", INVALID, whole="«not-safetensors:all-zero»" + zeros(8))
case("frame_n0_then_space", INVALID, " ", length=0, also="header-empty@0")
case("frame_n1_padded", INVALID, "{}", length=1, also="header-empty@0")
case("frame_n2_one_byte_there", INVALID, "{", length=2, also="header-past-end@0")
case("frame_n3_two_bytes_there", INVALID, "{}", length=3, also="header-past-end@0")
case("frame_n_at_file_end", VALID, "{} ", note="8+N is the file length")
case("frame_limit_met", VALID, "{}        ", limits="header_bytes=10")
case(
    "frame_limit_passed", INVALID, "{}         ", also="header-over-limit@0",
    limits="header_bytes=10",
)
case(
    "frame_limit_before_length", INVALID, "{}", length=11, also="header-over-limit@0",
    limits="header_bytes=10", note="over the limit and past the end: the limit is looked at first",
)
case(
    "frame_past_end_within_limit", INVALID, "{}", length=10, also="header-past-end@0",
    limits="header_bytes=10",
)
case(
    "frame_n_100000000", VALID, recipe="header {} %20*99999998",
    also="portability@0 header-large-padding@10", note="the default limit is inclusive",
)
case(
    "frame_n_100000000_missing", INVALID, "{}", length=100000000, also="header-past-end@0",
    note="within the limit, so the missing bytes are the finding",
)
case("frame_n_100000001_short", INVALID, "{}", length=100000001, also="header-over-limit@0")
case("frame_n_2_32_minus_1", INVALID, "{}", length=4294967295, also="header-over-limit@0")
case("frame_n_high_byte", INVALID, "{}", length=(1 << 56) + 2, also="header-over-limit@0")
case("frame_header_all_spaces", INVALID, "  «json-syntax»", note="no object, and no byte that space could lead")
case("frame_header_all_nul", INVALID, "«json-syntax»%00%00%00%00")

# F6: UTF-8.

case = COLLECTION.group("utf8")


def in_metadata(text):
    return '{"__metadata__":{"k":"' + text + '"},' + A + "}"


for name, text in [
    ("u0080", "%C2%80"),
    ("u07ff", "%DF%BF"),
    ("u0800", "%E0%A0%80"),
    ("ud7ff", "%ED%9F%BF"),
    ("ue000", "%EE%80%80"),
    ("uffff", "%EF%BF%BF"),
    ("u10000", "%F0%90%80%80"),
    ("u10ffff", "%F4%8F%BF%BF"),
]:
    case(f"utf8_{name}", VALID, in_metadata(text), FOUR, note="first or last of its length")
for name, text in [
    ("overlong_2", "%C1%BF"),
    ("overlong_2_nul", "%C0%80"),
    ("overlong_3", "%E0%9F%BF"),
    ("overlong_4", "%F0%8F%BF%BF"),
    ("surrogate_first", "%ED%A0%80"),
    ("surrogate_last", "%ED%BF%BF"),
    ("above_10ffff", "%F4%90%80%80"),
    ("f5", "%F5%80%80%80"),
    ("fe", "%FE"),
    ("lone_continuation", "%80"),
    ("lead_then_ascii", "%C3("),
    ("3_byte_cut", "%E2%82x"),
    ("4_byte_cut", "%F0%9F%98x"),
]:
    case(f"utf8_{name}", INVALID, in_metadata("ab«header-not-utf8»" + text), FOUR)
case("utf8_second_in_pair", INVALID, in_metadata("%C3%A9«header-not-utf8»%A9"), FOUR, note="after a good sequence")
case("utf8_in_padding", INVALID, "{" + A + "} «header-not-utf8»%FF", FOUR)
case("utf8_in_whitespace", INVALID, "{«header-not-utf8»%A0" + A + "}", FOUR, note="a Latin-1 no-break space")
case(
    "utf8_cut_by_header_end", INVALID, "{" + A + "} «header-not-utf8»%E2%82", "%AC" + FOUR,
    note="the rest of the character is in the data section",
)
case(
    "utf8_before_syntax", INVALID, '{nonsense:"«header-not-utf8»%FF"}', FOUR,
    note="UTF-8 is checked before JSON",
)
case("utf8_in_data", VALID, "{" + A + "}", "%FF%FE%80%C0", note="only the header is text")

# F7: byte order marks.

case = COLLECTION.group("bom")
case("bom_utf8_then_space", INVALID, "«header-bom»%EF%BB%BF«header-leading-space» {" + A + "}", FOUR)
case("bom_utf8_alone", INVALID, "«header-bom»%EF%BB%BF«json-syntax»")
case("bom_utf8_then_fault", INVALID, "«header-bom»%EF%BB%BF{«json-syntax»,}")
case(
    "bom_utf8_reading_goes_on", INVALID,
    "«header-bom»%EF%BB%BF{" + entry("a", "U8", "[3]", "«size-mismatch»[0,4]") + "}", FOUR,
)
case("bom_utf8_half", INVALID, "«header-not-utf8»%EF%BB{" + A + "}", FOUR)
case("bom_utf8_twice", INVALID, "«header-bom»%EF%BB%BF«json-syntax»%EF%BB%BF{" + A + "}", FOUR)
case("bom_utf8_before_key", INVALID, "{«json-syntax»%EF%BB%BF" + A + "}", FOUR, note="not at the start")
case("bom_utf8_at_end", INVALID, "{" + A + "}«header-trailing-data»%EF%BB%BF", FOUR)
case("bom_utf8_in_name", VALID, "{" + entry("a%EF%BB%BF", "U8", "[4]", "[0,4]") + "}", FOUR)
case("bom_utf16be", INVALID, "«header-bom»%FE%FF%00{%00}", FOUR)
case("bom_utf16le", INVALID, "«header-bom»%FF%FE{%00}%00", FOUR)
case("bom_utf32le", INVALID, "«header-bom»%FF%FE%00%00{%00%00%00}%00%00%00", FOUR)
case("bom_utf32be", INVALID, "«header-bom»%00%00%FE%FF%00%00%00{%00%00%00}", FOUR)
case("bom_utf16be_without", INVALID, "«json-syntax»%00{%00}", note="UTF-16 without a mark is UTF-8 with NUL")

# F8 to F10: around the object.

case = COLLECTION.group("padding")
case("pad_lead_tab", DEVIATES, "«header-leading-space»%09{" + A + "}", FOUR)
case("pad_lead_cr", DEVIATES, "«header-leading-space»%0D{" + A + "}", FOUR)
case("pad_lead_many", DEVIATES, "«header-leading-space» %0A%09%0D {" + A + "}", FOUR)
case("pad_lead_formfeed", INVALID, "«json-syntax»%0C{" + A + "}", FOUR)
case("pad_lead_then_array", INVALID, "«header-leading-space» «json-syntax»[]")
case("pad_lead_nul", INVALID, "«json-syntax»%00{" + A + "}", FOUR)
case("pad_trail_cr", DEVIATES, "{" + A + "}«header-padding»%0D", FOUR)
case("pad_space_then_newline", DEVIATES, "{" + A + "}  «header-padding»%0A", FOUR)
case("pad_newline_then_space", DEVIATES, "{" + A + "}«header-padding»%0A   ", FOUR)
case("pad_newline_twice", DEVIATES, "{" + A + "}«header-padding»%0A %0A", FOUR, note="one finding")
case("pad_lead_and_trail", DEVIATES, "«header-leading-space» {" + A + "}«header-padding»%09", FOUR)
case("pad_space_then_nul", INVALID, "{" + A + "}  «header-padding»%00%00", FOUR)
case("pad_nul_then_space", INVALID, "{" + A + "}«header-padding»%00 ", FOUR)
case("pad_nul_then_newline", INVALID, "{" + A + "}«header-padding»%00%0A", FOUR)
case("pad_newline_then_nul", INVALID, "{" + A + "}%0A«header-padding»%00", FOUR, note="the NUL, not the newline, is the finding")
case("pad_nul_then_text", INVALID, "{" + A + "}«header-trailing-data»%00x", FOUR)
case("pad_newline_then_text", INVALID, "{" + A + "}%0A «header-trailing-data»x", FOUR)
case("pad_second_object", INVALID, "{" + A + "}«header-trailing-data»{}", FOUR)
case("pad_second_object_later", INVALID, "{" + A + "}   «header-trailing-data»{" + B + "}", FOUR)
case("pad_bracket", INVALID, "{}«header-trailing-data»]")
case("pad_vertical_tab", INVALID, "{" + A + "}«header-trailing-data»%0B", FOUR)
case("pad_delete", INVALID, "{" + A + "}«header-trailing-data»%7F", FOUR)
case("pad_escaped_text", INVALID, r"{}«header-trailing-data»\u0020")
case("pad_fault_and_layout", INVALID, "{" + A + "}«header-trailing-data»x", FOUR + "«data-trailing»%00", note="reading goes on")
case("pad_4095", VALID, "{}" + " " * 4095)
case("pad_4096", VALID, "{}«header-large-padding»" + " " * 4096)
case("pad_4096_newline", DEVIATES, "{}" + " " * 4095 + "«header-padding»%0A", note="not only spaces")

# F11: the length field.

case = COLLECTION.group("magic")
case(
    "magic_zip", VALID, recipe="header {} %20*67324750",
    also="length-is-magic@0 portability@0 header-large-padding@10",
    note="the length 67324752 is spelled PK 03 04: a zip archive may follow in the data section",
)
case(
    "magic_gzip", VALID, recipe="header {} %20*559901",
    also="length-is-magic@0 header-large-padding@10", note="the length 559903 is spelled 1F 8B 08",
)
case(
    "magic_gzip_fault", INVALID, recipe="header {} %20*559900 x",
    also="length-is-magic@0 header-trailing-data@559910",
    note="a length whose upper half is zero before an object is no signature",
)
case(
    "magic_not_gzip", VALID, recipe="header {} %20*559902",
    also="header-large-padding@10", note="the length 559904 is spelled 20 8B 08",
)
case(
    "magic_two_bytes", VALID, recipe="header {} %20*35613",
    also="header-large-padding@10", note="the length 35615 is spelled 1F 8B: two bytes are no proof",
)
case(
    "magic_pickle_length", VALID, "{}" + " " * 638,
    note="the length 640 is spelled 80 02, as a pickle begins",
)
case(
    "magic_pickle_length_fault", INVALID, "{«json-syntax»,}" + " " * 637,
    note="still a length, so the fault is the finding",
)
case(
    "magic_pickle_length_cut", INVALID, "{" + A + "}", length=640,
    also="not-safetensors:partial-download@0", note="still a length, of a header that is not all there",
)

# F12: the end of the data section.

case = COLLECTION.group("data_end")
case("end_exact", VALID, "{" + A + "," + B + "}", EIGHT)
case("end_one_missing", INVALID, "{" + A + "," + B + "}", "%01%02%03%04%05%06%07«data-truncated»")
case("end_one_more", INVALID, "{" + A + "," + B + "}", EIGHT + "«data-trailing»%00")
case("end_second_missing", INVALID, "{" + A + "," + B + "}", FOUR + "«data-truncated»")
case("end_all_missing", INVALID, "{" + A + "," + B + "}«data-truncated»")
case("end_no_tensors_but_data", INVALID, "{}", "«data-trailing»%00")
case("end_metadata_only_but_data", INVALID, '{"__metadata__":{}}', "«data-trailing»" + FOUR)
case("end_empty_but_data", INVALID, "{" + entry("e", "U8", "[0]", "[0,0]") + "}", "«data-trailing»%00")
case(
    "end_u64_max", INVALID, "{" + entry("a", "U8", "[18446744073709551615]", "[0,18446744073709551615]") + "}",
    "%00«data-truncated»", note="8+N+end is beyond 64 bits",
)
case(
    "end_chain_overflow", INVALID,
    "{" + entry("a", "U8", "[18446744073709551600]", "[0,18446744073709551600]") + ","
    + entry("b", "U8", "[15]", "[18446744073709551600,18446744073709551615]") + "}", "«data-truncated»",
)
case(
    "end_unproven_trailing", INVALID,
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":«entry-field-type»null}}', FOUR,
    note="the bytes may be those of the tensor whose offsets cannot be read",
)
case(
    "end_truncated_beside_unusable", INVALID,
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":«entry-field-type»null},' + B + "}", FOUR + "«data-truncated»",
)

# J1: the grammar.

case = COLLECTION.group("syntax")


def unknown_field(value):
    """An entry with an unknown field after the known ones."""
    return r'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":' + value + "}}"


def unknown_field_noted(value):
    return r'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«entry-field-unknown»"x":' + value + "}}"


for name, header in [
    ("key_alone", '{"a"«json-syntax»}'),
    ("key_without_value", '{"a":«json-syntax»}'),
    ("key_without_colon", '{"a" «json-syntax»1}'),
    ("key_number", "{«json-syntax»1:2}"),
    ("key_null", "{«json-syntax»null:1}"),
    ("key_bare", "{«json-syntax»a:1}"),
    ("key_array", '{«json-syntax»["a"]:1}'),
    ("key_equals", '{"a"«json-syntax»=1}'),
    ("key_two_colons", '{"a":«json-syntax»:1}'),
    ("comma_first", "{«json-syntax»," + A + "}"),
    ("comma_only", "{«json-syntax»,}"),
    ("comma_last", "{" + A + ",«json-syntax»}"),
    ("comma_twice", "{" + A + ",«json-syntax»," + B + "}"),
    ("comma_missing", "{" + A + "«json-syntax»" + B + "}"),
    ("comma_is_semicolon", "{" + A + "«json-syntax»;" + B + "}"),
    ("comma_is_colon", "{" + A + "«json-syntax»:" + B + "}"),
    ("comma_last_in_entry", '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«json-syntax»}}'),
    ("comma_last_in_metadata", '{"__metadata__":{"k":"v",«json-syntax»},' + A + "}"),
    ("bracket_closes_brace", '{"a":{"dtype":"U8"«json-syntax»]}'),
    ("brace_closes_bracket", unknown_field("[1«json-syntax»}")),
    ("array_comma_first", unknown_field("[«json-syntax»,1]")),
    ("array_comma_twice", unknown_field("[1,«json-syntax»,2]")),
    ("array_comma_missing", unknown_field("[1 «json-syntax»2]")),
    ("array_colon", unknown_field("[1«json-syntax»:2]")),
    ("object_in_field", unknown_field('{"k":1 «json-syntax»"l":2}')),
    ("object_comma_last", unknown_field('{"k":1,«json-syntax»}')),
    ("end_after_brace", "{ «json-syntax»"),
    ("end_after_key", '{"a"«json-syntax»'),
    ("end_after_colon", '{"a":«json-syntax»'),
    ("end_in_key", '{"ab«json-syntax»'),
    ("end_in_entry", '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]«json-syntax»'),
    ("end_in_offsets", '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4«json-syntax»'),
    ("end_after_entry", "{" + A + "«json-syntax»"),
    ("end_after_comma", "{" + A + ",«json-syntax»"),
    ("end_after_space", "{" + A + "  «json-syntax»"),
    ("comment_line", "{«json-syntax»//x%0A" + A + "}"),
    ("comment_hash", "{«json-syntax»#x%0A" + A + "}"),
    ("comment_after_object", "{" + A + "}«header-trailing-data»//}"),
    ("space_form_feed", "{«json-syntax»%0C" + A + "}"),
    ("space_nbsp", "{«json-syntax»%C2%A0" + A + "}"),
    ("space_line_separator", "{«json-syntax»%E2%80%A8" + A + "}"),
    ("space_nul", "{«json-syntax»%00" + A + "}"),
    ("backquote", "{«json-syntax»`a`:1}"),
    ("top_string", '«json-syntax»"a"'),
    ("top_true", "«json-syntax»true"),
    ("top_array", "«json-syntax»[{" + A + "}]"),
    ("top_minus", "«json-syntax»-1"),
    ("top_closing", "«json-syntax»}{"),
]:
    needs_data = FOUR if header.rstrip().endswith("}") and '"shape"' in header else ""
    case(f"js_{name}", INVALID, header, needs_data)

for name, number in [
    ("minus_alone", "-«json-syntax»"),
    ("minus_twice", "-«json-syntax»-1"),
    ("minus_space", "-«json-syntax» 1"),
    ("minus_leading_zero", "-0«json-syntax»1"),
    ("leading_zeros", "0«json-syntax»0"),
    ("plus", "«json-syntax»+1"),
    ("point_first", "«json-syntax».5"),
    ("point_last", "1.«json-syntax»"),
    ("point_twice", "1.2«json-syntax».3"),
    ("point_exponent", "1.«json-syntax»e5"),
    ("exponent_empty", "1e«json-syntax»"),
    ("exponent_sign_only", "1e+«json-syntax»"),
    ("exponent_fraction", "1e1«json-syntax».5"),
    ("exponent_twice", "1e1«json-syntax»e1"),
    ("underscore", "1«json-syntax»_000"),
    ("suffix", "1«json-syntax»f"),
    ("hex", "0«json-syntax»x10"),
    ("octal", "0«json-syntax»o7"),
    ("arabic_digit", "«json-syntax»%D9%A1"),
    ("fullwidth_digit", "«json-syntax»%EF%BC%91"),
]:
    case(f"js_number_{name}", INVALID, unknown_field(number), FOUR)
for name, number in [
    ("zero", "0"),
    ("minus_zero", "-0"),
    ("exponent_forms", "[1e5,1E5,1e+5,1e-5,1.5e5,0e0,-0.0e-0]"),
    ("exponent_huge", "1e400"),
    ("exponent_tiny", "-1e-400"),
    ("exponent_leading_zeros", "1e00005"),
    ("fraction_long", "0.12345678901234567890123456789"),
]:
    case(
        f"js_number_{name}", DEVIATES, unknown_field_noted(number), FOUR,
        note="good JSON in an unknown field; its value does not matter",
    )

for name, literal in [
    ("capital_true", "«json-syntax»True"),
    ("upper_null", "«json-syntax»NULL"),
    ("cut", "«json-syntax»tru"),
    ("cut_null", "«json-syntax»nul"),
    ("long", "true«json-syntax»x"),
    ("nulll", "null«json-syntax»l"),
    ("undefined", "«json-syntax»undefined"),
    ("none", "«json-syntax»None"),
    ("single_quoted", "«json-syntax»%27x%27"),
]:
    case(f"js_literal_{name}", INVALID, unknown_field(literal), FOUR)
for literal in ["true", "false", "null"]:
    case(f"js_literal_{literal}", DEVIATES, unknown_field_noted(literal), FOUR)

case("js_string_all_escapes", VALID, in_metadata(r"\"\\\/\b\f\n\r\t\u0041\uABCD\uabcd"), FOUR)
case("js_string_pair_lowercase", VALID, in_metadata(r"\uD83D\uDE00\ud83d\ude00"), FOUR)
case("js_string_pair_bounds", VALID, in_metadata(r"\ud800\udc00\udbff\udfff"), FOUR)
case("js_string_beside_surrogates", VALID, in_metadata(r"\ud7ff\ue000\uffff"), FOUR)
for name, text in [
    ("escape_x", r"a«json-syntax»\x41"),
    ("escape_quote", r"a«json-syntax»\%27"),
    ("escape_zero", r"a«json-syntax»\0"),
    ("escape_v", r"a«json-syntax»\v"),
    ("escape_capital_u", r"a«json-syntax»\U0041"),
    ("escape_capital_n", r"a«json-syntax»\N"),
    ("escape_space", r"a«json-syntax»\ b"),
    ("escape_newline", r"a«json-syntax»\%0Ab"),
    ("escape_non_ascii", r"a«json-syntax»\%C3%A9"),
    ("u_braces", r"a«json-syntax»\u{41}"),
    ("u_three_digits", r"a«json-syntax»\u041"),
    ("u_no_digits", r"a«json-syntax»\u"),
    ("u_sign", r"a«json-syntax»\u+041"),
    ("u_space", r"a«json-syntax»\u 041"),
    ("low_alone", r"a«json-syntax»\udc00"),
    ("low_last_alone", r"a«json-syntax»\udfff"),
    ("high_last_alone", r"a«json-syntax»\udbff"),
    ("high_then_text", r"a«json-syntax»\ud800x"),
    ("high_then_escape", r"a«json-syntax»\ud800\n"),
    ("high_then_high", r"a«json-syntax»\ud800\ud800"),
    ("high_then_other", r"a«json-syntax»\ud800\u0041"),
    ("high_then_raw", r"a«json-syntax»\ud83d%F0%9F%98%80"),
    ("pair_reversed", r"a«json-syntax»\udc00\ud800"),
    ("pair_then_low", r"\ud800\udc00«json-syntax»\udc00"),
    ("raw_1f", "a«json-syntax»%1Fb"),
    ("raw_cr", "a«json-syntax»%0Db"),
    ("raw_nul_last", "a«json-syntax»%00"),
    ("quote_inside", 'a"«json-syntax»b'),
]:
    case(f"js_string_{name}", INVALID, in_metadata(text), FOUR)
case("js_string_raw_20", VALID, in_metadata("a b"), FOUR, note="the first byte that may stand as itself")
case("js_string_raw_7f", VALID, in_metadata("a%7Fb"), FOUR)
case("js_string_c1", VALID, in_metadata("a%C2%85b"), FOUR)
case(
    "js_fault_after_entry", INVALID,
    "{" + '"a":{"dtype":«dtype-unknown»"u8","shape":[4],"data_offsets":[0,4]},' + B + ",«json-syntax»}", EIGHT,
    note="findings of the entries before the fault are kept",
)
case(
    "js_fault_hides_layout", INVALID, "{" + entry("a", "U8", "[4]", "[4,8]") + ",«json-syntax»,}", FOUR,
    note="the layout is not judged when a part of the header was not read",
)
case("js_spaces_everywhere", VALID,
    ' { "a" : { "dtype" : "U8" , "shape" : [ 4 ] , "data_offsets" : [ 0 , 4 ] } } '[1:], FOUR)
case("js_newlines_everywhere", VALID,
    '{%0A%09"a": {%0D%0A%09%09"dtype": "U8",%0A"shape": [%0A4%0A],%0A"data_offsets": [%0A0,%0A4%0A]%0A}%0A}', FOUR)

# J3: nesting.

case = COLLECTION.group("depth")
case("depth_8", DEVIATES, unknown_field_noted("[[[[[[]]]]]]"), FOUR, note="six below the entry's two levels")
case("depth_9", INVALID, unknown_field("[[[[[[«json-depth»[]]]]]]]"), FOUR)
case("depth_8_objects", DEVIATES, unknown_field_noted('{"":{"":{"":{"":{"":{}}}}}}'), FOUR)
case("depth_9_objects", INVALID, unknown_field('{"":{"":{"":{"":{"":{"":«json-depth»{}}}}}}}'), FOUR)
case("depth_8_mixed", DEVIATES, unknown_field_noted('[{"":[{"":[{}]}]}]'), FOUR)
case("depth_9_mixed", INVALID, unknown_field('[{"":[{"":[{"":«json-depth»[]}]}]}]'), FOUR)
case("depth_8_metadata", INVALID, '{"__metadata__":{"k":«metadata-type»[[[[[[]]]]]]},' + A + "}", FOUR)
case("depth_9_metadata", INVALID, '{"__metadata__":{"k":[[[[[[«json-depth»[]]]]]]]},' + A + "}", FOUR)
case("depth_8_entry", INVALID, '{"a":«entry-field-type»[[[[[[[]]]]]]]}')
case("depth_9_entry", INVALID, '{"a":[[[[[[[«json-depth»[]]]]]]]]}')
case("depth_8_shape", INVALID, '{"a":{"dtype":"U8","shape":[«entry-field-type»[[[[[]]]]]],"data_offsets":[0,4]}}', FOUR)
case("depth_9_shape", INVALID, '{"a":{"dtype":"U8","shape":[[[[[[«json-depth»[]]]]]]],"data_offsets":[0,4]}}', FOUR)
case("depth_9_skipped", INVALID, '{"a":{"dtype":"U8","dtype":[[[[[[«json-depth»[]]]]]]],"shape":[4],"data_offsets":[0,4]}}', FOUR,
    note="in a value that is only skipped")
case("depth_siblings", DEVIATES, unknown_field_noted("[" + "[]," * 40 + "[]]"), FOUR, note="beside, not within, each other")
case("depth_in_string", DEVIATES, unknown_field_noted('"' + "[" * 40 + '"'), FOUR)
case("depth_never_closed", INVALID, unknown_field("[[[[[[«json-depth»[[[[["), FOUR)
case("depth_limit_3", INVALID, unknown_field("[«json-depth»[]]"), FOUR, limits="depth=3", note="a limit that was set lower")
case("depth_limit_4", DEVIATES, unknown_field_noted("[[]]"), FOUR, limits="depth=4")

# J5: keys that come twice.

case = COLLECTION.group("dup")
EMPTY_AT_0 = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
case("dup_name_thrice", INVALID,
    '{"e":' + EMPTY_AT_0 + ',«duplicate-key»"e":' + EMPTY_AT_0 + ',«duplicate-key»"e":' + EMPTY_AT_0 + "}")
case("dup_name_not_beside", INVALID, '{"e":' + EMPTY_AT_0 + "," + A + ',«duplicate-key»"e":' + EMPTY_AT_0 + "}", FOUR)
case("dup_name_empty", INVALID, '{«name-empty»"":' + EMPTY_AT_0 + ',«duplicate-key»"":' + EMPTY_AT_0 + "}")
case("dup_name_escape_case", INVALID, r'{"\u00e9":' + EMPTY_AT_0 + r',«duplicate-key»"\u00E9":' + EMPTY_AT_0 + "}")
case("dup_name_escaped_pair", INVALID, '{"%F0%9F%98%80":' + EMPTY_AT_0 + r',«duplicate-key»"\ud83d\ude00":' + EMPTY_AT_0 + "}")
case("dup_name_escaped_solidus", INVALID, '{"a/b":' + EMPTY_AT_0 + r',«duplicate-key»"a\/b":' + EMPTY_AT_0 + "}")
case("dup_name_second_not_entry", INVALID, "{" + A + ',«duplicate-key»"a":«entry-field-type»null}', FOUR)
case("dup_name_space", VALID, '{"e":' + EMPTY_AT_0 + ',"e ":' + EMPTY_AT_0 + "}", note="two names")
case("dup_name_case", VALID, '{"e":' + EMPTY_AT_0 + ',"E":' + EMPTY_AT_0 + "}", note="two names")
case("dup_name_nul", VALID, r'{"e":' + EMPTY_AT_0 + r',«name-control»"e\u0000":' + EMPTY_AT_0 + "}", note="two names")
case("dup_metadata", INVALID, '{"__metadata__":{},«duplicate-key»"__metadata__":{},' + A + "}", FOUR)
case("dup_metadata_escaped", INVALID, r'{"__metadata__":{},' + A + r',«duplicate-key»"\u005f_metadata__":{}}', FOUR)
case("dup_metadata_keys_apart", INVALID, '{"__metadata__":{"k":"v"},«duplicate-key»"__metadata__":{"k":"v"}}', note="each map has its own keys")
case("dup_metadata_key_escaped", INVALID, r'{"__metadata__":{"k":"1",«duplicate-key»"\u006b":"1"}}')
case("dup_metadata_key_thrice", INVALID, '{"__metadata__":{"k":"1",«duplicate-key»"k":"1",«duplicate-key»"k":"2"}}')
case("dup_metadata_key_and_type", INVALID, '{"__metadata__":{"k":"1",«duplicate-key»"k":«metadata-type»1}}')
case("dup_metadata_key_case", VALID, '{"__metadata__":{"k":"1","K":"1"}}')
case("dup_metadata_key_is_name", VALID, '{"__metadata__":{"a":"1"},' + A + "}", FOUR)
case("dup_field_offsets", INVALID, '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«duplicate-key»"data_offsets":[0,4]}}', FOUR)
case("dup_field_escaped", INVALID, r'{"a":{"dtype":"U8",«duplicate-key»"\u0064type":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("dup_field_second_ignored", INVALID, '{"a":{"dtype":"U8","shape":[4],«duplicate-key»"shape":"x","data_offsets":[0,4]}}', FOUR,
    note="the second value is only skipped")
case("dup_field_first_counts", INVALID, '{"a":{"dtype":«dtype-unknown»"x",«duplicate-key»"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("dup_field_two_entries", VALID, "{" + A + "," + B + "}", EIGHT, note="each entry has its own fields")
case("dup_unknown_thrice", INVALID,
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«entry-field-unknown»"x":1,'
    '«entry-field-unknown»«duplicate-key»"x":1,«entry-field-unknown»«duplicate-key»"x":1}}', FOUR)
case("dup_unknown_escaped", INVALID,
    r'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],«entry-field-unknown»"x":1,'
    r'«entry-field-unknown»«duplicate-key»"\u0078":1}}', FOUR)

# J9: entries and their fields.

case = COLLECTION.group("entry")
for name, value in [("number", "5"), ("null", "null"), ("true", "true"), ("string", '"U8"'), ("array", "[]")]:
    case(f"en_is_{name}", INVALID, '{"a":«entry-field-type»' + value + "}")
for name, value in [("number", "8"), ("true", "true"), ("array", '["U8"]'), ("object", "{}")]:
    case(f"en_dtype_{name}", INVALID, '{"a":{"dtype":«entry-field-type»' + value + ',"shape":[4],"data_offsets":[0,4]}}', FOUR)
for name, value in [("number", "4"), ("null", "null"), ("string", '"[4]"'), ("object", '{"0":4}')]:
    case(f"en_shape_{name}", INVALID, '{"a":{"dtype":"U8","shape":«entry-field-type»' + value + ',"data_offsets":[0,4]}}', FOUR)
for name, value in [("number", "4"), ("true", "true"), ("string", '"0,4"')]:
    case(f"en_offsets_{name}", INVALID, '{"a":{"dtype":"U8","shape":[4],"data_offsets":«entry-field-type»' + value + "}}", FOUR)
for name, value in [
    ("none", "«entry-field-type»[]"),
    ("three", "«entry-field-type»[0,4,8]"),
    ("null_element", "[0,«entry-field-type»null]"),
    ("nested", "[«entry-field-type»[0,4],«entry-field-type»{}]"),
    ("one_bad", "«entry-field-type»[«entry-field-type»null]"),
]:
    case(f"en_offsets_{name}", INVALID, '{"a":{"dtype":"U8","shape":[4],"data_offsets":' + value + "}}", FOUR)
case("en_shape_null_element", INVALID, "{" + entry("a", "U8", "[4,«entry-field-type»null]", "[0,4]") + "}", FOUR)
case("en_shape_object_element", INVALID, "{" + entry("a", "U8", "[«entry-field-type»{},4]", "[0,4]") + "}", FOUR)
case("en_shape_two_bad", INVALID, "{" + entry("a", "U8", '[«entry-field-type»"4",«number-form»-4]', "[0,4]") + "}", FOUR)
case("en_missing_two", INVALID, '{"a":«entry-field-missing»«entry-field-missing»{"dtype":"U8"}}')
case("en_missing_reversed", INVALID, '{"a":«entry-field-missing»{"shape":[4],"data_offsets":«offsets-reversed»[4,0]}}',
    note="reversed offsets are reported in any entry")
case("en_bad_dtype_reversed", INVALID, '{"a":{"dtype":«dtype-unknown»"X","shape":[4],"data_offsets":«offsets-reversed»[4,0]}}')
case("en_bad_shape_reversed", INVALID, '{"a":{"dtype":"U8","shape":[«number-form»4.0],"data_offsets":«offsets-reversed»[4,0]}}')
case("en_all_bad", INVALID, '{"a":{"dtype":«entry-field-type»1,"shape":«entry-field-type»1,"data_offsets":«entry-field-type»1}}')
for name, field_text in [
    ("upper", "DTYPE"), ("camel", "dataOffsets"), ("space", "dtype "), ("empty", ""), ("strides", "strides"),
]:
    case(f"en_extra_{name}", DEVIATES,
        '{"a":{"dtype":"U8",«entry-field-unknown»"' + field_text + '":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("en_extra_first", DEVIATES, '{"a":{«entry-field-unknown»"x":[{}],"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("en_extra_two", DEVIATES,
    '{"a":{«entry-field-unknown»"x":1,«entry-field-unknown»"y":1,"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("en_wrong_case", INVALID,
    '{"a":«entry-field-missing»{«entry-field-unknown»"Dtype":"U8","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("en_two_faulty", INVALID,
    "{" + entry("a", "U8", "[3]", "«size-mismatch»[0,4]") + "," + entry("b", "U8", "[5]", "«size-mismatch»[4,8]") + "}", EIGHT,
    note="checking goes on in the next entry")

# T1: types.

case = COLLECTION.group("dtype")
for dtype, byte_count, notes in [
    ("BF16", 16, ""), ("I64", 64, ""), ("F8_E4M3", 8, ""), ("F6_E3M2", 6, "«portability»"),
]:
    header = "{" + notes + entry("a", dtype, "[8]", f"[0,{byte_count}]") + "}"
    case(f"dt_{dtype}", VALID, padded(header), zeros(byte_count), note="aligned")
for name, dtype in [
    ("empty", ""), ("space", "U8 "), ("bool", "bool"), ("float32", "float32"), ("C128", "C128"), ("F8", "F8"),
    ("F8_E4M3FN", "F8_E4M3FN"), ("F6", "F6"), ("U3", "U3"), ("Bool", "Bool"), ("nul", r"U8\u0000"), ("BF32", "BF32"),
    ("F32_LE", "<f4"), ("cyrillic", "%D0%A38"),
]:
    case(f"dt_not_{name}", INVALID, "{" + '"a":{"dtype":«dtype-unknown»"' + dtype + '","shape":[4],"data_offsets":[0,4]}}', FOUR)
case("dt_escaped", VALID, "{" + entry("a", r"\u0055\u0038", "[4]", "[0,4]") + "}", FOUR, note="compared after unescaping")
case("dt_unknown_in_layout", INVALID,
    '{"a":{"dtype":«dtype-unknown»"X","shape":[4],"data_offsets":[1,5]}}', "«data-gap»%00" + FOUR,
    note="offsets are laid out whatever the type")

# T2: numbers.

case = COLLECTION.group("number")
for name, number in [
    ("exponent_upper", "4E0"), ("exponent_minus", "40e-1"), ("minus", "-4"), ("fraction_zero", "4.0"), ("u64", "18446744073709551616"),
    ("huge", "9" * 60), ("huge_exponent", "1e400"),
]:
    case(f"num_shape_{name}", INVALID, "{" + entry("a", "U8", f"[«number-form»{number}]", "[0,4]") + "}", FOUR)
    case(f"num_offset_{name}", INVALID, "{" + entry("a", "U8", "[4]", f"[0,«number-form»{number}]") + "}", FOUR)
case("num_zeros", INVALID, "{" + entry("a", "U8", "[0«json-syntax»0]", "[0,0]") + "}")
case("num_largest_shape", INVALID, "{" + entry("a", "U8", "[18446744073709551615]", "«size-mismatch»[0,4]") + "}", FOUR)
case("num_largest_offset", INVALID, "{" + entry("a", "U8", "[4]", "«size-mismatch»[0,18446744073709551615]") + "}", FOUR + "«data-truncated»")
case("num_each_bad", INVALID, "{" + entry("a", "U8", "[«number-form»1.0,«number-form»2.0,2]", "[«number-form»0.0,4]") + "}", FOUR)

# T3 and T13, notes on a tensor.

case = COLLECTION.group("note")
case("rank_8", VALID, "{" + entry("a", "U8", "[1,1,1,1,1,1,1,4]", "[0,4]") + "}", FOUR)
case("rank_9", VALID, "{«rank-high»" + entry("a", "U8", "[1,1,1,1,1,1,1,1,4]", "[0,4]") + "}", FOUR)
case("rank_9_second", VALID,
    "{" + A + ",«rank-high»" + entry("b", "U8", "[1,1,1,1,1,1,1,1,2]", "[4,6]") + ","
    + entry("c", "U8", "[1,1,1,1,1,1,1,1,2]", "[6,8]") + "}", EIGHT, note="one finding, at the first")
U8_1 = entry("a", "U8", "[1]", "[0,1]")

case("align_2_at_1", VALID, padded("{" + U8_1 + "," + entry("b", "I16", "[1]", "[1,3]") + "}"), "%00«misaligned»%00%00")
case("align_1_at_1", VALID, padded("{" + U8_1 + "," + entry("b", "F8_E4M3", "[1]", "[1,2]") + "}"), "%00%00")
case("align_4_at_2", VALID, padded("{" + entry("a", "U16", "[1]", "[0,2]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}"), "%00%00«misaligned»%00%00%00%00")
case("align_4_at_4", VALID, padded("{" + A + "," + entry("b", "F32", "[1]", "[4,8]") + "}"), EIGHT)
case("align_8_at_4", VALID, padded("{" + A + "," + entry("b", "F64", "[1]", "[4,12]") + "}"), FOUR + "«misaligned»" + EIGHT)
case("align_complex_at_4", VALID, padded("{" + A + ",«portability»" + entry("b", "C64", "[1]", "[4,12]") + "}"), FOUR + "«misaligned»" + EIGHT,
    note="a C64 element is 8 bytes")
case("align_sub_byte_at_1", VALID, padded("{" + U8_1 + ",«portability»" + entry("b", "F4", "[2]", "[1,2]") + "}"), "%00%00",
    note="types of less than a byte have no alignment")
case("align_empty_at_1", VALID, padded("{" + U8_1 + "," + entry("b", "F32", "[0]", "[1,1]") + "}"), "%00", note="an empty tensor has no bytes")
case("align_first_in_file_order", VALID,
    padded("{" + entry("b", "F32", "[1]", "[5,9]") + "," + U8_1 + "," + entry("c", "F32", "[1]", "[1,5]") + "}"),
    zeros(5) + "«misaligned»" + zeros(4), note="one finding, at the tensor that the header has first")
case("align_header_only", VALID, "{" + entry("a", "F32", "[1]", "[0,4]") + "} ", "«misaligned»" + FOUR, note="the data section itself begins off")

# T4 and T5: sizes that do not fit.

case = COLLECTION.group("overflow")
M = "18446744073709551615"
for name, verdicts, dtype, shape, offsets in [
    ("count_fits", INVALID, "U8", f"[{M},1]", "«size-mismatch»[0,0]"),
    ("count_fits_product", INVALID, "U8", "[3,6148914691236517205]", "«size-mismatch»[0,0]"),
    ("count_over", INVALID, "U8", "«shape-overflow»[3,6148914691236517206]", "[0,0]"),
    ("count_over_by_two", INVALID, "U8", "«shape-overflow»[9223372036854775808,2]", "[0,0]"),
    ("count_over_thrice", INVALID, "U8", "«shape-overflow»[4294967296,4294967296,1]", "[0,0]"),
    ("count_over_wraps_to_4", INVALID, "U8", "«shape-overflow»[6148914691236517207,12]", "[0,4]"),
    ("zero_alone", VALID, "U8", "[0,0,0]", "[0,0]"),
    ("zero_largest", VALID, "U8", f"[0,{M}]", "[0,0]"),
    ("zero_fits", VALID, "U8", "[3,0,6148914691236517205]", "[0,0]"),
    ("zero_first", DEVIATES, "U8", "«shape-overflow-beside-zero»[0,3,6148914691236517206]", "[0,0]"),
    ("zero_middle", DEVIATES, "U8", "«shape-overflow-beside-zero»[3,0,6148914691236517206]", "[0,0]"),
    ("zero_last", DEVIATES, "U8", "«shape-overflow-beside-zero»[3,6148914691236517206,0]", "[0,0]"),
    ("zero_then_mismatch", INVALID, "U8", "«shape-overflow-beside-zero»[3,6148914691236517206,0]", "«size-mismatch»[0,4]"),
    ("bytes_16_fits", INVALID, "U16", "[9223372036854775807]", "«size-mismatch»[0,0]"),
    ("bytes_16_over", INVALID, "U16", "«size-overflow»[9223372036854775808]", "[0,0]"),
    ("bytes_32_fits", INVALID, "F32", "[4611686018427387903]", "«size-mismatch»[0,0]"),
    ("bytes_32_over", INVALID, "F32", "«size-overflow»[4611686018427387904]", "[0,0]"),
    ("bytes_64_fits", INVALID, "I64", "[2305843009213693951]", "«size-mismatch»[0,0]"),
    ("bytes_64_over", INVALID, "I64", "«size-overflow»[2305843009213693952]", "[0,0]"),
    ("bytes_wrap_to_4", INVALID, "F32", "«size-overflow»[4611686018427387905]", "[0,4]"),
    ("bits_only_over", INVALID, "U8", "[2305843009213693952]", "«size-mismatch»[0,0]"),
]:
    data = FOUR if offsets.endswith("[0,4]") else ""
    case(f"ovf_{name}", verdicts, padded("{" + entry("a", dtype, shape, offsets) + "}"), data)
case("ovf_sub_byte_fits", INVALID, "{«portability»" + entry("a", "F4", "[18446744073709551614]", "«size-mismatch»[0,0]") + "}")
case("ovf_sub_byte_not_bytes", INVALID, "{«portability»" + entry("a", "F4", f"«size-not-bytes»[{M}]", "[0,0]") + "}",
    note="its bytes fit, so whole bytes are the question")

# T6: types of less than a byte.

case = COLLECTION.group("sub_byte")
P = "«portability»"
R = "«rows-not-bytes»"
for name, verdicts, notes, dtype, shape, byte_count in [
    ("f4_1", INVALID, P, "F4", "«size-not-bytes»[1]", 1),
    ("f4_2", VALID, P, "F4", "[2]", 1),
    ("f4_rows", VALID, P + R, "F4", "[4,1]", 2),
    ("f4_rows_even", VALID, P, "F4", "[1,4]", 2),
    ("f4_columns", VALID, P, "F4", "[3,2]", 3),
    ("f4_odd_rows", INVALID, P, "F4", "«size-not-bytes»[3,3]", 5),
    ("f4_zero_rows", VALID, P, "F4", "[0,3]", 0),
    ("f4_zero_columns", VALID, P, "F4", "[3,0]", 0),
    ("f6_e2m3_4", VALID, P, "F6_E2M3", "[4]", 3),
    ("f6_e2m3_2", INVALID, P, "F6_E2M3", "«size-not-bytes»[2]", 2),
    ("f6_e2m3_1", INVALID, P, "F6_E2M3", "«size-not-bytes»[1]", 1),
    ("f6_e3m2_2x2", VALID, P + R, "F6_E3M2", "[2,2]", 3),
    ("f6_e3m2_4x1", VALID, P + R, "F6_E3M2", "[4,1]", 3),
    ("f6_e3m2_1x4", VALID, P, "F6_E3M2", "[1,4]", 3),
    ("f6_e3m2_6", INVALID, P, "F6_E3M2", "«size-not-bytes»[6]", 4),
    ("f6_e3m2_8", VALID, P, "F6_E3M2", "[8]", 6),
]:
    case(f"sub_{name}", verdicts, "{" + notes + entry("a", dtype, shape, f"[0,{byte_count}]") + "}", zeros(byte_count))
case("sub_rows_one_finding", VALID,
    "{" + P + entry("a", "F4", "[2]", "[0,1]") + "," + R + entry("b", "F4", "[2,3]", "[1,4]") + "," + entry("c", "F4", "[2,1]", "[4,5]") + "}",
    zeros(5), note="each note is one finding, at its first tensor")

# T7: size and offsets.

case = COLLECTION.group("size")
case("size_one_short", INVALID, "{" + entry("a", "U8", "[4]", "«size-mismatch»[0,3]") + "}", zeros(3))
case("size_one_long", INVALID, "{" + entry("a", "U8", "[4]", "«size-mismatch»[0,5]") + "}", zeros(5))
case("size_zero_span", INVALID, "{" + entry("a", "U8", "[4]", "«size-mismatch»[0,0]") + "}")
case("size_scalar_none", INVALID, "{" + entry("a", "U8", "[]", "«size-mismatch»[0,0]") + "}", note="a scalar has one element")
case("size_scalar", VALID, "{" + entry("a", "U8", "[]", "[0,1]") + "}", zeros(1))
case("size_other_type", INVALID, padded("{" + entry("a", "F32", "[2]", "«size-mismatch»[0,4]") + "}"), FOUR,
    note="as many bytes as F16 would take")
case("size_reversed_first", INVALID, "{" + entry("a", "U8", "[4]", "«offsets-reversed»[4,0]") + "}", FOUR, note="not also a mismatch")
for name, notes, dtype, shape in [
    ("over", "", "I64", "«size-overflow»[2305843009213693952]"),
    ("shape_over", "", "U8", "«shape-overflow»[4294967296,4294967296]"),
    ("f4_odd", P, "F4", "«size-not-bytes»[1]"),
    ("f6_odd", P, "F6_E3M2", "«size-not-bytes»[3]"),
]:
    for by, begin in (("one", 1), ("most", 18446744073709551615)):
        case(f"size_{name}_reversed_by_{by}", INVALID, "{" + notes + entry("a", dtype, shape, f"«offsets-reversed»[{begin},0]") + "}",
            note="no size and no span: two failures are no fit")
case("size_reversed_by_one", INVALID, "{" + entry("a", "U8", "[0]", "«offsets-reversed»[1,0]") + "}")

# T9: the layout.

case = COLLECTION.group("layout")


def u8(name, begin, end):
    return entry(name, "U8", f"[{end - begin}]", f"[{begin},{end}]")


case("lay_gap_one_byte", INVALID, "{" + u8("a", 0, 2) + "," + u8("b", 3, 4) + "}", "%01%02«data-gap»%03%04")
case("lay_gap_front_and_middle", INVALID, "{" + u8("a", 1, 2) + "," + u8("b", 3, 4) + "}", "«data-gap»%01%02«data-gap»%03%04")
case("lay_gap_header_order", INVALID, "{" + u8("b", 3, 4) + "," + u8("a", 0, 2) + "}", "%01%02«data-gap»%03%04")
case("lay_gap_then_truncated", INVALID, "{" + u8("a", 0, 1) + "," + u8("b", 2, 8) + "}", "%01«data-gap»%02%03%04«data-truncated»")
case("lay_gap_beyond_end", INVALID, "{" + u8("a", 0, 1) + "," + u8("b", 9, 10) + "}", "%01«data-gap»%02%03%04«data-truncated»")
case("lay_gap_then_trailing", INVALID, "{" + u8("a", 1, 2) + "}", "«data-gap»%01%02«data-trailing»%03")
case("lay_overlap_one_byte", INVALID, "{" + u8("a", 0, 3) + "," + u8("b", 2, 4) + "}", "%01%02«data-overlap»%03%04")
case("lay_overlap_same_begin", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 0, 2) + "}", "«data-overlap»" + FOUR)
case("lay_overlap_inside", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 1, 3) + "}", "%01«data-overlap»%02%03%04")
case("lay_overlap_same_end", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 2, 4) + "}", "%01%02«data-overlap»%03%04")
case("lay_overlap_two", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 1, 2) + "," + u8("c", 2, 3) + "}", "%01«data-overlap»%02«data-overlap»%03%04")
case("lay_overlap_far", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 1, 2) + "," + u8("c", 4, 5) + "}", "%01«data-overlap»%02%03%04%05",
    note="the longest end so far is what the next must begin at")
case("lay_overlap_other_types", INVALID, padded("{" + u8("a", 0, 4) + "," + entry("b", "F32", "[1]", "[2,6]") + "}"),
    "%01%02«data-overlap»«misaligned»%03%04%05%06")
case("lay_alias_three", INVALID, "{" + u8("a", 0, 4) + "," + u8("b", 0, 4) + "," + u8("c", 0, 4) + "}", "«data-alias»«data-alias»" + FOUR)
case("lay_alias_second", INVALID, "{" + u8("a", 0, 2) + "," + u8("b", 2, 4) + "," + u8("c", 2, 4) + "}", "%01%02«data-alias»%03%04")
case("lay_alias_other_shape", INVALID, "{" + u8("a", 0, 4) + "," + entry("b", "U8", "[2,2]", "[0,4]") + "}", "«data-alias»" + FOUR)
case("lay_alias_then_overlap", INVALID, "{" + u8("a", 0, 2) + "," + u8("b", 0, 2) + "," + u8("c", 1, 4) + "}", "«data-alias»%01«data-overlap»%02%03%04")
case("lay_alias_in_gap", INVALID, "{" + u8("a", 1, 4) + "," + u8("b", 1, 4) + "}", "«data-gap»%01«data-alias»%02%03%04")
case("lay_reversed_beside_gap", INVALID, "{" + entry("a", "U8", "[1]", "«offsets-reversed»[1,0]") + "," + u8("b", 2, 4) + "}", FOUR,
    note="with an entry that cannot be placed a gap cannot be proven")
case("lay_unusable_beside_overlap", INVALID, '{"a":«entry-field-missing»{"dtype":"U8","shape":[1]},' + u8("b", 0, 3) + "," + u8("c", 2, 4) + "}",
    "%01%02«data-overlap»%03%04", note="an overlap can be")
case("lay_mismatch_is_laid_out", INVALID, "{" + entry("a", "U8", "[9]", "«size-mismatch»[0,2]") + "," + u8("b", 2, 4) + "}", FOUR,
    note="the offsets are what is laid out")

# T11: empty tensors.

case = COLLECTION.group("empty")
case("emp_only", VALID, "{" + entry("e", "U8", "[0]", "[0,0]") + "}")
case("emp_only_off", INVALID, "{" + entry("e", "U8", "[0]", "[1,1]") + "}", also="empty-off-boundary@62")
case("emp_only_off_in_data", INVALID, "{" + entry("e", "U8", "[0]", "[1,1]") + "}", "«data-trailing»%01«empty-off-boundary»%02")
case("emp_several_at_one", VALID,
    "{" + u8("a", 0, 2) + "," + u8("e", 2, 2) + "," + u8("f", 2, 2) + "," + u8("b", 2, 4) + "," + u8("g", 4, 4) + "," + u8("h", 0, 0) + "}", FOUR,
    note="empty tensors with one place are no alias")
case("emp_in_gap_at_next", INVALID, "{" + u8("a", 0, 1) + "," + u8("e", 2, 2) + "," + u8("b", 2, 4) + "}", "%01«data-gap»%02%03%04")
case("emp_in_gap_middle", INVALID, "{" + u8("a", 0, 1) + "," + u8("e", 2, 2) + "," + u8("b", 3, 4) + "}", "%01«data-gap»%02«empty-off-boundary»%03%04")
case("emp_in_gap_at_start", INVALID, "{" + u8("a", 0, 1) + "," + u8("e", 1, 1) + "," + u8("b", 2, 4) + "}", "%01«data-gap»%02%03%04")
case("emp_in_overlap_at_next", INVALID, "{" + u8("a", 0, 3) + "," + u8("e", 2, 2) + "," + u8("b", 2, 4) + "}", "%01%02«data-overlap»%03%04",
    note="it lies where a tensor begins")
case("emp_two_inside", INVALID, "{" + u8("a", 0, 4) + "," + u8("e", 1, 1) + "," + u8("f", 3, 3) + "}", "%01«empty-off-boundary»%02%03«empty-off-boundary»%04")
case("emp_unproven", INVALID, '{"x":«entry-field-type»1,' + u8("a", 0, 4) + "," + u8("e", 2, 2) + "}", FOUR,
    note="the entry that cannot be placed may end there")
case("emp_past_file", INVALID, "{" + u8("a", 0, 4) + "," + u8("e", 5, 5) + "}", FOUR, also="empty-off-boundary@118")
case("emp_truncated", INVALID, "{" + u8("a", 0, 4) + "," + u8("e", 4, 4) + "}", "%01%02«data-truncated»", note="an empty tensor needs no bytes")

# M1: metadata.

case = COLLECTION.group("meta")
for name, value in [("array", "[]"), ("true", "true"), ("array_of_strings", '["a","b"]'), ("array_of_pairs", '[["a","b"]]')]:
    case(f"mt_is_{name}", INVALID, '{"__metadata__":«metadata-type»' + value + "," + A + "}", FOUR)
for name, value in [("true", "true"), ("object", "{}"), ("nested_object", '{"x":"y"}'), ("number_exponent", "1e5")]:
    case(f"mt_value_{name}", INVALID, '{"__metadata__":{"k":«metadata-type»' + value + "}," + A + "}", FOUR)
case("mt_values_several", INVALID, '{"__metadata__":{"j":«metadata-type»1,"k":"v","l":«metadata-type»null},' + A + "}", FOUR, note="checking goes on")
case("mt_last", VALID, "{" + A + ',"__metadata__":{"k":"v"}}', FOUR)
case("mt_between", VALID, "{" + A + ',"__metadata__":{"k":"v"},' + B + "}", EIGHT)
case("mt_escaped", VALID, r'{"__meta\u0064ata__":{"k":"v"},' + A + "}", FOUR)
case("mt_null_only", VALID, '{"__metadata__":«metadata-null»null}')
case("mt_null_padded", VALID, '{"__metadata__": «metadata-null»null }')
case("mt_null_twice", INVALID, '{"__metadata__":«metadata-null»null,«duplicate-key»"__metadata__":«metadata-null»null}')
case("mt_name_shorter", INVALID, '{"__metadata_":«entry-field-missing»«entry-field-missing»«entry-field-missing»{}}', note="any other key is a tensor")
case("mt_name_space", INVALID, '{"__metadata__ ":«entry-field-missing»«entry-field-missing»«entry-field-missing»{}}')
case("mt_tensor_entry", INVALID,
    '{"__metadata__":{"dtype":"U8","shape":«metadata-type»[4],"data_offsets":«metadata-type»[0,4]},' + A + "}", FOUR)
case("mt_json_in_string", VALID, r'{"__metadata__":{"config":"{\"a\":[1,2,{}]}"},' + A + "}", FOUR)
case("mt_bidi_value", VALID, in_metadata("%E2%80%AE"), FOUR, note="the notes on names are for tensor names")

# N1: names.

case = COLLECTION.group("name")


def named(name, note=""):
    return "{" + note + entry(name, "U8", "[4]", "[0,4]") + "}"


case("nm_space", VALID, named(" "), FOUR)
for name, text in [
    ("tab", r"a\tb"), ("u001f", r"\u001f"), ("u0080", "%C2%80"), ("u009f", "%C2%9F"), ("escape_sequence", r"\u001b[31m"),
]:
    case(f"nm_control_{name}", VALID, named(text, "«name-control»"), FOUR)
for name, text in [("u0020", r"\u0020"), ("u007e", "~"), ("u00a0", "%C2%A0"), ("u00ad", "%C2%AD"), ("zero_width", "a%E2%80%8Bb"), ("line_separator", "%E2%80%A8")]:
    case(f"nm_no_control_{name}", VALID, named(text), FOUR, note="not of the category Cc")
for name, text in [
    ("dots", ".."), ("parent", "../a"), ("inner", "a/../b"), ("last", "a/.."), ("root", "/"), ("root_escaped", r"\/a"),
    ("backslash", r"\\a"), ("backslash_parent", r"..\\a"),
]:
    case(f"nm_path_{name}", VALID, named(text, "«name-path»"), FOUR)
for name, text in [("slash", "a/b"), ("dot", "a.b"), ("dot_first", ".a"), ("slash_last", "a/"), ("two_parts", "a.b.c/d")]:
    case(f"nm_no_path_{name}", VALID, named(text), FOUR)
case("nm_256_bytes", VALID, named("n" * 256), FOUR)
case("nm_257_bytes", VALID, named("n" * 257, "«name-long»"), FOUR)
case("nm_256_bytes_128_letters", VALID, named("%C3%A9" * 128), FOUR)
case("nm_258_bytes_129_letters", VALID, named("%C3%A9" * 129, "«name-long»"), FOUR, note="bytes, not characters")
case("nm_256_bytes_escaped", VALID, named(r"\u006e" * 256), FOUR, note="bytes of the name, not of its spelling")
for name, text in [
    ("alm", "%D8%9C"), ("lrm", "%E2%80%8E"), ("rlm", "%E2%80%8F"), ("lre", "%E2%80%AA"), ("rlo_escaped", r"\u202e"),
    ("lri", "%E2%81%A6"), ("pdi", "%E2%81%A9"),
]:
    case(f"nm_bidi_{name}", VALID, named("a" + text + "b", "«name-bidi»"), FOUR)
for name, text in [("joiner", "%E2%80%8D"), ("hebrew", "%D7%90"), ("word_joiner", "%E2%81%A0")]:
    case(f"nm_no_bidi_{name}", VALID, named("a" + text + "b"), FOUR, note="no bidirectional control")


def two_names(first, second, note=""):
    return '{"' + first + '":' + EMPTY_AT_0 + "," + note + '"' + second + '":' + EMPTY_AT_0 + "}"


C = "«name-confusable»"
case("nm_confusable_angstrom", VALID, two_names("%E2%84%AB", "%C3%85", C))
case("nm_confusable_reverse", VALID, two_names("e%CC%81", "%C3%A9", C), note="placed at the second in file order")
case("nm_confusable_hangul", VALID, two_names("%EA%B0%80", "%E1%84%80%E1%85%A1", C))
case("nm_confusable_mark_order", VALID, two_names("a%CC%81%CC%A3", "a%CC%A3%CC%81", C))
case("nm_confusable_escaped", VALID, two_names(r"\u00e9", r"e\u0301", C))
case("nm_confusable_third", VALID,
    '{"%C3%A9":' + EMPTY_AT_0 + ',"x":' + EMPTY_AT_0 + "," + C + '"e%CC%81":' + EMPTY_AT_0 + "}")
case("nm_not_confusable_ligature", VALID, two_names("%EF%AC%81", "fi"), note="equal only under compatibility forms")
case("nm_not_confusable_cyrillic", VALID, two_names("%D0%B0", "a"), note="look alike, but not NFC-equal")
case("nm_two_notes", VALID, named(r"../\u202e", "«name-path»«name-bidi»"), FOUR)
case("nm_same_note_twice", VALID, '{"x":' + EMPTY_AT_0 + ',«name-path»"/a":' + EMPTY_AT_0 + ',"/b":' + EMPTY_AT_0 + "}", note="one finding, at the first")
case("nm_of_bad_entry", INVALID, '{«name-path»"../a":«entry-field-type»1}', note="names are noted whatever the entry is")

# L1: limits, given in the column `limits`.

case = COLLECTION.group("limit")
case("limit_tensors_met", VALID, "{" + A + "," + B + "}", EIGHT, limits="tensors=2")
case("limit_tensors_passed", INVALID, "{" + A + ",«limit-tensors»" + B + "}", EIGHT, limits="tensors=1")
case("limit_tensors_metadata", VALID, '{"__metadata__":{},' + A + "}", FOUR, limits="tensors=1", note="metadata is no tensor")
case("limit_tensors_stops", INVALID, "{" + A + ',«limit-tensors»"b":{,,,}}', FOUR, limits="tensors=1", note="nothing after it is read")
case("limit_name_met", VALID, named("abc"), FOUR, limits="name_bytes=3")
case("limit_name_passed", INVALID, "{«limit-name»" + entry("abcd", "U8", "[4]", "[0,4]") + "}", FOUR, limits="name_bytes=3")
case("limit_name_bytes", INVALID, "{«limit-name»" + entry("%C3%A9%C3%A9", "U8", "[4]", "[0,4]") + "}", FOUR, limits="name_bytes=3", note="two letters, four bytes")

# P1: portability.

case = COLLECTION.group("portability")
case("port_25000000", VALID, recipe="header {} %20*24999998", also="header-large-padding@10")
case("port_25000001", VALID, recipe="header {} %20*24999999", also="header-large-padding@10 portability@0")
case("port_second_tensor", VALID, "{" + A + ",«portability»" + entry("b", "F8_E8M0", "[2]", "[4,6]") + "," + entry("c", "F4", "[4]", "[6,8]") + "}", EIGHT,
    note="one finding, at the first")

# Section 7: files of another kind.

case = COLLECTION.group("wrongfile")


def other_kind(name, kind, text, note=""):
    case(name, INVALID, whole=f"«not-safetensors:{kind}»" + text, note=note)


other_kind("wf_git_lfs", "git-lfs-pointer",
    "version https://git-lfs.github.com/spec/v1%0Aoid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393%0Asize 4976698672%0A")
other_kind("wf_xet", "xet-pointer", "# xet version 0%0Afilesize = 1024%0Ahash = %278bb1a8b5a1%27%0A")
other_kind("wf_html_lower", "html", "<html><body>404</body></html>")
other_kind("wf_html_doctype_lower", "html", "<!doctype html><title>Sign in</title>")
other_kind("wf_html_newlines", "html", "%0A%0A  <!DOCTYPE html>%0A<html></html>")
other_kind("wf_json_error_spaced", "json-error", '{%0A  "error": "Access to model x/y is restricted"%0A}')
other_kind("wf_index_pretty", "shard-index",
    '{%0A  "metadata": {%0A    "total_size": 4%0A  },%0A  "weight_map": {%0A    "a": "model-00001-of-00001.safetensors"%0A  }%0A}%0A')
other_kind("wf_json_metadata_first", "header-without-length", '{"__metadata__":{"format":"pt"},' + A + "}" + FOUR)
other_kind("wf_zip", "zip", "PK%03%04%14%00%00%00%08%00" + zeros(16) + "%05%00%00%00a.npy")
other_kind("wf_zip_zero_flags", "zip", "PK%03%04" + zeros(22) + "%05%00%00%00a.npy", note="as a length it is under the limit")
other_kind("wf_torch_zip_nested", "torch-zip", "PK%03%04%14%00%00%00%00%00" + zeros(16) + "%0E%00%00%00model/data.pkl%80%02}q%00.")
for protocol in (2, 3, 4, 5):
    other_kind(f"wf_pickle_{protocol}", "pickle", f"%80%0{protocol}%95%0C%00%00%00%00%00%00%00%8C%08archived%94.")
other_kind("wf_gguf_2", "gguf", "GGUF%02%00%00%00" + zeros(16))
other_kind("wf_ggml", "ggml", "lmgg%01%00%00%00" + zeros(16), note="the magic number, written little endian")
other_kind("wf_ggjt", "ggml", "tjgg%03%00%00%00" + zeros(16))
other_kind("wf_npy_2", "npy", "%93NUMPY%02%00v%00%00%00{}")
other_kind("wf_onnx_pytorch", "onnx", "%08%07%12%07pytorch%1A%052.1.0" + ":%04%12%02%08%01")
other_kind("wf_onnx_other", "onnx", "%08%0A%12%08skl2onnx%1A%061.16.0")
other_kind("wf_tflite", "tflite", "%1C%00%00%00TFL3%14%00 %00" + zeros(8))
other_kind("wf_gzip", "gzip", "%1F%8B%08%08%E3%1C%F4e%00%03a.bin%00%03%00" + zeros(8))
other_kind("wf_gzip_no_time", "gzip", "%1F%8B%08%00%00%00%00%00%00%03%03%00" + zeros(8), note="as a length it is under the limit")
other_kind("wf_zstd", "zstd", "(%B5/%FD%04h%19%00%00abc")
other_kind("wf_xz", "xz", "%FD7zXZ%00%00%04%E6%D6%B4F")
other_kind("wf_bzip2", "bzip2", "BZh91AY&SY" + zeros(4))
other_kind("wf_7z", "7z", "7z%BC%AF%27%1C%00%04" + zeros(8))
other_kind("wf_rar_4", "rar", "Rar!%1A%07%00%CF%90s%00%00")
other_kind("wf_rar_5", "rar", "Rar!%1A%07%01%003%92%B5%E5")
other_kind("wf_tar", "tar", "model.bin" + zeros(248) + "ustar%0000" + zeros(247))
other_kind("wf_u32_exact", "length-32-bit", "%02%00%00%00{}", note="6 bytes: too short, too")
other_kind("wf_u32_padded", "length-32-bit", "8%00%00%00{" + A + "}   " + FOUR)
other_kind("wf_big_endian", "length-big-endian", zeros(7) + "6{" + A + "} " + FOUR)
other_kind("wf_big_endian_exact", "length-big-endian", zeros(7) + "%02{}")
other_kind("wf_zeros_4097", "all-zero", zeros(4097))
other_kind("wf_zeros_head", "all-zero", zeros(4096) + "%01", note="only the first 4096 bytes are looked at")
other_kind("wf_partial_in_header", "partial-download", '%D2%04%00%00%00%00%00%00{"model.embed_tokens.weight":{"dty')
other_kind("wf_partial_two_bytes", "partial-download", '6%00%00%00%00%00%00%00{"')
other_kind("wf_interrupted_edit", "interrupted-edit", "midedit%FF{" + A + "}" + FOUR)
other_kind("wf_damaged_replacement", "text-damaged", "%EF%BF%BD%00%00%00%00%00%00%00{" + A + "}", note="the length byte D0 became U+FFFD")
other_kind("wf_damaged_crlf", "text-damaged", "%0D%0A%01%00%00%00%00%00%00{" + A + "}", note="the length 266 has the byte 0A")
other_kind("wf_damaged_crlf_twice", "text-damaged", "%0D%0A%0D%0A%00%00%00%00%00%00{" + A + "}", note="the length 2570 has it twice")
case("wf_not_all_zero", INVALID, whole="«header-empty»" + zeros(4095) + "%01", note="one byte that is not zero")
case("wf_interrupted_one_off", INVALID, whole="«header-over-limit»midedit%FE{" + A + "}" + FOUR, note="one bit less")
case("wf_plain_text", INVALID, whole="«header-over-limit»hello, world%0A")
case("wf_random", INVALID, whole="«header-over-limit»%A3%17%C9%5E%02%B8%F1%6D%44%9B")
case("wf_pickle_1", INVALID, whole="«header-over-limit»%80%01}q%00.%00%00", note="protocol 1 does not write this byte")
case("wf_partial_one_byte", INVALID, whole="«header-past-end»6%00%00%00%00%00%00%00{", note="one byte of header is no proof")
case("wf_u32_no_brace", INVALID, whole="«header-over-limit»%02%00%00%00[]xx")
case("wf_big_endian_too_long", INVALID, whole="«header-over-limit»" + zeros(7) + "9{" + A + "}", note="the length, read so, is past the end")
case("wf_lf_before_brace", INVALID, whole="«header-past-end»%0A%01%00%00%00%00%00%00%00{" + A + "}", note="a brace at 9 without a CRLF before it")
case("wf_zip_valid_inside", VALID, "{" + A + "}", "PK%03%04", note="a signature in the data section says nothing")
case("wf_lfs_in_data", VALID, '{"a":{"dtype":"U8","shape":[23],"data_offsets":[0,23]}}', "version https://git-lfs")
