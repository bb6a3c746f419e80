"""`codec-bench gate freeze|calibrate|check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import Json
from codec_bench.terminal.output import print_json, print_lines, print_wide, talk

gate_app = command_group("gate", "Fail a build when quality regresses.")

System = Annotated[str | None, typer.Option("--system", help="The system, where a run has several.")]


@gate_app.command()
def freeze(
    runs: Annotated[list[Path],
        typer.Argument(help="A run folder, or several repeats of one system, such as with other seeds.")],
    out: Annotated[Path, typer.Option("--out", help="The baseline to write, such as baseline.parquet.")],
    system: System = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write the scores of a run, or of repeats of it, to one small file."""
    from codec_bench.apps.gating.api import gate_freeze

    frozen = gate_freeze(runs, out=out, system=system)
    if as_json:
        facts = {"file": str(frozen.file), "system": frozen.system, "items": frozen.items}
        facts |= {"repeats": frozen.repeats, "metrics": list(frozen.metrics)}
        print_json(facts)
        return
    talk(f"{frozen.items} items, {len(frozen.metrics)} metrics, {frozen.repeats} runs of {frozen.system}")
    sys.stdout.write(f"{frozen.file}\n")


@gate_app.command()
def calibrate(
    baseline: Annotated[Path, typer.Argument(help="A file of gate freeze.")],
    out: Annotated[Path | None, typer.Option("--out", help="The gate to write, such as gate.yaml.")] = None,
    alpha: Annotated[float | None,
        typer.Option("--alpha", help="Rate of false alarms of the gate. Default: 0.01.")] = None,
    power: Annotated[float | None,
        typer.Option("--power", help="How often a regression is to be found. Default: 0.8.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find the regressions that a baseline can show, and write them as a gate."""
    from codec_bench.apps.gating.api import gate_calibrate
    from codec_bench.apps.gating.words import CALIBRATE_HEADS, calibrate_notes, calibrate_rows

    calibration = gate_calibrate(baseline, out=out, alpha=alpha, power=power)
    if as_json:
        print_json(calibration.as_dict())
        return
    print_wide(CALIBRATE_HEADS, calibrate_rows(calibration), calibrate_notes(calibration))
    if out is not None:
        talk(f"gate: {out}")


@gate_app.command()
def check(
    runs: Annotated[list[Path], typer.Argument(help="A run folder, or several repeats of one system.")],
    against: Annotated[Path, typer.Option("--against", help="The baseline, a file of gate freeze.")],
    spec: Annotated[Path | None,
        typer.Option("--spec", help="The gate, such as gate.yaml. Default: all metrics with margin 0.")] = None,
    system: System = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None,
        typer.Option("--markdown", help="Write a summary for a pull request to this file.")] = None,
    page: Annotated[Path | None,
        typer.Option("--page", help="Write a page with the audio of the items that moved most.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Compare a run with a baseline. Exits with 1 if it regressed."""
    from codec_bench.apps.gating import words
    from codec_bench.apps.gating.api import gate_check
    from codec_bench.apps.gating.words import CHECK_HEADS, NOTES, check_notes, check_rows, conclusion
    from codec_bench.store.files import write_text

    result = gate_check(runs, against=against, spec=spec, system=system)
    if junit is not None:
        write_text(junit, words.junit_xml(result))
    if markdown is not None:
        write_text(markdown, words.markdown(result))
    if page is not None:
        from codec_bench.apps.gating.page import write_page

        write_page(result, runs[0], page)
    if as_json:
        print_json(result.as_dict())
    else:
        print_wide(CHECK_HEADS, check_rows(result), check_notes(result))
        if spec is None:
            talk(NOTES["margin_zero"])
        print_lines([conclusion(result)])
    if result.exit_code:
        raise typer.Exit(result.exit_code)
