"""Speaker verification of estimates: a set's equal error rate over its trials."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from codec_bench.metrics.base import Inputs
from codec_bench.metrics.fad import SetDistance
from codec_bench.types import Score


class AsvEer(SetDistance):
    """The equal error rate of speaker verification. Lower is better, 0 to 1.

    A trial compares an estimate with the reference of another item by the cosine of their embeddings. All pairs are
    trials, so the data need the column `speaker`, and one speaker with two items; at most 2,000 items, chosen by a
    hash. At the rate, false rejections equal false acceptances; 0.5 is chance. Compare it with the unprocessed audio. A
    value of the whole set; an item's own value is the squared distance between its embeddings. Codec-SUPERB reports it
    over a list.

    Args:
        variant: the speaker encoder, as for `sim`; None for `wavlm-large-sv`. point: its precision, as for `sim`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench.stats.eer import equal_error_rate
        >>> round(equal_error_rate(np.array([0.9, 0.8, 0.3]), np.array([0.7, 0.2, 0.1])), 3)
        0.333
    """

    name = "asv_eer"
    range = (0.0, 1.0)
    aggregate: ClassVar[Literal["eer", "eer-listed"]] = "eer"
    protocol = "asv_eer/all-pairs/2000-items"
    paper = "Wu et al.: Codec-SUPERB: An In-Depth Analysis of Sound Codec Models, Findings of ACL 2024"
    source = "scikit-learn roc_curve where both errors are equal, to 1e-9"
    others = ()


class AsvEerListed(AsvEer):
    """The equal error rate over a list of trials. Lower is better, 0 to 1.

    As `asv_eer`, over a list (`--trials FILE`), such as VoxCeleb's, so that rates compare with published ones. The list
    names two recordings per trial and whether one speaker is in both. Trials of recordings without data or value are
    counted.

    Examples:
        >>> import numpy as np
        >>> from codec_bench.stats.eer import listed_error_rates
        >>> voices = np.array([[[1, 0], [1, 0]], [[1, 0.1], [1, 0.1]], [[0, 1], [0, 1]]], np.float32)
        >>> trials = [("a", "b", True), ("a", "c", False), ("b", "c", False)]
        >>> listed_error_rates(voices, "abc", "xxy", trials=trials).value
        0.0
    """

    name = "asv_eer_listed"
    aggregate = "eer-listed"
    protocol = "asv_eer/listed-trials"

    def _score(self, item: Inputs) -> Score:
        score = super()._score(item)
        return replace(score, detail={**(score.detail or {}), "trials": item.trials or []})
