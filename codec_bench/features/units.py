"""Discrete units of speech: the nearest k-means cluster of each HuBERT-base frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, EncoderFeature
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages.errors import WeightsError
from codec_bench.weights import find_all, load_into, load_state, unfilled

ENCODER = "hubert-base-ls960"
CLUSTERS = {"hubert-km50": 50, "hubert-km100": 100, "hubert-km200": 200}
"""The k-means and their numbers of clusters."""
LAYERS = (6, 11)
"""The hidden states: the one that the clusters were made of, and SpeechBLEU's."""


class HubertUnits(EncoderFeature):
    """HuBERT-base's units: each 20 ms's nearest cluster of a hidden state.

    The clusters are those of GSLM and textlesslib, made of the output of block 6. Units of block 11 by the same
    clusters are for SpeechBLEU. The wave is not normalised, as in the base model's training. Batches do not change the
    units, except that a frame equally far from two clusters, to one part in a hundred thousand, may go to either.

    Result: `{"layer_6": int16 (frames,), "layer_11": int16 (frames,)}`.

    Papers: W.-N. Hsu et al., "HuBERT", TASLP 2021; K. Lakhotia et al., "On Generative Spoken Language Modeling from Raw
    Audio", TACL 2021. Reference implementation: transformers 5 `HubertModel` with scikit-learn's `KMeans.predict`,
    signal by signal, as in textlesslib (github.com/facebookresearch/textlesslib) and DiscreteSpeechMetrics: equal
    units.

    Args:
        model: `hubert-km50`, `hubert-km100` or `hubert-km200`.
        weights: a folder with `pytorch_model.bin` and `km.bin` in the published layouts, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the encoder or the clusters are missing. UserError: no such precision.
    """

    name = "hubert-km200"
    title = "a unit"

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, parse_precision(model, point, BY_WEIGHTS))
        self.name, self._clusters = model, CLUSTERS[model]
        self.protocol = self.protocol_id(model, point)
        self._path, self._centres = (checkpoint.path for checkpoint in find_all((ENCODER, model), weights))

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"{model}-base-ls960/1{suffix(parse_precision(model, point, BY_WEIGHTS))}"

    def _network(self) -> Any:
        """Build the encoder with the cluster centres, and load its weights."""
        import torch

        from codec_bench.networks.speech_encoder import fairseq_name
        from codec_bench.networks.units import UnitsNet
        from codec_bench.weights.kmeans import load_centres

        config, centres = self._architecture(), load_centres(self._centres)
        if centres.shape != (self._clusters, config.width):
            raise WeightsError(
                "centres_unexpected",
                path=self._centres,
                clusters=centres.shape[0],
                width=centres.shape[1],
                expected=self._clusters,
                expected_width=config.width,
            )
        net = unfilled(lambda: UnitsNet(config, torch.from_numpy(centres), LAYERS))
        state = {fairseq_name(name, config.extractor): value for name, value in load_state(self._path).items()}
        load_into(net.encoder, state, path=self._path)
        return net

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        frames = self._architecture().frames(length)
        if (row[:frames] < 0).any():
            return Unavailable(NOT_FINITE)
        return {f"layer_{layer}": np.array(row[:frames, index]) for index, layer in enumerate(LAYERS)}
