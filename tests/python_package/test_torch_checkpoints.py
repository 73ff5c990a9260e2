"""Checkpoints of torch: loaded and converted as torch would load them, and nothing in them executed."""

import io
import mmap
import os
import pickle
import subprocess
import sys

import pytest

import weigh

torch = pytest.importorskip("torch")


def state():
    base = torch.arange(12.0).reshape(3, 4)
    return {
        "plain": base,
        "turned": base.t(),
        "part": base[1:, ::2],
        "wide": torch.ones(1).expand(5),
        "half": torch.linspace(-1, 1, 7).to(torch.bfloat16),
        "small": torch.linspace(-1, 1, 8).to(torch.float8_e4m3fn),
        "flags": torch.tensor([True, False, True]),
        "number": torch.tensor(3, dtype=torch.int64),
        "none": torch.empty(0, 4),
        "imaginary": torch.tensor([1 + 2j, 3 - 4j]).conj(),
    }


@pytest.fixture(params=["zip", "legacy"])
def saved(request, tmp_path):
    path = tmp_path / "model.pt"
    torch.save(state(), path, _use_new_zipfile_serialization=request.param == "zip")
    return path


def bytes_of(tensor):
    return tensor.resolve_conj().contiguous().reshape(-1).view(torch.uint8).tolist()


def same(got, expected):
    assert list(got) == list(expected)
    for name, tensor in expected.items():
        assert (got[name].dtype, got[name].shape) == (tensor.dtype, tensor.shape)
        assert bytes_of(got[name]) == bytes_of(tensor)


def test_a_state_dict_is_what_torch_saved_and_loads(saved, request):
    same(weigh.torch.load_checkpoint(saved), state())
    # torch cannot load floats of 8 bits from its own legacy files.
    if request.node.callspec.params["saved"] == "zip":
        same(torch.load(saved, weights_only=True), state())


def test_a_state_dict_is_found_in_what_is_around_it(tmp_path):
    path = tmp_path / "last.ckpt"
    torch.save({"epoch": 3, "state_dict": state(), "optimizer": {"state": {0: {"m": torch.ones(2)}}}}, path)
    same(weigh.torch.load_checkpoint(path), state())
    same(weigh.torch.load_checkpoint(path, key="state_dict"), state())
    assert "optimizer.state.0.m" in weigh.torch.load_checkpoint(path, all=True)
    with pytest.raises(weigh.WeighError, match="model"):
        weigh.torch.load_checkpoint(path, key="model")


def test_tensors_have_memory_of_their_own(tmp_path):
    path = tmp_path / "model.pt"
    shared = torch.ones(4)
    torch.save({"a": shared, "b": shared}, path)
    loaded = weigh.torch.load_checkpoint(path)
    loaded["a"][0] = 7
    assert loaded["b"].tolist() == [1, 1, 1, 1]
    assert not loaded["a"].requires_grad


class Payload:
    def __reduce__(self):
        return os.getpid, ()


def test_nothing_is_called(tmp_path):
    path = tmp_path / "bad.pt"
    torch.save({"w": torch.ones(2), "x": Payload()}, path)
    program = f"""
import os, sys
def called(*_):
    raise SystemExit("called")
os.getpid = called
import weigh
for allowed in (False, True):
    try:
        print(sorted(weigh.torch.load_checkpoint({str(path)!r}, allow_calls=allowed, partial=allowed)))
    except weigh.WeighError as error:
        print(error.code, [finding.code for finding in error.findings] != [])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["torch-refused True", "['w']"]


def test_a_checkpoint_is_converted(saved, tmp_path):
    target = tmp_path / "model.safetensors"
    done = weigh.convert(saved, target)
    assert (done.paths, done.aliases, done.left_out) == ([str(target)], {}, {})
    expected = state()
    same(weigh.load(target, sorted(expected), framework="torch"), {name: expected[name] for name in sorted(expected)})
    with pytest.raises(FileExistsError):
        weigh.convert(saved, target)
    weigh.convert(saved, target, replace=True)


def test_tied_names_are_written_once_if_that_is_asked_for(tmp_path):
    shared = torch.ones(4)
    torch.save({"a": shared, "b": shared}, tmp_path / "model.pt")
    done = weigh.convert(tmp_path / "model.pt", tmp_path / "once.safetensors", dedupe=True, tied=["a"])
    assert done.aliases == {"a": "b"}
    checkpoint = weigh.open(tmp_path / "once.safetensors")
    assert (list(checkpoint), checkpoint.metadata["a"]) == (["b"], "b")


def test_what_cannot_be_converted_is_an_error_or_is_listed(tmp_path):
    torch.save({"w": torch.ones(2), "m": torch.empty(3, device="meta")}, tmp_path / "model.pt")
    with pytest.raises(weigh.WeighError, match="m"):
        weigh.convert(tmp_path / "model.pt", tmp_path / "x.safetensors")
    assert os.listdir(tmp_path) == ["model.pt"]
    done = weigh.convert(tmp_path / "model.pt", tmp_path / "x.safetensors", partial=True)
    assert list(done.left_out) == ["m"]


def test_arguments_that_are_wrong_are_said(tmp_path):
    torch.save(state(), tmp_path / "model.pt")
    for wrong in ({"complex": "both"}, {"max_shard_size": 0}, {"max_shard_size": "much"}):
        with pytest.raises(ValueError):
            weigh.convert(tmp_path / "model.pt", tmp_path / "x", **wrong)
    for path in (tmp_path / "none.pt", tmp_path / "none" / "x"):
        with pytest.raises(FileNotFoundError):
            weigh.torch.load_checkpoint(path)
    (tmp_path / "text.pt").write_text("not a checkpoint")
    with pytest.raises(weigh.WeighError):
        weigh.torch.load_checkpoint(tmp_path / "text.pt")


def test_archives_of_numpy_are_written_and_read(tmp_path):
    numpy = pytest.importorskip("numpy")
    torch.save({"w": torch.arange(6).reshape(2, 3)}, tmp_path / "model.pt")
    weigh.convert(tmp_path / "model.pt", tmp_path / "model.npz")
    with numpy.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        assert arrays["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    loaded = weigh.torch.load_checkpoint(tmp_path / "model.npz")
    assert loaded["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_file_that_is_cut_off_or_changed_is_an_error(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"w": torch.arange(1000.0)}, path)
    content = bytearray(path.read_bytes())
    place = content.index(torch.arange(1000.0).numpy().tobytes()[400:440])
    content[place] ^= 1
    for damaged in (content[: len(content) // 2], content):
        path.write_bytes(damaged)
        with pytest.raises(weigh.WeighError):
            weigh.torch.load_checkpoint(path)
    assert weigh.torch.load_checkpoint(path, ignore_crc=True)["w"].shape == (1000,)


def test_protocols_of_pickle_make_no_difference(tmp_path):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        torch.save(state(), tmp_path / "model.pt", pickle_protocol=protocol)
        same(weigh.torch.load_checkpoint(tmp_path / "model.pt"), state())


def test_a_scan_says_what_loading_would_run(tmp_path):
    torch.save(state(), tmp_path / "good.pt")
    torch.save({"w": torch.ones(2), "x": Payload()}, tmp_path / "bad.pt")
    (tmp_path / "notes.txt").write_text("nothing to see")
    weigh.save({"w": torch.ones(2)}, tmp_path / "fine.safetensors")
    found = {os.path.basename(scan.path): scan for scan in weigh.scan(tmp_path)}
    assert {name: scan.verdict for name, scan in found.items()} == {
        "bad.pt": "call",
        "fine.safetensors": "data-only",
        "good.pt": "data-only",
        "notes.txt": None,
    }
    bad, good = found["bad.pt"], found["good.pt"]
    assert [scan.is_clean for scan in (bad, good)] == [False, True]
    assert [(call.callee, call.gadget) for call in bad.calls] == [(f"{os.getpid.__module__}.getpid", True)]
    assert (bad.call_count, bad.weights_only, good.weights_only) == (1, False, True)
    assert "foreign-call" in [finding.code for finding in bad.findings]
    assert not all(name.known for name in bad.globals) and all(name.known for name in good.globals)
    assert bad.refusal and good.refusal is None
    with pytest.raises(FileNotFoundError):
        weigh.scan(tmp_path / "none")


CALL = b"cos\ngetpid\n(tR."


def test_a_scan_takes_paths_of_every_kind_and_content(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(CALL)
    for given in (path, str(path), os.fsencode(path)):
        (scan,) = weigh.scan(given)
        assert (scan.path, scan.verdict, scan.size, scan.error) == (str(path), "call", len(CALL), None)
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for content in (bytearray(CALL), memoryview(CALL), mapped):
        (scan,) = weigh.scan(content)
        assert (scan.path, scan.verdict, scan.size) == ("", "call", len(CALL))
    assert weigh.scan(bytearray())[0].verdict is None
    for wrong in (None, 1, "https://host/a.pt", io.BytesIO(CALL), [path], (name for name in "a")):
        with pytest.raises(TypeError):
            weigh.scan(wrong)
    (tmp_path / "none").mkdir()
    assert weigh.scan(tmp_path / "none") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and links")
def test_a_scan_of_a_folder_says_what_it_could_not_read(tmp_path):
    (tmp_path / "a.pkl").write_bytes(b"N.")
    os.mkfifo(tmp_path / "pipe.pt")
    os.symlink("nowhere", tmp_path / "link.pt")
    unreadable = tmp_path / "secret.pt"
    unreadable.write_bytes(b"N.")
    unreadable.chmod(0)
    found = {os.path.basename(scan.path): scan for scan in weigh.scan(tmp_path)}
    assert set(found) == {"a.pkl", "pipe.pt", "link.pt", "secret.pt"}
    names = ["pipe.pt", "link.pt"] + ["secret.pt"] * (os.geteuid() != 0)
    for name in names:
        scan = found[name]
        assert (scan.kind, scan.verdict, scan.complete, scan.size) == ("unread", "error", False, None)
        assert name in scan.error and not scan.is_clean
    assert found["a.pkl"].is_clean
    for name in names:
        with pytest.raises((OSError, weigh.WeighError)):
            weigh.scan(tmp_path / name)


def test_a_scan_is_shown_in_a_line(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(CALL * 1000)
    shown = repr(weigh.scan(path))
    assert "'call'" in shown and "calls=1000" in shown and len(shown) < 300
