"""Pairwise preferences: win rates, and strengths of systems.

A win rate is the mean of 1, 0.5 for a tie and 0. Strengths are those of Bradley and Terry with Davidson's ties, by
maximum likelihood: A wins with odds p(A), B with p(B), and they tie with nu sqrt(p(A) p(B)). Intervals are percentiles
over draws of items (clusters where known); they are missing if more than `MAX_INFINITE_DRAWS` of the draws have
infinite strengths: those are finite only if any two groups of systems won against each other or tied (Ford 1957).
Strengths are in Elo points (400 are odds of 10 to 1) with mean 0.

References: Davidson 1970, "On extending the Bradley-Terry model to accommodate ties in paired comparison experiments";
Ford 1957, "Solution of a ranking problem from binary comparisons".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.stats.bootstrap import draw_sums
from codec_bench.stats.intervals import FEWEST_UNITS, Interval, interval, unit_codes
from codec_bench.stats.notes import Note, too_few

DRAWS = 1000
MAX_INFINITE_DRAWS = 0.025
POINTS = 400 / np.log(10)
_NO_TIES = -60.0
_STEPS, _LONGEST, _SMALL = 200, 2.0, 1e-9


class Duel(NamedTuple):
    """A comparison; `score` is 1 if `a` was preferred, 0 for `b`, 0.5 for a tie."""

    a: str
    b: str
    score: float
    unit: Hashable = None


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often the first of two is preferred, with its interval; a tie counts half."""

    value: float | None
    interval: Interval
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class Strength:
    """One system: its `points` with interval ends (None if infinite), and its `duels`."""

    system: str
    points: float | None
    low: float | None
    high: float | None
    duels: int


@dataclass(frozen=True, slots=True)
class Strengths:
    """The systems by strength; `tie`: Davidson's nu; `note`: why a value is missing."""

    systems: Sequence[Strength]
    tie: float
    duels: int
    units: int
    note: str | None = None


def win_rate(scores: Sequence[float], clusters: Sequence[Hashable | None] | None = None) -> WinRate:
    """How often the first of two is preferred, by scores of 1, 0.5 or 0.

    Examples:
        >>> found = win_rate([1, 1, 0.5, 0, 1, 1, 0.5, 1])
        >>> found.value, found.wins, found.ties, found.losses
        (0.75, 5, 2, 1)
    """
    wins, ties = sum(score == 1 for score in scores), sum(score == 0.5 for score in scores)
    mean_interval = interval(scores, clusters=clusters, bounds=(0.0, 1.0))
    return WinRate(sum(scores) / len(scores) if scores else None, mean_interval, wins, ties, len(scores) - wins - ties)


def strengths(duels: Sequence[Duel], *, seed: int = 0, resamples: int = DRAWS) -> Strengths:
    """Compute the strengths of systems from their comparisons.

    Args:
        duels: of two different systems each. seed, resamples: of the bootstrap over items.

    Raises:
        UserError: there is no comparison, or some groups of systems were never compared.

    Examples:
        >>> won = {("a", "b"): 30, ("b", "a"): 10, ("b", "c"): 30, ("c", "b"): 10}
        >>> found = strengths([Duel(a, b, 1.0, n) for (a, b), times in won.items() for n in range(times)])
        >>> [(one.system, round(one.points, 1)) for one in found.systems]  # odds of 3 to 1 are 190.8 points
        [('a', 190.8), ('b', 0.0), ('c', -190.8)]
    """
    names = sorted({name for duel in duels for name in (duel.a, duel.b)})
    if not duels:
        raise UserError("no_comparison")
    codes = unit_codes([duel.unit for duel in duels], len(duels))
    assert codes is not None  # every comparison has a label or is a unit by itself
    index_of, units = {name: n for n, name in enumerate(names)}, int(codes.max()) + 1
    placed = [
        (index_of[a], index_of[b], score) if a < b else (index_of[b], index_of[a], 1 - score)
        for a, b, score, _ in duels
    ]
    sides, pair = np.unique([[a, b] for a, b, _ in placed], axis=0, return_inverse=True)
    _check_connected(sides, names)
    # How often the first won, the second won, and neither.
    table = np.zeros((units, len(sides), 3))
    np.add.at(table, (codes, pair.ravel(), np.asarray([{1.0: 0, 0.0: 1}.get(score, 2) for *_, score in placed])), 1)
    each = {name: sum(name in duel[:2] for duel in duels) for name in names}
    totals = table.sum(axis=0)[None]
    if not _finite(totals, sides, len(names))[0]:
        unknown = [Strength(name, None, None, None, each[name]) for name in names]
        return Strengths(unknown, 0.0, len(duels), units, Note("infinite_strengths"))
    points, tie = _fit_strengths(totals, sides, len(names))
    ends, note = _interval_ends(table, sides, len(names), seed, resamples)
    rows = [
        Strength(name, float(value), *low_high, each[name]) for name, value, low_high in zip(names, points[0], ends)
    ]
    rows.sort(key=lambda one: (-(one.points or 0.0), one.system))
    return Strengths(rows, float(np.exp(tie[0])) if tie[0] > _NO_TIES else 0.0, len(duels), units, note)


def _check_connected(sides: np.ndarray, names: Sequence[str]) -> None:
    """Raise UserError unless comparisons link all systems, directly or indirectly."""
    from scipy.sparse.csgraph import connected_components

    met = np.zeros((len(names), len(names)))
    met[sides[:, 0], sides[:, 1]] = 1
    count, group = connected_components(met, directed=False)
    if count > 1:
        groups_text = " and ".join(", ".join(np.asarray(names)[group == one]) for one in range(count))
        raise UserError(
            "comparisons_apart",
            groups=groups_text,
            hint="compare one system of each group, or take the groups one by one",
        )


def _finite(counts: np.ndarray, sides: np.ndarray, systems: int) -> np.ndarray:
    """Mark the draws in which all strengths are finite, bool `(draws,)`.

    With nu fixed, a direction of growth is a group that never lost or tied to the others. One in which nu grows by t
    has at least 2 t between a and b where a won, and at most 2 t where they tied: it exists unless such steps form a
    rising cycle.
    """
    reach = np.broadcast_to(np.eye(systems, dtype=bool), (len(counts), systems, systems)).copy()
    steps = np.where(reach, 0.0, -np.inf)
    for n, (a, b) in enumerate(sides):
        won, losses, tied = (counts[:, n, k] > 0 for k in range(3))
        reach[:, a, b] |= won | tied
        reach[:, b, a] |= losses | tied
        steps[:, b, a] = np.where(won, 1.0, np.where(tied, -1.0, -np.inf))
        steps[:, a, b] = np.where(losses, 1.0, np.where(tied, -1.0, -np.inf))
    for _ in range(max(1, int(np.ceil(np.log2(systems))))):
        reach = np.matmul(reach.astype(np.int32), reach.astype(np.int32)) > 0
    for k in range(systems):
        steps = np.maximum(steps, steps[:, :, k, None] + steps[:, k, None, :])
    rises = np.diagonal(steps, axis1=1, axis2=2).max(axis=1) > 0
    both = (counts[:, :, 2] > 0).any(axis=1) & (counts[:, :, :2] > 0).any(axis=(1, 2))
    return np.asarray(reach.reshape(len(counts), -1).all(axis=1) & (rises | ~both))


def _fit_strengths(counts: np.ndarray, sides: np.ndarray, systems: int) -> tuple[np.ndarray, np.ndarray]:
    """Strengths in points `(draws, systems)`, log nu; of counts `(draws, pairs, 3)`."""
    design = np.zeros((len(sides), 3, systems + 1))
    for n, (a, b) in enumerate(sides):
        design[n, 0, a] = design[n, 1, b] = design[n, 2, systems] = 1
        design[n, 2, [a, b]] = 0.5
    tied = counts[:, :, 2].sum(axis=1) > 0
    estimates = np.zeros((len(counts), systems + 1))
    estimates[:, systems] = np.where(tied, 0.0, _NO_TIES)
    centre = np.zeros((systems + 1, systems + 1))
    centre[:systems, :systems] = 1
    for _ in range(_STEPS):
        odds = np.einsum("dp,nkp->dnk", estimates, design)
        shares = np.exp(odds - odds.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        expected = counts.sum(axis=2, keepdims=True) * shares
        slope = np.einsum("dnk,nkp->dp", counts - expected, design)
        mean = np.einsum("dnk,nkp->dnp", shares, design)
        bend = np.einsum("dnk,nkp,nkq->dpq", expected, design, design, optimize=True)
        bend -= np.einsum("dn,dnp,dnq->dpq", counts.sum(axis=2), mean, mean, optimize=True)
        bend += centre
        slope[~tied, systems], bend[~tied, systems, :], bend[~tied, :, systems] = 0, 0, 0
        bend[~tied, systems, systems] = 1
        bend[:, systems, systems] += 1e-9  # where all are ties, nu has no finite value
        step = np.clip(np.linalg.solve(bend, slope[..., None])[..., 0], -_LONGEST, _LONGEST)
        estimates = np.clip(estimates + step, _NO_TIES, -_NO_TIES)
        if np.abs(step[:, :systems]).max() < _SMALL:
            break
    points = POINTS * (estimates[:, :systems] - estimates[:, :systems].mean(axis=1, keepdims=True))
    return points, estimates[:, systems]


def _interval_ends(
    table: np.ndarray, sides: np.ndarray, systems: int, seed: int, resamples: int
) -> tuple[list[tuple[float | None, float | None]], Note | None]:
    """Bootstrap the 95 % interval of each system's strength, or say why not."""
    units = len(table)
    none: list[tuple[float | None, float | None]] = [(None, None)] * systems
    if units < FEWEST_UNITS:
        return none, too_few(units, FEWEST_UNITS, "interval")
    counts = draw_sums(table.reshape(units, -1), resamples, seed).reshape(resamples, len(sides), 3)
    finite = _finite(counts, sides, systems)
    if (infinite := int((~finite).sum())) > MAX_INFINITE_DRAWS * resamples:
        return none, Note("infinite_draws", infinite=infinite, draws=resamples)
    points, _ = _fit_strengths(counts[finite], sides, systems)
    low, high = np.quantile(points, [0.025, 0.975], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high)], None
