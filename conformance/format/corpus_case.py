# SPDX-License-Identifier: Apache-2.0
"""How a hand-made case is written down.

The header and the data section are text: `%XX` is a byte, every other ASCII character itself. A code in guillemets,
`«dtype-unknown»`, is not part of the file: it says that this finding is expected at the byte that follows. So the
place of a finding is asserted by hand where it can be seen, and no offset has to be counted.
"""

import re
from dataclasses import dataclass

from recipe import build

VALID = ("accept", "accept")
DEVIATES = ("reject", "accept")
INVALID = ("reject", "reject")

MARKER = re.compile(rb"\xc2\xab([a-z0-9:-]+)\xc2\xbb")


@dataclass
class Case:
    name: str
    group: str
    strict: str
    compatible: str
    findings: list[tuple[int, str]]
    recipe: str  # "-" when the bytes are stored as a file
    limits: str
    reference: str
    note: str
    stored_bytes: bytes | None = None

    def file_bytes(self):
        return build(self.recipe) if self.stored_bytes is None else self.stored_bytes


def read_marked(text):
    """The bytes that marked text stands for and the (offset, code) of its markers."""
    data = b""
    findings = []
    last = 0
    encoded = text.encode("utf-8")
    for marker in MARKER.finditer(encoded):
        data += unescape(encoded[last : marker.start()])
        findings.append((len(data), marker[1].decode()))
        last = marker.end()
    return data + unescape(encoded[last:]), findings


def unescape(text):
    if not text.isascii():
        raise ValueError(f"write bytes outside ASCII as %XX: {text!r}")
    return re.sub(rb"%([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), text)


def parse_findings(text):
    """`code@offset code@offset` as a list of (offset, code)."""
    findings = []
    for word in text.split():
        code, _, offset = word.rpartition("@")
        findings.append((int(offset), code))
    return findings


class Collection:
    """Cases in the order in which they were written."""

    def __init__(self):
        self.cases = []

    def group(self, group):
        """A function that adds a case to this group.

        The file is `header` and `data`, with a true length field or the given `length`; or it is `whole`; or it is
        a `recipe` when it is too large to be stored. `also` holds expected findings that have no byte to stand on.
        """

        def add(
            name,
            verdicts,
            header="",
            data="",
            *,
            whole=None,
            length=None,
            recipe=None,
            also="",
            limits="-",
            reference="-",
            note="",
        ):
            findings = parse_findings(also)
            stored_bytes = None
            if recipe is None and whole is None:
                header_bytes, found = read_marked(header)
                findings += [(8 + offset, code) for offset, code in found]
                data_bytes, found = read_marked(data)
                findings += [(8 + len(header_bytes) + offset, code) for offset, code in found]
                length = len(header_bytes) if length is None else length
                stored_bytes = length.to_bytes(8, "little") + header_bytes + data_bytes
            elif recipe is None:
                stored_bytes, found = read_marked(whole)
                findings += found
            self.cases.append(
                Case(
                    name,
                    group,
                    *verdicts,
                    sorted(findings),
                    recipe or "-",
                    limits,
                    reference,
                    note,
                    stored_bytes,
                )
            )

        return add
