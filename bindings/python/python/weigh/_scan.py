"""Scans: what loading a file would run, said without running it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from weigh import _sources, _weigh
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

    #: The file, as a path that begins with the one that was given; ``""`` for content in memory.
    path: str
    #: What it begins as, by its bytes: ``"torch-zip"``, ``"pickle"``, ``"safetensors"``, ``"unknown"``, …;
    #: ``"unread"`` if it could not be opened.
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
    #: Its bytes; ``None`` if it could not be opened.
    size: int | None = None
    #: Why nothing of it was read, if so. The verdict is ``"error"`` then.
    error: str | None = None

    @property
    def is_clean(self) -> bool:
        """Whether it was read to its end and holds nothing but data."""
        return self.complete and self.verdict == "data-only"

    def __repr__(self) -> str:
        """In one line: a scan can have thousands of findings."""
        parts = [repr(self.path), repr(self.verdict)]
        if self.verdict is not None and not self.complete:
            parts.append("complete=False")
        for name, count in (("calls", self.call_count), ("findings", len(self.findings))):
            if count:
                parts.append(f"{name}={count}")
        return f"<weigh.Scan {' '.join(parts)}>"


def _unread(path: str, error: str) -> Scan:
    """Of a file that could not be opened: nothing is known, which is not clean."""
    return Scan(path, "unread", "error", False, [], [], 0, None, None, [], None, error)


def scan(path: Path | bytearray | memoryview) -> list[Scan]:
    """Says what loading a file would run, and runs nothing of it. See docs/scan.md for what the verdicts mean.

    >>> for found in weigh.scan("model/"):
    ...     if found.verdict not in (None, "data-only"):
    ...         print(found.path, found.verdict, [call.callee for call in found.calls])

    Args:
        path: a file, or a folder, all of whose files are scanned, hidden ones too. What they are is told by their
            bytes. Or the content of a file, as `bytearray` or `memoryview`; `bytes` are a path, as everywhere.

    Returns:
        A `Scan` of each file, in natural order. Those with the verdict ``None`` are no checkpoints. What is in a folder
        and could not be opened, or is no file, comes last, with the verdict ``"error"`` and its `error`. That a list
        is empty says nothing: the folder was.

    Raises:
        OSError: the path itself cannot be read.
        TypeError: it is no path of this machine.
    """
    found = _sources.local(path)
    if found is not None:
        return _weigh.scan(found)
    if _sources._is_content(path):
        return [_weigh.scan_bytes(path)]
    raise TypeError(f"paths of this machine and content in memory are scanned, not {_shown(path)}")


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else shown[:200] + "…"
