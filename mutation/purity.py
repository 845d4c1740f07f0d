"""Which expressions chaff may evaluate without being asked: they may raise, but change nothing."""

import ast

from autotest_env.mutation.choice import walk
from autotest_env.mutation.facts import COMPREHENSIONS, effect_free

_BUILTINS = frozenset(
    {"abs", "bool", "divmod", "float", "int", "isinstance", "len", "max", "min", "ord", "chr", "repr", "round", "str"}
)
_CONSUMERS = frozenset({"all", "any", "sum", "sorted", "list", "tuple", "set", "frozenset", "dict"})
_METHODS = frozenset(
    {"casefold", "count", "endswith", "find", "get", "index", "isalnum", "isalpha", "isdigit", "isnumeric", "items"}
    | {"join", "keys", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rstrip", "split", "splitlines"}
    | {"startswith", "strip", "title", "total_seconds", "upper", "values"}
)
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Set, ast.Dict)
_STATIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple)


class Purity:
    """Judges expressions of one program; properties, default dictionaries and own operators make it careful."""

    def __init__(self, tree: ast.Module) -> None:
        self._computed: set[str] = set()
        self._shadowed: set[str] = set()
        self._inserts = False
        for node in walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self._shadowed.add(node.name)
                if node.decorator_list and isinstance(node, ast.FunctionDef):
                    self._computed.add(node.name)
            elif isinstance(node, ast.arg):
                self._shadowed.add(node.arg)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self._shadowed.add(node.id)
            name = getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None)
            self._inserts |= name in ("defaultdict", "Counter", "__missing__", "__getattr__", "__getattribute__")

    def pure(self, node: ast.AST) -> bool:
        """Say whether evaluating changes nothing; it may raise."""
        if effect_free(node):
            return True
        if isinstance(node, _OPERATIONS):
            return all(self.pure(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        if isinstance(node, ast.Attribute):
            plain = not self._inserts and node.attr not in self._computed
            return plain and isinstance(node.ctx, ast.Load) and self.pure(node.value)
        if isinstance(node, ast.Subscript):
            return not self._inserts and self.pure(node.value) and self.pure(node.slice)
        if isinstance(node, ast.Slice):
            return all(self.pure(part) for part in (node.lower, node.upper, node.step) if part is not None)
        if isinstance(node, ast.JoinedStr):
            return all(self.pure(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
        if isinstance(node, COMPREHENSIONS):
            return self._pure_comprehension(node)
        return isinstance(node, ast.Call) and self._pure_call(node)

    def effects(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the parts of an expression that have effects, in the order in which they are evaluated.

        None when one of them is not always evaluated, exactly once, before the rest.
        """
        if self.pure(node):
            return [] if all(isinstance(inner, _STATIC) for inner in walk(node)) else None
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Tuple):
            parts = node.elts
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
            parts = node.args
        elif isinstance(node, ast.Call):
            return [node]
        else:
            return None
        found: list[ast.expr] = []
        for part in parts:
            inner = self.effects(part)
            if inner is None:
                return None
            found.extend(inner)
        return found

    def _pure_call(self, node: ast.Call) -> bool:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            known = node.func.attr in _METHODS and node.func.attr not in self._shadowed
            return known and self.pure(node.func.value) and all(map(self.pure, arguments))
        if not isinstance(node.func, ast.Name) or node.func.id in self._shadowed or not all(map(self.pure, arguments)):
            return False
        if node.func.id in _CONSUMERS or (node.func.id in ("min", "max") and len(node.args) == 1):
            return all(map(_repeatable, node.args))
        return node.func.id in _BUILTINS

    def _pure_comprehension(self, node: ast.AST) -> bool:
        for child in walk(node):
            if isinstance(child, ast.comprehension) and not (_repeatable(child.iter) and self.pure(child.iter)):
                return False
        parts = [getattr(node, name, None) for name in ("elt", "key", "value")]
        conditions = [test for generator in getattr(node, "generators", []) for test in generator.ifs]
        return all(self.pure(part) for part in [*parts, *conditions] if part is not None)


def _repeatable(node: ast.expr) -> bool:
    """Say whether iterating twice gives the same: not so for a bare name, which may be an iterator."""
    if isinstance(node, COMPREHENSIONS):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) or getattr(node.func, "attr", "") in _METHODS
    return isinstance(node, (ast.Attribute, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant, ast.Subscript))
