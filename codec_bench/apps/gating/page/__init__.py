"""The static page of a gate's result, with the worst items and audio."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from codec_bench.apps.gating import words
from codec_bench.apps.gating.verdicts import GateResult, GateVerdict, MovedItem
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.report.page.sound import is_sound
from codec_bench.store.files import write_text
from codec_bench.store.record import Run

_LAYOUT = PageFiles(
    (__package__, "gate.html.j2"), ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "gate.css")), ()
)
BUDGET_BYTES = 20_000_000
"""Of audio in the page."""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item with its audio files; None where the run has none."""

    item: MovedItem
    reference: Path | None
    estimate: Path | None


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """The items of a metric that lost most."""

    metric: GateVerdict
    items: Sequence[ShownItem]


def write_page(result: GateResult, run: str | os.PathLike[str], path: Path) -> None:
    """Write the page of a result, with audio of the items that moved most.

    Args:
        run: the folder of the checked run.
    """
    with closing(Run(run)) as record:
        audio = {item.id: item.audio for item in record.items(result.system)}
        left = BUDGET_BYTES
        shown = []
        for metric in result.metrics:
            items = []
            for item in metric.moved:
                pair = []
                for file in (record.reference_audio(item.id), audio.get(item.id)):
                    size = file.stat().st_size if file is not None and is_sound(file) else left + 1
                    pair.append(file if size <= left else None)
                    left -= size if size <= left else 0
                items.append(ShownItem(item, *pair))
            if items:
                shown.append(ShownMetric(metric, items))
    facts = {
        "System": result.system,
        "Baseline runs": str(result.repeats),
        "False alarms at most": f"{result.alpha:.3g}",
        "Result": words.conclusion(result),
    }
    variables = {
        "title": f"Quality gate: {words.conclusion(result)}", "facts": facts, "heads": words.CHECK_HEADS,
        "rows": words.check_rows(result), "verdicts": [one.verdict for one in result.metrics],
        "limits": [(words.limit_text(one), one.passed) for one in result.limits], "shown": shown,
        "notes": words.check_notes(replace(result, limits=())), "number": words.number, "verdict_words": words.VERDICTS,
    }  # fmt: skip
    write_text(path, render(_LAYOUT, variables, {}, []))
