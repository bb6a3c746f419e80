"""The equal error rate of speaker verification, by cosines of embeddings.

The rate is where as many trials of one speaker are refused as of two accepted, linear between thresholds
(scikit-learn's `roc_curve` with scipy's `brentq`, to 1e-9). An item's own reference is no trial. The interval leaves
out blocks of speakers (`blocks.py`); beyond `MOST_ITEMS`, items with the smallest name hashes are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.messages import together
from codec_bench.stats.blocks import FEWEST_ITEMS, SetValue, blocks_of, jackknife, no_value, select_items
from codec_bench.stats.notes import Note

Trials = Sequence[tuple[str, str, bool]]
"""Listed trials: names of enrolment and test, and whether they have one speaker."""
FEW_TRIALS = 100  # of one speaker; below that a note says how many there are


def equal_error_rate(same: np.ndarray, other: np.ndarray) -> float:
    """The equal error rate of genuine and impostor scores, at least one each.

    Examples:
        >>> equal_error_rate(np.array([0.9, 0.8, 0.3]), np.array([0.7, 0.2, 0.1]))
        0.3333333333333333
    """
    scores = np.concatenate([same, other])
    order = np.argsort(-scores, kind="stable")
    is_own = order < same.size
    last = np.append(np.diff(scores[order]) != 0, True)  # of the trials of one score, which fall together
    refused = np.concatenate([[1.0], 1 - np.cumsum(is_own)[last] / same.size])
    accepted = np.concatenate([[0.0], np.cumsum(~is_own)[last] / other.size])
    difference = refused - accepted
    crossing = int(np.argmax(difference <= 0))
    share = difference[crossing - 1] / (difference[crossing - 1] - difference[crossing])
    return float(accepted[crossing - 1] + share * (accepted[crossing] - accepted[crossing - 1]))


def equal_error_rates(pairs: np.ndarray, names: Sequence[str], units: Sequence[str]) -> SetValue:
    """The rate of each estimate against every other item's reference, with interval.

    Args:
        pairs: embeddings `(items, 2, dimensions)`, the reference first.
        units: their speakers.
    """
    chosen, chosen_note = select_items(names)
    speakers = [units[position] for position in chosen.tolist()]
    voices = np.unique(np.array(speakers, object), return_inverse=True)[1]
    reference, estimate = (_unit(pairs[chosen, role]) for role in range(2))
    test, enrolment = np.nonzero(~np.eye(len(chosen), dtype=bool))
    same = voices[test] == voices[enrolment]
    why = Note("one_speaker") if same.any() else Note("no_own_trial", needed=FEWEST_ITEMS)
    scores = (estimate @ reference.T)[test, enrolment]
    count = int(same.sum())
    note = together(chosen_note, Note("few_trials", trials=count) if count < FEW_TRIALS else None)
    return _rates_with_interval(scores, same, enrolment, test, speakers, why, note)


def listed_error_rates(
    pairs: np.ndarray, names: Sequence[str], units: Sequence[str], *, trials: Trials = ()
) -> SetValue:
    """Compute the equal error rate over listed trials, with its interval.

    Args:
        pairs: embeddings `(items, 2, dimensions)`, reference first.
        units: their speakers.
        trials: (enrolment id, test id, whether they are one speaker); unknown ids are excluded, and a note counts them.
    """
    index_of = {name: number for number, name in enumerate(names)}
    known = [(index_of[a], index_of[b], same) for a, b, same in trials if a in index_of and b in index_of]
    if not known:
        why = Note("no_known_trial", trials=len(trials)) if trials else Note("no_listed_trial")
        return no_value(why, len(names))
    enrolment, test, same = np.array(known, np.int64).T
    reference, estimate = (_unit(pairs[:, role]) for role in range(2))
    scores = np.einsum("td,td->t", estimate[test], reference[enrolment])
    excluded = len(trials) - len(known)
    excluded_note = Note("excluded_trials", excluded=excluded, trials=len(trials)) if excluded else None
    why = Note("one_kind_of_trial")
    return _rates_with_interval(scores, same == 1, enrolment, test, units, why, excluded_note)


def _rates_with_interval(
    scores: np.ndarray, same: np.ndarray, enrolment: np.ndarray, test: np.ndarray, units: Sequence[str],
    why: Note, note: Note | None,
) -> SetValue:  # fmt: skip
    """The rate of trials between items of these units; `why` stands if there is none."""
    blocks = blocks_of(units)
    one, other = blocks[enrolment], blocks[test]

    def rate(rest: np.ndarray) -> float | None:
        inside = np.isin(one, rest) & np.isin(other, rest)
        genuine, impostor = scores[inside & same], scores[inside & ~same]
        return equal_error_rate(genuine, impostor) if genuine.size and impostor.size else None

    return jackknife(rate, blocks, why=why, note=note)


def _unit(vectors: np.ndarray) -> np.ndarray:
    exact = vectors.astype(np.float64)
    return exact / np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), 1e-12)
