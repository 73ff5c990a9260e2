"""Objects that programs save: what is around the tensors of a checkpoint.

Each function makes one. `STRUCTURES` has them by name; `VALUES` those with objects of classes whose values are known;
`MODULES` those with objects of a program's own classes, which are read only with `--allow-calls`. With protocol 1 the
last two are made by `copyreg._reconstructor`, which calls what it is given, so that they are for protocols 2 to 5.
"""

import argparse
from collections import Counter, OrderedDict, defaultdict

import numpy
import torch

STRUCTURES = {}
VALUES = {}
MODULES = {}


def structure(make):
    STRUCTURES[make.__name__] = make
    return make


def with_values(make):
    VALUES[make.__name__] = make
    return make


def module(make):
    MODULES[make.__name__] = make
    return make


def counting(*shape):
    count = int(numpy.prod(shape)) if shape else 1
    return torch.arange(count, dtype=torch.float32).reshape(shape)


@structure
def tensor_alone():
    return counting(2, 3)


@structure
def parameter_alone():
    return torch.nn.Parameter(counting(3))


@structure
def parameters():
    return {
        "trained": torch.nn.Parameter(counting(2)),
        "frozen": torch.nn.Parameter(counting(2), requires_grad=False),
        "integers": torch.nn.Parameter(torch.arange(3), requires_grad=False),
        "view": torch.nn.Parameter(counting(4, 4)[1:, ::2]),
        "leaf": counting(2).requires_grad_(),
    }


@structure
def buffers():
    return {"kept": torch.nn.Buffer(counting(2)), "not_kept": torch.nn.Buffer(counting(3), persistent=False)}


@structure
def parameter_with_attributes():
    parameter = torch.nn.Parameter(counting(3))
    parameter.sharded = True
    parameter.label = "w"
    parameter.inner = counting(1)
    tensor = counting(2)
    tensor.tag = {"a": 1}
    return {"parameter": parameter, "tensor": tensor}


@structure
def state_dict_of_a_module():
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Embedding(4, 2)).state_dict()


@structure
def nested():
    return {
        "a": {"b": {"c": counting(1), "d": [counting(2), (counting(3), {"e": counting(4)})]}},
        "f": counting(5),
        "values": {"none": None, "number": 3, "text": "x", "flag": True, "float": 0.5, "empty": [], "bytes": b"\xff"},
    }


@structure
def list_at_the_root():
    return [counting(1), {"a": counting(2)}, (counting(3), 7)]


@structure
def tuple_at_the_root():
    return counting(1), counting(2)


@structure
def integer_keys():
    return {0: {"step": counting(), 1: counting(2)}, -3: counting(1), 10**9: counting(1)}


@structure
def empty_key():
    return {"": counting(1), "a": {"": counting(2), "b": counting(3)}}


@structure
def empty_key_of_a_dictionary():
    return {"": {"a": counting(1), "": counting(2)}}


@structure
def keys_of_other_characters():
    return {"häß": counting(1), "层.权重": counting(2), "😀\n\"'\\": counting(3), "a b": counting(4), "x" * 300: counting(5)}


@structure
def keys_that_json_escapes():
    return {"\0\x1b[31m\x7f": counting(1), "\u202e\u2028": counting(2), "\ufeff": counting(3), "e\u0301": counting(4)}


@structure
def names_with_dots():
    return {"a.b": counting(1), "a": {"c": counting(2)}}


@structure
def ordered():
    return OrderedDict([("z", counting(1)), ("a", OrderedDict(y=counting(2), b=counting(3)))])


@structure
def counter():
    return {"count": Counter(a=2, b=1), "w": counting(1)}


@structure
def default_dictionary():
    inner = defaultdict(dict, {"w": counting(2)})
    return defaultdict(list, {"a": [counting(1)], "b": inner})


@structure
def one_dictionary_by_two_names():
    inner = {"w": counting(2)}
    return {"a": inner, "b": inner, "c": {"d": inner}}


@structure
def one_list_extended_after_it_was_seen():
    inner = [counting(1)]
    root = {"a": inner, "b": inner}
    inner.append(counting(2))
    return root


@structure
def tied():
    weight = torch.nn.Parameter(counting(4, 2))
    return {"embedding.weight": weight, "head.weight": weight, "alias": weight.data, "bias": counting(2)}


@structure
def shared_storage():
    storage = counting(24)
    return {
        "all": storage,
        "first": storage[:12],
        "second": storage[12:],
        "overlapping": storage[6:18].view(3, 4),
        "transposed": storage.view(4, 6).t(),
    }


@structure
def views_of_one_storage_as_other_dtypes():
    # Each dtype is saved apart: torch refuses to save one storage as two dtypes.
    raw = torch.arange(16, dtype=torch.uint8)
    return {"bytes": raw, "half": raw.clone().view(torch.float16), "long": raw.clone().view(torch.int64)}


@structure
def lightning():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return {
        "epoch": 3,
        "global_step": 120,
        "pytorch-lightning_version": "2.5.0",
        "state_dict": OrderedDict((f"model.{name}", tensor) for name, tensor in model.state_dict().items()),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 4}}}},
        "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": counting(), "best_k_models": {}}},
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [scheduler.state_dict()],
        "hparams_name": "kwargs",
        "hyper_parameters": {"learning_rate": 1e-3, "sizes": [1, 2], "path": None},
    }


@with_values
def lightning_with_a_namespace():
    return {**lightning(), "hyper_parameters": argparse.Namespace(learning_rate=0.1, layers=[1, 2])}


@structure
def training_loop():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng_state": torch.get_rng_state(),
        "epoch": 1,
    }


@structure
def state_of_training_beside_a_state_dict():
    """No key says where the state dict is: it is the root, without the optimizer."""
    return {"encoder": {"w": counting(2)}, "optimizer": {"state": {0: {"m": counting(2)}}}, "scaler": counting(1)}


@structure
def two_state_dicts():
    return {"model": {"w": counting(2)}, "ema": {"w": counting(2) + 1}, "optimizer": {"m": counting(1)}}


@structure
def a_state_dict_without_tensors_beside_one():
    return {"state_dict": {"version": 1}, "net": {"w": counting(2)}}


@structure
def a_tensor_by_the_name_of_a_state_dict():
    return {"weights": counting(2), "params": {"w": counting(3)}}


@structure
def optimizer_alone():
    return torch.optim.Adam([torch.nn.Parameter(counting(2))]).state_dict() | {"step": counting()}


@structure
def no_tensors():
    """The state dict of a model without parameters."""
    return OrderedDict()


@structure
def whisper():
    return {"dims": {"n_mels": 80, "n_vocab": 51865}, "model_state_dict": {"encoder.w": counting(2, 3)}}


@structure
def deep_speed():
    """As `mp_rank_00_model_states.pt` has it."""
    return {
        "module": OrderedDict([("0.weight", counting(4, 3)), ("0.bias", counting(4).to(torch.bfloat16))]),
        "buffer_names": ["1.running_mean"],
        "optimizer": {"state": {0: {"exp_avg": counting(4, 3)}}},
        "param_shapes": [OrderedDict([("0.weight", torch.Size([4, 3]))])],
        "frozen_param_shapes": None,
        "sparse_tensor_module_names": set(),
        "global_steps": 1,
        "ds_config": {"zero_optimization": {"stage": 2}},
        "ds_version": "0.14.0",
    }


@structure
def with_hooks():
    hooked = counting(3).requires_grad_()
    hooked.register_hook(abs)
    return {"hooked": hooked, "detached": hooked.detach(), "half": counting(3).half().requires_grad_()}


@structure
def storages():
    """A storage beside the tensors is no tensor."""
    return {"w": counting(2), "typed": counting(3).storage()}


@structure
def default_dictionaries_of_other_factories():
    made = {"integers": defaultdict(int), "sets": defaultdict(set), "none": defaultdict(None), "lists": defaultdict(list)}
    for number, inner in enumerate(made.values()):
        inner["w"] = counting(number + 1)
    return made


@structure
def ordered_with_attributes():
    inner = OrderedDict(w=counting(2))
    inner._metadata = OrderedDict({"": {"version": 1}})
    inner.more = counting(3)
    return inner


@structure
def torch_values():
    return {"w": counting(1), "size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.bfloat16}


@structure
def sets_and_numbers():
    return {
        "w": counting(1),
        "set": {1, 2},
        "frozen": frozenset({"a"}),
        "complex": 1j,
        "long": 2**80,
        "longer": 2**3000,
        "negative": -(2**63),
        "range": range(3),
        "slice": slice(1, 2),
        "bytearray": bytearray(b"ab"),
    }


@structure
def numpy_arrays():
    arrays = {
        name: numpy.arange(6).reshape(2, 3).astype(name)
        for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                     "float16", "float32", "float64", "complex64")
    }  # fmt: skip
    arrays["fortran"] = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    arrays["big_endian"] = numpy.arange(4, dtype=">f4")
    arrays["big_endian_complex"] = (numpy.arange(2) + 1j).astype(">c8")
    arrays["sliced"] = numpy.arange(10)[::3]
    arrays["backwards"] = numpy.arange(4)[::-1]
    arrays["permuted"] = numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)
    arrays["empty"] = numpy.empty((0, 2))
    arrays["no_dimension"] = numpy.array(3.5)
    arrays["large"] = numpy.arange(100_000, dtype="i4").reshape(100, 1000).T
    arrays["tensor"] = counting(2)
    return arrays


@structure
def numpy_scalars():
    return {"w": counting(1), "loss": numpy.float64(0.5), "step": numpy.int64(7), "flag": numpy.bool_(True)}


@structure
def many_tensors():
    return {f"layer.{number}.weight": torch.full((3,), float(number)) for number in range(2000)}


@structure
def deep():
    root = inner = {}
    for _ in range(100):
        inner["a"] = {}
        inner = inner["a"]
    inner["w"] = counting(1)
    return root


@module
def linear():
    return torch.nn.Linear(3, 2)


@module
def sequential():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, bias=False), torch.nn.BatchNorm2d(2), torch.nn.Sequential(torch.nn.Linear(2, 2))
    )


@module
def module_with_a_buffer_that_is_not_kept():
    network = torch.nn.Linear(2, 2)
    network.register_buffer("mask", counting(2), persistent=False)
    network.register_buffer("scale", counting(1))
    network.register_buffer("nothing", None)
    network.register_parameter("none", None)
    network.nothing_either = None
    return network


@module
def module_with_tied_weights():
    network = torch.nn.Sequential(torch.nn.Embedding(4, 2), torch.nn.Linear(2, 4, bias=False))
    network[1].weight = network[0].weight
    return network


@module
def module_with_one_submodule_twice():
    inner = torch.nn.Linear(2, 2)
    return torch.nn.ModuleDict({"a": inner, "b": inner})


@module
def recurrent_module():
    return torch.nn.LSTM(2, 3, num_layers=2, bidirectional=True)


@module
def transformer():
    return torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)


@module
def module_in_a_checkpoint():
    return {"epoch": 2, "model": torch.nn.Linear(2, 1), "ema": None, "optimizer": None}


@module
def parameter_lists():
    network = torch.nn.Module()
    network.list = torch.nn.ParameterList([counting(1), counting(2)])
    network.dictionary = torch.nn.ParameterDict({"a": counting(3)})
    return network


class Subclass(torch.Tensor):
    """A class of a program's own."""


@module
def tensor_of_another_class():
    return {"w": counting(2).as_subclass(Subclass), "v": counting(3)}
