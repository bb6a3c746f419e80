"""Words and edit paths in numba. One machine word holds 64 cells of the table of distances.

The result equals that of `ref`, step by step. The differences between neighbouring cells of 64 reference items are kept
as signs and carried along the estimate (Myers 1999 in Hyyrö's form of 2003). Blocks of 64 items are computed one after
the other, so that a block needs only the 64 bit masks of its own items. The signs are stored, and the path is read from
them. Only the band that a path of the known distance can reach is computed. Outside of it the differences of an upper
bound are used, which no step of the path can prefer.

Papers
    G. Myers, "A fast bit-vector algorithm for approximate string matching based on dynamic programming", JACM 46(3),
    1999. H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", Nordic J. Computing
    10(1), 2003.
"""

from __future__ import annotations

import numba
import numpy as np

from .ref import DELETION, HIT, INSERTION, SHORT_ESTIMATE, SHORT_REFERENCE, SUBSTITUTION

_SPACE = 32
_ONE = np.uint64(1)
_NONE = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_STACK = 512  # three entries per halving, and a length can be halved at most 63 times

_jit = numba.njit(cache=True, nogil=True)


@_jit
def number_words(codes: np.ndarray, offsets: np.ndarray, white: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Splits texts into words and numbers the words. Equal words have equal numbers.

    Args:
        codes: int32 code points of all texts, one after the other.
        offsets: int64 `(texts + 1,)`, where each text begins in `codes`.
        white: bool, whether each code point is white space. Code points beyond its end are not.

    Returns:
        int32 numbers of the words of all texts; int64 `(texts + 1,)`, where each text begins among them; the number of
        different words.
    """
    texts = offsets.size - 1
    numbers = np.empty(codes.size // 2 + texts + 1, np.int32)
    starts = np.zeros(texts + 1, np.int64)
    # Open addressing. The different words are copied into one place, because comparing with `codes` would be slower.
    table = np.full(1024, -1, np.int32)
    hashes = np.empty(512, np.uint64)
    spans = np.zeros(513, np.int64)
    letters = np.empty(4096, np.int32)
    words = 0
    found = 0
    for text in range(texts):
        at = offsets[text]
        end = offsets[text + 1]
        while at < end and codes[at] < white.size and white[codes[at]]:
            at += 1
        while end > at and codes[end - 1] < white.size and white[codes[end - 1]]:
            end -= 1
        while at < end:
            start = at
            key = _NONE
            gap = 0
            while at < end:
                code = codes[at]
                if code < white.size and white[code]:
                    gap = 1
                    while codes[at + gap] < white.size and white[codes[at + gap]]:  # a text ends with another one
                        gap += 1
                    if gap > 1 or code == _SPACE:
                        break
                    gap = 0
                key = (key ^ np.uint64(code)) * _MIX
                at += 1
            size = at - start
            at += gap
            key ^= key >> np.uint64(32)
            slot = np.int64(key & np.uint64(table.size - 1))
            while True:
                word = table[slot]
                if word < 0:
                    word = words
                    words += 1
                    table[slot] = word
                    hashes[word] = key
                    begin = spans[word]
                    spans[words] = begin + size
                    while letters.size < begin + size:
                        letters = np.concatenate((letters, np.empty(letters.size, np.int32)))
                    for k in range(size):
                        letters[begin + k] = codes[start + k]
                    break
                begin = spans[word]
                if hashes[word] == key and spans[word + 1] - begin == size:
                    k = 0
                    while k < size and letters[begin + k] == codes[start + k]:
                        k += 1
                    if k == size:
                        break
                slot = (slot + 1) & (table.size - 1)
            numbers[found] = word
            found += 1
            if words == hashes.size:
                hashes = np.concatenate((hashes, np.empty(words, np.uint64)))
                spans = np.concatenate((spans, np.empty(words, np.int64)))
                table = np.full(2 * table.size, -1, np.int32)
                for known in range(words):
                    slot = np.int64(hashes[known] & np.uint64(table.size - 1))
                    while table[slot] >= 0:
                        slot = (slot + 1) & (table.size - 1)
                    table[slot] = known
        starts[text + 1] = found
    return numbers[:found], starts, words


@_jit
def _sweep(
    ref: np.ndarray,
    r0: int,
    r_step: int,
    m: int,
    est: np.ndarray,
    e0: int,
    e_step: int,
    n: int,
    band: int,
    keep: bool,
    masks: np.ndarray,
    up: np.ndarray,
    down: np.ndarray,
    plus: np.ndarray,
    minus: np.ndarray,
) -> None:
    """Computes every block of 64 reference items along the estimate.

    Args:
        ref, r0, r_step, m: the reference's array, the index of its first item, the step to the next, and its length.
        est, e0, e_step, n: the same for the estimate.
        band: cells farther than this from the diagonal are not computed.
        keep: whether the signs of all rows are kept, or those of the last row only.
        masks: zeros, one per possible item; they are zero again afterwards.
        up, down: working memory, one per row: whether the block to the left grew or shrank by one in that row.
        plus, minus: arrays to which the signs of the differences along the reference are written, `(blocks, width)` or
            `(blocks,)`.
    """
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


@_jit
def _push(stack: np.ndarray, at: int, r0: int, r1: int, e0: int, e1: int, limit: int) -> None:
    stack[at, 0] = r0
    stack[at, 1] = r1
    stack[at, 2] = e0
    stack[at, 3] = e1
    stack[at, 4] = limit


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
    """Edit paths of many pairs of sequences, and the number of steps of each kind.

    Args:
        reference, estimate: int32 items of all sequences, each in [0, symbols).
        reference_offsets, estimate_offsets: int64 `(pairs + 1,)`, where each sequence begins.
        symbols: one more than the largest item.
        path: uint8; empty, or, for a single pair, an array of `reference.size + estimate.size`. The path's steps are
            written to its end, in order.
        whole_bytes: size in bytes from which a table is divided (see `ref`).

    Returns:
        int64 `(pairs, 4)`: hits, substitutions, deletions, insertions.
    """
    pairs = reference_offsets.size - 1
    counts = np.zeros((pairs, 4), np.int64)
    masks = np.zeros(symbols, np.uint64)
    longest = 0
    widest = 0
    for pair in range(pairs):
        longest = max(longest, estimate_offsets[pair + 1] - estimate_offsets[pair])
        widest = max(widest, reference_offsets[pair + 1] - reference_offsets[pair])
    up = np.empty(longest, np.uint8)
    down = np.empty(longest, np.uint8)
    plus = np.empty(max(longest, widest // 64 + 1), np.uint64)
    minus = np.empty(plus.size, np.uint64)
    scores = np.empty(0, np.int64)
    stack = np.empty((_STACK, 5), np.int64)
    recorded = path.size > 0
    for pair in range(pairs):
        r0 = reference_offsets[pair]
        r1 = reference_offsets[pair + 1]
        e0 = estimate_offsets[pair]
        e1 = estimate_offsets[pair + 1]
        _push(stack, 0, r0, r1, e0, e1, max(r1 - r0, e1 - e0))
        depth = 1
        step = path.size
        # The path is read from its end to its beginning, so the right part is on top of the stack.
        while depth > 0:
            depth -= 1
            r0 = stack[depth, 0]
            r1 = stack[depth, 1]
            e0 = stack[depth, 2]
            e1 = stack[depth, 3]
            limit = stack[depth, 4]
            before = 0
            while r0 < r1 and e0 < e1 and reference[r0] == estimate[e0]:
                r0 += 1
                e0 += 1
                before += 1
            while r0 < r1 and e0 < e1 and reference[r1 - 1] == estimate[e1 - 1]:
                r1 -= 1
                e1 -= 1
                counts[pair, HIT] += 1
                if recorded:
                    step -= 1
                    path[step] = HIT
            m = r1 - r0
            n = e1 - e0
            limit = min(limit, max(m, n))
            whole = 2 * min(m, 2 * limit + 1) * n // 8 < whole_bytes
            if m == 0 or n == 0 or whole or m < SHORT_REFERENCE or n < SHORT_ESTIMATE:
                row = n
                column = m
                if m > 0 and n > 0:
                    width = min(n, 64 + 2 * limit)
                    needed = (m + 63) // 64 * width
                    if plus.size < needed:
                        plus = np.empty(needed, np.uint64)
                        minus = np.empty(needed, np.uint64)
                    _sweep(reference, r0, 1, m, estimate, e0, 1, n, limit, True, masks, up, down, plus, minus)
                    while row > 0 and column > 0:
                        block = (column - 1) >> 6
                        bit = np.uint64((column - 1) & 63)
                        low = max(0, 64 * block - limit)
                        at = block * width - low + row - 1
                        if (plus[at] >> bit) & _ONE:
                            kind = DELETION
                            column -= 1
                        elif row - 1 > low and (minus[at - 1] >> bit) & _ONE:
                            kind = INSERTION
                            row -= 1
                        else:
                            row -= 1
                            column -= 1
                            kind = HIT if reference[r0 + column] == estimate[e0 + row] else SUBSTITUTION
                        counts[pair, kind] += 1
                        if recorded:
                            step -= 1
                            path[step] = kind
                counts[pair, DELETION] += column
                counts[pair, INSERTION] += row
                counts[pair, HIT] += before
                if recorded:
                    for _ in range(column):
                        step -= 1
                        path[step] = DELETION
                    for _ in range(row):
                        step -= 1
                        path[step] = INSERTION
                    for _ in range(before):
                        step -= 1
                        path[step] = HIT
                continue
            half = n // 2
            if scores.size <= m:
                scores = np.empty(m + 1, np.int64)
            _sweep(reference, r1 - 1, -1, m, estimate, e1 - 1, -1, n - half, m + n, False, masks, up, down, plus, minus)
            scores[0] = n - half
            for column in range(m):
                bit = np.uint64(column & 63)
                grown = np.int64((plus[column >> 6] >> bit) & _ONE)
                scores[column + 1] = scores[column] + grown - np.int64((minus[column >> 6] >> bit) & _ONE)
            _sweep(reference, r0, 1, m, estimate, e0, 1, half, m + n, False, masks, up, down, plus, minus)
            left = half
            cut = 0
            best_left = left
            best = left + scores[m]
            for column in range(m):
                bit = np.uint64(column & 63)
                left += np.int64((plus[column >> 6] >> bit) & _ONE) - np.int64((minus[column >> 6] >> bit) & _ONE)
                if left + scores[m - 1 - column] < best:
                    best = left + scores[m - 1 - column]
                    best_left = left
                    cut = column + 1
            _push(stack, depth, r0 - before, r0, e0 - before, e0, 0)
            _push(stack, depth + 1, r0, r0 + cut, e0, e0 + half, best_left)
            _push(stack, depth + 2, r0 + cut, r1, e0 + half, e1, best - best_left)
            depth += 3
    return counts
