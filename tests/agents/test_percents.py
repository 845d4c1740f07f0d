"""Documented optional parameters in per cent."""

import pytest

from autotest_env.agents.examples import read_documentation
from autotest_env.agents.percents import Rate, derive, read_rates

BILL = '''
def bill(net, tip=0.0, cut=0, round_to=0):
    """Return the bill.

    `tip` is in per cent and added. `cut` (10 means 10 %) is taken off. `round_to` has nothing to do with it.

    >>> bill(12.5)
    12.5
    >>> bill(12.5, cut=20)
    10.0
    >>> bill(33.33)
    33.33
    >>> bill(2)
    'none'
    """
'''
TIP = Rate(function="bill", parameter="tip", sign=1)


def derived(rate: Rate, source: str = BILL) -> list[tuple[str, float]]:
    return [each for example in read_documentation(source).examples for each in derive(rate, example)]


def test_rates_and_their_direction_are_read_from_the_sentence_about_them() -> None:
    assert read_rates(BILL) == (TIP, Rate(function="bill", parameter="cut", sign=-1))


@pytest.mark.parametrize(
    "signature",
    ["net, tip", "net, tip=10", "net, tip=None", "net, *, tip=0"],
    ids=["required", "not 0", "no number", "keyword only"],
)
def test_other_parameters_are_no_rates(signature: str) -> None:
    assert "tip" not in {rate.parameter for rate in read_rates(BILL.replace("net, tip=0.0", signature))}


def test_examples_that_leave_a_rate_out_give_others_where_rounding_cannot_matter() -> None:
    assert derived(TIP) == [
        ("bill(12.5, tip=10)", 13.75),
        ("bill(12.5, tip=50)", 18.75),
        ("bill(12.5, tip=100)", 25.0),
        ("bill(12.5, cut=20, tip=10)", 11.0),
        ("bill(12.5, cut=20, tip=50)", 15.0),
        ("bill(12.5, cut=20, tip=100)", 20.0),
    ]


def test_what_is_taken_off_is_taken_off() -> None:
    assert derived(read_rates(BILL)[1])[:3] == [
        ("bill(12.5, cut=10)", 11.25),
        ("bill(12.5, cut=50)", 6.25),
        ("bill(12.5, cut=100)", 0.0),
    ]


def test_a_rate_is_of_its_own_function_only() -> None:
    assert derived(TIP, BILL.replace("def bill(", "def total(").replace(">>> bill(", ">>> total(")) == []
