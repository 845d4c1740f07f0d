"""The composition root: one process, one app, one or more sockets.

`app` is built when it is first asked for, so that `uvicorn autotest_env.server.app:app` works and importing this module
does nothing. openenv is imported while the fork servers start: it takes seconds.
"""

import argparse
import asyncio
import atexit
import gc
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotest_env.errors import SetupError
from autotest_env.server.settings import MAX_PORT, Settings, require_one_openenv

if TYPE_CHECKING:
    from fastapi import FastAPI

    from autotest_env.sandbox.run import Sandbox
    from autotest_env.server.environment import TaskSource

SESSION_TIMEOUT_S = 3600.0
_SWITCH_S = 0.0003
"""How long a thread may compute while another waits: 5 ms is Python's, and the event loop waits once for each thread of
a crowd. A third of it gained nothing that could be told from noise."""
_COLLECTIONS = (25_000, 10, 10)
"""When garbage is looked for (`gc.set_threshold`): by Python's own (700, 10, 10) the trees that texts are made of bring
about looks through all objects of all sessions, several a second, and each stops every thread; with 256 sessions for
50 ms. Sessions leave next to nothing that only such a look would find."""
_SLOW_IMPORT = "openenv.core.env_server.http_server"

_log = logging.getLogger("autotest_env.server")


def build_app(settings: Settings, tasks: "TaskSource | None" = None) -> "FastAPI":
    """Build the app; without tasks of the caller's own it starts a sandbox, which the app closes when it shuts down.

    Raises SetupError.
    """
    require_one_openenv()
    if tasks is not None:
        return _assemble(settings, tasks, {}, lambda: None)
    sandbox = _start_sandbox(settings)
    try:
        from autotest_env.tasks.registry import FAMILIES, TaskRequest, Tasks  # noqa: PLC0415  # not before the sandbox

        tasks = Tasks(sandbox, settings.secret)
        for name in FAMILIES:  # loaded by the first task of each, for which no caller should wait
            tasks.generate(TaskRequest(task_id=name), fresh_seed=0)
        return _assemble(settings, tasks, dict(sandbox.layers), sandbox.close)
    except BaseException:
        sandbox.close()
        raise


def main(arguments: list[str] | None = None) -> int:
    """Run the server until SIGTERM or Ctrl-C."""
    from autotest_env.server.listening import bind, serve  # noqa: PLC0415  # uvicorn is not needed to build the app

    options = _parser().parse_args(arguments)
    try:
        settings = _with_options(Settings.from_environment(), options)
        logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
        sockets = bind(settings.host, settings.ports)
        return serve(build_app(settings), sockets, settings.log_level, ready_fd=options.ready_fd)
    except SetupError as error:
        sys.stderr.write(f"server: {error}\n")
        return 2


def _start_sandbox(settings: Settings) -> "Sandbox":
    from autotest_env.sandbox.run import Sandbox, SandboxOptions  # noqa: PLC0415  # not needed with tasks of one's own

    warming = threading.Thread(target=import_module, args=(_SLOW_IMPORT,), daemon=True)
    warming.start()
    sandbox = Sandbox(SandboxOptions(graders=settings.graders, isolation=settings.isolation))
    try:
        sandbox.start()
    finally:
        warming.join()
    atexit.register(sandbox.close)
    for layer, state in sandbox.layers.items():
        _log.info("isolation layer %s: %s", layer, state)
    return sandbox


def _assemble(settings: Settings, tasks: "TaskSource", layers: dict[str, str], close: Callable[[], None]) -> "FastAPI":
    from openenv.core.env_server.http_server import create_app  # noqa: PLC0415  # takes seconds
    from openenv.core.env_server.types import ConcurrencyConfig  # noqa: PLC0415

    from autotest_env.models import TestAction, TestObservation  # noqa: PLC0415
    from autotest_env.server import http_routes  # noqa: PLC0415
    from autotest_env.server.environment import NAME, AutotestEnvironment, Engine  # noqa: PLC0415
    from autotest_env.server.rim import Rim  # noqa: PLC0415
    from autotest_env.server.store import EpisodeStore  # noqa: PLC0415

    engine = Engine(tasks=tasks, layers=layers)

    def open_session() -> AutotestEnvironment:  # a function: openenv-core 0.3.0 takes a partial for an environment
        return AutotestEnvironment(engine)

    app = create_app(
        open_session,
        TestAction,
        TestObservation,
        env_name=NAME,
        concurrency_config=ConcurrencyConfig(max_concurrent_envs=settings.sessions, session_timeout=SESSION_TIMEOUT_S),
    )
    http_routes.install(app, engine, EpisodeStore(), settings.sessions)
    app.add_middleware(Rim)
    _frame_life(app, close)
    return app


def _frame_life(app: "FastAPI", close: Callable[[], None]) -> None:
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(owner: Any) -> AsyncIterator[Any]:
        try:
            async with inner(owner) as state:
                gc.collect()
                gc.freeze()  # what is loaded stays; looking through it again would stop every thread for 0.2 s
                gc.set_threshold(*_COLLECTIONS)
                sys.setswitchinterval(_SWITCH_S)
                yield state
        finally:
            await asyncio.to_thread(close)  # it waits for running jobs, and answers in flight still have to leave

    app.router.lifespan_context = lifespan
    app.state.stop = close


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="server", description="Serve autotest-env.")
    parser.add_argument("--host", help="address to listen on; default AUTOTEST_HOST, else 127.0.0.1")
    parser.add_argument(
        "--port",
        type=_port,
        action="append",
        help="port to listen on, 0 for a free one; may be given more than once; default AUTOTEST_PORTS, else 7860",
    )
    parser.add_argument(
        "--ready-fd",
        type=_descriptor,
        help="descriptor that gets one line `host port` per socket once requests are answered",
    )
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {MAX_PORT}")
    return int(text)


def _descriptor(text: str) -> int:
    try:
        os.fstat(int(text))
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError("must be the number of an open descriptor") from None
    return int(text)


def _with_options(settings: Settings, options: argparse.Namespace) -> Settings:
    if options.host is not None:
        settings = replace(settings, host=options.host)
    if options.port is not None:
        settings = replace(settings, ports=tuple(options.port))
    return settings


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    app = build_app(Settings.from_environment())
    globals()["app"] = app
    return app


if __name__ == "__main__":
    sys.exit(main())
