"""Counts how often intervals contain the truth and tests cry wolf, over simulated runs whose truth is known.

    python bench/bench_intervals.py [--repetitions 1000] [--parts equal ordinary recorded medians crossed kinds] [--only WORD]

The first study draws speakers with as many items each, of equal variance, and two systems that do not differ. Drawn are
    mean          one number per item, normal
    bounded mean  one number per item between 0 and 1, 0.9 on average, as of a similarity (beta)
    ratio         the same normal numbers as errors per word, over 3 to 40 words an item
    difference    of two systems' means per word, as the ratios
    share         items that are right or wrong, nine in ten right
    error rate    Poisson errors over 3 to 40 words, and one item in twenty lost; at worst an item is lost, as the
                  bounds say
Beside the package's own method stand those that are in use elsewhere: the percentile bootstrap, the paired bootstrap's
p, and the sign test over items.

The second study draws what is ordinary and unequal (`ORDINARY`). Counted is in how many runs there is an interval, and
how many of these hold the truth. The third (`RECORDED`) takes some of these designs the whole way: the scores are
written into a record, one system for each repetition, and the intervals are read from `summary.json` and from the page;
so are medians, of conversations with planted latencies (`interval_medians.py`). The fourth (`CROSSED`, `KINDS`) draws
listening tests: every rater rates every sound, and both are drawn from more of their kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Cases, Options, Rows, bench, figures
from interval_designs import CORPUS, LEVEL, ORDINARY, OWN, Drawn, Said, fold_of, in_places, own, parts, spoken
from interval_medians import MEDIANS, medians
from interval_tables import FEW_VALUES, UNITS
from scipy import stats

from codec_bench.report.results import write_results
from codec_bench.stats.crossed import crossed_test
from codec_bench.stats.intervals import ratios, unit_sums
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

PARTS = ("equal", "ordinary", "recorded", "medians", "crossed", "kinds")
DESIGNS = ((2, 20), (3, 20), (5, 10), (10, 10), (20, 5), (6, 1), (30, 1), (300, 1))
# What each kind is drawn from, and what an item can be; the numbers stay when a kind is added.
EQUAL: dict[str, tuple[int, tuple[float, float] | None]] = {
    "mean": (0, None), "bounded mean": (5, (0.0, 1.0)), "ratio": (1, None), "difference": (2, None), "share": (3, None), "error rate": (4, (0.0, 1.0)),
}  # fmt: skip
RESAMPLES = 400
# Other methods are known from elsewhere; a quarter of the repetitions shows where they stand.
FEWER = 4


def drawn(kind: str, speakers: int, each: int, rng: np.random.Generator) -> Drawn:
    """One simulated run of the first study. Speakers differ if they have several items."""
    several = each > 1
    codes = np.repeat(np.arange(speakers), each) if several else None
    words = rng.integers(3, 41, speakers * each).astype(float)
    if kind in ("mean", "ratio", "difference"):
        below = np.ones_like(words) if kind == "mean" else words
        return parts([spoken(speakers, each, rng).ravel() * below for _ in range(2)], codes, 0.0, below)
    if kind == "bounded mean":
        if not several:
            return parts([rng.beta(18, 2, speakers)], codes, 0.9)
        speaker = np.repeat(rng.beta(36, 4, speakers).clip(1e-6, 1 - 1e-6), each)
        return parts([rng.beta(40 * speaker, 40 * (1 - speaker))], codes, 0.9)
    if kind == "share":
        chance = np.repeat(rng.beta(18, 2, speakers), each) if several else 0.9
        return parts([rng.random(words.size) < chance], codes, 0.9)
    # One word in twenty is wrong, more for some speakers than for others, and every twentieth item as a whole.
    harder = np.repeat(rng.gamma(4, 0.25, speakers), each) if several else 1.0
    whole = rng.random(words.size) < 0.05
    errors = np.where(whole, words, np.minimum(rng.poisson(0.05 * words * harder), words))
    return parts([errors], codes, 0.05 * 0.95 + 0.05, words)


def percentile(run: Drawn, rng: np.random.Generator) -> Said:
    """The percentile bootstrap over units; p is twice the smaller share on either side of 0."""
    sides = [unit_sums(table, run[2]) for table in run[:2] if table is not None]
    count = len(sides[0])
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    parts = [ratios(weights @ side) for side in sides]
    resampled = parts[0] - parts[1] if len(parts) > 1 else parts[0]
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    p = min(1.0, 2 * (1 + min((resampled <= 0).sum(), (resampled >= 0).sum())) / (1 + RESAMPLES))
    return Said((float(low), float(high)), float(p))


def signs_of_items(run: Drawn) -> Said:
    """The sign test over items, whoever spoke them; it gives a p alone."""
    a, b, *_ = run
    if b is None:
        return Said(None)
    apart = np.sign(a[:, 0] - b[:, 0])
    wins, losses = int((apart > 0).sum()), int((apart < 0).sum())
    return Said(None, float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0)


def study(
    repetitions: int, designs: tuple[tuple[int, int], ...] = DESIGNS, others: bool = True
) -> Iterator[dict[str, object]]:
    """One row per design, kind and method: how often the interval held the truth, and how often p was below 0.05.

    The rows of the package's own method also hold how many intervals are marked.
    """
    for number, (speakers, each) in enumerate(designs):
        for kind, (place, bounds) in EQUAL.items():
            rng, draws = np.random.default_rng([number, place]), np.random.default_rng([7, number, place])
            methods: dict[str, Callable[[Drawn], Said]] = {OWN: lambda run: own(run, bounds=bounds, share=True)}  # noqa: B023 - called at once
            if others:
                methods |= {
                    "percentile bootstrap": partial(percentile, rng=draws),
                    "sign test of items": signs_of_items,
                }
            counts = {name: np.zeros(5) for name in methods}  # intervals, with the truth, marked, ps, below 0.05
            for repetition in range(repetitions):
                run = drawn(kind, speakers, each, rng)
                # Means and ratios of one system for the coverage, their differences for the test.
                alone = (run[0], None, *run[2:]) if kind in ("mean", "ratio") else run
                for name, method in methods.items():
                    if name != OWN and repetition % FEWER:
                        continue
                    interval = method(alone)
                    test = interval if alone is run else method(run)
                    if interval.ends is not None:
                        counts[name][:3] += 1, interval.holds(run[3]), interval.noted
                    if test.p is not None:
                        counts[name][3:] += 1, test.p < 0.05
            for name, (given, held, marked, tested, alarms) in counts.items():
                yield {
                    "design": f"{speakers} x {each}", "kind": kind, "variant": name,
                    "coverage": held / given if given else None, "alarms": alarms / tested if tested else None,
                    "repetitions": int(max(given, tested)),
                    "marked": marked / given if name == OWN and kind != "difference" and given else None,
                }  # fmt: skip


def ordinary(repetitions: int, names: Iterable[str] = ORDINARY) -> Iterator[dict[str, object]]:
    """One row per design: in how many runs there is an interval, how many of these hold the truth, how many are marked,
    and how many of the others hold it.
    """
    for name in names:
        draw, bounds = ORDINARY[name]
        rng = np.random.default_rng(list(name.encode()))
        given = held = marked = plain = 0
        wider = []
        for _ in range(repetitions):
            run = draw(rng)
            told = own(run, fold_of(name), bounds=bounds, share=name.startswith("share"))
            if told.ends is not None:
                given, marked = given + 1, marked + told.noted
                holds = told.holds(run[3])
                held, plain = held + holds, plain + (holds and not told.noted)
                if FEW_VALUES.fullmatch(name):
                    reach = float(stats.t.ppf((1 + LEVEL) / 2, len(run[0]) - 1) * stats.sem(run[0][:, 0]))
                    wider.append((told.ends[1] - told.ends[0]) / (2 * reach))
        coverage = held / given if given else None
        yield {
            "design": name, "coverage": coverage, "given": given / repetitions, "marked": marked / given if given else None,
            "plain": plain / (given - marked) if given > marked > 0 else None, "wider": float(np.mean(wider)) if wider else None, "repetitions": repetitions,
        }  # fmt: skip


RECORDED = (
    "mean, exponential, 8 items",
    "error rate, 2.0%, 1.0% lost, speakers 20 x 50",
    "mean, speakers 2 x 40, 8 x 2, 0.5 between them",
    "mean, speakers 1 x 40, 39 x 1, 0.95 between them",
    "PESQ at the ceiling, 5% below, 100 items",
    "STOI near 1, spread 1.5, 50 items",
    "error rate, 2.0%, 0.2% lost, 300 items",
    "error rate, 3.0%, 0.2% looping 20x, 3000 items",
    "mean of error rates, 2.0%, 0.2% lost, 100 items",
    "share, 10 speakers with 1 to 80 questions, 0.9 right, 0.8 alike",
    "BLEU, 20% of words right, 50 items",
    "BLEU, 20% of words right, speakers 2 x 40, 8 x 2",
)
"""The designs that are taken the whole way."""
_SHOWN = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def recorded(repetitions: int, names: Iterable[str] = RECORDED) -> Iterator[dict[str, object]]:
    """One row per design: how often the interval that a run tells holds the truth, by `summary.json` and by the page.

    A record holds a system for each of some repetitions, or for one where the speakers are drawn too.
    """
    for name in names:
        yield from in_places(name, repetitions, partial(_through_a_record, name), alone=name.startswith("share"))


def _through_a_record(name: str, seed: int, several: int, folder: Path) -> tuple[float, dict[str, list[Any]]]:
    """The truth of a design, and the ends of the intervals of some runs of it as they are told in each place."""
    draw, bounds = ORDINARY[name]
    fold = fold_of(name)
    systems = [f"system-{n}" for n in range(several)]
    drawn = [draw(np.random.default_rng([seed, n, *name.encode()])) for n in range(several)]
    facts: dict[str, Any] = {
        "protocol": "simulated/1", "unit": "", "higher_is_better": True, "kind": "answer" if name.startswith("share") else "single",
        "aggregate": CORPUS[name.partition(",")[0]] if fold is not ratios else "ratio",
        **({} if bounds is None else {"bounds": list(bounds)}),
    }  # fmt: skip
    codes = drawn[0][2]
    speakers = [None] * len(drawn[0][0]) if codes is None else [f"speaker {code}" for code in codes]
    items = [Sample(f"item {n:05d}", None, speaker=speaker) for n, speaker in enumerate(speakers)]
    writer = RunWriter(folder, {})
    writer.begin({system: {} for system in systems}, {"simulated": facts}, items)
    for n, item in enumerate(items):
        rows = []
        for system, (table, *_) in zip(systems, drawn):
            parts = table[n]
            if fold is ratios:
                score = Score.ok(parts[0] / parts[1], "simulated/1", numerator=parts[0], denominator=parts[1])
            else:
                score = Score.ok(0.0, "simulated/1", detail={"counts": parts.tolist()})
            rows.append((n, ItemRecord(system, item.id, "ok", None, {"simulated": score})))
        writer.write(rows)
    writer.set_meta(state="finished")
    writer.close()
    write_results(Run(folder))
    summary = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]
    (found,) = _SHOWN.findall((folder / "report.html").read_text("utf-8"))
    page = json.loads(found)
    shown = {system["label"]: row[0] for system, row in zip(page["systems"], page["summary"])}
    return drawn[0][3], {
        "summary.json": [summary[system]["metrics"]["simulated"]["ci95"] for system in systems],
        "page": [None if shown[system][1] is None else (shown[system][1], shown[system][2]) for system in systems],
    }


CROSSED = {
    f"{people} raters x {sounds} sounds, spreads {rater:g}, {sound:g}, {rest:g}": (people, sounds, rater, sound, rest)
    for people, sounds in ((20, 6), (20, 8), (12, 10), (20, 20), (12, 8))
    for rater, sound, rest in ((2, 8, 8), (2, 5, 8), (8, 8, 8), (0, 0, 8))
}
"""Ratings of every sound by every rater: the standard deviation between raters, between sounds, and of the rest."""


KINDS = {
    f"{kind}, {people} raters x {sounds} sounds": (people, sounds, 2, 5, 8)
    for kind in ("CCR", "DCR", "P.835 near the top", "ABX")
    for people, sounds in ((20, 6), (20, 20), (12, 8))
} | {
    f"one rater in ten gives 100 to all, {people} raters x {sounds} sounds": (people, sounds, 8, 8, 8)
    for people, sounds in ((3, 15), (6, 15), (12, 10))
}
"""Answers on the scales of kinds of listening tests, by people who hear no difference on average."""
LAZY = "one rater in ten gives 100 to all"
MIDDLES = {"DCR": 3.2, "P.835 near the top": 4.4}


def answered(kind: str, apart: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What people answer, as the difference of two systems, of differences `(people, sounds)` as they hear them.

    A comparison is a whole number from -3 to 3; of the two ratings each is one from 1 to 5, around a middle that raters
    and sounds move; in ABX they guess, which gives 1 or -1. Of raters some of whom give 100 to all it is what they
    answer about one system, less its mean.
    """
    if kind == LAZY:  # one system whose mean is 60, beside what the mean over such people is
        return np.where(rng.random((len(apart), 1)) < 0.1, 40.0, apart) - 4
    if kind == "ABX":
        return rng.integers(0, 2, apart.shape) * 2.0 - 1
    if kind == "CCR":
        return np.clip(np.round(0.15 * apart), -3, 3)
    people, sounds = apart.shape
    common = MIDDLES[kind] + 0.5 * (
        rng.normal(0, 1, (people, 1)) + rng.normal(0, 1, (1, sounds)) + rng.normal(0, 1, apart.shape)
    )
    first, second = (np.clip(np.round(common + sign * 0.06 * apart), 1, 5) for sign in (1, -1))
    return first - second


def crossed(repetitions: int, names: Iterable[str] = CROSSED) -> Iterator[dict[str, object]]:
    """One row per design and estimate: how often the interval over raters and sounds holds the truth, and its test's p
    is below 0.05.

    The differences of two systems that do not differ have these spreads: what a rater, and what a sound, thinks of one
    more than of the other. Over raters alone, whose means have Student's t, stands beside it.
    """
    for name in names:
        people, sounds, *spreads = (CROSSED | KINDS)[name]
        rng = np.random.default_rng(list(name.encode()))
        # Intervals, with the truth, ps, below 0.05.
        counts = {"codec-bench": np.zeros(4), "over raters alone": np.zeros(4)}
        who, what = np.repeat(np.arange(people), sounds).tolist(), np.tile(np.arange(sounds), people).tolist()
        for _ in range(repetitions):
            by_rater, by_sound, rest = (
                rng.normal(0, spread, shape)
                for spread, shape in zip(spreads, ((people, 1), (1, sounds), (people, sounds)))
            )
            values = by_rater + by_sound + rest
            if name in KINDS:
                values = answered(name.partition(",")[0], values, rng)
            test = crossed_test(values.ravel().tolist(), who, what)
            alone = stats.ttest_1samp(values.mean(axis=1), 0.0)
            told = (test.low, test.high, test.p), (*alone.confidence_interval(), alone.pvalue)
            for count, (low, high, p) in zip(counts.values(), told, strict=True):
                if low is not None and high is not None and p is not None:
                    count += 1, low <= 0 <= high, 1, p < 0.05
        for variant, (given, held, tested, alarms) in counts.items():
            yield {"design": name, "variant": variant, "coverage": held / given, "alarms": alarms / tested, "given": given / repetitions, "repetitions": repetitions}  # fmt: skip


def _rows(found: dict[str, object], part: str) -> Rows:
    """The rows of one design."""
    equal = part == "equal"
    case = f"{found['kind']}, {found['design']}" if equal else f"{part}: {found['design']}"
    variant = found.get("variant") or (f"{OWN}, {found['place']}" if "place" in found else OWN)
    values = {unit: found[name] for name, unit in UNITS.items() if found.get(name) is not None}
    note = "speakers x items; no difference between the systems" if equal else ""
    return figures(values, case=case, variant=variant, n=found["repetitions"], note=note)


@bench(repetitions=1000, parts=PARTS, only="")
def main(options: Options) -> Cases:
    """The studies, a design after the other, and the first of all at once; `--parts` takes some of them, `--only` the
    designs that hold a word.
    """
    if unknown := set(options.parts) - set(PARTS):
        raise SystemExit(f"there are no parts {sorted(unknown)}; expected some of {', '.join(PARTS)}")
    if "equal" in options.parts and not options.only:
        yield [row for found in study(options.repetitions) for row in _rows(found, "equal")]
    studies: dict[str, tuple[Callable[..., Iterator[dict[str, object]]], Iterable[str]]] = {
        "ordinary": (ordinary, ORDINARY), "recorded": (recorded, RECORDED), "medians": (medians, MEDIANS), "crossed": (crossed, CROSSED),
        "kinds": (crossed, KINDS),
    }  # fmt: skip
    for part, (count, names) in studies.items():
        if part in options.parts:
            for one in count(options.repetitions, [name for name in names if options.only in name]):
                yield _rows(one, part)
