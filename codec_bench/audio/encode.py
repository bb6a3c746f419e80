"""Writing sound files: 16-bit FLAC, clipped to full scale. There is no dither, so equal audio gives equal files."""

from __future__ import annotations

import os

import numpy as np

from codec_bench.types import Audio


def write_flac(path: str | os.PathLike[str], audio: Audio) -> None:
    """Writes 16-bit FLAC (up to 8 channels, up to 655350 Hz)."""
    import soundfile

    pcm = np.clip(np.round(audio.samples.T * 32768.0), -32768, 32767).astype(np.int16)
    soundfile.write(os.fspath(path), pcm, audio.sample_rate_hz, format="FLAC", subtype="PCM_16")
