"""The names, arguments and arguments' errors of `weigh.safetensors` are those of the original."""

import errno
import importlib
import importlib.util
import inspect
import os
import pickle
import subprocess
import sys

import pytest

from drop_in_files import content_of, file_of_tensors, outcome
from weigh import safetensors as ours

#: Each module, and what has to be there for it.
MODULES = {
    "": None,
    "_safetensors_rust": None,
    "numpy": "numpy",
    "torch": "torch",
    "flax": "jax",
    "mlx": "mlx",
    "tensorflow": "tensorflow",
    "paddle": "paddle",
}

#: What is no part of the interface: modules that are imported, names of typing.
PASSED_ON = {"os", "sys", "np", "jnp", "mx", "tf", "Any", "Dict", "List", "Optional", "Set", "Tuple", "Union", "Array"}

#: What only big-endian machines and torch 1 needed.
LEFT_OUT = {"defaultdict", "_to_ndarray", "_view2paddle"}

COMPARED = """
import importlib, inspect, sys
suffix, passed_on = sys.argv[1], set(sys.argv[2].split(","))
theirs = importlib.import_module("safetensors" + suffix)
ours = importlib.import_module("weigh.safetensors" + suffix)
for name, value in vars(theirs).items():
    if name.startswith("__") and name != "__version__" or name in passed_on or inspect.ismodule(value):
        continue
    if not hasattr(ours, name):
        print("missing", name)
    elif inspect.isfunction(value) or inspect.isclass(value) or inspect.isbuiltin(value):
        try:
            expected = inspect.signature(value)
        except ValueError:
            continue
        got = inspect.signature(getattr(ours, name))
        for (_, one), (_, other) in zip(expected.parameters.items(), got.parameters.items(), strict=True):
            default = one.default if one.default is not Ellipsis else other.default
            if (one.name, one.kind, default) != (other.name, other.kind, other.default):
                print(name, one, other)
"""


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_is_there_with_its_signature(module):
    pytest.importorskip("safetensors", minversion="0.8")
    needed = MODULES[module]
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    suffix = f".{module}" if module else ""
    command = [sys.executable, "-c", COMPARED, suffix, ",".join(PASSED_ON | LEFT_OUT)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("", 0), ended.stderr


def test_the_classes_have_the_methods_of_the_original_with_their_signatures():
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    for name in ("safe_open", "_safe_open_handle", "TensorSpec"):
        original, own = getattr(theirs, name), getattr(ours, name)
        for method in (method for method in dir(original) if not method.startswith("__")):
            if not callable(getattr(original, method)):
                assert hasattr(own, method), (name, method)
                continue
            assert inspect.signature(getattr(own, method)) == inspect.signature(getattr(original, method)), method


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {"a": ("F32", [2, 3], content_of("F32", 6)), "z": ("F32", [0], b"")}
    path.write_bytes(file_of_tensors(tensors, {"k": "v"}))
    return path


def test_keys_metadata_and_header_entries(path):
    with ours.safe_open(path, "np") as file:
        assert file.keys() == ["a", "z"]
        assert type(file.keys()) is list
        assert file.offset_keys() == ["a", "z"]
        assert file.metadata() == {"k": "v"}
        meta = file.get_tensor_meta("a")
        assert (meta.dtype, meta.shape, meta.data_offsets) == ("F32", [2, 3], (0, 24))
        assert repr(meta) == "TensorMeta(dtype='F32', shape=[2, 3], data_offsets=(0, 24))"
        part = file.get_slice("a")
        assert (part.get_shape(), part.get_dtype()) == ([2, 3], "F32")


@pytest.mark.parametrize(("metadata", "read"), [(None, None), ({}, {}), ({"b": "2", "a": "é"}, {"b": "2", "a": "é"})])
def test_no_metadata_is_told_from_empty_metadata(metadata, read, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of_tensors({"a": ("U8", [1], b"a")}, metadata))
    assert ours.safe_open(path, "np").metadata() == read
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    assert theirs.safe_open(path, "np").metadata() == read


def test_offset_keys_are_in_the_order_of_the_bytes_and_keys_are_sorted(tmp_path):
    path = tmp_path / "model.safetensors"
    names = ["b", "a.10", "a.2", "é", "Z"]
    path.write_bytes(file_of_tensors({name: ("U8", [1], b"a") for name in names}))
    file = ours.safe_open(path, "np")
    assert file.offset_keys() == names
    assert file.keys() == ["Z", "a.10", "a.2", "b", "é"]
    assert list(file.get_tensors()) == names


def test_a_closed_file_raises_and_what_was_made_of_it_stays(path):
    with ours.safe_open(path, "np") as file:
        part, tensor = file.get_slice("a"), file.get_tensor("a")
    for call in (file.keys, file.offset_keys, file.metadata, file.get_tensors, lambda: file.get_tensor("a")):
        with pytest.raises(ours.SafetensorError, match="^File is closed$"):
            call()
    assert part[0].tolist() == tensor[0].tolist()


#: Calls that are refused, as functions of a module and a path.
REFUSED = {
    "a framework that there is not": lambda it, path: it.safe_open(path, "nope"),
    "a framework that is no name": lambda it, path: it.safe_open(path, 3),
    "a device that there is not": lambda it, path: it.safe_open(path, "pt", "meta"),
    "a device that is no name": lambda it, path: it.safe_open(path, "pt", 1.5),
    "a negative device": lambda it, path: it.safe_open(path, "pt", -1),
    "a device with two numbers": lambda it, path: it.safe_open(path, "pt", "cuda:1:2"),
    "a device with a name for its number": lambda it, path: it.safe_open(path, "pt", "cuda:x"),
    "mps 1": lambda it, path: it.safe_open(path, "pt", "mps:1"),
    "a device for numpy": lambda it, path: it.safe_open(path, "np", "cuda"),
    "a numbered device for jax": lambda it, path: it.safe_open(path, "jax", 0),
    "a backend that there is not": lambda it, path: it.safe_open(path, "np", backend="x"),
    "a backend that is no name": lambda it, path: it.safe_open(path, "np", backend=3),
    "a path that is none": lambda it, path: it.safe_open(3, "np"),
    "a path of bytes": lambda it, path: it.safe_open(bytes(path), "np"),
    "no framework": lambda it, path: it.safe_open(path),
    "an argument that there is not": lambda it, path: it.safe_open(path, "np", nope=1),
    "no file": lambda it, path: it.safe_open("nope.safetensors", "np"),
    "no tensor": lambda it, path: it.safe_open(path, "np").get_tensor("nope"),
    "no tensor to slice": lambda it, path: it.safe_open(path, "np").get_slice("nope"),
    "an attribute that there is not": lambda it, path: it.safe_open(path, "np").nope,
    "a framework that is no text": lambda it, path: it.safe_open(path, "\ud800"),
    "a backend that is no text": lambda it, path: it.safe_open(path, "np", backend="\ud800"),
    "a name of a tensor that is no text": lambda it, path: it.safe_open(path, "np").get_tensor("\ud800"),
    "a dtype that is no text": lambda it, path: it.TensorSpec(dtype="\ud800", shape=[1], data_ptr=1, data_len=1),
    "metadata with a key that is no text": lambda it, path: it.serialize({"a": spec(it)}, {"\ud800": "v"}),
    "metadata with a value that is no text": lambda it, path: it.serialize({"a": spec(it)}, {"k": "\ud800"}),
    "metadata of a file that is no text": lambda it, path: it.serialize_file({}, path, {"k": "\ud800"}),
    "a name to write that is no text": lambda it, path: it.serialize({"\ud800": spec(it)}),
    "a path that is no text": lambda it, path: it.safe_open("\ud800", "np"),
    "a path to write that is no text": lambda it, path: it.serialize_file({}, "\ud800"),
    "an empty path": lambda it, path: it.safe_open("", "np"),
    "a path with a NUL": lambda it, path: it.safe_open("a\0b", "np"),
    "a path that is too long": lambda it, path: it.safe_open("x" * 300, "np"),
    "a path through a file": lambda it, path: it.safe_open(f"{path}/x", "np"),
    "a link to itself": lambda it, path: it.safe_open(link(path), "np"),
    "a link to nothing": lambda it, path: it.safe_open(link(path, "nothing"), "np"),
    "a path to write that is too long": lambda it, path: it.serialize_file({}, "x" * 300),
    "more dimensions than numpy has": lambda it, path: it.safe_open(deep(path, 65), "np").get_tensor("a"),
    "more dimensions than numpy has, of all": lambda it, path: it.safe_open(deep(path, 65), "np").get_tensors(),
    "more dimensions than numpy has, of a part": lambda it, path: it.safe_open(deep(path, 66), "np").get_slice("a")[0],
    "a handle without a name": lambda it, path: it._safe_open_handle(3, "np"),
    "a dtype that there is not": lambda it, path: it.TensorSpec(dtype="F32", shape=[1], data_ptr=1, data_len=4),
    "a dtype that is no name": lambda it, path: it.TensorSpec(dtype=3, shape=[1], data_ptr=1, data_len=4),
    "a negative dimension": lambda it, path: it.TensorSpec(dtype="int8", shape=[-1], data_ptr=1, data_len=4),
    "a dimension that is no number": lambda it, path: it.TensorSpec(dtype="int8", shape=["1"], data_ptr=1, data_len=4),
    "an address that is no number": lambda it, path: it.TensorSpec(dtype="int8", shape=[1], data_ptr="1", data_len=1),
    "a negative length": lambda it, path: it.TensorSpec(dtype="int8", shape=[1], data_ptr=1, data_len=-1),
    "a tensor as an argument by place": lambda it, path: it.TensorSpec("int8", [1], 1, 1),
    "no dict of tensors": lambda it, path: it.serialize([]),
    "a tensor that is a dict": lambda it, path: it.serialize({"a": {"dtype": "int8", "shape": [1], "data": b"1"}}),
    "a name that is a number": lambda it, path: it.serialize({1: spec(it)}),
    "metadata that is a list": lambda it, path: it.serialize({"a": spec(it)}, []),
    "metadata with a number": lambda it, path: it.serialize({"a": spec(it)}, {"k": 1}),
    "a size that does not fit": lambda it, path: it.serialize({"a": spec(it, data_len=3)}),
    "a size that does not fit a file": lambda it, path: it.serialize_file({"a": spec(it, data_len=3)}, path),
    "a shape that overflows": lambda it, path: it.serialize({"a": spec(it, shape=[2**40, 2**40])}),
    "a folder that there is not": lambda it, path: it.serialize_file({"a": spec(it)}, path.parent / "no" / "folder"),
    "a folder to write": lambda it, path: it.serialize_file({"a": spec(it)}, path.parent),
    "content that is a string": lambda it, path: it.deserialize("abc"),
    "content that is a bytearray": lambda it, path: it.deserialize(bytearray(10)),
}

MEMORY = bytearray(4)


def link(path, target=None):
    """A symbolic link to what is not there: by default to itself."""
    made = path.parent / f"link to {target}"
    if not made.is_symlink():
        made.symlink_to(target or made.name)
    return made


def deep(path, dimensions):
    """A file of one tensor of so many dimensions."""
    path.write_bytes(file_of_tensors({"a": ("F32", [1] * dimensions, bytes(4))}))
    return path


def spec(module, **changed):
    import ctypes

    address = ctypes.addressof((ctypes.c_char * 4).from_buffer(MEMORY))
    return module.TensorSpec(**({"dtype": "float32", "shape": [1], "data_ptr": address, "data_len": 4} | changed))


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_original_refuses_is_refused_with_its_exception_and_its_words(what, path):
    pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    (_, original), (_, own) = (outcome(REFUSED[what], module, path) for module in (theirs, ours))
    assert original is not None
    if type(original) is theirs.SafetensorError:
        assert isinstance(own, ours.SafetensorError), own
        # A path of a temporary file ends the words for what the system reports.
        words = str(original).partition(" at path ")[0]
        assert str(own).startswith(words), (own, original)
    else:
        assert type(own) is type(original), own
        if what not in WORDED_OTHERWISE:
            assert str(own) == str(original)


#: Of these Python's own words are not the same for the two.
WORDED_OTHERWISE = {"an attribute that there is not", "a tensor as an argument by place"}


def test_as_many_dimensions_as_numpy_has_are_read(path):
    pytest.importorskip("numpy")
    for call in (lambda it: it.get_tensor("a"), lambda it: it.get_slice("a")[...], lambda it: it.get_tensors()["a"]):
        assert call(ours.safe_open(deep(path, 64), "np")).shape == (1,) * 64


#: What is missing: the framework that a file is opened for, the module that is not there, the dtype that is read, and
#: the first of the steps below that fails, with its exception.
MISSING = [
    ("np", "numpy", "F32", "open", "ModuleNotFoundError"),
    ("np", "ml_dtypes", "BF16", "get_tensor", "TypeError"),
    ("np", "ml_dtypes", "F32", None, None),
    ("pt", "torch", "F32", "open", "ModuleNotFoundError"),
    ("paddle", "paddle", "F32", "open", "ModuleNotFoundError"),
    ("flax", "jax", "F32", "get_tensor", "ModuleNotFoundError"),
    ("flax", "numpy", "F32", "open", "ModuleNotFoundError"),
    ("mlx", "mlx", "F32", "get_tensor", "ModuleNotFoundError"),
    ("mlx", "numpy", "F32", "open", "ModuleNotFoundError"),
    ("tf", "tensorflow", "F32", "get_tensor", "ModuleNotFoundError"),
    ("tf", "numpy", "F32", "open", "ModuleNotFoundError"),
]

STEPS = """
import importlib, json, struct, sys
folder, framework, module, dtype = sys.argv[1:]
sys.modules[module] = None
size = {"F32": 4, "BF16": 2}[dtype]
for name, header in ("sound", {"a": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}), ("unsound", []):
    text = json.dumps(header).encode()
    with open(f"{folder}/{name}", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(size))
for package in ("safetensors", "weigh.safetensors"):
    opened = []
    def open_it(name="sound"):
        opened.append(importlib.import_module(package).safe_open(f"{folder}/{name}", framework))
    for step in (
        lambda: open_it("nothing"), lambda: open_it("unsound"), open_it, lambda: opened[0].keys(),
        lambda: opened[0].get_tensor("b"), lambda: opened[0].get_slice("a"), lambda: opened[0].get_tensor("a"),
        lambda: opened[0].get_slice("a")[:1], lambda: opened[0].get_tensors(),
    ):
        try:
            step()
            print("done", end=" ")
        except IndexError:
            print("not opened", end=" ")
        except Exception as error:
            print(type(error).__name__, end=" ")
    print()
"""


@pytest.mark.parametrize(("framework", "module", "dtype", "step", "kind"), MISSING)
def test_a_framework_that_is_missing_is_missed_when_the_original_misses_it(
    framework, module, dtype, step, kind, tmp_path
):
    pytest.importorskip("safetensors", minversion="0.8")
    command = [sys.executable, "-c", STEPS, tmp_path, framework, module, dtype]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    expected = ["FileNotFoundError", "SafetensorError"]
    if step == "open":
        expected += [kind, *["not opened"] * 6]
    else:
        expected += ["done", "done", "SafetensorError", "done", *[kind or "done"] * 3]
    lines = [" ".join(expected) + " "] * 2
    assert (ended.stdout.splitlines(), ended.returncode) == (lines, 0), ended.stderr


def test_what_the_system_reports_while_opening_is_of_its_kind(path, tmp_path):
    for given, number in [("nope", errno.ENOENT), (link(path), errno.ELOOP), ("x" * 300, errno.ENAMETOOLONG)]:
        with pytest.raises(FileNotFoundError) as raised:
            ours.safe_open(given, "np")
        assert str(raised.value) == f"No such file or directory: {given}"
        assert raised.value.errno == number
    with pytest.raises(IsADirectoryError):
        ours.safe_open(tmp_path, "np")


#: Run as nobody, by root, who may read everything.
FORBIDDEN = """
import importlib, os, sys
from weigh import safetensors as ours
os.seteuid(65534)
for package in ["weigh.safetensors", *sys.argv[2:]]:
    try:
        importlib.import_module(package).safe_open(sys.argv[1], "np")
    except OSError as error:
        print(isinstance(error, FileNotFoundError), isinstance(error, PermissionError), sep=",")
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else")
def test_a_file_that_may_not_be_read_is_what_it_is_and_what_the_original_says(path):
    path.chmod(0)
    original = ["safetensors"] if importlib.util.find_spec("safetensors") else []
    command = [sys.executable, "-c", FORBIDDEN, str(path), *original]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines() == ["True,True", *["True,False"] * len(original)], ended.stderr


def test_what_the_system_reports_while_writing_is_both_exceptions(path):
    for target, kind, number in [
        (path.parent / "no" / "file", FileNotFoundError, errno.ENOENT),
        (path.parent, IsADirectoryError, errno.EISDIR),
    ]:
        with pytest.raises(kind) as raised:
            ours.serialize_file({"a": spec(ours)}, target)
        assert isinstance(raised.value, ours.SafetensorError)
        assert (raised.value.errno, raised.value.filename) == (number, str(target))
        again = pickle.loads(pickle.dumps(raised.value))
        assert (type(again), str(again)) == (type(raised.value), str(raised.value))


def test_a_file_is_opened_by_a_handle_to_it(path):
    with open(path, "rb") as handle, ours._safe_open_handle(handle, "np") as file:
        assert file.get_tensor("a").shape == (2, 3)
        assert isinstance(file, ours._safe_open_handle)


@pytest.mark.parametrize(
    ("dtype", "shape", "name", "elements"),
    [
        ("float32", (2, 3), "F32", [2, 3]),
        ("bool", [], "BOOL", []),
        ("float8_e8m0fnu", [4], "F8_E8M0", [4]),
        ("float4_e2m1fn_x2", [2, 3], "F4", [2, 6]),
        ("complex64", [1], "C64", [1]),
    ],
)
def test_a_spec_says_what_the_header_will(dtype, shape, name, elements):
    made = ours.TensorSpec(dtype=dtype, shape=shape, data_ptr=64, data_len=8)
    assert (made.dtype, made.shape, made.data_ptr, made.data_len) == (name, elements, 64, 8)
    assert repr(made) == f"TensorSpec(dtype='{name}', shape={elements}, data_ptr=64, data_len=8)"
    with pytest.raises(AttributeError):
        made.dtype = "F64"


def test_serialize_writes_what_the_original_writes_and_deserialize_reads_it():
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    for metadata in (None, {"k": "v"}):
        names = ("b", "a", "ü\n")
        own = ours.serialize({name: spec(ours) for name in names}, metadata)
        assert own == theirs.serialize({name: spec(theirs) for name in names}, metadata)
        assert type(own) is bytes
    entries = ours.deserialize(own)
    assert entries[0] == ("a", {"shape": [1], "dtype": "F32", "data": bytearray(4)})
    assert [name for name, _ in entries] == ["a", "b", "ü\n"]


def test_no_memory_is_read_at_the_address_zero():
    with pytest.raises(ours.SafetensorError, match="TensorInvalidInfo"):
        ours.serialize({"a": spec(ours, data_ptr=0)})
    assert ours.deserialize(ours.serialize({"a": spec(ours, data_ptr=0, data_len=0, shape=[0])}))[0][1]["shape"] == [0]


def test_the_version_is_one_that_programs_ask_for():
    assert importlib.import_module("weigh.safetensors").__version__ == "0.8.0"
