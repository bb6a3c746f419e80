"""Mistakes in the rows of local data, which a run would meet one by one.

Sounds are located, not decoded. A line of JSONL is named by its number, a row of another file by its position. The
first `SHOWN` mistakes of each kind are listed, the others counted.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.finding import DefinitionFinding, line_of
from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.reading import load_steps
from codec_bench.benchmark.reading.base import OFFICIAL, Chain, Parsed, Unparsed
from codec_bench.benchmark.reading.choices import choices_of, right_letters
from codec_bench.benchmark.reading.option import labels_of
from codec_bench.benchmark.reading.words import plain
from codec_bench.config import load_yaml_with_lines
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import MissingExtra, UserError, first_of

SHOWN = 20
MOST_ROWS = 100_000
NO_ROW, NO_CHOICE, EMPTY_CHOICE, OTHER_CHOICE, OTHER_LABEL, SAME_CHOICE, NO_REFERENCE, NOT_RIGHT = range(8)
Reader = tuple[str, Chain, AnswerMetric]
"""A rule of accuracy, the steps before it, and the metric."""


def row_findings(one: Benchmark) -> Iterator[DefinitionFinding]:
    """Find mistakes in a local table's rows; none for hub data or special layouts.

    Args:
        one: a benchmark whose definition has no mistake.
    """
    data, folder = one.data, os.path.dirname(os.path.abspath(one.entry.file))
    path = os.path.join(folder, data.path or "")
    if data.path is None or data.layout != "table" or not os.path.exists(path):
        return
    findings: dict[int, list[DefinitionFinding]] = defaultdict(list)
    seen, readers = set[str](), _readers(one)
    labels, file, count = labels_of(one.spec.fields.get("labels")), str(path), 0
    lines = _lines(path) if data.expand is None else []
    try:
        for number, question in enumerate(one.questions()):
            if number >= MOST_ROWS:
                return
            count += 1
            line = lines[number] if number < len(lines) else None
            for kind, message, hint in _check_row(question, labels, one, readers):
                if line is None:
                    message = Diagnostic("at_row", number=number + 1, id=question.id, cause=message)
                findings[kind].append(DefinitionFinding(file, line, message, hint))
            seen.update(question.references)
    except MissingExtra:
        return
    except UserError as error:
        yield DefinitionFinding(file, None, as_reason(error.message), error.hint)
        return
    for several in findings.values():
        yield from several[:SHOWN]
        if len(several) > SHOWN:
            count, example = len(several) - SHOWN, several[SHOWN].message
            yield DefinitionFinding(file, None, Diagnostic("more_rows", count=count, cause=example))
    unused = [label for label in labels if label not in seen]
    if labels and seen and count >= len(labels) and unused and any(label in seen for label in labels):
        message = Diagnostic("label_never_expected", labels=unused)
        labels_line = line_of(load_yaml_with_lines(one.entry.file)[1], ("fields", "labels"))
        yield DefinitionFinding(
            one.entry.file, labels_line, message, "take it out of fields.labels, or correct its spelling"
        )


def _readers(one: Benchmark) -> list[Reader]:
    """The project's accuracy metrics of a benchmark that can score its references.

    Returns:
        (name, post-processing, metric) of each; rules that need a certain form of answer are excluded.
    """
    from codec_bench.benchmark.metrics import load_answer_metric

    readers: list[Reader] = []
    for name, steps in one.metric_steps.items():
        chain = load_steps(list(steps if steps is not None else one.process))
        asks_form = (
            chain.keeps_reasoning or chain.recogniser is not None or any(s.startswith("after[") for s in chain.names)
        )
        if name.startswith("accuracy[") and OFFICIAL not in name and not asks_form:
            readers.append((name, chain, load_answer_metric(name)))
    return readers


def _check_row(
    question: Question, labels: list[str], one: Benchmark, readers: list[Reader]
) -> Iterator[tuple[int, Diagnostic, str | None]]:
    """Check a row, and that its reference is right by every accuracy rule.

    Returns:
        (kind of mistake, message, hint) of each mistake.
    """
    problems = list(_check_columns(question, labels, one))
    yield from problems
    if problems or not question.references:
        return
    for name, chain, metric in readers:
        read = chain(question.references[0], question.fields)
        text = read.text if isinstance(read, Parsed) else ""
        (score,) = metric.compute([Answer(question.id, text, question.references, question.fields, question.language)])
        if isinstance(read, Unparsed) or score.value != 1:
            steps = ", ".join(chain.names) or "no step"
            message = Diagnostic("reference_wrong_by_metric", text=question.references[0], metric=name, steps=steps)
            yield NOT_RIGHT, message, "choose steps and a rule that fit the expected answers"


def _check_columns(
    question: Question, labels: list[str], one: Benchmark
) -> Iterator[tuple[int, Diagnostic, str | None]]:
    """Check a row's audio, reference, label and choices; returns as `_check_row`."""
    if question.problem is not None:
        yield NO_ROW, as_reason(question.problem), "an invalid row counts as a failure"
        return
    clips = [one for value in question.fields.values() for one in (value if isinstance(value, list) else [value])]
    if absent := [path for one in clips if isinstance(one, Clip) and (path := one.missing_file) is not None]:
        yield NO_ROW, Diagnostic("no_sound_file", path=absent[0]), "an invalid row counts as a failure"
    if not question.references and "reference" in one.data.columns and "reference" not in one.data.optional:
        yield NO_REFERENCE, Diagnostic("row_without_reference"), "a row without an expected answer has no score"
    if labels and (other := [text for text in question.references if text not in labels]):
        yield OTHER_LABEL, Diagnostic("reference_not_a_label", text=other[0]), f"they are {first_of(labels, 12)}"
    if not ({"choices"} & one.data.columns.keys() or any(name.startswith("choice_") for name in one.data.columns)):
        return
    choices = choices_of(question.fields)
    if not choices:
        yield NO_CHOICE, Diagnostic("row_without_choices"), None
    elif empty := [letter for letter, text in choices.items() if not text.strip()]:
        yield EMPTY_CHOICE, Diagnostic("choice_empty", letter=empty[0]), None
    elif question.references and not right_letters(question.fields, question.references):
        yield OTHER_CHOICE, Diagnostic("reference_outside_choices", reference=question.references[0]), None
    elif len({plain(text) for text in choices.values()}) < len(choices):
        yield SAME_CHOICE, Diagnostic("choices_alike"), None


def _lines(path: str) -> list[int]:
    """The line numbers of a JSONL file's rows; empty for another file."""
    if not path.endswith(".jsonl"):
        return []
    with open(path, "rb") as file:
        return [number for number, line in enumerate(file, 1) if line.strip()]
