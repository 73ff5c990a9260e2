"""Checkpoints: opened, listed, selected from, loaded."""

import copy
import json
import pickle
import subprocess
import sys

import pytest

import weigh

ONE = ("U8", (2,), b"\x01\x02")


@pytest.fixture
def checkpoint(write):
    names = ["layers.10.w", "layers.2.w", "w", "a[0]", "a0", "b*", "bx"]
    return weigh.open(write({name: ONE for name in names}, {"k": "v"}))


def test_names_are_in_natural_order(checkpoint):
    want = ["a0", "a[0]", "b*", "bx", "layers.2.w", "layers.10.w", "w"]
    assert list(checkpoint) == want
    assert list(checkpoint.keys()) == want
    assert [name for name, _ in checkpoint.items()] == want
    assert [tensor.name for tensor in checkpoint.values()] == want
    assert checkpoint.select() == want


def test_it_is_a_mapping(checkpoint):
    assert len(checkpoint) == len(checkpoint.items()) == len(checkpoint.values()) == 7
    assert "w" in checkpoint and "q" not in checkpoint
    for no_name in (0, None, b"w", "\ud800", ("w",)):
        assert no_name not in checkpoint
        assert checkpoint.get(no_name) is None
        with pytest.raises(KeyError):
            checkpoint[no_name]
    assert checkpoint.get("w").name == "w"
    assert checkpoint.keys() & {"w", "q"} == {"w"}
    assert dict(checkpoint).keys() == checkpoint.keys()
    assert checkpoint == checkpoint and checkpoint != dict(checkpoint)
    assert {checkpoint: 1}[checkpoint] == 1


def test_it_says_what_it_is(checkpoint):
    assert repr(checkpoint) == f"<weigh.Checkpoint {checkpoint.path!r}: 7 tensors, 14 bytes>"
    assert checkpoint.metadata == {"k": "v"}
    assert checkpoint.nbytes == 14
    assert checkpoint.files == [checkpoint.path]
    with checkpoint as same:
        assert same is checkpoint
    assert list(checkpoint["w"].tobytes()) == [1, 2]


def test_a_tensor_says_what_it_is_without_being_read(write):
    path = write({"w": ("F32", (2, 3), bytes(24)), "s": ("F4", (2, 2), bytes(2)), "z": ("I64", (), bytes(8))})
    tensor = weigh.open(path)["w"]
    assert (tensor.name, tensor.dtype, tensor.shape, tensor.ndim, tensor.size, tensor.nbytes, len(tensor)) == (
        "w", "F32", (2, 3), 2, 6, 24, 2,
    )
    assert tensor.span[1] - tensor.span[0] == 24
    assert tensor.file == str(path)
    assert repr(tensor) == "<weigh.Tensor 'w' F32 [2, 3]>"
    assert weigh.open(path)["s"].nbytes == 2
    scalar = weigh.open(path)["z"]
    assert (scalar.shape, scalar.ndim, scalar.size, scalar.nbytes) == ((), 0, 1, 8)
    for what in (len, iter, bool):
        with pytest.raises(TypeError):
            what(scalar)
    with pytest.raises(TypeError):
        bool(tensor)
    assert [row.shape for row in tensor] == [(3,), (3,)]


@pytest.mark.parametrize(
    ("include", "exclude", "want"),
    [
        (None, None, ["a0", "a[0]", "b*", "bx", "layers.2.w", "layers.10.w", "w"]),
        ([], None, []),
        ("w", None, ["w"]),
        (["w", "a0", "w"], None, ["w", "a0"]),
        ("layers.*", None, ["layers.2.w", "layers.10.w"]),
        ("*w", None, ["layers.2.w", "layers.10.w", "w"]),
        # The name of a tensor means that tensor, whatever it would be as a glob.
        ("a[0]", None, ["a[0]"]),
        ("b*", None, ["b*"]),
        (["b*", "a?"], None, ["b*", "a0"]),
        ("b?", None, ["b*", "bx"]),
        ("a\\[0\\]", None, ["a[0]"]),
        (None, "*w", ["a0", "a[0]", "b*", "bx"]),
        (None, ["b*", "layers.*"], ["a0", "a[0]", "bx", "w"]),
        (["w", "a0"], "w", ["a0"]),
    ],
)
def test_names_and_globs_select(checkpoint, include, exclude, want):
    assert checkpoint.select(include, exclude) == want
    assert list(checkpoint.load(include, exclude=exclude)) == want
    assert [name for name, _ in checkpoint.stream(include, exclude=exclude, order="given")] == want


def test_what_selects_nothing_is_an_error(checkpoint):
    for include, exclude in [("q", None), ("q*", None), (["w", "q"], None), (None, "q"), ({"q": None}, None)]:
        with pytest.raises(weigh.TensorNotFoundError, match="q"):
            checkpoint.load(include, exclude=exclude)
    for no_names in ([1], 1, [b"w"], [None]):
        with pytest.raises(TypeError):
            checkpoint.load(no_names)
    with pytest.raises(ValueError):
        checkpoint.select("[")
    with pytest.raises(ValueError, match="exclude"):
        checkpoint.load({"w": None}, exclude="a0")


def test_slices_are_loaded_by_name(write):
    pytest.importorskip("numpy")
    path = write({"w": ("U8", (3, 4), bytes(range(12))), "v": ("U8", (3,), b"abc")})
    loaded = weigh.open(path).load({"w": (slice(None, None, -1), 1), "v": None})
    assert list(loaded) == ["w", "v"]
    assert loaded["w"].tolist() == [9, 5, 1]
    assert loaded["v"].tolist() == [97, 98, 99]
    streamed = dict(weigh.open(path).stream({"w": (..., slice(1, 3)), "v": slice(1, None)}, order="given"))
    assert streamed["w"].tolist() == [[1, 2], [5, 6], [9, 10]]
    assert streamed["v"].tolist() == [98, 99]
    for bad in (9, (0, 0, 0), slice(None, None, 0), 1.5, (None,)):
        with pytest.raises(weigh.SliceError, match="^w: "):
            weigh.open(path).load({"w": bad})


def test_floats_are_converted_and_nothing_else_is(write):
    numpy = pytest.importorskip("numpy")
    path = write({"w": ("F16", (2,), b"\x00\x3c\x00\xc0"), "n": ("I16", (1,), b"\x07\x00")})
    loaded = weigh.open(path).load(dtype="F32")
    assert loaded["w"].dtype == numpy.float32 and loaded["w"].tolist() == [1.0, -2.0]
    assert loaded["n"].dtype == numpy.int16
    assert weigh.open(path)["w"].numpy(dtype="F64").dtype == numpy.float64
    # Names are the format's, in letters of either case.
    for name in ("F32", "f32"):
        assert weigh.load(path, dtype=name)["w"].dtype == numpy.float32
        assert weigh.open(path)["w"].numpy(dtype="f64").dtype == numpy.float64
        assert dict(weigh.open(path).stream(dtype=name))["w"].dtype == numpy.float32
    for name in ("F33", "float32", "I16", "F8_E4M3", ""):
        with pytest.raises(weigh.WeighError) as caught:
            weigh.load(path, dtype=name)
        assert repr(name) in str(caught.value) and caught.value.code == "cast-not-target"
        assert "F32" in caught.value.help


def test_load_is_open_and_load(write):
    pytest.importorskip("numpy")
    path = write({"w": ONE, "v": ONE})
    assert list(weigh.load(path)) == ["v", "w"]
    assert list(weigh.load(path, "w", framework="numpy")) == ["w"]
    with pytest.raises(TypeError):
        weigh.load(path, framwork="numpy")


def test_a_framework_that_is_none_is_named(checkpoint):
    with pytest.raises(ValueError, match="numpy, paddle"):
        checkpoint.load(framework="caffe")
    pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="'gpu'"):
        checkpoint.load(framework="numpy", device="gpu")


def test_a_folder_is_one_checkpoint_or_says_which_it_has(write, tmp_path):
    write({"a": ONE}, name="model-00001-of-00002.safetensors")
    write({"b": ONE}, name="model-00002-of-00002.safetensors")
    assert list(weigh.open(tmp_path)) == ["a", "b"]
    index = {"metadata": {}, "weight_map": {}}
    for name, file in (("a", 1), ("b", 2)):
        index["weight_map"][name] = f"model-0000{file}-of-00002.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert list(weigh.open(tmp_path)) == ["a", "b"]
    assert list(weigh.open(tmp_path / "model.safetensors.index.json")) == ["a", "b"]
    (tmp_path / "model.safetensors.index.json").unlink()
    write({"c": ONE}, name="adapter.safetensors")
    with pytest.raises(weigh.WeighError, match="adapter.safetensors") as caught:
        weigh.open(tmp_path)
    assert caught.value.code == "several-checkpoints"
    assert "Give one of them" in caught.value.help
    assert list(weigh.open(tmp_path / "adapter.safetensors")) == ["c"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(weigh.WeighError) as caught:
        weigh.open(tmp_path / "empty")
    assert caught.value.code == "nothing-found"


def test_the_header_has_a_limit(write):
    path = write({"w": ONE})
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert weigh.open(path, max_header=length)
    with pytest.raises(weigh.FormatError) as caught:
        weigh.open(path, max_header=length - 1)
    assert caught.value.code == "header-over-limit"
    assert "`max_header=`" in caught.value.help and "--" not in caught.value.help


def test_strict_refuses_what_is_against_the_format(tmp_path):
    # A member that the format does not have: every reader reads the tensor alike.
    header = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x01")
    (finding,) = [finding for finding in weigh.check(path) if finding.severity != "note"]
    assert finding.severity == "deviation"
    assert weigh.open(path)["w"].tobytes() == weigh.load(path, framework="numpy")["w"].tobytes() == b"\x01"
    for call in (weigh.open, weigh.load):
        with pytest.raises(weigh.FormatError) as caught:
            call(path, strict=True)
        assert caught.value.code == finding.code


def test_load_takes_what_open_takes(write):
    path = write({"w": ONE})
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert weigh.load(path, max_header=length)
    with pytest.raises(weigh.FormatError) as caught:
        weigh.load(path, max_header=length - 1)
    assert caught.value.code == "header-over-limit"


def test_names_are_sorted_once(checkpoint):
    class Counting:
        asked = 0

        def __init__(self, native):
            self.native = native

        def __getattr__(self, name):
            Counting.asked += name == "names"
            return getattr(self.native, name)

    counted = type(checkpoint)(Counting(checkpoint._native))
    for _ in range(3):
        names = counted.select()
        assert list(counted) == list(counted.keys()) == names == [name for name, _ in counted.items()]
        assert [tensor.name for tensor in counted.values()] == names == list(counted.load())
        # What is handed out is the caller's.
        names.clear()
    assert Counting.asked == 1


def test_check_finds_all_there_is_to_say(write, tmp_path):
    path = write({"w": ONE})
    assert [f for f in weigh.check(path) if f.severity == "error"] == []
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(path.read_bytes()[:-1])
    (finding,) = [f for f in weigh.check(cut) if f.severity == "error"]
    assert finding.file == str(cut) and finding.help and finding.evidence
    with pytest.raises(FileNotFoundError):
        weigh.check(tmp_path / "none")


def test_copies_are_the_same_and_pickles_are_paths(checkpoint, write, monkeypatch, tmp_path):
    assert copy.copy(checkpoint) is checkpoint and copy.deepcopy(checkpoint) is checkpoint
    again = pickle.loads(pickle.dumps(checkpoint))
    assert list(again) == list(checkpoint)
    # The path is one that other processes find.
    monkeypatch.chdir(tmp_path)
    dumped = pickle.dumps(weigh.open("model.safetensors", max_header=10**6))
    monkeypatch.chdir("/")
    assert list(pickle.loads(dumped)) == list(checkpoint)
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(weigh.open(memoryview((tmp_path / "model.safetensors").read_bytes())))
    tensor = checkpoint["w"]
    assert copy.deepcopy(tensor) is tensor
    for what in (tensor, tensor.read(), checkpoint.stream()):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(what)


def test_a_process_that_is_started_anew_opens_a_pickle(checkpoint, environment):
    program = "import pickle, sys; print(*pickle.load(sys.stdin.buffer))"
    made = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(checkpoint),
        env=environment,
        capture_output=True,
        check=True,
    )
    assert made.stdout.decode().split() == list(checkpoint)


def test_an_array_is_made_by_numpy_too(write):
    numpy = pytest.importorskip("numpy")
    tensor = weigh.open(write({"w": ("I16", (2,), b"\x01\x00\x02\x00")}))["w"]
    assert numpy.asarray(tensor).tolist() == [1, 2]
    assert numpy.asarray(tensor, dtype="f8").dtype == numpy.float64
    with pytest.raises(ValueError):
        numpy.asarray(tensor, copy=False)


#: Shapes without elements whose dimensions are too large for a machine, or for an index.
LARGE = [(2**63, 0), (2**64 - 1, 0), (2**32, 2**32, 0), (2**62, 4, 0), (0, 2**64 - 1, 5)]


@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_a_tensor_without_elements_is_empty_whatever_its_shape(shape, write):
    tensor = weigh.open(write({"x": ("F32", shape, b"")}))["x"]
    assert (tensor.shape, tensor.size, tensor.nbytes) == (shape, 0, 0)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_a_shape_that_no_machine_has_is_one_error_everywhere(shape, framework, write):
    pytest.importorskip(framework)
    checkpoint = weigh.open(write({"x": ("F32", shape, b"")}))
    for read in (
        lambda: checkpoint.load(framework=framework),
        lambda: getattr(checkpoint["x"], framework)(),
        lambda: getattr(checkpoint["x"][...], framework)(),
    ):
        try:
            made = read()
        except ValueError as error:
            # WeighError and SliceError are.
            assert "x" in str(error)
        else:
            assert tuple(made.shape) == shape


def test_long_names_are_shortened_where_they_are_told(write):
    name = "n" * 1_000_000
    checkpoint = weigh.open(write({name: ("U8", (1,), b"a")}))
    texts = [repr(checkpoint[name])]
    for call in (lambda: checkpoint[name][5], lambda: checkpoint[name + "x"], lambda: checkpoint.load("[" + name)):
        with pytest.raises(weigh.WeighError) as caught:
            call()
        texts.append(str(caught.value))
    assert [len(text) for text in texts if len(text) > 2000] == []
