"""Places without a bug that look like places with one, and further alternatives beside the given ones.

Which alternative the padding gathers around is drawn: the reference's is the most central one no oftener than others.
"""

import ast
import itertools
import random
import re
from collections.abc import Iterator

from autotest_env.mutation.choice import Choice, copied, same, walk
from autotest_env.mutation.facts import COMPREHENSIONS, FUNCTIONS, as_number, cannot_raise, is_number, own_nodes
from autotest_env.mutation.names import LOOKS_AT_LOCALS, Names, mentions

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_OPERATORS: tuple[type[ast.operator], ...] = (ast.Add, ast.Sub, ast.Mult)
_COMPARISONS: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_CHANGEABLE = (ast.BinOp, ast.Constant, ast.Name, ast.Compare)
_CLOSED = (Choice, ast.JoinedStr, ast.Lambda, ast.ClassDef, *FUNCTIONS, ast.match_case, ast.Subscript, *COMPREHENSIONS)
_TRIES = 8
_MOST = 10
"""Alternatives of a padded place: their indexes have one digit, so that picking another moves nothing."""
_WORD = re.compile(r"\w+|[^\w\s]+")


def invent_places(tree: ast.Module, count: int, names: Names, rng: random.Random) -> None:
    """Turn up to `count` harmless expressions, else repeated assignments, into places."""
    functions = [node for node in walk(tree) if isinstance(node, FUNCTIONS) and not mentions(node, LOOKS_AT_LOCALS)]
    operations = [found for function in functions for found in _operations(function)]
    rng.shuffle(operations)
    for parent, field, index in operations[: max(1, count // 2)]:
        value = getattr(parent, field)
        node = value if index is None else value[index]
        place = Choice(_around(node, rng), names.local())
        if index is None:
            setattr(parent, field, place)
        else:
            value[index] = place
    missing = count - min(len(operations), max(1, count // 2))
    spots = [spot for function in functions for spot in _assignments(function)]
    if not spots:
        return
    drawn = sorted((rng.randrange(len(spots)) for _ in range(missing)), reverse=True)
    for number in drawn:
        body, statement, companions = spots[number]
        again = _assigned_again(statement, companions, names, rng)
        body.insert(next(i for i, item in enumerate(body) if item is statement) + 1, again)


def pad(place: Choice, rng: random.Random) -> None:
    """Add a bare name, then alternatives near a drawn one until that is the most central."""
    known = place.alternatives
    names = _numeric_names(known)
    rng.shuffle(names)
    bare = [node for node in map(_number, names) if not any(same(node, other) for other in known)]
    known.extend(bare[: max(0, min(1, _MOST - len(known)))])
    centre = rng.randrange(len(known))
    for number in range(_MOST - len(known)):
        if most_central([ast.unparse(node) for node in known]) == centre:
            break
        new = _extended(known[centre], names, rng) if number % 2 else changed(known[centre], known, rng)
        if new is not None and cannot_raise(new) and not any(same(new, other) for other in known):
            known.append(new)


def most_central(texts: list[str]) -> int:
    """Return which text shares most with the others: words, and neighbouring pairs of words."""
    features = [_features(text) for text in texts]
    shares = [sum(2 * len(one & two) / (len(one) + len(two)) for two in features) for one in features]
    return shares.index(max(shares))


def _features(text: str) -> set[tuple[str, ...]]:
    words = ["", *_WORD.findall(text), ""]
    return {(word,) for word in words} | set(itertools.pairwise(words))


def changed(node: ast.expr, known: list[ast.expr], rng: random.Random) -> ast.expr | None:
    """Return a copy of a number's expression with one thing changed, unlike all known; None when none was found."""
    names = _numeric_names(known)
    for _ in range(_TRIES):
        new = copied(node)
        spots = [inner for inner in walk(new) if isinstance(inner, _CHANGEABLE) and is_number(inner)]
        if not spots:
            return None
        _change(rng.choice(spots), names, rng)
        if cannot_raise(new) and not any(same(new, other) for other in known):
            return new
    new = _extended(node, names, rng)
    return new if cannot_raise(new) and not any(same(new, other) for other in known) else None


def _extended(node: ast.expr, names: list[str], rng: random.Random) -> ast.expr:
    """Return an operation on a copy of the whole expression."""
    right = (
        _number(rng.choice(names)) if names and rng.random() < 0.7 else as_number(ast.Constant(rng.choice((1, 2, 10))))
    )
    return as_number(ast.BinOp(left=copied(node), op=rng.choice(_OPERATORS)(), right=right))


def _numeric_names(nodes: list[ast.expr]) -> list[str]:
    mentioned = [inner for node in nodes for inner in walk(node) if isinstance(inner, ast.Name)]
    return sorted({name.id for name in mentioned if is_number(name)})


def _change(node: ast.AST, names: list[str], rng: random.Random) -> None:
    if isinstance(node, ast.BinOp):
        node.op = rng.choice([op for op in _OPERATORS if not isinstance(node.op, op)])()
    elif isinstance(node, ast.Compare):
        node.ops = [rng.choice(_COMPARISONS)() for _ in node.ops]
    elif isinstance(node, ast.Constant):
        node.value = rng.choice((node.value + 1, node.value * 10 or 10, node.value * 2 or 2))  # type: ignore[operator]
    elif isinstance(node, ast.Name):
        node.id = rng.choice(names)


def _around(node: ast.expr, rng: random.Random) -> list[ast.expr]:
    """Return the node and alternatives derived from one of its changed copies."""
    known = [node]
    for _ in range(rng.randint(3, 5)):
        new = changed(rng.choice(known[-2:]), known, rng)
        if new is not None:
            known.append(new)
    return known


def _operations(function: _Function) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield where numeric expressions stand that cannot raise and hold no place; none of them inside another."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        parent = stack.pop()
        if isinstance(parent, _CLOSED):
            continue
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST):
                    continue
                if _is_operation(node) and not any(isinstance(inner, Choice) for inner in walk(node)):
                    yield parent, field, index
                else:
                    stack.append(node)


def _is_operation(node: ast.AST) -> bool:
    return isinstance(node, (ast.BinOp, ast.Compare)) and is_number(node) and cannot_raise(node)


def _assignments(function: _Function) -> list[tuple[list[ast.stmt], ast.Assign, list[str]]]:
    """Return assignments to a numeric local, with the numeric names that are bound behind each."""
    numeric: set[str] = set()
    lost: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name):
            (lost if isinstance(node.ctx, ast.Del) else numeric if is_number(node) else lost).add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            lost.update(node.names)
    numeric -= lost
    arguments = function.args
    bound = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return list(_assignments_in(function.body, [name for name in bound if name in numeric], numeric))


def _assignments_in(
    body: list[ast.stmt], bound: list[str], numeric: set[str]
) -> Iterator[tuple[list[ast.stmt], ast.Assign, list[str]]]:
    bound = list(bound)
    for statement in body:
        inner = list(bound)
        if isinstance(statement, ast.For):
            targets = [node.id for node in walk(statement.target) if isinstance(node, ast.Name)]
            inner += [name for name in targets if name in numeric]
        if isinstance(statement, (ast.For, ast.While, ast.If, ast.With)):
            yield from _assignments_in(statement.body, inner, numeric)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name) and target.id in numeric:
            yield body, statement, list(bound)
            bound.append(target.id)


def _assigned_again(statement: ast.Assign, companions: list[str], names: Names, rng: random.Random) -> ast.stmt:
    target = statement.targets[0]
    assert isinstance(target, ast.Name)
    known: list[ast.expr] = [_number(target.id)]
    others = [name for name in companions if name != target.id]
    for _ in range(rng.randint(4, 6)):
        constant = as_number(ast.Constant(rng.randint(1, 100)))
        right = _number(rng.choice(others)) if others and rng.random() < 0.7 else constant
        pair = [_number(target.id), right]
        rng.shuffle(pair)
        new = as_number(ast.BinOp(left=pair[0], op=rng.choice(_OPERATORS)(), right=pair[1]))
        new = right if rng.random() < 0.25 else new
        if not any(same(new, other) for other in known):
            known.append(new)
    place = as_number(Choice(known, names.local()))
    new_target = ast.Name(target.id, ast.Store())
    as_number(new_target)
    return ast.Assign(targets=[new_target], value=place, lineno=1)


def _number(name: str) -> ast.expr:
    return as_number(ast.Name(name, ast.Load()))
