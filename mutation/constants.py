"""Where the numbers of functions stand: in place, in private globals, in closures, or decoded when needed."""

import ast
import math
import random
from dataclasses import dataclass

from autotest_env.mutation.choice import walk
from autotest_env.mutation.expressions import BodyTransformer
from autotest_env.mutation.facts import as_number
from autotest_env.mutation.names import Names, is_private
from autotest_env.syntax import parse

Number = int | float


class _Move(BodyTransformer):
    """Replaces each number by a name; nodes marked `fixed` stay."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.moved: dict[tuple[type, Number], str] = {}

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Replace a number by a name."""
        if not _movable(node):
            return node
        key = type(node.value), node.value
        if key not in self.moved:
            self.moved[key] = self._names.private()  # type: ignore[index]
        return as_number(ast.Name(self.moved[key], ast.Load()))  # type: ignore[index]


def move_to_globals(tree: ast.Module, names: Names) -> list[ast.stmt]:
    """Replace numbers by private globals; return their assignments, for the top of the module."""
    mover = _Move(names)
    mover.visit(tree)
    return [_assign(name, ast.Constant(value)) for (_, value), name in mover.moved.items()]


def move_to_closures(tree: ast.Module, names: Names) -> list[ast.stmt]:
    """Replace the numbers of our private helpers by variables of a closure, the others by globals."""
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and is_private(statement):
            body.extend(_closed_over(statement, names))
        else:
            body.append(statement)
    tree.body = body
    return move_to_globals(tree, names)


@dataclass(frozen=True, slots=True)
class _Coder:
    """Numbers as quotients of masked integers in a private table."""

    table: str
    function: str
    key: str
    mask: int
    entries: dict[int, int]
    avoid: frozenset[int]
    rng: random.Random

    def expression(self, value: Number) -> ast.expr:
        """Return an expression that gives a number without the number standing anywhere."""
        if isinstance(value, int):
            return self._part(value)
        top, bottom = value.as_integer_ratio()
        return as_number(ast.BinOp(left=self._part(top), op=ast.Div(), right=self._part(bottom)))

    def _part(self, value: int) -> ast.expr:
        while True:
            key = self.rng.randrange(1_000, 1_000_000)
            if key not in self.entries and not self.avoid & {key, value ^ self.mask}:
                break
        self.entries[key] = value ^ self.mask
        call = ast.Call(func=ast.Name(self.function, ast.Load()), args=[ast.Constant(key)], keywords=[])
        return as_number(call)

    def definitions(self) -> list[ast.stmt]:
        """Return the table and its function."""
        keys, values = list(self.entries), list(self.entries.values())
        table = ast.Dict(keys=[ast.Constant(key) for key in keys], values=[ast.Constant(value) for value in values])
        function = parse(f"def {self.function}({self.key}):\n    return {self.table}[{self.key}] ^ {self.mask}").body[0]
        return [_assign(self.table, table), function]


class _Decode(BodyTransformer):
    def __init__(self, coder: _Coder) -> None:
        self._coder = coder

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self._coder.expression(node.value) if _movable(node) else node  # type: ignore[arg-type]


def decode_in_place(tree: ast.Module, names: Names, rng: random.Random) -> list[ast.stmt]:
    """Replace numbers by look-ups in a masked table, so that none of them stands in the module; return the table."""
    coder = _coder(tree, names, rng)
    _Decode(coder).visit(tree)
    return coder.definitions() if coder.entries else []


def decode_at_import(tree: ast.Module, names: Names, rng: random.Random) -> list[ast.stmt]:
    """Replace numbers by private globals that are computed when the module is imported."""
    mover = _Move(names)
    mover.visit(tree)
    coder = _coder(tree, names, rng)
    values = [_assign(name, coder.expression(value)) for (_, value), name in mover.moved.items()]
    return [*coder.definitions(), *values] if values else []


def numbers_in(tree: ast.AST) -> list[Number]:
    """Return the numbers that stand in a tree, in order of appearance."""
    found = [node.value for node in walk(tree) if isinstance(node, ast.Constant) and _is_number(node.value)]
    return list(dict.fromkeys(found))  # type: ignore[arg-type]


def _coder(tree: ast.Module, names: Names, rng: random.Random) -> _Coder:
    avoid = frozenset(int(number) for number in numbers_in(tree) if math.isfinite(number))
    mask = rng.randrange(1 << 20, 1 << 30)
    return _Coder(names.private(), names.private(), names.local(), mask, {}, avoid, rng)


def _closed_over(function: ast.FunctionDef, names: Names) -> list[ast.stmt]:
    mover = _Move(names)
    mover.visit(function)
    if not mover.moved:
        return [function]
    variables = {private: names.local() for private in mover.moved.values()}
    for node in walk(function):
        if isinstance(node, ast.Name):
            node.id = variables.get(node.id, node.id)
    maker = parse(f"def {names.private()}({', '.join(variables.values())}):\n    return {function.name}").body[0]
    assert isinstance(maker, ast.FunctionDef)
    maker.body.insert(0, function)
    values: list[ast.expr] = [ast.Constant(value) for _, value in mover.moved]
    call = ast.Call(func=ast.Name(maker.name, ast.Load()), args=values, keywords=[])
    return [maker, _assign(function.name, call)]


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign(targets=[ast.Name(name, ast.Store())], value=value, lineno=1)


def _movable(node: ast.Constant) -> bool:
    return _is_number(node.value) and not getattr(node, "fixed", False)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
