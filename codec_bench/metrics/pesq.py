"""PESQ: the opinion score of ITU-T P.862, wide-band or narrow-band."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score

MAX_DURATION_S = 95.0
"""The reference code's table of 1000 stretches of bad frames is unchecked. A stretch with its gap lasts at least 96 ms.
"""

MAX_UTTERANCES = 45
"""Its unchecked tables hold 50 utterances: 52 give a wrong score, 60 end the process. `most_utterances` was at most one
low.
"""

SAFE_DURATION_S = 19.0
"""Below this, 50 utterances do not fit: an utterance with its pause lasts at least about 0.2 s."""


def speech_band(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """Filter a signal `(samples,)` to 300 to 3000 Hz, order 4, float64.

    Equal to `scipy.signal.sosfilt`, whose import takes a second. The response decays within the padding of 0.2 s.
    """
    size = signal.size + rate_hz // 5
    low, high = np.tan(np.pi * np.array([300.0, 3000.0]) / rate_hz)
    s = 1j * np.tan(np.pi * np.arange(size // 2 + 1) / size)
    response = (s * (high - low)) ** 4
    for pole in np.exp(1j * np.pi * np.array([5, 7, 9, 11]) / 8):
        response /= s**2 + low * high - pole * (high - low) * s
    return np.fft.irfft(np.fft.rfft(signal, size) * response, size)[: signal.size]


def most_utterances(reference: np.ndarray, rate_hz: int) -> int:
    """Bound the number of utterances that PESQ's activity detection may find.

    Energies of 4 ms frames in the speech band are compared with thresholds from the loudest frame down, in steps of 1
    dB. Speech of up to 16 ms is dropped, gaps of up to 0.2 s are closed, and segments of at least 176 ms count. The
    largest count of all thresholds is returned.

    Args:
        reference: `(samples,)`, not silent.
    """
    speech = speech_band(reference.astype(np.float64), rate_hz)
    window = rate_hz // 250
    energies = (speech[: speech.size // window * window].reshape(-1, window) ** 2).mean(axis=1)
    most = 0
    for below_db in range(81):
        active = energies > energies.max() * 10.0 ** (-below_db / 10.0)
        turns = np.flatnonzero(np.diff(np.concatenate([[False], active, [False]]).astype(np.int8)))
        starts, stops = turns[::2], turns[1::2]
        lasting = stops - starts > 4
        starts, stops = starts[lasting], stops[lasting]
        if starts.size:
            is_gap = starts[1:] - stops[:-1] > 50
            lengths = stops[np.append(is_gap, True)] - starts[np.insert(is_gap, 0, True)]
            most = max(most, int((lengths >= 44).sum()))
    return most


def _best(slope: float, middle: float) -> float:
    """Return the score of a copy (raw score 4.5), rounded up as float32 may give it."""
    return math.ceil(1e6 * (0.999 + 4.0 / (1.0 + math.exp(middle - slope * 4.5)))) / 1e6


class _Pesq(ItemMetric):
    """Base class: checks before the package is called, and the call."""

    kind = "pair"
    unit = "MOS"
    mode: ClassVar[str]
    rate_hz: int

    def _score(self, item: Inputs) -> Score:
        return item.once(type(self).score_pair)

    @classmethod
    def score_pair(cls, item: Inputs) -> Score:
        """Score an item with the package; ratings that combine measures call it too."""
        from pesq import PesqError, pesq

        reference, estimate = item.pair
        duration_s = reference.size / cls.rate_hz
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), cls.protocol)
        if not estimate.any():
            return Score.undefined(Diagnostic("pesq_silent"), cls.protocol)
        if duration_s > MAX_DURATION_S:
            reason = Diagnostic("pesq_too_long", duration_s=duration_s, most_s=MAX_DURATION_S)
            return Score.refused(reason, cls.protocol)
        utterances = most_utterances(reference, cls.rate_hz) if duration_s > SAFE_DURATION_S else 0
        if utterances > MAX_UTTERANCES:
            return Score.refused(Diagnostic("pesq_utterances", utterances=utterances), cls.protocol)
        value = float(pesq(cls.rate_hz, reference, estimate, cls.mode, on_error=PesqError.RETURN_VALUES))
        if value == PesqError.BUFFER_TOO_SHORT:
            return Score.undefined(Diagnostic("pesq_too_short", duration_s=duration_s), cls.protocol)
        if value == PesqError.NO_UTTERANCES_DETECTED:
            return Score.undefined(Diagnostic("pesq_no_utterance"), cls.protocol)
        if value < 0:
            return Score.failed(Diagnostic("pesq_error", value=value), cls.protocol)
        if math.isnan(value):
            return Score.undefined(Diagnostic("pesq_no_level"), cls.protocol)
        return Score.ok(value, cls.protocol)


class PesqWb(_Pesq):
    """Wide-band PESQ (P.862.2) at 16 kHz, 1.0 to 4.64. Higher is better.

    The number of the package `pesq`, which wraps the ITU's code and aligns levels and delays itself. It was made for
    speech of 8 to 20 s over telephone networks. It says little about music or speech synthesised by a generative codec.

    Undefined for a silent signal, below 0.25 s, and without an utterance. Refused above 95 s and, above 19 s, for more
    than 45 utterances: the ITU's code has tables of a fixed size, and beyond returns wrong numbers or ends the process.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("pesq_wb")(reference=[clip], estimate=[coarse])[0]["pesq_wb"].value, 1)
        1.3
    """

    name = "pesq_wb"
    rate_hz = 16_000
    mode = "wb"
    range = (1.0, _best(1.3669, 3.8224))  # 4.643889
    protocol = "pesq/wb-p862.2"
    paper = "Rix et al.: Perceptual Evaluation of Speech Quality (PESQ), ICASSP 2001; ITU-T P.862.2, 2007"
    source = "pesq 0.0.4, exactly"


class PesqNb(_Pesq):
    """Narrow-band PESQ (P.862.1) at 8 kHz, 1.0 to 4.55. Higher is better.

    Higher is better. The number of the package `pesq` on signals at 8 kHz; on signals at 16 kHz it gives a slightly
    lower number, which is another protocol. Limits are those of `pesq_wb`.
    """

    name = "pesq_nb"
    rate_hz = 8_000
    mode = "nb"
    range = (1.0, _best(1.4945, 4.6607))  # 4.548639
    protocol = "pesq/nb-p862.1-8k"
    paper = "Rix et al.: Perceptual Evaluation of Speech Quality (PESQ), ICASSP 2001; ITU-T P.862.1, 2003"
    source = "pesq 0.0.4, exactly"
