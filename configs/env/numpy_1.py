"""Worker code for `numpy-1`: measures audio and returns it with a gain.

The two functions are all that a model in an environment of its own needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def load(gain_db: float = 0.0) -> dict[str, Any]:
    """Called once in each worker process.

    Args:
        gain_db: how much louder the sound is given back.
    """
    print(f"NumPy {np.__version__}")  # goes to the worker's log
    return {"gain": 10 ** (gain_db / 20)}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Called for every batch: one answer per request, in order."""
    answers = []
    for request in batch:
        sounds = [content for m in request["messages"] for content in m["content"] if isinstance(content, dict)]
        sound = request["fields"].get("audio") or sounds[0]
        samples = sound["samples"]
        level_db = 20 * np.log10(max(float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))), 1e-10))
        # NumPy 1's own: NumPy 2 calls it trapezoid.
        energy = float(np.trapz(np.square(samples[0], dtype=np.float64), dx=1 / sound["sample_rate_hz"]))
        answers.append(
            {
                "text": f"{samples.shape[1] / sound['sample_rate_hz']:.3f} s, {level_db:.2f} dB, energy {energy:.6g}",
                "audio": {"samples": samples * np.float32(state["gain"]), "sample_rate_hz": sound["sample_rate_hz"]},
                "notes": [f"numpy {np.__version__}"],
            }
        )
    return answers
