"""`weigh.safetensors.torch` against `safetensors.torch`: what is refused, what is shared, what is mapped."""

import pickle
import threading

import pytest

from drop_in_files import content_of, file_of_tensors, outcome
from weigh import safetensors as ours

torch = pytest.importorskip("torch")
own = pytest.importorskip("weigh.safetensors.torch")
theirs = pytest.importorskip("safetensors.torch")

BASE = torch.arange(12.0)

#: Calls of `save` that are refused.
REFUSED = {
    "no dict": [("a", BASE)],
    "no tensor": {"a": [1.0]},
    "none": {"a": None},
    "a sparse tensor": {"a": BASE.to_sparse(), "b": BASE},
    "one tensor twice": {"a": BASE, "b": BASE},
    "a tensor and a part of it": {"a": BASE, "b": BASE[2:4]},
    "parts that overlap": {"a": BASE[:4], "b": BASE[3:8]},
    "a transposed tensor": {"a": BASE.reshape(3, 4).T},
    "a tensor with a step": {"a": BASE[::2]},
    "an expanded tensor": {"a": BASE[:1].expand(3)},
    "a type that the format has not": {"a": BASE.to(torch.complex128)},
    "a tensor without memory": {"a": torch.empty(3, device="meta")},
    "a name that is no string": {1: BASE},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_the_original_refuses_is_refused_with_its_exception_and_its_words(kind, tmp_path):
    tensors = REFUSED[kind]
    for call in (lambda it: it.save(tensors), lambda it: it.save_file(tensors, tmp_path / "model.safetensors")):
        (_, original), (_, refusal) = (outcome(call, module) for module in (theirs, own))
        kinds = {"SafetensorError": ours.SafetensorError}
        assert original is not None and refusal is not None
        assert type(refusal) is kinds.get(type(original).__name__, type(original)), (refusal, original)
        if type(original) is RuntimeError:
            # The order of the names in it is that of a set.
            assert "Some tensors share memory, this will lead to duplicate memory on disk" in str(refusal)
            assert "use `save_model`" in str(refusal)
        elif type(original) is not TypeError:
            assert str(refusal).startswith(str(original)), (refusal, original)
    assert list(tmp_path.iterdir()) == []


#: Tensors that share nothing, or nothing that counts.
TAKEN = {
    "parts that do not overlap": {"a": BASE[:4], "b": BASE[4:8]},
    "empty tensors": {"a": torch.empty(0), "b": torch.empty(3, 0)},
    "a number": {"a": torch.tensor(2.5)},
    "a parameter": {"a": torch.nn.Parameter(torch.ones(3))},
    "a part from the middle": {"a": torch.arange(12.0)[5:7]},
}


@pytest.mark.parametrize("kind", TAKEN)
def test_what_the_original_takes_is_written_byte_for_byte(kind):
    assert own.save(TAKEN[kind], {"format": "pt"}) == theirs.save(TAKEN[kind], {"format": "pt"})


def test_a_conjugated_tensor_is_written_as_what_it_means():
    tensor = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert own.load(own.save({"a": tensor}))["a"].tolist() == [1 - 2j, 3 + 4j]
    assert own.load(own.save({"a": torch._neg_view(BASE)}))["a"].tolist() == (-BASE).tolist()


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("part", self.first.weight.detach().view(-1)[2:6])


@pytest.mark.parametrize("writer", [own, theirs])
@pytest.mark.parametrize("reader", [own, theirs])
def test_a_model_with_tied_tensors_is_read_from_the_file_that_either_wrote(writer, reader, tmp_path):
    path = tmp_path / "model.safetensors"
    model, again = Tied(), Tied()
    writer.save_model(model, path, {"format": "pt"})
    missing, unexpected = reader.load_model(again, path)
    assert (missing, unexpected) == (set(), [])
    assert torch.equal(model.second.weight, again.first.weight) and torch.equal(model.part, again.part)


def test_a_model_is_written_as_by_the_original(tmp_path):
    model = Tied()
    written = []
    for module in (own, theirs):
        path = tmp_path / module.__name__
        module.save_model(model, path)
        with ours.safe_open(path, "pt") as file:
            written.append((file.metadata(), file.keys()))
    assert written[0] == written[1]


def test_metadata_that_was_given_is_not_changed(tmp_path):
    metadata = {"format": "pt"}
    own.save_model(Tied(), tmp_path / "model.safetensors", metadata)
    assert metadata == {"format": "pt"}


def test_a_model_that_does_not_fit_is_refused_in_the_words_of_the_original(tmp_path):
    path = tmp_path / "model.safetensors"
    theirs.save_file({"weight": torch.ones(2, 2), "more": torch.ones(1)}, path)
    (_, original), (_, refusal) = (outcome(it.load_model, torch.nn.Linear(2, 2), path) for it in (theirs, own))
    assert type(refusal) is RuntimeError
    assert (type(refusal), str(refusal)) == (type(original), str(original))
    for module in (theirs, own):
        assert module.load_model(torch.nn.Linear(2, 2), path, strict=False) == ({"bias"}, ["more"])


#: Of the tensors below, those that are all of their memory.
COMPLETE = {"all", "single", "empty"}


def test_the_names_of_what_shares_memory_are_those_of_the_original():
    storage = torch.arange(16.0)
    tensors = {
        "all": storage,
        "start": storage[:4],
        "middle": storage[3:8],
        "end": storage[12:],
        "single": torch.ones(2),
        "empty": torch.empty(0),
        "meta": torch.empty(2, device="meta"),
    }
    key = lambda groups: sorted(sorted(group) for group in groups)  # noqa: E731
    assert key(own._find_shared_tensors(tensors)) == key(theirs._find_shared_tensors(tensors))
    assert key(own._find_shared_tensors(tensors)) == [["all", "middle", "start"], ["end"], ["single"]]
    del tensors["meta"]
    for name, tensor in tensors.items():
        for call in ("storage_ptr", "storage_size", "_end_ptr"):
            assert getattr(own, call)(tensor) == getattr(theirs, call)(tensor), (name, call)
        assert own._is_complete(tensor) == theirs._is_complete(tensor) == (name in COMPLETE), name
    for options in ({}, {"preferred_names": ["all"]}, {"discard_names": ["all"]}):
        results = [
            it._remove_duplicate_names({name: tensors[name] for name in ("all", "start", "middle")}, **options)
            for it in (own, theirs)
        ]
        assert results[0] == results[1] == {"all": ["middle", "start"]}
    with pytest.raises(RuntimeError, match="found no suitable name to keep"):
        own._remove_duplicate_names({"a": storage[:4], "b": storage[3:8]})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    # The last is off its alignment.
    tensors = {"a": ("F32", [2, 3], content_of("F32", 6)), "odd": ("U8", [1], b"a"), "b": ("I64", [1], bytes(8))}
    path.write_bytes(file_of_tensors(tensors))
    return path


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_tensors_have_a_storage_each_can_be_written_to_and_outlive_the_file(backend, path):
    read = own.load_file(path, backend=backend)
    before = path.read_bytes()
    assert {name: tensor.untyped_storage().nbytes() for name, tensor in read.items()} == {"a": 24, "odd": 1, "b": 8}
    read["a"].add_(1)
    assert path.read_bytes() == before
    path.unlink()
    assert read["b"].item() == 0
    assert pickle.loads(pickle.dumps(read["a"])).tolist() == read["a"].tolist()


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_a_file_is_written_over_while_its_tensors_are_in_use(backend, path):
    read = own.load_file(path, backend=backend)
    own.save_file(read, path)
    own.save_file({name: tensor + 1 for name, tensor in read.items()}, path)
    again = own.load_file(path)
    for name, tensor in read.items():
        assert torch.equal(again[name], tensor + 1), name


@pytest.mark.parametrize(("framework", "backend"), [("pt", "mmap"), ("pt", "pread"), ("np", "mmap")])
def test_an_open_file_stays_what_it_is_when_it_is_written_over(framework, backend, path):
    file = ours.safe_open(path, framework, backend=backend)
    before = own.load(path.read_bytes())["a"].tolist()
    part = file.get_slice("a")
    own.save_file({"a": torch.zeros(2, 3)}, path)
    assert file.get_tensor("a").tolist() == before
    assert part[0].tolist() == before[0]
    path.unlink()
    assert file.get_tensors()["a"].tolist() == before


def test_a_read_file_that_is_written_to_in_its_place_is_an_error_not_a_mixture(path):
    file = ours.safe_open(path, "pt", backend="pread")
    with open(path, "r+b") as handle:
        handle.truncate(100)
    with pytest.raises(OSError):
        file.get_tensor("a")


def test_files_are_read_by_several_threads(path):
    file, results = ours.safe_open(path, "pt", backend="pread"), []

    def read():
        for _ in range(50):
            results.append(file.get_tensor("a").sum().item() + file.get_slice("a")[1].sum().item())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200 and len(set(results)) == 1


@pytest.mark.parametrize("dtype", ["F8_E8M0", "F4", "U16", "C64"])
def test_content_in_memory_is_read_in_every_dtype(dtype):
    content = file_of_tensors({"t": (dtype, [4], content_of(dtype, 4))})
    read = own.load(content)["t"]
    assert own._view2torch(ours.deserialize(content))["t"].view(torch.uint8).tolist() == read.view(torch.uint8).tolist()
    assert bytes(read.view(torch.uint8).tolist()) == content_of(dtype, 4)


def test_an_odd_number_of_elements_of_four_bits_in_a_row_is_refused_in_the_words_of_the_original(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of_tensors({"t": ("F4", [2, 3], bytes(3))}))
    for backend in ("mmap", "pread"):
        with pytest.raises(ours.SafetensorError, match="f4_x2 dtype requires that the last dim be divisible by 2"):
            own.load_file(path, backend=backend)


def test_what_older_versions_had_is_there():
    assert own._tobytes(torch.tensor([1, 2], dtype=torch.int16), "t") == b"\1\0\2\0"
    flat = own._flatten({"t": torch.tensor([1.0])})
    assert flat["t"] == {"dtype": "float32", "shape": torch.Size([1]), "data": b"\0\0\x80\x3f"}


def test_a_device_that_is_not_there_raises_what_torch_raises(path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    (_, original), (_, refusal) = (outcome(it.load_file, path, device="cuda:0") for it in (theirs, own))
    assert original is not None
    assert type(refusal) is type(original)
