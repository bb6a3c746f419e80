"""Controls: what a model was given in place of the sound or the question, and what its answers have beyond those.

The same items are compared in pairs (`stats.paired`): everything given minus under the control, one comparison each.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from codec_bench.errors import UserError
from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.intervals import is_share
from codec_bench.stats.notes import Note
from codec_bench.stats.paired import compare_items, in_common, parts_table
from codec_bench.stats.recorded import items_of
from codec_bench.stats.sets import SETS, item_fold
from codec_bench.stats.summary_json import UNSET, SummaryPart
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.folders import run_folders
from codec_bench.store.record import Run

NONE, SILENCE, NOISE, ANOTHER, SHUFFLED, LEVEL = "none", "silence", "noise", "another", "shuffled", "level"
INSTEAD = {"sound": (AS_WRITTEN, NONE, SILENCE, NOISE, ANOTHER, SHUFFLED, LEVEL), "question": (AS_WRITTEN, NONE)}
_WORDS = {
    NONE: "text alone",
    SILENCE: "silence",
    NOISE: "noise",
    ANOTHER: "another sound",
    SHUFFLED: "shuffled sound",
    LEVEL: "sound at one level",
}
CONTROL, OTHER_SOUND = "control", "other_sound_of"
"""The subset that every question of a control has, and the field with the id of the item whose sound was given."""
_MARK = "control: "


@dataclass(frozen=True, slots=True)
class Control:
    """What a model is given; a control is everything but the sound and the question as the data have them.

    Args:
        sound: `given`, `none` (the text alone), `silence`, `noise`, `another` (that of another item of about the same
            length), `shuffled` (pieces of 0.5 s in another order) or `level` (all sounds at one level).
        question: `given` or `none`.
    """

    sound: str = AS_WRITTEN
    question: str = AS_WRITTEN

    def __post_init__(self) -> None:
        for name, known in INSTEAD.items():
            if (value := getattr(self, name)) not in known:
                raise UserError(f"the {name} is to be '{value}'; expected {', '.join(known)}")

    def __bool__(self) -> bool:
        return (self.sound, self.question) != (AS_WRITTEN, AS_WRITTEN)

    @property
    def words(self) -> str:
        """What the model is given, such as `text alone`; empty if it is given everything."""
        if self.question == AS_WRITTEN:
            return _WORDS.get(self.sound, "")
        more = {AS_WRITTEN: "", NONE: ""}.get(self.sound, f", {_WORDS.get(self.sound)}")
        return "options alone" if self.sound == NONE else f"without the question{more}"

    @property
    def changes(self) -> dict[str, str]:
        """What is not as given, as JSON values."""
        return {name: value for name, value in asdict(self).items() if value != AS_WRITTEN}

    @property
    def suffix(self) -> str:
        """What stands behind the name of the model in the folder of its run; empty if everything is given."""
        return "".join(f"+{name}-{value}" for name, value in self.changes.items())

    def label(self, model: str) -> str:
        """What a model is called where it stands beside the same one without the control."""
        return f"{model} ({self.words})" if self else model

    @property
    def column(self) -> str:
        """The subset of a run's questions that says which of them were answered right under this control."""
        return f"{_MARK}{self.words}"


NO_CONTROL = Control()
"""No control: the model is given what the data have."""


def control_of(run: Run) -> Control | None:
    """What the model was given in a run that asked it; None if the record does not hold what was asked."""
    recorded = (run.meta.get("fingerprint") or {}).get("asked")
    if not isinstance(recorded, Mapping):
        return None
    return Control(**recorded.get(CONTROL, {}))


def result_folders(folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The run folders at or under some folders, without those of controls; a `UserError` if there are none."""
    run_paths = run_folders(folders)
    results = []
    for folder in run_paths:
        with closing(Run(folder)) as run:
            results += [] if control_of(run) else [folder]
    if not results:
        raise UserError(
            f"'{run_paths[0]}' is a control and no result", hint="name the run in which the model was given everything"
        )
    return results


def marks_in(subsets: Mapping[str, Any]) -> list[str]:
    """How a question was answered under the controls of its run, such as `right with text alone`."""
    marks = {name.removeprefix(_MARK): mark for name, mark in subsets.items() if name.startswith(_MARK)}
    return [f"{mark} with {words}" for words, mark in marks.items()]


def without_marks(subsets: Mapping[str, Any]) -> dict[str, Any]:
    """Subsets without those that controls made."""
    return {name: value for name, value in subsets.items() if not name.startswith(_MARK)}


@dataclass(frozen=True, slots=True)
class Controlled(SummaryPart):
    """One metric with everything given and under one control.

    Args:
        control: what was given instead, such as `text alone`; `sound`, `question` as the options name it.
        given, value: over the `n` items with a score in both; `dropped` items lack one.
        difference, ci95, p, units, note, detectable: as in `PairedTest`.
        right, right_in_both: items answered right under the control, and of these with everything given.
        chance: what a guess among the options reaches.
    """

    control: str
    sound: str
    question: str
    metric: str
    unit: str = ""
    higher_is_better: bool | None = True
    given: float | None = None
    value: float | None = None
    n: int = 0
    dropped: int = 0
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    units: int = 0
    note: str | None = None
    detectable: float | None = None
    right: int = UNSET
    right_in_both: int = UNSET
    chance: float = UNSET

    @property
    def beyond(self) -> float | None:
        """The difference, so that more is better; None without one, or for a metric without a direction."""
        if self.difference is None or self.higher_is_better is None:
            return None
        return self.difference if self.higher_is_better else -self.difference

    @property
    def shows(self) -> bool | None:
        """Whether the interval of the difference leaves out 0; None where it is not known."""
        if self.ci95 is None:
            return False if self.difference == 0 and self.p == 1 else None
        return not self.ci95[0] <= 0 <= self.ci95[1]


def compare_controls(uncontrolled: Run, under: Run, control: Control, why: str | None) -> Iterator[Controlled]:
    """A run beside one of its controls, metric by metric, the benchmark's primary one first.

    Args:
        uncontrolled: with everything given. under: under the `control`. why: why the two cannot be compared, or None.
    """
    facts_of_control: dict[str, Any] = {"control": control.words, "sound": control.sound, "question": control.question}
    primary = (uncontrolled.meta.get("benchmark") or {}).get("primary")
    facts, others = uncontrolled.metrics, under.metrics
    for metric in sorted((name for name in facts if name in others), key=lambda name: name != primary):
        if facts[metric].get("aggregate") in SETS:
            continue
        other = Note("other_protocols") if facts[metric]["protocol"] != others[metric]["protocol"] else None
        if (note := why or other) is not None:
            yield Controlled(**facts_of_control, metric=metric, note=note)
        else:
            yield Controlled(**facts_of_control, metric=metric, **_compared(uncontrolled, under, metric, facts[metric]))


def _compared(uncontrolled: Run, under: Run, metric: str, facts: dict[str, Any]) -> dict[str, Any]:
    (system,), (same,) = uncontrolled.systems, under.systems
    sides = [list(items_of(run, name, metric)) for run, name in ((uncontrolled, system), (under, same))]
    comparison = compare_items(
        *sides, metric=metric, unit=facts.get("unit", ""), higher_is_better=facts.get("higher_is_better"),
        seed=(uncontrolled.meta.get("config") or {}).get("seed", 0), fold=item_fold(metric, facts.get("aggregate", "")),
        bounds=declared_bounds(facts),
    )  # fmt: skip
    test = comparison.test
    chances = [s.detail["chance"] for s in under.scores(same, metric) if s.value is not None and "chance" in s.detail]
    return {
        "unit": comparison.unit, "higher_is_better": comparison.higher_is_better,
        "given": comparison.value_a, "value": comparison.value_b, "n": comparison.pairs, "dropped": comparison.dropped,
        "difference": test.difference,
        "ci95": None if test.low is None or test.high is None else (test.low, test.high), "p": test.p,
        "units": test.units, "note": test.note, "detectable": test.detectable, **_right(sides),
        **({"chance": fmean(chances)} if chances else {}),
    }  # fmt: skip


def _right(sides: list[list[Any]]) -> dict[str, int]:
    a, b, _ = in_common(*sides)
    tables = [parts_table(items) for items in (a, b)]
    if not a or any(table.shape[1] != 2 or not is_share(table) for table in tables):
        return {}
    uncontrolled, under = (table[:, 0] == 1 for table in tables)
    return {"right": int(under.sum()), "right_in_both": int((uncontrolled & under).sum())}


def marks_of(under: Run, metric: str, ids: Collection[str]) -> dict[str, str]:
    """By item id whether it is `right`, `wrong` or `failed` under a control; nothing for other values than 0 and 1."""
    (same,) = under.systems
    if metric not in under.metrics:
        return {}
    values = {score.id: score.value for score in under.scores(same, metric)}
    if not values or not {value for value in values.values() if value is not None} <= {0.0, 1.0}:
        return {}
    words = {None: "failed", 0.0: "wrong", 1.0: "right"}
    return {id: words[values[id]] for id in ids if id in values}
