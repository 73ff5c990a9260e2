"""Tensors that are loaded in the background, in the order of the file, and handed out as they come."""

from __future__ import annotations

import operator
import threading
import weakref

from weigh.safetensors._errors import made, translated
from weigh.safetensors._open import converter, device_of

#: Tensors are read in batches of about so many bytes, each into one allocation.
_BATCH = 32 << 20

_WAITING, _READY, _FAILED, _TAKEN = range(4)

#: What torch has no type for.
_UNKNOWN = ("F6_E2M3", "F6_E3M2")


def start(opened, plan, device, threads):
    """The loader of `safe_open.prefetch`."""
    checkpoint = opened._checkpoint()
    if opened._framework != "pytorch":
        raise made('prefetch is only compatible with framework="pt"', "framework")
    place = opened._device if device is None else device_of(device)
    threads = operator.index(threads)
    if threads < 0:
        raise OverflowError("can't convert negative int to unsigned")
    rows = None if plan is None else _rows(opened, plan)
    wants = []
    for name in opened.offset_keys():
        if rows is not None and name not in rows:
            continue
        meta = opened.get_tensor_meta(name)
        if meta.dtype in _UNKNOWN:
            raise made(f"prefetch cannot hand out dtype {meta.dtype}: torch has no matching dtype", "dtype")
        start, end = meta.data_offsets
        wants.append((name, None if rows is None else rows[name], end - start))
    if rows is not None and not wants:
        raise made("prefetch plan selects no tensors", "plan")
    return PrefetchLoader._of(checkpoint, wants, place, max(1, threads))


def _rows(opened, plan):
    """What of each tensor of a plan is loaded: an index, or ``None`` for all."""
    if not isinstance(plan, dict):
        raise TypeError(f"argument 'plan': '{type(plan).__name__}' object is not an instance of 'dict'")
    rows = {}
    for name, value in plan.items():
        if not isinstance(name, str):
            raise made("prefetch plan keys must be tensor names", "plan")
        meta = opened.get_tensor_meta(name)
        rows[name] = None if value is None else (_range(name, meta, value),)
    return rows


def _range(name, meta, value):
    if not isinstance(value, slice):
        raise made(f"prefetch plan values must be None or a slice, got {type(value)} for {name}", "plan")
    if not meta.shape:
        raise made(f"cannot slice rows of the 0-d tensor {name}", "plan")
    size = meta.shape[0]
    for what in ("start", "stop"):
        bound = getattr(value, what)
        if bound is None:
            continue
        try:
            place = operator.index(bound)
        except TypeError:
            raise made(f"prefetch plan slice bounds for {name} must be integers or None", "plan") from None
        if not -size <= place <= size:
            raise made(f"prefetch plan slice {what} {place} for {name} is out of range for {size} rows", "plan")
    try:
        first, stop, step = value.indices(size)
    except (TypeError, ValueError) as error:
        raise made(f"invalid prefetch plan slice for {name}: {error}", "plan") from None
    if step != 1:
        raise made(f"prefetch plan slices must have step 1, got {step} for {name}", "plan")
    begin, end = meta.data_offsets
    if size and (end - begin) % size:
        raise made(f"cannot slice rows of {name}: a row is not a whole number of bytes", "plan")
    return slice(first, max(first, stop), 1)


class PrefetchLoader:
    """Tensors of one file, loaded in the background. Each is handed out once, by `take` or by iterating."""

    __module__ = "weigh.safetensors"

    def __new__(cls, *args, **kwargs):
        raise TypeError("cannot create 'PrefetchLoader' instances: call safe_open.prefetch")

    @classmethod
    def _of(cls, checkpoint, wants, device, threads):
        loader = object.__new__(cls)
        loader._names = [name for name, _, _ in wants]
        loader._state = dict.fromkeys(loader._names, _WAITING)
        loader._values = {}
        loader._ready = []
        loader._is_closed = False
        loader._condition = threading.Condition()
        batches = _batches(wants)
        work = _Work(loader, checkpoint, batches, device)
        for _ in range(min(threads, len(batches))):
            # They hold the loader no longer than there is something to load.
            threading.Thread(target=work.run, name="weigh-prefetch", daemon=True).start()
        return loader

    def names(self):
        """The names, in the order of the file."""
        return list(self._names)

    def __len__(self):
        return len(self._names)

    def take(self, name):
        """One tensor, as soon as it is there.

        Raises:
            SafetensorError: it was handed out, is not in the plan, could not be read, or the loader was closed.
        """
        if name not in self._state:
            raise made(f"tensor {name} is not in the prefetch plan", "plan")
        with self._condition:
            while self._state[name] == _WAITING and not self._is_closed:
                self._condition.wait()
            return self._handed(name)

    def _handed(self, name):
        """A tensor that waits for nothing any more. The lock is held."""
        state = self._state[name]
        if state == _TAKEN:
            raise made(
                f"{name}: tensor already delivered (prefetch hands each tensor out once, via take or iteration)",
                "taken",
            )
        if self._is_closed:
            raise made(f"{name}: prefetch loader closed", "closed")
        if state == _FAILED:
            raise self._values[name]
        self._state[name] = _TAKEN
        return self._values.pop(name)

    def __iter__(self):
        """Pairs of names and tensors, as they come; those taken already are left out."""
        return _Stream(self)

    def _next(self):
        with self._condition:
            while True:
                while self._ready:
                    name = self._ready.pop(0)
                    if self._state[name] != _TAKEN:
                        return name, self._handed(name)
                if _WAITING not in self._state.values():
                    return None
                if self._is_closed:
                    raise made("prefetch loader closed", "closed")
                self._condition.wait()

    def _came(self, values, state):
        with self._condition:
            if self._is_closed:
                return
            for name, value in values.items():
                self._state[name] = state
                self._values[name] = value
                self._ready.append(name)
            self._condition.notify_all()

    def close(self):
        """Stops loading and lets go of what was not taken. Tensors that were handed out stay."""
        with self._condition:
            self._is_closed = True
            self._values.clear()
            self._ready.clear()
            self._condition.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, _exc_type, _exc_value, _traceback):
        self.close()


class _Stream:
    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        return self

    def __next__(self):
        pair = self._loader._next()
        if pair is None:
            raise StopIteration
        return pair


class _Work:
    """What the threads share. They know the loader weakly: one that nobody has is not worked for."""

    def __init__(self, loader, checkpoint, batches, device):
        self._loader = weakref.ref(loader)
        self._checkpoint = checkpoint
        self._batches = iter(batches)
        self._device = device
        self._convert = converter("pytorch")
        self._lock = threading.Lock()

    def run(self):
        while True:
            with self._lock:
                batch = next(self._batches, None)
            loader = self._loader()
            if batch is None or loader is None or loader._is_closed:
                return
            del loader
            values, state = self._loaded(batch)
            loader = self._loader()
            if loader is None:
                return
            loader._came(values, state)
            del loader, values

    def _loaded(self, batch):
        try:
            buffers = self._checkpoint.read(batch, overcommit=True)
            pairs = zip(batch, buffers, strict=True)
            return {name: self._convert(buffer, self._device) for (name, _), buffer in pairs}, _READY
        except BaseException as error:
            failure = translated(error)
            return {name: failure for name, _ in batch}, _FAILED


def _batches(wants):
    batches, bytes_in_last = [], _BATCH
    for name, index, length in wants:
        if bytes_in_last + length > _BATCH:
            batches.append([])
            bytes_in_last = 0
        batches[-1].append((name, index))
        bytes_in_last += length
    return batches
