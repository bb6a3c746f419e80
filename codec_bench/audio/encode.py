"""Writes 16-bit FLAC, clipped, without dither: equal audio gives equal files."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from codec_bench.messages.errors import AudioError
from codec_bench.types import Audio

MOST_CHANNELS = 8
HIGHEST_HZ = 655_350


def write_flac(path: str | os.PathLike[str], audio: Audio) -> None:
    """Write 16-bit FLAC.

    Raises:
        AudioError: it has more than 8 channels or a sample rate beyond 655350 Hz.
    """
    Path(path).write_bytes(flac_bytes(audio))


def flac_bytes(audio: Audio) -> bytes:
    """Return the bytes of `write_flac`'s file; same errors."""
    import soundfile

    if audio.channels > MOST_CHANNELS or audio.sample_rate_hz > HIGHEST_HZ:
        raise AudioError(
            "flac_limits",
            channels=audio.channels,
            rate_hz=audio.sample_rate_hz,
            most_channels=MOST_CHANNELS,
            highest_hz=HIGHEST_HZ,
        )

    pcm = np.clip(np.round(audio.samples.T * 32768.0), -32768, 32767).astype(np.int16)
    file = io.BytesIO()  # libsndfile writes each frame, and the header three times
    soundfile.write(file, pcm, audio.sample_rate_hz, format="FLAC", subtype="PCM_16")
    return file.getvalue()
