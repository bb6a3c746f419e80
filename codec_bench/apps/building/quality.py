"""Floors of quality: metrics of single sounds, such as UTMOS and DNSMOS, below whose lowest score an item is not kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from codec_bench.apps.building.item import Dropped, Failure
from codec_bench.errors import UserError
from codec_bench.metrics import build_metric
from codec_bench.types import Audio, Score


class LoadedScores(Protocol):
    """A metric that is ready to be called, as `codec_bench.load_metric` gives it."""

    def __call__(self, *, estimate: Sequence[Audio], language: str | None = None) -> list[dict[str, Score]]:
        """The scores of each sound by name."""
        ...


MetricLoader = Callable[[str], LoadedScores]


class Floors:
    """The floors of a recipe.

    Args:
        floors: the lowest score by the name of the metric. language: of the texts. load: loads a metric by name.

    Raises:
        UserError: there is no such metric, it needs a reference or a transcript, less is better for it, it does not know the language,
            or its weights are not there.
    """

    def __init__(self, floors: Mapping[str, float], language: str, load: MetricLoader) -> None:
        self._floors, self._language = floors, language
        self.protocols = {name: _fitting(name, language) for name in floors}
        self._loaded = {name: load(name) for name in floors}
        # Features load at their first call and hold buffers of their own, so that one thread at a time asks them.
        self._lock = threading.Lock()

    def check(self, audio: Audio) -> dict[str, float]:
        """The scores of a sound by name.

        Raises:
            Dropped: at the step `quality`; a score is too low, or there is none.
        """
        found = {}
        for name, floor in self._floors.items():
            with self._lock:
                score = self._loaded[name](estimate=[audio], language=self._language)[0][name]
            if score.status != "ok" or score.value is None:
                raise Dropped(Failure("quality", f"{name} gave no score", score.reason or score.status))
            if score.value < floor:
                raise Dropped(Failure("quality", f"{name} is below {floor:g}", f"{score.value:.3f}"))
            found[name] = round(float(score.value), 6)
        return found

    def as_dict(self, scores: Mapping[str, float]) -> dict[str, Any]:
        """Scores with their protocols, for the provenance of a row."""
        return {name: {"score": score, "protocol": self.protocols[name]} for name, score in scores.items()}


def _fitting(name: str, language: str) -> str:
    """The protocol of a metric that can be a floor."""
    metric = build_metric(name)
    if metric.kind != "single" or not metric.higher_is_better:
        raise UserError(
            f"checks.quality names '{name}', which is no score of a single sound whose higher values are better",
            hint="use utmos, dnsmos_ovrl, dnsmos_sig, dnsmos_bak or dnsmos_p808",
        )
    if (refusal := metric.refusal(text=None, language=language)) is not None:
        raise UserError(f"checks.quality names '{name}': {refusal}")
    return metric.protocol
