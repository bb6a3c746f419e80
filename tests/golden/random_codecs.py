"""The codecs whose networks hold seeded noise in place of weights, each built once."""

from __future__ import annotations

from functools import cache

from codec_bench.codecs import load_codec
from codec_bench.codecs.base import Codec


@cache
def built(name: str) -> Codec:
    """The codec of this name with small networks of noise."""
    return load_codec(name, weights="random")
