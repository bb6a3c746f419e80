"""X-codec2 and NeuCodec by transformers, exact in batches.

Padding would change results everywhere (features normalised over time, filters that repeat the ends, attention), so
only items of exactly equal length share a pass. X-codec2's feature extractor adds at least one zero, so whole frames
get one more. NeuCodec's would lose up to 20 ms at the end: its items are first followed by zeros to whole frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from codec_bench.audio.resample import resample
from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info, group_by_length, of_transformers
from codec_bench.codecs.neural.random_weights import fill_with_noise, seeded
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_rows

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
    """One published model: audio rate, configuration, prefix of transformers' classes."""

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


class Xcodec2(NeuralCodec):
    """X-codec2, and NeuCodec, which has the same structure and decodes to 24 kHz.

    Codes: one stream of one codebook of 65536 entries at 50 frames a second.

    Args:
        model: `xcodec2` or `neucodec`. NeuCodec's rate is 24 kHz, that of its output; its encoder reads 16 kHz.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.

    Raises:
        UserError: there is no such model.
    """

    cardinality = _CARDINALITY
    checkpoints = ("{model}",)

    def __init__(
        self, model: Literal["xcodec2", "neucodec"] = "xcodec2", device: str = "cpu", weights: str | None = None
    ) -> None:
        from codec_bench.weights.pretrained import class_of

        info = self.describe(model)
        self._facts = facts = _MODELS[model]
        self._device = device
        net, used = of_transformers(weights, model, f"{facts.classes}Model", facts.facts, partial(_random_net, facts))
        self._net = net.eval().to(device)
        self._features = class_of(f"{self._facts.classes}FeatureExtractor")()
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str = "xcodec2") -> CodecInfo:
        """Return `CodecInfo` of a model, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="X-codec2", hint=f"it has {', '.join(_MODELS)}")
        return code_info(model, _MODELS[model].rate_hz, _MODELS[model].hop, _CARDINALITY)

    def _encoder_passes(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        return group_by_length(lengths)

    def _decoder_passes(self, frames: Sequence[int]) -> Iterable[list[int]]:
        return group_by_length(frames)

    def _inputs(self, waves: Sequence[np.ndarray], samples: Sequence[int]) -> Sequence[np.ndarray]:
        """Resample to 16 kHz and compute the encoder's features, with a mask if padded."""
        resampled = [self._at_encoders_rate(item, count) for item, count in zip(waves, samples)]
        features = self._features(resampled, sampling_rate=_ENCODER_HZ, return_tensors="np")
        needed = [np.ascontiguousarray(features[name]) for name in ("input_values", "input_features")]
        # The network would have to wait for the device to see that a mask hides nothing.
        mask = np.ascontiguousarray(features["input_features_mask"])
        return needed if mask.all() else [*needed, mask]

    def _encoded(self, inputs: Sequence[Any], samples: Sequence[int]) -> Any:
        return in_rows(self._search, inputs)  # of no other length: padding would change codes

    def _search(self, values: Any, features: Any, mask: Any = None) -> Any:
        return self._net.encode(values, features, input_features_mask=mask).audio_codes

    def _decoded(self, inputs: Sequence[Any], frames: Sequence[int]) -> Any:
        return in_rows(lambda values: self._net.decode(values).audio_values, inputs)  # and so for waves

    def _frames(self, num_samples: int) -> int:
        if self._facts.rate_hz == _ENCODER_HZ:
            return num_samples // self._facts.hop + 1
        return -(-num_samples // self._facts.hop)

    def _input_samples(self, num_samples: int) -> int:
        return self._frames(num_samples) * self._facts.hop

    def _at_encoders_rate(self, wave: np.ndarray, samples: int) -> np.ndarray:
        """Resample one item to 16 kHz for the feature extractor, `(count,)`.

        Args:
            wave: `(1, padded samples)` at the codec's input rate.
            samples: of the item.
        """
        if self._facts.rate_hz == _ENCODER_HZ:
            return wave[0]
        count = samples * _ENCODER_HZ // self._facts.rate_hz
        resampled = resample(wave, self._facts.rate_hz, _ENCODER_HZ)[0, :count]
        return np.pad(resampled, (0, count - len(resampled)))


def _random_net(facts: _Model, *, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, whose codes take all levels."""
    import torch

    from codec_bench.weights.pretrained import class_of

    with seeded():
        config = class_of(f"{facts.classes}Config")(**facts.facts, **(_REDUCED if reduced else {}))
        net = class_of(f"{facts.classes}Model")(config).eval()
        fill_with_noise(net)
        features = class_of(f"{facts.classes}FeatureExtractor")()
        noise = 0.1 * torch.randn(100 * _ENCODER_HOP).numpy()
        entry, seen = net.quantizer.project_in, []
        hook = entry.register_forward_pre_hook(lambda _, inputs: seen.append(entry.forward(inputs[0])))
        net.encode(**features(noise, sampling_rate=_ENCODER_HZ, return_tensors="pt"))
        hook.remove()
        spread, centre = torch.std_mean(seen[0][0], dim=0)
        entry.weight.div_(spread[:, None])
        entry.bias.sub_(centre).div_(spread)
    return net
