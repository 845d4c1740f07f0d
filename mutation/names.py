"""Fresh names, and renaming the locals of functions."""

import ast
import keyword
import random
from collections.abc import Iterator

from autotest_env.mutation.facts import COMPREHENSIONS, FUNCTIONS, SCOPES, is_builtin, own_nodes

LOOKS_AT_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "stack"})
"""A function that mentions one of these keeps its names and its frame."""


class Names:
    """Names that occur nowhere in a program, drawn from a generator."""

    _ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "st", "tr")

    def __init__(self, source: str, rng: random.Random) -> None:
        self._source = source
        self._rng = rng
        self._used: set[str] = set()

    def local(self) -> str:
        """Return a name for a local variable."""
        while True:
            name = "".join(self._rng.choice(self._ONSETS) + self._rng.choice("aeiou") for _ in range(self._rng.randint(2, 3)))
            if not (name in self._used or name in self._source or keyword.iskeyword(name) or is_builtin(name)):
                self._used.add(name)
                return name

    def private(self) -> str:
        """Return a name for a private global."""
        return f"_{self.local()}"


def mentions(tree: ast.AST, words: frozenset[str]) -> bool:
    """Say whether a tree mentions one of the words as a name, an attribute or an import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in words:
            return True
        if isinstance(node, ast.Attribute) and node.attr in words:
            return True
        if isinstance(node, ast.alias) and not words.isdisjoint(node.name.split(".")):
            return True
    return False


def rename_locals(tree: ast.Module, names: Names) -> None:
    """Rename the locals of every function; never parameters (but of our own helpers), never what others can see."""
    for node in list(ast.walk(tree)):
        if isinstance(node, FUNCTIONS) and not mentions(node, LOOKS_AT_LOCALS):
            mapping = {name: names.local() for name in _renamable(node)}
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    inner.id = mapping.get(inner.id, inner.id)
            if is_private(node):
                for argument in node.args.args:
                    argument.arg = mapping.get(argument.arg, argument.arg)


def is_private(function: ast.AST) -> bool:
    """Say whether a function is a helper of ours, called by position only."""
    return bool(getattr(function, "private", False))


def _renamable(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    own: dict[str, None] = dict.fromkeys(sorted(arguments)) if is_private(function) else {}
    taken = set() if is_private(function) else arguments
    inside = set(map(id, _inside_comprehensions(function)))
    comprehended: dict[str, None] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            (comprehended if id(node) in inside else own)[node.id] = None
        elif isinstance(node, ast.NamedExpr):
            own[node.target.id] = None
        elif isinstance(node, SCOPES):
            taken |= _bound_in(node)
        else:
            taken |= _fixed_names(node)
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            taken.update(node.names)
    lone = [name for name in comprehended if name not in own and _stays_inside(function, name)]
    result = [name for name in (*own, *lone) if name not in taken and not name.startswith("__")]
    return sorted(result)


def _inside_comprehensions(function: ast.AST) -> Iterator[ast.AST]:
    for node in own_nodes(function):
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                yield from ast.walk(generator.target)


def _stays_inside(function: ast.AST, name: str) -> bool:
    """Say whether every mention of a comprehension's variable is its own."""
    mentioned = {id(node) for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name}
    for node in own_nodes(function):
        if isinstance(node, COMPREHENSIONS):
            targets = {inner.id for part in node.generators for inner in ast.walk(part.target) if isinstance(inner, ast.Name)}
            if name in targets:
                mentioned -= set(map(id, ast.walk(node))) - set(map(id, ast.walk(node.generators[0].iter)))
    return not mentioned


def _bound_in(scope: ast.AST) -> set[str]:
    """Return every name bound anywhere inside a nested scope, its own name included."""
    found = {scope.name} if isinstance(scope, (*FUNCTIONS, ast.ClassDef)) else set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        else:
            found |= _fixed_names(node)
    return found


def _fixed_names(node: ast.AST) -> set[str]:
    """Return names that a node binds as text; they are left alone."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        return {node.name}
    if isinstance(node, ast.MatchMapping) and node.rest:
        return {node.rest}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).partition(".")[0]}
    return set()
