"""What a run's summary holds, as values (see `summary_json`)."""

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
"""The two ends of a 95 % interval; None where they are unknown."""


@dataclass(frozen=True, slots=True)
class Estimate(SummaryPart):
    """A value with its 95 % interval. `note` says why it is missing, or what to know of it."""

    value: float | None = None
    ci95: Ends = None
    note: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class Spread(SummaryPart):
    """A number over all wordings with its interval."""

    value: float | None
    ci95: Ends = None
    note: ClassVar[Diagnostic | None] = None


@dataclass(frozen=True, slots=True)
class Extreme(Spread):
    """The worst or the best wording, with its value."""

    wording: str = ""


@dataclass(frozen=True, slots=True)
class Counted(Estimate):
    """An estimate over `n` samples, such as those for which all systems have a value."""

    n: int = 0


@dataclass(frozen=True, slots=True)
class Below50(Counted):
    """An error rate over the items whose own rate is at most 50 %, without the items `above`."""

    above: int = 0


@dataclass(frozen=True, slots=True)
class Standing(SummaryPart):
    """How a system stands in one metric beside the others of its run (see `stats.verdict`).

    Args:
        best: whether it has the best value. compared: whether it is compared at all. alike: whether it is not
            distinguishable from the best. why: why it is not compared, or why nobody is the best.
    """

    best: bool
    compared: bool
    why: Diagnostic | None = None
    alike: bool = False


@dataclass(frozen=True, slots=True)
class OfWording(Counted):
    """The result in one wording, with failures as wrong; `n` answers with a score, and `failed` without."""

    failed: int = 0


@dataclass(frozen=True, slots=True)
class Subset(OfWording):
    """The result over the samples of one value of a column: `n` with a value, and `failed` without."""

    chance: float | None = UNSET


@dataclass(frozen=True, slots=True)
class CountingFailures(SummaryPart):
    """The value if failures count as the worst value, over `n`; `uncounted` failures have none, since the metric has no
    worst value.
    """

    value: float | None
    n: int
    uncounted: int = UNSET

    @property
    def of_all(self) -> float | None:
        """The value; None if it does not count every failure, since it would be called what it is not."""
        return None if self.uncounted else self.value


@dataclass(frozen=True, slots=True)
class Judging(SummaryPart):
    """What the judge of a metric did: `failed` of the `asked` answers got no verdict that could be read (`share`).

    `usage` and the costs are of calls that no cache answered; `served` is what the service called the models that replied.
    `tested` says how the judge did in its own test (`store.judge_tests`), or that it was not tested.
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
    """How many answers were read by a rule (`exact`), by the judge (`aligned`) and by neither, with shares."""

    exact: int
    aligned: int
    neither: int
    exact_share: float
    share: float


@dataclass(frozen=True, slots=True)
class Compared(SummaryPart):
    """How the answers do beside the references: `ties` is a share, `reference` the references' mean rating.

    `position_bias` is the rating of the first place over the second, `changed` the share of verdicts that changed with it.
    """

    win_rate: Counted
    ties: float | None
    reference: float | None
    position_bias: Counted
    changed: float = UNSET


@dataclass(frozen=True, slots=True)
class Official(SummaryPart):
    """The value by the rule of a benchmark's toolkit, which `counts` failures `as-wrong` or `left-out`."""

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
class Passing(Estimate):
    """The share of questions that pass by one rule; `failed` questions have no result."""

    units: int = 0
    n: int = 0
    failed: int = 0
    counting_failures: CountingFailures = UNSET


@dataclass(frozen=True, slots=True)
class Draws(SummaryPart):
    """Several answers to each question: `n` at the most, and at the `fewest`.

    `values` are those of each draw, `spread` their standard deviation. An answer passes from `passes_at` on; `passes` is by
    rule, and empty where no rule applies.
    """

    n: int
    fewest: int
    questions: int
    values: Sequence[float | None]
    spread: float | None
    passes_at: float
    passes: Mapping[str, Passing]


@dataclass(frozen=True, slots=True)
class Robustness(SummaryPart):
    """How far a value depends on the wording, over the `n` wordings with a value. Failures count as wrong.

    `same_questions`: whether every question was asked in all wordings. `sd_by_chance`: the standard deviation if the wording
    made no difference; `sd` has n - 1 below it. `worst` and `best` are None for a metric without a direction.
    """

    n: int
    without_value: Sequence[str]
    same_questions: bool
    wordings: Mapping[str, OfWording]
    sd_by_chance: float | None
    mean: Spread
    units: int
    note: Diagnostic | None
    sd: Spread
    range: Spread
    worst: Extreme | None = None
    best: Extreme | None = None


@dataclass(frozen=True, slots=True)
class MetricSummary(Estimate):
    """One metric of one system: the result over all samples with a score, over independent `units`.

    Args:
        method: of the interval (see `stats.intervals`).
        n, failed: finished items with and without a score; with several draws, answers.
        missing: the items without a score by status; also `no_estimate` and `not_scored` (the record holds no score).
        flagged: how many of the scores are in doubt (see `metrics.base.flagged`).
        extrapolated: what a value of sets tends to for sets of any size (see `stats.sets`).
        below_50: an error rate without the items above 50 %; unset if there are none.
        common: the result over the samples that all compared systems have; None if that is all that this one has.
        standing: unset for a metric without a direction, the bitrate, and the unprocessed audio.
        subsets: the results by column and value. chance, read, compared, policies: what `stats.chance_level` gives.
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
    compared: Compared = UNSET
    policies: Policies = UNSET
    draws: Draws = UNSET
    robustness: Robustness | None = UNSET


@dataclass(frozen=True, slots=True)
class Channels(SummaryPart):
    """Items with several channels: how many, whether each is coded by itself, and bits per second and channel."""

    items: int
    each: bool
    bitrate_bps: float


@dataclass(frozen=True, slots=True)
class Tokens(SummaryPart):
    """The tokens that a codec declares: how many a second, of all codebooks, and the nominal bits of one; None where it has
    none. `latents` are the real numbers of a frame of a continuous codec.
    """

    per_s: float | None
    bits: float | None
    latents: int = UNSET


@dataclass(frozen=True, slots=True)
class SystemSummary(SummaryPart):
    """One system of a run.

    Args:
        metrics: by name. `bitrate` counts the bits of all channels; `bitrate_bps` is its entry once more.
        silent, partial, unlike: how many estimates `audio.level_checks` finds so. The scores of these are flagged.
        clipped, same: how many had samples beyond full scale cut or, in files, flat peaks; and how many equal their
            references sample by sample.
        warned: where data and metrics meet badly. checks: what the checks of the run found, or None.
        unheard: the share of the questions' sound that the model was not given; None if none, or if that is not known.
        channels, tokens: None or unset where there are none. timing: what the record holds of its time.
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
    tokens: Tokens = UNSET
    timing: Mapping[str, Any] = UNSET

    @property
    def doubts(self) -> Sequence[Mapping[str, Any]]:
        """`check`, `state` and `found` of each finding. A system with any is suspect, and never the best."""
        findings: Sequence[Mapping[str, Any]] = (self.checks or {}).get("findings", ())
        return findings

    @property
    def without_estimate(self) -> int:
        """How many items have no estimate, and so no value of any metric."""
        return min((entry.missing.get("no_estimate", 0) for entry in self.metrics.values()), default=0)


@dataclass(frozen=True, slots=True)
class Failure(SummaryPart):
    """Why `count` items or scores of a system have no value, or what was flagged (status `flagged`).

    Reasons that differ only in numbers and quoted words are one, with `…` in their place (`stats.summary`). `metric` is
    None for whole items.
    """

    system: str
    metric: str | None
    status: str
    reason: Diagnostic
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Failures(SummaryPart):
    """The `items` without an estimate, the `scores` of other items that failed or were unparsed, and the reasons."""

    items: int = 0
    scores: int = 0
    reasons: Sequence[Failure] = ()


@dataclass(frozen=True, slots=True)
class Count(SummaryPart):
    """A number of questions or answers, and their share."""

    n: int
    share: float


@dataclass(frozen=True, slots=True)
class Cut(Count):
    """Questions whose audio was cut for the model, the seconds, and the share of all sound (None if that is not known)."""

    s: float
    unheard: float | None


@dataclass(frozen=True, slots=True)
class Served(SummaryPart):
    """How many answers a model gave, by what the service called it. `other`: whether another model was requested. `subsets`
    counts them by subset if there were several models.
    """

    model: str | None
    revision: str | None
    n: int
    other: bool
    subsets: Mapping[str, Mapping[str, int]] = UNSET

    @property
    def state(self) -> str:
        """What the service called the model, with the state that it named; "" if it named neither."""
        return " ".join(filter(None, (self.model, self.revision)))


@dataclass(frozen=True, slots=True)
class Quantiles(SummaryPart):
    """The median and the 95th percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Wording(SummaryPart):
    """One wording: its text (None if not recorded), its answers, and how many are none in which ways."""

    text: str | None
    n: int
    no_answer: int
    ways: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Answers(SummaryPart):
    """Counts, costs and times of a run's answers; `failed` ones by status, `draws` to each question.

    Args:
        each_wording: in how many wordings each question was asked, where each was asked for.
        at_limit: answers that ended at a limit. decoding: the parameters `asked` for, and why one was `untold`.
        asked_for: the requested model. served: which models answered. alias: a name that hides another model behind it.
        judging: by name why the judge could not be told a parameter; None if it was told all.
        choices: what is known where options were put into other orders; else None.
        canary: of how many questions asked again the answer was the `same`, and the comparisons that `changed`.
        cut, too_long: questions whose audio was cut, and those that were not asked because it is too long.
        usage, cost_usd, cost_range_usd, latency_s, first_s: of answers that were not cached, the first with canaries. The
            cost is None if a price is not known, and a range where a service did not say which tokens were sound.
        rtfx: seconds of sound by the sum of the seconds of its answers, as the Open ASR leaderboard defines it.
        no_answer, ways: how many answers are none, and in which ways. with_reasoning: answers that held cut reasoning.
    """

    asked: int = 0
    draws: int = 1
    failed: Mapping[str, int] = field(default_factory=dict)
    cached: int = 0
    at_limit: Count = UNSET
    decoding: Mapping[str, Any] | None = None
    asked_for: str | None = None
    served: Sequence[Served] = ()
    judging: Mapping[str, Any] | None = None
    choices: Mapping[str, Any] | None = None
    canary: Mapping[str, Any] | None = None
    cut: Cut = UNSET
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
    """The `n` questions of a benchmark that a run holds, beside the `size` that the definition says.

    `limit` is what the command asked for. `why` they are not all: `limit`, `shard`, `unfinished`, `data`, or None.
    """

    n: int
    size: int
    limit: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Summary(SummaryPart):
    """One number for each system and metric of a run, and what has no number; `answers` and `rows` for a benchmark's run.

    Args:
        other_data: in what the questions are not those of the definition.
        control: what the model was given in place of sound or question, so that nothing here is a result.
        controls: what the answers have beyond those of the same model under controls.
    """

    schema: int = SCHEMA
    systems: Mapping[str, SystemSummary] = field(default_factory=dict)
    failures: Failures = Failures()
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
        """The names of the metrics that any system has; the bitrate stands first, since all other numbers depend on it."""
        return sorted(dict.fromkeys(metric for _, metric, _ in self.entries), key=lambda name: name != BITRATE)


def valueless(entries: Iterable[MetricSummary]) -> dict[str, int]:
    """How many scores there are by status, where none has a value and none has failed; else empty."""
    counts = Counter[str]()
    for entry in entries:
        if entry.n or not entry.missing.keys() <= set(NO_FAILURE):
            return {}
        counts.update(entry.missing)
    return dict(counts)
