"""numpy: every dtype, and arrays in every order of memory."""

import pytest

import weigh

numpy = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

SMALL = ("F4", "F6_E2M3", "F6_E3M2")

TYPES = {
    "BOOL": "bool", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "U32": "u4", "I32": "i4", "U64": "u8",
    "I64": "i8",
    "F16": "f2", "F32": "f4", "F64": "f8", "C64": "c8", "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F6_E2M3": ml_dtypes.float6_e2m3fn, "F6_E3M2": ml_dtypes.float6_e3m2fn, "F4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def test_every_dtype_both_ways(everything, reread):
    tensors, path = everything
    loaded = weigh.open(path).load()
    assert loaded.keys() == tensors.keys()
    for name, (dtype, shape, content) in tensors.items():
        array = loaded[name]
        assert array.dtype == numpy.dtype(TYPES[dtype]) and array.shape == shape, name
        assert array.flags.writeable and array.flags.c_contiguous
        assert array.ctypes.data % 64 == 0 or dtype in SMALL or not content, name
        if dtype not in SMALL:
            assert array.tobytes() == content, name
        if name.endswith((".ones", ".scalar")):
            assert numpy.all(array.astype("f4") == 1), name
    assert reread(weigh.to_bytes(loaded)) == tensors
    assert reread(weigh.to_bytes(weigh.open(path))) == tensors


def test_the_original_package_reads_and_writes_the_same(everything, tmp_path):
    original = pytest.importorskip("safetensors.numpy")
    tensors, path = everything
    known = [name for name, (dtype, _, _) in tensors.items() if TYPES[dtype] in set(map(str, TYPES.values()))]
    loaded = weigh.open(path).load(known)
    weigh.save(loaded, tmp_path / "ours")
    theirs = original.load_file(tmp_path / "ours")
    original.save_file({name: array for name, array in loaded.items()}, tmp_path / "theirs")
    for again in (theirs, weigh.load(tmp_path / "theirs")):
        for name in known:
            assert again[name].dtype == loaded[name].dtype and again[name].shape == loaded[name].shape
            assert again[name].tobytes() == loaded[name].tobytes(), name
    weigh.save(loaded, tmp_path / "reference", layout="reference")
    assert (tmp_path / "reference").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize("kind", ["u1", "<i2", ">i2", "<f4", ">f8", "c8", ">c8", "bool", ml_dtypes.bfloat16])
def test_the_elements_are_written_whatever_their_order_in_memory(kind):
    whole = (numpy.arange(24).reshape(4, 6) % 7).astype(kind)
    views = {
        "dense": whole,
        "fortran": numpy.asfortranarray(whole),
        "transposed": whole.T,
        "strided": whole[::2, 1::3],
        "reversed": whole[::-1, ::-1],
        "broadcast": numpy.broadcast_to(whole[0], (3, 6)),
        "column": whole[:, 2],
        "scalar": whole[1, 1],
        "0-d": numpy.array(whole[1, 1]),
        "empty": whole[:0],
        "empty strided": whole[:, :0],
    }
    read = weigh.load(bytearray(weigh.to_bytes(views)))
    for name, view in views.items():
        assert read[name].shape == view.shape, name
        assert read[name].dtype == view.dtype.newbyteorder("<"), name
        assert numpy.array_equal(read[name], view), name


def test_what_numpy_makes_an_array_of_is_written():
    given = {"number": 1.5, "list": [1, 2], "numpy": numpy.int8(3), "matrix": numpy.matrix([[1, 2]])}
    read = weigh.load(bytearray(weigh.to_bytes(given)))
    assert {name: array.tolist() for name, array in read.items()} == {
        "number": 1.5, "list": [1, 2], "numpy": 3, "matrix": [[1, 2]],
    }


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (numpy.array(["a"]), "<U1"),
        (numpy.array([b"a"]), r"\|S1"),
        (numpy.array([None]), "object"),
        (numpy.zeros(1, "c16"), "complex128"),
        (numpy.zeros(1, "M8[s]"), "datetime64"),
        (numpy.zeros(1, [("a", "i4")]), "a"),
        (numpy.zeros(1, ml_dtypes.int4), "int4"),
        (numpy.zeros(1, ml_dtypes.float8_e3m4), "float8_e3m4"),
        (numpy.ma.masked_array([1], [True]), "mask"),
        (object(), "object"),
    ],
)
def test_what_the_format_has_no_dtype_for_is_named(array, text):
    with pytest.raises(TypeError, match=f"^w: .*{text}"):
        weigh.to_bytes({"w": array})


@pytest.mark.parametrize(("dtype", "each"), [("float4_e2m1fn", 2), ("float6_e2m3fn", 4), ("float6_e3m2fn", 4)])
def test_elements_under_8_bits_fill_whole_bytes(dtype, each):
    kind = getattr(ml_dtypes, dtype)
    for count in range(0, 2 * each + 1):
        array = numpy.ones(count, kind)
        if count % each:
            with pytest.raises(ValueError, match="^w: "):
                weigh.to_bytes({"w": array})
        else:
            assert numpy.array_equal(weigh.load(bytearray(weigh.to_bytes({"w": array})))["w"], array)


def test_names_are_strings():
    with pytest.raises(TypeError, match="int"):
        weigh.to_bytes({1: numpy.zeros(1)})
    with pytest.raises(TypeError, match="list"):
        weigh.to_bytes([numpy.zeros(1)])
