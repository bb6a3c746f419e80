"""What moves each metric though a listener would not mind, as `codec-bench metrics --stability --format csv` measured
it.

`sensitivity.csv` next to this module is that command's output over embedded speech, with published weights alone:
made-up ones would say nothing of a metric. A metric whose weights were not at hand is not in it.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path

SENSITIVITY = Path(__file__).with_suffix(".csv")
NOTABLE = 0.25
"""A shift from this share of the spread over five codecs on is worth a word: it can turn the ranking of two of them."""
MEASURE = "codec-bench metrics --stability --metrics {}"
"""The command that measures a metric whose weights are at hand."""


@cache
def shifts_in_spreads() -> dict[str, dict[str, float]]:
    """By metric and kind of change, the largest of its mean shifts in units of the metric's spread over five codecs.

    Infinite where a metric is moved that says the same of all five, as the share of clipped samples.
    """
    shifts: dict[str, dict[str, float]] = {}
    with SENSITIVITY.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kinds = shifts.setdefault(row["metric"], {})
            alone = math.inf if float(row["mean_shift"] or 0.0) else 0.0
            kinds[row["group"]] = max(float(row["in_spreads"] or alone), kinds.get(row["group"], 0.0))
    return shifts


def sensitive_to(name: str) -> str | None:
    """What moves a metric by a notable share of its spread, those that move it most first; None where it was not
    measured.
    """
    kinds = shifts_in_spreads().get(name)
    if kinds is None:
        return None
    notable = sorted((kind for kind, shift in kinds.items() if shift >= NOTABLE), key=lambda kind: -kinds[kind])
    return ", ".join(f"{kind} ({in_words(kinds[kind])})" for kind in notable) or "none of the changes tried"


def in_words(shift: float) -> str:
    """A shift in spreads as it is shown."""
    return "the codecs are equal" if math.isinf(shift) else f"{shift:.2g}"
