"""DNSMOS Pro: the opinion score of a signal as a distribution, by a small network."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from codec_bench.features.base import Result, Unavailable, too_short
from codec_bench.features.encoder_feature import NOT_FINITE, EncoderFeature
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.weights import find, load_into, unfilled
from codec_bench.weights.state import check_archive

TRAINED_ON = ("nisqa", "bvcc", "vcc2018")
MIN_SAMPLES = 800
"""Six frames, which the pooling reduces to two."""


def checked(variant: str | None) -> str:
    """Return the data set of a variant; `nisqa` for None.

    Raises:
        UserError: no such network.
    """
    if variant is not None and variant not in TRAINED_ON:
        names = ", ".join(f"dnsmos_pro[{name}]" for name in TRAINED_ON)
        raise UserError("no_variant", variant=variant, name="DNSMOS Pro", hint=f"use {names}")
    return variant or TRAINED_ON[0]


class DnsmosPro(EncoderFeature):
    """Mean and variance of the opinion score by DNSMOS Pro, 1 to 5. Higher is better.

    A spectrogram of 20 ms every 10 ms, four convolutions, the maximum of each channel, three linear layers. The network
    reads the whole signal; its authors recommend 10 s. Batches do not change the scores.

    Result: `{"mean": float, "variance": float}`.

    Paper: F. Cumlin et al., "DNSMOS Pro: A Reduced-Size DNN for Probabilistic MOS of Speech", Interspeech 2024.
    Reference implementation: github.com/fcumlin/DNSMOSPro at f9da568 with librosa's spectrogram, to 1e-4.

    Args:
        weights: a file in the published layout, or None.
        variant: the training set: `nisqa` (also if None), `bvcc` or `vcc2018`.

    Raises:
        WeightsError: the weights are missing. UserError: no such network.
    """

    name = "dnsmos-pro"
    batch_s = 120.0

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        super().__init__(device, weights, "float32")
        self.protocol = self.protocol_id(variant)
        self._path = find(f"dnsmos-pro-{checked(variant)}", weights).path

    @classmethod
    def protocol_id(cls, variant: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"dnsmos-pro/{checked(variant)}"

    def _network(self) -> Any:
        """Build the network, and load the tensors of a published TorchScript file."""
        from codec_bench.networks.dnsmos_pro import DnsmosProNet, state_of

        try:
            state = state_of(tensors_of(self._path))
        except ValueError as error:
            raise WeightsError("weights_of_another_model", folder=self._path, difference=error) from error
        net = unfilled(DnsmosProNet)
        load_into(net, state, path=self._path)
        return net

    def _step(self) -> int:
        return 1

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        return too_short(signal, "DNSMOS Pro", MIN_SAMPLES)

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        if not np.isfinite(row).all():
            return Unavailable(NOT_FINITE)
        return {"mean": float(row[0]), "variance": float(row[1])}


def tensors_of(path: Path) -> dict[str, bytes]:
    """Read a TorchScript archive's tensors by position; nothing in it runs.

    Raises:
        WeightsError: it is no such archive, or damaged.
    """
    check_archive(path)
    try:
        with ZipFile(path) as archive:
            names = [name for name in archive.namelist() if "/data/" in name]
            return {name.rpartition("/")[2]: archive.read(name) for name in names}
    except Exception as error:  # zipfile raises many kinds for a damaged archive
        raise WeightsError(
            "weights_not_read",
            path=path,
            type=type(error).__name__,
            reason=error,
            hint="the file may be cut short or another kind of file: codec-bench weights verify",
        ) from error
