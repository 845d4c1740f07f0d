"""Ways around the assertion: another module in the program's place, and bugs noticed by anything but a failing test."""

import pytest

from tests.tasks.conftest import Judge

HEAD = "import order_module, pytest\nfrom order_module import calculate_order_total as total\n"
WRONG = "total([(10.0, 3), (5.0, 1)], 10, 20) != 37.8"
OWN = """
def own(items, discount, tax_rate):
    subtotal = sum(price * quantity for price, quantity in items)
    return round(subtotal * (1 - discount / 100) * (1 + tax_rate / 100), 2)
"""
USEFUL_BUT_BLIND = "\ndef test_it():\n    assert total([], 0, 0) == 0.0\n"

SWAPS = {
    "a module in its place": OWN
    + """
import sys, types
sys.modules['order_module'] = types.ModuleType('order_module')
sys.modules['order_module'].calculate_order_total = own
def test_it():
    import order_module
    assert order_module.calculate_order_total([(10.0, 3)], 10, 20) == 32.4
""",
    "a function in its place": HEAD
    + OWN
    + """
def test_it(monkeypatch):
    monkeypatch.setattr(order_module, 'calculate_order_total', own)
    assert order_module.calculate_order_total([(10.0, 3)], 10, 20) == 32.4
""",
    "a planted file": """
import importlib, pathlib, sys
def test_it():
    pathlib.Path('order_module.py').write_text('def calculate_order_total(*_): return 1')
    sys.modules.pop('order_module', None)
    importlib.invalidate_caches()
    assert importlib.import_module('order_module').calculate_order_total([], 0, 0) == 1
""",
}


@pytest.mark.parametrize("way", SWAPS)
def test_testing_something_else_earns_nothing(judge: Judge, way: str) -> None:
    judgement = judge(SWAPS[way])
    assert judgement.score.total == 0.0
    assert not judgement.feedback.bugs_caught


DETOURS = {
    "collection error": HEAD + f"if {WRONG}: raise ValueError" + USEFUL_BUT_BLIND,
    "crash": HEAD + "import ctypes\n" + USEFUL_BUT_BLIND + f"    if {WRONG}: ctypes.string_at(0)\n",
    "out of memory": HEAD + f"x = bytearray(5 << 30) if {WRONG} else 0" + USEFUL_BUT_BLIND,
    "skip": HEAD + USEFUL_BUT_BLIND + f"    if {WRONG}: pytest.skip('x')\n",
    "error in a fixture": HEAD
    + f"@pytest.fixture\ndef checked():\n    assert not {WRONG}\n"
    + USEFUL_BUT_BLIND.replace("()", "(checked)"),
    "another test": HEAD
    + f"@pytest.mark.parametrize('x', [int({WRONG})])\ndef test_other(x): assert x == 0\n"
    + USEFUL_BUT_BLIND,
    "missing test": HEAD + f"if not {WRONG}:\n    def test_other(): assert total([], 0, 0) == 0.0\n" + USEFUL_BUT_BLIND,
}


@pytest.mark.parametrize("way", DETOURS)
def test_a_bug_is_only_caught_by_a_failing_test(judge: Judge, way: str) -> None:
    judgement = judge(DETOURS[way])
    assert judgement.feedback.status == "judged", judgement
    assert judgement.score.total <= 0.05
    assert judgement.feedback.bugs_caught == 0


def test_sleeping_only_on_a_bug_uses_up_the_submission(judge: Judge) -> None:
    judgement = judge(HEAD + "import time\n" + USEFUL_BUT_BLIND + f"    if {WRONG}: time.sleep(60)\n")
    assert (judgement.feedback.status, judgement.score.total) == ("wall_limit", 0.0)


@pytest.mark.parametrize("exit_call", ["os._exit(0)", "sys.exit(0)", "pytest.exit('x', 0)"])
def test_leaving_only_on_a_bug_voids_the_suite(judge: Judge, exit_call: str) -> None:
    judgement = judge(
        HEAD + f"import os, sys\ndef test_it():\n    if {WRONG}: {exit_call}\n    assert total([], 0, 0) == 0\n"
    )
    assert judgement.score.total == 0.0
    assert judgement.feedback.status in {"exited", "stopped"}
