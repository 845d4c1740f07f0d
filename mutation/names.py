"""Fresh names, and renaming the locals of functions."""

import ast
import keyword
import random
from collections.abc import Iterator

from autotest_env.mutation.choice import walk
from autotest_env.mutation.facts import COMPREHENSIONS, FUNCTIONS, SCOPES, is_builtin, own_nodes

LOOKS_AT_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir", "globals", "_getframe", "currentframe", "stack"})
"""A function that mentions one of these keeps its names and its frame."""
NEEDS_ITS_FRAME = LOOKS_AT_LOCALS | {"super", "__class__", "inspect", "warnings", "sys"}
"""A function that mentions one of these keeps its body."""
READS_DOCSTRINGS = frozenset({"__doc__", "getdoc", "inspect", "cleandoc", "doctest", "docopt"})
"""A module that mentions one of these keeps its docstrings."""
SWITCHES = NEEDS_ITS_FRAME | READS_DOCSTRINGS


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
            syllables = self._rng.randint(2, 3)
            name = "".join(self._rng.choice(self._ONSETS) + self._rng.choice("aeiou") for _ in range(syllables))
            if not (name in self._used or name in self._source or keyword.iskeyword(name) or is_builtin(name)):
                self._used.add(name)
                return name

    def private(self) -> str:
        """Return a name for a private global."""
        return f"_{self.local()}"


def note_words(tree: ast.Module) -> None:
    """Note at the module and at each function which of the words that switch transforms off it mentions."""
    for scope in walk(tree):
        if isinstance(scope, (ast.Module, *FUNCTIONS)):
            words = frozenset(word for node in walk(scope) for word in _words(node)) & SWITCHES
            scope.words = words  # type: ignore[union-attr]


def mentions(scope: ast.AST, words: frozenset[str]) -> bool:
    """Say whether a module or function mentions one of the words as a name, an attribute or an import."""
    return not words.isdisjoint(getattr(scope, "words", ()))


def _words(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return node.name.split(".") if isinstance(node, ast.alias) else []


def rename_locals(tree: ast.Module, names: Names) -> None:
    """Rename the locals of every function; never parameters (but of our own helpers), never what others can see."""
    for node in list(walk(tree)):
        if isinstance(node, FUNCTIONS) and not mentions(node, LOOKS_AT_LOCALS):
            mapping = {name: names.local() for name in _renamable(node)}
            for inner in walk(node):
                if isinstance(inner, ast.Name):
                    inner.id = mapping.get(inner.id, inner.id)
            if is_private(node):
                for argument in node.args.args:
                    argument.arg = mapping.get(argument.arg, argument.arg)


def is_private(function: ast.AST) -> bool:
    """Say whether a function is a helper of ours, called by position only."""
    return bool(getattr(function, "private", False))


def _renamable(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = {node.arg for node in walk(function.args) if isinstance(node, ast.arg)}
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
    for node in walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            taken.update(node.names)
    lone = [name for name in comprehended if name not in own and _stays_inside(function, name)]
    result = [name for name in (*own, *lone) if name not in taken and not name.startswith("__")]
    return sorted(result)


def _inside_comprehensions(function: ast.AST) -> Iterator[ast.AST]:
    for node in own_nodes(function):
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                yield from walk(generator.target)


def _stays_inside(function: ast.AST, name: str) -> bool:
    """Say whether every mention of a comprehension's variable is its own."""
    mentioned = {id(node) for node in walk(function) if isinstance(node, ast.Name) and node.id == name}
    for node in own_nodes(function):
        if isinstance(node, COMPREHENSIONS):
            targets = [inner for part in node.generators for inner in walk(part.target)]
            if any(isinstance(inner, ast.Name) and inner.id == name for inner in targets):
                mentioned -= set(map(id, walk(node))) - set(map(id, walk(node.generators[0].iter)))
    return not mentioned


def _bound_in(scope: ast.AST) -> set[str]:
    """Return every name bound anywhere inside a nested scope, its own name included."""
    found = {scope.name} if isinstance(scope, (*FUNCTIONS, ast.ClassDef)) else set()
    for node in walk(scope):
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
