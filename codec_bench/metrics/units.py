"""Content by speech units: error rate, n-gram precision, similarity."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import ClassVar

import numpy as np

from codec_bench.features.units import CLUSTERS, HubertUnits
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, FeatureMetric, Inputs
from codec_bench.text.error_rate import sequence_error_rates
from codec_bench.types import Score

DEFAULT = "hubert-km200"
METHOD = "Saeki et al.: SpeechBERTScore: Reference-Aware Automatic Evaluation of Speech Generation, Interspeech 2024"
PREFIX, PREFIX_WEIGHT, BOOST_FROM = 4, 0.1, 0.7
"""Winkler's constants: the number of boosted first units, their weight, and the similarity from which they count."""


class _Units(FeatureMetric):
    """Base class of the metrics over units.

    Args:
        variant: `hubert-km50`, `hubert-km100` or `hubert-km200` (default).
        point: `float16`, `bfloat16` or `tf32` for the encoder in place of float32; each has its own protocol.
    """

    kind = "pair"
    rate_hz = 16_000
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)
    stem: ClassVar[str]
    definition: ClassVar[str]
    layer: ClassVar[int]
    repeats: ClassVar[bool]

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        if variant is not None and variant not in CLUSTERS:
            known = ", ".join(f"{self.stem}[{name}]" for name in CLUSTERS)
            raise UserError("no_variant", name=self.stem, variant=variant, hint=f"use {self.stem}, or one of {known}")
        model, at = variant or DEFAULT, f"@{point}" if point else ""
        self.name = self.stem + (f"[{variant}]" if variant else "") + at
        self._feature = model + at
        self.estimate_features = self.reference_features = (self._feature,)
        repeats = "with-repeats" if self.repeats else "without-repeats"
        self.protocol = f"{self.definition}/layer-{self.layer}/{repeats}/{HubertUnits.protocol_id(model, point)}"

    def _units(self, item: Inputs) -> tuple[np.ndarray, np.ndarray]:
        sides = [np.asarray(one[f"layer_{self.layer}"], np.int32) for one in item.features(self._feature)]
        reference, estimate = sides if self.repeats else map(without_repeats, sides)
        return reference, estimate


class Ter(_Units):
    """Unit error rate: errors over the reference's units. Lower is better.

    Units are clusters of HuBERT-base's block 6, runs of equal units counted once, so that durations do not matter.
    Substitutions, deletions and insertions are summed over the corpus as for words; insertions can take it above 1. It
    needs no texts and no language, but the network was trained on English.

    Examples:
        >>> from codec_bench.metrics import Inputs, build_metric
        >>> units = [{"hubert-km200": {"layer_6": np.array(side)}} for side in ([7, 7, 3, 5, 1], [7, 3, 3, 1])]
        >>> item = Inputs("a", 16000, reference_features=units[0], estimate_features=units[1])
        >>> build_metric("ter").compute([item])[0].value  # 7 3 5 1 without repeats, and 5 is missing
        0.25
    """

    higher_is_better = False
    range = (0.0, None)
    aggregate = "ratio"
    paper = "Gat et al.: Augmentation Invariant Discrete Representation for Generative Spoken Language, IWSLT 2023"
    source = "the units of textlesslib (GSLM); counts equal to rapidfuzz's"
    stem = "ter"
    definition = "ter"
    layer = 6
    repeats = False

    def _score(self, item: Inputs) -> Score:
        """Align both unit sequences, and divide the errors by the reference's length."""
        reference, estimate = self._units(item)
        (rate,) = sequence_error_rates(reference=[reference], estimate=[estimate])
        detail = {name: getattr(rate, name) for name in ("hits", "substitutions", "deletions", "insertions")}
        ratio = {"numerator": rate.errors, "denominator": rate.reference_length}
        return Score.ok(rate.errors / rate.reference_length, self.protocol, **ratio, detail=detail)


class SpeechBleu(_Units):
    """SpeechBLEU: precision of units and pairs of units. Higher is better, 0 to 1.

    BLEU of one reference without smoothing: the geometric mean of the precisions of units and pairs, with a penalty for
    fewer units than the reference. Units are clusters of HuBERT-base's block 11, runs counted once (200 clusters, as in
    the paper and VERSA). An estimate without a pair of the reference is 0.
    """

    paper = METHOD
    source = "DiscreteSpeechMetrics' SpeechBLEU (nltk's sentence_bleu), to 1e-9"
    stem = "speechbleu"
    definition = "speechbleu/2-gram"
    layer = 11
    repeats = False

    def _score(self, item: Inputs) -> Score:
        return Score.ok(_bleu(*self._units(item)), self.protocol)


class SpeechTokenDistance(_Units):
    """Jaro-Winkler similarity of unit sequences. Higher is better, 0 to 1.

    A similarity under the name of a distance, as in the published program and VERSA. Units are clusters of
    HuBERT-base's block 6 with repeats. Units match if equal and close in time; matches out of order count half; four
    equal first units count more.
    """

    paper = METHOD
    source = "DiscreteSpeechMetrics' SpeechTokenDistance (jellyfish's jaro_winkler_similarity), to 1e-12"
    stem = "speech_token_distance"
    definition = "speech_token_distance/jaro-winkler"
    layer = 6
    repeats = True

    def _score(self, item: Inputs) -> Score:
        return Score.ok(_jaro_winkler(*self._units(item)), self.protocol)


def without_repeats(units: np.ndarray) -> np.ndarray:
    """Reduce each run of equal units `(frames,)` to one."""
    return units[np.concatenate(([True], units[1:] != units[:-1]))] if units.size else units


def _bleu(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Compute BLEU of discrete speech units, up to pairs, with the brevity penalty."""
    precisions = []
    for size in (1, 2):
        there, here = (
            Counter(zip(*(units[start:].tolist() for start in range(size)))) for units in (reference, estimate)
        )
        precisions.append(sum((here & there).values()) / max(1, sum(here.values())))
    if min(precisions) == 0:
        return 0.0
    shorter = min(0.0, 1 - reference.size / estimate.size)
    return math.exp(shorter + sum(map(math.log, precisions)) / 2)


def _jaro_winkler(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Jaro-Winkler similarity in linear time."""
    theirs, ours = reference.tolist(), estimate.tolist()
    reach = max(0, max(len(theirs), len(ours)) // 2 - 1)
    waiting: dict[int, deque[int]] = {}
    for index, unit in enumerate(theirs):
        waiting.setdefault(unit, deque()).append(index)
    matched: list[tuple[int, int]] = []
    for index, unit in enumerate(ours):
        places = waiting.get(unit, deque())
        while places and places[0] < index - reach:  # nor can any later unit reach it
            places.popleft()
        if places and places[0] <= index + reach:
            matched.append((unit, places.popleft()))
    if not matched:
        return 0.0
    in_order = [theirs[index] for index in sorted(index for _, index in matched)]
    swapped = sum(unit != other for (unit, _), other in zip(matched, in_order)) // 2
    matches = len(matched)
    value = (matches / len(theirs) + matches / len(ours) + (matches - swapped) / matches) / 3
    if value <= BOOST_FROM:
        return value
    same = next((k for k, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
    return value + min(PREFIX, same) * PREFIX_WEIGHT * (1 - value)
