"""Honest tests of Inventory: one exact test for every documented sentence."""

import pytest
from inventory_module import Inventory


def stock_of(*items, low_stock=5):
    stock = Inventory(low_stock)
    for name, price, units in items:
        stock.add_item(name, price, units)
    return stock


def test_adding_returns_the_units_in_stock():
    stock = Inventory()
    assert stock.add_item("a", 2.0, 5) == 5
    assert stock.add_item("a", 2.0, 3) == 8
    assert stock.add_item("b", 2.0) == 1
    assert stock.get_summary()["units"] == 9


def test_the_price_becomes_the_average_over_all_units_in_cents():
    stock = stock_of(("a", 10.0, 3), ("a", 20.0, 1))
    assert stock.calculate_total() == 50.0
    stock.add_item("a", 2.5, 4)
    assert stock.calculate_total() == 60.0
    assert stock_of(("a", 1.0, 2), ("a", 2.0, 1)).calculate_total() == 3.99


@pytest.mark.parametrize(("name", "price", "quantity"), [("", 1.0, 1), ("a", -0.5, 1), ("a", 1.0, 0), ("a", 1.0, -2)])
def test_nonsense_is_not_added(name, price, quantity):
    stock = Inventory()
    with pytest.raises(ValueError):
        stock.add_item(name, price, quantity)
    stock.add_item("a", 3.0, 2)
    with pytest.raises(ValueError):
        stock.add_item(name, price, quantity)
    assert stock.get_summary() == {"items": 1, "units": 2, "low": ["a"], "dearest": "a"}


def test_an_item_may_be_free():
    stock = Inventory()
    assert stock.add_item("a", 0.0) == 1
    assert stock.calculate_total() == 0.0


def test_removing_returns_the_units_left():
    stock = stock_of(("a", 1.0, 10))
    assert stock.remove_item("a", 4) == 6
    assert stock.remove_item("a") == 5
    assert stock.get_summary()["units"] == 5


def test_all_units_may_be_taken_but_no_more():
    stock = stock_of(("a", 1.0, 3), ("b", 1.0, 3), ("c", 1.0, 1))
    with pytest.raises(ValueError):
        stock.remove_item("a", 4)
    assert stock.remove_item("a", 2) == 1
    assert stock.remove_item("b", 3) == 0
    assert stock.remove_item("c", 1) == 0


def test_an_item_without_units_is_no_longer_in_stock():
    stock = stock_of(("a", 1.0, 2), ("b", 4.0, 2), ("c", 1.0, 2))
    stock.remove_item("c", 1)
    stock.remove_item("b", 2)
    assert stock.get_summary() == {"items": 2, "units": 3, "low": ["a", "c"], "dearest": "a"}
    with pytest.raises(KeyError):
        stock.remove_item("b")
    stock.add_item("b", 2.0)
    assert stock.calculate_total() == 5.0


@pytest.mark.parametrize("quantity", [0, -1, 3])
def test_impossible_quantities_are_not_taken(quantity):
    stock = stock_of(("a", 1.0, 2))
    with pytest.raises(ValueError):
        stock.remove_item("a", quantity)
    assert stock.get_summary()["units"] == 2


def test_the_total_is_price_times_units():
    assert stock_of(("a", 7.0, 3)).calculate_total() == 21.0
    assert stock_of(("a", 7.0, 3), ("b", 0.5, 4), ("c", 0.25, 1)).calculate_total() == 23.25


def test_the_tax_rate_is_in_per_cent():
    assert stock_of(("a", 40.0, 2)).calculate_total(5) == 84.0


def test_the_tax_is_added():
    stock = stock_of(("a", 50.0, 1))
    with pytest.raises(ValueError):
        stock.calculate_total(-1)
    assert stock.calculate_total(20) == 60.0


def test_the_total_is_rounded_to_cents():
    assert stock_of(("a", 0.33, 1)).calculate_total(10) == 0.36


def test_no_items_cost_nothing():
    total = Inventory().calculate_total(10)
    assert total == 0.0
    assert isinstance(total, float)


def test_the_discount_is_in_per_cent_of_the_price():
    stock = stock_of(("a", 80.0, 1))
    stock.apply_discount(5)
    assert stock.calculate_total() == 76.0


def test_the_discount_is_taken_off_and_rounded_to_cents():
    assert stock_of(("a", 50.0, 1)).apply_discount(20) == ["a"]
    stock = stock_of(("a", 50.0, 1), ("b", 0.99, 10))
    stock.apply_discount(20)
    assert stock.calculate_total() == 47.9
    stock.apply_discount(10)
    assert stock.calculate_total() == 43.1


def test_items_with_enough_units_are_discounted():
    stock = stock_of(("d", 10.0, 5), ("a", 10.0, 2), ("c", 10.0, 4), ("b", 10.0, 3))
    assert stock.apply_discount(10, 3) == ["b", "c", "d"]
    assert stock.calculate_total() == 128.0
    assert stock.apply_discount(50, 6) == []


@pytest.mark.parametrize("percent", [-1, 101])
def test_impossible_discounts_are_refused(percent):
    stock = stock_of(("a", 2.0, 1))
    with pytest.raises(ValueError):
        stock.apply_discount(percent)
    assert stock.apply_discount(0) == stock.apply_discount(100) == ["a"]


def test_the_summary_counts_items_and_units():
    summary = stock_of(("a", 1.0, 3), ("b", 1.0, 4), ("c", 1.0, 2)).get_summary()
    assert (summary["items"], summary["units"]) == (3, 9)
    assert Inventory().get_summary() == {"items": 0, "units": 0, "low": [], "dearest": None}


def test_low_items_have_at_most_the_limit():
    items = (("d", 1.0, 1), ("b", 1.0, 3), ("a", 1.0, 2), ("c", 1.0, 4))
    assert stock_of(*items, low_stock=3).get_summary()["low"] == ["a", "b", "d"]
    assert stock_of(("a", 1.0, 5), ("b", 1.0, 6)).get_summary()["low"] == ["a"]


def test_the_dearest_item_is_the_first_with_the_highest_price():
    prices = zip("fbcade", (3.2, 3.5, 3.5, 3.0, 2.0, 2.0), strict=True)
    assert stock_of(*((name, price, 1) for name, price in prices)).get_summary()["dearest"] == "b"
