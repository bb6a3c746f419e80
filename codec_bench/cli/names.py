"""`codec-bench list` and `show`: all names of a kind, and everything about one."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from codec_bench.terminal.options import Json
from codec_bench.terminal.output import console, count_fitting, print_json, table, talk

_THREADS = "OPENBLAS_NUM_THREADS"
_COMMIT = 10
"""Shown characters of a commit."""
_KINDS = (
    "codecs, metrics, benchmarks, models, suites, prompts, rubrics, steps, features, rules, data, presets, recipes or "
    "plugins."
)


def list_(
    what: Annotated[str, typer.Argument(help=_KINDS)] = "codecs",
    groups: Annotated[bool, typer.Option("--groups", help="Of metrics: the groups of --metrics.")] = False,
    by: Annotated[str | None, typer.Option(help="Of metrics: their order, about, needs or cost.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List the names of one kind of thing."""
    from codec_bench.api.list_names import list_names

    with _skip_slow_setup():
        rows = list_names(what, groups=groups, by=by)
        if as_json:
            print_json(rows)
        elif rows:
            _print_rows([_codec_line(row) for row in rows] if what == "codecs" else rows)
        else:
            talk(f"no {what}")


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows as a table; columns that do not fit are named below it."""
    columns = list(dict.fromkeys(k for row in rows for k in row))
    cells = [[_format_cell(row.get(c)) for c in columns] for row in rows]
    fitting_count = count_fitting(columns, cells)
    console().print(table(columns[:fitting_count], [row[:fitting_count] for row in cells]))
    if hidden := columns[fitting_count:]:
        talk(f"not shown for want of width: {', '.join(hidden)}; a wider terminal or `--json` shows them")


@contextmanager
def _skip_slow_setup() -> Iterator[None]:
    """Skip garbage collection and numpy's threads, which a list does not need."""
    searched, threads = gc.isenabled(), os.environ.get(_THREADS)
    gc.disable()
    os.environ.setdefault(_THREADS, "1")
    try:
        yield
    finally:
        if searched:
            gc.enable()
        if threads is None:
            del os.environ[_THREADS]


def _codec_line(row: dict[str, Any]) -> dict[str, Any]:
    """Format a codec's facts by column."""
    rates = [f"{rate / 1000:g}" for rate in row.get("rates_hz") or ()]
    bitrate = row.get("bitrate_bps")
    points = re.split(", | to ", row["points_kbps"])
    return {
        "name": row["name"],
        "kind": row["kind"],
        "kHz": ", ".join(rates) if len(rates) < 4 else f"{rates[0]} to {rates[-1]}",
        "kbps": f"{bitrate / 1000:.3g}" if bitrate else "",
        "tokens/s": row.get("tokens_per_s"),
        "bits/token": row.get("bits_per_token"),
        "from": row["from"],
        "@kbps": " to ".join(dict.fromkeys([points[0], points[-1]])),
        "ch": row.get("channels"),
        "frames/s": row.get("frame_rate_hz"),
        "licence: code": row.get("code"),
        "of weights": row.get("weights"),
        "weights are": row["weights are"],
        "size": f"{size / 1e6:,.0f} MB" if isinstance(size := row["weights_bytes"], int) else size,
        "revision": row["weights_revision"][:_COMMIT],
    }


def _format_cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{k}: {v}" for k, v in value.items() if v is not None)
    return f"{value:g}" if isinstance(value, float) else value


def show(
    name: Annotated[str, typer.Argument(help="A codec, metric, benchmark, model, feature, data set, preset or run.")],
    model: Annotated[str | None, typer.Option(help="For a benchmark: show its prompt for this model.")] = None,
    data: Annotated[Path | None, typer.Option(help="A folder with the data sets, used in place of the hub.")] = None,
    data_statistics: Annotated[bool, typer.Option("--data-statistics", help="For a benchmark: check data.")] = False,
    limit: Annotated[int | None, typer.Option(help="With --data-statistics: the most questions.")] = None,
    miniature: Annotated[Path | None, typer.Option(help="For a benchmark: write fake rows for `run --data`.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show everything about one name."""
    from codec_bench.api.show import show as described

    facts = described(name, model=model, data=data, data_statistics=data_statistics, limit=limit, miniature=miniature)
    if miniature is not None and not as_json:
        sys.stdout.write(f"{facts['folder']}\n")
        return talk(f"try a model with: codec-bench run {name} --model MODEL --data {facts['folder']}")
    if model is not None and not data_statistics:
        _print_prompt(facts)
    elif as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")
    elif data_statistics:
        _print_statistics(facts)
    else:
        (kind, title), *rest = facts.items()
        filled = [(k, v) for k, v in rest if v not in (None, "", [])]
        long = {k: v for k, v in filled if isinstance(v, str) and "\n" in v.strip()}
        console().print(table((kind, str(title)), [(k, _format_cell(v)) for k, v in filled if k not in long]))
        for name, text in long.items():  # line by line, as in a user's file
            sys.stdout.write(f"{name}: |\n{indent(text.rstrip(), '  ')}\n")


def _print_prompt(facts: dict[str, Any]) -> None:
    talk(f"prompt: {facts['prompt']}; steps that read the answer: {', '.join(facts['steps']) or 'none'}")
    if facts["reason"] is not None:
        talk(f"the data is not on this machine ({facts['reason']}), so here is the template:")
    sys.stdout.write(facts["text"] + "\n")


def _print_statistics(facts: dict[str, Any]) -> None:
    """Print the counts of a benchmark's data, and problems by questions."""
    name, problems = facts.pop("benchmark"), facts.pop("problems")
    rows = [
        ("questions that the definition declares", facts.pop("declared")),
        *((label.replace("_", " "), value) for label, value in facts.items()),
    ]
    cells = [
        (label, f"{value:.3g}" if isinstance(value, float) else value) for label, value in rows if value is not None
    ]
    console().print(
        table((name, ""), [*cells, *((one["message"], one["questions"]) for one in problems)], numeric=("",))
    )
