"""What raters' answers show, against other ways to compute it; and that nothing wrong is excluded without a note."""

from __future__ import annotations

import csv
import json
from collections import Counter
from zlib import crc32

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

import codec_bench
from codec_bench.apps.agreement.ratings import read_ratings
from codec_bench.apps.listening.key import REFERENCE, read_key
from codec_bench.messages import Diagnostic
from codec_bench.stats.pairwise_preferences import Duel, strengths

RATERS = [f"Rater {n}" for n in range(8)]
LEVELS = {REFERENCE: 100, "zebra-codec": 70, "quagga-codec": 50, "(3.5k anchor)": 10, "(7k anchor)": 30}


def opened(run, folder, kind, **more):
    built = codec_bench.export_listening(runs=run, kind=kind, out=folder / f"{kind}.html", **more)
    return built, read_key(built.key)


@pytest.fixture(scope="module")
def tests(codec_run, answer_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sheets")
    return {
        "mushra": opened(codec_run, folder, "mushra", items=5, training=1, repeats=2),
        "rating": opened(codec_run, folder, "rating", items=6, systems="zebra-codec,quagga-codec"),
        "preference": opened(codec_run, folder, "preference", items=6, systems="zebra-codec,quagga-codec"),
        "options": opened(answer_run, folder, "options", items=3),
        "review": opened(answer_run, folder, "review", items=4),
    }


def system_of(trial, stimulus):
    return next(one.system for one in trial.stimuli if one.id == stimulus)


def careful(seed, shift=0):
    """A rater who hears everything, with some noise."""
    rng = np.random.default_rng(seed)

    def rate(trial, stimulus):
        level = LEVELS[system_of(trial, stimulus)]
        return 100 if level == 100 else int(np.clip(level + shift + rng.integers(-5, 6), 0, 100))

    return rate


def test_mushra_scores_and_intervals_are_those_of_the_raters_means(tests, save):
    built, key = tests["mushra"]
    files = [save(f"{n}.json", key, rater, careful(n, n)) for n, rater in enumerate(RATERS)]
    outcome = codec_bench.import_listening(files, key=built.key)
    by_rater = {}
    for path in files:
        held = json.loads(path.read_text())
        trials = {trial.id: trial for trial in key.counted}
        for row in held["answers"]:
            if row["trial"] in trials:
                by_rater.setdefault(system_of(trials[row["trial"]], row["stimulus"]), {}).setdefault(
                    held["rater"], []
                ).append(row["value"])
    assert {one.system for one in outcome.systems} == set(LEVELS)
    for one in outcome.systems:
        means = [np.mean(held) for held in by_rater[one.system].values()]
        assert one.value == pytest.approx(np.mean(means)) and (one.n, one.raters, one.items) == (40, 8, 5)
        if one.system == "zebra-codec":
            low, high = stats.t.interval(0.95, 7, np.mean(means), stats.sem(means))
            assert one.over_raters.low <= low + 1e-9 and one.over_raters.high >= high - 1e-9
            assert one.over_raters.high - one.over_raters.low < 1.3 * (high - low), "eight raters may be skewed"
            assert one.interval.method == "crossed" and one.interval.units == min(8, one.over_items.units)
            assert one.below_reference == pytest.approx(one.value - 100)
            assert one.over_items.units == len({trial.speaker for trial in key.counted})
    (pair,) = outcome.pairs
    assert pair.test.difference == pytest.approx(20, abs=3) and pair.test.p < 0.01 < pair.test.high - pair.test.low
    assert not outcome.problems and all(not one.left_out for one in outcome.raters)
    assert {(one.repeats, one.answered, one.asked) for one in outcome.raters} == {(10, 25, 25)}
    assert 0 < outcome.raters[0].repeat_difference < 10
    assert json.loads(json.dumps(outcome.as_dict()))["statuses"] == {"used": 200, "training": 40, "repeat": 80}


def test_too_few_raters_have_values_without_intervals(tests, save):
    built, key = tests["rating"]
    outcome = codec_bench.import_listening(
        [save(f"{n}.json", key, RATERS[n], lambda *_, n=n: 3 + n % 2) for n in range(2)], key=built.key
    )
    assert outcome.measure == "MOS" and [one.value for one in outcome.systems] == [3.5, 3.5]
    assert outcome.systems[0].interval.ends is None
    assert outcome.systems[0].over_raters.note == "there are 2 raters; an interval needs at least 3"
    assert (
        outcome.systems[0].interval.note
        == "there are 2 raters; an interval over raters and items needs at least 3, and the value holds for these alone"
    )
    assert outcome.systems[0].over_items.note.code == "all_equal", "every item has the same mean"
    assert outcome.pairs[0].test.p is None and outcome.pairs[0].test.note.as_dict() == {
        "code": "few_crossed",
        "size": 2,
        "of": "raters",
        "needed": 3,
    }


def test_with_an_open_reference_the_value_is_a_dmos(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "rating", items=2, reference=True, scale="1-5")
    outcome = codec_bench.import_listening(save("a.json", key, "Ann", lambda *_: 0), key=built.key)
    assert outcome.measure == "DMOS" and outcome.scale == (1, 5)
    assert {problem.what: problem.count for problem in outcome.problems}["value out of range"] == 6


def test_preferences_count_for_the_system_wherever_it_was_shown(tests, save):
    built, key = tests["preference"]

    def prefers(trial, _):
        zebra = next(one.id for one in trial.stimuli if one.system == "zebra-codec")
        return "tie" if trial.id == key.trials[0].id else zebra

    files = [save(f"{n}.json", key, rater, prefers) for n, rater in enumerate(RATERS)]
    outcome = codec_bench.import_listening(files, key=built.key)
    (one,) = outcome.systems
    assert (one.system, one.other, one.value) == ("zebra-codec", "quagga-codec", pytest.approx(5.5 / 6))
    assert one.choices == {"zebra-codec": 40, "quagga-codec": 0, "no difference": 8}
    assert one.test.p < 0.05 and one.test.units == 4 and one.p_holm == one.test.p, "of eight raters and four speakers"
    assert one.over_raters.note.code == "all_equal" and one.over_items.ends[1] <= 1, "no share is above 1"
    zebra_first = sum(trial.stimuli[0].system == "zebra-codec" for trial in key.trials[1:])
    assert outcome.first_preferred.value == pytest.approx(zebra_first / 5)


def test_options_are_right_or_not_and_reviews_are_counted(tests, save, tmp_path):
    built, key = tests["options"]
    files = [save(f"{n}.json", key, rater, lambda *_, n=n: [1, 0, "none"][n % 3]) for n, rater in enumerate(RATERS[:3])]
    outcome = codec_bench.import_listening(files, key=built.key, csv=tmp_path / "r.csv")
    assert (
        outcome.systems[0].value == pytest.approx(1 / 3) and outcome.systems[0].over_raters.method == "clopper-pearson"
    )
    assert outcome.systems[0].choices == {"Paris": 3, "Rome": 3, "none": 3}
    built, key = tests["review"]
    chosen = {trial.id: decision for trial, decision in zip(key.trials, ("accept", "drop", "accept", "edit"))}
    outcome = codec_bench.import_listening(save("r.json", key, "Ann", lambda trial, _: chosen[trial.id]), key=built.key)
    assert outcome.systems[0].choices == {"accept": 2, "drop": 1, "edit": 1} and outcome.systems[0].value is None


def test_the_table_of_ratings_has_a_score_only_where_one_counts(tests, save, tmp_path):
    built, key = tests["mushra"]
    files = [save("a.json", key, "Ann", careful(1)), save("b.json", key, "Bob", careful(2), changed={"rater": "Eve"})]
    codec_bench.import_listening(files, key=built.key, csv=tmp_path / "ratings.csv")
    with (tmp_path / "ratings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:4] == ["id", "rater", "system", "score"] and {"kind", "trial", "seconds"} <= rows[0].keys()
    counted = [row for row in rows if row["score"]]
    assert {row["status"] for row in counted} == {"used"} and len(counted) == 25
    assert {row["rater"] for row in rows} == {"Ann", "Eve"} and all(row["given"] for row in rows)
    assert Counter(row["status"] for row in rows) == {"used": 25, "edited": 25, "training": 10, "repeat": 20}
    assert all(row["id"].startswith("narwhal/") for row in rows)
    read = read_ratings(tmp_path / "ratings.csv")
    assert (read.kind, len(read.rows), read.raters) == ("rating", 25, ("Ann",)), "what `agreement` reads"


def test_a_rater_who_does_not_recognise_the_reference_is_listed_and_excluded(tests, save):
    built, key = tests["mushra"]

    def deaf(trial, stimulus):
        return 60

    files = [save(f"{n}.json", key, rater, careful(n)) for n, rater in enumerate(RATERS[:4])]
    files.append(save("deaf.json", key, "Deaf", deaf))
    outcome = codec_bench.import_listening(files, key=built.key)
    (out,) = [one for one in outcome.raters if one.left_out]
    assert out.rater == "Deaf" and out.left_out == (
        Diagnostic("rule_finding", rule="constant", cause=Diagnostic("constant_answers", answers=25, answer=60)),
        Diagnostic("rule_finding", rule="bs1534-3", cause=Diagnostic("reference_low", limit=90, low=5, trials=5)),
    )  # fmt: skip
    assert {row.status for row in outcome.ratings if row.rater == "Deaf"} == {"screened", "training", "repeat"}
    zebra = next(one for one in outcome.systems if one.system == "zebra-codec")
    assert zebra.raters == 4 and zebra.uncounted == pytest.approx((4 * zebra.value + 60) / 5)
    retained = codec_bench.import_listening(files, key=built.key, keep="screened")
    assert next(one for one in retained.systems if one.system == "zebra-codec").value == pytest.approx(zebra.uncounted)
    assert [one.rater for one in retained.raters if one.left_out] == ["Deaf"]
    late = codec_bench.import_listening(files, key=built.key, screening="none")
    assert not any(one.left_out for one in late.raters) and late.raters[-1].marked == out.left_out
    assert late.notes[0] == "the test was written with the screening constant, bs1534-3; none was named afterwards"


def test_everything_that_is_wrong_is_counted_and_shown(tests, save, tmp_path):
    built, key = tests["mushra"]
    counted = [(trial, one) for trial in key.counted for one in trial.stimuli]
    (gap, absent), (loud, high), (duplicate, twin) = counted[0], counted[1], counted[2]

    def odd(trial, stimulus):
        if (trial, stimulus) == (gap, absent.id):
            return None
        return 101 if (trial, stimulus) == (loud, high.id) else careful(1)(trial, stimulus)

    first = save("first.json", key, "Ann", careful(5), saved="2026-11-22T09:00:00.000Z")
    second = save("second.json", key, "ann", odd)
    held = json.loads(second.read_text())
    held["answers"] += [
        {"trial": duplicate.id, "stimulus": twin.id, "value": 5, "ms": 1},
        {"trial": "t99", "stimulus": "s1", "value": 5, "ms": 1},
        {"trial": gap.id, "stimulus": high.id, "value": 5, "ms": 1} if gap is not loud
        else {"trial": gap.id, "stimulus": "s9999", "value": 5},
    ]  # fmt: skip
    second.write_text(json.dumps(held))
    other = save("other.json", key, "Cleo", careful(3), changed={"sheet": "0123456789ab"})
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    outcome = codec_bench.import_listening(
        [first, second, other, broken, tmp_path / "gone.json"], key=built.key, keep="edited"
    )
    messages = Counter()
    for problem in outcome.problems:
        messages[problem.what] += problem.count
    assert messages == {
        "unreadable file": 2, "file of another test": 1, "edited file": 1, "rater twice": 1, "unknown id": 2,
        "value out of range": 1,
        "answered twice": 2, "missing answer": 1,
    }  # fmt: skip
    statuses = Counter(row.status for row in outcome.ratings)
    every = sum(len(trial.stimuli) for trial in key.trials)
    assert statuses["superseded"] == every and statuses["missing"] == statuses["out of range"] == 1
    assert statuses["used"] == 25 - 3 and statuses["answered twice"] == 2
    assert {row.rater for row in outcome.ratings} == {"Ann"}


def test_files_of_no_use_and_a_missing_key_end_with_a_sentence(tests, save, tmp_path):
    built, _ = tests["rating"]
    (tmp_path / "a.json").write_text("[]")
    with refuses("no_answers_to_test"):
        codec_bench.import_listening(tmp_path / "a.json", key=built.key)
    with refuses("no_key_named"):
        codec_bench.import_listening(tmp_path / "a.json")
    with refuses("unknown_name", kind="screening_rule", name="p1204"):
        mushra, of_mushra = tests["mushra"]
        codec_bench.import_listening(save("m.json", of_mushra, "Ann", careful(1)), key=mushra.key, screening="p1204")


def test_preferences_among_three_systems_give_each_a_strength(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "preference", items=6)
    order = {name: n for n, name in enumerate(key.systems)}

    def prefers(rater, trial):
        better, worse = sorted(trial.stimuli, key=lambda one: order[one.system])
        return (better, worse)[crc32(f"{rater} {trial.item}".encode()) % 3 == 0].id if rater % 2 else "tie"

    files = [save(f"{n}.json", key, rater, lambda trial, _, n=n: prefers(n, trial)) for n, rater in enumerate(RATERS)]
    outcome = codec_bench.import_listening(files, key=built.key)
    rows = [row for row in outcome.ratings if row.status == "used" and row.score is not None]
    same = strengths([Duel(row.system, row.other, row.score, row.speaker or f"item {row.id}") for row in rows])
    assert outcome.strengths == same and {one.system for one in same.systems} == set(key.systems)
    assert outcome.as_dict()["strengths"]["systems"][0]["points"] == same.systems[0].points
