"""Writes the checkpoints of this folder: `tiny/`, `lora/` and `quantized/`.

They are small, but real: the tensors are torch's, the files are written by the
Python package `safetensors`, and names, dtypes, shard names and the index are
those of a Llama-like decoder as the transformers library saves it. The weights
are random numbers from a fixed seed, so the model says nothing.

    pip install torch==2.15.0 safetensors==0.8.0 numpy
    python examples/make_tiny.py

Running it again writes the same bytes.
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent
SEED = 20
LAYERS = 4
VOCABULARY = 256
HIDDEN = 32
INTERMEDIATE = 88
HEADS = 4
KEY_VALUE_HEADS = 2
KEY_VALUE = HIDDEN // HEADS * KEY_VALUE_HEADS
SHARDS = 3
RANK = 4
BITS = 4
GROUP = 8

LINEAR = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KEY_VALUE, HIDDEN),
    "self_attn.v_proj": (KEY_VALUE, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": 128,
    "model_type": "llama",
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KEY_VALUE_HEADS,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": VOCABULARY,
}


def main():
    generator = torch.Generator().manual_seed(SEED)
    tensors = decoder(generator)
    write_sharded(HERE / "tiny", tensors)
    write_lora(HERE / "lora", generator)
    write_quantized(HERE / "quantized", tensors)


def decoder(generator):
    """The model's tensors, in the order in which the model runs them."""

    def weight(rows, columns):
        values = torch.randn(rows, columns, generator=generator) / math.sqrt(columns)
        return values.to(torch.bfloat16)

    def norm():
        return 1 + torch.randn(HIDDEN, generator=generator) / 16

    tensors = {"model.embed_tokens.weight": weight(VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        tensors[f"{prefix}.input_layernorm.weight"] = norm()
        for name, (rows, columns) in LINEAR.items():
            tensors[f"{prefix}.{name}.weight"] = weight(rows, columns)
        tensors[f"{prefix}.post_attention_layernorm.weight"] = norm()
    tensors["model.norm.weight"] = norm()
    tensors["lm_head.weight"] = weight(VOCABULARY, HIDDEN)
    return tensors


def write_sharded(folder, tensors):
    """The decoder in numbered shards, beside an index and a configuration."""
    total = sum(size(tensor) for tensor in tensors.values())
    shards = [{} for _ in range(SHARDS)]
    filled = 0
    for name, tensor in tensors.items():
        shards[min(filled * SHARDS // total, SHARDS - 1)][name] = tensor
        filled += size(tensor)

    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05}-of-{SHARDS:05}.safetensors"
        write(folder / file, shard, {"format": "pt"})
        weight_map |= dict.fromkeys(shard, file)
    parameters = sum(tensor.numel() for tensor in tensors.values())
    index = {
        "metadata": {"total_parameters": parameters, "total_size": total},
        "weight_map": weight_map,
    }
    write_json(folder / "model.safetensors.index.json", index)
    write_json(folder / "config.json", CONFIG)


def write_lora(folder, generator):
    """A rank-4 adapter of the query and value projections, as peft saves it."""
    tensors = {}
    for layer in range(LAYERS):
        for name in ("self_attn.q_proj", "self_attn.v_proj"):
            rows, columns = LINEAR[name]
            prefix = f"base_model.model.model.layers.{layer}.{name}"
            down = torch.randn(RANK, columns, generator=generator) / math.sqrt(columns)
            up = torch.randn(rows, RANK, generator=generator) / RANK
            tensors[f"{prefix}.lora_A.weight"] = down
            tensors[f"{prefix}.lora_B.weight"] = up
    config = {
        "base_model_name_or_path": "../tiny",
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "lora_alpha": 8,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": RANK,
        "target_modules": ["q_proj", "v_proj"],
        "task_type": "CAUSAL_LM",
    }
    write(folder / "adapter_model.safetensors", tensors, {"format": "pt"})
    write_json(folder / "adapter_config.json", config)


def write_quantized(folder, tensors):
    """The decoder with its projections in 4 bits, laid out as GPTQ does."""
    quantized = {}
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        if module.endswith("_proj"):
            for suffix, part in quantize(tensor.float()).items():
                quantized[f"{module}.{suffix}"] = part
        else:
            quantized[name] = tensor.to(torch.float16)
    metadata = {
        "format": "pt",
        "gptq_bits": str(BITS),
        "gptq_desc_act": "False",
        "gptq_group_size": str(GROUP),
    }
    quantization = {
        "bits": BITS,
        "desc_act": False,
        "group_size": GROUP,
        "quant_method": "gptq",
        "sym": False,
    }
    write(folder / "model.safetensors", quantized, metadata)
    config = CONFIG | {"quantization_config": quantization, "torch_dtype": "float16"}
    write_json(folder / "config.json", config)


def quantize(weight):
    """Rounds a weight to 4 bits, with one scale and zero for each group of inputs.

    `qweight` packs 8 inputs in an I32, `qzeros` packs 8 outputs, lowest bits
    first; the zeros are stored less one, which is this layout's habit.
    """
    groups = weight.t().reshape(-1, GROUP, weight.shape[0])
    low = groups.amin(dim=1).clamp(max=0)
    high = groups.amax(dim=1).clamp(min=0)
    most = 2**BITS - 1
    scales = ((high - low) / most).to(torch.float16)
    zeros = torch.round(-low / scales.float()).clamp(1, most)
    levels = torch.round(groups / scales.float().unsqueeze(1) + zeros.unsqueeze(1)).clamp(0, most)
    inputs = weight.shape[1]
    return {
        "qweight": pack(levels.reshape(inputs, -1)),
        "qzeros": pack((zeros - 1).t()).t().contiguous(),
        "scales": scales,
        "g_idx": torch.arange(inputs, dtype=torch.int32) // GROUP,
    }


def pack(levels):
    """Packs each run of 8 rows of 4-bit levels into one row of I32."""
    per_word = 32 // BITS
    runs = levels.to(torch.int64).reshape(-1, per_word, levels.shape[1])
    shifts = torch.arange(per_word).reshape(1, -1, 1) * BITS
    words = (runs << shifts).sum(dim=1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def write(path, tensors, metadata):
    """Writes one file, again until its metadata is in sorted order.

    The package writes metadata in an order that differs from save to save; all
    else is the same each time.
    """
    path.parent.mkdir(exist_ok=True)
    while True:
        save_file(tensors, path, metadata=metadata)
        if list(read_metadata(path)) == sorted(metadata):
            break
    path.chmod(0o644)


def read_metadata(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length))["__metadata__"]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def size(tensor):
    return tensor.numel() * tensor.element_size()


if __name__ == "__main__":
    main()
