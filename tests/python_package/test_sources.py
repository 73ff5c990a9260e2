"""What is opened: paths of every kind, file objects, content in memory, URLs."""

import io
import os
import pathlib
import tempfile

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


class Like:
    """Some other library's paths."""

    def __init__(self, path):
        self.path_of_it = path

    def __fspath__(self):
        return self.path_of_it


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
    ],
    ids="str bytes pathlib like-str like-bytes bytearray memoryview BytesIO file raw r+b".split(),
)
def test_every_kind_of_source_is_opened(path, kind):
    given = kind(path)
    assert read(given) == WANT
    assert [finding for finding in weigh.check(given) if finding.severity == "error"] == []
    assert {name: tensor.tobytes() for name, tensor in weigh.open(given, strict=True).items()} == WANT
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
        (lambda right: right + b"more than was asked for", None),
        (lambda right: bytearray(right), None),
        (lambda right: memoryview(right), None),
        (lambda right: b"", OSError),
        (lambda right: None, Exception),
        (lambda right: "text", Exception),
    ],
    ids=["short", "long", "bytearray", "memoryview", "nothing", "None", "text"],
)
def test_what_an_object_answers_is_not_trusted(path, answer, kind):
    file = Wrong(path.read_bytes())
    checkpoint = weigh.open(file)
    file.answer = answer
    if kind is None:
        assert checkpoint["w"].tobytes() == b"abcd"
    else:
        with pytest.raises(kind):
            checkpoint["w"].tobytes()


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
