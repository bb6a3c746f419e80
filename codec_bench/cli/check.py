"""`codec-bench doctor`, `validate`, `verify-batching`: checks before a long run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.config import check_settings
from codec_bench.messages.errors import UserError, plain
from codec_bench.terminal.options import CallLimit, Device, Json, MemoryGib, Seed, Set
from codec_bench.terminal.output import console, print_json, table
from codec_bench.terminal.request import parse_settings

if TYPE_CHECKING:
    from codec_bench.api.finding import Finding
    from codec_bench.api.verify_batching import BatchingResult


def doctor(
    compile_all: Annotated[
        bool, typer.Option("--compile", help="Also compile every kernel, such as when a container is built.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the installation.

    Exits with 2 if something is wrong.
    """
    from codec_bench.api.doctor import doctor as examine
    from codec_bench.api.doctor import embedded_clip

    findings = examine()
    if compile_all:
        from codec_bench.api.compile_kernels import compile_kernels

        def report_progress(name: str) -> None:
            sys.stderr.write(f"compiling {name}\n")

        findings = (*findings, compile_kernels(embedded_clip(), report_progress))
    _print_findings(findings, as_json)
    if any(one.state == "wrong" for one in findings):
        raise typer.Exit(2)


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Manifests, folders, run folders, codecs, metrics, benchmarks, prompts or models (./mine.py:MyCodec)."
        ),
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Compare benchmarks (default: all) with the hub.")] = False,
    pins: Annotated[Path | None, typer.Option(help="With --hub: write its state to this file, for data.pins.")] = None,
    time_limit: CallLimit = 300.0, memory_gib: MemoryGib = None, settings: Set = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Check data, codecs, metrics, benchmarks and models.

    Exits with 2 on errors.
    """
    from codec_bench.api.validate import validate as examine
    from codec_bench.config.limits import Limits

    limits, options = Limits(time_limit_s=time_limit, memory_gib=memory_gib), parse_settings(settings or [])
    findings: list[Finding] = []
    requested = _requested_names(names, hub, pins)
    check_settings(options, requested, "name in this check")
    for name in requested:  # a check may take a minute, so each is shown at once
        codec_options = {name: options[name]} if name in options else {}
        mine = examine([name], options=codec_options, settings=limits, hub=hub, pins=pins)
        findings += mine
        if not as_json:
            _print_findings(mine, as_json)
            sys.stdout.flush()
    if as_json:
        _print_findings(findings, as_json)
    if any(one.state not in ("ok", "note") for one in findings):
        raise typer.Exit(2)


def _requested_names(names: list[str] | None, hub: bool, pins: Path | None) -> list[str]:
    """Return the named parts, or with `--hub` the benchmarks of the hub."""
    if pins is not None and not hub:
        raise UserError("pins_without_hub", hint="give --hub too")
    if not names and not hub:
        raise UserError(
            "nothing_named_to_check", hint="codec-bench validate NAME, or --hub for all benchmarks on the hub"
        )
    from codec_bench.api.hub_check import list_hub_benchmarks

    return names or list_hub_benchmarks()


_WIDE = 100
"""The width for findings and next steps side by side."""


def _print_findings(findings: Sequence[Finding], as_json: bool) -> None:
    """Print findings as JSON, a table, or lines on a narrow terminal."""
    if as_json:
        return print_json([one.as_dict() for one in findings])
    from rich.text import Text

    marks = {"ok": "ok", "note": "-", "suspect": "SUSPECT", "wrong": "WRONG"}
    heads = {f.what.rpartition(": ")[0] for f in findings}
    shared = heads.pop() if len(heads) == 1 and len(findings) > 1 else ""  # such as `codec ./mine.py:Mine`
    if shared:
        console().print(Text(plain(shared)))
    rows = [(f.what.removeprefix(f"{shared}: "), marks[f.state], f.found, f.do) for f in findings]
    first = "check" if shared else "what"
    if console().width >= _WIDE:
        console().print(table((first, "", "found", "do"), rows))
        return
    lines = [line for *row, do in rows for line in ([*row], *([["", "do", do]] if do else []))]
    console().print(table((first, "", "found"), lines))


def verify_batching(
    name: Annotated[str, typer.Argument(help="A codec, feature or metric, also your own.")],
    data: Annotated[str, typer.Option("--data", help="The audio for the check, as for eval.")] = "embedded",
    limit: Annotated[int, typer.Option("--limit", help="How many samples.")] = 12,
    device: Device = "auto", seed: Seed = 0, time_limit: CallLimit = 300.0, memory_gib: MemoryGib = None,
    settings: Set = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Check that results do not depend on the batch.

    Each clip alone is compared with batches of mixed lengths in other orders.
    """
    from codec_bench.api.verify_batching import verify_batching as verify
    from codec_bench.config.limits import Limits

    limits = Limits(time_limit_s=time_limit, memory_gib=memory_gib)
    options: dict[str, Any] = {"options": parse_settings(settings or []), "settings": limits}
    verdict = verify(name=name, data=data, limit=limit, device=device, seed=seed, **options)
    if as_json:
        print_json(verdict.as_dict())
    else:
        _print_verdict(verdict)
    if not verdict.exact:
        raise typer.Exit(2)


def _print_verdict(verdict: BatchingResult) -> None:
    """Print the differences of batches from single clips, without missing ones."""
    relative, wave, frames = verdict.relative, verdict.wave, verdict.frames
    rows = [
        ("clips", f"{verdict.items}, {verdict.shortest_s:.2f} to {verdict.longest_s:.2f} s"),
        ("largest relative difference", None if relative is None else f"{relative:.2g} (at most 1e-05)"),
        ("largest wave difference", None if wave is None else f"{wave:.2g} (at most 1e-04)"),
        ("code frames that differ", None if frames is None else f"{verdict.flips} of {frames} (at most 0.01 %)"),
        ("worst clip", verdict.worst),
        ("batches are exact", "yes" if verdict.exact else "NO"),
    ]
    console().print(table((verdict.kind, verdict.name), [r for r in rows if r[1] is not None]))
