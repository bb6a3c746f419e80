"""The verb `judge_strengths`: systems by verdicts on pairs of their answers.

A comparison is one verdict of a rubric on a system's answer and its baseline's. Runs with several baselines are joined
by common systems, but never across benchmarks, rubrics, judges or states of a judge. Units of intervals are speakers
where known, else questions.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from codec_bench.benchmark.baselines import label_of_run
from codec_bench.benchmark.judge.rubric import load_rubric
from codec_bench.messages.errors import UserError
from codec_bench.stats.pairwise_preferences import Duel, Strengths, strengths
from codec_bench.store.controls import result_folders
from codec_bench.store.record import Run
from codec_bench.store.statuses import NOT_APPLICABLE

OF_THE_DATA = "the answer of the data"
"""Name of the other answer where the run had no baseline."""


@dataclass(frozen=True, slots=True)
class JudgedStrengths:
    """The systems compared by one judge and rubric on one benchmark.

    Args:
        rubric: its protocol without a judge.
        served: the service's names of the judge.
        tested: judge and test result.
        lost: answers without a verdict.
        found: the strengths; without systems and with a note if the comparisons are not connected.
    """

    benchmark: str
    rubric: str
    judge: str
    served: Sequence[str]
    tested: str
    lost: int
    found: Strengths

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return asdict(self)


class _Of(NamedTuple):
    benchmark: str
    rubric: str
    judge: str
    served: tuple[str, ...]
    tested: str


class _Verdicts(NamedTuple):
    system: str
    baseline: str
    duels: Sequence[Duel]
    missing: int


def judge_strengths(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, seed: int = 0
) -> list[JudgedStrengths]:
    r"""Estimate strengths from verdicts on pairs (Bradley-Terry, Davidson's ties).

    Args:
        runs: folders of runs whose answers a rubric compared with a baseline, or folders that hold some.
        seed: of the draws of items.

    Returns:
        One for each benchmark, rubric and judge.

    Raises:
        UserError: there are no such verdicts, two runs hold the same comparison, or no comparisons are connected.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import judge_strengths, run_benchmark
        >>> Path("pairs").mkdir(exist_ok=True)
        >>> rows = [f'{{"id": "{n}", "q": "Question {n}?"}}' for n in range(12)]
        >>> written = Path("pairs/rows.jsonl").write_text("\n".join(rows))
        >>> written = Path("pairs/benchmark.yaml").write_text('''
        ... {version: 1, title: Pairs, summary: Two answers side by side., category: QA, kind: qa, language: en,
        ... data: {path: rows.jsonl, id: id, columns: {question: q}},
        ... prompt: {messages: [{content: ["{{ question }}"]}]},
        ... metrics: ["rating[pair-answers]"], primary: "rating[pair-answers]"}''')
        >>> wins = "('course' in text.split('</first')[0]) != ('Question 1' in text)"
        >>> longer = f"'tie' if 'Question 3' in text else 'first' if {wins} else 'second'"
        >>> for name, says in (("brief", "'Paris'"), ("wordy", "'Paris, of course'"), ("longer", longer)):
        ...     written = Path(f"{name}.py").write_text(f'''
        ... from codec_bench.models.base import Model, ModelInfo
        ... from codec_bench.types import Response
        ... class Says(Model):
        ...     info = ModelInfo("{name}")
        ...     identity = {{"says": "{name}"}}
        ...     async def ask(self, request):
        ...         text = str(request.messages[-1].content[-1])
        ...         return Response(text={says})
        ... ''')
        >>> models, judge = ["./brief.py:Says", "./wordy.py:Says"], "./longer.py:Says"
        >>> runs = run_benchmark(benchmark="./pairs", model=models, judge=judge, baseline=models[0], out="runs/pairs")
        >>> (one,) = judge_strengths("runs/pairs")
        >>> [(found.system, round(found.points)) for found in one.found.systems]  # 8 wins, 3 losses and a tie
        [('wordy', 85), ('brief', -85)]
    """
    labels: dict[str, str] = {}
    held: dict[_Of, list[_Verdicts]] = defaultdict(list)
    for folder in result_folders(runs):  # answers without the sound are no result
        with closing(Run(folder)) as run:
            if run.meta.get("fingerprint"):
                labels[label_of_run(run)] = next(iter(run.systems))
            for of, verdicts in _verdicts(run):
                if any(one[:2] == verdicts[:2] for one in held[of]):
                    raise UserError(
                        "pair_compared_twice",
                        system=verdicts.system,
                        baseline=verdicts.baseline,
                        benchmark=of.benchmark,
                        hint="name one of them",
                    )
                held[of].append(verdicts)
    if not held:
        raise UserError(
            "no_pair_verdicts", hint="a rubric such as pair-answers gives them; see --baseline of codec-bench run"
        )
    results = [_strengths(of, verdicts, labels, seed) for of, verdicts in sorted(held.items())]
    if not any(one.found.systems for one in results):
        raise UserError(
            "no_strengths",
            benchmark=results[0].benchmark,
            cause=results[0].found.note,
            hint="compare one system of each group with the same baseline",
        )
    return results


def _strengths(of: _Of, held: Sequence[_Verdicts], labels: Mapping[str, str], seed: int) -> JudgedStrengths:
    """Fit strengths to all duels; a note tells why they are missing."""
    duels = [duel._replace(b=labels.get(duel.b, duel.b)) for one in held for duel in one.duels]
    missing = sum(one.missing for one in held)
    try:
        return JudgedStrengths(*of, missing, strengths(duels, seed=seed))
    except UserError as error:
        return JudgedStrengths(
            *of, missing, Strengths((), 0.0, len(duels), len({duel.unit for duel in duels}), error.message)
        )


def _verdicts(run: Run) -> Iterator[tuple[_Of, _Verdicts]]:
    """Yield a run's verdicts on pairs of answers, by judge.

    Each comes after the benchmark, rubric and judge that it belongs to.
    """
    units = {one.id: one.speaker or one.id for one in run.samples()}
    benchmark = str((run.meta.get("benchmark") or {}).get("name"))
    for name, facts in run.metrics.items():
        if not facts.get("judge") or not _is_preference(facts):
            continue
        (system,) = run.systems
        rubric, _, rest = str(facts["protocol"]).partition(f"/{facts['judge']}")
        baseline = rest.partition("/beside-")[2] or OF_THE_DATA
        scores = [score for score in run.scores(metric=name) if score.status not in NOT_APPLICABLE]
        if not scores:  # the baseline against itself
            continue
        decided = [score for score in scores if score.value is not None]
        of = _Of(benchmark, rubric, facts["judge"], run.served(name), run.judge(name))
        duels = [Duel(system, baseline, float(score.value or 0.0), units[score.id]) for score in decided]
        yield of, _Verdicts(system, baseline, duels, len(scores) - len(decided))


def _is_preference(facts: Mapping[str, Any]) -> bool:
    """Whether a metric's rubric asks which of two answers is better."""
    if "own_rubric" in facts:
        return bool(facts["own_rubric"]["reply"] == "preferred")
    rubric = facts.get("rubric")
    try:
        return isinstance(rubric, str) and load_rubric(rubric).reply == "preferred"
    except UserError:  # a rubric that is gone
        return False


__all__ = ["JudgedStrengths", "judge_strengths"]
