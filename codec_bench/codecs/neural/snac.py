"""SNAC by its package, exact in batches, with reproducible noise.

Convolutions see zeros beyond an item's end. The package pads items to whole blocks (of the coarsest codebook, and of
the attention's window at 32 and 44.1 kHz), so attention never crosses an item's end. The decoder multiplies noise into
its activations; the item's own codes and `seed` seed it, so a wave depends on no batch or order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from codec_bench.audio.padded_passes import passes
from codec_bench.codecs.base import CodecInfo, check_input
from codec_bench.codecs.neural.base import PublishedCodec, check_streams, stack
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, calm_branches, fill_with_noise, seeded
from codec_bench.messages.errors import MissingExtra, UserError, WeightsError
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes, CodeStream

_CARDINALITY = 4096
_BITS_PER_CODE = 12
_COMMON = {"codebook_size": _CARDINALITY, "codebook_dim": 8, "noise": True, "depthwise": True}
_MUSIC = {
    "encoder_dim": 64,
    "encoder_rates": [2, 3, 8, 8],
    "decoder_dim": 1536,
    "decoder_rates": [8, 8, 3, 2],
    "attn_window_size": 32,
    "vq_strides": [8, 4, 2, 1],
    **_COMMON,
}
_MODELS: dict[str, dict[str, Any]] = {
    "24khz": {
        "sampling_rate": 24000,
        "encoder_dim": 48,
        "encoder_rates": [2, 4, 8, 8],
        "decoder_dim": 1024,
        "decoder_rates": [8, 8, 4, 2],
        "attn_window_size": None,
        "vq_strides": [4, 2, 1],
        **_COMMON,
    },
    "32khz": {"sampling_rate": 32000, **_MUSIC},
    "44khz": {"sampling_rate": 44100, **_MUSIC},
}
_SMALL = {"encoder_dim": 4, "decoder_dim": 64}  # the attention needs 64 channels at the frame rate


class Snac(PublishedCodec):
    """SNAC.

    Codes: three (24 kHz) or four streams of one codebook of 4096 entries, each at twice the frame rate of the one
    before.

    Args:
        model: `24khz`, `32khz` or `44khz` (44.1 kHz).
        seed: of the decoder's noise.
        device, weights: as for `PublishedCodec`; own weights are a folder in the published layout (`pytorch_model.bin`
            and `config.json`).

    Raises:
        MissingExtra: the package `snac` is not installed.
    """

    checkpoints = ("snac-{model}",)

    def __init__(
        self, model: Literal["24khz", "32khz", "44khz"], seed: int = 0, device: str = "cpu", weights: str | None = None
    ) -> None:
        from codec_bench.networks.snac import RaggedBatch

        info = self.describe(model)
        facts = _MODELS[model]
        self._seed, self._device = seed, device
        self._strides = facts["vq_strides"]
        self._hop = math.prod(facts["encoder_rates"])
        self._block = self._hop * math.lcm(self._strides[0], facts["attn_window_size"] or 1)
        net, used = _load(model, weights)
        self._batch = RaggedBatch(net)
        self._net = net.to(device)
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str) -> CodecInfo:
        """Return `CodecInfo` of a model, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="SNAC", hint=f"it has {', '.join(_MODELS)}")
        facts = _MODELS[model]
        finest_hz = facts["sampling_rate"] / math.prod(facts["encoder_rates"])
        tokens_per_s = sum(finest_hz / stride for stride in facts["vq_strides"])
        return CodecInfo(
            f"snac-{model}", (facts["sampling_rate"],), frame_rate_hz=finest_hz, causal=False,
            nominal_bitrate_bps=tokens_per_s * _BITS_PER_CODE, tokens_per_s=tokens_per_s,
        )  # fmt: skip

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item as the package encodes it alone."""
        from codec_bench.networks.transfer import fetched, sent

        for audio in batch:
            check_input(audio, self.info)
        lengths = [self._padded(audio.num_samples) for audio in batch]
        values: list[list[np.ndarray]] = [[]] * len(batch)
        with computing(self._device, "float32"):
            for group in passes(lengths, self._device, slack=None):
                mine = [lengths[k] for k in group]
                (waves,) = sent([stack([batch[k].samples for k in group], max(mine))], self._device)
                levels = fetched(self._in_shape_of_waves(self._encoded, waves, mine, self._block))
                for row, k in enumerate(group):
                    counts = self._frames(batch[k].num_samples)
                    values[k] = [level[row, :count] for level, count in zip(levels, counts)]
        return [self._codes(item, audio) for item, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item, and cut it to its length."""
        from codec_bench.networks.transfer import sent

        for item in codes:
            self._check(item)
        lengths = [self._padded(item.num_samples) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with computing(self._device, "float32"):
            for group in passes(lengths, self._device, slack=None):
                mine = [lengths[k] for k in group]
                levels = []
                for level, stride in enumerate(self._strides):
                    values = [codes[k].streams[level].values.astype(np.int64, copy=False) for k in group]
                    levels.append(stack(values, max(mine) // self._hop // stride)[:, 0])
                generators = [self._noise_of(codes[k]) for k in group]
                noise = self._batch.noise([length // self._hop for length in mine], generators)
                there = sent([*levels, *noise], self._device)
                rate_hz = self.info.sample_rates_hz[0]
                decoded = in_shape(self._decoded, there, mine, steps_per_s=rate_hz, unit=self._block).cpu().numpy()
                for k, wave in zip(group, decoded):
                    waves[k] = wave[:, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _encoded(self, waves: Any, lengths: Sequence[int]) -> Any:
        """Encode waves `(items, 1, samples)` to each level's codes `(items, frames)`."""
        with self._batch.of(lengths, self._device):
            return self._net.quantizer(self._net.encoder(waves))[1]

    def _decoded(self, *inputs: Any) -> Any:
        """Run the decoder on the levels' codes, then the blocks' noise, then lengths."""
        *there, lengths = inputs
        levels, noise = there[: len(self._strides)], there[len(self._strides) :]
        with self._batch.of(lengths, self._device, noise):
            return self._net.decoder(self._net.quantizer.from_codes(levels))

    def _padded(self, num_samples: int) -> int:
        return -(-num_samples // self._block) * self._block

    def _frames(self, num_samples: int) -> list[int]:
        return [self._padded(num_samples) // self._hop // stride for stride in self._strides]

    def _noise_of(self, item: Codes) -> Any:
        """Return a CPU generator for an item's noise, seeded by its codes and the codec."""
        import torch

        digest = hashlib.sha256(str(self._seed).encode())
        for stream in item.streams:
            digest.update(np.ascontiguousarray(stream.values, "<i8").tobytes())
        return torch.Generator().manual_seed(int.from_bytes(digest.digest()[:8], "little", signed=True))

    def _codes(self, levels: Sequence[np.ndarray], audio: Audio) -> Codes:
        """Wrap each level's codes as a stream at its own frame rate."""
        streams = []
        for values, stride in zip(levels, self._strides):
            name = f"every {stride} frames" if stride > 1 else "every frame"
            rate_hz = self.info.frame_rate_hz / stride
            streams.append(CodeStream(np.ascontiguousarray(values[None]), _CARDINALITY, rate_hz, name))
        return Codes(tuple(streams), audio.num_samples, audio.sample_rate_hz)

    def _check(self, item: Codes) -> None:
        expected = [(1, count) for count in self._frames(item.num_samples)]
        check_streams(item, self.info, expected, [_CARDINALITY] * len(expected))


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """Load the network, weight norms folded; also return which weights it has."""
    from codec_bench.networks.weight_norm import fold_weight_norm
    from codec_bench.weights import convert_cached, find, load_into, load_state, unfilled

    try:
        import snac.snac  # noqa: F401
    except ImportError as error:
        raise MissingExtra("codec", "snac", "codecs", name=f"snac-{model}") from error
    facts = {**_MODELS[model], **(_SMALL if weights == RANDOM else {})}
    if weights not in (RANDOM, RANDOM_FULL):
        checkpoint = find(f"snac-{model}", weights)
        _check_config(checkpoint.folder / checkpoint.files[1], facts)
        net = unfilled(lambda: _built(facts))
        state = convert_cached(lambda: fold_weight_norm(load_state(checkpoint.path)), checkpoint.path)
        load_into(net, state, path=checkpoint.path)
        return net.eval(), checkpoint.used
    with seeded():
        net = _built(facts)
    with seeded():
        fill_with_noise(net)
        calm_branches(net, "block.3.weight", "linear.weight", "to_out.weight")
    return net.eval(), weights


def _built(facts: dict[str, Any]) -> Any:
    """Build the package's network with plain weights, without weight normalisation."""
    from snac import layers
    from snac.snac import SNAC

    weight_norm = layers.weight_norm
    layers.weight_norm = lambda conv: conv
    try:
        return SNAC(**facts)
    finally:
        layers.weight_norm = weight_norm


def _check_config(path: Any, facts: dict[str, Any]) -> None:
    """Check that a configuration is that of the model."""
    try:
        config = json.loads(path.read_text("utf-8"))
        wrong = {key: config.get(key) for key, value in facts.items() if config.get(key) != value}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise WeightsError("file_not_readable", path=path, cause=error) from error
    if wrong:
        says = ", ".join(f"{key} {got} (expected {facts[key]})" for key, got in wrong.items())
        raise WeightsError("weights_of_another_model", folder=path, difference=says)
