"""Saving: a file, a sharded set, in the background; there whole or not at all."""

import gc
import json
import os
import stat
import sys
import threading

import pytest

import weigh
from weigh._save import size

numpy = pytest.importorskip("numpy")


@pytest.fixture
def arrays():
    return {f"layer.{number}": numpy.full((64, 16), number, "f4") for number in range(10)}


def same(one, other):
    return one.keys() == other.keys() and all(numpy.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", [str, os.fsencode, lambda path: path], ids=["str", "bytes", "pathlib"])
def test_a_file_is_written_and_read(arrays, tmp_path, kind):
    path = tmp_path / "é.safetensors"
    assert weigh.save(arrays, kind(path), metadata={"a": "ü"}) == [str(path)]
    assert same(weigh.load(kind(path)), arrays)
    assert weigh.open(path).metadata == {"a": "ü"}
    assert os.listdir(tmp_path) == [path.name]
    assert [finding for finding in weigh.check(path) if finding.severity != "note"] == []
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_the_original_package_reads_it(arrays, tmp_path):
    original = pytest.importorskip("safetensors.numpy")
    weigh.save(arrays, tmp_path / "x", metadata={"a": "b"})
    assert same(original.load_file(tmp_path / "x"), arrays)
    assert same(original.load(weigh.to_bytes(arrays)), arrays)
    from safetensors import safe_open

    with safe_open(tmp_path / "x", framework="numpy") as file:
        assert file.metadata() == {"a": "b"}
    for metadata in (None, {}, {"a": "b"}):
        assert weigh.to_bytes(arrays, metadata=metadata, layout="reference") == original.save(arrays, metadata)


def test_nothing_and_the_empty_tensor_are_written(tmp_path):
    weigh.save({}, tmp_path / "nothing")
    assert weigh.load(tmp_path / "nothing") == {}
    weigh.save({"": numpy.zeros((0, 3))}, tmp_path / "empty")
    assert weigh.load(tmp_path / "empty")[""].shape == (0, 3)


def test_a_sharded_set_is_written_and_read(arrays, tmp_path):
    each = 64 * 16 * 4
    paths = weigh.save(arrays, tmp_path / "set", max_shard_size=4 * each, metadata={"a": "b"})
    assert [os.path.basename(path) for path in paths] == [
        "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
        "model.safetensors.index.json",
    ]
    index = json.loads((tmp_path / "set" / "model.safetensors.index.json").read_text())
    assert index["weight_map"].keys() == arrays.keys()
    assert index["metadata"]["total_size"] == 10 * each
    assert same(weigh.load(tmp_path / "set"), arrays)
    assert same(weigh.load(paths[-1]), arrays)
    original = pytest.importorskip("safetensors.numpy")
    read = {}
    for path in paths[:-1]:
        read |= original.load_file(path)
    assert same(read, arrays)


def test_a_set_replaces_a_set(arrays, tmp_path):
    weigh.save(arrays, tmp_path, max_shard_size=5000, stem="m")
    with pytest.raises(FileExistsError):
        weigh.save(arrays, tmp_path, max_shard_size=5000, stem="m", replace=False)
    fewer = {"w": numpy.ones(3)}
    weigh.save(fewer, tmp_path, max_shard_size="1GB", stem="m")
    assert same(weigh.load(tmp_path), fewer)
    # Of the set before, nothing stays that somebody could take for a part of it.
    assert os.listdir(tmp_path) == ["m.safetensors"]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (1, 1), ("1", 1), ("5GB", 5 * 10**9), ("5gb", 5 * 10**9), ("5 GB", 5 * 10**9), ("5GiB", 5 << 30),
        ("5G", 5 << 30),
        ("1.5KB", 1500), ("2TB", 2 * 10**12), ("3MiB", 3 << 20), ("7B", 7), (numpy.int64(3), 3),
        (0, None), (-1, None), ("0", None), ("", None), ("GB", None), ("5XB", None), ("1.2.3GB", None), ("-5GB", None),
    ],
)  # fmt: skip
def test_sizes_are_numbers_or_texts(given, want):
    if want is None:
        with pytest.raises(ValueError):
            size(given)
    else:
        assert size(given) == want


def test_a_file_that_is_there_is_replaced_only_if_that_is_so(arrays, tmp_path):
    path = tmp_path / "x"
    weigh.save({"old": numpy.ones(1)}, path)
    with pytest.raises(FileExistsError) as caught:
        weigh.save(arrays, path, replace=False)
    assert caught.value.filename == str(path)
    assert list(weigh.open(path)) == ["old"]
    weigh.save(arrays, path)
    assert same(weigh.load(path), arrays)


def test_what_cannot_be_written_leaves_what_was_there(arrays, tmp_path):
    path = tmp_path / "x"
    weigh.save(arrays, path)
    before = path.read_bytes()
    for tensors, metadata, kind in [
        ({"w": numpy.array(["text"])}, None, TypeError),
        ({"__metadata__": numpy.ones(1)}, None, weigh.WeighError),
        ({"w": numpy.ones(1)}, {"a": 1}, TypeError),
        ({"w": numpy.ones(1)}, {1: "a"}, TypeError),
        ({"\ud800": numpy.ones(1)}, None, ValueError),
    ]:
        with pytest.raises(kind):
            weigh.save(tensors, path, metadata=metadata)
    with pytest.raises(FileNotFoundError):
        weigh.save(arrays, tmp_path / "no folder" / "x")
    with pytest.raises(OSError):
        weigh.save(arrays, tmp_path)
    with pytest.raises(ValueError, match="layout"):
        weigh.save(arrays, path, layout="dense")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk_is_its_own_error(arrays):
    with pytest.raises(OSError) as caught:
        weigh.save(arrays, "/dev/full")
    assert not isinstance(caught.value, ValueError)


def test_tensors_of_a_checkpoint_are_written(arrays, tmp_path):
    weigh.save(arrays, tmp_path / "x")
    checkpoint = weigh.open(tmp_path / "x")
    weigh.save(checkpoint, tmp_path / "copy")
    assert same(weigh.load(tmp_path / "copy"), arrays)
    weigh.save({"part": checkpoint["layer.3"][1:3], "buffer": checkpoint["layer.4"].read()}, tmp_path / "x")
    read = weigh.load(tmp_path / "x")
    assert numpy.array_equal(read["part"], arrays["layer.3"][1:3])
    assert numpy.array_equal(read["buffer"], arrays["layer.4"])


def test_saving_in_the_background_is_of_the_moment_it_was_asked_for(tmp_path):
    array = numpy.zeros(4 << 20, "u1")
    pending = weigh.save_async({"w": array}, tmp_path / "x")
    array[:] = 1
    assert pending.wait() == [str(tmp_path / "x")]
    assert pending.done and pending.wait() == [str(tmp_path / "x")]
    assert not weigh.load(tmp_path / "x")["w"].any()
    assert repr(pending) == "<weigh.Pending: done>"
    torch = pytest.importorskip("torch")
    for tensor in (torch.zeros(1 << 20), torch.zeros(1 << 10, 1 << 10).T[::2]):
        pending = weigh.save_async({"w": tensor}, tmp_path / "x")
        tensor.fill_(1)
        pending.wait()
        assert not weigh.load(tmp_path / "x")["w"].any()


@pytest.fixture
def copies(monkeypatch):
    """What is copied for a snapshot, by which way."""
    from weigh import _frameworks
    from weigh._frameworks import _numpy

    made = []

    def counted(where, name):
        copy = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *given: made.append(name) or copy(*given))

    counted(_numpy, "copied")
    counted(_frameworks, "_copied")
    return made


def test_a_snapshot_is_copied_once(copies, tmp_path):
    from weigh._frameworks import entries

    array = numpy.arange(1 << 12, dtype="i4").reshape(64, 64)
    weigh.save({"w": array}, tmp_path / "x")
    lazy = weigh.open(tmp_path / "x")["w"]
    cases = [
        ("as it lies", array, ["copied"]),
        ("a view", array[:32], ["copied"]),
        ("turned", array.T, []),
        ("of the other byte order", array.astype(">i4"), []),
        ("a list", array.tolist(), ["copied"]),
        ("of a file", lazy, []),
        ("a buffer", lazy.read(), ["_copied"]),
    ]
    for name, tensor, want in cases:
        copies.clear()
        ((_, _, shape, data),) = entries({"w": tensor}, own=True)
        assert copies == want, name
        if isinstance(tensor, numpy.ndarray):
            assert not numpy.may_share_memory(numpy.frombuffer(data, "u1"), tensor), name
        kind = "i8" if isinstance(tensor, list) else "i4"
        again = numpy.frombuffer(data, kind).reshape(shape)
        assert numpy.array_equal(again, numpy.asarray(tensor)), name
        # Without one there is none, but of what does not lie in order.
        copies.clear()
        entries({"w": tensor})
        assert copies == [], name


def test_a_snapshot_of_torch_is_copied_once(monkeypatch):
    torch = pytest.importorskip("torch")
    from weigh._frameworks import entries

    clone, made = torch.Tensor.clone, []
    monkeypatch.setattr(torch.Tensor, "clone", lambda *given: made.append(1) or clone(*given))
    whole = torch.arange(1 << 12, dtype=torch.int32).reshape(64, 64)
    cases = [
        ("as it lies", whole, 1),
        ("a view", whole[5:], 1),
        ("a parameter", torch.nn.Parameter(whole.float()), 1),
        ("turned", whole.T, 0),
        ("every other", whole[::2], 0),
        ("conjugate", torch.ones(8, dtype=torch.complex64).conj(), 0),
    ]
    for name, tensor, want in cases:
        made.clear()
        ((_, _, _, data),) = entries({"w": tensor}, own=True)
        assert len(made) == want, name
        start = tensor.untyped_storage().data_ptr()
        assert not start <= data[0] < start + tensor.untyped_storage().nbytes(), name
        assert data[1] == tensor.numel() * tensor.element_size(), name
        made.clear()
        ((_, _, _, data),) = entries({"w": tensor})
        assert made == [] and (want == 0 or data[0] == tensor.data_ptr()), name


def test_a_snapshot_has_every_dtype(everything, tmp_path):
    pytest.importorskip("torch")
    tensors, path = everything
    for framework, missing in (("numpy", ()), ("torch", ("F6_E2M3", "F6_E3M2"))):
        names = [name for name in tensors if not name.startswith(missing)] if missing else list(tensors)
        loaded = weigh.load(path, names, framework=framework)
        weigh.save_async(loaded, tmp_path / "x").wait(60)
        checkpoint = weigh.open(tmp_path / "x")
        for name in names:
            dtype, shape, content = tensors[name]
            tensor = checkpoint[name]
            assert (tensor.dtype, tensor.shape, tensor.tobytes()) == (dtype, shape, content), name


def test_without_a_snapshot_the_tensors_are_kept_alive(tmp_path):
    pending = weigh.save_async({"w": numpy.full(8 << 20, 3, "u1")}, tmp_path / "x", snapshot=False)
    gc.collect()
    pending.wait(60)
    assert weigh.load(tmp_path / "x")["w"].min() == 3


def test_what_goes_wrong_in_the_background_is_raised_by_whoever_waits(arrays, tmp_path):
    pending = weigh.save_async(arrays, tmp_path / "no folder" / "x")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            pending.wait()
    assert pending.done and repr(pending) == "<weigh.Pending: failed>"
    with pytest.raises(TypeError, match="^w: "):
        weigh.save_async({"w": numpy.array(["text"])}, tmp_path / "x")
    with pytest.raises(TypeError):
        weigh.save_async(arrays, tmp_path / "x", progress=True)
    assert os.listdir(tmp_path) == []


def test_what_nobody_waited_for_is_warned_of(arrays, tmp_path):
    with pytest.warns(RuntimeWarning, match="nobody waited"):
        pending = weigh.save_async(arrays, tmp_path / "no folder" / "x")
        pending._thread.join()
        del pending
        gc.collect()


def test_waiting_ends_when_it_was_to(arrays, tmp_path, monkeypatch):
    from weigh import _save

    go = threading.Event()
    write = _save._write
    monkeypatch.setattr(_save, "_write", lambda *given: go.wait() and write(*given))
    pending = weigh.save_async(arrays, tmp_path / "x")
    with pytest.raises(TimeoutError):
        pending.wait(0.01)
    assert not pending.done and repr(pending) == "<weigh.Pending: writing>"
    go.set()
    assert pending.wait(60)


def test_a_program_does_not_end_before_the_writing_has(tmp_path, environment):
    import subprocess

    program = f"import numpy, weigh; weigh.save_async({{'w': numpy.ones(1 << 22)}}, {str(tmp_path / 'x')!r})"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert weigh.open(tmp_path / "x")["w"].size == 1 << 22
