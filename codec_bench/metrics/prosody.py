"""Prosody besides pitch: duration, speaking rate and loudness contour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import FeatureMetric, Inputs, check_frame_counts, correlation, variant_name
from codec_bench.metrics.error_rate import Dwer
from codec_bench.text.rules import ComparedTexts
from codec_bench.types import Score

LEVEL = "level"
SPEECH_DB, DYNAMICS_DB = 40.0, 60.0
STEADY_DB = 0.01
SPEECH = "speech"


class DurationError(FeatureMetric):
    """The relative error of the estimate's duration. Lower is better; a copy has 0.

    * None: of the whole signals.
    * `speech`: from the first to the last frame within 40 dB of the loudest, so that silence at both ends does not
    count. For text-to-speech. Undefined for digital silence.

    The signals may have any lengths. Codecs keep the length, so this is for `score`.
    """

    name = "duration_error"
    kind = "pair"
    higher_is_better = False
    range = (0.0, None)
    source = "the definition itself; levels equal librosa's to 1e-5"
    estimate_features = reference_features = (LEVEL,)
    variants: ClassVar[dict[str | None, str]] = {
        None: "duration_error/whole",
        SPEECH: "duration_error/within-40db/rms-25ms-10ms-16k",
    }

    def __init__(self, variant: str | None = None) -> None:
        self.name = variant_name("duration_error", variant, self.variants)
        self.protocol = self.variants[variant]
        self._length = speech_s if variant == SPEECH else (lambda level: float(level["duration_s"]))

    def _score(self, item: Inputs) -> Score:
        """Compare the durations of estimate and reference."""
        reference, estimate = map(self._length, item.features(LEVEL))
        if not reference or not estimate:
            role = "estimate" if reference else "reference"
            return Score.undefined(Diagnostic("side_silent", side=role), self.protocol)
        detail = {"reference_s": round(reference, 4), "estimate_s": round(estimate, 4)}
        return Score.ok(abs(estimate - reference) / reference, self.protocol, detail=detail)


class EnergyCorr(FeatureMetric):
    """Pearson's correlation of loudness contours. Higher is better, -1 to 1.

    Of levels in dB of 25 ms frames every 10 ms, floored 60 dB below the loudest frame. Overall levels do not matter.
    Nothing is warped: lengths may differ by up to 0.1 s. Undefined with fewer than two frames, or where one side's
    level is constant (a standard deviation of at most 0.01 dB).

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("energy_corr")(reference=[clip], estimate=[coarse])[0]["energy_corr"].value, 2)
        0.98
    """

    name = "energy_corr"
    kind = "pair"
    range = (-1.0, 1.0)
    protocol = "energy_corr/rms-25ms-10ms-16k/60db"
    source = "the definition itself; levels equal librosa's to 1e-5"
    estimate_features = reference_features = (LEVEL,)

    def _score(self, item: Inputs) -> Score:
        """Correlate the level contours of both signals in dB."""
        sides = item.features(LEVEL)
        mismatch = check_frame_counts(sides[1]["duration_s"] - sides[0]["duration_s"])
        if mismatch is not None:
            return Score.refused(mismatch, self.protocol)
        frames = min(len(features["level_db"]) for features in sides)
        levels = [np.asarray(features["level_db"], np.float64) for features in sides]
        levels = [np.maximum(level, level.max() - DYNAMICS_DB)[:frames] for level in levels]
        if frames < 2:
            return Score.undefined(Diagnostic("few_frames"), self.protocol)
        for role, level in zip(("reference", "estimate"), levels, strict=True):
            if level.std() <= STEADY_DB:
                return Score.undefined(Diagnostic("level_constant", side=role), self.protocol)
        return Score.ok(correlation(*levels), self.protocol, detail={"frames": frames})


class SpeakingRateError(Dwer):
    """The relative error of the speaking rate. Lower is better; a copy has 0.

    The rate is a recogniser's words (characters in languages without spaces) by the text rule, which counts "twenty
    one" as one, per second from the first to the last frame within 40 dB of the loudest. One recogniser transcribes
    both sides, so its own errors count little. It needs no texts and no equal lengths. Undefined without words in the
    reference.

    Args:
        variant: the recogniser, as in `wer[...]`. point: the text rule that counts words, or None for `by-language`.
    """

    stem = "speaking_rate_error"
    aggregate = "mean"
    paper = ""
    source = "VERSA's speaking rate (words over seconds), of both sides and over speech alone"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.estimate_features = self.reference_features = (*self.estimate_features, LEVEL)
        self.protocol += "/within-40db"

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the recogniser for the language and the level, for both signals."""
        (recogniser, *_), _ = super().features_of(language)
        return (recogniser, LEVEL), (recogniser, LEVEL)

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item; `detail` holds both rates, the counts and both texts."""
        scores = super().compute(batch)
        pairs = zip(batch, scores, strict=True)
        return [self._rates(item, score) if score.status == "ok" else score for item, score in pairs]

    def _score(self, compared: ComparedTexts, result: Mapping[str, Any]) -> Score:
        counts = compared.counts
        words = {
            "reference_words": counts.reference_length,
            "estimate_words": counts.hits + counts.substitutions + counts.insertions,
        }
        return Score.ok(0.0, self.protocol, detail={**self._detail(compared, result), **words})

    def _rates(self, item: Inputs, score: Score) -> Score:
        """Divide both word counts by the seconds of speech, and compare the rates."""
        rates = {}
        for role, level in zip(("reference", "estimate"), item.features(LEVEL)):
            seconds = speech_s(level)
            rates[role] = score.detail[f"{role}_words"] / seconds if seconds else 0.0
        if not rates["reference"]:
            return Score.undefined(Diagnostic("no_speaking_rate"), self.protocol)
        detail = {**score.detail, **{f"{role}_per_s": round(rate, 4) for role, rate in rates.items()}}
        return Score.ok(abs(rates["estimate"] / rates["reference"] - 1.0), self.protocol, detail=detail)

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return None: a rate may be wrong by any factor."""
        return None


def speech_s(level: Mapping[str, Any]) -> float:
    """Return the seconds from the first to the last frame within 40 dB of the loudest.

    0 if all frames are silent.

    Args:
        level: a result of the feature `level`.
    """
    levels = np.asarray(level["level_db"], np.float64)
    loud = np.flatnonzero((levels > levels.max() - SPEECH_DB) & (levels > -200.0))
    return float((loud[-1] - loud[0] + 1) * level["hop_s"]) if loud.size else 0.0
