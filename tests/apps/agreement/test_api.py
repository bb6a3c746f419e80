"""Agreement of judges and people over records of the test: the studies of AudioBench and AIR-Bench in their shape."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from judged_runs import judged_run
from refusals import refuses
from scipy import stats

from codec_bench import agreement
from codec_bench.apps.agreement import ratings
from codec_bench.apps.agreement.coefficients import CORRELATIONS, OF_RATINGS
from codec_bench.apps.agreement.panel import MIXED, OF_MEAN, Panel, Rater, compare_raters
from codec_bench.apps.agreement.raters import READ, RatedItem
from codec_bench.messages import Diagnostic
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
            verdicts = {judge: [float(v >= 3) for v in options] for judge, options in verdicts.items()}
        held[name] = (verdicts, judged(name, verdicts, scale=scale))
    outcome = agreement(
        runs=[position for _, position in held.values()], judges="gpt-4,prometheus-2,llama-3-8b,llama-3-70b"
    )
    assert [(p.reference, p.rater) for p in outcome.pairs] == [
        ("gpt-4", n) for n in ("prometheus-2", "llama-3-8b", "llama-3-70b")
    ]
    for pair in outcome.pairs:
        for name, (verdicts, _) in held.items():
            mine = pair.subsets["benchmark"][name]
            theirs = stats.spearmanr(verdicts["gpt-4"], verdicts[pair.rater]).statistic
            assert mine.coefficients["spearman"].value == pytest.approx(theirs, abs=1e-12)
            assert mine.coefficients["spearman"].low < theirs < mine.coefficients["spearman"].high
        assert pair.overall.n == 290 and {c.note for c in pair.overall.coefficients.values()} == {MIXED}
    best = [
        outcome.pair("gpt-4", n).subsets["benchmark"]["clotho-aqa"].coefficients["spearman"].value
        for n in ("llama-3-70b", "llama-3-8b")
    ]
    assert best[0] > 0.85 > best[1], "the judge that is nearer to the reference agrees better with it"
    json.dumps(outcome.as_dict(), allow_nan=False)


def test_judges_of_different_runs_are_matched_by_item(judged, rng):
    true = rng.uniform(0, 5, 40)
    a, b = noisy(rng, true, 0.5), noisy(rng, true, 0.5)
    b[7] = None
    folders = [judged("mine", {"a": a}, folder="one"), judged("mine", {"b": b}, folder="two")]
    outcome = agreement(runs=folders).pair("a", "b")
    both = [n for n in range(40) if n != 7]
    assert outcome.overall.n == 39
    assert outcome.overall.coefficients["kendall"].value == pytest.approx(
        stats.kendalltau([a[n] for n in both], [b[n] for n in both]).statistic
    )
    complete = agreement(runs=folders)
    assert [dict(rater.missing) for rater in complete.raters] == [{}, {"unparsed": 1}]
    gap = max(abs(a[n] - b[n]) for n in both)
    assert complete.apart[0].gap == gap and set(complete.apart[0].ratings) == {"a", "b"}
    assert sum(map(sum, outcome.confusion.counts)) == 39


def test_ratings_of_people_stand_next_to_a_judge(judged, tmp_path, rng):
    true = rng.uniform(0, 5, 50)
    judge = noisy(rng, true, 0.6)
    position = judged("mine", {"judge": judge}, subset=lambda n: "odd" if n % 2 else "even")
    people = {name: noisy(rng, true, 0.6) for name in ("ann", "bob", "cem")}
    rows = [(f"q{n}", name, people[name][n]) for name in people for n in range(50)]
    outcome = agreement(runs=position, human=write(tmp_path, rows))
    assert outcome.kind == "rating" and outcome.items == 50 and outcome.problems == ()
    mean = np.mean([people[name] for name in people], axis=0)
    pair = outcome.pair("mean of 3 raters", "judge").overall.coefficients
    assert pair["spearman"].value == pytest.approx(stats.spearmanr(mean, judge).statistic, abs=1e-12)
    assert (pair["exact"].value, pair["exact"].note) == (None, OF_MEAN) and pair["kappa_quadratic"].value is not None
    alone = outcome.pair("bob", "judge")
    assert alone.overall.coefficients["exact"].value == pytest.approx(np.mean(np.equal(people["bob"], judge)))
    assert {name: item.n for name, item in alone.subsets["part"].items()} == {"even": 25, "odd": 25}
    assert outcome.pair("ann", "cem").overall.n == 50, (
        "how well people agree with each other bounds what a judge can do"
    )


def test_air_bench_foundations_protocol(judged, tmp_path, rng):
    """Three raters choose the option that is closest to an answer; the reading of the run is compared with them."""
    options = ("a dog", "a cat", "rain", "wind")
    read = [None if n == 3 else "ABCD"[n % 4] for n in range(40)]
    position = judged("foundation", {}, parsed=read, choices=options)
    rows = []
    for rater, wrong in (("ann", (5,)), ("bob", (5, 9)), ("cem", (11,))):
        for n in range(40):
            right = n % 4
            chosen = (right + 1) % 4 if n in wrong else right
            rows.append((f"q{n}", rater, options[chosen] if rater == "bob" else "abcd"[chosen]))
    outcome = agreement(runs=position, human=write(tmp_path, rows))
    assert outcome.kind == "option" and outcome.pair("majority of 3 raters", READ).overall.n == 39
    exact = lambda rater: outcome.pair(rater, READ).overall.coefficients["exact"].value  # noqa: E731
    assert exact("majority of 3 raters") == pytest.approx(38 / 39), "question 5 alone, where two are wrong alike"
    assert [exact(n) for n in ("ann", "bob", "cem")] == pytest.approx([38 / 39, 37 / 39, 38 / 39])
    (run,) = (rater for rater in outcome.raters if rater.name == READ)
    assert dict(run.missing) == {"no option could be read": 1}
    assert outcome.apart[0].item == RatedItem("foundation", "m", "q5") and outcome.apart[0].ratings[READ] == "B"


def test_the_judge_that_aligns_answers_is_compared_too(judged, tmp_path):
    """AIR-Bench's table: the aligner beside people. It reads what the rule did not, and errs on question 2."""
    aligned = ["A", "B", "A", "D", ""]
    position = judged(
        "foundation", {"gpt-4": aligned}, parsed=["A", None, "C", "D", "A"], choices=("a dog", "a cat", "rain", "wind")
    )
    human = write(tmp_path, [(f"q{n}", rater, "ABCDA"[n]) for n in range(5) for rater in ("ann", "bob", "cem")])
    outcome = agreement(runs=position, human=human)
    pairs = {name: outcome.pair("majority of 3 raters", name).overall for name in ("gpt-4", READ)}
    assert [(pair.n, pair.coefficients["exact"].value) for pair in pairs.values()] == [(4, 0.75), (4, 1.0)]
    assert outcome.apart[0].ratings["gpt-4"] == "A" and outcome.apart[0].item.id == "q2"


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
                    text = {1: "A", 0: "tie", -1: "B"}[vote]
                    turned = {1: "B", 0: "tie", -1: "A"}[vote]
                    rows.append(
                        (f"q{n}", rater, second, first, turned)
                        if rater == "bob"
                        else (f"q{n}", rater, first, second, text)
                    )
    return tmp_path / "runs", write(tmp_path, rows, "id,rater,system,other,score"), scores


def test_air_bench_chats_protocol(chat):
    folder, human, _ = chat
    outcome = agreement(runs=folder, human=human)
    assert outcome.kind == "preference" and outcome.items == 180
    pair = outcome.pair("majority of 3 raters", "gpt-4")
    assert len(pair.subsets["pair"]) == 6 and all(item.n <= 30 for item in pair.subsets["pair"].values())
    assert all(item.coefficients["exact"].value > 0.7 for item in pair.subsets["pair"].values())
    assert pair.overall.units == 30, "the six pairs of one question are not independent"
    assert outcome.pair("bob", "gpt-4").overall.coefficients["exact"].value > 0.85, (
        "the order of the two systems does not matter"
    )
    assert set(pair.confusion.rows) == {"first", "equal", "second"}


def test_the_paper_leaves_ties_open_and_each_rule_has_a_name(chat):
    folder, human, _ = chat
    by_rule = {rule: agreement(runs=folder, human=human, ties=rule) for rule in ("left-out", "any", "equal")}
    counts = {rule: by_name.pair("majority of 3 raters", "gpt-4").overall.n for rule, by_name in by_rule.items()}
    assert counts["any"] == counts["equal"] == 180 and counts["left-out"] <= 180
    shares = {
        rule: by_name.pair("majority of 3 raters", "gpt-4").overall.coefficients["exact"].value
        for rule, by_name in by_rule.items()
    }
    assert shares["any"] >= shares["equal"]
    near = agreement(runs=folder, human=human, equal_within=9.0).pair("majority of 3 raters", "gpt-4")
    assert near.confusion.columns == ("equal",), "scores that differ by no more than 9 prefer nobody"


def test_whatever_is_wrong_with_a_file_is_counted(judged, tmp_path):
    position = judged("mine", {"judge": [1, 2, 3, 4, None]})
    rows = [
        ("q0", "ann", 1),
        ("q0", "ann", 4),
        ("q1", "ann", 2),
        ("q2", "ann", 7),
        ("q9", "ann", 1),
        ("q3", "ann", ""),
        ("q4", "ann", 3),
    ]
    outcome = agreement(runs=position, human=write(tmp_path, [*rows, ("q1", "bob", 2)]))
    assert {(p["what"], p["rater"]): p["count"] for p in outcome.problems} == {
        (ratings.EMPTY, "ann"): 1, (ratings.OUT_OF_RANGE, "ann"): 1, (ratings.TWICE, "ann"): 2,
        (ratings.UNKNOWN_ID, "ann"): 1,
    }  # fmt: skip
    assert {rater.name: dict(rater.missing) for rater in outcome.raters} == {
        "ann": {}, "bob": {"not rated": 1}, "judge": {"unparsed": 1}, "mean of 2 raters": {},
        "majority of 2 raters": {},
    }  # fmt: skip
    complete = outcome.pair("ann", "judge").overall
    assert complete.n == 1 and all(complete.coefficients[name].low is None for name in OF_RATINGS)
    assert all(c.note for c in complete.coefficients.values()), "each says why it has no interval"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("q0,ann,opus,mine,1", ratings.UNKNOWN_SYSTEM),
        ("q0,ann,m,,1", ratings.UNCLEAR),
        ("q0,ann,m,other,1", ratings.UNKNOWN_ID),
        ("q9,ann,m,mine,1", ratings.UNKNOWN_ID),
    ],
)
def test_a_rating_that_cannot_be_placed_is_counted(judged, tmp_path, row, kind):
    folders = [judged("mine", {"judge": [1, 2, 3]}), judged("yours", {"judge": [1, 2, 3]})]
    file = write(tmp_path, [row.split(","), ("q0", "bob", "", "mine", 2)], "id,rater,system,benchmark,score")
    outcome = agreement(runs=folders, human=file)
    assert [(p["what"], p["rater"], p["count"]) for p in outcome.problems] == [(kind, "ann", 1)]
    assert outcome.pair("bob", "judge").overall.n == 1


def test_a_metric_of_the_run_can_be_compared_with_people(judged, tmp_path):
    """A listening test beside an objective metric: correlations make sense, and kappa does not."""
    position = judged("mine", {"judge": [1, 2, 3, 4, 5] * 8})
    rows = [(f"q{n}", "ann", n % 5 * 20) for n in range(40)]
    outcome = (
        agreement(runs=position, human=write(tmp_path, rows), scale=(0, 100)).pair("ann", "judge").overall.coefficients
    )
    assert (
        outcome["spearman"].value == pytest.approx(1.0) and outcome["kappa_quadratic"].note.code == "raters_of_scales"
    )


def test_a_mushra_test_has_the_scale_of_mushra(judged, tmp_path):
    position = judged("mine", {"judge": [1, 2, 3, 4, 5] * 8})
    rows = [(f"q{n}", "ann", n % 5 * 25, "mushra") for n in range(40)] + [("q0", "bob", 101, "mushra")]
    outcome = agreement(runs=position, human=write(tmp_path, rows, "id,rater,score,kind"))
    assert [(p["what"], p["rater"], p["count"]) for p in outcome.problems] == [(ratings.OUT_OF_RANGE, "bob", 1)]
    pair = outcome.pair("ann", "judge").overall.coefficients
    assert pair["kendall"].value == pytest.approx(1.0) and pair["exact"].note == Diagnostic(
        "raters_of_scales", first="0 to 100", second="0 to 5"
    )


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
    ("options", "message"),
    [
        ({"judges": "nobody"}, {"code": "unknown_name", "kind": "judge_of_runs", "name": "nobody"}),
        ({"metrics": "wer"}, {"code": "unknown_name", "kind": "metric_of_runs", "name": "wer"}),
        ({"judges": "a"}, {"code": "too_few_raters"}),
        ({"kind": "stars"}, {"code": "unknown_name", "kind": "rating_kind", "name": "stars"}),
        ({"ties": "coin"}, {"code": "unknown_name", "kind": "tie_rule", "name": "coin"}),
        ({"ties": "equal"}, {"code": "ties_of_preferences"}),
        ({"scale": (5, 1)}, {"code": "scale_reversed"}),
        ({"human": "no.csv"}, {"code": "file_not_readable"}),
        (
            {"by": "colour"},
            {"code": "no_column_to_group_by", "name": "colour"},
        ),
    ],
)
def test_what_a_caller_can_do_wrong_is_one_sentence(judged, options, message):
    position = judged("mine", {"a": [1, 2, 3], "b": [1, 2, 3]})
    with refuses(**message):
        agreement(runs=position, **options)


def test_a_person_who_is_called_like_a_judge_is_somebody_else(judged, tmp_path):
    position = judged("mine", {"ann": [1, 2, 3, 4]})
    outcome = agreement(runs=position, human=write(tmp_path, [(f"q{n}", "ann", 1) for n in range(4)]))
    (pair,) = outcome.pairs
    assert (pair.reference, pair.rater) == ("ann", "ann (judge)") and outcome.apart[0].ratings == {
        "ann": "1",
        "ann (judge)": "4",
    }


def test_nothing_is_written(judged):
    position = judged("mine", {"a": [1, 2, 3], "b": [1, 2, 3]})
    before = {path.name: path.stat().st_mtime_ns for path in position.iterdir()}
    with closing(open_run(position)) as run:
        agreement(runs=run)
    assert {path.name: path.stat().st_mtime_ns for path in position.iterdir()} == before


@pytest.mark.parametrize("people", [None, (1, 5)])
def test_a_metric_without_bounds_shares_no_scale_with_people(people, rng):
    """SI-SDR in dB next to votes: correlations only, whether or not the scale of the votes is known."""
    votes = rng.integers(1, 6, 40).astype(float)
    raters = [
        Rater("ann", "person", votes, {"data": people}),
        Rater("bob", "person", votes, {"data": people}),
        Rater("si_sdr", "metric", 3 * votes + rng.normal(0, 1, 40), {"data": None}),
    ]
    panel = Panel("rating", [RatedItem("data", "m", f"q{n}") for n in range(40)], [f"q{n}" for n in range(40)], raters)
    for_metric = compare_raters(panel, raters[0], raters[2]).overall.coefficients
    assert for_metric["spearman"].value > 0.9
    assert all(for_metric[name].value is None for name in OF_RATINGS if name not in CORRELATIONS)
    assert compare_raters(panel, raters[0], raters[1]).overall.coefficients["kappa_quadratic"].value == 1
