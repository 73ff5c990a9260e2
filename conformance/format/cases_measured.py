# SPDX-License-Identifier: Apache-2.0
# fmt: off
# ruff: noqa: E501
"""Cases that the reference implementation 0.8.0 was measured on: its verdict is `reference`."""

from corpus_case import DEVIATES, INVALID, VALID, Collection

COLLECTION = Collection()

case = COLLECTION.group("frame")
case(
    "frame_ok", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "frame_empty_file", INVALID,
    whole=r'«not-safetensors:empty»',
    reference="reject",
)
case(
    "frame_7_bytes", INVALID,
    whole=r'«file-too-short»%02%00%00%00%00%00%00',
    reference="reject",
)
case(
    "frame_8_bytes_n2", INVALID,
    r'', length=2, also="header-past-end@0",
    reference="reject", note="n=2 but no header",
)
case(
    "frame_n0_then_json", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=0, also="header-empty@0",
    reference="reject",
)
case(
    "frame_n1", INVALID,
    r'{', also="header-empty@0",
    reference="reject",
)
case(
    "frame_empty_obj", VALID,
    r'{}',
    reference="accept", note="10 byte file, smallest valid",
)
case(
    "frame_empty_obj_pad", VALID,
    r'{}      ',
    reference="accept",
)
case(
    "frame_n_eats_data", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00«header-not-utf8»%80?',
    reference="reject",
)
case(
    "frame_n_short_by_1", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}«json-syntax»', r'}%00%00%80?',
    reference="reject",
)
case(
    "frame_n_100000001", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=100000001, also="header-over-limit@0",
    reference="reject",
)
case(
    "frame_n_2_32", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=4294967350, also="header-over-limit@0",
    reference="reject",
)
case(
    "frame_n_2_63", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=9223372036854775862, also="header-over-limit@0",
    reference="reject",
)
case(
    "frame_n_u64max", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=18446744073709551615, also="header-over-limit@0",
    reference="reject",
)
case(
    "frame_n_u64max_minus7", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?', length=18446744073709551608, also="header-over-limit@0",
    reference="reject", note="8+n wraps to 0",
)

case = COLLECTION.group("layout")
case(
    "lay_trailing_1", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?«data-trailing»%00',
    reference="reject",
)
case(
    "lay_trailing_8", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?«data-trailing»%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "lay_truncated_1", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80«data-truncated»',
    reference="reject",
)
case(
    "lay_no_data", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«data-truncated»«misaligned»',
    reference="reject",
)
case(
    "lay_hole_front", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'«data-gap»%00%00%80?«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "lay_hole_mid", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}', r'%00%00%80?«data-gap»%00%00%80?%00%00%80?',
    reference="reject",
)
case(
    "lay_overlap_full", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«data-alias»«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "lay_order_rev", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?«misaligned»%00%00%80?',
    reference="accept", note="JSON order != offset order",
)
case(
    "lay_begin_gt_end", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":«offsets-reversed»[4,0]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "lay_end_past_eof", INVALID,
    r'{"a":{"dtype":"F32","shape":[1024],"data_offsets":[0,4096]}}', r'%00%00%80?«data-truncated»',
    reference="reject",
)
case(
    "lay_unaligned_mid", VALID,
    r'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}', r'%01«misaligned»%00%00%80?',
    reference="accept", note="F32 at odd offset",
)
case(
    "lay_header_unaligned", VALID,
    r'{"ab":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="data start not multiple of 8",
)
case(
    "lay_off_u64max_wrap", INVALID,
    r'{"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551600,18446744073709551604]}}', r'«data-gap»%01%02%03%04«data-truncated»',
    reference="reject", note="begin near 2^64: 8+n+begin wraps",
)

case = COLLECTION.group("empty")
case(
    "emp_shape0", VALID,
    r'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}',
    reference="accept",
)
case(
    "emp_first_json_last", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="empty [0,0] listed after [0,4]",
)
case(
    "emp_mid", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'%00%00%80?%00%00%80?',
    reference="accept",
)
case(
    "emp_mid_json_last", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}', r'%00%00%80?%00%00%80?',
    reference="accept",
)
case(
    "emp_last", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "emp_zero_off_after_data", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', r'%00%00%80?%00%00%80?',
    reference="accept", note="writer leaves empties at [0,0]",
)
case(
    "emp_inside_other", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}}', r'«misaligned»%00%00«empty-off-boundary»%80?',
    reference="reject", note="empty located inside another tensor",
)
case(
    "emp_past_end", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0],"data_offsets":[9,9]}}', r'«misaligned»%00%00%80?', also="empty-off-boundary@124",
    reference="reject",
)
case(
    "emp_nonzero_span", INVALID,
    r'{"e":{"dtype":"F32","shape":[0],"data_offsets":«size-mismatch»[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "emp_null_offsets", INVALID,
    r'{"e":{"dtype":"F32","shape":[0],"data_offsets":«entry-field-type»null}}',
    reference="reject",
)
case(
    "scalar", VALID,
    r'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)

case = COLLECTION.group("dtype")
case(
    "dt_BOOL", VALID,
    r'{"a":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F4", VALID,
    r'{«portability»"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}', r'%00%00%00%00',
    reference="accept",
)
case(
    "dt_F6_E2M3", VALID,
    r'{«portability»"a":{"dtype":"F6_E2M3","shape":[8],"data_offsets":[0,6]}}', r'%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_U8", VALID,
    r'{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_I8", VALID,
    r'{"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F8_E5M2", VALID,
    r'{"a":{"dtype":"F8_E5M2","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F8_E8M0", VALID,
    r'{«portability»"a":{"dtype":"F8_E8M0","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F8_E4M3FNUZ", VALID,
    r'{«portability»"a":{"dtype":"F8_E4M3FNUZ","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F8_E5M2FNUZ", VALID,
    r'{«portability»"a":{"dtype":"F8_E5M2FNUZ","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_I16", VALID,
    r'{"a":{"dtype":"I16","shape":[8],"data_offsets":[0,16]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_U16", VALID,
    r'{"a":{"dtype":"U16","shape":[8],"data_offsets":[0,16]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F16", VALID,
    r'{"a":{"dtype":"F16","shape":[8],"data_offsets":[0,16]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_I32", VALID,
    r'{"a":{"dtype":"I32","shape":[8],"data_offsets":[0,32]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_U32", VALID,
    r'{"a":{"dtype":"U32","shape":[8],"data_offsets":[0,32]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F32", VALID,
    r'{"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_C64", VALID,
    r'{«portability»"a":{"dtype":"C64","shape":[8],"data_offsets":[0,64]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_F64", VALID,
    r'{"a":{"dtype":"F64","shape":[8],"data_offsets":[0,64]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_U64", VALID,
    r'{"a":{"dtype":"U64","shape":[8],"data_offsets":[0,64]}}', r'«misaligned»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="accept",
)
case(
    "dt_unknown_F128", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"F128","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_I4", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"I4","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_U4", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"U4","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_E8M0", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"E8M0","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_FP4", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"FP4","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_UE8", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"UE8","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_I128", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"I128","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_unknown_STRING", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"STRING","shape":[8],"data_offsets":[0,8]}}', r'%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "dt_lower", INVALID,
    r'{"a":{"dtype":«dtype-unknown»"f32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "dt_null", INVALID,
    r'{"a":{"dtype":«entry-field-type»null,"shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "dt_int", INVALID,
    r'{"a":{"dtype":«entry-field-type»17,"shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject", note="serde variant index",
)
case(
    "dt_map", INVALID,
    r'{"a":{"dtype":«entry-field-type»{"F32":null},"shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="accept", note="serde externally tagged enum form",
)
case(
    "sub_f4_odd", INVALID,
    r'{«portability»"a":{"dtype":"F4","shape":«size-not-bytes»[3],"data_offsets":[0,2]}}', r'%00%00',
    reference="reject", note="12 bits",
)
case(
    "sub_f4_2x3", VALID,
    r'{«portability»«rows-not-bytes»"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}', r'%00%00%00',
    reference="accept", note="24 bits but rows not byte aligned",
)
case(
    "sub_f6_3", INVALID,
    r'{«portability»"a":{"dtype":"F6_E2M3","shape":«size-not-bytes»[3],"data_offsets":[0,3]}}', r'%00%00%00',
    reference="reject",
)
case(
    "sub_f4_scalar", INVALID,
    r'{«portability»"a":{"dtype":"F4","shape":«size-not-bytes»[],"data_offsets":[0,1]}}', r'%00',
    reference="reject",
)
case(
    "nan_values", VALID,
    r'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', r'«misaligned»%FF%FF%FF%7F%00%00%80%7F',
    reference="accept",
)

case = COLLECTION.group("int")
case(
    "int_shape_float", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»1.0],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_exp", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»1e0],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_frac", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»1.5],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_negneg", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»-1,«number-form»-1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject", note="product is +1",
)
case(
    "int_shape_neg0", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»-0],"data_offsets":[0,0]}}',
    reference="reject",
)
case(
    "int_shape_lead0", INVALID,
    r'{"a":{"dtype":"F32","shape":[0«json-syntax»1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_plus", INVALID,
    r'{"a":{"dtype":"F32","shape":[«json-syntax»+1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_hex", INVALID,
    r'{"a":{"dtype":"F32","shape":[0«json-syntax»x1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_str", INVALID,
    r'{"a":{"dtype":"F32","shape":[«entry-field-type»"1"],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_bool", INVALID,
    r'{"a":{"dtype":"F32","shape":[«entry-field-type»true],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "int_shape_obj", INVALID,
    r'{"a":{"dtype":"F32","shape":«entry-field-type»{},"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "int_shape_nested", INVALID,
    r'{"a":{"dtype":"F32","shape":[«entry-field-type»[1]],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_shape_i32_wrap", INVALID,
    r'{"a":{"dtype":"F32","shape":[4294967297],"data_offsets":«size-mismatch»[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject", note="2^32+1 dims, 4 bytes",
)
case(
    "int_shape_ovf_bits", INVALID,
    r'{"a":{"dtype":"F32","shape":«size-overflow»[4611686018427387905],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject", note="4*(2^62+1) wraps to 4 bytes",
)
case(
    "int_shape_ovf_bits8", INVALID,
    r'{"a":{"dtype":"U8","shape":[2305843009213693953],"data_offsets":«size-mismatch»[0,1]}}', r'%00',
    reference="reject", note="8*(2^61+1) wraps: 1 byte",
)
case(
    "int_shape_ovf_zero_last", DEVIATES,
    r'{"a":{"dtype":"F32","shape":«shape-overflow-beside-zero»[18446744073709551615,2,0],"data_offsets":[0,0]}}',
    reference="reject", note="overflow before the zero dim",
)
case(
    "int_shape_ovf_zero_first", DEVIATES,
    r'{"a":{"dtype":"F32","shape":«shape-overflow-beside-zero»[0,18446744073709551615,2],"data_offsets":[0,0]}}',
    reference="accept", note="zero dim first: product 0",
)
case(
    "int_shape_huge_zero", VALID,
    r'{"a":{"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0]}}',
    reference="accept", note="no overflow",
)
case(
    "int_shape_wrap0", INVALID,
    r'{"a":{"dtype":"F32","shape":«shape-overflow»[4294967296,4294967296],"data_offsets":[0,0]}}',
    reference="reject", note="2^32*2^32 wraps to 0 elements",
)
case(
    "int_shape_neg_wrap0", INVALID,
    r'{"a":{"dtype":"F32","shape":[«number-form»-4294967296,4294967296],"data_offsets":[0,0]}}',
    reference="reject", note="signed wrap to 0 (sd.cpp#1876)",
)
case(
    "int_off_span_neg", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":«offsets-reversed»[8,4]}}', r'%00%00%80?',
    reference="reject", note="end < begin",
)
case(
    "int_rank_9", VALID,
    r'{«rank-high»"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "int_rank_2000", VALID,
    recipe='header {"a":{"dtype":"F32","shape":[1 ,1*1999 ],"data_offsets":[0,4]}} data %00%00%80?',
    also="rank-high@9",
    reference="accept",
)
case(
    "int_off_float", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[«number-form»0.0,«number-form»4.0]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_exp", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,«number-form»4e0]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_neg0", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[«number-form»-0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_str", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[«entry-field-type»"0",«entry-field-type»"4"]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_bool", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[«entry-field-type»false,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_1", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":«entry-field-type»[4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_obj", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":«entry-field-type»{"0":0,"1":4}}}', r'%00%00%80?',
    reference="reject",
)
case(
    "int_off_2_64p4", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,«number-form»18446744073709551620]}}', r'%00%00%80?',
    reference="reject", note="2^64+4",
)

case = COLLECTION.group("json")
case(
    "js_lead_space", DEVIATES,
    r'«header-leading-space» {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="spec: MUST begin with {; ref has a test that allows it",
)
case(
    "js_lead_nl", DEVIATES,
    r'«header-leading-space»%0A{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "js_trail_space", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   ', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "js_trail_nl", DEVIATES,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-padding»%0A', r'«misaligned»%00%00%80?',
    reference="accept", note="spec: padding is 0x20",
)
case(
    "js_trail_tab", DEVIATES,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-padding»%09', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "js_trail_nul", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-padding»%00', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_trail_nul8", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-padding»%00%00%00%00%00%00%00%00', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_trail_garbage", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-trailing-data»x', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_trail_brace", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-trailing-data»}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_trail_comma", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-trailing-data»,', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_trail_nbsp", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}«header-trailing-data»%C2%A0', r'%00%00%80?',
    reference="reject",
)
case(
    "js_bom", INVALID,
    r'«header-bom»%EF%BB%BF{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "js_utf16le", INVALID,
    r'{«json-syntax»%00"%00a%00"%00:%00{%00"%00d%00t%00y%00p%00e%00"%00:%00"%00F%003%002%00"%00,%00"%00s%00h%00a%00p%00e%00"%00:%00[%001%00]%00,%00"%00d%00a%00t%00a%00_%00o%00f%00f%00s%00e%00t%00s%00"%00:%00[%000%00,%004%00]%00}%00}%00', r'%00%00%80?',
    reference="reject",
)
case(
    "js_utf16_bom", INVALID,
    r'«header-bom»%FF%FE{%00"%00a%00"%00:%00{%00"%00d%00t%00y%00p%00e%00"%00:%00"%00F%003%002%00"%00,%00"%00s%00h%00a%00p%00e%00"%00:%00[%001%00]%00,%00"%00d%00a%00t%00a%00_%00o%00f%00f%00s%00e%00t%00s%00"%00:%00[%000%00,%004%00]%00}%00}%00', r'%00%00%80?',
    reference="reject",
)
case(
    "js_top_array_struct", INVALID,
    r'«json-syntax»[null,{}]',
    reference="reject",
)
case(
    "js_top_null", INVALID,
    r'«json-syntax»null',
    reference="reject",
)
case(
    "js_top_number", INVALID,
    r'«json-syntax»12',
    reference="reject",
)
case(
    "js_pad_8k", VALID,
    recipe='header {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} %20*8192 data %00%00%80?',
    also="header-large-padding@62 misaligned@8254",
    reference="accept", note="8 KiB of space padding",
)
case(
    "js_vtab", INVALID,
    r'{"a":«json-syntax»%0B{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_unicode_ws", INVALID,
    r'{"a":«json-syntax»%E2%80%83{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_solidus_only", VALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b\/":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'«misaligned»%00%00%80?%00%00%80?',
    reference="accept",
)
case(
    "js_big_unknown_int", DEVIATES,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],«entry-field-unknown»"x":' + '9' * 400 + r'}}', r'«misaligned»%00%00%80?',
    reference="reject", note="unknown field, 400 digit integer",
)
case(
    "js_comment", INVALID,
    r'{«json-syntax»/*x*/"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_trailing_comma_arr", INVALID,
    r'{"a":{"dtype":"F32","shape":[1,«json-syntax»],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_single_quote", INVALID,
    r'{«json-syntax»%27a%27:{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_NaN", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":«json-syntax»NaN}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_Infinity", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":-«json-syntax»Infinity}}', r'%00%00%80?',
    reference="reject",
)
case(
    "js_depth_100", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[[[[[[«json-depth»' + '[' * 94 + ']' * 100 + r'}}', r'%00%00%80?',
    reference="accept", note="nesting in an unknown field",
)
case(
    "js_depth_127", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[[[[[[«json-depth»' + '[' * 121 + ']' * 127 + r'}}', r'%00%00%80?',
    reference="reject", note="nesting in an unknown field",
)
case(
    "js_depth_200", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[[[[[[«json-depth»' + '[' * 194 + ']' * 200 + r'}}', r'%00%00%80?',
    reference="reject", note="nesting in an unknown field",
)
case(
    "js_depth_2000", INVALID,
    recipe='header {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x": [*2000 ]*2000 }} data %00%00%80?',
    also="json-depth@71",
    reference="reject", note="nesting in an unknown field",
)
case(
    "js_depth_100000", INVALID,
    recipe='header {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x": [*100000 ]*100000 }} data %00%00%80?',
    also="json-depth@71",
    reference="reject", note="nesting in an unknown field",
)

case = COLLECTION.group("name")
case(
    "nm_empty", VALID,
    r'{«name-empty»"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="empty tensor name",
)
case(
    "nm_unicode", VALID,
    r'{"h%C3%A9%C3%A9%E2%9C%93%F0%9F%98%80":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "nm_surrogate_pair", VALID,
    r'{"\ud83d\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "nm_lone_hi_surr", INVALID,
    r'{"«json-syntax»\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_nul_escape", VALID,
    r'{«name-control»"a\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="NUL in name",
)
case(
    "nm_raw_nul", INVALID,
    r'{"a«json-syntax»%00b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_raw_ctrl", INVALID,
    r'{"a«json-syntax»%0Ab":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject", note="raw newline inside string",
)
case(
    "nm_raw_tab", INVALID,
    r'{"a«json-syntax»%09b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_raw_del", VALID,
    r'{«name-control»"a%7Fb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="accept",
)
case(
    "nm_bad_escape", INVALID,
    r'{"a«json-syntax»\x62":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_bad_escape_u", INVALID,
    r'{"a«json-syntax»\u00g0":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_utf8_ff", INVALID,
    r'{"a«header-not-utf8»%FF":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject", note="invalid UTF-8 byte",
)
case(
    "nm_utf8_cesu", INVALID,
    r'{"a«header-not-utf8»%ED%A0%80":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject", note="raw encoded surrogate",
)
case(
    "nm_utf8_trunc", INVALID,
    r'{"a«header-not-utf8»%E2%82":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_noncharacter", VALID,
    r'{"%EF%BF%BF":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="accept",
)
case(
    "nm_long_100k", VALID,
    recipe='header {" n*100000 ":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} data %00%00%80?',
    also="name-long@9 misaligned@100061",
    reference="accept",
)
case(
    "nm_path_traversal", VALID,
    r'{«name-path»"../../etc/passwd":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "nm_proto", VALID,
    r'{"__proto__":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="JS prototype key",
)
case(
    "nm_nfc_nfd", VALID,
    r'{"%C3%A9":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},«name-confusable»"e%CC%81":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'«misaligned»%00%00%80?%00%00%80?',
    reference="accept", note="two names, same after NFC",
)
case(
    "nm_bidi", VALID,
    r'{«name-bidi»"a%E2%80%AEb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="bidi override",
)
case(
    "nm_path_abs", VALID,
    r'{«name-path»"/etc/passwd":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="accept",
)
case(
    "nm_lone_surr_meta", INVALID,
    r'{"__metadata__":{"k":"«json-syntax»\ud800"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "nm_case", VALID,
    r'{"A":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'«misaligned»%00%00%80?%00%00%80?',
    reference="accept",
)

case = COLLECTION.group("dup")
case(
    "dup_same", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},«duplicate-key»"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«data-alias»«misaligned»%00%00%80?',
    reference="accept", note="identical twice",
)
case(
    "dup_first_ok", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},«duplicate-key»"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', r'«data-overlap»«misaligned»%00%00%80?«data-truncated»',
    reference="reject", note="only FIRST fits the data",
)
case(
    "dup_last_ok", INVALID,
    r'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},«duplicate-key»"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«data-overlap»«misaligned»%00%00%80?«data-truncated»',
    reference="accept", note="only LAST fits the data",
)
case(
    "dup_both_cover", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},«duplicate-key»"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', r'«misaligned»%00%00%80?%00%00%80?',
    reference="reject", note="two halves under one name",
)
case(
    "dup_escaped", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},«duplicate-key»"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«data-alias»%00%00%80?',
    reference="accept", note="a and \u0061",
)
case(
    "dup_metadata_null", INVALID,
    r'{"__metadata__":«metadata-null»null,«duplicate-key»"__metadata__":{"y":"2"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "dup_meta_key", INVALID,
    r'{"__metadata__":{"x":"1",«duplicate-key»"x":"2"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "dup_field_dtype", INVALID,
    r'{"a":{"dtype":"I32",«duplicate-key»"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "dup_field_shape", INVALID,
    r'{"a":{"dtype":"F32","shape":[2],«duplicate-key»"shape":[1],"data_offsets":«size-mismatch»[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "dup_unknown_field", INVALID,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],«entry-field-unknown»"x":1,«duplicate-key»«entry-field-unknown»"x":2}}', r'«misaligned»%00%00%80?',
    reference="accept",
)

case = COLLECTION.group("entry")
case(
    "en_extra_key", DEVIATES,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],«entry-field-unknown»"extra":"x"}}', r'«misaligned»%00%00%80?',
    reference="accept", note="unknown field",
)
case(
    "en_extra_nested", DEVIATES,
    r'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],«entry-field-unknown»"extra":{"k":[1,2.5,null,true]}}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "en_missing_dtype", INVALID,
    r'{"a":«entry-field-missing»{"shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "en_missing_shape", INVALID,
    r'{"a":«entry-field-missing»{"dtype":"F32","data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "en_missing_off", INVALID,
    r'{"a":«entry-field-missing»{"dtype":"F32","shape":[1]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "en_array", INVALID,
    r'{"a":«entry-field-type»["F32",[1],[0,4]]}', r'%00%00%80?',
    reference="accept", note="serde struct-as-sequence",
)
case(
    "en_array_4", INVALID,
    r'{"a":«entry-field-type»["F32",[1],[0,4],9]}', r'%00%00%80?',
    reference="reject",
)
case(
    "en_string", INVALID,
    r'{"a":«entry-field-type»"x"}',
    reference="reject",
)
case(
    "en_string_plus_ok", INVALID,
    r'{"x":«entry-field-type»"hello","a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject", note="stray top-level string",
)
case(
    "en_empty_obj", INVALID,
    r'{"a":«entry-field-missing»«entry-field-missing»«entry-field-missing»{}}',
    reference="reject",
)
case(
    "en_key_order", VALID,
    r'{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "en_escaped_field", VALID,
    r'{"a":{"d\u0074ype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)

case = COLLECTION.group("meta")
case(
    "mt_ok", VALID,
    r'{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "mt_empty", VALID,
    r'{"__metadata__":{},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="accept",
)
case(
    "mt_only", VALID,
    r'{"__metadata__":{"k":"v"}}',
    reference="accept",
)
case(
    "mt_null", VALID,
    r'{"__metadata__":«metadata-null»null,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="MLX writes this when no metadata",
)
case(
    "mt_int", INVALID,
    r'{"__metadata__":{"k":«metadata-type»1},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "mt_float", INVALID,
    r'{"__metadata__":{"k":«metadata-type»1.5},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "mt_val_null", INVALID,
    r'{"__metadata__":{"k":«metadata-type»null},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'%00%00%80?',
    reference="reject",
)
case(
    "mt_list", INVALID,
    r'{"__metadata__":{"k":«metadata-type»["x"]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "mt_string", INVALID,
    r'{"__metadata__":«metadata-type»"x","a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "mt_number", INVALID,
    r'{"__metadata__":«metadata-type»5,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)
case(
    "mt_as_tensor", INVALID,
    r'{"__metadata__":{"dtype":"F32","shape":«metadata-type»[1],"data_offsets":«metadata-type»[0,4]}}', r'«data-trailing»%00%00%80?',
    reference="reject", note="tensor called __metadata__",
)
case(
    "mt_as_tensor_strs", VALID,
    r'{"__metadata__":{"dtype":"F32","shape":"[1]","data_offsets":"[0,4]"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept", note="string-valued lookalike",
)
case(
    "mt_empty_key", VALID,
    r'{"__metadata__":{"":""},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "mt_nul_val", VALID,
    r'{"__metadata__":{"k":"a\u0000b"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="accept",
)
case(
    "mt_case", INVALID,
    r'{"__METADATA__":«entry-field-missing»«entry-field-missing»«entry-field-missing»{«entry-field-unknown»"k":"v"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', r'«misaligned»%00%00%80?',
    reference="reject",
)

case = COLLECTION.group("wrongfile")
case(
    "wf_html", INVALID,
    whole=r'«not-safetensors:html»<!DOCTYPE html>%0A<html><head><title>404</title></head><body>Not Found</body></html>%0A',
    reference="reject",
)
case(
    "wf_json_error", INVALID,
    whole=r'«not-safetensors:json-error»{"error":"Repository not found"}',
    reference="reject",
)
case(
    "wf_zip_torch", INVALID,
    whole=r'«not-safetensors:torch-zip»PK%03%04%00%00%08%08%00%00%00%00%00%00%00%00archive/data.pklarchive/data.pklarchive/data.pklarchive/data.pkl',
    reference="reject",
)
case(
    "wf_pickle", INVALID,
    whole=r'«not-safetensors:pickle»%80%02%8A%0Al%FC%9CF%F9 j%A8P%19.%80%02M%E9%03.%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "wf_gguf", INVALID,
    whole=r'«not-safetensors:gguf»GGUF%03%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "wf_hdf5", INVALID,
    whole=r'«not-safetensors:hdf5»%89HDF%0D%0A%1A%0A%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="reject",
)
case(
    "wf_npy", INVALID,
    whole=r'«not-safetensors:npy»%93NUMPY%01%00v%00{%27descr%27: %27<f4%27, %27fortran_order%27: False, %27shape%27: (1,), }                                                            %0A%00%00%80?',
    reference="reject",
)
case(
    "wf_zeros_64", INVALID,
    whole=r'«not-safetensors:all-zero»%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00',
    reference="reject", note="sparse/preallocated download",
)
case(
    "wf_zeros_1M", INVALID,
    recipe="bytes %00*1048576",
    also="not-safetensors:all-zero@0",
    reference="reject",
)
case(
    "wf_json_only", INVALID,
    whole=r'«not-safetensors:header-without-length»{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  ',
    reference="reject", note="header without the 8 byte length",
)
case(
    "wf_index_json", INVALID,
    whole=r'«not-safetensors:shard-index»{"metadata":{"total_size":4},"weight_map":{"a":"model-00001-of-00001.safetensors"}}',
    reference="reject",
)
case(
    "wf_u32_len", INVALID,
    whole=r'«not-safetensors:length-32-bit»6%00%00%00{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}%00%00%80?',
    reference="reject", note="4-byte length prefix",
)
