"""Features of the rows of `codec_bench.features.scorers` with a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from textwrap import indent
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.hash import content_hash
from codec_bench.config.registry import load_attribute
from codec_bench.features.base import NetworkFeature, Result, Unavailable, seed_of, too_short
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.scorers import SCORERS, ScorerNetwork
from codec_bench.features.windowed import WindowedBatch, WindowLimits, windowed_batch
from codec_bench.messages import Diagnostic
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

ARGUMENTS = """

Args:
    device: `cpu` or `cuda:N`.
    weights: a file in the published layout, or None.

Raises:
    WeightsError: the weights are missing."""
"""The end of each description."""


class Learned(NetworkFeature):
    """A scorer over windows of a signal; each subclass is a row of `scorers.yaml`."""

    row: ClassVar[ScorerNetwork]

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights)
        self._path = find(self.row.weights, weights).path
        self.reads_seed = self.row.draws

    def _network(self) -> Any:
        """Build the network, and load the published tensors."""
        net = unfilled(self._architecture)
        translated = getattr(net, "translated", dict)
        load_into(net, translated(load_state(self._path, key=self.row.key)), path=self._path)
        return net

    @classmethod
    def _architecture(cls) -> Any:
        return load_attribute(cls.row.path)()

    def prepare(self, signals: Sequence[np.ndarray], seeds: Sequence[int | None] | None = None) -> WindowedBatch:
        """Cut the signals into windows on the device, and draw random inputs if needed.

        Args:
            seeds: of each signal's draws; None uses the hash of its samples.
        """
        kind = load_attribute(self.row.path)
        on_cpu, on_gpu = kind.at_once
        limits = WindowLimits(on_cpu, on_gpu, 1.0)
        batch = windowed_batch(signals, self._obstacle, kind.cut, self.device, limits, kind.room)
        if not self.row.draws:
            return batch
        from codec_bench.networks.transfer import uploaded, zeros_for

        def sent(drawn: Any) -> Any:
            held = zeros_for(self.device, drawn.shape)
            held.copy_(drawn)
            return uploaded(held, self.device)

        known = [
            seed_of(content_hash(signal, self.rate_hz)) if seed is None else seed
            for signal, seed in zip(signals, seeds or [None] * len(signals), strict=True)
        ]
        passes = [
            replace(one, drawn=sent(kind.draw([known[batch.owners[p]] for p in one.places]))) for one in batch.passes
        ]
        return replace(batch, passes=passes)

    def compute(
        self, signals: Sequence[np.ndarray], seeds: Sequence[int | None] | None = None
    ) -> list[Result | Unavailable]:
        """Compute one result per signal, in order.

        Args:
            seeds: as for `prepare`.
        """
        self.load()
        return self.compute_prepared(self.prepare(signals, seeds))

    def compute_prepared(self, batch: WindowedBatch) -> list[Result | Unavailable]:
        """Compute one result per signal `(samples,)`, float32 at the feature's rate."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, "float32"):
            rows = fetched([self._passed(one) for one in batch.passes])
        return batch.results(rows, self._score_windows)

    def _passed(self, one: Any) -> Any:
        return in_rows(self._net, [one.waves] if one.drawn is None else [one.waves, one.drawn], one.lengths)

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        """Return why the network cannot score a signal (length or silence), or None."""
        row = self.row
        if (why := too_short(signal, row.title, row.least)) is not None:
            return why
        if row.most_s and signal.size > row.most_s * self.rate_hz:
            return Unavailable(
                Diagnostic("signal_long", seconds=signal.size / self.rate_hz, model=row.title, most_s=row.most_s)
            )
        return None if signal.any() else Unavailable(Diagnostic("signal_silent"))

    def _score_windows(self, windows: np.ndarray) -> Result | Unavailable:
        """Average the outputs over windows; unavailable if not finite."""
        means = windows.mean(axis=0)
        if not np.isfinite(means).all():
            return Unavailable(NOT_FINITE)
        return {
            **{name: float(mean) for name, mean in zip(self.row.outputs, means, strict=True)},
            self.row.windows: len(windows),
        }


@cache
def __getattr__(name: str) -> Any:
    """Return the feature class of a row of `scorers.yaml`, by the feature's name."""
    rows = {row.feature: row for row in SCORERS if row.network is not None}
    if name not in rows:
        raise AttributeError(name)
    scorer, network = rows[name], rows[name].network
    assert network is not None
    doc = indent(f"{network.about}\n\n{scorer.notes}{ARGUMENTS}", "    ").strip()
    facts = {
        "__doc__": doc, "__module__": __name__, "name": name, "protocol": network.protocol,
        "row": network, "rate_hz": scorer.rate_hz, "batch_s": network.batch_s,
    }  # fmt: skip
    return type(name, (Learned,), facts)
