"""Expand groups of metrics, or read those that a run began with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from codec_bench.data import Source
from codec_bench.metrics.groups import Chosen, GroupConditions, expand_groups, names_group
from codec_bench.store.folders import started_fingerprint
from codec_bench.store.record import Run

GROUPS = "groups"
"""Entry of a run's `config` with the members of each named group."""


def expand_metrics(
    chosen: Sequence[str],
    source: Source,
    out: str | os.PathLike[str] | None,
    *,
    coded: bool,
    options: Mapping[str, Mapping[str, Any]] | None,
    prompted: bool = False,
) -> tuple[list[str], dict[str, Any]]:
    """Expand groups of metrics to those that the data and this machine allow.

    A continued run keeps the metrics of its groups, even if a later version has more: its fingerprint holds them.

    Args:
        chosen: from `chosen_metrics`.
        source: all data.
        out: the folder of the run, or None for a new one.
        coded: whether codecs are measured.
        options: arguments of features by name.
        prompted: whether the reference audio is a recording of the voice with other words.

    Returns:
        The names of the metrics, and the members of each group for the record.

    Raises:
        UserError: no metric of a group can be measured, or a group has brackets.
    """
    if not any(names_group(text) for text in chosen):
        return list(chosen), {}
    chosen_groups: Chosen = expand_groups(
        chosen, GroupConditions.of(source, coded=coded, options=options, prompted=prompted), _read_members(out)
    )
    return chosen_groups.metrics, {GROUPS: chosen_groups.groups}


def _read_members(folder: str | os.PathLike[str] | None) -> dict[str, list[str]]:
    if folder is None or not started_fingerprint(folder):
        return {}
    with closing(Run(folder)) as run:
        return dict((run.meta.get("config") or {}).get(GROUPS) or {})
