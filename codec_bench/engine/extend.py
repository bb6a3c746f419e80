"""Continue a run of codecs or generated audio with a larger limit.

A limit takes the samples with the lowest hashes of seed and id, so a larger choice contains every smaller one. Recorded
samples keep their numbers; further ones follow, each part in the order of the data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.data import Source
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.store.folders import started_fingerprint
from codec_bench.store.record import Run

GROWN = "grown"
"""Entry of `Run.meta` of a run whose limit was raised: its samples are not in the order of the data."""


@dataclass(frozen=True, slots=True)
class Previous:
    """The limit and sample ids of a folder's record, and whether it has grown before."""

    limit: int | None
    ids: tuple[str, ...]
    grown: bool


def _read_previous(folder: str | os.PathLike[str], seed: int) -> Previous | None:
    """Limit and sample ids of a folder's unsharded run with this seed, or None."""
    try:
        fingerprint = started_fingerprint(folder)
        if "limit" not in fingerprint or fingerprint.get("seed") != seed or "shard" in fingerprint:
            return None
        with closing(Run(folder)) as run:
            ids = tuple(id for (id,) in run.query("SELECT id FROM samples ORDER BY number"))
            return Previous(fingerprint["limit"], ids, bool(run.meta.get(GROWN)))
    except UserError:  # the writer of the record explains the error
        return None


def restore_sample_order(
    source: Source, folder: str | os.PathLike[str] | None, *, limit: int | None, seed: int
) -> Source:
    """Put a run's recorded samples first, in their order, if its limit is raised.

    The source is returned as it is if there is no record of this seed, or if it lacks a recorded sample.

    Args:
        source: the samples of the requested limit, in the order of the data.
        folder: of the run, or None for a new one.

    Raises:
        RunMismatch: the limit is lower than the recorded one.
    """
    previous = _read_previous(folder, seed) if folder is not None else None
    if folder is None or previous is None or not (previous.grown or previous.limit != limit):
        return source
    if limit is not None and (previous.limit is None or limit < previous.limit):
        raise RunMismatch(
            "limit_lowered",
            folder=Path(folder),
            before=previous.limit,
            unit="sample",
            limit=limit,
            hint="give another --out, or " + (f"--limit {previous.limit} or more" if previous.limit else "no --limit"),
        )
    there = {sample.id: sample for sample in source.samples}
    if any(id not in there for id in previous.ids):
        return source
    held = set(previous.ids)
    samples = [*(there[id] for id in previous.ids), *(sample for sample in source.samples if sample.id not in held)]
    return Source(source.name, samples, source.unmatched, source.complete)


def count_held_samples(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> int | None:
    """Return the number of recorded samples if the request only adds samples.

    Args:
        recorded: fingerprint of the run in its record.
        now: fingerprint of the request.

    Returns:
        None if the limit did not grow or one of them is a shard.
    """
    was, is_now = recorded.get("limit"), now["limit"]
    grows = was is not None and (is_now is None or is_now > was) and recorded.get("samples", 0) <= now["samples"]
    return int(recorded["samples"]) if grows and "shard" not in {**recorded, **now} else None


def adds_systems(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a request only adds generated systems after those of the record."""
    held, current = recorded.get("systems") or {}, now["systems"]
    is_generated = all("audio" in facts for facts in current.values())
    added = is_generated and bool(held) and len(held) < len(current) and "shard" not in {**recorded, **now}
    return added and list(held.items()) == list(current.items())[: len(held)]
