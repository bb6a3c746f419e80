"""Published speaker verification trials: pairs, and whether one speaker.

Formats `1 ENROLMENT TEST` or `0 ENROLMENT TEST`, one trial a line (VoxCeleb), or Kaldi's `ENROLMENT TEST target` or
    `... nontarget`. A recording is named by the sample's id, with or without the suffix of a sound file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from codec_bench.data.source import Source
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import Note, UserError, on_disk
from codec_bench.types import TRIALS

_SAME: Mapping[str, int] = {"1": 1, "0": 0, "target": 1, "nontarget": 0}


def with_trials(source: Source, path: Path) -> Source:
    """Add speaker verification trials to the test samples' fields.

    Each is the id of the enrolment's sample, and 1 for the same speaker or 0.

    Args:
        source: its samples are changed.
        path: the list.

    Raises:
        UserError: the list cannot be read, a line is no trial, or no trial is about two of the samples.
    """
    ids = {sample.id for sample in source.samples}
    held: dict[str, dict[str, int]] = {}
    dropped: list[Diagnostic] = []
    for line, same, enrolment, test in _read(path):
        one, other = _known(enrolment, ids), _known(test, ids)
        if one is None or other is None:
            dropped.append(Diagnostic("trial_unknown", line=line, name=enrolment if one is None else test))
        elif held.setdefault(other, {}).setdefault(one, same) != same:
            raise UserError("trials_disagree", line=line, path=path, one=one, other=other)
    if not held:
        raise UserError(
            "no_trial_of_data",
            path=path,
            reason=dropped[0] if dropped else Diagnostic("no_trial_listed"),
            hint="a recording is named by the sample's id; codec-bench show DATA shows ids",
        )
    if dropped:
        warnings.warn(Note("trials_excluded", trials=len(dropped), path=path, first=dropped[0]), stacklevel=3)
    for index, sample in enumerate(source.samples):
        pairs = [[name, same] for name, same in held.get(sample.id, {}).items()]
        source.samples[index] = replace(sample, extra={**sample.extra, TRIALS: pairs})
    return source


def _known(name: str, ids: set[str]) -> str | None:
    if name in ids:
        return name
    stem, _, ending = name.rpartition(".")
    return stem if f".{ending.lower()}" in SUFFIXES and stem in ids else None


def _read(path: Path) -> Iterator[tuple[int, int, str, str]]:
    """Line number, whether the speaker is the same, enrolment and test of each trial."""
    with on_disk("file_not_readable", path=path):
        lines = path.read_text("utf-8-sig").splitlines()
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) == 3 and parts[0] in _SAME:
            yield number, _SAME[parts[0]], parts[1], parts[2]
        elif len(parts) == 3 and parts[2] in _SAME:
            yield number, _SAME[parts[2]], parts[0], parts[1]
        else:
            raise UserError("trial_line", path=path, number=number, line=line[:80])
