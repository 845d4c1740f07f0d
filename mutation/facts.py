"""What is known about a tree for certain: which expressions are numbers, have no effect, cannot raise.

A number is an int or float (bool included). Annotations of arguments and locals are believed: ``price: float`` makes
`price` a number, and ``items: list[tuple[float, int]]`` the targets of ``for price, quantity in items``. Marks sit on
the nodes, so that they survive renaming.
"""

import ast
import builtins
from collections.abc import Iterator

from autotest_env.mutation.choice import Choice, walk

Kind = str | tuple[str, tuple["Kind", ...]]
NUMBER: Kind = "number"
UNKNOWN: Kind = "unknown"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_NUMERIC_CALLS = ("abs", "round", "min", "max")
_SEQUENCES = ("list", "List", "Sequence", "Iterable", "Collection", "set", "Set", "frozenset", "Iterator")


def mark(tree: ast.Module) -> None:
    """Mark every expression of a function that is certainly a number."""
    bound = {name for node in walk(tree) for name in _bound_names(node)}
    trusted = {name for name in (*_NUMERIC_CALLS, "len", "int", "float", "bool") if name not in bound}
    for node in walk(tree):
        if isinstance(node, FUNCTIONS):
            _Marker(node, trusted).run()


def is_number(node: ast.AST) -> bool:
    """Say whether a node was marked as a number."""
    return bool(getattr(node, "number", False))


def is_float(node: ast.AST) -> bool:
    """Say whether a number is certainly a float: negating an int zero, unlike a float's, loses the sign."""
    return bool(getattr(node, "float", False))


def as_number(node: ast.expr) -> ast.expr:
    """Mark a freshly built node as a number."""
    node.number = True  # type: ignore[attr-defined]
    return node


def effect_free(node: ast.AST) -> bool:
    """Say whether evaluating has no effect and reads nothing but names and constants; it may still raise."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, Choice):
        return all(map(effect_free, node.alternatives))
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right) and effect_free(node.left) and effect_free(node.right)
    if isinstance(node, ast.UnaryOp):
        return (is_number(node.operand) or isinstance(node.op, ast.Not)) and effect_free(node.operand)
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        identities = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        return (identities or all(map(is_number, parts))) and all(map(effect_free, parts))
    if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Tuple)):
        return all(effect_free(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    if isinstance(node, ast.Call):
        return is_number(node) and not node.keywords and all(map(effect_free, node.args))
    return False


def cannot_raise(node: ast.AST) -> bool:
    """Say whether an effect-free expression cannot raise, given that its names are bound."""
    return effect_free(node) and all(map(_step_cannot_raise, walk(node)))


def names_read(node: ast.AST) -> set[str]:
    """Return the names an expression mentions."""
    return {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Walk a scope's body without entering the scopes inside it; those are yielded, not entered."""
    stack: list[ast.AST] = list(getattr(scope, "body", []))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def is_builtin(name: str) -> bool:
    """Say whether Python itself knows a name."""
    return hasattr(builtins, name)


def _step_cannot_raise(node: ast.AST) -> bool:
    """Judge one node of an effect-free expression, its operands aside."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _ARITHMETIC) and (not isinstance(node.op, _DIVISIONS) or _nonzero(node.right))
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, (ast.Invert, ast.Not)) or _plain_truth(node.operand)
    if isinstance(node, ast.BoolOp):
        return all(map(_plain_truth, node.values))
    if isinstance(node, ast.IfExp):
        return _plain_truth(node.test)
    return not isinstance(node, ast.Call) or _safe_call(node)


def _safe_call(node: ast.Call) -> bool:
    """Say whether a marked call gives a number for all numbers: ``abs(x)``, ``min(x, y)``, ``round(x, 2)``."""
    name = getattr(node.func, "id", "")
    if name == "round" and len(node.args) == 2:
        digits = node.args[1].operand if isinstance(node.args[1], ast.UnaryOp) else node.args[1]
        return isinstance(digits, ast.Constant) and type(digits.value) is int
    return name in ("abs", "min", "max")


def _plain_truth(node: ast.AST) -> bool:
    return is_number(node) or isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp))


def _nonzero(node: ast.AST) -> bool:
    if isinstance(node, Choice):
        return all(map(_nonzero, node.alternatives))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _nonzero(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and bool(node.value)


def _bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]


def _annotated(node: ast.expr | None) -> Kind:
    if isinstance(node, ast.Name) and node.id in ("int", "float", "bool"):
        return NUMBER
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if name in _SEQUENCES:
            return "sequence", (_annotated(node.slice),)
        if name in ("tuple", "Tuple") and isinstance(node.slice, ast.Tuple):
            return "tuple", tuple(map(_annotated, node.slice.elts))
    return UNKNOWN


def _names_bound_as_text(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return [(node.asname or node.name).partition(".")[0]] if isinstance(node, ast.alias) else []


class _Marker:
    """Greatest fixed point: every local is a number until one of its bindings is not."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, trusted: set[str]) -> None:
        self._function = function
        self._trusted = trusted
        self._kinds: dict[str, Kind] = {}
        self._bindings: dict[str, list[ast.expr | Kind]] = {}
        self._floats: set[str] = set()

    def run(self) -> None:
        arguments = self._function.args
        stored = {name for node in own_nodes(self._function) for name in _bound_names(node)}
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            kind = _annotated(argument.annotation)
            kind = kind if kind == NUMBER or argument.arg not in stored else UNKNOWN
            self._kinds[argument.arg] = kind
            self._bindings[argument.arg] = [kind]
        for node in own_nodes(self._function):
            self._bind(node)
        locals_ = [name for name in self._bindings if self._kinds.get(name, NUMBER) == NUMBER]
        self._kinds.update(dict.fromkeys(locals_, NUMBER))
        while wrong := [name for name in locals_ if self._kinds[name] == NUMBER and not self._holds(name)]:
            self._kinds.update(dict.fromkeys(wrong, UNKNOWN))
        self._floats = {name for name in locals_ if self._kinds[name] == NUMBER}
        while whole := {name for name in self._floats if not self._stays_float(name)}:
            self._floats -= whole
        for statement in self._function.body:
            self._mark(statement)

    def _holds(self, name: str) -> bool:
        return all(
            (self._is_number(value) if isinstance(value, ast.expr) else value == NUMBER)
            for value in self._bindings[name]
        )

    def _stays_float(self, name: str) -> bool:
        return all(isinstance(value, ast.expr) and self._is_float(value) for value in self._bindings[name])

    def _bind(self, node: ast.AST) -> None:
        """Record what a node binds; `own_nodes` yields a statement before the names in it."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._add(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._add(node.target, ast.BinOp(left=ast.Name(node.target.id, ast.Load()), op=node.op, right=node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self._add(node.target, _annotated(node.annotation))
        elif isinstance(node, ast.For):
            self._bind_element(node.target, self._kinds.get(getattr(node.iter, "id", ""), UNKNOWN))
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and not getattr(node, "seen", False):
                self._lose(node.id)
        elif isinstance(node, SCOPES):
            self._lose(*(name for inner in walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self._lose(*node.names)
        else:
            self._lose(*_names_bound_as_text(node))

    def _lose(self, *names: str) -> None:
        for name in names:
            self._bindings.setdefault(name, []).append(UNKNOWN)

    def _add(self, target: ast.Name, value: ast.expr | Kind) -> None:
        target.seen = True  # type: ignore[attr-defined]
        self._bindings.setdefault(target.id, []).append(value)

    def _bind_element(self, target: ast.expr, sequence: Kind) -> None:
        element = sequence[1][0] if isinstance(sequence, tuple) and sequence[0] == "sequence" else UNKNOWN
        if isinstance(target, ast.Name):
            self._add(target, element)
        elif isinstance(target, ast.Tuple) and isinstance(element, tuple) and len(element[1]) == len(target.elts):
            for part, kind in zip(target.elts, element[1], strict=True):
                if isinstance(part, ast.Name):
                    self._add(part, kind)

    def _mark(self, node: ast.AST) -> None:
        if isinstance(node, (*SCOPES, *COMPREHENSIONS)):
            return
        for child in ast.iter_child_nodes(node):
            self._mark(child)
        if isinstance(node, ast.expr) and self._is_number(node):
            as_number(node).float = self._is_float(node)  # type: ignore[attr-defined]

    def _is_number(self, node: ast.AST) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, (int, float))
            case ast.Name(id=name):
                return self._kinds.get(name) == NUMBER
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, _ARITHMETIC) and self._is_number(left) and self._is_number(right)
            case ast.UnaryOp(op=op, operand=operand):
                return not isinstance(op, ast.Invert) and self._is_number(operand)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return all(isinstance(op, _ORDERED) for op in ops) and all(map(self._is_number, (left, *others)))
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_number(body) and self._is_number(orelse)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in self._trusted:
                if name in _NUMERIC_CALLS:
                    enough = len(args) > (0 if name in ("abs", "round") else 1)
                    return enough and all(map(self._is_number, args))
                return True
            case Choice(alternatives=alternatives):
                return all(map(self._is_number, alternatives))
        return False

    def _is_float(self, node: ast.AST) -> bool:
        """Judge a number: a float operand makes the result one, and true division always does."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.Name(id=name):
                return name in self._floats
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, ast.Div) or self._is_float(left) or self._is_float(right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self._is_float(operand)
            case ast.Call(func=ast.Name(id="float")):
                return True
            case Choice(alternatives=alternatives):
                return all(map(self._is_float, alternatives))
        return False
