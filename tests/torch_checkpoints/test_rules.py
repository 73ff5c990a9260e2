"""Tensors that safetensors has not, by a rule that was chosen: as torch computes what they stand for."""

import pytest
import safetensors.torch
import torch

import containers
import elements
import refusals
from program import Refusal, same
from state import stored
from structures import counting

every_way = pytest.mark.parametrize("way", containers.FEW_WAYS, ids=containers.way_id)


def converted(weigh, path, *options):
    """By name, as another reader of safetensors has them."""
    target = path.parent / "out.safetensors"
    found = weigh.convert(path, target, *options)
    assert not isinstance(found, Refusal), found.text
    return safetensors.torch.load_file(target)


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(17))


def scales(count, dtype=torch.float64):
    return torch.rand(count, generator=torch.Generator().manual_seed(5), dtype=dtype) + 0.01


def in_floats(dtype, axis):
    """Scales and zero points that are floats, as those of embeddings."""
    shape = (5, 7)
    return torch.quantize_per_channel(
        random(*shape) * 3, scales(shape[axis], torch.float32), 3 * scales(shape[axis], torch.float32), axis, dtype
    )


# Of these the scales are no powers of two, so that where torch rounds can be seen.
ROUNDED = {
    **{
        f"{dtype}_by_channel_{axis}": lambda dtype=dtype, axis=axis: torch.quantize_per_channel(
            random(50, 40) * 9, scales((50, 40)[axis]), torch.arange((50, 40)[axis]) % 7, axis, getattr(torch, dtype)
        )
        for dtype in ("quint8", "qint8", "qint32")
        for axis in (0, 1)
    },
    **{
        dtype: lambda dtype=dtype: torch.quantize_per_tensor(random(1000) * 9, 0.0123456789, 3, getattr(torch, dtype))
        for dtype in ("quint8", "qint8", "qint32", "quint4x2", "quint2x4")
    },
    **{
        f"{dtype}_in_floats_{axis}": lambda dtype=dtype, axis=axis: in_floats(getattr(torch, dtype), axis)
        for dtype in ("quint8", "quint4x2", "quint2x4")
        for axis in (0, 1)
    },
    "scalar": lambda: torch.quantize_per_tensor(torch.tensor(3.3), 0.7, 1, torch.quint8),
    "empty": lambda: torch.quantize_per_tensor(torch.empty(0, 3), 0.7, 1, torch.qint8),
}
QUANTIZED = {**refusals.QUANTIZED, **refusals.PACKED, **ROUNDED}


@every_way
@pytest.mark.parametrize("make", QUANTIZED.values(), ids=QUANTIZED)
def test_quantized_tensors_are_the_floats_that_torch_makes(weigh, tmp_path, make, way):
    path = containers.save({"q": make(), "fine": counting(1)}, tmp_path / "a.pt", way)
    wanted = {"q": stored(torch.load(path, weights_only=False)["q"].dequantize()), "fine": stored(counting(1))}
    for options in (["--dequantize"], ["--quantized", "dequantize"]):
        same(weigh.convert(path, tmp_path / "a.safetensors", *options), wanted)


def integers(tensor):
    """The integers of a quantized tensor, one for each element."""
    if tensor.dtype in (torch.quint4x2, torch.quint2x4):
        bits = 4 if tensor.dtype == torch.quint4x2 else 2
        content = torch.tensor(list(tensor.untyped_storage()), dtype=torch.uint8)
        parts = [content >> place & (1 << bits) - 1 for place in range(0, 8, bits)]
        return torch.stack(parts, 1).reshape(-1)[: tensor.numel()].view(tensor.shape)
    return tensor.int_repr()


@every_way
@pytest.mark.parametrize("make", QUANTIZED.values(), ids=QUANTIZED)
def test_the_integers_have_their_scales_beside_them(weigh, tmp_path, make, way):
    path = containers.save({"q": make(), "fine": counting(1)}, tmp_path / "a.pt", way)
    tensor = torch.load(path, weights_only=False)["q"]
    wanted = {"fine": counting(1), "q": integers(tensor)}
    if "per_channel" in str(tensor.qscheme()):
        wanted["q.scale"], wanted["q.zero_point"] = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
        wanted["q.axis"] = torch.tensor(tensor.q_per_channel_axis())
    else:
        wanted["q.scale"] = torch.tensor(tensor.q_scale(), dtype=torch.float64)
        wanted["q.zero_point"] = torch.tensor(tensor.q_zero_point())
    found = weigh.convert(path, tmp_path / "a.safetensors", "--quantized", "integers")
    same(found, {name: stored(tensor) for name, tensor in wanted.items()})


@pytest.mark.parametrize("dtype", ["quint8", "qint8", "qint32"])
def test_quantized_numbers_of_a_big_endian_machine_are_turned(weigh, tmp_path, dtype):
    tensor = torch.quantize_per_tensor(counting(2, 3), 0.5, 1, getattr(torch, dtype))
    plain = containers.save({"q": tensor}, tmp_path / "a.pt", ("zip", 2))
    big = containers.big_endian(plain, tmp_path / "b.pt", elements.element_bytes(dtype))
    same(weigh.convert(big, tmp_path / "b.safetensors", "--dequantize"), {"q": stored(tensor.dequantize())})
    found = weigh.convert(big, tmp_path / "c.safetensors", "--quantized", "integers")
    assert found["q"] == stored(tensor.int_repr())


def test_a_part_that_has_the_name_of_a_tensor_is_an_error_that_names_both(weigh, tmp_path):
    value = {"q": refusals.QUANTIZED["qint8"](), "q.scale": counting(1)}
    path = containers.save(value, tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--quantized", "integers")
    assert isinstance(found, Refusal) and "the scale of q and q.scale would both be called q.scale" in found.text


def coo(values, *, shape=(6, 5)):
    """Values at places, in no order, of which some come twice."""
    rows = torch.tensor([3, 0, 3, 5, 0, 3])
    columns = torch.tensor([1, 4, 1, 0, 0, 2])
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (*shape, *values.shape[1:]))


def integral(dtype):
    return torch.tensor([100, 2, 99, 4, 5, 6]).to(dtype)


# What safetensors has, and torch adds.
SPARSE = {
    **{
        f"coo_of_{dtype}": lambda dtype=dtype: coo(integral(getattr(torch, dtype)))
        for dtype in ("uint8", "int8", "int16", "int32", "int64", "bool", "float64", "complex64")
    },
    **{
        f"coo_of_{dtype}": lambda dtype=dtype: coo((random(6) * 7).to(getattr(torch, dtype)))
        for dtype in ("float16", "bfloat16", "float32")
    },
    "coo_coalesced": lambda: coo(random(6)).coalesce(),
    "coo_of_negative_zero": lambda: coo(torch.full((6,), -0.0)),
    "coo_of_rows": lambda: coo(random(6, 3)),
    "coo_of_turned_rows": lambda: coo(random(3, 6).t()),
    "coo_of_rows_without_end": lambda: coo(random(6, 0)),
    "coo_of_one_dimension": lambda: torch.sparse_coo_tensor(torch.tensor([[2, 0]]), random(2), (4,)),
    "coo_of_turned_indices": lambda: torch.sparse_coo_tensor(torch.eye(4).nonzero().t(), random(4), (4, 4)),
    "coo_of_nothing": lambda: torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), (3, 3)),
    "coo_of_all_dense": lambda: torch.sparse_coo_tensor(torch.empty(0, 1, dtype=torch.int64), random(1, 3), (3,)),
    "coo_of_no_elements": lambda: torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), (0, 3)),
    "coo_large": lambda: torch.sparse_coo_tensor(torch.randint(0, 3000, (2, 9000)), random(9000), (3000, 3000)),
    "csr": lambda: coo(random(6)).to_dense().to_sparse_csr(),
    "csr_of_int32_indices": lambda: torch.sparse_csr_tensor(
        torch.tensor([0, 1, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), random(3), (3, 4)
    ),
    "csc": lambda: coo(random(6)).to_dense().to_sparse_csc(),
    "bsr": lambda: coo(random(6), shape=(6, 6)).to_dense().to_sparse_bsr((2, 3)),
    "bsc": lambda: coo(random(6), shape=(6, 6)).to_dense().to_sparse_bsc((3, 2)),
    "csr_of_a_batch": lambda: random(2, 3, 4).to_sparse_csr(),
    "csc_of_a_batch": lambda: random(2, 3, 4).to_sparse_csc(),
    "bsr_of_a_batch": lambda: random(2, 4, 6).to_sparse_bsr((2, 3)),
    "csr_of_rows": lambda: random(3, 4, 2).to_sparse_csr(dense_dim=1),
    "bsr_of_rows": lambda: random(4, 4, 2).to_sparse_bsr((2, 2), dense_dim=1),
    "csr_of_nothing": lambda: torch.zeros(3, 4).to_sparse_csr(),
}
every_sparse = pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE)


@every_way
@every_sparse
def test_sparse_tensors_are_dense_as_torch_makes_them(weigh, tmp_path, make, way):
    path = containers.save({"s": make(), "fine": counting(1)}, tmp_path / "a.pt", way)
    tensor = torch.load(path, weights_only=False)["s"]
    found = weigh.convert(path, tmp_path / "a.safetensors", "--sparse", "dense", "--max-expand", "1000")
    same(found, {"s": stored(tensor.to_dense()), "fine": stored(counting(1))})


@every_sparse
def test_and_from_deflated_parts(weigh, tmp_path, make):
    plain = containers.save({"s": make()}, tmp_path / "a.pt", ("zip", 2))
    path = containers.deflate(plain, tmp_path / "b.pt")
    found = weigh.convert(path, tmp_path / "a.safetensors", "--sparse", "dense")
    same(found, {"s": stored(torch.load(path, weights_only=False)["s"].to_dense())})


@every_way
@every_sparse
def test_the_parts_of_sparse_tensors_have_names_of_their_own(weigh, tmp_path, make, way):
    path = containers.save({"s": make()}, tmp_path / "a.pt", way)
    tensor = torch.load(path, weights_only=False)["s"]
    parts = {
        torch.sparse_coo: ["_indices", "_values"],
        torch.sparse_csr: ["crow_indices", "col_indices", "values"],
        torch.sparse_bsr: ["crow_indices", "col_indices", "values"],
        torch.sparse_csc: ["ccol_indices", "row_indices", "values"],
        torch.sparse_bsc: ["ccol_indices", "row_indices", "values"],
    }[tensor.layout]
    wanted = {f"s.{part.lstrip('_')}": stored(getattr(tensor, part)()) for part in parts}
    wanted["s.size"] = stored(torch.tensor(tensor.shape))
    same(weigh.convert(path, tmp_path / "a.safetensors", "--sparse", "parts"), wanted)


def test_what_would_be_too_large_as_a_dense_tensor_is_refused(weigh, tmp_path):
    large = torch.sparse_coo_tensor(torch.tensor([[5], [7]]), torch.ones(1), (1 << 20, 1 << 20))
    path = containers.save({"s": large}, tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--sparse", "dense")
    assert isinstance(found, Refusal) and "limit-expansion" in found.text
    limit = ["--limit", "expanded-bytes=100"]
    small = containers.save({"s": coo(random(6))}, tmp_path / "b.pt", ("zip", 2))
    assert isinstance(weigh.convert(small, tmp_path / "b.safetensors", "--sparse", "dense", "--max-expand", "0", *limit), Refusal)


def test_an_index_outside_of_the_shape_is_an_error(weigh, tmp_path):
    tensor = torch.sparse_coo_tensor(torch.tensor([[5], [7]]), torch.ones(1), (8, 8))
    tensor._indices()[0, 0] = 8
    path = containers.save({"s": tensor}, tmp_path / "a.pt", ("zip", 2))
    found = weigh.convert(path, tmp_path / "a.safetensors", "--sparse", "dense")
    assert isinstance(found, Refusal) and "sparse-index" in found.text


@every_way
def test_the_parts_of_nested_tensors_have_names_of_their_own(weigh, tmp_path, way):
    tensor = torch.nested.nested_tensor([torch.ones(2, 3), torch.full((4, 3), 2.0)])
    path = containers.save({"n": tensor}, tmp_path / "a.pt", way)
    found = converted(weigh, path, "--nested", "parts")
    assert sorted(found) == ["n.offsets", "n.sizes", "n.strides", "n.values"]
    rows = zip(found["n.sizes"], found["n.strides"], found["n.offsets"], strict=True)
    for size, stride, offset in rows:
        row = torch.as_strided(found["n.values"], size.tolist(), stride.tolist(), int(offset))
        assert torch.equal(row, tensor.unbind()[0 if offset == 0 else 1])
