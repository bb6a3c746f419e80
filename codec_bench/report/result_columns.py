"""What tables of results say: the columns beside the metrics, and those of the summary as a CSV. docs/report.md lists
them from here.

A row of `SYSTEM_COLUMNS` stands in the table of the terminal, on the page, and in the tables for a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codec_bench.report import numbers
from codec_bench.stats.summary_types import MetricSummary, SystemSummary

Medium = Literal["terminal", "page", "paper"]
NOT_DISCRETE = "not discrete"
"""What tables say in place of the tokens of a continuous codec."""


@dataclass(frozen=True, slots=True)
class SystemColumn:
    """A column beside the metrics, with one cell for each system.

    Args:
        name: its head. means: what it holds, for the documentation.
        read: takes it from the summary of a system; None where there is none. write: how it is written; it may hold
            text from data.
        places: the tables in which it stands.
        where_known: whether it stands only where some system has a value.
    """

    name: str
    means: str
    read: Callable[[SystemSummary], Any]
    write: Callable[[Any], str]
    places: Sequence[Medium] = ("terminal", "page", "paper")
    where_known: bool = False

    def cell(self, system: SystemSummary) -> str:
        """What stands in the cell of a system."""
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
        "The codes of a second that a codec declares, of all codebooks; `not discrete` for a codec with latents. It stands where some codec has one.",
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
    """What a codec declares of its tokens; a text for one that has latents."""
    if not system.tokens:
        return None
    return NOT_DISCRETE if system.tokens.latents else getattr(system.tokens, fact)


def columns_in(medium: Medium, systems: Iterable[SystemSummary]) -> list[SystemColumn]:
    """The columns beside the metrics in a table of such a kind and of these systems."""
    held = list(systems)
    return [
        column
        for column in SYSTEM_COLUMNS
        if medium in column.places and not (column.where_known and all(column.read(system) is None for system in held))
    ]


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column of the summary as a CSV, which has a row for each system and metric.

    Args:
        name: its head. means: what it holds, for the documentation.
        read: takes it from the names of the system and the metric, their entry, and the system's; None is an empty
            cell.
    """

    name: str
    means: str
    read: Callable[[str, str, MetricSummary, SystemSummary], Any]


CSV_COLUMNS = (
    CsvColumn("system", "The name of the system.", lambda name, metric, entry, system: name),
    CsvColumn("metric", "The name of the metric.", lambda name, metric, entry, system: metric),
    CsvColumn(
        "value",
        "The value. It is not rounded, and a bitrate is in bits per second.",
        lambda name, metric, entry, system: entry.value,
    ),
    CsvColumn(
        "ci95_low",
        "The lower end of its 95 % interval.",
        lambda name, metric, entry, system: entry.ci95 and entry.ci95[0],
    ),
    CsvColumn("ci95_high", "The upper end.", lambda name, metric, entry, system: entry.ci95 and entry.ci95[1]),
    CsvColumn(
        "note",
        "Why the interval is missing, or what to know of it.",
        lambda name, metric, entry, system: entry.note and str(entry.note),
    ),
    CsvColumn("method", "The method of the interval.", lambda name, metric, entry, system: entry.method or None),
    CsvColumn("n", "The number of samples that the value rests on.", lambda name, metric, entry, system: entry.n),
    CsvColumn("failed", "The number of samples without a value.", lambda name, metric, entry, system: entry.failed),
    CsvColumn(
        "flagged",
        "The number of samples whose score is in doubt, such as one of an estimate without speech ([silent and unrelated outputs](silence.md)).",
        lambda name, metric, entry, system: entry.flagged or 0,
    ),
    CsvColumn(
        "common",
        "The value over the samples for which all systems that are compared have one; empty where the system has no others.",
        lambda name, metric, entry, system: entry.common.value if entry.common else None,
    ),
    CsvColumn(
        "common_n",
        "The number of these samples.",
        lambda name, metric, entry, system: entry.common.n if entry.common else None,
    ),
    CsvColumn(
        "counting_failures",
        "The value if failures count as the worst value; empty where a failure has none.",
        lambda name, metric, entry, system: entry.counting_failures.of_all if entry.counting_failures else None,
    ),
    CsvColumn("unit", "The unit of the value.", lambda name, metric, entry, system: entry.unit),
    CsvColumn(
        "higher_is_better",
        "`true` or `false`; empty where neither direction is better.",
        lambda name, metric, entry, system: (
            None if entry.higher_is_better is None else str(entry.higher_is_better).lower()
        ),
    ),
    CsvColumn("protocol", "The exact measurement.", lambda name, metric, entry, system: entry.protocol),
    CsvColumn(
        "best",
        "`true` for the best value of a metric, else `false`; empty for a system that is not compared.",
        lambda name, metric, entry, system: (
            str(entry.standing.best).lower() if entry.standing and entry.standing.compared else None
        ),
    ),
    CsvColumn(
        "alike",
        "`true` for a value that is not distinguishable from the best, else `false`; empty for a system that is not compared.",
        lambda name, metric, entry, system: (
            str(entry.standing.alike).lower() if entry.standing and entry.standing.compared else None
        ),
    ),
    CsvColumn(
        "tokens_per_s",
        "The codes of a second that the codec declares, of all codebooks; `not discrete` for one with latents, and empty where it sends packets.",
        lambda name, metric, entry, system: _tokens(system, "per_s"),
    ),
    CsvColumn(
        "bits_per_token",
        "The nominal bits of a code, in the same way.",
        lambda name, metric, entry, system: _tokens(system, "bits"),
    ),
    CsvColumn(
        "suspect",
        "What the checks of the system found; empty if they found nothing.",
        lambda name, metric, entry, system: numbers.doubts_text(system),
    ),
)
