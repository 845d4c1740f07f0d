"""Sockets and the serving loop."""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from autotest_env.errors import SetupError

BACKLOG = 2048
_ACCEPTED_AT_ONCE = 8
"""asyncio accepts as many callers as the backlog before it looks at anything else: 250 at once would take 0.2 s."""
GRACE_S = 5
"""Seconds that stopping the graders may take, and then a request still in flight."""
_VANISHED = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After a minute of silence the kernel asks a caller whether it is there, four times in the next one. Who vanished
without a word would keep its descriptor for ever otherwise."""
_SETTLE_S = 0.5
"""An answer that is ready gets so long to reach its caller."""


def bind(host: str, ports: tuple[int, ...]) -> list[socket.socket]:
    """Listen on one socket per port, callers wait until they are served. Raises SetupError naming what is wrong."""
    sockets: list[socket.socket] = []
    for port in [*dict.fromkeys(filter(None, ports)), *(port for port in ports if port == 0)]:
        try:
            sockets.append(_bound(host, port))
        except OSError as error:
            for bound in sockets:
                bound.close()
            other = "--host" if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL else "--port"
            raise SetupError(
                f"cannot listen on {host} port {port} ({error.strerror or error}); choose another with {other}"
            ) from error
    return sockets


def serve(app: FastAPI, sockets: list[socket.socket], log_level: str, *, ready_fd: int | None = None) -> int:
    """Serve until a signal ends it; says on stderr, and on `ready_fd`, where. Returns the exit code."""
    config = uvicorn.Config(
        app,
        log_level="warning" if log_level == "info" else log_level,
        access_log=False,
        backlog=_ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=GRACE_S,
        ws_per_message_deflate=False,
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(_Server(config, ready_fd, getattr(app.state, "stop", None)).serve(sockets))
        return 0
    return 130


class _Server(uvicorn.Server):
    """Says where it listens; at the end it stops the graders first, so that whoever waits for them is told."""

    def __init__(self, config: uvicorn.Config, ready_fd: int | None, stop: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready_fd = ready_fd
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.should_exit:
            return
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has set it to what is accepted at once
        places = [entry.getsockname()[:2] for entry in sockets or ()]
        for host, port in places:
            sys.stderr.write(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}\n")
        sys.stderr.flush()
        if self._ready_fd is not None:
            with os.fdopen(self._ready_fd, "w") as ready:
                ready.writelines(f"{host} {port}\n" for host, port in places)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        if self._stop is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(asyncio.to_thread(self._stop)), GRACE_S)
        await self._settle()
        for task in self.server_state.tasks:  # open sessions, and whoever is still not answered: the rim tells them
            task.cancel()
        await self._settle()
        await super().shutdown(sockets)

    async def _settle(self) -> None:
        if self.server_state.tasks:
            await asyncio.wait(list(self.server_state.tasks), timeout=_SETTLE_S)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # accepted connections inherit this
        for name, value in _VANISHED.items():
            if hasattr(socket, name):  # not every system can set each
                bound.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound
