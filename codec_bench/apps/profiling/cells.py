"""Sections, rows and cells of a profile's tables, with one cell per codec.

A cell is text. If a measurement does not apply, failed or was not made, the cell is `–` and holds the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from codec_bench.apps.profiling.settings import SKIPPED
from codec_bench.config import load_yaml
from codec_bench.messages import Diagnostic


@dataclass(frozen=True, slots=True)
class ProfileCell:
    """One codec's value in a row; `flag` marks a doubtful one."""

    text: str
    reason: str | None = None
    flag: bool = False
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One measured quantity; `description` explains it in one sentence."""

    label: str
    unit: str
    description: str
    cells: list[ProfileCell]


@dataclass(frozen=True, slots=True)
class ProfileSection:
    """Rows that belong together; `without` has those without any value."""

    title: str
    note: str
    rows: list[ProfileRow]
    without: list[ProfileRow] = field(default_factory=list)


def number_cell(value: float | None, form: str, reason: str | None) -> ProfileCell:
    """Format a number as a cell; None gives a dash with the reason."""
    return ProfileCell("–", reason) if value is None else ProfileCell(form.format(value).replace("-", "−"))


def spread_text(values: Sequence[float], form: str, ends: str | None = None) -> str:
    """Format the mean, and (minimum–maximum) of several values; `–` without values.

    Args:
        form: format string of the mean, such as `{:.2f}`.
        ends: that of minimum and maximum; None for `form`.
    """
    if not values:
        return "–"
    mean, low, high = form.format(sum(values) / len(values)), min(values), max(values)
    return mean if len(values) == 1 else f"{mean} ({(ends or form).format(low)}–{(ends or form).format(high)})"


def row_of(
    codecs: Mapping[str, Any],
    label: str,
    unit: str,
    description: str,
    section: str,
    render: Callable[[Mapping[str, Any]], Any],
) -> ProfileRow:
    """Build a row with a cell per codec, from one section of each codec's results.

    Args:
        section: key of the section; a codec without its values gets `–` with the reason.
        render: converts the section to the text or the cell.
    """
    cells = []
    for codec in codecs.values():
        values = codec[section]
        if values["state"] != "ok":
            reason = values["reason"]  # a diagnostic, or its sentence as profile.json holds it
            code = reason.code if isinstance(reason, Diagnostic) else values.get("reason_code", {}).get("code")
            skipped = code == SKIPPED.code
            cells.append(ProfileCell("–", f"{values['state']}: {values['reason']}", skipped=skipped))
            continue
        content = render(values)
        cells.append(content if isinstance(content, ProfileCell) else ProfileCell(content))
    return ProfileRow(label, unit, description, cells)


def rows_of(codecs: Mapping[str, Any], renders: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> list[ProfileRow]:
    """Build a row for each entry of `renders`, with the texts of `rows.yaml`.

    Args:
        renders: by `SECTION.KEY`: converts that section of a codec's results to the text or the cell.
    """
    rows = []
    for name, render in renders.items():
        section, _, key = name.partition(".")
        label, unit, description = _texts()[section][key]
        rows.append(row_of(codecs, label, unit, description, section, render))
    return rows


def section_of(name: str, rows: list[ProfileRow]) -> ProfileSection:
    """Build a section with the title and note of `rows.yaml`."""
    title, note = _texts()["sections"][name]
    return ProfileSection(title, note, rows)


@cache
def _texts() -> Any:
    return load_yaml(files(__package__) / "rows.yaml")
