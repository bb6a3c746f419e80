"""The rows of a profile (`profile.json`) for terminal and page; see `cells.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import (
    ProfileCell,
    ProfileSection,
    number_cell,
    row_of,
    rows_of,
    section_of,
    spread_text,
)
from codec_bench.apps.profiling.probe_rows import language_section, probes_section
from codec_bench.apps.profiling.robust_rows import first_codebooks, loss, rounded, stability, swap
from codec_bench.codecs.checks import faulty_findings
from codec_bench.report import numbers

_MIB = 2**20


def sections(profile: Mapping[str, Any]) -> list[ProfileSection]:
    """Build all sections of a profile that have rows."""
    codecs = profile["codecs"]
    of = {name: section_of(name, rows_of(codecs, renders)) for name, renders in _TABLES.items()}
    all_sections = [of["rate"], of["codebooks"], _phones(codecs), probes_section(codecs), language_section(codecs)]
    all_sections += [of["size"], _speed_section(profile), of["latency"]]
    all_sections += [build(codecs) for build in (stability, loss, first_codebooks, rounded, swap)]
    empty = lambda row: all(cell.text == "–" for cell in row.cells)  # noqa: E731
    return [
        ProfileSection(s.title, s.note, [r for r in s.rows if not empty(r)], [r for r in s.rows if empty(r)])
        for s in all_sections
        if s.rows
    ]


def reasons(shown: Sequence[ProfileSection], labels: Sequence[str]) -> list[tuple[str, str, str]]:
    """List (codecs, rows, reason) of missing values, without those of `--skip`."""
    by_reason: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for section in shown:
        for row in (*section.rows, *section.without):
            for text, cell in zip(labels, row.cells):
                if cell.reason and not cell.skipped:
                    concerned, rows = by_reason.setdefault(cell.reason, ({}, {}))
                    concerned[text], rows[row.label] = None, None
    return [
        ("all" if len(concerned) == len(labels) > 1 else _shorten(list(concerned)), _shorten(list(rows)), reason)
        for reason, (concerned, rows) in by_reason.items()
    ]


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[: 3 if more else 4]) + more


def speed_note(profile: Mapping[str, Any]) -> str:
    """Describe the device, cores and threads of the timings."""
    facts, options = profile["machine"], profile["how"]
    speeds = [c["speed"] for c in profile["codecs"].values() if c["speed"]["state"] == "ok"]
    threads = ", ".join(sorted({str(speed["threads"].get("torch", "–")) for speed in speeds})) or "–"
    device = facts.get("gpu") if str(options["device"]).startswith("cuda") else facts.get("cpu")
    parts = f"{options['device']}: {device}; {facts.get('cores')} cores; torch threads: {threads}"
    torch = profile["versions"].get("torch")
    parts += f"; torch {torch}" if torch else ""
    return f"{parts}. Timings can be compared only on the same machine with the same threads."


def findings(profile: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """List every finding that is not ok with its codec, failed ones first."""
    rows = [
        (label(profile, name), finding)
        for name, codec in profile["codecs"].items()
        for finding in codec["findings"].get("findings", [])
        if finding["state"] in ("failed", "suspect")
    ]
    return sorted(rows, key=lambda row: row[1]["state"] != "failed")


def delta_rates(profile: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """List (metrics, family, value, note); metrics with the same result share a row."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for metric, families in profile["bd_rate"].items():
        for family, entry in families.items():
            refused = entry["value"] is None
            known = "" if refused else f"{metric}\n{100 * entry['value']:+.1f} %".replace("-", "−")
            without = ", ".join(label(profile, name) for name in entry.get("excluded", ()))
            key = (family, entry["reason"] if refused else known, f"without {without}: not compared" if without else "")
            rows.setdefault(key, []).append(metric)
    table = []
    for (family, text, without), metrics in sorted(rows.items(), key=lambda row: row[0][0]):
        _, separator, value = text.partition("\n")
        reason = "" if separator else numbers.plain(text)
        note = "; ".join(filter(None, (reason, without)))
        table.append((_shorten(metrics), numbers.plain(family), value if separator else "–", note))
    return table


def label(profile: Mapping[str, Any], name: str) -> str:
    """Return the name of a codec in tables."""
    return numbers.plain(profile["labels"].get(name, name))


def head(profile: Mapping[str, Any], name: str) -> str:
    """Return the name of a codec, marked if its checks found something."""
    results = profile["codecs"][name]["findings"].get("findings", [])
    return label(profile, name) + (numbers.SUSPECT if faulty_findings(results) else "")


def _phones(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of phone association and ABX; it is empty if not measured."""
    if all(c.get("phones", {}).get("state", "not measured") == "not measured" for c in codecs.values()):
        return section_of("phones", [])
    rows = rows_of(
        codecs,
        {
            "phones.phone_information_pnmi": partial(_with_chance, "pnmi"),
            "phones.phone_purity": partial(_with_chance, "phone_purity"),
            "phones.cluster_purity": partial(_with_chance, "cluster_purity"),
            "phones.phone_information_first_codebook": _first,
            "phones.clips_without_an_alignment": lambda p: (
                f"{p['items_without']:,} of {p['items'] + p['items_without']:,}"
            ),
            "phones.frames_with_a_phone": lambda p: " + ".join(
                f"{s['per_codebook'][0]['frames']:,}" for s in p["streams"]
            ),
        },
    )
    rows += [
        row_of(codecs, f"ABX error {mode} speakers, {which}", "%", text, "abx", partial(_abx, which, mode))
        for which in ("all codebooks", "first codebook", "vectors")
        for mode, text in _ABX.items()
    ]
    return section_of("phones", rows)


_NEARER = "How often a phone is nearer to another phone than to itself, {}; 50 is chance, lower is better."
_ABX = {
    "within": _NEARER.format("all three by one speaker"),
    "across": _NEARER.format("repeated by another speaker"),
}


def _abx(which: str, mode: str, abx: Mapping[str, Any]) -> ProfileCell:
    """Format the ABX error of each stream in %, `within` or `across` speakers."""
    errors = [stream[which.replace(" ", "_")][mode] for stream in abx["streams"]]
    texts = ["–" if one["error"] is None else f"{100 * one['error']:.1f}" for one in errors]
    known = any(one["error"] is not None for one in errors)
    return ProfileCell(" + ".join(texts)) if known else ProfileCell("–", errors[0]["reason"])


def _first(phones: Mapping[str, Any]) -> str:
    streams = [{"per_codebook": stream["per_codebook"][:1]} for stream in phones["streams"][:1]]
    return _with_chance("pnmi", {"streams": streams})


def _with_chance(key: str, phones: Mapping[str, Any]) -> str:
    return f"{_spread(phones, key, 100, '{:.1f}')}; chance {_spread(phones, f'{key}_chance', 100, '{:.1f}')}"


def _speed_section(profile: Mapping[str, Any]) -> ProfileSection:
    """Build the section of speeds, by codec and device."""
    codecs = profile["codecs"]
    rows = rows_of(
        codecs,
        {
            "speed.real_time_factor": lambda s: _three(s["real_time_factor"]),
            "speed.encoder": lambda s: _three(s["encode_real_time_factor"]),
            "speed.decoder": lambda s: _three(s["decode_real_time_factor"]),
            "speed_on_cpu.real_time_factor_on_the_cpu": lambda s: _three(s["real_time_factor"]),
            "batched.batched": lambda s: _three(s["audio_hours_per_hour"]),
            "speed.peak_memory_of_one_clip": lambda s: _memory(s["memory"], "resident_bytes"),
            "batched.peak_memory_in_batches": lambda s: _memory(s["memory"], "resident_bytes"),
            "batched.peak_gpu_memory_in_batches": lambda s: _memory(s["memory"], "gpu_bytes"),
            "load.load_time": lambda s: f"{s['load_s']:.2f}",
        },
    )
    return ProfileSection("Speed", speed_note(profile), rows)


def _kbps(bps: float | None) -> str:
    return "–" if bps is None else f"{bps / 1000:.{numbers.three_digits([bps / 1000])}f}"


def _three(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 or not value else f"{value:.1e}"


def _declared(rate: Mapping[str, Any]) -> ProfileCell:
    if rate["declared_bps"] is None:
        return ProfileCell("–", rate["no_bits"] or "it declares no bitrate")
    is_mislabelled = abs(rate["nominal_bps"] / rate["declared_bps"] - 1) > 0.02
    return ProfileCell(_kbps(rate["declared_bps"]), flag=is_mislabelled)


def _codes(rate: Mapping[str, Any], render: Callable[[], str]) -> ProfileCell:
    return ProfileCell(render()) if rate["streams"] else ProfileCell("–", rate["entropy_coded_reason"])


def _tokens_per_s(rate: Mapping[str, Any]) -> ProfileCell:
    once = f" + {rate['tokens_per_item']} a clip" if rate["tokens_per_item"] else ""
    return _codes(rate, lambda: f"{rate['tokens_per_s']:g}{once}")


def _spread(rate: Mapping[str, Any], key: str, factor: float, form: str) -> str:
    """Format the mean over all codebooks, with minimum and maximum."""
    values = [factor * b[key] for s in rate["streams"] for b in s["per_codebook"] if b[key] is not None]
    return spread_text(values, form)


def _memory(memory: Mapping[str, Any], key: str) -> ProfileCell:
    if key not in memory:
        return ProfileCell("–", "it did not run on a GPU")
    return ProfileCell(f"{memory[key] / _MIB:,.0f}")


def _ahead(latency: Mapping[str, Any], key: str) -> ProfileCell:
    """Format the look-ahead at `key`; `≥` if the codec depends on the whole signal."""
    value = latency[key]
    text = f"{value:.1f}" if key.endswith("ms") else f"{value:,}"
    if latency["whole_signal"]:
        return ProfileCell(
            f"≥ {text}", f"it looks at the whole signal; signals of {latency['signal_s']:g} s were tried"
        )
    return ProfileCell(text.replace("-", "−"))


def _offline(stream: Mapping[str, Any]) -> ProfileCell:
    text = f"{stream['wave_difference']:.1e}"
    if stream["missing_samples"]:
        text += f", {stream['missing_samples']} samples late"
    return ProfileCell(text, flag=not stream["equals_offline"])


_TABLES: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "rate": {
        "rate.declared_bitrate": _declared,
        "rate.nominal_bitrate": lambda r: ProfileCell(_kbps(r["nominal_bps"]), r["no_bits"]),
        "rate.measured_bitrate": lambda r: ProfileCell(_kbps(r["measured_bps"]), r["no_bits"]),
        "rate.entropy_coded_bitrate": lambda r: ProfileCell(_kbps(r["entropy_coded_bps"]), r["entropy_coded_reason"]),
        "rate.joint_bitrate": lambda r: ProfileCell(_kbps(r["joint_bps"]), r["joint_reason"]),
        "rate.frame_rate": lambda r: number_cell(r["frame_rate_hz"] or None, "{:g}", "it has no fixed frames"),
        "rate.latents": lambda r: number_cell(r["latents"] or None, "{:,}", "its codes are discrete"),
        "rate.tokens": _tokens_per_s,
        "rate.bits_per_token": lambda r: _codes(r, lambda: f"{r['bits_per_token']:g}"),
        "rate.tokens_counted": lambda r: _codes(r, lambda: f"{r['tokens']:,}"),
    },
    "codebooks": {
        "rate.codebooks_entries": lambda r: _codes(
            r, lambda: " + ".join(f"{s['codebooks']} × {s['cardinality']}" for s in r["streams"])
        ),
        "rate.utilisation": lambda r: _codes(r, lambda: _spread(r, "utilisation", 100, "{:.1f}")),
        "rate.perplexity": lambda r: _codes(r, lambda: _spread(r, "perplexity", 1, "{:.1f}")),
        "rate.dead_entries": lambda r: _codes(
            r, lambda: f"{sum(s['dead'] for s in r['streams']):,} of {sum(s['entries'] for s in r['streams']):,}"
        ),
    },
    "size": {
        "complexity.parameters": lambda c: _three(c["parameters"] / 1e6),
        "complexity.of_the_encoder": lambda c: _three(c["encoder"]["parameters"] / 1e6),
        "complexity.of_the_decoder": lambda c: _three(c["decoder"]["parameters"] / 1e6),
        "complexity.buffers": lambda c: _three(c["buffers"] / 1e6),
        "complexity.encoder_mac_s": lambda c: _three(c["encoder"]["macs_per_s"] / 1e9),
        "complexity.decoder_mac_s": lambda c: _three(c["decoder"]["macs_per_s"] / 1e9),
    },
    "latency": {
        "latency.algorithmic_latency": lambda c: _ahead(c, "algorithmic_ms"),
        "latency.look_ahead": lambda c: _ahead(c, "lookahead_ms"),
        "latency.look_ahead_samples": lambda c: _ahead(c, "lookahead_samples"),
        "latency.beyond_the_frame": lambda c: _ahead(c, "beyond_frame_samples"),
        "streaming.streaming_step": lambda s: f"{s['step_ms']:.1f}",
        "streaming.step_p50": lambda s: _three(s["encode_ms"]["p50"] + s["decode_ms"]["p50"]),
        "streaming.step_p95": lambda s: ProfileCell(
            _three(s["encode_ms"]["p95"] + s["decode_ms"]["p95"]), flag=not s["keeps_up"]
        ),
        "streaming.first_output": lambda s: ProfileCell(
            _three(s["first_output_ms"]), None if s["first_output_ms"] is not None else "nothing came out"
        ),
        "streaming.sustained_streaming": lambda s: _three(s["real_time_factor"]),
        "streaming.largest_lag": lambda s: _three(s["largest_lag_ms"]),
        "streaming.differs_from_offline": _offline,
    },
}
"""Sections whose rows are the same for all codecs: cells by SECTION.KEY of `rows.yaml`."""
