"""Optional parameters in per cent, and what documented examples that leave them out give with them.

If the documentation says that a tax rate is in per cent and is added, what costs 27.0 without costs 29.7 with 10 % of
it. Read from text; nothing is executed.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from autotest_env.agents.examples import Example, literal
from autotest_env.syntax import parse

_PER_CENT = re.compile(r"\bper ?cent(?:age)?s?\b|%", re.IGNORECASE)
_ADDED = frozenset("add added adds plus tax taxes vat surcharge charge charged increase increases raises fee".split())
_TAKEN_OFF = frozenset("discount discounts off reduce reduced reduces reduction lower lowers less rebate".split())
_PERCENTAGES = (10, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """An optional parameter, 0 when left out, in per cent of what its function gives."""

    function: str
    parameter: str
    sign: int
    """1: it is added, -1: it is taken off."""


def read_rates(source: str) -> tuple[Rate, ...]:
    """Return the rates that a module's docstrings tell of. Raises one of UNREADABLE when it cannot be read."""
    nodes = [node for node in ast.walk(parse(source)) if isinstance(node, ast.FunctionDef)]
    return tuple(rate for node in nodes for rate in _rates(node))


def derive(rate: Rate, example: Example) -> Iterator[tuple[str, float]]:
    """Yield the example's expression with a percentage, and its value; nothing where rounding could matter."""
    call = example.call
    if call is None or not re.search(rf"\b{rate.function}$", ast.unparse(call.func)):
        return
    try:
        amount = literal(example.want)
    except ValueError:
        return
    left_out = {rate.parameter, None}.isdisjoint(keyword.arg for keyword in call.keywords)
    if not left_out or not isinstance(amount, float) or round(amount, 1) != amount:
        return
    for percentage in _PERCENTAGES:
        changed = ast.keyword(arg=rate.parameter, value=ast.Constant(percentage))
        expression = ast.Call(func=call.func, args=call.args, keywords=[*call.keywords, changed])
        yield ast.unparse(expression), round(amount * (100 + rate.sign * percentage) / 100, 9)


def _rates(node: ast.FunctionDef) -> Iterator[Rate]:
    sentences = re.split(r"\.\s|\n\s*\n", ast.get_docstring(node) or "")
    optional = node.args.args[len(node.args.args) - len(node.args.defaults) :]
    for argument, default in zip(optional, node.args.defaults, strict=True):
        about = [each for each in sentences if f"`{argument.arg}`" in each and _PER_CENT.search(each)]
        text = " ".join((node.name, argument.arg, sentences[0], *about)).replace("_", " ")
        words = re.findall(r"[a-z]+", text.lower())
        sign = sum(word in _ADDED for word in words) - sum(word in _TAKEN_OFF for word in words)
        if about and sign and isinstance(default, ast.Constant) and default.value == 0:
            yield Rate(function=node.name, parameter=argument.arg, sign=1 if sign > 0 else -1)
