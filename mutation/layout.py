"""What a text looks like without meaning anything: docstrings, blank lines, comments."""

import ast
import random
import re

from autotest_env.mutation.bodies import first_free, has_docstring
from autotest_env.mutation.choice import walk
from autotest_env.mutation.facts import FUNCTIONS
from autotest_env.mutation.names import READS_DOCSTRINGS, Names, mentions

_WORDS = "figure amount value input entry record step part rule note detail case given kept made used read".split()


def replace_docstrings(tree: ast.Module, text: str, rng: random.Random, *, drop: bool) -> None:
    """Drop every docstring, or put words there that `text` does not hold.

    Nothing happens in a program that reads docstrings.
    """
    words = [word for word in _WORDS if word not in text] or ["text"]
    if mentions(tree, READS_DOCSTRINGS):
        return
    for node in walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and has_docstring(node):
            del node.body[0]
            if not drop or not (node.body or isinstance(node, ast.Module)):
                node.body.insert(0, ast.Expr(ast.Constant(_sentences(words, rng))))


def add_gaps(tree: ast.Module, names: Names, rng: random.Random) -> str:
    """Put marks between statements that `fill_gaps` turns into blank lines and comments; return the mark's name."""
    mark = names.private()
    for node in walk(tree):
        if isinstance(node, (ast.Module, *FUNCTIONS)):
            start = first_free(node) if isinstance(node, ast.Module) else int(has_docstring(node))
            for index in range(len(node.body), start, -1):
                if rng.random() < 0.3:
                    node.body.insert(index - 1, ast.Expr(ast.Name(f"{mark}{rng.randint(1, 3)}", ast.Load())))
    return mark


def fill_gaps(text: str, mark: str, rng: random.Random) -> str:
    """Turn the marks of a text into blank lines and comments, and start it with some."""

    def lines(match: re.Match[str]) -> str:
        return "\n".join(_line(match[1], rng) for _ in range(int(match[2])))

    top = "".join(f"{_line('', rng)}\n" for _ in range(rng.randint(0, 9)))
    return top + re.sub(rf"^( *){mark}(\d)$", lines, text, flags=re.MULTILINE) + "\n"


def _line(indent: str, rng: random.Random) -> str:
    return "" if rng.random() < 0.6 else f"{indent}# {' '.join(rng.choices(_WORDS, k=rng.randint(2, 5)))}"


def _sentences(words: list[str], rng: random.Random) -> str:
    sentences = [" ".join(rng.choices(words, k=rng.randint(3, 8))).capitalize() for _ in range(rng.randint(1, 3))]
    return ". ".join(sentences) + "."
