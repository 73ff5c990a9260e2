"""The names, arguments and arguments' errors of `weigh.safetensors` are those of the original."""

import importlib
import importlib.util
import inspect
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
    "an attribute that there is not": lambda it, path: AttributeError if it.safe_open(path, "np").nope else None,
    "a handle without a name": lambda it, path: it._safe_open_handle(3, "np"),
    "a dtype that there is not": lambda it, path: it.TensorSpec(dtype="F32", shape=[1], data_ptr=1, data_len=4),
    "a dtype that is no name": lambda it, path: it.TensorSpec(dtype=3, shape=[1], data_ptr=1, data_len=4),
    "a negative dimension": lambda it, path: it.TensorSpec(dtype="int8", shape=[-1], data_ptr=1, data_len=4),
    "a dimension that is no number": lambda it, path: it.TensorSpec(dtype="int8", shape=["1"], data_ptr=1, data_len=4),
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
        if type(original) is not TypeError and type(original) is not AttributeError:
            assert str(own) == str(original)


def test_what_the_system_reports_while_opening_is_of_its_kind(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="^No such file or directory: nope$") as raised:
        ours.safe_open("nope", "np")
    assert raised.value.errno == 2
    with pytest.raises(IsADirectoryError):
        ours.safe_open(tmp_path, "np")


def test_what_the_system_reports_while_writing_is_both_exceptions(path):
    for target, kind in [(path.parent / "no" / "file", FileNotFoundError), (path.parent, IsADirectoryError)]:
        with pytest.raises(kind) as raised:
            ours.serialize_file({"a": spec(ours)}, target)
        assert isinstance(raised.value, ours.SafetensorError)
        assert raised.value.errno
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
