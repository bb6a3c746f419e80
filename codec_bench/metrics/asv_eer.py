"""Speaker verification of what comes out: the equal error rate over all trials of a set."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from codec_bench.metrics.base import Inputs
from codec_bench.metrics.fad import SetDistance
from codec_bench.types import Score


class AsvEer(SetDistance):
    """The equal error rate of speaker verification, with what came out as the test and unprocessed sound as the
    enrolment. Lower is better, 0 to 1.

    A trial is an estimate against the reference of another item: of the same speaker it should be accepted, of another
    speaker it should be refused, by the cosine of their embeddings. All pairs of items are trials, so the data must
    name speakers (the column `speaker`), of whom one has two items at least; over 2,000 items they are chosen by a
    hash. The rate is where as large a share of the first is refused as of the second is accepted; 0.5 is chance.
    Compare it with the rate of the unprocessed sound. A value of the whole set; an item's own value is the squared
    distance between its two embeddings.

    Args:
        variant: the speaker encoder, as for `sim`; None for `wavlm-large-sv`.
        point: its precision, as for `sim`.

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
    """The equal error rate of speaker verification over a list of trials. Lower is better, 0 to 1.

    As `asv_eer`, but the trials are those of a list (`--trials FILE`), such as the published ones of VoxCeleb, so that
    rates can be compared with those that others report over it. The list says which two recordings a trial compares and
    whether one speaker is in both. The test is what came out, and the enrolment the unprocessed recording. Trials of
    recordings that are not in the data, or have no value, are counted. A value of the whole set; an item's own value is
    the squared distance between its two embeddings.

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
        """The score of an item; `detail` holds its embeddings, and the trials of which it is the test."""
        score = super()._score(item)
        return replace(score, detail={**(score.detail or {}), "trials": item.trials or []})
