"""The page's sections in folders of `report/`: one row of `SECTIONS` each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from codec_bench.report.breakdown.rows import page_tables
from codec_bench.report.controls.rows import HEADS, beyond_notes, control_rows
from codec_bench.report.page.columns import Tables
from codec_bench.report.robustness.rows import choice_notes, place_rows, robustness_of


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the page.

    Args:
        name: of its template there (`NAME.html.j2`), and of its anchor on the page.
        link: the text of the link to the section; "" excludes the section.
    """

    package: str
    name: str
    values: Callable[[Tables], Mapping[str, Any]]
    link: Callable[[Mapping[str, Any]], str]

    @property
    def template(self) -> str:
        """The file of its template."""
        return f"{self.name}.html.j2"


def _control_values(tables: Tables) -> dict[str, Any]:
    """Build the template values of the controls, by system."""
    rows = {
        system.label: {"rows": control_rows(controls), "notes": beyond_notes(controls)}
        for system in tables.systems
        if (controls := tables.summaries[system.run].controls)
    }
    return {"controls": rows, "control_heads": HEADS}


def _robustness_values(tables: Tables) -> dict[str, Any]:
    """Build the template values of wordings and order of options, by system."""
    wordings, choices = {}, {}
    for system in tables.systems:
        summary = tables.summaries[system.run]
        answers = summary.answers
        if (wording_table := robustness_of(summary.systems[system.name].metrics, answers)) is not None:
            wordings[system.label] = wording_table
        if chosen := answers and answers.choices:
            choices[system.label] = {"places": place_rows(chosen), "notes": choice_notes(chosen, places=False)}
    return {"wordings": wordings, "choices": choices}


def _breakdowns(tables: Tables) -> dict[str, Any]:
    return {"breakdowns": page_tables(tables.heads, tables.entries)}


SECTIONS = (
    PageSection("codec_bench.report.controls", "controls", _control_values, lambda held: "Controls" if held["controls"]
        else ""),
    PageSection(
        "codec_bench.report.robustness", "wordings", _robustness_values,
        lambda held: "Wordings" if held["wordings"] else "Options" if held["choices"] else "",
    ),
    PageSection(
        "codec_bench.report.breakdown", "breakdown", _breakdowns,
        lambda held: "Breakdown" if held["breakdowns"] else "",
    ),
)  # fmt: skip
"""In page order, before the plots. Styles and scripts are in `__init__.py`."""


def section_values(tables: Tables) -> dict[str, Any]:
    """Return the variables of all sections, and `sections`: those on the page."""
    held = [(section, section.values(tables)) for section in SECTIONS]
    shown = [(section, link) for section, values in held if (link := section.link(values))]
    return {
        **{name: value for _, values in held for name, value in values.items()},
        "sections": [{"name": one.name, "template": one.template, "link": link} for one, link in shown],
    }
