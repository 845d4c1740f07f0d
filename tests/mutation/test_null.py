import inspect

import pytest

from autotest_env.mutation.null import null_program
from tests.mutation.conftest import load, order_total

SOURCE = '''
import math
from dataclasses import dataclass
from enum import Enum

__all__ = ["Shop"]
LIMIT: int = 3
RATES = {"low": 0.1}
ROOT = math.sqrt(2)


class ShopError(Exception):
    """Wrong."""

    def code(self):
        return 7


class ClosedError(ShopError):
    pass


class Colour(Enum):
    RED = 1


@dataclass
class Item:
    name: str
    price: float = 1.0


class Shop(dict):
    size = 2

    def __init__(self, owner, *, open_now=True):
        self.owner = owner

    @property
    def total(self):
        return 3

    @staticmethod
    def parse(text):
        raise ClosedError(text)

    def __len__(self):
        return 4


def area(width, height=LIMIT):
    if width < 0:
        raise ShopError("negative")
    return width * height


async def later():
    return 1


if LIMIT > 2:
    def extra():
        return 1
'''


def test_public_names_signatures_and_constants_stay():
    module, null = load(SOURCE), load(null_program(SOURCE))
    assert set(vars(null)) == set(vars(module))
    assert inspect.signature(null.area) == inspect.signature(module.area)
    assert (null.LIMIT, null.RATES, null.Colour.RED.value, null.Shop.size) == (3, {"low": 0.1}, 1, 2)
    assert null.ROOT != module.ROOT


def test_functions_and_methods_return_a_fresh_object():
    null = load(null_program(SOURCE))
    shop = null.Shop("me")
    results = [null.area(-1), null.area(2), shop.total, shop.parse("x"), null.Shop.parse("x"), null.extra()]
    assert all(type(result) is object for result in results)
    assert len(set(map(id, results))) == len(results)
    assert not hasattr(shop, "owner")
    with pytest.raises(TypeError):
        null.area()
    with pytest.raises(TypeError):
        len(shop)


def test_exception_classes_are_kept_whole():
    null = load(null_program(SOURCE))
    assert issubclass(null.ClosedError, null.ShopError)
    assert null.ClosedError("x").code() == 7


def test_data_classes_take_any_arguments_and_compare_by_identity():
    null = load(null_program(SOURCE))
    assert null.Item("a", price=2) != null.Item("a", price=2)


def test_the_order_program_returns_nothing_a_test_could_expect():
    null = load(null_program(order_total().source))
    total = null.calculate_order_total([(10.0, 3)], 10, 20)
    assert total != null.calculate_order_total([(10.0, 3)], 10, 20)
    assert null.calculate_order_total.__doc__ is None
