"""How thoroughly a profile is measured, and the exception of a measurement that does not apply to a codec."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """How thoroughly each measurement is made. These settings do not change what a number means.

    Args:
        clip_s: seconds of speech for the real-time factor at batch 1, and for counting operations.
        repeats: how often that clip is coded; the median is reported.
        latency_s: seconds of the signal that is changed to find the look-ahead; a codec that looks further ahead than
            that is reported to need the whole signal.
        stream_s: seconds that are streamed.
        robust_clips: how many clips are re-encoded, amplified and shifted. robust_s: seconds that each is cut to.
        reencodings: how often decoded audio is encoded again.
        gains_db: the changes of level that are tried, in dB.
        shift_samples: how many samples a clip is moved by.
        players: of how many clips the decoded audio is kept, to be played on the page.
        time_limit_s: how long one call of a codec may take before it counts as hanging.
        memory_gib: how much memory the codec's process may take before it is ended; None for nine tenths of what is free.
        threads: how many threads the codec's process may use; None for as many as its libraries take.
        seed: decides the noise and which samples `limit` takes.
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
    memory_gib: float | None = None
    threads: int | None = None
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "gains_db": list(self.gains_db)}


class NotApplicable(Exception):
    """A measurement does not apply to this codec; the message says why, in one sentence."""
