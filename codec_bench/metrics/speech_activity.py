"""Speech activity: the share of speech, and whether speech and silence stay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.speech_activity import PROTOCOL, RATE_HZ
from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import FeatureMetric, Inputs, check_frame_counts
from codec_bench.types import Score

FEATURE = "speech-activity"
SOURCE = "silero-vad 6.2 itself, with the defaults of its get_speech_timestamps"


def active(activity: Mapping[str, Any], samples: int) -> np.ndarray:
    """Convert the feature's start and end samples to bools `(samples,)`: speech?"""
    steps = np.zeros(samples + 1, np.int64)
    np.add.at(steps, np.minimum(activity["starts"], samples), 1)
    np.add.at(steps, np.minimum(activity["ends"], samples), -1)
    return np.cumsum(steps[:-1]) > 0


class SpeechShare(FeatureMetric):
    """The share of time that is speech, 0 to 1. No direction is better.

    It shows synthesis that falls silent or goes on without words.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("speech_share")(estimate=[coarse])[0]["speech_share"].value, 1)
        0.9
    """

    name = "speech_share"
    silence_flags = (None, None)
    kind = "single"
    rate_hz = RATE_HZ
    higher_is_better = None
    range = (0.0, 1.0)
    protocol = f"speech_share/{PROTOCOL}"
    source = SOURCE
    estimate_features = (FEATURE,)

    def _score(self, item: Inputs) -> Score:
        activity = item.estimate_features[FEATURE]
        return Score.ok(float(active(activity, activity["samples"]).mean()), self.protocol)


class _Retention(FeatureMetric):
    """Base class of comparisons with the speech activity of an aligned reference."""

    kind = "pair"
    rate_hz = RATE_HZ
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    source = SOURCE
    estimate_features = reference_features = (FEATURE,)

    def _score(self, item: Inputs) -> Score:
        """Compare the speech activity of both signals with `_value`.

        Refused if their lengths differ too much to pair samples.
        """
        sides = item.features(FEATURE)
        mismatch = check_frame_counts((sides[1]["samples"] - sides[0]["samples"]) / RATE_HZ)
        if mismatch is not None:
            return Score.refused(mismatch, self.protocol)
        samples = min(activity["samples"] for activity in sides)
        value = self._value(*(active(activity, samples) for activity in sides))
        return Score.undefined(value, self.protocol) if isinstance(value, str) else Score.ok(value, self.protocol)

    @abstractmethod
    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float | str:
        """Compare bools `(samples,)` of both signals: the value, or why there is none."""


class SpeechRetention(_Retention):
    """The share of the reference's speech that stays. Higher is better, 0 to 1.

    Undefined where the reference has no speech.
    """

    name = "speech_kept"
    protocol = f"speech_kept/{PROTOCOL}"

    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float | str:
        return float(estimate[reference].mean()) if reference.any() else Diagnostic("reference_without_speech")


class SilenceRetention(_Retention):
    """The share of the reference's silence that stays. Higher is better, 0 to 1.

    Undefined where all of the reference is speech.
    """

    name = "silence_kept"
    protocol = f"silence_kept/{PROTOCOL}"

    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float | str:
        return Diagnostic("reference_without_silence") if reference.all() else float(1 - estimate[~reference].mean())


class LeadingSilenceError(_Retention):
    """Difference of the leading silences in seconds. Lower is better.

    Undefined where one side has no speech.
    """

    name = "leading_silence_error"
    protocol = f"leading_silence_error/{PROTOCOL}"
    higher_is_better = False
    unit = "s"
    range = (0.0, None)

    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float | str:
        """Return the seconds between the first samples of speech, or why there are none."""
        silent = [name for name, activity in (("reference", reference), ("estimate", estimate)) if not activity.any()]
        if silent:
            sides = Diagnostic("sides_without_speech", sides=silent[0])
            return sides if len(silent) == 1 else Diagnostic("no_speech_at_all")
        return abs(int(estimate.argmax()) - int(reference.argmax())) / RATE_HZ
