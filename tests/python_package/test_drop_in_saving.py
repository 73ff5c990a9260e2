"""What `weigh.safetensors` writes: byte for byte what the original writes, and right where the original is not."""

import os
import stat

import pytest

from drop_in_files import file_of_tensors, outcome
from weigh import safetensors as ours

np = pytest.importorskip("numpy")
numpy = pytest.importorskip("weigh.safetensors.numpy")

ARRAY = np.arange(24, dtype=np.float32).reshape(4, 6)

#: Arrays that the original writes wrongly, refuses, or reads beyond.
ODD = {
    "in Fortran's order": np.asfortranarray(ARRAY),
    "transposed": ARRAY.T,
    "with a step": ARRAY[::2, ::3],
    "backwards": ARRAY[::-1],
    "backwards in its last dimension": ARRAY[:, ::-1],
    "broadcast": np.broadcast_to(np.float32(3), (4, 6)),
    "broadcast along a dimension": np.broadcast_to(ARRAY[0], (3, 6)),
    "a number of numpy's": np.float32(2.5),
    "of no dimensions": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "big-endian": ARRAY.astype(">f4"),
    "big-endian and transposed": ARRAY.astype(">f4").T,
    "off its alignment": np.frombuffer(b"x" + ARRAY.tobytes(), np.float32, offset=1).reshape(4, 6),
    "read-only": np.frombuffer(ARRAY.tobytes(), np.float32),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_array_is_written_right_however_it_lies_in_memory(kind, tmp_path):
    array = ODD[kind]
    path = tmp_path / "model.safetensors"
    numpy.save_file({"t": array, "u": ARRAY}, path)
    assert numpy.save({"t": array, "u": ARRAY}) == path.read_bytes()
    for read in (numpy.load_file(path)["t"], numpy.load(path.read_bytes())["t"]):
        assert read.shape == np.shape(array)
        assert read.tolist() == np.asarray(array).tolist()


def test_arrays_in_order_are_written_byte_for_byte_as_by_the_original(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    arrays = {
        "b": ARRAY,
        "a": ARRAY.astype(np.int64),
        "é": ARRAY > 3,
        'quoted "': ARRAY.astype(np.uint8),
        "": ARRAY.astype(np.float16),
        "line\n": ARRAY[:0],
    }
    for metadata in (None, {"format": "np"}, {}):
        own, original = tmp_path / "own", tmp_path / "original"
        numpy.save_file(arrays, own, metadata)
        theirs.save_file(arrays, original, metadata)
        assert own.read_bytes() == original.read_bytes()
        assert numpy.save(arrays, metadata) == theirs.save(arrays, metadata)
    assert numpy.save({}) == theirs.save({})


def test_several_metadata_keys_are_written_in_one_order():
    both = [{"b": "1", "a": "2", "c": "3"}, {"c": "3", "a": "2", "b": "1"}]
    first, second = (numpy.save({"t": ARRAY}, metadata) for metadata in both)
    assert first == second


def test_no_tensors_and_empty_metadata_make_a_file_that_can_be_read():
    assert ours.deserialize(ours.serialize({}, {})) == []


@pytest.mark.parametrize("dtype", [np.complex128, np.longdouble, np.dtype("U3"), np.dtype("O"), np.dtype("M8[s]")])
def test_a_dtype_that_the_format_has_not_is_refused_as_by_the_original(dtype):
    theirs = pytest.importorskip("safetensors.numpy")
    array = np.zeros(2, dtype)
    (_, original), (_, own) = (outcome(module.save, {"t": array}) for module in (theirs, numpy))
    assert isinstance(own, ours.SafetensorError)
    assert str(own) == str(original)


@pytest.mark.parametrize("given", [3, [1, 2], "abc", None])
def test_what_is_no_array_is_refused_as_by_the_original(given):
    theirs = pytest.importorskip("safetensors.numpy")
    (_, original), (_, own) = (outcome(module.save, {"t": given}) for module in (theirs, numpy))
    assert original is not None
    assert (type(own), str(own)) == (type(original), str(original))


@pytest.mark.parametrize("name", "BF16 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ F4 F6_E2M3".split())
def test_the_types_of_ml_dtypes_are_read_and_written(name):
    pytest.importorskip("ml_dtypes")
    bits = {"BF16": 16, "F4": 4, "F6_E2M3": 6}.get(name, 8)
    content = bytes(range(1, 1 + bits))
    file = file_of_tensors({"t": (name, [2, 4], content)})
    read = numpy.load(file)["t"]
    assert read.shape == (2, 4)
    ((_, entry),) = ours.deserialize(numpy.save({"t": read}))
    assert (entry["dtype"], entry["shape"], bytes(entry["data"])) == (name, [2, 4], content)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600), (0, 0o666)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(mask, mode, tmp_path):
    before = os.umask(mask)
    try:
        numpy.save_file({"t": ARRAY}, tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "model.safetensors"
    numpy.save_file({"t": ARRAY}, path)
    path.chmod(0o640)
    numpy.save_file({"t": ARRAY}, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_name_that_is_reserved_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(ours.SafetensorError, match="^Error while serializing: ") as raised:
        numpy.save_file({"__metadata__": ARRAY}, path)
    assert raised.value.code == "reserved-name"
    assert list(tmp_path.iterdir()) == []


def test_inputs_are_not_changed():
    arrays, metadata = {"t": ARRAY.astype(">f4")}, {"k": "v"}
    before = arrays["t"]
    numpy.save(arrays, metadata)
    assert arrays["t"] is before and arrays["t"].dtype == ">f4"
    assert metadata == {"k": "v"}
    jnp = pytest.importorskip("jax.numpy")
    from weigh.safetensors import flax

    tensors = {"t": jnp.ones(2)}
    before = tensors["t"]
    flax.save(tensors)
    assert tensors["t"] is before


def test_what_was_read_can_be_written_to_and_outlives_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    numpy.save_file({"t": ARRAY}, path)
    read = numpy.load_file(path)["t"]
    path.unlink()
    read[0, 0] = 99
    assert read[0, 0] == 99 and read[3, 5] == 23
