"""A program's syntax tree in which every place of a bug holds all of its alternatives at once.

Transforms walk into every alternative alike, so that nothing they decide depends on the alternative a text will show.
"""

import ast
import copyreg
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from autotest_env.mutation.mutant import Site, substitute
from autotest_env.syntax import parse

Step = tuple[str, int | None]
_Node = TypeVar("_Node", bound=ast.AST)
_UNPLACEABLE = (ast.Slice, ast.Starred, ast.FormattedValue, ast.JoinedStr)
_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "kind", "type_comment"})
_LOCATIONS = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}


class _Place:
    """A node of our own: `pickle` would build it, as it does those of `ast`, without arguments."""

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]  # typeshed leaves it out


class Choice(_Place, ast.expr):
    """An expression with alternatives; the first is the reference's."""

    _fields = ("alternatives",)

    def __init__(self, alternatives: list[ast.expr], site: str) -> None:
        super().__init__(**_LOCATIONS)
        self.alternatives = alternatives
        self.site = site


class Branch(_Place, ast.AST):
    """One alternative of a StatementChoice."""

    _fields = ("body",)

    def __init__(self, body: list[ast.stmt]) -> None:
        super().__init__()
        self.body = body


class StatementChoice(_Place, ast.stmt):
    """A run of statements with alternatives."""

    _fields = ("alternatives",)

    def __init__(self, alternatives: list[Branch], site: str) -> None:
        super().__init__(**_LOCATIONS)
        self.alternatives = alternatives
        self.site = site


PLACES = (Choice, StatementChoice)


def parse_choices(source: str, sites: tuple[Site, ...]) -> ast.Module:
    """Return the reference's tree with a Choice or StatementChoice at each site.

    The place is the smallest expression (else run of statements) outside which all alternatives agree.
    Raises ValueError when an alternative does not parse, or two places overlap.
    """
    tree = parse(source)
    found = [(_locate(tree, trees), site, trees) for site in sites if (trees := _alternatives(source, sites, site))]
    found.sort(key=lambda item: _sort_key(item[0]), reverse=True)
    for path, site, trees in found:
        _install(tree, trees, path, site.name)
    for place in walk(tree):
        inner = [node for node in walk(place) if isinstance(node, PLACES) and node is not place]
        if isinstance(place, PLACES) and inner:
            raise ValueError(f"sites {place.site!r} and {inner[0].site!r} overlap in the syntax tree")
    return tree


def resolved(node: _Node, chosen: Mapping[str, int], show: Callable[[Choice], ast.expr]) -> _Node:
    """Return a copy with `show(place)` at each Choice and the chosen statements at each StatementChoice."""
    if isinstance(node, Choice):
        return resolved(show(node), chosen, show)  # type: ignore[return-value]
    new = _shallow(node)
    attributes = new.__dict__
    for name in node._fields:
        value = attributes.get(name)
        if isinstance(value, list):
            attributes[name] = _resolved_list(name, value, chosen, show)
        elif isinstance(value, ast.AST):
            attributes[name] = resolved(value, chosen, show)
    return new


def _resolved_list(
    name: str, values: list[object], chosen: Mapping[str, int], show: Callable[[Choice], ast.expr]
) -> list[object]:
    result: list[object] = []
    for value in values:
        if isinstance(value, StatementChoice):
            branch = value.alternatives[chosen.get(value.site, 0)]
            result.extend(resolved(item, chosen, show) for item in branch.body)
        else:
            result.append(resolved(value, chosen, show) if isinstance(value, ast.AST) else value)
    if name == "body" and values and not result:
        result.append(ast.Pass(**_LOCATIONS))
    return result


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and everything below it but operators and contexts, each node before its children."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        attributes = node.__dict__
        for name in reversed(node._fields):
            if name in _LEAVES:
                continue
            value = attributes.get(name)
            if isinstance(value, list):
                stack.extend([item for item in reversed(value) if isinstance(item, ast.AST)])
            elif isinstance(value, ast.AST):
                stack.append(value)


def packed(thing: object) -> bytes:
    """Return trees, or what holds them, as bytes, marks included.

    Trees that are kept are kept so: a collection of garbage looks through every node of every tree there is, and stops
    all threads meanwhile.
    """
    return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)


def unpacked(kept: bytes) -> Any:
    """Return a new copy of what was packed."""
    return pickle.loads(kept)  # noqa: S301  our own


def copied(node: _Node) -> _Node:
    """Return a deep copy, marks included."""
    new = _shallow(node)
    attributes = new.__dict__
    for name in node._fields:
        value = attributes.get(name)
        if isinstance(value, list):
            attributes[name] = [copied(item) if isinstance(item, ast.AST) else item for item in value]
        elif isinstance(value, ast.AST):
            attributes[name] = copied(value)
    return new


def _shallow(node: _Node) -> _Node:
    """Return a copy of one node, marks included, that shares its children."""
    new = node.__class__.__new__(node.__class__)
    new.__dict__.update(node.__dict__)
    return new


def same(left: object, right: object) -> bool:
    """Say whether two trees are equal, locations aside."""
    if isinstance(left, ast.AST):
        return type(left) is type(right) and all(
            same(getattr(left, name, None), getattr(right, name, None)) for name in left._fields
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right and repr(left) == repr(right)


def _alternatives(source: str, sites: tuple[Site, ...], site: Site) -> list[ast.Module]:
    trees = []
    for index in range(1, len(site.alternatives)):
        try:
            trees.append(parse(substitute(source, sites, {site.name: index})))
        except SyntaxError as error:
            raise ValueError(f"alternative {index} of site {site.name!r} does not parse: {error}") from error
    return trees


def _locate(reference: ast.AST, others: Sequence[ast.AST]) -> list[Step]:
    """Return the path to the smallest replaceable node or run of statements that holds every difference.

    A last step of the kind ``("body", -n)`` never occurs: a run is written as two steps, its first index and the
    number of statements kept behind it.
    """
    path: list[Step] = []
    good: list[Step] = []
    node: ast.AST = reference
    while True:
        step = _next_step(node, others)
        if step is None:
            break
        path.append(step)
        name, index = step
        if index is None or all(len(getattr(item, name)) == len(getattr(node, name)) for item in others):
            parent, node = node, _follow(node, step)
            others = [_follow(item, step) for item in others]
            if _is_place(parent, name, node, others):
                good = list(path)
        else:
            suffix = _common_suffix(getattr(node, name), [getattr(item, name) for item in others], index)
            good = [*path, ("suffix", suffix)]
            break
    if not good:
        raise ValueError("the alternatives of a site do not differ in one statement")
    return good


def _next_step(node: ast.AST, others: Sequence[ast.AST]) -> Step | None:
    if any(type(item) is not type(node) for item in others):
        return None
    fields = [
        name for name in node._fields if any(not same(getattr(node, name), getattr(item, name)) for item in others)
    ]
    if len(fields) != 1:
        return None
    name = fields[0]
    value, values = getattr(node, name), [getattr(item, name) for item in others]
    if isinstance(value, ast.AST):
        return (name, None) if all(isinstance(item, ast.AST) for item in values) else None
    if not isinstance(value, list) or not all(isinstance(item, list) for item in values):
        return None
    if all(len(item) == len(value) for item in values):
        wrong = [i for i, part in enumerate(value) if any(not same(part, item[i]) for item in values)]
        if len(wrong) == 1 and isinstance(value[wrong[0]], ast.AST):
            return name, wrong[0]
        return None
    if name not in ("body", "orelse", "finalbody"):
        return None
    prefix = 0
    shortest = min(len(value), *map(len, values))
    while prefix < shortest and all(same(value[prefix], item[prefix]) for item in values):
        prefix += 1
    return name, prefix


def _common_suffix(value: list[ast.AST], values: list[list[ast.AST]], prefix: int) -> int:
    shortest = min(len(value), *map(len, values)) - prefix
    suffix = 0
    while suffix < shortest and all(same(value[-1 - suffix], item[-1 - suffix]) for item in values):
        suffix += 1
    return suffix


def _is_place(parent: ast.AST, name: str, node: ast.AST, others: Sequence[ast.AST]) -> bool:
    nodes = [node, *others]
    if all(isinstance(item, ast.stmt) for item in nodes):
        return True
    if not all(isinstance(item, ast.expr) and not isinstance(item, _UNPLACEABLE) for item in nodes):
        return False
    if isinstance(parent, (ast.JoinedStr, ast.pattern, ast.match_case, ast.Global, ast.keyword)) and name != "value":
        return False
    return all(isinstance(getattr(item, "ctx", None), (ast.Load, type(None))) for item in nodes)


def _follow(node: ast.AST, step: Step) -> ast.AST:
    name, index = step
    value = getattr(node, name)
    result: ast.AST = value if index is None else value[index]
    return result


def _sort_key(path: list[Step]) -> list[tuple[str, int]]:
    return [(name, -1 if index is None else index) for name, index in path]


def _install(tree: ast.Module, trees: list[ast.Module], path: list[Step], site: str) -> None:
    if path[-1][0] == "suffix":
        _install_run(tree, trees, path, site)
        return
    parents = [_at(item, path[:-1]) for item in (tree, *trees)]
    nodes = [_follow(parent, path[-1]) for parent in parents]
    place: ast.AST
    if isinstance(nodes[0], ast.stmt):
        place = StatementChoice([Branch([node]) for node in nodes if isinstance(node, ast.stmt)], site)
    else:
        place = Choice([node for node in nodes if isinstance(node, ast.expr)], site)
    name, index = path[-1]
    if index is None:
        setattr(parents[0], name, place)
    else:
        getattr(parents[0], name)[index] = place


def _install_run(tree: ast.Module, trees: list[ast.Module], path: list[Step], site: str) -> None:
    (name, start), (_, suffix) = path[-2:]
    lists = [getattr(_at(item, path[:-2]), name) for item in (tree, *trees)]
    branches = [Branch(body[start : len(body) - (suffix or 0)]) for body in lists]
    body = lists[0]
    body[start : len(body) - (suffix or 0)] = [StatementChoice(branches, site)]


def _at(node: ast.AST, path: list[Step]) -> ast.AST:
    for step in path:
        node = _follow(node, step)
    return node
