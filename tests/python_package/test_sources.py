"""What is opened: paths of every kind, file objects, content in memory, URLs."""

import array
import contextlib
import gc
import io
import mmap
import os
import pathlib
import tempfile
import threading
import time

import pytest

import weigh

CONTENT = {"w": ("U8", (4,), b"abcd"), "v": ("U8", (2, 2), b"efgh")}


@pytest.fixture
def path(write):
    return write(CONTENT)


def read(given):
    checkpoint = weigh.open(given)
    assert checkpoint["w"][1:3].tobytes() == b"bc"
    return {name: tensor.tobytes() for name, tensor in checkpoint.items()}


WANT = {"v": b"efgh", "w": b"abcd"}


class Silent(io.BytesIO):
    """A file object that does not say where it is when it is moved, as ``mmap`` did not."""

    def seek(self, *given):
        super().seek(*given)


class Like:
    """Some other library's paths."""

    def __init__(self, path):
        self.path_of_it = path

    def __fspath__(self):
        return self.path_of_it


def mapped(path):
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def test_mapped_content_is_looked_at_where_it_is(path):
    file = mapped(path)
    file.seek(5)
    checkpoint = weigh.open(file)
    with pytest.raises(BufferError):
        file.close()
    assert checkpoint["w"].tobytes() == b"abcd" and file.tell() == 5
    del checkpoint
    file.close()
    with pytest.raises(ValueError):
        weigh.open(file)


@pytest.mark.parametrize(
    "kind",
    [
        str,
        os.fsencode,
        pathlib.Path,
        lambda path: Like(str(path)),
        lambda path: Like(os.fsencode(path)),
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: open(path, "rb"),
        lambda path: open(path, "rb", buffering=0),
        lambda path: open(path, "r+b"),
        lambda path: Silent(path.read_bytes()),
        lambda path: array.array("B", path.read_bytes()),
        lambda path: mapped(path),
    ],
    ids="str bytes pathlib like-str like-bytes bytearray memoryview BytesIO file raw r+b silent array mmap".split(),
)
def test_every_kind_of_source_is_opened(path, kind):
    given = kind(path)
    assert read(given) == WANT
    assert [finding for finding in weigh.check(given) if finding.severity == "error"] == []
    assert {name: tensor.tobytes() for name, tensor in weigh.open(given, strict=True).items()} == WANT
    # Nothing looks at it any more.
    gc.collect()
    if hasattr(given, "close"):
        given.close()


def test_other_file_objects_are_opened(path):
    with tempfile.SpooledTemporaryFile() as file:
        file.write(path.read_bytes())
        assert read(file) == WANT
    import zipfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writing:
        writing.write(path, "inner", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(archive).open("inner") as file:
        assert read(file) == WANT


def test_the_position_of_a_file_object_is_left_alone(path):
    with open(path, "rb") as file:
        file.seek(3)
        read(file)
        assert file.tell() == 3


def test_content_in_memory_may_not_be_resized_while_it_is_read(path):
    content = bytearray(path.read_bytes())
    checkpoint = weigh.open(content)
    with pytest.raises(BufferError):
        content.append(0)
    del checkpoint
    content.append(0)
    with pytest.raises((BufferError, ValueError)):
        weigh.open(memoryview(bytes(40))[::2])


def test_what_is_no_source_is_said(path):
    for given in (3, None, object(), [str(path)], io.StringIO("x")):
        with pytest.raises(TypeError):
            weigh.open(given)
    with open(path) as file, pytest.raises(TypeError, match="binary"):
        weigh.open(file)
    with pytest.raises(OSError, match="seek"):
        first, second = os.pipe()
        os.close(second)
        with open(first, "rb") as file:
            weigh.open(file)


class Faulty(io.BytesIO):
    """A file object that fails once it is told to."""

    fault = None

    def read(self, *given):
        if self.fault is not None:
            raise self.fault
        return super().read(*given)


@pytest.mark.parametrize("fault", [ZeroDivisionError("an own error"), OSError(5, "a cable"), KeyError("x")])
def test_what_an_object_raises_is_raised(path, fault):
    file = Faulty(path.read_bytes())
    checkpoint = weigh.open(file)
    file.fault = fault
    for call in (
        lambda: checkpoint["w"].tobytes(),
        lambda: checkpoint.load(framework="numpy"),
        lambda: list(checkpoint.stream()),
        lambda: weigh.open(file),
        lambda: weigh.check(file),
    ):
        with pytest.raises(type(fault)) as caught:
            call()
        assert caught.value is fault
    file.fault = None
    assert checkpoint["w"].tobytes() == b"abcd"


class Wrong(io.BytesIO):
    answer = None

    def read(self, count=-1):
        return super().read(count) if self.answer is None else self.answer(super().read(count))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda right: right[:1], None),
        (lambda right: right + b"more than was asked for", OSError),
        (lambda right: bytearray(right), None),
        (lambda right: memoryview(right), None),
        (lambda right: b"", OSError),
        (lambda right: array.array("b", right), None),
        (lambda right: None, TypeError),
        (lambda right: "text", TypeError),
        (lambda right: list(right), TypeError),
    ],
    ids=["short", "long", "bytearray", "memoryview", "nothing", "signed", "None", "text", "list"],
)
def test_what_an_object_answers_is_not_trusted(path, answer, kind):
    file = Wrong(path.read_bytes())
    checkpoint = weigh.open(file)
    file.answer = answer
    if kind is None:
        assert checkpoint["w"].tobytes() == b"abcd"
    else:
        for call in (lambda: checkpoint["w"].tobytes(), lambda: weigh.open(file), lambda: weigh.check(file)):
            with pytest.raises(kind) as caught:
                call()
            assert type(caught.value) is kind and "<file>" in str(caught.value)


class Own(io.BytesIO):
    """A file object that uses a checkpoint of itself while it is read."""

    use = None

    def read(self, *given):
        use, self.use = self.use, None
        if use is not None:
            use()
        return super().read(*given)


@pytest.mark.parametrize("how", ["load", "stream", "tensor", "old tensor"])
def test_a_file_object_that_waits_for_itself_is_an_error(path, how):
    pytest.importorskip("numpy")
    file = Own(path.read_bytes())
    checkpoint = weigh.open(file)
    # Made before, it is a way around the checkpoint.
    tensor = checkpoint["w"]
    file.use = {
        "load": lambda: checkpoint.load(),
        "stream": lambda: list(checkpoint.stream()),
        "tensor": lambda: checkpoint["w"].tobytes(),
        "old tensor": lambda: tensor.tobytes(),
    }[how]
    with pytest.raises(RuntimeError, match="its own checkpoint"):
        checkpoint.load()
    # It is of use again.
    assert checkpoint["w"].tobytes() == b"abcd"
    # Another checkpoint is no matter.
    other = weigh.open(path)
    file.use = lambda: other.load()
    assert checkpoint.load()["w"].tobytes() == b"abcd"


def test_a_stream_that_its_own_reading_waits_for_is_an_error(path):
    pytest.importorskip("numpy")
    file = Own(path.read_bytes())
    checkpoint = weigh.open(file)
    streams, is_made = [], threading.Event()

    def use():
        assert is_made.wait(30)
        next(streams[0])

    file.use = use
    streams.append(checkpoint.stream())
    is_made.set()
    with pytest.raises(RuntimeError, match="its own checkpoint"):
        list(streams[0])


class Jumping(io.BytesIO):
    """A file object that is slow to move, so that others may move it too."""

    def seek(self, *given):
        place = super().seek(*given)
        time.sleep(0.0005)
        return place


def test_checkpoints_of_one_file_object_take_turns(write):
    tensors = {f"t{number}": ("U8", (100,), bytes([number]) * 100) for number in range(40)}
    file = Jumping(write(tensors).read_bytes())
    wrong = []

    def use():
        checkpoint = weigh.open(file)
        wrong.extend(name for name, (*_, content) in tensors.items() if checkpoint[name].tobytes() != content)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, file.tell()) == ([], 0)


class Ending(io.BytesIO):
    """A file object that says at some read that there is no more, in a way that loops take for their end."""

    reads = 0

    def read(self, *given):
        self.reads += 1
        if self.reads > 4:
            raise StopIteration
        return super().read(*given)


def test_a_stream_does_not_end_because_a_source_says_so(write):
    pytest.importorskip("numpy")
    content = write({f"t{number}": ("U8", (1 << 20,), bytes(1 << 20)) for number in range(8)}).read_bytes()
    checkpoint = weigh.open(Ending(content))
    with pytest.raises(RuntimeError) as caught:
        for _ in checkpoint.stream(budget=2 << 20):
            pass
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_stream_may_be_ended_by_its_own_reading(write, how):
    pytest.importorskip("numpy")
    file = Own(write({f"t{number}": ("U8", (1 << 20,), bytes(1 << 20)) for number in range(8)}).read_bytes())
    checkpoint = weigh.open(file)
    streams = [checkpoint.stream(budget=2 << 20)]
    next(streams[0])
    is_ended = threading.Event()

    def end():
        if how == "close":
            streams[0].close()
        else:
            streams.clear()
        is_ended.set()

    file.use = end
    # What was being read when it was closed may say so.
    with contextlib.suppress(weigh.CancelledError):
        next(streams[0], None)
    assert is_ended.wait(30)
    del streams
    assert checkpoint["t7"].tobytes() == bytes(1 << 20)


def test_a_file_that_is_replaced_at_a_url_is_an_error(path, write):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    other = write({"w": ("U8", (4,), b"ABCD"), "v": ("U8", (2, 2), b"EFGH")}, name="other.safetensors").read_bytes()
    memory.pipe("/folder/y.safetensors", path.read_bytes())
    try:
        checkpoint = weigh.open("memory://folder/y.safetensors")
        assert checkpoint["w"].tobytes() == b"abcd"
        memory.pipe("/folder/y.safetensors", other)
        with pytest.raises(OSError, match="replaced"):
            checkpoint["w"].tobytes()
    finally:
        memory.rm("/folder", recursive=True)


def test_content_given_as_a_path_is_said_shortly(path):
    for content in (path.read_bytes(), b"x" * 100_000):
        for call in (weigh.open, weigh.check, lambda given: weigh.save({}, given)):
            with pytest.raises(ValueError, match="memoryview") as caught:
                call(content)
            assert len(str(caught.value)) < 200


def test_an_array_of_objects_is_no_content():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="objects"):
        weigh.open(numpy.array([object()]))


def test_urls_of_fsspec_are_opened(path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/folder/x.safetensors", path.read_bytes())
    try:
        url = "memory://folder/x.safetensors"
        for given in (url, fsspec.open(url), f"file://{path}", fsspec.open(str(path))):
            assert read(given) == WANT
            assert [finding for finding in weigh.check(given) if finding.severity == "error"] == []
        assert weigh.open("memory://folder/x.safetensors").path == "memory://folder/x.safetensors"
        with memory.open("/folder/x.safetensors") as file:
            assert read(file) == WANT
        for missing in ("memory://none", f"file://{path}.none"):
            with pytest.raises(FileNotFoundError):
                weigh.open(missing)
            with pytest.raises(FileNotFoundError):
                weigh.check(missing)
        with pytest.raises(IsADirectoryError):
            weigh.open("memory://folder")
        with pytest.raises(ValueError, match="nothing-like-it"):
            weigh.open("nothing-like-it://x")
        with pytest.raises(ValueError, match="compressed"):
            weigh.open(fsspec.open("memory://folder/x.safetensors", compression="gzip"))
    finally:
        memory.rm("/folder", recursive=True)


def test_without_fsspec_a_url_says_what_is_missing(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match="pip install fsspec"):
        weigh.open("memory://x")


class Universal(pathlib.PurePosixPath):
    """A path of a file system that fsspec knows, as universal_pathlib has them; those of this machine are paths too."""

    def on(self, fs):
        self.fs = fs
        return self

    @property
    def path(self):
        return str(self)

    def __fspath__(self):
        if "file" not in self.fs.protocol:
            raise TypeError("not a path of this machine")
        return str(self)


def test_universal_paths_are_opened(path, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    local, memory = fsspec.filesystem("file"), fsspec.filesystem("memory")
    memory.pipe("/folder/x.safetensors", path.read_bytes())
    try:
        for given in (Universal(path).on(local), Universal("/folder/x.safetensors").on(memory)):
            assert read(given) == WANT
            assert [finding for finding in weigh.check(given) if finding.severity == "error"] == []
        # What is on this machine is read as a file is, and may be a folder.
        assert weigh.open(Universal(path).on(local)).files == [str(path)]
        assert weigh.open(fsspec.open(str(path))).files == [str(path)]
        assert read(Universal(tmp_path).on(local)) == WANT
    finally:
        memory.rm("/folder", recursive=True)


def test_paths_of_universal_pathlib_are_opened(path):
    upath = pytest.importorskip("upath")
    memory = upath.UPath("memory://folder/x.safetensors")
    memory.write_bytes(path.read_bytes())
    try:
        for given in (upath.UPath(path), upath.UPath(f"file://{path}"), memory):
            assert read(given) == WANT
    finally:
        memory.unlink()
