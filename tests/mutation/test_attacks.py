"""Ways to tell the reference from a variant without testing, written as a suite would write them.

A predicate separates when it holds on every rendering of the reference and fails on some rendering of the variant.
"""

import ast
import dis
import hashlib
import types
from difflib import SequenceMatcher

import pytest

from autotest_env.mutation.rendering import RENDERINGS, catalogue
from tests.mutation.conftest import codes, load, order_total, plain, rendered

BUGS = tuple(bug.id for bug in order_total().bugs)
CHAFF = tuple(kind.number for kind in catalogue() if kind.chaff)
KEYS = (b"one", b"two", b"three")
TOKEN_FREE = tuple(kind.number for kind in catalogue() if kind.token_free)


def _all_codes(module):
    return [
        inner
        for value in vars(module).values()
        if isinstance(value, types.FunctionType)
        for inner in codes(value.__code__)
    ]


def _constants(module):
    inside = [constant for code in _all_codes(module) for constant in code.co_consts]
    cells = [
        cell.cell_contents for value in vars(module).values() for cell in getattr(value, "__closure__", None) or ()
    ]
    return {item for item in (*inside, *cells, *vars(module).values()) if type(item) in (int, float)}


def _names(module):
    return {name for code in _all_codes(module) for name in (*code.co_names, *code.co_varnames, *code.co_freevars)}


def _operations(module):
    return [(item.opname, item.argrepr) for code in _all_codes(module) for item in dis.get_instructions(code)]


def _digest(module):
    return hashlib.sha256(module.calculate_order_total.__code__.co_code).hexdigest()


REFERENCE = load(plain(None))

PREDICATES = {
    "no 10 anywhere": lambda module: 10 not in _constants(module),
    "no 10 in the function": lambda module: 10 not in module.calculate_order_total.__code__.co_consts,
    "100 somewhere": lambda module: 100 in _constants(module),
    "2 somewhere": lambda module: 2 in _constants(module),
    "no 1 anywhere": lambda module: 1 not in _constants(module),
    "no subtraction missing": lambda module: any("-" in argument for _, argument in _operations(module)),
    "a multiplication": lambda module: any("*" in argument for _, argument in _operations(module)),
    "no two additions": lambda module: sum("+" in argument for _, argument in _operations(module)) < 3,
    "local names": lambda module: {"reduction", "discounted", "tax"} <= _names(module),
    "number of names": lambda module: len(_names(module)) == len(_names(REFERENCE)),
    "docstring": lambda module: module.calculate_order_total.__doc__ == REFERENCE.calculate_order_total.__doc__,
    "hash of the code": lambda module: _digest(module) == _digest(REFERENCE),
    "length of the code": lambda module: len(module.calculate_order_total.__code__.co_code) >= 100,
    "first line": lambda module: module.calculate_order_total.__code__.co_firstlineno == 4,
    "stack size": lambda module: (
        module.calculate_order_total.__code__.co_stacksize == REFERENCE.calculate_order_total.__code__.co_stacksize
    ),
    "constants as written": lambda module: (
        REFERENCE.calculate_order_total.__code__.co_consts[1:] == module.calculate_order_total.__code__.co_consts[1:]
    ),
}


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("name", PREDICATES)
def test_a_look_at_the_code_does_not_separate(name, bug):
    predicate = PREDICATES[name]
    references = [predicate(load(rendered(None, 0, number))) for number in range(RENDERINGS)]
    variants = [predicate(load(rendered(bug, 1, number))) for number in range(RENDERINGS)]
    assert not all(references) or all(variants)


@pytest.mark.parametrize("bug", BUGS)
def test_a_rebuilt_variant_is_never_recognised(bug):
    known = {code.co_code for code in _all_codes(load(plain(bug)))}
    for number in range(RENDERINGS):
        known |= {code.co_code for code in _workers(load(rendered(bug, 1, number, b"a guessed key")))}
    for number in range(RENDERINGS):
        assert known.isdisjoint({code.co_code for code in _workers(load(rendered(bug, 1, number)))}), number


def _workers(module):
    """The functions that do the work: those that loop over the items."""
    loops = ("FOR_ITER", "GET_ITER", "JUMP_BACKWARD")
    return [code for code in _all_codes(module) if any(item.opname in loops for item in dis.get_instructions(code))]


@pytest.mark.parametrize("number", TOKEN_FREE)
def test_a_token_free_rendering_holds_none_of_the_references_tokens(number):
    module = load(rendered(None, 0, number))
    assert _constants(module).isdisjoint({0.0, 100, 2})
    assert _names(module).isdisjoint(
        {"subtotal", "price", "quantity", "line", "reduction", "discounted", "tax", "total"}
    )
    words = set((REFERENCE.calculate_order_total.__doc__ or "").lower().split())
    found = (module.calculate_order_total.__doc__ or "").lower() + (module.__doc__ or "").lower()
    assert words.isdisjoint(found.replace(".", " ").split())


def _places(text):
    """Yield the alternatives of each picked tuple of a text, and which one is picked."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Tuple, ast.List)):
            assert isinstance(node.slice, ast.Constant)
            yield [ast.unparse(item) for item in node.value.elts], node.slice.value


def _centrality(alternatives, index):
    return sum(SequenceMatcher(None, alternatives[index], other, autojunk=False).ratio() for other in alternatives)


def _picks_central(alternatives, picked):
    return max(range(len(alternatives)), key=lambda index: _centrality(alternatives, index)) == picked


def _picks_shortest(alternatives, picked):
    return len(alternatives[picked]) == min(map(len, alternatives))


@pytest.mark.parametrize("looks", [_picks_central, _picks_shortest])
@pytest.mark.parametrize("combine", [all, any, lambda seen: sum(seen) * 2 > len(seen)])
@pytest.mark.parametrize("expected", [True, False])
def test_reading_the_chaff_does_not_separate(looks, combine, expected):
    def predicate(text):
        return combine([looks(alternatives, picked) for alternatives, picked in _places(text)]) is expected

    if all(predicate(rendered(None, 0, number, key)) for number in CHAFF for key in KEYS):
        for bug in BUGS:
            seen = [not predicate(rendered(bug, 1, number, key)) for number in CHAFF for key in KEYS]
            # a bug is caught only where it is seen in both of its renderings, and its siblings too
            assert sum(seen) <= len(seen) / 5, bug
