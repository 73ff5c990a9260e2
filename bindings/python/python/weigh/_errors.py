"""What can go wrong, and what was found wrong."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Not at run time: `import weigh` imports no more than it needs.
    from collections.abc import Iterable
    from typing import Any


class Finding:
    """Something that was found in a file.

    Attributes:
        code: the stable code, as ``"data-gap"``.
        severity: ``"error"``, ``"deviation"`` (against the format, yet read alike by every reader) or ``"note"``.
        message: one line that says what is wrong, with the numbers. Text from the file in it is not escaped.
        help: what to do next.
        file: the path, as it was given; ``None`` if no one file is meant.
        tensor: the tensor's name, shortened if it is very long.
        span: the bytes of the file, start and end, if some are meant.
        evidence: the numbers and texts of the message, by name.
    """

    __slots__ = ("code", "severity", "message", "help", "file", "tensor", "span", "evidence")

    def __init__(
        self,
        code: str,
        severity: str,
        message: str,
        help: str,
        file: str | None = None,
        tensor: str | None = None,
        span: tuple[int, int] | None = None,
        evidence: dict[str, int | str] | None = None,
    ) -> None:
        self.code = code
        self.severity = severity
        self.message = message
        self.help = help
        self.file = file
        self.tensor = tensor
        self.span = span
        self.evidence = {} if evidence is None else evidence

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Finding) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Finding, self._values()

    def __repr__(self) -> str:
        return f"Finding({self.severity}[{self.code}]: {self.message!r})"

    def __str__(self) -> str:
        # Escaped: what a file says may not steer a terminal.
        text = self.message.encode("unicode_escape").decode("ascii") if not self.message.isprintable() else self.message
        return f"{self.severity}[{self.code}]: {text}"


class WeighError(ValueError):
    """What is wrong with a file, or with what was asked of it.

    What the system reports is not here: that is an ``OSError``, with its number and the path.

    Attributes:
        code: the stable code of what is wrong.
        help: what to do about it, or ``None``.
        findings: what was found wrong with the file, a list of ``Finding``.
    """

    def __init__(
        self, message: str, code: str = "error", help: str | None = None, findings: Iterable[Finding] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.help = help
        self.findings = list(findings)
        if help:
            # Shown under a traceback, and no part of the message.
            self.add_note(f"help: {help}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.code, self.help, self.findings), self.__dict__


class FormatError(WeighError):
    """A file is not sound: ``findings`` says why."""


class TensorNotFoundError(WeighError, KeyError):
    """There is no tensor of this name, or none that a pattern selects."""

    # A KeyError would show the message quoted.
    __str__ = ValueError.__str__


class SliceError(WeighError, IndexError):
    """A tensor cannot be sliced like that."""


class CancelledError(WeighError):
    """The work was asked to stop."""
