"""Rows and plots of stability, loss, codebooks, latents and exchanged voices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import (
    ProfileCell,
    ProfileRow,
    ProfileSection,
    number_cell,
    row_of,
    rows_of,
    section_of,
    spread_text,
)
from codec_bench.report import numbers

REPAIRED = {"own": "own concealment", "repeat": "last frame again", "silence": "silence"}
_SAME_DB = 200


def loss(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of lost frames, recovery and bit errors."""
    measured = [c["loss"] for c in codecs.values() if c["loss"]["state"] == "ok"]
    row = partial(row_of, codecs)
    rows: list[ProfileRow] = []
    for metric in list(measured[0]["metrics"])[:1] if measured else []:
        unit = measured[0]["metrics"][metric]["unit"]
        description = "Quality of the same clips when everything arrives."
        rows.append(row(f"{metric} without loss", unit, description, "loss", partial(_undisturbed, metric)))
        for index, point in enumerate(measured[0]["points"]):
            where = "in bursts" if point["channel"] == "bursts" else "at random"
            label = f"{metric} with {100 * point['rate']:g} % lost {where}"
            rows.append(row(label, unit, _AGAINST, "loss", partial(_at, metric, index)))
    rows += rows_of(
        codecs,
        {
            "loss.repair": lambda s: REPAIRED.get(s["repair"], "–"),
            "loss.frame": lambda s: f"{s['frame_ms']:.3g}",
            "loss.recovery": _recovery,
            "bit_errors.refused": lambda s: f"{round(s['refused'] * s['trials'])} of {s['trials']}",
            "bit_errors.heard": _disturbed_span,
        },
    )
    return section_of(
        "loss", rows if measured or any(c["bit_errors"]["state"] == "ok" for c in codecs.values()) else []
    )


_AGAINST = "Quality against what was encoded, with the repair, and with silence in the place of lost frames."


def _number(entry: Mapping[str, Any] | None) -> str:
    return "–" if entry is None or entry["value"] is None else f"{entry['value']:.3g}".replace("-", "−")


def _undisturbed(metric: str, section: Mapping[str, Any]) -> ProfileCell:
    entry = section["undisturbed"].get(metric)
    return ProfileCell(_number(entry), None if entry and entry["value"] is not None else (entry or {}).get("reason"))


def _at(metric: str, index: int, section: Mapping[str, Any]) -> ProfileCell:
    """Format a metric at loss point `index`: with the best repair, and with silence."""
    by_repair = {repair: one[metric] for repair, one in section["points"][index]["quality"].items()}
    repaired, bare = by_repair.get(section["repair"]), by_repair.get("silence")
    texts = [_number(repaired), _number(bare)]
    if texts == ["–", "–"]:
        return ProfileCell("–", (repaired or bare or {}).get("reason") or section["repairs"]["silence"])
    return ProfileCell(" / ".join(texts))


def _recovery(section: Mapping[str, Any]) -> ProfileCell:
    """Format the median recovery time in ms, with the longest in parentheses."""
    recovery = section["recovery"]
    if recovery["reason"] is not None:
        return ProfileCell("–", recovery["reason"])
    most = f"{'≥ ' if recovery['unrecovered'] else ''}{recovery['longest_ms']:.0f}"
    return ProfileCell(f"{recovery['median_ms']:.0f} ({most})", flag=bool(recovery["unrecovered"]))


def _disturbed_span(section: Mapping[str, Any]) -> ProfileCell:
    if section["disturbed_ms"] is None:
        return ProfileCell("–", "the decoder refused every one")
    return ProfileCell(f"{section['disturbed_ms']:.0f} ({section['longest_ms']:.0f})")


def loss_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Plot each metric over random losses, a line per codec and repair."""
    courses = [
        (metric, facts, f"{label}, {REPAIRED.get(repair, '–')}", _course(section, metric, repair))
        for label, section, metric, facts in _measured(profile, labels, "loss")
        for repair in dict.fromkeys((section["repair"], "silence"))
    ]
    return figures_of("{} against lost frames", "frames lost at random, %", courses)


def first_codebooks(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of quality by the number of codebooks decoded."""
    measured = [c["codebooks_kept"] for c in codecs.values() if c["codebooks_kept"]["state"] == "ok"]
    metrics = {name: facts["unit"] for section in measured for name, facts in section["metrics"].items()}
    description = "The number of the first codebooks that are decoded, and the value with these."
    rows = [
        row_of(codecs, f"{name} by codebooks", unit, description, "codebooks_kept", partial(_by_codebooks, name))
        for name, unit in metrics.items()
    ]
    return section_of("first_codebooks", rows)


def _by_codebooks(metric: str, section: Mapping[str, Any]) -> ProfileCell:
    return _at_each([(f"{point['codebooks']}", point["quality"][metric]) for point in section["points"]])


def _at_each(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> ProfileCell:
    """Join the values of all settings that have one, or give the reason of the last."""
    texts = [f"{setting}: {_number(entry)}" for setting, entry in entries if entry["value"] is not None]
    return ProfileCell(", ".join(texts)) if texts else ProfileCell("–", entries[-1][1]["reason"])


def codebook_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Plot each metric over the number of codebooks decoded."""
    courses = [
        (metric, facts, label, [[point["codebooks"], point["quality"][metric]["value"]] for point in section["points"]])
        for label, section, metric, facts in _measured(profile, labels, "codebooks_kept")
    ]
    return figures_of("{} against codebooks", "first codebooks that are decoded", courses)


def _measured(
    profile: Mapping[str, Any], labels: Sequence[str], name: str
) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    """Yield each metric of a section by codec: label, section, metric and facts."""
    for label, codec in zip(labels, profile["codecs"].values()):
        section = codec[name]
        for metric, facts in section["metrics"].items() if section["state"] == "ok" else ():
            yield label, section, metric, facts


def rounded(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of bitrate and quality by the bits of a rounded latent."""
    measured = [c["latent_bits"] for c in codecs.values() if c["latent_bits"]["state"] == "ok"]
    metrics = {name: facts["unit"] for section in measured for name, facts in section["metrics"].items()}
    description = (
        "The number of bits that each latent is rounded to, and the value with these; the last is not rounded."
    )
    rates = lambda s: ", ".join(f"{point['bits']}: {point['bps'] / 1000:.3g}" for point in s["points"])  # noqa: E731
    rows = [
        *rows_of(codecs, {"latent_bits.bitrate": rates}),
        *(
            row_of(codecs, f"{name} by bits a latent", unit, description, "latent_bits", partial(_by_bits, name))
            for name, unit in metrics.items()
        ),
        *rows_of(codecs, {"latent_bits.beyond": lambda s: f"{100 * s['beyond']:.2g}"}),
    ]
    return section_of("rounded", rows)


def _by_bits(metric: str, section: Mapping[str, Any]) -> ProfileCell:
    entries = [(f"{point['bits']}", point["quality"][metric]) for point in section["points"]]
    return _at_each([*entries, ("unrounded", section["unrounded"][metric])])


def rounded_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Build the plots of each metric over the bitrate of rounded latents."""
    points = lambda section, m: [[p["bps"] / 1000, p["quality"][m]["value"]] for p in section["points"]]  # noqa: E731
    courses = [
        (metric, facts, label, points(section, metric))
        for label, section, metric, facts in _measured(profile, labels, "latent_bits")
    ]
    return figures_of("{} against rounded latents", "bitrate of the rounded latents, kbps", courses)


def swap(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of voice similarity after an exchange of global codes."""
    kinds = ("to_voice", "to_content", "kept", "apart")
    rows = rows_of(codecs, {f"speaker_swap.{kind}": partial(_similar, kind) for kind in kinds})
    return section_of("swap", rows)


def _similar(key: str, section: Mapping[str, Any]) -> ProfileCell:
    entry = section[key]
    return ProfileCell("–", entry["reason"]) if entry["value"] is None else ProfileCell(_number(entry))


Course = tuple[str, Mapping[str, Any], str, Sequence[Sequence[Any]]]
"""A plotted line: metric, facts (`unit`, `higher_is_better`), label, and points [x, y or None]."""


def figures_of(title: str, x_title: str, courses: Iterable[Course]) -> list[dict[str, Any]]:
    """Build a plot for each metric with points, as `figures.js` draws it.

    Args:
        title: format string that takes the metric.
        courses: (metric, its unit and direction, codec, points) for each line.
    """
    figures: dict[str, dict[str, Any]] = {}
    for metric, facts, label, points in courses:
        higher = facts["higher_is_better"]
        better = "" if higher is None else f"{'higher' if higher else 'lower'} is better"
        about = {"title": title.format(metric), "x": x_title, "unit": facts["unit"], "better": better, "lines": []}
        known = [[x, y] for x, y in points if y is not None]
        if known:
            figures.setdefault(metric, about)["lines"].append({"label": numbers.plain(label), "points": known})
    return list(figures.values())


def _course(section: Mapping[str, Any], metric: str, repair: str | None) -> list[list[float]]:
    """Return [percent lost, value] for random loss, starting at 0; empty if unknown."""
    points = [
        [100 * point["rate"], value]
        for point in section["points"]
        if point["channel"] == "random" and repair in point["quality"]
        if (value := point["quality"][repair][metric]["value"]) is not None
    ]
    undisturbed = section["undisturbed"][metric]["value"]
    return [*([[0.0, undisturbed]] if undisturbed is not None else []), *points] if points else []


def stability(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of stability: re-encoding, and small changes of the input."""
    measured = [c["stability"] for c in codecs.values() if c["stability"]["state"] == "ok"]
    if not measured:
        return section_of("stability", [])
    row = partial(row_of, codecs, section="stability")
    rows: list[ProfileRow] = []
    for number in range(max(len(s["reencoding"]) for s in measured)):
        description = "Codes of decoded audio compared with those of the original."
        rows.append(row(f"re-encoded {number + 1}×", "%", description, render=partial(_reencoded, number)))
        rows.append(
            row(f"latents re-encoded {number + 1}×", "dB", _LATENTS, render=partial(_latents_reencoded, number))
        )
    columns = list(_OF_CHANGES)
    for metric, facts in list(measured[0]["metrics"].items())[:1]:
        description = "Quality of what comes out of the unchanged clips."
        rows.append(row(f"{metric}, input unchanged", facts["unit"], description, render=partial(_unchanged, metric)))
        description = "Quality of the decoded changed clip against the changed clip."
        columns.append((metric, facts["unit"], description, partial(_quality, metric)))
    for name in dict.fromkeys(change["change"] for s in measured for change in s["changes"]):
        rows += [
            row(f"{label}, input {name}", unit, description, render=partial(_render_change, name, render))
            for label, unit, description, render in columns
        ]
    return section_of("stability", rows)


def noise_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Plot the share of equal codes, and the first metric, over noise's SNR.

    Args:
        profile: of its codecs, `stability` is read.
        labels: names of the codecs, in order.
    """
    same: list[Course] = []
    quality: list[Course] = []
    for label, section, metric, facts in _measured(profile, labels, "stability"):
        if metric == next(iter(section["metrics"])):
            noisy = [change for change in section["changes"] if change["noise_db"] is not None]
            shares = [[c["noise_db"], 100 * sum(c["agreement"]) / len(c["agreement"])] for c in noisy if c["agreement"]]
            same.append(("Equal codes", {"unit": "%", "higher_is_better": True}, label, shares))
            values = [[c["noise_db"], c["quality"][metric]["value"]] for c in noisy]
            quality.append((metric, facts, label, values))
    return figures_of("{} under noise", _NOISE, [*same, *quality])


_NOISE = "signal-to-noise ratio of the input, dB"


def _share(values: Sequence[float] | None, reason: str | None) -> ProfileCell:
    return ProfileCell(
        spread_text([100 * value for value in values or ()], "{:.1f}", "{:.0f}"), None if values else reason
    )


def _reencoded(number: int, stability: Mapping[str, Any]) -> ProfileCell:
    rounds = stability["reencoding"]
    return _share(rounds[number]["with_first"] if number < len(rounds) else None, stability["tokens_reason"])


def _latents_reencoded(number: int, stability: Mapping[str, Any]) -> ProfileCell:
    rounds = stability["reencoding"]
    value = rounds[number]["latent_snr_db"] if number < len(rounds) else None
    return number_cell(value, "{:.1f}", _NO_LATENTS)


def _render_change(name: str, render: Any, section: Mapping[str, Any]) -> ProfileCell:
    """Format a change; a dash where it was not made."""
    for change in section["changes"]:
        if change["change"] == name:
            return ProfileCell("–", change["reason"]) if change["reason"] else render(section, change)
    return ProfileCell("–", "it has no fixed frames")


def _same(section: Mapping[str, Any], change: Mapping[str, Any]) -> ProfileCell:
    return _share(change["agreement"], section["tokens_reason"])


def _latents(section: Mapping[str, Any], change: Mapping[str, Any]) -> ProfileCell:
    return number_cell(change["latent_snr_db"], "{:.1f}", _NO_LATENTS)


def _snr(section: Mapping[str, Any], change: Mapping[str, Any]) -> ProfileCell:
    value = change["wave_snr_db"]
    if value is not None and value >= _SAME_DB:
        return ProfileCell("same")
    return number_cell(value, "{:.1f}", "nothing undoes this change, or there is no signal")


def _quality(metric: str, section: Mapping[str, Any], change: Mapping[str, Any]) -> ProfileCell:
    return _value(change["quality"].get(metric))


def _unchanged(metric: str, section: Mapping[str, Any]) -> ProfileCell:
    return _value(section["unchanged"].get(metric))


def _value(entry: Mapping[str, Any] | None) -> ProfileCell:
    stored = entry or {}
    return number_cell(stored.get("value"), "{:.3g}", stored.get("reason") or "it was not measured")


_LATENTS = "Signal-to-noise ratio of the latents of decoded audio to those of the original; higher is better."
_NO_LATENTS = "it gives no latents"
_OF_CHANGES: Sequence[tuple[str, str, str, Callable[..., ProfileCell]]] = (
    ("same codes", "%", "Codes of the changed clip compared with those of the unchanged clip.", _same),
    ("latents", "dB", "Signal-to-noise ratio of the latents of the changed clip to those of the unchanged clip; higher "
                      "is better.", _latents),
    ("SNR", "dB", "Signal-to-noise ratio of the decoded changed clip, after the change was undone, to the decoded "
                  "unchanged clip.", _snr),
)  # fmt: skip
"""Rows of every change: label, unit, description, and cell."""
