"""The classic program of unit_test_writer."""

import ast
import itertools

import pytest

from autotest_env.tasks.program import load_program, run_witness

PROGRAM = load_program("order_total")
BUGS = tuple(bug.id for bug in PROGRAM.bugs)


def test_there_are_six_bugs_with_three_siblings_each():
    assert len(PROGRAM.bugs) == 6
    assert all(len(bug.siblings) == 3 for bug in PROGRAM.bugs)


@pytest.mark.parametrize("bugs", tuple(itertools.combinations(BUGS, 3)))
def test_every_choice_of_three_bugs_is_seen_by_a_witness_and_keeps_the_documentation(bugs):
    text = PROGRAM.shown(bugs)
    assert any(
        run_witness(text, PROGRAM.bug(bug).witness) != run_witness(PROGRAM.source, PROGRAM.bug(bug).witness)
        for bug in bugs
    )
    documentation = ast.get_docstring(ast.parse(PROGRAM.source).body[1])
    assert ast.get_docstring(ast.parse(text).body[1]) == documentation
