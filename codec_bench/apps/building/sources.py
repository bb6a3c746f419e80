"""The recordings that a build is made of: which are taken, under which licence, and why others are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from codec_bench.apps.building.recipe_base import RecordingSource
from codec_bench.data import open_source
from codec_bench.data.hub import PREFIX
from codec_bench.data.source import problem_of
from codec_bench.errors import UserError
from codec_bench.types import Sample

NO_LICENCE = "no licence is named for it"
NOT_TAKEN = "the recipe leaves it out"


@dataclass(frozen=True, slots=True)
class Recordings:
    """The recordings of one source that are taken.

    Args:
        name: short name of the source.
        samples: in the order of their ids, which does not depend on how a folder is listed.
        licences: the licence of each sample, by its id.
        left_out: how many were left out, by reason.
        total: how many the source has.
        fingerprint: hash of the source's content.
    """

    name: str
    samples: tuple[Sample, ...]
    licences: Mapping[str, str]
    left_out: Mapping[str, int]
    total: int
    fingerprint: str

    def facts(self) -> dict[str, Any]:
        """What the card says of the source."""
        counted = Counter(self.licences.values())
        return {
            "name": self.name,
            "recordings": self.total,
            "taken": len(self.samples),
            "left_out": dict(sorted(self.left_out.items())),
            "licences": dict(sorted(counted.items())),
            "fingerprint": self.fingerprint,
        }


def located(data: str, folder: Path) -> str:
    """A path of a recipe, from the folder of the recipe; names of the hub and registered names stay as they are."""
    if data.startswith(PREFIX) or not (folder / data).exists():
        return data
    return str(folder / data)


def read_recordings(source: RecordingSource, folder: Path) -> Recordings:
    """Opens a source and chooses among its recordings.

    Args:
        source: as the recipe says. folder: where relative paths start.

    Raises:
        UserError: the data cannot be read, or no recording is left.
    """
    opened = open_source(located(source.data, folder))
    taken, licences, left_out = [], {}, Counter[str]()
    for sample in sorted(opened.samples, key=lambda sample: sample.id):
        licence = next((text for pattern, text in source.licences.items() if fnmatchcase(sample.id, pattern)), None)
        if not _any(sample.id, source.ids) or _any(sample.id, source.without):
            left_out[NOT_TAKEN] += 1
        elif problem_of(sample) is not None:
            left_out["it cannot be read"] += 1
        elif not licence:
            left_out[NO_LICENCE] += 1
        else:
            taken.append(sample)
            licences[sample.id] = licence
    if not taken:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items())
        raise UserError(
            f"no recording of '{source.data}' is left to build from ({why})",
            hint="'licences' of the recipe names the licence of the recordings, by patterns of their ids",
        )
    return Recordings(opened.name, tuple(taken), licences, dict(left_out), len(opened), opened.fingerprint)


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
