"""CUDA devices, by way of torch: reading and copying at the same time.

Tensors are streamed from the files into a small ring of pinned buffers, and copied from there to the device on a
stream of their own, while the next ones are read. A buffer is filled again only after its copies are done.

What a device has to do is in `Cuda`. `Loader` knows nothing else of it, so that one that is only pretended can stand
in for it where there is none.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch

from weigh._frameworks import _torch

#: Bytes of one pinned buffer.
STAGE = 32 << 20

#: How many of them there are.
STAGES = 4

#: Bytes that tensors take in memory on the way: what is read ahead.
BUDGET = 512 << 20

#: What small tensors in a pinned buffer begin at a multiple of, in bytes.
ALIGNMENT = 64


class Event(Protocol):
    """A place in the order of copies."""

    def synchronize(self) -> None:
        """Waits until all copies before it are done."""


class Device(Protocol):
    """What copies are made to."""

    def allocate(self, nbytes: int) -> Any:
        """So many bytes on the device, a ``uint8`` tensor of one dimension, whose content is anything."""

    def pin(self, nbytes: int) -> Any:
        """So many bytes of the host's memory that copies can be made from at any time, a ``uint8`` tensor."""

    def copy(self, destination: Any, source: Any) -> None:
        """Begins to copy from pinned memory to the device, after all copies that were begun before."""

    def event(self) -> Event:
        """The place in the order of copies after all that were begun so far."""

    def finish(self) -> None:
        """Waits until all copies are done, and everybody may use what they were made to."""


class Cuda:
    """A CUDA device."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def allocate(self, nbytes: int) -> Any:
        """Memory of the current stream, which may have had it before and not be done with it: copies wait for that."""
        made = torch.empty(nbytes, dtype=torch.uint8, device=self._device)
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        return made

    def pin(self, nbytes: int) -> Any:
        """Pinned memory, from torch's pool of it."""
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def copy(self, destination: Any, source: Any) -> None:
        """Begins to copy, on the stream."""
        with torch.cuda.stream(self._stream):
            destination.copy_(source, non_blocking=True)

    def event(self) -> Event:
        """An event on the stream."""
        event = torch.cuda.Event()
        event.record(self._stream)
        return event  # type: ignore[no-any-return]

    def finish(self) -> None:
        """Waits for the stream."""
        self._stream.synchronize()


class _Stage:
    """A pinned buffer: how much of it is filled, and what has to be over before it is filled again."""

    __slots__ = ("memory", "used", "event")

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.used = 0
        self.event: Event | None = None


class Loader:
    """Loads tensors onto a device.

    Args:
        device: a `Device`.
        stage: bytes of one pinned buffer.
        stages: how many there are; they are made as they are needed.
        budget: bytes that are read ahead.
    """

    def __init__(self, device: Device, *, stage: int = STAGE, stages: int = STAGES, budget: int = BUDGET) -> None:
        self._device = device
        self._size = stage
        self._count = stages
        self._budget = budget
        self._ring: list[_Stage] = []
        self._current = 0

    def load(
        self, native: Any, wants: list[tuple[str, Any]], *, floats: str | None = None, progress: Any = None
    ) -> dict[str, Any]:
        """The tensors that are wanted, each a name and an index or ``None``, by name, in that order.

        Raises:
            What `Checkpoint.load` raises, after the copies that were begun are over.
        """
        made: dict[str, Any] = dict.fromkeys(name for name, _ in wants)
        total, largest_slice = _sizes(native, wants, floats)
        self._size = max(1, min(self._size, total + ALIGNMENT * len(wants)))
        # A slice that is turned around is never in pieces.
        budget = max(self._budget, 2 * largest_slice)
        stream = native.stream(wants, budget=budget, floats=floats)
        tell = _Telling(progress, total)
        places: dict[str, Any] = {}
        try:
            for name, buffer, shape, (start, _), is_last in stream:
                place = places.get(name)
                if place is None:
                    try:
                        form = _torch.form(buffer.dtype, shape)
                    except (TypeError, ValueError) as error:
                        raise type(error)(f"{name}: {error}") from error
                    place = places[name] = _Place(form, self._allocate(form))
                if buffer.nbytes:
                    self._feed(place, torch.frombuffer(buffer, dtype=torch.uint8))
                if is_last:
                    made[name] = places.pop(name).tensor()
                tell.more(buffer.nbytes)
                # Held here, it would count while the next one is waited for.
                del buffer
            tell.end()
        finally:
            stream.close()
            # Not even after an error may memory go away that is being copied from or to.
            self._device.finish()
        return made

    def _allocate(self, form: tuple[Any, list[int]]) -> Any:
        dtype, sizes = form
        elements = 1
        for size in sizes:
            elements *= size
        return self._device.allocate(elements * dtype.itemsize)

    def _feed(self, place: _Place, source: Any) -> None:
        """Copies bytes to where those go that come next in the tensor."""
        taken, length = 0, source.numel()
        while taken < length:
            stage = self._stage()
            now = min(length - taken, self._size - stage.used)
            staged = stage.memory[stage.used : stage.used + now]
            staged.copy_(source[taken : taken + now])
            self._device.copy(place.memory[place.filled : place.filled + now], staged)
            place.filled += now
            taken += now
            stage.used += -(-now // ALIGNMENT) * ALIGNMENT
            if stage.used >= self._size:
                stage.event = self._device.event()
                self._current = (self._current + 1) % self._count

    def _stage(self) -> _Stage:
        """The buffer that is filled now, with some room."""
        if self._current == len(self._ring):
            self._ring.append(_Stage(self._device.pin(self._size)))
        stage = self._ring[self._current]
        if stage.event is not None:
            stage.event.synchronize()
            stage.event, stage.used = None, 0
        return stage


class _Place:
    """Where a tensor is on the device, and how much of it is there."""

    __slots__ = ("form", "memory", "filled")

    def __init__(self, form: tuple[Any, list[int]], memory: Any) -> None:
        self.form = form
        self.memory = memory
        self.filled = 0

    def tensor(self) -> Any:
        dtype, sizes = self.form
        return self.memory.view(dtype).reshape(sizes)


class _Telling:
    """Progress: the bytes that are there, told 20 times a second and at the end."""

    def __init__(self, progress: Any, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._told = time.monotonic()

    def more(self, nbytes: int) -> None:
        # Bytes of a dtype that they were converted to may be more than those of the file.
        self._done = min(self._done + nbytes, self._total)
        now = time.monotonic()
        if self._progress is not None and now - self._told >= 0.05:
            self._told = now
            self._progress(self._done, self._total)

    def end(self) -> None:
        if self._progress is not None:
            self._progress(self._total, self._total)


#: Bytes of the floats that there are conversions to.
_FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def _sizes(native: Any, wants: list[tuple[str, Any]], floats: str | None) -> tuple[int, int]:
    """Bytes of all that is wanted, as in the files; and those that the largest slice has at most in memory."""
    total, largest = 0, 0
    for name, index in wants:
        tensor = native.tensor(name)
        if index is not None:
            tensor = tensor[index]
            largest = max(largest, tensor.nbytes, tensor.size * _FLOATS.get(floats or "", 0))
        total += tensor.nbytes
    return total, largest
