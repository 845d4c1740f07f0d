"""The sandbox's docstring, attacked line by line from inside a run, with every layer that this machine has."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from autotest_env.sandbox.confine import OPTIONAL_LAYERS, Isolation
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.sandbox.suite import RunEnd, TestOutcome
from tests.sandbox.attacks import ATTACKS, REFUSALS, outside, suite_of
from tests.sandbox.conftest import Run

NEEDED = ("rlimits", "no_new_privs", "capabilities", "landlock", "seccomp")


@pytest.fixture(scope="module")
def names() -> Iterator[Mapping[str, object]]:
    """What there is outside to be attacked."""
    with outside() as made:
        yield made


@pytest.mark.parametrize("attack", [name for name, attack in ATTACKS.items() if {*attack.by} & {*NEEDED}])
def test_an_attack_is_refused_by_the_system(run: Run, names: Mapping[str, object], attack: str) -> None:
    result = run(suite_of([attack], names))
    assert result.end is RunEnd.COMPLETED, result
    test = result.tests[0]
    assert test.outcome is TestOutcome.FAILED, test
    assert test.message.startswith(REFUSALS), test


def test_modes_owners_and_times_of_files_cannot_carry_a_message(run: Run) -> None:
    library = Path(os.__file__)
    before = library.stat()
    tries = ("os.utime({0!r}, (1, 1))", "os.chmod({0!r}, 0o600)", "os.chown({0!r}, 1, 1)")
    for attempt in tries:
        run(f"import os\ndef test_it(): {attempt.format(str(library))}")
    after = library.stat()
    assert (after.st_mtime, after.st_mode, after.st_uid) == (before.st_mtime, before.st_mode, before.st_uid)


def test_all_needed_layers_are_on_where_the_tests_run(sandbox: Sandbox) -> None:
    assert {name: sandbox.layers[name] for name in NEEDED} == dict.fromkeys(NEEDED, "on")
    assert sandbox.layers.keys() == {*NEEDED, *OPTIONAL_LAYERS}


def test_every_layer_is_attacked() -> None:
    assert {layer for attack in ATTACKS.values() for layer in attack.by} >= {*NEEDED, *OPTIONAL_LAYERS} - {
        "user_namespace"
    }


def test_required_isolation_starts_where_all_layers_are_on() -> None:
    box = Sandbox(SandboxOptions(graders=1, isolation=Isolation.REQUIRED))
    box.start()
    box.close()


def test_a_run_looks_the_same_from_inside_every_time(run: Run, sandbox: Sandbox) -> None:
    """What a process can count (its number, its parent's, inodes, free space) is the same in every run in namespaces."""
    facts = "(os.getpid(), os.getppid(), os.stat('.').st_ino, os.stat('new').st_ino, os.statvfs('.').f_bfree)"
    source = f"import os\ndef test_it():\n    for i in range(50): open(f'f{{i}}', 'w').write('x' * 9000)\n    open('new', 'w')\n    assert not {facts}"
    seen = {run(source).tests[0].message.splitlines()[0] for _ in range(6)}
    in_namespaces = sandbox.layers["pid_namespace"] == sandbox.layers["mount_namespace"] == "on"
    assert (len(seen) == 1) >= in_namespaces, seen


def test_a_module_that_nothing_has_loaded_yet_can_be_imported(run: Run) -> None:
    names = [
        name for name in ("stringprep", "colorsys", "chunk", "sndhdr", "rlcompleter") if name in sys.stdlib_module_names
    ]
    assert run("def test_it():\n    import " + ", ".join(names)).tests[0].outcome is TestOutcome.PASSED


def test_the_source_of_the_program_is_nowhere_in_a_run(run: Run) -> None:
    source = """
import inspect, linecache, pytest, adder
def test_it():
    with pytest.raises(OSError): inspect.getsource(adder.add)
    assert linecache.getlines('adder.py') == []
    assert not hasattr(adder, '__file__')
    assert adder.__spec__.loader is None
"""
    assert run(source).tests[0].outcome is TestOutcome.PASSED
