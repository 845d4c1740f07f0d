"""Play policies on the tasks of many seeds, in this process. Scores are kept in a file: a long run may be resumed."""

import hashlib
import json
import statistics
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from autotest_env.benchmarks.calibration.policies import EMBEDDED, ORACLE, WEAK, Kind, Policy
from autotest_env.benchmarks.calibration.subject import Subject
from autotest_env.sandbox.run import Sandbox
from autotest_env.tasks.feedback import JUDGED
from autotest_env.tasks.registry import TaskRequest, Tasks
from autotest_env.tasks.seeds import rng_for

ROOT = Path(__file__).resolve().parents[2]
JUDGING = ("tasks", "mutation", "sandbox")
"""Folders that decide what a suite is worth."""

MOST_HOLLOW = 0.05
MOST_GUESSING = 0.20

Scores = Mapping[tuple[str, str], Sequence[float]]
"""Policy name and family to one score per seed."""


class Kept:
    """Scores in a file, one JSON line each, by digest of the judging code, the task and the answer."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._judging = _digest_of_judging()
        self._scores: dict[str, float] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._scores.update(json.loads(line))

    def score(self, task_id: str, answer: str, judge: Callable[[], float]) -> float:
        """Return the kept score, or have it judged."""
        parts = (self._judging, task_id, answer)
        key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
        if key not in self._scores:
            score = judge()
            with self._lock:
                self._scores[key] = score
                if self._path is not None:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({key: score}) + "\n")
        return self._scores[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Where policies are measured."""

    tasks: Tasks
    sandbox: Sandbox
    kept: Kept
    graders: int

    def scores(self, policy: Policy, family: str, seeds: Iterable[int]) -> list[float]:
        """Have a policy's answer judged on the task of each seed."""
        with ThreadPoolExecutor(self.graders + 1) as pool:  # one writes or waits while the others are judged
            return list(pool.map(lambda seed: self._score(policy, family, seed), seeds))

    def _score(self, policy: Policy, name: str, seed: int) -> float:
        family = self.tasks.family(name)
        task = self.tasks.generate(TaskRequest(task_id=name, seed=seed), fresh_seed=0)
        rng = rng_for("calibration", policy.name, task.id)
        answer = policy.write(Subject(family, task, self.sandbox, rng))

        def judged() -> float:
            judgement = family.judge(task, answer)
            if policy.kind is not Kind.HOLLOW and judgement.feedback.status != JUDGED:
                raise ValueError(f"{policy.name} on {task.id} was not judged: {judgement.feedback.message}")
            return judgement.score.total

        return self.kept.score(task.id, answer, judged)


def rendered(policies: Sequence[Policy], families: Sequence[str], scores: Scores) -> str:
    """Return the Markdown table."""
    lines = [
        f"| kind | policy | {' | '.join(f'`{family}`' for family in families)} |",
        f"|---|---|{'---|' * len(families)}",
    ]
    for policy in policies:
        cells = [_cell(policy.kind, scores.get((policy.name, family))) for family in families]
        lines.append(f"| {policy.kind} | {policy.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def violations(policies: Sequence[Policy], families: Sequence[str], scores: Scores) -> list[str]:
    """Say which bounds the scores break."""
    found = []
    for family in families:
        means = {
            policy: statistics.mean(scores[policy.name, family])
            for policy in policies
            if (policy.name, family) in scores
        }
        for policy, mean in means.items():
            most = max(scores[policy.name, family])
            if policy.kind is Kind.HOLLOW and most > MOST_HOLLOW:
                found.append(f"{family}: {policy.name} earns {most:.3f} on a seed, over {MOST_HOLLOW}")
            if policy.kind is Kind.GUESSING and mean > MOST_GUESSING:
                found.append(f"{family}: {policy.name} earns {mean:.3f}, over {MOST_GUESSING}")
        guessed = max((mean for policy, mean in means.items() if policy.kind is Kind.GUESSING), default=0.0)
        for policy, mean in means.items():
            if policy.name in (WEAK, EMBEDDED) and not guessed < mean < 1.0:
                found.append(f"{family}: {policy.name} earns {mean:.3f}, not between {guessed:.3f} (guessing) and 1")
            if policy.name == ORACLE and set(scores[policy.name, family]) != {1.0}:
                found.append(f"{family}: {policy.name} does not earn 1 on every seed")
    return found


def _cell(kind: Kind, scores: Sequence[float] | None) -> str:
    if scores is None:
        return "-"
    mean = f"{statistics.mean(scores):.3f}"
    return f"{mean} (most {max(scores):.3f})" if kind is Kind.HOLLOW else mean


def _digest_of_judging() -> str:
    digest = hashlib.sha256()
    for folder in JUDGING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml"):
                digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
