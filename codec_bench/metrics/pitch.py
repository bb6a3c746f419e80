"""Pitch metrics: contour, voicing, and agreement on voiced frames."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import FeatureMetric, Inputs, check_frame_counts, correlation, variant_name
from codec_bench.metrics.words import Word, read_words
from codec_bench.types import ESTIMATE_WORDS, WORDS, Score

_BOERSMA = "boersma-ac-60-600hz/10ms"
CENT = 2 ** (1 / 1200) - 1
_SWIFT = "swift-f0-0.3/16ms"
_WORLD = "world-harvest-40-800hz/low-cut-70hz/5ms"
OF_WORDS = "words"
VOICED_FRAMES, FEWEST_WORDS = 3, 3
"""Voiced frames per side for a word's pitch, and words for a correlation."""


class _Pitch(FeatureMetric):
    """Base class: compare the pitch of both sides frame by frame.

    Nothing is time-warped, so both sides must be aligned. Lengths may differ by up to 0.1 s.
    """

    kind = "pair"
    rate_hz = 16_000
    paper = "Boersma: Accurate short-term analysis of the fundamental frequency, IFA Proceedings 17, 1993"
    source = "Praat 6.1 To Pitch (ac) of clean speech: voicing equal on 99 % of frames, pitch to 0.2 % on 99 %"
    key: ClassVar[str]
    variants: ClassVar[dict[str | None, str]]

    def __init__(self, variant: str | None = None) -> None:
        self._variant = variant
        self.name = variant_name(self.key, variant, self.variants)
        self.protocol = self.variants[variant]
        tracker = {None: "pitch", OF_WORDS: "pitch", "swift": "pitch[swift]"}.get(variant, "pitch[world]")
        self.estimate_features = self.reference_features = (tracker,)
        if variant == "swift":
            self.paper = "Nieradzik: SwiftF0: Fast and Accurate Monophonic Pitch Detection, 2025"
            self.source = "swift-f0 0.3 itself"
        elif variant in ("world", "versa"):
            self.paper = "Morise: Harvest: A high-performance fundamental frequency estimator, Interspeech 2017"
            self.source = "pyworld 0.3.5 itself, with VERSA's settings"

    def _score(self, item: Inputs) -> Score:
        """Pair the frames of both pitch contours, and compare them with `_compare`."""
        sides = item.features(self.estimate_features[0])
        reference, estimate = (np.asarray(features["f0_hz"], np.float64) for features in sides)
        mismatch = check_frame_counts((estimate.size - reference.size) * sides[0]["hop_s"])
        if mismatch is not None:
            return Score.refused(mismatch, self.protocol)
        frames = min(reference.size, estimate.size)
        if not frames:
            return Score.undefined(Diagnostic("no_pitch_frame"), self.protocol)
        reference, estimate = reference[:frames], estimate[:frames]
        both = (reference > 0) & (estimate > 0)
        value = self._compare(reference, estimate, both)
        if isinstance(value, str):
            return Score.undefined(value, self.protocol)
        return Score.ok(value, self.protocol, detail={"frames": frames, "voiced_in_both": int(both.sum())})

    @abstractmethod
    def _compare(self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray) -> float | str:
        """Compare two pitch contours; return the value, or why there is none.

        Args:
            reference, estimate: pitches in Hz, `(frames,)`, 0 where unvoiced.
            both: bools `(frames,)`: frames voiced in both signals.
        """

    def _pitches(
        self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | str:
        """Select the pitches to compare, in the variant's unit (cents or Hz).

        Args:
            reference, estimate: pitches in Hz, `(frames,)`, 0 where unvoiced.
            both: frames voiced in both signals.

        Returns:
            The pitches of reference and estimate, or the reason why there are none.
        """
        if self._variant == "versa":
            return reference, estimate
        if not both.any():
            unvoiced = [name for name, f0 in (("reference", reference), ("estimate", estimate)) if not f0.any()]
            if not unvoiced:
                return Diagnostic("not_voiced_in_both")
            return Diagnostic("unvoiced_sides", sides=unvoiced)
        if self._variant == "world":
            return reference[both], estimate[both]
        return _cents(reference[both]), _cents(estimate[both])


class F0Rmse(_Pitch):
    """Root mean square difference of pitch over frames. Lower is better.

    * None: in cents (1200 to the octave, so high and low voices count alike), over frames voiced in both.
    * `swift`: the same by SwiftF0.
    * `world`: in Hz, by WORLD's Harvest, over frames voiced in both.
    * `versa`: in Hz, by WORLD's Harvest, over all frames; unvoiced frames count as 0 Hz. It equals VERSA's `mcd_f0`
    without time warping (its default). A frame voiced on one side only counts with its whole pitch.

    Undefined where no frame is voiced in both (never for `versa`). Octave errors dominate the value: read it together
    with `f0_corr` and `voiced_in_both`.
    """

    key = "f0_rmse"
    higher_is_better = False
    range = (0.0, None)
    unit = "cents"
    variants: ClassVar[dict[str | None, str]] = {
        None: f"f0_rmse/{_BOERSMA}/voiced-in-both/cents",
        "swift": f"f0_rmse/{_SWIFT}/voiced-in-both/cents",
        "world": f"f0_rmse/{_WORLD}/voiced-in-both/hz",
        "versa": f"f0_rmse/{_WORLD}/all-frames/hz",
    }

    def __init__(self, variant: str | None = None) -> None:
        super().__init__(variant)
        if variant in ("versa", "world"):
            self.unit = "Hz"

    def _compare(self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray) -> float | str:
        """Compute the root mean square difference of the pitches, or why there is none."""
        pitches = self._pitches(reference, estimate, both)
        if isinstance(pitches, str):
            return pitches
        return float(np.sqrt(np.mean((pitches[1] - pitches[0]) ** 2)))


class F0Corr(_Pitch):
    """Pearson's correlation of pitch. Higher is better, -1 to 1.

    * None: of the pitches in cents, over frames voiced in both.
    * `swift`: the same by SwiftF0.
    * `world`: of the pitches in Hz by WORLD's Harvest, over frames voiced in both.
    * `versa`: the same over all frames; unvoiced frames count as 0 Hz, as in VERSA's `mcd_f0` without time warping. It
      says more about voicing than about pitch.
    * `words`: of the words' mean pitches in cents over voiced frames. The column `words` of the data holds the times of
    the words; `estimate_words` those of an estimate with its own timing, which may have another length. A word counts
      with three voiced frames on either side. Undefined with fewer than three such words; refused without the column.

    Undefined with fewer than two frames, or if one side's pitch has a standard deviation of at most one cent: the
    trackers themselves vary by that much on a steady tone.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("f0_corr")(reference=[clip], estimate=[coarse])[0]["f0_corr"].value, 2)
        1.0
    """

    key = "f0_corr"
    range = (-1.0, 1.0)
    variants: ClassVar[dict[str | None, str]] = {
        None: f"f0_corr/{_BOERSMA}/voiced-in-both/cents",
        "swift": f"f0_corr/{_SWIFT}/voiced-in-both/cents",
        "world": f"f0_corr/{_WORLD}/voiced-in-both/hz",
        "versa": f"f0_corr/{_WORLD}/all-frames/hz",
        OF_WORDS: f"f0_corr/{_BOERSMA}/means-of-words/cents",
    }

    def _score(self, item: Inputs) -> Score:
        """Correlate frames, or for the variant `words` the words' mean pitches."""
        if self._variant != OF_WORDS:
            return super()._score(item)
        sides = item.features(self.estimate_features[0])
        tracks = [np.asarray(features["f0_hz"], np.float64) for features in sides]
        hop_s = sides[0]["hop_s"]
        try:
            words = _words_of_both(item)
        except ValueError as error:
            return Score.refused(str(error), self.protocol)
        mismatch = (
            check_frame_counts((tracks[1].size - tracks[0].size) * hop_s) if item.estimate_words is None else None
        )
        if mismatch is not None:
            return Score.refused(Diagnostic("frames_apart_words", cause=mismatch, column=ESTIMATE_WORDS), self.protocol)
        means = np.array([[_mean_cents(*pair, hop_s) for pair in zip(tracks, both)] for both in zip(*words)])
        voiced = means[~np.isnan(means).any(axis=1)] if len(means) else means
        if len(voiced) < FEWEST_WORDS:
            reason = Diagnostic("few_voiced_words", needed=FEWEST_WORDS, words=len(means), voiced=len(voiced))
            return Score.undefined(reason, self.protocol)
        for role, values in zip(("reference", "estimate"), voiced.T, strict=True):
            if values.std() <= 1.0:
                return Score.undefined(Diagnostic("pitch_constant_over_words", side=role), self.protocol)
        detail = {"words": len(means), "voiced_words": len(voiced)}
        return Score.ok(correlation(*voiced.T), self.protocol, detail=detail)

    def _compare(self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray) -> float | str:
        """Correlate both contours; a reason if one is constant or has too few frames."""
        pitches = self._pitches(reference, estimate, both)
        if isinstance(pitches, str):
            return pitches
        if pitches[0].size < 2:
            return Diagnostic("few_voiced_frames")
        for role, values in zip(("reference", "estimate"), pitches, strict=True):
            cent = {None: 1.0, "swift": 1.0, "world": CENT * values.mean(), "versa": 0.0}[self._variant]
            if values.std() <= cent:
                return Diagnostic("pitch_constant", side=role)
        return correlation(*pitches)


class VuvError(_Pitch):
    """The share of frames that are voiced on one side only. Lower is better, 0 to 1.

    * None: by Boersma's tracker. * `swift`: by SwiftF0. * `world`: by WORLD's Harvest.

    Two signals without voiced frames agree: the value is 0.
    """

    key = "vuv_error"
    higher_is_better = False
    range = (0.0, 1.0)
    variants: ClassVar[dict[str | None, str]] = {
        None: f"vuv_error/{_BOERSMA}",
        "swift": f"vuv_error/{_SWIFT}",
        "world": f"vuv_error/{_WORLD}",
    }

    def _compare(self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray) -> float | str:
        return float(np.mean((reference > 0) != (estimate > 0)))


class VoicedInBoth(_Pitch):
    """The share of voiced frames that stay voiced. Higher is better, 0 to 1.

    * None: by Boersma's tracker. * `swift`: by SwiftF0. * `world`: by WORLD's Harvest.

    Printed next to `f0_rmse` and `f0_corr`, which use these frames alone: an estimate with few voiced frames may have a
    small pitch error. Undefined where the reference is unvoiced.
    """

    key = "voiced_in_both"
    range = (0.0, 1.0)
    variants: ClassVar[dict[str | None, str]] = {
        None: f"voiced_in_both/{_BOERSMA}",
        "swift": f"voiced_in_both/{_SWIFT}",
        "world": f"voiced_in_both/{_WORLD}",
    }

    def _compare(self, reference: np.ndarray, estimate: np.ndarray, both: np.ndarray) -> float | str:
        voiced = np.count_nonzero(reference)
        return float(both.sum() / voiced) if voiced else Diagnostic("reference_unvoiced")


def _words_of_both(item: Inputs) -> tuple[list[Word], list[Word]]:
    """Return the words with times of the reference and of the estimate.

    An estimate without times has the reference's. ValueError if there are no times, or the words differ.
    """
    if item.words is None:
        raise ValueError(f"the data have no column '{WORDS}', which holds the times of words")
    words = read_words(item.words, WORDS)
    if item.estimate_words is None:
        return words, words
    others = read_words(item.estimate_words, ESTIMATE_WORDS)
    if [one.word.casefold() for one in words] != [one.word.casefold() for one in others]:
        counts = f"{len(words)} and {len(others)}, or others by name"
        raise ValueError(f"the columns '{WORDS}' and '{ESTIMATE_WORDS}' have other words: {counts}")
    return words, others


def _mean_cents(f0_hz: np.ndarray, word: Word, hop_s: float) -> float:
    """Return a word's mean pitch in cents; NaN if it has too few voiced frames.

    Args:
        f0_hz: `(frames,)`, 0 where unvoiced.
        hop_s: seconds between frames.
    """
    start, end = (math.ceil(round(time_s / hop_s, 6)) for time_s in word[:2])  # frame k is at k hops
    voiced = f0_hz[start:end]
    voiced = voiced[voiced > 0]
    return float(_cents(voiced).mean()) if voiced.size >= VOICED_FRAMES else math.nan


def _cents(pitch_hz: np.ndarray) -> np.ndarray:
    return 1200.0 * np.log2(pitch_hz)
