"""The page of a profile: one HTML file with tables, curves and audio.

Which file to open
    `__init__.py`      the variables of the template, and the data of the scripts.
    `profile.html.j2`, `profile.css`   the sections and their style.
    `figures.js`       line plots; `codebooks.js` plots of codebooks; `language.js` of token statistics.
    `probes.js`        plots of probes; `listen.js` the players; `profile.js` starts everything.

The file opens from disk and loads nothing. Security policy, style, plots and player are those of a run's page, and the
script's data has its layout: codecs are its systems, named by position. Text from data is hostile: the template escapes
it, and scripts set it as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from codec_bench.apps.profiling.probe_rows import language_lines, probe_points
from codec_bench.apps.profiling.robust_rows import codebook_figures, loss_figures, noise_figures, rounded_figures
from codec_bench.apps.profiling.rows import delta_rates, findings, head, label, reasons, sections
from codec_bench.messages.errors import first_of
from codec_bench.report import numbers
from codec_bench.report.page.markup import SHARED, PageFiles, moment, render
from codec_bench.report.page.sound import is_sound
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.files import write_text

_PLOTS = (loss_figures, noise_figures, codebook_figures, rounded_figures)
_BARS = 96
_BITRATE = "bitrate"
_DECLARED = ("rates", "channels", "causal", "licence of the code", "licence of the weights", "weights", "described in")


def collect(
    profile: Mapping[str, Any], clips: Sequence[tuple[str, Sequence[tuple[int, int]]]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the variables of the HTML template, and the data of the page's script.

    Args:
        profile: the content of `profile.json`.
        clips: (id, [(codec's position or -1 for the reference, number of the audio)]).
    """
    names = list(profile["codecs"])
    labels = [head(profile, name) for name in names]
    columns = _columns(profile)
    data = {
        **_plots(profile, names, labels, columns),
        "missing": [],
        "saved": [],
        "clips": [[n, index, sound] for n, (_, tracks) in enumerate(clips) for index, sound in tracks],
        "samples": [sample for sample, _ in clips],
        "codebooks": _codebooks(profile, labels),
        "figures": [plot for plots in _PLOTS for plot in plots(profile, labels)],
        "language": language_lines(profile["codecs"], labels),
        "probes": probe_points(profile["codecs"], labels),
    }
    playable = [
        (n, sample, tracks) for n, (sample, tracks) in enumerate(clips) if any(index >= 0 for index, _ in tracks)
    ]
    facts, options = profile["machine"], profile["how"]
    shown_sections = sections(profile)
    page = {
        "title": list(profile["families"]),
        "labels": labels,
        "sections": [section for section in shown_sections if section.rows],
        "reasons": reasons(shown_sections, [label(profile, name) for name in names]),
        "suspects": len(findings(profile)),
        "checks": _checks(profile, ("failed", "suspect")),
        "in_order": _checks(profile, ("ok",)),
        "without_check": _checks(profile, ("not applicable",)),
        "checked": sum(f["state"] != "not applicable" for _, f in _findings(profile)),
        "data_name": profile["data"]["name"],
        "samples": profile["data"]["usable"],
        "unusable": profile["data"]["samples"] - profile["data"]["usable"],
        "seconds": next((c["rate"]["seconds"] for c in profile["codecs"].values() if c["rate"]["state"] == "ok"), None),
        "device": options["device"],
        "machine_name": facts.get("gpu") if str(options["device"]).startswith("cuda") else facts.get("cpu"),
        "cores": facts.get("cores"),
        "torch": profile["versions"].get("torch"),
        "finished": moment(profile["finished"]),
        "bd_rate": delta_rates(profile),
        "anchor": profile["anchor"],
        "faults": [(label(profile, n), c["faults"]) for n, c in profile["codecs"].items() if c["faults"]],
        "uncurved": numbers.uncurved(profile["labels"].values()),
        "figures": data["figures"],
        "curves": bool(data["columns"][1:]),
        "language": bool(data["language"]),
        "probes": bool(data["probes"]["lines"]),
        "books": _book_tables(profile, labels),
        "clips": [(n, sample, _tracks(tracks, labels)) for n, sample, tracks in playable],
        "versions": profile["versions"],
        "settings": options["settings"],
        "infos": [(text, _info_facts(profile["codecs"][name]["info"])) for text, name in zip(labels, names)],
        "declared_keys": _DECLARED,
        "not_counted": _not_counted(profile, labels),
    }
    return page, data


def _findings(profile: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, codec in profile["codecs"].items():
        for finding in codec["findings"].get("findings", []):
            yield label(profile, name), finding


def _checks(profile: Mapping[str, Any], states: Sequence[str]) -> list[dict[str, Any]]:
    """List findings of these states; codecs with equal findings share a row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for text, finding in _findings(profile):
        if finding["state"] in states:
            rows.setdefault((finding["state"], finding["check"], finding["found"]), []).append(text)
    checks = list(dict.fromkeys(check for _, check, _ in rows))
    ordered = sorted(rows.items(), key=lambda row: (states.index(row[0][0]), checks.index(row[0][1])))
    everyone = len(profile["codecs"])
    return [
        {"state": state, "check": check, "found": finding_text, "codecs": ["all"] if len(who) == everyone > 1 else who}
        for (state, check, finding_text), who in ordered
    ]


def _tracks(tracks: Sequence[tuple[int, int]], labels: Sequence[str]) -> list[tuple[int, str]]:
    return [(index, "reference" if index < 0 else labels[index]) for index, _ in tracks]


def _columns(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the columns: the bitrate, then every metric, with its number format."""
    columns = []
    for name, facts in {
        _BITRATE: {"unit": "bit/s", "higher_is_better": False, "protocol": ""},
        **profile["curves"],
    }.items():
        entries = [
            MetricSummary.from_dict(c["quality"]["metrics"][name])
            for c in profile["codecs"].values()
            if name in c["quality"].get("metrics", {})
        ]
        base, variant = numbers.split_name(name)
        factor, unit = numbers.shown_unit(facts["unit"])
        columns.append(
            {
                "name": name, "base": base, "variant": variant, "unit": unit, "factor": factor,
                "higher": facts["higher_is_better"],
                "arrow": numbers.ARROWS[facts["higher_is_better"]], "protocol": facts["protocol"], "what": "",
                "places": numbers.decimals(entries, factor),
                "single": numbers.three_digits([e.value for e in entries], factor),
            }
        )  # fmt: skip
    return columns


def _plots(
    profile: Mapping[str, Any], names: Sequence[str], labels: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Build the data of the plots: columns, codecs, families and values by codec."""
    families = list(profile["families"])
    of = {codec: number for number, members in enumerate(profile["families"].values()) for codec in members}
    summary = []
    for name in names:
        metrics = profile["codecs"][name]["quality"].get("metrics", {})
        entries = [metrics.get(column["name"]) for column in columns]
        summary.append([None if e is None else [e["value"], *(e["ci95"] or (None, None)), e["n"]] for e in entries])
    return {
        "columns": list(columns),
        "systems": [{"label": text, "unprocessed": False, "family": of[name]} for name, text in zip(names, labels)],
        "families": families,
        "summary": summary,
    }


def _streams(
    profile: Mapping[str, Any], labels: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any], int, Mapping[str, Any]]]:
    """Yield every stream: label, sections, codebooks of earlier streams, counts."""
    for text, codec in zip(labels, profile["codecs"].values()):
        before = 0
        for stream in codec["rate"]["streams"] if codec["rate"]["state"] == "ok" else ():
            yield text, codec, before, stream
            before += stream["codebooks"]


def _codebooks(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """List each codec's streams, with the relative use of a codebook's entries."""
    out = []
    for text, _, _, stream in _streams(profile, labels):
        books = [_bars(book["histogram"]) for book in stream["per_codebook"]]
        if any(books):
            out.append({"codec": text, "stream": stream["name"], "cardinality": stream["cardinality"], "books": books})
    return out


def _bars(histogram: Sequence[int]) -> list[float]:
    """Return the use of a codebook's entries, most used first, averaged over bars.

    1 is the use if all entries were equally frequent.
    """
    total, count = sum(histogram), len(histogram)
    if not total:
        return []
    falling = sorted(histogram, reverse=True)
    bars = min(_BARS, count)
    edges = [round(k * count / bars) for k in range(bars + 1)]
    return [round(sum(falling[a:b]) / (b - a) * count / total, 4) for a, b in pairwise(edges)]


def _book_tables(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Build a table of codebooks per stream: use, entropy and codes after re-encoding."""
    out = []
    for text, codec, before, stream in _streams(profile, labels):
        stability = codec["stability"] if codec["stability"]["state"] == "ok" else {}
        rounds = [entry["with_first"] for entry in stability.get("reencoding", [])]
        rows = [
            {
                "number": number + 1,
                "utilisation": _or_dash(book["utilisation"], "{:.1f}", 100),
                "dead": f"{book['dead']:,}",
                "perplexity": _or_dash(book["perplexity"], "{:.1f}"),
                "entropy": _or_dash(book["entropy_bits"], "{:.3f}"),
                "corrected": _or_dash(book["entropy_bits_corrected"], "{:.3f}"),
                "unchanged": [f"{100 * r[before + number]:.1f}" for r in rounds],
            }
            for number, book in enumerate(stream["per_codebook"])
        ]
        out.append(
            {
                "codec": text, "stream": stream["name"], "cardinality": stream["cardinality"],
                "frames": stream["frames"], "rounds": len(rounds), "rows": rows, "joint_reason": stream["joint_reason"],
            }
        )  # fmt: skip
    return out


def _or_dash(value: float | None, form: str, factor: float = 1) -> str:
    return "–" if value is None else form.format(factor * value)


def _info_facts(info: Mapping[str, Any]) -> dict[str, str]:
    """Format a codec's declared facts; empty if they are not known."""
    if info["state"] != "ok":
        return {}
    facts = {
        "rates": ", ".join(f"{rate / 1000:g}" for rate in info["sample_rates_hz"]) + " kHz",
        "channels": ", ".join(map(str, info["channels"])),
        "causal": {True: "yes", False: "no", None: "not declared"}[info["causal"]],
        "licence of the code": info["code_licence"] or "not declared",
        "licence of the weights": info["weights_licence"] or "–",
        "weights": info["weights"] or "–",
        "described in": info["paper"] or "–",
    }
    return {key: str(value) for key, value in facts.items()}


_LISTED = 8


def _not_counted(profile: Mapping[str, Any], labels: Sequence[str]) -> list[tuple[str, str]]:
    """List by codec the operators that the multiply-accumulates do not include."""
    out = []
    for text, codec in zip(labels, profile["codecs"].values()):
        if codec["complexity"]["state"] == "ok":
            shares: dict[str, float] = {}
            for half in ("encoder", "decoder"):
                for name, elements in codec["complexity"][half]["not_counted"].items():
                    shares[name] = shares.get(name, 0.0) + elements
            listed = sorted(shares.items(), key=lambda entry: -entry[1])
            named = [f"{name} ({elements / 1e6:.2g} M/s)" for name, elements in listed]
            out.append((text, first_of(named, _LISTED) or "nothing"))
    return out


_SHARED_SCRIPTS = "data elements words core marks frames labels scales plane plots player players".split()
_SCRIPTS = ("codebooks", "figures", "language", "probes", "listen", "profile")
_LAYOUT = PageFiles(
    (__package__, "profile.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (SHARED, "sample.css"), (__package__, "profile.css")),
    (*((SHARED, f"{name}.js") for name in _SHARED_SCRIPTS), *((__package__, f"{name}.js") for name in _SCRIPTS)),
)


def write_profile_page(
    profile: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    references: Mapping[str, str | os.PathLike[str]] | None = None,
    audio_mb: float = 25.0,
) -> None:
    """Write the HTML page of a profile, atomically.

    Args:
        profile: the content of `profile.json`.
        path: the HTML file; the codecs' audio is in its folder.
        references: the encoded audio files, by id; without them only the codecs can be played.
        audio_mb: limit of embedded audio in megabytes of base64; clips that do not fit are excluded.
    """
    target = Path(path)
    sounds = _Sounds(int(audio_mb * 1e6))
    clips = []
    for sample in (entry["id"] for entry in profile["players"]):
        tracks = [(-1, Path(references[sample]))] if references and sample in references else []
        for number, codec in enumerate(profile["codecs"].values()):
            if sample in codec["players"]:
                tracks.append((number, target.parent / codec["players"][sample]))
        clips.append((sample, sounds.take(tracks)))
    page, data = collect(profile, clips)
    write_text(target, render(_LAYOUT, page, data, sounds.files))


class _Sounds:
    """The audio files in the page, each once, up to a size."""

    def __init__(self, budget_bytes: int) -> None:
        self._left = budget_bytes
        self.files: list[Path] = []

    def take(self, tracks: list[tuple[int, Path]]) -> list[tuple[int, int]]:
        """Add a clip's audio files, all or none if they exceed the limit.

        Args:
            tracks: (codec's position, path).

        Returns:
            (codec's position, number of the audio in the page).
        """
        tracks = [(index, path) for index, path in tracks if is_sound(path)]
        size = sum(4 * -(-path.stat().st_size // 3) for _, path in tracks)
        if size > self._left:
            return []
        self._left -= size
        out = []
        for index, path in tracks:
            out.append((index, len(self.files)))
            self.files.append(path)
        return out
