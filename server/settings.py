"""What the server reads from its environment, once, checked: nothing else of ours looks there."""

import difflib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import metadata

from autotest_env.errors import SetupError
from autotest_env.sandbox.confine import Isolation
from autotest_env.server.machine import available_cores, thread_limit

PREFIX = "AUTOTEST_"
PUBLIC_SECRET = b"autotest-env public default"
"""Salts all secret draws of servers without a secret of their own, so that everybody gets the same numbers."""

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
MAX_PORT = 65_535


MOST_SESSIONS = 256
OTHER_THREADS = 128
"""Processes and threads beside the one that each WebSocket session has; `docs/architecture.md` counts them."""


def default_sessions(limit: int | None) -> int:
    """Return how many sessions fit under a limit of processes and threads; at least 8."""
    return MOST_SESSIONS if limit is None else max(8, min(MOST_SESSIONS, limit - OTHER_THREADS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server runs. Port 0 is any free port."""

    host: str = "127.0.0.1"
    ports: tuple[int, ...] = (7860,)
    graders: int = field(default_factory=available_cores)
    """Runs made at the same time."""
    sessions: int = field(default_factory=lambda: default_sessions(thread_limit()))
    """Open WebSocket sessions, and HTTP steps in flight."""
    secret: bytes = field(default=PUBLIC_SECRET, repr=False)
    isolation: Isolation = Isolation.BEST_EFFORT
    log_level: str = "info"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the AUTOTEST_* variables; empty ones count as unset.

        Raises SetupError naming the variable, what it may be, and for an unknown name the nearest one.
        """
        values = os.environ if environment is None else environment
        ours = {name: text.strip() for name, text in values.items() if name.startswith(PREFIX)}
        unknown = sorted(ours.keys() - _READERS.keys() - _OF_OTHERS)
        if unknown:
            raise SetupError(_unknown(unknown[0]))
        found: dict[str, object] = {}
        for name, (attribute, read) in _READERS.items():
            if text := ours.get(name):
                found[attribute] = _checked(name, text, read)
        return cls(**found)  # type: ignore[arg-type]  # each reader returns its attribute's type


def require_one_openenv(distributions: Collection[str] | None = None) -> None:
    """Refuse a Python where both distributions of openenv are installed: they overwrite each other's files."""
    installed = _installed(("openenv", "openenv-core")) if distributions is None else set(distributions)
    if {"openenv", "openenv-core"} <= installed:
        raise SetupError(
            "both openenv and openenv-core are installed and overwrite each other; run: "
            "python -m pip uninstall -y openenv openenv-core && python -m pip install 'openenv>=0.10,<0.11'"
        )


def _installed(names: Collection[str]) -> set[str]:
    found = set()
    for name in names:
        if any(metadata.distributions(name=name)):
            found.add(name)
    return found


def _checked(name: str, text: str, read: Callable[[str], object]) -> object:
    try:
        return read(text)
    except ValueError as error:
        raise SetupError(f"{name} must be {error}") from error


def _unknown(name: str) -> str:
    known = sorted(_READERS.keys() | _OF_OTHERS)
    near = difflib.get_close_matches(name.removeprefix(PREFIX), [text.removeprefix(PREFIX) for text in known], n=1)
    hint = f"did you mean {PREFIX}{near[0]}?" if near else f"there are: {', '.join(known)}"
    return f"unknown environment variable {name}; {hint}"


def _count(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= most):
            raise ValueError(f"a whole number from 1 to {most}")
        return int(text)

    return read


def _ports(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 5 and int(part) <= MAX_PORT for part in parts):
        raise ValueError(f"port numbers from 0 to {MAX_PORT} with commas between, e.g. 7860,8000")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _isolation(text: str) -> Isolation:
    if text not in tuple(Isolation):
        raise ValueError(" or ".join(Isolation))
    return Isolation(text)


def _log_level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"one of {', '.join(LOG_LEVELS)}")
    return text.lower()


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "AUTOTEST_HOST": ("host", str),
    "AUTOTEST_PORTS": ("ports", _ports),
    "AUTOTEST_GRADERS": ("graders", _count(256)),
    "AUTOTEST_SESSIONS": ("sessions", _count(4096)),
    "AUTOTEST_SECRET": ("secret", str.encode),
    "AUTOTEST_ISOLATION": ("isolation", _isolation),
    "AUTOTEST_LOG_LEVEL": ("log_level", _log_level),
}
_OF_OTHERS = frozenset({"AUTOTEST_URL"})
"""Known names that are not the server's: the client's default address."""
