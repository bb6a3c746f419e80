"""Changes that move each metric although a listener would not mind, as measured.

`sensitivity.csv` is the output of `codec-bench metrics --stability --format csv` over embedded speech, with published
weights only.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path

SENSITIVITY = Path(__file__).with_suffix(".csv")
NOTABLE = 0.25
"""Shifts from this share of the spread over five codecs can swap two of them in a ranking."""
MEASURE = "codec-bench metrics --stability --metrics {}"
"""The command that measures a metric whose weights are at hand."""


@cache
def shifts_in_spreads() -> dict[str, dict[str, float]]:
    """Read how far harmless changes of audio, as of level, move each metric.

    Returns:
        By metric and change, the largest mean shift, divided by the metric's spread over five codecs; infinite for
        a spread of 0, as of `clipped_share`.
    """
    shifts: dict[str, dict[str, float]] = {}
    with SENSITIVITY.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kinds = shifts.setdefault(row["metric"], {})
            alone = math.inf if float(row["mean_shift"] or 0.0) else 0.0
            kinds[row["group"]] = max(float(row["in_spreads"] or alone), kinds.get(row["group"], 0.0))
    return shifts


def sensitive_to(name: str) -> str | None:
    """List the changes of audio that move a metric notably, largest first, as text.

    Returns:
        None if the metric was not measured.
    """
    kinds = shifts_in_spreads().get(name)
    if kinds is None:
        return None
    notable = sorted((kind for kind, shift in kinds.items() if shift >= NOTABLE), key=lambda kind: -kinds[kind])
    return ", ".join(f"{kind} ({in_words(kinds[kind])})" for kind in notable) or "none of the changes tried"


def in_words(shift: float) -> str:
    """Format a shift that is measured in spreads."""
    return "the codecs are equal" if math.isinf(shift) else f"{shift:.2g}"
