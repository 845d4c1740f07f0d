"""The embedded policy's suite, run by pytest against code of our own."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autotest_env.agents.embedded import write_suite

PRICES = '''"""Prices.

price(5.0, 0) == 5.0
"""


def price(net: float, tax: float) -> float:
    """Return net plus tax per cent. The result is rounded to two decimals.

    >>> price(10.0, 20)
    12.0
    >>> price(0.99, 10)
    1.09
    >>> price(-1.0, 7)
    Traceback (most recent call last):
        ...
    ValueError: net is negative
    """
    if net < 0:
        raise ValueError("net is negative")
    return round(net + net * tax / 100, 2)
'''

EXAMPLES = ["test_module_example_1", "test_price_example_2", "test_price_example_3", "test_price_example_4"]
ROUNDED = "test_price_result_is_rounded"


def failing(folder: Path, source: str, suite: str) -> list[str]:
    (folder / "prices.py").write_text(source)
    (folder / "test_prices.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-c", "/dev/null", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert re.search(r"\d+ (passed|failed)", done.stdout), done.stdout
    return re.findall(r"^(?:FAILED|ERROR) [^:]+::(\w+)", done.stdout, re.MULTILINE)


def test_correct_code_passes_every_test(tmp_path: Path) -> None:
    suite = write_suite("prices", {"prices.py": PRICES})
    assert re.findall(r"^def (\w+)", suite, re.MULTILINE) == [*EXAMPLES, ROUNDED]
    assert failing(tmp_path, PRICES, suite) == []


@pytest.mark.parametrize(
    ("right", "wrong", "noticed"),
    [
        ("tax / 100", "tax / 10", EXAMPLES[1:3]),
        ('raise ValueError("net is negative")', "return 0.0", EXAMPLES[3:]),
        ("return round(net + net * tax / 100, 2)", "return net + net * tax / 100", [EXAMPLES[2], ROUNDED]),
    ],
)
def test_wrong_code_fails_the_tests_that_document_it(
    tmp_path: Path, right: str, wrong: str, noticed: list[str]
) -> None:
    assert PRICES.count(right) == 1
    shown = PRICES.replace(right, wrong)
    assert failing(tmp_path, shown, write_suite("prices", {"prices.py": shown})) == noticed


def test_nothing_of_the_shown_code_is_executed(tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    write_suite("prices", {"prices.py": f"open({str(trap)!r}, 'w')\n{PRICES}"})
    assert not trap.exists()


@pytest.mark.parametrize("source", ["", "def f(:\n", "def f(): pass\n", "x = '\x00'", "(" * 10_000])
def test_code_without_documentation_still_gives_a_suite_with_a_test(source: str) -> None:
    suite = write_suite("prices", {"prices.py": source})
    assert any(isinstance(node, ast.FunctionDef) for node in ast.parse(suite).body)


@pytest.mark.parametrize("name", ["", "a-b", "class", "x\ny"])
def test_an_odd_module_name_still_gives_a_suite_that_parses(name: str) -> None:
    assert ast.parse(write_suite(name, {})).body


def test_the_same_observation_gives_the_same_suite() -> None:
    assert write_suite("prices", {"prices.py": PRICES}) == write_suite("prices", {"prices.py": PRICES})
