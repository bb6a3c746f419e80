"""Agreement of judges and people over records of the test: the studies of AudioBench and AIR-Bench in their shape."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from judged_runs import judged_run
from scipy import stats

from codec_bench import agreement
from codec_bench.apps.agreement import ratings
from codec_bench.apps.agreement.coefficients import CORRELATIONS, OF_RATINGS
from codec_bench.apps.agreement.panel import MIXED, OF_MEAN, Panel, Rater, compare_raters
from codec_bench.apps.agreement.raters import READ, Item
from codec_bench.errors import UserError
from codec_bench.report.open_run import open_run


@pytest.fixture
def judged(tmp_path):
    """Makes the record of a benchmark's run; arguments as `judged_run`."""

    def make(name, verdicts, *, folder="", model="m", **more):
        return judged_run(tmp_path / "runs" / (folder or name) / model, name, verdicts, model=model, **more)

    return make


def write(tmp_path, rows, head="id,rater,score"):
    path = tmp_path / "human.csv"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def noisy(rng, true, spread):
    return np.clip(np.round(true + rng.normal(0, spread, len(true))), 0, 5).tolist()


def test_audiobenchs_study_of_judges(judged, rng):
    """Three data sets, each rated by four judges; each open judge is correlated with the reference, by data set."""
    spreads = {"gpt-4": 0.2, "llama-3-70b": 0.5, "llama-3-8b": 1.5, "prometheus-2": 1.0}
    held = {}
    for name, count, scale in (
        ("cn-college", 90, (0, 1)),
        ("clotho-aqa", 80, (0, 5)),
        ("voxceleb-accent", 120, (0, 1)),
    ):
        true = rng.uniform(0, 5, count)
        verdicts = {judge: noisy(rng, true, spread) for judge, spread in spreads.items()}
        if scale == (0, 1):
            verdicts = {judge: [float(v >= 3) for v in given] for judge, given in verdicts.items()}
        held[name] = (verdicts, judged(name, verdicts, scale=scale))
    found = agreement(runs=[place for _, place in held.values()], judges="gpt-4,prometheus-2,llama-3-8b,llama-3-70b")
    assert [(p.reference, p.rater) for p in found.pairs] == [
        ("gpt-4", n) for n in ("prometheus-2", "llama-3-8b", "llama-3-70b")
    ]
    for pair in found.pairs:
        for name, (verdicts, _) in held.items():
            mine = pair.subsets["benchmark"][name]
            theirs = stats.spearmanr(verdicts["gpt-4"], verdicts[pair.rater]).statistic
            assert mine.coefficients["spearman"].value == pytest.approx(theirs, abs=1e-12)
            assert mine.coefficients["spearman"].low < theirs < mine.coefficients["spearman"].high
        assert pair.overall.n == 290 and {c.note for c in pair.overall.coefficients.values()} == {MIXED}
    best = [found.pair("gpt-4", n).subsets["benchmark"]["clotho-aqa"].coefficients["spearman"].value for n in ("llama-3-70b", "llama-3-8b")]  # fmt: skip
    assert best[0] > 0.85 > best[1], "the judge that is nearer to the reference agrees better with it"
    json.dumps(found.as_dict(), allow_nan=False)


def test_judges_of_different_runs_are_matched_by_item(judged, rng):
    true = rng.uniform(0, 5, 40)
    a, b = noisy(rng, true, 0.5), noisy(rng, true, 0.5)
    b[7] = None
    folders = [judged("mine", {"a": a}, folder="one"), judged("mine", {"b": b}, folder="two")]
    found = agreement(runs=folders).pair("a", "b")
    both = [n for n in range(40) if n != 7]
    assert found.overall.n == 39
    assert found.overall.coefficients["kendall"].value == pytest.approx(stats.kendalltau([a[n] for n in both], [b[n] for n in both]).statistic)  # fmt: skip
    whole = agreement(runs=folders)
    assert [dict(rater.missing) for rater in whole.raters] == [{}, {"unparsed": 1}]
    gap = max(abs(a[n] - b[n]) for n in both)
    assert whole.apart[0].gap == gap and set(whole.apart[0].ratings) == {"a", "b"}
    assert sum(map(sum, found.confusion.counts)) == 39


def test_ratings_of_people_stand_beside_a_judge(judged, tmp_path, rng):
    true = rng.uniform(0, 5, 50)
    judge = noisy(rng, true, 0.6)
    place = judged("mine", {"judge": judge}, subset=lambda n: "odd" if n % 2 else "even")
    people = {name: noisy(rng, true, 0.6) for name in ("ann", "bob", "cem")}
    rows = [(f"q{n}", name, people[name][n]) for name in people for n in range(50)]
    found = agreement(runs=place, human=write(tmp_path, rows))
    assert found.kind == "rating" and found.items == 50 and found.problems == ()
    mean = np.mean([people[name] for name in people], axis=0)
    pair = found.pair("mean of 3 raters", "judge").overall.coefficients
    assert pair["spearman"].value == pytest.approx(stats.spearmanr(mean, judge).statistic, abs=1e-12)
    assert (pair["exact"].value, pair["exact"].note) == (None, OF_MEAN) and pair["kappa_quadratic"].value is not None
    alone = found.pair("bob", "judge")
    assert alone.overall.coefficients["exact"].value == pytest.approx(np.mean(np.equal(people["bob"], judge)))
    assert {name: part.n for name, part in alone.subsets["part"].items()} == {"even": 25, "odd": 25}
    assert found.pair("ann", "cem").overall.n == 50, "how well people agree with each other bounds what a judge can do"


def test_air_bench_foundations_protocol(judged, tmp_path, rng):
    """Three raters choose the option that is closest to an answer; the reading of the run is compared with them."""
    options = ("a dog", "a cat", "rain", "wind")
    read = [None if n == 3 else "ABCD"[n % 4] for n in range(40)]
    place = judged("foundation", {}, parsed=read, choices=options)
    rows = []
    for rater, wrong in (("ann", (5,)), ("bob", (5, 9)), ("cem", (11,))):
        for n in range(40):
            right = n % 4
            chosen = (right + 1) % 4 if n in wrong else right
            rows.append((f"q{n}", rater, options[chosen] if rater == "bob" else "abcd"[chosen]))
    found = agreement(runs=place, human=write(tmp_path, rows))
    assert found.kind == "option" and found.pair("majority of 3 raters", READ).overall.n == 39
    exact = lambda rater: found.pair(rater, READ).overall.coefficients["exact"].value  # noqa: E731
    assert exact("majority of 3 raters") == pytest.approx(38 / 39), "question 5 alone, where two are wrong alike"
    assert [exact(n) for n in ("ann", "bob", "cem")] == pytest.approx([38 / 39, 37 / 39, 38 / 39])
    (run,) = (rater for rater in found.raters if rater.name == READ)
    assert dict(run.missing) == {"no option could be read": 1}
    assert found.apart[0].item == Item("foundation", "m", "q5") and found.apart[0].ratings[READ] == "B"


def test_the_judge_that_aligns_answers_is_compared_too(judged, tmp_path):
    """AIR-Bench's table: the aligner beside people. It reads what the rule did not, and errs on question 2."""
    aligned = ["A", "B", "A", "D", ""]
    place = judged(
        "foundation", {"gpt-4": aligned}, parsed=["A", None, "C", "D", "A"], choices=("a dog", "a cat", "rain", "wind")
    )
    human = write(tmp_path, [(f"q{n}", rater, "ABCDA"[n]) for n in range(5) for rater in ("ann", "bob", "cem")])
    found = agreement(runs=place, human=human)
    pairs = {name: found.pair("majority of 3 raters", name).overall for name in ("gpt-4", READ)}
    assert [(pair.n, pair.coefficients["exact"].value) for pair in pairs.values()] == [(4, 0.75), (4, 1.0)]
    assert found.apart[0].ratings["gpt-4"] == "A" and found.apart[0].item.id == "q2"


SYSTEMS = ("qwen", "salmonn", "blsp", "cascade")


@pytest.fixture
def chat(judged, tmp_path, rng):
    """Four systems, rated by a judge; three people vote on all six pairs as the judge does, but for one error each in
    ten.
    """
    scores = {name: np.round(rng.uniform(1, 10, 30)) for name in SYSTEMS}
    for name in SYSTEMS:
        judged("chat", {"gpt-4": scores[name].tolist()}, model=name, scale=(1, 10))
    rows = []
    for rater in ("ann", "bob", "cem"):
        for n in range(30):
            for i, first in enumerate(SYSTEMS):
                for second in SYSTEMS[i + 1 :]:
                    vote = int(np.sign(scores[first][n] - scores[second][n]))
                    vote = int(rng.integers(-1, 2)) if rng.random() < 0.1 else vote
                    said = {1: "A", 0: "tie", -1: "B"}[vote]
                    turned = {1: "B", 0: "tie", -1: "A"}[vote]
                    rows.append(
                        (f"q{n}", rater, second, first, turned)
                        if rater == "bob"
                        else (f"q{n}", rater, first, second, said)
                    )
    return tmp_path / "runs", write(tmp_path, rows, "id,rater,system,other,score"), scores


def test_air_bench_chats_protocol(chat):
    folder, human, _ = chat
    found = agreement(runs=folder, human=human)
    assert found.kind == "preference" and found.items == 180
    pair = found.pair("majority of 3 raters", "gpt-4")
    assert len(pair.subsets["pair"]) == 6 and all(part.n <= 30 for part in pair.subsets["pair"].values())
    assert all(part.coefficients["exact"].value > 0.7 for part in pair.subsets["pair"].values())
    assert pair.overall.units == 30, "the six pairs of one question are not independent"
    assert found.pair("bob", "gpt-4").overall.coefficients["exact"].value > 0.85, (
        "the order of the two systems does not matter"
    )
    assert set(pair.confusion.rows) == {"first", "equal", "second"}


def test_the_paper_leaves_ties_open_and_each_rule_has_a_name(chat):
    folder, human, _ = chat
    by_rule = {rule: agreement(runs=folder, human=human, ties=rule) for rule in ("left-out", "any", "equal")}
    counts = {rule: found.pair("majority of 3 raters", "gpt-4").overall.n for rule, found in by_rule.items()}
    assert counts["any"] == counts["equal"] == 180 and counts["left-out"] <= 180
    shares = {
        rule: found.pair("majority of 3 raters", "gpt-4").overall.coefficients["exact"].value
        for rule, found in by_rule.items()
    }
    assert shares["any"] >= shares["equal"]
    near = agreement(runs=folder, human=human, equal_within=9.0).pair("majority of 3 raters", "gpt-4")
    assert near.confusion.columns == ("equal",), "scores that differ by no more than 9 prefer nobody"


def test_whatever_is_wrong_with_a_file_is_counted(judged, tmp_path):
    place = judged("mine", {"judge": [1, 2, 3, 4, None]})
    rows = [
        ("q0", "ann", 1),
        ("q0", "ann", 4),
        ("q1", "ann", 2),
        ("q2", "ann", 7),
        ("q9", "ann", 1),
        ("q3", "ann", ""),
        ("q4", "ann", 3),
    ]
    found = agreement(runs=place, human=write(tmp_path, [*rows, ("q1", "bob", 2)]))
    assert {(p["what"], p["rater"]): p["count"] for p in found.problems} == {
        (ratings.EMPTY, "ann"): 1, (ratings.OUT_OF_RANGE, "ann"): 1, (ratings.TWICE, "ann"): 2, (ratings.UNKNOWN_ID, "ann"): 1,
    }  # fmt: skip
    assert {rater.name: dict(rater.missing) for rater in found.raters} == {
        "ann": {}, "bob": {"not rated": 1}, "judge": {"unparsed": 1}, "mean of 2 raters": {}, "majority of 2 raters": {},
    }  # fmt: skip
    whole = found.pair("ann", "judge").overall
    assert whole.n == 1 and all(whole.coefficients[name].low is None for name in OF_RATINGS)
    assert all(c.note for c in whole.coefficients.values()), "each says why it has no interval"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("q0,ann,opus,mine,1", ratings.UNKNOWN_SYSTEM),
        ("q0,ann,m,,1", ratings.UNCLEAR),
        ("q0,ann,m,other,1", ratings.UNKNOWN_ID),
        ("q9,ann,m,mine,1", ratings.UNKNOWN_ID),
    ],
)
def test_a_rating_that_cannot_be_placed_is_counted(judged, tmp_path, row, what):
    folders = [judged("mine", {"judge": [1, 2, 3]}), judged("yours", {"judge": [1, 2, 3]})]
    file = write(tmp_path, [row.split(","), ("q0", "bob", "", "mine", 2)], "id,rater,system,benchmark,score")
    found = agreement(runs=folders, human=file)
    assert [(p["what"], p["rater"], p["count"]) for p in found.problems] == [(what, "ann", 1)]
    assert found.pair("bob", "judge").overall.n == 1


def test_a_metric_of_the_run_can_be_compared_with_people(judged, tmp_path):
    """A listening test beside an objective metric: correlations make sense, and kappa does not."""
    place = judged("mine", {"judge": [1, 2, 3, 4, 5] * 8})
    rows = [(f"q{n}", "ann", n % 5 * 20) for n in range(40)]
    found = agreement(runs=place, human=write(tmp_path, rows), scale=(0, 100)).pair("ann", "judge").overall.coefficients
    assert found["spearman"].value == pytest.approx(1.0) and "different scales" in found["kappa_quadratic"].note


def test_a_mushra_test_has_the_scale_of_mushra(judged, tmp_path):
    place = judged("mine", {"judge": [1, 2, 3, 4, 5] * 8})
    rows = [(f"q{n}", "ann", n % 5 * 25, "mushra") for n in range(40)] + [("q0", "bob", 101, "mushra")]
    found = agreement(runs=place, human=write(tmp_path, rows, "id,rater,score,kind"))
    assert [(p["what"], p["rater"], p["count"]) for p in found.problems] == [(ratings.OUT_OF_RANGE, "bob", 1)]
    pair = found.pair("ann", "judge").overall.coefficients
    assert pair["kendall"].value == pytest.approx(1.0) and "0 to 100 and 0 to 5" in pair["exact"].note


def test_a_judge_whose_lower_ratings_are_better_prefers_the_lower(judged, tmp_path):
    for model, rating in (("good", 1), ("bad", 4)):
        judged("mine", {"judge": [rating] * 5}, model=model, higher=False)
    human = write(tmp_path, [(f"q{n}", "ann", "bad", "good", "B") for n in range(5)], "id,rater,system,other,score")
    assert agreement(runs=tmp_path / "runs", human=human).pairs[0].overall.coefficients["exact"].value == 1.0


def test_speakers_are_the_units(judged, rng):
    true = rng.uniform(0, 5, 120)
    verdicts = {"a": noisy(rng, true, 0.5), "b": noisy(rng, true, 0.5)}
    speakers = [f"s{n % 40}" for n in range(120)]
    assert agreement(runs=judged("mine", verdicts, speakers=speakers)).pairs[0].overall.units == 40


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judges": "nobody"}, "no judge in these runs called 'nobody'"),
        ({"metrics": "wer"}, "no metric in these runs called 'wer'"),
        ({"judges": "a"}, "not two raters to compare"),
        ({"kind": "stars"}, "no kind of rating called 'stars'"),
        ({"ties": "coin"}, "no rule for ties called 'coin'"),
        ({"ties": "equal"}, "is for preferences"),
        ({"scale": (5, 1)}, "expected the lower end first"),
        ({"human": "no.csv"}, "cannot be read"),
        ({"by": "colour"}, "colour"),
    ],
)
def test_what_a_caller_can_do_wrong_is_one_sentence(judged, options, said):
    place = judged("mine", {"a": [1, 2, 3], "b": [1, 2, 3]})
    with pytest.raises(UserError, match=said):
        agreement(runs=place, **options)


def test_a_person_who_is_called_like_a_judge_is_somebody_else(judged, tmp_path):
    place = judged("mine", {"ann": [1, 2, 3, 4]})
    found = agreement(runs=place, human=write(tmp_path, [(f"q{n}", "ann", 1) for n in range(4)]))
    (pair,) = found.pairs
    assert (pair.reference, pair.rater) == ("ann", "ann (judge)") and found.apart[0].ratings == {
        "ann": "1",
        "ann (judge)": "4",
    }


def test_nothing_is_written(judged):
    place = judged("mine", {"a": [1, 2, 3], "b": [1, 2, 3]})
    before = {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    with closing(open_run(place)) as run:
        agreement(runs=run)
    assert {path.name: path.stat().st_mtime_ns for path in place.iterdir()} == before


@pytest.mark.parametrize("people", [None, (1, 5)])
def test_a_metric_without_bounds_shares_no_scale_with_people(people, rng):
    """SI-SDR in dB next to votes: correlations only, whether or not the scale of the votes is known."""
    votes = rng.integers(1, 6, 40).astype(float)
    raters = [
        Rater("ann", "person", votes, {"data": people}),
        Rater("bob", "person", votes, {"data": people}),
        Rater("si_sdr", "metric", 3 * votes + rng.normal(0, 1, 40), {"data": None}),
    ]
    panel = Panel("rating", [Item("data", "m", f"q{n}") for n in range(40)], [f"q{n}" for n in range(40)], raters)
    for_metric = compare_raters(panel, raters[0], raters[2]).overall.coefficients
    assert for_metric["spearman"].value > 0.9
    assert all(for_metric[name].value is None for name in OF_RATINGS if name not in CORRELATIONS)
    assert compare_raters(panel, raters[0], raters[1]).overall.coefficients["kappa_quadratic"].value == 1
