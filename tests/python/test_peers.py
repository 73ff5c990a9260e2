"""Lists files of the Python package `safetensors`, and compares with what it says.

The package writes every dtype that it can be given; it reads, but cannot be
given, the two of 6 bits, so those files are put together here.
"""

import json
import struct

import ml_dtypes
import numpy as np
import pytest
from safetensors import TensorSpec, deserialize, safe_open, serialize_file
from safetensors.numpy import save_file

ARRAY_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "I16": np.int16,
    "U16": np.uint16,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I32": np.int32,
    "U32": np.uint32,
    "F32": np.float32,
    "C64": np.complex64,
    "F64": np.float64,
    "I64": np.int64,
    "U64": np.uint64,
}

NAMES = ["plain", "model.layers.10.weight", 'quote " and \\ backslash', "é ü 漢字 😀", "a/b", ""]


def expected(path):
    """What the package reports: name to dtype, shape and data offsets."""
    data = {name: entry for name, entry in deserialize(path.read_bytes())}
    tensors = {}
    offset = 0
    with safe_open(path, framework="np") as file:
        for name in file.offset_keys():
            tensor = file.get_slice(name)
            end = offset + len(data[name]["data"])
            tensors[name] = (tensor.get_dtype(), list(tensor.get_shape()), [offset, end])
            offset = end
    return tensors


def listed(weigh, path):
    """What `weigh ls` reports, in the same form."""
    report = weigh.json("ls", "--json", path)
    assert report["schema"] == "weigh.ls/1"
    (checkpoint,) = report["checkpoints"]
    assert checkpoint["kind"] == "file"
    (shard,) = checkpoint["shards"]
    assert shard["size"] == path.stat().st_size
    tensors = checkpoint["tensors"]
    assert checkpoint["total_tensors"] == len(tensors)
    assert checkpoint["total_bytes"] == sum(tensor["bytes"] for tensor in tensors)
    for tensor in tensors:
        begin, end = tensor["data_offsets"]
        assert tensor["bytes"] == end - begin
        assert tensor["file"] == shard["file"]
    by_name = {t["name"]: (t["dtype"], t["shape"], t["data_offsets"]) for t in tensors}
    assert len(by_name) == len(tensors), "a name is listed twice"
    return by_name


def compare(weigh, path):
    want = expected(path)
    assert listed(weigh, path) == want
    return want


@pytest.mark.parametrize("dtype", ARRAY_DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0,), (2, 0, 3), (1,) * 9], ids=str)
def test_arrays_of_every_dtype_and_shape(weigh, tmp_path, dtype, shape):
    path = tmp_path / "model.safetensors"
    save_file({"tensor": np.zeros(shape, ARRAY_DTYPES[dtype])}, path)
    assert compare(weigh, path)["tensor"][:2] == (dtype, list(shape))


def test_all_dtypes_in_one_file(weigh, tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {dtype.lower(): np.ones((3, 2), kind) for dtype, kind in ARRAY_DTYPES.items()}
    save_file(arrays, path, metadata={"format": "np"})
    assert {entry[0] for entry in compare(weigh, path).values()} == set(ARRAY_DTYPES)


def test_names_arrive_as_they_were_written(weigh, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({name: np.zeros(2, np.float32) for name in NAMES}, path)
    assert set(compare(weigh, path)) == set(NAMES)


def test_a_file_without_tensors(weigh, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({}, path, metadata={"format": "np"})
    assert compare(weigh, path) == {}


def test_four_bit_elements_are_counted_one_by_one(weigh, tmp_path):
    path = tmp_path / "model.safetensors"
    packed = np.arange(8, dtype=np.uint8).reshape(2, 4)
    spec = TensorSpec(
        dtype="float4_e2m1fn_x2",
        shape=packed.shape,
        data_ptr=packed.ctypes.data,
        data_len=packed.nbytes,
    )
    serialize_file({"tensor": spec}, path)
    assert compare(weigh, path) == {"tensor": ("F4", [2, 8], [0, 8])}


@pytest.mark.parametrize("dtype", ["F6_E2M3", "F6_E3M2"])
def test_six_bit_elements(weigh, tmp_path, dtype):
    path = tmp_path / "model.safetensors"
    entry = {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, 6]}
    header = json.dumps({"tensor": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(6))
    assert compare(weigh, path) == {"tensor": (dtype, [2, 4], [0, 6])}


def test_the_files_of_the_examples(weigh, examples):
    files = sorted(examples.rglob("*.safetensors"))
    assert len(files) == 5
    for path in files:
        assert compare(weigh, path)


def test_a_sharded_checkpoint_is_the_sum_of_its_files(weigh, examples):
    folder = examples / "tiny"
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    want = {}
    for file in sorted(set(index["weight_map"].values())):
        for name, entry in expected(folder / file).items():
            want[name] = (*entry, file)
    for path in (folder, folder / "model.safetensors.index.json"):
        (checkpoint,) = weigh.json("ls", "--json", path)["checkpoints"]
        assert checkpoint["kind"] == "indexed"
        assert checkpoint["findings"] == []
        assert checkpoint["total_bytes"] == index["metadata"]["total_size"]
        got = {
            t["name"]: (t["dtype"], t["shape"], t["data_offsets"], t["file"])
            for t in checkpoint["tensors"]
        }
        assert got == want
        assert {name: entry[-1] for name, entry in got.items()} == index["weight_map"]
