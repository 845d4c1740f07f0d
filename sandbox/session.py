"""One pytest session per fork server, prepared once; each child uses its copy for one suite and dies.

Everything that is the same for all runs happens in `prepare`: plug-ins, options, fixtures of pytest itself. Only the
submitted file counts: no conftest, no ini file, no plug-ins from outside. Tests go through pytest's own run protocol
(driving items by hand loses unittest failures); only the making of reports is replaced, because rendering one traceback
costs more than a run.
"""

import inspect
import marshal
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.config import Config, get_config
from _pytest.main import Session

from autotest_env.sandbox.audit import trusted_namespaces
from autotest_env.sandbox.recorder import EndRun, Facts, Modules, Recorder, steady, suite_line
from autotest_env.sandbox.rewrite import SUITE_FILE, compile_suite
from autotest_env.sandbox.suite import MAX_CASES, MAX_FUNCTIONS, MAX_ID_CHARS, RunEnd

_SUITE_MODULE = "test_suite"
_WARM_UP_ROUNDS = 3
_WARM_UP_SUITE = """
import unittest
import pytest

@pytest.fixture
def thing():
    yield 1

@pytest.mark.parametrize("x", [1, 2])
def test_parameters(x):
    assert x == 1

def test_fixture(thing):
    assert thing == 1

class TestClass:
    def test_method(self):
        assert self

class Case(unittest.TestCase):
    def test_case(self):
        self.assertEqual(1, 1)
"""
_PLUGINS_OFF = "cacheprovider doctest pastebin stepwise setuponly setupplan faulthandler".split()
_PLUGINS_OFF += ["threadexception", "unraisableexception"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configured pytest session that has collected nothing yet."""

    config: Config
    session: Session
    recorder: Recorder
    trusted: frozenset[int]
    """Namespaces of everything that was loaded before any suite."""


class _Terminal:
    """Stands where pytest looks for its terminal reporter: assertion messages ask it for a writer."""

    def __init__(self, config: Config) -> None:
        self._tw = pytest.TerminalReporter(config, StringIO())._tw


def prepare(folder: Path) -> Prepared:
    """Configure pytest once; `folder` is the working folder that every run will find itself in."""
    options = ["-q", "-s", "-c", "/dev/null", f"--rootdir={folder}", "--noconftest", f"--basetemp={folder / 'tmp'}"]
    options += ["-o", "addopts=", "--disable-plugin-autoload"]
    for name in _PLUGINS_OFF:
        options += ["-p", f"no:{name}"]
    config = get_config(options)
    config = config.pluginmanager.hook.pytest_cmdline_parse(pluginmanager=config.pluginmanager, args=options)
    config._do_configure()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Terminal(config), "terminalreporter")
    session = Session.from_config(config)
    config.hook.pytest_sessionstart(session=session)
    recorder = Recorder(folder)
    config.pluginmanager.register(recorder, "autotest-recorder")
    return Prepared(config, session, recorder, trusted_namespaces())


def warm_up(folder: Path) -> None:
    """Collect a small suite of our own in a session that is then thrown away; nothing of it is run.

    The interpreter adapts code that it has run a few times, and pytest keeps what it has looked up: done here, once, no
    child has to do it again. It saves a tenth of a run.
    """
    prepared = prepare(folder)
    code = compile_suite(_WARM_UP_SUITE, prepared.config)[1]
    modules = Modules(suite_module(), make_module("warm_up"))
    for _ in range(_WARM_UP_ROUNDS):
        prepared.recorder.begin(Facts(), modules, represent=False)
        _collect(prepared.session, modules.suite, code)
        prepared.session._collection_cache.clear()
    prepared.config._ensure_unconfigure()
    for module in (modules.suite, modules.program):
        del sys.modules[module.__name__]


def run_suite(
    prepared: Prepared, code: bytes, modules: Modules, *, represent: bool, progress: Callable[[], None]
) -> Facts:
    """Load, collect and run one suite in this process and return the facts; `progress` is called as a test starts."""
    facts = Facts()
    prepared.recorder.begin(facts, modules, represent=represent)
    prepared.config.pluginmanager.register = _refuse_plugin  # type: ignore[method-assign]
    random.seed(0)
    try:
        items = _collect(prepared.session, modules.suite, code)
        _check_items(items)
        for item, following in zip(items, [*items[1:], None], strict=True):
            progress()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    except BaseException as stop:  # noqa: BLE001 - border: whatever ends a run inside the submitted file
        facts.end, facts.detail = _end_of(stop)
        prepared.recorder.interrupt()
    else:
        _note_threads(facts)
    if not represent:
        facts.detail = ""
    return facts


def make_module(name: str, code: bytes | None = None, file: str | None = None) -> ModuleType:
    """Make a module without a loader and without a source, register it, and run its code in it."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    if file is not None:
        module.__file__ = file
    sys.modules[name] = module
    if code is not None:
        exec(marshal.loads(code), vars(module))
    return module


def suite_module() -> ModuleType:
    """Make the empty module that the suite will be loaded into."""
    return make_module(_SUITE_MODULE, file=str(Path.cwd() / SUITE_FILE))


class _SuiteFile(pytest.Module):
    """The submitted file, already loaded."""

    suite: ModuleType

    def _getobj(self) -> ModuleType:
        return self.suite


def _collect(session: Session, suite: ModuleType, code: bytes) -> list[pytest.Item]:
    try:
        exec(marshal.loads(code), vars(suite))
    except pytest.skip.Exception as error:
        raise EndRun(RunEnd.COLLECTION_ERROR, f"the file skips itself: {error}") from error
    except (SystemExit, KeyboardInterrupt, pytest.exit.Exception):
        raise
    except MemoryError as error:
        raise EndRun(RunEnd.OUT_OF_MEMORY, "the file ran out of memory while it was imported") from error
    except BaseException as error:  # border: whatever the submitted file raises while it is imported
        raise EndRun(RunEnd.COLLECTION_ERROR, _import_problem(error, suite, session)) from error
    if hasattr(suite, "pytest_plugins"):
        raise EndRun(RunEnd.PLUGINS, "pytest_plugins is not allowed: only the submitted file counts")
    node = _SuiteFile.from_parent(session, path=Path.cwd() / SUITE_FILE)
    node.suite = suite
    items = list(session.genitems(node))
    session.items = items
    session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
    return items


def _import_problem(error: BaseException, suite: ModuleType, session: Session) -> str:
    line = suite_line(error.__traceback__, suite)
    where = f"line {line}: " if line else ""
    return steady(f"{where}{type(error).__name__}: {error}", str(session.config.rootpath))


def _check_items(items: list[pytest.Item]) -> None:
    if not items:
        raise EndRun(RunEnd.NO_TESTS, "no test was found; name functions test_... and classes Test...")
    functions = {item.nodeid.partition("[")[0] for item in items}
    if len(functions) > MAX_FUNCTIONS:
        raise EndRun(RunEnd.TOO_MANY_FUNCTIONS, f"{len(functions)} test functions, at most {MAX_FUNCTIONS} are allowed")
    if len(items) > MAX_CASES:
        raise EndRun(RunEnd.TOO_MANY_CASES, f"{len(items)} test cases, at most {MAX_CASES} are allowed")
    for item in items:
        if len(item.nodeid) > MAX_ID_CHARS:
            raise EndRun(
                RunEnd.COLLECTION_ERROR, f"a test id is longer than {MAX_ID_CHARS} characters; pass shorter ids"
            )
        function = getattr(item, "obj", None)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or _is_async_case(item):
            raise EndRun(RunEnd.ASYNC_TESTS, "async tests are not run; call asyncio.run(...) inside a plain test")


def _is_async_case(item: pytest.Item) -> bool:
    owner = getattr(item, "cls", None)
    asyncio_case = getattr(sys.modules.get("unittest.async_case"), "IsolatedAsyncioTestCase", None)
    return owner is not None and asyncio_case is not None and issubclass(owner, asyncio_case)


def _end_of(stop: BaseException) -> tuple[RunEnd, str]:
    if isinstance(stop, EndRun):
        return stop.end, stop.detail
    if isinstance(stop, MemoryError):
        return RunEnd.OUT_OF_MEMORY, "the suite ran out of memory"
    if isinstance(stop, Exception) and not isinstance(stop, pytest.exit.Exception):
        return RunEnd.UNTRUSTED, f"the suite broke the test runner: {type(stop).__name__}"
    return RunEnd.STOPPED, f"the suite stopped the session: {type(stop).__name__}"


def _note_threads(facts: Facts) -> None:
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        pools._python_exit()  # what the interpreter's own exit does: idle threads of pools end
    left = threading.active_count() - 1
    if left:
        facts.end = RunEnd.THREADS_LEFT
        facts.detail = f"{left} thread(s) of the suite were still running at the end; join them"


def _refuse_plugin(*_: object, **__: object) -> None:
    raise EndRun(RunEnd.PLUGINS, "registering plug-ins is not allowed: only the submitted file counts")
