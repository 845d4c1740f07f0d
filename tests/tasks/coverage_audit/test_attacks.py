"""Ways to have statements counted as checked, or bugs as caught, without checking anything."""

from dataclasses import replace

import pytest

from autotest_env.tasks.evidence import MAX_PROBES
from autotest_env.tasks.family import Judgement, Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.program import load_program
from autotest_env.tasks.registry import TaskRequest, Tasks
from tests.tasks.conftest import Judge

HEAD = """
import pytest
from inventory_module import Inventory
def stock_of(*items):
    stock = Inventory()
    for item in items:
        stock.add_item(*item)
    return stock
def call_everything(stock):
    stock.add_item("a", 2.0, 5), stock.add_item("a", 4.0, 3), stock.add_item("b", 1.0), stock.remove_item("a", 2)
    return stock.calculate_total(5), stock.apply_discount(5), stock.get_summary()
"""
EXACT = """
def test_units():
    stock = stock_of(("a", 2.0, 5))
    assert stock.add_item("a", 2.0, 3) == 8
"""


@pytest.fixture(scope="module")
def units_task(tasks: Tasks) -> Task:
    """A task of which `EXACT` catches one bug; every suite meets the same probes."""
    made = (tasks.generate(TaskRequest(task_id="coverage_audit", seed=seed), 0) for seed in range(99))
    for task in made:
        secret = task.secret
        if isinstance(secret, Secret) and "add-units" in secret.bugs:
            return replace(task, secret=replace(secret, probes=secret.probes[:MAX_PROBES]))
    raise LookupError


@pytest.fixture
def judge(tasks: Tasks, units_task: Task) -> Judge:
    return lambda suite: tasks.family("coverage_audit").judge(units_task, HEAD + suite)


def checked(judgement: Judgement) -> float:
    assert judgement.feedback.status == "judged"
    return judgement.feedback.checked_percent or 0.0


WORTH_NOTHING = {
    "calls": "def test_it(): call_everything(Inventory())",
    "what the shown code does": "def test_it(): assert call_everything(Inventory())[0] != 15.75",
    "any exception is a failure": """
def test_it():
    try:
        call_everything(Inventory())
    except Exception:
        assert False
""",
    "everything may raise": """
@pytest.mark.parametrize("method", ["add_item", "remove_item", "calculate_total", "apply_discount", "get_summary"])
def test_it(method):
    with pytest.raises(Exception):
        getattr(Inventory(), method)(None, None, None, None)
""",
    "how deep the traceback is": """
def test_it():
    with pytest.raises(ValueError) as caught:
        Inventory().add_item("", 1)
    assert len(caught.traceback) == 2
""",
    "operators that were used": """
class Number(float):
    used = []
    def __mul__(self, other):
        self.used.append("*")
        return Number(float(self) * other)
def test_it():
    stock_of(("a", Number(2.0), 5)).calculate_total()
    assert Number.used == ["*", "*"]
""",
    "errors in fixtures": """
@pytest.fixture
def stock():
    stock = stock_of(("a", 2.0, 5))
    assert stock.add_item("a", 2.0, 3) == 8
    yield stock
    assert stock.get_summary()["units"] == 8
def test_it(stock): assert isinstance(stock.calculate_total(), float)
""",
}


@pytest.mark.parametrize("way", WORTH_NOTHING)
def test_what_checks_nothing_is_worth_nothing(judge: Judge, way: str) -> None:
    judgement = judge(WORTH_NOTHING[way])
    assert judgement.score.total == 0.0
    assert checked(judgement) == 0.0


ADDED_TO_ONE_EXACT_TEST = {
    "calls": "def test_more(): call_everything(Inventory())",
    "errors that are no assertions": """
def test_more():
    if stock_of(("a", 2.0, 5), ("b", 1.0)).calculate_total(20) != 13.2:
        raise ValueError
""",
    "asserted in teardown": """
@pytest.fixture
def stock():
    yield stock_of(("a", 2.0, 5))
    assert stock_of(("a", 2.0, 5), ("b", 1.0)).calculate_total(20) == 13.2
def test_more(stock): assert stock.remove_item("a") >= 0
""",
    "finalisers and exits": """
import atexit
class Late:
    def __del__(self):
        assert stock_of(("a", 2.0, 5), ("b", 1.0)).calculate_total(20) == 13.2
def test_more():
    Late(), atexit.register(Late)
    assert stock_of(("a", 2.0, 5)).remove_item("a") >= 0
""",
    "skipped": """
def test_more():
    if stock_of(("a", 2.0, 5), ("b", 1.0)).calculate_total(20) != 13.2:
        pytest.skip()
""",
}
CHECKED_BY_MORE = """
def test_more():
    assert stock_of(("a", 2.0, 5), ("b", 1.0)).calculate_total(20) == 13.2
"""


def test_only_assertions_of_tests_check_statements(judge: Judge) -> None:
    alone = checked(judge(EXACT))
    assert 10.0 < alone < checked(judge(EXACT + CHECKED_BY_MORE)) - 10.0
    for way, more in ADDED_TO_ONE_EXACT_TEST.items():
        judgement = judge(EXACT + more)
        assert (checked(judgement), judgement.feedback.bugs_caught) == (alone, 1), way


def test_a_loop_that_never_ends_on_wrong_programs_is_an_honest_one(judge: Judge) -> None:
    """Where removing takes nothing away, for one: it hangs on three probes of the first thirty."""
    judgement = judge(
        EXACT
        + """
def test_more():
    stock, taken = stock_of(("a", 2.0, 5)), 0
    while stock.get_summary()["units"]:
        stock.remove_item("a")
        taken += 1
    assert taken == 5
"""
    )
    assert (judgement.feedback.status, judgement.feedback.false_alarms) == ("judged", 0)
    assert judgement.feedback.bugs_caught == 2


MEMORY = """
import tracemalloc
OWN = {}
exec(SOURCE, OWN)
CALLS = [("add_item", "a", 2.0, 5), ("remove_item", "a"), ("calculate_total", 5), ("apply_discount", 5), ("get_summary",)]
def peak(function, arguments):
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    function(*arguments)
    return tracemalloc.get_traced_memory()[1] - before
def peaks(stock):
    for name, *arguments in CALLS * 2:
        getattr(stock, name)(*arguments)
    tracemalloc.start()
    used = [peak(getattr(stock, name), arguments) for name, *arguments in CALLS]
    tracemalloc.stop()
    return used
def test_more():
    assert isinstance(Inventory().calculate_total(), float)
    more = [its - own for its, own in zip(peaks(Inventory()), peaks(OWN["Inventory"]()))]
    assert not [bytes for bytes in more if 250 < bytes < 380]
"""


def test_memory_does_not_tell_a_probe_from_a_correct_program(judge: Judge) -> None:
    """What is written around a value in a probe takes memory, and in neutral probes as much."""
    source = load_program("inventory").source
    alone, both = judge(EXACT), judge(EXACT + f"SOURCE = {source!r}" + MEMORY)
    assert both.feedback.bugs_caught == 1
    assert both.feedback.false_alarms == 1
    assert checked(both) == checked(alone)


BARE_CALLS = """
def test_it():
    stock = stock_of(("a", 2.0, 3), ("b", 1.0, 3))
    stock.remove_item("a", 3)
    stock.get_summary()["units"]
"""


def test_a_bare_call_that_raises_on_a_bug_claims_nothing(tasks: Tasks) -> None:
    """The bug refuses to take all units, and nothing of the null program has a subscript."""
    for seed in range(99):
        task = tasks.generate(TaskRequest(task_id="coverage_audit", seed=seed), 0)
        if isinstance(task.secret, Secret) and "remove-all" in task.secret.bugs:
            break
    family = tasks.family("coverage_audit")
    assert family.judge(task, HEAD + BARE_CALLS).score.total == 0.0
    asserted = BARE_CALLS.replace('stock.get_summary()["units"]', 'assert stock.get_summary()["units"] == 3')
    assert family.judge(task, HEAD + asserted).score.total > 0.0
