"""The command line and the environment of the baseline."""

from pathlib import Path

import pytest

from autotest_env.agents.options import FAMILIES, Options, read_options
from autotest_env.tasks.registry import FAMILIES as OFFERED

KEYED = {"HF_TOKEN": "hf", "API_KEY": "ak", "OPENAI_API_KEY": "ok"}


def seeds(options: Options) -> list[int]:
    return [episode.seed for episode in options.plan]


def test_the_baseline_plays_every_family_the_server_offers_in_its_order() -> None:
    assert tuple(OFFERED) == FAMILIES


def test_without_options_every_family_is_played_once_with_seed_42() -> None:
    options = read_options([], {})
    assert [episode.family for episode in options.plan] == list(FAMILIES)
    assert set(seeds(options)) == {42}
    assert (options.model, options.chat, options.base_url) == ("embedded", None, None)


def test_the_first_key_that_is_set_wins() -> None:
    def key(environ: dict[str, str]) -> str | None:
        chat = read_options([], environ).chat
        return chat and chat.api_key

    assert key(KEYED) == "hf"
    assert key({**KEYED, "HF_TOKEN": ""}) == "ak"
    assert key({"OPENAI_API_KEY": "ok"}) == "ok"
    assert key({"API_BASE_URL": "http://127.0.0.1:1/v1"}) == ""
    assert key({}) is None


def test_the_endpoint_and_the_model_have_the_usual_defaults() -> None:
    chat = read_options([], {"HF_TOKEN": "x"}).chat
    assert chat
    assert (chat.base_url, chat.model) == ("https://router.huggingface.co/v1", "Qwen/Qwen2.5-72B-Instruct")
    named = read_options([], {"API_BASE_URL": "http://127.0.0.1:1/v1/", "MODEL_NAME": "tiny"})
    assert named.chat
    assert (named.chat.base_url, named.chat.model, named.model) == ("http://127.0.0.1:1/v1", "tiny", "tiny")


def test_the_embedded_policy_can_be_asked_for_in_spite_of_a_key() -> None:
    assert read_options(["--policy", "embedded"], KEYED).chat is None


def test_a_key_is_in_no_representation() -> None:
    assert "hf-secret" not in repr(read_options([], {"HF_TOKEN": "hf-secret"}))


def test_a_given_suite_is_read_and_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "suite.py"
    path.write_text("def test_é(): ...\n", encoding="utf-8")
    options = read_options([f"--policy=file:{path}"], KEYED)
    assert (options.model, options.suite, options.chat) == ("file:suite.py", "def test_é(): ...\n", None)


def test_one_attempt_is_enough_unless_a_model_learns_from_feedback() -> None:
    assert read_options([], {}).plan[0].params["max_attempts"] == 1
    assert "max_attempts" not in read_options([], KEYED).plan[0].params
    assert read_options(["--max-attempts", "3"], KEYED).plan[0].params["max_attempts"] == 3


def test_further_episodes_have_derived_seeds_that_do_not_overlap() -> None:
    options = read_options(["--seeds", "42,43", "--episodes", "3", "--task", "unit_test_writer"], {})
    assert len(set(seeds(options))) == 6
    assert (seeds(options)[0], seeds(options)[3]) == (42, 43)
    assert seeds(read_options(["--seeds", "42,43", "--episodes", "3"], {})) == seeds(options) * len(FAMILIES)


def test_a_split_and_a_tasks_own_id_go_to_the_reset() -> None:
    assert read_options(["--split", "train"], {}).plan[0].params["split"] == "train"
    (planned,) = read_options(["--task", "unit_test_writer-v1/classic/17"], {}).plan
    assert (planned.family, planned.seed) == ("unit_test_writer", 17)
    assert planned.params == {"task_id": "unit_test_writer-v1/classic/17", "max_attempts": 1}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--seed", "x"], "--seed: must be an integer from 0 to 9223372036854775807"),
        (["--seed", "-1"], "--seed: must be an integer"),
        (["--seed", "9" * 5000], "--seed: must be an integer"),
        (["--seed", "٤٢"], "--seed: must be an integer"),
        (["--seeds", "1,,2"], "--seeds: must be an integer"),
        (["--seed", "1", "--seeds", "2"], "not allowed with"),
        (["--task", "unit_test_write"], "did you mean 'unit_test_writer'?"),
        (["--task", "zzz"], "there are: unit_test_writer"),
        (["--task", "unit_test_writer-v1/classic/17", "--seed", "3"], "leave the other options out"),
        (["--episodes", "0"], "--episodes: must be an integer from 1"),
        (["--concurrency", "0"], "--concurrency: must be an integer from 1 to 64"),
        (["--max-attempts", "6"], "--max-attempts: must be an integer from 1 to 5"),
        (["--base-url", "localhost:7860"], "--base-url: must be an address such as http://127.0.0.1:7860"),
        (["--base-url", "http://[::1"], "--base-url: must be an address"),
        (["--policy", "clever"], "--policy is embedded, chat or file:PATH"),
        (["--policy", "chat"], "--policy chat needs one of HF_TOKEN, API_KEY, OPENAI_API_KEY, or API_BASE_URL"),
        (["--policy", "file:/does/not/exist.py"], "cannot read '/does/not/exist.py': No such file"),
        (["--temperature", "hot"], "--temperature"),
        (["--see", "1"], "unrecognized arguments"),
        (["extra"], "unrecognized arguments"),
    ],
)
def test_a_bad_option_is_named_and_exits_with_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        read_options(argv, {})
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_key_that_no_header_can_carry_is_refused_without_being_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options([], {"HF_TOKEN": "geheimé"})
    message = capsys.readouterr().err
    assert "the API key holds characters" in message
    assert "geheim" not in message


def test_a_bad_endpoint_is_named_without_being_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        read_options([], {"API_BASE_URL": "ftp://me:secret@host"})
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "API_BASE_URL must be an address" in message
    assert "secret" not in message


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "2.1", "warm"])
def test_a_temperature_is_a_number_that_models_take(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options([f"--temperature={text}"], {})
    assert "must be a number from 0 to 2" in capsys.readouterr().err


def test_digits_of_other_scripts_are_in_no_task_id(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(["--task", "unit_test_writer-v1/classic/\uff11"], {})
    assert "unknown task family" in capsys.readouterr().err
