"""Building: data sets made from other data by a recipe, with checks of every item.

Which file to open
    `api.py`         the verb: from a recipe to the data set, in threads. `command.py` is the command.
    `recipe.py`      recipes of mixtures and of questions from descriptions; `recipe_spoken.py` has spoken and joined
                     ones, and `recipe_base.py` the fields of all recipes.
    `sources.py`     the recordings and texts of a build.
    `item.py`        the result of an item, its tries, the base class of makers, and the funnel of counts.
    `mixtures.py`    the maker of mixtures.
    `described.py`   the maker of questions from descriptions; `candidates.py` has prompts, parsers and cuts.
    `spoken.py`      the maker of spoken texts, and `joined.py` that of joined recordings, with its script sheet.
                     `speech.py` has what both share: voices, quality floors, and reading back.
    `wording.py`     the spoken form of a text, and `checks.py` the checks of its audio.
    `asking.py`      requests to models from several threads.
    `record.py`      finished items and duplicates; `review.py` the review by people.
    `data_set.py`    the files of the data set, its card and the upload to the hub; `page/` its page.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "build": Command(
        "Benchmarks",
        "Build a data set by a recipe, and check each item.",
        "codec_bench.apps.building.command:build",
    )
}
VERBS = {"build": "codec_bench.apps.building.api"}
