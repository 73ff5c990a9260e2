"""jax: every dtype, without a copy where that can be, and what becomes of 64 bits."""

import pytest

import weigh

jax = pytest.importorskip("jax")
numpy = pytest.importorskip("numpy")
jnp = jax.numpy

MISSING = ("F6_E2M3", "F6_E3M2")
NARROWED = {"I64": "int32", "U64": "uint32", "F64": "float32"}


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def wide(request):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", before)


def test_every_dtype_both_ways(everything, reread, wide):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    same = weigh.load(path, list(known))
    if not wide:
        # Any bytes make integers that 32 bits cannot hold.
        known = {n: g for n, g in known.items() if not (g[0] in NARROWED and n.endswith(".whole"))}
    loaded = weigh.open(path).load(list(known), framework="jax")
    for name, (dtype, shape, _) in known.items():
        array, want = loaded[name], same[name]
        assert isinstance(array, jax.Array) and array.shape == shape, name
        if not wide and dtype in NARROWED:
            assert array.dtype == NARROWED[dtype]
            assert numpy.array_equal(numpy.asarray(array), want)
            continue
        assert array.dtype == want.dtype and numpy.asarray(array).tobytes() == want.tobytes(), name
        assert array.devices() == {jax.devices()[0]}
    kept = {n: a for n, a in loaded.items() if wide or known[n][0] not in NARROWED}
    assert reread(weigh.to_bytes(kept)) == {name: known[name] for name in kept}


def test_the_original_package_reads_and_writes_the_same(tmp_path):
    original = pytest.importorskip("safetensors.flax")
    arrays = {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16), "c": jnp.arange(3) > 1}
    arrays["d"] = jnp.int8(3)
    weigh.save(arrays, tmp_path / "ours")
    original.save_file(arrays, tmp_path / "theirs")
    for again in (original.load_file(tmp_path / "ours"), weigh.load(tmp_path / "theirs", framework="flax")):
        for name, array in arrays.items():
            assert again[name].dtype == array.dtype and jnp.array_equal(again[name], array)


@pytest.mark.parametrize("dtype", MISSING)
def test_a_dtype_that_jax_has_not_is_said_with_the_tensors_name(everything, dtype):
    with pytest.raises(TypeError, match=f"^{dtype}.whole: jax has no dtype for {dtype}: "):
        weigh.open(everything[1])[f"{dtype}.whole"].jax()


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("i8", 2**31 - 1, True), ("i8", 2**31, False), ("i8", -(2**31), True), ("i8", -(2**31) - 1, False),
        ("u8", 2**32 - 1, True), ("u8", 2**32, False), ("f8", 0.1, True),
    ],
)  # fmt: skip
def test_integers_that_32_bits_cannot_hold_are_an_error(kind, value, fits):
    checkpoint = weigh.open(bytearray(weigh.to_bytes({"w": numpy.array([value], kind)})))
    assert not jax.config.jax_enable_x64
    if fits:
        assert checkpoint["w"].jax()[0] == numpy.array(value).astype(kind.replace("8", "4"))
    else:
        with pytest.raises(OverflowError, match="^w: .*jax_enable_x64"):
            checkpoint["w"].jax()


def test_an_array_on_the_cpu_is_the_memory_that_was_read(everything):
    from weigh._frameworks import _jax

    checkpoint = weigh.open(everything[1])
    for name in ("F32.whole", "BF16.whole", "BOOL.whole", "I8.scalar", "C64.whole"):
        buffer = checkpoint[name].read()
        array = _jax.tensor(buffer)
        assert array.unsafe_buffer_pointer() == buffer.address, name


def test_devices_are_jaxs(everything):
    checkpoint = weigh.open(everything[1])
    device = jax.devices("cpu")[0]
    for given in ("cpu", "cpu:0", device):
        assert checkpoint["F32.whole"].jax(given).devices() == {device}
    with pytest.raises(ValueError, match="cpu:9"):
        checkpoint["F32.whole"].jax("cpu:9")
    with pytest.raises(RuntimeError):
        checkpoint["F32.whole"].jax("no such platform")


def test_an_array_that_is_traced_has_no_values():
    with pytest.raises(TypeError):
        jax.jit(lambda array: weigh.to_bytes({"w": array}))(jnp.ones(2))
