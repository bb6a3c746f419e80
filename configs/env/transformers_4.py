"""Worker code for `transformers-4`: Whisper's features by transformers 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import transformers


def load(mel_bins: int = 80) -> Any:
    """Called once in each worker process.

    Args:
        mel_bins: of the features: 80, or 128 as for Whisper large-v3.
    """
    return transformers.WhisperFeatureExtractor(feature_size=mel_bins)


def answer(state: Any, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer a batch: the number of feature frames of each clip, and their mean."""
    answers = []
    for request in batch:
        sound = request["fields"]["audio"]
        got = state(
            sound["samples"][0], sampling_rate=sound["sample_rate_hz"], padding="longest", return_tensors="np"
        ).input_features[0]
        mean = float(np.mean(got, dtype=np.float64))
        answers.append(
            {
                "text": f"{got.shape[0]} bins, {got.shape[1]} frames, mean {mean:.5f}",
                "usage": {"frames": got.shape[1]},
                "notes": [f"transformers {transformers.__version__}"],
            }
        )
    return answers
