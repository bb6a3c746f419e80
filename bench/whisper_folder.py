"""A Whisper of any published size with random weights, for CTranslate2.

The weights are stretches of one block of noise, which costs no time to draw. A position turns up the column that only
the end of the text reads, so transcripts have a fixed number of tokens.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common  # noqa: F401 - the stand-ins can be imported
import numpy as np

POSITIONS, TEXT_POSITIONS = 1_500, 448
TOKENS = 26  # of a transcript, as many as the 20 words of LibriSpeech's test-clean take on average
GREEDY = {
    "beam_size": 1, "best_of": 1, "temperature": 0.0, "without_timestamps": True, "condition_on_previous_text": False,
    "no_speech_threshold": None, "log_prob_threshold": None, "compression_ratio_threshold": None,
}  # fmt: skip
"""Options of faster-whisper for the likeliest tokens."""
_LOUD = {
    "conv1/weight": 2.0, "conv2/weight": 1.0, "/self_attention/linear_1/weight": 1.0, "/attention/linear_0/weight": 1.0,
    "/attention/linear_1/weight": 4.0, "/attention/linear_2/weight": 3.0,
}  # fmt: skip
"""By the ends of names: the deviation of a weight, times the root of its inputs, for which the sound decides."""
_ROWS = {"self_attention/linear_0": 3, "attention/linear_1": 2, "ffn/linear_0": 4}
"""Rows of a matrix in widths of the network, if more than one."""


@dataclass(frozen=True)
class Size:
    """An architecture: width, layers, heads and mel bands."""

    d_model: int
    layers: int
    decoder_layers: int
    heads: int
    n_mels: int

    @property
    def encoder_macs(self) -> float:
        """Multiply-accumulates of the encoder for a window, with the decoder's keys."""
        d = self.d_model
        layers = self.layers * (12 * d * d + 2 * POSITIONS * d) + self.decoder_layers * 2 * d * d
        return POSITIONS * (layers + 2 * 3 * self.n_mels * d + 3 * d * d)

    @property
    def step_weights(self) -> float:
        """Weights that the decoder reads for a token, without its vocabulary."""
        return self.decoder_layers * 14 * self.d_model**2

    @property
    def step_macs(self) -> float:
        """Multiply-accumulates of the decoder for a token, without the vocabulary."""
        return self.step_weights + self.decoder_layers * 2 * POSITIONS * self.d_model


SIZES = {
    "reduced": Size(64, 2, 2, 2, 80),
    "tiny": Size(384, 4, 4, 6, 80),
    "reduced-v3": Size(64, 2, 2, 2, 128),
    "large-v3": Size(1280, 32, 32, 20, 128),
}


def write(folder: Path, size: Size, *, tokens: int, dtype: str = "float32", words: int | None = None) -> Path:
    """Write a new folder with a Whisper whose transcripts have so many tokens.

    Args:
        dtype: of the weights. words: of the vocabulary without its special tokens; None for the published number.
    """
    import tiny_whisper as tiny
    from ctranslate2.specs import whisper_spec
    from tokenizers import Tokenizer

    folder.mkdir(parents=True)
    kind = "v3" if size.n_mels == 128 else "multilingual"
    ids = tiny.write_tokenizer(folder, kind, words or tiny.PUBLISHED_WORDS)
    by_token = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    vocabulary = [*sorted(by_token, key=by_token.__getitem__), *(f"<|{0.02 * k:.2f}|>" for k in range(tiny.TIMESTAMPS))]
    spec = whisper_spec.WhisperSpec(size.layers, size.heads, size.decoder_layers, size.heads)
    _fill(spec, size, len(vocabulary), np.dtype(dtype))
    _end_after(spec.decoder, ids["<|endoftext|>"], tokens + 3)
    spec.register_vocabulary(vocabulary)
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], [ids["<|endoftext|>"]]
    languages = tiny.special_tokens(kind)[2 : 2 + (100 if kind == "v3" else 99)]
    spec.config.lang_ids = sorted(ids[token] for token in languages)
    spec.config.alignment_heads = [[0, 0]]
    spec.validate()
    spec.decoder.projection.weight = "decoder/embeddings/weight"  # an alias, as the converter makes it of equal weights
    spec.save(str(folder))
    (folder / "preprocessor_config.json").write_text(json.dumps(tiny.features(size.n_mels)))
    return folder


def _fill(spec: Any, size: Size, vocabulary: int, dtype: np.dtype) -> None:
    """Give every weight a stretch of noise, and every norm the identity."""
    from ctranslate2.specs import model_spec

    noise = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    starts = itertools.count(0, 7919)  # equal weights would be taken for one

    def visit(module: Any, name: str, value: Any) -> None:
        scope, _, attribute = name.rpartition("/")
        if attribute in ("weight", "encodings"):
            shape = _shape(name, size, vocabulary)
            block = (np.roll(noise, next(starts)) * _spread(name, shape)).astype(dtype)
            setattr(module, attribute, np.resize(block, shape))
            if "linear" in scope or "conv" in scope:
                module.bias = np.zeros(shape[0], dtype)
        elif attribute in ("gamma", "beta"):
            setattr(module, attribute, np.full(size.d_model, float(attribute == "gamma"), dtype))

    model_spec.visit_spec(spec, visit)


def _shape(name: str, size: Size, vocabulary: int) -> tuple[int, ...]:
    d, component = size.d_model, "/".join(name.split("/")[-3:-1])
    if component.endswith(("embeddings", "projection")):
        return vocabulary, d
    if component.endswith("position_encodings"):
        return (POSITIONS if name.startswith("encoder") else TEXT_POSITIONS), d
    if component.endswith(("conv1", "conv2")):
        return d, size.n_mels if component.endswith("conv1") else d, 3
    return _ROWS.get(component, 1) * d, 4 * d if component == "ffn/linear_1" else d


def _spread(name: str, shape: tuple[int, ...]) -> float:
    """The deviation of a weight."""
    for end, factor in _LOUD.items():
        if name.endswith(end):
            return factor * shape[1] ** -0.5
    if not name.startswith("decoder"):
        return 0.02
    return 1.0 if name.endswith("encodings") else 0.1 if "embeddings" in name or "projection" in name else 0.02


def _end_after(decoder: Any, stop: int, position: int) -> None:
    """Let the end of the text win at a position, and no special token before it."""
    rows = decoder.embeddings.weight
    rows[:, :2] = 0.0
    rows[stop:, 0] = -2.0
    rows[stop, :2] = -10.0, 5.0
    decoder.position_encodings.encodings[:, 1] = 0.0
    decoder.position_encodings.encodings[position:, 1] = 1000.0
    decoder.layer_norm.gamma[:] = 30.0
    decoder.layer_norm.beta[0] = 100.0
