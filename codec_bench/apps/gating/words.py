"""A gate's codes as sentences, its tables, and JUnit XML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from codec_bench.apps.gating.api import Calibration
from codec_bench.apps.gating.verdicts import GateResult, GateVerdict, LimitCheck
from codec_bench.report.numbers import plain, probability

VERDICTS = {"better": "better", "same": "same", "worse": "worse", "cannot_tell": "cannot tell"}
LIMITS = {
    "max": "value at most {limit:g}",
    "min": "value at least {limit:g}",
    "failed": "at most {limit:g} items without a score",
    "silent": "at most {limit:g} silent outputs",
    "truncated": "at most {limit:g} truncated answers",
    "items_above_50": "at most {limit:g} items above 50 %",
}
NOTES = {
    "one_run": "The spread between repeats is unknown: the baseline has one run. Freeze several runs with other seeds "
    "to calibrate margins.",
    "undefined": "{metrics} has no value in the baseline and is not in the gate.",
    "items_as_units": "Too few speakers to count as units for {metrics}: the intervals are about these speakers.",
    "few_repeats": "The values of whole runs spread too much for a verdict on {metrics}. Freeze more repeats: with "
    "five the interval is half as wide as with three.",
    "one_run_worse": "The baseline has one run, so a shift that all items of a run share counts as a regression. "
    "Freeze several runs to measure it.",
    "margin_zero": "Without a spec every margin is 0. A difference that is not significant stays undecided.",
}
CHECK_HEADS = ("metric", "verdict", "baseline", "run", "loss", "interval", "margin", "p", "items")
CALIBRATE_HEADS = ("metric", "value", "SE items", "SD repeats", "finds", "margin")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#!~])")
_LONGEST = 300


def limit_text(check: LimitCheck) -> str:
    """Describe a limit with the observed number."""
    name = "run" if check.metric is None else plain(check.metric)
    value_text = "no value" if check.value is None else f"{check.value:.6g}"
    return f"{name}: {LIMITS[check.code].format(limit=check.limit)}; found {value_text}"


def check_rows(result: GateResult) -> list[list[str]]:
    """Build a row for each metric of a check."""
    return [_check_row(one) for one in result.metrics]


def _check_row(one: GateVerdict) -> list[str]:
    """Format the cells of a verdict's line."""
    loss = one.loss
    return [
        plain(one.metric),
        VERDICTS[one.verdict],
        number(one.baseline),
        number(one.value),
        number(None if loss is None else loss.loss, signed=True),
        "–" if loss is None else f"[{number(loss.low, signed=True)}, {number(loss.high, signed=True)}]",
        number(one.margin),
        probability(one.p_holm),
        f"{one.items:,}",
    ]


def check_notes(result: GateResult) -> list[str]:
    """List notes: exceeded limits, few speakers or repeats, and lost items."""
    notes = [limit_text(check) for check in result.limits if not check.passed]
    if fixed := [plain(one.metric) for one in result.metrics if one.few_speakers]:
        notes.append(NOTES["items_as_units"].format(metrics=", ".join(fixed)))
    undecided = [one for one in result.metrics if one.verdict == "cannot_tell" and one.loss and one.loss.by_runs]
    if undecided:
        notes.append(NOTES["few_repeats"].format(metrics=", ".join(plain(one.metric) for one in undecided)))
    if result.repeats == 1 and any(one.verdict == "worse" for one in result.metrics):
        notes.append(NOTES["one_run_worse"])
    for one in result.metrics:
        if one.lost:
            notes.append(f"{plain(one.metric)}: {len(one.lost)} items lost their score, such as '{plain(one.lost[0])}'")
    return notes


def conclusion(result: GateResult) -> str:
    """Describe the result of the gate in a line."""
    worse = [plain(one.metric) for one in result.metrics if one.verdict == "worse"]
    undecided = [plain(one.metric) for one in result.metrics if one.verdict == "cannot_tell"]
    limits = sum(not one.passed for one in result.limits)
    if result.exit_code == 1:
        parts = [f"worse: {', '.join(worse)}"] if worse else []
        parts += [f"{limits} limit{'s' if limits > 1 else ''} exceeded"] if limits else []
        return f"regressed ({'; '.join(parts)})"
    if undecided:
        return f"{'failed' if result.exit_code else 'passed'} (cannot tell: {', '.join(undecided)})"
    return "passed"


def calibrate_rows(calibration: Calibration) -> list[list[str]]:
    """Build a row for each metric of a calibration."""
    return [
        [plain(name), number(one.value), number(one.spread.items), number(one.spread.repeats),
         number(one.detectable), number(one.margin)]
        for name, one in calibration.metrics.items()
    ]  # fmt: skip


def calibrate_notes(calibration: Calibration) -> list[str]:
    """Describe in sentences which regressions more repeats or items would show."""
    notes = [NOTES["one_run"]] if calibration.repeats == 1 else []
    if calibration.undefined:
        notes.append(NOTES["undefined"].format(metrics=", ".join(map(plain, calibration.undefined))))
    for name, one in calibration.metrics.items():
        more = [f"{k} repeats {number(v)}" for k, v in one.with_repeats.items()]
        more += [f"{k} times the items {number(v)}" for k, v in one.with_items.items()]
        if one.detectable:
            notes.append(f"{plain(name)} finds: {', '.join(more)}")
    return notes


def number(value: float | None, *, signed: bool = False) -> str:
    """Format with four significant digits."""
    if value is None:
        return "–"
    return f"{value:+.4g}" if signed else f"{value:.4g}"


def moved_metric(result: GateResult) -> GateVerdict | None:
    """Return the metric to show items of: worse ones first, then the smallest p."""
    shown: Sequence[GateVerdict] = [one for one in result.metrics if one.moved]
    return min(shown, key=lambda one: (one.verdict != "worse", 1.0 if one.p_holm is None else one.p_holm), default=None)


def junit_xml(result: GateResult) -> str:
    """Format a result as JUnit XML, with a test case for each metric and limit."""
    undecided = result.fail_undecided
    cases = [
        (f"{one.metric}", one.verdict == "worse" or (undecided and one.verdict == "cannot_tell"), row)
        for one, row in zip(result.metrics, check_rows(result))
    ]
    limits = [(f"{one.metric or 'run'}: {one.code}", not one.passed, limit_text(one)) for one in result.limits]
    suite = ElementTree.Element(
        "testsuite", name="codec-bench gate", tests=str(len(cases) + len(limits)),
        failures=str(sum(failed for _, failed, _ in [*cases, *limits])),
    )  # fmt: skip
    for name, failed, row in cases:
        text = ", ".join(f"{head} {cell}" for head, cell in zip(CHECK_HEADS[1:], row[1:]))
        _add_case(suite, name, failed, text)
    for name, failed, text in limits:
        _add_case(suite, name, failed, text)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _add_case(suite: ElementTree.Element, name: str, failed: bool, text: str) -> None:
    """Add a case to the JUnit report, with failure or output."""
    case = ElementTree.SubElement(suite, "testcase", classname="codec-bench.gate", name=_NOT_XML.sub("\ufffd", name))
    text = _NOT_XML.sub("\ufffd", text)
    if failed:
        ElementTree.SubElement(case, "failure", message=text)
    else:
        ElementTree.SubElement(case, "system-out").text = text


def markdown(result: GateResult) -> str:
    """Format a result for a pull request: table, exceeded limits, ten worst items."""
    lines = [f"### Quality gate: {_escape(conclusion(result))}", "", *_table(CHECK_HEADS, check_rows(result))]
    notes = check_notes(result)
    lines += ["", *(f"- {_escape(note)}" for note in notes)] if notes else []
    worse = [one for one in result.metrics if one.verdict == "worse" and one.moved]
    first = moved_metric(result)
    for one in worse or ([first] if first else []):
        lines += ["", f"**{_escape(one.metric)}: items that lost most** ({VERDICTS[one.verdict]})", ""]
        has_text = any(item.transcript_after is not None for item in one.moved)
        heads = ("item", "baseline", "run", *(("text", "transcript before", "transcript now") if has_text else ()))
        lines += _table(
            heads,
            [
                [item.id, number(item.before), number(item.after),
                 *((item.text or "", item.transcript_before or "", item.transcript_after or "") if has_text else ())]
                for item in one.moved
            ],
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    cells = lambda row: "| " + " | ".join(map(_escape, row)) + " |"  # noqa: E731
    return [cells(list(heads)), "|" + "---|" * len(heads), *map(cells, rows)]


def _escape(text: str) -> str:
    flat = " ".join(text.split())
    flat = flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"
    return _MARKDOWN.sub(r"\\\1", flat).replace("@", "@\u200b")
