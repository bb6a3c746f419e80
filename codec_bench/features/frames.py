"""Frames of any s3prl upstream: one hidden state over time."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from codec_bench.features.precision_names import suffix
from codec_bench.features.speakers.s3prl import RATE_HZ, S3prl, protocol
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.networks.precision import computing


class S3prlFrames(S3prl):
    """Frames of a layer of an s3prl upstream (`s3prl-frames[wavlm_large@14]`).

    Protocol `s3prl-VERSION/NAME/last` or `.../layer-14`. Layer 0 is the input of the first layer. Only signals of equal
    length share a batch, so frames do not depend on other signals. Frames take 150 kB a second and more, so they are
    not cached.

    Result: `{"frames": float32 (frames, width)}`.

    Paper: S. Yang et al., "SUPERB", Interspeech 2021. Reference implementation: s3prl 0.4.18 itself, signal by signal.

    Args:
        variant: the upstream, a name of `s3prl.hub`, optionally with `@` and the number of a hidden state.
        weights: a checkpoint for an upstream that takes one (`hubert_local`, `wavlm_local`, ...).
        point: `tf32` or `bfloat16` in place of float32; each has its own protocol.

    Raises:
        MissingExtra: s3prl is not installed. UserError: no upstream, a layer that is no number, or a file for an
            upstream that takes none.
    """

    name = "s3prl-frames"
    cached = False
    result = "frames"

    def __init__(
        self, variant: str | None = None, device: str = "cpu", weights: str | None = None, point: str | None = None
    ) -> None:
        upstream: str | None = None
        self._layer: int | None = None
        if variant is not None:
            upstream, self._layer = layer_of(variant)
        super().__init__(upstream, device, weights, point)
        self.protocol = frames_protocol(variant or "") + suffix(self._precision)

    def load(self) -> None:
        """Build the upstream, and count its hidden states if a layer was requested.

        Raises:
            UnknownName: s3prl has no such upstream. WeightsError: its checkpoint cannot be fetched or read, or has too
                few hidden states.
        """
        first = self._net is None
        super().load()
        if self._layer is None or not first:
            return
        from codec_bench.networks.transfer import sent

        with computing(self.device, self._precision), redirect_stdout(sys.stderr):
            (wave,) = sent([np.zeros(RATE_HZ, np.float32)], self.device)
            states = len(self._net([wave])["hidden_states"])
        if self._layer >= states:
            self._net = None
            raise WeightsError(
                "layer_beyond",
                upstream=self._upstream,
                layers=states,
                layer=self._layer,
                hint=f"name one from 0 to {states - 1}",
            )

    def _pooled(self, waves: list[Any]) -> Any:
        return self._last(waves) if self._layer is None else self._net(waves)["hidden_states"][self._layer].float()


def layer_of(variant: str) -> tuple[str, int | None]:
    """Split a variant such as `wavlm_large@14` into upstream and hidden state.

    Returns:
        The upstream's name, and the index of the hidden state; None for the last.

    Raises:
        UserError: the text after the `@` is no number.
    """
    upstream, _, layer = variant.partition("@")
    if layer and not layer.isdecimal():
        raise UserError("not_a_layer", layer=layer, hint=f"write {upstream}@9, or {upstream}")
    return upstream, int(layer) if layer else None


def frames_protocol(variant: str) -> str:
    """Return the id that names a variant's frames, in float32, in records.

    Raises:
        MissingExtra: s3prl is not installed. UserError: the layer is no number.
    """
    upstream, layer = layer_of(variant)
    stem = protocol(upstream).rpartition("/")[0]
    return f"{stem}/{'last' if layer is None else f'layer-{layer}'}"
