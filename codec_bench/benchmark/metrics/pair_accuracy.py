"""`pair_accuracy`: the share of pairs whose preferred sound is the likelier.

A tie counts as half, as in SALMon and the ZeroSpeech challenge of 2021, and ties are counted next to the value. A deaf
model has 0.5.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.messages import Diagnostic
from codec_bench.models.likelihood import PAIR
from codec_bench.types import Score

TIED = Diagnostic("tied_pair")
"""The flag of a score of a tie."""


class PairAccuracy(AnswerMetric):
    """The share of pairs with the preferred sound likelier. Higher is better.

    An answer is a JSON object with two natural logarithms, `preferred` and `other`; `detail` has their difference.
    """

    paper = "Maimon, Roth, Adi: A Suite for Acoustic Language Model Evaluation, ICASSP 2025"
    source = (
        "github.com/slp-rl/salmon 03e857a salmon.py, exactly, and the score of a pair in "
        "github.com/zerospeech/zerospeech2021 199624a lexical.py and syntactic.py, exactly"
    )
    name = "pair_accuracy"
    protocol = "pair-accuracy/ties-half-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """1, 0.5 or 0 for each pair; unparsed if the answer lacks two numbers."""
        return [self._one(answer.text) for answer in answers]

    def worst(self, answer: Answer) -> Score:
        """0: the preferred sound is the less likely one."""
        return Score.ok(0.0, self.protocol)

    def _one(self, text: str) -> Score:
        """Score an answer that holds the log-likelihoods of a pair as JSON."""
        try:
            values = json.loads(text)
            preferred, other = (float(values[name]) for name in PAIR)
        except (ValueError, TypeError, KeyError, RecursionError):
            return Score.unparsed(Diagnostic("no_likelihoods"), self.protocol)
        if not (math.isfinite(preferred) and math.isfinite(other)):
            return Score.unparsed(Diagnostic("infinite_likelihood"), self.protocol)
        tied = {"flag": TIED} if preferred == other else {}
        value = 0.5 if tied else float(preferred > other)
        return Score.ok(value, self.protocol, detail={"difference": preferred - other, "chance": 0.5, **tied})
