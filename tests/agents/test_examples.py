"""Documented examples, read from text."""

import pytest

from autotest_env.agents.examples import Example, read_documentation


def module(docstring: str, signature: str = "def f(*a, **k)") -> str:
    return f"{signature}:\n    '''{docstring}'''\n"


def facts(docstring: str, extra: str = "") -> list[tuple[str, str]]:
    examples = read_documentation(module(docstring) + extra).examples
    return [(example.expression, example.raises or example.want) for example in examples]


def test_doctest_values_and_errors_are_read() -> None:
    text = """Do.

    >>> f(1,
    ...   b=2)
    3
    >>> f([])
    Traceback (most recent call last):
        ...
    ValueError: nothing to do
    """
    assert facts(text) == [("f(1, b=2)", "3"), ("f([])", "ValueError")]


def test_statements_before_an_example_are_its_setup() -> None:
    text = ">>> x = [1]\n    >>> f(x)\n    1\n    >>> x.append(2)\n    >>> f(x)\n    3\n    "
    last = read_documentation(module(text)).examples[-1]
    assert last == Example(owner="f", expression="f(x)", setup=("x = [1]", "f(x)", "x.append(2)"), want="3")


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("``f(1) == 2``", ("f(1)", "2")),
        ("For instance f(1, [2]) -> 3.5.", ("f(1, [2])", "3.5")),
        ("`f('a')` returns `'b'`.", ("f('a')", "'b'")),
        ("f(1) returns 2, f(2) returns 4", ("f(1)", "2")),
        ("f(0) gives None for an empty list", ("f(0)", "None")),
        ("f(-1) raises ValueError.", ("f(-1)", "ValueError")),
        ("f((1, 2)) == (2, 1)", ("f((1, 2))", "(2, 1)")),
    ],
)
def test_sentences_that_pair_a_call_with_a_literal_are_read(sentence: str, fact: tuple[str, str]) -> None:
    assert facts(sentence)[0] == fact


@pytest.mark.parametrize(
    "text",
    [
        "f(x) == 2",
        "f(1) == 2 * y",
        "f(1) == 2, 3",
        "f(1) returns about 3.3",
        "f(1) == 3.33...",
        "f(1) is the sum",
        "f(1) returns 5 %",
        "f(1) raises trouble",
        "self.f(1) == 2",
        ">>> f(Decimal('1'))\n    1\n    ",
        ">>> f(1)\n    <object at 0x7f>\n    ",
        ">>> f(1)  # doctest: +ELLIPSIS\n    1...\n    ",
        ">>> print(f(1))\n    1\n    ",
        ">>> f(\n    1\n    ",
    ],
)
def test_what_is_not_certain_is_left_out(text: str) -> None:
    assert facts(text) == []


def test_only_public_names_are_documented() -> None:
    source = "LIMIT = 3\n_x = 1\nclass Cart:\n    '''f(1) == 2'''\ndef _g():\n    '''_g() == 2'''\n"
    documentation = read_documentation(source)
    assert documentation.names == ("LIMIT", "Cart")
    assert documentation.examples == ()


def test_examples_of_methods_belong_to_their_class() -> None:
    source = "class Cart:\n    def add(self):\n        '''Add.\n\n        >>> Cart().add()\n        1\n        '''\n"
    assert read_documentation(source).examples == (Example(owner="Cart", expression="Cart().add()", want="1"),)
