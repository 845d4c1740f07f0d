"""The server of `sessions.py`: the real one, and a heartbeat in its event loop.

    python benchmarks/sessions_server.py READY_FD BEATS_FILE

A beat is due every 10 ms. How late it comes is how long the loop kept everybody waiting, and the kernel counts why:
the loop's thread computed, it waited for a processor, or neither, which is waiting for the interpreter's lock.
The file gets one JSON line per beat: `[when, late_s, computed_s, no_processor_s]`.
"""

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path
from typing import TextIO

from autotest_env.server.app import build_app
from autotest_env.server.listening import bind, serve
from autotest_env.server.settings import Settings

BEAT_S = 0.01
Beat = tuple[float, float, float, float]


def main(ready_fd: int, file: Path) -> int:
    """Serve until a signal ends it."""
    logging.basicConfig(format="%(message)s")
    settings = Settings.from_environment()
    app = build_app(settings)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(owner: object) -> AsyncIterator[object]:
        async with inner(owner) as state:
            with file.open("w") as beats:  # not a list: the memory of this process is measured
                heart = asyncio.create_task(beat(beats))
                yield state
                heart.cancel()

    app.router.lifespan_context = lifespan
    return serve(app, bind(settings.host, (0,)), "warning", ready_fd=ready_fd)


async def beat(beats: TextIO) -> None:
    """Note every beat: when it came, how late, what the thread computed and how long it had no processor meanwhile."""
    with Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").open("rb", buffering=0) as counts:
        loop = asyncio.get_running_loop()
        computed_s, no_processor_s = read(counts)
        while True:
            due = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            now = loop.time()
            before = computed_s, no_processor_s
            computed_s, no_processor_s = read(counts)
            noted: Beat = (time.monotonic(), now - due, computed_s - before[0], no_processor_s - before[1])
            beats.write(json.dumps(noted) + "\n")


def read(counts: FileIO) -> tuple[float, float]:
    """Seconds on a processor and waiting for one, of this thread so far."""
    counts.seek(0)
    computed, waited, _ = counts.read().split()
    return int(computed) / 1e9, int(waited) / 1e9


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
