"""Building: data sets that are made from other data by a recipe, with a check of every item and a count of what was
dropped.

Which file to open
    `build.py`       from a recipe to the data set: all items in threads, the record, what is written. `api.py` is the
                     Python verb.
    `recipe.py`      what can be asked for: mixtures, and questions from descriptions; `recipe_spoken.py` has what is
                     spoken or joined, and `recipe_base.py` what all recipes say.
    `sources.py`     the recordings and the rows of texts that a build is made of.
    `item.py`        what became of an item, how it is tried, what every maker of items has, and the funnel that counts
                     them.
    `mixtures.py`    the maker of mixtures.
    `described.py`   the maker of questions from descriptions; `candidates.py` has what models are told and how replies
                     are read, and `segments.py` how long recordings are cut.
    `spoken.py`      the maker of spoken texts, and `joined.py` that of joined recordings, with its script sheet.
                     `speech.py` has what both share: voices, floors of quality, and reading back.
    `wording.py`     what is said of a written text, and `checks.py` what its sound must fulfil.
    `asking.py`      requests to models from several threads.
    `record.py`      what is done already, and which items are the same; `review.py` the check by people.
    `data_set.py`    the files of the data set and its card; `page/` its page; `push.py` the upload to the hub.
    `command.py`     what is typed.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "build": Command(
        "Benchmarks",
        "Build a data set by a recipe: spoken texts, joined recordings, mixtures or questions; every item checked, every dropped one counted.",
        "codec_bench.apps.building.command:build",
    ),
}
VERBS = {"build": "codec_bench.apps.building.api"}
