"""Expands groups of metrics, or reads those that a run began with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from codec_bench.data import Source
from codec_bench.metrics.groups import Chosen, Material, names_group, without_groups
from codec_bench.store.folders import started_fingerprint
from codec_bench.store.record import Run

GROUPS = "groups"
"""The entry of a run's `config` that holds the members of each group that was named."""


def expand_metrics(
    chosen: Sequence[str],
    source: Source,
    out: str | os.PathLike[str] | None,
    *,
    coded: bool,
    options: Mapping[str, Mapping[str, Any]] | None,
    prompted: bool = False,
) -> tuple[list[str], dict[str, Any]]:
    """Expands names of metrics and groups, and gives the groups' members.

    A run that is continued in a folder keeps the metrics of its groups, even where a later version has more of them:
    its record holds them, and so does its fingerprint.

    Args:
        chosen: from `chosen_metrics`. source: the data, all of it. out: the folder of the run, or None for a new one.
        coded: whether codecs are measured. options: arguments of features by name.
        prompted: whether the reference audio is a recording of the voice with other words.

    Raises:
        UserError: nothing of a group can be measured, or a group is named with brackets.
    """
    if not any(names_group(text) for text in chosen):
        return list(chosen), {}
    chosen_groups: Chosen = without_groups(
        chosen, Material.of(source, coded=coded, options=options, prompted=prompted), _read_members(out)
    )
    return chosen_groups.metrics, {GROUPS: chosen_groups.groups}


def _read_members(folder: str | os.PathLike[str] | None) -> dict[str, list[str]]:
    """The members of the groups of the run in a folder; empty without one."""
    if folder is None or not started_fingerprint(folder):
        return {}
    with closing(Run(folder)) as run:
        return dict((run.meta.get("config") or {}).get(GROUPS) or {})
