"""No name outside the documented table is ever given a meaning.

Names are made at random, of nothing and of those in the table: longer, shorter, in another case, dotted, with other
modules. Calling one is a call, however it is spelled; naming one is an unknown global; and where one stands for a
constructor of tensors, no tensor is read. None of these pickles is unpickled.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st

import containers
import known
import payloads
from program import Refusal
from structures import counting

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
DOTTED = st.lists(IDENTIFIERS, min_size=1, max_size=4).map(".".join)
LETTERS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def near(draw):
    """A pair that is nearly one of the table."""
    module, name = draw(st.sampled_from(sorted(known.TABLE)))
    other_module, other_name = draw(st.sampled_from(sorted(known.TABLE)))
    piece = draw(IDENTIFIERS)
    return draw(
        st.sampled_from(
            [
                (module, name + piece),
                (module, piece + name),
                (module, name[:-1] or piece),
                (module, f"{name}.{piece}"),
                (module, f"{name}.__init__"),
                (module, f"{name}.__class__"),
                (module + piece, name),
                (f"{module}.{piece}", name),
                (f"{module}.{name}", piece),
                (f"{piece}.{module}", name),
                (module, name.swapcase()),
                (module.upper(), name),
                (module.rpartition(".")[0] or piece, name),
                (module, other_name),
                (other_module, name),
                (module.rpartition(".")[0] or "torch", f"{module.rpartition('.')[2]}.{name}"),
                (f"{module} ", name),
                (module, f"{name} "),
                (f"{module}\0", name),
            ]
        )
    )


PAIRS = st.one_of(near(), st.tuples(DOTTED, DOTTED), st.tuples(LETTERS, LETTERS), st.sampled_from(known.FOREIGN))


def is_foreign(pair):
    return pair not in known.TABLE and pair not in known.PYTHON_2


def scan(weigh, pickles):
    """The verdicts of pickles, by number, and what they say."""
    folder = Path(tempfile.mkdtemp(prefix="globals-"))
    try:
        for number, pickle in enumerate(pickles):
            (folder / f"{number}.pkl").write_bytes(pickle)
        scanned = weigh.scan(folder)
        return [scanned[f"{number}.pkl"] for number in range(len(pickles))]
    finally:
        shutil.rmtree(folder)


# A failure names the pair: there is no need to look for a smaller list that has it.
many = settings(
    max_examples=20, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
    verbosity=Verbosity.quiet,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@many
@given(st.lists(st.tuples(st.sampled_from(sorted(payloads.FORMS)), PAIRS.filter(is_foreign)), min_size=30, max_size=100))
def test_calling_a_name_outside_of_the_table_is_a_call(weigh, calls):
    pickles = [payloads.pickle(form, *pair) for form, pair in calls]
    scanned = zip(calls, scan(weigh, pickles), strict=True)
    wrong = [(form, pair, entry) for (form, pair), entry in scanned if not is_call(entry, *pair)]
    assert not wrong, shown(wrong)


def shown(wrong):
    return "\n".join(f"{form} of {pair}: {entry}" for form, pair, entry in wrong)


def is_call(entry, module, name):
    """A call of that name is named; or, of a name that no line or dotted path can spell, reading stops as an error."""
    if entry["verdict"] == "error":
        return not spelled(module, name)
    return entry["verdict"] == "call" or (entry["verdict"] == "ambiguous" and entry["calls"])


def spelled(module, name):
    """Whether a line can be of it, for every reader: ASCII that is not empty."""
    return all(part.isascii() and part.strip() == part != "" for part in (module, name))


@many
@given(st.lists(st.tuples(st.sampled_from(sorted(payloads.NAMED)), PAIRS.filter(is_foreign)), min_size=30, max_size=100))
def test_naming_one_is_an_unknown_global(weigh, names):
    pickles = [payloads.pickle(form, *pair) for form, pair in names]
    scanned = zip(names, scan(weigh, pickles), strict=True)
    wrong = [(form, pair, entry) for (form, pair), entry in scanned if not is_named(entry, *pair)]
    assert not wrong, shown(wrong)


def is_named(entry, module, name):
    if entry["verdict"] == "error":
        return not spelled(module, name)
    return entry["verdict"] in ("unknown-global", "ambiguous")


def test_names_of_the_table_are_nothing_but_data(weigh):
    pairs = sorted(known.TABLE - known.CALLED)
    pickles = [payloads.pickle("global", *pair) for pair in pairs]
    wrong = [(pair, entry["verdict"]) for pair, entry in zip(pairs, scan(weigh, pickles), strict=True) if entry["verdict"] != "data-only"]
    assert not wrong


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = tmp_path_factory.mktemp("honest") / "a.pt"
    return containers.save({"w": torch.nn.Parameter(counting(2)), "v": counting(3)}, path, ("zip", 2))


@many
@given(pair=PAIRS.filter(is_foreign))
def test_no_tensor_is_read_of_a_constructor_by_another_name(weigh, honest, pair):
    module, name = pair
    if not spelled(module, name):
        return

    def renamed(pickle):
        changed = pickle.replace(payloads.by_name("torch._utils", "_rebuild_tensor_v2"), payloads.by_name(module, name))
        assert changed != pickle
        return changed

    path = containers.change_pickle(honest, honest.with_name("changed.pt"), renamed)
    for options in ((), ("--allow-calls",), ("--partial",), ("--all", "--allow-calls")):
        found = weigh.convert(path, honest.with_name("out.safetensors"), *options)
        assert isinstance(found, Refusal), (options, found)
    found = weigh.convert(path, honest.with_name("out.safetensors"), "--allow-calls", "--partial")
    assert isinstance(found, Refusal) or not found, found
