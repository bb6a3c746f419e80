"""SIGMOS: the opinion score of listeners by ITU-T P.804, and six dimensions of quality, predicted from the estimate alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from codec_bench.features.sigmos import Sigmos
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class _Sigmos(Metric):
    """What the scores have in common: each is a number of one feature."""

    kind = "single"
    rate_hz = 48_000
    signals = False
    range = (1.0, 5.0)
    where = "inline"
    estimate_features = (Sigmos.name,)
    paper = "Naderi, Cutler, Ristea: Multi-dimensional Speech Quality Assessment in Crowdsourcing, ICASSP 2024"
    source = "github.com/microsoft/SIG-Challenge sigmos.py with ONNX Runtime at 48 kHz, to 1e-5"
    key: ClassVar[str]

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        return [Score.ok(item.estimate_features[Sigmos.name][self.key], self.protocol) for item in batch]


class SigmosColoration(_Sigmos):
    """How natural the timbre is, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_col", "coloration"
    protocol = f"sigmos_col/{Sigmos.protocol}"


class SigmosDiscontinuity(_Sigmos):
    """How free of gaps and jumps the signal is, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_disc", "discontinuity"
    protocol = f"sigmos_disc/{Sigmos.protocol}"


class SigmosLoudness(_Sigmos):
    """How suitable the loudness is, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_loud", "loudness"
    protocol = f"sigmos_loud/{Sigmos.protocol}"


class SigmosNoise(_Sigmos):
    """How little noise there is, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_noise", "noise"
    protocol = f"sigmos_noise/{Sigmos.protocol}"


class SigmosReverb(_Sigmos):
    """How little reverberation there is, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_reverb", "reverb"
    protocol = f"sigmos_reverb/{Sigmos.protocol}"


class SigmosSignal(_Sigmos):
    """How good the speech itself sounds, leaving the background aside, as SIGMOS predicts it. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_sig", "signal"
    protocol = f"sigmos_sig/{Sigmos.protocol}"


class SigmosOverall(_Sigmos):
    """The overall opinion score that SIGMOS predicts. Higher is better; nominally 1 to 5.

    Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.
    """

    name, key = "sigmos_ovrl", "overall"
    protocol = f"sigmos_ovrl/{Sigmos.protocol}"
