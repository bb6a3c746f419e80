"""Metrics as functions of audio, computed in this process without a run:

`load_metric("dnsmos")(estimate=[audio, ...])`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from codec_bench.audio.level_checks import is_silent
from codec_bench.audio.resample import prepare, to_signal
from codec_bench.config.option import names
from codec_bench.engine.plan import Plan, build_plan, features_read
from codec_bench.engine.stage import Fault, compute_features, compute_scores
from codec_bench.engine.systems import UNPROCESSED
from codec_bench.errors import UserError
from codec_bench.features import load_feature
from codec_bench.messages import of_error
from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.base import NOT_COMPARED, Compared, Metric, compared, flagged, inputs_or_score
from codec_bench.text.language import base_language
from codec_bench.types import Audio, Score


class LoadedMetric:
    """One metric, several, or a group such as `dnsmos`, ready to be called. Several compute what they share once.

    Args:
        name: as on the command line, several with commas.
        device: `cpu` or `cuda:0`; where the models that it needs run.
        weights: file or folder with the weights of those models; None for the built-in ones.
    """

    def __init__(self, name: str, *, device: str = "cpu", weights: str | None = None) -> None:
        chosen = names(name)
        read = {f for n in expand(chosen) for f in features_read(build_metric(n))}
        options = {f: {"weights": weights} if weights is not None else {} for f in read}
        self._plan: Plan = build_plan(UNPROCESSED, chosen, options, gpu=device != "cpu")
        self._features = {f: load_feature(f, device=device, **options[f]) for f in self._plan.features}

    @property
    def protocols(self) -> dict[str, str]:
        """The protocol of each score, by the name of the metric."""
        return {name: metric.protocol for name, metric in self._plan.metrics.items()}

    def __call__(
        self,
        *,
        estimate: Sequence[Audio],
        reference: Sequence[Audio] | None = None,
        text: Sequence[str | None] | None = None,
        language: str | None = None,
    ) -> list[dict[str, Score]]:
        """Scores a batch.

        Args:
            estimate: the audio to score.
            reference: the audio to compare it with, one for each estimate; pair metrics need it.
            text: reference transcripts, one for each estimate; text metrics need them.
            language: of the speech, such as `en`, or None.

        Returns:
            One {name: Score} per item, in order.

        Raises:
            UserError: something is not what it should be, the lists differ in length, or audio has no samples or
                samples that are not finite numbers.
        """
        estimate = _check_list("estimate", estimate, Audio)
        reference = None if reference is None else _check_list("reference", reference, Audio)
        text = None if text is None else _check_list("text", text, (str, type(None)))
        if not isinstance(language, str | None):
            raise UserError(f"the language is a {type(language).__name__}; expected one for all, such as 'en', or None")
        for side, values in (("reference", reference), ("text", text)):
            if values is not None and len(values) != len(estimate):
                raise UserError(f"{len(values)} {side} items for {len(estimate)} estimates; expected one each")
        for side, audios in (("estimate", estimate), ("reference", reference or ())):
            for index, audio in enumerate(audios):
                audio.check(f"{side} {index}")
        feature_names = [m.features_of(language) for m in self._plan.metrics.values()]
        of_estimate, of_reference = (tuple(dict.fromkeys(f for pair in feature_names for f in pair[k])) for k in (0, 1))
        features = {
            "estimate_features": self._compute(of_estimate, estimate, len(estimate), language),
            "reference_features": self._compute(of_reference, reference, len(estimate), language),
        }
        others = list(reference) if reference is not None else [None] * len(estimate)
        silent = [tuple(audio is not None and is_silent(audio) for audio in pair) for pair in zip(estimate, others)]
        levels = [self._compare_levels(audio, other) for audio, other in zip(estimate, others)]
        scores: list[dict[str, Score]] = [{} for _ in estimate]
        for name, metric in self._plan.metrics.items():
            ready: list[Any] = []
            for index, (audio, other) in enumerate(zip(estimate, others)):
                rate = metric.rate_hz or (other or audio).sample_rate_hz
                ready.append(
                    inputs_or_score(
                        metric,
                        id=str(index),
                        rate_hz=rate,
                        estimate=_signal(metric, audio, rate),
                        reference=_signal(metric, other, rate),
                        text=text[index] if text is not None else None,
                        language=language,
                        duration_s=audio.duration_s,
                        **{side: values[index] for side, values in features.items()},
                    )
                )
            places = [k for k, r in enumerate(ready) if not isinstance(r, Score)]
            for place, score in zip(places, compute_scores(metric, [ready[k] for k in places])):
                ready[place] = score
            for index, score in enumerate(ready):
                quiet, other_quiet = silent[index]
                scores[index][name] = flagged(
                    metric, score, estimate_silent=quiet, reference_silent=other_quiet, comparison=levels[index]
                )
        return scores

    def _compare_levels(self, estimate: Audio, reference: Audio | None) -> Compared:
        """Compares the levels of estimate and reference at the lowest rate in use."""
        rates = self._plan.rates("estimate", (reference or estimate).sample_rate_hz)
        if reference is None or not rates:
            return NOT_COMPARED
        rate = min(rates)
        return compared(to_signal(reference, rate), to_signal(estimate, rate), rate, generated=True)

    def _compute(
        self, features: Sequence[str], audios: Sequence[Audio] | None, count: int, language: str | None
    ) -> list[dict[str, Any]]:
        """The features of each item by name, computed once for equal audio."""
        spoken = base_language(language) if language is not None else None
        rows: list[dict[str, Any]] = [{} for _ in range(count)]
        if not audios:
            return rows
        once = list({id(audio): audio for audio in audios}.values())
        for name in features:
            feature = self._features[name]
            results = compute_features(feature, [prepare(a, feature.rate_hz) for a in once], [spoken] * len(once))
            of = {id(audio): result for audio, result in zip(once, results)}
            for row, result in zip(rows, (of[id(audio)] for audio in audios)):
                row[name] = (
                    Fault(of_error(result, with_type=False), "undefined") if isinstance(result, Exception) else result
                )
        return rows


def _check_list(side: str, values: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """One side of a batch as a list.

    Raises:
        UserError: it is no list, or it holds something else.
    """
    expected = "Audio" if kind is Audio else "texts or None"
    hint = (
        "codec_bench.Audio(samples, sample_rate_hz) makes one, and Audio.read(path) reads one"
        if kind is Audio
        else None
    )
    if isinstance(values, str | Audio) or not isinstance(values, Iterable):
        raise UserError(
            f"{side} is a {type(values).__name__}; expected a list of {expected}, one for each item", hint=hint
        )
    items = list(values)
    for index, value in enumerate(items):
        if not isinstance(value, kind):
            raise UserError(f"{side} {index} is a {type(value).__name__}; expected a list of {expected}", hint=hint)
    return items


def _signal(metric: Metric, audio: Audio | None, rate_hz: int) -> np.ndarray | None:
    """One side as the metric reads it, or None."""
    return metric.prepare_signal(to_signal(audio, rate_hz)) if metric.signals and audio is not None else None


def load_metric(name: str, *, device: str = "auto", weights: str | None = None) -> LoadedMetric:
    """Loads a metric, several, or a group of metrics by name.

    Args:
        name: as on the command line, several with commas.
        device: `auto`, `cpu` or `cuda:0`; where the models that it needs run.
        weights: file or folder with the weights of those models; None for the built-in ones.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> noise = np.random.default_rng(0).standard_normal(16000).astype("float32") / 10
        >>> clean = Audio(np.sin(np.arange(16000) / 20), 16000)
        >>> scores = load_metric("si_sdr")(reference=[clean], estimate=[Audio(clean.samples + noise, 16000)])
        >>> round(scores[0]["si_sdr"].value)
        17

    Raises:
        UnknownName: there is no such metric.
        MissingExtra: a package that it needs is not installed.
    """
    from codec_bench.engine.device import resolve_devices

    return LoadedMetric(name, device=resolve_devices(device)[0], weights=weights)
