"""The variables of the page's template, which writes the tables that need no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.report import numbers
from codec_bench.report.page.exchanges import common_rows, counting_rows, published_rows, subset_rows
from codec_bench.report.page.sound import Clip
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run, SampleRow

if TYPE_CHECKING:
    from codec_bench.report.page.system import System


def written(
    runs: Sequence[Run],
    names: Sequence[str],
    systems: Sequence[System],
    heads: Sequence[Mapping[str, Any]],
    entries: Sequence[Sequence[Mapping[str, Any] | None]],
    summaries: Sequence[Mapping[str, Any]],
    samples: Sequence[SampleRow],
    rows: int,
    clips: Sequence[Clip],
) -> dict[str, Any]:
    """The variables of the template."""
    shown = [
        (system.label, head["name"], entry)
        for system, row in zip(systems, entries)
        for head, entry in zip(heads, row)
        if entry is not None
    ]
    return {
        "title": " · ".join(names),
        "runs": [_run(run, name, summary) for run, name, summary in zip(runs, names, summaries)],
        "heads": heads,
        "table": [
            {
                "label": system.label,
                "unprocessed": system.name == numbers.UNPROCESSED,
                "lost": lost,
                "silent": summaries[system.run]["systems"][system.name].get("silent", 0),
                "cells": [_shown(entry, head, s, lost) for entry, head in zip(row, heads)],
            }
            for s, (system, row) in enumerate(zip(systems, entries))
            for lost in [numbers.without_estimate(summaries[system.run]["systems"][system.name])]
        ],
        "notes": [*numbers.common_notes(shown), *numbers.interval_notes(shown)],
        "common": common_rows(systems, heads, entries),
        "counting": counting_rows(systems, heads, entries),
        "subsets": subset_rows(systems, heads, entries),
        "published": published_rows(runs),
        "samples": len(samples),
        "shown_samples": rows,
        "heard_samples": len({clip.sample for clip in clips}),
        "sound_mb": sum(path.stat().st_size for path in {clip.path for clip in clips}) * 4 / 3 / 1e6,
    }


def reasons(
    runs: Sequence[Run], systems: Sequence[System], sets: Sequence[str], summaries: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Why values are missing, over all runs, with the labels of the systems and the protocols of the metrics."""
    labels = {(system.run, system.name): system.label for system in systems}
    rows = []
    for r, (run, summary) in enumerate(zip(runs, summaries)):
        metrics = run.metrics
        for row in summary["failures"]["reasons"]:
            protocol = metrics[row["metric"]].get("protocol", "") if row["metric"] else ""
            rows.append({**row, "run": r, "system": labels[r, row["system"]], "protocol": protocol, "data": sets[r]})
    return numbers.grouped_reasons(rows)


def reason(
    row: Mapping[str, Any], systems: Sequence[System], heads: Sequence[Mapping[str, Any]], example: int | None
) -> dict[str, Any]:
    """One row of the failures, with the filter for its samples: a column, and the system if it is only one.

    `example` is the position of the sample that is named as example, or None if it is not on the page.
    """
    keys = [(head["name"], head["protocol"], head["data"]) for head in heads]
    labels = [system.label for system in systems]
    return {
        **row,
        "sample": example,
        "column": keys.index((row["metric"], row["protocol"], row["data"])) if row["metric"] else -1,
        "place": labels.index(row["systems"][0]) if len(row["systems"]) == 1 else -1,
        "where": f"all {len(systems)}" if len(row["systems"]) == len(systems) > 1 else ", ".join(row["systems"]),
    }


def _shown(entry: Mapping[str, Any] | None, head: Mapping[str, Any], system: int, lost: int) -> dict[str, Any] | None:
    if entry is None:
        return None
    factor, places, value = head["factor"], head["places"], entry["value"]
    return {
        "value": numbers.number(None if value is None else factor * value, places),
        "spread": numbers.spread(entry, places, factor),
        "note": entry.get("note") or "",
        "interval": [numbers.number(factor * bound, places) for bound in entry["ci95"]] if entry["ci95"] else None,
        "n": entry["n"],
        "failed": entry["failed"],
        "flagged": entry["failed"] > lost,
        "missing": ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in entry["missing"].items()),
        "missing_word": " ".join(entry["missing"]).replace("_", " "),
        "harmless": set(entry["missing"]) <= ({"refused"} if entry["n"] else {"refused", "undefined"}),
        "best": system in head["best"],
    }


def _run(run: Run, name: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    meta, counts = run.meta, run.counts()
    timings, config, data = (meta.get(key) or {} for key in ("timings", "config", "data"))
    audio_s = data.get("audio_s")
    if audio_s is None:
        known = [s.duration_s for s in run.samples() if s.duration_s is not None]
        audio_s = sum(known) if known else None
    reasons = summary["failures"]["reasons"]
    undefined = sum(row["count"] for row in reasons if row["metric"] and row["status"] in ("undefined", "refused"))
    stages = [stage for stage in timings.get("stages") or [] if isinstance(stage, Mapping)]
    speeds = {s: t for s, t in (timings.get("systems") or {}).items() if isinstance(t, Mapping)}
    return {
        "name": name,
        "asked": has_answers(run),
        "state": meta.get("state") or "unknown",
        "started": meta.get("started"),
        "finished": meta.get("finished"),
        "wall_s": timings.get("wall_s"),
        "data": str(data.get("name") or config.get("data") or "unknown"),
        "audio_s": audio_s,
        "counts": counts,
        "speakers": len({s.speaker for s in run.samples() if s.speaker}),
        "seed": config.get("seed"),
        "failed_items": summary["failures"]["items"],
        "failed_scores": summary["failures"]["scores"],
        "undefined_scores": undefined,
        "versions": meta.get("versions") or {},
        "machine": meta.get("machine") or {},
        "unmatched": [str(name) for name in data.get("unmatched") or []],
        "how": meta.get("how") or {},
        "config": config,
        "fingerprint": meta.get("fingerprint") or {},
        "systems": run.systems,
        "metrics": run.metrics,
        "machine_line": _machine_line(meta.get("machine") or {}),
        "stages": stages,
        "stage_keys": list(dict.fromkeys(key for stage in sorted(stages, key=len, reverse=True) for key in stage)),
        "speeds": speeds,
        "speed_keys": list(dict.fromkeys(key for speed in speeds.values() for key in speed)),
    }


def _machine_line(machine: Mapping[str, Any]) -> list[str]:
    """The machine in a few words: the GPU if there is one, the processor, and its cores."""
    gpu = str(machine.get("gpu") or "")
    named = [str(machine[key]) for key in ("cpu", "machine", "processor") if machine.get(key)][:1]
    cores = [f"{machine['cores']} cores"] if machine.get("cores") else []
    return [*([gpu] if gpu and gpu != "none" else []), *named, *cores] or ["recorded below"]
