"""The command line and the environment of the baseline, as one frozen object; anything wrong ends with exit code 2."""

import argparse
import difflib
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FAMILIES = ("unit_test_writer", "coverage_audit", "regression_audit")
"""Played in this order; a test compares them with what the server offers."""

KEY_VARIABLES = ("HF_TOKEN", "API_KEY", "OPENAI_API_KEY")
"""Where a key may stand; the first that is set wins."""

DEFAULT_BASE_URL = "https://router.huggingface.co/v1"
DEFAULT_MODEL = "Qwen/Qwen2.5-72B-Instruct"
DEFAULT_SEED = 42

_MAX_SEED = 2**63 - 1
_TASK_ID = re.compile(r"(?P<family>[a-z_]+)(?:-v\d{1,6}/[a-z_]+/(?P<index>\d{1,19}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpisode:
    """One episode to play: `params` are the reset's."""

    family: str
    seed: int
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """Where a model is and how it is asked."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    """Empty where the endpoint needs none."""
    temperature: float = 0.0
    max_tokens: int = 4096
    timeout_s: float = 120.0
    max_retries: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to play, with which policy, against which server."""

    plan: tuple[PlannedEpisode, ...]
    model: str
    """Name of the policy in the log."""
    suite: str | None = field(default=None, repr=False)
    """Text of the suite that is handed in as it is."""
    chat: ChatOptions | None = None
    base_url: str | None = None
    """None: start a server."""
    concurrency: int = 1
    out: Path | None = None


def read_options(argv: Sequence[str] | None, environ: Mapping[str, str]) -> Options:
    """Read the options; prints a message and exits with 2 when they are wrong."""
    parser = _parser()
    args = parser.parse_args(argv)
    model, suite, chat = "embedded", None, None
    kind = args.policy or _default_policy(environ)
    if kind == "chat":
        chat = _chat(parser, args, environ)
        model = chat.model
    elif kind.startswith("file:"):
        path = Path(kind.removeprefix("file:"))
        model, suite = f"file:{path.name}", _suite(parser, path)
    elif kind != "embedded":
        parser.error(f"--policy is embedded, chat or file:PATH, not {kind!r}")
    attempts = args.max_attempts or (None if chat else 1)
    return Options(
        plan=_plan(parser, args, attempts),
        model=model,
        suite=suite,
        chat=chat,
        base_url=args.base_url,
        concurrency=args.concurrency,
        out=args.out,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="inference.py",
        description="Play the task families with a baseline policy. Log lines go to stdout, all else to stderr.",
        epilog=f"With {', '.join(KEY_VARIABLES)} or API_BASE_URL set it asks an OpenAI-compatible model (API_BASE_URL, "
        "MODEL_NAME); with none it plays the embedded policy.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seed", type=_seed, help=f"seed of the task ({DEFAULT_SEED})")
    seeds.add_argument("--seeds", type=_seeds, help="several seeds, e.g. 42,123,456")
    add("--task", help="a family, or a task's own id such as unit_test_writer-v1/classic/17 (every family)")
    add("--episodes", type=_number(1, 100_000), default=1, help="episodes per seed; later ones have derived seeds (1)")
    add("--split", help="split of the task supply (the default program)")
    add("--concurrency", type=_number(1, 64), default=1, help="episodes played at once (1)")
    add(
        "--max-attempts",
        type=_number(1, 5),
        help="attempts per episode (embedded, file: 1; chat: the server's default)",
    )
    add("--out", type=Path, metavar="DIR", help="also write DIR/episodes.jsonl, one line per episode")
    add("--base-url", type=_url, help="play against this server instead of starting one")
    add("--policy", help="embedded, chat, or file:PATH, which hands in that pytest file")
    add("--temperature", type=_temperature, default=0.0, help="of the model, 0 to 2 (0)")
    add("--max-tokens", type=_number(1, 1_000_000), default=4096, help="longest answer of the model (4096)")
    add("--model-timeout", type=_number(1, 3600), default=120, help="seconds to wait for the model (120)")
    return parser


def _number(low: int, high: int) -> Any:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,20}", text, re.ASCII) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be an integer from {low} to {high}, not {text[:40]!r}")
        return int(text)

    return parse


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 2:  # not a number compares false
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 2, not {text[:40]!r}")
    return value


_seed = _number(0, _MAX_SEED)


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(_seed(part.strip()) for part in text.split(","))


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise argparse.ArgumentTypeError("must be an address such as http://127.0.0.1:7860")
    return text.rstrip("/")


def _default_policy(environ: Mapping[str, str]) -> str:
    configured = any(environ.get(name) for name in (*KEY_VARIABLES, "API_BASE_URL"))
    return "chat" if configured else "embedded"


def _chat(parser: argparse.ArgumentParser, args: argparse.Namespace, environ: Mapping[str, str]) -> ChatOptions:
    key = next((environ[name].strip() for name in KEY_VARIABLES if environ.get(name)), "")
    base_url = environ.get("API_BASE_URL", "")
    if not key and not base_url:
        parser.error(
            f"--policy chat needs one of {', '.join(KEY_VARIABLES)}, or API_BASE_URL for an endpoint without key"
        )
    if not (key.isascii() and key.isprintable()):
        parser.error("the API key holds characters that no header can carry")
    try:
        base_url = _url(base_url or DEFAULT_BASE_URL)
    except argparse.ArgumentTypeError as error:
        parser.error(f"API_BASE_URL {error}")
    return ChatOptions(
        base_url=base_url,
        model=environ.get("MODEL_NAME") or DEFAULT_MODEL,
        api_key=key,
        temperature=args.temperature,
        max_tokens=args.max_tokens,
        timeout_s=args.model_timeout,
    )


def _suite(parser: argparse.ArgumentParser, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(f"--policy file: cannot read {str(path)!r}: {getattr(error, 'strerror', None) or 'not UTF-8'}")


def _plan(
    parser: argparse.ArgumentParser, args: argparse.Namespace, attempts: int | None
) -> tuple[PlannedEpisode, ...]:
    extra = {"split": args.split, "max_attempts": attempts}
    params = {name: value for name, value in extra.items() if value is not None}
    match = _TASK_ID.fullmatch(args.task or FAMILIES[0])
    if match is None or match["family"] not in FAMILIES:
        near = difflib.get_close_matches(args.task, FAMILIES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(FAMILIES)}"
        parser.error(f"--task: unknown task family; {hint}")
    if match["index"] is not None:
        if args.seed is not None or args.seeds or args.split or args.episodes > 1:
            parser.error("--task: a task's own id fixes the seed and the split; leave the other options out")
        fixed = {"task_id": args.task, **params}
        return (PlannedEpisode(family=match["family"], seed=int(match["index"]), params=fixed),)
    first_seeds = args.seeds or (DEFAULT_SEED if args.seed is None else args.seed,)
    return tuple(
        PlannedEpisode(family=family, seed=seed, params={"task_id": family, "seed": seed, **params})
        for family in ([args.task] if args.task else FAMILIES)
        for first in first_seeds
        for seed in (_derived(first, number) for number in range(args.episodes))
    )


def _derived(seed: int, number: int) -> int:
    """Return the seed of the number-th episode: the given one first, then hashes that share nothing with neighbours."""
    if number == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4], "big")
