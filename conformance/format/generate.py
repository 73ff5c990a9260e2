# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus: cases/*.safetensors, expected.tsv and derived.tsv.

    python3 generate.py [FOLDER]

FOLDER is this file's own folder by default. Needs Python 3.11 and nothing else, and always writes the same bytes.
It fails when a hand-made expectation and the oracle disagree, when a finding of the table is not covered, or when
a file grows too large to be kept in a repository.
"""

import sys
from pathlib import Path

import cases_by_rule
import cases_measured
from derived import families
from oracle import DEVIATIONS, NOTES, Limits, check
from recipe import expand

LARGEST_STORED_FILE = 20_000
EXPECTED_COLUMNS = "case group strict compatible finding recipe limits reference_0_8_0 note".split()
DERIVED_COLUMNS = "family base operation strict compatible finding".split()

ERRORS = set(
    """
    file-too-short header-over-limit header-past-end header-empty header-not-utf8 header-bom header-padding
    header-trailing-data data-truncated data-trailing json-syntax json-depth duplicate-key entry-field-missing
    entry-field-type dtype-unknown number-form shape-overflow size-overflow size-not-bytes size-mismatch data-gap
    data-overlap data-alias offsets-reversed empty-off-boundary metadata-type limit-tensors limit-name
    """.split()
)
KINDS = set(
    """
    git-lfs-pointer xet-pointer html json-error shard-index header-without-length zip torch-zip pickle gguf ggml
    hdf5 npy onnx tflite gzip zstd xz bzip2 7z rar tar length-32-bit length-big-endian empty all-zero
    partial-download text-damaged interrupted-edit
    """.split()
)


def main(folder):
    cases = cases_measured.COLLECTION.cases + cases_by_rule.COLLECTION.cases
    check_names(cases)
    for case in cases:
        compare_with_oracle(case)
    check_coverage(cases)
    write_files(folder / "cases", cases)
    write_table(folder / "expected.tsv", EXPECTED_COLUMNS, [expected_row(case) for case in cases])
    files = {case.name: case.stored_bytes for case in cases if case.stored_bytes is not None}
    rows = [derived_row(files, *member) for member in families(files)]
    write_table(folder / "derived.tsv", DERIVED_COLUMNS, rows)
    file_count = sum(len(expand(files.get(row[1]), row[2])) for row in rows)
    print(f"{len(cases)} cases, {len(rows)} derived rows that stand for {file_count} files")


def check_names(cases):
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"two cases have one name: {sorted(twice)}")


def parse_limits(text):
    limits = Limits()
    if text != "-":
        for word in text.split():
            name, _, value = word.partition("=")
            setattr(limits, name, int(value))
    return limits


def compare_with_oracle(case):
    result = check(case.file_bytes(), parse_limits(case.limits))
    by_hand = (case.strict, case.compatible, case.findings)
    by_oracle = (result.strict, result.compatible, result.findings)
    if by_hand != by_oracle:
        raise SystemExit(f"{case.name}: by hand {by_hand}, by the oracle {by_oracle}")


def check_coverage(cases):
    covered = {code for case in cases for _, code in case.findings}
    wanted = ERRORS | DEVIATIONS | NOTES | {f"not-safetensors:{kind}" for kind in KINDS}
    if covered != wanted:
        raise SystemExit(f"not covered or not known: {sorted(covered ^ wanted)}")


def write_files(folder, cases):
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.safetensors"):
        stale.unlink()
    for case in cases:
        if case.stored_bytes is None:
            continue
        if len(case.stored_bytes) > LARGEST_STORED_FILE:
            raise SystemExit(f"{case.name} is too large to be stored: write it as a recipe")
        (folder / f"{case.name}.safetensors").write_bytes(case.stored_bytes)


def format_findings(findings):
    if any(offset >= 1 << 64 for offset, _ in findings):
        raise SystemExit(f"a place beyond 64 bits: {findings}")
    return " ".join(f"{code}@{offset}" for offset, code in findings) or "-"


def expected_row(case):
    return [
        case.name,
        case.group,
        case.strict,
        case.compatible,
        format_findings(case.findings),
        case.recipe,
        case.limits,
        case.reference,
        case.note or "-",
    ]


def derived_row(files, family, base, operations):
    results = {
        (result.strict, result.compatible, format_findings(result.findings))
        for result in map(check, expand(files.get(base), operations))
    }
    if len(results) != 1:
        raise SystemExit(f"{base} {operations}: one row, {len(results)} results")
    return [family, base, operations, *results.pop()]


def write_table(path, columns, rows):
    for row in rows:
        if any("\t" in cell or "\n" in cell or cell == "" for cell in row):
            raise SystemExit(f"a cell that a table cannot hold: {row}")
    lines = ["\t".join(row) for row in [columns, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
