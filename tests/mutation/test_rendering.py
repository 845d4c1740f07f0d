import ast
import gc
import random
import time

import pytest

from autotest_env.mutation.choice import Branch, Choice, StatementChoice, packed, parse_choices, unpacked
from autotest_env.mutation.facts import mark
from autotest_env.mutation.rendering import RENDERINGS, catalogue, render
from autotest_env.tasks.program import run_witness
from tests.mutation.conftest import KEY, every_variant, load, order_total, outcome, plain, rendered, shape


def _random_orders(count):
    rng = random.Random("orders")
    for _ in range(count):
        price = rng.choice(
            (lambda: rng.randint(0, 99), lambda: round(rng.uniform(0, 200), 2), lambda: rng.uniform(0, 9))
        )
        items = [(price(), rng.choice((rng.randint(0, 9), rng.uniform(0, 3)))) for _ in range(rng.randint(0, 5))]
        discount, tax = (rng.choice((0, 100, rng.randint(0, 100), rng.uniform(0, 100))) for _ in range(2))
        yield items, discount, tax


ORDERS = tuple(_random_orders(300))


def test_every_variant_keeps_its_witness_in_every_rendering(rendering):
    for bug, alternative in every_variant():
        witness = order_total().bug(bug).witness
        expected = run_witness(plain(bug, alternative), witness)
        assert run_witness(rendered(bug, alternative, rendering), witness) == expected, (bug, alternative)


def test_every_text_agrees_with_its_plain_text_to_the_last_bit(rendering):
    for bug, alternative in [(None, 0), *every_variant()]:
        plain_function = load(plain(bug, alternative)).calculate_order_total
        function = load(rendered(bug, alternative, rendering)).calculate_order_total
        for order in ORDERS:
            assert outcome(function, *order) == outcome(plain_function, *order), (bug, alternative, order)


def test_arguments_can_be_named_and_are_not_changed(rendering):
    items = [(10.0, 3)]
    assert load(rendered(None, 0, rendering)).calculate_order_total(tax_rate=20, discount=10, items=items) == 32.4
    assert items == [(10.0, 3)]


def test_edge_values_come_out_the_same(rendering):
    function = load(rendered(None, 0, rendering)).calculate_order_total
    reference = load(plain(None)).calculate_order_total
    for order in (([], 0, 0), ([(float("inf"), 1)], 5, 5), ([(float("nan"), 1)], 5, 5), ([(-0.0, 1)], 0, 0)):
        assert outcome(function, *order) == outcome(reference, *order)
    assert outcome(function, [(1, 2, 3)], 0, 0).startswith("ValueError")


def test_the_reference_and_each_bug_have_distinct_code_in_every_rendering():
    for bug in (None, *(bug.id for bug in order_total().bugs)):
        assert len({shape(rendered(bug, 1 if bug else 0, number)) for number in range(RENDERINGS)}) == RENDERINGS >= 24


def test_two_keys_give_distinct_code(rendering):
    assert shape(rendered(None, 0, rendering)) != shape(rendered(None, 0, rendering, b"another key"))


def test_the_same_arguments_give_the_same_text(rendering):
    program = order_total()
    assert render(program.source, program.sites, {}, rendering, KEY) == rendered(None, 0, rendering)


def test_the_catalogue_has_enough_of_each_kind():
    kinds = catalogue()
    assert [kind.number for kind in kinds] == list(range(RENDERINGS))
    assert sum(kind.chaff for kind in kinds) >= 6
    assert sum(kind.token_free for kind in kinds) >= 4
    assert not any(kind.chaff and kind.token_free for kind in kinds)


def test_only_documented_names_are_public(rendering):
    module = load(rendered(None, 0, rendering))
    assert [name for name in vars(module) if not name.startswith("_")] == ["calculate_order_total"]


@pytest.mark.parametrize(
    ("chosen", "number", "message"),
    [({}, RENDERINGS, "no rendering"), ({"nowhere": 1}, 0, "no site"), ({"rounding": 99}, 0, "alternatives 0 to")],
)
def test_what_does_not_exist_is_refused(chosen, number, message):
    program = order_total()
    with pytest.raises(ValueError, match=message):
        render(program.source, program.sites, chosen, number, KEY)


def test_rendering_is_quick_enough_to_draw_a_submission():
    program = order_total()
    start = time.process_time()
    for bug in program.bugs:
        for number in range(RENDERINGS):
            render(program.source, program.sites, {bug.id: 1}, number, KEY)
    assert (time.process_time() - start) / (RENDERINGS * len(program.bugs)) < 0.02


def test_no_tree_is_kept_for_collections_of_garbage_to_look_through():
    program = order_total()

    def kept():
        gc.collect()
        return sum(isinstance(each, ast.Module | Choice | StatementChoice | Branch) for each in gc.get_objects())

    before = kept()
    for number in range(RENDERINGS):
        render(program.source, program.sites, {}, number, b"a key that nothing else uses")
    assert kept() <= before


def test_a_packed_tree_comes_back_whole():
    program = order_total()
    tree = parse_choices(program.source, program.sites)
    mark(tree)

    def written(node):
        if isinstance(node, list | tuple):
            return [written(each) for each in node]
        if not isinstance(node, ast.AST):
            return node
        return type(node), [(name, written(value)) for name, value in sorted(vars(node).items())]

    copy = unpacked(packed(tree))
    assert copy is not tree
    assert written(copy) == written(tree)
    assert any(isinstance(node, Choice) for node in ast.walk(copy))
