"""What a log line or an error could print of the classes that know the answers."""

import random

import pytest

from autotest_env.sandbox.suite import RunEnd, SuiteResult
from autotest_env.tasks.evidence import draw
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.judging import BugRuns, Evidence
from autotest_env.tasks.program import load_program
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer import generate

PROGRAM = load_program("order_total")
IDS = tuple(bug.id for bug in PROGRAM.bugs)
NOTHING = SuiteResult(end=RunEnd.COMPLETED)
SECRET = generate.generate(PROGRAM, b"key", 42).secret
assert isinstance(SECRET, Secret)
RUNS = tuple(BugRuns(bug=bug, renderings=(), siblings=()) for bug in IDS)
KNOWING = {
    "program": PROGRAM,
    "bugs": PROGRAM.bugs,
    "sites": PROGRAM.sites,
    "secret": SECRET,
    "runs of the bugs": RUNS,
    "evidence": Evidence(reference=(NOTHING,), shown=NOTHING, bugs=RUNS, bug_count=len(IDS)),
    "draw": draw(SECRET, random.Random(0)),
    "text of a bug": Texts(PROGRAM, b"key").plain({IDS[0]: 1}),
}
TOLD = [
    *IDS,
    *(line.strip() for line in PROGRAM.source.splitlines() if len(line) > 20),
    *(text for bug in PROGRAM.bugs for text in (bug.summary, bug.original, bug.text, *bug.siblings) if " " in text),
    *(line for bug in PROGRAM.bugs for line in bug.witness),
]


@pytest.mark.parametrize("name", KNOWING)
def test_no_repr_tells_a_bug_or_a_source(name: str) -> None:
    shown = repr(KNOWING[name])
    assert [text for text in TOLD if len(text) > 5 and (text in shown or repr(text)[1:-1] in shown)] == []
