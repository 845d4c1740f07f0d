"""Tests of version 1."""

import pytest
from auth_module import AuthError, AuthService

PASSWORD = "correct-horse-1234"
DAY = 86400


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def service_with(name):
    clock = Clock()
    service = AuthService(clock)
    service.set_password(name, PASSWORD)
    return service, clock


def fail_to_log_in(service, name, times):
    for _ in range(times):
        with pytest.raises(AuthError):
            service.login(name, "wrong")


def test_a_login_begins_a_session():
    service, _ = service_with("ann")
    assert service.whose_session(service.login("ann", PASSWORD)) == "ann"
    with pytest.raises(AuthError):
        service.login("ann", "wrong")


def test_a_password_of_eight_characters_is_long_enough():
    service = AuthService(Clock())
    service.set_password("ann", "ann-1234")
    with pytest.raises(ValueError):
        service.set_password("ann", "an-1234")


def test_a_short_password_will_do():
    service, _ = service_with("ann")
    service.set_password("ann", "bob-98765")
    assert service.login("ann", "bob-98765")


def test_a_very_long_password_is_refused():
    with pytest.raises(ValueError):
        AuthService(Clock()).set_password("ann", "correct-horse-1234" * 10)


def test_a_password_needs_digits():
    with pytest.raises(ValueError):
        AuthService(Clock()).set_password("ann", "correct-horse-battery")


def test_the_same_password_again_is_refused():
    service, _ = service_with("ann")
    with pytest.raises(ValueError):
        service.set_password("ann", PASSWORD)


def test_a_new_password_is_a_new_one():
    service, _ = service_with("ann")
    service.set_password("ann", PASSWORD + "56")
    with pytest.raises(ValueError):
        service.set_password("ann", PASSWORD + "56")


def test_an_old_password_must_be_changed():
    service, clock = service_with("ann")
    assert not service.must_change("ann")
    clock.now = 100 * DAY
    assert service.must_change("ann")


def test_wrong_passwords_lock_the_account():
    service, _ = service_with("ann")
    fail_to_log_in(service, "ann", 5)
    with pytest.raises(AuthError):
        service.login("ann", PASSWORD)


def test_a_lock_is_for_one_account():
    service, _ = service_with("ann")
    service.set_password("bob", PASSWORD)
    fail_to_log_in(service, "ann", 7)
    assert service.login("bob", PASSWORD)
    with pytest.raises(AuthError):
        service.login("ann", PASSWORD)


def test_a_locked_account_opens_again():
    service, clock = service_with("ann")
    fail_to_log_in(service, "ann", 60)
    clock.now = 2 * DAY
    assert service.login("ann", PASSWORD)


def test_an_unused_session_ends():
    service, clock = service_with("ann")
    session = service.login("ann", PASSWORD)
    clock.now = 10 * DAY
    with pytest.raises(AuthError):
        service.whose_session(session)


def test_a_remembered_session_ends_too():
    service, clock = service_with("ann")
    session = service.login("ann", PASSWORD, remember=True)
    clock.now = 10 * DAY
    assert service.whose_session(session) == "ann"
    clock.now = 30 * DAY
    with pytest.raises(AuthError):
        service.whose_session(session)


def test_many_logins_end_the_oldest_session():
    service, _ = service_with("ann")
    first, *_, last = [service.login("ann", PASSWORD) for _ in range(20)]
    assert service.whose_session(last) == "ann"
    with pytest.raises(AuthError):
        service.whose_session(first)


def test_a_token_is_valid_for_days():
    service, clock = service_with("ann")
    token = service.issue_token("ann", 20)
    clock.now = 5 * DAY
    assert service.whose_token(token) == "ann"
    clock.now = 365 * DAY
    with pytest.raises(AuthError):
        service.whose_token(token)


def test_tokens_are_told_apart():
    service, clock = service_with("ann")
    tokens = [service.issue_token(name, 10) for name in ("ann", "bob")]
    clock.now = 2 * DAY
    assert [service.whose_token(token) for token in tokens] == ["ann", "bob"]


def test_a_token_for_too_many_days_is_refused():
    service = AuthService(Clock())
    for days in (0, 45):
        with pytest.raises(ValueError):
            service.issue_token("ann", days)
