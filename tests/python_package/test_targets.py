"""What is written to besides files: binary file objects, and URLs that fsspec knows."""

import io
import os
import threading

import pytest

import weigh
from weigh import _weigh

numpy = pytest.importorskip("numpy")

ARRAYS = {"w": numpy.arange(1000, dtype="i4"), "empty": numpy.ones((0, 3)), "v": numpy.ones((3, 4), "f2")}


@pytest.fixture(autouse=True)
def sending(monkeypatch):
    if not hasattr(_weigh, "send"):
        # Built of what there is.
        def send(entries, write, metadata=None, *, layout="default", progress=None):
            content = _weigh.encode(entries, metadata, layout=layout)
            for start in range(0, len(content), 1 << 10):
                write(content[start : start + (1 << 10)])
            if progress is not None:
                progress(len(content), len(content))
            return len(content)

        monkeypatch.setattr(_weigh, "send", send, raising=False)


def content(**options):
    return weigh.to_bytes(ARRAYS, **options)


class Little(io.RawIOBase):
    """An unbuffered file that takes little at a time."""

    def __init__(self, most=7):
        self.taken, self.most = bytearray(), most

    def writable(self):
        return True

    def write(self, data):
        now = bytes(data[: self.most])
        self.taken += now
        return len(now)


class Mute:
    """No file of Python's, and it says nothing."""

    def __init__(self):
        self.taken = b""

    def write(self, data):
        self.taken += data


def test_a_file_object_gets_a_file(tmp_path):
    for options in ({}, {"metadata": {"a": "b"}}, {"layout": "reference"}):
        file = io.BytesIO()
        assert weigh.save(ARRAYS, file, **options) == []
        assert file.getvalue() == content(**options)
    # From where it stands.
    file = io.BytesIO(b"before")
    file.seek(6)
    weigh.save(ARRAYS, file)
    assert file.getvalue() == b"before" + content()
    for buffering in (-1, 0):
        with open(tmp_path / "x", "wb", buffering=buffering) as file:
            weigh.save(ARRAYS, file)
            assert not file.closed
        assert (tmp_path / "x").read_bytes() == content()


@pytest.mark.parametrize("make", [Little, lambda: Little(1 << 30), Mute])
def test_however_little_it_takes_at_a_time_it_gets_all(make):
    file = make()
    weigh.save(ARRAYS, file)
    assert file.taken == content()


def test_a_pipe_gets_a_file():
    first, second = os.pipe()
    read = []
    with open(first, "rb") as reading:
        thread = threading.Thread(target=lambda: read.append(reading.read()))
        thread.start()
        with open(second, "wb", buffering=0) as writing:
            weigh.save({"w": numpy.arange(1 << 18)}, writing)
        thread.join()
    assert read == [weigh.to_bytes({"w": numpy.arange(1 << 18)})]


class Answering(Mute):
    def __init__(self, answer):
        self.answer = answer

    def write(self, data):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(data)


class Blocking(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        return None


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (Answering(lambda data: 0), OSError),
        (Answering(lambda data: -1), OSError),
        (Answering(lambda data: len(data) + 1), OSError),
        (Answering(lambda data: "all"), TypeError),
        (Answering(ZeroDivisionError("own")), ZeroDivisionError),
        (Answering(OSError(28, "no room")), OSError),
        (Blocking(), BlockingIOError),
        (io.StringIO(), TypeError),
        (io.BufferedReader(io.BytesIO()), io.UnsupportedOperation),
    ],
    ids=["nothing", "less than nothing", "too much", "no number", "own", "full", "blocking", "text", "reading"],
)
def test_what_a_file_object_does_wrong_is_raised(file, kind):
    with pytest.raises(kind) as caught:
        weigh.save(ARRAYS, file)
    assert type(caught.value) is kind
    if isinstance(getattr(file, "answer", None), BaseException):
        assert caught.value is file.answer


def test_what_is_for_files_is_refused(arrays=ARRAYS):
    for target in (io.BytesIO(), "memory://folder/x"):
        pytest.importorskip("fsspec")
        with pytest.raises(ValueError, match="sharded"):
            weigh.save(arrays, target, max_shard_size="5GB")
    with pytest.raises(TypeError, match="background"):
        weigh.save_async(arrays, io.BytesIO())
    file = io.BytesIO()
    with pytest.raises(TypeError, match="^w: "):
        weigh.save({"w": None}, file)
    assert file.getvalue() == b""


def test_progress_is_told_of_what_is_sent():
    told = []
    weigh.save({"w": numpy.ones(1 << 20, "u1")}, io.BytesIO(), progress=lambda *pair: told.append(pair))
    assert told and told[-1][0] == told[-1][1] >= 1 << 20

    def stop(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        weigh.save({"w": numpy.ones(1 << 20, "u1")}, io.BytesIO(), progress=stop)


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.makedirs("/folder", exist_ok=True)
    yield memory
    memory.rm("/folder", recursive=True)


def test_a_url_gets_a_file(memory, tmp_path):
    import fsspec

    url = "memory://folder/x.safetensors"
    assert weigh.save(ARRAYS, url, metadata={"a": "b"}) == [url]
    assert memory.cat("/folder/x.safetensors") == content(metadata={"a": "b"})
    weigh.save(ARRAYS, fsspec.open(url, "wb"))
    assert memory.cat("/folder/x.safetensors") == content()
    with fsspec.open("memory://folder/y", "wb") as file:
        weigh.save(ARRAYS, file)
    assert memory.cat("/folder/y") == content()
    assert weigh.save_async(ARRAYS, "memory://folder/z").wait(60) == ["memory://folder/z"]
    assert memory.cat("/folder/z") == content()
    # Of this machine, it is a file like any other.
    for target in (f"file://{tmp_path}/x", fsspec.open(f"{tmp_path}/x", "wb")):
        assert weigh.save(ARRAYS, target) == [f"{tmp_path}/x"]
        assert (tmp_path / "x").read_bytes() == content() and os.listdir(tmp_path) == ["x"]
        os.unlink(tmp_path / "x")


def test_a_url_is_replaced_only_if_that_is_so(memory):
    memory.pipe("/folder/x", b"before")
    for save in (weigh.save, lambda *given, **options: weigh.save_async(*given, **options).wait(60)):
        with pytest.raises(FileExistsError) as caught:
            save(ARRAYS, "memory://folder/x", replace=False)
        assert caught.value.filename == "memory://folder/x"
        assert memory.cat("/folder/x") == b"before"
    weigh.save(ARRAYS, "memory://folder/y", replace=False)
    weigh.save(ARRAYS, "memory://folder/x")
    assert memory.cat("/folder/x") == memory.cat("/folder/y") == content()


def test_what_is_no_place_to_write_to_is_said(memory, monkeypatch):
    import sys

    import fsspec

    for options, said in (({}, "'rb'"), ({"mode": "ab"}, "'ab'"), ({"mode": "wb", "compression": "gzip"}, "compress")):
        with pytest.raises(ValueError, match=said):
            weigh.save(ARRAYS, fsspec.open("memory://folder/x", **options))
    with pytest.raises(ValueError, match="nothing-like-it"):
        weigh.save(ARRAYS, "nothing-like-it://x")
    with pytest.raises(TypeError, match="^w: "):
        weigh.save({"w": None}, "memory://folder/x")
    assert not memory.exists("/folder/x")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match="pip install fsspec"):
        weigh.save(ARRAYS, "memory://folder/x")


def aside(memory):
    """A file system that writes to the side, and puts the file in its place when it is told to."""
    import fsspec

    class Aside(type(memory)):
        protocol = "aside"
        cachable = False

        def _open(self, path, mode="rb", autocommit=True, **options):
            if mode != "wb":
                return super()._open(path, mode, **options)
            made = fsspec.implementations.memory.MemoryFile(self, self._strip_protocol(path))
            made.autocommit = autocommit
            return made

    return Aside()


@pytest.mark.parametrize("is_aside", [False, True])
@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("when", ["before", "midway", "progress"])
def test_what_fails_leaves_nothing_that_looks_whole(memory, monkeypatch, is_aside, was_there, when):
    from fsspec.core import OpenFile
    from fsspec.implementations.memory import MemoryFile

    fs = aside(memory) if is_aside else memory
    if was_there:
        memory.pipe("/folder/x", b"before")
    target = OpenFile(fs, "/folder/x", "wb")
    tensors, options = {"w": numpy.ones(1 << 16, "u1")}, {}
    if when == "before":
        tensors = {"__metadata__": numpy.ones(1)}
        kind = weigh.WeighError
    elif when == "midway":
        kind = ZeroDivisionError
        write = MemoryFile.write

        def fail(self, data):
            # Some of it is there already.
            write(self, data[:100])
            raise ZeroDivisionError

        monkeypatch.setattr(MemoryFile, "write", fail)
    else:
        kind = KeyboardInterrupt

        def stop(done, total):
            raise KeyboardInterrupt

        options = {"progress": stop}
    with pytest.raises(kind):
        weigh.save(tensors, target, **options)
    monkeypatch.undo()
    # What was there stays, if the file system can keep it so long.
    if was_there and (is_aside or when == "before"):
        assert memory.cat("/folder/x") == b"before"
    else:
        assert not memory.exists("/folder/x")
    assert list(getattr(fs.transaction, "files", [])) == []


def test_what_is_written_to_the_side_takes_its_name_at_the_end(memory):
    from fsspec.core import OpenFile

    fs = aside(memory)
    weigh.save(ARRAYS, OpenFile(fs, "/folder/x", "wb"))
    assert memory.cat("/folder/x") == content()
    assert list(getattr(fs.transaction, "files", [])) == []


def test_a_transaction_of_the_callers_decides(memory):
    memory.pipe("/folder/x", b"before")
    with memory.transaction:
        weigh.save(ARRAYS, "memory://folder/x")
        assert memory.cat("/folder/x") == b"before"
    assert memory.cat("/folder/x") == content()
    with memory.transaction:
        with pytest.raises(ZeroDivisionError):
            weigh.save(ARRAYS, "memory://folder/x", progress=lambda done, total: 1 / 0)
    assert memory.cat("/folder/x") == content()


def test_a_file_system_over_another_gets_a_file(memory):
    from fsspec.core import OpenFile
    from fsspec.implementations.dirfs import DirFileSystem

    weigh.save(ARRAYS, OpenFile(DirFileSystem("/folder", memory), "x", "wb"))
    weigh.save(ARRAYS, "simplecache::memory://folder/y")
    assert memory.cat("/folder/x") == memory.cat("/folder/y") == content()
    with pytest.raises(ZeroDivisionError):
        weigh.save(ARRAYS, "simplecache::memory://folder/z", progress=lambda done, total: 1 / 0)
    assert not memory.exists("/folder/z")
