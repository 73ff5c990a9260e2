"""Scans: what loading a file would run, said without running it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from weigh import _weigh
from weigh._convert import _local
from weigh._errors import Finding
from weigh._save import Path

#: What loading a file would come to, the worst last; a call that was seen is told rather than an error after it.
Verdict = Literal["data-only", "unknown-global", "ambiguous", "call", "error"]


class Global(NamedTuple):
    """A name that loading would import."""

    #: The module.
    module: str
    #: The name in it.
    name: str
    #: The member of an archive that names it, if it is one.
    member: str | None
    #: The byte of the member, or of the file, where it is first.
    offset: int
    #: How often it is there.
    count: int
    #: Whether it is one of those that checkpoints are made of.
    known: bool


class Call(NamedTuple):
    """A call that loading would make, of something that checkpoints are not made of."""

    #: What is called, as ``"os.system"``; ``None`` for something that the pickle made.
    callee: str | None
    #: The member of an archive that calls it, if it is one.
    member: str | None
    #: The byte of the member, or of the file, where it is.
    offset: int
    #: Whether what is called is known to run code. That it is not means nothing.
    gadget: bool


class Scan(NamedTuple):
    """What was found in a file."""

    #: The file.
    path: str
    #: What it begins as, by its bytes: ``"torch-zip"``, ``"pickle"``, ``"safetensors"``, ``"unknown"``, …
    kind: str
    #: What loading it would come to; ``None`` if nothing in it is a checkpoint, so that nothing is said.
    verdict: Verdict | None
    #: Whether all of it was read to the end.
    complete: bool
    #: Names that loading would import; the first of them, if they are very many.
    globals: list[Global]
    #: Calls that it would make; the first of them, if they are very many.
    calls: list[Call]
    #: How many calls there are.
    call_count: int
    #: Whether ``torch.load(weights_only=True)`` takes it; ``None`` if torch would not be asked to load it.
    weights_only: bool | None
    #: Why it does not.
    refusal: str | None
    #: Everything found. Text from the file in it is not escaped.
    findings: list[Finding]

    @property
    def is_clean(self) -> bool:
        """Whether it was read to its end and holds nothing but data."""
        return self.complete and self.verdict == "data-only"


def scan(path: Path) -> list[Scan]:
    """Says what loading a file would run, and runs nothing of it. See docs/scan.md for what the verdicts mean.

    Args:
        path: a file, or a folder, all of whose files are scanned. What they are is told by their bytes.

    Returns:
        A `Scan` of each file, in natural order. Those with the verdict ``None`` are no checkpoints.

    Raises:
        OSError: something cannot be read.
    """
    return _weigh.scan(_local(path))
