"""The table of learned scorers, `scorers.yaml`: networks, their scores and sources.

`codec_bench.metrics.predicted` makes a metric of every output. A row with a `ScorerNetwork` becomes a feature in
`codec_bench.features.learned`. This module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.config import load_yaml

OPINION = (1.0, 5.0)
"""The range of an opinion score."""


@dataclass(frozen=True, slots=True)
class ScorerNetwork:
    """A network over the windows of a signal. Scores are means over the windows.

    Args:
        path: `package.module:Class`. The class has `cut` (a signal's windows), `room` (the padded size of a window) and
            `at_once` (the most samples of a pass on a CPU and on a GPU), and may have `translated`, which renames
            published tensors.
        weights: the entry of the catalogue. key: of the weights in the published file.
        protocol: exact id of the measurement.
        title: the name in sentences. about: the description that `codec-bench show` prints before the arguments.
        outputs: the names of the numbers, in order. windows: the result's key of the number of windows.
        least: the samples of the shortest signal.
        batch_s: padded seconds of audio in the first batch.
        most_s: the seconds of the longest signal; 0 without a limit.
        draws: whether the class has `draw`, whose tensor (a row per seed) is an input too.
    """

    path: str
    weights: str
    key: str | None
    protocol: str
    title: str
    about: str
    outputs: tuple[str, ...]
    windows: str
    least: int
    batch_s: float
    most_s: float = 0.0
    draws: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a network that is a score.

    Args:
        key: its name in the feature's result.
        description: one line with direction and range. more: further facts for readers.
        higher_is_better: None where neither direction is better.
    """

    key: str
    description: str
    more: str = ""
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class ScorerRow:
    """A row.

    Args:
        feature: the feature's name. scores: its outputs, by the name of the metric.
        paper, source: the definition, and the reference implementation with its tolerance.
        notes: both, and the arguments, as `codec-bench show` prints them.
        topic: a key of `codec_bench.metrics.TOPICS`. group: the name that requests the scores together.
        apart: whether a score is a distance between the embeddings of estimate and reference.
        named: whether the protocol begins with the metric's name.
        detail: the result's key that is recorded next to a score.
        variants: whether the scores have a variant in brackets.
        languages: base codes of the supported languages; empty for any. The variant `any-language` lifts the limit.
        trained_on: why other languages are refused.
    """

    feature: str
    scores: Mapping[str, Output]
    paper: str
    source: str
    notes: str
    rate_hz: int = 16_000
    range: tuple[float | None, float | None] = OPINION
    unit: str = ""
    topic: str = "naturalness"
    group: str = ""
    apart: bool = False
    named: bool = False
    detail: str = ""
    variants: bool = False
    languages: tuple[str, ...] = ()
    trained_on: str = ""
    network: ScorerNetwork | None = field(default=None)


def _read_row(row: Mapping[str, Any]) -> ScorerRow:
    scores = {name: Output(**output) for name, output in row["scores"].items()}
    network = row.get("network")
    return ScorerRow(
        **_with_tuples(row) | {"scores": scores, "network": network and ScorerNetwork(**_with_tuples(network))}
    )


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


SCORERS = tuple(map(_read_row, load_yaml(Path(__file__).with_suffix(".yaml"))))
"""In the order of the groups, then of the alphabet."""


def row_of(metric: str) -> ScorerRow:
    """Return the row of a learned metric."""
    return next(row for row in SCORERS if metric in row.scores)
