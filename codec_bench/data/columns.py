"""Columns that break results down: speaker, language, duration or others.

A value is a text or a finite number; an empty text or a list is no value. A column is numeric if each of its values is
a number, also one written as text, as in a CSV.

How a column forms groups
    `duration` is measured, with edges at 2, 5, 10, 20, 60 and 600 s. A numeric column with more than `MOST_NUMBERS`
    different values is cut at its quartiles, which are rounded first to make the groups' names exact. A group includes
    its lower edge. In other columns, each value is a group. Samples without a value form a group with an empty name:
    the sums over the groups are the sums over all samples.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from codec_bench.config.option import names
from codec_bench.data.rows import ALIASES, PROBLEM
from codec_bench.decoding.remote import shown
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, first_of
from codec_bench.types import Sample

FACTS = ("speaker", "language", "duration", "sample_rate")
"""The columns of every run; `duration` is in seconds, `sample_rate` in Hz."""
MOST_VALUES = 500
"""The most different texts of a column that forms groups."""
LONGEST = 200
"""The most characters of a text in such a column."""
MOST_NUMBERS = 12
"""The most different numbers of a column that are groups themselves."""
DURATIONS_S = (2.0, 5.0, 10.0, 20.0, 60.0, 600.0)
_FEW_SAMPLES = 20
_MOST_NAMED = 30
_MEASURED = ("duration", "sample_rate")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

Value = str | int | float | None
Rows = Sequence[tuple[int, Mapping[str, Value]]]
"""The numbers of samples with their values by column."""


def value_of(cell: Any) -> Value:
    """Convert a manifest's cell to a value for groups; None for blank or other cells."""
    if isinstance(cell, bool):
        return json.dumps(cell)
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if isinstance(cell, int):
        return cell if abs(cell) < 1 << 53 else str(cell)
    return cell if isinstance(cell, str) and cell.strip() else None


def number_of(value: Value) -> float | None:
    """The number that a value is or spells, or None."""
    if isinstance(value, str):
        value = value.strip()
        return float(value) if _NUMBER.fullmatch(value) and math.isfinite(float(value)) else None
    return None if value is None else float(value)


def label_of(value: str | int | float) -> str:
    """The written form of a value: `3`, `0.5`, `calm`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def recorded_columns(samples: Iterable[Sample]) -> list[str]:
    """The extra columns of the samples that a run's record stores, in order.

    Numeric columns, and those with at most `MOST_VALUES` different texts of at most `LONGEST` characters. Others form
    no groups, and would enlarge the record of a large run.
    """
    texts: dict[str, set[str]] = {}
    fit: dict[str, bool] = {}
    for sample in samples:
        for name, cell in sample.extra.items():
            value = value_of(cell)
            if value is None or name == PROBLEM or not fit.setdefault(name, True):
                continue
            if isinstance(value, str) and number_of(value) is None:
                held = texts.setdefault(name, set())
                held.add(value)
                fit[name] = len(held) <= MOST_VALUES and len(value) <= LONGEST
    return [name for name, fits in fit.items() if fits]


def recorded_path(sample: Sample) -> str | None:
    """The path of a sample's sound for the record, without the secrets of a URL."""
    return None if sample.audio is None else shown(sample.audio)


def recorded_values(sample: Sample, columns: Sequence[str]) -> dict[str, Value]:
    """The values of a sample in these columns, without missing ones."""
    return {name: value for name in columns if (value := value_of(sample.extra.get(name))) is not None}


def broken_down(by: str | Sequence[str] | None, samples: Sequence[Sample], name: str) -> dict[str, list[str]]:
    """Check the columns of `--by` and return the record's entry `by`.

    Args:
        by: names, or one string with commas; None for none.
        name: name of the data for messages.

    Returns:
        `{"by": COLUMNS}`, or an empty dictionary without columns.

    Raises:
        UserError: the data have no such column, or one with too many values.
    """
    if not (requested := names(by or "")):
        return {}
    further = list(dict.fromkeys(column for sample in samples for column in sample.extra if column != PROBLEM))
    rows: list[tuple[int, Mapping[str, Value]]] = []
    for number, s in enumerate(samples):
        facts = {fact: value for fact in FACTS[:2] if (value := value_of(getattr(s, fact))) is not None}
        rows.append((number, {**recorded_values(s, further), **facts}))
    resolved = _resolve_columns(requested, rows, f"the data '{name}'", "add the column to the manifest")
    recorded = (*FACTS, *recorded_columns(samples))
    for column in resolved:
        if column not in _MEASURED:  # known only after the samples are read
            _group_by(column, rows)
        if column not in recorded:
            raise UserError(
                "column_text_too_long",
                column=column,
                most=LONGEST,
                hint="name a column that forms groups, such as speaker",
            )
    return {"by": resolved}


def groups(
    rows: Iterable[tuple[int, Mapping[str, Value]]], by: str | Sequence[str], data_name: str, hint: str
) -> dict[str, dict[str, list[int]]]:
    """Group samples by the values of each requested column.

    Args:
        rows: each sample's number with its values by column; read only if a column is requested.
        by: the names of columns, or one string with commas.
        data_name: name of the data for messages.
        hint: advice in the message about a missing column.

    Returns:
        Sample numbers by column and group name, such as `{"speaker": {"p225": [0, 3]}}`, groups in display order.

    Raises:
        UserError: a column is missing, or has too many values.
    """
    requested = names(by)
    if not requested:
        return {}
    held = list(rows)
    return {name: _group_by(name, held) for name in _resolve_columns(requested, held, data_name, hint)}


def _resolve_columns(requested: Sequence[str], rows: Rows, data_name: str, hint: str) -> list[str]:
    """Map requested names to columns; ignore case, accept aliases such as `lang`."""
    there = dict.fromkeys([*(name for _, held in rows for name in held), *_MEASURED])
    also = {name.lower(): name for name in reversed(there)}
    for field in FACTS[:2]:
        if field in there:
            also.update({alias: field for alias in ALIASES[field] if alias not in also})
    also.update({name: name.rpartition("_")[0] for name in ("duration_s", "sample_rate_hz") if name not in also})
    resolved = []
    for name in requested:
        at = name if name in there else also.get(name.lower())
        if at is None:
            known = [*(fact for fact in FACTS if fact in there), *sorted(there.keys() - set(FACTS))]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
            raise UserError(
                "no_column_to_group_by",
                data=data_name,
                name=name,
                known=first_of(known, _MOST_NAMED),
                hint=f"did you mean {near[0]}?" if near else hint,
            )
        resolved.append(at)
    return list(dict.fromkeys(resolved))


def _group_by(name: str, rows: Rows) -> dict[str, list[int]]:
    """Group sample numbers by one column: {group name: numbers}, "" for no value."""
    values = [held.get(name) for _, held in rows]
    known = {value for value in values if value is not None}
    numbers = {value: number for value in known if (number := number_of(value)) is not None}
    if name == "duration":
        of = _assign_bins(numbers, DURATIONS_S, " s")
    elif name == "sample_rate":
        of = {value: f"{number / 1000:g} kHz" for value, number in numbers.items()}
    elif len(numbers) == len(known) and len(set(numbers.values())) > MOST_NUMBERS and name not in FACTS:
        of = _assign_bins(numbers, _quartiles([numbers[value] for value in values if value is not None]))
    else:
        of = {value: label_of(value) for value in known}
        _check_count(name, len(set(of.values())), sum(value is not None for value in values))
    first = dict.fromkeys(sorted(known, key=lambda value: (numbers.get(value, math.inf), label_of(value).casefold())))
    out: dict[str, list[int]] = {of[value]: [] for value in first}
    for (number, _), value in zip(rows, values):
        out.setdefault("" if value is None else of[value], []).append(number)
    return out


def _check_count(name: str, groups: int, samples: int) -> None:
    """Refuse a column that identifies samples in place of forming groups."""
    if groups > MOST_VALUES:
        problem = Diagnostic("many_values", name=name, values=groups, most=MOST_VALUES)
    elif groups == samples > _FEW_SAMPLES:
        problem = Diagnostic("value_each", name=name, samples=samples)
    else:
        return
    raise UserError(problem, hint="name a column that forms groups, such as speaker")


def _quartiles(values: Iterable[float]) -> list[float]:
    """Compute the quartiles, rounded to three digits of the interquartile range."""
    exact = np.quantile(list(values), (0.25, 0.5, 0.75)).tolist()
    spread = exact[2] - exact[0]
    places = 2 - math.floor(math.log10(spread)) if spread > 0 else 12
    rounded = sorted({round(edge, places) for edge in exact})
    return [edge + 0.0 for edge in rounded]  # no negative zero


def _assign_bins(
    numbers: Mapping[str | int | float, float], edges: Sequence[float], unit: str = ""
) -> dict[Value, str]:
    """Map each value to the name of its bin, such as `2 to 5 s`.

    Args:
        numbers: the number of each value.
        edges: between the bins, rising.
    """
    written = [label_of(edge) for edge in edges]
    between = [f"{low} to {high}{unit}" for low, high in pairwise(written)]
    labels = [f"under {written[0]}{unit}", *between, f"{written[-1]}{unit} and more"]
    return {value: labels[bisect_right(edges, number)] for value, number in numbers.items()}
