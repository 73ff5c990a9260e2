"""Validates what `--json` prints against `docs/schemas`.

An output names its schema: `weigh.ls/1` is `docs/schemas/weigh.ls.1.json`.
"""

import json

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import save_file

VERBS = ["ls", "tree", "info", "check", "bench", "meta"]
PATHS = ["tiny", "tiny/model.safetensors.index.json", "lora", "quantized/model.safetensors"]


@pytest.fixture(scope="module")
def validate(root):
    def validate(verb, output):
        name, version = output["schema"].split("/")
        assert name == f"weigh.{verb}"
        path = root / "docs" / "schemas" / f"{name}.{version}.json"
        schema = json.loads(path.read_text())
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        errors = [f"{e.json_path}: {e.message}" for e in kind(schema).iter_errors(output)]
        assert not errors, errors

    return validate


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verb", VERBS)
def test_the_examples(weigh, validate, examples, verb, path):
    validate(verb, weigh.json(verb, "--json", examples / path))


@pytest.mark.parametrize("verb", VERBS)
def test_every_case_of_the_corpus(weigh, validate, root, verb):
    validate(verb, weigh.json(verb, "--json", root / "conformance" / "format" / "cases", codes=(1,)))


@pytest.mark.parametrize("verb", VERBS)
def test_a_path_that_is_not_there(weigh, validate, tmp_path, verb):
    validate(verb, weigh.json(verb, "--json", tmp_path / "absent", codes=(2,)))


@pytest.mark.parametrize("verb", VERBS)
def test_names_that_speak_to_a_terminal(weigh, validate, tmp_path, verb):
    path = tmp_path / "odd \x1b[31m.safetensors"
    save_file({"a\x1b[2J\n": np.zeros(1), "\u202eb": np.zeros(2), "": np.zeros(3)}, path)
    validate(verb, weigh.json(verb, "--json", path))


def test_the_rules(weigh, validate):
    validate("rules", weigh.json("check", "--rules", "--format", "json"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_damaged_file_still_gets_a_report(weigh, validate, truncated, verb):
    validate(verb, weigh.json(verb, "--json", truncated, codes=(1,)))


@pytest.mark.parametrize("action", ["status", "warm", "drop"])
def test_the_page_cache(weigh, validate, examples, tmp_path, action):
    path = tmp_path / "odd \x1b[31m.safetensors"
    save_file({"a": np.zeros(1)}, path)
    # Where the system does not tell, or a file is in memory, the exit code says so.
    output = weigh.json("pagecache", action, "--json", examples, path, codes=(0, 1, 2))
    validate("pagecache", output)
    assert len(output["files"]) == 6
    validate("pagecache", weigh.json("pagecache", action, "--json", tmp_path / "absent", codes=(2,)))


def test_metadata_is_changed(weigh, validate, tmp_path):
    path = tmp_path / "odd \x1b[31m.safetensors"
    save_file({"a": np.zeros(1)}, path, metadata={"\x1b": "\u202e"})
    pairs = tmp_path / "pairs.json"
    pairs.write_text('{"k": "w"}')
    for more, codes in [
        (["set", path, "k=v", "--dry-run"], (0,)),
        (["set", path, "k=v"], (0,)),
        (["set", path, "k=v"], (0,)),
        (["set", path, "k=w", "--in-place"], (0,)),
        (["set", path, "k=" + "w" * 1000, "--in-place"], (2,)),
        (["unset", path, "\x1b"], (0,)),
        (["unset", path, "absent"], (1,)),
        (["import", path, pairs, "-o", tmp_path / "other.safetensors"], (0,)),
        (["set", tmp_path / "absent", "k=v"], (2,)),
    ]:
        validate("meta", weigh.json("meta", *more, "--json", codes=codes))


def test_a_checkpoint_is_scanned(weigh, validate, root, examples, tmp_path):
    cases = root / "conformance" / "checkpoints"
    odd = tmp_path / "odd \x1b[31m.pkl"
    odd.write_bytes(b"c\x1b[31m\n\xe2\x80\xae\n(tR.")
    for path, code in [
        (cases, 1),
        (examples, 0),
        (odd, 1),
        (tmp_path / "absent", 2),
    ]:
        validate("scan", weigh.json("scan", "--json", path, codes=(code,)))
    # Each of the files by itself: a folder's code is that of its worst file.
    for path in sorted(cases.iterdir()):
        validate("scan", weigh.json("scan", "--json", path, codes=(0, 1, 2)))


def test_a_checkpoint_is_converted(weigh, validate, root, tmp_path):
    converted = 0
    for path in sorted((root / "conformance" / "checkpoints").iterdir()):
        output = tmp_path / f"{path.name}.safetensors"
        report = weigh.json("convert", path, "-o", output, "--json", codes=(0, 1, 2))
        validate("convert", report)
        converted += output.exists()
    assert converted


def test_every_schema_is_the_schema_of_an_output(root):
    schemas = {path.name for path in (root / "docs" / "schemas").glob("*.json")}
    tested = [*VERBS, "rules", "pagecache", "write", "scan", "convert"]
    assert {f"weigh.{name}.1.json" for name in tested} == schemas
