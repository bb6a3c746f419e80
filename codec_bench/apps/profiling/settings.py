"""How thoroughly a profile is measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from codec_bench.config.limits import Limits
from codec_bench.messages import Diagnostic

SKIPPED = Diagnostic("skipped")
"""The reason of the sections of steps that `--skip` names."""


@dataclass(frozen=True, slots=True)
class Settings(Limits):
    """How thoroughly each measurement is made. These settings do not change what a number means; `Limits` are among
    them.

    Args:
        clip_s: seconds of speech for the real-time factor at batch 1, and for counting operations.
        repeats: how often that clip is coded; the median is reported.
        latency_s: seconds of the signal that is changed to find the look-ahead; a codec that looks further ahead than
            that is reported to need the whole signal.
        stream_s: seconds that are streamed.
        robust_clips: how many clips are re-encoded and changed. robust_s: seconds that each is cut to.
        reencodings: how often decoded audio is encoded again.
        gains_db: the changes of level that are tried, in dB. noises_db: the signal-to-noise ratios of added noise, in
            dB.
        shift_samples: how many samples a clip is moved by.
        robust_metrics: the metrics of the measurements that compare many conditions of a few clips.
        loss_clips: of how many clips frames are lost. loss_s: seconds that each is cut to.
        loss_rates: the shares of frames that are lost at random.
        loss_burst_rates: the shares that are lost in bursts. loss_burst_frames: how many frames a burst has on average.
        recovery_frames: how many frames are lost one at a time. recovery_db: the difference, relative to the
            undisturbed output, up to which the output counts as recovered.
        bit_errors: how often a single bit is turned round.
        latent_bits: the numbers of bits that each latent of a continuous codec is rounded to.
        swap_pairs: of how many pairs of clips the global parts are exchanged. voice_metric: says how alike two voices
            are.
        players: of how many clips the decoded audio is kept, to be played on the page.
        lm_steps: how many steps a small transformer is trained on the codes; 0 for none.
        seed: decides the noise and which samples `limit` takes.
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
        """As JSON values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
