"""The codecs whose networks hold seeded noise in place of weights, each built once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from codec_bench.codecs import load_codec
from codec_bench.codecs.base import Codec

NAMES = (
    "bigcodec", "chattts-dvae", "dac-16khz", "encodec-24khz@6", "encodec-48khz@6", "funcodec-zh-en-ds640@1", "mimi-8cb",
    "higgs-audio-v2-8cb", "neucodec", "pocket-tts", "snac-24khz", "spark-bicodec", "speechtokenizer-2k", "vibevoice",
    "wavtokenizer-large-speech-75token",
    "xcodec-hubert-librispeech", "xcodec2",
)  # fmt: skip
"""One of every class of neural codecs."""


@cache
def built(name: str) -> Codec:
    """The codec of this name with small networks of noise."""
    return load_codec(name, weights="random")


@contextmanager
def networks_once(*modules: Any, most: int = 1) -> Iterator[None]:
    """Codecs of these modules share their networks of noise: the bitrates of a model have the same.

    Args:
        most: how many networks of each module are held, the newest.
    """

    def once(make):
        held = {}

        def network(*args, **options):
            key = repr((args, options))
            if key not in held:
                for old in list(held)[: len(held) - most + 1]:
                    del held[old]
                held[key] = make(*args, **options)
            return held[key]

        return network

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "_random_net", once(module._random_net))
        yield
