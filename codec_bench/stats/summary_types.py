"""Values of a run's summary (see `summary_json`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from codec_bench.messages import Diagnostic
from codec_bench.stats.controls import Controlled
from codec_bench.stats.data_warnings import Warned
from codec_bench.stats.summary_json import UNSET, SummaryPart
from codec_bench.store.judge_tests import NOT_TESTED
from codec_bench.store.statuses import NO_FAILURE

SCHEMA = 1
BITRATE = "bitrate"
UNPROCESSED = "unprocessed"
Ends = Sequence[float] | None
"""Ends of a 95 % interval; None if unknown."""


@dataclass(frozen=True, slots=True)
class Estimate(SummaryPart):
    """A value with its 95 % interval; `note` explains a missing value or warns."""

    value: float | None = None
    ci95: Ends = None
    note: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class WordingSpread(SummaryPart):
    """A number over all wordings with its interval."""

    value: float | None
    ci95: Ends = None
    note: ClassVar[Diagnostic | None] = None


@dataclass(frozen=True, slots=True)
class Extreme(WordingSpread):
    """The worst or the best wording, with its value."""

    wording: str = ""


@dataclass(frozen=True, slots=True)
class Counted(Estimate):
    """An estimate over `n` samples, such as those for which all systems have a value."""

    n: int = 0


@dataclass(frozen=True, slots=True)
class Below50(Counted):
    """An error rate over items with a rate of at most 50 %, without the items `above`."""

    above: int = 0


@dataclass(frozen=True, slots=True)
class Standing(SummaryPart):
    """Standing of a system in one metric of its run (see `stats.verdict`).

    Args:
        compared: whether it is compared at all; `why` not, or why none is best.
        alike: whether it is indistinguishable from the best.
    """

    best: bool
    compared: bool
    why: Diagnostic | None = None
    alike: bool = False


@dataclass(frozen=True, slots=True)
class OfWording(Counted):
    """The result in one wording, with failures as wrong; `n` scores, `failed` without."""

    failed: int = 0


@dataclass(frozen=True, slots=True)
class CountingFailures(SummaryPart):
    """The value if failures count as the worst value, over `n`.

    `uncounted` failures have none, since the metric has no worst value.
    """

    value: float | None
    n: int
    uncounted: int = UNSET

    @property
    def of_all(self) -> float | None:
        """The value; None if it does not count every failure."""
        return None if self.uncounted else self.value


@dataclass(frozen=True, slots=True)
class Subset(OfWording):
    """The result over the samples of one value of a column; `failed` have no value.

    `counting_failures` is unset if none of them is a failure.
    """

    chance: float | None = UNSET
    counting_failures: CountingFailures = UNSET


@dataclass(frozen=True, slots=True)
class Judging(SummaryPart):
    """A judge's work: `failed` of `asked` answers got no readable verdict (`share`).

    `usage` and the costs are of uncached calls. `served`: model names reported by the service. `tested`: the judge's
    own test (`store.judge_tests`).
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
    cost_range_usd: tuple[float, float] = UNSET
    tested: Diagnostic = NOT_TESTED


@dataclass(frozen=True, slots=True)
class ReadBy(SummaryPart):
    """Shares of answers read by a rule (`exact`), the judge (`aligned`), or neither."""

    exact: int
    aligned: int
    neither: int
    exact_share: float
    share: float


@dataclass(frozen=True, slots=True)
class ReferenceComparison(SummaryPart):
    """Answers against references: `ties` is a share, `reference` a mean rating.

    `position_bias`: rating of the first place over the second. `changed`: share of verdicts that changed with the
    place.
    """

    win_rate: Counted
    ties: float | None
    reference: float | None
    position_bias: Counted
    changed: float = UNSET


@dataclass(frozen=True, slots=True)
class Official(SummaryPart):
    """The value by a toolkit's rule, which `counts` failures `as-wrong` or `left-out`."""

    toolkit: str
    counts: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Policies(SummaryPart):
    """The value by each rule for failures."""

    left_out: float | None
    as_wrong: float | None
    official: Official


@dataclass(frozen=True, slots=True)
class PassingShare(Estimate):
    """The share of questions that pass by one rule; `failed` questions have no result."""

    units: int = 0
    n: int = 0
    failed: int = 0
    counting_failures: CountingFailures = UNSET


@dataclass(frozen=True, slots=True)
class DrawsSummary(SummaryPart):
    """Several answers to each question: at most `n`, at least `fewest`.

    `values` are of each draw, `spread` their standard deviation. An answer passes from `passes_at` on; `passes` is by
    rule.
    """

    n: int
    fewest: int
    questions: int
    values: Sequence[float | None]
    spread: float | None
    passes_at: float
    passes: Mapping[str, PassingShare]


@dataclass(frozen=True, slots=True)
class RobustnessSummary(SummaryPart):
    """Dependence of a value on `n` wordings. Failures count as wrong.

    `same_questions`: every question was sent in all wordings. `sd_by_chance`: expected if the wording makes no
    difference; `sd` divides by n - 1. `worst` and `best` are None for a metric without a direction.
    """

    n: int
    without_value: Sequence[str]
    same_questions: bool
    wordings: Mapping[str, OfWording]
    sd_by_chance: float | None
    mean: WordingSpread
    units: int
    note: Diagnostic | None
    sd: WordingSpread
    range: WordingSpread
    worst: Extreme | None = None
    best: Extreme | None = None


@dataclass(frozen=True, slots=True)
class MetricSummary(Estimate):
    """One metric of one system over all scored samples, with independent `units`.

    Args:
        method: of the interval (see `stats.intervals`).
        n, failed: finished items with and without a score; with several draws, answers.
        missing: items without a score by status; also `no_estimate` and `not_scored` (no score in the record).
        flagged: number of doubtful scores (see `metrics.base.flagged`).
        extrapolated: limit of a value of sets for infinite size (see `stats.sets`).
        below_50: an error rate without the items above 50 %; unset if there are none.
        common: over the samples that all compared systems have; None if it has no others.
        standing: unset for a metric without a direction, the bitrate, and the unprocessed audio.
        subsets: by column and value. chance, read, compared, policies: see `stats.chance_level`.
        draws, robustness: of several answers to each question, and of several wordings.
    """

    method: str = ""
    units: int = 0
    n: int = 0
    failed: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    flagged: int = UNSET
    unit: str = ""
    higher_is_better: bool | None = None
    protocol: str = ""
    extrapolated: float | None = UNSET
    below_50: Below50 = UNSET
    judging: Judging = UNSET
    counting_failures: CountingFailures = UNSET
    common: Counted | None = UNSET
    standing: Standing = UNSET
    subsets: Mapping[str, Mapping[str, Subset]] = UNSET
    chance: float = UNSET
    read: ReadBy = UNSET
    compared: ReferenceComparison = UNSET
    policies: Policies = UNSET
    draws: DrawsSummary = UNSET
    robustness: RobustnessSummary | None = UNSET


@dataclass(frozen=True, slots=True)
class Channels(SummaryPart):
    """Items with several channels: count, if `each` is coded alone, bitrate of one."""

    items: int
    each: bool
    bitrate_bps: float


@dataclass(frozen=True, slots=True)
class TokenFacts(SummaryPart):
    """A codec's declared tokens: per second over all codebooks, nominal bits of one.

    `latents`: real numbers per frame of a continuous codec.
    """

    per_s: float | None
    bits: float | None
    latents: int = UNSET


@dataclass(frozen=True, slots=True)
class SystemSummary(SummaryPart):
    """One system of a run.

    Args:
        metrics: by name. `bitrate` counts the bits of all channels; `bitrate_bps` repeats its entry.
        silent, partial, unlike: number of such estimates by `audio.level_checks`; their scores are flagged.
        clipped: number with samples beyond full scale or, in files, flat peaks.
        same: number equal to the reference.
        warned: data unsuited to metrics.
        checks: results of the run's checks, or None.
        unheard: share of the questions' sound that the model did not get; None if none or unknown.
    """

    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)
    silent: int = 0
    partial: int = 0
    unlike: int = 0
    clipped: int = 0
    same: int = 0
    warned: Sequence[Warned] = UNSET
    unheard: float | None = None
    checks: Mapping[str, Any] | None = None
    channels: Channels | None = None
    bitrate_bps: MetricSummary = UNSET
    tokens: TokenFacts = UNSET
    timing: Mapping[str, Any] = UNSET

    @property
    def doubts(self) -> Sequence[Mapping[str, Any]]:
        """`check`, `state` and `found` of each finding; doubtful systems are never best."""
        findings: Sequence[Mapping[str, Any]] = (self.checks or {}).get("findings", ())
        return findings

    @property
    def without_estimate(self) -> int:
        """Number of items without an estimate."""
        return min((entry.missing.get("no_estimate", 0) for entry in self.metrics.values()), default=0)


@dataclass(frozen=True, slots=True)
class FailureReason(SummaryPart):
    """Why `count` items or scores lack a value or are flagged (status `flagged`).

    Reasons that differ in numbers and quoted words are one, with `…` for these (`stats.summary`). `metric` is None for
    whole items.
    """

    system: str
    metric: str | None
    status: str
    reason: Diagnostic
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class FailureCounts(SummaryPart):
    """`items` without an estimate, failed or unparsed other `scores`, and reasons."""

    items: int = 0
    scores: int = 0
    reasons: Sequence[FailureReason] = ()


@dataclass(frozen=True, slots=True)
class Count(SummaryPart):
    """A number of questions or answers, and their share."""

    n: int
    share: float


@dataclass(frozen=True, slots=True)
class CutAudio(Count):
    """Questions with audio cut for the model, its seconds, and its share of all sound."""

    s: float
    unheard: float | None


@dataclass(frozen=True, slots=True)
class ServedModel(SummaryPart):
    """Number of answers by the model name that the service reported.

    `other`: another model was requested. `subsets`: counts by subset if there were several models.
    """

    model: str | None
    revision: str | None
    n: int
    other: bool
    subsets: Mapping[str, Mapping[str, int]] = UNSET

    @property
    def state(self) -> str:
        """Model and revision that the service reported, or ""."""
        return " ".join(filter(None, (self.model, self.revision)))


@dataclass(frozen=True, slots=True)
class Quantiles(SummaryPart):
    """The median and the 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Wording(SummaryPart):
    """One wording: its text if recorded, its answers, and how many are none, by kind."""

    text: str | None
    n: int
    no_answer: int
    ways: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Answers(SummaryPart):
    """Counts, costs, times of answers; `failed` by status, `draws` per question.

    Args:
        each_wording: number of wordings, if every question was sent in each.
        at_limit: answers that ended at a limit.
        decoding: requested parameters, and why one was `untold`.
        alias: a name that hides another model.
        judging: parameters that the judge could not take, with reasons.
        choices: about reordered options, or None.
        canary: of repeated questions, how many had the `same` answer, and comparisons that `changed`.
        cut, too_long: questions whose audio was cut, and those not sent because it is too long.
        usage, cost_usd, cost_range_usd, latency_s, first_s: of uncached answers; usage and costs with canaries. The
            cost is None if a price is unknown, and a range if a service did not report which tokens were sound.
        rtfx: seconds of sound over the summed seconds of its answers, as the Open ASR leaderboard defines it.
        no_answer, ways: answers that are none, in all and by kind.
        with_reasoning: answers with cut reasoning.
    """

    asked: int = 0
    draws: int = 1
    failed: Mapping[str, int] = field(default_factory=dict)
    cached: int = 0
    at_limit: Count = UNSET
    decoding: Mapping[str, Any] | None = None
    asked_for: str | None = None
    served: Sequence[ServedModel] = ()
    judging: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] | None = None
    canary: Mapping[str, Any] | None = None
    cut: CutAudio = UNSET
    too_long: Count = UNSET
    usage: Mapping[str, float] = field(default_factory=dict)
    cost_usd: float | None = None
    cost_range_usd: tuple[float, float] = UNSET
    alias: str = UNSET
    each_wording: int = UNSET
    latency_s: Quantiles | None = None
    first_s: Quantiles | None = None
    rtfx: float = UNSET
    no_answer: int = UNSET
    ways: Mapping[str, int] = UNSET
    wordings: Mapping[str, Wording] = UNSET
    with_reasoning: Count = UNSET


@dataclass(frozen=True, slots=True)
class RowCount(SummaryPart):
    """The `n` questions of a benchmark in a run, out of `size` by the definition.

    `limit` is the request's. `why` there are fewer: `limit`, `shard`, `unfinished`, `data`, or None.
    """

    n: int
    size: int
    limit: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Summary(SummaryPart):
    """One number per system and metric of a run; `answers`, `rows` of a benchmark.

    Args:
        other_data: differences of the questions from the definition's.
        control: the control of the run, which is then no result.
        controls: comparisons with the same model under controls.
    """

    schema: int = SCHEMA
    systems: Mapping[str, SystemSummary] = field(default_factory=dict)
    failures: FailureCounts = FailureCounts()
    answers: Answers = UNSET
    rows: RowCount = UNSET
    other_data: Sequence[str] = UNSET
    control: str = UNSET
    controls: Sequence[Controlled] = UNSET

    @property
    def entries(self) -> list[tuple[str, str, MetricSummary]]:
        """(system, metric, entry) of all systems."""
        return [(name, metric, e) for name, system in self.systems.items() for metric, e in system.metrics.items()]

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics of any system; the bitrate is first."""
        return sorted(dict.fromkeys(metric for _, metric, _ in self.entries), key=lambda name: name != BITRATE)


def valueless(entries: Iterable[MetricSummary]) -> dict[str, int]:
    """Scores by status if none has a value and none has failed; else empty."""
    counts = Counter[str]()
    for entry in entries:
        if entry.n or not entry.missing.keys() <= set(NO_FAILURE):
            return {}
        counts.update(entry.missing)
    return dict(counts)
