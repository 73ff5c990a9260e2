"""Validates what `--json` prints against `docs/schemas`.

An output names its schema: `weigh.ls/1` is `docs/schemas/weigh.ls.1.json`.
"""

import json

import jsonschema
import pytest

VERBS = ["ls", "tree", "info", "check"]
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
def test_a_damaged_file_still_gets_a_report(weigh, validate, truncated, verb):
    validate(verb, weigh.json(verb, "--json", truncated, codes=(1,)))


def test_every_schema_is_the_schema_of_an_output(root):
    schemas = {path.name for path in (root / "docs" / "schemas").glob("*.json")}
    assert {f"weigh.{verb}.1.json" for verb in VERBS} <= schemas
