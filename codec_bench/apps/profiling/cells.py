"""What a table of a profile is made of: sections of rows, with one cell per codec.

Conventions
    A cell is text. If a measurement does not apply, failed or was not made, the cell is `–` and holds the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codec_bench.apps.profiling.settings import SKIPPED
from codec_bench.messages import Diagnostic


@dataclass(frozen=True, slots=True)
class ProfileCell:
    """The value of one codec in one row.

    Args:
        reason: why there is no value, or None. flag: whether somebody should look at the value. skipped: whether it was
            not measured because the caller left it out.
    """

    text: str
    reason: str | None = None
    flag: bool = False
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One measured quantity. `description` explains it in one sentence."""

    label: str
    unit: str
    description: str
    cells: list[ProfileCell]


@dataclass(frozen=True, slots=True)
class ProfileSection:
    """Rows that belong together.

    Args:
        note: how they were measured. without: the rows in which no codec has a value.
    """

    title: str
    note: str
    rows: list[ProfileRow]
    without: list[ProfileRow] = field(default_factory=list)


def number_cell(value: float | None, form: str, reason: str | None) -> ProfileCell:
    """A number, or the reason why there is none."""
    return ProfileCell("–", reason) if value is None else ProfileCell(form.format(value).replace("-", "−"))


def spread_text(values: Sequence[float], form: str, ends: str | None = None) -> str:
    """The mean, and the lowest and highest where there are several; `–` without any.

    Args:
        form: of the mean. ends: of the lowest and highest; None for `form`.
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
    """A row of one value for each codec.

    Args:
        codecs: the sections of each codec. label: what the row is called. unit: of the values. description: one sentence.
        section: the section that holds the value. render: the value's text or cell, from a section that was measured.
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
