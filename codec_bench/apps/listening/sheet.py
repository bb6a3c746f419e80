"""Writes a listening test: selects items, equalises sounds, writes page and key.

The page has ids, audio and texts. System names, sample ids and runs are in the key only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from codec_bench.apps.listening.checks import BEEPS, GOLD, SOUND_SLOT, TRAP, Gold, beeping, make_checks
from codec_bench.apps.listening.key import (
    ANCHOR_ROLE,
    REFERENCE,
    REFERENCE_ROLE,
    SUFFIX,
    SYSTEM_ROLE,
    UNKNOWN_ROLE,
    Key,
    Stimulus,
    Trial,
    anchor_name,
    sheet_id,
    write_key,
)
from codec_bench.apps.listening.kinds import Kind, question_of, scales_of
from codec_bench.apps.listening.material import DrawnTrial, ListeningItem, Material, arrange, draw_order, trials_of
from codec_bench.apps.listening.page import write_sheet_page
from codec_bench.apps.listening.sound import CUTOFFS_HZ, FORMAT, anchor, equalise_sizes, match_sounds
from codec_bench.messages import Diagnostic, to_json
from codec_bench.messages.errors import AudioError, UserError, on_disk
from codec_bench.types import Audio

MOST_SIGNALS = 12
"""Limit of signals a trial by ITU-R BS.1534-3, section 5.3, without the open reference."""
_QUESTION = "(question)"

Encode = Callable[[Mapping[str, Audio]], Mapping[str, bytes]]
_TROUBLES = 3
"""How many problems are named."""


@dataclass(frozen=True, slots=True)
class ListeningPlan:
    """The plan of a test.

    Args:
        scale: lowest and highest value.
        anchors: names in `anchor.CUTOFFS_HZ`.
        reference: whether the reference is open; None for the kind's default.
        items, training, repeats: rated items, practice items, repeated trials.
        longest_s: of a reference.
        sound_mb: limit of the audio in megabytes.
        checks: names in `checks.CHECKS`.
        traps: number of sounds that break off into beeps.
        session: trials between breaks.
        session_minutes: minutes between breaks.
        loudness_lufs: target; None keeps levels.
        screening: rules that exclude raters; None for the kind's.
        digits: a folder of recorded digits.
    """

    kind: Kind
    scale: tuple[int, int]
    anchors: tuple[str, ...]
    reference: bool | None
    items: int
    training: int
    repeats: int
    longest_s: float | None
    sound_mb: float
    title: str
    instructions: tuple[str, ...]
    seed: int
    checks: tuple[str, ...] = ()
    gold: tuple[Gold, ...] = ()
    traps: int = 0
    session: int | None = None
    loudness_lufs: float | None = None
    screening: tuple[str, ...] | None = None
    session_minutes: float | None = None
    digits: Path | None = None


@dataclass(frozen=True, slots=True)
class ListeningSheet:
    """A written listening test.

    Args:
        page: the page, or the folder for webMUSHRA.
        key: its key, which raters must not see.
        items: rated ones.
        trials: per rater, with `training` and `repeats` ones.
        sound: the audio format.
        sound_mb: of it in the page.
        page_mb: of the whole page.
        left_out: excluded items by reason.
    """

    page: Path
    key: Path
    sheet: str
    kind: str
    systems: tuple[str, ...]
    items: int
    trials: int
    training: int
    repeats: int
    sound: str
    sound_mb: float
    page_mb: float
    left_out: Mapping[Diagnostic, int]
    notes: Sequence[Diagnostic]

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            **asdict(self),
            "page": str(self.page),
            "key": str(self.key),
            "left_out": to_json([{"count": n, "reason": why} for why, n in self.left_out.items()]),
            **to_json({"notes": self.notes}),
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """The trials of a test, and the encoded sounds of each item."""

    trials: Sequence[DrawnTrial]
    files: Mapping[str, Mapping[str, bytes]]
    seconds: Mapping[str, Mapping[str, float]]
    excluded: Counter[Diagnostic]
    notes: tuple[Diagnostic, ...]


def select(material: Material, plan: ListeningPlan, encode: Encode, *, rate_hz: int | None = None) -> Selection:
    """Select as many items as planned, add checks, and order the trials.

    Args:
        encode: encodes the sounds of one item, by name.
        rate_hz: of all sounds; None for the highest of each item.

    Raises:
        UserError: no item can be used, or the audio is larger than planned.
    """
    _check_systems(material, plan)
    excluded = Counter(material.excluded)
    files: dict[str, Mapping[str, bytes]] = {}
    seconds: dict[str, Mapping[str, float]] = {}

    def add(id: str, sounds: Mapping[str, Audio]) -> None:
        files[id] = encode(sounds)
        seconds[id] = {name: sound.num_samples / sound.sample_rate_hz for name, sound in sounds.items()}

    selected: list[ListeningItem] = []
    first: dict[str, Audio] = {}
    troubles: list[str] = []
    size = 0.0
    shown = len(trials_of(plan.kind.name, material.systems))
    again = 1 + plan.repeats / (shown * plan.items)
    for item in draw_order(material.items, plan.seed):
        if len(selected) == plan.training + plan.items:
            break
        reference = material.reference(item)
        why = _problem_of(item, plan, reference, material)
        if why is not None:
            excluded[why] += 1
            continue
        try:
            sounds = _sounds(item, plan, reference, material, rate_hz)
            add(item.id, sounds)
        except AudioError as error:
            excluded[Diagnostic("sound_unusable")] += 1
            troubles.append(error.message)
            continue
        selected.append(item)
        first = first or sounds
        # A practice item has one trial.
        size += again * _page_bytes(files[item.id], plan, material)
        if size > plan.sound_mb * 1e6:
            _refuse_size(len(selected), plan)
    if not selected:
        reasons = [Diagnostic("times_excluded", times=count, cause=why) for why, count in excluded.most_common()]
        raise UserError(
            "no_item_for_sheet",
            reasons=reasons or [Diagnostic("run_without_items")],
            hint="keep audio with eval --save-audio all, or name the folder of a system's audio with --audio "
            "NAME=FOLDER",
        )
    training = min(plan.training, len(selected) - 1)
    notes = [Diagnostic("item_left_out", cause=trouble) for trouble in troubles[:_TROUBLES]]
    if len(troubles) > _TROUBLES:
        notes.append(Diagnostic("more_items_left_out", items=len(troubles) - _TROUBLES))
    if len(selected) < plan.training + plan.items:
        requested = plan.items + plan.training
        notes.append(Diagnostic("few_usable_items", requested=requested, usable=len(selected), training=training))
    checks = []
    for drawn, check_sounds in _checks(plan, material, selected[training:], first, rate_hz):
        add(drawn.item.id, check_sounds)
        checks.append(drawn)
    trials = arrange(plan.kind.name, material.systems, selected, training, plan.repeats, plan.seed, checks)
    return Selection(trials, files, seconds, excluded, tuple(notes))


def _checks(
    plan: ListeningPlan,
    material: Material,
    items: Sequence[ListeningItem],
    first: Mapping[str, Audio],
    rate_hz: int | None,
) -> Iterator[tuple[DrawnTrial, Mapping[str, Audio]]]:
    """Yield the trials of checks, gold questions and traps, with their audio.

    Args:
        items: from which traps are made.
        first: the first item's audio.
    """
    if plan.checks:
        if not first:
            raise UserError("checks_need_sounds", hint="leave --checks out")
        yield from make_checks(plan.checks, next(iter(first.values())), plan.seed, plan.digits)
    rng = Random(f"{plan.seed} traps")
    count = max(len(plan.kind.scales), 1)
    for number, gold in enumerate(plan.gold, 1):
        paths = {SOUND_SLOT: gold.audio} | ({REFERENCE: gold.reference} if gold.reference is not None else {})
        sounds = match_sounds(paths, rate_hz=rate_hz, loudness_lufs=plan.loudness_lufs)
        item = ListeningItem(f"gold {number}", None, (), None, {})
        yield DrawnTrial(item, (SOUND_SLOT,), check=GOLD, right=gold.right), sounds
    for number in range(plan.traps):
        item, value = items[number % len(items)], rng.randint(max(plan.scale[0], 1), plan.scale[1])
        sounds = _sounds(item, plan, material.reference(item), material, rate_hz)
        beeped = beeping(sounds[rng.choice(material.systems)], value)
        references = {name: sound for name, sound in sounds.items() if name == REFERENCE}
        item = ListeningItem(f"trap {number + 1}", None, (), None, {})
        drawn = DrawnTrial(item, (SOUND_SLOT,), check=TRAP, right=(value,) * count)
        yield drawn, {SOUND_SLOT: beeped, **references}


def _check_systems(material: Material, plan: ListeningPlan) -> None:
    """Raise UserError if the kind of test does not fit the number or kind of systems."""
    kind, count = plan.kind, len(material.systems)
    if kind.trial == "pairs" and count < 2:
        raise UserError(
            "kind_needs_two_systems", kind=kind.measures[0], count=count, hint="name two with --systems A,B"
        )
    if (kind.sounds_only or plan.gold or plan.traps or plan.loudness_lufs is not None) and material.answers:
        subject = "gold questions, traps and levels are of"
        if kind.sounds_only:
            subject = f"a test of the kind {kind.name} compares"
        raise UserError("comparison_needs_reference", subject=subject, hint="take the kind rating or preference")
    signals = count + 1 + len(plan.anchors)
    if kind.trial == "all" and signals > MOST_SIGNALS:
        raise UserError(
            "too_many_signals",
            count=signals,
            most=MOST_SIGNALS,
            hint=f"choose up to {MOST_SIGNALS - 1 - len(plan.anchors)} systems with --systems",
        )


def _problem_of(
    item: ListeningItem, plan: ListeningPlan, reference: Path | None, material: Material
) -> Diagnostic | None:
    """Return why an item cannot be used, or None."""
    if plan.longest_s is not None and item.duration_s is not None and item.duration_s > plan.longest_s:
        return Diagnostic("item_too_long", limit_s=plan.longest_s)
    needs = plan.kind.hidden or plan.kind.open == "must" or (plan.reference is True and not material.answers)
    if needs and reference is None:
        return Diagnostic("item_without_reference")
    if plan.kind.answer == "option" and not item.choices:
        return Diagnostic("no_options")
    return None


def _is_open(plan: ListeningPlan, material: Material) -> bool:
    """Whether raters can play the reference, or the audio of the question."""
    if material.answers:
        return True
    return plan.kind.open in ("must", "default") if plan.reference is None else plan.reference


def _sounds(
    item: ListeningItem, plan: ListeningPlan, reference: Path | None, material: Material, rate_hz: int | None
) -> dict[str, Audio]:
    """Return an item's sounds at one rate: systems, reference and anchors, by name.

    Args:
        reference: its file; None if there is none.
    """
    paths = {name: output.audio for name, output in item.outputs.items() if output.audio is not None}
    if reference is None or not (plan.kind.hidden or _is_open(plan, material)):
        return match_sounds(paths, rate_hz=rate_hz, loudness_lufs=plan.loudness_lufs)
    if material.answers:  # a question is another sound than its answers
        return {**match_sounds(paths, rate_hz=rate_hz), **match_sounds({_QUESTION: reference}, rate_hz=rate_hz)}
    sounds = match_sounds({REFERENCE: reference, **paths}, rate_hz=rate_hz, loudness_lufs=plan.loudness_lufs)
    if plan.kind.hidden:
        if len({sound.num_samples for sound in sounds.values()}) > 1:
            raise AudioError("sound_lengths_differ", id=item.id)
        sounds |= {anchor_name(name): anchor(sounds[REFERENCE], CUTOFFS_HZ[name]) for name in plan.anchors}
    return sounds


def _page_bytes(files: Mapping[str, bytes], plan: ListeningPlan, material: Material) -> int:
    """Return the bytes of an item's audio in the page, as base64 over all its trials."""
    base64 = {name: 4 * -(-len(held) // 3) for name, held in files.items()}
    # The open and the hidden reference, and X, have files of one size.
    alone = base64.get(REFERENCE, 0) * (_is_open(plan, material) + plan.kind.hidden + plan.kind.unknown)
    alone += base64.get(_QUESTION, 0) + sum(base64[anchor_name(name)] for name in plan.anchors)
    trials = trials_of(plan.kind.name, material.systems)
    return sum(alone + sum(base64.get(name, 0) for name in systems) for systems in trials)


def _refuse_size(count: int, plan: ListeningPlan) -> None:
    """Raise UserError with the number of items that would fit."""
    fit = max(count - 1 - plan.training, 0)
    raise UserError(
        "page_too_large",
        items=plan.items + plan.training,
        most_mb=plan.sound_mb,
        fitting=count - 1,
        hint=f"{f'--items {fit},' if fit else 'choose'} fewer systems, shorter items (--longest-s), or more room "
        "(--sound-mb)",
    )


def name_trials(selection: Selection, plan: ListeningPlan) -> tuple[Trial, ...]:
    """Build the trials with random order of stimuli, and with ids as on the page."""
    trials, seconds = selection.trials, selection.seconds
    rng = Random(f"{plan.seed} stimuli")
    named = []
    number = 0
    width = len(str(len(trials)))
    ids = [f"t{n + 1:0{width}d}" for n in range(len(trials))]
    for id, drawn in zip(ids, trials):
        roles = [(SYSTEM_ROLE, name) for name in drawn.systems]
        if plan.kind.hidden and not drawn.check:
            roles += [(REFERENCE_ROLE, REFERENCE), *((ANCHOR_ROLE, anchor_name(name)) for name in plan.anchors)]
        if not drawn.ask:
            rng.shuffle(roles)
        if plan.kind.unknown and not drawn.check:
            roles.append((UNKNOWN_ROLE, rng.choice(roles)[1]))
        stimuli = tuple(Stimulus(f"s{number + n + 1:04d}", *one) for n, one in enumerate(roles))
        number += len(stimuli)
        item, long = drawn.item, seconds.get(drawn.item.id, {})
        choices, right = (item.choices, item.right) if plan.kind.answer == "option" else (drawn.choices, drawn.right)
        named.append(
            Trial(
                id, item.id, item.speaker, stimuli, drawn.training,
                None if drawn.repeat_of is None else ids[drawn.repeat_of], choices, right, drawn.check,
                min((long[one.system] for one in stimuli if one.system in long), default=None),
            )
        )  # fmt: skip
    return tuple(named)


def make_key(material: Material, plan: ListeningPlan, trials: tuple[Trial, ...]) -> Key:
    """Build the key: which system each stimulus is; without the hash of the page."""
    has_reference = plan.kind.open == "must" or (plan.reference is True and not material.answers)
    runs = tuple(str(run.folder) for run in material.runs)
    key = Key(
        "", plan.kind.name, plan.scale, has_reference, material.answers, tuple(material.systems), runs, plan.seed,
        trials, screening=plan.screening, loudness_lufs=plan.loudness_lufs,
    )  # fmt: skip
    return replace(key, sheet=sheet_id(asdict(key)))


def write_sheet(material: Material, plan: ListeningPlan, page: Path) -> ListeningSheet:
    """Write the page of a test, and its key with the ending `.key.json`."""
    selection = select(material, plan, equalise_sizes)
    key = make_key(material, plan, name_trials(selection, plan))
    clips: list[bytes] = []
    kind, facts = plan.kind, {"has_reference": key.beside_reference, "answers": material.answers}
    instructions = [*plan.instructions, *([BEEPS] if plan.traps else [])]
    if plan.loudness_lufs is not None:
        instructions.append(f"All sounds were brought to a loudness of {plan.loudness_lufs:g} LUFS (ITU-R BS.1770).")
    data = {
        "sheet": key.sheet, "kind": kind.name, "form": "sliders" if kind.labels else kind.answer, "title": plan.title,
        "instructions": instructions,
        "question": question_of(kind, **facts), "scale": list(plan.scale), "step": kind.step,
        "labels": list(kind.labels),
        "scales": [asdict(scale) for scale in scales_of(kind, plan.scale, **facts)],
        "open": "Question" if material.answers else "Reference", "plays_reference": kind.plays_reference,
        "session": plan.session, "minutes": plan.session_minutes,
        "trials": [
            _shown(trial, drawn, selection.files.get(drawn.item.id, {}), material, clips, _is_open(plan, material))
            for trial, drawn in zip(key.trials, selection.trials)
        ],
    }  # fmt: skip
    sound_mb = sum(4 * -(-len(clip) // 3) for clip in clips) / 1e6
    with on_disk("file_not_writable", path=page):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_sheet_page(page, plan.title, {**data, "sound": f"{FORMAT}, {sound_mb:.1f} MB"}, clips)
        written = page.read_bytes()
    key = replace(key, page_sha256=hashlib.sha256(written).hexdigest())
    key_path = page.with_name(page.name.removesuffix(".html") + SUFFIX)
    write_key(key, key_path)
    return written_sheet(page, key_path, key, selection, (FORMAT, sound_mb, len(written) / 1e6))


def written_sheet(
    page: Path, key_path: Path, key: Key, selection: Selection, sound: tuple[str, float, float]
) -> ListeningSheet:
    """Describe the written test; `sound` is the format, audio and total megabytes."""
    return ListeningSheet(
        page, key_path, key.sheet, key.kind, key.systems, len({trial.item for trial in key.counted}), len(key.trials),
        sum(trial.training for trial in key.trials), sum(trial.repeat_of is not None for trial in key.trials), *sound,
        selection.excluded, selection.notes,
    )  # fmt: skip


def _shown(
    trial: Trial, drawn: DrawnTrial, files: Mapping[str, bytes], material: Material, clips: list[bytes], is_open: bool
) -> dict[str, Any]:
    """Build what the page shows of a trial, without systems; appends audio to `clips`.

    Args:
        files: the item's audio by name.
        is_open: whether the reference can be played.
    """
    item = drawn.item

    def clip(name: str) -> int | None:
        if name not in files:
            return None
        clips.append(files[name])
        return len(clips) - 1

    shows_all = material.answers and not trial.choices and not trial.check
    expected = [("Expected answer", " / ".join(item.expected))] if item.expected and shows_all else []
    options = [("Options", "\n".join(item.choices))] if item.choices and shows_all else []
    texts = [*item.texts, *options, *expected]
    has_stimuli = bool(trial.stimuli)
    return {
        "id": trial.id, "training": trial.training, "check": drawn.ask, "texts": texts if has_stimuli else [],
        "edit": [] if has_stimuli else texts,
        "open": clip(_QUESTION if material.answers else REFERENCE) if is_open else None,
        "x": next((one.id for one in trial.stimuli if one.role == UNKNOWN_ROLE), None),
        "stimuli": [
            {"id": one.id, "clip": clip(one.system),
                "text": item.outputs[one.system].text if one.system in item.outputs else None}
            for one in trial.stimuli
        ],
        "choices": list(trial.choices),
    }  # fmt: skip
