"""A recogniser that returns the requested language, and leaves a mark for every signal."""

from __future__ import annotations

import os
from pathlib import Path

from codec_bench.features import Feature


class Listener(Feature):
    """Hears the language's name."""

    name, protocol, rate_hz, where = "listener", "listener-1", 16_000, "cpu"
    languages = ("en", "de")
    reads_language = True

    def compute(self, signals, languages=None):
        with open(Path(os.environ["HEARD"]), "a") as marks:
            marks.writelines(f"{language}\n" for language in languages)
        return [{"transcript": f"in {language}"} for language in languages]


class Broken(Feature):
    """Has weights that do not fit."""

    name, protocol, rate_hz, where = "broken", "broken-1", 16_000, "cpu"

    def load(self):
        from codec_bench.messages.errors import WeightsError

        with open(Path(os.environ["HEARD"]), "a") as marks:
            marks.write("load\n")
        raise WeightsError("the weights lack encoder.layers.0.fc1.weight")

    def compute(self, signals):
        raise AssertionError
