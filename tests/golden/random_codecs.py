"""The codecs whose networks hold seeded noise in place of weights, each built once."""

from __future__ import annotations

from functools import cache

from codec_bench.codecs import load_codec
from codec_bench.codecs.base import Codec

NAMES = (
    "bigcodec", "chattts-dvae", "dac-16khz", "encodec-24khz@6", "encodec-48khz@6", "funcodec-zh-en-ds640@1", "mimi-8cb",
    "higgs-audio-v2-8cb", "neucodec", "pocket-tts", "snac-24khz", "spark-bicodec", "speechtokenizer-2k", "vibevoice", "wavtokenizer-large-speech-75token",
    "xcodec-hubert-librispeech", "xcodec2",
)  # fmt: skip
"""One of every class of neural codecs."""


@cache
def built(name: str) -> Codec:
    """The codec of this name with small networks of noise."""
    return load_codec(name, weights="random")
