"""`codec-bench converse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_bench.config.option import SEVERAL
from codec_bench.terminal.options import Device, Json, Limit, Out, Set
from codec_bench.terminal.output import console, print_json, table, talk
from codec_bench.terminal.request import parse_settings


def converse(
    model: Annotated[str, typer.Option("--model", help="Models by name, separated by commas."), SEVERAL] = "",
    scripts: Annotated[str,
        typer.Option("--scripts", help="What the user says: `embedded`, a script as YAML, a folder of "
                                       "Full-Duplex-Bench, or a benchmark of spoken questions such as "
                                       "big-bench-audio.")] = "embedded",
    out: Out = None,
    seed: Annotated[int | None,
        typer.Option("--seed", help="Seed of what the script draws. Default: the script's.")] = None,
    limit: Limit = None,
    speaks: Annotated[str | None,
        typer.Option("--speaks", help="A model that reads aloud what a model answers in text.")] = None,
    end_of_turn: Annotated[str,
        typer.Option("--end-of-turn", help="How the end of a turn is found for a model that answers whole turns: "
                                           "silero-vad:SECONDS or energy:SECONDS.")] = "silero-vad:0.7",
    words: Annotated[str | None,
        typer.Option("--words", help="A recogniser that transcribes both sides with word times, such as "
                                     "pocketsphinx, whisper-large-v3 or parakeet-tdt-0.6b-v2.")] = None,
    judge: Annotated[str | None,
        typer.Option("--judge", help="A model that says what Full-Duplex-Bench's judges say of its sessions; needs "
                                     "words.")] = None,
    device: Device = "auto",
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Sessions that are held at the same time.")] = 8,
    replay: Annotated[Path | None,
        typer.Option("--replay", help="A run of this command whose users are repeated sample by sample.")] = None,
    remark: Annotated[bool, typer.Option("--remark", help="Mark the sessions in --out again and ask nothing.")] = False,
    anyway: Annotated[bool,
        typer.Option("--anyway", help="Also ask a model that its service is known to have shut down.")] = False,
    set_: Set = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Talk with models in real time, measure turn-taking.

    Measures are latency, interruptions, pauses and more.
    """
    from codec_bench.apps.conversation.api import converse as converse_with
    from codec_bench.apps.conversation.distributions import rows, sentences
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.stopping import stopping

    with stopping(_held) as stop, progress_line("sessions", estimates=False) as progress:
        result = converse_with(
            model=model,
            scripts=scripts,
            out=out,
            seed=seed,
            limit=limit,
            options=parse_settings(set_ or []),
            speaks=speaks,
            end_of_turn=end_of_turn,
            words=words,
            judge=judge,
            device=device,
            at_once=at_once,
            replay=replay,
            remark=remark,
            anyway=anyway,
            on_folder=stop.on_folder,
            on_estimate=talk,
            progress=lambda done, total: progress.update("sessions", done, total, 0, 0.0),
        )
    if as_json:
        print_json(result.summary)
    else:
        shown = table(("measure", "unit", *result.summary["systems"]), rows(result.summary))
        console().print(shown)
    for sentence in sentences(result.summary):
        talk(sentence)
    talk(f"page: {result.page}\nevents: {result.folder / 'events.jsonl'}")
    if result.faults or result.summary["missing"]:
        raise typer.Exit(3)


def _held(folder: Path) -> str:
    saved = len(list(folder.glob("sessions/*/*/session.json")))
    return f"{saved} sessions are stored in {folder}"
