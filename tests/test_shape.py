"""The limits of length that no linter knows. A test may be as long as the suite that it shows to the judge."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("agents", "mutation", "reports", "sandbox", "server", "tasks")
FILES = sorted([*ROOT.glob("*.py"), *(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_FILE_LINES = {"product": 300, "tests": 350}
MAX_FUNCTION_LINES = 40


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [*FILES, *TESTS], ids=_name)
def test_a_file_is_one_idea(path: Path) -> None:
    most = MAX_FILE_LINES["tests" if path in TESTS else "product"]
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= most


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    lengths = {
        node.name: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}
