"""What was asked of benchmarks, where each of their runs lies, and what its record is told apart by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codec_bench.api import Running
from codec_bench.benchmark import Benchmark
from codec_bench.engine.scheme import Scheme
from codec_bench.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter

Phase = Literal["both", "answers", "scores"]
PHASES: tuple[str, ...] = ("both", "answers", "scores")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@-]+")


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, the same for every benchmark and model."""

    phase: Phase
    data: str | None
    seed: int
    limit: int | None
    judge: str | None
    rescore: bool
    options: Mapping[str, Mapping[str, Any]]
    running: Running


def run_folder(folder: Path, benchmark: str, model: str) -> Path:
    """Where the run of one benchmark and model lies."""
    return folder / safe(benchmark) / safe(model)


def safe(name: str) -> str:
    """A name as that of a folder."""
    return _UNSAFE.sub("_", name).strip(".") or "_"


@contextmanager
def writing(
    folder: Path, asked: Mapping[str, Any], scored: Mapping[str, Any], *, rescore: bool = False
) -> Iterator[AnswerWriter]:
    """The record of one run, opened for writing.

    Raises:
        RunMismatch: it was begun with other questions or another model, or its scores follow other rules.
    """
    writer = AnswerWriter(folder, {"asked": asked, "scored": scored}, replacing=("scored",) if rescore else ())
    try:
        if rescore:
            writer.forget_scores()
        yield writer
    finally:
        writer.close()


def scheme_of(one: Benchmark, answer_steps: Sequence[str], judge: str | None) -> Scheme:
    """How a benchmark's answers are scored, where the prompt's format needs some steps first."""
    return Scheme.of([*answer_steps, *one.process], one.own_steps, judge)


def scored(one: Benchmark, scheme: Scheme, request: Request) -> dict[str, Any]:
    """Everything that changes a score."""
    judge = None
    if scheme.ratings and request.judge is not None:
        judge = dict(
            load_model(request.judge, request.options.get(request.judge), device=request.running.device).identity
        )
    return {**one.scored, **scheme.identity(), "judge": judge}


async def started_model(model: Model) -> None:
    """Starts a model.

    Raises:
        UserError: it cannot be started, whatever it raised.
    """
    try:
        await model.start()
    except UserError:
        raise
    except Exception as error:  # a model of one's own may raise anything
        raise UserError(
            f"the model '{model.info.name}' could not be started: {type(error).__name__}: {error}"
        ) from error
