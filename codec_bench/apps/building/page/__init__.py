"""The page of a build: one HTML file with the funnel, the spread of what was measured, and the items nearest to the limit, to listen to.

Conventions
    The file can be opened from disk and loads nothing. It has the style and the content security policy of a run's page; the browser
    itself plays the sounds. Text from data is not trusted: the template escapes it.
    Equal builds give equal bytes: the page holds no time and no path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.building.funnel import Funnel
from codec_bench.apps.building.item import Maker
from codec_bench.apps.building.page.collect import collect
from codec_bench.apps.building.recipe import Recipe
from codec_bench.apps.building.review import Reviewed
from codec_bench.errors import UserError
from codec_bench.report.page.markup import SHARED, Layout, render, write_whole

PAGE = "build.html"
_LAYOUT = Layout(
    (__package__, "build.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "build.css")),
    ((SHARED, "elements.js"), (SHARED, "frames.js"), (__package__, "build.js")),
)
_SOUND_BYTES = 12_000_000
"""How many bytes of the page may be sound, in base64; items that do not fit are named without it."""


def write_build_page(
    out: Path,
    recipe: Recipe,
    maker: Maker,
    funnel: Funnel,
    record: Reviewed,
    keys: Sequence[str],
    sources: Sequence[Mapping[str, Any]],
) -> None:
    """Writes `build.html`.

    Args:
        out: the folder of the data set. recipe: what was asked for. maker: what made the items.
        funnel: what became of the items. record: holds them. keys: of all items.
        sources: what the card says of the sources.

    Raises:
        UserError: the page cannot be written.
    """
    shown = collect(maker, funnel, record, keys, _SOUND_BYTES)
    facts = {
        "title": recipe.full_title,
        "summary": recipe.summary,
        "seed": recipe.seed,
        "licence": recipe.licence or "none chosen",
    }
    try:
        write_whole(out / PAGE, render(_LAYOUT, {**facts, **shown, "sources": sources}, {}, ()))
    except OSError as error:
        raise UserError(f"'{out / PAGE}' cannot be written: {error.strerror}") from error
