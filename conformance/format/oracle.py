# SPDX-License-Identifier: Apache-2.0
"""A naive reference checker for safetensors files.

It is written from the rules in FORMAT.md and nothing else, to be read next to them: slow, no cleverness, no
sharing with the Rust code it is there to contradict. It has its own JSON reader, because a library reader would
hide exactly what the rules are about (where a document stops being JSON, keys that come twice, numbers as they
are spelled).

    result = check(file_bytes)
    result.strict       "accept" or "reject"
    result.compatible   "accept" or "reject"
    result.findings     sorted list of (offset, code)

Three decisions that the rules leave open, and that the expected results rest on:

* A finding about a key is made once the key was read, one about a value once the value was read to its end.
* When reading the header stops (a syntax error, too deep, a limit), the findings of the top-level member that was
  being read are dropped, those of the members before it are kept. How much of an unfinished entry a reader judges
  is its own affair.
* A second entry under a name that was there already is reported and then read like any other entry.
"""

import unicodedata
from dataclasses import dataclass, field

from oracle_kinds import kind_of_file

U64_LIMIT = 1 << 64
HEADER_BYTES_LIMIT = 100_000_000
HEADER_BYTES_PORTABLE = 25_000_000
LARGE_PADDING = 4096
DEPTH_LIMIT = 8
USUAL_RANK = 8
USUAL_NAME_BYTES = 256

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
SELDOM_READ_DTYPES = {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"}

DEVIATIONS = {
    "header-leading-space",
    "header-padding",
    "entry-field-unknown",
    "shape-overflow-beside-zero",
}
NOTES = {
    "header-large-padding",
    "length-is-magic",
    "rows-not-bytes",
    "misaligned",
    "rank-high",
    "metadata-null",
    "name-empty",
    "name-control",
    "name-path",
    "name-long",
    "name-bidi",
    "name-confusable",
    "portability",
}

# The findings that a recognized other kind of file takes the place of.
REPLACED_BY_RECOGNITION = {
    "file-too-short",
    "header-over-limit",
    "header-past-end",
    "header-empty",
    "header-bom",
    "header-not-utf8",
    "json-syntax",
    "header-trailing-data",
}

# Magic numbers of other formats that a length field can spell.
MAGIC_LENGTHS = (
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"BZh",
    b"GGUF",
    b"\x28\xb5\x2f\xfd",
    b"%PDF",
    b"\x7fELF",
    b"Rar!",
    b"<htm",
)

WHITE_SPACE = b" \t\n\r"
DIGITS = b"0123456789"
HEX_DIGITS = b"0123456789abcdefABCDEF"
SIMPLE_ESCAPES = {
    ord('"'): '"',
    ord("\\"): "\\",
    ord("/"): "/",
    ord("b"): "\b",
    ord("f"): "\f",
    ord("n"): "\n",
    ord("r"): "\r",
    ord("t"): "\t",
}
# The characters with the Unicode property Bidi_Control.
BIDI_CONTROLS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass
class Limits:
    header_bytes: int = HEADER_BYTES_LIMIT
    tensors: int | None = None
    name_bytes: int | None = None
    depth: int = DEPTH_LIMIT


@dataclass
class Tensor:
    """One entry as far as it could be read; None is for what could not."""

    name: str
    key: int
    dtype: str | None = None
    shape: list[int] | None = None
    offsets: tuple[int, int] | None = None


@dataclass
class Result:
    strict: str
    compatible: str
    findings: list[tuple[int, str]]
    boundaries: list[int] = field(default_factory=list)


class ReadingStopped(Exception):
    """The rest of the header cannot be read."""


class Findings:
    def __init__(self):
        self.found = []
        self.padding_is_error = False

    def add(self, code, offset):
        self.found.append((offset, code))

    def verdict(self, policy):
        for _, code in self.found:
            if code in NOTES:
                continue
            if code in DEVIATIONS and policy == "compatible":
                if not (code == "header-padding" and self.padding_is_error):
                    continue
            return "reject"
        return "accept"


def check(file_bytes, limits=None):
    limits = limits or Limits()
    findings = Findings()
    boundaries = []
    check_file(file_bytes, limits, findings, boundaries)
    recognize(file_bytes, limits, findings)
    return Result(
        findings.verdict("strict"),
        findings.verdict("compatible"),
        sorted(findings.found),
        sorted(set(boundaries)),
    )


def check_file(file_bytes, limits, findings, boundaries):
    if len(file_bytes) < 8:
        findings.add("file-too-short", 0)
        return
    header_len = int.from_bytes(file_bytes[:8], "little")
    if header_len > limits.header_bytes:
        findings.add("header-over-limit", 0)
        return
    data_start = 8 + header_len
    if data_start > len(file_bytes):
        findings.add("header-past-end", 0)
        return
    if header_len < 2:
        findings.add("header-empty", 0)
        return

    start = 8
    if file_bytes[8:11] == b"\xef\xbb\xbf":
        findings.add("header-bom", 8)
        start = 11
    elif file_bytes[8:data_start].startswith((b"\xfe\xff", b"\xff\xfe", b"\x00\x00\xfe\xff")):
        findings.add("header-bom", 8)
        return

    ill_formed = first_ill_formed_utf8(file_bytes, 8, data_start)
    if ill_formed is not None:
        findings.add("header-not-utf8", ill_formed)
        return

    reader = HeaderReader(file_bytes, start, data_start, limits, findings)
    try:
        reader.read_header()
    except ReadingStopped:
        return
    finally:
        boundaries.extend(reader.boundaries)

    check_padding(file_bytes, reader.position, data_start, findings)
    if length_is_magic(file_bytes):
        findings.add("length-is-magic", 0)
    check_layout(reader.tensors, data_start, len(file_bytes), findings)
    add_notes(reader.tensors, header_len, data_start, findings)


def first_ill_formed_utf8(data, start, end):
    """The start of the first sequence that is not well-formed UTF-8 (Unicode table 3-7)."""
    if data[start:end].isascii():  # a shortcut for the headers of many megabytes
        return None
    position = start
    while position < end:
        first = data[position]
        low, high = 0x80, 0xBF
        if first < 0x80:
            following = 0
        elif 0xC2 <= first <= 0xDF:
            following = 1
        elif 0xE0 <= first <= 0xEF:
            following = 2
            if first == 0xE0:
                low = 0xA0
            if first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            following = 3
            if first == 0xF0:
                low = 0x90
            if first == 0xF4:
                high = 0x8F
        else:
            return position
        for distance in range(1, following + 1):
            if position + distance >= end or not low <= data[position + distance] <= high:
                return position
            low, high = 0x80, 0xBF
        position += 1 + following
    return None


class HeaderReader:
    """Reads the JSON text of the header and judges its entries on the way.

    Recursion is bounded by the depth limit. `boundaries` gathers the places between two tokens, which the
    generator uses to put white space there.
    """

    def __init__(self, data, start, end, limits, findings):
        self.data = data
        self.position = start
        self.end = end
        self.limits = limits
        self.findings = findings
        self.level = 0
        self.tensors = []
        self.names = set()
        self.metadata_seen = False
        self.boundaries = []

    # The grammar.

    def stop(self, code, offset):
        self.findings.add(code, offset)
        raise ReadingStopped

    def unexpected(self):
        """The byte at the position cannot continue the grammar; at the end of the header its end is the place."""
        self.stop("json-syntax", self.position)

    def peek(self):
        if self.position >= self.end:
            return None
        return self.data[self.position]

    def skip_white_space(self):
        self.boundaries.append(self.position)
        while self.peek() is not None and self.peek() in WHITE_SPACE:
            self.position += 1

    def next_token(self):
        """The first byte of the next token, None at the end of the header."""
        self.skip_white_space()
        return self.peek()

    def expect(self, character):
        if self.next_token() != ord(character):
            self.unexpected()
        self.position += 1

    def open_bracket(self):
        if self.level == self.limits.depth:
            self.stop("json-depth", self.position)
        self.level += 1
        self.position += 1

    def close_bracket(self):
        self.level -= 1
        self.position += 1

    def another_member(self, closing):
        """After a member: True on a comma, False on the closing bracket, which is consumed."""
        token = self.next_token()
        if token == ord(","):
            self.position += 1
            return True
        if token == ord(closing):
            self.close_bracket()
            return False
        self.unexpected()

    def read_members(self, member):
        """An object at the position; `member(key, key_offset)` reads a value."""
        self.open_bracket()
        if self.next_token() == ord("}"):
            self.close_bracket()
            return
        while True:
            if self.next_token() != ord('"'):
                self.unexpected()
            key_offset = self.position
            key = self.read_string()
            self.expect(":")
            self.next_token()
            member(key, key_offset)
            if not self.another_member("}"):
                return

    def read_elements(self, element):
        """An array at the position; `element()` reads a value. Returns the number of elements."""
        self.open_bracket()
        if self.next_token() == ord("]"):
            self.close_bracket()
            return 0
        count = 0
        while True:
            self.next_token()
            element()
            count += 1
            if not self.another_member("]"):
                return count

    def read_string(self):
        self.position += 1
        pieces = []
        while True:
            byte = self.peek()
            if byte is None or byte < 0x20:
                self.unexpected()
            if byte == ord('"'):
                self.position += 1
                return "".join(pieces)
            if byte == ord("\\"):
                pieces.append(self.read_escape())
                continue
            plain_start = self.position
            while self.peek() is not None and self.peek() >= 0x20 and self.peek() not in b'"\\':
                self.position += 1
            pieces.append(self.data[plain_start : self.position].decode("utf-8"))

    def read_escape(self):
        backslash = self.position
        unit = self.read_escape_unit(backslash)
        if isinstance(unit, str):
            return unit
        if 0xDC00 <= unit <= 0xDFFF:
            self.stop("json-syntax", backslash)
        if 0xD800 <= unit <= 0xDBFF:
            # A high surrogate is lone unless a whole escape of a low one follows: its own backslash is the place.
            for character in b"\\u":
                if self.peek() is None:
                    self.unexpected()
                if self.peek() != character:
                    self.stop("json-syntax", backslash)
                self.position += 1
            low = self.read_hex_digits(backslash)
            if not 0xDC00 <= low <= 0xDFFF:
                self.stop("json-syntax", backslash)
            return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        return chr(unit)

    def read_escape_unit(self, backslash):
        """Text for a two-character escape, the number for a `\\u` one."""
        self.position += 1
        letter = self.peek()
        if letter is None:
            self.unexpected()
        self.position += 1
        if letter == ord("u"):
            return self.read_hex_digits(backslash)
        if letter not in SIMPLE_ESCAPES:
            self.stop("json-syntax", backslash)
        return SIMPLE_ESCAPES[letter]

    def read_hex_digits(self, backslash):
        number = 0
        for _ in range(4):
            digit = self.peek()
            if digit is None:
                self.unexpected()
            if digit not in HEX_DIGITS:
                self.stop("json-syntax", backslash)
            number = number * 16 + int(chr(digit), 16)
            self.position += 1
        return number

    def read_literal(self):
        for literal in (b"true", b"false", b"null"):
            if self.data[self.position : min(self.position + len(literal), self.end)] == literal:
                self.position += len(literal)
                return
        self.unexpected()

    def read_number(self):
        """The number as it is spelled."""
        start = self.position
        if self.peek() == ord("-"):
            self.position += 1
        if self.peek() == ord("0"):
            self.position += 1
        else:
            self.read_digits()
        if self.peek() == ord("."):
            self.position += 1
            self.read_digits()
        if self.peek() in (ord("e"), ord("E")):
            self.position += 1
            if self.peek() in (ord("+"), ord("-")):
                self.position += 1
            self.read_digits()
        return self.data[start : self.position]

    def read_digits(self):
        if self.peek() is None or self.peek() not in DIGITS:
            self.unexpected()
        while self.peek() is not None and self.peek() in DIGITS:
            self.position += 1

    def skip_value(self):
        token = self.peek()
        if token == ord("{"):
            self.read_members(lambda key, key_offset: self.skip_value())
        elif token == ord("["):
            self.read_elements(self.skip_value)
        elif token == ord('"'):
            self.read_string()
        elif token is not None and (token == ord("-") or token in DIGITS):
            self.read_number()
        else:
            self.read_literal()

    # The header.

    def read_header(self):
        start = self.position
        token = self.next_token()
        if token is not None and self.position > start:
            self.findings.add("header-leading-space", start)
        if token != ord("{"):
            self.unexpected()
        self.kept = len(self.findings.found)
        try:
            self.read_members(self.read_top_level_member)
        except ReadingStopped:
            # See the second decision at the top of this file.
            del self.findings.found[self.kept : -1]
            raise
        self.boundaries.append(self.position)

    def read_top_level_member(self, key, key_offset):
        if key == "__metadata__":
            if self.metadata_seen:
                self.findings.add("duplicate-key", key_offset)
            self.metadata_seen = True
            self.read_metadata()
        else:
            self.read_entry(key, key_offset)
        self.kept = len(self.findings.found)

    def read_metadata(self):
        value_offset = self.position
        if self.peek() != ord("{"):
            is_null = self.peek() == ord("n")
            self.skip_value()
            self.findings.add("metadata-null" if is_null else "metadata-type", value_offset)
            return
        keys = set()

        def member(key, key_offset):
            if key in keys:
                self.findings.add("duplicate-key", key_offset)
            keys.add(key)
            text_offset = self.position
            is_text = self.peek() == ord('"')
            self.skip_value()
            if not is_text:
                self.findings.add("metadata-type", text_offset)

        self.read_members(member)

    def read_entry(self, name, key_offset):
        limits = self.limits
        if limits.tensors is not None and len(self.tensors) == limits.tensors:
            self.stop("limit-tensors", key_offset)
        if limits.name_bytes is not None and len(name.encode()) > limits.name_bytes:
            self.stop("limit-name", key_offset)
        if name in self.names:
            self.findings.add("duplicate-key", key_offset)
        self.names.add(name)
        tensor = Tensor(name, key_offset)
        self.tensors.append(tensor)

        entry_offset = self.position
        if self.peek() != ord("{"):
            self.skip_value()
            self.findings.add("entry-field-type", entry_offset)
            return
        seen = set()
        places = {}

        def member(field_name, field_offset):
            is_known = field_name in ("dtype", "shape", "data_offsets")
            is_second = field_name in seen
            seen.add(field_name)
            if not is_known:
                self.findings.add("entry-field-unknown", field_offset)
            if is_second:
                self.findings.add("duplicate-key", field_offset)
            if is_second or not is_known:
                self.skip_value()
                return
            places[field_name] = self.position
            if field_name == "dtype":
                tensor.dtype = self.read_dtype()
            elif field_name == "shape":
                tensor.shape = self.read_naturals()
            else:
                offsets_offset = self.position
                numbers = self.read_naturals(count=2)
                if numbers is not None:
                    tensor.offsets = tuple(numbers)
                    if tensor.offsets[1] < tensor.offsets[0]:
                        places["reversed"] = offsets_offset

        self.read_members(member)
        for field_name in ("dtype", "shape", "data_offsets"):
            if field_name not in seen:
                self.findings.add("entry-field-missing", entry_offset)
        self.judge_entry(tensor, places)

    def read_dtype(self):
        offset = self.position
        if self.peek() != ord('"'):
            self.skip_value()
            self.findings.add("entry-field-type", offset)
            return None
        dtype = self.read_string()
        if dtype not in BITS:
            self.findings.add("dtype-unknown", offset)
            return None
        return dtype

    def read_naturals(self, count=None):
        """An array of plain numbers below 2^64, of `count` elements if given; None when it is anything else."""
        array_offset = self.position
        if self.peek() != ord("["):
            self.skip_value()
            self.findings.add("entry-field-type", array_offset)
            return None
        numbers = []

        def element():
            offset = self.position
            token = self.peek()
            if token is not None and (token == ord("-") or token in DIGITS):
                spelled = self.read_number()
                if all(byte in DIGITS for byte in spelled) and int_of_digits(spelled) < U64_LIMIT:
                    numbers.append(int_of_digits(spelled))
                else:
                    self.findings.add("number-form", offset)
            else:
                self.skip_value()
                self.findings.add("entry-field-type", offset)

        element_count = self.read_elements(element)
        if count is not None and element_count != count:
            self.findings.add("entry-field-type", array_offset)
            return None
        return numbers if len(numbers) == element_count else None

    def judge_entry(self, tensor, places):
        code, place = self.first_fault(tensor, places)
        if code is not None:
            self.findings.add(code, places[place])
        if code != "offsets-reversed" and "reversed" in places:
            # In any entry, whatever else is wrong with it.
            self.findings.add("offsets-reversed", places["reversed"])
        if tensor.offsets is not None and tensor.offsets[1] < tensor.offsets[0]:
            tensor.offsets = None  # not usable in the layout

    def first_fault(self, tensor, places):
        if tensor.dtype is None or tensor.shape is None or tensor.offsets is None:
            return None, None
        bits = BITS[tensor.dtype]
        count = element_count(tensor.shape)
        if count is None:
            return "shape-overflow", "shape"
        if 0 in tensor.shape and product(d for d in tensor.shape if d != 0) >= U64_LIMIT:
            # A deviation: the checks of this entry go on below.
            self.findings.add("shape-overflow-beside-zero", places["shape"])
        if count * bits // 8 >= U64_LIMIT:
            return "size-overflow", "shape"
        if count * bits % 8 != 0:
            return "size-not-bytes", "shape"
        begin, end = tensor.offsets
        if end < begin:
            return "offsets-reversed", "data_offsets"
        if end - begin != count * bits // 8:
            return "size-mismatch", "data_offsets"
        return None, None


def int_of_digits(spelled):
    # Python refuses to convert thousands of digits; more than 20 without leading zeros is too large anyway.
    return int(spelled) if len(spelled) <= 20 else U64_LIMIT


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def element_count(shape):
    """The exact number of elements, None when it does not fit 64 bits."""
    count = product(shape)
    return count if count < U64_LIMIT else None


def check_padding(data, object_end, data_start, findings):
    rest = data[object_end:data_start]
    other = len(rest) - len(rest.lstrip(WHITE_SPACE))
    if other == len(rest):
        spaces = len(rest) - len(rest.lstrip(b" "))
        if spaces != len(rest):
            findings.add("header-padding", object_end + spaces)
        elif len(rest) >= LARGE_PADDING:
            findings.add("header-large-padding", object_end)
    elif not rest[other:].strip(WHITE_SPACE + b"\0"):
        findings.add("header-padding", object_end + other)
        findings.padding_is_error = True
    else:
        findings.add("header-trailing-data", object_end + other)


def length_is_magic(data):
    return data.startswith(MAGIC_LENGTHS)


def check_layout(tensors, data_start, file_len, findings):
    usable = [tensor for tensor in tensors if tensor.offsets is not None]
    provable = len(usable) == len(tensors)
    usable.sort(key=lambda tensor: tensor.offsets)
    expected = 0
    previous = None
    for index, tensor in enumerate(usable):
        begin, end = tensor.offsets
        if begin == end:
            later = [t.offsets[0] for t in usable[index:] if t.offsets[0] != t.offsets[1]]
            on_boundary = begin == expected or (later and begin == later[0])
            if not on_boundary and provable:
                findings.add("empty-off-boundary", data_start + begin)
            continue
        if begin > expected:
            if provable:
                findings.add("data-gap", data_start + expected)
        elif begin < expected:
            code = "data-alias" if (begin, end) == previous else "data-overlap"
            findings.add(code, data_start + begin)
        expected = max(expected, end)
        previous = (begin, end)
    data_len = file_len - data_start
    if expected > data_len:
        findings.add("data-truncated", file_len)
    elif expected < data_len and provable:
        findings.add("data-trailing", data_start + expected)


def add_notes(tensors, header_len, data_start, findings):
    if header_len > HEADER_BYTES_PORTABLE:
        findings.add("portability", 0)
    noted = set()

    def note(code, offset):
        if code not in noted:
            noted.add(code)
            findings.add(code, offset)

    names_by_normal_form = {}
    for tensor in tensors:
        bits = BITS.get(tensor.dtype)
        if bits is not None and bits >= 8 and tensor.offsets is not None:
            begin, end = tensor.offsets
            if begin != end and (data_start + begin) % (bits // 8) != 0:
                note("misaligned", data_start + begin)
        if tensor.shape is not None and len(tensor.shape) > USUAL_RANK:
            note("rank-high", tensor.key)
        if bits is not None and tensor.shape:
            count = element_count(tensor.shape)
            if count and count * bits % 8 == 0 and tensor.shape[-1] * bits % 8 != 0:
                note("rows-not-bytes", tensor.key)
        if tensor.dtype in SELDOM_READ_DTYPES:
            note("portability", tensor.key)

        name = tensor.name
        if name == "":
            note("name-empty", tensor.key)
        if any(unicodedata.category(character) == "Cc" for character in name):
            note("name-control", tensor.key)
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            note("name-path", tensor.key)
        if len(name.encode()) > USUAL_NAME_BYTES:
            note("name-long", tensor.key)
        if any(character in BIDI_CONTROLS for character in name):
            note("name-bidi", tensor.key)
        same_form = names_by_normal_form.setdefault(unicodedata.normalize("NFC", name), set())
        if same_form - {name}:
            note("name-confusable", tensor.key)
        same_form.add(name)


def recognize(data, limits, findings):
    for index, (_, code) in enumerate(findings.found):
        if code in REPLACED_BY_RECOGNITION:
            kind = kind_of_file(data, limits.header_bytes, code == "header-past-end")
            if kind is not None:
                findings.found[index] = (0, "not-safetensors:" + kind)
            return
