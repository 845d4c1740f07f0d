import ast
import dis
import re

import pytest

from autotest_env.mutation.mutant import Site
from autotest_env.mutation.rendering import catalogue, render
from tests.mutation.conftest import KEY, codes, every_variant, load, order_total, outcome, rendered

CHAFF = tuple(kind.number for kind in catalogue() if kind.chaff)


def _site(source, *alternatives):
    start = source.index(alternatives[0])
    return (Site(name="spot", start=start, end=start + len(alternatives[0]), alternatives=alternatives),)


@pytest.mark.parametrize("number", CHAFF)
def test_reference_and_variant_differ_in_one_index(number):
    reference = rendered(None, 0, number)
    for bug, alternative in every_variant():
        variant = rendered(bug, alternative, number)
        different = [pair for pair in zip(reference, variant, strict=True) if pair[0] != pair[1]]
        assert len(different) == 1, (bug, alternative)
        assert all(character.isdigit() for character in different[0])


@pytest.mark.parametrize("number", CHAFF)
def test_code_objects_differ_in_the_loaded_index_only(number):
    reference = list(codes(compile(rendered(None, 0, number), "x", "exec")))
    for bug, alternative in every_variant():
        variant = list(codes(compile(rendered(bug, alternative, number), "x", "exec")))
        changed = 0
        for left, right in zip(reference, variant, strict=True):
            assert (left.co_names, left.co_varnames, left.co_freevars) == (
                right.co_names,
                right.co_varnames,
                right.co_freevars,
            )
            assert [repr(item) for item in left.co_consts if not hasattr(item, "co_code")] == [
                repr(item) for item in right.co_consts if not hasattr(item, "co_code")
            ]
            assert list(left.co_positions()) == list(right.co_positions())
            for one, two in zip(dis.get_instructions(left), dis.get_instructions(right), strict=True):
                assert one.opname == two.opname
                if one.opname != "LOAD_CONST" or not hasattr(one.argval, "co_code"):
                    changed += one.argval != two.argval
        assert changed == 1


@pytest.mark.parametrize("number", CHAFF)
def test_every_alternative_of_every_site_stands_and_is_evaluated(number):
    text = rendered(None, 0, number)
    sizes = sorted(
        len(node.value.elts)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Tuple, ast.List))
    )
    sites = order_total().sites
    assert len(sizes) >= 2 * len(sites) - 1
    assert sizes[0] >= 3


@pytest.mark.parametrize("number", CHAFF)
def test_alternatives_that_may_raise_are_guarded(number):
    source = "def share(total: float, parts: float) -> float:\n    return total / parts\n"
    sites = _site(source, "total / parts", "parts / total", "total // parts", "total % parts")
    plain = {0: lambda a, b: a / b, 1: lambda a, b: b / a, 2: lambda a, b: a // b, 3: lambda a, b: a % b}
    for alternative, expected in plain.items():
        share = load(render(source, sites, {"spot": alternative}, number, KEY)).share
        for arguments in ((6, 3), (0, 5), (5, 0), (0, 0), (7.5, 2)):
            assert outcome(share, *arguments) == outcome(expected, *arguments)


@pytest.mark.parametrize("number", CHAFF)
def test_a_call_with_effects_is_made_once_with_the_picked_arguments(number):
    source = "def move(log, a, b):\n    return log.append((a, b))\n"
    sites = _site(source, "log.append((a, b))", "log.append((b, a))", "log.append((a, a))", "log.append(b)")
    for alternative, expected in enumerate(((1, 2), (2, 1), (1, 1), 2)):
        log = []
        assert load(render(source, sites, {"spot": alternative}, number, KEY)).move(log, 1, 2) is None
        assert log == [expected]


@pytest.mark.parametrize("number", CHAFF)
def test_shared_operands_with_effects_are_evaluated_once(number):
    source = "def draw(take, limit: int) -> bool:\n    return take() <= limit\n"
    sites = _site(source, "take() <= limit", "take() < limit", "take() > limit", "take() == limit")
    for alternative, expected in enumerate((True, False, False, True)):
        calls = []
        draw = load(render(source, sites, {"spot": alternative}, number, KEY)).draw
        assert draw(lambda calls=calls: calls.append(1) or 3, 3) is expected
        assert calls == [1]


@pytest.mark.parametrize("number", CHAFF)
def test_constants_are_not_folded_into_the_picked_one(number):
    source = "def locked(failures):\n    return failures >= 3\n"
    sites = _site(source, "failures >= 3", "failures >= 50", "failures >= 4", "failures >= 2")
    reference = list(codes(compile(render(source, sites, {}, number, KEY), "x", "exec")))
    variant = list(codes(compile(render(source, sites, {"spot": 1}, number, KEY), "x", "exec")))
    for left, right in zip(reference, variant, strict=True):
        assert [item for item in left.co_consts if not hasattr(item, "co_code")] == [
            item for item in right.co_consts if not hasattr(item, "co_code")
        ]


@pytest.mark.parametrize(
    ("body", "alternatives", "message"),
    [
        ("    log.clear()\n", ("log.clear()", "pass"), "not expressions"),
        ("    return log.pop() + a\n", ("log.pop() + a", "a"), "different effects"),
        ("    return [log.pop() + n for n in a]\n", ("log.pop() + n", "log.pop() - n"), "inside a function"),
    ],
)
def test_a_place_that_cannot_carry_chaff_is_refused_by_name(body, alternatives, message):
    source = f"def change(log, a):\n{body}"
    with pytest.raises(ValueError, match=rf"'spot'.*{message}"):
        render(source, _site(source, *alternatives), {}, CHAFF[0], KEY)


def test_no_site_name_shows_in_a_text():
    for number in CHAFF:
        assert not re.search("|".join(site.name for site in order_total().sites), rendered(None, 0, number))
