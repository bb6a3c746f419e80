"""What the makers of speech have in common, whether it is synthesised or recorded: texts, voices, inspection, and their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.building.asking import Asking
from codec_bench.apps.building.inspection import Inspection
from codec_bench.apps.building.item import Failure, Item, at_once
from codec_bench.apps.building.quality import MetricLoader
from codec_bench.apps.building.readback import nearness
from codec_bench.apps.building.recipe_spoken import JoinedRecipe, SpokenRecipe
from codec_bench.apps.building.texts import Text, Texts
from codec_bench.apps.building.voices import VoicesOf
from codec_bench.models.cache import ResponseCache


class SpeechMaker:
    """The common part of makers of speech. A maker adds `steps`, `columns`, `facts` and `make_text`.

    Args:
        recipe: what is asked for. texts: its rows. folder: where its paths start. load: loads a metric by name.

    Raises:
        UserError: a voice or a metric is wrong, or a model cannot be started.
    """

    rate = "error_rate"

    def __init__(self, recipe: SpokenRecipe | JoinedRecipe, texts: Texts, folder: Path, load: MetricLoader) -> None:
        self.texts = texts
        self._checks = recipe.checks
        self._asking = Asking(ResponseCache.of_user())
        self.voices: VoicesOf | None = None
        try:
            if recipe.synthesiser is not None and recipe.voices is not None:
                self.voices = VoicesOf(recipe.synthesiser, recipe.voices, folder, recipe.language, self._asking)
            self.inspection = Inspection(recipe, folder, load, self._asking)
        except BaseException:
            self._asking.close()
            raise
        models = (*(self.voices.models if self.voices else ()), *self.inspection.models)
        self.parallel = at_once(model.concurrency for model in models)

    def keys(self) -> Sequence[str]:
        """The keys of the rows: the split and the place in it."""
        return list(self.texts.rows)

    def facts(self) -> dict[str, Any]:
        """The texts, the voices and the checks."""
        speaking = self.voices.facts() if self.voices else {}
        return {"sources": [self.texts.facts()], **speaking, **self.inspection.facts()}

    def nearness(self, row: Mapping[str, Any]) -> float | None:
        """As `Maker.nearness`."""
        return nearness(row, self._checks)

    def close(self) -> None:
        """Closes the models."""
        self._asking.close()

    def make(self, key: str) -> Item:
        """Makes one item; a row that cannot be used is dropped."""
        text = self.texts.rows[key]
        if isinstance(text, str):
            return Item(key, failures=(Failure("row", "the row cannot be used", text),))
        return self.make_text(key, text)

    def make_text(self, key: str, text: Text) -> Item:
        """Makes one item of a row that can be used."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an item is made")
