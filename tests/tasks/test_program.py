import copy

import pytest

from autotest_env.errors import SetupError
from autotest_env.tasks.program import load_program, parse_program, run_witness

SOURCE = "def double(x):\n    return x * 2\n"
FACTS = {
    "module": "double_module",
    "docs": "`double(x)` is twice x.",
    "bugs": [
        {
            "id": "square",
            "summary": "squares",
            "original": "x * 2",
            "bug": "x * x",
            "siblings": ["x", "x + 2", "x - 2"],
            "padding": ["2"],
            "witness": ["double(5)"],
        }
    ],
}


def _parse(**changes):
    facts = copy.deepcopy(FACTS)
    facts["bugs"][0].update(changes)
    return parse_program("double", SOURCE, "", facts)


def test_a_program_is_read_with_its_sites():
    program = _parse()
    (site,) = program.sites
    assert SOURCE[site.start : site.end] == "x * 2"
    assert site.alternatives == ("x * 2", "x * x", "x", "x + 2", "x - 2", "2")
    assert program.shown(("square",)) == "def double(x):\n    return x * x\n"
    assert program.variant("square") == {"square": 1}


def test_padding_is_never_a_variant():
    program = _parse()
    assert program.variant("square", 4) == {"square": 4}
    with pytest.raises(ValueError, match="1 to 4, not 5"):
        program.variant("square", 5)
    with pytest.raises(KeyError, match="circle"):
        program.bug("circle")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"original": "x * 3"}, "occurs 0 times"),
        ({"original": "u"}, "occurs 2 times"),
        ({"siblings": ["x"]}, "at least 3 siblings"),
        ({"siblings": ["x", "x", "x - 2"]}, "same text"),
        ({"witness": []}, "needs a witness"),
        ({"witness": "double(5)"}, "'witness' must be a list"),
        ({"summary": ""}, "'summary' must be"),
        ({"id": 3}, "'id' must be"),
    ],
)
def test_damaged_data_is_refused_by_name(changes, message):
    with pytest.raises(SetupError, match=message):
        _parse(**changes)


def test_a_program_needs_bugs_of_different_names_and_places():
    with pytest.raises(SetupError, match="at least one"):
        parse_program("double", SOURCE, "", {**FACTS, "bugs": []})
    with pytest.raises(SetupError, match="same id"):
        parse_program("double", SOURCE, "", {**FACTS, "bugs": FACTS["bugs"] * 2})
    other = {**FACTS["bugs"][0], "id": "other", "original": "return x * 2"}
    with pytest.raises(SetupError, match="overlap"):
        parse_program("double", SOURCE, "", {**FACTS, "bugs": [FACTS["bugs"][0], other]})


def test_a_missing_program_is_named():
    with pytest.raises(SetupError, match="'nowhere'"):
        load_program("nowhere")


def test_nothing_secret_shows_when_a_program_is_printed():
    assert "x * x" not in repr(_parse().sites[0].name) + str(load_program("order_total"))


def test_a_witness_records_values_and_exceptions():
    witness = ("double(5)", "y = double(2)", "y", "double()", "double(None)", "z = missing")
    outcomes = run_witness(SOURCE, witness)
    assert outcomes[:2] == ("value 10", "value 4")
    assert [outcome.split("(")[0] for outcome in outcomes[2:]] == [
        "raises TypeError",
        "raises TypeError",
        "raises NameError",
    ]
