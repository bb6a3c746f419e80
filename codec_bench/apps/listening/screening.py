"""Screening rules for raters. Only the rules that are named exclude raters.

`constant`: all of at least 6 answers are equal. `hasty`: over 15 % of trials took less than their shortest sound.
`repeats`: at least 2 repeated answers differ by over a quarter of the scale on average (half for choices).
`always-first`: at least 6 choices of one side only. `gold`, `trap`: over 15 % wrong. `qualification`, `hearing`,
`headphones`, `environment`: as in `checks`. `bs1534-3` (ITU-R BS.1534-3, 4.1.2): in over 15 % of trials the hidden
reference is below 90, or the 7 kHz anchor above 90, without items where over a quarter of the remaining raters put the
anchor above 90. `bs1116-3`: a one-sided t-test at 5 % finds no difference grades below 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from codec_bench.apps.listening.checks import CHECKS, GOLD, TRAP
from codec_bench.apps.listening.key import REFERENCE, Key, anchor_name
from codec_bench.apps.listening.kinds import TIE, Kind, kind_of
from codec_bench.apps.listening.ratings import CHECK, REPEAT, USED, Rating, is_question
from codec_bench.messages import Diagnostic, together
from codec_bench.messages.errors import UnknownName

HIGH, MOST, TOO_GOOD = 90, 0.15, 0.25
FEWEST, FEWEST_REPEATS = 6, 2
APART, APART_SHARE = 0.25, 0.5
MID_ANCHOR = anchor_name("7k")
NOBODY = "none"


@dataclass(frozen=True, slots=True)
class Screening:
    """A rule's finding on a rater (None: not applicable)."""

    rater: str
    rule: str
    marked: bool | None
    told: Diagnostic | None


@dataclass(frozen=True, slots=True)
class _Test:
    """The input of rules: the test, answers of each rater, and excluded raters."""

    key: Key
    kind: Kind
    rows: Mapping[str, Sequence[Rating]]
    out: set[str] = field(default_factory=set)

    def answers(self, rater: str) -> list[Rating]:
        """Return the valid answers of counted trials."""
        return [row for row in self.rows[rater] if row.status in (USED, "reference")]


_Verdicts = Iterable[tuple[bool | None, Diagnostic | None]]


def _constant(test: _Test, rater: str) -> _Verdicts:
    """Rule: the rater gives the same answer to every trial."""
    answer_counts = Counter(row.given for row in test.answers(rater))
    if test.kind.answer in ("number", "comparison", "choice"):
        if answer_counts.total() < FEWEST:
            yield None, Diagnostic("few_answers", answers=answer_counts.total(), needed=FEWEST)
        else:
            yield (
                len(answer_counts) == 1,
                Diagnostic("constant_answers", answers=answer_counts.total(), answer=next(iter(answer_counts)))
                if len(answer_counts) == 1
                else None,
            )


def _hasty(test: _Test, rater: str) -> _Verdicts:
    """Yield True and the counts if most trials were shorter than their shortest sound.

    As in the other rules, None says that the rule could not be applied, and nothing that it does not concern the test.
    """
    lasts = {t.id: t.seconds for t in test.key.trials if t.seconds and not t.training and not is_question(t)}
    took = {row.trial: row.seconds for row in test.rows[rater] if row.seconds is not None and row.trial in lasts}
    if not took:
        if lasts:
            yield None, Diagnostic("no_trial_times")
        return
    short = sum(seconds < lasts[trial] for trial, seconds in took.items())
    yield short > MOST * len(took), Diagnostic("hasty_trials", hasty=short, trials=len(took))


def repeat_differences(key: Key, rows: Sequence[Rating]) -> list[float]:
    """List the absolute differences between a rater's two answers to repeated trials."""
    repeated = {trial.id: trial.repeat_of for trial in key.trials}
    first = {
        (r.trial, r.system, r.scale): r.value
        for r in rows
        if r.status in (USED, "screened", "edited") and r.value is not None
    }
    again = [(r, first.get((repeated[r.trial] or "", r.system, r.scale))) for r in rows if r.status == REPEAT]
    return [abs(row.value - before) for row, before in again if row.value is not None and before is not None]


def _repeats(test: _Test, rater: str) -> _Verdicts:
    """Yield True if a rater's answers to repeated trials differ by too much."""
    if not any(trial.repeat_of for trial in test.key.trials):
        return
    differences = repeat_differences(test.key, test.rows[rater])
    if len(differences) < FEWEST_REPEATS:
        yield None, Diagnostic("few_repeats", repeats=len(differences), needed=FEWEST_REPEATS)
        return
    limit = APART_SHARE if test.kind.is_share else APART * (test.key.scale[1] - test.key.scale[0])
    mean = fmean(differences)
    yield mean > limit, Diagnostic("repeats_differ", mean=mean, limit=limit)


def _always_first(test: _Test, rater: str) -> _Verdicts:
    """Yield True if the rater always chooses the same side."""
    if not test.kind.has_sides:
        return
    if test.kind.answer == "comparison":
        sides = [float(row.given) < 0 for row in test.answers(rater) if not isinstance(row.given, str) and row.given]
    else:
        decided = [row for row in test.answers(rater) if row.is_first is not None and row.choice != TIE]
        sides = [(row.choice == row.system) == row.is_first for row in decided]
    if len(sides) < FEWEST:
        yield None, Diagnostic("few_choices_of_side", choices=len(sides), needed=FEWEST)
    else:
        which = "first" if sides[0] else "second"
        yield (
            len(set(sides)) == 1,
            Diagnostic("one_side_chosen", side=which, choices=len(sides)) if len(set(sides)) == 1 else None,
        )


def _right(test: _Test, rater: str, check: str) -> list[float]:
    rows = [row for row in test.rows[rater] if row.status == CHECK and row.system == f"({check})"]
    return [row.value for row in rows if row.value is not None]


def _asks(test: _Test, check: str) -> int:
    return sum(trial.check == check for trial in test.key.trials)


def _hidden(check: str) -> Callable[[_Test, str], _Verdicts]:
    """Build the rule that most hidden checks of a kind are answered wrongly."""

    def rule(test: _Test, rater: str) -> _Verdicts:
        if not _asks(test, check):
            return
        right = _right(test, rater, check)
        if not right:
            yield None, Diagnostic("checks_unanswered")
        else:
            wrong = len(right) - sum(right)
            yield wrong > MOST * len(right), Diagnostic("checks_wrong", wrong=wrong, answers=len(right))

    return rule


def _before(check: str) -> Callable[[_Test, str], _Verdicts]:
    """Build the rule that too few answers of a check before the test are right."""

    def rule(test: _Test, rater: str) -> _Verdicts:
        count = _asks(test, check)
        right, fewest = _right(test, rater, check), CHECKS[check].fewest
        if count and not right:
            yield None, Diagnostic("checks_unanswered")
        elif count:
            yield sum(right) < fewest, Diagnostic("checks_right", right=sum(right), answers=count, needed=fewest)

    return rule


def _bs1534(test: _Test, rater: str) -> _Verdicts:
    """Apply ITU-R BS.1534-3: True for low hidden references, or high mid anchors."""
    if test.kind.name != "mushra":
        return
    references = [row.value for row in test.answers(rater) if row.system == REFERENCE and row.value is not None]
    low = sum(value < HIGH for value in references)
    if references:
        yield (low > MOST * len(references), Diagnostic("reference_low", limit=HIGH, low=low, trials=len(references)))
    anchors: dict[str, dict[str, float]] = defaultdict(dict)
    for name in test.rows:
        for row in test.answers(name):
            if row.system == MID_ANCHOR and row.value is not None:
                anchors[row.trial][name] = row.value
    if not anchors:
        yield None, Diagnostic("no_anchor_rated")
        return
    informative = {}
    for trial, held in anchors.items():
        judged = [value for name, value in held.items() if name not in test.out]
        if judged and sum(value > HIGH for value in judged) <= TOO_GOOD * len(judged):
            informative[trial] = held
    void = len(anchors) - len(informative)
    lacks = Diagnostic("uninformative_items", void=void, items=len(anchors), limit=HIGH) if void else None
    grades = [held[rater] for held in informative.values() if rater in held]
    if not grades:
        yield None, lacks or Diagnostic("anchor_unrated")
        return
    high = sum(value > HIGH for value in grades)
    reason = Diagnostic("anchor_high", limit=HIGH, high=high, trials=len(grades))
    yield high > MOST * len(grades), together(reason, lacks)


def _bs1116(test: _Test, rater: str) -> _Verdicts:
    """Apply ITU-R BS.1116-3: yield True if difference grades are not below 0 (t test)."""
    from scipy.special import stdtr

    if not test.kind.difference:
        return
    grades = [row.value for row in test.answers(rater) if row.system != REFERENCE and row.value is not None]
    if len(grades) < 3:
        yield None, Diagnostic("few_difference_grades", grades=len(grades), needed=3)
        return
    mean, spread = fmean(grades), stdev(grades)
    p = float(stdtr(len(grades) - 1, mean / (spread / len(grades) ** 0.5))) if spread else float(mean >= 0)
    yield p >= 0.05, Diagnostic("difference_grade", mean=mean, p=p)


RULES: Mapping[str, Callable[[_Test, str], _Verdicts]] = {
    **{name: _before(name) for name in CHECKS},
    "constant": _constant, "hasty": _hasty, "repeats": _repeats, "always-first": _always_first, GOLD: _hidden(GOLD),
    TRAP: _hidden(TRAP), "bs1116-3": _bs1116, "bs1534-3": _bs1534,
}  # fmt: skip
"""In the order of application."""


def rules_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return rules by name; empty for `none`; raises UnknownName."""
    for name in names:
        if name not in RULES and name != NOBODY:
            raise UnknownName("screening_rule", name, [*RULES, NOBODY])
    return tuple(name for name in names if name != NOBODY)


def screen(rows: Iterable[Rating], key: Key, removing: Sequence[str]) -> list[Screening]:
    """Apply every rule to every rater; only those in `removing` exclude raters."""
    by_rater: dict[str, list[Rating]] = defaultdict(list)
    for row in rows:
        by_rater[row.rater].append(row)
    test = _Test(key, kind_of(key.kind), by_rater)
    findings = []
    for name, rule in RULES.items():
        of_rule = [Screening(rater, name, marked, reason) for rater in by_rater for marked, reason in rule(test, rater)]
        if not of_rule and name in removing:
            of_rule = [Screening(rater, name, None, Diagnostic("rule_without_trials", rule=name)) for rater in by_rater]
        findings += of_rule
        if name in removing:
            test.out.update(one.rater for one in of_rule if one.marked)
    return findings


def unapplied(findings: Sequence[Screening]) -> list[Diagnostic]:
    """Describe each rule that could not be applied to all raters, with the reason."""
    lacking = Counter((one.rule, one.told) for one in findings if one.marked is None)
    raters = len({one.rater for one in findings})
    return [
        Diagnostic("rule_not_applied", rule=rule, count=count, raters=raters, cause=why)
        for (rule, why), count in lacking.items()
    ]
