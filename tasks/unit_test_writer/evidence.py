"""Which runs a submission needs, in which order, and their facts. Runs things, judges nothing."""

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from autotest_env.mutation.rendering import catalogue
from autotest_env.sandbox.run import Grading
from autotest_env.sandbox.suite import RUN_CPU_S, CompiledSuite, Program, RunJob, SuiteResult
from autotest_env.tasks.judging import BugRuns, Evidence, failing, failure, judge
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer.generate import Secret

DECOYS = 5
SIBLINGS = 3
TIME_FACTOR = 5
"""A run on a variant may take this many times the CPU time of the first run on the reference."""
_LEAST_CPU_S = 0.5
"""Below this, what a run costs is mostly the process itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Which renderings a submission meets: of the reference, of each bug (two), of each sibling."""

    decoys: tuple[int, ...]
    bugs: Mapping[str, tuple[int, int]]
    siblings: Mapping[str, tuple[int, ...]]


def draw(bugs: tuple[str, ...], rng: random.Random) -> Draw:
    """Draw renderings: always a decoy with chaff and one free of the reference's own tokens; a bug once with chaff."""
    chaff = [each.number for each in catalogue() if each.chaff]
    plain = [each.number for each in catalogue() if not each.chaff]
    free = [each.number for each in catalogue() if each.token_free]
    decoys = [rng.choice(chaff), rng.choice(free)]
    others = [each.number for each in catalogue() if each.number not in decoys]
    decoys += rng.sample(others, DECOYS - len(decoys))
    numbers = chaff + plain
    return Draw(
        decoys=tuple(decoys),
        bugs={bug: (rng.choice(plain), rng.choice(chaff)) for bug in bugs},
        siblings={bug: tuple(rng.choice(numbers) for _ in range(SIBLINGS)) for bug in bugs},
    )


def collect(secret: Secret, suite: CompiledSuite, grading: Grading, texts: Texts, rng: random.Random) -> Evidence:
    """Make the runs of a submission; those that cannot change the score any more are left out."""
    drawn = draw(secret.bugs, rng)
    everything = dict.fromkeys(secret.bugs, 1)
    shown, first = grading.run(
        [
            RunJob(program=texts.plain(everything), suite=suite, represent=True, cover=True),
            RunJob(program=texts.reference, suite=suite),
        ]
    )
    evidence = Evidence(reference=(first,), shown=shown, bug_count=len(secret.bugs))
    if failure(evidence) is not None or not judge(evidence).valid:
        return evidence
    runs = _Runs(suite, grading, rng, cpu_s=_variant_cpu_s(first))
    evidence = _first_look(evidence, drawn, runs, texts)
    if failure(evidence) is None and judge(evidence).asserting:
        evidence = _closer_look(evidence, drawn, runs, texts)
    return replace(evidence, out_of_time=grading.is_over)


def _first_look(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """Null program, all decoys, each bug once."""
    wanted: dict[Hashable, Program] = {"null": texts.null}
    wanted |= {("decoy", number): texts.rendered({}, number) for number in drawn.decoys}
    wanted |= {("bug", bug): texts.rendered({bug: 1}, first) for bug, (first, _) in drawn.bugs.items()}
    results = runs.make(wanted)
    return replace(
        evidence,
        null=results["null"],
        decoys=tuple(results["decoy", number] for number in drawn.decoys),
        bugs=tuple(BugRuns(bug=bug, renderings=(results["bug", bug],), siblings=()) for bug in drawn.bugs),
    )


def _closer_look(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """For each bug that an asserting test noticed: its other rendering and its siblings; then the reference again."""
    first, asserting = evidence.reference[0], judge(evidence).asserting
    wanted: dict[Hashable, Program] = {}
    for noticed in evidence.bugs:
        if asserting & failing(noticed.renderings[0], first):
            bug = noticed.bug
            wanted["bug", bug] = texts.rendered({bug: 1}, drawn.bugs[bug][1])
            for number, rendering in enumerate(drawn.siblings[bug]):
                wanted["sibling", bug, number] = texts.rendered({bug: 2 + number}, rendering)
    results = runs.make(wanted, last=texts.reference)
    bugs = tuple(
        replace(
            runs_of,
            renderings=(*runs_of.renderings, results["bug", runs_of.bug]),
            siblings=tuple(results["sibling", runs_of.bug, number] for number in range(SIBLINGS)),
        )
        if ("bug", runs_of.bug) in results
        else runs_of
        for runs_of in evidence.bugs
    )
    return replace(evidence, bugs=bugs, reference=(first, results["last"]))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Makes named runs of one suite in secret order."""

    suite: CompiledSuite
    grading: Grading
    rng: random.Random
    cpu_s: float

    def make(self, wanted: Mapping[Hashable, Program], last: Program | None = None) -> dict[Hashable, SuiteResult]:
        order = list(wanted)
        self.rng.shuffle(order)
        programs = [wanted[name] for name in order]
        if last is not None:
            order.append("last")
            programs.append(last)
        jobs = [RunJob(program=program, suite=self.suite, cpu_s=self.cpu_s) for program in programs]
        return dict(zip(order, self.grading.run(jobs), strict=True))


def _variant_cpu_s(first: SuiteResult) -> float:
    return min(max(TIME_FACTOR * first.cpu_s, _LEAST_CPU_S), TIME_FACTOR * RUN_CPU_S)
