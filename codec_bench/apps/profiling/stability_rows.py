"""The rows and the plot of how stable codes are: under re-encoding, and when the input is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import Cell, Row, Section, row_of
from codec_bench.apps.profiling.robust_rows import figure

_SAME_DB = 200


def stability(codecs: Mapping[str, Any]) -> Section:
    """The rows of the section."""
    measured = [c["stability"] for c in codecs.values() if c["stability"]["state"] == "ok"]
    note = "Share of codes that stay the same, the mean of all codebooks; higher is better. Quality is that of what comes out of the changed clip, against the changed clip."
    if not measured:
        return Section("Stability", note, [])
    row = partial(row_of, codecs, section="stability")
    rows: list[Row] = []
    for number in range(max(len(s["reencoding"]) for s in measured)):
        what = "Codes of decoded audio compared with those of the original."
        rows.append(row(f"re-encoded {number + 1}×", "%", what, say=partial(_reencoded, number)))
        rows.append(row(f"latents re-encoded {number + 1}×", "dB", _LATENTS, say=partial(_latents_reencoded, number)))
    metric = next(iter(measured[0]["metrics"]), None)
    unit = measured[0]["metrics"][metric]["unit"] if metric else ""
    if metric:
        rows.append(
            row(
                f"{metric}, input unchanged",
                unit,
                "Quality of what comes out of the unchanged clips.",
                say=partial(_unchanged, metric),
            )
        )
    for name in dict.fromkeys(change["change"] for s in measured for change in s["changes"]):
        rows.append(row(f"same codes, input {name}", "%", _AGAINST["%"], say=partial(_said, name, _same)))
        rows.append(row(f"latents, input {name}", "dB", _AGAINST["latents"], say=partial(_said, name, _latents)))
        rows.append(row(f"SNR, input {name}", "dB", _AGAINST["dB"], say=partial(_said, name, _snr)))
        if metric:
            rows.append(
                row(
                    f"{metric}, input {name}",
                    unit,
                    _AGAINST["quality"],
                    say=partial(_said, name, partial(_quality, metric)),
                )
            )
    return Section("Stability", note, rows)  # fmt: skip


def noise_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """The share of equal codes, and the quality of what comes out, over the noise in the input."""
    same: list[tuple[str, list[list[float]]]] = []
    quality: dict[str, list[tuple[str, list[list[float]]]]] = {}
    facts: dict[str, Any] = {}
    for label, codec in zip(labels, profile["codecs"].values()):
        section = codec["stability"]
        for metric, fact in list(section["metrics"].items())[:1] if section["state"] == "ok" else ():
            noisy = [change for change in section["changes"] if change["noise_db"] is not None]
            facts[metric] = fact
            shares = [[c["noise_db"], 100 * sum(c["agreement"]) / len(c["agreement"])] for c in noisy if c["agreement"]]
            values = [
                [c["noise_db"], c["quality"][metric]["value"]]
                for c in noisy
                if c["quality"][metric]["value"] is not None
            ]
            same += [(label, shares)] if shares else []
            quality.setdefault(metric, []).extend([(label, values)] if values else [])
    made = [figure("Equal codes under noise", _NOISE, {"unit": "%", "higher_is_better": True}, same)] if same else []
    return made + [
        figure(f"{metric} under noise", _NOISE, facts[metric], lines) for metric, lines in quality.items() if lines
    ]


_NOISE = "signal-to-noise ratio of the input, dB"


def _share(values: Sequence[float] | None, reason: str | None) -> Cell:
    if not values:
        return Cell("–", reason)
    spread = f" ({100 * min(values):.0f}–{100 * max(values):.0f})" if len(values) > 1 else ""
    return Cell(f"{100 * sum(values) / len(values):.1f}{spread}")


def _reencoded(number: int, stability: Mapping[str, Any]) -> Cell:
    rounds = stability["reencoding"]
    return _share(rounds[number]["with_first"] if number < len(rounds) else None, stability["tokens_reason"])


def _latents_reencoded(number: int, stability: Mapping[str, Any]) -> Cell:
    rounds = stability["reencoding"]
    value = rounds[number]["latent_snr_db"] if number < len(rounds) else None
    return Cell("–", "it gives no latents") if value is None else Cell(f"{value:.1f}".replace("-", "−"))


def _said(name: str, say: Any, section: Mapping[str, Any]) -> Cell:
    """What is said of a change; a dash where it was not made."""
    for change in section["changes"]:
        if change["change"] == name:
            return Cell("–", change["reason"]) if change["reason"] else say(section, change)
    return Cell("–", "it has no fixed frames")


def _same(section: Mapping[str, Any], change: Mapping[str, Any]) -> Cell:
    return _share(change["agreement"], section["tokens_reason"])


def _latents(section: Mapping[str, Any], change: Mapping[str, Any]) -> Cell:
    value = change["latent_snr_db"]
    return Cell("–", "it gives no latents") if value is None else Cell(f"{value:.1f}".replace("-", "−"))


def _snr(section: Mapping[str, Any], change: Mapping[str, Any]) -> Cell:
    value = change["wave_snr_db"]
    if value is None:
        return Cell("–", "nothing undoes this change, or there is no signal")
    return Cell("same" if value >= _SAME_DB else f"{value:.1f}".replace("-", "−"))


def _quality(metric: str, section: Mapping[str, Any], change: Mapping[str, Any]) -> Cell:
    return _value(change["quality"].get(metric))


def _unchanged(metric: str, section: Mapping[str, Any]) -> Cell:
    return _value(section["unchanged"].get(metric))


def _value(entry: Mapping[str, Any] | None) -> Cell:
    if entry is None or entry["value"] is None:
        return Cell("–", (entry or {}).get("reason") or "it was not measured")
    return Cell(f"{entry['value']:.3g}".replace("-", "−"))


_LATENTS = "Signal-to-noise ratio of the latents of decoded audio to those of the original; higher is better."
_AGAINST = {
    "%": "Codes of the changed clip compared with those of the unchanged clip.",
    "latents": "Signal-to-noise ratio of the latents of the changed clip to those of the unchanged clip; higher is better.",
    "dB": "Signal-to-noise ratio of the decoded changed clip, after the change was undone, to the decoded unchanged clip.",
    "quality": "Quality of the decoded changed clip against the changed clip.",
}
