"""mlx: every dtype that it has."""

import pytest

import weigh

mx = pytest.importorskip("mlx.core")
numpy = pytest.importorskip("numpy")

MISSING = ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4")

TYPES = {
    "BOOL": "bool_", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip


def test_every_dtype_both_ways(everything, reread):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    loaded = weigh.open(path).load(list(known), framework="mlx")
    for name, (dtype, shape, _) in known.items():
        assert loaded[name].dtype == getattr(mx, TYPES[dtype]) and loaded[name].shape == shape, name
        if name.endswith((".ones", ".scalar")):
            with mx.stream(mx.cpu):
                assert bool(mx.all(loaded[name] == 1)), name
    assert reread(weigh.to_bytes(loaded)) == known


@pytest.mark.parametrize("dtype", MISSING)
def test_a_dtype_that_mlx_has_not_is_said_with_the_tensors_name(everything, dtype):
    with pytest.raises(TypeError, match=f"^{dtype}.whole: mlx has no dtype for {dtype}: "):
        weigh.open(everything[1])[f"{dtype}.whole"].mlx()


def test_the_elements_are_written_whatever_the_array():
    whole = mx.arange(24, dtype=mx.float32).reshape(4, 6)
    arrays = {"t": whole.T, "s": whole[::2, 1::3], "r": whole[::-1], "b": whole.astype(mx.bfloat16).T}
    arrays["lazy"] = whole * 2 + 1
    read = weigh.load(bytearray(weigh.to_bytes(arrays)), framework="mlx")
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype and bool(mx.array_equal(read[name], array)), name


def test_the_original_package_reads_and_writes_the_same(tmp_path):
    original = pytest.importorskip("safetensors.mlx")
    arrays = {"a": mx.arange(6, dtype=mx.float32).reshape(2, 3), "b": mx.arange(3) > 1, "c": mx.array(3, dtype=mx.int8)}
    weigh.save(arrays, tmp_path / "ours.safetensors")
    original.save_file(arrays, tmp_path / "theirs.safetensors")
    theirs = original.load_file(tmp_path / "ours.safetensors")
    for again in (theirs, weigh.load(tmp_path / "theirs.safetensors", framework="mlx")):
        for name, array in arrays.items():
            assert again[name].dtype == array.dtype and bool(mx.array_equal(again[name], array))


def test_mlx_itself_reads_and_writes_the_same(tmp_path):
    arrays = {"a": mx.arange(6, dtype=mx.float32).reshape(2, 3), "b": mx.ones((3,), dtype=mx.bfloat16)}
    weigh.save(arrays, tmp_path / "ours.safetensors")
    mx.save_safetensors(str(tmp_path / "theirs.safetensors"), arrays)
    theirs = mx.load(str(tmp_path / "ours.safetensors"))
    for again in (theirs, weigh.load(tmp_path / "theirs.safetensors", framework="mlx")):
        for name, array in arrays.items():
            assert again[name].dtype == array.dtype and bool(mx.array_equal(again[name], array))


def test_devices_are_mlxs(everything):
    checkpoint = weigh.open(everything[1])
    assert checkpoint.load("F32.*", framework="mlx", device="cpu")
    assert checkpoint.load("F32.*", framework="mlx", device=mx.Device(mx.cpu))
    with pytest.raises(ValueError, match="cuda:0"):
        checkpoint.load("F32.*", framework="mlx", device="cuda:0")
