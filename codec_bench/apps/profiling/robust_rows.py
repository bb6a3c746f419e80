"""The rows and plots of lost frames, of codebooks that are left out, of rounded latents, and of exchanged voices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import Cell, Row, Section, row_of
from codec_bench.report import numbers

REPAIRED = {"own": "own concealment", "repeat": "last frame again", "silence": "silence"}


def loss(codecs: Mapping[str, Any]) -> Section:
    """Quality against lost frames, the time to recover, and single bit errors."""
    measured = [c["loss"] for c in codecs.values() if c["loss"]["state"] == "ok"]
    row = partial(row_of, codecs)
    rows: list[Row] = []
    for metric in list(measured[0]["metrics"])[:1] if measured else []:
        unit = measured[0]["metrics"][metric]["unit"]
        rows.append(
            row(
                f"{metric} without loss",
                unit,
                "Quality of the same clips when everything arrives.",
                "loss",
                partial(_whole, metric),
            )
        )
        for place, point in enumerate(measured[0]["points"]):
            where = "in bursts" if point["channel"] == "bursts" else "at random"
            rows.append(
                row(
                    f"{metric} with {100 * point['rate']:g} % lost {where}",
                    unit,
                    _AGAINST,
                    "loss",
                    partial(_at, metric, place),
                )
            )
    rows += [
        row("repair", "", "What is done about a lost frame: the decoder's own concealment, or else the last frame again.", "loss", lambda s: REPAIRED.get(s["repair"], "–")),
        row("frame that is lost", "ms", "How long the part is that is lost at once.", "loss", lambda s: f"{s['frame_ms']:.3g}"),
        row("time to recover", "ms", "How long after the end of one lost frame the output still differs from the undisturbed one by more than the stated distance: the median, and the longest; lower is better.", "loss", _recovery),
        row("refused bit errors", "%", "How often the decoder refuses what it is given when one bit is wrong.", "bit_errors", lambda s: f"{100 * s['refused']:.3g} of {s['trials']} tries"),
        row("one wrong bit is heard", "ms", "From the first to the last difference beyond the stated distance: the median, and the longest; lower is better.", "bit_errors", _heard),
    ]  # fmt: skip
    return Section(
        "Loss",
        "Before the slash with the repair that is named, after it with silence in the place of lost frames. Few clips, one pattern each, no interval.",
        rows if measured or any(c["bit_errors"]["state"] == "ok" for c in codecs.values()) else [],
    )


_AGAINST = "Quality against what was encoded, with the repair, and with silence in the place of lost frames."


def _number(entry: Mapping[str, Any] | None) -> str:
    return "–" if entry is None or entry["value"] is None else f"{entry['value']:.3g}".replace("-", "−")


def _whole(metric: str, section: Mapping[str, Any]) -> Cell:
    entry = section["undisturbed"].get(metric)
    return Cell(_number(entry), None if entry and entry["value"] is not None else (entry or {}).get("reason"))


def _at(metric: str, place: int, section: Mapping[str, Any]) -> Cell:
    found = {repair: one[metric] for repair, one in section["points"][place]["quality"].items()}
    repaired, bare = found.get(section["repair"]), found.get("silence")
    texts = [_number(repaired), _number(bare)]
    if texts == ["–", "–"]:
        return Cell("–", (repaired or bare or {}).get("reason") or section["repairs"]["silence"])
    return Cell(" / ".join(texts))


def _recovery(section: Mapping[str, Any]) -> Cell:
    found = section["recovery"]
    if found["reason"] is not None:
        return Cell("–", found["reason"])
    most = f"{'≥ ' if found['unrecovered'] else ''}{found['longest_ms']:.0f}"
    return Cell(f"{found['median_ms']:.0f} ({most})", flag=bool(found["unrecovered"]))


def _heard(section: Mapping[str, Any]) -> Cell:
    if section["disturbed_ms"] is None:
        return Cell("–", "the decoder refused every one")
    return Cell(f"{section['disturbed_ms']:.0f} ({section['longest_ms']:.0f})")


def loss_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric its course over the share of frames that are lost at random, one line for each codec and repair."""
    lines: dict[str, list[tuple[str, list[list[float]]]]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for label, codec in zip(labels, profile["codecs"].values()):
        section = codec["loss"]
        for metric, fact in section["metrics"].items() if section["state"] == "ok" else ():
            facts[metric] = fact
            for repair in dict.fromkeys((section["repair"], "silence")):
                if points := _course(section, metric, repair):
                    lines.setdefault(metric, []).append((f"{label}, {REPAIRED[repair]}", points))
    return [
        figure(f"{metric} against lost frames", "frames lost at random, %", facts[metric], found)
        for metric, found in lines.items()
    ]


def kept(codecs: Mapping[str, Any]) -> Section:
    """Quality, similarity and errors by the number of codebooks that are decoded."""
    measured = [c["codebooks_kept"] for c in codecs.values() if c["codebooks_kept"]["state"] == "ok"]
    metrics = dict.fromkeys(metric for section in measured for metric in section["metrics"])
    rows = [
        row_of(codecs, f"{metric} by codebooks", measured[0]["metrics"][metric]["unit"], "The number of the first codebooks that are decoded, and the value with these.", "codebooks_kept", partial(_by_codebooks, metric))
        for metric in metrics
    ]  # fmt: skip
    return Section(
        "First codebooks alone", "A few whole clips, decoded with the first codebooks only. No interval.", rows
    )


def _by_codebooks(metric: str, section: Mapping[str, Any]) -> Cell:
    return _at_each([(f"{point['codebooks']}", point["quality"][metric]) for point in section["points"]])


def _at_each(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> Cell:
    """The value at each setting that has one; where none has, the reason of the last."""
    told = [f"{setting}: {_number(entry)}" for setting, entry in entries if entry["value"] is not None]
    return Cell(", ".join(told)) if told else Cell("–", entries[-1][1]["reason"])


def kept_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric its course over the number of codebooks that are decoded."""
    return _figures_of(
        profile,
        labels,
        "codebooks_kept",
        lambda point: point["codebooks"],
        ("{} against codebooks", "first codebooks that are decoded"),
    )


def _figures_of(
    profile: Mapping[str, Any],
    labels: Sequence[str],
    name: str,
    place: Callable[[Mapping[str, Any]], float],
    titles: tuple[str, str],
) -> list[dict[str, Any]]:
    """For each metric of a section its course over the section's points.

    Args:
        name: of the section. place: where a point stands. titles: of the plot, with a place for the metric, and of what points stand along.
    """
    lines: dict[str, list[tuple[str, list[list[float]]]]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for label, codec in zip(labels, profile["codecs"].values()):
        section = codec[name]
        for metric, fact in section["metrics"].items() if section["state"] == "ok" else ():
            points = [[place(point), point["quality"][metric]["value"]] for point in section["points"]]
            points = [[x, y] for x, y in points if y is not None]
            facts[metric] = fact
            lines.setdefault(metric, []).extend([(label, points)] if points else [])
    return [
        figure(titles[0].format(metric), titles[1], facts[metric], found) for metric, found in lines.items() if found
    ]


def rounded(codecs: Mapping[str, Any]) -> Section:
    """Bitrate and quality by the number of bits that each latent is rounded to."""
    measured = [c["latent_bits"] for c in codecs.values() if c["latent_bits"]["state"] == "ok"]
    metrics = dict.fromkeys(metric for section in measured for metric in section["metrics"])
    row = partial(row_of, codecs, section="latent_bits")
    rows = [
        row("bitrate by bits a latent", "kbps", "The number of bits that each latent is rounded to, and the bitrate that follows.", say=_rates),
        *(
            row(f"{metric} by bits a latent", measured[0]["metrics"][metric]["unit"], "The number of bits that each latent is rounded to, and the value with these; the last value is without rounding.", say=partial(_by_bits, metric))
            for metric in metrics
        ),
        row("latents beyond the range", "%", "The share of latents that lie beyond the range that is divided into levels, and are cut.", say=lambda s: f"{100 * s['beyond']:.2g}"),
    ]  # fmt: skip
    return Section(
        "Rounded latents",
        "A few whole clips; each latent becomes one of evenly spaced levels between the lowest and highest of its dimension over clips of the embedded speech. No interval.",
        rows,
    )


def _rates(section: Mapping[str, Any]) -> str:
    return ", ".join(f"{point['bits']}: {point['bps'] / 1000:.3g}" for point in section["points"])


def _by_bits(metric: str, section: Mapping[str, Any]) -> Cell:
    entries = [(f"{point['bits']}", point["quality"][metric]) for point in section["points"]]
    return _at_each([*entries, ("unrounded", section["unrounded"][metric])])


def rounded_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric its course over the bitrate of rounded latents."""
    return _figures_of(
        profile,
        labels,
        "latent_bits",
        lambda point: point["bps"] / 1000,
        ("{} against rounded latents", "bitrate of the rounded latents, kbps"),
    )


def swap(codecs: Mapping[str, Any]) -> Section:
    """To whom a voice is similar after the global part was exchanged."""
    row = partial(row_of, codecs, section="speaker_swap")
    rows = [
        row(label, "", what, say=partial(_similar, key))
        for key, label, what in (
            ("to_voice", "to the giver of the global part", "Similarity of the result to the clip whose global codes it has; high if these carry the voice."),
            ("to_content", "to the giver of the content", "Similarity of the result to the clip whose other codes it has; high if these carry the voice."),
            ("kept", "own voice, nothing exchanged", "Similarity of decoded clips to themselves."),
            ("apart", "the two clips", "Similarity of the two clips to each other, which two voices have anyway."),
        )
    ]  # fmt: skip
    return Section(
        "Exchanged voices",
        "Similarity of speakers when the codes that are sent once per utterance come from another clip.",
        rows,
    )


def _similar(key: str, section: Mapping[str, Any]) -> Cell:
    entry = section[key]
    return Cell("–", entry["reason"]) if entry["value"] is None else Cell(_number(entry))


def figure(
    title: str, x_title: str, fact: Mapping[str, Any], lines: list[tuple[str, list[list[float]]]]
) -> dict[str, Any]:
    """A plot of lines, each of them (label, [[x, y]]), as `figures.js` draws it.

    Args:
        fact: the `unit` of y, and whether `higher_is_better`.
    """
    higher = fact["higher_is_better"]
    better = "" if higher is None else f"{'higher' if higher else 'lower'} is better"
    return {
        "title": title, "x": x_title, "unit": fact["unit"], "better": better,
        "lines": [{"label": numbers.plain(label), "points": points} for label, points in lines],
    }  # fmt: skip


def _course(section: Mapping[str, Any], metric: str, repair: str | None) -> list[list[float]]:
    """(percent lost, value), from no loss on; empty if there are no values with this repair."""
    found = [
        [100 * point["rate"], point["quality"][repair][metric]["value"]]
        for point in section["points"]
        if point["channel"] == "random" and repair in point["quality"]
    ]
    found = [[x, y] for x, y in found if y is not None]
    whole = section["undisturbed"][metric]["value"]
    return [*([[0.0, whole]] if whole is not None else []), *found] if found else []
