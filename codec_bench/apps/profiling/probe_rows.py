"""Rows and plot of a profile's probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import ProfileCell, ProfileSection, row_of
from codec_bench.apps.profiling.probes import PROBES, TASKS

_READS = {
    "speaker": "Clips with the right speaker; no clip is in both parts.",
    "emotion": "Clips with the right emotion, of speakers unknown to the probe.",
    "phone": "Frames with the right phone, of speakers unknown to the probe.",
    "pitch": "Voiced frames with the right fifth of pitch, of speakers unknown to the probe.",
}
_NAMES = {"linear": "linear", "hidden": "hidden layer"}


def probes_section(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the rows of all codecs."""
    rows = [
        row_of(codecs, f"{task}, {_NAMES[probe]}", "%", _READS[task], "probes", partial(_cell, task, probe))
        for task in TASKS
        for probe in PROBES
    ]
    return ProfileSection(
        "Probes",
        "Accuracy of small classifiers that read the codes, its 95 % interval, the same from the log-mel spectrogram "
        "of what was coded, and the accuracy of the linear probe on exchanged codes, which is chance. Higher says that "
        "more can be read; whether that is wanted depends on the use.",
        rows,
    )


def _cell(task: str, probe: str, probes: Mapping[str, Any]) -> ProfileCell:
    result = probes["tasks"][task]
    if result["state"] != "ok":
        return ProfileCell("–", result["reason"])
    one, ends = result["codes"][probe], result["codes"][probe]["ci95"]
    spread = "" if ends is None else f" ({100 * ends[0]:.0f}–{100 * ends[1]:.0f})"
    reference = f"log-mel {100 * result['mel'][probe]['accuracy']:.1f}; chance {100 * result['chance']:.1f}"
    return ProfileCell(f"{100 * one['accuracy']:.1f}{spread}; {reference}")


def probe_points(codecs: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Build the plot of linear probes by codec, log-mel and chance."""
    measured = [
        (text, codec["probes"]["tasks"])
        for text, codec in zip(labels, codecs.values())
        if codec["probes"]["state"] == "ok"
    ]
    tasks = [task for task in TASKS if any(tasks[task]["state"] == "ok" for _, tasks in measured)]
    lines = [{"codec": text, "points": _points(tasks, of, "codes")} for text, of in measured]
    if lines and tasks:
        lines.append({"codec": "log-mel", "points": _points(tasks, measured[0][1], "mel")})
        chance = [
            [index, measured[0][1][t]["chance"], None, None]
            for index, t in enumerate(tasks)
            if measured[0][1][t]["state"] == "ok"
        ]
        lines.append({"codec": "chance", "points": chance})
    return {"tasks": tasks, "lines": lines if tasks else []}


def _points(tasks: Sequence[str], of: Mapping[str, Any], source: str) -> list[list[Any]]:
    points = []
    for index, task in enumerate(tasks):
        if of[task]["state"] == "ok":
            one = of[task][source]["linear"]
            points.append([index, one["accuracy"], *(one["ci95"] or (None, None))])
    return points
