"""Chaff: every alternative of every place is evaluated, in secret order, and a literal index picks one.

    total = subtotal - line          becomes          total = (line - subtotal, subtotal - line, line)[1]

Reference and variants then differ in literal indexes only. Alternatives that may raise stand in lambdas that a helper
calls one after the other, keeping each result or exception; operands with effects are evaluated once, before, where
all alternatives share them; calls that differ in their arguments become one call with a picked tuple of arguments.
"""

import ast
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from autotest_env.mutation.bodies import first_free, has_docstring
from autotest_env.mutation.choice import PLACES, Choice, StatementChoice, copied, same, walk
from autotest_env.mutation.facts import COMPREHENSIONS, FUNCTIONS, cannot_raise, is_number, own_nodes
from autotest_env.mutation.invent import invent_places, pad
from autotest_env.mutation.names import Names
from autotest_env.mutation.purity import Purity
from autotest_env.syntax import parse


@dataclass(slots=True)
class Chaff:
    """How the places of one rendering are written."""

    helper: str = ""
    orders: dict[str, list[int]] = field(default_factory=dict)
    """Place -> the alternatives in the order in which they stand."""
    guarded: set[str] = field(default_factory=set)

    def show(self, place: Choice, chosen: Mapping[str, int]) -> ast.expr:
        """Return the picked tuple of a place."""
        order = self.orders[place.site]
        elements = [place.alternatives[index] for index in order]
        index = ast.Constant(order.index(chosen.get(place.site, 0)))
        if place.site in self.guarded:
            thunks: list[ast.expr] = [ast.Lambda(args=_no_arguments(), body=element) for element in elements]
            picked = ast.Tuple(elts=thunks, ctx=ast.Load())
            return ast.Call(func=ast.Name(self.helper, ast.Load()), args=[picked, index], keywords=[])
        # a tuple of constants would be folded, and the picked constant would show
        display = (
            ast.Tuple if any(isinstance(node, ast.Name) for element in elements for node in walk(element)) else ast.List
        )
        return ast.Subscript(value=display(elts=elements, ctx=ast.Load()), slice=index, ctx=ast.Load())

    def add_helper(self, tree: ast.Module, names: Names) -> None:
        """Define the helper that guarded places call, where there are any."""
        if self.helper:
            thunks, index, results, thunk, caught, value, error = (names.local() for _ in range(7))
            text = f"""
def {self.helper}({thunks}, {index}):
    {results} = []
    for {thunk} in {thunks}:
        try:
            {results}.append(({thunk}(), None))
        except Exception as {caught}:
            {results}.append((None, {caught}))
    {value}, {error} = {results}[{index}]
    if {error} is not None:
        raise {error}
    return {value}
"""
            start = first_free(tree)
            tree.body[start:start] = parse(text).body


def add_chaff(tree: ast.Module, names: Names, rng: random.Random) -> Chaff:
    """Prepare every place for chaff and invent about as many places without a bug.

    Raises ValueError at a place whose alternatives cannot all be evaluated.
    """
    chaff = Chaff()
    purity = Purity(tree)
    real = [node for node in walk(tree) if isinstance(node, PLACES)]
    whole = [node.site for node in real if isinstance(node, StatementChoice)]
    if whole:
        raise ValueError(f"site {whole[0]!r} cannot carry chaff: its alternatives are not expressions")
    invent_places(tree, len(real) + rng.randint(-1, 2), names, rng)
    _take_effects_out(tree, purity, names)
    for place in [node for node in walk(tree) if isinstance(node, Choice)]:
        safe = all(map(cannot_raise, place.alternatives))
        if safe and all(map(is_number, place.alternatives)):
            pad(place, rng)
        order = list(range(len(place.alternatives)))
        rng.shuffle(order)
        chaff.orders[place.site] = order
        if not safe:
            if id(place) not in _inside_functions(tree) or not all(map(purity.pure, place.alternatives)):
                raise ValueError(f"site {place.site!r} cannot carry chaff: evaluating an alternative may show")
            chaff.guarded.add(place.site)
    if chaff.guarded:
        chaff.helper = names.private()
    for node in walk(tree):
        if isinstance(node, FUNCTIONS):
            _list_indexes(node, names, rng)
    return chaff


def _take_effects_out(tree: ast.Module, purity: Purity, names: Names) -> None:
    """Write places with effects as one call with picked arguments, or with shared operands evaluated before."""
    new: dict[int, ast.expr] = {}
    for place in [node for node in walk(tree) if isinstance(node, Choice)]:
        if not all(map(purity.pure, place.alternatives)):
            if id(place) not in _inside_functions(tree):
                raise ValueError(f"site {place.site!r} cannot carry chaff: its effects are not inside a function")
            new[id(place)] = _prepared(place, purity, names)
    if new:
        _Replace(new).visit(tree)


def _prepared(place: Choice, purity: Purity, names: Names) -> ast.expr:
    calls = [node for node in place.alternatives if isinstance(node, ast.Call)]
    if len(calls) == len(place.alternatives) and _same_but_arguments(calls):
        packed: list[ast.expr] = [ast.Tuple(elts=list(call.args), ctx=ast.Load()) for call in calls]
        if all(map(purity.pure, packed)):
            inner = Choice(packed, place.site)
            arguments: list[ast.expr] = [ast.Starred(inner, ast.Load())]
            return ast.Call(func=calls[0].func, args=arguments, keywords=calls[0].keywords)
    found = [purity.effects(node) for node in place.alternatives]
    shared = [nodes for nodes in found if nodes is not None and same(nodes, found[0])]
    if len(shared) < len(found):
        raise ValueError(f"site {place.site!r} cannot carry chaff: its alternatives have different effects")
    temporaries = [names.local() for _ in shared[0]]
    values: list[ast.expr] = [
        ast.NamedExpr(target=ast.Name(name, ast.Store()), value=copied(node))
        for name, node in zip(temporaries, shared[0], strict=True)
    ]
    for nodes, alternative in zip(shared, range(len(place.alternatives)), strict=True):
        reads = {id(node): ast.Name(name, ast.Load()) for node, name in zip(nodes, temporaries, strict=True)}
        place.alternatives[alternative] = _Replace(dict(reads)).expression(place.alternatives[alternative])
    whole = ast.Tuple(elts=[*values, place], ctx=ast.Load())
    return ast.Subscript(value=whole, slice=_fixed(len(values)), ctx=ast.Load())


class _Replace(ast.NodeTransformer):
    """Puts other expressions in the place of given nodes."""

    def __init__(self, new: dict[int, ast.expr]) -> None:
        self._new = new

    def expression(self, node: ast.expr) -> ast.expr:
        """Return an expression with the replacements made."""
        return self.visit(node)  # type: ignore[return-value]

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace a node, or look inside it."""
        return self._new[id(node)] if id(node) in self._new else super().visit(node)


def _inside_functions(tree: ast.Module) -> set[int]:
    """Return the ids of nodes evaluated in a function's own scope, where a temporary or a lambda can stand."""
    found: set[int] = set()
    for function in walk(tree):
        if isinstance(function, FUNCTIONS):
            hidden = {
                id(inner) for node in own_nodes(function) if isinstance(node, COMPREHENSIONS) for inner in walk(node)
            }
            found.update(id(node) for node in own_nodes(function) if id(node) not in hidden)
    return found


def _list_indexes(function: ast.FunctionDef | ast.AsyncFunctionDef, names: Names, rng: random.Random) -> None:
    """Store every index once at the top, so that the constants of a function are the same whichever it picks."""
    sizes = [len(node.alternatives) for node in own_nodes(function) if isinstance(node, Choice)]
    if not sizes:
        return
    start = 1 if has_docstring(function) else 0
    indexes = list(range(max(sizes)))
    rng.shuffle(indexes)
    name = names.local()
    stores: list[ast.stmt] = [
        ast.Assign(targets=[ast.Name(name, ast.Store())], value=_fixed(index), lineno=1) for index in indexes
    ]
    function.body[start:start] = stores


def _fixed(value: int) -> ast.Constant:
    node = ast.Constant(value)
    node.fixed = True  # type: ignore[attr-defined]
    return node


def _same_but_arguments(calls: list[ast.Call]) -> bool:
    first = calls[0]
    return all(
        same(call.func, first.func)
        and same(call.keywords, first.keywords)
        and not any(isinstance(argument, ast.Starred) for argument in call.args)
        for call in calls
    )


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
