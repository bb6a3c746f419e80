"""Listening and reading tests with people: page, key and analysis of ratings.

Which file to open
    `kinds.py`      the kinds of test: what is asked, the instructions, which values an answer may have.
    `material.py`   what a run has to hear and read: its items with their systems, sounds and texts; which are taken,
                    and their trials.
    `sound.py`      the sounds of an item, made alike so that nothing but their content tells them apart; the filter of
                    the anchors.
    `key.py`        the file that says which system is which.
    `sheet.py`      from a run to a page and its key; `page/` has its template, style and scripts.
    `webmushra.py`  the same for webMUSHRA: its configuration, and its results.
    `answers.py`    the files that raters send back, and what is wrong with them.
    `checks.py`     checks of raters: questions before the test, gold questions and traps. `digits.py` makes the digits
                    in noise by which hearing is checked, from the recordings of `spoken_digits/`.
    `ratings.py`    answers with their systems: one row each, with what became of it.
    `screening.py`  which raters are marked by which rule, and left out by those that were named.
    `outcome.py`    the values of the systems with their intervals; `crossed.py` means over raters and items.
    `api.py`        the verbs: making sheets, and reading what raters sent. `command.py` is what is typed.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "listen": Command(
        "Look at results",
        "Listening and reading tests for people: write the page, and read the answers.",
        "codec_bench.apps.listening.command:listen_app",
    ),
}
VERBS = {"export_listening": "codec_bench.apps.listening.api", "import_listening": "codec_bench.apps.listening.api"}
