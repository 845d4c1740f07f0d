"""The embedded policy's suite: what the documentation of the shown code states, written down as tests.

No model, and nothing of the shown code is executed: it may be wrong, its documentation is not. Every documented example
becomes a test; "rounded to two decimals" and the like become a property over the documented arguments, and optional
parameters in per cent are tried where an example leaves them out.
"""

import ast
import contextlib
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from autotest_env.agents.examples import UNREADABLE, Documentation, Example, literal, read_documentation
from autotest_env.agents.percents import derive, read_rates
from autotest_env.syntax import parse, parse_expression

_MAX_TESTS = 30
_MAX_CALLS = 12
_NUMBER_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "cent": 2, "cents": 2}
_ROUNDED = re.compile(
    r"round(?:ed|s)?\b[^.]{0,60}?(?:\b(?P<digits>\d|one|two|three|four)\b[^.]{0,20}?\b(?:decimals?|digits?|places?)|\b(?P<unit>cents?)\b)",
    re.IGNORECASE,
)
_ABOUT_THE_RESULT = re.compile(r"\b(?:result|returns?|returned|total|value|amount)\b", re.IGNORECASE)
_NOTHING_DOCUMENTED = "def test_the_module_can_be_imported():\n    import {module}\n\n    assert {module} is not None\n"


def write_suite(module_name: str, files: Mapping[str, str]) -> str:
    """Return a pytest file that states what the shown files document.

    It always parses and always holds a test.
    """
    usable = module_name.isidentifier() and not keyword.iskeyword(module_name)
    suite = ""
    with contextlib.suppress(*UNREADABLE):
        suite = _documented(module_name, files.get(f"{module_name}.py", "")) if usable else ""
    return suite or _NOTHING_DOCUMENTED.format(module=module_name if usable else "builtins")


def _documented(module_name: str, source: str) -> str:
    """Return the tests of what a source documents, empty when that is nothing."""
    documentation = read_documentation(source)
    tests = [*_examples(documentation), *_properties(documentation), *_percents(documentation, source)][:_MAX_TESTS]
    used = {node.id for test in tests for node in ast.walk(parse(test)) if isinstance(node, ast.Name)}
    names = ", ".join(name for name in documentation.names if name in used)
    imports = ["import pytest", f"from {module_name} import {names}"] if names else ["import pytest"]
    text = ['"""Tests from the documentation of the shown code."""', "", *imports, "", "", "\n\n".join(tests)]
    return "\n".join(text) if tests else ""


def _examples(documentation: Documentation) -> Iterator[str]:
    for number, example in enumerate(documentation.examples, start=1):
        yield _test(f"{example.owner or 'module'}_example_{number}", _body(example))


def _test(name: str, body: Sequence[str]) -> str:
    return "\n".join([f"def test_{name.lower()}():", *(f"    {line}" if line else "" for line in body), ""])


def _body(example: Example) -> list[str]:
    setup = _setup(example)
    if example.raises:
        return [*setup, f"with pytest.raises({example.raises}):", f"    {example.expression}"]
    return [*setup, f"result = {example.expression}", f"assert {_claim(example.want)}"]


def _setup(example: Example) -> list[str]:
    return [line for statement in example.setup for line in statement.splitlines()]


def _claim(want: str) -> str:
    """Return the assertion for a documented value; floats only as exactly as they are documented."""
    try:
        value = literal(want)
    except ValueError:
        return f"repr(result) == {want!r}"
    if value is None or isinstance(value, bool):
        return f"result is {value!r}"
    if isinstance(value, float):
        return f"result == pytest.approx({value!r}, rel=1e-12, abs=1e-9)"
    return f"result == {value!r}"


def _properties(documentation: Documentation) -> Iterator[str]:
    """Yield the tests of documented rounding."""
    for owner, text in documentation.texts:
        facts = [fact for fact in documentation.examples if fact.owner == owner and _is_plain_call(fact, owner)]
        digits = _documented_digits(text)
        if digits is None or not facts or not all(_is_rounded(fact.want, digits) for fact in facts):
            continue
        calls = list(dict.fromkeys(_nudged(fact) for fact in facts))[:_MAX_CALLS]
        yield _test(f"{owner}_result_is_rounded", _rounding_body(calls, digits))


def _percents(documentation: Documentation, source: str) -> Iterator[str]:
    """Yield a test per example of a function with an optional rate: what the example gives with it."""
    for rate in read_rates(source):
        for number, example in enumerate(documentation.examples, start=1):
            checks = [
                (f"result = {expression}", f"assert {_claim(repr(value))}")
                for expression, value in derive(rate, example)
            ]
            if checks:
                lines = [line for check in checks for line in check]
                yield _test(f"{rate.function}_{rate.parameter}_{number}", [*_setup(example), *lines])


def _is_plain_call(example: Example, owner: str) -> bool:
    call = example.call
    plain = call is not None and isinstance(call.func, ast.Name) and call.func.id == owner
    return plain and not example.setup and not example.raises


def _documented_digits(text: str) -> int | None:
    """Return the number of decimals to which a sentence says that the result is rounded."""
    for sentence in re.split(r"\.\s|\n\s*\n", text):
        match = _ROUNDED.search(sentence)
        if match and _ABOUT_THE_RESULT.search(sentence):
            word = (match["digits"] or match["unit"]).lower()
            return _NUMBER_WORDS.get(word) or int(word)
    return None


def _is_rounded(want: str, digits: int) -> bool:
    try:
        value = literal(want)
    except ValueError:
        return False
    return isinstance(value, float) and round(value, digits) == value


class _Nudge(ast.NodeTransformer):
    """Make documented numbers uneven, so that rounding shows."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, float):
            return ast.Constant(round(node.value * 1.0137, 4))
        return node


def _nudged(example: Example) -> str:
    return ast.unparse(_Nudge().visit(parse_expression(example.expression)))


def _rounding_body(calls: Sequence[str], digits: int) -> list[str]:
    lines = ["results = ["]
    lines += [f"    lambda: {call}," for call in calls]
    lines += ["]", "for compute in results:", "    try:", "        result = compute()"]
    lines += ["    except (TypeError, ValueError, ArithmeticError):", "        continue"]
    return [*lines, f"    assert result == pytest.approx(round(result, {digits}), rel=0, abs=1e-9)"]
