"""The page of one or several runs: one HTML file with tables, plots, sound and spectrograms.

Conventions
    The file can be opened from disk and loads nothing. A content security policy allows its own style and script by
    their hash, and sound in the file itself; the browser refuses everything else.
    Text from data is not trusted. The template escapes it. The script sets it as text, never as markup. In the data, which
    is JSON, `<`, `>` and `&` are written as escapes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from codec_bench.report import numbers
from codec_bench.report.page.collect import Collected, collect
from codec_bench.store.record import Run

MAX_ROWS = 20_000
_WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
_SCRIPTS = (
    "core.js",
    "summary.js",
    "plots.js",
    "spectrogram.js",
    "player.js",
    "samples.js",
    "exchange.js",
    "detail.js",
    "main.js",
)


def write_page(
    runs: Sequence[Run],
    path: str | os.PathLike[str],
    *,
    audio_mb: float = 25.0,
    max_rows: int = MAX_ROWS,
    summaries: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Writes the page of one run, or of several side by side.

    Args:
        runs: opened run folders, finished or in progress.
        path: the HTML file; it is written whole or not at all.
        audio_mb: how many megabytes of the page may be sound, in base64. Of the samples whose audio was kept, worst and
            random ones are taken in turn, each with its reference and all systems.
        max_rows: how many rows (of a sample and a system) the page may hold. If there are more, it holds failures, the
            worst samples and random ones, and says so.
        summaries: the summaries of the runs; None to compute them.

    Raises:
        ValueError: no run was given.
        OSError: the file cannot be written.
    """
    if not runs:
        raise ValueError("no run to report on")
    target = Path(path)
    collected = collect(
        runs, summaries, audio_bytes=int(audio_mb * 1e6), max_rows=max_rows, folder=target.resolve().parent
    )
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partial.write_text(_render(collected), encoding="utf-8", errors="replace")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _render(collected: Collected) -> str:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment
    from markupsafe import Markup

    room = files(__package__)
    environment = SandboxedEnvironment(
        loader=FunctionLoader(lambda name: (room / name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=numbers.duration,
        moment=_moment,
        pretty=_pretty,
        thousands=lambda count: f"{count:,}",
        cell=_cell,
        heading=_heading,
        breakable=lambda name: Markup("_<wbr>").join(name.split("_")),
        value_text=lambda value: (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        ),
    )
    environment.tests["web_address"] = lambda text: bool(_WEB_ADDRESS.fullmatch(text))
    style = (room / "style.css").read_text("utf-8")
    script = "\n".join((room / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    return environment.get_template("page.html.j2").render(
        **collected.page,
        data=Markup(as_json(collected.data)),
        sounds=collected.sounds,
        base64=lambda path: base64.b64encode(path.read_bytes()).decode("ascii"),
        style=Markup(style),
        script=Markup(script),
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
    )


def as_json(value: Any) -> str:
    """JSON that can be put inside a script element: characters that could end the element are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy_hash(text: str) -> str:
    """The hash by which a content security policy names a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _moment(text: Any) -> str:
    """A time in ISO format as `20 Nov 2026, 18:54 UTC`; other text stays as it is."""
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{when.day} {when:%b %Y, %H:%M}" + (f" {when:%Z}" if when.tzinfo else "")


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _heading(key: str) -> str:
    return {"times_real_time": "× real time"}.get(key, key.removesuffix("_s").replace("_", " "))


def _cell(value: Any, key: str) -> str:
    """One cell of a table of timings; the name of its column says in which unit it is written."""
    if isinstance(value, Mapping):
        parts = {name: _cell(part, f"{key}_s") for name, part in value.items()}
        return ", ".join(f"{name} {part}" for name, part in parts.items() if part != "0.0 s")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if key.endswith("_s"):
        return numbers.duration(value)
    if key in ("share", "utilisation"):
        return f"{100 * value:.1f} %"
    if key.startswith("times_"):
        return f"{value:,.1f} ×"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
