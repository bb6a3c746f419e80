"""PESQ: the mean opinion score that ITU-T P.862 predicts for the estimate, wide-band or narrow-band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score

MAX_DURATION_S = 95.0
"""The reference code keeps a table of 1000 stretches of bad frames and does not check it. A stretch and the gap after
it take at least 96 ms, so that audio below 96 s cannot overflow it."""

MAX_UTTERANCES = 45
"""It also keeps tables of 50 utterances and writes past them: with 52 the number is wrong, with 60 the process dies.
`most_utterances` was never more than one below the code's own count; the other four are margin."""

SAFE_DURATION_S = 19.0
"""Utterances and the pauses between them last about 0.2 s at least: audio this short cannot hold 50."""


def most_utterances(reference: np.ndarray, rate_hz: int) -> int:
    """How many utterances an activity detector can find in a signal, whatever its threshold.

    Speech-band energies of 4 ms are compared with thresholds from the loudest down, in steps of 1 dB; what lies above
    one, with gaps of up to 0.2 s closed and blips of 16 ms dropped, counts where it lasts about as long.

    Args:
        reference: `(samples,)`, not silent.
        rate_hz: its rate.

    Returns:
        The largest count of all thresholds.
    """
    from scipy.signal import butter, sosfilt

    speech = sosfilt(butter(4, (300.0, 3000.0), "bandpass", fs=rate_hz, output="sos"), reference.astype(np.float64))
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
            apart = starts[1:] - stops[:-1] > 50
            lengths = stops[np.append(apart, True)] - starts[np.insert(apart, 0, True)]
            most = max(most, int((lengths >= 44).sum()))
    return most


class _Pesq(Metric):
    """What both bands share: the guards around the reference code, and the call."""

    kind = "pair"
    unit = "MOS"
    mode: ClassVar[str]
    rate_hz: ClassVar[int]

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item; undefined, refused or failed as the class says."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        from pesq import PesqError, pesq

        duration_s = item.reference.size / self.rate_hz
        if not item.reference.any():
            return Score.undefined("the reference is silent", self.protocol)
        if not item.estimate.any():
            return Score.undefined("the estimate is silent, and PESQ has no level to bring it to", self.protocol)
        if duration_s > MAX_DURATION_S:
            return Score.refused(
                f"{duration_s:.1f} s of audio can overflow the tables of the PESQ code, which are safe up to "
                f"{MAX_DURATION_S:.0f} s: cut it into shorter pieces",
                self.protocol,
            )
        if duration_s > SAFE_DURATION_S:
            utterances = most_utterances(item.reference, self.rate_hz)
            if utterances > MAX_UTTERANCES:
                return Score.refused(
                    f"the reference falls into as many as {utterances} utterances, and the PESQ code, which has room "
                    f"for 50, would write past its tables: cut it into shorter pieces",
                    self.protocol,
                )
        value = float(pesq(self.rate_hz, item.reference, item.estimate, self.mode, on_error=PesqError.RETURN_VALUES))
        if value == PesqError.BUFFER_TOO_SHORT:
            return Score.undefined(f"{duration_s:.2f} s of audio are too short: PESQ needs 0.25 s", self.protocol)
        if value == PesqError.NO_UTTERANCES_DETECTED:
            return Score.undefined("PESQ found no utterance of 0.2 s in common to both signals", self.protocol)
        if value < 0:
            return Score.failed(f"the PESQ code returned the error {value:.0f}", self.protocol)
        if math.isnan(value):
            return Score.undefined("PESQ found nothing in a signal that it could bring to its level", self.protocol)
        return Score.ok(value, self.protocol)


class PesqWb(_Pesq):
    """Wide-band PESQ (ITU-T P.862.2) at 16 kHz, a MOS-LQO between 1.0 and 4.64. Higher is better.

    Exactly the number of the package `pesq`, which wraps the ITU's code. Levels and delays are evened out by PESQ
    itself; it was made for speech of 8 to 20 s through telephone networks, and says little of music or of speech that
    a generative codec has spoken anew.

    Undefined for a silent signal, for less than 0.25 s and where no utterance is found. Refused above 95 s and, above
    19 s, for a reference of more than 45 utterances: the ITU's code has fixed tables, past which it first returns
    wrong numbers and then takes the process down.

    Paper: A. W. Rix et al., ICASSP 2001; ITU-T P.862.2, 2007. Reference implementation: pesq 0.0.4, exactly.
    """

    name = "pesq_wb"
    rate_hz = 16_000
    mode = "wb"
    range = (1.0, 4.65)
    protocol = "pesq/wb-p862.2"
    paper = (
        "Rix, Beerends, Hollier, Hekstra: Perceptual Evaluation of Speech Quality (PESQ), ICASSP 2001; ITU-T P.862.2"
    )
    source = "pesq 0.0.4, exactly"


class PesqNb(_Pesq):
    """Narrow-band PESQ (ITU-T P.862 with the mapping of P.862.1) at 8 kHz, a MOS-LQO between 1.0 and 4.55.

    Higher is better. Exactly the number of the package `pesq` on signals at 8 kHz; the same package gives a slightly
    lower one on signals at 16 kHz, which is another protocol. Otherwise as `pesq_wb`, also in what is undefined and
    refused.

    Paper: A. W. Rix et al., ICASSP 2001; ITU-T P.862.1, 2003. Reference implementation: pesq 0.0.4, exactly.
    """

    name = "pesq_nb"
    rate_hz = 8_000
    mode = "nb"
    range = (1.0, 4.55)
    protocol = "pesq/nb-p862.1-8k"
    paper = (
        "Rix, Beerends, Hollier, Hekstra: Perceptual Evaluation of Speech Quality (PESQ), ICASSP 2001; ITU-T P.862.1"
    )
    source = "pesq 0.0.4, exactly"
