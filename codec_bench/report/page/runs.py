"""The page's description of each run: facts, machine, versions, and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from codec_bench.messages.errors import first_of
from codec_bench.report import numbers
from codec_bench.report.page.markup import moment
from codec_bench.stats.summary_types import Summary, SystemSummary
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run
from codec_bench.store.statuses import NO_FAILURE

_NAMED_SYSTEMS = 3


class RunFact(NamedTuple):
    """One fact of a run: text, remark, and the linked section."""

    text: str
    remark: str = ""
    link: str = ""


PHASES = {
    "start": "start of the program", "plan": "planning", "load": "workers and codecs", "first_item": "first item",
    "items": "other items", "finish": "end of the record",
}  # fmt: skip
"""The phases of a run's timeline (`engine.timings.Timeline`), in words."""


def describe(run: Run, name: str, summary: Summary) -> dict[str, Any]:
    """Describe one run for the page, under the display name `name`."""
    meta, counts = run.meta, run.counts()
    timings, config, data = (meta.get(key) or {} for key in ("timings", "config", "data"))
    audio_s = data.get("audio_s")
    if audio_s is None:
        known = [s.duration_s for s in run.samples() if s.duration_s is not None]
        audio_s = sum(known) if known else None
    reasons = summary.failures.reasons
    undefined = sum(row.count for row in reasons if row.metric and row.status in NO_FAILURE)
    stages = [stage for stage in timings.get("stages") or [] if isinstance(stage, Mapping)]
    timed = {system: times for system, times in (timings.get("systems") or {}).items() if isinstance(times, Mapping)}
    return {
        "name": name,
        "has_answers": has_answers(run),
        "state": meta.get("state") or "unknown",
        "started": meta.get("started"),
        "finished": meta.get("finished"),
        "wall_s": timings.get("wall_s"),
        "data": str(data.get("name") or config.get("data") or "unknown"),
        "audio_s": audio_s,
        "counts": counts,
        "speakers": len({s.speaker for s in run.samples() if s.speaker}),
        "seed": config.get("seed"),
        "failed_items": summary.failures.items,
        "failed_scores": summary.failures.scores,
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
        "timeline": [(PHASES[phase], s) for phase, s in (timings.get("timeline") or {}).items() if phase in PHASES],
        "stages": stages,
        "stage_keys": list(dict.fromkeys(key for stage in sorted(stages, key=len, reverse=True) for key in stage)),
        "speeds": [_speed(system, times, summary) for system, times in timed.items()],
        "speed_keys": list(dict.fromkeys(key for times in timed.values() for key in times)),
    }


def _speed(system: str, times: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Return the times of a system, without a speed if items failed."""
    failed = summary.systems.get(system, SystemSummary()).without_estimate
    known = {key: None if failed and key.startswith("times_") else value for key, value in times.items()}
    return {"system": system, "failed": failed, "times": known}


def _machine_line(machine: Mapping[str, Any]) -> list[str]:
    """The GPU, CPU and number of cores of a machine, for one line."""
    gpu = str(machine.get("gpu") or "")
    named = [str(machine[key]) for key in ("cpu", "machine", "processor") if machine.get(key)][:1]
    cores = [f"{machine['cores']} cores"] if machine.get("cores") else []
    return [*([gpu] if gpu and gpu != "none" else []), *named, *cores] or ["recorded below"]


def run_facts(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of the runs, as variables of the template.

    `facts` holds common facts by heading; differing ones are in `run_heads` and `run_rows`, a row per run.
    """
    facts_of_runs = [_facts(run) for run in runs]
    shared = {
        head: fact for head, fact in facts_of_runs[0].items() if all(facts[head] == fact for facts in facts_of_runs)
    }
    heads = [head for head in facts_of_runs[0] if head not in shared]
    rows = [
        {
            "name": run["name"],
            "cells": [*(facts[head] for head in heads), RunFact(first_of(list(run["systems"]), _NAMED_SYSTEMS))],
        }
        for run, facts in zip(runs, facts_of_runs)
    ]
    return {"facts": shared, "run_heads": [*heads, "Systems"], "run_rows": rows if len(runs) > 1 else []}


def _facts(run: Mapping[str, Any]) -> dict[str, RunFact]:
    """The facts on top of the page: data, systems, time, machine, failures."""
    samples = [_count(run["counts"]["samples"], "sample")]
    if run["audio_s"] is not None:
        samples.append(numbers.duration(run["audio_s"]) + (" of questions" if run["has_answers"] else ""))
    if run["speakers"]:
        samples.append(_count(run["speakers"], "speaker"))
    by = [f"by {_count(len(run['metrics']), 'metric')}", *([f"seed {run['seed']}"] if run["seed"] is not None else [])]
    took = f"took {numbers.duration(run['wall_s'])}" if run["wall_s"] is not None else ""
    started = f"started {moment(run['started'])}" if run["started"] else ""
    if run["finished"]:
        when = RunFact(moment(run["finished"]), took or started)
    else:
        when = RunFact("not finished" if run["state"] != "finished" else "unknown", started)
    failed = RunFact("nothing")
    if run["failed_items"] or run["failed_scores"]:
        failed = RunFact(
            f"{_count(run['failed_items'], 'item')}, {_count(run['failed_scores'], 'score')}", "", "failures"
        )
    undefined = run["undefined_scores"]
    machine = run["machine_line"] if run["machine"] else ["not recorded"]
    return {
        "Data": RunFact(run["data"], ", ".join(samples)),
        "Measured": RunFact(_count(len(run["systems"]), "system"), ", ".join(by)),
        "Finished": when,
        "Machine": RunFact(machine[0], ", ".join(machine[1:])),
        "Failed": failed._replace(
            remark=f"{undefined:,} undefined or refused" if undefined else "no score undefined or refused"
        ),
    }


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
