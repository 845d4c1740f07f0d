import pytest

from autotest_env.errors import SetupError
from autotest_env.sandbox.confine import Isolation
from autotest_env.server.settings import PUBLIC_SECRET, Settings, default_sessions, require_one_openenv


def test_an_empty_environment_gives_the_defaults():
    settings = Settings.from_environment({})
    assert (settings.host, settings.ports) == ("127.0.0.1", (7860,))
    assert 8 <= settings.sessions <= 256
    assert settings.secret == PUBLIC_SECRET
    assert settings.isolation is Isolation.BEST_EFFORT
    assert settings.graders >= 1


def test_every_variable_is_read():
    settings = Settings.from_environment(
        {
            "AUTOTEST_HOST": "0.0.0.0",
            "AUTOTEST_PORTS": "7860, 8000",
            "AUTOTEST_GRADERS": "3",
            "AUTOTEST_SESSIONS": "64",
            "AUTOTEST_SECRET": "sesame",
            "AUTOTEST_ISOLATION": "required",
            "AUTOTEST_LOG_LEVEL": "DEBUG",
            "AUTOTEST_URL": "http://elsewhere",
            "PATH": "/bin",
        }
    )
    expected = Settings(
        host="0.0.0.0",
        ports=(7860, 8000),
        graders=3,
        sessions=64,
        secret=b"sesame",
        isolation=Isolation.REQUIRED,
        log_level="debug",
    )
    assert settings == expected


@pytest.mark.parametrize(("limit", "sessions"), [(None, 256), (100_000, 256), (256, 128), (64, 8)])
def test_the_default_number_of_sessions_leaves_threads_for_the_rest(limit, sessions):
    assert default_sessions(limit) == sessions


def test_an_empty_variable_counts_as_unset():
    assert Settings.from_environment({"AUTOTEST_PORTS": "", "AUTOTEST_HOST": " "}) == Settings.from_environment({})


def test_the_secret_is_in_no_repr():
    assert "sesame" not in repr(Settings(secret=b"sesame"))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("AUTOTEST_PORT", "AUTOTEST_PORTS"),
        ("AUTOTEST_GRADER", "AUTOTEST_GRADERS"),
        ("AUTOTEST_ISOLATOIN", "AUTOTEST_ISOLATION"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest_name(name, nearest):
    with pytest.raises(SetupError, match=f"{name}; did you mean {nearest}\\?"):
        Settings.from_environment({name: "1"})


def test_a_variable_like_no_other_is_refused_with_all_names():
    with pytest.raises(SetupError, match="AUTOTEST_FOO; there are: AUTOTEST_GRADERS, "):
        Settings.from_environment({"AUTOTEST_FOO": "1"})


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("AUTOTEST_PORTS", "http", "0 to 65535"),
        ("AUTOTEST_PORTS", "7860,,8000", "0 to 65535"),
        ("AUTOTEST_PORTS", "70000", "0 to 65535"),
        ("AUTOTEST_GRADERS", "0", "1 to 256"),
        ("AUTOTEST_GRADERS", "-1", "1 to 256"),
        ("AUTOTEST_SESSIONS", "1.5", "1 to 4096"),
        ("AUTOTEST_ISOLATION", "none", "required or best-effort"),
        ("AUTOTEST_LOG_LEVEL", "loud", "debug, info"),
    ],
)
def test_a_bad_value_is_refused_with_what_would_be_right(name, text, right):
    with pytest.raises(SetupError, match=f"{name} must be .*{right}"):
        Settings.from_environment({name: text})


def test_both_distributions_of_openenv_together_are_refused_with_the_fix():
    with pytest.raises(SetupError, match="pip uninstall -y openenv openenv-core"):
        require_one_openenv({"openenv", "openenv-core", "pytest"})


@pytest.mark.parametrize("one", ["openenv", "openenv-core"])
def test_one_distribution_of_openenv_is_enough(one):
    require_one_openenv({one})


def test_this_environment_has_one_openenv():
    require_one_openenv()
