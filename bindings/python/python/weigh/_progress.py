"""Progress, told to a callable or to a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: What is called with the bytes done and those in all, both integers.
Tell = Callable[[int, int], Any]


@contextmanager
def follow(progress: bool | Tell | None, what: str) -> Iterator[Tell | None]:
    """What native code is to call with the bytes done and those in all, or ``None``."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("a progress bar needs tqdm: pip install tqdm, or give a callable") from error
        with tqdm(desc=what, unit="B", unit_scale=True) as bar:

            def tell(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield tell
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress is True, False or a callable, not a {type(progress).__name__}")
