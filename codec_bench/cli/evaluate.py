"""`codec-bench demo`, `eval` and `score`: scores of coded or existing audio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.config.request import EvalRequest, ScoreRequest
from codec_bench.terminal.options import Cache, Device, Json, Limit, Out, Timings, Workers
from codec_bench.terminal.output import talk
from codec_bench.terminal.request import command, values_of

if TYPE_CHECKING:
    from codec_bench.store.record import Run


def demo(
    out: Out = None, device: Device = "auto", workers: Workers = None, limit: Limit = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the choice of utterances.")] = None,
    cache: Cache = True, timings: Timings = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Run eight systems on embedded speech, offline."""
    from codec_bench.api.evaluate import evaluate as evaluate_codecs
    from codec_bench.config import read_config

    preset = read_config("preset", "demo")
    folder = out or Path("runs/demo")
    arguments = {
        "codec": preset["codecs"], "data": preset["data"], "metrics": preset["metrics"], "out": folder,
        "seed": preset["seed"] if seed is None else seed, "limit": limit or preset["limit"],
        "device": device, "workers": workers, "cache": cache, "save_audio": "all",
    }  # fmt: skip
    _run(evaluate_codecs, arguments, as_json, timings)
    if not as_json:
        talk(_next_steps(folder))


def _next_steps(folder: Path) -> str:
    """Build the text printed after the demo."""
    from codec_bench.terminal.stopping import program

    typed = program()
    return f"""
What to try next:
  Look and listen: open {folder / "report.html"} in a browser.
  Your own audio, a folder of sound files:
    {typed} eval --codec unprocessed,opus-12k,mp3-32k --data FOLDER --preset embedded
  Your own codec, a class with encode and decode in a file:
    {typed} profile --codec ./mine.py:MyCodec"""


@command(EvalRequest)
def evaluate(request: EvalRequest) -> None:
    """Send audio through codecs and score what comes out."""
    from codec_bench.api.evaluate import evaluate as evaluate_codecs

    _carry_out(evaluate_codecs, request)


@command(ScoreRequest)
def score(request: ScoreRequest) -> None:
    """Score existing audio: synthesis, conversion, codecs."""
    from codec_bench.api.score import score as score_generated

    _carry_out(score_generated, request)


def _carry_out(verb: Callable[..., Run], request: EvalRequest | ScoreRequest) -> None:
    from codec_bench.api.read_arguments import select_arguments

    _run(verb, select_arguments(type(request), values_of(request)), request.json, request.timings, request.log)


def _run(
    verb: Callable[..., Run], arguments: dict[str, Any], as_json: bool, timings: bool, log: str | None = None
) -> None:
    """Run a verb with a progress line and print the run; may exit with 3."""
    from codec_bench.api.read_arguments import pop_running
    from codec_bench.api.tracking import track
    from codec_bench.cli.finished import print_finished
    from codec_bench.stats.summary_types import Summary
    from codec_bench.store.files import read_json
    from codec_bench.store.integrity import SUMMARY_JSON
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.stopping import stopping

    plain = pop_running(arguments)
    with stopping() as stop:
        with progress_line() as progress:
            plain = replace(plain, progress=progress.update, on_folder=stop.on_folder, is_command=True)
            with track(log, plain, talk) as running:
                run = verb(**arguments, running=running)
        # Just written, so not computed twice.
        summary = Summary.from_dict(read_json(run.folder / SUMMARY_JSON))
    print_finished(run, summary, as_json, timings)
