"""What a run's summary holds, as values: systems, metrics, failures, and for a benchmark its answers.

Conventions
    The fields stand in the order in which `summary.json` has them. `as_dict` gives that JSON, and `from_dict` reads it back.
    None is a number that does not exist, with a reason beside it. `UNTOLD` is what a summary says nothing about, because it does
    not apply; it is false, and JSON leaves it out.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

SCHEMA = 1
BITRATE = "bitrate"


class _Untold:
    """The type of `UNTOLD`."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNTOLD"

    def __reduce__(self) -> str:
        return "UNTOLD"


_KINDS: dict[type, dict[str, Any]] = {}
UNTOLD: Any = _Untold()
"""In the place of what a summary says nothing about."""
Ends = Sequence[float] | None
"""The two ends of a 95 % interval; None where there is no interval."""


@dataclass(frozen=True, slots=True)
class Told:
    """A part of a summary that is written as a JSON object."""

    def as_dict(self) -> dict[str, Any]:
        """The part as `summary.json` holds it."""
        held = ((name, getattr(self, name)) for name in _names(type(self)))
        return {name: _plain(value) for name, value in held if value is not UNTOLD}

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> Self:
        """The part that was written as `held`.

        Raises:
            TypeError: an entry is missing, or is not of its kind.
        """
        kinds = _kinds(cls)
        return cls(**{name: _read(kinds[name], value) for name, value in held.items() if name in kinds})


def _names(kind: type[Told]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _kinds(kind: type[Told]) -> dict[str, Any]:
    if kind not in _KINDS:
        hints = get_type_hints(kind)
        _KINDS[kind] = {name: hints[name] for name in _names(kind)}
    return _KINDS[kind]


def _plain(value: Any) -> Any:
    if isinstance(value, Told):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _read(kind: Any, value: Any) -> Any:
    """A JSON value as what a field of this kind holds."""
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _read(next(one for one in get_args(kind) if one is not type(None)), value)
    if is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, Told):
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not the entry {kind.__name__}")
        return kind.from_dict(value)
    parts = get_args(kind)
    if parts and isinstance(value, Mapping):
        return {name: _read(parts[-1], one) for name, one in value.items()}
    return [_read(parts[0], one) for one in value] if parts and isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Spread(Told):
    """A number over all wordings with its interval."""

    value: float | None
    ci95: Ends = None
    note: ClassVar[str | None] = None


@dataclass(frozen=True, slots=True)
class Extreme(Told):
    """The worst or the best wording, with its value."""

    wording: str
    value: float | None
    ci95: Ends = None
    note: ClassVar[str | None] = None


@dataclass(frozen=True, slots=True)
class Estimate(Told):
    """A value with its 95 % interval. `note` says why there is no interval, or what to know of it."""

    value: float | None = None
    ci95: Ends = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Counted(Estimate):
    """An estimate over `n` samples, such as those for which all systems have a value."""

    n: int = 0


@dataclass(frozen=True, slots=True)
class Subset(Counted):
    """The result over the samples of one value of a column: `n` with a value, and `failed` without."""

    failed: int = 0
    chance: float | None = UNTOLD


@dataclass(frozen=True, slots=True)
class OfWording(Counted):
    """The result in one wording, with failures as wrong; `n` answers with a score, and `failed` without."""

    failed: int = 0


@dataclass(frozen=True, slots=True)
class CountingFailures(Told):
    """The value if failures count as the worst value, over `n`; `uncounted` failures have none, since the metric has no worst value."""

    value: float | None
    n: int
    uncounted: int = UNTOLD


@dataclass(frozen=True, slots=True)
class Judging(Told):
    """What the judge of a metric did.

    Args:
        judge, rubric: their names.
        asked: answers that it was asked about. failed: how many of them got no verdict, because the call failed or the reply could
            not be read. share: failed over asked.
        calls, cached: how many calls, and how many of them were answered by the cache.
        usage: sums of what was reported for the others, such as `output_tokens`. cost_usd: None if the price of a call is not known.
        served: what the service called the models that replied.
    """

    judge: str
    rubric: str | None
    asked: int
    failed: int
    share: float
    calls: int
    cached: int
    usage: Mapping[str, float]
    cost_usd: float | None
    served: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReadBy(Told):
    """How many answers were read by a rule (`exact`), by the judge (`aligned`) and by neither, with the shares of the rule and of both."""

    exact: int
    aligned: int
    neither: int
    exact_share: float
    share: float


@dataclass(frozen=True, slots=True)
class Compared(Told):
    """How the answers do beside the references: `ties` is a share, and `reference` the references' mean rating.

    `position_bias` is the rating of the first place over the second.
    """

    win_rate: Counted
    ties: float | None
    reference: float | None
    position_bias: Counted


@dataclass(frozen=True, slots=True)
class Official(Told):
    """The value by the rule of a benchmark's toolkit, which `counts` failures `as-wrong` or `left-out`."""

    toolkit: str
    counts: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Policies(Told):
    """The value by each rule for failures."""

    left_out: float | None
    as_wrong: float | None
    official: Official


@dataclass(frozen=True, slots=True)
class Passing(Estimate):
    """The share of questions that pass by one rule; `failed` questions have no result."""

    units: int = 0
    n: int = 0
    failed: int = 0
    counting_failures: CountingFailures = UNTOLD


@dataclass(frozen=True, slots=True)
class Draws(Told):
    """What several answers to each question add to a value.

    Args:
        n: answers to each question, the most if their number differs. fewest: the fewest. questions: how many.
        values: of each draw; None if none of its answers has a score. spread: their standard deviation; None if one is missing.
        passes_at: the value from which an answer passes. passes: by rule; empty where no rule applies.
    """

    n: int
    fewest: int
    questions: int
    values: Sequence[float | None]
    spread: float | None
    passes_at: float
    passes: Mapping[str, Passing]


@dataclass(frozen=True, slots=True)
class Robustness(Told):
    """How far a value depends on the wording. Failures count as wrong.

    Args:
        n: wordings with a value. without_value: the others.
        same_questions: whether every question was asked in all wordings. wordings: the results by wording.
        sd_by_chance: the standard deviation if the wording made no difference; None where it is not known.
        mean, sd, range: over the wordings with a value; the standard deviation has n - 1 below it. units, note: of the mean.
        worst, best: None for a metric without a direction.
    """

    n: int
    without_value: Sequence[str]
    same_questions: bool
    wordings: Mapping[str, OfWording]
    sd_by_chance: float | None
    mean: Spread
    units: int
    note: str | None
    sd: Spread
    range: Spread
    worst: Extreme | None
    best: Extreme | None


@dataclass(frozen=True, slots=True)
class MetricSummary(Estimate):
    """One metric of one system.

    Args:
        value, ci95, note: the result over all samples with a score. units: independent units.
        n, failed: finished items with and without a score; where several answers were drawn to each question, answers.
        missing: the items without a score by status. Beside the statuses of scores there are `no_estimate` (the system gave nothing
            to score) and `not_scored` (the record holds no score).
        extrapolated: what a value of sets tends to for sets of any size (see `stats.sets`).
        counting_failures: the value if failures count as the worst one.
        common: the result over the samples for which all systems have a value, over which alone systems may be compared; None if
            that is all that this system has.
        subsets: the results by column and value, where results are broken down and in every benchmark's run. The value of the
            samples that have none in a column is empty.
        chance: the chance level of questions with options. read, compared, policies: what `stats.chance_level` gives.
        draws, robustness: where several answers were drawn to each question, and where it was asked in several wordings.
            `robustness` is None if fewer than two wordings have a value.
    """

    units: int = 0
    n: int = 0
    failed: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    unit: str = ""
    higher_is_better: bool | None = None
    protocol: str = ""
    extrapolated: float | None = UNTOLD
    judging: Judging = UNTOLD
    counting_failures: CountingFailures = UNTOLD
    common: Counted | None = UNTOLD
    subsets: Mapping[str, Mapping[str, Subset]] = UNTOLD
    chance: float = UNTOLD
    read: ReadBy = UNTOLD
    compared: Compared = UNTOLD
    policies: Policies = UNTOLD
    draws: Draws = UNTOLD
    robustness: Robustness | None = UNTOLD


@dataclass(frozen=True, slots=True)
class Channels(Told):
    """Items with several channels: how many, whether the codec codes `each` channel by itself, and their bits per second and channel."""

    items: int
    each: bool
    bitrate_bps: float


@dataclass(frozen=True, slots=True)
class SystemSummary(Told):
    """One system of a run.

    Args:
        metrics: by name. The metric `bitrate` counts the bits of all channels.
        silent: how many estimates are digital silence. clipped: of how many samples beyond full scale were cut. same: how many were
            made elsewhere and equal their references sample by sample.
        unheard: the share of the questions' sound that the model was not given, because it takes no more; None if all was given, or
            if that is not known.
        checks: what the checks of the run found, as the record holds it: `ok` (names of checks), `findings` (each with `check`,
            `state`, `found` and `value`) and `unchecked` (each with `check` and `reason`); None without checks.
        channels: None without items of several channels.
        bitrate_bps: the entry of the metric `bitrate` once more.
        timing: what the record holds of its time; `times_real_time` is None if items have no estimate.
    """

    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)
    silent: int = 0
    clipped: int = 0
    same: int = 0
    unheard: float | None = None
    checks: Mapping[str, Any] | None = None
    channels: Channels | None = None
    bitrate_bps: MetricSummary = UNTOLD
    timing: Mapping[str, Any] = UNTOLD

    @property
    def without_estimate(self) -> int:
        """How many items have no estimate, and so no value of any metric."""
        return min((entry.missing.get("no_estimate", 0) for entry in self.metrics.values()), default=0)


@dataclass(frozen=True, slots=True)
class Failure(Told):
    """Why `count` items or scores of a system have no value, or what was flagged (status `flagged`).

    Reasons that differ only in numbers and quoted words are one, with `…` in the place of these. `metric` is None for whole items;
    `example` is the id of a sample.
    """

    system: str
    metric: str | None
    status: str
    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Failures(Told):
    """The `items` without an estimate, the `scores` of other items that failed or could not be read, and the reasons.

    Scores that are undefined or refused are no failures.
    """

    items: int = 0
    scores: int = 0
    reasons: Sequence[Failure] = ()


@dataclass(frozen=True, slots=True)
class Part(Told):
    """A number of questions or answers, and their share."""

    n: int
    share: float


@dataclass(frozen=True, slots=True)
class Cut(Part):
    """Questions whose audio was cut for the model, the seconds, and the share of all sound (None if that is not known)."""

    s: float
    unheard: float | None


@dataclass(frozen=True, slots=True)
class Served(Told):
    """How many answers a model gave, by what the service called it and its state.

    `other` says whether it is another model than was asked for. `subsets` counts them by subset if there were several models.
    """

    model: str | None
    revision: str | None
    n: int
    other: bool
    subsets: Mapping[str, Mapping[str, int]] = UNTOLD


@dataclass(frozen=True, slots=True)
class Quantiles(Told):
    """The median and the 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Wording(Told):
    """One wording: its text (None if the record does not hold it), its answers, and how many are none in which ways."""

    text: str | None
    n: int
    no_answer: int
    ways: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Answers(Told):
    """Counts, costs and times of a run's answers.

    Args:
        asked: how many. draws: answers to each question. failed: by status. cached: how many came from the cache.
        at_limit: answers that ended at a limit.
        decoding: the parameters that were `asked` for, and by name why one was `untold`; None in records of earlier versions.
        asked_for: the name of the model that the service was asked for. served: which models answered.
        judging: by name why the judge could not be told a parameter (`untold`); None if it was told all.
        choices: what is known where the options were put into other orders (`benchmark.scoring.options.choice_facts`); else None.
        canary: of how many questions asked again the answer was the `same`, and the comparisons that `changed`.
        cut, too_long: questions whose audio was cut for the model, and those that were not asked because it is too long.
        usage: sums of what was reported, such as `output_tokens`.
        cost_usd: of the answers that were not cached; None if the price of any of them is not known.
        latency_s, first_s: of the answers that were not cached.
        no_answer, ways: how many answers are none, and in which ways; an answer may be none in several ways.
        wordings: by wording, where there are several.
    """

    asked: int = 0
    draws: int = 1
    failed: Mapping[str, int] = field(default_factory=dict)
    cached: int = 0
    at_limit: Part = UNTOLD
    decoding: Mapping[str, Any] | None = None
    asked_for: str | None = None
    served: Sequence[Served] = ()
    judging: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] | None = None
    canary: Mapping[str, Any] | None = None
    cut: Cut = UNTOLD
    too_long: Part = UNTOLD
    usage: Mapping[str, float] = field(default_factory=dict)
    cost_usd: float | None = None
    latency_s: Quantiles | None = None
    first_s: Quantiles | None = None
    no_answer: int = UNTOLD
    ways: Mapping[str, int] = UNTOLD
    wordings: Mapping[str, Wording] = UNTOLD


@dataclass(frozen=True, slots=True)
class Summary(Told):
    """One number for each system and metric of a run, and what has no number; `answers` for a benchmark's run."""

    schema: int = SCHEMA
    systems: Mapping[str, SystemSummary] = field(default_factory=dict)
    failures: Failures = Failures()
    answers: Answers = UNTOLD

    @property
    def entries(self) -> list[tuple[str, str, MetricSummary]]:
        """(system, metric, entry) of all systems."""
        return [(name, metric, e) for name, system in self.systems.items() for metric, e in system.metrics.items()]

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that any system has; the bitrate stands first, since all other numbers depend on it."""
        return sorted(dict.fromkeys(metric for _, metric, _ in self.entries), key=lambda name: name != BITRATE)
