"""Edit paths in numba, equal to `ref`; a machine word holds 64 cells.

Signs of differences between neighbouring cells of 64 reference items are carried along the estimate (Myers 1999 in
Hyyrö's form of 2003), block by block, so a block needs only its own 64 bit masks. The stored signs give the path. Only
the band that a path of the known distance can reach is computed; outside, an upper bound's differences are used, which
no step can prefer.

Papers: G. Myers, "A fast bit-vector algorithm for approximate string matching based on dynamic programming", JACM
46(3), 1999. H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", Nordic J.
Computing 10(1), 2003.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compilation.cpu import jit
from .ref import DELETION, HIT, INSERTION, SHORT_ESTIMATE, SHORT_REFERENCE, SUBSTITUTION

_ONE = np.uint64(1)
_NONE = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_STACK = 512  # three entries per halving, and a length can be halved at most 63 times

_jit = jit(nogil=True)
_inline = jit(nogil=True, inline="always")  # where a call would cost as much as its work


class TokenSequence(NamedTuple):
    """A part of a sequence, in either direction.

    Args:
        items: the whole sequence. first: the index of the part's first item. step: 1 or -1.
    """

    items: np.ndarray
    first: int
    step: int
    size: int


class Work(NamedTuple):
    """Working memory of `_sweep`.

    Args:
        masks: zeros, one per possible item; they are zero again afterwards.
        up, down: one per row: whether the block to the left grew or shrank by one in that row.
        plus, minus: outputs, signs of differences along the reference, `(blocks, width)` or `(blocks,)`.
    """

    masks: np.ndarray
    up: np.ndarray
    down: np.ndarray
    plus: np.ndarray
    minus: np.ndarray


@_inline
def _sweep(reference: TokenSequence, estimate: TokenSequence, band: int, keep: bool, work: Work) -> None:
    """Compute every block of 64 reference items along the estimate.

    Args:
        band: cells farther than this from the diagonal are not computed. keep: whether to keep all rows' signs, or the
            last's.
    """
    ref, r0, r_step, m = reference
    est, e0, e_step, n = estimate
    masks, up, down, plus, minus = work
    width = min(n, 64 + 2 * band)
    for row in range(n):
        up[row] = 1
        down[row] = 0
    for block in range((m + 63) // 64):
        first = 64 * block
        bits = min(64, m - first)
        for bit in range(bits):
            masks[ref[r0 + r_step * (first + bit)]] |= _ONE << np.uint64(bit)
        last = np.uint64(bits - 1)
        low = max(0, first - band)
        high = min(n, first + 64 + band)
        base = block * width - low
        p = _ALL
        q = _NONE
        for row in range(low, high):
            grown = np.uint64(up[row])
            shrunk = np.uint64(down[row])
            x = masks[est[e0 + e_step * row]] | shrunk
            diagonal = (((x & p) + p) ^ p) | x | q
            higher = q | ~(diagonal | p)
            lower = diagonal & p
            up[row] = (higher >> last) & _ONE
            down[row] = (lower >> last) & _ONE
            higher = (higher << _ONE) | grown
            lower = (lower << _ONE) | shrunk
            p = lower | ~(diagonal | higher)
            q = higher & diagonal
            if keep:
                plus[base + row] = p
                minus[base + row] = q
        for row in range(high, n):
            up[row] = 1
            down[row] = 0
        if not keep:
            plus[block] = p
            minus[block] = q
        for bit in range(bits):
            masks[ref[r0 + r_step * (first + bit)]] = _NONE


@_inline
def _sign(work: Work, column: int) -> Any:
    """Return the difference along the reference in one column of the last row: 1, 0 or -1."""
    bit = np.uint64(column & 63)
    return np.int64((work.plus[column >> 6] >> bit) & _ONE) - np.int64((work.minus[column >> 6] >> bit) & _ONE)


@_inline
def _write(path: np.ndarray, step: int, kind: int, count: int) -> int:
    """Write steps of one kind before `step`, if there is a path; return their start."""
    if path.size == 0:
        return step
    for _ in range(count):
        step -= 1
        path[step] = kind
    return step


@_inline
def _read_path(
    reference: TokenSequence,
    estimate: TokenSequence,
    limit: int,
    work: Work,
    counts: np.ndarray,
    path: np.ndarray,
    step: int,
) -> int:
    """Count and write the steps of a part whose signs are stored, backwards; return their start."""
    row = estimate.size
    column = reference.size
    width = min(row, 64 + 2 * limit)
    while row > 0 and column > 0:
        block = (column - 1) >> 6
        bit = np.uint64((column - 1) & 63)
        low = max(0, 64 * block - limit)
        at = block * width - low + row - 1
        if (work.plus[at] >> bit) & _ONE:
            kind = DELETION
            column -= 1
        elif row - 1 > low and (work.minus[at - 1] >> bit) & _ONE:
            kind = INSERTION
            row -= 1
        else:
            row -= 1
            column -= 1
            same = reference.items[reference.first + column] == estimate.items[estimate.first + row]
            kind = HIT if same else SUBSTITUTION
        counts[kind] += 1
        step = _write(path, step, kind, 1)
    counts[DELETION] += column
    counts[INSERTION] += row
    return _write(path, _write(path, step, DELETION, column), INSERTION, row)


@_jit
def _sweep_to_last_row(reference: TokenSequence, estimate: TokenSequence, work: Work) -> None:
    _sweep(reference, estimate, reference.size + estimate.size, False, work)


@_jit
def _divide(
    reference: TokenSequence, estimate: TokenSequence, half: int, scores: np.ndarray, work: Work
) -> tuple[int, int, int]:
    """Find where a shortest path crosses the middle of the estimate.

    Args:
        half: items of the estimate before its middle. scores: working memory of more elements than reference items.

    Returns:
        The reference's items before the crossing, and the distances before and behind it.
    """
    ref, r0, _, m = reference
    est, e0, _, n = estimate
    _sweep_to_last_row(TokenSequence(ref, r0 + m - 1, -1, m), TokenSequence(est, e0 + n - 1, -1, n - half), work)
    scores[0] = n - half
    for column in range(m):
        scores[column + 1] = scores[column] + _sign(work, column)
    _sweep_to_last_row(reference, TokenSequence(est, e0, 1, half), work)
    left = half
    cut = 0
    best_left = left
    best = left + scores[m]
    for column in range(m):
        left += _sign(work, column)
        if left + scores[m - 1 - column] < best:
            best = left + scores[m - 1 - column]
            best_left = left
            cut = column + 1
    return cut, best_left, best - best_left


@_jit
def _push(stack: np.ndarray, at: int, r0: int, r1: int, e0: int, e1: int, limit: int) -> None:
    stack[at, 0] = r0
    stack[at, 1] = r1
    stack[at, 2] = e0
    stack[at, 3] = e1
    stack[at, 4] = limit


@_jit
def _longest(offsets: np.ndarray) -> int:
    longest = 0
    for pair in range(offsets.size - 1):
        longest = max(longest, offsets[pair + 1] - offsets[pair])
    return longest


@_inline
def _align_one(
    reference: np.ndarray, estimate: np.ndarray, stack: np.ndarray, work: Work, scores: np.ndarray,
    counts: np.ndarray, path: np.ndarray, whole_bytes: int,
) -> tuple[Work, np.ndarray]:  # fmt: skip
    """Align the pair on the stack; return the working memory, which may have grown."""
    depth = 1
    step = path.size
    # The path is read from its end to its beginning, so the right part is on top of the stack.
    while depth > 0:
        depth -= 1
        r0, r1, e0, e1, limit = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3], stack[depth, 4]
        before = 0
        while r0 < r1 and e0 < e1 and reference[r0] == estimate[e0]:
            r0 += 1
            e0 += 1
            before += 1
        behind = 0
        while r0 < r1 and e0 < e1 and reference[r1 - 1] == estimate[e1 - 1]:
            r1 -= 1
            e1 -= 1
            behind += 1
        counts[HIT] += behind
        step = _write(path, step, HIT, behind)
        m, n = r1 - r0, e1 - e0
        ref, est = TokenSequence(reference, r0, 1, m), TokenSequence(estimate, e0, 1, n)
        limit = min(limit, max(m, n))
        full_table = 2 * min(m, 2 * limit + 1) * n // 8 < whole_bytes
        if m == 0 or n == 0 or full_table or m < SHORT_REFERENCE or n < SHORT_ESTIMATE:
            if m > 0 and n > 0:
                needed = (m + 63) // 64 * min(n, 64 + 2 * limit)
                if work.plus.size < needed:
                    work = Work(
                        work.masks, work.up, work.down, np.empty(needed, np.uint64), np.empty(needed, np.uint64)
                    )
                _sweep(ref, est, limit, True, work)
            step = _read_path(ref, est, limit, work, counts, path, step)
            counts[HIT] += before
            step = _write(path, step, HIT, before)
            continue
        if scores.size <= m:
            scores = np.empty(m + 1, np.int64)
        half = n // 2
        cut, left, right = _divide(ref, est, half, scores, work)
        _push(stack, depth, r0 - before, r0, e0 - before, e0, 0)
        _push(stack, depth + 1, r0, r0 + cut, e0, e0 + half, left)
        _push(stack, depth + 2, r0 + cut, r1, e0 + half, e1, right)
        depth += 3
    return work, scores


@_jit
def align(
    reference: np.ndarray,
    reference_offsets: np.ndarray,
    estimate: np.ndarray,
    estimate_offsets: np.ndarray,
    symbols: int,
    path: np.ndarray,
    whole_bytes: int,
) -> np.ndarray:
    """Edit paths of many pairs, and the number of steps of each kind.

    Args:
        reference, estimate: int32 items of all sequences, each in [0, symbols).
        reference_offsets, estimate_offsets: int64 `(pairs + 1,)`, where each sequence begins.
        path: uint8; empty, or, for a single pair, `reference.size + estimate.size` elements, whose end receives the
            path.
        whole_bytes: size in bytes from which a table is divided (see `ref`).

    Returns:
        int64 `(pairs, 4)`: hits, substitutions, deletions, insertions.
    """
    pairs = reference_offsets.size - 1
    counts = np.zeros((pairs, 4), np.int64)
    longest = _longest(estimate_offsets)
    signs = max(longest, _longest(reference_offsets) // 64 + 1)
    work = Work(
        np.zeros(symbols, np.uint64), np.empty(longest, np.uint8), np.empty(longest, np.uint8),
        np.empty(signs, np.uint64), np.empty(signs, np.uint64),
    )  # fmt: skip
    scores = np.empty(0, np.int64)
    stack = np.empty((_STACK, 5), np.int64)
    for pair in range(pairs):
        r0, r1 = reference_offsets[pair], reference_offsets[pair + 1]
        e0, e1 = estimate_offsets[pair], estimate_offsets[pair + 1]
        _push(stack, 0, r0, r1, e0, e1, max(r1 - r0, e1 - e0))
        work, scores = _align_one(reference, estimate, stack, work, scores, counts[pair], path, whole_bytes)
    return counts
