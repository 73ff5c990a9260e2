"""Slices: what is read is what numpy would take of the whole, or an error of the kind that numpy raises."""

import pytest

import weigh

numpy = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")
strategies = hypothesis.strategies

SIZES = strategies.lists(strategies.integers(0, 6), min_size=0, max_size=4)
BOUND = strategies.none() | strategies.integers(-9, 9) | strategies.sampled_from([2**63 - 1, -(2**63), 2**70, -(2**70)])
STEP = strategies.none() | strategies.integers(-4, 4) | strategies.sampled_from([2**63 - 1, -(2**63), 2**70])
ONE = (
    strategies.builds(slice, BOUND, BOUND, STEP)
    | strategies.integers(-8, 8)
    | strategies.just(Ellipsis)
    | strategies.integers(-3, 3).map(numpy.int64)
)
INDEX = ONE | strategies.lists(ONE, max_size=5).map(tuple)

#: The same elements in dtypes of several widths: they are sliced by the byte.
DTYPES = {"U8": "u1", "F16": "f2", "I32": "i4", "C64": "c8"}


@pytest.fixture(scope="module")
def opened():
    made = {}

    def opened(sizes, dtype):
        if (*sizes, dtype) not in made:
            array = numpy.arange(numpy.prod(sizes, dtype=int)).astype(DTYPES[dtype]).reshape(sizes)
            content = bytearray(weigh.to_bytes({"w": array}))
            made[*sizes, dtype] = array, weigh.open(content)["w"]
        return made[*sizes, dtype]

    return opened


@hypothesis.settings(max_examples=600, deadline=None)
@hypothesis.given(
    sizes=SIZES,
    dtype=strategies.sampled_from(sorted(DTYPES)),
    indices=strategies.lists(INDEX, min_size=1, max_size=4),
)
def test_slices_of_slices_are_those_of_numpy(opened, sizes, dtype, indices):
    array, tensor = opened(tuple(sizes), dtype)
    for index in indices:
        try:
            want = array[index]
        except (IndexError, ValueError) as error:
            kinds = IndexError if isinstance(error, IndexError) else ValueError
            with pytest.raises(kinds):
                tensor[index].numpy()
            return
        array, tensor = numpy.asarray(want), tensor[index]
        assert tensor.shape == array.shape
        assert tensor.nbytes == array.nbytes and tensor.size == array.size and tensor.ndim == array.ndim
    got = tensor.numpy()
    assert got.shape == array.shape and got.dtype == array.dtype
    assert numpy.array_equal(got, array)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(sizes=SIZES, index=INDEX)
def test_load_takes_the_same_slices(opened, sizes, index):
    array = numpy.arange(numpy.prod(sizes, dtype=int), dtype="i4").reshape(sizes)
    checkpoint = weigh.open(bytearray(weigh.to_bytes({"w": array})))
    try:
        want = array[index]
    except (IndexError, ValueError) as error:
        with pytest.raises(IndexError if isinstance(error, IndexError) else ValueError):
            checkpoint.load({"w": index})
        return
    assert numpy.array_equal(checkpoint.load({"w": index})["w"], want)
    if numpy.size(want):
        ((_, streamed),) = checkpoint.stream({"w": index})
        assert numpy.array_equal(streamed, want)


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        (2, None),
        (3, IndexError),
        (-3, None),
        (-4, IndexError),
        (2**80, IndexError),
        ((0, 0), None),
        ((0, 0, 0), IndexError),
        ((..., ...), IndexError),
        (slice(None, None, 0), ValueError),
        (1.0, IndexError),
        ("a", IndexError),
        (slice(1.0, None), TypeError),
        (slice(None, "a"), TypeError),
        # What numpy takes and a file does not.
        (None, IndexError),
        (True, IndexError),
        ([0, 1], IndexError),
    ],
)
def test_errors_are_of_numpys_kinds(opened, index, kind):
    array, tensor = opened((3, 4), "I32")
    if kind is None:
        assert numpy.array_equal(tensor[index].numpy(), array[index])
        return
    with pytest.raises(kind) as caught:
        tensor[index]
    if kind is not TypeError:
        assert isinstance(caught.value, weigh.SliceError)
        assert str(caught.value).startswith("w: ")
    if index is not None and not isinstance(index, (bool, list)):
        with pytest.raises(kind):
            array[index]


def test_of_elements_under_8_bits_runs_begin_on_a_byte(write):
    pytest.importorskip("ml_dtypes")
    tensor = weigh.open(write({"w": ("F4", (2, 4), b"\x10\x32\x54\x76")}))["w"]
    assert tensor[0].numpy().view("u1").tolist() == [0, 1, 2, 3]
    assert tensor[:, 2:].numpy().view("u1").tolist() == [[2, 3], [6, 7]]
    for inside in ((0, 1), (slice(None), slice(1, 3)), (0, slice(None, None, -1))):
        with pytest.raises(weigh.SliceError, match="w: "):
            tensor[inside].numpy()
