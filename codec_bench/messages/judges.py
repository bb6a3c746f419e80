"""Codes of tests of judges."""

from __future__ import annotations

from collections.abc import Sequence


def figure_text(value: float | None, low: float | None, high: float | None) -> str:
    """A figure with its interval as text: `0.62 [0.50, 0.70]`."""
    if value is None:
        return "unknown"
    ends = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
    return f"{value:.2f}{ends}".replace("-0.00", "0.00")


def _tested(
    date: str,
    j: float | None,
    low: float | None,
    high: float | None,
    tested: Sequence[str] = (),
    served: Sequence[str] = (),
) -> str:
    tests = f" of {' and '.join(tested)}, and {' and '.join(served)} gave these verdicts" if tested else ""
    return f"judge tested {date}: J {figure_text(j, low, high)}{tests}"


SENTENCES = {
    "info": {"judge_tested": _tested},
    "warning": {
        "judge_not_tested": "this judge was not tested",
        "judge_not_tested_on_sounds": "this judge was not tested on sounds",
        "judge_not_tested_by_rubric": "this judge was not tested with this rubric",
    },
}
