"""Shards: the part of a data set for one of several machines.

A hash of its id assigns a sample to a shard, whatever the order, the sound or the other samples. A limit applies before
the shards.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np

from codec_bench.messages.errors import UserError

_WRITTEN = re.compile(r"([0-9]+)/([0-9]+)")
MOST_SHARDS = 100_000


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a data set.

    Args:
        number: which one, from 1.
        of: how many there are.

    Raises:
        UserError: there is no such part.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        if not (1 <= self.number <= self.of <= MOST_SHARDS):
            raise UserError("shard_range", shard=self, most=MOST_SHARDS, hint="such as 1/8 for the first of eight")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, id: str) -> bool:
        """Whether the sample of this id is in this part."""
        return place_of(id) % self.of == self.number - 1

    def among(self, places: np.ndarray) -> np.ndarray:
        """The indices, int64, of the samples in this part.

        Args:
            places: `place_of` of the ids, uint64 `(samples,)`.
        """
        return np.flatnonzero(places % np.uint64(self.of) == np.uint64(self.number - 1))

    def pieces(self, count: int) -> list[Shard]:
        """Split the shard into `count` smaller ones.

        Raises:
            UserError: there would be too many shards.
        """
        return [Shard(self.number + turn * self.of, self.of * count) for turn in range(count)]


def place_of(id: str) -> int:
    """The 64-bit hash of a sample's id that assigns it to a shard."""
    digest = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def read_shard(requested: str | tuple[int, int] | Shard | None) -> Shard | None:
    """Parse a shard, one of several parts of the samples; None for all samples.

    Args:
        requested: such as `"3/8"` or `(3, 8)` for the third of eight.

    Raises:
        UserError: it is none of these, or there is no such shard.
    """
    if requested is None or isinstance(requested, Shard):
        return requested
    if isinstance(requested, str):
        written = _WRITTEN.fullmatch(requested.strip())
        pair = tuple(map(int, written.groups())) if written else None
    else:
        pair = tuple(requested) if isinstance(requested, (tuple, list)) else None
    if pair is None or len(pair) != 2 or not all(isinstance(one, int) and not isinstance(one, bool) for one in pair):
        raise UserError("shard_form", shard=requested)
    return Shard(*pair)
