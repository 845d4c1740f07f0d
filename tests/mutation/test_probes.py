"""Each kind of statement has its probe, which changes that statement and nothing else."""

import ast
import asyncio
import json
import textwrap

import pytest

from autotest_env.mutation import probes as module
from autotest_env.mutation.probes import has_neutral, probes
from autotest_env.tasks.program import load_program
from tests.mutation.conftest import load, outcome


def _function(body, arguments="a=None"):
    return f"def f({arguments}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def _names(source):
    return [probe.name for probe in probes(source)]


def _result(body, kind, *arguments, parameters="a=None"):
    """What the function gives in the first probe of a kind."""
    source = _function(body, parameters)
    (probe, *_) = [probe for probe in probes(source) if probe.name.endswith(f":{kind}")]
    return outcome(load(probe.text).f, *arguments)


@pytest.mark.parametrize(
    ("value", "perturbed"),
    [
        ("1", "2"),
        ("0", "1"),
        ("-1.5", "-0.5"),
        ("1e300", "-1e+300"),
        ("True", "False"),
        ("1 > 2", "True"),
        ("''", "'?'"),
        ("f'{1}'", "'1?'"),
        ("(1, 'x', None)", "(2, 'x?', None)"),
        ("1, 2", "(2, 3)"),
        ("*[1], 2", "(2, 3)"),
        ("[1, [2, []]]", "[2, [3, []]]"),
        ("{'k': 1, 'l': {'m': False}}", "{'k': 2, 'l': {'m': True}}"),
        ("[\n    1,\n    2,\n]", "[2, 3]"),
        ("(yield_ := 3)", "4"),
        ("a", "6"),
        ("a if a else None", "6"),
        ("'ä' 'ö'", "'äö?'"),
    ],
)
def test_a_returned_value_is_perturbed_by_its_type(value, perturbed):
    assert _result(f"return {value}", "return", 5) == perturbed


@pytest.mark.parametrize(
    "value", ["object", "None", "b'x'", "{1, 2}", "[]", "()", "{}", "[None, object]", "{'k': None}", "1j", "range(3)"]
)
def test_what_has_no_other_value_stays_the_same_object(value):
    kept = eval(value)
    assert load(next(iter(probes(_function("return a")))).text).f(kept) is kept


@pytest.mark.parametrize("value", ["None", "b'x'", "[]", "()", "{}", "{1}", "(None, [])", "lambda: 1", "...", "1j"])
def test_a_value_known_to_stay_the_same_has_no_probe(value):
    assert probes(_function(f"return {value}")) == ()


def test_shadowed_builtins_do_not_matter():
    assert _result("return type + list", "return", 1, 2, parameters="type, list, int=None, zip=None") == "4"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("x = 1\nreturn x", "2"),
        ("x: int = 1\nreturn x", "2"),
        ("x = y = 1\nreturn x, y", "(2, 2)"),
        ("x, (y, *z) = 1, (2, 3)\nreturn x, y, z", "(2, 3, [4])"),
        ("x = [None]\nx[0] = 5\nreturn x", "[6]"),
        ("x = 'a'; y = 2\nreturn x, y", "('a?', 2)"),
        ("x = (\n    1  # one\n    + 1\n)\nreturn x", "3"),
        ("x = 1 + \\\n    1\nreturn x", "3"),
        ("(x := 1)\nreturn x", "2"),
    ],
)
def test_an_assigned_value_is_perturbed(body, result):
    assert _result(body, "assign") == result


def test_of_an_augmented_assignment_the_right_operand_is_perturbed():
    assert _result("x = 10\nx -= a\nreturn x", "augmented", 3) == "6"
    assert _result("x = [1]\nx += [2]\nreturn x", "augmented") == "[1, 3]"
    assert _result("x = [1]\nx += 2, 3\nreturn x", "augmented") == "[1, 3, 4]"


def test_conditions_are_negated():
    assert _result("if a:\n    return 'yes'\nreturn 'no'", "if", True) == "'no'"
    assert _result("if a > 1 or a < 0:\n    return 'yes'\nreturn 'no'", "if", 5) == "'no'"
    assert _result("if n := a:\n    return n\nreturn 'no', n", "if", 3) == "('no', 3)"
    assert _result("while a:\n    return 'yes'\nreturn 'no'", "while", 0) == "'yes'"
    assert _result("while True:\n    return 'yes'\nreturn 'no'", "while") == "'no'"


def test_an_elif_is_an_if():
    source = _function("if a == 1:\n    return 1\nelif a == 2:\n    return 2\nelse:\n    return 3")
    assert [(probe.name, probe.line) for probe in probes(source) if probe.name.endswith("if")] == [
        ("f:1:if", 2),
        ("f:3:if", 4),
    ]
    negated = load(probes(source)[2].text).f
    assert [negated(number) for number in (1, 2, 3)] == [1, 3, 2]


@pytest.mark.parametrize(
    ("items", "seen"),
    [("a", "[1, 2]"), ("iter(a)", "[1, 2]"), ("1, 2", "[1]"), ("[]", "[]"), ("[x for x in a]", "[1, 2]")],
)
def test_a_loop_loses_its_last_item(items, seen):
    body = f"seen = []\nfor x in {items}:\n    seen.append(x)\nreturn seen"
    assert _result(body, "for", [1, 2, 3]) == seen


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return a", "[1, [2, 'x'], {'k': True}]"),
        ("x = a, a[0]\nreturn x", "([1, [2, 'x'], {'k': True}], 1)"),
        ("a += [3, 4]\nreturn a[-2:]", "[3, 4]"),
        ("seen = []\nfor x in a:\n    seen.append(x)\nreturn seen", "[1, [2, 'x'], {'k': True}]"),
        ("def g():\n    yield a\nreturn [*g()]", "[[1, [2, 'x'], {'k': True}]]"),
        ("def g():\n    yield from a\nreturn [*g()]", "[1, [2, 'x'], {'k': True}]"),
    ],
)
def test_a_neutral_text_changes_nothing(body, result):
    for probe in probes(_function(body)):
        if not probe.name.endswith(":expression"):
            assert outcome(load(probe.neutral).f, [1, [2, "x"], {"k": True}]) == result


def test_a_neutral_text_has_the_form_of_its_probe():
    found = probes(load_program("inventory").source)
    assert {probe.name for probe in found if probe.neutral} == set(
        filter(has_neutral, _names(load_program("inventory").source))
    )
    for probe in found:
        if probe.neutral:
            assert probe.neutral != probe.text
            assert _sizes(probe.neutral) == _sizes(probe.text)


def _sizes(text):
    """Sizes of all that a text is compiled to."""
    code = [compile(text, "<text>", "exec")]
    for each in code:
        code += [constant for constant in each.co_consts if isinstance(constant, type(each))]
    return [(len(each.co_code), len(each.co_consts), each.co_stacksize, each.co_names) for each in code]


def test_an_endless_loop_still_starts():
    body = "import itertools\nfor x in itertools.count():\n    if x == 3:\n        return x"
    assert _result(body, "for") == "3"


@pytest.mark.parametrize(
    ("body", "kind", "result"),
    [
        ("raise ValueError(a)", "raise", "None"),
        ("if not a: raise ValueError(\n    'a', \n    a)  # why\nreturn 1", "raise", "1"),
        ("del a[0]\nreturn a", "del", "[1, 2, 3]"),
        ("assert not a, 'why'\nreturn a", "assert", "[1, 2, 3]"),
        ("a.append(\n    4\n); a.append(5)\nreturn a", "expression", "[1, 2, 3, 5]"),
        ("(a\n .append(4))\nreturn a", "expression", "[1, 2, 3]"),
        ("a.append('''\n''')\nreturn a", "expression", "[1, 2, 3]"),
    ],
)
def test_a_statement_is_left_out(body, kind, result):
    assert _result(body, kind, [1, 2, 3]) == result


def test_generators_stay_generators():
    source = _function("yield\nyield 1\ngot = yield 2\nyield got\nyield from a\nprint((yield 3))\nreturn 4")
    assert _names(source) == ["f:2:yield", "f:3:assign", "f:4:yield", "f:5:yield", "f:6:expression", "f:7:return"]
    values = {probe.name: list(load(probe.text).f([7, 8])) for probe in probes(source)}
    assert values["f:2:yield"] == [None, 2, 2, None, 7, 8, 3]
    assert values["f:4:yield"] == [None, 1, 2, None, 7, 8, 3]
    assert values["f:5:yield"] == [None, 1, 2, None, 7, 3]
    assert values["f:6:expression"] == [None, 1, 2, None, 7, 8]
    only = probes(_function("print((yield 1))"))[0]
    assert list(load(only.text).f()) == []


def test_asynchronous_functions_stay_asynchronous():
    source = textwrap.dedent("""
        import asyncio

        async def count(n):
            for i in range(n):
                yield i

        async def total(n):
            await asyncio.sleep(0)
            found = 0
            async for i in count(n):
                found += i
            async with asyncio.Lock():
                return await one() + found

        async def one():
            return 1
    """)
    assert asyncio.run(load(source).total(4)) == 7
    results = {probe.name: asyncio.run(load(probe.text).total(4)) for probe in probes(source)}
    assert results == {
        "count:1:for": 4,
        "count:2:yield": 11,
        "total:1:expression": 7,
        "total:2:assign": 8,
        "total:3:for": 4,
        "total:4:augmented": 11,
        "total:6:return": 8,
        "one:1:return": 8,
    }


def test_what_is_no_statement_of_a_function_has_no_probe():
    source = textwrap.dedent('''
        """Text."""
        import math
        LIMIT = 3
        print("imported") if LIMIT > 3 else None

        @staticmethod
        class Box(dict):
            """Text."""
            size = 1
            size += 1

            def open(self):
                """Text."""
                import os
                from os import path
                global LIMIT
                with path as p:
                    pass
                try:
                    ...
                except OSError:
                    return
                for x in ():
                    continue
                else:
                    return None
    ''')
    assert _names(source) == ["Box.open:9:for"]


def test_names_are_unique_and_tell_where_a_statement_is():
    source = textwrap.dedent('''
        if True:
            def f(a):
                """Text."""
                def inner(b):
                    match b:
                        case [1, x] if x > 1:
                            return x
                        case _:
                            y = [z for z in a]
                            return y
                class Local:
                    def g(self):
                        return 1
                try:
                    del a
                except ValueError:
                    raise
                else:
                    return 1
                finally:
                    a = 2
        else:
            def f(a):
                return a
        class C:
            @property
            def p(self):
                return self._p
            @p.setter
            def p(self, value):
                self._p = value
    ''')
    assert [(probe.name, probe.line) for probe in probes(source)] == [
        ("f:4:del", 16),
        ("f:5:raise", 18),
        ("f:6:return", 20),
        ("f:7:assign", 22),
        ("f.inner:2:return", 8),
        ("f.inner:3:assign", 10),
        ("f.inner:4:return", 11),
        ("f.Local.g:1:return", 14),
        ("f#2:1:return", 25),
        ("C.p:1:return", 29),
        ("C.p#2:1:assign", 32),
    ]


@pytest.mark.parametrize(
    "path", [module.__file__, json.decoder.__file__, textwrap.__file__, asyncio.base_events.__file__]
)
def test_every_probe_of_real_code_compiles_and_differs_in_its_own_lines_only(path):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        source = file.read()
    lines = source.splitlines()
    statements = {node.lineno: node.end_lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)}
    found = probes(source)
    assert len({probe.name for probe in found}) == len(found) > 30
    for probe in found[::7]:
        compile(probe.text, "<probe>", "exec")
        changed = probe.text.splitlines()
        assert len(changed) == len(lines)
        different = {number for number, pair in enumerate(zip(lines, changed, strict=True), 1) if len(set(pair)) == 2}
        assert different
        assert different <= set(range(probe.line, statements[probe.line] + 1))


def test_the_inventory_has_a_probe_for_every_rule():
    found = _names(load_program("inventory").source)
    assert {name.split(":")[2] for name in found} == {"assign", "if", "for", "raise", "del", "expression", "return"}
    assert "Inventory.add_item:2:raise" in found
    assert 45 <= len(found) <= 70
