"""Honest tests of auth_module: one exact test for every place that may be broken or changed."""

import pytest
from auth_module import AuthError, AuthService

PASSWORD = "correct-horse-1234"
DAY = 86400


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def service_with(name):
    clock = Clock()
    service = AuthService(clock)
    service.set_password(name, PASSWORD)
    return service, clock


def refuses(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return True
    return False


def fail_to_log_in(service, name, times):
    for _ in range(times):
        with pytest.raises(AuthError):
            service.login(name, "wrong")


def test_max_length():
    service = AuthService(Clock())
    assert [refuses(ValueError, service.set_password, "ann", "1" * length) for length in (62, 64, 65)] == [
        False,
        False,
        True,
    ]


def test_few_digits():
    service = AuthService(Clock())
    password = "correct-horse-battery-"
    assert refuses(ValueError, service.set_password, "ann", password + "1")
    assert not refuses(ValueError, service.set_password, "ann", password + "12")


def test_used_before():
    service = AuthService(Clock())
    passwords = [f"correct-horse-{number}" for number in range(10, 16)]
    for password in passwords:
        service.set_password("ann", password)
    assert refuses(ValueError, service.set_password, "ann", passwords[-4])
    assert not refuses(ValueError, service.set_password, "ann", passwords[-5])


def test_lock_after():
    service, _ = service_with("ann")
    fail_to_log_in(service, "ann", 2)
    service.login("ann", PASSWORD)
    fail_to_log_in(service, "ann", 3)
    assert refuses(AuthError, service.login, "ann", PASSWORD)


def test_lock_time():
    service, clock = service_with("ann")
    fail_to_log_in(service, "ann", 3)
    clock.now = 15 * 60 - 1
    assert refuses(AuthError, service.login, "ann", PASSWORD)
    clock.now = 15 * 60
    assert not refuses(AuthError, service.login, "ann", PASSWORD)


def test_session_idle():
    service, clock = service_with("ann")
    session = service.login("ann", PASSWORD)
    clock.now = 30 * 60
    assert not refuses(AuthError, service.whose_session, session)
    clock.now += 30 * 60 + 1
    assert refuses(AuthError, service.whose_session, session)


def test_session_count():
    service, _ = service_with("ann")
    sessions = [service.login("ann", PASSWORD) for _ in range(5)]
    assert [service.whose_session(session) for session in sessions] == ["ann"] * 5
    service.login("ann", PASSWORD)
    assert [refuses(AuthError, service.whose_session, session) for session in sessions] == [True] + [False] * 4


def test_token_days():
    service, clock = service_with("ann")
    token = service.issue_token("ann", 3)
    clock.now = 3 * DAY - 1
    assert not refuses(AuthError, service.whose_token, token)
    clock.now = 3 * DAY
    assert refuses(AuthError, service.whose_token, token)


def test_longer_passwords():
    service = AuthService(Clock())
    assert refuses(ValueError, service.set_password, "ann", "1" * 11)
    assert not refuses(ValueError, service.set_password, "ann", "1" * 12)


def test_older_passwords():
    service, clock = service_with("ann")
    clock.now = 180 * DAY
    assert service.must_change("ann") is False
    clock.now = 180 * DAY + 1
    assert service.must_change("ann") is True


def test_longer_memory():
    service, clock = service_with("ann")
    session = service.login("ann", PASSWORD, True)
    clock.now = 30 * DAY
    assert not refuses(AuthError, service.whose_session, session)
    clock.now += 30 * DAY + 1
    assert refuses(AuthError, service.whose_session, session)


def test_longer_tokens():
    service = AuthService(Clock())
    assert not refuses(ValueError, service.issue_token, "ann", 90)
    assert refuses(ValueError, service.issue_token, "ann", 91)
