"""Baselines for judges: answers of another model, or of a stored run."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.judge.metric import Alternative
from codec_bench.messages.errors import UserError
from codec_bench.store.answers import Exchange, content_of, exchanges
from codec_bench.store.controls import control_of
from codec_bench.store.folders import run_folders
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import DATABASE, Run, recorded_request
from codec_bench.store.sound_files import check_sound


@dataclass(frozen=True, slots=True)
class Baseline:
    """The answers of one other model to a benchmark, with which a judge compares.

    Args:
        held: the answers by question, with a hash of each question.
    """

    folder: Path
    held: dict[str, tuple[str, Alternative]] = field(default_factory=dict)

    def of(self, exchange: Exchange) -> Alternative | None:
        """The baseline's answer to a recorded question; None if missing or different."""
        question = exchange.question
        content, preferred = self.held.get(question.id, ("", None))
        return preferred if content == content_of(question.fields, question.expected) else None


def baseline_of(folder: str | None, baseline_folder: Path | None, benchmark: str) -> Baseline | None:
    """Read the baseline's answers to a benchmark; None if the command has no baseline.

    Args:
        folder: of a stored run, or a folder of runs; or None.
        baseline_folder: the run folder of a model of the command, which precedes `folder`; or None.

    Raises:
        UserError: there is no run of that benchmark, or there are several.
    """
    if baseline_folder is None and folder is None:
        return None
    if baseline_folder is not None and not (baseline_folder / DATABASE).is_file():
        raise UserError("baseline_without_answers", baseline_folder=baseline_folder, hint="run it first")
    path = baseline_folder if baseline_folder is not None else stored_run(str(folder), benchmark)
    held = {}
    with closing(Run(path)) as run:
        for one in exchanges(run):
            if one.answer.status == "ok":
                text = (one.reading.parsed if one.reading else None) or cut_reasoning(one.answer.text or "").text
                sound = Clip(str(check_sound(one.answer_path))) if one.answer_path is not None else None
                held[one.question.id] = content_of(one.question.fields, one.question.expected), Alternative(text, sound)
    return Baseline(path, held)


def label_of(folder: str | None, model: str | None, benchmark: str) -> str:
    """A baseline's label in the protocol: model and, for a stored run, a hash; or "".

    Raises:
        UserError: as `baseline_of`.
    """
    if folder is None or model is not None:
        return model or ""
    with closing(Run(stored_run(folder, benchmark))) as run:
        return label_of_run(run)


def label_of_run(run: Run) -> str:
    """The label of a stored run: its system, with a hash of its questions."""
    fingerprint = json.dumps(recorded_request(run.meta), sort_keys=True)
    return f"{next(iter(run.systems))}-{hashlib.blake2b(fingerprint.encode(), digest_size=4).hexdigest()}"


def stored_run(named: str, benchmark: str) -> Path:
    """Find the only run of a benchmark in a folder; runs of controls do not count.

    Raises:
        UserError: there is none, or there are several.
    """
    if not Path(named).is_dir():
        raise UserError("not_a_baseline", baseline=named)
    paths = []
    for path in run_folders(named):
        with closing(Run(path)) as run:
            if (run.meta.get("config") or {}).get("benchmark") == benchmark and not control_of(run):
                paths.append(path)
    if len(paths) != 1:
        raise UserError(
            "baseline_of_several_runs",
            baseline=named,
            runs=len(paths),
            benchmark=benchmark,
            hint="name the folder of one run, such as OUT/BENCHMARK/MODEL",
        )
    return paths[0]
