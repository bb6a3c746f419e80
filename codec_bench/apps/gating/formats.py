"""JUnit XML and Markdown of a gate's result."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from codec_bench.apps.gating.verdicts import GateResult
from codec_bench.apps.gating.words import (
    CHECK_HEADS,
    VERDICTS,
    check_notes,
    check_rows,
    conclusion,
    limit_text,
    moved_metric,
    number,
)

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#!~])")
_LONGEST = 300


def junit_xml(result: GateResult) -> str:
    """Format a test suite with a case for each metric and limit."""
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
    case = ElementTree.SubElement(suite, "testcase", classname="codec-bench.gate", name=_NOT_XML.sub("\ufffd", name))
    text = _NOT_XML.sub("\ufffd", text)
    if failed:
        ElementTree.SubElement(case, "failure", message=text)
    else:
        ElementTree.SubElement(case, "system-out").text = text


def markdown(result: GateResult) -> str:
    """Format a summary for a pull request: table, exceeded limits, ten worst items."""
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
