"""What holds the loaders of `cargo xtask bench load` to the right bytes is itself right."""

import sys

import ml_dtypes  # noqa: F401 - with it numpy knows bfloat16
import numpy
import pytest
from safetensors.numpy import load_file

BYTES = numpy.random.default_rng(0).integers(0, 256, 1003, dtype=numpy.uint8)


@pytest.fixture(scope="module")
def scripts(root):
    """The benchmark's own modules, which are no package."""
    sys.path.insert(0, str(root / "benches" / "load"))
    try:
        import answer
        import sets
    finally:
        sys.path.pop(0)
    return answer, sets


def test_the_example_gives_what_it_gives_in_rust(scripts):
    """`benches/src/bin/weigh-load/answer.rs` has the same."""
    answer, _ = scripts
    checksum = answer.Checksum()
    for name, data, want in [
        ("", b"", "0000000000000000"),
        ("a", b"\1", "af63dc4c8601ec8d"),
        ("a", b"\0\0\0\0\0\0\0\0\1", "5ec7b8990c03d91a"),
        ("weights.été", b"\xff" * 17, "3fff3a33978e0793"),
        ("model.layers.0.weight", bytes(range(256)), "05cc0bad233c9e13"),
    ]:
        checksum.add(name, numpy.frombuffer(data, numpy.uint8))
        assert checksum.shown() == want, name
    assert (checksum.tensors, checksum.bytes) == (5, 283)


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 990])
def test_a_word_sum_is_that_of_little_endian_words(scripts, start, length):
    answer, _ = scripts
    data = BYTES[start : start + length]
    padded = data.tobytes() + bytes(-length % 8)
    words = [padded[at : at + 8] for at in range(0, len(padded), 8)]
    want = sum(int.from_bytes(word, "little") for word in words) % 2**64
    assert answer.word_sum(data) == want


def test_an_eighth_in_the_middle(scripts):
    answer, _ = scripts
    for length, want in [(0, (0, 0)), (2, (0, 1)), (15, (6, 8)), (16, (7, 9)), (8192, (3584, 4608))]:
        assert answer.middle_eighth(length) == want, length


@pytest.mark.parametrize("name", ["big", "mid", "tiny"])
def test_a_set_is_what_the_reference_reads_and_the_same_every_time(scripts, tmp_path, name):
    answer, sets = scripts
    made = sets.make(tmp_path / "one", name, 1 / 512)
    again = sets.make(tmp_path / "other", name, 1 / 512)
    assert made == again
    assert sets.make(tmp_path / "one", name, 1 / 512) == made
    sums = {part: answer.Checksum() for part in made["answers"]}
    for file in made["files"]:
        path, other = tmp_path / "one" / name / file, tmp_path / "other" / name / file
        assert path.read_bytes() == other.read_bytes()
        for tensor, values in load_file(path).items():
            rows, columns = (slice(*answer.middle_eighth(size)) for size in values.shape)
            for part, taken in [
                ("whole", values),
                ("slice-first", values[rows]),
                ("slice-last", values[:, columns]),
            ]:
                data = numpy.ascontiguousarray(taken).reshape(-1).view(numpy.uint8)
                sums[part].add(tensor, data)
    for part, checksum in sums.items():
        want = {"tensors": checksum.tensors, "bytes": checksum.bytes, "checksum": checksum.shown()}
        assert made["answers"][part] == want, part
    assert len(set(it["checksum"] for it in made["answers"].values())) == 3
