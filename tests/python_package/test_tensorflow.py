"""tensorflow: every dtype that it has."""

import os

import pytest

import weigh

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
numpy = pytest.importorskip("numpy")

MISSING = ("F8_E8M0", "F6_E2M3", "F6_E3M2")


def test_every_dtype_both_ways(everything, reread):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    loaded = weigh.open(path).load(list(known), framework="tensorflow")
    same = weigh.load(path, list(known))
    for name, (_, shape, _) in known.items():
        tensor = loaded[name]
        assert tf.is_tensor(tensor) and tuple(tensor.shape) == shape, name
        assert tensor.dtype.as_numpy_dtype == same[name].dtype.type, name
        assert tensor.numpy().tobytes() == same[name].tobytes(), name
    assert reread(weigh.to_bytes(loaded)) == known


@pytest.mark.parametrize("dtype", MISSING)
def test_a_dtype_that_tensorflow_has_not_is_said_with_the_tensors_name(everything, dtype):
    with pytest.raises(TypeError, match=f"^{dtype}.whole: tensorflow has no dtype for {dtype}: "):
        weigh.open(everything[1])[f"{dtype}.whole"].tensorflow()


def test_variables_are_written_and_what_has_no_values_is_not():
    tensors = {"v": tf.Variable([1.0, 2.0]), "b": tf.cast(tf.Variable([1.0]), tf.bfloat16)}
    read = weigh.load(bytearray(weigh.to_bytes(tensors)))
    assert read["v"].tolist() == [1, 2] and read["b"].astype("f4").tolist() == [1]
    for tensor in (tf.sparse.from_dense([[0, 1]]), tf.ragged.constant([[1], [1, 2]]), tf.constant(["a"])):
        with pytest.raises(TypeError, match="^w: "):
            weigh.to_bytes({"w": tensor})

    @tf.function
    def traced(tensor):
        with pytest.raises(TypeError, match="^w: .*graph"):
            weigh.to_bytes({"w": tensor})
        return tensor

    traced(tf.constant(1.0))


def test_the_original_package_reads_and_writes_the_same(tmp_path):
    original = pytest.importorskip("safetensors.tensorflow")
    tensors = {"a": tf.reshape(tf.range(6.0), (2, 3)), "c": tf.constant([True, False]), "d": tf.constant([3], tf.int8)}
    weigh.save(tensors, tmp_path / "ours")
    original.save_file(tensors, str(tmp_path / "theirs"))
    for again in (original.load_file(str(tmp_path / "ours")), weigh.load(tmp_path / "theirs", framework="tf")):
        for name, tensor in tensors.items():
            assert again[name].dtype == tensor.dtype and bool(tf.reduce_all(again[name] == tensor))


def test_devices_are_tensorflows(everything):
    checkpoint = weigh.open(everything[1])
    for device in ("cpu", "cpu:0", "/CPU:0"):
        assert "CPU:0" in checkpoint["F32.whole"].tensorflow(device).device
    with pytest.raises((RuntimeError, ValueError)):
        checkpoint["F32.whole"].tensorflow("no such device")
