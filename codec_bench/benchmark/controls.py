"""Controls: replaced sounds, the useful ones per benchmark, and their records.

The record keeps the question as the data have it, so every score and judge is about the same item as without the
control. Only the request changes, and is the key of cached answers. Silence and noise have the length, rate and
channels of the sound; noise is Gaussian with an RMS of 0.05 (-26 dB of full scale). `level` gives all sounds that RMS,
and leaves silent ones silent. Random values are drawn by seed and id. The other item is among the `BLOCK` to `2 *
BLOCK` questions around this one, so memory does not grow with the data: by seed and ids one with another sound of at
most a quarter more or less length, else the nearest in length. Runs of controls are next to the model's run, in folders
with its name and a suffix. Their results are written into the model's record, to stay with its page and exports: the
differences as `controls`, and per question a subset such as `control: text alone` with `right`, `wrong` or `failed`.
Only runs that differ in nothing but the control and the number of questions are compared.
"""

from __future__ import annotations

import glob
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.audio.hash import content_hash
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.prompt import Prompt, part_reads
from codec_bench.benchmark.run_request import BenchmarkRequest
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models.base import ModelInfo
from codec_bench.stats.controls import compare_controls, outcomes_of
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.controls import (
    ANOTHER,
    CONTROL,
    LEVEL,
    NO_CONTROL,
    NOISE,
    NONE,
    OTHER_SOUND,
    SHUFFLED,
    SILENCE,
    Control,
    control_of,
    without_marks,
)
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.record import DATABASE, Run, recorded_request
from codec_bench.types import Audio, Request

Planned = tuple[Benchmark, Control]
"""A benchmark and its control."""
BLOCK = 128
ALIKE = 1.25
PIECE_S = 0.5
NOISE_RMS = 0.05
_LANGUAGE = {"language", "language_name"}
_MAY_DIFFER = (CONTROL, "limit", "repeats")


def check_control(control: Control, one: Benchmark, prompt: Prompt, model: str) -> None:
    """Check that a control (such as silence for the audio) changes a model's requests.

    Args:
        prompt: the benchmark's prompt for the model.
        model: its name, for messages.

    Raises:
        UserError: there is no sound to replace, no options to choose from without the question, or nothing left.
    """
    if control and one.wants == "likelihood":
        raise UserError("control_of_two_sounds", name=one.name, hint="leave out --sound, --question and --controls")
    if control.sound != AS_WRITTEN and not any(content.audio is not None for content in prompt.parts()):
        raise UserError(
            "control_changes_no_sound",
            name=one.name,
            model=model,
            sound=control.sound,
            hint="leave out --sound and --controls",
        )
    if control.sound == NONE and not _text_reads(prompt):
        raise UserError(
            "control_leaves_nothing",
            name=one.name,
            model=model,
            hint="--sound silence gives as much silence in its place",
        )
    if control.question != AS_WRITTEN and not _can_hide_question(one, prompt):
        raise UserError(
            "control_changes_no_question",
            name=one.name,
            question=control.question,
            hint="leave out --question; options within the text of a question cannot be separated from it",
        )


def useful_controls(one: Benchmark, info: ModelInfo) -> list[Control]:
    """The most informative controls: text alone, another sound, and options alone.

    If no text asks the question, silence replaces the text alone. Options alone needs a question with options.

    Raises:
        UserError: the benchmark sends such a model no sound.
    """
    prompt = one.prompt_for(info)
    check_control(Control(ANOTHER), one, prompt, info.name)
    asks = any(read - _LANGUAGE for read in _text_reads(prompt))
    alone = [Control(NONE, NONE)] if asks and _can_hide_question(one, prompt) else []
    return [Control(NONE if asks else SILENCE), Control(ANOTHER), *alone]


def with_controls(
    fitting: Sequence[Benchmark], info: ModelInfo, request: BenchmarkRequest
) -> tuple[list[Planned], dict[tuple[str, Control], UserError]]:
    """Pair each benchmark with its requested control, and the useful ones on request.

    Returns:
        The pairs, and the error of each benchmark that has no controls.
    """
    mine: list[Planned] = [(one, request.control) for one in fitting]
    without: dict[tuple[str, Control], UserError] = {}
    for one in fitting if request.controls else ():
        try:
            mine += [(one, control) for control in useful_controls(one, info)]
        except UserError as error:
            without[one.name, NO_CONTROL] = error
    return [each for each in mine if (each[0].name, NO_CONTROL) not in without], without


def _text_reads(prompt: Prompt) -> list[set[str]]:
    """The columns that each text of the prompt's last turn reads.

    Of a model with named inputs, only texts that read more than the language.
    """
    texts = [content_part for content_part in prompt.parts(last=True) if content_part.audio is None]
    read = [part_reads(content_part) for content_part in texts]
    return [names for names in read if names - _LANGUAGE] if prompt.reads == "fields" else read


def _can_hide_question(one: Benchmark, prompt: Prompt) -> bool:
    return one.has_options and "question" in prompt.columns


def control_questions(questions: Iterable[Question], control: Control, seed: int) -> Iterable[Question]:
    """Apply a control to questions, each with the item of its replacement sound."""
    return _Controlled(questions, control, seed) if control else questions


@dataclass(frozen=True, slots=True)
class _Controlled:
    """Questions under a control; every iteration starts from the first."""

    questions: Iterable[Question]
    control: Control
    seed: int

    def __iter__(self) -> Iterator[Question]:
        paired = _paired(self.questions, self.seed) if self.control.sound == ANOTHER else self.questions
        for question in paired:
            yield replace(question, subsets={**question.subsets, CONTROL: self.control.words})


def _paired(questions: Iterable[Question], seed: int) -> Iterator[Question]:
    """Each question with the item of its replacement sound."""
    for block in _blocks(questions):
        durations: dict[str, tuple[float, str]] = {}
        silent: dict[str, Diagnostic] = {}
        for question in block:
            try:
                durations |= _measured(question)
            except AudioError as error:
                silent[question.id] = of_error(error)
        by_id = {question.id: question for question in block}
        for question in block:
            if question.problem is not None or question.id not in durations:
                yield replace(question, problem=question.problem or silent.get(question.id))
                continue
            other = _replacement_item(question.id, durations, seed)
            if other is None:
                yield replace(question, problem=Diagnostic("no_other_sound"))
            else:
                yield replace(question, other=by_id[other], fields={**question.fields, OTHER_SOUND: other})


def _blocks(questions: Iterable[Question]) -> Iterator[list[Question]]:
    """Split questions into blocks of `BLOCK`; the last has up to twice as many."""
    held: list[Question] = []
    for question in questions:
        held.append(question)
        if len(held) == 2 * BLOCK:
            yield held[:BLOCK]
            held = held[BLOCK:]
    yield held


def _measured(question: Question) -> dict[str, tuple[float, str]]:
    """{question id: (seconds, hash)} of a question's audio; empty if it has none."""
    row_clip = next((value for value in question.fields.values() if isinstance(value, Clip)), None)
    clip = question.audio or row_clip
    if clip is None or question.problem is not None:
        return {}
    audio = clip.read()
    return {question.id: (audio.duration_s, content_hash(audio.samples, audio.sample_rate_hz))}


def _replacement_item(id: str, durations: dict[str, tuple[float, str]], seed: int) -> str | None:
    """The id of the item whose audio replaces that of `id`; None if none differs.

    Args:
        durations: (seconds, hash) of the audio of each item.
    """
    seconds, own_hash = durations[id]
    distances = {name: abs(log(s / seconds)) for name, (s, sound) in durations.items() if sound != own_hash}
    near = [name for name, distance in distances.items() if distance <= log(ALIKE)]
    if near:
        return min(near, key=lambda name: _digest(seed, id, name))
    return min(distances, key=lambda name: (distances[name], name), default=None)


def apply_control(request: Request, control: Control, seed: int, id: str, other: Callable[[], Request]) -> Request:
    """The request with its audio replaced or removed, as the control says.

    Args:
        id: of the question, the same for all of its draws.
        other: returns the request of the other item, whose audio replaces this one's.

    Raises:
        UserError: the other item has no valid question, or the last turn keeps no text.
    """
    others = _clips(other()) if control.sound == ANOTHER else []
    count = 0

    def instead(content_part: Any) -> Any:
        """The replacement of a sound, None to remove it; other content unchanged."""
        nonlocal count
        if not isinstance(content_part, Clip) or control.sound == AS_WRITTEN:
            return content_part
        count += 1
        if control.sound == ANOTHER:
            return others[(count - 1) % len(others)]
        key = _digest(seed, id, str(count))
        return (
            None if control.sound == NONE else _ReplacedClip(b"", content_part.name, content_part, control.sound, key)
        )

    def replaced(values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(new for value in values if (new := instead(value)) is not None)

    messages = tuple(replace(turn, content=replaced(turn.content)) for turn in request.messages)
    if messages and not messages[-1].content:
        raise UserError("nothing_without_sound")
    fields = {name: new for name, value in request.fields.items() if (new := instead(value)) is not None}
    remaining = (now for now, was in zip(messages, request.messages) if now.content or not was.content)
    return replace(request, messages=tuple(remaining), fields=fields)


def _clips(request: Request) -> list[Clip]:
    from codec_bench.models.audio_payloads import clips_of

    if clips := list(clips_of(request)):
        return clips
    raise UserError("control_item_without_sound", id=request.id)


def without_question(question: Question) -> Question:
    """A question whose text is empty; its options stay."""
    return replace(question, fields={**question.fields, "question": ""})


def _digest(seed: int, *names: str) -> bytes:
    return hashlib.blake2b(":".join((str(seed), *names, CONTROL)).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, eq=False)
class _ReplacedClip(Clip):
    """A replacement of a sound, computed when it is read; has no file.

    Args:
        replacement: `silence`, `noise`, `shuffled` or `level`.
        key: seed of the random choices.
    """

    of: Clip | None = None
    replacement: str = SILENCE
    key: bytes = b""

    def _held(self) -> Audio:
        """Read the original audio and compute its replacement."""
        assert self.of is not None
        audio = self.of.read()
        if self.replacement == SHUFFLED:
            return _shuffled(audio, self.key)
        if self.replacement == LEVEL:
            return _at_one_level(audio)
        samples = np.zeros_like(audio.samples)
        if self.replacement == NOISE:
            draw = np.random.default_rng(int.from_bytes(self.key, "big"))
            samples = (NOISE_RMS * draw.standard_normal(samples.shape)).astype(np.float32)
        return Audio(samples, audio.sample_rate_hz)


def _at_one_level(audio: Audio) -> Audio:
    """Scale audio to an RMS of 0.05, or less if a peak would exceed full scale."""
    rms = float(np.sqrt(np.mean(np.square(audio.samples, dtype=np.float64)))) if audio.samples.size else 0.0
    peak = float(np.abs(audio.samples).max(initial=0.0))
    gain = min(NOISE_RMS / rms, 1.0 / peak) if rms > 0 else 1.0
    return Audio((gain * audio.samples).astype(np.float32), audio.sample_rate_hz)


def _shuffled(audio: Audio, key: bytes) -> Audio:
    """Cut audio into segments of 0.5 s and put them into an order drawn by `key`."""
    step = max(1, round(PIECE_S * audio.sample_rate_hz))
    pieces = [audio.samples[:, at : at + step] for at in range(0, audio.samples.shape[1], step)]
    if len(pieces) < 2:
        raise AudioError("sound_too_short_to_cut", duration_s=audio.duration_s, piece_s=PIECE_S)
    order: Sequence[int] = random.Random(key).sample(range(len(pieces)), len(pieces))
    if list(order) == sorted(order):
        order = [*order[1:], order[0]]
    return Audio(np.concatenate([pieces[n] for n in order], axis=1), audio.sample_rate_hz)


def record_controls(folder: Path) -> bool:
    """Record the results of a model's controls; returns whether there are any.

    Args:
        folder: the run folder of the model, which may hold no record.

    Raises:
        UserError: a record is damaged, or that of the model cannot be written.
    """
    with ExitStack() as stack:
        siblings = list(_controls_of(folder, stack))
        if not siblings or not (folder / DATABASE).is_file():
            return False
        run = stack.enter_context(closing(Run(folder)))
        primary = str((run.meta.get("benchmark") or {}).get("primary"))
        ids = {id: number for number, id in run.query("SELECT number, id FROM samples")}
        comparisons, marks = [], dict[int, dict[str, str]]()
        for control, under in siblings:
            why = _mismatch(run.meta, under.meta)
            comparisons += [one.as_dict() for one in compare_controls(run, under, control, why)]
            for id, mark in (outcomes_of(under, primary, ids) if why is None else {}).items():
                marks.setdefault(ids[id], {})[control.column] = mark
        rows = run.query("SELECT number, subsets FROM questions")
        stored = {n: run.json(held, where=f"the subsets of question {n}") for n, held in rows}
        subsets = {n: without_marks(held) | marks.get(n, {}) for n, held in stored.items()}
        with closing(AnswerWriter(folder, run.meta["fingerprint"])) as writer:
            writer.write_subsets(subsets)
            writer.set_meta(controls=comparisons)
    return True


def _controls_of(folder: Path, stack: ExitStack) -> Iterator[tuple[Control, Run]]:
    """The control runs of a model, open for as long as `stack` lasts."""
    for path in sorted(folder.parent.glob(f"{glob.escape(folder.name)}+*/{DATABASE}")):
        run = stack.enter_context(closing(Run(path.parent)))
        control = control_of(run)
        if control and path.parent.name == f"{folder.name}{control.suffix}":
            yield control, run


def _mismatch(controlled: Mapping[str, Any], under: Mapping[str, Any]) -> Diagnostic | None:
    """Why a run cannot be compared with one of its controls; None if it can.

    Args:
        controlled: metadata of the model's run.
        under: metadata of the run of the control.
    """
    if controlled.get("state") != "finished" or under.get("state") != "finished":
        return Diagnostic("control_unfinished")
    both = [recorded_request(meta) for meta in (controlled, under)]
    requests = [{name: value for name, value in one.items() if name not in _MAY_DIFFER} for one in both]
    other = [name for name in {**requests[0], **requests[1]} if requests[0].get(name) != requests[1].get(name)]
    if other:
        return Diagnostic("control_differs", fields=other)
    rules = [meta["fingerprint"].get("scored") for meta in (controlled, under)]
    return None if rules[0] == rules[1] else Diagnostic("control_other_rules")
