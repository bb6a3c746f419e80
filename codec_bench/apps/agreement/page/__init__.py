"""The page of an agreement: tables, and items of most disagreement to hear."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.agreement.panel import Agreement, Apart
from codec_bench.apps.agreement.raters import name_of
from codec_bench.apps.agreement.words import (
    against_rows,
    agreement_notes,
    columns_of,
    confusion_pairs,
    confusion_rows,
    fit_rows,
    pair_rows,
    plots,
    problem_rows,
    rater_rows,
    standard_notes,
    subset_notes,
    subset_rows,
)
from codec_bench.messages.errors import beginning
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.report.page.sound import is_sound
from codec_bench.store.answers import exchanges, has_answers
from codec_bench.store.files import write_text
from codec_bench.store.record import Run

_LAYOUT = PageFiles(
    (__package__, "agreement.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "agreement.css")),
    (),
)
LONGEST = 2_000
_TYPES = ((b"fLaC", "audio/flac"), (b"OggS", "audio/ogg"), (b"RIFF", "audio/wav"), (b"ID3", "audio/mpeg"))
Texts = list[tuple[str, str]]


def write_agreement_page(
    agreement: Agreement, runs: Sequence[Run], path: str | os.PathLike[str], *, audio_mb: float = 25.0
) -> None:
    """Write the page of an agreement, atomically.

    Args:
        runs: hold the texts and the audio of the items.
        audio_mb: limit of embedded audio in megabytes of base64; audio beyond it is excluded.
    """
    text = render(_LAYOUT, collect(agreement, runs, int(audio_mb * 1e6)), {}, ())
    write_text(Path(path), text, hint="give another --out")


def collect(agreement: Agreement, runs: Sequence[Run], audio_bytes: int) -> dict[str, Any]:
    """Collect the variables; `audio_bytes` limits the audio in base64."""
    return {
        "kind": agreement.kind,
        "items": agreement.items,
        "benchmarks": sorted({name_of(run) for run in runs}),
        "raters": _table(rater_rows(agreement)),
        "pairs": _table(pair_rows(agreement)),
        "notes": agreement_notes(agreement),
        "subset_notes": subset_notes(agreement),
        "subsets": [(column, _table(subset_rows(agreement, column))) for column in columns_of(agreement)],
        "confusions": [
            (pair.reference, pair.rater, pair.overall.n, _table(confusion_rows(pair)))
            for pair in confusion_pairs(agreement)
        ],
        "standard": None
        if (standard := agreement.standard) is None
        else {
            "fits": _table(fit_rows(standard)),
            "compared": _table(against_rows(standard)),
            "notes": standard_notes(standard),
            "plots": plots(standard),
        },
        "apart": _items(agreement.apart, runs, audio_bytes),
        "problems": _table(problem_rows(agreement)),
        "unusable": sum(problem["count"] for problem in agreement.problems),
    }


def _table(heads_and_rows: tuple[list[str], list[list[str]]]) -> dict[str, Any]:
    heads, rows = heads_and_rows
    return {"heads": heads, "rows": rows}


def _items(apart: Sequence[Apart], runs: Sequence[Run], left_bytes: int) -> list[dict[str, Any]]:
    """Collect each item's texts, ratings and audio for the page.

    Args:
        left_bytes: limit of embedded audio in bytes of base64; audio that does not fit is omitted.
    """
    texts: dict[tuple[str, str, str], Texts] = {}
    sounds: dict[tuple[str, str, str], list[tuple[str, Path]]] = {}
    for run in runs:
        name = name_of(run)
        for system in run.systems:
            ids = {
                one.item.id
                for one in apart
                if one.item.benchmark == name and system in (one.item.system, one.item.other)
            }
            for id, item_texts, item_sounds in _of_run(run, system, ids):
                texts.setdefault((name, system, id), []).extend(item_texts)
                sounds.setdefault((name, system, id), []).extend(item_sounds)
    items = []
    for one in apart:
        item, item_texts, players = one.item, [], []
        for system in filter(None, (item.system, item.other)):
            key = (item.benchmark, system, item.id)
            prefix = f"{system}: " if item.other else ""
            item_texts += [
                (f"{prefix}{head}", beginning(text, LONGEST)) for head, text in dict.fromkeys(texts.get(key, ()))
            ]
            for head, path in dict.fromkeys(sounds.get(key, ())):
                size = 4 * -(-path.stat().st_size // 3) if is_sound(path) else left_bytes + 1
                if size <= left_bytes:
                    left_bytes -= size
                    players.append((f"{prefix}{head}", path, _type_of(path)))
        system = f"{item.system} and {item.other}" if item.other else item.system
        items.append({
            "id": item.id, "system": system, "benchmark": item.benchmark, "gap": f"{one.gap:.3g}",
            "ratings": dict(one.ratings), "texts": item_texts, "sounds": players,
        })  # fmt: skip
    return items


def _of_run(run: Run, system: str, ids: set[str]) -> Iterable[tuple[str, Texts, list[tuple[str, Path]]]]:
    """Yield (id, [(heading, text)], [(heading, audio path)]) of a system's items."""
    if not ids:
        return
    replies = _replies(run, system, ids)
    if has_answers(run):
        marks = ",".join("?" * len(ids))
        numbers = [n for (n,) in run.query(f"SELECT number FROM samples WHERE id IN ({marks})", sorted(ids))]
        for exchange in exchanges(run, numbers):
            question, answer = exchange.question, exchange.answer
            texts = [
                ("Question", question.prompt or ""),
                ("Expected", " / ".join(question.expected)),
                ("Answer", answer.text or ""),
            ]
            if exchange.reading is not None and exchange.reading.parsed not in (None, answer.text):
                texts.append(("Read as", exchange.reading.parsed or ""))
            sounds = [("Question", exchange.audio_path), ("Answer", exchange.answer_path)]
            yield (
                question.id,
                _non_empty([*texts, *replies.get(question.id, ())]),
                [(head, path) for head, path in sounds if path],
            )
        return
    spoken = {sample.id: sample.text or "" for sample in run.samples() if sample.id in ids}
    for item in run.items(system):
        if item.id in ids:
            places = [("Reference", run.reference_audio(item.id)), (system, item.audio)]
            yield (
                item.id,
                _non_empty([("Text", spoken.get(item.id, ""))]),
                [(head, path) for head, path in places if path],
            )


def _replies(run: Run, system: str, ids: set[str]) -> Mapping[str, Texts]:
    """Collect the judges' replies on a system's items as (heading, text), by id."""
    heads = {
        name: f"Reply of {facts.get('judge') or name}"
        for name, facts in run.metrics.items()
        if facts.get("kind") == "rating"
    }
    by_item: dict[str, Texts] = {}
    for metric, head in heads.items():
        for score in run.scores(system, metric, samples=ids):
            replies = score.detail.get("replies", ())
            by_item.setdefault(score.id, []).extend((head, str(reply)) for reply in replies)
    return by_item


def _non_empty(texts: Iterable[tuple[str, str]]) -> Texts:
    return [(head, text) for head, text in texts if text.strip()]


def _type_of(path: Path) -> str:
    """Return the media type of audio by its first bytes; `is_sound` has checked them."""
    with path.open("rb") as file:
        head = file.read(12)
    return next(
        (name for begin, name in _TYPES if head.startswith(begin)),
        "audio/mp4" if head[4:8] == b"ftyp" else "audio/mpeg",
    )
