"""Trees are built in one thread at a time: interpreters before 3.11.8 and 3.12.2 fail when two threads build at once."""

import ast
import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from autotest_env.syntax import parse, parse_expression

ROOT = Path(__file__).resolve().parent.parent
THREADED = ("agents", "benchmarks", "mutation", "reports", "server", "tasks")
NESTED = "[" * 40 + "]" * 40
TEXT = f"x = {NESTED}\n" * 20


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Every collection of garbage parses, as finalizers may, and threads take turns all the time."""

    def interruption(phase: str, info: dict[str, int]) -> None:
        ast.parse(NESTED)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(interruption)
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    try:
        yield
    finally:
        gc.callbacks.remove(interruption)
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


@pytest.mark.usefixtures("interrupted")
def test_threads_parse_at_once() -> None:
    def twice(number: int) -> int:
        return len(parse(TEXT).body) + len(ast.unparse(parse_expression(NESTED)))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(twice, range(64))) == {20 + 80}


@pytest.mark.parametrize("folder", [*THREADED, "."])
def test_nothing_that_has_threads_parses_by_itself(folder: str) -> None:
    paths = (ROOT / folder).glob("*.py") if folder == "." else (ROOT / folder).rglob("*.py")
    calls = {path.name for path in paths if "ast.parse(" in path.read_text(encoding="utf-8")}
    assert calls == ({"syntax.py"} if folder == "." else set())


@pytest.mark.parametrize("source", ["x = 1", "def"])
@pytest.mark.parametrize("collected", [True, False])
def test_collecting_goes_on_as_before(source: str, collected: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if collected else gc.disable)()
        with suppress(SyntaxError):
            parse(source)
        assert gc.isenabled() is collected
    finally:
        (gc.enable if was else gc.disable)()


def test_what_is_not_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        parse("def")
    with pytest.raises(SyntaxError):
        parse_expression("x = 1")
