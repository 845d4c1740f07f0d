"""The scripted family, and episodes on it."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autotest_env.server.episodes import Episode


@pytest.fixture(scope="session")
def scripted() -> ModuleType:
    """The module tests/server/scripted.py."""
    spec = spec_from_file_location("scripted", Path(__file__).with_name("scripted.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["scripted"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def open_episode(scripted: ModuleType) -> Callable[..., Episode]:
    """Open an episode on a fresh scripted family."""

    def build(episode_id: str = "e", seed: int = 7, **options: Any) -> Episode:
        family = options.pop("family", None) or scripted.ScriptedFamily()
        return Episode(episode_id, family.generate(seed), family, **options)

    return build
