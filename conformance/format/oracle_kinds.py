# SPDX-License-Identifier: Apache-2.0
"""What a refused file is, told from its first bytes: the part of the oracle for section 7 of FORMAT.md."""

HEAD_BYTES = 4096
WHITE_SPACE = b" \t\n\r"

BINARY_SIGNATURES = [
    ("gguf", 0, b"GGUF"),
    # The number 0x67676d6c ("ggml") and its two successors, written little endian.
    ("ggml", 0, b"lmgg"),
    ("ggml", 0, b"fmgg"),
    ("ggml", 0, b"tjgg"),
    ("ggml", 0, b"ggml"),
    ("hdf5", 0, b"\x89HDF\r\n\x1a\n"),
    ("npy", 0, b"\x93NUMPY"),
    ("zstd", 0, b"\x28\xb5\x2f\xfd"),
    ("xz", 0, b"\xfd7zXZ\x00"),
    ("bzip2", 0, b"BZh"),
    ("7z", 0, b"7z\xbc\xaf\x27\x1c"),
    ("rar", 0, b"Rar!\x1a\x07"),
    ("gzip", 0, b"\x1f\x8b"),
    ("pickle", 0, b"\x80\x02"),
    ("pickle", 0, b"\x80\x03"),
    ("pickle", 0, b"\x80\x04"),
    ("pickle", 0, b"\x80\x05"),
    ("tflite", 4, b"TFL3"),
    ("tar", 257, b"ustar"),
    ("interrupted-edit", 0, b"midedit\xff"),
]


def kind_of_file(data, header_bytes_limit, is_past_end):
    """The kind, None when the first bytes do not say it."""
    head = data[:HEAD_BYTES]
    if not data:
        return "empty"
    if len(head) >= 8 and not head.strip(b"\0"):
        return "all-zero"
    if is_past_end and head[8:10] == b'{"':
        return "partial-download"
    if looks_like_big_endian_length(head, len(data), header_bytes_limit):
        return "length-big-endian"
    if looks_like_32_bit_length(head, len(data), header_bytes_limit):
        return "length-32-bit"
    if b"\xef\xbf\xbd" in head[:8]:
        return "text-damaged"
    if b"\r\n" in head[:10] and (head[9:10] == b"{" or head[10:11] == b"{"):
        return "text-damaged"

    # A small length and a `{` in its place: the first bytes are a length that happens to look like a signature.
    is_length = head[4:8] == b"\0\0\0\0" and head[8:9] == b"{"
    if not is_length:
        if head.startswith(b"PK\x03\x04"):
            return "torch-zip" if b"data.pkl" in head else "zip"
        for kind, offset, signature in BINARY_SIGNATURES:
            if head[offset : offset + len(signature)] == signature:
                return kind
        if looks_like_onnx(head):
            return "onnx"
    return kind_of_text(head)


def looks_like_big_endian_length(head, file_len, header_bytes_limit):
    length = int.from_bytes(head[:8], "big")
    return head[8:9] == b"{" and 2 <= length <= header_bytes_limit and 8 + length <= file_len


def looks_like_32_bit_length(head, file_len, header_bytes_limit):
    length = int.from_bytes(head[:4], "little")
    return head[4:5] == b"{" and 2 <= length <= header_bytes_limit and 4 + length <= file_len


def looks_like_onnx(head):
    """A protocol buffer with field 1 a small number (the IR version) and field 2 a text (the producer)."""
    if len(head) < 4 or head[0] != 0x08 or not 1 <= head[1] <= 0x20 or head[2] != 0x12:
        return False
    producer = head[4 : 4 + head[3]]
    return len(producer) > 0 and all(0x20 <= byte < 0x7F for byte in producer)


def kind_of_text(head):
    if head.startswith(b"version https://git-lfs"):
        return "git-lfs-pointer"
    if head.startswith(b"# xet version"):
        return "xet-pointer"
    text = head.lstrip(WHITE_SPACE)
    if text[:5].lower() == b"<html" or text[:9].lower() == b"<!doctype":
        return "html"
    if text.startswith(b"{") and text[1:].lstrip(WHITE_SPACE).startswith(b'"'):
        if b'"weight_map"' in text:
            return "shard-index"
        if b'"data_offsets"' in text or b'"__metadata__"' in text:
            return "header-without-length"
        if b'"error"' in text:
            return "json-error"
    return None
