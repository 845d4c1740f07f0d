"""The line in front of the graders: the longest waiting first, refusals included."""

import threading

import pytest

from autotest_env.errors import GraderBusyError, GraderFailedError
from autotest_env.sandbox.turns import Place, Turns


def is_called(place: Place) -> bool:
    return place.called.done() and not place.called.cancelled()


def refuse(turns: Turns, place: Place) -> None:
    with pytest.raises(GraderBusyError) as busy:
        turns.give_up(place)
    assert busy.value.retry_after_s > 0


def test_turns_are_called_in_order_and_not_more_than_there_are():
    turns = Turns(2, 10)
    places = [turns.ask(name) for name in "abcd"]
    assert [is_called(place) for place in places] == [True, True, False, False]
    turns.give_back()
    assert [is_called(place) for place in places] == [True, True, True, False]
    assert turns.waiting == 1


def test_who_was_refused_comes_back_to_its_place():
    turns = Turns(1, 10)
    turns.ask("running")
    refused = turns.ask("early")
    later = turns.ask("late")
    refuse(turns, refused)
    again = turns.ask("early")
    turns.give_back()
    assert is_called(again)
    assert not is_called(later)


def test_a_place_is_kept_over_any_number_of_refusals():
    turns = Turns(1, 10)
    turns.ask("running")
    places = [turns.ask(name) for name in "abc"]
    for _ in range(5):
        for place in places:
            refuse(turns, place)
        places = [turns.ask(name) for name in "cba"][::-1]
    for place in places:
        assert not is_called(place)
        turns.give_back()
        assert is_called(place)


def test_a_full_line_refuses_and_remembers():
    turns = Turns(1, 2)
    turns.ask("running")
    waiting = [turns.ask("a"), turns.ask("b")]
    with pytest.raises(GraderBusyError, match="full"):
        turns.ask("turned away")
    for place in waiting:
        refuse(turns, place)
    newcomer, back = turns.ask("newcomer"), turns.ask("turned away")
    turns.give_back()
    assert is_called(back)
    assert not is_called(newcomer)


def test_who_gives_up_too_late_has_its_turn():
    turns = Turns(1, 10)
    place = turns.ask("quick")
    turns.give_up(place)
    assert is_called(place)


def test_who_gave_up_is_passed_over():
    turns = Turns(1, 10)
    turns.ask("running")
    gone, next_one = turns.ask("gone"), turns.ask("next")
    refuse(turns, gone)
    turns.give_back()
    assert is_called(next_one)
    assert turns.waiting == 0


def test_callers_without_a_key_have_no_place_in_common():
    turns = Turns(1, 10)
    turns.ask("running")
    refuse(turns, turns.ask(None))
    first, other = turns.ask("named"), turns.ask(None)
    turns.give_back()
    assert is_called(first)
    assert not is_called(other)


def test_waiting_ends_with_the_call_or_a_refusal():
    turns = Turns(1, 10)
    turns.wait(turns.ask("running"), 5.0)
    with pytest.raises(GraderBusyError):
        turns.wait(turns.ask("in vain"), 0.01)
    place = turns.ask("in time")
    threading.Timer(0.05, turns.give_back).start()
    turns.wait(place, 5.0)
    assert is_called(place)


def test_closing_sends_everybody_away():
    turns = Turns(1, 10)
    turns.ask("running")
    place = turns.ask("waiting")
    turns.close()
    with pytest.raises(GraderFailedError, match="stopping"):
        turns.wait(place, 5.0)
    with pytest.raises(GraderFailedError, match="stopping"):
        turns.ask("late")
