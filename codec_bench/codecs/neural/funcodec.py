"""FunCodec's time-domain models at 16 kHz, exact in batches.

Speech is coded at a power of one; each item's scale is sent as 32 bits, and multiplied back as in the toolkit's
`inference` (its scripts do not). Normalisation and reflection use each item's own length; the LSTMs run only forwards.
Items too short for a reflection are followed by zeros, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, fill_with_noise, seeded, spread_codewords
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.types import Audio, Codes

_RATE_HZ = 16000
_CODEBOOKS = 32
_CARDINALITY = 1024
_BITS_PER_CODE = 10
_SCALE_BITS = 32
_SILENCE = 1e-8  # added to the scale, so that silence can be divided by it
_MODELS = {
    "zh-en-ds640": (8, 5, 4, 2, 2),
    "zh-en-ds320": (8, 5, 4, 2),
    "libritts-ds640": (8, 5, 4, 2, 2),
    "libritts-ds320": (8, 5, 4, 2),
}
_SMALL: dict[str, Any] = {"filters": 4, "dimension": 32}
# Settings of encoder and decoder in `config.yaml`, each with the only value that this network can have.
_CODER_SETTINGS = {
    "channels": 1,
    "activation": "ELU",
    "activation_params": {"alpha": 1.0},
    "final_activation": None,
    "final_activation_params": None,
    "norm": "time_group_norm",
    "norm_params": {},
    "kernel_size": 7,
    "last_kernel_size": 7,
    "residual_kernel_size": 3,
    "causal": False,
    "pad_mode": "reflect",
    "compress": 2,
    "seq_model": "lstm",
    "seq_layer_num": 2,
    "trim_right_ratio": 1.0,
    "res_seq": True,
    "double_filters": True,
    "half_filters": True,
    "add_snake_activation": False,
}
# Defaults of the toolkit's classes that differ from this network: a checkpoint must set these itself.
_UNSAID: dict[str, dict[str, Any]] = {
    "encoder_conf": {"norm": "weight_norm"},
    "decoder_conf": {"norm": "weight_norm"},
    "quantizer_conf": {"num_quantizers": 8},
    "model_conf": {"segment_dur": 1.0, "target_sample_hz": 24000},
}
# Sizes that are read from `config.yaml`: the name in this project, and the toolkit's default.
_SIZES: dict[str, tuple[str, Any]] = {
    "ratios": ("ratios", [8, 5, 4, 2]),
    "n_filters": ("filters", 32),
    "dimension": ("dimension", 128),
    "n_residual_layers": ("residual_layers", 1),
    "dilation_base": ("dilation", 2),
    "true_skip": ("true_skip", False),
}
_QUANTIZER = {
    "codebook_size": _CARDINALITY,
    "num_quantizers": _CODEBOOKS,
    "use_ddp": True,
    "q0_ds_ratio": 1,
    "codec_dim": None,
    "codec_range": None,
}
_MODEL = {
    "target_sample_hz": _RATE_HZ,
    "audio_normalize": True,
    "segment_dur": None,
    "codec_domain": "time",
    "bypass_quantizer": False,
}
_CLASSES = {
    "encoder": "encodec_seanet_encoder",
    "decoder": "encodec_seanet_decoder",
    "quantizer": "costume_quantizer",
    "model": "encodec",
}


class FunCodec(NeuralCodec):
    """FunCodec (Alibaba DAMO Academy), the models of the time domain.

    Codes: one stream of one to 32 codebooks of 1024 entries, at 25 frames a second (`ds640`) or 50 (`ds320`), and 32
    side bits an item for its scale; ceil(samples / hop) frames.

    Args:
        model: `zh-en-ds640`, `zh-en-ds320`, `libritts-ds640` or `libritts-ds320`.
        bitrate_bps: 250 for each codebook at 25 frames a second, 500 at 50.
        device, weights: as for `PublishedCodec`; own weights are a folder with `model.pth` and `config.yaml`.
    """

    cardinality = _CARDINALITY
    residual = True
    checkpoints = ("funcodec-{model}",)

    def __init__(self, model: str, bitrate_bps: int, device: str = "cpu", weights: str | None = None) -> None:
        info = self.describe(model, bitrate_bps)
        self._hop = _hop(model)
        self._codebooks = round(bitrate_bps * self._hop / (_RATE_HZ * _BITS_PER_CODE))
        self._install(info, device, *_load(model, weights))

    @classmethod
    def describe(cls, model: str, bitrate_bps: int) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="FunCodec", hint=f"it has {', '.join(_MODELS)}")
        each_bps = _RATE_HZ / _hop(model) * _BITS_PER_CODE
        if bitrate_bps not in [each_bps * count for count in range(1, _CODEBOOKS + 1)]:
            raise UserError(
                "codec_bitrate",
                codec=f"FunCodec {model}",
                kbps=bitrate_bps / 1000,
                hint=f"it runs at every multiple of {each_bps / 1000:g} kbps up to {_CODEBOOKS * each_bps / 1000:g}",
            )
        name, codebooks = f"funcodec-{model}@{bitrate_bps / 1000:g}", round(bitrate_bps / each_bps)
        return code_info(name, _RATE_HZ, _hop(model), _CARDINALITY, codebooks)

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item to its scale and the codes that the reference gives alone."""
        return [
            replace(item, side_bits=float(_SCALE_BITS), side={"scale": _scale(audio.samples)})
            for item, audio in zip(super().encode(batch), batch)
        ]

    def _read_quantiser(self, net: Any) -> Any:
        from codec_bench.kernels.rvq.dispatch import Euclidean

        return Euclidean(net.codebooks)

    def _inputs(self, waves: Sequence[np.ndarray], samples: Sequence[int]) -> Sequence[np.ndarray]:
        return super()._inputs([wave / _scale(wave) for wave in waves], samples)

    def _cut(self, wave: np.ndarray, item: Codes) -> np.ndarray:
        return super()._cut(wave, item) * np.float32(item.side["scale"])

    def _check(self, item: Codes) -> None:
        super()._check(item)
        if "scale" not in item.side:
            raise UserError("codes_without_scale", codec=self.info.name)


def _hop(model: str) -> int:
    return int(np.prod(_MODELS[model]))


def _scale(samples: np.ndarray) -> np.float32:
    return np.float32(np.sqrt(np.mean(np.square(samples, dtype=np.float64))) + _SILENCE)


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """Load the network in eval mode on the CPU; also return which weights it has."""
    from codec_bench.networks.funcodec import FunCodecNet, FunCodecShape
    from codec_bench.weights import find, load_into, load_state, unfilled

    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(FunCodecShape(_MODELS[model], **(_SMALL if weights == RANDOM else {}))), weights
    checkpoint = find(f"funcodec-{model}", weights)
    shape = FunCodecShape(**_sizes(checkpoint.path.with_name("config.yaml"), model))
    net = unfilled(lambda: FunCodecNet(shape))
    state = load_state(checkpoint.path)
    # Next to the codec the file holds what it was trained with: discriminators, spectra, the codebooks' running
    # averages.
    parts = {name: value for name, value in state.items() if name.startswith(("encoder.", "decoder.", "quantizer."))}
    averages = [f"quantizer.rq.model.{name}" for name in ("inited", "cluster_size", "embed_avg")]
    load_into(net, parts, path=checkpoint.path, unused=averages)
    return net, checkpoint.used


def _sizes(path: Path, model: str) -> dict[str, Any]:
    """Read the sizes from a checkpoint's settings; WeightsError if of another model."""
    from codec_bench.config import load_yaml

    document = load_yaml(path)
    settings = document if isinstance(document, dict) else {}
    held = {key: settings.get(key) for key in _CLASSES}
    wrong = [f"{key} {held[key]!r} (expected {name!r})" for key, name in _CLASSES.items() if held[key] != name]
    parts: tuple[tuple[str, dict[str, Any], bool], ...] = (
        ("encoder_conf", _CODER_SETTINGS, True),
        ("decoder_conf", _CODER_SETTINGS, True),
        ("quantizer_conf", _QUANTIZER, False),  # its other settings matter only for training
        ("model_conf", _MODEL, False),
    )
    for section, known, closed in parts:
        for key, value in {**_UNSAID[section], **(settings.get(section) or {})}.items():
            if key in known and value != known[key]:
                wrong.append(f"{section}.{key} {value!r} (expected {known[key]!r})")
            elif closed and key not in known and key not in _SIZES:
                wrong.append(f"{section}.{key} {value!r} (an unknown setting)")
    encoder, decoder = (settings.get(section) or {} for section in ("encoder_conf", "decoder_conf"))
    sizes = {key: encoder.get(key, usual) for key, (_, usual) in _SIZES.items()}
    for key, (_, usual) in _SIZES.items():
        of_decoder = decoder.get(key, usual)
        if key != "dimension" and of_decoder != sizes[key]:  # the decoder has the quantiser's
            wrong.append(f"decoder_conf.{key} {of_decoder!r} (expected {sizes[key]!r}, as the encoder has)")
    if np.prod(sizes["ratios"]) != _hop(model):
        wrong.append(f"encoder_conf.ratios {sizes['ratios']} (expected a product of {_hop(model)})")
    if wrong:
        raise WeightsError("weights_of_another_model", folder=path, difference=", ".join(wrong))
    sizes["ratios"] = tuple(sizes["ratios"])
    return {ours: sizes[key] for key, (ours, _) in _SIZES.items()}


def _random_net(shape: Any) -> Any:
    """Build a network of seeded noise with codewords about as wide as its latents."""
    import torch

    from codec_bench.networks.funcodec import FunCodecNet

    with seeded():
        net = FunCodecNet(shape).eval()
        fill_with_noise(net)
        last: Any = net.decoder.model[-1]
        last.conv["norm"].weight.fill_(0.5)
        wave = torch.randn(1, 1, _RATE_HZ)
        spread_codewords(net.codebooks, net.encoder(wave, [_RATE_HZ])[0].T)
    return net
