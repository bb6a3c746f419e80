"""The script sheet: every line that readers are to read, with the name of the file that it is recorded in."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codec_bench.apps.building.item import draws
from codec_bench.apps.building.out import write_text
from codec_bench.apps.building.readback import plain_text
from codec_bench.apps.building.recipe_spoken import JoinedRecipe
from codec_bench.apps.building.spoken import check_answer
from codec_bench.apps.building.texts import LETTERS, Text, Texts, read_texts, text_digest
from codec_bench.apps.building.wording import Unspeakable, check_options, spoken_text
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.errors import UserError

COLUMNS = ("file", "reader", "item", "option", "line")
_HASH = 6


@dataclass(frozen=True, slots=True)
class Line:
    """What is read of one option.

    Args:
        letter: of the option. said: as it is read out. file: the name of its recording, without the ending.
    """

    letter: str
    said: str
    file: str


def lines_of(key: str, text: Text, recipe: JoinedRecipe) -> list[Line]:
    """The lines of one item. A file's name holds a hash of its line, so that a recording is never taken for one of another text.

    Raises:
        Unspeakable: a line cannot be said, the options sound alike, or the answer names none of them.
    """
    check_answer(text)
    language = recipe.language
    choices = [spoken_text(choice, language) for choice in text.choices]
    check_options(choices, language, plain_text(recipe.checks.rule, language))
    lines = []
    for letter, choice in zip(LETTERS, text.choices):
        said = spoken_text(render_text(recipe.line, {"letter": letter, "choice": choice}, "the line"), language)
        lines.append(Line(letter, said, f"{key}_{letter}_{text_digest(said)[:_HASH]}"))
    return lines


def readers_of(texts: Texts, recipe: JoinedRecipe) -> Mapping[str, str]:
    """The reader of each item: all readers get equally many, in an order that is drawn."""
    readers = recipe.recorded.readers if recipe.recorded else ()
    keys = list(texts.rows)
    order = draws(recipe.seed, "readers").permutation(len(keys))
    return {keys[int(place)]: readers[number % len(readers)] for number, place in enumerate(order)} if readers else {}


def check_line(recipe: JoinedRecipe) -> None:
    """Checks the template of a line.

    Raises:
        UserError: it reads something else than `letter` and `choice`.
    """
    if unknown := variables(recipe.line) - {"letter", "choice"}:
        raise UserError(f"the line reads {', '.join(sorted(unknown))}; expected 'letter' and 'choice' and nothing else")


def write_script(recipe: JoinedRecipe, folder: Path, file: Path) -> tuple[int, dict[str, int]]:
    """Writes the sheet as CSV, which spreadsheets open.

    Args:
        recipe: what is asked for. folder: where its paths start. file: the sheet.

    Returns:
        How many lines it has, and how many items are left out, by reason.

    Raises:
        UserError: nobody is to read anything, the texts cannot be read, or the file cannot be written.
    """
    if recipe.recorded is None:
        raise UserError(
            "the options of this recipe are synthesised", hint="a script sheet is for recipes with 'recorded'"
        )
    check_line(recipe)
    texts = read_texts(recipe.texts, folder, stem=recipe.stems.column, limit=recipe.limit)
    readers, left_out = readers_of(texts, recipe), Counter[str]()
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for key, text in texts.rows.items():
        try:
            lines = [] if isinstance(text, str) else lines_of(key, text, recipe)
        except Unspeakable as problem:
            left_out[problem.reason] += 1
            continue
        if isinstance(text, str):
            left_out["the row cannot be used"] += 1
        for line in lines:
            writer.writerow((f"{line.file}.wav", readers[key], key, line.letter, line.said))
        count += len(lines)
    # Spreadsheets take a CSV file for UTF-8 only if it begins with this mark.
    write_text(file, "\ufeff" + sheet.getvalue())
    return count, dict(left_out)
