"""Speaker similarity: how alike the voices of reference and estimate are to a speaker encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.errors import UserError
from codec_bench.features.ge2e import Ge2e
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class Sim(Metric):
    """The cosine of the speaker embeddings of reference and estimate. Higher is better; 1 is the same voice.

    "SIM" means several things: every encoder has a scale of its own, and only numbers of one protocol compare. The
    embeddings of `sim[ge2e]` have no negative entries, so its values lie in [0, 1], and two strangers already reach 0.4
    to 0.6. Both signals are embedded whole, so a difference in length is no obstacle.

    Paper: L. Wan et al., "Generalized end-to-end loss for speaker verification", ICASSP 2018. Reference
    implementation: the dot product of Resemblyzer's embeddings, to 1e-5.

    Args:
        variant: the encoder; `ge2e`.

    Raises:
        UserError: another encoder, or none.
    """

    kind = "pair"
    signals = False
    range = (-1.0, 1.0)
    where = "inline"
    paper = "Wan, Wang, Papir, Lopez Moreno: Generalized End-to-End Loss for Speaker Verification, ICASSP 2018"
    source = "Resemblyzer 0.1.4 without its voice activity detection, to 1e-5"

    def __init__(self, variant: str | None = None) -> None:
        if variant is None:
            raise UserError("sim needs WavLM-large, which this version does not include; use sim[ge2e]")
        if variant != "ge2e":
            raise UserError(f"sim has no speaker encoder '{variant}'", hint="use sim[ge2e]")
        self.name = f"sim[{variant}]"
        self.estimate_features = self.reference_features = (variant,)
        self.protocol = f"sim/{Ge2e.protocol}"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        reference, estimate = (
            np.asarray(side["ge2e"]["embedding"], np.float64)
            for side in (item.reference_features, item.estimate_features)
        )
        cosine = float(reference @ estimate / (np.linalg.norm(reference) * np.linalg.norm(estimate)))
        return Score.ok(min(1.0, max(-1.0, cosine)), self.protocol)
