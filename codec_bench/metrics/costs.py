"""What each metric costs: processor seconds for an hour of sound, as they were measured on one machine.

`costs.csv` next to this module is written by the project's benches from their rows, and is no promise for another
machine. It says which metric is cheap and which is not.
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
    """Processor seconds of a metric for an hour of sound, or None where it was not measured.

    A metric that has no form without brackets was measured in one of its forms, and its plain name has the number of
    that.

    Args:
        name: such as `stoi`, `wer` or `wer[whisper-tiny.en]`.
    """
    costs = _costs()
    forms = (cost for form, cost in costs.items() if form.partition("[")[0] == name)
    return costs[name] if name in costs else next(forms, None)
