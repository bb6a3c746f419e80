"""The rows and the plot of stability under re-encoding and changes of the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import ProfileCell, ProfileRow, ProfileSection, number_cell, row_of, spread_text
from codec_bench.apps.profiling.robust_rows import Course, figures_of

_SAME_DB = 200


def stability(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the rows of the section."""
    measured = [c["stability"] for c in codecs.values() if c["stability"]["state"] == "ok"]
    note = (
        "Share of codes that stay the same, the mean of all codebooks; higher is better. Quality is that of what comes "
        "out of the changed clip, against the changed clip."
    )
    if not measured:
        return ProfileSection("Stability", note, [])
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
    return ProfileSection("Stability", note, rows)


def noise_figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Plot equal codes and output quality over noise in the input."""
    measured = [
        (label, c["stability"])
        for label, c in zip(labels, profile["codecs"].values())
        if c["stability"]["state"] == "ok"
    ]
    same: list[Course] = []
    quality: list[Course] = []
    for label, section in measured:
        for metric, facts in list(section["metrics"].items())[:1]:
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
