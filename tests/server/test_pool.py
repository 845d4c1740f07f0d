import asyncio
import threading

import pytest

from autotest_env.errors import GraderBusyError
from autotest_env.server.pool import Pool


async def holding(pool: Pool, release: threading.Event) -> "asyncio.Task[bool]":
    """Occupy a thread until released."""
    begun = threading.Event()

    def work() -> bool:
        begun.set()
        return release.wait(30)

    task = asyncio.ensure_future(pool.run(work))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    return task


def check(play) -> None:
    async def main() -> None:
        pool, release = Pool("test", threads=1, most_waiting=2, wall_s=0.05), threading.Event()
        try:
            await asyncio.wait_for(play(pool, release), 30)
        finally:
            release.set()

    asyncio.run(main())


def test_work_is_done_in_a_thread_of_the_pool():
    async def play(pool: Pool, _release: threading.Event) -> None:
        assert (await pool.run(lambda: threading.current_thread().name)).startswith("test")

    check(play)


def test_who_gets_no_thread_in_time_is_told_to_come_again():
    async def play(pool: Pool, release: threading.Event) -> None:
        holder = await holding(pool, release)
        with pytest.raises(GraderBusyError):
            await pool.run(lambda: "in vain")
        release.set()
        assert await holder
        assert await pool.run(lambda: "again") == "again"

    check(play)


def test_more_than_may_wait_are_refused_at_once():
    async def play(pool: Pool, release: threading.Event) -> None:
        await holding(pool, release)
        waiting = [asyncio.ensure_future(pool.run(lambda: None)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(GraderBusyError, match="full"):
            await pool.run(lambda: None)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [GraderBusyError] * 2

    check(play)


def test_a_caller_who_is_gone_leaves_the_thread_to_the_next():
    async def play(pool: Pool, release: threading.Event) -> None:
        holder = await holding(pool, release)
        gone = asyncio.ensure_future(pool.run(lambda: "gone"))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        release.set()
        assert await holder
        assert await pool.run(lambda: "next") == "next"

    check(play)


def test_work_that_fails_gives_its_thread_back():
    async def play(pool: Pool, _release: threading.Event) -> None:
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 / 0)
        assert await pool.run(lambda: "next") == "next"

    check(play)
