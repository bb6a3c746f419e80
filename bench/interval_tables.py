"""The tables of docs/design/intervals.md, from the newest rows of `bench_intervals.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from common import Row, rows_of

UNITS = {
    "given": "share of runs with an interval",
    "coverage": "share of intervals with the truth",
    "alarms": "share of p below 0.05",
    "marked": "share of marked intervals",
    "plain": "share of intervals without a note with the truth",
    "wider": "times as wide as Student's t",
}
"""What is counted, and the unit of its rows."""
GIVEN, HELD, ALARMS, MARKED, PLAIN, WIDER = UNITS.values()
OURS, BOOTSTRAP, SIGNS, ALONE = "codec-bench", "percentile bootstrap", "sign test of items", "over raters alone"
FEW_VALUES = re.compile(r"mean, (.+), (\d+) items")
"""The designs of means of few values, whose width stands beside that of Student's t."""
Found = dict[tuple[str, str, str], Row]


def _newest(part: str) -> Found:
    """The newest row of each case of a part, its variant and its unit; the first study has no part before its cases."""
    begins = f"{part}: " if part else ""
    rows = (row for row in rows_of("intervals") if row["case"].startswith(begins) and (part or ": " not in row["case"]))
    return {(row["case"].removeprefix(begins), row["variant"], row["unit"]): row for row in rows}


def _cases(found: Found) -> list[str]:
    return list(dict.fromkeys(case for case, _, _ in found))


def _number(found: Found, case: str, variant: str, unit: str) -> str:
    """A share or a ratio with two decimals; a dash where there is none."""
    row = found.get((case, variant, unit))
    return "–" if row is None else f"{float(row['p50']):.2f}"


def _table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    return "\n".join(["", *(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *lines)), "", ""])


def _of_equal(*columns: tuple[str, str, str, Sequence[str]]) -> str:
    """A table of the first study; of columns how their heads begin, the variant, the unit and the kinds."""
    found = _newest("")
    designs = dict.fromkeys(case.rpartition(", ")[2] for case in _cases(found))
    wanted = [(head + kind, kind, variant, unit) for head, variant, unit, kinds in columns for kind in kinds]
    return _table(
        ["speakers x utterances", *(head for head, *_ in wanted)],
        ([design, *(_number(found, f"{kind}, {design}", variant, unit) for _, kind, variant, unit in wanted)] for design in designs),
    )  # fmt: skip


def equal() -> str:
    """Of equal speakers: the intervals that hold the truth."""
    kinds = ("mean", "bounded mean", "ratio", "difference", "share", "error rate")
    marked = ("marked: ", OURS, MARKED, ("bounded mean", "error rate"))
    return _of_equal(("", OURS, HELD, kinds), ("bootstrap: ", BOOTSTRAP, HELD, ("mean", "difference")), marked)


def alarms() -> str:
    """Of equal speakers: the share of p below 0.05 where two systems do not differ."""
    bootstrap = ("bootstrap: ", BOOTSTRAP, ALARMS, ("mean", "difference"))
    return _of_equal(
        ("", OURS, ALARMS, ("mean", "ratio", "difference")), bootstrap, ("sign test: ", SIGNS, ALARMS, ("mean",))
    )


def ordinary() -> str:
    """Ordinary, unequal data, but for means of few values."""
    found = _newest("ordinary")
    return _table(
        ["what is drawn", "runs with an interval", "intervals that hold the truth", "with a note", "those without that hold it"],
        ([case, *(_number(found, case, OURS, unit) for unit in (GIVEN, HELD, MARKED, PLAIN))] for case in _cases(found) if not FEW_VALUES.fullmatch(case)),
    )  # fmt: skip


def few() -> str:
    """Means of few values, by law and how many there are."""
    found = _newest("ordinary")
    named = [match for case in _cases(found) if (match := FEW_VALUES.fullmatch(case))]
    laws, sizes = dict.fromkeys(m[1] for m in named), sorted({int(m[2]) for m in named})
    cell = lambda case: f"{_number(found, case, OURS, HELD)} ({_number(found, case, OURS, WIDER)})"  # noqa: E731
    return _table(
        ["law", *(f"{size} items" for size in sizes)],
        ([law, *(cell(f"mean, {law}, {size} items") for size in sizes)] for law in laws),
    )


def whole() -> str:
    """What `summary.json` and the page of a run say, of means and the like, and of medians."""
    lines = []
    for part in ("recorded", "medians"):
        found = _newest(part)
        for case in _cases(found):
            first = found[case, f"{OURS}, summary.json", GIVEN]
            numbers = [_number(found, case, f"{OURS}, summary.json", unit) for unit in (GIVEN, HELD)]
            lines.append([case, f"{int(first['n']):,}", *numbers, _number(found, case, f"{OURS}, page", HELD)])
    places = ["intervals of `summary.json` that hold the truth", "intervals of the page"]
    return _table(["what is drawn", "runs", "runs with an interval", *places], lines)


def crossed() -> str:
    """Listening tests, over raters and sounds and over raters alone."""
    lines = []
    for part in ("crossed", "kinds"):
        found = _newest(part)
        for case in _cases(found):
            tests = f"{int(found[case, OURS, HELD]['n']):,}"
            lines.append([case, tests, *(_number(found, case, variant, unit) for variant in (OURS, ALONE) for unit in (HELD, ALARMS))])  # fmt: skip
    alone = ["over raters alone: intervals", "over raters alone: p below 0.05"]
    return _table(["what is drawn", "tests", "intervals that hold the truth", "p below 0.05", *alone], lines)


TABLES: dict[str, Callable[[], str]] = {
    f"intervals-{made.__name__}": made for made in (equal, alarms, ordinary, few, whole, crossed)
}
"""What stands between the marks of these names."""
