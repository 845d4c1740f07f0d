"""What is stored with the programs is what runs of their suites show."""

import argparse
import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from autotest_env.sandbox.run import Sandbox
from autotest_env.tasks.program import ProgramSource, parse_program

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "programs"
SOURCE = """\
def low(n: int) -> int:
    return n + 1

def high(n: int) -> int:
    return n + 20

def both(n: int) -> int:
    return low(n) + high(n)

def label(n: int) -> str:
    return "a"
"""
TESTS = """\
from small_module import both, high, label, low

def test_low():
    assert low(1) == 2

def test_high():
    assert high(1) == 21

def test_both():
    assert both(0) == 21

def test_label():
    assert label(1) == "a"
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    loader = SourceFileLoader("programs_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


def _small(high: str, tests: str = TESTS) -> ProgramSource:
    def table(name: str, original: str, *texts: str) -> dict[str, object]:
        kept = {"original": original, "bug": texts[0], "siblings": list(texts[1:])}
        return {"id": name, "summary": "wrong", "witness": ["low(1)"], **kept}

    facts = {
        "module": "small_module",
        "docs": "Small.",
        "bugs": [
            table("low", "n + 1", "n + 2", "n + 3", "n + 4", "n + 5"),
            table("high", "n + 20", high, "n + 5", "n + 6", "n + 7"),
        ],
        "changes": [{**table("label", '"a"', '"b"', '"c"', '"d"', '"e"'), "entry": "Labels are b.", "documented": []}],
    }
    return parse_program("small", SOURCE, tests, facts)


def test_which_tests_fail_is_measured_for_every_place_alone(script: ModuleType, sandbox: Sandbox) -> None:
    fails, problems = script.failing_tests(_small("n + 30"), TESTS, sandbox)
    assert fails == {"low": ["test_both", "test_low"], "high": ["test_both", "test_high"], "label": ["test_label"]}
    assert problems == []


def test_a_version_whose_tests_fail_otherwise_than_its_parts_is_reported(script: ModuleType, sandbox: Sandbox) -> None:
    _, problems = script.failing_tests(_small("n + 19"), TESTS, sandbox)
    assert problems == [
        "low, high together fail other tests than each alone: test_both",
        "label, low, high together fail other tests than each alone: test_both",
    ]


def test_a_suite_that_fails_on_the_reference_ends_the_measurement(script: ModuleType, sandbox: Sandbox) -> None:
    with pytest.raises(SystemExit, match=r"small: existing_tests\.py does not pass .* test_label"):
        script.failing_tests(_small("n + 30"), TESTS.replace('== "a"', '== "x"'), sandbox)


def test_a_probe_is_noticed_by_an_assertion_of_the_suite_only(script: ModuleType, sandbox: Sandbox) -> None:
    suite = "from small_module import high, label\ndef test_high():\n    assert high(1) == 21\n"
    suite += "def test_label():\n    {'a': 1}[label(1)]\n"
    probed, noticed = script.noticed_probes(_small("n + 30", suite), sandbox)
    assert probed == ["low:1:return", "high:1:return", "both:1:return", "label:1:return"]
    assert noticed == ["high:1:return"]


def test_measured_files_are_written_and_compared(script: ModuleType, sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "inventory"
    folder.mkdir()
    for file in (SCRIPT.parent.parent / "tasks" / "programs" / "inventory").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    stored = folder / "measured.toml"
    before = stored.read_text()
    check = argparse.Namespace(write=False, check=True)
    stored.write_text(before.replace('    "Inventory.add_item:1:if",\n', ""))
    assert list(script.measure(folder, sandbox, check)) == [
        "inventory: measured.toml says something else; scripts/programs --write stores what was measured"
    ]
    assert list(script.measure(folder, sandbox, argparse.Namespace(write=True, check=False))) == []
    assert stored.read_text() == before


@pytest.mark.heavy
def test_what_is_stored_is_what_runs_show() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
