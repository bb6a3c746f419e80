"""Each metric's cost in CPU seconds per hour of audio, on one machine.

The benches write `costs.csv`. It ranks metrics by cost; other machines differ.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

COSTS = Path(__file__).with_suffix(".csv")
FIELDS = ("metric", "cpu_s_an_hour")


@cache
def _costs() -> dict[str, float]:
    with COSTS.open(encoding="utf-8", newline="") as file:
        return {row["metric"]: float(row["cpu_s_an_hour"]) for row in csv.DictReader(file)}


def cost_of(name: str) -> float | None:
    """Return a metric's CPU seconds per hour of audio; None if it was not measured.

    A metric that needs a recogniser to be named has the cost of the variant that was measured.

    Args:
        name: such as `stoi`, `wer` or `wer[whisper-tiny.en]`.
    """
    from codec_bench.metrics import REGISTRY, weights_of

    costs = _costs()
    if name in costs or name not in REGISTRY.names() or weights_of(name) != "by variant":
        return costs.get(name)
    return next((cost for form, cost in costs.items() if form.partition("[")[0] == name), None)
