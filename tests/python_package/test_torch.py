"""torch: every dtype, and tensors of every kind."""

import pytest

import weigh

torch = pytest.importorskip("torch")

TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F4": "float4_e2m1fn_x2",
}  # fmt: skip

MISSING = ("F6_E2M3", "F6_E3M2")


def raw(tensor):
    return b"" if tensor.numel() == 0 else bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def test_every_dtype_both_ways(everything, reread):
    tensors, path = everything
    known = {name: given for name, given in tensors.items() if given[0] not in MISSING}
    loaded = weigh.open(path).load(list(known), framework="torch")
    for name, (dtype, shape, content) in known.items():
        tensor = loaded[name]
        assert tensor.dtype == getattr(torch, TYPES[dtype]), name
        want = shape if dtype != "F4" else (*shape[:-1], shape[-1] // 2)
        assert tuple(tensor.shape) == want and tensor.is_contiguous(), name
        assert raw(tensor) == content, name
        assert tensor.data_ptr() % 64 == 0, name
        if name.endswith((".ones", ".scalar")) and dtype != "F4":
            assert bool((tensor.to(torch.float32) == 1).all()), name
    assert reread(weigh.to_bytes(loaded)) == known


@pytest.mark.parametrize("dtype", MISSING)
def test_a_dtype_that_torch_has_not_is_said_with_the_tensors_name(everything, dtype):
    for read in (lambda c: c[f"{dtype}.whole"].torch(), lambda c: c.load([f"{dtype}.whole"], framework="torch")):
        with pytest.raises(TypeError, match=f"^{dtype}.whole: torch has no dtype for {dtype}: "):
            read(weigh.open(everything[1]))


def test_f4_of_odd_rows_is_none_of_torchs(write):
    path = write({"w": ("F4", (2, 3), b"abc")})
    with pytest.raises(ValueError, match="^w: .*even"):
        weigh.load(path, framework="torch")


def test_the_original_package_reads_and_writes_the_same(everything, tmp_path):
    original = pytest.importorskip("safetensors.torch")
    tensors, path = everything
    known = [name for name, given in tensors.items() if given[0] not in (*MISSING, "F4")]
    loaded = weigh.load(path, known, framework="torch")
    weigh.save(loaded, tmp_path / "ours")
    original.save_file(loaded, tmp_path / "theirs")
    for again in (original.load_file(tmp_path / "ours"), weigh.load(tmp_path / "theirs", framework="torch")):
        assert again.keys() == loaded.keys()
        for name in known:
            assert again[name].dtype == loaded[name].dtype and again[name].shape == loaded[name].shape
            assert raw(again[name]) == raw(loaded[name]), name


class Subclass(torch.Tensor):
    """One that has its own idea of every operation."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.detach, torch.Tensor.to, torch.Tensor.contiguous):
            raise AssertionError("asked for its own idea of things")
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapper(torch.Tensor):
    """One that has no memory, as distributed and quantized ones."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return args[0]


def kinds():
    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    complexes = torch.view_as_complex(torch.arange(8, dtype=torch.float32).reshape(2, 2, 2))
    yield "dense", whole
    yield "transposed", whole.T
    yield "strided", whole[::2, 1::3]
    yield "offset", whole[2]
    yield "expanded", whole[0].expand(3, 6)
    yield "channels last", torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    yield "conjugate", complexes.conj()
    yield "negative", complexes.conj().imag
    yield "with gradient", whole.clone().requires_grad_() * 2
    yield "parameter", torch.nn.Parameter(whole.clone())
    yield "buffer", torch.nn.Buffer(whole.clone())
    yield "subclass", whole.clone().as_subclass(Subclass)
    yield "0-d", whole[1, 1]
    yield "empty", whole[:0]
    yield "inference", torch.inference_mode()(lambda: whole * 3)()


@pytest.mark.parametrize(("name", "tensor"), [pytest.param(*one, id=one[0]) for one in kinds()])
def test_the_elements_are_written_whatever_the_tensor(name, tensor):
    before = tensor.requires_grad
    read = weigh.load(bytearray(weigh.to_bytes({"w": tensor})), framework="torch")["w"]
    plain = torch.Tensor.detach(tensor.as_subclass(torch.Tensor)).resolve_conj().resolve_neg()
    assert read.dtype == plain.dtype and read.shape == plain.shape
    assert torch.equal(read, plain)
    assert tensor.requires_grad == before


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.eye(2).to_sparse(), "dense"),
        (torch.eye(2).to_sparse_csr(), "dense"),
        (torch.empty(2, device="meta"), "meta"),
        (torch.zeros(2, dtype=torch.complex128), "complex128"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "qint8"),
        (Wrapper(torch.ones(2)), "unwrap"),
    ],
    ids=["sparse", "csr", "meta", "complex128", "quantized", "wrapper"],
)
def test_what_has_no_elements_to_write_is_an_error_that_names_it(tensor, text):
    with pytest.raises(TypeError, match=f"^w: .*{text}"):
        weigh.to_bytes({"w": tensor})


def test_a_storage_that_was_taken_away_is_no_memory():
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(TypeError, match="^w: "):
        weigh.to_bytes({"w": tensor})
    with pytest.raises(TypeError, match="F4"):
        weigh.to_bytes({"w": torch.zeros(1, dtype=torch.uint8).view(torch.float4_e2m1fn_x2).reshape(())})


def test_tensors_that_share_memory_are_written_each(tmp_path):
    weight = torch.arange(6.0)
    weigh.save({"a": weight, "b": weight, "c": weight[2:4]}, tmp_path / "x")
    read = weigh.load(tmp_path / "x", framework="torch")
    assert torch.equal(read["a"], weight) and torch.equal(read["b"], weight) and torch.equal(read["c"], weight[2:4])
    assert read["a"].data_ptr() != read["b"].data_ptr()


def test_a_tensor_can_be_written_to_trained_and_pickled(everything):
    tensor = weigh.open(everything[1])["F32.ones"].torch()
    tensor.add_(1)
    tensor.requires_grad_().sum().backward()
    assert tensor.grad.tolist() == [1]
    assert tensor.untyped_storage().nbytes() == 4


def test_devices_are_torchs(everything):
    checkpoint = weigh.open(everything[1])
    assert checkpoint["F32.ones"].torch("cpu").tolist() == [1]
    assert checkpoint["F32.ones"].torch(torch.device("cpu")).device.type == "cpu"
    meta = checkpoint.load("F32.*", device="meta")
    assert all(tensor.device.type == "meta" for tensor in meta.values())
    assert meta["F32.whole"].shape == (2, 4)
    with pytest.raises(RuntimeError):
        checkpoint.load("F32.*", device="no such device")
    if not torch.cuda.is_available():
        # Said before anything is read.
        with pytest.raises((RuntimeError, AssertionError)):
            checkpoint.load("F32.*", device="cuda:0")


def test_a_module_is_saved_and_loaded(tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    weigh.save(module.state_dict(), tmp_path / "m.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    other.load_state_dict(weigh.load(tmp_path / "m.safetensors", framework="torch"), assign=True)
    for name, tensor in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
