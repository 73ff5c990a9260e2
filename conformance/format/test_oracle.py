# SPDX-License-Identifier: Apache-2.0
"""Checks that the committed corpus is what generate.py writes, and compares it with the reference implementation.

    python3 -m unittest test_oracle

Takes about half a minute. The comparison needs the PyPI package `safetensors` 0.8.0. Without it, it is skipped when run
as above, for whoever has only the corpus and Python. Under pytest, as `cargo xtask python` runs it, it fails.
"""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import generate
from oracle import first_ill_formed_utf8
from recipe import build, expand

FOLDER = Path(__file__).parent

try:
    import safetensors

    NO_REFERENCE = (
        None
        if safetensors.__version__ == "0.8.0"
        else f"safetensors is {safetensors.__version__}, measured was 0.8.0"
    )
except ImportError:
    NO_REFERENCE = "the PyPI package safetensors is not installed"


def read_table(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]


def stored_files():
    return {path.stem: path.read_bytes() for path in (FOLDER / "cases").glob("*.safetensors")}


def codes(row):
    return {word.rpartition("@")[0] for word in row["finding"].split()}


def reference_verdict(file_bytes):
    try:
        safetensors.deserialize(file_bytes)
    except safetensors.SafetensorError as error:
        return "reject", str(error)
    return "accept", ""


def is_explained(row, verdict, message):
    """The inputs on which FORMAT.md section 2 lets Weigh and the reference differ."""
    if verdict == "accept":
        # Two readers may disagree on the content: keys that come twice, deep nesting, and an entry or a type that is
        # spelled as an array or a map.
        return bool(codes(row) & {"duplicate-key", "json-depth"}) or row.get("case") in (
            "dt_map",
            "en_array",
        )
    # The reference refuses for its own reasons: it multiplies the dimensions from left to right, and it turns every
    # number into one of its own.
    return "shape-overflow-beside-zero" in codes(row) or "number out of range" in message


class CommittedCorpus(unittest.TestCase):
    def test_is_what_generate_writes(self):
        with tempfile.TemporaryDirectory() as temporary:
            with contextlib.redirect_stdout(io.StringIO()):
                generate.main(Path(temporary))
            names = ["expected.tsv", "derived.tsv"]
            for folder in (FOLDER, Path(temporary)):
                names += [str(path.relative_to(folder)) for path in folder.glob("cases/*")]
            for name in sorted(set(names)):
                committed, written = FOLDER / name, Path(temporary) / name
                self.assertTrue(committed.exists(), f"{name} is not committed")
                self.assertTrue(written.exists(), f"{name} is not written by generate.py")
                self.assertEqual(committed.read_bytes(), written.read_bytes(), name)

    def test_has_a_file_or_a_recipe_for_each_case(self):
        stored = stored_files()
        for row in read_table("expected.tsv"):
            self.assertEqual(row["recipe"] == "-", row["case"] in stored, row["case"])


class Utf8(unittest.TestCase):
    def test_place_is_where_python_stops(self):
        edges = [0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0]
        edges += [0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
        for first in edges:
            for second in edges:
                for third in edges:
                    text = b"a" + bytes([first, second, third, 0x80]) + b"z"
                    try:
                        text.decode("utf-8")
                        expected = None
                    except UnicodeDecodeError as error:
                        expected = error.start
                    self.assertEqual(first_ill_formed_utf8(text, 0, len(text)), expected, text)


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if NO_REFERENCE and "PYTEST_VERSION" in os.environ:
            raise AssertionError(NO_REFERENCE)
        if NO_REFERENCE:
            raise unittest.SkipTest(NO_REFERENCE)

    def test_column_is_what_the_reference_does(self):
        stored = stored_files()
        for row in read_table("expected.tsv"):
            if row["reference_0_8_0"] == "-":
                continue
            file_bytes = stored[row["case"]] if row["recipe"] == "-" else build(row["recipe"])
            verdict, _ = reference_verdict(file_bytes)
            self.assertEqual(verdict, row["reference_0_8_0"], row["case"])

    def test_compatible_differs_only_where_it_may(self):
        stored = stored_files()
        for row in read_table("expected.tsv"):
            if row["limits"] == "-":
                file_bytes = stored[row["case"]] if row["recipe"] == "-" else build(row["recipe"])
                self.compare(row, file_bytes)
        for row in read_table("derived.tsv"):
            for file_bytes in expand(stored.get(row["base"]), row["operation"]):
                self.compare(row, file_bytes)

    def compare(self, row, file_bytes):
        verdict, message = reference_verdict(file_bytes)
        if verdict != row["compatible"]:
            self.assertTrue(is_explained(row, verdict, message), f"{row} {verdict} {message}")


if __name__ == "__main__":
    unittest.main()
