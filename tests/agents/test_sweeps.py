"""Which values are tried on knobs, and which of them make tests."""

from collections.abc import Callable, Mapping, Sequence

from autotest_env.agents.scenarios import Scenario, Value, take_apart
from autotest_env.agents.sweeps import MAX_POINTS, Sweep, explore, resized, sweeps

Program = Callable[[Value], object]


def explored(body: str, right: Program, wrong: Program) -> list[Sweep]:
    """Explore a scenario; the programs see the first value that is turned, or None."""

    def evaluate(points: Sequence[tuple[Scenario, Mapping[str, Value]]]) -> list[tuple[str | None, ...]]:
        values = [next(iter(changed.values()), None) for _, changed in points]
        return [tuple(None if value is None else repr(each(value)) for each in (right, wrong)) for value in values]

    (scenario,) = take_apart(f"def test_it():\n    {body}\n").scenarios
    return explore(list(sweeps(scenario)), evaluate)


def test_each_knob_is_swept_and_equal_ones_together() -> None:
    (scenario,) = take_apart("def test_it():\n    f('a', 1, 'a', 1.0)\n").scenarios
    assert [sweep.knobs for sweep in sweeps(scenario)] == [
        ("times_1",),
        ("text_2",),
        ("number_3",),
        ("text_4",),
        ("number_5",),
        ("text_2", "text_4"),
    ]


def test_a_knob_at_its_own_value_is_not_turned() -> None:
    (scenario,) = take_apart("def test_it():\n    x = 7\n").scenarios
    (sweep,) = sweeps(scenario)
    assert sweep.changed(7) == {}
    assert sweep.changed(8) == {"number_1": 8}


def test_the_exact_edge_of_a_number_is_found() -> None:
    (sweep,) = explored("x = 100_000", lambda value: value > 86_400, lambda value: value > 999_999)
    assert sweep.edges(0, 1) == [86_400, 86_401]
    assert sweep.differences(0, 1)[0] == 86_401
    assert len(sweep.points) <= MAX_POINTS


def test_edges_that_the_wrong_program_lacks_come_with_both_sides() -> None:
    (sweep,) = explored("x = 5", lambda value: value >= 3, lambda value: value >= 50)
    assert sweep.edges(0, 1) == [2, 3]


def test_floats_and_negative_numbers_are_swept_as_what_they_are() -> None:
    (sweep,) = explored("x = 40.0", lambda value: value > 16, lambda _: False)
    assert sweep.edges(0, 1) == [16.0, 17.0]
    assert {type(value) for value in sweep.points} == {float}


def test_where_the_programs_never_differ_nothing_is_looked_at_more_closely() -> None:
    (sweep,) = explored("x = 100_000", lambda value: value > 86_400, lambda value: value > 86_400)
    assert 86_401 not in sweep.points
    assert sweep.differences(0, 1) == []


def test_texts_are_swept_by_length_and_form() -> None:
    (sweep,) = explored("x = 'Horse-12'", lambda value: len(str(value)) >= 6, lambda _: True)
    assert sweep.edges(0, 1)[:2] == ["Horse", "Horse-"]
    (sweep,) = explored("x = 'horse'", lambda value: sum(map(str.isdigit, str(value))) >= 2, lambda _: True)
    assert {"ho777", "hor77", "hors7", "HORSE", ""} <= set(sweep.points)


def test_what_is_not_always_the_same_makes_no_test() -> None:
    (sweep,) = explored("x = 5", lambda value: value >= 3, lambda value: value >= 50)
    sweep.points[3] = (None, None)
    assert sweep.edges(0, 1) == [2, 4]
    assert 3 not in sweep.differences(0, 1)


def test_texts_are_filled_with_their_own_last_character() -> None:
    assert [resized("ab1", length) for length in (0, 2, 3, 5)] == ["", "ab", "ab1", "ab111"]
    assert resized("", 2) == "xx"
