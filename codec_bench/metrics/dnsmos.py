"""DNSMOS: the opinion scores of listeners, predicted from the estimate alone by two networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from codec_bench.features.dnsmos import backend_of, protocol_of
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class _Dnsmos(Metric):
    """The common part of the four scores. They read one feature; the variant says which windows count.

    Args:
        variant: None (the windows that speechmos counts), `all-windows`, `ultraeval-audio` or `versa`.
        point: the library that computes the networks (`numba`, `torch`, `onnxruntime`), or None for the device's own. All
            give the same numbers to 1e-5, so they have one protocol.

    Raises:
        UserError: there is no such variant, or no such library.
    """

    kind = "single"
    rate_hz = 16_000
    signals = False
    range = (1.0, 5.0)
    where = "inline"
    source = "speechmos 0.0.1, to 1e-4"
    key: ClassVar[str]

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        self.protocol = protocol_of(variant)
        suffix = ("" if variant is None else f"[{variant}]") + ("" if backend_of(point) is None else f"@{point}")
        self.name = f"dnsmos_{self.key}{suffix}"
        self.estimate_features = (f"dnsmos{suffix}",)

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item: a mean over windows. `detail` holds their number."""
        return [self._score(item.estimate_features[self.estimate_features[0]]) for item in batch]

    def _score(self, feature: dict[str, float]) -> Score:
        return Score.ok(feature[self.key], self.protocol, detail={"windows": feature["windows"]})


class DnsmosSig(_Dnsmos):
    """Quality of the speech itself: how little the voice is distorted (P.835 SIG). Higher is better, 1 to 5.

    Paper: C. K. A. Reddy et al., "DNSMOS P.835", ICASSP 2022. Reference implementation: speechmos, to 1e-4.
    """

    key = "sig"
    paper = "Reddy, Gopal, Cutler: DNSMOS P.835: A Non-Intrusive Perceptual Objective Speech Quality Metric to Evaluate Noise Suppressors, ICASSP 2022"


class DnsmosBak(_Dnsmos):
    """Quality of the background: how little noise intrudes (P.835 BAK). Higher is better, 1 to 5.

    Paper: C. K. A. Reddy et al., "DNSMOS P.835", ICASSP 2022. Reference implementation: speechmos, to 1e-4.
    """

    key = "bak"
    paper = DnsmosSig.paper


class DnsmosOvrl(_Dnsmos):
    """Overall quality (P.835 OVRL). Higher is better, 1 to 5.

    Paper: C. K. A. Reddy et al., "DNSMOS P.835", ICASSP 2022. Reference implementation: speechmos, to 1e-4.
    """

    key = "ovrl"
    paper = DnsmosSig.paper


class DnsmosP808(_Dnsmos):
    """Overall quality as a crowd would rate it under P.808, predicted by another network. Higher is better, 1 to 5.

    Paper: C. K. A. Reddy et al., "DNSMOS", ICASSP 2021. Reference implementation: speechmos, to 1e-4.
    """

    key = "p808"
    paper = "Reddy, Gopal, Cutler: DNSMOS: A Non-Intrusive Perceptual Objective Speech Quality Metric to Evaluate Noise Suppressors, ICASSP 2021"
