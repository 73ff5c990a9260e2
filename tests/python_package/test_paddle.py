"""paddle: every dtype that it has."""

import warnings

import pytest

import weigh

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    paddle = pytest.importorskip("paddle")
numpy = pytest.importorskip("numpy")

TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip

MISSING = ("U16", "U32", "U64", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4")


def test_every_dtype_both_ways(everything, reread):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    loaded = weigh.open(path).load(list(known), framework="paddle")
    for name, (dtype, shape, _) in known.items():
        assert loaded[name].dtype == getattr(paddle, TYPES[dtype]) and tuple(loaded[name].shape) == shape, name
        if name.endswith((".ones", ".scalar")) and dtype != "C64":
            assert numpy.all(loaded[name].astype("float32").numpy() == 1), name
    assert reread(weigh.to_bytes(loaded)) == known


@pytest.mark.parametrize("dtype", MISSING)
def test_a_dtype_that_paddle_has_not_is_said_with_the_tensors_name(everything, dtype):
    with pytest.raises(TypeError, match=f"^{dtype}.whole: paddle has no dtype for {dtype}: "):
        weigh.open(everything[1])[f"{dtype}.whole"].paddle()


def test_the_elements_are_written_whatever_the_tensor():
    whole = paddle.arange(24, dtype="float32").reshape([4, 6])
    tensors = {"t": whole.T, "s": whole[::2, 1::3], "b": whole.astype("bfloat16").T}
    tensors["p"] = paddle.create_parameter([2, 2], "float32")
    read = weigh.load(bytearray(weigh.to_bytes(tensors)), framework="paddle")
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype and bool((read[name] == tensor).all()), name
    with pytest.raises(TypeError, match="^w: .*dense"):
        weigh.to_bytes({"w": paddle.sparse.sparse_coo_tensor([[0], [1]], [1.0], [2, 2])})


def test_the_original_package_reads_and_writes_the_same(tmp_path):
    original = pytest.importorskip("safetensors.paddle")
    tensors = {"a": paddle.arange(6, dtype="float32").reshape([2, 3]), "d": paddle.to_tensor(3, dtype="int8")}
    weigh.save(tensors, tmp_path / "ours")
    original.save_file(tensors, str(tmp_path / "theirs"))
    for again in (original.load_file(str(tmp_path / "ours")), weigh.load(tmp_path / "theirs", framework="paddle")):
        for name, tensor in tensors.items():
            assert again[name].dtype == tensor.dtype and bool((again[name] == tensor).all())


def test_devices_are_paddles(everything):
    checkpoint = weigh.open(everything[1])
    assert checkpoint["F32.whole"].paddle("cpu").place.is_cpu_place()
    assert checkpoint["F32.whole"].paddle(paddle.CPUPlace()).place.is_cpu_place()
