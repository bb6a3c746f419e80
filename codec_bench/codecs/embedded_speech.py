"""Clips of the embedded speech for measurements before any other audio."""

from __future__ import annotations

from importlib.resources import files

from codec_bench.types import Audio


def embedded_clip(name: str) -> Audio:
    """Load an embedded clip by its name, such as `awb_01`."""
    return Audio.read(str(files("codec_bench.data") / "embedded" / f"{name}.flac"))
