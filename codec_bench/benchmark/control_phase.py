"""The last phase of a benchmark: the record of a model is told what the same model answered under controls.

Conventions
    The runs of controls stand beside that of the model, in folders of its name with what was given behind it. What they show is
    written into the record of the model, so that its page and its exports hold it wherever the folder goes: the differences as
    `controls`, and by question a subset such as `control: text alone` with `right`, `wrong` or `failed`.
    Runs are compared that asked and scored the same but for the control, and how many questions they took.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from codec_bench.stats.controls import beside_control, marks_of
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.controls import CONTROL, Control, control_of, without_marks
from codec_bench.store.record import DATABASE, Run

_MAY_DIFFER = (CONTROL, "limit", "repeats")


def tell_controls(folder: Path) -> bool:
    """Writes into the record of a model what its controls show; returns whether there are any.

    Args:
        folder: the run folder of the model, which may hold no record.

    Raises:
        UserError: a record is damaged, or that of the model cannot be written.
    """
    with ExitStack() as stack:
        beside = list(_controls_of(folder, stack))
        if not beside or not (folder / DATABASE).is_file():
            return False
        run = stack.enter_context(closing(Run(folder)))
        primary = str((run.meta.get("benchmark") or {}).get("primary"))
        ids = {id: number for number, id in run.query("SELECT number, id FROM samples")}
        found, marks = [], dict[int, dict[str, str]]()
        for control, under in beside:
            why = _unlike(run.meta, under.meta)
            found += [one.as_dict() for one in beside_control(run, under, control, why)]
            for id, mark in (marks_of(under, primary, ids) if why is None else {}).items():
                marks.setdefault(ids[id], {})[control.column] = mark
        rows = run.query("SELECT number, subsets FROM questions")
        subsets = {
            n: without_marks(run.json(held, where=f"the subsets of question {n}")) | marks.get(n, {})
            for n, held in rows
        }
        with closing(AnswerWriter(folder, run.meta["fingerprint"])) as writer:
            writer.write_subsets(subsets)
            writer.set_meta(controls=found)
    return True


def _controls_of(folder: Path, stack: ExitStack) -> Iterator[tuple[Control, Run]]:
    """The runs of the controls of a model, opened for as long as `stack` lasts."""
    for path in sorted(folder.parent.glob(f"{glob.escape(folder.name)}+*/{DATABASE}")):
        run = stack.enter_context(closing(Run(path.parent)))
        control = control_of(run)
        if control and path.parent.name == f"{folder.name}{control.suffix}":
            yield control, run


def _unlike(given: Mapping[str, Any], under: Mapping[str, Any]) -> str | None:
    """Why a run cannot be compared with one of its controls; None if it can."""
    if given.get("state") != "finished" or under.get("state") != "finished":
        return "one of the two is not finished"
    both = [meta["fingerprint"] for meta in (given, under)]
    asked = [{name: value for name, value in one["asked"].items() if name not in _MAY_DIFFER} for one in both]
    other = [name for name in {**asked[0], **asked[1]} if asked[0].get(name) != asked[1].get(name)]
    if other:
        return f"the two were asked with another {', another '.join(other)}"
    return None if both[0].get("scored") == both[1].get("scored") else "the two were scored by other rules"
