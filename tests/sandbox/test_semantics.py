"""A run means what pytest means: every style of test works, and each test gets the outcome pytest gives it."""

import pytest

from autotest_env.sandbox.suite import RunEnd, TestOutcome
from tests.sandbox.conftest import Run

PASSED, FAILED, ERROR = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.ERROR


def outcomes(run: Run, source: str) -> dict[str, TestOutcome]:
    result = run(source)
    assert result.end is RunEnd.COMPLETED, result
    return {test.id: test.outcome for test in result.tests}


STYLES = {
    "function": "from adder import add\ndef test_it(): assert add(1, 2) == 3",
    "star import": "from adder import *\ndef test_it(): assert add(1, 2) == 3",
    "import as": "import adder as m\ndef test_it(): assert m.add(1, 2) == 3",
    "import inside": "def test_it():\n    from adder import add\n    assert add(1, 2) == 3",
    "class": "import adder\nclass TestAdd:\n    def setup_method(self): self.x = 1\n"
    "    def test_it(self): assert adder.add(self.x, 2) == 3",
    "unittest": "import unittest, adder\nclass AddCase(unittest.TestCase):\n    def setUp(self): self.x = 1\n"
    "    def test_it(self): self.assertEqual(adder.add(self.x, 2), 3)",
    "fixture": "import pytest, adder\n@pytest.fixture\ndef x():\n    yield 1\ndef test_it(x): assert adder.add(x, 2) == 3",
    "monkeypatch": "import adder\ndef test_it(monkeypatch):\n    monkeypatch.setenv('A', '1')\n"
    "    monkeypatch.setattr(adder, 'add', lambda *a: 9)\n    assert adder.add(1, 2) == 9",
    "tmp_path": "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('x')\n    assert (tmp_path / 'a').read_text() == 'x'",
    "touch": "def test_it(tmp_path):\n    (tmp_path / 'a').touch()\n    assert (tmp_path / 'a').exists()",
    "copy": "import shutil\ndef test_it(tmp_path):\n    (tmp_path / 'a').write_text('x')\n    shutil.copy(tmp_path / 'a', tmp_path / 'b')\n"
    "    assert (tmp_path / 'b').read_text() == 'x'",
    "hypothesis that fails": "from hypothesis import given, strategies as st\nimport pytest, adder\n@given(st.integers(0))\n"
    "def check(a): assert adder.add(a, 1) < 5\ndef test_it():\n    with pytest.raises(AssertionError): check()",
    "record_property": "def test_it(record_property): record_property('a', 1)",
    "an idle pool": "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    "def test_it(): assert pool.submit(abs, -1).result() == 1",
    "capsys": "def test_it(capsys):\n    print('x')\n    assert capsys.readouterr().out == 'x\\n'",
    "capfd": "import os\ndef test_it(capfd):\n    os.write(1, b'x')\n    assert capfd.readouterr().out == 'x'",
    "caplog": "import logging\ndef test_it(caplog):\n    logging.getLogger('a').warning('x')\n    assert 'x' in caplog.text",
    "raises": "import pytest, adder\ndef test_it():\n    with pytest.raises(ValueError, match='negative'): adder.add(-1, 0)",
    "warns": "import pytest, warnings\ndef test_it():\n    with pytest.warns(UserWarning): warnings.warn('x')",
    "approx": "import pytest\ndef test_it(): assert 0.1 + 0.2 == pytest.approx(0.3)",
    "mock": "import adder\nfrom unittest import mock\ndef test_it():\n"
    "    with mock.patch('adder.add', autospec=True) as spy:\n        adder.add(1, 2)\n        spy.assert_called_once_with(1, 2)",
    "asyncio.run": "import asyncio\nasync def work(): return 1\ndef test_it(): assert asyncio.run(work()) == 1",
    "threads": "import threading\ndef test_it():\n    got = []\n    worker = threading.Thread(target=got.append, args=(1,))\n"
    "    worker.start(); worker.join()\n    assert got == [1]",
    "hypothesis": "from hypothesis import given, strategies as st\nimport adder\n@given(st.integers(0), st.integers())\n"
    "def test_it(a, b): assert adder.add(a, b) == a + b",
    "signature": "import inspect, adder\ndef test_it(): assert list(inspect.signature(adder.add).parameters) == ['left', 'right']",
    "emoji": "def test_it(): assert '🎉' != '漢字'",
    "crlf": "def test_it():\r\n    assert 1 == 1\r\n",
    "byte order mark": "\ufeffdef test_it(): assert 1 == 1",
    "tabs": "def test_it():\n\tassert 1 == 1",
    "coding cookie": "# coding: latin-1\ndef test_it(): assert len('é') == 1",
    "seeded random": "import random\ndef test_it(): assert random.random() == 0.8444218515250481",
}


@pytest.mark.parametrize("style", STYLES)
def test_every_usual_style_of_test_passes(run: Run, style: str) -> None:
    result = run(STYLES[style])
    assert (result.end, [test.outcome for test in result.tests]) == (RunEnd.COMPLETED, [PASSED]), result


def test_parameter_sets_are_cases_of_one_function(run: Run) -> None:
    result = run("import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_it(x): assert x == 1")
    assert [(test.id, test.function, test.outcome) for test in result.tests] == [
        ("test_it[1]", "test_it", PASSED),
        ("test_it[2]", "test_it", FAILED),
    ]


def test_outcomes_other_than_a_pass_are_kept_apart(run: Run) -> None:
    source = """
import pytest, unittest
@pytest.fixture
def broken(): raise RuntimeError
@pytest.fixture
def leaky():
    yield
    raise RuntimeError
def test_setup(broken): pass
def test_teardown(leaky): pass
def test_call_and_teardown(leaky): assert 0
def test_skip(): pytest.skip('x')
@pytest.mark.skip
def test_marked(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
def test_subtests(subtests):
    with subtests.test('a'): assert 0
class Case(unittest.TestCase):
    def test_fails(self): self.assertEqual(1, 2)
    def test_errors(self): raise RuntimeError
    def test_subtest(self):
        with self.subTest(a=1): self.assertEqual(1, 2)
    def test_skips(self): raise unittest.SkipTest('x')
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(1, 2)
"""
    assert outcomes(run, source) == {
        "test_setup": ERROR,
        "test_teardown": ERROR,
        "test_call_and_teardown": FAILED,
        "test_skip": TestOutcome.SKIPPED,
        "test_marked": TestOutcome.SKIPPED,
        "test_xfail": TestOutcome.XFAILED,
        "test_xpass": TestOutcome.XPASSED,
        "test_strict": FAILED,
        "test_subtests": FAILED,
        "Case::test_fails": FAILED,
        "Case::test_errors": FAILED,
        "Case::test_subtest": FAILED,
        "Case::test_skips": TestOutcome.SKIPPED,
        "Case::test_expected": TestOutcome.XFAILED,
    }


def test_a_failed_assertion_is_told_from_an_error_of_the_program(run: Run) -> None:
    source = """
import pytest, unittest, adder
def test_asserts(): assert adder.add(1, 1) == 3
def test_fails(): pytest.fail('x')
def test_raises(): adder.add(-1, 0)
class Case(unittest.TestCase):
    def test_case(self): self.assertEqual(1, 2)
"""
    assert {test.id: test.asserted for test in run(source).tests} == {
        "test_asserts": True,
        "test_fails": True,
        "test_raises": False,
        "Case::test_case": True,
    }


def test_a_represented_failure_has_message_and_line_and_nothing_that_varies(run: Run) -> None:
    source = "import adder\ndef test_it(tmp_path):\n    assert (adder.add(1, 1), object(), tmp_path) == 3\n"
    first, second = run(source).tests[0], run(source).tests[0]
    assert first == second
    assert first.message.startswith("AssertionError: assert (2, <object object at 0x...>, PosixPath('./tmp/test_it0')")
    assert first.line == 3


def test_long_messages_in_any_script_stay_a_report(run: Run) -> None:
    source = (
        "import pytest\n@pytest.mark.parametrize('x', range(200))\ndef test_it(x): assert x is None, '😀\\udcff' * 3000"
    )
    result = run(source)
    assert (result.end, len(result.tests)) == (RunEnd.COMPLETED, 200)
    assert all(0 < len(test.message) <= 2000 for test in result.tests)


def test_a_test_that_ends_the_session_did_not_pass(run: Run) -> None:
    result = run("import sys\ndef test_a(): pass\ndef test_b(): sys.exit(0)\ndef test_c(): pass")
    assert (result.end, [test.outcome for test in result.tests]) == (RunEnd.STOPPED, [PASSED, ERROR])


@pytest.mark.parametrize("name", ["requests", "openenv", "autotest_env", "autotest_env.sandbox.run", "nothing_at_all"])
def test_what_a_run_may_not_import_is_as_if_not_installed(run: Run, name: str) -> None:
    result = run(f"import {name}\ndef test_it(): pass")
    top = name.partition(".")[0]
    assert result.end is RunEnd.COLLECTION_ERROR
    assert result.detail == f"line 1: ModuleNotFoundError: No module named {top!r}"
    assert outcomes(run, f"import pytest\ndef test_it(): pytest.importorskip({top!r})") == {
        "test_it": TestOutcome.SKIPPED
    }


def test_a_suite_may_import_what_it_wrote(run: Run) -> None:
    source = (
        "def test_it(tmp_path, monkeypatch):\n    (tmp_path / 'written.py').write_text('x = 3')\n"
        "    monkeypatch.syspath_prepend(tmp_path)\n    import written\n    assert written.x == 3"
    )
    assert outcomes(run, source) == {"test_it": PASSED}


def test_hidden_runs_build_no_representation(run: Run) -> None:
    test = run("def test_it(): assert 1 == 2", represent=False).tests[0]
    assert (test.outcome, test.message, test.line) == (FAILED, "", None)


def test_lines_are_those_that_coverage_counts(run: Run) -> None:
    result = run("from adder import add\ndef test_it(): assert add(1, 2) == 3", cover=True)
    assert result.lines == {1, 4, 6, 8, 9}


def test_nothing_of_one_run_is_seen_by_the_next(run: Run) -> None:
    source = """
import pathlib, os, tempfile
places = [pathlib.Path(place) / 'left' for place in ('.', tempfile.gettempdir(), os.environ['HOME'], '..')]
def test_it():
    assert not any(place.exists() for place in places)
    for place in places: place.write_text('x')
"""
    for _ in range(3):
        assert outcomes(run, source) == {"test_it": PASSED}


def test_a_run_sees_the_pinned_world(run: Run) -> None:
    source = """
import os, random, sys, time
def test_it():
    assert sorted(os.environ) == ['HOME', 'LANG', 'LC_ALL', 'PATH', 'PYTEST_CURRENT_TEST', 'PYTHONHASHSEED', 'TMPDIR', 'TZ']
    assert (time.tzname[0], sys.argv, os.environ['PYTHONHASHSEED']) == ('UTC', ['pytest'], '0')
    assert hash('a') == random.random() == 0
"""
    first, second = (run(source).tests[0].message for _ in range(2))
    assert first == second
    assert "0.8444218515250481" in first
