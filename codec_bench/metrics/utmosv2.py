"""UTMOSv2: how natural speech sounds, as networks trained on listening tests predict it without a reference."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.features.utmosv2 import UtmosV2 as UtmosV2Feature
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class UtmosV2(Metric):
    """The opinion score of the estimate's naturalness that UTMOSv2 predicts. Higher is better; nominally 1 to 5.

    It was trained on ratings of synthetic speech. `detail` holds the number of draws of random crops that the score
    is a mean over. The draws depend on the estimate's samples alone, so a number does not change from run to run.

    Paper: K. Baba et al., "The T05 System for The VoiceMOS Challenge 2024", SLT 2024. Reference implementation:
    github.com/sarulab-speech/UTMOSv2 at cc2700d on a CPU, with the same draws, to 1e-4.

    Args:
        variant: None for what the reference's `predict` does by default (fold 0, one draw); `five-repetitions` for
            five draws; `five-folds` for five folds with five draws each.

    Raises:
        UserError: no such variant.
    """

    kind = "single"
    rate_hz = 16_000
    signals = False
    range = (1.0, 5.0)
    where = "inline"
    paper = "Baba, Nakata, Saito, Saruwatari: The T05 System for The VoiceMOS Challenge 2024, SLT 2024"
    source = "github.com/sarulab-speech/UTMOSv2 at cc2700d, with the same draws, to 1e-4"

    def __init__(self, variant: str | None = None) -> None:
        self.protocol = UtmosV2Feature.protocol_id(variant)
        self.name = f"utmosv2[{variant}]" if variant else "utmosv2"
        self.estimate_features = (self.name,)

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        results = [item.estimate_features[self.name] for item in batch]
        return [Score.ok(result["mos"], self.protocol, detail={"draws": result["draws"]}) for result in results]
