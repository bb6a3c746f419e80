"""Learned metrics: a class per output in `codec_bench.features.scorers`."""

from __future__ import annotations

import inspect
from functools import cache
from textwrap import indent
from typing import Any, ClassVar, Literal

import numpy as np

from codec_bench.config.registry import call_with_known
from codec_bench.features import REGISTRY as FEATURES
from codec_bench.features.scorers import SCORERS, Output, ScorerRow, row_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, FeatureMetric, Inputs
from codec_bench.types import Score

ANY_LANGUAGE = "any-language"


class Predicted(FeatureMetric):
    """A number that a network predicts for the estimate, by its row.

    Args:
        variant: the feature's variant, or `any-language` for a metric of some languages.
        point: the feature's precision or library, after an `@`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("dnsmos_ovrl")(estimate=[coarse])[0]["dnsmos_ovrl"].value, 1)
        2.3
    """

    kind: ClassVar[Literal["pair", "single", "text"]] = "single"
    key: ClassVar[str]
    row: ClassVar[ScorerRow]
    output: ClassVar[Output]

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        kind = FEATURES.resolve(self.row.feature)
        self._check(kind, variant, point)
        metric_variant = variant if self.row.languages else None  # the feature does not know it
        feature_variant = None if metric_variant else variant
        named = kind.protocol if not hasattr(kind, "protocol_id") else None
        measured = named or call_with_known(kind.protocol_id, {"variant": feature_variant, "point": point})
        parts = (self.key if self.row.named else None, measured, metric_variant)
        self.protocol = "/".join(component for component in parts if component)
        self.name = f"{self.key}{_suffix(variant, point)}"
        self.estimate_features = (f"{self.row.feature}{_suffix(feature_variant, point)}",)
        self.languages = () if metric_variant else self.row.languages

    def _check(self, feature: type, variant: str | None, point: str | None) -> None:
        """Raise a UserError for a variant or precision that the metric does not have.

        Args:
            feature: the class of the network, whose parameters show what it takes.
        """
        row, takes = self.row, inspect.signature(feature).parameters
        if row.languages and variant not in (None, ANY_LANGUAGE):
            raise UserError(
                "no_variant", name=self.key, variant=variant, hint=f"use {self.key} or {self.key}[{ANY_LANGUAGE}]"
            )
        if variant is not None and not row.variants:
            raise UserError("no_variant", name=self.key, variant=variant, hint=f"use {self.key}")
        if point is not None and "point" not in takes:
            raise UserError("no_point_of_metric", name=self.key, point=point, hint=f"use {self.key}")

    def refusal(self, *, text: str | None, language: str | None) -> str | None:
        """Return a reason if the network was not trained on the language, or None."""
        if super().refusal(text=text, language=language) is None:
            return None
        every = f"{self.key}[{ANY_LANGUAGE}] gives a number for every language"
        return Diagnostic("trained_on_others", trained_on=self.row.trained_on, language=language, others=every)

    def _score(self, item: Inputs) -> Score:
        """Return the network's number for the estimate; refused in an untrained language."""
        reason = self.refusal(text=item.text, language=item.language)
        if reason is not None:
            return Score.refused(reason, self.protocol)
        result = item.estimate_features[self.estimate_features[0]]
        detail_key = self.row.detail
        return Score.ok(self._value(item), self.protocol, detail={detail_key: result[detail_key]} if detail_key else {})

    def _value(self, item: Inputs) -> float:
        return float(item.estimate_features[self.estimate_features[0]][self.output.key])


class PredictedDistance(Predicted):
    """The distance of embeddings of estimate and reference; see `Predicted`."""

    kind = "pair"
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.reference_features = self.estimate_features

    def _value(self, item: Inputs) -> float:
        sides = item.features(self.estimate_features[0])
        reference, estimate = (np.asarray(result[self.output.key], np.float64) for result in sides)
        return float(np.linalg.norm(estimate - reference))


def _suffix(variant: str | None, point: str | None) -> str:
    return (f"[{variant}]" if variant else "") + (f"@{point}" if point else "")


def _described(row: ScorerRow, output: Output) -> str:
    rest = "\n\n".join(filter(None, (output.more, row.notes)))
    return f"{output.description}\n\n{indent(rest, '    ')}\n    "


@cache
def __getattr__(name: str) -> Any:
    """Return the class of a learned metric, by the metric's name."""
    if not any(name in row.scores for row in SCORERS):
        raise AttributeError(name)
    row = row_of(name)
    output = row.scores[name]
    facts = {
        "__doc__": _described(row, output), "__module__": __name__, "key": name, "row": row, "output": output,
        "rate_hz": row.rate_hz, "range": row.range, "unit": row.unit, "higher_is_better": output.higher_is_better,
        "paper": row.paper, "source": row.source,
    }  # fmt: skip
    return type(name, (PredictedDistance if row.apart else Predicted,), facts)
