"""The order program in every rendering, and a way to compare code objects."""

import types
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.rendering import RENDERINGS, render
from autotest_env.tasks.program import ProgramSource, load_program

KEY = b"a key for tests"
Shape = tuple[object, ...]


@cache
def order_total() -> ProgramSource:
    """The classic program."""
    return load_program("order_total")


@cache
def rendered(bug: str | None, alternative: int, rendering: int, key: bytes = KEY) -> str:
    """A text of the classic program: the reference when no bug is named."""
    program = order_total()
    chosen = {bug: alternative} if bug else {}
    return render(program.source, program.sites, chosen, rendering, key)


def plain(bug: str | None, alternative: int = 1) -> str:
    """The classic program as written."""
    program = order_total()
    return substitute(program.source, program.sites, {bug: alternative} if bug else {})


def every_variant() -> Iterator[tuple[str, int]]:
    """Every alternative of every bug: 1 is the bug, then siblings and padding."""
    for site in order_total().sites:
        for alternative in range(1, len(site.alternatives)):
            yield site.name, alternative


def load(text: str) -> types.ModuleType:
    """Execute a text as a module."""
    module = types.ModuleType(__name__)  # dataclasses look their module up
    exec(compile(text, "<program>", "exec"), module.__dict__)
    return module


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def shape(text: str) -> Shape:
    """What a text's code objects are, line tables aside."""

    def of(code: types.CodeType) -> Shape:
        constants = tuple(of(item) if isinstance(item, types.CodeType) else repr(item) for item in code.co_consts)
        return code.co_code, code.co_names, constants

    return of(compile(text, "<program>", "exec"))


def outcome(function: Callable[..., object], *arguments: object) -> str:
    """What a call gave: a value's repr, or the exception's type and arguments."""
    try:
        return repr(function(*arguments))
    except Exception as error:  # noqa: BLE001  whatever a program raises is an outcome
        return f"{type(error).__name__}{error.args!r}"


@pytest.fixture(params=range(RENDERINGS))
def rendering(request: pytest.FixtureRequest) -> int:
    """Every rendering in turn."""
    number: int = request.param
    return number
