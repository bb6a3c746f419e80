"""One number from several metrics: terms with transforms and weights.

A missing value fails the reward; it is never a silent 0. Values of silent or unrelated output count as missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.config import fit, invalid_value, load_mapping
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.types import Score

Number = Annotated[float, Field(allow_inf_nan=False)]


class NoReward(UserError):
    """A reward without a number: `metric` has none, and `score` says why."""

    def __init__(self, message: str, metric: str, score: Score | None) -> None:
        super().__init__(message)
        self.metric, self.score = metric, score


class Linear(BaseModel):
    """`scale * x + offset`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    scale: Number = 1.0
    offset: Number = 0.0


class Threshold(BaseModel):
    """`above` from `at` on, `below` under it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    at: Number
    above: Number = 1.0
    below: Number = 0.0


class Transform(BaseModel):
    """One step: `clip`, `linear`, `negate`, `threshold`, or `exp` (exp(scale * x))."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    clip: tuple[Number, Number] | None = None
    linear: Linear | None = None
    negate: Literal[True] | None = None
    threshold: Threshold | None = None
    exp: Number | None = None

    @model_validator(mode="after")
    def _one_step(self) -> Transform:
        if len(self.model_fields_set) != 1:
            raise invalid_value("one_of_fields", fields=["clip", "linear", "negate", "threshold", "exp"])
        if self.clip is not None and self.clip[0] > self.clip[1]:
            raise invalid_value("clip_order")
        return self

    def apply(self, x: float) -> float:
        """Return the transformed value."""
        if self.clip is not None:
            return min(max(x, self.clip[0]), self.clip[1])
        if self.linear is not None:
            return self.linear.scale * x + self.linear.offset
        if self.threshold is not None:
            return self.threshold.above if x >= self.threshold.at else self.threshold.below
        if self.exp is not None:
            return math.exp(min(self.exp * x, 700.0))
        return -x if self.negate else x


class Term(BaseModel):
    """One term; `missing` is `fail`, or the substitute for a missing value."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    metric: str
    transform: Sequence[Transform] = ()
    weight: Number = 1.0
    missing: Literal["fail"] | Number = "fail"


class RewardSpec(BaseModel):
    """The terms of a reward, by name; the reward is their weighted sum."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    terms: Annotated[Mapping[str, Term], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward.

    Args:
        score: the weighted sum.
        terms: each term after its transforms.
        values: each metric that has a value.
        missing: by term with a substitute, the code of why.
    """

    score: float
    terms: Mapping[str, float]
    values: Mapping[str, float]
    missing: Mapping[str, str]


def read_reward(reward: str | Path | Mapping[str, Any] | RewardSpec, better: Mapping[str, bool | None]) -> RewardSpec:
    """Read a reward from a YAML file, a mapping, or a metric's name alone.

    Args:
        reward: a name means its value, negated if lower is better.
        better: by scored metric, whether higher is better.

    Raises:
        UserError: a field is wrong, or a term names a metric that is not scored.
    """
    if isinstance(reward, str) and reward in better:
        steps = (Transform(negate=True),) if better[reward] is False else ()
        return RewardSpec(terms={reward: Term(metric=reward, transform=steps)})
    if isinstance(reward, str) and not is_reward_file(reward):
        raise UserError("not_a_reward", reward=reward, hint=f"scored are {', '.join(better)}")
    spec = parse_reward(reward)
    for name, term in spec.terms.items():
        if term.metric not in better:
            raise UserError(
                "reward_reads_unscored",
                term=name,
                metric=term.metric,
                hint=f"scored are {', '.join(better)}; add it to the metrics",
            )
    return spec


def is_reward_file(reward: str) -> bool:
    """Whether a text names a file rather than a metric."""
    return Path(reward).suffix in (".yaml", ".yml") or Path(reward).is_file()


def parse_reward(reward: str | Path | Mapping[str, Any] | RewardSpec) -> RewardSpec:
    """Parse a reward before the metrics are known; raises UserError."""
    if isinstance(reward, RewardSpec):
        return reward
    if isinstance(reward, Mapping):
        return fit(dict(reward), RewardSpec, source="the reward")
    return fit(load_mapping(Path(reward)), RewardSpec, source=str(reward))


def flag_code(score: Score) -> str | None:
    """Return the code of a doubtful score, such as `silent_estimate`; or None."""
    flag = score.detail.get("flag")
    return flag.code if isinstance(flag, Diagnostic) else None


def _has_value(score: Score) -> bool:
    """Whether a score has a usable value; that of a silent estimate is not."""
    flag = score.detail.get("flag")
    is_doubtful = isinstance(flag, Diagnostic) and flag.severity == "error"
    return score.value is not None and score.denominator != 0 and not is_doubtful


def _is_refused(score: Score | None) -> bool:
    """Whether the caller's input is insufficient, such as no text: that is a mistake."""
    return score is None or score.status == "refused" or score.denominator == 0


def compute_reward(spec: RewardSpec, scores: Mapping[str, Score]) -> Reward:
    """Compute the weighted sum of the terms over an item's scores.

    Raises:
        NoReward: a value is missing without a substitute, the input lacks something, or the sum is not finite.
    """
    terms: dict[str, float] = {}
    missing: dict[str, str] = {}
    values = {name: s.value for name, s in scores.items() if s.value is not None and _has_value(s)}
    for name, term in spec.terms.items():
        if term.metric in values:
            x = values[term.metric]
            for step in term.transform:
                x = step.apply(x)
        elif term.missing == "fail" or _is_refused(scores.get(term.metric)):
            score = scores.get(term.metric)
            raise NoReward(
                Diagnostic("reward_without_value", metric=term.metric, cause=_cause_of(score)), term.metric, score
            )
        else:
            x = float(term.missing)
            score = scores.get(term.metric)
            missing[name] = "not_scored" if score is None else flag_code(score) or score.code or score.status
        terms[name] = x
    total = sum(spec.terms[name].weight * x for name, x in terms.items())
    if not math.isfinite(total):
        raise NoReward(Diagnostic("reward_not_finite"), next(iter(terms)), None)
    return Reward(total, terms, values, missing)


def _cause_of(score: Score | None) -> Diagnostic | str:
    """Why a score has no value for a reward: a code."""
    if score is None:
        return Diagnostic("item_not_scored")
    if score.denominator == 0:
        return Diagnostic("reference_without_words")
    return flag_code(score) or Diagnostic("score_without_value", status=score.status, cause=score.reason)
