"""Rewrites of statements that keep behaviour: augmented assignments, loops, temporaries, order."""

import ast
import random
from collections.abc import Callable

from autotest_env.mutation.bodies import has_docstring
from autotest_env.mutation.choice import Choice, walk
from autotest_env.mutation.facts import (
    COMPREHENSIONS,
    FUNCTIONS,
    SCOPES,
    as_number,
    cannot_raise,
    effect_free,
    is_number,
    names_read,
)
from autotest_env.mutation.names import LOOKS_AT_LOCALS, Names, mentions

Body = list[ast.stmt]
_CLOSED = (*SCOPES, *COMPREHENSIONS, Choice, ast.JoinedStr)


def expand_augmented(tree: ast.Module, rng: random.Random) -> None:
    """Write ``a += b`` as ``a = a + b`` or ``a = b + a`` where both are numbers."""

    def rewrite(body: Body) -> Body:
        return [_expanded(statement, rng) for statement in body]

    _each_body(tree, rewrite)


def rewrite_loops(tree: ast.Module, names: Names, rng: random.Random) -> None:
    """Write ``for`` loops with `iter` and `next`, or with the unpacking moved into the body."""

    def rewrite(body: Body) -> Body:
        result: Body = []
        for statement in body:
            draw = rng.random()
            if isinstance(statement, ast.For) and not statement.orelse:
                result.extend(_with_next(statement, names) if draw < 0.6 else _with_unpacking(statement, names))
            elif isinstance(statement, ast.While) and not statement.orelse and draw < 0.8:
                result.append(_with_break(statement))
            else:
                result.append(statement)
        return result

    _each_body(tree, rewrite)


def add_temporaries(tree: ast.Module, names: Names, rng: random.Random) -> None:
    """Give the value of a return, and the left operand of an assigned operation, a name of its own first."""

    def rewrite(body: Body) -> Body:
        result: Body = []
        for statement in body:
            if rng.random() < 0.8:
                result.extend(_with_temporary(statement, names))
            else:
                result.append(statement)
        return result

    _each_body(tree, rewrite)


def add_dead_stores(tree: ast.Module, names: Names, numbers: list[int | float], rng: random.Random) -> None:
    """Store numbers under names that nobody reads, at drawn places: nobody can rebuild the code without the key."""
    pool = [*numbers, *(10 * number for number in numbers), 10, 100]
    for function in [node for node in walk(tree) if isinstance(node, FUNCTIONS)]:
        if mentions(function, LOOKS_AT_LOCALS):
            continue
        start = int(has_docstring(function))
        for _ in range(rng.randint(3, 6)):
            value = rng.choice(pool) if rng.random() < 0.5 else rng.randint(0, 999)
            store = ast.Assign(targets=[_store(names.local())], value=as_number(ast.Constant(value)), lineno=1)
            function.body.insert(rng.randint(start, len(function.body)), store)


def drop_temporaries(tree: ast.Module) -> None:
    """Write the value of a name that is used once, in the next statement, in its place."""
    for function in [node for node in walk(tree) if isinstance(node, FUNCTIONS)]:
        counts: dict[str, int] = {}
        for node in walk(function):
            for name in [node.id] if isinstance(node, ast.Name) else getattr(node, "names", []):
                if isinstance(name, str):
                    counts[name] = counts.get(name, 0) + 1
        parameters = {node.arg for node in walk(function) if isinstance(node, ast.arg)}
        single = {name for name, count in counts.items() if count == 2} - parameters
        if single and not mentions(function, LOOKS_AT_LOCALS):
            function.body = _merged(function.body, single)


def reorder(tree: ast.Module, rng: random.Random) -> None:
    """Swap neighbouring assignments that do not depend on each other and have no effect."""

    def rewrite(body: Body) -> Body:
        result = list(body)
        for index in range(len(result) - 1):
            if rng.random() < 0.7 and _independent(result[index], result[index + 1]):
                result[index], result[index + 1] = result[index + 1], result[index]
        return result

    _each_body(tree, rewrite)


def _each_body(tree: ast.Module, rewrite: Callable[[Body], Body]) -> None:
    """Apply a rewrite to every statement list of functions, innermost first; those that look at locals stay."""
    for node in tree.body:
        _descend(node, rewrite, inside=False)


def _descend(node: ast.AST, rewrite: Callable[[Body], Body], inside: bool) -> None:
    if isinstance(node, FUNCTIONS):
        if mentions(node, LOOKS_AT_LOCALS):
            return
        inside = True
    elif isinstance(node, ast.ClassDef):
        inside = False
    elif isinstance(node, ast.expr):
        return
    for child in ast.iter_child_nodes(node):
        _descend(child, rewrite, inside)
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if inside and isinstance(body, list) and body:
            setattr(node, name, rewrite(body))


def _expanded(statement: ast.stmt, rng: random.Random) -> ast.stmt:
    draw = rng.random()
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return statement
    if not (is_number(statement.target) and is_number(statement.value)):
        return statement
    target, value = statement.target, statement.value
    read = as_number(ast.Name(target.id, ast.Load()))
    left, right = read, value
    commutes = isinstance(statement.op, (ast.Add, ast.Mult)) and effect_free(value)
    if commutes and draw < 0.5:
        left, right = value, read
    new = as_number(ast.BinOp(left=left, op=statement.op, right=right))
    return ast.Assign(targets=[target], value=new, lineno=1)


def _with_next(loop: ast.For, names: Names) -> Body:
    iterator, item = names.local(), names.local()
    fetch = ast.Assign(targets=[_store(item)], value=_call("next", _load(iterator)), lineno=1)
    handler = ast.ExceptHandler(type=_load("StopIteration"), name=None, body=[ast.Break()])
    guarded = ast.Try(body=[fetch], handlers=[handler], orelse=[], finalbody=[])
    unpack = ast.Assign(targets=[loop.target], value=_load(item), lineno=1)
    start = ast.Assign(targets=[_store(iterator)], value=_call("iter", loop.iter), lineno=1)
    return [start, ast.While(test=ast.Constant(True), body=[guarded, unpack, *loop.body], orelse=[])]


def _with_unpacking(loop: ast.For, names: Names) -> Body:
    item = names.local()
    unpack = ast.Assign(targets=[loop.target], value=_load(item), lineno=1)
    return [ast.For(target=_store(item), iter=loop.iter, body=[unpack, *loop.body], orelse=[], lineno=1)]


def _with_break(loop: ast.While) -> ast.stmt:
    leave = ast.If(test=ast.UnaryOp(op=ast.Not(), operand=loop.test), body=[ast.Break()], orelse=[])
    return ast.While(test=ast.Constant(True), body=[leave, *loop.body], orelse=[])


def _with_temporary(statement: ast.stmt, names: Names) -> Body:
    if isinstance(statement, ast.Return) and not isinstance(statement.value, (ast.Constant, ast.Name, type(None))):
        name = names.local()
        new = ast.Return(value=_read_like(name, statement.value))
        return [ast.Assign(targets=[_store(name)], value=statement.value, lineno=1), new]
    simple = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp)
    if simple and not isinstance(statement.value.left, (ast.Constant, ast.Name)):  # type: ignore[attr-defined]
        operation: ast.BinOp = statement.value  # type: ignore[attr-defined]
        name = names.local()
        first = ast.Assign(targets=[_store(name)], value=operation.left, lineno=1)
        operation.left = _read_like(name, operation.left)
        return [first, statement]
    return [statement]


def _merged(body: Body, single: set[str]) -> Body:
    result = list(body)
    index = 0
    while index + 1 < len(result):
        first, second = result[index], result[index + 1]
        target = first.targets[0] if isinstance(first, ast.Assign) and len(first.targets) == 1 else None
        value = getattr(second, "value", None)
        if (
            isinstance(target, ast.Name)
            and target.id in single
            and isinstance(second, (ast.Assign, ast.Return))
            and isinstance(value, ast.expr)
            and is_number(first.value)  # type: ignore[attr-defined]
            and cannot_raise(first.value)  # type: ignore[attr-defined]
            and _replace_name(second, target.id, first.value)  # type: ignore[attr-defined]
        ):
            del result[index]
            continue
        index += 1
    return result


def _replace_name(statement: ast.stmt, name: str, value: ast.expr) -> bool:
    """Put `value` where a statement reads `name`; False where it does not, or reads it late or repeatedly."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        for field, child in ast.iter_fields(node):
            if isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Load):
                setattr(node, field, value)
                return True
            items = child if isinstance(child, list) else [child]
            for index, item in enumerate(items):
                if isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Load):
                    items[index] = value
                    return True
                if isinstance(item, ast.AST) and not isinstance(item, _CLOSED):
                    stack.append(item)
    return False


def _independent(first: ast.stmt, second: ast.stmt) -> bool:
    for statement in (first, second):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        if not isinstance(statement.targets[0], ast.Name) or not cannot_raise(statement.value):
            return False
    one, two = _target(first), _target(second)
    reads = names_read(first.value), names_read(second.value)  # type: ignore[attr-defined]
    return one != two and one not in reads[1] and two not in reads[0]


def _target(statement: ast.stmt) -> str:
    name: str = statement.targets[0].id  # type: ignore[attr-defined]
    return name


def _read_like(name: str, value: ast.expr) -> ast.expr:
    return as_number(_load(name)) if is_number(value) else _load(name)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(func=_load(name), args=[argument], keywords=[])
