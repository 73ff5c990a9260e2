"""Programs of the field, unmodified: with `python -m weigh run` they do what they do by themselves.

The calls are those that ComfyUI, diffusers, the web UIs and accelerate make. Each program prints what it found, as it
would be found with the original, and writes files, which are the same but for the order of their metadata's keys.
"""

import hashlib
import json
import subprocess
import sys

import pytest

from drop_in_files import file_of_tensors

torch = pytest.importorskip("torch")

#: What a program begins with.
BEGINNING = """
import hashlib, json, os, struct, sys
import torch

def told(tensors):
    for name in sorted(tensors):
        tensor = tensors[name]
        content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        print(name, tensor.dtype, tuple(tensor.shape), tensor.device, hashlib.sha256(content).hexdigest())

folder = sys.argv[1]
path = os.path.join(folder, "model.safetensors")
"""

#: A checkpoint read key by key onto a device, with its metadata; and only its header, by hand.
COMFY = """
import safetensors, safetensors.torch

def load(ckpt, device, copies):
    with safetensors.safe_open(ckpt, framework="pt", device=device.type) as f:
        found = {}
        for k in f.keys():
            tensor = f.get_tensor(k)
            if copies:
                tensor = tensor.to(device=device, copy=True)
            found[k] = tensor
        return found, f.metadata()

def header(ckpt, max_size=100 * 1024 * 1024):
    with open(ckpt, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        return None if length > max_size else f.read(length)

for copies in (False, True):
    tensors, metadata = load(path, torch.device("cpu"), copies)
    told(tensors)
    print(sorted(metadata.items()))
told(safetensors.torch.load_file(path, device=torch.device("cpu").type))
# Weights are changed in place when a patch is applied, and the file is not.
before = open(path, "rb").read()
for tensor in tensors.values():
    tensor.zero_()
assert open(path, "rb").read() == before
print(json.loads(header(path)).get("__metadata__"))
safetensors.torch.save_file(load(path, torch.device("cpu"), False)[0], folder + "/out.safetensors", metadata=metadata)
print(len(header(folder + "/out.safetensors")))
"""

#: Shards by an index, whose format is in the metadata; content in memory; shapes and rows without loading.
DIFFUSERS = """
import safetensors
import safetensors.torch
from safetensors import safe_open

def load_state_dict(file, disable_mmap=False):
    with safetensors.safe_open(file, framework="pt") as f:
        metadata = f.metadata()
    if metadata is None or metadata.get("format") not in ["pt", "tf", "flax", "mlx"]:
        raise OSError(f"{file} has no format")
    if disable_mmap:
        return safetensors.torch.load(open(file, "rb").read())
    return safetensors.torch.load_file(file, device="cpu")

for disable_mmap in (False, True):
    told(load_state_dict(path, disable_mmap))
with open(folder + "/index.json") as file:
    weight_map = json.load(file)["weight_map"]
for shard in sorted(set(weight_map.values())):
    with safe_open(os.path.join(folder, shard), framework="pt", device="cpu") as f:
        for name in f.keys():
            part = f.get_slice(name)
            shape = part.get_shape()
            print(name, shape, part.get_dtype(), weight_map[name] == shard)
            if shape:
                half = shape[0] // 2
                told({f"{name}[:{half}]": part[:half], f"{name}[{half}:]": part[half:]})
    try:
        load_state_dict(os.path.join(folder, shard))
    except OSError as error:
        print(str(error).rpartition("/")[2])

module = torch.nn.Linear(3, 2)
torch.nn.init.ones_(module.weight)
torch.nn.init.zeros_(module.bias)
safetensors.torch.save_file(module.state_dict(), folder + "/out.safetensors", metadata={"format": "pt"})
module.load_state_dict(load_state_dict(folder + "/out.safetensors"), strict=True, assign=True)
told(module.state_dict())
with safe_open(folder + "/lora.safetensors", framework="pt") as f:
    print(json.loads(f.metadata()["lora_adapter_metadata"]))
"""

#: A header that is looked at by hand, a hash of the tensors' bytes, and metadata that is put into a file.
WEB = """
from safetensors.torch import load, load_file, save, save_file

def read_metadata(filename):
    with open(filename, mode="rb") as file:
        metadata_len = int.from_bytes(file.read(8), "little")
        json_start = file.read(2)
        assert metadata_len > 2 and json_start in (b'{"', b"{'"), filename
        return json.loads(json_start + file.read(metadata_len - 2)).get("__metadata__", {})

def hash_of(filename):
    with open(filename, "rb") as file:
        offset = int.from_bytes(file.read(8), "little") + 8
        file.seek(offset)
        return hashlib.sha256(file.read()).hexdigest()

told(load_file(path))
print(sorted(read_metadata(path).items()))
half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in load_file(path).items()}
metadata = {"ss_network_dim": "16", "modelspec.title": "a \\u00e9 title", "ss_tag": json.dumps({"a": 1})}
content = save(half, metadata)
print(hashlib.sha256(content[8 + int.from_bytes(content[:8], "little") :]).hexdigest())
told(load(content))
save_file(half, folder + "/out.safetensors", metadata)
assert hash_of(folder + "/out.safetensors") == hashlib.sha256(
    content[8 + int.from_bytes(content[:8], "little") :]
).hexdigest()
print(sorted(read_metadata(folder + "/out.safetensors").items()))
"""

#: A model that is saved in shards, and loaded whole, onto a device, and from the disk layer by layer.
ACCELERATE = """
import accelerate
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch, load_checkpoint_in_model

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(32, 16)
        self.second = torch.nn.Linear(16, 32)
        self.tied = torch.nn.Linear(32, 16, bias=False)
        self.tied.weight = self.first.weight

    def forward(self, given):
        return self.second(self.first(given))

torch.manual_seed(0)
model, given = Model(), torch.arange(32.0)
saved = os.path.join(folder, "out.accelerate")
Accelerator(cpu=True).save_model(model, saved, max_shard_size="3KB", safe_serialization=True)
print(sorted(os.listdir(saved)))
told(model.state_dict())
for place in ("cpu", 0, "disk"):
    if place == 0 and not torch.cuda.is_available():
        continue
    with init_empty_weights():
        empty = Model()
    empty.tie_weights = lambda: None
    empty.tied.weight = empty.first.weight
    options = {"offload_folder": os.path.join(folder, "offload")} if place == "disk" else {}
    if place == "disk":
        place = {"first": "disk", "second": "cpu", "tied": "disk"}
        loaded = load_checkpoint_and_dispatch(empty, saved, device_map=place, **options)
    else:
        load_checkpoint_in_model(empty, saved, device_map={"": place})
        told(empty.state_dict())
        loaded = empty
    # Not to the last bit: how a product is summed depends on where its factors are in memory.
    torch.testing.assert_close(loaded(given).cpu(), model(given))
"""

PROGRAMS = {"comfy": COMFY, "diffusers": DIFFUSERS, "web": WEB, "accelerate": ACCELERATE}


def fill(folder):
    """What the programs read."""
    generator = torch.Generator().manual_seed(0)

    def entry(name, shape, dtype):
        values = torch.randn(shape, generator=generator).mul(100).to(dtype)
        return name, values.reshape(-1).view(torch.uint8).numpy().tobytes()

    def tensors(prefix):
        found = {}
        for name, dtype, known, shape in [
            ("model.weight", "F16", torch.float16, (16, 8)),
            ("model.bias", "F32", torch.float32, (16,)),
            ("model.norm", "BF16", torch.bfloat16, (3, 5)),
            ("model.scale", "F8_E4M3", torch.float8_e4m3fn, (7,)),
            ("model.ids", "I64", torch.int64, (1, 4)),
            ("model.step", "F32", torch.float32, ()),
        ]:
            found[prefix + name] = (dtype, list(shape), entry(name, shape, known)[1])
        return found

    folder.mkdir()
    metadata = {"format": "pt", "modelspec.architecture": "sd", "ß": "é"}
    (folder / "model.safetensors").write_bytes(file_of_tensors(tensors(""), metadata))
    weight_map = {}
    for number, given in enumerate([{"format": "pt"}, None]):
        shard = tensors(f"{number}.")
        name = f"part-{number}.safetensors"
        (folder / name).write_bytes(file_of_tensors(shard, given))
        weight_map |= dict.fromkeys(shard, name)
    (folder / "index.json").write_text(json.dumps({"weight_map": weight_map}))
    adapter = {"lora_adapter_metadata": json.dumps({"r": 8})}
    (folder / "lora.safetensors").write_bytes(file_of_tensors(tensors(""), adapter))
    return folder


def described(content):
    """The length of a file, its header, with the metadata's keys in one order, and a hash of its data."""
    if not content.startswith(b"{"):
        start = 8 + int.from_bytes(content[:8], "little")
        header, data = json.loads(content[8:start]), content[start:]
        header["__metadata__"] = sorted(header.get("__metadata__", {}).items())
        return len(content), list(header.items()), hashlib.sha256(data).hexdigest()
    return json.loads(content)


def ran(way, program, folder):
    """What a program printed, and the files that it wrote with what is in them."""
    script = folder.with_suffix(".py")
    script.write_text(BEGINNING + program)
    ended = subprocess.run(
        [sys.executable, *way, str(script), str(folder)], capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    written = {
        str(path.relative_to(folder)): described(path.read_bytes())
        for path in sorted(folder.glob("out.*/**/*")) + sorted(folder.glob("out.*"))
        if path.is_file()
    }
    return ended.stdout.splitlines(), written


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_finds_and_writes_what_it_does_with_the_original(program, tmp_path):
    pytest.importorskip("safetensors", minversion="0.8")
    if program == "accelerate":
        pytest.importorskip("accelerate")
    # Not with the original after all.
    told = "\nprint(sys.modules['safetensors'].__name__)\n"
    expected, written = ran([], PROGRAMS[program] + told, fill(tmp_path / "theirs"))
    own, own_written = ran(["-m", "weigh", "run"], PROGRAMS[program] + told, fill(tmp_path / "ours"))
    assert (expected.pop(), own.pop()) == ("safetensors", "weigh.safetensors")
    assert len(expected) > 5 and written
    assert own == expected
    assert own_written == written


#: What programs do with a file that is not sound: they look for words, and say more.
EXPLAINED = """
import safetensors
try:
    with safetensors.safe_open(path, framework="pt", device="cpu") as f:
        {k: f.get_tensor(k) for k in f.keys()}
except Exception as e:
    message = e.args[0]
    if "HeaderTooLarge" in message:
        print("no such file at all")
    if "MetadataIncompleteBuffer" in message:
        print("cut off")
"""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (file_of_tensors({"a": ("U8", [3], b"abc")}), []),
        (file_of_tensors({"a": ("U8", [3], b"abc")})[:-1], ["cut off"]),
        (b"<!DOCTYPE html><html></html>", ["no such file at all"]),
        (b"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00", ["no such file at all"]),
    ],
)
def test_a_program_that_looks_for_words_finds_them(content, said, tmp_path):
    folder = fill(tmp_path / "ours")
    (folder / "model.safetensors").write_bytes(content)
    assert ran(["-m", "weigh", "run"], EXPLAINED, folder)[0] == said
