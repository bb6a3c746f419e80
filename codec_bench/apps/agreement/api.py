"""Agreement of judges with each other and with people's ratings."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations

import numpy as np

from codec_bench.apps.agreement.material import RatedRuns
from codec_bench.apps.agreement.p1401 import Standard, Values, Votes, p1401
from codec_bench.apps.agreement.panel import (
    TIES,
    Agreement,
    Compared,
    Panel,
    Rater,
    Role,
    compare_raters,
    farthest,
    preference,
    undecided,
    with_consensus,
)
from codec_bench.apps.agreement.raters import READ, RatedItem, Scale, letters_in, name_of, open_runs
from codec_bench.apps.agreement.ratings import (
    KINDS,
    UNCLEAR,
    UNKNOWN_ID,
    UNKNOWN_SYSTEM,
    Kind,
    Problems,
    RatingRow,
    Ratings,
    read_ratings,
)
from codec_bench.benchmark.reading.choices import choices_of, named_choices
from codec_bench.config.option import names
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.store.answers import exchanges, has_answers
from codec_bench.store.record import Run

APART = 20
MOST_AMONG = 6
NO_OPTION = "(none)"
UNREAD = "no option could be read"


def agreement(
    *,
    runs: Run | str | os.PathLike[str] | Sequence[Run | str | os.PathLike[str]],
    human: str | os.PathLike[str] | None = None,
    judges: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] | None = None,
    kind: Kind | None = None,
    scale: tuple[float, float] | None = None,
    ties: str = "left-out",
    equal_within: float = 0.0,
    by: str | Sequence[str] | None = None,
    most_apart: int = APART,
) -> Agreement:
    r"""Compare raters of the same items: judges of runs, or judges with people.

    Without `human`, the first judge is the reference of all others. With `human`, each judge is compared with the
    people's majority, mean and each person; up to six people are compared with each other.

    Args:
        runs: runs or their folders; a folder that contains several selects all of them. Items match by benchmark,
            system and id, also across runs.
        human: a CSV file with the columns `id`, `rater` and `score`, and where needed `system`, `other`, `choice`,
            `subset` and `benchmark` (see `codec_bench.apps.agreement.ratings`).
        judges: only these judges, by their names in the record; the first one is the reference. None for all.
        metrics: `rating[RUBRIC]` selects the verdicts by this rubric; any other metric of the runs, such as
            `dnsmos_ovrl`, is a separate rater. None for the rubric of the primary metric, or the only one.
        kind: of the people's scores: `rating` (numbers), `preference` (the better of two systems), or `option` (the
            option closest to an answer); None detects it. Preferences are compared with those of the judges' scores,
            and options with the runs' reading of the answers.
        scale: the lowest and the highest rating of the people; None for the judges' scale.
        ties: rule for items without a majority: `left-out`, `any` (any of the most frequent values agrees), or `equal`
            (of preferences: neither system is preferred).
        equal_within: largest difference of a judge's scores that prefers neither system.
        by: columns to break the results down by, next to the benchmarks' own subsets.
        most_apart: how many items of most disagreement to name.

    Returns:
        An `Agreement`. Its numbers have intervals over independent units (speakers, or the answers to one question)
        where the method holds, and otherwise the reason.

    Raises:
        UserError: a run, a judge, a metric or the file is wrong, or there are not two raters to compare.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import agreement, open_run
        >>> samples = list(open_run("runs/small").samples())  # the run of evaluate's example
        >>> rows = ["id,system,rater,score"]
        >>> scores = (("g722", 5), ("g711-ulaw", 3))
        >>> rows += [f"{one.id},{name},ann,{score}" for one in samples for name, score in scores]
        >>> written = Path("people.csv").write_text("\n".join(rows))
        >>> found = agreement(runs="runs/small", human="people.csv", metrics="stoi", scale=(1, 5))
        >>> found.items, found.pairs[0].reference, found.pairs[0].rater
        (16, 'ann', 'stoi')
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("rating_kind", kind, KINDS)
    if ties not in TIES:
        raise UnknownName("tie_rule", ties, TIES)
    if scale is not None and not scale[0] < scale[1]:
        raise UserError("scale_reversed", low=scale[0], high=scale[1])
    opened = open_runs(runs)
    material = RatedRuns.of(opened, kind, names(judges or ""), names(metrics or ""), by)
    if human is None:
        panel, problems = _of_judges(material), material.problems
    else:
        people = read_ratings(human, kind=kind, scale=scale, otherwise=material.scale)
        panel, problems = _with_people(material, people, equal_within)
        scale = people.scale
        if not panel.items:
            raise UserError("no_usable_rating", path=human, reasons=problems.summary)
    if ties == "equal" and panel.kind != "preference":
        raise UserError("ties_of_preferences", kind=panel.kind)
    notes = [
        *_notes(panel, ties, human is not None and scale is None),
        *material.describe_judge_tests(names(judges or ""), names(metrics or "")),
    ]
    with_consensus(panel, ties)
    _disambiguate(panel.raters)
    pairs = _pairs(panel)
    if not pairs:
        have = ", ".join(rater.name for rater in panel.raters) or "none"
        raise UserError(
            "too_few_raters",
            known=have,
            hint="run the benchmark with --judge a,b, or give --with FILE with the ratings of people",
        )
    compared: tuple[Compared, ...] = tuple(compare_raters(panel, a, b, ties=ties) for a, b in pairs)
    apart = farthest(panel, _select_pairs(panel, pairs), most_apart)
    rated = ~np.all([np.isnan(rater.values) for rater in panel.raters], axis=0)
    rows = tuple(asdict(problem) for problem in problems.all())
    standard = _standard(panel, material, scale)
    raters = tuple(panel.raters)
    return Agreement(panel.kind, int(rated.sum()), raters, compared, apart, rows, tuple(notes), standard)


def _standard(panel: Panel, material: RatedRuns, scale: Scale | None) -> Standard | None:
    """Compute ITU-T P.1401's figures on a rating scale; None without people's ratings."""
    persons, machines = panel.of_role("person"), panel.of_role("judge", "metric")
    if panel.kind != "rating" or not persons or not machines:
        return None
    file, vote = [], []
    for person in persons:
        rated = np.flatnonzero(~np.isnan(person.values))
        file.append(rated)
        vote.append(person.values[rated])
    several = len({item.benchmark for item in panel.items}) > 1
    conditions = [f"{item.benchmark}/{item.system}" if several else item.system for item in panel.items]
    files = [f"{condition}/{item.id}" for condition, item in zip(conditions, panel.items)]
    metrics = []
    for one in machines:
        held = set(one.scales.values())
        ends = next(iter(held)) if len(held) == 1 else None
        better = material.signs.get(one.name, 1.0) > 0
        metrics.append(Values(one.name, one.values, better, ends or (None, None)))
    return p1401(metrics, Votes(np.concatenate(file), np.concatenate(vote)), files, conditions, scale)


def _of_judges(material: RatedRuns) -> Panel:
    items = sorted({item for name in material.roles for item in material.ratings[name]})
    return material.panel("rating", items, material.raters(items), {})


def _with_people(material: RatedRuns, people: Ratings, equal_within: float) -> tuple[Panel, Problems]:
    """Build the panel of raters on the items that people rated, and collect problems.

    Args:
        equal_within: largest difference of a judge's scores that prefers neither system.
    """
    problems = people.problems
    for problem in material.problems.all():
        problems.add(problem.what, *problem.examples[:1], rater=problem.rater, count=problem.count)
    options = Options.of(material.runs) if people.kind == "option" else Options()
    rated: dict[RatedItem, dict[str, float]] = defaultdict(dict)
    labels: dict[str, int] = {}
    groups: dict[str, set[RatedItem]] = defaultdict(set)
    for row in people.rows:
        item = _item_of(row, material, problems, people.kind)
        if item is None:
            continue
        value = row.value
        if people.kind == "option":
            value = float(labels.setdefault(options.named(row.chosen, item), len(labels)))
        elif item.other and item.system != row.system:
            value = -(value or 0.0)
        rated[item][row.rater] = float(value or 0.0)
        if row.subset:
            groups[row.subset].add(item)
    items = sorted(rated)
    at = {item: index for index, item in enumerate(items)}
    raters = _build_raters(people.raters, items, rated, people.scale, list(material.units))
    if people.kind == "option":
        raters += options.raters(items, labels)
    elif people.kind == "preference":
        raters += _preferences(material, items, equal_within)
    else:
        raters += material.raters(items)
    subsets = {name: sorted(at[item] for item in held) for name, held in sorted(groups.items())}
    panel = material.panel(people.kind, items, raters, {"subset": subsets} if groups else {})
    panel.labels = list(labels)
    return panel, problems


def _item_of(row: RatingRow, material: RatedRuns, problems: Problems, kind: Kind) -> RatedItem | None:
    """Find the item that a row rates; if there is none, add a problem and return None."""
    where = f"line {row.line}: {row.id}"
    benchmarks = [row.benchmark] if row.benchmark else material.units
    known = [name for name in benchmarks if row.id in material.units.get(name, {})]
    if not known:
        problems.add(UNKNOWN_ID, where, rater=row.rater)
        return None
    system_names = [name for name in (row.system, row.other) if name]
    fitting = [name for name in known if all(system in material.systems[name] for system in system_names)]
    if not fitting:
        problems.add(UNKNOWN_SYSTEM, f"{where} of {' and '.join(system_names)}", rater=row.rater)
        return None
    if len(fitting) > 1:
        problems.add(UNCLEAR, f"{where} is in {', '.join(fitting)}; a column 'benchmark' would tell", rater=row.rater)
        return None
    (benchmark,) = fitting
    systems = material.systems[benchmark]
    if kind == "preference":
        first, second = sorted((row.system, row.other), key=systems.index)
        return RatedItem(benchmark, first, row.id, second)
    if not row.system and len(systems) > 1:
        problems.add(UNKNOWN_SYSTEM, f"{where} names none of {', '.join(systems[:5])}", rater=row.rater)
        return None
    return RatedItem(benchmark, row.system or systems[0], row.id)


def _build_raters(
    names: Sequence[str],
    items: Sequence[RatedItem],
    rated: Mapping[RatedItem, Mapping[str, float]],
    scale: Scale | None,
    over: Sequence[str],
) -> list[Rater]:
    """Build a rater for each person, from the ratings of shared items."""
    persons = []
    for name in names:
        values = np.array([rated[item].get(name, np.nan) for item in items], np.float64)
        lacking = int(np.isnan(values).sum())
        missing = {"not rated": lacking} if lacking else {}
        persons.append(Rater(name, "person", values, dict.fromkeys(over, scale), missing))
    return persons


def _preferences(material: RatedRuns, items: Sequence[RatedItem], equal_within: float) -> list[Rater]:
    """Derive the judges' preferences from their scores of both systems."""
    firsts = material.raters([RatedItem(item.benchmark, item.system, item.id) for item in items])
    seconds = material.raters([RatedItem(item.benchmark, item.other, item.id) for item in items])
    preferences = []
    for one, other in zip(firsts, seconds):
        values = material.signs[one.name] * preference(one.values, other.values, equal_within=equal_within)
        lacking = int(np.isnan(values).sum())
        missing = {"no score of one of the two": lacking} if lacking else {}
        preferences.append(Rater(one.name, one.role, values, {}, missing))
    return preferences


def _disambiguate(raters: Sequence[Rater]) -> None:
    """Rename raters that share a name, such as a person called like a judge."""
    seen: set[str] = set()
    for rater in raters:
        name, count = rater.name, 1
        while rater.name in seen:
            count += 1
            rater.name = f"{name} ({rater.role}{f' {count - 1}' if count > 2 else ''})"
        seen.add(rater.name)


def _pairs(panel: Panel) -> list[tuple[Rater, Rater]]:
    """List (reference, rater) pairs; the reference is a person, or the first judge."""
    persons, machines = panel.of_role("person"), panel.of_role("judge", "metric", "run")
    if not persons:
        return [(machines[0], other) for other in machines[1:]]
    together = panel.of_role("majority", "mean")
    among = combinations(persons, 2) if len(persons) <= MOST_AMONG else ()
    return [*((one, machine) for machine in machines for one in (*together, *persons)), *among]


def _select_pairs(panel: Panel, pairs: Sequence[tuple[Rater, Rater]]) -> list[tuple[Rater, Rater]]:
    """Select the pairs that define disagreement: with the consensus, or else all."""
    together = "mean" if panel.of_role("mean") else "majority" if panel.of_role("majority") else None
    chosen = [(a, b) for a, b in pairs if a.role == together]
    return chosen or list(pairs)


def _notes(panel: Panel, ties: str, scale_is_open: bool) -> list[Diagnostic]:
    """Explain how ties, many people and an unknown scale were treated."""
    notes = []
    persons = panel.of_role("person")
    if len(persons) > 1:
        count = undecided(np.stack([person.values for person in persons]))
        if count:
            notes.append(Diagnostic("items_without_majority", items=count, ties=ties))
        if len(persons) > MOST_AMONG:
            notes.append(Diagnostic("many_people", people=len(persons)))
    if scale_is_open and panel.kind == "rating":
        notes.append(Diagnostic("scale_of_people_unknown"))
    return notes


@dataclass(slots=True)
class Options:
    """Options of the questions of runs.

    Args:
        choices: by item, the options of its question by letter.
        read: by reader and item, the option; None where it read none.
    """

    choices: dict[RatedItem, Mapping[str, str]] = field(default_factory=dict)
    read: dict[str, dict[RatedItem, str | None]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Options:
        """Read the options of runs; raises UserError for a run without answers."""
        options = cls()
        for run in runs:
            if not has_answers(run):
                raise UserError("run_without_answers", folder=run.folder, hint="name a run of a benchmark")
            name = name_of(run)
            (system,) = run.systems
            for exchange in exchanges(run):
                item = RatedItem(name, system, exchange.question.id)
                options.choices[item] = choices_of(exchange.question.fields)
                parsed = exchange.reading.parsed if exchange.reading is not None else None
                options.read[READ][item] = None if parsed is None else options.named(parsed, item)
            for judge, id, letter in letters_in(run, system):
                options.read[judge][RatedItem(name, system, id)] = letter
        return options

    def named(self, text: str, item: RatedItem) -> str:
        """Return the letter of the option that a text means, or the text if none is known."""
        plain = " ".join(text.split()).casefold()
        choices = self.choices.get(item, {})
        option = named_choices(text, choices)
        if option:
            return min(option)
        return NO_OPTION if plain in ("none", "no option", "-") else plain.upper() if len(plain) == 1 else plain

    def raters(self, items: Sequence[RatedItem], labels: dict[str, int]) -> list[Rater]:
        """Return judges and the runs' parsing as raters; new options extend `labels`."""
        all_raters = []
        for reader in sorted(self.read, key=lambda name: name == READ):
            answers = [self.read[reader].get(item) for item in items]
            values = [np.nan if label is None else float(labels.setdefault(label, len(labels))) for label in answers]
            unread = sum(label is None for label in answers)
            missing = {UNREAD: unread} if unread else {}
            role: Role = "run" if reader == READ else "judge"
            all_raters.append(Rater(reader, role, np.array(values, np.float64), {}, missing))
        return all_raters
