"""Renders a self-contained page from template, styles and scripts.

A content security policy allows only the page's own style and script, by hash. Templates escape text from data; in
script data (JSON), `<`, `>` and `&` are escapes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.report import numbers

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment
    from markupsafe import Markup

SHARED = __package__
LONGEST_WHOLE = 18  # characters of a name that is never broken or shortened
_TAIL = 9  # characters that a shortened name ends with; names of one list often differ at their ends
_WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
_PIECES = re.compile(r"[^\s/_-]*[\s/_-]+|[^\s/_-]+")


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The files of a page, each as (package, file).

    `sections` are included templates from other folders.
    """

    template: tuple[str, str]
    styles: tuple[tuple[str, str], ...]
    scripts: tuple[tuple[str, str], ...]
    sections: tuple[tuple[str, str], ...] = ()


def render(layout: PageFiles, variables: Mapping[str, Any], data: Mapping[str, Any], sounds: Sequence[Path]) -> str:
    """Render the page as text."""
    from markupsafe import Markup

    style = "\n".join(map(_text, layout.styles))
    code = "\n".join(map(_text, layout.scripts))
    script = f'"use strict";\n(() => {{\n{code}\n}})();\n'
    return (
        _environment(layout)
        .get_template(layout.template[1])
        .render(
            **variables,
            data=Markup(as_json(data)),
            sounds=sounds,
            base64=lambda path: Markup(base64.b64encode(path.read_bytes()).decode("ascii")),  # nothing to escape
            style=Markup(style),
            script=Markup(script),
            style_hash=_policy_hash(style),
            script_hash=_policy_hash(script),
        )
    )


@cache
def _environment(layout: PageFiles) -> SandboxedEnvironment:
    """The sandboxed Jinja environment, with the page's filters and tests."""
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    from codec_bench.report.page.compiled import CompiledTemplates

    places = {name: package for package, name in (layout.template, *layout.sections)}
    environment = SandboxedEnvironment(
        loader=FunctionLoader(lambda name: _text((places.get(name, SHARED), name))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=CompiledTemplates(Path(str(files(layout.template[0])))),
    )
    environment.filters.update(
        duration=numbers.duration,
        moment=moment,
        pretty=lambda value: json.dumps(value, ensure_ascii=False, indent=2, default=str),
        thousands=lambda count: f"{count:,}",
        cell=_cell,
        heading=_heading,
        words=_words,
        shortened=_shorten_name,
        value_text=lambda value: (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        ),
    )
    environment.tests["web_address"] = lambda text: bool(_WEB_ADDRESS.fullmatch(text))
    return environment


def _text(file: tuple[str, str]) -> str:
    package, name = file
    return (files(package) / name).read_text("utf-8")


def as_json(value: Any) -> str:
    """Return JSON for a script element, with dangerous characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def moment(text: Any) -> str:
    """Format an ISO time as `20 Nov 2026, 18:54 UTC`; other text stays as it is."""
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{when.day} {when:%b %Y, %H:%M}" + (f" {when:%Z}" if when.tzinfo else "")


def _words(text: str, unbroken: int = LONGEST_WHOLE) -> Markup:
    """Return a name with line breaks only after spaces, `/`, `_` and `-`.

    A name of up to `unbroken` characters is one word. A word longer than a narrow screen may break anywhere.
    """
    from markupsafe import Markup

    pieces = [text] if len(text) <= unbroken else _PIECES.findall(text)
    word = Markup('<span class="word">{}</span>')
    return Markup("<wbr>").join(word.format(p) if len(p) <= LONGEST_WHOLE else Markup("{}").format(p) for p in pieces)


def _shorten_name(text: str) -> Markup:
    """Return a one-line name that loses its middle where it does not fit."""
    from markupsafe import Markup

    if len(text) <= LONGEST_WHOLE:
        return Markup('<span class="id">{}</span>').format(text)
    return Markup('<span class="id" title="{}"><span class="start">{}</span>{}</span>').format(
        text, text[:-_TAIL], text[-_TAIL:]
    )


def _heading(key: str) -> str:
    return {"times_real_time": "× real time"}.get(key, key.removesuffix("_s").replace("_", " "))


def _cell(value: Any, key: str) -> str:
    """Format a value by the unit in its key, such as `load_s` or `share`."""
    if isinstance(value, Mapping):
        parts = {name: _cell(seconds, f"{key}_s") for name, seconds in value.items()}
        return ", ".join(f"{name} {seconds}" for name, seconds in parts.items() if seconds != "0.0 s")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if key.endswith("_s"):
        return numbers.duration(value)
    if key in ("share", "utilisation"):
        return f"{100 * value:.1f} %"
    if key.startswith("times_"):
        return f"{value:,.1f} ×"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
