"""Threads for work that waits, with a bound on how many callers wait for one, and for how long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from autotest_env.errors import GraderBusyError
from autotest_env.sandbox.turns import Turns

_Result = TypeVar("_Result")


class Pool:
    """Waiting for a thread costs none; who was refused and comes again with the same key has its place kept."""

    def __init__(self, name: str, *, threads: int, most_waiting: int, wall_s: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._turns = Turns(threads, most_waiting)
        self._wall_s = wall_s

    async def run(self, work: Callable[[], _Result], key: str | None = None) -> _Result:
        """Do the work in a thread. Raises GraderBusyError when none is free in time."""
        place = self._turns.ask(key)
        try:
            async with asyncio.timeout(self._wall_s):
                await asyncio.wrap_future(place.called)
        except TimeoutError:
            self._turns.give_up(place)
        except asyncio.CancelledError:
            with suppress(GraderBusyError):
                self._turns.give_up(place)
                self._turns.give_back()
            raise
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._turns.give_back()
