"""The rows of a profile for terminal and page, from the content of `profile.json`; see `cells.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import ProfileCell, ProfileSection, row_of, spread_text
from codec_bench.apps.profiling.language_rows import language_section
from codec_bench.apps.profiling.probe_rows import probes_section
from codec_bench.apps.profiling.robust_rows import first_codebooks, loss, rounded, swap
from codec_bench.apps.profiling.stability_rows import stability
from codec_bench.codecs.checks import wrong
from codec_bench.report import numbers

_MIB = 2**20


def sections(profile: Mapping[str, Any]) -> list[ProfileSection]:
    """Build all sections of a profile that have rows."""
    codecs = profile["codecs"]
    of_codecs = (
        _rate,
        _codebooks,
        _phones,
        probes_section,
        language_section,
        _size,
        _speed,
        _latency,
        stability,
        loss,
        first_codebooks,
        rounded,
        swap,
    )
    all_sections = [section(profile if section is _speed else codecs) for section in of_codecs]
    empty = lambda row: all(cell.text == "–" for cell in row.cells)  # noqa: E731
    return [
        ProfileSection(s.title, s.note, [r for r in s.rows if not empty(r)], [r for r in s.rows if empty(r)])
        for s in all_sections
        if s.rows
    ]


def reasons(shown: Sequence[ProfileSection], labels: Sequence[str]) -> list[tuple[str, str, str]]:
    """List why cells have no value: (codecs, rows, reason), each reason once, without those of `--skip`."""
    by_reason: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for section in shown:
        for row in (*section.rows, *section.without):
            for text, cell in zip(labels, row.cells):
                if cell.reason and not cell.skipped:
                    concerned, rows = by_reason.setdefault(cell.reason, ({}, {}))
                    concerned[text], rows[row.label] = None, None
    return [
        ("all" if len(concerned) == len(labels) > 1 else _some(list(concerned)), _some(list(rows)), reason)
        for reason, (concerned, rows) in by_reason.items()
    ]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[: 3 if more else 4]) + more


def speed_note(profile: Mapping[str, Any]) -> str:
    """Describe the device, cores and threads of the timings."""
    facts, options = profile["machine"], profile["how"]
    threads = sorted(
        {
            str(c["speed"]["threads"].get("torch", "–"))
            for c in profile["codecs"].values()
            if c["speed"]["state"] == "ok"
        }
    )
    device = facts.get("gpu") if str(options["device"]).startswith("cuda") else facts.get("cpu")
    parts = [
        f"{options['device']}: {device}",
        f"{facts.get('cores')} cores",
        f"torch threads: {', '.join(threads) or '–'}",
    ]
    torch = profile["versions"].get("torch")
    parts.append(f"torch {torch}" if torch else "")
    return "; ".join(filter(None, parts)) + ". Timings can be compared only on the same machine with the same threads."


def findings(profile: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """List every finding that is not ok with its codec's label: failed ones first, then suspect ones."""
    rows = [
        (label(profile, name), finding)
        for name, codec in profile["codecs"].items()
        for finding in codec["findings"].get("findings", [])
        if finding["state"] in ("failed", "suspect")
    ]
    return sorted(rows, key=lambda row: row[1]["state"] != "failed")


def delta_rates(profile: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """List (metrics, family, value, reason) of the delta rates; metrics with one reason share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for metric, families in profile["bd_rate"].items():
        for family, entry in families.items():
            refused = entry["value"] is None
            key = (family, entry["reason"] if refused else f"{metric}\n{100 * entry['value']:+.1f} %".replace("-", "−"))
            rows.setdefault(key, []).append(metric)
    table = []
    for (family, text), metrics in sorted(rows.items(), key=lambda row: row[0][0]):
        _, separator, value = text.partition("\n")
        table.append(
            (
                _some(metrics),
                numbers.plain(family),
                value if separator else "–",
                "" if separator else numbers.plain(text),
            )
        )
    return table


def label(profile: Mapping[str, Any], name: str) -> str:
    """Return the name of a codec in tables."""
    return numbers.plain(profile["labels"].get(name, name))


def head(profile: Mapping[str, Any], name: str) -> str:
    """Return the name of a codec over its numbers, marked if its checks found something."""
    results = profile["codecs"][name]["findings"].get("findings", [])
    return label(profile, name) + (numbers.SUSPECT if wrong(results) else "")


def _rate(codecs: Mapping[str, Any]) -> ProfileSection:
    rows = [
        row_of(codecs, "declared bitrate", "kbps", "The bitrate that the codec declares.", "rate", _declared),
        row_of(codecs, "nominal bitrate", "kbps", "The bits of its codes, from their number and the entries of the "
                                                  "codebooks.", "rate",
                                                  lambda r: ProfileCell(_kbps(r["nominal_bps"]), r["no_bits"])),
        row_of(codecs, "measured bitrate", "kbps", "All bits that were sent, divided by the seconds that were coded.",
            "rate", lambda r: ProfileCell(_kbps(r["measured_bps"]), r["no_bits"])),
        row_of(codecs, "entropy-coded bitrate", "kbps", "With an ideal code for each codebook separately.", "rate",
            lambda r: ProfileCell(_kbps(r["entropy_coded_bps"]), r["entropy_coded_reason"])),
        row_of(codecs, "joint bitrate", "kbps", "With each codebook coded with knowledge of the one before it. The "
                                                "estimate is too low where codes stay the same for many frames.",
                                                "rate", lambda r: ProfileCell(_kbps(r["joint_bps"]),
                                                    r["joint_reason"])),
        row_of(codecs, "frame rate", "Hz", "Frames of codes, or packets, per second of audio.", "rate",
            lambda r: ProfileCell(f"{r['frame_rate_hz']:g}") if r["frame_rate_hz"] else ProfileCell("–",
                "it has no fixed frames")),
        row_of(codecs, "latents", "per frame", "Real numbers of each frame of a continuous codec; they have no "
                                               "bitrate.", "rate",
                                               lambda r: ProfileCell(f"{r['latents']:,}") if r["latents"] else ProfileCell("–", "its codes are discrete")),
        row_of(codecs, "tokens", "per s", "Codes per second of audio, over all codebooks.", "rate", _tokens_per_s),
        row_of(codecs, "bits per token", "bits", "The nominal bits of a code, of all codebooks.", "rate",
            lambda r: _codes(r, lambda: f"{r['bits_per_token']:g}")),
        row_of(codecs, "tokens counted", "", "How many codes these numbers were computed from.", "rate",
            lambda r: _codes(r, lambda: f"{r['tokens']:,}")),
    ]  # fmt: skip
    return ProfileSection(
        "Rate", "Counted over the data. Entropy-coded and joint rates are corrected for the bias of few tokens.", rows
    )


def _codebooks(codecs: Mapping[str, Any]) -> ProfileSection:
    rows = [
        row_of(codecs, "codebooks × entries", "", "Codebooks of each stream, and entries of a codebook.", "rate",
            lambda r: _codes(r, lambda: " + ".join(f"{s['codebooks']} × {s['cardinality']}" for s in r["streams"]))),
        row_of(codecs, "utilisation", "%", "Share of entries that occurred, the mean of all codebooks; higher is "
                                           "better.", "rate",
                                           lambda r: _codes(r, lambda: _spread(r, "utilisation", 100, "{:.1f}"))),
        row_of(codecs, "perplexity", "", "How many equally frequent entries have the same entropy; the mean of all "
                                         "codebooks, higher is better.", "rate",
                                         lambda r: _codes(r, lambda: _spread(r, "perplexity", 1, "{:.1f}"))),
        row_of(codecs, "dead entries", "", "Entries that did not occur, of all codebooks.", "rate",
            lambda r: _codes(r, lambda: f"{sum(s['dead'] for s in r['streams']):,} of "
                                        f"{sum(s['entries'] for s in r['streams']):,}")),
    ]  # fmt: skip
    return ProfileSection(
        "Codebooks",
        "Over all codebooks; the page shows each. With few tokens, entries may be missing by chance: see the tokens "
        "counted.",
        rows,
    )


def _phones(codecs: Mapping[str, Any]) -> ProfileSection:
    if all(c.get("phones", {}).get("state", "not measured") == "not measured" for c in codecs.values()):
        return ProfileSection("Phones", "", [])
    rows = [
        row_of(codecs, "phone information (PNMI)", "%", "What a code tells of the phone in the middle of its frame, of "
                                                        "what there is to know; higher is more.", "phones",
                                                        partial(_with_chance, "pnmi")),
        row_of(codecs, "phone purity", "%", "Frames whose phone is right if each code is written as its most frequent "
                                            "phone.", "phones", partial(_with_chance, "phone_purity")),
        row_of(codecs, "cluster purity", "%", "Frames that have the most frequent code of their phone.", "phones",
            partial(_with_chance, "cluster_purity")),
        row_of(codecs, "phone information, first codebook", "%", "The same of the first codebook alone.", "phones",
            _first),
        row_of(codecs, "clips without an alignment", "", "Clips that these numbers leave out; a clip that is coded "
                                                         "channel by channel counts once for each.", "phones",
                                                         lambda p: f"{p['items_without']:,} of "
                                                                   f"{p['items'] + p['items_without']:,}"),
        row_of(codecs, "frames with a phone", "", "How many frames these numbers were computed from, of each stream.",
            "phones", lambda p: " + ".join(f"{s['per_codebook'][0]['frames']:,}" for s in p["streams"])),
    ]  # fmt: skip
    rows += [
        row_of(codecs, f"ABX error {mode} speakers, {which}", "%", f"How often a phone is nearer to another phone than "
                                                                   f"to itself, {_SPEAKERS[mode]}; 50 is chance, lower "
                                                                   f"is better.", "abx",
                                                                   partial(_abx, f"{which.replace(' ', '_')}", mode))
        for which in ("all codebooks", "first codebook", "vectors")
        for mode in _SPEAKERS
    ]  # fmt: skip
    return ProfileSection(
        "Phones",
        "The mean of all codebooks (lowest to highest), and the same for codes that are independent of the phones. Few "
        "frames raise "
        "both; compare codecs over the same data, and phone purity at equal numbers of entries only. "
        "Of an ABX error, 50 % is chance.",
        rows,
    )


_SPEAKERS = {"within": "all three by one speaker", "across": "said again by another speaker"}


def _abx(which: str, mode: str, abx: Mapping[str, Any]) -> ProfileCell:
    errors = [stream[which][mode] for stream in abx["streams"]]
    texts = ["–" if one["error"] is None else f"{100 * one['error']:.1f}" for one in errors]
    known = any(one["error"] is not None for one in errors)
    return ProfileCell(" + ".join(texts)) if known else ProfileCell("–", errors[0]["reason"])


def _first(phones: Mapping[str, Any]) -> str:
    streams = [{"per_codebook": stream["per_codebook"][:1]} for stream in phones["streams"][:1]]
    return _with_chance("pnmi", {"streams": streams})


def _with_chance(key: str, phones: Mapping[str, Any]) -> str:
    return f"{_spread(phones, key, 100, '{:.1f}')}; chance {_spread(phones, f'{key}_chance', 100, '{:.1f}')}"


def _size(codecs: Mapping[str, Any]) -> ProfileSection:
    rows = [
        row_of(codecs, "parameters", "M", "Learnt numbers; each counts once.", "complexity",
            lambda c: _three(c["parameters"] / 1e6)),
        row_of(codecs, "of the encoder", "M", "Parameters that encoding reads.", "complexity",
            lambda c: _three(c["encoder"]["parameters"] / 1e6)),
        row_of(codecs, "of the decoder", "M", "Parameters that decoding reads.", "complexity",
            lambda c: _three(c["decoder"]["parameters"] / 1e6)),
        row_of(codecs, "buffers", "M", "Other stored numbers, for example codebooks that are kept as buffers.",
            "complexity", lambda c: _three(c["buffers"] / 1e6)),
        row_of(codecs, "encoder MAC/s", "G", "Multiply-accumulates per second of audio; lower is cheaper.",
            "complexity", lambda c: _three(c["encoder"]["macs_per_s"] / 1e9)),
        row_of(codecs, "decoder MAC/s", "G", "Multiply-accumulates per second of audio; lower is cheaper.",
            "complexity", lambda c: _three(c["decoder"]["macs_per_s"] / 1e9)),
    ]  # fmt: skip
    return ProfileSection(
        "Size",
        "Multiply-accumulates of torch's products, convolutions, attention and recurrent layers; nothing else is "
        "counted.",
        rows,
    )


def _speed(profile: Mapping[str, Any]) -> ProfileSection:
    codecs = profile["codecs"]
    rows = [
        row_of(codecs, "real-time factor", "", "Seconds of computing per second of audio, one clip at a time; lower is "
                                               "better.", "speed", lambda s: _three(s["real_time_factor"])),
        row_of(codecs, "encoder", "", "The real-time factor of encoding alone.", "speed",
            lambda s: _three(s["encode_real_time_factor"])),
        row_of(codecs, "decoder", "", "The real-time factor of decoding alone.", "speed",
            lambda s: _three(s["decode_real_time_factor"])),
        row_of(codecs, "real-time factor on the CPU", "", "The same codec on the CPU of this machine, one clip at a "
                                                          "time; lower is better.", "speed_on_cpu",
                                                          lambda s: _three(s["real_time_factor"])),
        row_of(codecs, "batched", "h per h", "Hours of audio through encoder and decoder in an hour, in batches; "
                                             "higher is better.", "batched",
                                             lambda s: _three(s["audio_hours_per_hour"])),
        row_of(codecs, "peak memory of one clip", "MiB", "Highest resident size of its process.", "speed",
            lambda s: _memory(s["memory"], "resident_bytes")),
        row_of(codecs, "peak memory in batches", "MiB", "Highest resident size of its process.", "batched",
            lambda s: _memory(s["memory"], "resident_bytes")),
        row_of(codecs, "peak GPU memory in batches", "MiB", "Highest memory of tensors.", "batched",
            lambda s: _memory(s["memory"], "gpu_bytes")),
        row_of(codecs, "load time", "s", "Time to load the codec in a new process, its libraries included.", "load",
            lambda s: f"{s['load_s']:.2f}"),
    ]  # fmt: skip
    return ProfileSection("Speed", speed_note(profile), rows)


def _latency(codecs: Mapping[str, Any]) -> ProfileSection:
    rows = [
        row_of(codecs, "algorithmic latency", "ms", "One frame and the look-ahead beyond it. This delay remains on a "
                                                    "machine of any speed; lower is better.", "latency",
                                                    lambda c: _ahead(c, "algorithmic_ms")),
        row_of(codecs, "look-ahead", "ms", "How far the input after an output sample is needed, at most, with the wait "
                                           "for a whole frame; lower is better.", "latency",
                                           lambda c: _ahead(c, "lookahead_ms")),
        row_of(codecs, "look-ahead", "samples", "The same in samples at the codec's rate.", "latency",
            lambda c: _ahead(c, "lookahead_samples")),
        row_of(codecs, "beyond the frame", "samples", "The look-ahead at the best place within a frame; 0 for a causal "
                                                      "codec.", "latency", lambda c: _ahead(c, "beyond_frame_samples")),
        row_of(codecs, "streaming step", "ms", "Length of the audio in one step of a stream.", "streaming",
            lambda s: f"{s['step_ms']:.1f}"),
        row_of(codecs, "step p50", "ms", "Median computing time of a step, encoder and decoder together.", "streaming",
            lambda s: _three(s["encode_ms"]["p50"] + s["decode_ms"]["p50"])),
        row_of(codecs, "step p95", "ms", "95th percentile of the computing time of a step, of encoder and decoder "
                                         "added.", "streaming",
                                         lambda s: ProfileCell(_three(s["encode_ms"]["p95"] + s["decode_ms"]["p95"]),
                                             flag=not s["keeps_up"])),
        row_of(codecs, "first output", "ms", "From the first sample that is fed to the first that comes out, with "
                                             "computing; lower is better.", "streaming",
                                             lambda s: ProfileCell(_three(s["first_output_ms"]),
                                                 None if s["first_output_ms"] is not None else "nothing came out")),
        row_of(codecs, "sustained streaming", "", "Seconds of computing per second of audio over the whole stream; "
                                                  "lower is better.", "streaming",
                                                  lambda s: _three(s["real_time_factor"])),
        row_of(codecs, "largest lag", "ms", "How late a step is at most when the sound arrives at its own speed; lower "
                                            "is better.", "streaming", lambda s: _three(s["largest_lag_ms"])),
        row_of(codecs, "differs from offline", "", "Largest difference of a sample from decoding the whole signal; up "
                                                   "to 1e-4 counts as equal.", "streaming", _offline),
    ]  # fmt: skip
    return ProfileSection(
        "Latency",
        "Found by changing the input from a time on and seeing from where the output changes. All values are lower "
        "bounds.",
        rows,
    )


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
    wrong = abs(rate["nominal_bps"] / rate["declared_bps"] - 1) > 0.02
    return ProfileCell(_kbps(rate["declared_bps"]), flag=wrong)


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
