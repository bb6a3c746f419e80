"""Quality against bitrate: curves by family, BD-rates, order of points.

Codecs that differ only in their operating point are a family: `opus-12k` and `opus@24` belong to `opus`. Own code is
grouped by the name in its `info`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from codec_bench.codecs.checks import finding
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.numbers import family
from codec_bench.stats.bd_rate import bd_rate


def families(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """Group codecs into families of the same codec at several bitrates.

    Args:
        labels: display names by codec, which determine the family.
    """
    members: dict[str, list[str]] = {}
    for name, label in labels.items():
        members.setdefault(family(label), []).append(name)
    return members


def curves(groups: Mapping[str, Sequence[str]], quality: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Build quality over bitrate for each metric and codec family, by rising bitrate.

    Args:
        groups: codecs by family.
        quality: for each codec the summary entries of its metrics; codecs without any are excluded.

    Returns:
        By metric {"unit", "higher_is_better", "protocol", "families": {family: [{"codec", "bitrate_bps", "value",
        "ci95", "n", "compared"}]}}; `compared` is False for a point that the summary compares with no other.
    """
    out: dict[str, dict[str, Any]] = {}
    metrics = dict.fromkeys(m for entries in quality.values() for m in entries if m != "bitrate")
    for metric in metrics:
        facts = next(e[metric] for e in quality.values() if metric in e)
        of_families: dict[str, list[dict[str, Any]]] = {}
        for name, members in groups.items():
            points = []
            for codec in members:
                entries = quality.get(codec, {})
                rate, entry = entries.get("bitrate", {}).get("value"), entries.get(metric)
                if rate is None or entry is None or entry["value"] is None:
                    continue
                compared = (entry.get("standing") or {}).get("compared", True)
                held = {key: entry[key] for key in ("value", "ci95", "n")}
                points.append({"codec": codec, "bitrate_bps": rate, **held, "compared": compared})
            if points:
                of_families[name] = sorted(points, key=lambda p: p["bitrate_bps"])
        declared = {key: facts[key] for key in ("unit", "higher_is_better", "protocol")}
        out[metric] = {**declared, "families": of_families}
    return out


def delta_rates(curves_by_metric: Mapping[str, Mapping[str, Any]], anchor: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Compute the Bjøntegaard delta rate of each family against the family `anchor`.

    Points that are not compared, such as those of codecs with suspect checks, are excluded.

    Args:
        curves_by_metric: the result of `curves`.

    Returns:
        By metric and family {"value", "reason", "excluded"}: a reason where the value is None, and the codecs of both
        families that are excluded.
    """
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for metric, facts in curves_by_metric.items():
        families = facts["families"]
        points = {name: [(p["bitrate_bps"], p["value"]) for p in ps if p["compared"]] for name, ps in families.items()}
        out[metric] = {}
        for name, test in points.items():
            if name == anchor:
                continue
            both = (*families.get(anchor, ()), *families[name])
            excluded = [p["codec"] for p in both if not p["compared"]]
            try:
                if anchor not in points:
                    raise UserError("no_anchor_value", anchor=anchor)
                if facts["higher_is_better"] is None:
                    raise UserError("no_direction")
                value = bd_rate(anchor=points[anchor], test=test, higher_is_better=facts["higher_is_better"])
                out[metric][name] = {"value": value, "reason": None, "excluded": excluded}
            except UserError as error:
                reason = of_error(error, with_type=False)
                out[metric][name] = {"value": None, "reason": reason, "excluded": excluded}
    return out


def anchor_family(anchor: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Return the family of `--anchor`, or of that codec; raises UnknownName."""
    for name, members in groups.items():
        if anchor == name or anchor in members:
            return name
    raise UnknownName("profiled_family", anchor, groups)


def find_quality_drops(curves_by_metric: Mapping[str, Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Find where quality falls although the bitrate rises within a family.

    Overlapping intervals are `ok`, since the difference may be chance; others are `suspect`.

    Args:
        curves_by_metric: the result of `curves`.

    Returns:
        Findings by the codec with the higher bitrate.
    """
    out: dict[str, list[dict[str, Any]]] = {}
    for metric, facts in curves_by_metric.items():
        higher = facts["higher_is_better"]
        if higher is None:
            continue
        for points in facts["families"].values():
            for before, after in pairwise(points):
                worse = after["value"] < before["value"] if higher else after["value"] > before["value"]
                if not worse or after["bitrate_bps"] == before["bitrate_bps"]:
                    continue
                clear = _do_intervals_differ(before, after, higher)
                diagnostic = Diagnostic(
                    "quality_falls", metric=metric, value=after["value"], bps=after["bitrate_bps"], clear=clear,
                    other_value=before["value"], other_bps=before["bitrate_bps"], other=before["codec"],
                )  # fmt: skip
                difference = after["value"] - before["value"]
                drop = finding("quality rises with bitrate", "suspect" if clear else "ok", diagnostic, difference)
                out.setdefault(after["codec"], []).append(drop)
    return out


def _do_intervals_differ(before: Mapping[str, Any], after: Mapping[str, Any], higher: bool) -> bool:
    if not before["ci95"] or not after["ci95"]:
        return True
    return after["ci95"][1] < before["ci95"][0] if higher else after["ci95"][0] > before["ci95"][1]
