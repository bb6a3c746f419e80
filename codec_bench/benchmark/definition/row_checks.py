"""Mistakes in the rows of data that lie beside a definition: what a run would meet one question after the other.

Conventions
    Sounds are looked for and not decoded. A line of JSONL is named by its number, a row of another file by its place.
    Of each kind of mistake the first `SHOWN` are named one by one, and the others are counted.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.finding import Finding
from codec_bench.benchmark.reading.choices import choices_of, right_letters
from codec_bench.benchmark.reading.option import labels_of
from codec_bench.decoding.table import MARK
from codec_bench.errors import MissingExtra, UserError, first_of

SHOWN = 20
MOST_ROWS = 100_000
NO_ROW, NO_CHOICE, EMPTY_CHOICE, OTHER_CHOICE, OTHER_LABEL = range(5)


def row_findings(one: Benchmark) -> Iterator[Finding]:
    """The mistakes in the rows of a benchmark's own data; none for data of a hub or in a layout of their own.

    Args:
        one: a benchmark whose definition has no mistake.
    """
    data, folder = one.data, os.path.dirname(os.path.abspath(one.entry.file))
    path = os.path.join(folder, data.path or "")
    if data.path is None or data.layout != "table" or not os.path.exists(path):
        return
    findings: dict[int, list[Finding]] = defaultdict(list)
    seen: set[str] = set()
    labels, file, count = labels_of(one.spec.fields.get("labels")), str(path), 0
    lines = _lines(path) if data.expand is None else []
    try:
        for number, question in enumerate(one.questions()):
            if number >= MOST_ROWS:
                return
            count += 1
            line = lines[number] if number < len(lines) else None
            at = "" if line is not None else f"row {number + 1} ('{question.id}'): "
            for kind, message, hint in _of(question, labels, one):
                findings[kind].append(Finding(file, line, f"{at}{message}", hint))
            seen.update(question.references)
    except MissingExtra:
        return
    except UserError as error:
        yield Finding(file, None, error.message, error.hint)
        return
    for several in findings.values():
        yield from several[:SHOWN]
        if len(several) > SHOWN:
            yield Finding(file, None, f"{len(several) - SHOWN:,} more rows of the same kind: {several[SHOWN].message}")
    unused = [label for label in labels if label not in seen]
    if labels and seen and count >= len(labels) and unused and any(label in seen for label in labels):
        message = f"no row expects the label {first_of([repr(label) for label in unused], 5)}"
        yield Finding(one.entry.file, None, message, "take it out of fields.labels, or correct its spelling")


def _of(question: Question, labels: list[str], one: Benchmark) -> Iterator[tuple[int, str, str | None]]:
    if question.problem is not None:
        yield NO_ROW, question.problem, "a row that cannot be asked counts as a failure"
        return
    clips = [one for value in question.fields.values() for one in (value if isinstance(value, list) else [value])]
    paths = [one.source for one in clips if isinstance(one, Clip) and isinstance(one.source, str)]
    if absent := [path for path in paths if "://" not in path and MARK not in path and not os.path.exists(path)]:
        yield NO_ROW, f"there is no sound file '{absent[0]}'", "a row that cannot be asked counts as a failure"
    if labels and (other := [text for text in question.references if text not in labels]):
        yield OTHER_LABEL, f"it expects '{other[0]}', which is none of the labels", f"they are {first_of(labels, 12)}"
    if not ({"choices"} & one.data.columns.keys() or any(name.startswith("choice_") for name in one.data.columns)):
        return
    choices = choices_of(question.fields)
    if not choices:
        yield NO_CHOICE, "it has no choices", None
    elif any(not text.strip() for text in choices.values()):
        yield EMPTY_CHOICE, f"the choice {next(k for k, text in choices.items() if not text.strip())} is empty", None
    elif question.references and not right_letters(question.fields, question.references):
        yield OTHER_CHOICE, f"it expects '{question.references[0]}', which is none of its choices", None


def _lines(path: str) -> list[int]:
    """The numbers of the lines that hold a row, of a JSONL file; empty for another file."""
    if not path.endswith(".jsonl"):
        return []
    with open(path, "rb") as file:
        return [number for number, line in enumerate(file, 1) if line.strip()]
