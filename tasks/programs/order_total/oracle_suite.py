"""Honest tests of calculate_order_total: one exact test for every documented sentence."""

import pytest
from order_module import calculate_order_total


def test_a_line_costs_price_times_quantity():
    assert calculate_order_total([(7.0, 3)], 0, 0) == 21.0
    assert calculate_order_total([(2.5, 4)], 0, 0) == 10.0


def test_all_lines_are_summed():
    assert calculate_order_total([(10.0, 1), (3.0, 2), (4.5, 1)], 0, 0) == 20.5


def test_the_discount_is_in_per_cent():
    assert calculate_order_total([(80.0, 1)], 5, 0) == 76.0


def test_the_discount_is_taken_off():
    assert calculate_order_total([(50.0, 1)], 20, 0) == 40.0
    assert calculate_order_total([(50.0, 1)], 100, 0) == 0.0


def test_the_tax_is_charged_after_the_discount():
    assert calculate_order_total([(40.0, 2)], 25, 10) == 66.0


def test_the_result_is_rounded_to_cents():
    assert calculate_order_total([(12.3456, 1)], 0, 0) == 12.35
    assert calculate_order_total([(0.333, 1)], 0, 0) == 0.33


@pytest.mark.parametrize(("discount", "tax_rate"), [(0, 0), (10, 20)])
def test_an_empty_order_costs_nothing(discount, tax_rate):
    total = calculate_order_total([], discount, tax_rate)
    assert total == 0.0
    assert isinstance(total, float)


def test_the_documented_examples_hold():
    assert calculate_order_total([(10.0, 3)], 10, 0) == 27.0
    assert calculate_order_total([(19.99, 1), (4.5, 2)], 0, 8) == 31.31
