"""The inspection of a whole item: the floors of quality and the read-back, and what they found for the row and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.building.asking import Asking
from codec_bench.apps.building.quality import Floors, MetricLoader
from codec_bench.apps.building.readback import ReadBack
from codec_bench.apps.building.recipe_spoken import Speech
from codec_bench.audio.loudness import PROTOCOL
from codec_bench.models.base import Model
from codec_bench.types import Audio


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of an item that passed: the columns of its row, and what its provenance says of the checks."""

    columns: Mapping[str, Any]
    provenance: Mapping[str, Any]


class Inspection:
    """The checks of a recipe that need a metric or a recogniser.

    Args:
        recipe: as it is asked for. folder: where its paths start. load: loads a metric by name. asking: where recognisers are started.

    Raises:
        UserError: as `Floors` and `ReadBack`.
    """

    def __init__(self, recipe: Speech, folder: Path, load: MetricLoader, asking: Asking) -> None:
        self._checks = recipe.checks
        self._floors = Floors(recipe.checks.quality, recipe.language, load)
        self._read_back = ReadBack(recipe.checks, recipe.language, folder, asking)

    @property
    def models(self) -> list[Model]:
        """The recognisers."""
        return self._read_back.models

    @property
    def columns(self) -> dict[str, str]:
        """The columns that `check` fills, with their types."""
        scores = dict.fromkeys(self._checks.quality, "number")
        return {"transcripts": "texts", "error_rate": "number", "check": "text", **scores}

    def facts(self) -> dict[str, Any]:
        """What the card says of the checks."""
        return {**self._read_back.facts(), "quality": self._floors.protocols, "loudness": PROTOCOL}

    def check(self, whole: Audio, parts: Sequence[tuple[str, Audio]]) -> Found:
        """Inspects an item.

        Args:
            whole: its sound. parts: what was meant and how it sounds, part by part.

        Raises:
            Dropped: at the step `quality` or `recognition`.
        """
        scores = self._floors.check(whole)
        heard = self._read_back.check(parts)
        columns = {
            "transcripts": ["\n".join(one.transcripts) for one in heard],
            "error_rate": round(max(one.error_rate for one in heard), 6) if heard else None,
            "check": self._checks.read_back,
            **scores,
        }
        told = {
            "check": self._checks.read_back,
            "recognisers": [one.as_dict() for one in heard],
            "quality": self._floors.as_dict(scores),
            "loudness": PROTOCOL,
        }
        return Found(columns, told)
