"""The same sums as `ref.py`, compiled: the same units are drawn, and the sums differ by rounding only.

The loops go over blocks first and over resamples within, so that a block is read from memory once and stays in the
nearest cache while every resample draws from it. The global interpreter lock is released, so that threads can share
the resamples between them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ONE, _S27, _S30, _S31, _S32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BLOCK = 2048  # of 16 bytes: 32 KiB


@njit(inline="always")
def _mix(value):
    value = (value ^ (value >> _S30)) * _FIRST
    value = (value ^ (value >> _S27)) * _SECOND
    return value ^ (value >> _S31)


@njit(cache=True)
def _key(seed):
    return _mix(seed)


@njit(cache=True, nogil=True)
def _counts(units, blocks, first, key, counts):
    """How many draws of each resample fall into each block, `(resamples, blocks)`."""
    of = np.uint64(units)
    per_block = np.uint64(_BLOCK)
    for row in range(len(counts)):
        state = _mix(key + ((first + np.uint64(row)) * np.uint64(blocks + 1) + _ONE) * _GOLDEN)
        for _ in range(units // 2):
            state += _GOLDEN
            output = _mix(state)
            counts[row, (((output >> _S32) * of) >> _S32) // per_block] += 1
            counts[row, (((output & _LOW) * of) >> _S32) // per_block] += 1
        if units % 2:
            output = _mix(state + _GOLDEN)
            counts[row, (((output >> _S32) * of) >> _S32) // per_block] += 1


@njit(cache=True, nogil=True)
def _sums(table, first, key, counts, sums):
    """Adds what each resample draws from each block to its sums."""
    blocks = counts.shape[1]
    for block in range(blocks):
        part = table[block * _BLOCK : (block + 1) * _BLOCK]
        of = np.uint64(len(part))
        for row in range(len(sums)):
            stream = (first + np.uint64(row)) * np.uint64(blocks + 1) + np.uint64(block + 1)
            state = _mix(key + (stream + _ONE) * _GOLDEN)
            count = counts[row, block]
            numerator, denominator, numerator_2, denominator_2 = 0.0, 0.0, 0.0, 0.0
            for _ in range(count // 2):
                state += _GOLDEN
                output = _mix(state)
                one, other = ((output >> _S32) * of) >> _S32, ((output & _LOW) * of) >> _S32
                numerator += part[one, 0]
                denominator += part[one, 1]
                numerator_2 += part[other, 0]
                denominator_2 += part[other, 1]
            if count % 2:
                one = ((_mix(state + _GOLDEN) >> _S32) * of) >> _S32
                numerator += part[one, 0]
                denominator += part[one, 1]
            sums[row, 0] += numerator + numerator_2
            sums[row, 1] += denominator + denominator_2


def resampled_sums(table: np.ndarray, first: int, count: int, seed: int) -> np.ndarray:
    """Both columns' sums over resamples `first` to `first + count - 1`; see `ref.resampled_sums`.

    Args:
        table: float64 `(units, 2)`, below 2**32 units.
        first: number of the first resample, from 0.
        count: how many.
        seed: taken modulo 2**64.

    Returns:
        float64 `(count, 2)`, equal to the specification's up to the order of summation.
    """
    table = np.ascontiguousarray(table, np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or not 0 < len(table) < 1 << 32:
        raise ValueError(f"the table has shape {table.shape}; expected (units, 2)")
    blocks = -(-len(table) // _BLOCK)
    key = np.uint64(_key(np.uint64(seed & 0xFFFFFFFFFFFFFFFF)))  # comes back as a bare int
    if blocks == 1:
        counts = np.full((count, 1), len(table), np.int32)
    else:
        counts = np.zeros((count, blocks), np.int32)
        _counts(len(table), blocks, np.uint64(first), key, counts)
    sums = np.zeros((count, 2))
    _sums(table, np.uint64(first), key, counts, sums)
    return sums
