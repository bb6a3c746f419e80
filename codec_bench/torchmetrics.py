"""Metrics as torchmetrics: `update`, `compute`, `reset`, sums over processes.

from codec_bench.torchmetrics import TorchMetric
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from codec_bench.messages.errors import UserError

if TYPE_CHECKING:
    from torchmetrics import Metric as TorchMetric

__all__ = ["TorchMetric"]
_SHORTEST_S = 0.01
"""Items below this are no audio, if there are more of them than samples."""


@cache
def _torch_metric() -> Any:
    """Make the class on first use: torchmetrics imports torch."""
    try:
        import torch
        import torchmetrics
    except ImportError as error:
        raise UserError(
            "package_not_installed", feature="TorchMetric", package="torchmetrics", hint="pip install torchmetrics"
        ) from error
    from codec_bench.api.load_metric import load_metric
    from codec_bench.config.option import names
    from codec_bench.metrics import build_metric, expand

    class TorchMetric(torchmetrics.Metric):
        """A metric as a `torchmetrics.Metric`: the corpus value of all processes' updates.

        Its states are the sums of the numerators and denominators of the scores, and how many items have no score. So
        a word error rate is errors over words of all items. Set distances such as `fad` need all items at once and are
        refused.

        Args:
            name: as for `load_metric`; several names and groups give a dictionary of values.
            sample_rate_hz: of the tensors.
            device: where the networks of the metric run: `auto`, `cpu` or `cuda:0`.
            weights: as for `load_metric`.
            **more: of `torchmetrics.Metric`, such as `dist_sync_on_step`.

        Examples:
            >>> import torch
            >>> metric = TorchMetric("si_sdr", sample_rate_hz=16000)
            >>> clean = torch.sin(torch.arange(16000) / 20)
            >>> metric.update([clean + 0.1 * torch.cos(torch.arange(16000) / 3)], [clean])
            >>> round(float(metric.compute()))
            20
        """

        full_state_update = False
        is_differentiable = False
        numerators: torch.Tensor
        denominators: torch.Tensor
        failures: torch.Tensor

        def __init__(
            self, name: str, *, sample_rate_hz: int, device: str = "auto", weights: str | None = None, **more: Any
        ) -> None:
            super().__init__(**more)
            metrics = {one: build_metric(one) for one in expand(names(name))}
            if sets := [one for one, metric in metrics.items() if metric.aggregate not in ("mean", "ratio")]:
                raise UserError("set_metrics", metrics=", ".join(sets), hint="use evaluate or score")
            self._names = tuple(metrics)
            self._options: dict[str, Any] = {"name": name, "device": device, "weights": weights}
            self._rate_hz = sample_rate_hz
            self._loaded: Any = None
            direction = next(iter(metrics.values())).higher_is_better if len(metrics) == 1 else None
            object.__setattr__(self, "higher_is_better", direction)  # torchmetrics lets no metric set it
            zeros = torch.zeros(len(metrics), dtype=torch.float64)
            for state in ("numerators", "denominators", "failures"):
                self.add_state(state, default=zeros.clone(), dist_reduce_fx="sum")

        def update(self, estimate: Any, reference: Any = None, text: Any = None, **more: Any) -> None:
            """Add a batch as to a loaded metric, with `lengths` and `language` in `more`.

            A tensor `(batch, samples)` is a batch, as in torchmetrics.

            Raises:
                UserError: it seems to be `(samples, batch)`: more items than samples, and each shorter than 10 ms.
            """
            if self._loaded is None:
                self._loaded = load_metric(**self._options)
            audio_by_role = {"estimate": estimate, "reference": reference}
            sides = {role: _as_batch(role, values, self._rate_hz) for role, values in audio_by_role.items()}
            rows = self._loaded(**sides, text=text, sample_rate_hz=self._rate_hz, **more)
            for index, name in enumerate(self._names):
                scored = [row[name] for row in rows if row[name].value is not None]
                self.numerators[index] += sum(score.numerator or 0.0 for score in scored)
                self.denominators[index] += sum(score.denominator or 0.0 for score in scored)
                self.failures[index] += len(rows) - len(scored)

        def compute(self) -> Any:
            """The corpus value, or one by name; not a number where no item has a score."""
            values = self.numerators / self.denominators
            return values[0] if len(self._names) == 1 else dict(zip(self._names, values))

        def __getstate__(self) -> dict[str, Any]:
            return {**super().__getstate__(), "_loaded": None}

        def set_dtype(self, dst_type: Any) -> Any:
            """Leaves the sums in float64, as they would lose counts in half precision."""
            return self

    # torch.jit reads types, where annotations are texts.
    TorchMetric.__annotations__ = dict.fromkeys(TorchMetric.__annotations__, torch.Tensor)
    TorchMetric.__module__, TorchMetric.__qualname__ = __name__, "TorchMetric"
    return TorchMetric


def _as_batch(role: str, values: Any, rate_hz: int) -> Any:
    """Split a tensor `(batch, samples)` into its items; other values stay."""
    if getattr(values, "ndim", 0) != 2:
        return values
    items, samples = values.shape
    if items > samples and samples < _SHORTEST_S * rate_hz:
        hint = "give (batch, samples), such as tensor.T"
        raise UserError("batch_of_tiny_items", side=role, items=items, samples=samples, hint=hint)
    return list(values)


def __getattr__(name: str) -> Any:
    if name != "TorchMetric":
        raise AttributeError(name)
    return _torch_metric()
