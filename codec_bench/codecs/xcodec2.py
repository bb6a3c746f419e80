"""X-codec2 and NeuCodec through transformers, in batches that equal transformers one item at a time.

Where padding would leak, and what is done about it
    Everywhere: the features of the semantic branch are normalised over time, its encoder is a wav2vec 2.0 BERT, the
    acoustic encoder's filters repeat the signal's ends, and the decoder normalises over time and attends to everything.
    transformers' masks cover the two transformers only. Here only items of exactly equal length share a pass.

How items are filled up
    X-codec2's feature extractor always adds at least one zero, so that a signal that ends with a frame gets one frame
    more. NeuCodec's does too, but its features are one frame shorter than that: up to 20 ms would be lost at the end. Here
    NeuCodec's items are first followed by zeros to a multiple of the frame, so that all of the signal is coded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from codec_bench.audio.resample import resample
from codec_bench.codecs.base import Codec, CodecInfo
from codec_bench.codecs.bitstream import check_input
from codec_bench.codecs.network import (
    RANDOM,
    RANDOM_FULL,
    check_stream,
    equal_lengths,
    fill_with_noise,
    full_float32,
    one_stream,
    seeded,
    weights_folder,
)
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes

_ENCODER_HZ = 16000
_ENCODER_HOP = 320
_CARDINALITY = 4**8
_REDUCED = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "encoder_hidden_size": 4,
    "quantization_dim": 96,
    "semantic_model_config": {
        "model_type": "wav2vec2-bert",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "output_hidden_size": 32,
    },
}


@dataclass(frozen=True, slots=True)
class _Model:
    """One published model: rate of its audio, what its configuration says, and transformers' name of its classes."""

    rate_hz: int
    facts: dict[str, Any]
    classes: str

    @property
    def hop(self) -> int:
        return _ENCODER_HOP * self.rate_hz // _ENCODER_HZ


_SHARED = {"downsampling_ratios": [2, 2, 4, 4, 5], "quantization_levels": [4] * 8}
_MODELS = {
    "xcodec2": _Model(16000, {"sampling_rate": 16000, **_SHARED}, "Xcodec2"),
    "neucodec": _Model(24000, {"input_sampling_rate": 16000, "output_sampling_rate": 24000, **_SHARED}, "NeuCodec"),
}


class Xcodec2(Codec):
    """X-codec2, and NeuCodec, which is built alike and decodes to 24 kHz.

    Codes: one stream of one codebook of 65536 entries at 50 frames a second.

    Args:
        model: `xcodec2` or `neucodec`. NeuCodec is a codec of 24 kHz here, since that is what it gives; its encoder is given
            the signal at 16 kHz.
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of transformers or a hub id; None for the published weights on this machine;
            `random` for a small network of seeded noise, `random-full` for one of the published size, both for tests and
            benches only.

    Raises:
        UserError: no such model.
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(
        self, model: Literal["xcodec2", "neucodec"] = "xcodec2", device: str = "cpu", weights: str | None = None
    ) -> None:
        import transformers

        info = self.describe(model)
        self._facts = _MODELS[model]
        self._device = device
        net, used = _load(model, weights)
        self._net = net.eval().to(device)
        self._features = getattr(transformers, f"{self._facts.classes}FeatureExtractor")()
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str = "xcodec2") -> CodecInfo:
        """The facts of one model, without loading anything.

        Raises:
            UserError: no such model.
        """
        if model not in _MODELS:
            raise UserError(f"X-codec2 has no model '{model}'", hint=f"it has {', '.join(_MODELS)}")
        frame_rate_hz = _ENCODER_HZ / _ENCODER_HOP
        return CodecInfo(
            name=model,
            sample_rates_hz=(_MODELS[model].rate_hz,),
            frame_rate_hz=frame_rate_hz,
            nominal_bitrate_bps=frame_rate_hz * math.log2(_CARDINALITY),
            causal=False,
        )

    @classmethod
    def find_weights(cls, model: str = "xcodec2", **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder(model)

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as transformers gives them for that item alone, filled up as said above.

        Raises:
            UserError: a rate or channel count that the model does not take, or no samples.
        """
        for audio in batch:
            check_input(audio, self.info)
        frames = [self._frames(audio.num_samples) for audio in batch]
        out: list[Any] = [None] * len(batch)
        with full_float32(self._device):
            for group in equal_lengths(frames):
                inputs = self._features(
                    [self._heard(batch[k], frames[k]) for k in group], sampling_rate=_ENCODER_HZ, return_tensors="pt"
                ).to(self._device)
                values = self._net.encode(**inputs).audio_codes.cpu().numpy()
                for k, item in zip(group, values):
                    out[k] = one_stream(item, batch[k], self.info, _CARDINALITY)
        return out

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length has.
        """
        import torch

        frames = [self._frames(item.num_samples) for item in codes]
        for item, count in zip(codes, frames):
            check_stream(item, self.info, (1, count), _CARDINALITY)
        out: list[Any] = [None] * len(codes)
        with full_float32(self._device):
            for group in equal_lengths(frames):
                values = torch.from_numpy(np.stack([codes[k].streams[0].values for k in group])).to(self._device)
                for k, wave in zip(group, self._net.decode(values).audio_values.cpu().numpy()):
                    out[k] = Audio(wave[:, : codes[k].num_samples], codes[k].sample_rate_hz)
        return out

    def _frames(self, num_samples: int) -> int:
        if self._facts.rate_hz == _ENCODER_HZ:
            return num_samples // self._facts.hop + 1
        return -(-num_samples // self._facts.hop)

    def _heard(self, audio: Audio, frames: int) -> np.ndarray:
        """What the feature extractor is given of one item: samples at 16 kHz."""
        if self._facts.rate_hz == _ENCODER_HZ:
            return audio.samples[0]
        wave = resample(audio.samples, audio.sample_rate_hz, _ENCODER_HZ)[0, : frames * _ENCODER_HOP]
        return np.pad(wave, (0, frames * _ENCODER_HOP - len(wave)))


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """The network on the CPU, and which weights it has."""
    import transformers

    from codec_bench.weights import find
    from codec_bench.weights.pretrained import load_pretrained

    facts = _MODELS[model]
    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(facts, reduced=weights == RANDOM), weights
    found = find(model, weights)
    return load_pretrained(getattr(transformers, f"{facts.classes}Model"), str(found.folder), facts.facts), found.used


def _random_net(facts: _Model, *, reduced: bool) -> Any:
    """A network of seeded noise whose codes are spread over all levels."""
    import torch
    import transformers

    with seeded():
        config = getattr(transformers, f"{facts.classes}Config")(**facts.facts, **(_REDUCED if reduced else {}))
        net = getattr(transformers, f"{facts.classes}Model")(config).eval()
        fill_with_noise(net)
        features = getattr(transformers, f"{facts.classes}FeatureExtractor")()
        noise = 0.1 * torch.randn(100 * _ENCODER_HOP).numpy()
        entry, seen = net.quantizer.project_in, []
        hook = entry.register_forward_pre_hook(lambda _, inputs: seen.append(entry.forward(inputs[0])))
        net.encode(**features(noise, sampling_rate=_ENCODER_HZ, return_tensors="pt"))
        hook.remove()
        spread, centre = torch.std_mean(seen[0][0], dim=0)
        entry.weight.div_(spread[:, None])
        entry.bias.sub_(centre).div_(spread)
    return net
