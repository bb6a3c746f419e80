"""Speaker embeddings of WavLM-base-plus with the x-vector head."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from codec_bench.features.speakers.wavlm_sv import WavlmSv
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.weights import load_into, load_state, unfilled

if TYPE_CHECKING:
    from codec_bench.networks.speech_config import EncoderConfig
    from codec_bench.networks.xvector import XVectorConfig, XVectorNet

PREFIX = "wavlm."
WAVE_EPS = 1e-7
"""Wav2Vec2FeatureExtractor's addend to a variance."""
CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
TRAINING = ("classifier.weight", "classifier.bias", "objective.weight")
"""Published tensors that the embedding does not need."""
FIXED = {
    "feat_extract_activation": "gelu", "hidden_act": "gelu", "layer_norm_eps": 1e-5, "do_stable_layer_norm": False,
    "add_adapter": False,
}  # fmt: skip
"""Required values of a configuration: the network supports no others."""


class WavlmBasePlusSv(WavlmSv):
    """The speaker embedding of `microsoft/wavlm-base-plus-sv` (x-vector).

    Its similarities have another scale than those of `wavlm-large-sv`. "SIM" in papers does not mean this model unless
    they name it.

    Protocol `wavlm-base-plus-sv/transformers`: the wave as it is, or standardised where the checkpoint's
    `preprocessor_config.json` requires it; 13 hidden states mixed by learnt weights, five time-delay layers, mean and
    deviation over time, one linear layer. It needs 16 frames (5200 samples). Padding is masked layer by layer: batches
    change an embedding by less than 1e-5 in float32. (In transformers' own batches the group norm and the pooled frames
    include the padding.)

    Result: `{"embedding": float32 (512,)}`.

    Papers: S. Chen et al., "WavLM", JSTSP 2022; D. Snyder et al., "X-vectors", ICASSP 2018. Reference implementation:
    transformers 5 `WavLMForXVector`, signal by signal, to 1e-5.

    Args:
        weights: a folder or a hub id in place of the published checkpoint, with config.json, preprocessor_config.json
            and model.safetensors or pytorch_model.bin; or None.
        point: `float16`, `bfloat16` or `tf32` in place of float32, each a separate protocol.

    Raises:
        WeightsError: the checkpoint is missing, or is another model's. UserError: no such precision.
    """

    name = "wavlm-base-plus-sv"
    protocol = "wavlm-base-plus-sv/transformers"

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, point)
        self._config = _read(self._folder / CONFIG)
        self._standardises = bool(_read(self._folder / PREPROCESSOR).get("do_normalize", True))
        self.min_samples = _min_samples(self._config, self._folder / CONFIG)

    def _network(self) -> XVectorNet:
        """Build encoder and head from the configuration, and load the renamed tensors."""
        import torch

        from codec_bench.networks.speech_encoder import fairseq_name
        from codec_bench.networks.xvector import XVectorNet

        encoder, head = architectures(self._config, self._folder / CONFIG)
        state = {}
        for name, value in load_state(self._path).items():
            inner = name.removeprefix(PREFIX)
            state[PREFIX + fairseq_name(inner, encoder.extractor) if inner != name else name] = value
        state.setdefault(PREFIX + "mask_emb", torch.zeros(encoder.width))  # saved only by models trained with masks
        net = unfilled(lambda: XVectorNet(encoder, head))
        load_into(net, state, path=self._path, unused=TRAINING)
        return net

    def _prepared(self, waves: Any, lengths: Sequence[int]) -> Any:
        from codec_bench.networks.speech_encoder import standardised

        return standardised(waves, lengths, WAVE_EPS) if self._standardises else waves


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds a mapping; WeightsError if it does not."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError("file_not_readable", path=path, cause=error) from error
    if not isinstance(values, dict):
        raise WeightsError("mapping_expected", path=path, type=type(values).__name__)
    return values


def architectures(config: Mapping[str, Any], path: Path) -> tuple[EncoderConfig, XVectorConfig]:
    """Build the encoder and the head of a transformers configuration.

    Raises:
        WeightsError: it lacks a value, or describes another kind of network.
    """
    from codec_bench.networks.speech_config import EncoderConfig
    from codec_bench.networks.xvector import XVectorConfig

    wrong = [
        f"{key} {config[key]} (expected {value})" for key, value in FIXED.items() if config.get(key, value) != value
    ]
    if wrong:
        raise WeightsError("weights_of_another_model", folder=path, difference=", ".join(wrong))
    try:
        norms: dict[str, Literal["group_norm", "layer_norm"]] = {"group": "group_norm", "layer": "layer_norm"}
        encoder = EncoderConfig(
            norms[config["feat_extract_norm"]],
            config["hidden_size"],
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["intermediate_size"],
            pre_norm=False,
            conv_layers=tuple(zip(config["conv_dim"], config["conv_kernel"], config["conv_stride"], strict=True)),
            conv_bias=config["conv_bias"],
            conv_pos=config["num_conv_pos_embeddings"],
            conv_pos_groups=config["num_conv_pos_embedding_groups"],
            relative_buckets=config["num_buckets"],
            max_distance=config["max_bucket_distance"],
        )
        head = XVectorConfig(
            tuple(config["tdnn_dim"]),
            tuple(config["tdnn_kernel"]),
            tuple(config["tdnn_dilation"]),
            config["xvector_output_dim"],
            config["use_weighted_layer_sum"],
        )
    except KeyError as error:
        raise WeightsError(
            "weights_of_another_model", folder=path, difference=Diagnostic("no_fitting_value", name=error.args[0])
        ) from error
    return encoder, head


def _min_samples(config: Mapping[str, Any], path: Path) -> int:
    """Return the fewest samples for two frames of the head, which a deviation needs."""
    try:
        reach = sum((k - 1) * d for k, d in zip(config["tdnn_kernel"], config["tdnn_dilation"], strict=True))
        samples = reach + 2
        for kernel, stride in reversed(list(zip(config["conv_kernel"], config["conv_stride"], strict=True))):
            samples = (samples - 1) * stride + kernel
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            "weights_of_another_model", folder=path, difference=Diagnostic("no_xvector_network")
        ) from error
    return samples
