"""Listening and reading tests with people: page, key and analysis of ratings.

Which file to open
    `kinds.py`      the kinds of test (`kinds.yaml`): questions, instructions, valid answers.
    `material.py`   the items of a run with their systems, audio and texts; their selection and trials.
    `sound.py`      equalises the audio of an item; the filter of the anchors.
    `key.py`        the file with the system of each stimulus.
    `sheet.py`      from a run to a page and its key; `page/` has its template, style and scripts.
    `webmushra.py`  the same for webMUSHRA: its configuration, and its results.
    `answers.py`    the files from raters, and their problems.
    `checks.py`     checks of raters: questions before the test, gold questions, traps, and a hearing check with digits
                    in noise (`spoken_digits/`).
    `ratings.py`    answers with their systems: one row each, with its status.
    `screening.py`  rules that mark raters, and exclude them where named.
    `outcome.py`    the values of the systems with their intervals; `crossed.py` means over raters and items.
    `api.py`        the verbs: export and import. `command.py` has the commands.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "listen": Command(
        "Look at results",
        "Make listening tests for people, read the answers.",
        "codec_bench.apps.listening.command:listen_app",
    )
}
VERBS = {"export_listening": "codec_bench.apps.listening.api", "import_listening": "codec_bench.apps.listening.api"}
