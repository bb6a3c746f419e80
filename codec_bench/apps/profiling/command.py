"""`codec-bench profile`: measure one or several codecs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from codec_bench.apps.profiling.cells import ProfileCell, ProfileRow, ProfileSection
from codec_bench.apps.profiling.rows import delta_rates, findings, head, label, reasons, sections
from codec_bench.codecs.checks import faulty_findings
from codec_bench.config.profile_request import ProfileRequest
from codec_bench.report import numbers
from codec_bench.report.table import blocks, summary_notes, summary_table
from codec_bench.stats.summary_types import Summary, SystemSummary
from codec_bench.terminal.request import command, values_of

_LEAST_COLUMNS = 14


@command(ProfileRequest)
def profile(request: ProfileRequest) -> None:
    """Profile codecs: bitrate, speed, quality, mistakes.

    The profile has bitrate, codebooks, speed, size, latency, stability, quality curves and checks for common mistakes.
    """
    from codec_bench.api.read_arguments import select_arguments
    from codec_bench.apps.profiling.api import profile as profile_codecs
    from codec_bench.config.option import names
    from codec_bench.terminal.output import console, print_json, talk
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.stopping import stopping

    arguments = select_arguments(ProfileRequest, values_of(request))
    count = len(names(str(request.codec)))  # which is typed as one text
    with (
        stopping(lambda folder: _describe_saved(folder, count)) as stop,
        progress_line("steps", estimates=False) as progress,
    ):
        result = profile_codecs(
            **arguments,
            on_folder=stop.on_folder,
            progress=lambda name, step, done, total: progress.update(f"{name}: {step}", done, total, 0, 0.0),
        )
    if request.json:
        print_json(result.as_dict())
    else:
        out = console()
        out.print(profile_tables(result.facts, width=out.width))
    for name, faults in result.faults.items():
        for fault in faults:
            talk(f"{name}: {fault}")
    talk(f"profile: {result.folder / 'profile.json'}\npage: {result.page}")
    if result.faults:
        raise typer.Exit(3)


def _describe_saved(folder: Path, count: int) -> str:
    from codec_bench.apps.profiling.several_codecs import codecs_measured

    measured = len(codecs_measured(folder))
    return f"{measured} of {count} codecs are measured and stored in {folder}"


def profile_tables(profile: Mapping[str, Any], *, width: int) -> Group:
    """Build all terminal tables of a profile; codecs beyond `width` get further ones."""
    names = list(profile["codecs"])
    heads = [head(profile, name).replace(numbers.SUSPECT, f"\n{numbers.SUSPECT.strip()}") for name in names]
    parts: list[Any] = []
    shown = sections(profile)
    lengths = lambda k: (len(row.cells[k].text) for section in shown for row in section.rows)  # noqa: E731
    widths = [
        2 + max(_LEAST_COLUMNS, *map(len, head_text.splitlines()), *lengths(k)) for k, head_text in enumerate(heads)
    ]
    labelled = max((len(_label(row)) for section in shown for row in section.rows), default=0) + 2
    for block in blocks(widths, max(width - labelled, max(widths))):
        parts.append(_block(shown, [heads[k] for k in block], block))
    missing = reasons(shown, [label(profile, name) for name in names])
    if missing:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
        for texts in missing:
            table.add_row(*(Text(numbers.plain(text)) for text in texts))
        parts += [Text("why there is no number", style="bold"), table]
    if excluded := profile["how"].get("skip"):
        parts.append(Text(f"skipped by --skip: {', '.join(excluded)}"))
    quality = _quality(profile)
    if quality.systems:
        notes = map(Text, summary_notes(quality))
        parts += [Text("quality", style="bold"), summary_table(quality, width=width), *notes]
    parts += [Text(f"{sentence}.", style="yellow") for sentence in numbers.uncurved(profile["labels"].values())]
    if profile["bd_rate"]:
        parts.append(_delta_rates(profile))
    parts.append(_findings(profile))
    return Group(*parts)


def _block(shown: list[ProfileSection], labels: list[str], places: list[int]) -> Table:
    """Build the table of the codecs at `places`; rows without values are excluded."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for text in labels:
        table.add_column(Text(text), justify="right")
    for section in shown:
        if all(row.cells[k].text == "–" for row in section.rows for k in places):
            continue
        table.add_row(Text(section.title, style="bold"), *[""] * len(places))
        for row in section.rows:
            if all(row.cells[k].text == "–" for k in places):
                continue
            table.add_row(_label(row), *(_text(row.cells[k]) for k in places))
    return table


def _label(row: ProfileRow) -> Text:
    name = Text(f"  {row.label}")
    if row.unit:
        name.append(f" {row.unit}", style="dim")
    return name


def _text(cell: ProfileCell) -> Text:
    return Text(numbers.plain(cell.text), style="yellow" if cell.flag else "dim" if cell.text == "–" else "")


def _quality(profile: Mapping[str, Any]) -> Summary:
    """Collect all codecs' quality metrics as a run's summary, for `summary_table`."""
    systems = {}
    for name, codec in profile["codecs"].items():
        if "metrics" in codec["quality"]:
            checks = {"findings": faulty_findings(codec["findings"].get("findings", []))}
            facts = {"metrics": codec["quality"]["metrics"], "checks": checks}
            systems[label(profile, name)] = SystemSummary.from_dict(facts)
    return Summary(systems=systems)


def _delta_rates(profile: Mapping[str, Any]) -> Group:
    """Build the table of Bjøntegaard delta rates against the anchor."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("metric", "codec", "BD-rate", ""):
        table.add_column(column, justify="right" if column == "BD-rate" else "left")
    for texts in delta_rates(profile):
        table.add_row(*map(Text, texts))
    head = Text(f"bitrate at equal quality against {numbers.plain(profile['anchor'])}; lower is better", style="bold")
    return Group(head, table)


def _findings(profile: Mapping[str, Any]) -> Any:
    """Build the table of suspect and failed checks, or a line if there are none."""
    rows = findings(profile)
    if not rows:
        failed = [label(profile, name) for name, codec in profile["codecs"].items() if codec.get("faults")]
        return Text(f"checks: failed for {', '.join(failed)}" if failed else "checks: nothing suspect", style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("codec", "check", "", "found"):
        table.add_column(column)
    for name, finding in rows:
        style = "red" if finding["state"] == "failed" else "yellow"
        state, text = Text(finding["state"], style=style), Text(numbers.plain(finding["found"]))
        table.add_row(Text(name), Text(finding["check"]), state, text)
    return Group(Text("checks: look at these", style="bold"), table)
