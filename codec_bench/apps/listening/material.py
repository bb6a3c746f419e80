"""The items of runs for a listening test, and the trials they form.

An item needs output of every selected system, over all runs; exclusions are counted by reason. Items of one id with
different text or duration differ. One seed determines items, practice, repeats and the order of ids, which are assigned
after shuffling and so reveal no system. Groups of the columns (such as speakers) take turns.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

from codec_bench.apps.listening.kinds import kind_of
from codec_bench.benchmark.reading.choices import choices_of, remove_label
from codec_bench.data import Source, match_estimates
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.store.answers import Exchange, exchanges, has_answers
from codec_bench.store.columns import grouped
from codec_bench.store.record import Run
from codec_bench.store.rows import SampleRow
from codec_bench.types import Sample

UNPROCESSED = "unprocessed"
_APART_S = 0.002


@dataclass(frozen=True, slots=True)
class SystemOutput:
    """One system's output for an item: audio, text, or both."""

    audio: Path | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ListeningItem:
    """One item of the runs.

    Args:
        speaker: or the question, if it has several answers; None if unknown.
        stratum: its group in each column of the draw.
        duration_s: of the reference or question's audio; None if unknown.
        sound: the question's audio; None for codecs, whose references are looked up later.
        texts: for the rater, each with its heading.
        right: numbers of the right ones.
    """

    id: str
    speaker: str | None
    stratum: tuple[str, ...]
    duration_s: float | None
    outputs: Mapping[str, SystemOutput]
    sound: Path | None = None
    texts: tuple[tuple[str, str], ...] = ()
    choices: tuple[str, ...] = ()
    right: tuple[int, ...] = ()
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """The usable items of runs with selected systems, and excluded ones."""

    items: Sequence[ListeningItem]
    systems: tuple[str, ...]
    answers: bool
    excluded: Counter[Diagnostic]
    runs: Sequence[Run] = field(repr=False)

    def reference(self, item: ListeningItem) -> Path | None:
        """Return an item's reference audio or question's audio, or None."""
        if self.answers:
            return item.sound
        return next((path for run in self.runs if (path := run.reference_audio(item.id)) is not None), None)


def collect(
    runs: Sequence[Run],
    systems: Sequence[str],
    *,
    needs_answers: bool = False,
    without_systems: bool = False,
    by: Sequence[str] = (),
    folders: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Material:
    """Collect the items of runs, with the outputs of the selected systems.

    Args:
        runs: of codecs (`eval`, `score`), or of one benchmark.
        systems: names; empty for all. Systems with one name in two runs are FOLDER/NAME.
        needs_answers: refuse runs of codecs.
        without_systems: return the items alone.
        by: columns by which items are drawn evenly; empty for the speaker.
        folders: external audio by system; files match items by id, as for `score`.

    Raises:
        UserError: a system or column does not exist, the runs are not of one kind, or a folder cannot be read.
    """
    answer_kinds = {has_answers(run) for run in runs}
    if len(answer_kinds) != 1:
        raise UserError("runs_of_two_kinds")
    answers = answer_kinds.pop()
    if needs_answers and not answers:
        raise UserError(
            "not_a_benchmark_run",
            folder=runs[0].folder,
            hint="for codecs there are the kinds mushra, rating and preference",
        )
    named = {(r.meta.get("benchmark") or {}).get("name") for r in runs}
    if len(named) != 1:
        raise UserError("runs_of_several_benchmarks", benchmarks=", ".join(sorted(map(str, named))))
    chosen = {} if without_systems else _chosen(runs, systems)
    used = [run for run in runs if without_systems or any(run is of for of, _ in chosen.values())]
    excluded: Counter[Diagnostic] = Counter()
    strata = _strata(used[0], by)
    read = _questions if answers else partial(_samples, folders=dict(folders or {}))
    items = list(read(used, chosen, strata, excluded))
    return Material(items, tuple(chosen), answers, excluded, used)


def _chosen(runs: Sequence[Run], requested: Sequence[str]) -> dict[str, tuple[Run, str]]:
    """Map names of systems to (run, name); empty `requested` selects all.

    Systems with one name in two runs are FOLDER/NAME. Raises UnknownName.
    """
    every = Counter(name for run in runs for name in run.systems)
    label = lambda run, name: f"{run.folder.resolve().name}/{name}" if every[name] > 1 else name  # noqa: E731
    known = {label(run, name): (run, name) for run in runs for name in run.systems}
    if len(known) < sum(every.values()):
        raise UserError("runs_named_alike", hint="give the folders different names")
    for name in requested:
        if name not in known:
            raise UnknownName("system", name, known, within=runs[0].folder)
    return {name: known[name] for name in known if not requested or name in requested}


def _strata(run: Run, by: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return each sample's values in the columns `by`, by id; its speaker if empty."""
    if not by:
        return {id: (speaker or "",) for id, speaker in run.units().items()}
    ids = dict(run.query("SELECT number, id FROM samples"))
    strata: dict[str, list[str]] = {id: [] for id in ids.values()}
    for groups in grouped(run, by).values():
        for name, numbers in groups.items():
            for number in numbers:
                strata[ids[number]].append(name)
    return {id: tuple(names) for id, names in strata.items()}


_Chosen = Mapping[str, tuple[Run, str]]
_Strata = Mapping[str, tuple[str, ...]]


def _samples(
    runs: Sequence[Run],
    chosen: _Chosen,
    strata: _Strata,
    excluded: Counter[Diagnostic],
    *,
    folders: dict[str, str | os.PathLike[str]],
) -> Iterator[ListeningItem]:
    """Yield the items for which all chosen systems have audio of the same sample.

    Args:
        excluded: counts the others by reason; it is changed.
        folders: external audio by system.
    """
    for name in folders:
        if name not in chosen:
            raise UnknownName("system_with_audio", name, chosen)
    rows = [{sample.id: sample for sample in run.samples()} for run in runs]
    audio_files = {
        label: _in_folder(folders[label], rows[0])
        if label in folders
        else {one.id: one.audio for one in run.items(name) if one.audio is not None and one.audio.is_file()}
        for label, (run, name) in chosen.items()
    }
    units = runs[0].units()
    for id, sample in rows[0].items():
        others = [held.get(id) for held in rows[1:]]
        lacking = [label for label, files in audio_files.items() if id not in files]
        if not all(other is not None and _is_same(sample, other) for other in others):
            excluded[Diagnostic("no_same_sample")] += 1
        elif lacking:
            excluded[Diagnostic("no_audio_of", systems=", ".join(lacking))] += 1
        else:
            outputs = {label: SystemOutput(files[id]) for label, files in audio_files.items()}
            yield ListeningItem(id, units[id], strata[id], sample.duration_s, outputs)


def _is_same(a: SampleRow, b: SampleRow) -> bool:
    known = a.duration_s is not None and b.duration_s is not None
    return a.text == b.text and (not known or abs((a.duration_s or 0) - (b.duration_s or 0)) < _APART_S)


def _in_folder(folder: str | os.PathLike[str], rows: Mapping[str, SampleRow]) -> dict[str, Path]:
    """Return a folder's audio files by sample id."""
    samples = [Sample(row.id, row.audio, row.text) for row in rows.values()]
    matched = match_estimates(Source(str(folder), samples), str(folder))
    return {sample.id: Path(sample.estimate) for sample in matched if sample.estimate is not None}


def _questions(
    runs: Sequence[Run], chosen: _Chosen, strata: _Strata, excluded: Counter[Diagnostic]
) -> Iterator[ListeningItem]:
    """Yield the questions that every system answered with usable audio."""
    read = {id(run): {exchange.question.id: exchange for exchange in exchanges(run)} for run in runs}
    units = runs[0].units()
    for name, first in read[id(runs[0])].items():
        outputs: dict[str, SystemOutput] = {}
        why = None
        for label, (run, _) in chosen.items():
            exchange = read[id(run)].get(name)
            if exchange is None or exchange.question.fields != first.question.fields:
                why = Diagnostic("no_same_question")
            elif (answer := _answer(exchange)) is None:
                why = why or Diagnostic("no_answer_of", system=label)
            else:
                outputs[label] = answer
        if why is not None:
            excluded[why] += 1
            continue
        yield _question(first, outputs, units[name], strata[name])


def _answer(exchange: Exchange) -> SystemOutput | None:
    audio = exchange.answer_path if exchange.answer_path is not None and exchange.answer_path.is_file() else None
    text = exchange.answer.text or (exchange.reading.transcript if exchange.reading is not None else None)
    return SystemOutput(audio, text) if exchange.answer.status == "ok" and (audio is not None or text) else None


def _question(
    exchange: Exchange, outputs: Mapping[str, SystemOutput], unit: str | None, stratum: tuple[str, ...]
) -> ListeningItem:
    """Build the item of one benchmark question, with systems' outputs."""
    question = exchange.question
    choices = choices_of(question.fields)
    sound = exchange.audio_path if exchange.audio_path is not None and exchange.audio_path.is_file() else None
    return ListeningItem(
        question.id, unit, stratum, question.duration_s, outputs, sound, _texts(question.fields, question.prompt),
        tuple(choices.values()),
        _right(choices, question.expected), tuple(question.expected),
    )  # fmt: skip


def _texts(fields: Mapping[str, Any], prompt: str | None) -> tuple[tuple[str, str], ...]:
    """Return (heading, text) of a question: its field `question`, or else the prompt."""
    question = fields.get("question")
    if isinstance(question, str) and question.strip():
        return (("Question", question),)
    return (("Prompt", prompt),) if prompt else ()


def _right(choices: Mapping[str, str], expected: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the choices that are expected, by their texts or letters."""
    forms = {form.strip().casefold() for text in expected for form in (text, remove_label(text))}
    folded = [{text.strip().casefold(), letter.casefold()} for letter, text in choices.items()]
    return tuple(number for number, names in enumerate(folded) if names & forms)


@dataclass(frozen=True, slots=True)
class DrawnTrial:
    """A trial without its audio.

    Args:
        repeat_of: the index of the drawn trial that it repeats.
        check, choices, right: of a check of the rater, as in the key.
        ask: its question; empty where it looks like others.
    """

    item: ListeningItem
    systems: tuple[str, ...]
    training: bool = False
    repeat_of: int | None = None
    check: str = ""
    choices: tuple[str, ...] = ()
    right: tuple[int | None, ...] = ()
    ask: str = ""


def draw_order(items: Sequence[ListeningItem], seed: int) -> list[ListeningItem]:
    """Order items so that any number of first ones is balanced over the strata.

    Strata alternate, each in random order.
    """
    rng = random.Random(seed)
    groups: dict[tuple[str, ...], list[ListeningItem]] = defaultdict(list)
    for item in sorted(items, key=lambda one: one.id):
        groups[item.stratum].append(item)
    ordered = [groups[name] for name in sorted(groups)]
    for group in ordered:
        rng.shuffle(group)
    rng.shuffle(ordered)
    return [item for together in zip_longest(*ordered) for item in together if item is not None]


def trials_of(kind: str, systems: Sequence[str]) -> list[tuple[str, ...]]:
    """List the systems of each trial about one item, by the kind of test."""
    form = kind_of(kind).trial
    if form in ("none", "all"):
        return [tuple(systems) if form == "all" else ()]
    return list(combinations(systems, 2)) if form == "pairs" else [(system,) for system in systems]


def arrange(
    kind: str,
    systems: Sequence[str],
    items: Sequence[ListeningItem],
    training: int,
    repeats: int,
    seed: int,
    checks: Sequence[DrawnTrial] = (),
) -> list[DrawnTrial]:
    """Order the trials: checks and practice first, the others shuffled.

    Args:
        items: the first `training` are for practice, one trial each.
        repeats: trials shown twice, at most all.
        checks: those that look like ratings are shuffled in.
    """
    rng = random.Random(f"{seed} trials")
    every = trials_of(kind, systems)
    practice = [one for one in checks if one.ask]
    practice += [DrawnTrial(item, rng.choice(every), training=True) for item in items[:training]]
    counted = [DrawnTrial(item, shown) for item in items[training:] for shown in every]
    rng.shuffle(counted)
    again = rng.sample(range(len(counted)), min(repeats, len(counted)))
    counted += [one for one in checks if not one.ask]
    places = list(range(len(counted))) + [~index for index in again]
    rng.shuffle(places)
    at = {index: len(practice) + n for n, index in enumerate(places) if index >= 0}
    repeated = lambda n: DrawnTrial(counted[n].item, counted[n].systems, repeat_of=at[n])  # noqa: E731
    return practice + [counted[index] if index >= 0 else repeated(~index) for index in places]
