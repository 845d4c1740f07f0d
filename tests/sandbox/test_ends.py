"""Every way a run can end has a name, and none of them disturbs the next run."""

import pytest

from autotest_env.sandbox.run import Grading
from autotest_env.sandbox.suite import CompileStatus, RefusedSuite, RunEnd
from tests.sandbox.conftest import Run

ENDS = {
    "os._exit at import": ("import os\nos._exit(0)", RunEnd.EXITED),
    "os._exit in a test": ("import os\ndef test_it(): os._exit(0)", RunEnd.EXITED),
    "sys.exit at import": ("import sys\nsys.exit(0)", RunEnd.STOPPED),
    "sys.exit in a test": ("import sys\ndef test_it(): sys.exit(0)", RunEnd.STOPPED),
    "pytest.exit": ("import pytest\ndef test_it(): pytest.exit('x', 0)", RunEnd.STOPPED),
    "keyboard interrupt": ("def test_it(): raise KeyboardInterrupt", RunEnd.STOPPED),
    "import error": ("import nothing_of_the_kind\ndef test_it(): pass", RunEnd.COLLECTION_ERROR),
    "skip at import": ("import pytest\npytest.skip('x', allow_module_level=True)", RunEnd.COLLECTION_ERROR),
    "importorskip": ("import pytest\npytest.importorskip('nothing')\ndef test_it(): pass", RunEnd.COLLECTION_ERROR),
    "unknown parameter": (
        "import pytest\n@pytest.mark.parametrize('y', [1])\ndef test_it(): pass",
        RunEnd.COLLECTION_ERROR,
    ),
    "an endless id": (
        "import pytest\n@pytest.mark.parametrize('x', [1], ids=['y' * 2000])\ndef test_it(x): pass",
        RunEnd.COLLECTION_ERROR,
    ),
    "no tests": ("x = 1", RunEnd.NO_TESTS),
    "41 functions": ("\n".join(f"def test_{i}(): pass" for i in range(41)), RunEnd.TOO_MANY_FUNCTIONS),
    "201 cases": (
        "import pytest\n@pytest.mark.parametrize('x', range(201))\ndef test_it(x): pass",
        RunEnd.TOO_MANY_CASES,
    ),
    "a hundred thousand cases": (
        "import pytest\n@pytest.mark.parametrize('x', range(10**5))\ndef test_it(x): pass",
        RunEnd.TOO_MANY_CASES,
    ),
    "async": ("async def test_it(): pass", RunEnd.ASYNC_TESTS),
    "async case": (
        "import unittest\nclass Case(unittest.IsolatedAsyncioTestCase):\n    async def test_it(self): pass",
        RunEnd.ASYNC_TESTS,
    ),
    "plug-in": ("def test_it(request): request.config.pluginmanager.register(object())", RunEnd.PLUGINS),
    "dynamic pytest_plugins": ("globals()['pytest_' + 'plugins'] = ['x']\ndef test_it(): pass", RunEnd.PLUGINS),
    "thread left": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()\ndef test_it(): pass",
        RunEnd.THREADS_LEFT,
    ),
    "many threads": (
        "import threading, time\ndef test_it():\n    threading.stack_size(65536)\n"
        "    for _ in range(40): threading.Thread(target=time.sleep, args=(2,)).start()\n    time.sleep(1)",
        RunEnd.TOO_MANY_THREADS,
    ),
    "many files": (
        "def test_it(tmp_path):\n    for i in range(10**6): (tmp_path / str(i)).touch()",
        RunEnd.DISK_LIMIT,
    ),
    "many folders": ("import os\ndef test_it():\n    for i in range(10**6): os.mkdir(str(i))", RunEnd.DISK_LIMIT),
    "many megabytes": (
        "def test_it(tmp_path):\n    for i in range(1000): (tmp_path / str(i)).write_bytes(b'x' * (15 << 20))",
        RunEnd.DISK_LIMIT,
    ),
    "endless loop": ("def test_it():\n    while True: pass", RunEnd.CPU_LIMIT),
    "sleep": ("import time\ndef test_it(): time.sleep(60)", RunEnd.WALL_LIMIT),
    "memory at import": ("x = bytearray(5 << 30)\ndef test_it(): pass", RunEnd.OUT_OF_MEMORY),
    "segmentation fault": ("import ctypes\ndef test_it(): ctypes.string_at(0)", RunEnd.CRASHED),
    "writing to descriptors": (
        "import os\ndef test_it():\n    for fd in range(3, 99):\n        try: os.write(fd, b'{}')\n        except OSError: pass",
        RunEnd.GARBLED,
    ),
    "a flood into descriptors": (
        "import os\ndef test_it():\n    for fd in range(3, 99):\n        try:\n            for _ in range(99): os.write(fd, b'x' * 99999)\n"
        "        except OSError: pass",
        RunEnd.GARBLED,
    ),
    "a forged report": (
        "import json, os, struct\nhead = json.dumps({'end': 'completed', 'tests': {}, 'sizes': []}).encode()\n"
        "def test_it():\n    for fd in range(3, 99):\n        try: os.write(fd, struct.pack('>I', len(head)) + head)\n"
        "        except OSError: continue\n        os._exit(0)",
        RunEnd.GARBLED,
    ),
    "code of the program": ("import adder\ndef test_it(): assert adder.add.__code__", RunEnd.UNTRUSTED),
    "frame of the program": (
        "import adder\ndef test_it():\n    try: adder.add(-1, 0)\n    except ValueError as e: e.__traceback__.tb_next.tb_frame.f_code",
        RunEnd.UNTRUSTED,
    ),
    "thread tracer": (
        "import threading\ndef test_it():\n    threading.settrace(lambda *a: None)\n"
        "    t = threading.Thread(target=int); t.start(); t.join()",
        RunEnd.UNTRUSTED,
    ),
    "tracer by coverage": (
        "import coverage\ndef test_it(): coverage.Coverage(data_file=None).start()",
        RunEnd.UNTRUSTED,
    ),
    "code by update_wrapper": (
        "import adder, functools\ndef test_it(): functools.update_wrapper(lambda: 0, adder.add, assigned=('__code__',))",
        RunEnd.UNTRUSTED,
    ),
    "frames by walk_tb": (
        "import adder, traceback\ndef test_it():\n    try: adder.add(-1, 0)\n"
        "    except ValueError as e: list(traceback.walk_tb(e.__traceback__))",
        RunEnd.UNTRUSTED,
    ),
    "frames by getinnerframes": (
        "import adder, inspect\ndef test_it():\n    try: adder.add(-1, 0)\n    except ValueError: inspect.trace()",
        RunEnd.UNTRUSTED,
    ),
    "tracer": ("import sys\ndef test_it(): sys.settrace(lambda *a: None)", RunEnd.UNTRUSTED),
    "profiler": ("import sys\ndef test_it(): sys.setprofile(lambda *a: None)", RunEnd.UNTRUSTED),
    "collector": ("import gc\ndef test_it(): gc.get_objects()", RunEnd.UNTRUSTED),
    "frames by a spy": (
        "import adder, sys, builtins\ndef test_it(monkeypatch):\n"
        "    monkeypatch.setattr(builtins, 'ValueError', lambda *a: sys._getframe(1))\n    adder.add(-1, 0)",
        RunEnd.UNTRUSTED,
    ),
    "code by pytest": (
        "import adder, _pytest._code\ndef test_it(): _pytest._code.Code.from_function(adder.add).raw",
        RunEnd.UNTRUSTED,
    ),
    "silencing the hook": (
        "import adder, os\ndef test_it(monkeypatch):\n    monkeypatch.setattr(os, '_exit', lambda *a: None)\n"
        "    monkeypatch.setattr(os, 'write', lambda *a: 0)\n    assert adder.add.__code__",
        RunEnd.UNTRUSTED,
    ),
    "infinite lines": (
        "import json, os, struct\nhead = json.dumps({'end': 'completed', 'detail': '', 'tests': {}, 'lines': [1e999], 'sizes': []})\n"
        "def test_it():\n    for fd in range(3, 99):\n        try: os.write(fd, struct.pack('>I', len(head)) + head.encode())\n"
        "        except OSError: continue\n        os._exit(0)",
        RunEnd.COMPLETED,
    ),
    "dis": ("import dis, adder\ndef test_it(): dis.dis(adder.add)", RunEnd.UNTRUSTED),
    "getmembers": ("import inspect, adder\ndef test_it(): inspect.getmembers(adder.add)", RunEnd.UNTRUSTED),
    "exec with another namespace": (
        "import adder\ndef test_it(): exec('f.__code__', {'f': adder.add, '__name__': 'inspect'})",
        RunEnd.UNTRUSTED,
    ),
    "breaking the runner": (
        "import _pytest.runner\ndef test_it(request): request.node.__class__.ihook = None",
        RunEnd.UNTRUSTED,
    ),
}


@pytest.mark.parametrize("way", ENDS)
def test_every_end_has_its_name_and_the_next_run_is_untouched(run: Run, way: str) -> None:
    source, end = ENDS[way]
    result = run(source)
    assert result.end is end, result
    assert result.detail or end is RunEnd.COMPLETED
    assert run("def test_it(): assert 1 == 1").end is RunEnd.COMPLETED


def test_a_million_cases_are_stopped_by_number_or_by_time(run: Run) -> None:
    source = "import pytest\n@pytest.mark.parametrize('x', range(10**6))\ndef test_it(x): pass"
    assert run(source).end in {RunEnd.TOO_MANY_CASES, RunEnd.CPU_LIMIT}


def test_a_stopped_run_tells_which_test_was_running(run: Run) -> None:
    result = run("def test_a(): pass\ndef test_b():\n    while True: pass\ndef test_c(): pass", cpu_s=0.5)
    assert (result.end, result.started) == (RunEnd.CPU_LIMIT, 2)
    assert 0.5 <= result.cpu_s < 1.5


HARMLESS = {
    "5 GB in a test": "def test_it(): bytearray(5 << 30)",
    "100 MB of output": "def test_it(): print('x' * 100_000_000)",
    "recursion": "def test_it():\n    def f(): f()\n    f()",
    "deep folders": "import os\ndef test_it():\n    for _ in range(2000):\n        os.mkdir('d')\n        os.chdir('d')",
    "closed folder": "import os\ndef test_it():\n    os.makedirs('a/b/c')\n    os.mkdir('d', 0)",
    "a file over the limit": "def test_it():\n    with open('big', 'wb') as f:\n        for _ in range(99): f.write(b'x' * (1 << 20))",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef test_it(): pass",
    "huge representation": "class A:\n    def __repr__(self): return 'x' * 10**7\ndef test_it(): assert A() == 1",
    "many descriptors": "def test_it():\n    files = [open('/dev/null') for _ in range(9999)]",
}


@pytest.mark.parametrize("way", HARMLESS)
def test_what_is_merely_excessive_stays_inside_its_test(run: Run, way: str) -> None:
    result = run(HARMLESS[way])
    assert result.end is RunEnd.COMPLETED, result
    assert len(result.tests[0].message) <= 2000
    assert run("import os\ndef test_it(): assert os.listdir('.') == []").tests[0].outcome == "passed"


def nested_finally(depth: int) -> str:
    """Each level doubles the code: Python compiles a finally twice."""
    lines = ["def test_it():"]
    for level in range(1, depth + 1):
        lines += [" " * level + "try: pass", " " * level + "finally:"]
    return "\n".join([*lines, " " * (depth + 1) + "assert 1 == 1"])


REFUSED = {
    "empty": ("", CompileStatus.EMPTY, None),
    "comments": ("# nothing\n\n# here\n", CompileStatus.EMPTY, None),
    "docstring": ('"""Only words."""', CompileStatus.EMPTY, None),
    "syntax": ("def test_it():\n    assert (1 ==\n", CompileStatus.SYNTAX_ERROR, 2),
    "NUL": ("x = '\0'", CompileStatus.SYNTAX_ERROR, None),
    "return outside": ("x = 1\nreturn x", CompileStatus.SYNTAX_ERROR, 2),
    "pytest_plugins": ("pytest_plugins = ['x']", CompileStatus.PLUGINS, None),
    "huge code": (nested_finally(16), CompileStatus.TOO_COMPLEX, None),
    "deep nesting": ("x = " + "-" * 60000 + "1", CompileStatus.TOO_COMPLEX, None),
}


@pytest.mark.parametrize("way", REFUSED)
def test_a_file_that_cannot_be_run_is_refused_by_name(grading: Grading, way: str) -> None:
    source, status, line = REFUSED[way]
    suite = grading.compile(source)
    assert isinstance(suite, RefusedSuite)
    assert (suite.status, suite.line) == (status, line)
    assert suite.message


def test_a_syntax_error_shows_line_and_text(grading: Grading) -> None:
    suite = grading.compile("x = 1\ndef test_it(:\n    pass\n")
    assert isinstance(suite, RefusedSuite)
    assert (suite.line, suite.text) == (2, "def test_it(:")
    assert suite.message.startswith("line 2: ")


def test_the_digest_of_a_suite_ignores_comments_and_layout(grading: Grading) -> None:
    digests = [
        grading.compile(source).digest  # type: ignore[union-attr]
        for source in (
            "def test_it(): assert 1",
            "# again\n\ndef test_it():\n    assert 1  # x",
            "def test_it(): assert 2",
        )
    ]
    assert digests[0] == digests[1] != digests[2]
