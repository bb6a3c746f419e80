"""FunCodec's time-domain models, up to 32 codebooks at 25 or 50 frames a second at 16 kHz, in exact batches.

Our own network over `seanet.py`: the toolkit brings its own trainer and speech recogniser, and with them forty packages.

What is sent
    The models work on speech scaled to a power of one. The scale of each item is sent beside its codes as 32 bits. The
    toolkit's own scripts leave it out and write whatever level comes out; its `inference` in one go multiplies by it.

Where padding would leak, and what is done about it
    Every convolution is normalised over all of an utterance: mean and variance are those of each item's own length.
    Convolutions reflect each item at its own end. The LSTMs run forwards only.
    Any length from one sample on is coded; too short a one to be reflected is followed by zeros there, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.passes import passes
from codec_bench.codecs.base import Codec, CodecInfo
from codec_bench.codecs.bitstream import check_input
from codec_bench.codecs.network import (
    RANDOM,
    RANDOM_FULL,
    check_stream,
    fill_with_noise,
    full_float32,
    one_stream,
    seeded,
    stack,
    weights_folder,
)
from codec_bench.errors import UserError, WeightsError
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
_SMALL = {"filters": 4, "dimension": 32}
# What `config.yaml` may say of encoder and decoder, and the only value that this network has.
_SIDE = {
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
# What the toolkit's classes take where the settings do not say it, and this network does not have.
_UNSAID = {
    "encoder_conf": {"norm": "weight_norm"},
    "decoder_conf": {"norm": "weight_norm"},
    "quantizer_conf": {"num_quantizers": 8},
    "model_conf": {"segment_dur": 1.0, "target_sample_hz": 24000},
}
# The sizes that are read from it: our name and the toolkit's own value of each.
_SIZES = {
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


class FunCodec(Codec):
    """FunCodec (Alibaba DAMO Academy), the models of the time domain.

    Codes: one stream of one to 32 codebooks of 1024 entries, at 25 frames a second (`ds640`) or 50 (`ds320`), and 32 side
    bits an item for its scale; ceil(samples / hop) frames.

    Args:
        model: `zh-en-ds640`, `zh-en-ds320`, `libritts-ds640` or `libritts-ds320`.
        bitrate_bps: 250 for each codebook at 25 frames a second, 500 at 50.
        device: `cpu` or `cuda:N`.
        weights: a folder with `model.pth` and `config.yaml`, or a hub id; None for the published ones;
            `random` for a small network of seeded noise, `random-full` for one of the published size, both for tests and
            benches only.

    Raises:
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(self, model: str, bitrate_bps: int, device: str = "cpu", weights: str | None = None) -> None:
        info = self.describe(model, bitrate_bps)
        self._hop = _hop(model)
        self._codebooks = round(bitrate_bps * self._hop / (_RATE_HZ * _BITS_PER_CODE))
        self._device = device
        self._net, used = _load(model, weights)
        self._net.to(device)
        self._quantiser = _quantiser(self._net)
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str, bitrate_bps: int) -> CodecInfo:
        """The facts of one operating point, without loading anything.

        Raises:
            UserError: no such model, or no number of codebooks has this bitrate.
        """
        if model not in _MODELS:
            raise UserError(f"FunCodec has no model '{model}'", hint=f"it has {', '.join(_MODELS)}")
        frame_rate_hz = _RATE_HZ / _hop(model)
        each_bps = frame_rate_hz * _BITS_PER_CODE
        if bitrate_bps not in [each_bps * count for count in range(1, _CODEBOOKS + 1)]:
            raise UserError(
                f"FunCodec {model} does not run at {bitrate_bps / 1000:g} kbps",
                hint=f"it runs at every multiple of {each_bps / 1000:g} kbps up to {_CODEBOOKS * each_bps / 1000:g}",
            )
        return CodecInfo(
            name=f"funcodec-{model}@{bitrate_bps / 1000:g}",
            sample_rates_hz=(_RATE_HZ,),
            frame_rate_hz=frame_rate_hz,
            nominal_bitrate_bps=float(bitrate_bps),
            causal=False,
        )

    @classmethod
    def find_weights(cls, model: str, **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder(f"funcodec-{model}")

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the reference gives them for that item alone, and its scale.

        Raises:
            UserError: a rate or channel count that it does not take, or no samples.
        """
        from codec_bench.kernels.rvq import dispatch

        for audio in batch:
            check_input(audio, self.info)
        scales = [_scale(audio.samples) for audio in batch]
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        with full_float32(self._device):
            for group in passes([audio.num_samples for audio in batch], self._device):
                lengths = [batch[k].num_samples for k in group]
                latents = self._net.encoder(self._tensor([batch[k].samples / scales[k] for k in group]), lengths)
                codes = dispatch.search(latents, self._quantiser, self._codebooks).value.cpu().numpy()
                for k, length, item in zip(group, lengths, codes):
                    values[k] = item[:, : self._frames(length)]
        return [
            replace(
                one_stream(value, audio, self.info, _CARDINALITY),
                side_bits=float(_SCALE_BITS),
                side={"scale": scale},
            )
            for value, audio, scale in zip(values, batch, scales)
        ]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length and this operating point have, out of range, or
                without their scale.
        """
        from codec_bench.kernels.rvq import dispatch

        for item in codes:
            check_stream(item, self.info, (self._codebooks, self._frames(item.num_samples)), _CARDINALITY)
            if "scale" not in item.side:
                raise UserError(f"{self.info.name}: the codes come without their scale")
        values = [item.streams[0].values.astype(np.int64, copy=False) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with full_float32(self._device):
            for group in passes([value.shape[1] for value in values], self._device):
                frames = [values[k].shape[1] for k in group]
                latents = dispatch.lookup(self._tensor([values[k] for k in group]), self._quantiser).value
                decoded = self._net.decoder(latents, frames).cpu().numpy()
                for k, wave in zip(group, decoded):
                    waves[k] = wave[:, : codes[k].num_samples] * np.float32(codes[k].side["scale"])
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _frames(self, num_samples: int) -> int:
        return -(-num_samples // self._hop)

    def _tensor(self, items: Sequence[np.ndarray]) -> Any:
        import torch

        return torch.from_numpy(stack(items, max(item.shape[1] for item in items))).to(self._device)


def _hop(model: str) -> int:
    return int(np.prod(_MODELS[model]))


def _scale(samples: np.ndarray) -> np.float32:
    return np.float32(np.sqrt(np.mean(np.square(samples, dtype=np.float64))) + _SILENCE)


def _quantiser(net: Any) -> Any:
    from codec_bench.kernels.rvq import dispatch

    return dispatch.Euclidean(net.codebooks)


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """The network in eval mode on the CPU, and which weights it has."""
    from codec_bench.codecs.funcodec_net import FunCodecNet, Shape
    from codec_bench.weights import find, load_into, load_state

    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(Shape(_MODELS[model], **(_SMALL if weights == RANDOM else {}))), weights
    found = find(f"funcodec-{model}", weights)
    net = FunCodecNet(Shape(**_sizes(found.path.with_name("config.yaml"), model)))
    state = load_state(found.path)
    # Beside the codec the file holds what it was trained with: discriminators, spectra, the codebooks' running averages.
    parts = {name: value for name, value in state.items() if name.startswith(("encoder.", "decoder.", "quantizer."))}
    averages = [f"quantizer.rq.model.{name}" for name in ("inited", "cluster_size", "embed_avg")]
    load_into(net, parts, path=found.path, unused=averages)
    return net, found.used


def _sizes(path: Path, model: str) -> dict[str, Any]:
    """The sizes that a checkpoint's own settings give.

    Raises:
        WeightsError: naming what the settings ask for and this network does not have.
    """
    from codec_bench.config import load_yaml

    document = load_yaml(path)
    given = document if isinstance(document, dict) else {}
    wrong = [
        f"{key} {given.get(key)!r} (expected {name!r})" for key, name in _CLASSES.items() if given.get(key) != name
    ]
    for part, known, closed in (
        ("encoder_conf", _SIDE, True),
        ("decoder_conf", _SIDE, True),
        ("quantizer_conf", _QUANTIZER, False),  # the others are of its training
        ("model_conf", _MODEL, False),
    ):
        for key, value in {**_UNSAID[part], **(given.get(part) or {})}.items():
            if key in known and value != known[key]:
                wrong.append(f"{part}.{key} {value!r} (expected {known[key]!r})")
            elif closed and key not in known and key not in _SIZES:
                wrong.append(f"{part}.{key} {value!r}, which is not known here")
    encoder, decoder = (given.get(part) or {} for part in ("encoder_conf", "decoder_conf"))
    sizes = {key: encoder.get(key, usual) for key, (_, usual) in _SIZES.items()}
    for key, (_, usual) in _SIZES.items():
        if key != "dimension" and decoder.get(key, usual) != sizes[key]:  # the decoder is given the quantiser's
            wrong.append(
                f"decoder_conf.{key} {decoder.get(key, usual)!r} (expected {sizes[key]!r}, as the encoder has)"
            )
    if np.prod(sizes["ratios"]) != _hop(model):
        wrong.append(f"encoder_conf.ratios {sizes['ratios']} (expected a product of {_hop(model)})")
    if wrong:
        raise WeightsError(f"the weights in '{path.parent}' are another model's: '{path}' says {', '.join(wrong)}")
    sizes["ratios"] = tuple(sizes["ratios"])
    return {ours: sizes[key] for key, (ours, _) in _SIZES.items()}


def _random_net(shape: Any) -> Any:
    """A network of seeded noise whose latents follow its input and whose codewords are about as wide as what they code."""
    import torch

    from codec_bench.codecs.funcodec_net import FunCodecNet

    with seeded():
        net = FunCodecNet(shape).eval()
        fill_with_noise(net)
        net.decoder.model[-1].conv["norm"].weight.fill_(0.5)
        wave = torch.randn(1, 1, _RATE_HZ)
        residual = net.encoder(wave, [_RATE_HZ])[0].T
        for embed in net.codebooks:
            embed.copy_(residual.mean(0) + 0.7 * residual.std(0) * torch.randn_like(embed))
            residual = residual - embed[torch.cdist(residual, embed).argmin(1)]
    return net
