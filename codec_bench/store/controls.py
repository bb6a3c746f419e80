"""Controls: inputs that replace a question's sound or text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.folders import run_folders
from codec_bench.store.record import Run, recorded_request

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
"""Subset of every question of a control, and field with the id of the item whose sound replaced its own."""
_MARK = "control: "


@dataclass(frozen=True, slots=True)
class Control:
    """A control run: the audio or the question is replaced, to test what a model uses.

    Args:
        sound: `given`, `none` (the text alone), `silence`, `noise`, `another` (that of another item of similar length),
            `shuffled` (pieces of 0.5 s in another order) or `level` (all sounds at one level).
        question: `given` or `none`.
    """

    sound: str = AS_WRITTEN
    question: str = AS_WRITTEN

    def __post_init__(self) -> None:
        for name, known in INSTEAD.items():
            if (value := getattr(self, name)) not in known:
                raise UserError("option_choice", option=name, value=value, known=list(known))

    def __bool__(self) -> bool:
        return (self.sound, self.question) != (AS_WRITTEN, AS_WRITTEN)

    @property
    def words(self) -> str:
        """The control as shown in tables, such as `text alone`; "" for a run without one."""
        if self.question == AS_WRITTEN:
            return _WORDS.get(self.sound, "")
        more = {AS_WRITTEN: "", NONE: ""}.get(self.sound, f", {_WORDS.get(self.sound)}")
        return "options alone" if self.sound == NONE else f"without the question{more}"

    @property
    def changes(self) -> dict[str, str]:
        """The replaced inputs, as JSON values."""
        return {name: value for name, value in asdict(self).items() if value != AS_WRITTEN}

    @property
    def suffix(self) -> str:
        """Suffix of the model's name in its run folder; empty without a control."""
        return "".join(f"+{name}-{value}" for name, value in self.changes.items())

    def label(self, model: str) -> str:
        """Name of a model, with its control."""
        return f"{model} ({self.words})" if self else model

    @property
    def column(self) -> str:
        """The subset with a question's result under this control."""
        return f"{_MARK}{self.words}"


NO_CONTROL = Control()
"""No control: the inputs of the data."""


def control_of(run: Run) -> Control | None:
    """The control of a run; None if its request is not recorded."""
    recorded = recorded_request(run.meta)
    return Control(**recorded.get(CONTROL, {})) if recorded else None


def result_folders(folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The run folders at or under some folders, without controls; UserError if none."""
    run_paths = run_folders(folders)
    results = []
    for folder in run_paths:
        with closing(Run(folder)) as run:
            results += [] if control_of(run) else [folder]
    if not results:
        raise UserError("control_no_result", run=run_paths[0], hint="name the full run")
    return results


def marks_in(subsets: Mapping[str, Any]) -> list[str]:
    """List a question's results under controls, such as `right with text alone`."""
    marks = {name.removeprefix(_MARK): mark for name, mark in subsets.items() if name.startswith(_MARK)}
    return [f"{mark} with {words}" for words, mark in marks.items()]


def without_marks(subsets: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question's subsets without its results under controls."""
    return {name: value for name, value in subsets.items() if not name.startswith(_MARK)}
