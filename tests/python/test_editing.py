"""What the editing commands write, read back by the reference implementation."""

import json
import os
import re
import subprocess

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

RANDOM = np.random.default_rng(4)


@pytest.fixture(scope="module")
def tensors():
    made = {f"h.{i}.w": RANDOM.standard_normal((16, 32)).astype(np.float32) for i in range(12)}
    made |= {f"h.{i}.bias": RANDOM.standard_normal(32).astype(np.float16) for i in range(12)}
    made["wte"] = RANDOM.standard_normal((200, 32)).astype(np.float32)
    made["steps"] = np.arange(5, dtype=np.int64)
    made["none"] = np.zeros((0, 4), dtype=np.uint8)
    made["scalar"] = np.array(3.5, dtype=np.float64)
    return made


@pytest.fixture
def model(tmp_path, tensors):
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    return path


def whole(path):
    """Every tensor of a file, or of the files that an index names."""
    if path.suffix == ".safetensors":
        return load_file(path)
    index = json.loads((path / "model.safetensors.index.json").read_text())
    loaded = {}
    for file in sorted(set(index["weight_map"].values())):
        part = load_file(path / file)
        assert all(index["weight_map"][name] == file for name in part)
        assert not loaded.keys() & part.keys()
        loaded |= part
    assert loaded.keys() == index["weight_map"].keys()
    total = sum(array.nbytes for array in loaded.values())
    assert index["metadata"]["total_size"] == total
    return loaded


def same(got, want):
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), name


def metadata(path):
    with safe_open(path, framework="np") as opened:
        return opened.metadata()


def test_an_edit_of_nothing_is_what_the_reference_writes(weigh, model, tmp_path):
    for layout in ["weigh", "reference"]:
        out = tmp_path / f"{layout}.safetensors"
        weigh.run("select", model, "-o", out, "--layout", layout)
        assert out.read_bytes() == model.read_bytes()


@pytest.mark.parametrize("size", ["1KB", "2KiB", "20KB", "1GB"])
def test_split_and_join(weigh, model, tensors, tmp_path, size):
    folder = tmp_path / "split"
    weigh.run("split", model, "-o", folder, "--max-size", size)
    if size == "1GB":
        same(load_file(folder / "model.safetensors"), tensors)
    else:
        same(whole(folder), tensors)
    for file in folder.glob("*.safetensors"):
        assert metadata(file) == {"format": "pt"}
    joined = tmp_path / "joined.safetensors"
    weigh.run("join", folder, "-o", joined)
    assert joined.read_bytes() == model.read_bytes()


def test_select_and_rename(weigh, model, tensors, tmp_path):
    out = tmp_path / "out.safetensors"
    weigh.run("select", f"{model}:h.*", "-x", "*.bias", "--regex", r"\.1", "-o", out)
    kept = [name for name in tensors if name.startswith("h.1") and not name.endswith("bias")]
    same(load_file(out), {name: tensors[name] for name in kept})
    weigh.run("select", model, "--dtype", "F16,I64", "--drop", "-o", out, "--force")
    kept = [name for name in tensors if tensors[name].dtype not in (np.float16, np.int64)]
    same(load_file(out), {name: tensors[name] for name in kept})
    weigh.run("rename", model, r"s/^h\.([0-9]+)/layers.\1/", "-o", out, "--force")
    renamed = {re.sub(r"^h\.", "layers.", name): array for name, array in tensors.items()}
    same(load_file(out), renamed)
    assert metadata(out) == {"format": "pt"}


def test_rename_by_map(weigh, model, tensors, tmp_path):
    out = tmp_path / "out.safetensors"
    pairs = {"wte": "embed.weight", "h.0.w": "first\twith tab"}
    (tmp_path / "map.json").write_text(json.dumps(pairs))
    weigh.run("rename", model, "--map", tmp_path / "map.json", "--add-prefix", "m.", "-o", out)
    same(load_file(out), {"m." + pairs.get(name, name): array for name, array in tensors.items()})


@pytest.mark.parametrize("dtype, numpy", [
    ("BF16", ml_dtypes.bfloat16), ("F16", np.float16), ("F64", np.float64),
    ("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2),
])
def test_cast(weigh, model, tensors, tmp_path, dtype, numpy):
    out = tmp_path / "out.safetensors"
    weigh.run("cast", model, "--to", dtype, "-o", out)
    written = out.read_bytes()
    start = 8 + int.from_bytes(written[:8], "little")
    header = json.loads(written[8:start])
    for name, array in tensors.items():
        want = array.astype(numpy) if array.dtype.kind == "f" else array
        begin, end = (start + offset for offset in header[name]["data_offsets"])
        assert written[begin:end] == want.tobytes(), name
        assert header[name]["dtype"] == dtype or array.dtype.kind != "f"


@pytest.mark.parametrize("arguments", [
    ["select", "MODEL"], ["rename", "MODEL", "s/h/g/"], ["cast", "MODEL", "--to", "f16"],
    ["split", "MODEL", "--max-size", "5KB"], ["join", "MODEL"],
    ["select", "MODEL", "-i", "absent"], ["rename", "MODEL", "s/[0-9]+//"], ["join", "absent"],
])
def test_the_documents_keep_to_their_schema(weigh, root, model, tmp_path, arguments):
    schema = json.loads((root / "docs/schemas/weigh.write.1.json").read_text())
    arguments = [str(model) if it == "MODEL" else it for it in arguments]
    out = tmp_path / "out"
    # The plan, the work, and that there is something already.
    for more in [["--dry-run"], [], []]:
        output = weigh.json(*arguments, "-o", out, "--json", *more, codes=(0, 1, 2))
        jsonschema.validate(output, schema)
        assert output["written"] == (not more and not output["errors"])


def test_two_writers_to_one_target(weigh, model, tensors, tmp_path):
    out = tmp_path / "out.safetensors"
    command = [weigh.program, "cast", model, "--to", "bf16", "-o", out, "--force"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [it.wait() for it in running] == [0] * 8
    assert len(weigh.json("ls", "--json", out)["checkpoints"][0]["tensors"]) == len(tensors)
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "out.safetensors"]
