"""The part of a data set that one shard takes."""

from __future__ import annotations

from codec_bench.data.shard import Shard
from codec_bench.data.source import Source
from codec_bench.errors import UserError


def part_of(source: Source, shard: Shard | None) -> Source:
    """The samples of one shard; None for all.

    The samples keep their places in the whole data set. The fingerprint, the languages and the columns that a record keeps
    are those of the whole. So the records of all shards can be merged, and a data set that has changed between two shards is seen.

    Raises:
        UserError: no sample is in this shard.
    """
    if shard is None:
        return source
    numbers = shard.among(source.places).tolist()
    if not numbers:
        raise UserError(
            f"no sample of '{source.name}' is in shard {shard}; the data has {len(source)} samples",
            hint="use fewer shards",
        )
    part = Source(source.name, [source.samples[number] for number in numbers], source.unmatched, source.complete)
    part.fingerprint, part.taken = source.fingerprint, source.taken
    part.shard, part.numbers, part.whole = shard, numbers, len(source)
    part.languages = source.languages
    part.columns = source.own_columns
    return part
