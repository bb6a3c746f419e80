"""Groups of metrics by topic, such as `quality`, for this machine and data.

Groups come from `codec_bench.metrics.TOPICS`. A group holds the metrics that can be measured without a download on this
machine and with these data; a note names the rest with the reason. A metric without usable default models joins with
the first of `BRACKETS` that works.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codec_bench.config.registry import Spec
from codec_bench.features import load_feature
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import Note, UserError
from codec_bench.metrics import (
    FETCHED_BY_PACKAGES,
    OFFLINE,
    QUALITY,
    REGISTRY,
    TOPICS,
    build_metric,
    expand,
    group_names,
    topic_of,
)
from codec_bench.metrics.base import Metric
from codec_bench.types import Sample

BRACKETS = ("whisper-large-v3", "whisper-tiny.en", "pocketsphinx", "ge2e")
"""Fallback models: the recognisers that papers quote first, and a speaker encoder."""


NEEDS_TARGET = Diagnostic("needs_target")


def needs_target(metric: Metric) -> bool:
    """Whether a metric compares an estimate with a recording of the same words."""
    return metric.kind == "pair" and not metric.takes_prompt


@dataclass(frozen=True, slots=True)
class SampleFields:
    """Which fields some samples have."""

    reference: bool
    text: bool
    language: str | None


@dataclass(frozen=True, slots=True)
class GroupConditions:
    """The data and systems for which the metrics of a group are chosen.

    Args:
        fields: each combination of the samples' fields, once.
        coded: whether codecs are measured; if not, no bits are sent.
        options: arguments of features by name, such as {"utmos": {"weights": "folder"}}.
        prompted: whether the reference audio is a voice prompt with other words.
    """

    fields: tuple[SampleFields, ...]
    coded: bool = True
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompted: bool = False

    @classmethod
    def of(
        cls,
        samples: Iterable[Sample],
        *,
        coded: bool,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        prompted: bool = False,
    ) -> GroupConditions:
        """Collect the combinations of fields in these samples."""
        kinds = {SampleFields(one.audio is not None, one.text is not None, one.language) for one in samples}
        return cls(tuple(sorted(kinds, key=repr)), coded, options or {}, prompted)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Metric names without groups, and the members of each named group."""

    metrics: list[str]
    groups: dict[str, list[str]]


def group_metrics(group: str) -> list[str]:
    """List the metrics of a group by name, without brackets, even if some cannot run."""
    if group == OFFLINE:
        known = [name for members in TOPICS.values() for name in members]
        return [*known, *(name for name in REGISTRY.names() if name not in known)]
    topics = ("naturalness", "fidelity") if group == QUALITY else (group,)
    return [name for topic in topics for name in TOPICS[topic]]


def names_group(text: str) -> bool:
    """Whether a requested name is that of a group.

    Raises:
        UserError: the group has brackets or a precision, which only metrics have.
    """
    spec = Spec.parse(text)
    if spec.name not in group_names():
        return False
    if spec.argument is not None or spec.point is not None:
        raise UserError(
            "group_with_brackets",
            group=text,
            hint=f"name '{spec.name}', or its metrics one by one (codec-bench list metrics --groups)",
        )
    return True


def expand_groups(
    chosen: Sequence[str], material: GroupConditions, previous: Mapping[str, Sequence[str]] | None = None
) -> Chosen:
    """Replace group names by their members that can be measured on these data.

    Names and groups may overlap; each metric is listed once.

    Args:
        chosen: requested metrics and groups.
        material: the data and systems.
        previous: the members by group of a run that is resumed, which are used as they are.

    Raises:
        UserError: nothing of a group can be measured, or a group is named with brackets.
    """
    named = [text for text in chosen if not names_group(text)]
    # The planner reports errors about names.
    present = {member for text in dict.fromkeys(named) for member in expand([text])}
    out: list[str] = []
    groups: dict[str, list[str]] = {}
    for text in chosen:
        if not names_group(text):
            out.append(text)
            continue
        groups[text] = list((previous or {}).get(text) or _members(text, material))
        new = [member for member in groups[text] if member not in present]
        present.update(new)
        out += new
    return Chosen(out, groups)


def _members(group: str, material: GroupConditions) -> list[str]:
    """Select the metrics of a group that can be measured, and warn of the others."""
    members: list[str] = []
    excluded: dict[str, list[str]] = {}
    for name in group_metrics(group):
        form, why = _form(name, material)
        if form is not None:
            members.append(form)
        else:
            excluded.setdefault(why, []).append(name)
    reasons = [Diagnostic("metrics_excluded", metrics=", ".join(names), cause=why) for why, names in excluded.items()]
    if not members:
        raise UserError("nothing_of_group", group=group, reasons=reasons)
    if excluded:
        warnings.warn(Note("group_excludes", group=group, reasons=reasons), stacklevel=2)
    return members


def _form(name: str, material: GroupConditions) -> tuple[str | None, str]:
    """Find the first variant of a metric that can be measured.

    Returns:
        Its name and "", or None and the reason why no variant can be measured.
    """
    lacks, unbuilt = "", ""
    for model in (None, *BRACKETS):
        text = name if model is None else f"{name}[{model}]"
        try:
            metric = build_metric(text)
        except UserError as error:  # it has no such model, or no model, or its package is missing
            unbuilt = unbuilt or error.message
            continue
        obstacle = _obstacle(metric, material)
        if obstacle is None:
            return text, ""
        lacks = lacks or obstacle
    return None, lacks or unbuilt


def _obstacle(metric: Metric, material: GroupConditions) -> str | None:
    """Return why a metric cannot be measured on these data, or None.

    A metric whose weights or package would have to be downloaded cannot.
    """
    if topic_of(Spec.parse(metric.name).name) == "rate" and not material.coded:
        return Diagnostic("no_codec_measured")
    if material.prompted and needs_target(metric):
        return NEEDS_TARGET
    measured = [one for one in material.fields if one.reference or metric.kind != "pair"]
    if not measured:
        return Diagnostic("no_reference_in_data")
    try:
        refusals = [metric.refusal(text="" if one.text else None, language=one.language) for one in measured]
        if all(refusals):
            return refusals[0]
        for feature in dict.fromkeys([*metric.estimate_features, *metric.reference_features]):
            if Spec.parse(feature).name in FETCHED_BY_PACKAGES:
                return Diagnostic("weights_of_package", feature=feature)
            # It finds its weights and its package; the model itself is loaded with the first batch.
            load_feature(feature, weights=material.options.get(feature, {}).get("weights"))
    except UserError as error:
        return error.message
    return None
