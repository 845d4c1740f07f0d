"""Sockets and the serving loop."""

import asyncio
import os
import socket
import sys
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from autotest_env.errors import SetupError

BACKLOG = 2048
GRACE_S = 5
"""Seconds a request in flight gets at shutdown."""


def bind(host: str, ports: tuple[int, ...]) -> list[socket.socket]:
    """Bind one socket per port. Raises SetupError naming the port that is taken."""
    sockets: list[socket.socket] = []
    for port in ports:
        try:
            sockets.append(_bound(host, port))
        except OSError as error:
            for bound in sockets:
                bound.close()
            raise SetupError(
                f"cannot listen on {host} port {port} ({error.strerror or error}); choose another with --port"
            ) from error
    return sockets


def serve(app: FastAPI, sockets: list[socket.socket], log_level: str, *, ready_fd: int | None = None) -> int:
    """Serve until a signal ends it; says on stderr, and on `ready_fd`, where. Returns the exit code."""
    config = uvicorn.Config(
        app,
        log_level="warning" if log_level == "info" else log_level,
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        ws_per_message_deflate=False,
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(_AnnouncingServer(config, ready_fd).serve(sockets))
        return 0
    return 130


class _AnnouncingServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready_fd: int | None) -> None:
        super().__init__(config)
        self._ready_fd = ready_fd

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.should_exit:
            return
        places = [entry.getsockname()[:2] for entry in sockets or ()]
        for host, port in places:
            sys.stderr.write(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}\n")
        sys.stderr.flush()
        if self._ready_fd is not None:
            with os.fdopen(self._ready_fd, "w") as ready:
                ready.writelines(f"{host} {port}\n" for host, port in places)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
