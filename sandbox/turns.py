"""Whose turn it is: who has been asking for longest, however often they were told to come again.

A caller who waited in vain is refused and remembered for two minutes. When the same key comes again it stands where it
would if it had never left, so that the number of tries is bounded by the length of the line. Key None is nobody's.
"""

import heapq
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field

from autotest_env.errors import GraderBusyError, GraderFailedError

RETRY_AFTER_S = 5
"""What a refused caller is told; its place is kept, so that coming sooner would gain nothing."""

_REMEMBERED_S = 120.0
_MOST_REMEMBERED = 10_000


@dataclass(order=True, slots=True)
class Place:
    """A place in the line; `called` is done when it is this caller's turn."""

    asked: float
    number: int
    key: Hashable = field(compare=False)
    called: "Future[None]" = field(default_factory=Future, compare=False)


class Turns:
    """So many turns at a time; each caller in line is woken alone. Thread-safe."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._free = at_once
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._line: list[Place] = []
        self._refused: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Key to when it first asked and when it was refused."""
        self._asked = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """Callers in line now."""
        return len(self._line)

    def ask(self, key: Hashable) -> Place:
        """Get in line. Raises GraderBusyError when the line is full, GraderFailedError when it is closed."""
        now = time.monotonic()
        with self._lock:
            if self._closed:
                raise GraderFailedError("the server is stopping")
            asked = self._first_asked(key, now)
            if len(self._line) >= self._most_waiting:
                self._remember(key, asked, now)
                raise GraderBusyError("the queue of submissions is full; send it again later", retry_after_s=10)
            self._asked += 1
            place = Place(asked, self._asked, key)
            heapq.heappush(self._line, place)
            self._call_next()
            return place

    def wait(self, place: Place, wall_s: float) -> None:
        """Wait to be called. Raises GraderBusyError when that takes too long, GraderFailedError when it closes."""
        try:
            place.called.result(wall_s)
        except TimeoutError:
            self.give_up(place)

    def give_up(self, place: Place) -> None:
        """Leave the line, and raise GraderBusyError; do nothing if it is this caller's turn by now."""
        if not place.called.cancel():
            return
        with self._lock:
            if place in self._line:
                self._line.remove(place)
                heapq.heapify(self._line)
            self._remember(place.key, place.asked, time.monotonic())
        raise GraderBusyError("no grader was free in time; send it again later", retry_after_s=RETRY_AFTER_S)

    def give_back(self) -> None:
        """End a turn; the next in line is called."""
        with self._lock:
            self._free += 1
            self._call_next()

    def close(self) -> None:
        """Send everybody away, now and from now on."""
        with self._lock:
            self._closed = True
            for place in self._line:
                if place.called.set_running_or_notify_cancel():
                    place.called.set_exception(GraderFailedError("the server is stopping"))
            self._line.clear()

    def _call_next(self) -> None:
        while self._free and self._line:
            place = heapq.heappop(self._line)
            if place.called.set_running_or_notify_cancel():
                self._free -= 1
                place.called.set_result(None)

    def _first_asked(self, key: Hashable, now: float) -> float:
        asked, refused = self._refused.pop(key, (now, now))
        return asked if now - refused < _REMEMBERED_S else now

    def _remember(self, key: Hashable, asked: float, now: float) -> None:
        if key is None:
            return
        self._refused[key] = (asked, now)
        if len(self._refused) > _MOST_REMEMBERED:
            self._refused.popitem(last=False)
