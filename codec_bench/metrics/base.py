"""Base classes of metrics: cheap functions with one score per item.

Signals are mono float32 `(samples,)` in [-1, 1] at the metric's own rate; scale-invariant metrics get them uncut.
Reference and estimate have one length. `reference` comes first, and both are keyword-only. A bad item never raises: it
returns a `Score` whose status and reason say why there is no number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from codec_bench.audio.level_checks import (
    INCONCLUSIVE,
    NO_SPEECH,
    SHORT_INCONCLUSIVE,
    SILENT_ESTIMATE,
    Levels,
    find_mismatch,
    lacks_speech,
    measure_levels,
)
from codec_bench.audio.resample import cut, fit_length
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.text.language import base_language
from codec_bench.types import Score

Result = TypeVar("Result")
SHARED_SAMPLES = 1 << 20
"""Longest signals whose spectra are shared between metrics, 66 s at 16 kHz: they take 300 bytes a sample."""


class SharedResults:
    """Intermediate results of one item, such as spectra, that several metrics read."""

    def __init__(self) -> None:
        self._by_signals: dict[Any, dict[Any, Any]] = {}

    def of(self, metric: Metric, rate_hz: int) -> dict[Any, Any]:
        """Return the cache of results for the signals that a metric reads, to be filled.

        Metrics with the same rate and preparation of signals share it; those of other packages share none with ours.
        """
        kind = type(metric)
        key = rate_hz, metric.kind, metric.scale_invariant, kind.prepare_signal, kind.__module__.partition(".")[0]
        return self._by_signals.setdefault(key, {})


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A metric's inputs for one item; only requested fields are filled.

    Args:
        id: the sample's id, for messages.
        estimate, reference: signals at the metric's rate, of equal length.
        rate_hz: their rate: the metric's own, or the reference's native rate if the metric's `rate_hz` is None.
        text, language, speaker: the reference transcript, its language, and the speaker, or None.
        spoken: the transcript with numbers spelt out, or None. Some published rules compare with both forms.
        estimate_features, reference_features: feature results by name.
        bits, duration_s: the bits that the codec sent and the length of the audio, or None.
        no_bits: why there are no bits, or None if the system is no codec.
        words, estimate_words: word times of the reference, and of an estimate with its own timing, as the data hold
            them (`codec_bench.metrics.words` reads them), or None.
        trials: ids with which it is tried as the test, each with 1 for one speaker or 0 for two
            (`codec_bench.data.trials`), or None.
        shared: results that metrics of these signals share (`once`).

    Examples:
        >>> item = Inputs("a", 16000, estimate=np.zeros(16000, np.float32), reference=np.ones(16000, np.float32))
        >>> [float(signal.mean()) for signal in item.pair]
        [1.0, 0.0]
    """

    id: str
    rate_hz: int
    estimate: np.ndarray | None = None
    reference: np.ndarray | None = None
    text: str | None = None
    spoken: str | None = None
    language: str | None = None
    speaker: str | None = None
    estimate_features: Mapping[str, Any] = field(default_factory=dict)
    reference_features: Mapping[str, Any] = field(default_factory=dict)
    bits: float | None = None
    duration_s: float | None = None
    no_bits: str | None = None
    words: Any = None
    estimate_words: Any = None
    trials: Any = None
    shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Reference and estimate, `(samples,)` each.

        Raises:
            ValueError: one of them is missing.
        """
        if self.reference is None or self.estimate is None:
            raise ValueError(f"'{self.id}' has no reference or no estimate; a pair metric needs both")
        return self.reference, self.estimate

    def features(self, name: str) -> tuple[Any, Any]:
        """Return a feature's results for the reference and for the estimate."""
        return self.reference_features[name], self.estimate_features[name]

    @property
    def is_long(self) -> bool:
        """Whether the signals are too long to keep their spectra in memory."""
        return max(signal.size for signal in (self.estimate, self.reference) if signal is not None) > SHARED_SAMPLES

    def once(self, function: Callable[..., Result], *options: Any) -> Result:
        """Call `function(item, *options)` once for all metrics that read these signals.

        The function must read nothing but the signals. Its arrays for long signals are not cached, to save memory.
        """
        key = (function, options)
        if key in self.shared:
            known: Result = self.shared[key]
            return known
        result = function(self, *options)
        if not self.is_long or isinstance(result, float | Score | None):
            self.shared[key] = result
        return result


class Metric(ABC):
    """One number per item.

    Class attributes
        name: its key in the registry.
        kind: `pair` (estimate against reference), `single` (the estimate alone) or `text` (against a transcript).
        rate_hz: rate of its signals; None for the reference's own rate. An instance may set it.
        signals: whether `compute` reads the signals; False if it reads only features.
        scale_invariant: whether its definition omits the scale of either signal, which is then not cut to [-1, 1].
        takes_prompt: whether the reference of a pair may say other words, as a voice prompt does.
        waveform: whether it compares sample by sample, so that a delay of a few samples moves its value.
        estimate_features, reference_features: names of all features of each side, in any language.
        languages: base codes (`en`, `zh`) of its languages; empty for any. Items of other languages are refused.
        higher_is_better, unit, range: for tables. None where no direction is better. The unit "" means a pure number.
        bounds: the least and the most that an item can be, where the range does not say it, for intervals
            (`stats.intervals`): (0, None) for an error rate, (None, None) for counts that are no errors.
        implausible: a value below which most items point at a shift, another order of the files, or an inverted sign.
        aggregate: how items become a corpus value: `mean`, `ratio` (sum of numerators over sum of denominators), or a
            statistic of sets (`codec_bench.stats.sets`).
        protocol: exact id of the measurement; an instance may set it.
        paper, source: where it is defined, and the implementation that it agrees with (and how closely).
        own_weights: why its features cannot have the caller's own weights; empty where they can.
        where: `cpu` for work that is worth a worker process, `inline` for arithmetic on features.
        silence_flags: flags of values where the estimate, and where the reference, is digital silence. None flags a
            silent estimate of a metric of kind `single`.

    Examples:
        >>> class Peak(Metric):
        ...     name, kind, rate_hz, protocol = "peak", "single", 16000, "peak/1"
        ...     def compute(self, batch):
        ...         return [Score.ok(abs(item.estimate).max(), self.protocol) for item in batch]
        >>> Peak().compute([Inputs("a", 16000, estimate=np.array([0.25, -0.5]))])[0].value
        0.5
    """

    name: str
    kind: ClassVar[Literal["pair", "single", "text"]]
    rate_hz: int | None = None
    signals: ClassVar[bool] = True
    scale_invariant: bool = False
    takes_prompt: ClassVar[bool] = False
    waveform: ClassVar[bool] = False
    estimate_features: tuple[str, ...] = ()
    reference_features: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    higher_is_better: ClassVar[bool | None] = True
    unit: str = ""
    range: ClassVar[tuple[float | None, float | None]] = (None, None)
    bounds: tuple[float | None, float | None] | None = None
    implausible: ClassVar[float | None] = None
    aggregate: ClassVar[str] = "mean"
    protocol: str
    paper: str = ""
    source: str = ""
    where: ClassVar[Literal["cpu", "inline"]] = "cpu"
    own_weights: ClassVar[str] = ""
    silence_flags: ClassVar[tuple[str | None, str | None] | None] = None

    def refusal(self, *, text: str | None, language: str | None) -> str | None:
        """Return why an item cannot be measured; None if it can.

        Args:
            text: the reference text; None if the item has none.
            language: its code, such as `en`; None if unknown.
        """
        if self.kind == "text" and text is None:
            return Diagnostic("no_reference_text")
        if self.languages and language is not None and base_language(language) not in self.languages:
            return Diagnostic(
                "language_unknown_to_metric",
                metric=self.name,
                languages=" and ".join(self.languages),
                language=language,
            )
        return None

    def prepare_signal(self, signal: np.ndarray) -> np.ndarray:
        """Cut a signal to [-1, 1], unless the metric is scale-invariant."""
        return signal if self.scale_invariant else cut(signal)

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the features to compute for an item in a language.

        Returns:
            Those of the estimate, and those of the reference.
        """
        return self.estimate_features, self.reference_features

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return the worst score, for failed items where failures count as errors.

        None if the metric has no worst value.
        """
        if self.higher_is_better is None:
            return None
        end = self.range[0 if self.higher_is_better else 1]
        return Score.ok(end, self.protocol) if end is not None and self.aggregate == "mean" else None

    def check_silence(self, *, estimate_silent: bool, reference_silent: bool) -> str | None:
        """Return the flag of a score of silent audio; None if the score is valid."""
        uses_audio = self.signals or bool(self.estimate_features)
        default = (SILENT_ESTIMATE if self.kind == "single" and uses_audio else None, None)
        of_estimate, of_reference = self.silence_flags or default
        return (of_estimate if estimate_silent else None) or (of_reference if reference_silent else None)

    @abstractmethod
    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item, in order. A score must not depend on the other items."""


class ItemMetric(Metric):
    """A metric that scores each item on its own."""

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item, in order."""
        return [self._score(item) for item in batch]

    @abstractmethod
    def _score(self, item: Inputs) -> Score:
        pass


class FeatureMetric(ItemMetric):
    """A metric that scores each item by arithmetic on its features."""

    signals = False
    where = "inline"


def variant_name(key: str, variant: str | None, variants: Iterable[str | None]) -> str:
    """Name a metric with its variant in brackets.

    Args:
        key: the metric's key in the registry.
        variant: the requested one, or None.
        variants: the known ones.

    Raises:
        UserError: there is no such variant.
    """
    if variant not in variants:
        known = ", ".join(f"{key}[{name}]" for name in variants if name)
        raise UserError("no_variant", name=key, variant=variant, hint=f"use {key}, or one of: {known}")
    return key if variant is None else f"{key}[{variant}]"


LENGTH_TOLERANCE_S = 0.1


def check_frame_counts(off_s: float, other: str | None = None) -> Diagnostic | None:
    """Return why the frames of two signals cannot be paired: lengths over 0.1 s apart.

    Args:
        off_s: seconds by which the estimate is longer.
        other: the name of a metric that aligns such signals, for the message.

    Returns:
        The reason; None if they can be paired.
    """
    if abs(off_s) <= LENGTH_TOLERANCE_S + 1e-9:
        return None
    known = {"other": other} if other else {}
    return Diagnostic("frames_apart", longer_s=round(off_s, 4), tolerance_s=LENGTH_TOLERANCE_S, **known)


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of two sequences that vary, between -1 and 1."""
    x, y = x - x.mean(), y - y.mean()
    return min(1.0, max(-1.0, float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))))


SILENT_REFERENCE = Diagnostic("silent_reference")
ALIGNMENT_UNKNOWN = Diagnostic("alignment_unknown")


class ComparedLevels(NamedTuple):
    """The result of comparing an estimate's levels with the reference's, as flags.

    Args:
        mismatch: why an estimate of the reference's length does not match it, or why that is undecided, or None.
        lacks: why an estimate that was read from a file lacks speech, or None.
        generated: whether the estimate was read from a file, made by any program.
    """

    mismatch: str | None = None
    lacks: str | None = None
    generated: bool = False


NOT_COMPARED = ComparedLevels()


def compare_levels(
    reference: np.ndarray,
    estimate: np.ndarray,
    rate_hz: int,
    *,
    generated: bool,
    measured: tuple[Levels | None, Levels | None] = (None, None),
) -> ComparedLevels:
    """Check whether an estimate follows its reference, or lacks its speech, by levels.

    Args:
        reference, estimate: float32 `(samples,)`, of any lengths.
        generated: whether the estimate was read from a file that any program may have written. Only then is a lack of
            speech looked for.
        measured: the levels of both, where they are known.
    """
    as_long = abs(estimate.size - reference.size) <= LENGTH_TOLERANCE_S * rate_hz
    levels = measured[0] or measure_levels(reference, rate_hz), measured[1] or measure_levels(estimate, rate_hz)
    follows = find_mismatch(reference, estimate, rate_hz, levels) if as_long else None
    lacks = lacks_speech(*levels) if generated else None
    mismatch = SHORT_INCONCLUSIVE if follows == INCONCLUSIVE else NO_SPEECH.get(follows or "")
    return ComparedLevels(mismatch, NO_SPEECH.get(lacks or ""), generated)


def flag_doubtful(
    metric: Metric,
    score: Score,
    *,
    estimate_silent: bool,
    reference_silent: bool,
    comparison: ComparedLevels = NOT_COMPARED,
) -> Score:
    """Return a score with a flag (`detail["flag"]`) if its value is in doubt.

    An existing flag stays.

    Args:
        estimate_silent, reference_silent: by `audio.level_checks.is_silent`.
        comparison: of levels. A generated estimate may have another text, so `mismatch` flags only metrics that compare
            samples.
    """
    if score.status != "ok" or "flag" in score.detail:
        return score
    follows = not comparison.generated or (metric.kind == "pair" and metric.signals)
    level_flag = (comparison.mismatch if follows else None) or comparison.lacks
    if estimate_silent and not reference_silent:
        level_flag = SILENT_ESTIMATE
    flag = level_flag if metric.signals or metric.estimate_features else None
    if estimate_silent or reference_silent:
        flag = metric.check_silence(estimate_silent=estimate_silent, reference_silent=reference_silent) or flag
    return score if flag is None else replace(score, detail={**score.detail, "flag": flag})


def inputs_or_score(metric: Metric, **values: Any) -> Inputs | Score:
    """Build the inputs of one item, or a score if it cannot be measured.

    Pair metrics need signals of one length. A difference of up to 0.1 s (a codec's last frame) is cut or filled with
    zeros; a larger one is refused.

    Args:
        values: the fields of `Inputs`.
    """
    reason = metric.refusal(text=values.get("text"), language=values.get("language"))
    if reason is not None:
        return Score.refused(reason, metric.protocol)
    reference, estimate = values.get("reference"), values.get("estimate")
    if metric.signals and estimate is None:
        return Score.failed(Diagnostic("no_estimate"), metric.protocol)
    if metric.kind == "pair" and metric.signals and estimate is not None:
        if reference is None:
            return Score.refused(Diagnostic("no_reference"), metric.protocol)
        off_s = (estimate.shape[-1] - reference.shape[-1]) / values["rate_hz"]
        if abs(off_s) > LENGTH_TOLERANCE_S:
            why = Diagnostic("lengths_differ", longer_s=round(off_s, 4), tolerance_s=LENGTH_TOLERANCE_S)
            return Score.refused(why, metric.protocol)
        values["estimate"] = fit_length(estimate, reference.shape[-1])
    for role, names in zip(("estimate", "reference"), metric.features_of(values.get("language"))):
        for name in names:
            result = values[f"{role}_features"].get(name)
            if result is None:
                return Score.refused(Diagnostic("no_side_audio", side=role, name=name), metric.protocol)
            reason = getattr(result, "reason", None)
            if reason is not None:
                return Score(
                    None,
                    result.status,
                    Diagnostic("feature_failed", feature=name, side=role, cause=as_reason(reason)),
                    metric.protocol,
                )
    return Inputs(**values)
