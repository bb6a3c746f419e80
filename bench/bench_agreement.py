"""Times the agreement of two raters over 100,000 items, with its intervals, beside SciPy's coefficients without any.

    python bench/bench_agreement.py

The ratings are whole numbers from 0 to 5, or numbers without ties; the items belong to 5,000 speakers. The whole command,
from a record and a CSV file of ratings to the tables, is timed too.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from common import append_rows, interleaved, row, worst
from scipy import stats

from codec_bench.api.agreement import agreement
from codec_bench.stats.agreement import agreement_of
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score

ITEMS, SPEAKERS = 100_000, 5_000
PEERS: dict[str, Callable[..., object]] = {
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
    "pearson": stats.pearsonr,
}


def ratings(ties: bool, items: int = ITEMS) -> tuple[np.ndarray, np.ndarray]:
    """Two raters of the same items, whole numbers from 0 to 5 or numbers without ties."""
    rng = np.random.default_rng(0)
    true = rng.normal(2.5, 1.3, items)
    first, second = (true + rng.normal(0, 0.8, items) for _ in range(2))
    return (np.clip(np.round(first), 0, 5), np.clip(np.round(second), 0, 5)) if ties else (first, second)


def ours(first: np.ndarray, second: np.ndarray) -> object:
    """The package's coefficients with intervals over speakers."""
    return agreement_of(reference=first, rater=second, codes=np.arange(len(first)) % SPEAKERS)


def scipys(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """SciPy's coefficients."""
    return {name: float(peer(first, second).statistic) for name, peer in PEERS.items()}  # type: ignore[attr-defined]


def compare(first: np.ndarray, second: np.ndarray) -> float:
    """How far the coefficients lie from SciPy's.

    Raises:
        SystemExit: that is more than 1e-9, or a coefficient has no interval around it.
    """
    found = agreement_of(reference=first, rater=second, codes=np.arange(len(first)) % SPEAKERS).coefficients
    for name in PEERS:
        mine = found[name]
        if mine.value is None or mine.low is None or mine.high is None or not mine.low < mine.value < mine.high:
            raise SystemExit(f"{name}: {mine.value} has the interval {mine.low} to {mine.high}")
    return worst([(value, found[name].value) for name, value in scipys(first, second).items()], 1e-9, "beside SciPy")


def material(folder: Path, items: int = ITEMS) -> tuple[Path, Path]:
    """The record of a run that a judge rated, and a CSV file of ratings by a person."""
    first, second = ratings(True, items)
    facts = {"protocol": "rating/mine-0/judge", "kind": "rating", "judge": "judge", "rubric": "mine", "unit": "", "range": [0, 5], "higher_is_better": True}  # fmt: skip
    with closing(AnswerWriter(folder / "run", {"asked": {}, "scored": {}})) as writer:
        writer.begin({"m": {}}, {"rating[mine]": facts}, ())
        asked = [QuestionRecord(n, f"q{n}", {}, ("yes",), speaker=f"s{n % SPEAKERS}") for n in range(items)]
        writer.write_answers([(question, AnswerRecord("ok", None, "yes")) for question in asked])
        scored = [(n, ItemRecord("m", f"q{n}", "ok", None, {"rating[mine]": Score.ok(float(v), "p")})) for n, v in enumerate(first)]  # fmt: skip
        writer.write_marked(scored, {})
    with (folder / "human.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "rater", "score"), *((f"q{n}", "ann", int(v)) for n, v in enumerate(second))]
        )
    return folder / "run", folder / "human.csv"


def main() -> None:
    """Times both, and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name, ties in (("ratings from 0 to 5", True), ("no ties", False)):
        first, second = ratings(ties)
        apart = compare(first, second)
        calls = {"all coefficients with intervals": partial(ours, first, second), "scipy: three, without": partial(scipys, first, second)}  # fmt: skip
        for variant, times in interleaved(calls, repeats=options.repeats).items():
            note = f"coefficients within {apart:.1g} of SciPy's" if variant.startswith("all") else ""
            rows.append(row(name, variant, times, n=ITEMS, agreement=note))
            sys.stdout.write(f"{name:>22} {variant:>32} {np.median(times):>8.3f} s\n")
    with tempfile.TemporaryDirectory() as folder:
        run, human = material(Path(folder))
        times = interleaved({"command": partial(agreement, runs=run, human=human)}, repeats=options.repeats)["command"]
        rows.append(row("a judge and a person", "from the record and the file", times, n=ITEMS))
        sys.stdout.write(
            f"{'a judge and a person':>22} {'from the record and the file':>32} {np.median(times):>8.3f} s\n"
        )
    path = append_rows("agreement", rows, ("codec-bench", "scipy", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
