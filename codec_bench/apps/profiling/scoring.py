"""Scores a few clips in the codec's process, over many conditions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from codec_bench.codecs.adapt import fault_of
from codec_bench.types import Audio, Score


class SectionScorer:
    """Means of metrics or groups over a few clips, loaded on first use."""

    def __init__(self, metrics: Sequence[str]) -> None:
        from codec_bench.metrics import expand

        self._members = {name: expand([name]) for name in dict.fromkeys(metrics)}
        self.metrics = tuple(name for members in self._members.values() for name in members)
        self._ready: dict[str, Any] = {}

    def _loaded(self, name: str) -> Any:
        from codec_bench.api.load_metric import load_metric

        if name not in self._ready:
            self._ready[name] = load_metric(name, device="cpu")
        return self._ready[name]

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """The unit, direction and protocol of each metric, by name."""
        from codec_bench.metrics import build_metric

        metrics = {name: build_metric(name) for name in self.metrics}
        return {
            name: {"unit": m.unit, "higher_is_better": m.higher_is_better, "protocol": m.protocol}
            for name, m in metrics.items()
        }

    def __call__(
        self, references: Sequence[Audio], estimates: Sequence[Audio], texts: Sequence[str | None] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return each metric's mean `value` over `n` clips, or `reason`."""
        results: dict[str, dict[str, Any]] = {}
        for requested, members in self._members.items():
            try:
                scores = self._loaded(requested)(estimate=estimates, reference=references, text=texts)
            except Exception as error:  # one metric that cannot be computed must not take the others along
                results |= {name: {"value": None, "n": 0, "reason": fault_of(error)} for name in members}
            else:
                results |= {name: _mean([one[name] for one in scores]) for name in members}
        return results


def _mean(scores: Sequence[Score]) -> dict[str, Any]:
    values = [score.value for score in scores if score.value is not None]
    if not values:
        return {"value": None, "n": 0, "reason": scores[0].reason}
    return {"value": sum(values) / len(values), "n": len(values), "reason": None}
