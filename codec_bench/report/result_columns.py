"""The extra columns of result tables, and those of the summary as a CSV.

docs/report.md lists them from here. `SYSTEM_COLUMNS` are in the terminal, on the page, and in tables for papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codec_bench.report import numbers
from codec_bench.stats.summary_types import MetricSummary, SystemSummary

Medium = Literal["terminal", "page", "paper"]
NOT_DISCRETE = "not discrete"
"""The tokens of a continuous codec, in tables."""


@dataclass(frozen=True, slots=True)
class SystemColumn:
    """An extra column next to the metrics, with a cell for each system.

    Args:
        means: its content, for the documentation.
        read: reads it from the summary of a system; None for no value.
        write: formats it; it may hold text from data.
        places: the tables with the column.
        where_known: whether it needs a value of some system.
    """

    name: str
    means: str
    read: Callable[[SystemSummary], Any]
    write: Callable[[Any], str]
    places: Sequence[Medium] = ("terminal", "page", "paper")
    where_known: bool = False

    def cell(self, system: SystemSummary) -> str:
        """Return the text of a system's cell."""
        value = self.read(system)
        return "–" if value is None else numbers.plain(self.write(value))


SYSTEM_COLUMNS = (
    SystemColumn(
        "n",
        "The number of items that the values of a row rest on. A value that rests on fewer says so after its interval.",
        lambda system: max((entry.n for entry in system.metrics.values()), default=0),
        "{:,}".format,
        places=("paper",),
    ),
    SystemColumn(
        "tokens/s",
        "The declared codes per second, of all codebooks; `not discrete` for a codec with latents. It needs a "
        "codec with codes.",
        lambda system: _tokens(system, "per_s"),
        lambda value: value if isinstance(value, str) else f"{value:,.6g}",
        where_known=True,
    ),
    SystemColumn(
        "bits/token",
        "The nominal bits of a code: the bitrate that the codec declares over its tokens a second.",
        lambda system: _tokens(system, "bits"),
        lambda value: value if isinstance(value, str) else f"{value:.4g}",
        where_known=True,
    ),
)


def _tokens(system: SystemSummary, fact: Literal["per_s", "bits"]) -> float | str | None:
    if not system.tokens:
        return None
    return NOT_DISCRETE if system.tokens.latents else getattr(system.tokens, fact)


def columns_in(medium: Medium, systems: Iterable[SystemSummary]) -> list[SystemColumn]:
    """Return the extra columns of a table in this medium, for these systems."""
    held = list(systems)
    return [
        column
        for column in SYSTEM_COLUMNS
        if medium in column.places and not (column.where_known and all(column.read(system) is None for system in held))
    ]


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column of the summary as a CSV, which has a row for each system and metric."""

    name: str
    means: str
    read: Callable[[str, str, MetricSummary, SystemSummary], Any]


def _entry(read: Callable[[MetricSummary], Any]) -> Callable[[str, str, MetricSummary, SystemSummary], Any]:
    return lambda name, metric, entry, system: read(entry)


def _word(state: bool | None) -> str | None:
    return None if state is None else str(state).lower()


def _standing(entry: MetricSummary, name: str) -> str | None:
    compared = entry.standing and entry.standing.compared
    return _word(getattr(entry.standing, name)) if compared else None


CSV_COLUMNS = (
    CsvColumn("system", "The name of the system.", lambda name, metric, entry, system: name),
    CsvColumn("metric", "The name of the metric.", lambda name, metric, entry, system: metric),
    CsvColumn("value", "The value, not rounded; a bitrate is in bits per second.", _entry(lambda e: e.value)),
    CsvColumn("ci95_low", "The lower end of its 95 % interval.", _entry(lambda e: e.ci95 and e.ci95[0])),
    CsvColumn("ci95_high", "The upper end.", _entry(lambda e: e.ci95 and e.ci95[1])),
    CsvColumn("note", "Why the interval is missing, or what qualifies it.", _entry(lambda e: e.note and str(e.note))),
    CsvColumn("method", "The method of the interval.", _entry(lambda e: e.method or None)),
    CsvColumn("n", "The number of samples of the value.", _entry(lambda e: e.n)),
    CsvColumn("failed", "The number of samples without a value.", _entry(lambda e: e.failed)),
    CsvColumn(
        "flagged",
        "The number of doubtful scores, such as of estimates without speech "
        "([silent and unrelated outputs](silence.md)).",
        _entry(lambda e: e.flagged or 0),
    ),
    CsvColumn(
        "common",
        "The value over the samples for which all compared systems have one; empty if the system has no others.",
        _entry(lambda e: e.common.value if e.common else None),
    ),
    CsvColumn("common_n", "The number of these samples.", _entry(lambda e: e.common.n if e.common else None)),
    CsvColumn(
        "counting_failures",
        "The value with failures as the worst value; empty where a failure has none.",
        _entry(lambda e: e.counting_failures.of_all if e.counting_failures else None),
    ),
    CsvColumn("unit", "The unit of the value.", _entry(lambda e: e.unit)),
    CsvColumn(
        "higher_is_better",
        "`true` or `false`; empty where neither direction is better.",
        _entry(lambda e: _word(e.higher_is_better)),
    ),
    CsvColumn("protocol", "The exact measurement.", _entry(lambda e: e.protocol)),
    CsvColumn(
        "best",
        "`true` for the best value of a metric, else `false`; empty for a system that is not compared.",
        _entry(lambda e: _standing(e, "best")),
    ),
    CsvColumn(
        "alike",
        "`true` for a value that is not distinguishable from the best, else `false`; empty for a system that is not "
        "compared.",
        _entry(lambda e: _standing(e, "alike")),
    ),
    CsvColumn(
        "tokens_per_s",
        "The declared codes per second, of all codebooks; `not discrete` with latents, and empty for packets.",
        lambda name, metric, entry, system: _tokens(system, "per_s"),
    ),
    CsvColumn(
        "bits_per_token",
        "The nominal bits of a code, in the same way.",
        lambda name, metric, entry, system: _tokens(system, "bits"),
    ),
    CsvColumn(
        "suspect",
        "The findings of the system's checks; empty without any.",
        lambda name, metric, entry, system: numbers.doubts_text(system),
    ),
)
