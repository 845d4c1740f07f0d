"""Which runs a submission needs, in which order, and their facts. Runs things, judges nothing."""

import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from autotest_env.mutation.rendering import catalogue
from autotest_env.sandbox.run import Grading
from autotest_env.sandbox.suite import RUN_CPU_S, CompiledSuite, Program, RunJob, SuiteResult
from autotest_env.tasks.judging import BugRuns, Evidence, failing, failure, judge
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer.generate import Secret

DECOYS = 5
SIBLINGS = 3
TIME_FACTOR = 5
"""A run on a variant may take this many times the CPU time of the slowest run on correct code."""
_LEAST_CPU_S = 0.5
"""Below this, what a run costs is mostly the process itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Which renderings a submission meets: of the reference, of each bug (two), of each sibling."""

    decoys: tuple[int, ...] = field(repr=False)
    bugs: Mapping[str, tuple[int, int]] = field(repr=False)
    siblings: Mapping[str, tuple[int, ...]] = field(repr=False)


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
    runs = _Runs(suite, grading, rng)
    for look in (_decoys, _bugs, _siblings):
        if _is_decided(evidence):
            break
        evidence = look(evidence, drawn, runs, texts)
    return replace(evidence, out_of_time=grading.is_used_up)


def _is_decided(evidence: Evidence) -> bool:
    """Whether no further run can change the score."""
    verdicts = judge(evidence)
    return failure(evidence) is not None or not (verdicts.valid if evidence.null is None else verdicts.asserting)


def _decoys(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """The null program and the reference in other renderings."""
    wanted: dict[Hashable, Program] = {"null": texts.null}
    wanted |= {("decoy", number): texts.rendered({}, number) for number in drawn.decoys}
    results = runs.make(wanted, TIME_FACTOR * RUN_CPU_S)
    return replace(evidence, null=results["null"], decoys=tuple(results["decoy", number] for number in drawn.decoys))


def _bugs(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """Each bug in one rendering."""
    wanted: dict[Hashable, Program] = {bug: texts.rendered({bug: 1}, first) for bug, (first, _) in drawn.bugs.items()}
    results = runs.make(wanted, _variant_cpu_s(evidence))
    bugs = tuple(BugRuns(bug=bug, renderings=(results[bug],), siblings=()) for bug in drawn.bugs)
    return replace(evidence, bugs=bugs)


def _siblings(evidence: Evidence, drawn: Draw, runs: "_Runs", texts: Texts) -> Evidence:
    """For each bug that an asserting test noticed: its other rendering and its siblings; the reference last."""
    first, asserting = evidence.reference[0], judge(evidence).asserting
    noticed = [each.bug for each in evidence.bugs if asserting & failing(each.renderings[0], first)]
    wanted: dict[Hashable, Program] = {}
    for bug in noticed:
        wanted["bug", bug] = texts.rendered({bug: 1}, drawn.bugs[bug][1])
        for number, rendering in enumerate(drawn.siblings[bug]):
            wanted["sibling", bug, number] = texts.rendered({bug: 2 + number}, rendering)
    results = runs.make(wanted, _variant_cpu_s(evidence), last=texts.reference)
    bugs = tuple(
        replace(
            each,
            renderings=(*each.renderings, results["bug", each.bug]),
            siblings=tuple(results["sibling", each.bug, number] for number in range(SIBLINGS)),
        )
        if each.bug in noticed
        else each
        for each in evidence.bugs
    )
    return replace(evidence, bugs=bugs, reference=(first, results["last"]))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Makes named runs of one suite in secret order."""

    suite: CompiledSuite
    grading: Grading
    rng: random.Random

    def make(
        self, wanted: Mapping[Hashable, Program], cpu_s: float, last: Program | None = None
    ) -> dict[Hashable, SuiteResult]:
        order = list(wanted)
        self.rng.shuffle(order)
        jobs = [RunJob(program=wanted[name], suite=self.suite, cpu_s=cpu_s) for name in order]
        if last is not None:
            order.append("last")
            jobs.append(RunJob(program=last, suite=self.suite, cpu_s=TIME_FACTOR * RUN_CPU_S))
        return dict(zip(order, self.grading.run(jobs), strict=True))


def _variant_cpu_s(evidence: Evidence) -> float:
    """Time out a variant at a multiple of what the slowest run on correct code took: renderings differ in cost."""
    slowest = max(result.cpu_s for result in (*evidence.reference, *evidence.decoys))
    return min(max(TIME_FACTOR * slowest, _LEAST_CPU_S), TIME_FACTOR * RUN_CPU_S)
