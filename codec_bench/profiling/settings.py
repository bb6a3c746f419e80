"""What a profile is asked for, and what a measurement says when it does not apply."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """How thoroughly each measurement is made. None of it changes what a number means.

    Args:
        clip_s: seconds of speech for the real-time factor at batch 1, and for counting operations.
        repeats: how often that clip is coded; the median counts.
        latency_s: seconds of the signals that are perturbed; a codec that looks further ahead is said to need it all.
        stream_s: seconds that are streamed.
        robust_clips, robust_s: how many clips are re-encoded, amplified and shifted, each cut to so many seconds.
        reencodings: how often decoded audio is encoded again.
        gains_db: changes of level.
        shift_samples: samples put in front of a clip.
        players: how many clips' audio is kept for the page.
        time_limit_s: how long one call of a codec may take before it counts as hanging.
        threads: of the codec's process; None for as many as the libraries take.
        seed: of noise and of the part of the data that is taken.
    """

    clip_s: float = 10.0
    repeats: int = 3
    latency_s: float = 3.0
    stream_s: float = 4.0
    robust_clips: int = 4
    robust_s: float = 5.0
    reencodings: int = 3
    gains_db: tuple[float, ...] = (-6.0, 6.0)
    shift_samples: int = 1
    players: int = 3
    time_limit_s: float = 300.0
    threads: int | None = None
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "gains_db": list(self.gains_db)}


class NotApplicable(Exception):
    """A measurement that this codec has no answer to; the message is the reason, one sentence."""
