"""What `scan` says of honest checkpoints, and whether `torch.load(weights_only=True)` takes each: asked of torch."""

import pytest
import torch

import containers
import elements
import payloads
import refusals
import structures


def takes(path):
    """Whether this torch takes a file. It calls nothing that is not one of its own constructors."""
    try:
        torch.load(path, weights_only=True)
    except Exception:  # whatever it raises, it did not take it
        return False
    return True


def save_all(folder, values, ways=containers.WAYS):
    """Every value in every way, by the name of its file."""
    saved = {}
    for name, make in values.items():
        for way in ways:
            file = f"{name}-{containers.way_id(way)}.pt"
            containers.save(make(), folder / file, way)
            saved[file] = name
    return saved


HONEST = {
    **structures.STRUCTURES,
    **{f"views_{dtype}": (lambda dtype=dtype: elements.views(dtype)) for dtype in elements.PLAIN},
    **{f"lazy_{dtype}": (lambda dtype=dtype: elements.lazy(dtype)) for dtype in elements.NEGATABLE},
    **{f"refused_{name}": make for name, (make, _) in refusals.TENSORS.items()},
    **{
        f"names_{name}": make
        for name, (make, _) in refusals.NAMES.items()
        if name not in ("laughing", "expanded_without_end", "many_expanded")
    },
}


def differing(scanned, wanted):
    return {file: (scanned.get(file), want) for file, want in wanted.items() if scanned.get(file) != want}


def test_honest_checkpoints_are_nothing_but_data(weigh, tmp_path):
    saved = save_all(tmp_path, HONEST) | save_all(tmp_path, structures.VALUES, containers.OBJECT_WAYS)
    verdicts = {file: entry["verdict"] for file, entry in weigh.scan(tmp_path).items()}
    assert not differing(verdicts, dict.fromkeys(saved, "data-only"))


def test_checkpoints_that_call_or_name_something_else_are_named_for_that(weigh, tmp_path):
    calls = save_all(tmp_path, refusals.CALLS | structures.MODULES)
    names = save_all(tmp_path, refusals.GLOBALS)
    verdicts = {file: entry["verdict"] for file, entry in weigh.scan(tmp_path).items()}
    assert not differing(verdicts, dict.fromkeys(calls, "call") | dict.fromkeys(names, "unknown-global"))


def test_a_graph_made_to_exhaust_its_readers_is_no_honest_one(weigh, tmp_path):
    saved = save_all(tmp_path, {"laughing": refusals.NAMES["laughing"][0]})
    verdicts = {file: entry["verdict"] for file, entry in weigh.scan(tmp_path).items()}
    assert not differing(verdicts, dict.fromkeys(saved, "ambiguous"))


@pytest.mark.parametrize("values", [HONEST, refusals.CALLS | refusals.GLOBALS | structures.VALUES | structures.MODULES], ids=["data", "other"])
def test_torch_takes_with_weights_only_what_the_scan_says_it_takes(weigh, tmp_path, values):
    save_all(tmp_path, values)
    compare(weigh, tmp_path)


def test_of_rewritten_archives_too(weigh, tmp_path):
    whole = containers.save(structures.lightning(), tmp_path / "whole.pt", ("zip", 2))
    containers.deflate(whole, tmp_path / "deflated.pt")
    containers.without_byte_order(whole, tmp_path / "no-byte-order.pt")
    containers.save_without_checksums(structures.lightning(), tmp_path / "no-checksums.pt")
    floats = containers.save(elements.views("float32"), tmp_path / "floats.pt", ("zip", 2))
    containers.big_endian(floats, tmp_path / "big-endian.pt", 4)
    compare(weigh, tmp_path)


def test_of_pickles_that_call_something(weigh, tmp_path):
    """The payloads are harmless, and torch refuses to call what they name."""
    plain = containers.save({"w": torch.ones(2)}, tmp_path / "plain.pt", ("zip", 2))
    for form in payloads.FORMS:
        for module, name in (("os", "getpid"), ("collections", "OrderedDict"), ("torch", "get_default_dtype")):
            pickle = payloads.pickle(form, module, name)
            containers.change_pickle(plain, tmp_path / f"{form}-{module}-{name}.pt", lambda old, pickle=pickle: pickle)
    compare(weigh, tmp_path)


def compare(weigh, folder):
    """Fails with every file of a folder about which the scan and torch disagree."""
    scanned = weigh.scan(folder)
    said = {file: bool(entry["weights_only"] and entry["weights_only"]["taken"]) for file, entry in scanned.items()}
    wrong = differing(said, {path.name: takes(path) for path in folder.iterdir()})
    shown = [f"{file}: scan says {found}, torch says {want}: {scanned.get(file, {}).get('weights_only')}"
             for file, (found, want) in sorted(wrong.items())]  # fmt: skip
    assert not wrong, "\n".join(shown)
