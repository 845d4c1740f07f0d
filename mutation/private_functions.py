"""Private functions of a rendering: bodies of public functions moved away, and spare ones that nobody calls."""

import ast
import random

from autotest_env.mutation.bodies import first_free, has_docstring
from autotest_env.mutation.choice import walk
from autotest_env.mutation.constants import Number
from autotest_env.mutation.facts import FUNCTIONS
from autotest_env.mutation.names import NEEDS_ITS_FRAME, Names, mentions
from autotest_env.syntax import parse


def move_bodies(tree: ast.Module, names: Names) -> None:
    """Move the bodies of functions and methods into private functions of the module, called by position.

    Left alone: generators, coroutines, functions that define others (their qualified names show), that need their
    frame or class, that use class-private names.
    """
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            methods = [method for method in statement.body if isinstance(method, ast.FunctionDef)]
            body.extend(_moved(method, names) for method in methods if _can_move(method))
        elif isinstance(statement, ast.FunctionDef) and _can_move(statement):
            body.append(_moved(statement, names))
        body.append(statement)
    tree.body = body


def add_spare(tree: ast.Module, names: Names, numbers: list[Number], rng: random.Random) -> None:
    """Add two to four private functions that nobody calls, over the program's numbers and their like."""
    pool = [*numbers, *(10 * number for number in numbers), 2, 10, 100]
    for _ in range(rng.randint(2, 4)):
        tree.body.insert(rng.randint(first_free(tree), len(tree.body)), _spare(names, pool, rng))


def _can_move(function: ast.FunctionDef) -> bool:
    if mentions(function, NEEDS_ITS_FRAME) or function.name in ("__new__", "__init_subclass__", "__class_getitem__"):
        return False
    for node in walk(function):
        if node is not function and isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.GeneratorExp)):
            return False
        for name in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "arg", "")):
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                return False
    return True


def _moved(function: ast.FunctionDef, names: Names) -> ast.FunctionDef:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    start = 1 if has_docstring(function) else 0
    names_passed = ", ".join(argument.arg for argument in every)
    moved = parse(f"def {names.private()}({names_passed}):\n    pass").body[0]
    assert isinstance(moved, ast.FunctionDef)
    moved.body = function.body[start:] or moved.body
    moved.private = True  # type: ignore[attr-defined]
    passed: list[ast.expr] = [ast.Name(argument.arg, ast.Load()) for argument in every]
    call = ast.Call(func=ast.Name(moved.name, ast.Load()), args=passed, keywords=[])
    function.body = [*function.body[:start], ast.Return(value=call)]
    return moved


def _spare(names: Names, pool: list[Number], rng: random.Random) -> ast.FunctionDef:
    """Build ``def f(a, b, c): d = ...; if ... : return ...; return ...`` with random operations."""
    a, b, c, d = (names.local() for _ in range(4))

    def operand() -> str:
        return rng.choice((a, b, c)) if rng.random() < 0.7 else repr(rng.choice(pool))

    def operation() -> str:
        return f"{operand()} {rng.choice('+-*/')} {operand()} {rng.choice('+-*/')} {rng.choice(pool)!r}"

    lines = [f"def {names.private()}({a}, {b}, {c}):", f"    {d} = {operation()}"]
    if rng.random() < 0.6:
        lines += [f"    if {d} {rng.choice(('<', '<=', '>', '>='))} {operand()}:", f"        {d} = {operation()}"]
    value = f"round({d}, {rng.randint(0, 3)})" if rng.random() < 0.5 else f"{operation()} - {d}"
    lines.append(f"    return {value}")
    function = parse("\n".join(lines)).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function
