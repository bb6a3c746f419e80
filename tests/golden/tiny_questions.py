"""Made-up sounds, and questions about them, for models with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.types import Audio, Message, Request

RATE = 16_000


def clip(seconds: float, seed: int) -> Clip:
    """A tone in noise that swells; every seed sounds different."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    tone = 0.3 * np.sin(2 * np.pi * time * rng.uniform(100, 3000))
    return Clip(Audio((tone + 0.2 * rng.standard_normal(time.size) * np.sin(time * 5)).astype(np.float32), RATE))


def request(k: int, seconds: float, **more: Any) -> Request:
    """The k-th question about a sound: by turns before or behind it, of several lengths, with or without a system's
    turn.
    """
    sound = clip(seconds, k)
    parts = (sound, "What is " + "that? " * (k % 4)) if k % 2 else ("Listen: ", sound)
    system = (Message("system", ("Be kind.",)),) if k % 3 == 0 else ()
    return Request(str(k), (*system, Message("user", parts)), **more)
