"""Metrics that need all answers at once, made anew when the answers of several shards are merged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from codec_bench.benchmark.judge.metric import is_judge_metric
from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.benchmark.scoring.scoring import score_sets
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.record import Run


def score_sets_again(folder: Path) -> tuple[str, ...]:
    """Scores the answers of a merged record by the metrics that need all of them; the others do not change by merging.

    The rules are those in the record, so that neither the benchmark's definition nor the model is needed.

    Returns:
        The names of these metrics.

    Raises:
        UserError: a package that one of them needs is missing, or the record cannot be written.
    """
    with closing(Run(folder)) as run:
        fingerprint, systems, metrics = run.meta["fingerprint"], run.systems, run.metrics
        rules = fingerprint.get("scored") or {}
        sets = [
            name
            for name in metrics
            if not is_judge_metric(name) and is_answer_metric(name) and load_answer_metric(name).whole_set
        ]
        if not sets:
            return ()
        chains = rules.get("chains", {})
        scheme = Scheme.of(rules.get("process", ()), {name: chains.get(name) for name in sets})
        with closing(AnswerWriter(folder, fingerprint)) as writer:
            writer.begin(systems, metrics, ())
            score_sets(run, writer, scheme)
    return tuple(sets)
