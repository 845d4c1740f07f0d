"""autotest-env: an OpenEnv environment that pays for tests which catch real bugs.

The names below load on first use: importing this package imports nothing else.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "AutotestEnv": "autotest_env.client",
    "AutoTestEnvClient": "autotest_env.client",
    "TestAction": "autotest_env.models",
    "TestObservation": "autotest_env.models",
    "TestState": "autotest_env.models",
}

__all__ = ["AutoTestEnvClient", "AutotestEnv", "TestAction", "TestObservation", "TestState"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
