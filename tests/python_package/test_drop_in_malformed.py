"""Files that are not sound: `weigh.safetensors` refuses what the original refuses, and in its words too."""

import collections
import pickle

import pytest

import drop_in_files
from drop_in_files import file_of, outcome
from weigh import safetensors as ours
from weigh.safetensors import SafetensorError

#: What the two may differ in, by FORMAT.md §2.
STRICTER = {"duplicate-key", "json-depth", "entry-field-type"}

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}

#: A file of each kind: content, the name of the fault before 0.6, the words since.
KINDS = {
    "nothing": (b"", "HeaderTooSmall", "header too small"),
    "seven bytes": (b"1234567", "HeaderTooSmall", "header too small"),
    "a header beyond the end": (b"\2" + bytes(7), "InvalidHeaderLength", "invalid header length"),
    "a header over the limit": ((10**8 + 1).to_bytes(8, "little") + b"{}", "HeaderTooLarge", "header too large"),
    "a Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n",
        "HeaderTooLarge",
        "header too large",
    ),
    "a web page": (b"<!DOCTYPE html><html></html>", "HeaderTooLarge", "header too large"),
    "a header that is not UTF-8": (file_of(b'{"\xff":1}'), "InvalidHeader", "invalid UTF-8 in header"),
    "no JSON": (file_of(b'{"a":}'), "InvalidHeaderDeserialization", "invalid JSON in header"),
    "a dtype that there is not": (
        file_of({"a": ONE | {"dtype": "X32"}}, bytes(4)),
        "InvalidHeaderDeserialization",
        "invalid JSON in header: unknown variant `X32`, expected one of `BOOL`",
    ),
    "an entry without offsets": (
        file_of({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)),
        "InvalidHeaderDeserialization",
        "invalid JSON in header: missing field `data_offsets`",
    ),
    "a gap": (
        file_of({"a": ONE | {"data_offsets": [4, 8]}}, bytes(8)),
        "InvalidOffset",
        "invalid offset for tensor `a`",
    ),
    "a size that does not fit": (
        file_of({"a": ONE | {"shape": [2]}}, bytes(4)),
        "TensorInvalidInfo",
        "invalid shape, data type, or offset for tensor",
    ),
    "a shape that overflows": (
        file_of({"a": ONE | {"shape": [2**40, 2**40]}}, bytes(4)),
        "ValidationOverflow",
        "overflow computing buffer size from shape and/or element type",
    ),
    "half a byte": (
        file_of({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, bytes(1)),
        "MisalignedSlice",
        "The slice is slicing for subbytes dtypes",
    ),
    "a file that was cut off": (
        file_of({"a": ONE}, bytes(3)),
        "MetadataIncompleteBuffer",
        "incomplete metadata, file not fully covered",
    ),
    "bytes after the last tensor": (
        file_of({"a": ONE}, bytes(5)),
        "MetadataIncompleteBuffer",
        "incomplete metadata, file not fully covered",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_has_the_words_and_the_old_name_of_the_original_and_our_account(kind, tmp_path):
    content, name, words = KINDS[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    for stage, call, given in [
        ("Error while deserializing header", lambda it: ours.safe_open(it, "np"), path),
        ("Error while deserializing", ours.deserialize, content),
    ]:
        with pytest.raises(SafetensorError) as raised:
            call(given)
        message = raised.value.args[0]
        assert message.startswith(f"{stage}: {words}"), message
        assert f"({name}): " in message
        assert f"error[{raised.value.code}]" in message
        assert raised.value.findings[0].severity in ("error", "deviation", "note")


@pytest.mark.parametrize("kind", KINDS)
def test_the_original_says_the_same_words(kind, tmp_path):
    theirs = pytest.importorskip("safetensors")
    content, _, words = KINDS[kind]
    with pytest.raises(theirs.SafetensorError, match=r"^Error while deserializing: ") as raised:
        theirs.deserialize(content)
    if theirs.__version__ == "0.8.0":
        assert str(raised.value).startswith(f"Error while deserializing: {words}")


def tensors(module, content):
    return sorted(
        (name, entry["dtype"], entry["shape"], bytes(entry["data"])) for name, entry in module.deserialize(content)
    )


def test_every_file_of_the_corpus_is_read_alike_or_refused_in_the_same_words():
    theirs = pytest.importorskip("safetensors", minversion="0.8")
    counted = collections.Counter()
    for case, codes, content in drop_in_files.corpus():
        (read, refusal), (own, own_refusal) = (outcome(tensors, module, content) for module in (theirs, ours))
        counted[refusal is None, own_refusal is None] += 1
        if own_refusal is None and refusal is None:
            assert read == own, case
        elif own_refusal is None:
            assert "number out of range" in str(refusal) or "shape-overflow-beside-zero" in codes, (case, refusal)
        elif refusal is None:
            assert type(own_refusal) is SafetensorError, case
            assert codes & STRICTER, (case, own_refusal)
        else:
            assert type(own_refusal) is SafetensorError, case
            if not codes & (STRICTER | {"shape-overflow-beside-zero"}):
                counted["words"] += 1
                assert _gist(str(own_refusal)).startswith(_gist(str(refusal))), (case, own_refusal)
    # Nearly all are read by both or refused by both, and most of the latter are compared in their words.
    assert counted[True, True] > 200 and counted[False, False] > 500 and counted["words"] > 400
    assert counted[True, False] + counted[False, True] < 50


def _gist(message):
    """What of a message has to be the same: not where in the header, nor which of several tensors at one place."""
    stage, kind, *_ = message.split(": ")
    kind = kind.partition(" (")[0]
    return f"{stage}: {kind.partition('`')[0] if kind.startswith('invalid offset') else kind}"


def test_an_error_survives_pickling():
    with pytest.raises(SafetensorError) as raised:
        ours.deserialize(b"")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is SafetensorError
    assert (again.args, again.code, again.help) == (raised.value.args, raised.value.code, raised.value.help)
    assert again.findings == raised.value.findings


def test_an_error_takes_any_arguments_as_exceptions_do():
    for arguments in [(), ("a",), ("a", 1)]:
        error = SafetensorError(*arguments)
        assert error.args == arguments
        assert (error.code, error.findings, error.help) == ("error", [], None)
    assert SafetensorError.__mro__[1:] == Exception.__mro__


def test_a_name_from_a_file_cannot_steer_a_terminal():
    content = file_of({"\x1b[2Ja": ONE | {"data_offsets": [4, 8]}}, bytes(8))
    with pytest.raises(SafetensorError, match="invalid offset for tensor") as raised:
        ours.deserialize(content)
    assert "\x1b" not in str(raised.value)
