"""Behaviour-preserving rewrites, applied to the reference and to variants alike.

    render(source, sites, {}, number, key)                  the reference in a rendering (a decoy)
    render(source, sites, {"rounding": 1}, number, key)     the bug of that site, in the same rendering
    catalogue()                                             what each number from 0 to RENDERINGS - 1 is

Names, order, layout and the position of each alternative follow from (source, number, key) alone, never from what is
chosen: whoever holds one text cannot see which alternative is the reference's. A place that a transform cannot
rewrite for certain stays as it is.
"""

import ast
import hashlib
import hmac
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from autotest_env.mutation import constants, expressions, layout, private_functions, statements
from autotest_env.mutation.bodies import first_free
from autotest_env.mutation.chaff import Chaff, add_chaff
from autotest_env.mutation.choice import Choice, packed, parse_choices, resolved, unpacked
from autotest_env.mutation.facts import mark
from autotest_env.mutation.mutant import Site
from autotest_env.mutation.names import LOOKS_AT_LOCALS, Names, mentions, note_words, rename_locals

_RECIPES = (
    "rename nodoc",
    "rename swap globals",
    "rename loops invert otherdoc",
    "rename helper functions nodoc",
    "rename swap temporaries closures helper otherdoc",
    "rename decode helper functions nodoc token_free",
    "rename merge loops globals spare",
    "rename swap import otherdoc reorder",
    "rename decode own loops swap helper spare nodoc token_free",
    "rename functions temporaries invert import spare otherdoc",
    "rename swap helper spare otherdoc",
    "rename decode own temporaries otherdoc token_free",
    "rename loops own closures helper nodoc",
    "rename merge swap invert reorder nodoc",
    "rename decode functions loops helper temporaries spare otherdoc token_free",
    "rename import loops temporaries helper spare nodoc",
    "chaff rename nodoc",
    "chaff rename globals loops otherdoc",
    "chaff rename closures helper spare nodoc",
    "chaff rename swap temporaries otherdoc",
    "chaff rename own helper invert nodoc",
    "chaff rename swap import spare otherdoc",
    "chaff rename swap loops helper temporaries nodoc",
    "chaff rename decode functions spare reorder otherdoc",
    "chaff rename swap invert loops closures helper otherdoc",
    "rename decode swap functions helper loops reorder nodoc token_free",
)
"""One line per rendering: the transforms it is made of."""

RENDERINGS: int = len(_RECIPES)


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a rendering is: with chaff, or free of the reference's own tokens (numbers, local names, docstrings)."""

    number: int
    chaff: bool
    token_free: bool


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A rendering of a program, before an alternative is chosen."""

    tree: ast.Module
    chaff: Chaff | None
    gap: str
    seed: bytes


def catalogue() -> tuple[Rendering, ...]:
    """Return all renderings, by number."""
    return tuple(
        Rendering(number, "chaff" in recipe.split(), "token_free" in recipe.split())
        for number, recipe in enumerate(_RECIPES)
    )


def render(source: str, sites: tuple[Site, ...], chosen: Mapping[str, int], rendering: int, key: bytes) -> str:
    """Return a program's text in a rendering, with alternative `chosen[site.name]` (default 0) at each site.

    `key` is secret. The same arguments give the same text. Raises ValueError when the number, a site or an alternative
    does not exist, or when a site cannot be written in this rendering.
    """
    if not 0 <= rendering < RENDERINGS:
        raise ValueError(f"no rendering {rendering}; there are 0 to {RENDERINGS - 1}")
    known = {site.name: len(site.alternatives) for site in sites}
    for name, index in chosen.items():
        if name not in known:
            raise ValueError(f"no site {name!r}; there are: {', '.join(known)}")
        if not 0 <= index < known[name]:
            raise ValueError(f"site {name!r} has alternatives 0 to {known[name] - 1}, not {index}")
    prepared: _Prepared = unpacked(_prepare(source, sites, rendering, key))

    def show(place: Choice) -> ast.expr:
        if prepared.chaff is not None:
            return prepared.chaff.show(place, chosen)
        return place.alternatives[chosen.get(place.site, 0)]

    tree = resolved(prepared.tree, chosen, show)
    return layout.fill_gaps(ast.unparse(tree), prepared.gap, random.Random(prepared.seed))


@lru_cache(maxsize=128)
def _prepare(source: str, sites: tuple[Site, ...], rendering: int, key: bytes) -> bytes:
    tree: ast.Module = unpacked(_parsed(source, sites))
    steps = frozenset(_RECIPES[rendering].split())
    seed = hmac.new(key, f"{rendering}\x1f{source}".encode(), hashlib.sha256).digest()
    rng = random.Random(seed)
    text = "\n".join([source, *(text for site in sites for text in site.alternatives)])
    names = Names(text, random.Random(seed + b"names"))
    numbers = constants.numbers_in(tree)
    chaff = add_chaff(tree, names, rng) if "chaff" in steps else None
    _rewrite_statements(tree, steps, names, rng)
    statements.add_dead_stores(tree, names, numbers, rng)
    _rewrite_expressions(tree, steps, names, rng)
    if "helper" in steps and not mentions(tree, LOOKS_AT_LOCALS - {"dir", "vars"}):
        private_functions.move_bodies(tree, names)
    rename_locals(tree, names)
    if chaff is not None:
        chaff.add_helper(tree, names)
    if "spare" in steps:
        private_functions.add_spare(tree, names, numbers, rng)
    _move_constants(tree, steps, names, rng)
    if "nodoc" in steps or "otherdoc" in steps:
        layout.replace_docstrings(tree, text, rng, drop="nodoc" in steps)
    gap = layout.add_gaps(tree, names, rng)
    return packed(_Prepared(tree, chaff, gap, seed + b"gaps"))


@lru_cache(maxsize=32)
def _parsed(source: str, sites: tuple[Site, ...]) -> bytes:
    tree = parse_choices(source, sites)
    mark(tree)
    note_words(tree)
    return packed(tree)


def _rewrite_statements(tree: ast.Module, steps: frozenset[str], names: Names, rng: random.Random) -> None:
    if "merge" in steps:
        statements.drop_temporaries(tree)
    if "reorder" in steps:
        statements.reorder(tree, rng)
    if not steps.isdisjoint({"swap", "functions", "own"}):
        statements.expand_augmented(tree, rng)
    if "loops" in steps:
        statements.rewrite_loops(tree, names, rng)
    if "temporaries" in steps:
        statements.add_temporaries(tree, names, rng)


def _rewrite_expressions(tree: ast.Module, steps: frozenset[str], names: Names, rng: random.Random) -> None:
    if "invert" in steps:
        expressions.Invert().visit(tree)
    if "swap" in steps:
        expressions.Swap(rng).visit(tree)
    if "functions" in steps or "own" in steps:
        functions = expressions.Functions(names)
        functions.visit(tree)
        start = first_free(tree)
        tree.body[start:start] = functions.definitions() if "own" in steps else functions.imports()


def _move_constants(tree: ast.Module, steps: frozenset[str], names: Names, rng: random.Random) -> None:
    new: list[ast.stmt] = []
    if "globals" in steps:
        new = constants.move_to_globals(tree, names)
    elif "closures" in steps:
        new = constants.move_to_closures(tree, names)
    elif "import" in steps:
        new = constants.decode_at_import(tree, names, rng)
    elif "decode" in steps:
        new = constants.decode_in_place(tree, names, rng)
    start = first_free(tree)
    tree.body[start:start] = new
