"""A gate's input: the scores of one system of a run, and the file of a baseline.

The Parquet file of a baseline: the scores of one system, by item and metric, of its runs.
A checksum over the content reveals truncated or edited files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UnknownName, UserError, on_disk
from codec_bench.stats.bounds import Bounds, declared_bounds
from codec_bench.stats.intervals import Fold
from codec_bench.stats.paired import ItemParts
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.sets import SETS, item_fold
from codec_bench.store.answers import has_answers
from codec_bench.store.identity import hashed, identity_of, question_hashes
from codec_bench.store.record import Run

FINISHED = (None, "answered", "finished")
"""States of a complete run; an imported run has none."""
CUT_OFF = ("truncated", "endless")
"""Kinds of answers without an end."""
SCHEMA = 1
KEY = b"codec_bench_gate"
_HINT = "make it again with: codec-bench gate freeze RUN --out FILE"


@dataclass(frozen=True, slots=True)
class GatedMetric:
    """The facts of a metric that two runs must share.

    Args:
        aggregate: how items become one value.
        bounds: of an item's value, or None.
        judge: the scoring model with its served names; "" without a judge.
    """

    protocol: str
    unit: str
    higher_is_better: bool
    aggregate: str
    bounds: tuple[float | None, float | None] | None
    judge: str = ""

    def fold(self, name: str) -> Fold:
        """Return the function that turns summed parts into the metric's value."""
        return item_fold(name, self.aggregate)

    @property
    def value_bounds(self) -> Bounds | None:
        """The bounds for the statistics."""
        return self.bounds


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One item's score: `value` only if `status` is `ok`, and `parts` of sums."""

    value: float | None
    status: str
    parts: tuple[float, ...] | None
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of one system of a run.

    Args:
        contents: by item id, a hash of its reference audio, text, question and expected answer.
        units: by item id its independent unit (the speaker), or None.
        texts: by item id its reference text, or None.
        scores: by metric and item id.
        identity: hashes or names of what a baseline must share: data, prompt, decoding, ...
        failed, silent, truncated: items without an estimate, with a silent one, or an answer without its end.
    """

    system: str
    metrics: Mapping[str, GatedMetric]
    contents: Mapping[str, str]
    units: Mapping[str, str | None]
    texts: Mapping[str, str | None]
    scores: Mapping[str, Mapping[str, ItemScore]]
    identity: Mapping[str, str]
    failed: int
    silent: int
    truncated: int
    seed: int | None = None

    def items(self, metric: str) -> list[ItemParts]:
        """Return the scores of a metric for the statistics."""
        return [ItemParts(id, one.value, one.parts, self.units[id]) for id, one in self.scores[metric].items()]


def read_scores(run: Run, system: str | None = None) -> RunScores:
    """Read the scores of one system of a complete run.

    Args:
        system: its name; None for the only one.

    Raises:
        UserError: the run is not complete, has several systems and none is named, or has no metric with scores by item.
        UnknownName: the run has no such system.
    """
    names = list(run.systems)
    if system is None and len(names) != 1:
        raise UserError(
            "several_systems",
            folder=run.folder,
            count=len(names),
            systems=", ".join(names),
            hint="name one of them with --system",
        )
    name = names[0] if system is None else system
    if name not in names:
        raise UnknownName("system", name, names, within=run.folder)
    meta = run.meta
    counts = run.counts()
    if meta.get("state") not in FINISHED or counts["finished"] < counts["items"]:
        raise UserError(
            "run_incomplete",
            folder=run.folder,
            finished=counts["finished"],
            items=counts["items"],
            hint="run the same command again, which continues it",
        )
    metrics = {
        metric: _gated(run, metric, facts)
        for metric, facts in run.metrics.items()
        if facts.get("aggregate") not in SETS and facts.get("higher_is_better") is not None
    }
    if not metrics:
        raise UserError(
            "run_without_gate_metric", folder=run.folder, hint="score it with a metric such as wer, stoi or utmos"
        )
    held = RecordedRun(run).items(name)
    without = {item.id: item.status for item in run.items(name) if item.status != "ok"}
    samples = {sample.id: sample for sample in run.samples()}
    sounds = dict(run.query("SELECT id, sound FROM samples"))
    questions = question_hashes(run) if has_answers(run) else {}
    scores: dict[str, dict[str, ItemScore]] = {
        metric: {id: ItemScore(None, without.get(id, "not_scored"), None) for id in samples} for metric in metrics
    }
    for row in run.scores(name):
        if row.metric in metrics:
            scores[row.metric][row.id] = _item_score(row)
    contents = {id: hashed([sounds[id], sample.text, questions.get(id)]) for id, sample in samples.items()}
    texts = {id: sample.text for id, sample in samples.items()}
    truncated = sum(bool(ways.intersection(CUT_OFF)) for ways in held.noted.values())
    faults = (len(held.unscored), held.silent, truncated)
    seed = (meta.get("config") or {}).get("seed")
    return RunScores(name, metrics, contents, run.units(), texts, scores, _identity(run), *faults, seed)


def _gated(run: Run, metric: str, facts: Mapping[str, Any]) -> GatedMetric:
    judge = " / ".join([facts["judge"], *run.served(metric)]) if facts.get("judge") else ""
    return GatedMetric(
        str(facts.get("protocol", "")), facts.get("unit", ""), bool(facts["higher_is_better"]),
        facts.get("aggregate") or "", declared_bounds(facts), judge,
    )  # fmt: skip


def _item_score(row: Any) -> ItemScore:
    """Convert a row of the record to an item's score."""
    parts = None if row.numerator is None or row.denominator is None else (row.numerator, row.denominator)
    counts = row.detail.get("counts", parts)
    transcript = row.detail.get("transcript", row.detail.get("hypothesis"))
    numbers = None if counts is None else tuple(map(float, counts))
    return ItemScore(row.value, row.status, numbers, transcript if isinstance(transcript, str) else None)


def _identity(run: Run) -> dict[str, str]:
    """Return what must be equal in run and baseline, such as data and prompt, by name."""
    identity = identity_of(run)
    parts = {name: getattr(identity, name) for name in ("data", "prompt", "reading", "choices", "precision", "control")}
    fingerprint = run.meta.get("fingerprint") or {}
    request = fingerprint.get("asked") or {}
    benchmark = (run.meta.get("benchmark") or {}).get("name")
    decoding = request.get("decoding")
    stated = None if decoding is None else json.dumps(decoding, sort_keys=True, default=str)
    return {name: value for name, value in {**parts, "benchmark": benchmark, "decoding": stated}.items() if value}


def write_baseline(repeats: Sequence[RunScores], file: Path) -> None:
    """Write the scores of one system's repeats to a Parquet file, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = repeats[0]
    rows = [
        (number, id, first.contents[id], first.units[id], first.texts[id], metric, one.value, one.status,
         None if one.parts is None else list(one.parts), one.transcript)
        for number, run in enumerate(repeats) for metric, held in run.scores.items() for id, one in held.items()
    ]  # fmt: skip
    columns = list(zip(*rows))
    facts = ("failed", "silent", "truncated", "seed")
    head = {
        "schema": SCHEMA,
        "version": version("codec-bench"),
        "system": first.system,
        "identity": dict(first.identity),
        "metrics": {name: asdict(facts) for name, facts in first.metrics.items()},
        "repeats": [{name: getattr(run, name) for name in facts} for run in repeats],
        "checksum": _checksum(columns),
    }
    table = pa.table([pa.array(c, field.type) for c, field in zip(columns, _schema())], schema=_schema())
    table = table.replace_schema_metadata({KEY: json.dumps(head).encode()})
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    with on_disk("file_not_writable", path=file):
        try:
            pq.write_table(table, partial, compression="zstd")
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)


def read_baseline(file: Path) -> list[RunScores]:
    """Read the scores of each repeat from a baseline; raises UserError if damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file).read()
    except FileNotFoundError as error:
        raise UserError("no_baseline", path=file, hint=_HINT) from error
    except OSError as error:
        raise UserError("file_not_readable", path=file, cause=error, hint=_HINT) from error
    except pa.ArrowException as error:
        raise UserError("baseline_not_parquet", path=file, hint=_HINT) from error
    head = _read_head(table.schema.metadata, file)
    if not table.schema.equals(_schema()):
        raise UserError("baseline_lacks_columns", path=file, hint=_HINT)
    columns = [tuple(column.to_pylist()) for column in table.columns]
    if _checksum(columns) != head["checksum"]:
        raise UserError("baseline_changed", path=file, hint=_HINT)
    return _repeats(columns, head, file)


def _repeats(columns: Sequence[tuple[Any, ...]], head: Mapping[str, Any], file: Path) -> list[RunScores]:
    """Build the scores of each repeat from a baseline's columns and metadata (`head`)."""
    metrics = {
        name: GatedMetric(**{**facts, "bounds": None if facts["bounds"] is None else tuple(facts["bounds"])})
        for name, facts in head["metrics"].items()
    }
    contents: dict[str, str] = {}
    units: dict[str, str | None] = {}
    texts: dict[str, str | None] = {}
    scores: list[dict[str, dict[str, ItemScore]]] = [{name: {} for name in metrics} for _ in head["repeats"]]
    for number, id, content, unit, text, metric, value, status, parts, transcript in zip(*columns):
        held = scores[number][metric]
        if id in held:
            raise UserError("baseline_repeats_item", path=file, item=id, metric=metric, hint=_HINT)
        held[id] = ItemScore(value, status, None if parts is None else tuple(parts), transcript)
        contents[id], units[id], texts[id] = content, unit, text
    return [
        RunScores(
            head["system"], metrics, contents, units, texts, of, head["identity"],
            facts["failed"], facts["silent"], facts["truncated"], facts["seed"],
        )
        for of, facts in zip(scores, head["repeats"])
    ]  # fmt: skip


def _read_head(metadata: Mapping[bytes, bytes] | None, file: Path) -> dict[str, Any]:
    """Read a baseline's facts from the metadata of its Parquet file."""
    try:
        head = json.loads((metadata or {})[KEY])
    except (KeyError, ValueError) as error:
        raise UserError("not_a_gate_baseline", path=file, hint=_HINT) from error
    if head.get("schema") != SCHEMA:
        raise UserError("baseline_schema", path=file, schema=head.get("schema"), expected=SCHEMA, hint=_HINT)
    return dict(head)


def _schema() -> Any:
    """Build the Arrow schema of a baseline."""
    import pyarrow as pa

    names = ("id", "content", "unit", "text", "metric")
    scores = [("value", pa.float64()), ("status", pa.string()), ("parts", pa.list_(pa.float64()))]
    texts = [(name, pa.string()) for name in names]
    return pa.schema([("repeat", pa.int32()), *texts, *scores, ("transcript", pa.string())])


def _checksum(columns: Sequence[Sequence[Any]]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for column in columns:
        total.update(json.dumps(column, ensure_ascii=True).encode())
    return total.hexdigest()
