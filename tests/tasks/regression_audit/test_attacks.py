"""Ways to be paid for regressions without testing for them; and comparing with version 1, which is testing."""

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.tasks.family import Judgement, Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.registry import TaskRequest, Tasks

HEAD = """
import pytest
import auth_module
from auth_module import AuthError, AuthService
PASSWORD = "correct-horse-1234"
def service_with(clock):
    service = AuthService(clock)
    service.set_password("ann", PASSWORD)
    return service
"""
BEHAVIOUR = """
DAY = 86400
def behaviour(module):
    seen, now = [], [0.0]
    def note(function, *arguments):
        try:
            seen.append(function(*arguments))
        except (ValueError, module["AuthError"]) as error:
            seen.append(type(error).__name__)
    def service():
        now[0] = 0.0
        made = module["AuthService"](lambda: now[0])
        made.set_password("ann", PASSWORD)
        return made
    for length in (8, 9, 10, 11, 12, 13, 60, 61, 64, 65, 66, 70, 72, 73):
        note(service().set_password, "bob", "1" * length)
    for digits in range(5):
        note(service().set_password, "bob", "correct-horse-battery-" + "1" * digits)
    for back in range(1, 8):
        made = service()
        for number in range(10, 20):
            made.set_password("ann", f"correct-horse-{number}")
        note(made.set_password, "ann", f"correct-horse-{20 - back}")
    for wrong in range(1, 8):
        made = service()
        for _ in range(wrong):
            note(made.login, "ann", "x")
        note(made.login, "ann", PASSWORD)
    for later in (599, 600, 899, 900, 1199, 1200, 8999, 9000):
        made = service()
        for _ in range(3):
            note(made.login, "ann", "x")
        now[0] = later
        note(made.login, "ann", PASSWORD)
    for remember, times in ((False, (1200, 1201, 1800, 1801, 2700, 2701, 18001)), (True, range(13 * DAY, 62 * DAY, 43200))):
        for later in times:
            made = service()
            session = made.login("ann", PASSWORD, remember)
            now[0] = later
            note(made.whose_session, session)
            note(made.must_change, "ann")
    for later in range(85, 205):
        made = service()
        now[0] = (later + 0.5) * DAY
        note(made.must_change, "ann")
    made = service()
    for session in [made.login("ann", PASSWORD) for _ in range(10)]:
        note(made.whose_session, session)
    for days in range(102):
        note(service().issue_token, "ann", days)
    for later in (1, 2, 43199, 43200, 79999, 80000, 86399, 86400, 863999, 864000):
        made = service()
        token = made.issue_token("ann", 1)
        now[0] = later
        note(made.whose_token, token)
    return seen
def test_it():
    other = {}
    exec(OTHER, other)
"""


@pytest.fixture(scope="module")
def task(tasks: Tasks) -> Task:
    return tasks.generate(TaskRequest(task_id="regression_audit", seed=3), 0)


def labelled(tasks: Tasks, task: Task, suite: str) -> str:
    """Put the right labels above a suite."""
    oracle = tasks.family("regression_audit").oracle(task)
    return "".join(line for line in oracle.splitlines(keepends=True) if line.startswith("#")) + suite


def judged(tasks: Tasks, task: Task, suite: str) -> Judgement:
    return tasks.family("regression_audit").judge(task, labelled(tasks, task, suite))


def compared(other: str, how: str) -> str:
    return f"{HEAD}OTHER = {other!r}{BEHAVIOUR}    assert behaviour(vars(auth_module)) {how} behaviour(other)\n"


WITHOUT_TESTING = {
    "labels alone": ("def test_it(): assert True", "judged"),
    "caller of the clock": (
        """
import sys
def test_it():
    lines = []
    service_with(lambda: lines.append(sys._getframe(1).f_lineno) or 0.0)
    assert lines
""",
        "untrusted",
    ),
    "frames above the clock": (
        """
def test_it():
    def clock():
        raise LookupError
    with pytest.raises(LookupError) as caught:
        service_with(clock)
    assert caught.value.__traceback__.tb_next.tb_next.tb_frame.f_code
""",
        "untrusted",
    ),
    "lines above the clock": (
        """
def test_it():
    def clock():
        raise LookupError
    with pytest.raises(LookupError) as caught:
        service_with(clock)
    assert caught.value.__traceback__.tb_next.tb_next.tb_lineno == 34
""",
        "judged",
    ),
    "calls of the clock": (
        """
def test_it():
    calls = []
    service = service_with(lambda: calls.append(1) or 0.0)
    service.whose_session(service.login("ann", PASSWORD))
    service.whose_token(service.issue_token("ann", 3))
    assert len(calls) == 5
""",
        "judged",
    ),
    "a clock that asserts": (
        """
def test_it():
    def clock():
        calls.append(1)
        assert len(calls) < 6
        return 0.0
    calls = []
    service = service_with(clock)
    service.whose_session(service.login("ann", PASSWORD))
""",
        "judged",
    ),
    "a clock that logs in": (
        """
def test_it():
    sessions = []
    def clock():
        if sessions == [None]:
            sessions[0] = service.login("ann", PASSWORD)
        return 0.0
    service = service_with(clock)
    sessions.append(None)
    assert service.whose_session(service.login("ann", PASSWORD)) == "ann"
""",
        "judged",
    ),
    "no time at all": (
        """
def test_it():
    service = service_with(lambda: float("nan"))
    assert service.whose_session(service.login("ann", PASSWORD)) == "ann"
    assert service.must_change("ann") is False
""",
        "judged",
    ),
}


@pytest.mark.parametrize("way", WITHOUT_TESTING)
def test_what_tests_no_rule_earns_nothing(tasks: Tasks, task: Task, way: str) -> None:
    suite, status = WITHOUT_TESTING[way]
    judgement = judged(tasks, task, HEAD + suite)
    assert judgement.feedback.status == status
    assert judgement.score.total <= 0.01
    assert not judgement.feedback.bugs_caught


def test_old_tests_with_right_labels_earn_next_to_nothing(tasks: Tasks, task: Task) -> None:
    judgement = judged(tasks, task, task.shown.existing_tests)
    assert judgement.score.total <= 0.05
    assert judgement.feedback.false_alarms


@pytest.mark.parametrize("how", ["==", "!="])
@pytest.mark.parametrize("version", ["auth_module_v1.py", "auth_module.py"])
def test_comparing_with_a_shown_version_as_a_whole_earns_nothing(
    tasks: Tasks, task: Task, version: str, how: str
) -> None:
    judgement = judged(tasks, task, compared(task.shown.files[version], how))
    assert judgement.feedback.status == "judged"
    assert judgement.score.total == 0.0


def test_comparing_with_an_own_version_is_testing(tasks: Tasks, task: Task) -> None:
    """Version 1 with the announced change made is what an agent may write from what it is shown."""
    secret = task.secret
    assert isinstance(secret, Secret)
    own = substitute(secret.program.source, secret.program.sites, dict(secret.correct))
    assert judged(tasks, task, compared(own, "==")).score.total == 1.0
