"""Settings of a profile: clips, repeats and conditions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from codec_bench.config.limits import Limits
from codec_bench.messages import Diagnostic

SKIPPED = Diagnostic("skipped")
"""The reason of sections whose steps `--skip` names."""


@dataclass(frozen=True, slots=True)
class Settings(Limits):
    """Clips, repeats and conditions; they do not change what a number means.

    Args:
        clip_s: seconds of speech for the real-time factor at batch 1, and for counting operations.
        repeats: encodings of that clip; the median is reported.
        latency_s: seconds of the signal for look-ahead; a codec that looks further is reported to need the whole
            signal.
        stream_s: seconds streamed.
        robust_clips: clips that are re-encoded and changed.
        robust_s: seconds of each.
        reencodings: rounds of encoding decoded audio again.
        gains_db: changes of level.
        noises_db: signal-to-noise ratios of added noise.
        shift_samples: samples by which a clip is delayed.
        robust_metrics: metrics of measurements with many conditions of a few clips.
        loss_clips: clips that lose frames.
        loss_s: seconds of each.
        loss_rates: shares of frames lost at random.
        loss_burst_rates: shares lost in bursts.
        loss_burst_frames: mean frames of a burst.
        recovery_frames: frames lost one at a time.
        recovery_db: difference relative to the undisturbed output up to which the output counts as recovered.
        bit_errors: single bits flipped.
        latent_bits: bits of each rounded latent of a continuous codec.
        swap_pairs: pairs of clips that exchange global parts.
        voice_metric: the similarity of two voices.
        players: clips whose decoded audio the page plays.
        lm_steps: training steps of a small transformer on the codes; 0 for none.
        seed: decides noise and the samples of `limit`.
    """

    clip_s: float = 10.0
    repeats: int = 3
    latency_s: float = 3.0
    stream_s: float = 4.0
    robust_clips: int = 2
    robust_s: float = 3.0
    reencodings: int = 3
    gains_db: tuple[float, ...] = (-6.0, 6.0)
    noises_db: tuple[float, ...] = (20.0, 10.0, 0.0)
    shift_samples: int = 1
    robust_metrics: tuple[str, ...] = ("stoi", "pesq_wb", "mel_distance")
    loss_clips: int = 2
    loss_s: float = 2.0
    loss_rates: tuple[float, ...] = (0.01, 0.03, 0.05, 0.1, 0.2)
    loss_burst_rates: tuple[float, ...] = (0.1, 0.2)
    loss_burst_frames: float = 3.0
    recovery_frames: int = 4
    recovery_db: float = -30.0
    bit_errors: int = 8
    latent_bits: tuple[int, ...] = (2, 4, 6, 8, 12)
    swap_pairs: int = 4
    voice_metric: str = "sim"
    players: int = 3
    lm_steps: int = 100
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
