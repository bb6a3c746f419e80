"""The YAML file of a gate: margins and limits, edited by people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.config import fit, load_mapping
from codec_bench.store.files import write_text

SCHEMA = 1
ALPHA = 0.01
POWER = 0.8

_HEADER = """\
# margin: the largest loss that is accepted, in the metric's unit.
# cannot_tell: whether a metric whose interval covers its margin fails the gate (fail) or not (pass).
# Per metric: max, min (of the value), failed (items without a score), items_above_50 (items with a rate above 50 %).
"""

Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class MetricSpec(BaseModel):
    """The accepted change of one metric.

    Args:
        margin: the largest accepted loss, in the metric's unit.
        max, min: hard limits of the value. failed: most items without a score.
        items_above_50: most items with a value above 0.5, for error rates.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    max: Number | None = None
    min: Number | None = None
    failed: Count | None = None
    items_above_50: Count | None = None


class RunLimits(BaseModel):
    """Limits of a run: items without an estimate, silent ones, truncated answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    failed: Count | None = None
    silent: Count | None = None
    truncated: Count | None = None


class GateSpec(BaseModel):
    """A gate.

    Args:
        alpha: the rate of false alarms of the whole gate. power: of detection in `gate_calibrate`.
        cannot_tell: whether an undecided metric fails the gate.
        limits: of the run. metrics: to compare, by name; empty for all of the baseline with margin 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = ALPHA
    power: Annotated[float, Field(gt=0.5, lt=1)] = POWER
    cannot_tell: Literal["pass", "fail"] = "pass"
    limits: RunLimits = RunLimits()
    metrics: Mapping[str, MetricSpec] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, document: object) -> object:
        """Drop keys without a value, as `limits:` alone."""
        return {k: v for k, v in document.items() if v is not None} if isinstance(document, dict) else document


def read_spec(file: Path) -> GateSpec:
    """Read a gate's YAML file; raises UserError naming file and field."""
    return fit(load_mapping(file), GateSpec, source=str(file))


def write_spec(spec: GateSpec, file: Path) -> None:
    """Write a gate's YAML file, atomically."""
    import yaml

    document = spec.model_dump(by_alias=True, exclude_none=True, mode="json")
    write_text(file, _HEADER + yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
