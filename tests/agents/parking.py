"""A module in two versions with its tests, for the policies: two regressions and one announced change."""

MODULE = "parking"
OLD = '''"""A car park."""


class Full(Exception):
    """Raised when no car fits in."""


class Park:
    """Cars come and go; `clock` returns minutes."""

    def __init__(self, clock, places=3):
        self._clock = clock
        self._places = places
        self._cars = {}

    def enter(self, plate):
        """Let a car in. At most `places` cars fit in. Plates have two to eight letters, digits or dashes.

        Raises Full, and ValueError for a plate that is none.
        """
        plate = plate.strip().upper()
        if not 2 <= len(plate) <= 8 or not plate.replace("-", "").isalnum():
            raise ValueError(plate)
        if len(self._cars) >= self._places:
            raise Full(plate)
        self._cars[plate] = self._clock()
        return len(self._cars)

    def leave(self, plate):
        """Let a car out and return what it costs: the first 15 minutes are free, then 2 for each hour begun."""
        minutes = self._clock() - self._cars.pop(plate.strip().upper())
        if minutes <= 15:
            return 0
        hours = -(-minutes // 60)
        return hours * 2
'''
CHANGELOG = "* Parking is free for the first twenty minutes now, no longer for fifteen.\n"
NEW = (
    OLD.replace("first 15 minutes", "first 20 minutes")
    .replace("minutes <= 15", "minutes <= 20")
    .replace("2 <= len(plate)", "1 <= len(plate)")
    .replace(">= self._places", "> self._places")
)
RIGHT = NEW.replace("1 <= len(plate)", "2 <= len(plate)").replace("> self._places", ">= self._places")
EXISTING = '''"""Tests of version 1."""

import pytest
from parking import Full, Park

PLATE = "ab-123"


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def test_a_car_enters():
    assert Park(Clock()).enter(PLATE) == 1


def test_a_full_park_takes_no_car():
    park = Park(Clock(), 2)
    park.enter(PLATE)
    park.enter("cd-456")
    with pytest.raises(Full):
        park.enter("ef-789")


def test_plates_are_checked():
    park = Park(Clock())
    for plate in ("a", "", "123456789"):
        with pytest.raises(ValueError):
            park.enter(plate)


@pytest.mark.parametrize(("minutes", "price"), [(10, 0), (50, 2), (70, 4)])
def test_hours_cost(minutes, price):
    clock = Clock()
    park = Park(clock)
    park.enter(PLATE)
    clock.now = minutes
    assert park.leave(PLATE) == price


def test_a_quarter_is_free_but_no_more():
    clock = Clock()
    park = Park(clock)
    park.enter(PLATE)
    clock.now += 18
    assert park.leave(PLATE) == 2
'''
FILES = {"parking.py": NEW, "parking_v1.py": OLD, "CHANGELOG.md": CHANGELOG}
