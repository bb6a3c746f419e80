"""The specification of the resampling, in NumPy.

A resample draws as many units as there are, with replacement, in two steps that need no memory beyond a cache: first
how many draws fall into each block of `BLOCK` neighbouring units, then, within a block, which ones. That is the same
distribution as drawing from all units at once (a multinomial split into its margins).

Random numbers come from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
2014), one stream per resample and step, numbered, so that any resample can be made without the others: with B blocks,
resample r counts with stream r * (B + 1) and draws in block b with stream r * (B + 1) + 1 + b. Stream s begins at the
state mix(mix(seed) + (s + 1) * GOLDEN). Each output gives two numbers, its upper 32 bits and then its lower; a number w
chooses one of n as w * n >> 32, with a relative bias below n / 2**32 (0.02 % for a million).
"""

from __future__ import annotations

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
BLOCK = 2048
_MASK = (1 << 64) - 1


def mix(values: np.ndarray) -> np.ndarray:
    """The output function of SplitMix64 on uint64 of any shape."""
    values = values.astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def choices(of: int, count: int, stream: int, seed: int) -> np.ndarray:
    """`count` numbers in [0, of) from one stream, int64 `(count,)`."""
    key = int(mix(np.array([seed & _MASK], np.uint64))[0])
    state = mix(np.array([(key + (stream + 1) * GOLDEN) & _MASK], np.uint64))
    outputs = mix(state + np.arange(1, (count + 1) // 2 + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    words = np.stack([outputs >> np.uint64(32), outputs & np.uint64(0xFFFFFFFF)], axis=1).reshape(-1)[:count]
    return ((words * np.uint64(of)) >> np.uint64(32)).astype(np.int64)


def drawn_units(units: int, resample: int, seed: int) -> np.ndarray:
    """The units that one resample draws with replacement, block by block.

    Args:
        units: how many there are, below 2**32; as many are drawn.
        resample: its number, from 0.
        seed: taken modulo 2**64.

    Returns:
        int64 `(units,)`, each in [0, units).
    """
    blocks = -(-units // BLOCK)
    stream = resample * (blocks + 1)
    counts = np.bincount(choices(units, units, stream, seed) // BLOCK, minlength=blocks) if blocks > 1 else [units]
    drawn = [
        block * BLOCK + choices(min(BLOCK, units - block * BLOCK), int(count), stream + 1 + block, seed)
        for block, count in enumerate(counts)
    ]
    return np.concatenate(drawn)


def resampled_sums(table: np.ndarray, first: int, count: int, seed: int) -> np.ndarray:
    """Both columns' sums over resamples `first` to `first + count - 1`.

    Args:
        table: float64 `(units, 2)`.
        first: number of the first resample, from 0.
        count: how many.
        seed: taken modulo 2**64.

    Returns:
        float64 `(count, 2)`.
    """
    sums = np.empty((count, 2))
    for index in range(count):
        sums[index] = table[drawn_units(len(table), first + index, seed)].sum(axis=0)
    return sums
