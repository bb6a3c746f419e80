"""What commands print: tables to stdout, messages to stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.cli.metrics import BETTER, COST, group_rows, metric_rows
from codec_bench.cli.output import console, table, talk
from codec_bench.errors import UnknownName, UserError

if TYPE_CHECKING:
    from codec_bench.api.compare import Pair
    from codec_bench.api.sample_size import SampleSize
    from codec_bench.api.verify_batching import Verdict
    from codec_bench.store.record import Run


def print_run(run: Run, summary: Mapping[str, Any], *, timings: bool = False) -> None:
    """Prints a run: its summary with notes, its failures, where the time went if asked, and where its folder and page are."""
    from rich.text import Text

    from codec_bench.cli.breakdown import print_breakdowns
    from codec_bench.report.numbers import plain
    from codec_bench.report.table import failures_table, summary_notes, summary_table

    out = console()
    out.print(summary_table(summary, width=out.width))
    for note in summary_notes(summary):
        out.print(Text(plain(note)))
    print_breakdowns(summary)
    counts = run.counts()
    if summary["failures"]["reasons"]:
        out.print(failures_table(summary))
    recorded = run.meta.get("timings", {})
    if timings and recorded:
        out.print(time_table(recorded, summary))
    samples = f"{counts['samples']} sample{'s' if counts['samples'] != 1 else ''}"
    words = f"{counts['finished']} of {counts['items']} items ({samples})"
    talk(f"{words}; {counts['failed_items']} items and {counts['failed_scores']} scores failed")
    unmatched = run.meta.get("data", {}).get("unmatched", [])
    if unmatched:
        more = f" and {len(unmatched) - 3} more" if len(unmatched) > 3 else ""
        talk(
            f"{len(unmatched)} generated files belong to no sample and were left out: {', '.join(unmatched[:3])}{more}"
        )
    page = run.folder / "report.html"
    talk(f"run folder: {run.folder}" + (f"\npage: {page}" if page.is_file() else ""))


def time_table(timings: Mapping[str, Any], summary: Mapping[str, Any]) -> Any:
    """Where the time went: one row for each stage with its part of all workers' time, and the idle part.

    A system of which items failed has no speed, because those items took no full part in the time.
    """
    from codec_bench.report.numbers import without_estimate

    failing = {name for name, system in summary["systems"].items() if without_estimate(system)}
    rows = []
    for stage in timings["stages"]:
        share = stage.get("share")
        audio_s, busy_s = stage.get("audio_s"), stage["busy_s"]
        speed = f"{audio_s / busy_s:.1f}x" if audio_s and busy_s and stage["stage"] not in failing else ""
        part = f"{100 * share:.1f} %" if share is not None else ""
        rows.append(
            (stage["stage"], stage.get("items"), f"{audio_s:.0f}" if audio_s else "", f"{busy_s:.2f}", speed, part)
        )
        steps = {k: v for k, v in stage.get("steps", {}).items() if v >= 0.01 * max(busy_s, 1e-9)}
        if len(steps) > 1:
            rows += [(f"  {k}", "", "", f"{v:.2f}", "", "") for k, v in sorted(steps.items(), key=lambda e: -e[1])]
    rows.append(("idle workers", "", "", "", "", f"{100 * (1 - timings['worker_use']):.1f} %"))
    columns = ("where the time went", "items", "audio s", "busy s", "speed", "of workers")
    made = table(columns, rows, numeric=columns[1:])
    made.caption = f"{timings['wall_s']:.1f} s on {timings['workers']} workers; {timings['audio_s'] / max(timings['wall_s'], 1e-9):.1f}x real time"
    return made


def print_pairs(pairs: Sequence[Pair]) -> None:
    """Prints a table for each pair of systems, with a row for each metric, and below it what to know of the numbers."""
    from rich.text import Text

    from codec_bench.report.numbers import plain
    from codec_bench.report.table import comparison_notes, comparison_table

    out = console()
    tests = sum(c.test.p is not None for pair in pairs for c in pair.comparisons)
    for pair in pairs:
        out.print(Text(plain(f"A: {pair.a}   B: {pair.b}")))
        out.print(comparison_table(pair.comparisons, adjusted=tests > 1, width=out.width))
        for note in comparison_notes(pair.comparisons):
            out.print(Text(plain(note)))
    if tests > 1:
        out.print(
            f"{tests} tests were made. With so many, some p are small by chance: go by p (Holm), which is adjusted for all."
        )


def print_sample_size(found: SampleSize) -> None:
    """Prints how large a study must be, and the pilot that this is judged from."""
    pilot, unit = found.pilot, f" {found.unit}" if found.unit else ""
    rows = [(f"{plan.speakers:,}", plan.utterances_per_speaker, f"{plan.utterances:,}") for plan in found.plans]
    columns = ("speakers", "utterances of each", "utterances in all")
    console().print(table(columns, rows, numeric=columns))
    talk(
        f"{found.metric}, {found.a} minus {found.b}: each line shows a difference of {found.wanted:g}{unit} with a probability of "
        f"{100 * found.power:g} %.\nThe pilot has {pilot.items:,} utterances in {pilot.units:,} units (speakers, or utterances of "
        f"unknown speaker); its difference is {pilot.difference:.3g}{unit}."
    )
    if pilot.units < 20:
        talk("A pilot of fewer than 20 units knows its spread only roughly; plan for more.")


def print_verdict(verdict: Verdict) -> None:
    """Prints the result of verify-batching."""
    rows = [
        ("clips", f"{verdict.items}, {verdict.shortest_s:.2f} to {verdict.longest_s:.2f} s"),
        (
            "largest relative difference",
            None if verdict.relative is None else f"{verdict.relative:.2g} (at most 1e-05)",
        ),
        ("largest wave difference", None if verdict.wave is None else f"{verdict.wave:.2g} (at most 1e-04)"),
        (
            "code frames that differ",
            None if verdict.frames is None else f"{verdict.flips} of {verdict.frames} (at most 0.01 %)",
        ),
        ("worst clip", verdict.worst),
        ("batches are exact", "yes" if verdict.exact else "NO"),
    ]
    console().print(table((verdict.kind, verdict.name), [r for r in rows if r[1] is not None]))


def _listing(what: str) -> list[dict[str, Any]]:
    from codec_bench import codecs, features, registry
    from codec_bench.cli import benchmarks
    from codec_bench.config import config_names, read_config
    from codec_bench.data import REGISTERED, open_source
    from codec_bench.text.rules import get_rule, rule_names

    if what in benchmarks.KINDS:
        return benchmarks.listing(what)
    if what == "codecs":
        return [_codec_row(row) for row in codecs.list_codecs()]
    if what == "features":
        return [_feature_row(n, p) for n, p in sorted(features.REGISTRY.table().items())]
    if what == "rules":
        rules = [get_rule(n) for n in rule_names()]
        return [
            {"name": r.name, "languages": list(r.languages) or "any", "over a set": r.aggregate, "what": r.summary}
            for r in rules
        ]
    if what == "data":
        return [{"name": n, "samples": len(open_source(n)), "folder": str(p)} for n, p in REGISTERED.items()]
    if what == "presets":
        return [{"name": n, "summary": read_config("preset", n)["summary"]} for n in config_names("preset")]
    if what == "recipes":
        return [{"name": n, "summary": read_config("recipe", n)["summary"]} for n in config_names("recipe")]
    if what == "plugins":
        return [
            {
                "name": p.name,
                "module": p.target,
                "adds": ", ".join(n for t in p.tables.values() for n in t),
                "error": p.error,
            }
            for p in registry.plugins()
        ]
    kinds = ["codecs", "metrics", "features", "rules", "data", "presets", "recipes", "plugins", *benchmarks.KINDS]
    raise UnknownName("list", what, kinds)


def _codec_row(row: Any) -> dict[str, Any]:
    info = row.info
    here = {None: "", True: "here", False: "not here"}[row.weights_here]
    facts = {} if info is None else {
        "rates_hz": list(info.sample_rates_hz), "channels": list(info.channels), "frame_rate_hz": info.frame_rate_hz,
        "bitrate_bps": info.nominal_bitrate_bps, "code": info.code_licence, "weights": info.weights_licence,
    }  # fmt: skip
    return {"name": row.name, **facts, "weights are": here, "points_kbps": row.points, "what": row.summary}


def _feature_row(name: str, path: str) -> dict[str, Any]:
    """The row of a feature: whether its weights are here, and its languages, or their number if they are many."""
    from codec_bench import features, weights

    try:
        made = features.REGISTRY.resolve(name)
    except UserError as error:  # from a broken package; the other rows are not affected
        return {"name": name, "what": f"broken: {error.message}"}
    entries = [n for n in weights.checkpoint_names() if n == name or name in weights.checkpoint(n).used_by]
    here = "" if not entries else "here" if weights.lookup(entries[0]) else "not here"
    known = made.languages_of(name) if hasattr(made, "languages_of") else getattr(made, "languages", ())
    languages = list(known) if len(known) < 6 else f"{len(known)}"
    summary = (made.__doc__ or "").strip().split("\n")[0]
    return {"name": name, "languages": languages, "weights are": here, "what": summary, "code": path}


def print_list(what: str, as_json: bool, *, groups: bool = False, by: str | None = None) -> None:
    """Prints the list of one kind of thing; of metrics, `groups` prints their groups, and `by` says their order.

    Raises:
        UnknownName: there is no such list or order. UserError: groups or an order of something else are asked for.
    """
    for asked, option in ((groups, "--groups"), (by, "--by")):
        if asked and what != "metrics":
            raise UserError(f"{option} is for metrics, and the list is of {what}", hint="codec-bench list metrics")
    if groups and by:
        raise UserError("--by is the order of metrics, and --groups lists groups", hint="leave one of them out")
    rows = group_rows() if groups else metric_rows(by or "about") if what == "metrics" else _listing(what)
    if as_json:
        sys.stdout.write(json.dumps(rows, ensure_ascii=False) + "\n")
        return
    if not rows:
        talk(f"no {what}")
        return
    if what == "codecs":
        rows = [_codec_line(row) for row in rows]
    columns = list(dict.fromkeys(k for row in rows for k in row))
    console().print(table(columns, [[_plain(row.get(c)) for c in columns] for row in rows]))


def _codec_line(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a codec, short enough for a terminal; `--json` prints all of it."""
    rates = [f"{rate / 1000:g}" for rate in row.get("rates_hz") or ()]
    bitrate = row.get("bitrate_bps")
    points = re.split(", | to ", row["points_kbps"])
    return {
        "name": row["name"],
        "kHz": ", ".join(rates) if len(rates) < 4 else f"{rates[0]} to {rates[-1]}",
        "ch": row.get("channels"),
        "frames/s": row.get("frame_rate_hz"),
        "kbps": f"{bitrate / 1000:.3g}" if bitrate else "",
        "@kbps": " to ".join(dict.fromkeys([points[0], points[-1]])),
        "licence: code": row.get("code"),
        "of weights": row.get("weights"),
        "weights are": row["weights are"],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{k}: {v}" for k, v in value.items() if v is not None)
    return f"{value:g}" if isinstance(value, float) else value


def describe_name(name: str) -> dict[str, Any]:
    """Everything about one name.

    Raises:
        UnknownName: nothing has this name.
    """
    from codec_bench import codecs, features, metrics
    from codec_bench.benchmark import benchmark_names
    from codec_bench.cli import benchmarks
    from codec_bench.config import config_names, read_config
    from codec_bench.data import REGISTERED
    from codec_bench.metrics import group_names
    from codec_bench.metrics.groups import group_metrics
    from codec_bench.models import model_names
    from codec_bench.registry import Spec, is_own_code
    from codec_bench.store.record import DATABASE, open_run

    if (Path(name) / DATABASE).is_file():
        run = open_run(name)
        return {"run": name, **run.counts(), **{k: v for k, v in run.meta.items() if k not in ("timings", "schema")}}
    base = Spec.parse(name).name
    if base in metrics.GROUPS or base in metrics.REGISTRY.names():
        members = metrics.expand([name])
        facts = [_metric_facts(m) for m in members]
        return facts[0] if len(facts) == 1 else {"group": name, **{f["metric"]: f["protocol"] for f in facts}}
    if base in features.REGISTRY.names():
        return _feature_facts(name)
    if name in group_names():
        return {"group": name, "stands for": "those that can be measured here", "metrics": group_metrics(name)}
    if name in REGISTERED:
        return _data_facts(name)
    if name in config_names("preset"):
        return {"preset": name, **read_config("preset", name)}
    if is_own_code(name) or codecs.has_codec(name):
        from dataclasses import asdict

        return {"codec": name, **asdict(codecs.load_codec(name).info)}
    found = benchmarks.describe(name)
    if found is not None:
        return found
    known = [
        *benchmark_names(),
        *model_names(),
        *codecs.codec_names(),
        *metrics.REGISTRY.names(),
        *metrics.GROUPS,
        *group_names(),
        *features.REGISTRY.names(),
        *REGISTERED,
        *config_names("preset"),
    ]
    raise UnknownName("codec, metric, feature, benchmark, model, suite, data set, preset or run", name, known)


def _feature_facts(name: str) -> dict[str, Any]:
    from codec_bench.features import load_feature

    feature = load_feature(name)
    return {
        "feature": name,
        "protocol": feature.protocol,
        "rate_hz": feature.rate_hz,
        "runs on": feature.where,
        "what": (type(feature).__doc__ or "").strip(),
    }


def _data_facts(name: str) -> dict[str, Any]:
    from codec_bench.data import REGISTERED, open_source

    source = open_source(name)
    folder = str(REGISTERED[name])
    return {"data": name, "samples": len(source), "fingerprint": source.fingerprint, "folder": folder}


def _metric_facts(name: str) -> dict[str, Any]:
    from codec_bench import metrics
    from codec_bench.metrics.costs import cost_of

    try:
        made = metrics.build_metric(name)
    except UserError as error:  # a metric that needs a variant; its class is described
        kind = metrics.REGISTRY.resolve(name)
        return {
            "metric": name,
            "protocol": f"none yet: {error.message}",
            "hint": error.hint,
            "what": (kind.__doc__ or "").strip(),
        }
    return {
        "metric": made.name, "protocol": made.protocol, "kind": made.kind, "better": BETTER[made.higher_is_better],
        "unit": made.unit or "none", "range": list(made.range), "aggregate": made.aggregate, "rate_hz": made.rate_hz,
        "features": [*made.estimate_features], "paper": made.paper, "agrees with": made.source,
        "licence of the weights": ", ".join(metrics.licences_of(name)), COST: cost_of(name),
        "what": (type(made).__doc__ or "").strip(),
    }  # fmt: skip


def print_name(name: str, as_json: bool) -> None:
    """Prints everything about one name."""
    facts = describe_name(name)
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")
        return
    (kind, title), *rest = facts.items()
    console().print(table((kind, str(title)), [(k, _plain(v)) for k, v in rest if v not in (None, "", [])]))
