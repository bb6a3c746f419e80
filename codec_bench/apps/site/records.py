"""A site's content of one run: facts, numbers, scores, texts, and audio.

`run` is the entry of leaderboards. `samples` has ids, independent units and groups, `values-M` the scores of metric
number M, `texts-K` texts, reasons and audio of the K-th `CHUNK` samples, all by position. `run.json`, `summary.json`
and `scores.parquet` are for people. Scores are numerators and denominators with seven digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.site.contradictions import hash_references
from codec_bench.apps.site.folder import SCHEMA, SiteFolder
from codec_bench.benchmark import has_benchmark, load_benchmark
from codec_bench.benchmark.identity import other_than_defined
from codec_bench.messages.errors import UserError, beginning
from codec_bench.report import numbers
from codec_bench.report.controls.rows import control_notes
from codec_bench.report.page.chosen_samples import select_examples
from codec_bench.report.page.columns import PageColumn, states_of
from codec_bench.report.page.exchanges import published_rows
from codec_bench.report.page.sound import choose_clips
from codec_bench.stats.breakdown import subsets_of
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.row_counts import count_rows
from codec_bench.stats.sets import SETS
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Summary, SystemSummary
from codec_bench.store.answers import exchanges, has_answers
from codec_bench.store.columns import grouped
from codec_bench.store.export import opened, write_parquet
from codec_bench.store.files import write_json
from codec_bench.store.identity import identity_of
from codec_bench.store.integrity import DATABASE, read_seal, seal_of
from codec_bench.store.record import Run
from codec_bench.store.rows import TableRow

CHUNK = 250
_CHARACTERS = 1000
_MOST_GROUPS = 60
_MOST_REASONS = 100
_ELSEWHERE = ("where", "batch_s")
"""Facts of how a system was run, which do not identify it."""
_SHOWN = ("value", "ci95", "note", "units", "n", "failed", "missing", "unit", "higher_is_better", "common", "standing")
"""Displayed fields of a metric."""
_COLUMNS = ("speaker", "language", "duration")


def key_of(run: Run) -> str:
    """Return the key of a run: independent of its folder, unique for every start."""
    meta = run.meta
    return _hash([meta.get("fingerprint"), meta.get("started"), list(run.systems)], 6)


def is_shard(run: Run) -> bool:
    """Whether a run contains one shard of its data only."""
    meta = run.meta
    return bool((meta.get("fingerprint") or {}).get("shard") or (meta.get("config") or {}).get("shard"))


def content_of(run: Run) -> str:
    """Return the hash of the record file."""
    return (read_seal(run.folder) or seal_of(run.folder / DATABASE)).hash


def describe_run(run: Run) -> dict[str, Any]:
    """Build the description of a run that pages show, without its samples."""
    meta, summary, counts = run.meta, summarise(run), run.counts()
    config, written = meta.get("config") or {}, summary.as_dict()
    reasons = summary.failures.reasons
    rest = len(reasons) - _MOST_REASONS
    board = _board(run, counts["samples"])
    protocols = _protocols(run, summary)
    command = {"evaluate": "eval"}.get(str(config.get("command")), config.get("command"))
    return {
        "schema": SCHEMA,
        "key": key_of(run),
        "content": content_of(run),
        "name": numbers.plain(run.folder.resolve().name),
        "board": board,
        "date": meta.get("finished") or meta.get("started"),
        "started": meta.get("started"),
        "finished": meta.get("finished"),
        "state": meta.get("state") or "unknown",
        "counts": counts,
        "limit": config.get("limit"),
        "command": f"codec-bench {command} --config run.json" if command in ("eval", "score", "run") else None,
        "benchmark": meta.get("benchmark") and {**meta["benchmark"], "published": published_rows([run])},
        "asked": has_answers(run),
        **({"control": summary.control} if summary.control else {}),
        **{name: meta.get(name) or {} for name in ("config", "how", "versions", "machine", "data", "decoding")},
        "wall_s": (meta.get("timings") or {}).get("wall_s"),
        "metrics": {name: {**facts, "protocol": protocols[name]} for name, facts in run.metrics.items()},
        "systems": {
            name: {
                **_system(run, name, facts or {}, summary),
                "metrics": {
                    metric: {key: held[key] for key in _SHOWN if key in held} | {"protocol": protocols[metric]}
                    for metric, held in written["systems"][name]["metrics"].items()
                },
            }
            for name, facts in run.systems.items()
        },
        "failures": replace(summary.failures, reasons=reasons[:_MOST_REASONS]).as_dict(),
        "answers": {k: v for k, v in written.get("answers", {}).items() if k in ("served", "cut", "canary")},
        "notes": [
            *control_notes(summary),
            *([f"{rest:,} more kinds of failures are on the run's own page"] if rest > 0 else []),
            *numbers.rows_notes(summary.rows, summary.other_data or ()),
            *numbers.system_notes(summary.systems),
        ],
        "chunk": CHUNK,
        "summary": written,
    }


def _board(run: Run, samples: int) -> dict[str, Any]:
    """Return the leaderboard of a run: its benchmark or its data, and the part.

    The key excludes audio content; `contradictions.assign_boards` separates that. The title states changes of a
    benchmark, and other numbers of questions. Generated audio is excluded from the data's identity, so runs with equal
    ids and texts share a board.
    """
    meta = run.meta
    benchmark, data, config = (meta.get(name) or {} for name in ("benchmark", "data", "config"))
    generated = "score" in (config.get("command"), config.get("beside"))
    limit, rows, named = config.get("limit"), count_rows(run), benchmark.get("name")
    ours = load_benchmark(named) if isinstance(named, str) and has_benchmark(named) else None
    marks = other_than_defined(run, ours) if ours is not None else []
    identity = identity_of(run)
    if ours is None:
        marks = [*filter(None, (identity.precision, identity.control and f"control: {identity.control}"))]
    facts = [
        named,
        sorted([s.id, s.text, s.language] for s in run.samples())
        if generated
        else data.get("fingerprint") or identity.rows,
        None if limit is None else [limit, config.get("seed")],
    ]
    if marks or (named and ours is None):  # one benchmark has several prompts, for models that read other things
        facts.append([marks, identity.data, identity.prompt, identity.reading, identity.choices])
    marks += [numbers.rows_text(rows)] if rows and rows.why == "data" else []
    name = Path(str(data.get("name") or config.get("data") or "data")).name
    title = benchmark.get("title") or named or (f"{name}, generated" if generated else name)
    title += f" ({', '.join(marks)})" if marks else ""
    return {
        "key": _hash(facts, 5),
        "title": numbers.plain(str(title)),
        "benchmark": named,
        "samples": samples,
        "limit": limit,
        "generated": generated,
        "sounds": hash_references(run),
    }


def _protocols(run: Run, summary: Summary) -> dict[str, str]:
    """Return protocols with the served judge models: another state is another column."""
    states = states_of(run, summary)
    return {
        name: f"{facts['protocol']} ({states[name]})" if states[name] else facts["protocol"]
        for name, facts in run.metrics.items()
    }


def _system(run: Run, name: str, facts: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Build the description of one system: facts, identity hash, findings and times."""
    held = summary.systems[name]
    identity: list[Any] = [{key: value for key, value in facts.items() if key not in _ELSEWHERE}]
    if summary.answers:  # a service may put another model, or another state of it, behind a name
        identity.append(sorted(one.state for one in summary.answers.served))
    if (run.meta.get("config") or {}).get("command") in ("score", "import"):
        # Only the audio or its score file identifies the system.
        fingerprint = run.meta.get("fingerprint") or {}
        data = fingerprint.get("data") or fingerprint.get("imported")
        identity += [data, (fingerprint.get("systems") or {}).get(name)]
    revision = next((str(facts[key]) for key in ("revision", "weights", "model") if facts.get(key)), None)
    return {
        "facts": facts,
        "identity": _hash(identity, 6),
        "revision": revision,
        "family": None if name == numbers.UNPROCESSED else numbers.family(name),
        "remarks": numbers.remarks(held),
        "suspect": numbers.doubts_text(held),
        "lost": _count_failed(held),
        "timing": dict(held.timing) if held.timing is not UNSET else None,
    }


def _count_failed(held: SystemSummary) -> int:
    """Return the number of items of a system that failed on all; else 0."""
    items = max((entry.n + entry.failed for entry in held.metrics.values()), default=0)
    return items if items == held.without_estimate else 0


def _hash(value: Any, size: int) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


class _ScoreArrays:
    """The scores of a run as arrays `(systems, metrics, samples)`."""

    def __init__(self, run: Run, ids: list[str]) -> None:
        self.systems, self.metrics = list(run.systems), run.metrics
        self.folds = [facts.get("aggregate", "") in {*FOLDS, *SETS} for facts in self.metrics.values()]
        shape = (len(self.systems), len(self.metrics), len(ids))
        self.above, self.below = np.full(shape, np.nan), np.full(shape, np.nan)
        self.transcripts: dict[tuple[int, int], str] = {}
        self.failures: list[tuple[int, int, int, str, str]] = []
        self._places = ({name: n for n, name in enumerate(names)} for names in (self.systems, self.metrics, ids))

    def noted(self, rows: Iterator[TableRow]) -> Iterator[TableRow]:
        """Pass rows on, and collect their scores."""
        systems, metrics, samples = self._places
        for row in rows:
            s, m, n = systems[row.system], metrics[row.metric], samples[row.id]
            if row.status == "ok":
                is_plain = self.folds[m] or row.numerator is None or row.denominator is None
                self.above[s, m, n] = row.value if is_plain else row.numerator
                self.below[s, m, n] = 1.0 if is_plain else row.denominator
            else:
                reason = beginning(row.reason or "no reason was recorded", _CHARACTERS)
                self.failures.append((n, s, m, row.status, reason))
            if row.transcript is not None:
                self.transcripts.setdefault((s, n), beginning(row.transcript, _CHARACTERS))
            yield row

    def values(self, metric: int) -> dict[str, Any]:
        """Build the data file of metric number `metric`."""
        systems = []
        for s in range(len(self.systems)):
            below = self.below[s, metric]
            plain = bool((below[np.isfinite(below)] == 1).all())
            systems.append({"above": _numbers(self.above[s, metric]), **({} if plain else {"below": _numbers(below)})})
        return {"fold": self.folds[metric], "systems": systems}


def _numbers(values: np.ndarray) -> list[float | int | None]:
    """Round to seven digits, whole numbers without a point; None for missing ones."""
    return [None if v != v else int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.7g}") for v in values.tolist()]


def write_run(site: SiteFolder, run: Run, entry: Mapping[str, Any], *, audio_mb: float) -> None:
    """Write all files of a run, the entry last, so that a run is complete or absent.

    Args:
        audio_mb: megabytes of audio to copy.

    Raises:
        UserError: a file cannot be written, or the record is damaged.
    """
    key = entry["key"]
    folder = site.run_folder(key)
    folder.mkdir(parents=True, exist_ok=True)
    samples = list(run.samples())
    ids = [sample.id for sample in samples]
    scores = _ScoreArrays(run, ids)
    with opened(folder / "scores.parquet", binary=True) as file:
        write_parquet(scores.noted(run.rows()), file)
    for metric in range(len(scores.metrics)):
        site.write_data(f"runs/{key}/values-{metric}", scores.values(metric))
    groups = _groups(run, ids)
    units = run.units()
    names: dict[str, int] = {}
    code = lambda n, unit: n if unit is None else names.setdefault(unit, len(samples) + len(names))  # noqa: E731
    codes = [code(n, units[id]) for n, id in enumerate(ids)]
    site.write_data(f"runs/{key}/samples", {"ids": ids, "units": codes, "groups": groups})
    texts = _texts(run, samples, scores)
    saved_sounds = _keep_sound(site, run, ids, scores, audio_mb)
    for n, sounds in saved_sounds.items():
        texts[n]["sound"] = sounds
    for start in range(0, len(texts), CHUNK):
        site.write_data(f"runs/{key}/texts-{start // CHUNK}", _with_reasons(texts[start : start + CHUNK]))
    write_json(folder / "run.json", run.meta)
    write_json(folder / "summary.json", entry["summary"])
    facts = {name: value for name, value in entry.items() if name != "summary"}
    site.write_data(f"runs/{key}/run", {**facts, "groups": list(groups), "heard": sorted(saved_sounds)})


def _groups(run: Run, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Return group names, and each sample's group number or -1, by column."""
    subsets = dict(subsets_of(run))
    for column in _COLUMNS:
        with suppress(UserError):  # too many values to be groups
            subsets |= {} if column in subsets else grouped(run, column)
    index = {number: n for n, (number,) in enumerate(run.query("SELECT number FROM samples ORDER BY number"))}
    groups = {}
    for column, values in subsets.items():
        if not 1 < len(values) <= _MOST_GROUPS:
            continue
        of = [-1] * len(ids)
        for g, members in enumerate(values.values()):
            for number in members:
                of[index[number]] = g
        groups[column] = {"names": list(values), "of": of}
    return groups


def _texts(run: Run, samples: list[Any], scores: _ScoreArrays) -> list[dict[str, Any]]:
    """Collect each sample's texts: reference, transcripts, expected answer, failures."""
    speaker = lambda sample: " · ".join(filter(None, (sample.speaker, sample.language)))  # noqa: E731
    texts: list[dict[str, Any]] = [
        {"text": beginning(sample.text or "", _CHARACTERS), "by": speaker(sample)} for sample in samples
    ]
    for (s, n), transcript in scores.transcripts.items():
        texts[n].setdefault("heard", {})[s] = transcript
    for failure in scores.failures:
        texts[failure[0]].setdefault("lost", []).append(failure[1:])
    if has_answers(run):
        index = {sample.id: n for n, sample in enumerate(samples)}
        for exchange in exchanges(run):
            if exchange.question.id in index:
                held = texts[index[exchange.question.id]]
                if exchange.question.prompt:
                    held["text"] = beginning(exchange.question.prompt, _CHARACTERS)
                held["expected"] = beginning(" | ".join(exchange.question.expected), _CHARACTERS)
                if exchange.answer.text:
                    held.setdefault("heard", {})[0] = beginning(exchange.answer.text, _CHARACTERS)
    return texts


def _with_reasons(texts: list[dict[str, Any]]) -> dict[str, Any]:
    """Build the data file of texts; failures refer to a list of distinct reasons."""
    reasons: dict[tuple[str, str], int] = {}
    for held in texts:
        if "lost" in held:
            held["lost"] = [[s, m, reasons.setdefault((*why,), len(reasons))] for s, m, *why in held["lost"]]
    return {"reasons": [list(reason) for reason in reasons], "samples": texts}


def _keep_sound(
    site: SiteFolder, run: Run, ids: list[str], scores: _ScoreArrays, audio_mb: float
) -> dict[int, dict[int, str]]:
    """Copy audio of the worst and of random samples to the site, up to `audio_mb`.

    Returns:
        Names of the files, by number of the sample and of the system (-1 is the reference).
    """
    if audio_mb <= 0:
        return {}
    index = {id: n for n, id in enumerate(ids)}
    selected: dict[int, list[tuple[int, Path]]] = {}
    for s, system in enumerate(scores.systems):
        for item in run.items(system):
            if item.audio is not None:
                selected.setdefault(index[item.id], []).append((s, item.audio))
    if not selected:
        return {}

    def sounds(n: int) -> list[tuple[int, Path]]:
        reference = run.reference_audio(ids[n]) if n in selected else None
        return [*([(-1, reference)] if reference else []), *selected.get(n, [])]

    columns = {PageColumn(name, facts["protocol"], ""): facts for name, facts in scores.metrics.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        order = select_examples(scores.above / scores.below, columns, len(ids))
    clips = choose_clips(order, sounds, int(audio_mb * 1e6 * 4 / 3))  # `choose_clips` counts base64
    by_item: dict[int, dict[int, str]] = {}
    for clip in clips:
        by_item.setdefault(clip.sample, {})[clip.system] = site.keep_sound(clip.path)
    return by_item
