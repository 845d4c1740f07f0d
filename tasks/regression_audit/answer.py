"""What an answer says about version 1's tests: read from its comments, strictly, and compared with the truth.

    # FAILING_TESTS: test_lockout, test_length
    # CLASSIFICATION: test_lockout=regression

A comment counts when it stands alone on its line and is written like this: one keyword in capitals, a colon, and names
of test functions, with commas between; or one name, an equals sign and a label. Blanks and tabs around colon, comma and
equals sign are free, further FAILING_TESTS lines add to the first, and empty places between commas are nothing. Any
other comment is only a comment.

To label a test is to say that it fails: every labelled name joins the failing ones, known or not. A test with two
labels, even equal ones, or with a word that is no label, has no label.
"""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from autotest_env.sandbox.suite import MAX_SUITE_BYTES

_FAILING = re.compile(r"#[ \t]*FAILING_TESTS[ \t]*:(?P<names>.*)")
_LABEL = re.compile(r"#[ \t]*CLASSIFICATION[ \t]*:(?P<name>[^=]*)=(?P<label>.*)")


class Label(StrEnum):
    """Why a test of version 1 fails on version 2, if it does. Answers use the first two."""

    REGRESSION = "regression"
    INTENTIONAL_CHANGE = "intentional_change"
    PASSES = "passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Names that are said to fail, and the label of each that has exactly one."""

    failing: frozenset[str]
    labels: Mapping[str, Label]


def parse_answer(test_code: str) -> Answer:
    """Read an answer; of a text that is no Python, or longer than a suite may be, nothing."""
    failing: set[str] = set()
    labelled: dict[str, list[str]] = {}
    for comment in _comments(test_code):
        if match := _FAILING.fullmatch(comment):
            failing.update(name for part in match["names"].split(",") if (name := part.strip(" \t")))
        elif (match := _LABEL.fullmatch(comment)) and (name := match["name"].strip(" \t")):
            labelled.setdefault(name, []).append(match["label"].strip(" \t"))
    words = {Label.REGRESSION.value: Label.REGRESSION, Label.INTENTIONAL_CHANGE.value: Label.INTENTIONAL_CHANGE}
    labels = {name: words[given[0]] for name, given in labelled.items() if len(given) == 1 and given[0] in words}
    return Answer(failing=frozenset(failing | set(labelled)), labels=labels)


def triage(answer: Answer, truth: Mapping[str, Label]) -> float:
    """Return Jaccard of the failing tests x max(0, 2 x balanced accuracy of their labels - 1), in [0, 1].

    `truth` holds every shown test, and at least one that fails. Balanced accuracy is the mean, over the labels that
    occur among the truly failing tests, of the share of those tests that are labelled right.
    """
    failing = {name for name, label in truth.items() if label is not Label.PASSES}
    jaccard = len(answer.failing & failing) / len(answer.failing | failing)
    shares = []
    for label in {truth[name] for name in failing}:
        tests = [name for name in failing if truth[name] is label]
        shares.append(sum(answer.labels.get(name) is label for name in tests) / len(tests))
    return jaccard * max(0.0, 2 * sum(shares) / len(shares) - 1)


def _comments(test_code: str) -> Iterator[str]:
    """Yield the comments that stand alone on their line; of a text that cannot be read to its end, none.

    Lines end and a byte order mark is passed over as in the run of the suite.
    """
    if len(test_code) > MAX_SUITE_BYTES:  # never run, and long to read
        return
    lines = io.StringIO(test_code.removeprefix("\ufeff"), newline=None).readlines()
    try:
        tokens = list(tokenize.generate_tokens(iter(lines).__next__))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
    for token in tokens:
        row, column = token.start
        if token.type == tokenize.COMMENT and not lines[row - 1][:column].strip(" \t\f"):
            yield token.string
