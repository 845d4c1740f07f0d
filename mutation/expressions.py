"""Rewrites of expressions that give the same value, to the last bit.

Exact on numbers: commuting + and *, a / c = -(a / -c), turning comparisons; a - b = a + -b and a + b = a - -b where b
is a float or not zero. Never reassociating. Calls of the `operator` module are exact for every type.
"""

import ast
import random
from typing import TypeVar

from autotest_env.mutation.choice import Choice
from autotest_env.mutation.facts import as_number, cannot_raise, effect_free, is_float, is_number
from autotest_env.mutation.names import Names
from autotest_env.syntax import parse

_FUNCTION_OF: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_TURNED: dict[type[ast.AST], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}


_Node = TypeVar("_Node", bound=ast.AST)


class BodyTransformer(ast.NodeTransformer):
    """Visits the bodies of functions only.

    Signatures, decorators, class bodies, annotations, patterns and f-strings stay.
    """

    inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Enter the body, and nothing else of the function."""
        return self._enter(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Enter the body, and nothing else of the function."""
        return self._enter(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Leave f-strings alone."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave the annotation alone."""
        if node.value is not None:
            node.value = self._visited(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave the pattern alone."""
        node.body = [self._visited(item) for item in node.body]
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        """Skip everything outside functions."""
        if not self.inside and isinstance(node, ast.expr):
            return node
        result: ast.AST = super().visit(node)
        return result

    def _visited(self, node: _Node) -> _Node:
        return self.visit(node)  # type: ignore[return-value]

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer, self.inside = self.inside, True
        node.body = [self._visited(statement) for statement in node.body]
        self.inside = outer
        return node


class Swap(BodyTransformer):
    """Rewrites operators on numbers, where no effect and at most one error can move."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrite one arithmetic operation, or leave it."""
        self.generic_visit(node)
        draw = self._rng.random()
        if not is_number(node) or not _movable(node.left, node.right):
            return node
        left, right = node.left, node.right
        if isinstance(node.op, ast.Mult) and draw < 0.8:
            return _binary(right, ast.Mult(), left)
        if isinstance(node.op, ast.Add) and draw < 0.8:
            if draw < 0.5 or not _signed(right):
                return _binary(right, ast.Add(), left)
            return _binary(left, ast.Sub(), _negative(right))
        if isinstance(node.op, ast.Sub) and _signed(right) and draw < 0.8:
            right = _negative(right)
            return _binary(right, ast.Add(), left) if draw < 0.5 else _binary(left, ast.Add(), right)
        if isinstance(node.op, ast.Div) and isinstance(right, ast.Constant) and draw < 0.6:
            return _negative(_binary(left, ast.Div(), _negative(right)))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Turn a comparison of two numbers."""
        self.generic_visit(node)
        draw = self._rng.random()
        turned = _TURNED.get(type(node.ops[0]))
        if len(node.ops) > 1 or turned is None or draw > 0.8:
            return node
        left, right = node.left, node.comparators[0]
        if not (is_number(left) and is_number(right) and _movable(left, right)):
            return node
        return as_number(ast.Compare(left=right, ops=[turned()], comparators=[left]))


class Functions(BodyTransformer):
    """Writes operators as calls of the `operator` module; exact for every type."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.used: dict[str, str] = {}
        """Name in `operator` -> private name in the program."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Write one operation as a call."""
        self.generic_visit(node)
        name = _FUNCTION_OF.get(type(node.op))
        return node if name is None else self._call(name, node.left, node.right, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Write one comparison as a call; chains and identities stay."""
        self.generic_visit(node)
        name = _FUNCTION_OF.get(type(node.ops[0]))
        if len(node.ops) > 1 or name is None:
            return node
        return self._call(name, node.left, node.comparators[0], node)

    def _call(self, name: str, left: ast.expr, right: ast.expr, old: ast.expr) -> ast.expr:
        if name not in self.used:
            self.used[name] = self._names.private()
        call = ast.Call(func=ast.Name(self.used[name], ast.Load()), args=[left, right], keywords=[])
        return as_number(call) if is_number(old) else call

    def imports(self) -> list[ast.stmt]:
        """Return the import that the calls need."""
        if not self.used:
            return []
        aliases = [ast.alias(name=name, asname=asname) for name, asname in self.used.items()]
        return [ast.ImportFrom(module="operator", names=aliases, level=0)]

    def definitions(self) -> list[ast.stmt]:
        """Return private functions of the program that do the same."""
        symbols = {name: _SYMBOLS[kind] for kind, name in _FUNCTION_OF.items()}
        source = ""
        for name, private in self.used.items():
            left, right = self._names.local(), self._names.local()
            source += f"def {private}({left}, {right}):\n    return {left} {symbols[name]} {right}\n"
        return parse(source).body


class Invert(BodyTransformer):
    """Inverts conditions and swaps their branches."""

    def visit_If(self, node: ast.If) -> ast.AST:
        """Swap the branches; without an else, the first becomes empty."""
        self.generic_visit(node)
        node.test, body = _negated(node.test), node.body
        node.body, node.orelse = node.orelse or [ast.Pass()], body
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Swap the values."""
        self.generic_visit(node)
        new = ast.IfExp(test=_negated(node.test), body=node.orelse, orelse=node.body)
        return as_number(new) if is_number(node) else new


def _movable(left: ast.expr, right: ast.expr) -> bool:
    return effect_free(left) and effect_free(right) and (cannot_raise(left) or cannot_raise(right))


def _signed(node: ast.expr) -> bool:
    """Say whether negating keeps the sign of zero: floats, and constants other than zero."""
    return is_float(node) or (isinstance(node, ast.Constant) and bool(node.value))


def _binary(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    return as_number(ast.BinOp(left=left, op=op, right=right))


def _negative(node: ast.expr) -> ast.expr:
    return as_number(ast.UnaryOp(op=ast.USub(), operand=node))


def _negated(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not isinstance(node.operand, Choice):
        return node.operand
    return ast.UnaryOp(op=ast.Not(), operand=node)
