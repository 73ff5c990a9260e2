"""Slices: by numpy's rules, also where the original raises or answers wrongly; mapped ones are torch's own."""

import pytest

from drop_in_files import content_of, file_of_tensors, outcome
from weigh import safetensors as ours

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

SHAPES = {"scalar": [], "vector": [7], "matrix": [5, 6], "empty": [3, 0, 2], "cube": [3, 4, 5]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("slices") / "model.safetensors"
    tensors = {}
    for name, shape in SHAPES.items():
        count = int(np.prod(shape, dtype=np.int64))
        tensors[name] = ("I16", shape, np.arange(count, dtype=np.int16).tobytes())
    tensors["F4"] = ("F4", [3, 8], content_of("F4", 24))
    path.write_bytes(file_of_tensors(tensors))
    return path


def whole(name):
    count = int(np.prod(SHAPES[name], dtype=np.int64))
    return np.arange(count, dtype=np.int16).reshape(SHAPES[name])


bounds = st.none() | st.integers(-9, 9) | st.sampled_from([-(2**63), 2**31, 2**63 - 1, 2**70])
ranges = st.builds(slice, bounds, bounds, st.none() | st.integers(1, 9) | st.just(2**40))
one = st.integers(-9, 9) | ranges | st.just(...)
indices = one | st.lists(one, max_size=4).map(tuple)


@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(name=st.sampled_from(sorted(SHAPES)), index=indices)
@pytest.mark.parametrize("framework", ["np", "pt"])
def test_a_slice_is_what_numpy_takes(framework, name, index, path):
    if framework == "pt":
        pytest.importorskip("torch")
    part = ours.safe_open(path, framework, backend="pread").get_slice(name)
    expected, refusal = outcome(lambda: whole(name)[index])
    got, own_refusal = outcome(lambda: part[index])
    if refusal is not None:
        assert isinstance(own_refusal, ours.SafetensorError), (own_refusal, refusal)
        return
    assert own_refusal is None, own_refusal
    assert list(got.shape) == list(np.asarray(expected).shape)
    assert np.asarray(got).tolist() == np.asarray(expected).tolist()


@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(name=st.sampled_from(sorted(SHAPES)), index=indices)
@pytest.mark.parametrize("framework", ["np", "pt"])
def test_what_the_original_takes_is_taken_alike(framework, name, index, path):
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    if framework == "pt":
        pytest.importorskip("torch")
    for backend in ("mmap", "pread"):
        expected, refusal = outcome(
            lambda: theirs.safe_open(path, framework, backend=backend).get_slice(name)[index]  # noqa: B023
        )
        if refusal is not None:
            continue
        if backend == "pread" or framework == "np":
            numpy_way, numpy_refusal = outcome(lambda: whole(name)[index])
            if numpy_refusal is not None or list(np.asarray(numpy_way).shape) != list(expected.shape):
                continue
        got = ours.safe_open(path, framework, backend=backend).get_slice(name)[index]
        assert (type(got), got.dtype, got.shape) == (type(expected), expected.dtype, expected.shape)
        assert np.asarray(got).tolist() == np.asarray(expected).tolist()


#: Indices that the original takes, and as numpy does.
TAKEN = [0, -1, ..., slice(None), slice(1, 3), slice(None, None, 2)]
TAKEN += [(slice(1, 4), 2), (0, 0), (..., 1), (slice(0, 5, 3), ...)]


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("framework", ["np", "pt"])
@pytest.mark.parametrize("index", TAKEN, ids=str)
def test_an_index_is_taken_as_by_the_original(index, framework, backend, path):
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    if framework == "pt":
        pytest.importorskip("torch")
    expected, got = (
        module.safe_open(path, framework, backend=backend).get_slice("matrix")[index] for module in (theirs, ours)
    )
    assert (type(got), got.dtype, got.shape) == (type(expected), expected.dtype, expected.shape)
    assert np.asarray(got).tolist() == np.asarray(expected).tolist() == whole("matrix")[index].tolist()


#: Indices that are refused when tensors are read: the index, and the original's words.
REFUSED = [
    (slice(None, None, -1), "Slice step must be a positive integer, got -1"),
    (slice(None, None, 0), "Slice step must be a positive integer, got 0"),
    (5, "Error during slicing [5] with shape [5, 6]: index 5 out of bounds for tensor dimension #0 of size 5"),
    ((0, 6), "Error during slicing [0, 6] with shape [5, 6]: index 6 out of bounds for tensor dimension #1 of size 6"),
    ((slice(1, 3), 6), "Error during slicing [1:3, 6] with shape [5, 6]: index 6 out of bounds"),
    (-6, "Invalid index -6 for dimension 0 of size 5"),
    ((0, 0, 0), "Error during slicing [0, 0, 0] with shape [5, 6]: more slicing indexes than dimensions in tensor"),
    ((..., ...), "Only one ellipsis (...) is allowed in slice index"),
    ([1], "Non empty lists are not implemented"),
    (None, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    ((0, "a"), "Unsupported slice index at position 1: expected slice, int, or ellipsis"),
    (1.5, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
]


@pytest.mark.parametrize(("index", "words"), REFUSED, ids=str)
def test_an_index_is_refused_in_the_words_of_the_original(index, words, path):
    with pytest.raises(ours.SafetensorError) as raised:
        ours.safe_open(path, "np").get_slice("matrix")[index]
    assert str(raised.value).startswith(words)
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    with pytest.raises(theirs.SafetensorError) as raised:
        theirs.safe_open(path, "np").get_slice("matrix")[index]
    assert str(raised.value).startswith(words)


def test_a_bound_that_is_no_number_is_a_type_error(path):
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        ours.safe_open(path, "np").get_slice("matrix")["a":]


def test_an_empty_list_takes_nothing(path):
    assert ours.safe_open(path, "np").get_slice("matrix")[[]].shape == (0, 6)


#: Where the original raises, or answers something else: what numpy does.
CORRECTED = [
    (slice(3, 2), (0, 6)),
    (slice(4, 100), (1, 6)),
    (slice(100, None), (0, 6)),
    (slice(-2, None), (2, 6)),
    (slice(None, -4), (1, 6)),
    (slice(0, 0, 2), (0, 6)),
    (slice(5, 5), (0, 6)),
    (np.int64(-1), (6,)),
]


@pytest.mark.parametrize(("index", "shape"), CORRECTED, ids=str)
def test_a_slice_that_numpy_takes_is_taken(index, shape, path):
    for backend in ("mmap", "pread"):
        got = ours.safe_open(path, "np", backend=backend).get_slice("matrix")[index]
        assert got.shape == shape
        assert got.tolist() == whole("matrix")[index].tolist()


def test_a_slice_of_a_mapped_tensor_is_what_torch_takes_and_a_view(path):
    torch = pytest.importorskip("torch")
    part = ours.safe_open(path, "pt").get_slice("matrix")
    tensor = torch.from_numpy(whole("matrix"))
    for index in [0, (slice(1, 3), -1), [True, False, True, False, True], (None, 0), torch.tensor([4, 0]), slice(9, 1)]:
        assert torch.equal(part[index], tensor[index])
    refused = [(7, IndexError), ((0, 0, 0), IndexError), (slice(None, None, -1), ValueError), ("a", TypeError)]
    for index, kind in refused:
        for indexed in (part, tensor):
            with pytest.raises(kind):
                indexed[index]
    assert part[1:]._is_view()
    # What is written to it stays with this process.
    part[0][0] = 99
    assert ours.safe_open(path, "np").get_tensor("matrix")[0, 0] == 0


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_elements_of_four_bits_are_sliced_by_elements_where_they_begin_on_a_byte(backend, path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    packed = np.frombuffer(content_of("F4", 24), np.uint8).reshape(3, 4)
    part = ours.safe_open(path, "pt", backend=backend).get_slice("F4")
    assert part.get_shape() == [3, 8]
    for index, taken in [
        (..., packed),
        (slice(1, None), packed[1:]),
        ((slice(None), slice(2, 6)), packed[:, 1:3]),
        (-1, packed[-1]),
    ]:
        got = part[index]
        assert got.dtype == torch.float4_e2m1fn_x2
        assert got.view(torch.uint8).numpy().tolist() == taken.tolist()
    with pytest.raises(ours.SafetensorError, match="^Error during slicing"):
        part[:, 1:3]
    own = ours.safe_open(path, "np").get_slice("F4")[1:, 2:6]
    assert own.dtype.name == "float4_e2m1fn" and own.shape == (2, 4)
