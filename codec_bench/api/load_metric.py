"""Metrics as functions of audio in this process, without a run.

`load_metric("dnsmos")(estimate=[audio, ...])`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.api.sounds_in_memory import DeviceAudio, Unusable, read_sounds
from codec_bench.audio.level_checks import is_silent
from codec_bench.audio.resample import prepare, to_signal
from codec_bench.config.option import names
from codec_bench.engine.plan import Plan, build_plan, list_features_read
from codec_bench.engine.stage import Fault, compute_feature, compute_scores
from codec_bench.engine.systems import UNPROCESSED
from codec_bench.features import load_feature
from codec_bench.messages import of_error
from codec_bench.messages.errors import UserError
from codec_bench.metrics import build_metric, expand, is_foreign_metric
from codec_bench.metrics.base import (
    NOT_COMPARED,
    ComparedLevels,
    Inputs,
    Metric,
    SharedResults,
    compare_levels,
    flag_doubtful,
    inputs_or_score,
)
from codec_bench.text.language import base_language
from codec_bench.types import Audio, Score


class LoadedMetric:
    """One metric, several, or a group such as `dnsmos`; several share computations.

    Args:
        name: as on the command line, several with commas.
        device: `cpu` or `cuda:0`, for the models.
        weights: file or folder with the weights of those models; None for the built-in ones.
    """

    def __init__(self, name: str, *, device: str = "cpu", weights: str | None = None) -> None:
        chosen = names(name)
        read = {f for n in expand(chosen) for f in list_features_read(build_metric(n))}
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
        estimate: Any,
        reference: Any = None,
        text: str | Sequence[str | None] | None = None,
        language: str | Sequence[str | None] | None = None,
        speaker: str | Sequence[str | None] | None = None,
        sample_rate_hz: int | None = None,
        lengths: Any = None,
        reference_lengths: Any = None,
    ) -> list[dict[str, Score]]:
        """Score a batch. An item that is no finite audio gets failed scores.

        Args:
            estimate: the audio to score: a list of `Audio`, of arrays or of tensors `(samples,)` or `(channels,
                samples)`; one such sound; or a batch `(batch, samples)` with `lengths`, or `(batch, channels,
                samples)`.
            reference: the audio to compare it with, in the same forms; pair metrics need it.
            text: reference transcripts, one for each estimate or one for all; text metrics need them.
            language: of the speech, such as `en`: one for all, one for each estimate, or None.
            speaker: likewise, for custom metrics.
            sample_rate_hz: of arrays and tensors. Tensors of any float type and device are read, without gradient.
            lengths, reference_lengths: the samples of each item of a padded batch; the second is the first if None.

        Returns:
            One {name: Score} per item, in order.

        Raises:
            UserError: an argument is invalid, or the lists differ in length.
        """
        estimates = read_sounds("estimate", estimate, sample_rate_hz, lengths)
        count = len(estimates)
        others: list[Any] = [None] * count
        if reference is not None:
            reference_lengths = lengths if reference_lengths is None else reference_lengths
            others = read_sounds("reference", reference, sample_rate_hz, reference_lengths)
        words = {"text": text, "language": language, "speaker": speaker}
        known = {role: _one_each(role, values, count) for role, values in words.items()}
        if len(others) != count:
            raise UserError("item_count", items=len(others), name="reference", count=count)
        scores: list[dict[str, Score]] = [{} for _ in estimates]
        good = []
        for index, sides in enumerate(zip(estimates, others)):
            reason = next((candidate for candidate in sides if isinstance(candidate, Unusable)), None)
            if reason is None:
                good.append(index)
            else:
                scores[index] = {n: Score.failed(str(reason), m.protocol) for n, m in self._plan.metrics.items()}
        pick = lambda values: [values[index] for index in good]  # noqa: E731
        selected = {role: pick(values) for role, values in known.items()}
        for index, item_scores in zip(good, self._score(good, pick(estimates), pick(others), selected)):
            scores[index] = item_scores
        return scores

    def _score(
        self,
        indexes: Sequence[int],
        estimate: Sequence[Any],
        others: Sequence[Any],
        known: Mapping[str, Sequence[str | None]],
    ) -> list[dict[str, Score]]:
        """Score valid items: {metric: score} of each. All arguments hold these only.

        Args:
            indexes: positions of the items in the caller's batch.
            estimate, others: the audio, and the reference audio or None.
            known: the items' `text`, `language` and `speaker`.
        """
        language = known["language"]
        features = [
            self._compute([self._features_of(code, position) for code in language], audios, language)
            for position, audios in enumerate((estimate, others))
        ]
        silent = [tuple(audio is not None and is_silent(audio) for audio in pair) for pair in zip(estimate, others)]
        levels = [self._compare_levels(audio, other) for audio, other in zip(estimate, others)]
        every = range(len(estimate))
        more = [
            {
                "id": str(indexes[k]),
                **{role: values[k] for role, values in known.items()},
                "duration_s": estimate[k].duration_s,
                "estimate_features": features[0][k],
                "reference_features": features[1][k],
            }
            for k in every
        ]
        scores: list[dict[str, Score]] = [{} for _ in every]
        foreign = [name for name in self._plan.metrics if is_foreign_metric(name)]
        ours = [name for name in self._plan.metrics if name not in foreign]
        # Our metrics score item by item: the results that they share are of one item at a time.
        for chosen, batch in [*((ours, [k]) for k in every), (foreign, every)]:
            shared = {k: SharedResults() for k in batch}
            for name in chosen:
                metric = self._plan.metrics[name]
                ready: list[Any] = [_inputs(metric, estimate[k], others[k], shared[k], more[k]) for k in batch]
                places = [position for position, one in enumerate(ready) if not isinstance(one, Score)]
                for position, score in zip(places, compute_scores(metric, [ready[position] for position in places])):
                    ready[position] = score
                for k, score in zip(batch, ready):
                    quiet, other_quiet = silent[k]
                    scores[k][name] = flag_doubtful(
                        metric, score, estimate_silent=quiet, reference_silent=other_quiet, comparison=levels[k]
                    )
        return [{name: row[name] for name in self._plan.metrics} for row in scores]

    def _features_of(self, language: str | None, position: int) -> tuple[str, ...]:
        """Features of one side (0: the estimate) that the metrics read for an item."""
        named = (name for metric in self._plan.metrics.values() for name in metric.features_of(language)[position])
        return tuple(dict.fromkeys(named))

    def _compare_levels(self, estimate: Audio, reference: Audio | None) -> ComparedLevels:
        """Compare the levels of a pair at the lowest rate that a metric reads.

        Returns:
            `NOT_COMPARED` without a reference, or if no metric reads audio.
        """
        rates = self._plan.rates("estimate", (reference or estimate).sample_rate_hz)
        if reference is None or not rates:
            return NOT_COMPARED
        rate = min(rates)
        return compare_levels(to_signal(reference, rate), to_signal(estimate, rate), rate, generated=True)

    def _compute(
        self, names_by_item: Sequence[Sequence[str]], audios: Sequence[Audio | None], languages: Sequence[str | None]
    ) -> list[dict[str, Any]]:
        """Compute the features of each item by name, once for equal audio.

        Args:
            names_by_item: the features that each item needs.
        """
        spoken = [base_language(code) if code is not None else None for code in languages]
        rows: list[dict[str, Any]] = [{} for _ in audios]
        for name in dict.fromkeys(name for names_of in names_by_item for name in names_of):
            feature = self._features[name]
            places = [k for k, audio in enumerate(audios) if audio is not None and name in names_by_item[k]]
            once = {(id(audios[k]), spoken[k]): k for k in reversed(places)}
            signals = [_prepare(audio, feature) for k in once.values() if (audio := audios[k]) is not None]
            results = compute_feature(feature, signals, [code for _, code in once]) if once else []
            of = dict(zip(once, results))
            for k in places:
                result = of[id(audios[k]), spoken[k]]
                if isinstance(result, Exception):
                    result = Fault(of_error(result, with_type=False), "undefined")
                rows[k][name] = result
        return rows


def _prepare(audio: Audio, feature: Any) -> np.ndarray:
    """The signal that a feature reads; audio that is on the feature's GPU stays there."""
    signal = prepare(audio, feature.rate_hz)
    if not isinstance(audio, DeviceAudio):
        return signal
    return audio.signal_for(str(feature.device), feature.rate_hz, signal)


def _one_each(role: str, values: Any, count: int) -> list[str | None]:
    """Expand a text or None to all items, or check a list of one per item.

    Args:
        role: name of the argument, for messages.
    """
    if values is None or isinstance(values, str):
        return [values] * count
    items = list(values) if isinstance(values, Iterable) else [values]
    for index, value in enumerate(items):
        if not isinstance(value, str | None):
            raise UserError("item_type", name=f"{role} {index}", type=type(value).__name__, expected="optional_text")
    if len(items) != count:
        raise UserError("item_count", items=len(items), name=role, count=count)
    return items


def _inputs(
    metric: Metric, audio: Audio, other: Audio | None, shared: SharedResults, known: Mapping[str, Any]
) -> Inputs | Score:
    rate = metric.rate_hz or (other or audio).sample_rate_hz
    signals = {"estimate": _signal(metric, audio, rate), "reference": _signal(metric, other, rate)}
    return inputs_or_score(metric, **known, **signals, rate_hz=rate, shared=shared.of(metric, rate))


def _signal(metric: Metric, audio: Audio | None, rate_hz: int) -> np.ndarray | None:
    return metric.prepare_signal(to_signal(audio, rate_hz)) if metric.signals and audio is not None else None


def load_metric(name: str, *, device: str = "auto", weights: str | None = None) -> LoadedMetric:
    """Load a metric, several, or a group of metrics by name.

    Args:
        name: as on the command line, several with commas.
        device: `auto`, `cpu` or `cuda:0`, for the models.
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
        MissingExtra: a required package is not installed.
    """
    from codec_bench.engine.device import resolve_devices

    return LoadedMetric(name, device=resolve_devices(device)[0], weights=weights)
