"""The breakdown of one metric: laws of its parts, and a comparison with sacreBLEU and with a bootstrap of the test."""

from __future__ import annotations

import itertools
from contextlib import closing

import numpy as np
import pytest

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.report.answers import answer_notes
from codec_bench.stats import breakdown
from codec_bench.stats.answers import answers_of
from codec_bench.stats.breakdown import MAX_SUBSETS, MetricParts, folded, subsets_of
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.notes import too_few
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score

FACTS = {"unit": "", "higher_is_better": True, "protocol": "p"}
WORDS = "the a cat dog sat on mat under tree green old house and ran".split()


def parts_of(run, system, metric, aggregate):
    """The parts of a metric, whose aggregate the record holds."""
    assert run.metrics[metric]["aggregate"] == aggregate
    return breakdown.parts_of(RecordedRun(run), system, metric)


def write_run(folder, rows, aggregate="mean", order=None, subsets=None, languages=None, **facts) -> Run:
    """A run of {question id: score}, written in an order."""
    ids = list(rows)
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, {"m": {**FACTS, "aggregate": aggregate, **facts}}, ())
        for id in order or ids:
            number = ids.index(id)
            of = (subsets or {}).get(id, {})
            question = QuestionRecord(number, id, subsets=of, language=(languages or {}).get(id))
            writer.write_answers([(question, AnswerRecord("ok", text="x"))])
            writer.write_marked([(number, ItemRecord("model", id, "ok", None, {"m": rows[id]}))], {number: Reading()})
    return Run(folder)


def dropped(wrong, status="unparsed") -> Score:
    detail = {} if wrong is None else {"wrong": wrong}
    return Score(None, status, "because", "p", detail=detail)


@pytest.fixture
def rates(rng):
    """Forty error rates, a quarter of them without a value."""
    rows = {}
    for n in range(40):
        words = int(rng.integers(1, 30))
        errors = int(rng.integers(0, words + 3))
        ok = Score.ok(errors / words, "p", numerator=errors, denominator=words)
        rows[f"q{n:02d}"] = dropped([words, words]) if n % 4 == 0 else ok
    return rows


@pytest.fixture
def sentences(rng):
    """Sixty answers with references, of random words that partly agree."""
    pairs = []
    for _ in range(60):
        reference = [WORDS[k] for k in rng.integers(0, len(WORDS), int(rng.integers(5, 20)))]
        text = [w if rng.random() < 0.8 else WORDS[int(rng.integers(len(WORDS)))] for w in reference]
        pairs.append((" ".join(text[: int(rng.integers(4, 20))]), " ".join(reference)))
    return pairs


def bleu_rows(sentences):
    metric = load_answer_metric("bleu[13a]")
    scores = metric.compute([Answer(f"q{n:02d}", text, (ref,)) for n, (text, ref) in enumerate(sentences)])
    return {f"q{n:02d}": score for n, score in enumerate(scores)}


@pytest.mark.parametrize("aggregate", ["ratio", "bleu"])
def test_parts_that_are_merged_equal_the_whole(tmp_path, rates, sentences, aggregate):
    rows = rates if aggregate == "ratio" else bleu_rows(sentences)
    complete = parts_of(write_run(tmp_path / "whole", rows, aggregate), "model", "m", aggregate)
    names = list(rows)
    split = [
        parts_of(write_run(tmp_path / str(k), {n: rows[n] for n in names[k::3]}, aggregate), "model", "m", aggregate)
        for k in range(3)
    ]
    merged = np.concatenate([item.sums for item in split])
    assert folded(complete.fold, merged) == complete.value, "sums are of whole numbers, so to the last bit"
    assert sum(len(item.numbers) for item in split) == len(complete.numbers)
    assert sum(sum(item.missing.values()) for item in split) == sum(complete.missing.values())


def test_a_ratio_is_the_sum_of_errors_over_the_sum_of_words(tmp_path, rates):
    parts = parts_of(write_run(tmp_path, rates, "ratio"), "model", "m", "ratio")
    good = [score for score in rates.values() if score.status == "ok"]
    assert parts.value == sum(s.numerator for s in good) / sum(s.denominator for s in good)
    counting = parts.counting_failures().as_dict()
    bad = [score.detail["wrong"] for score in rates.values() if score.status != "ok"]
    assert counting["n"] == 40 and counting["uncounted"] == 0
    assert counting["value"] == (sum(s.numerator for s in good) + sum(w for w, _ in bad)) / (
        sum(s.denominator for s in good) + sum(w for _, w in bad)
    )


@pytest.mark.parametrize(
    ("metric", "aggregate"), [("bleu[13a]", "bleu"), ("accuracy[exact]", "mean"), ("wer[answer]", "ratio")]
)
def test_failures_counted_are_as_good_as_wrong_answers(tmp_path, sentences, metric, aggregate):
    """A run with n failures, failures counted, has the value of the run in which those n answered nothing."""
    built = load_answer_metric(metric)
    assert built.aggregate == aggregate
    answers = [Answer(f"q{n:02d}", text, (ref,), language="en") for n, (text, ref) in enumerate(sentences)]
    silent = [Answer(a.id, "" if n % 5 == 0 else a.text, a.references, language="en") for n, a in enumerate(answers)]
    as_wrong = dict(zip([a.id for a in answers], built.compute(silent)))
    failing = {}
    for n, answer in enumerate(answers):
        worst = built.worst(answer)
        counts = worst.detail.get("counts") or [worst.numerator, worst.denominator]
        failing[answer.id] = dropped(counts) if n % 5 == 0 else as_wrong[answer.id]
    expected = parts_of(write_run(tmp_path / "wrong", as_wrong, aggregate), "model", "m", aggregate)
    parts = parts_of(write_run(tmp_path / "failing", failing, aggregate), "model", "m", aggregate)
    counting = parts.counting_failures().as_dict()
    assert counting == {"value": pytest.approx(expected.value, rel=1e-12), "n": 60, "uncounted": 0}
    assert len(parts.numbers) == 48 and parts.missing == {"unparsed": 12}


def test_failures_whose_worst_nobody_knows_are_reported(tmp_path):
    rows = {
        "a": Score.ok(1.0, "p"),
        "b": dropped([0.0, 1.0]),
        "c": dropped(None, "failed"),
        "d": dropped(None, "undefined"),
    }
    counting = parts_of(write_run(tmp_path, rows), "model", "m", "mean").counting_failures().as_dict()
    assert counting == {"value": 0.5, "n": 2, "uncounted": 1}, "an undefined score is no failure"


def test_where_everything_failed_the_value_is_the_worst(tmp_path):
    rows = {"a": dropped([0.0, 1.0]), "b": dropped([0.0, 1.0], "failed")}
    parts = parts_of(write_run(tmp_path, rows), "model", "m", "mean")
    assert parts.value is None and parts.interval.ends is None
    assert parts.counting_failures().as_dict() == {"value": 0.0, "n": 2, "uncounted": 0}


@pytest.mark.parametrize("aggregate", ["mean", "ratio", "bleu"])
def test_a_run_in_which_nothing_can_count_has_no_value(tmp_path, aggregate):
    parts = parts_of(write_run(tmp_path, {"a": dropped(None), "b": dropped(None)}, aggregate), "model", "m", aggregate)
    assert parts.value is None and parts.interval.ends is None
    assert parts.counting_failures().as_dict() == {"value": None, "n": 0, "uncounted": 2}


def test_every_answer_of_a_corpus_metric_failed(tmp_path):
    wrong = [0, 7, 0, 0, 0, 0, 0, 0, 0, 0]
    parts = parts_of(write_run(tmp_path, {"a": dropped(wrong), "b": dropped(wrong)}, "bleu"), "model", "m", "bleu")
    assert parts.value is None
    assert parts.counting_failures().as_dict() == {"value": 0.0, "n": 2, "uncounted": 0}


def test_bleu_is_sacrebleus_and_its_interval_a_bootstrap_of_sentences(tmp_path, sentences):
    import sacrebleu

    parts = parts_of(write_run(tmp_path, bleu_rows(sentences), "bleu"), "model", "m", "bleu")
    text, expected = [s for s, _ in sentences], [r for _, r in sentences]
    value = sacrebleu.corpus_bleu(text, [expected]).score
    assert parts.value == pytest.approx(value, rel=1e-12)

    # An independent bootstrap: sacreBLEU itself counts each sentence once, and scores the sum of each draw.
    draw, drawn, bleu = np.random.default_rng(9), [], sacrebleu.BLEU()
    counts = np.array(bleu._extract_corpus_statistics(text, [expected]))
    for _ in range(600):
        places = draw.integers(60, size=60)
        drawn.append(bleu._compute_score_from_stats(counts[places].sum(axis=0).tolist()).score)
    low, high = np.quantile(drawn, [0.025, 0.975])
    result = parts.interval
    assert result.units == 60
    assert result.ends == pytest.approx([low, high], abs=0.12 * (high - low)) and result.method == "bootstrap"


def test_a_mean_has_the_interval_of_scipy(tmp_path, rng):
    import scipy.stats

    values = rng.normal(3, 1, 200)
    rows = {f"q{n:03d}": Score.ok(v, "p") for n, v in enumerate(values)}
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    result = parts_of(write_run(tmp_path, rows), "model", "m", "mean").interval
    assert result.ends == pytest.approx([theirs.low, theirs.high], rel=1e-12)


@pytest.mark.parametrize("aggregate", ["ratio", "bleu"])
def test_the_order_in_which_answers_came_does_not_matter(tmp_path, rates, sentences, rng, aggregate):
    rows = rates if aggregate == "ratio" else bleu_rows(sentences)
    straight = write_run(tmp_path / "a", rows, aggregate)
    mixed = write_run(tmp_path / "b", rows, aggregate, order=[list(rows)[k] for k in rng.permutation(len(rows))])
    renumbered = write_run(tmp_path / "c", dict(reversed(rows.items())), aggregate)
    one, two, three = (parts_of(run, "model", "m", aggregate) for run in (straight, mixed, renumbered))
    assert one.value == two.value == three.value
    assert one.counting_failures().as_dict() == two.counting_failures().as_dict() == three.counting_failures().as_dict()
    assert one.interval == two.interval == three.interval


def test_subsets_partition_the_whole(tmp_path, rates):
    levels = {id: {"level": f"A{n % 3}", "odd": str(n % 2)} for n, id in enumerate(rates)}
    run = write_run(tmp_path, rates, "ratio", subsets=levels, languages={id: "en" for id in rates}, bounds=[0.0, None])
    columns = subsets_of(run)
    assert set(columns) == {"level", "odd"}, "one language for all says nothing more"
    parts = parts_of(run, "model", "m", "ratio")
    rows = parts.by_subset(columns)
    at = dict(zip(parts.numbers, parts.sums))
    for column, values in columns.items():
        assert sorted(itertools.chain(*values.values())) == list(range(40))
        assert sum(row.n for row in rows[column].values()) == len(parts.numbers)
        assert sum(row.failed for row in rows[column].values()) == sum(parts.missing.values())
        summed = np.zeros(2)
        for name, numbers in values.items():
            within = np.sum([at[n] for n in numbers if n in at], axis=0)
            assert rows[column][name].value == within[0] / within[1]
            assert rows[column][name].ci95[0] <= rows[column][name].value <= rows[column][name].ci95[1]
            summed += within
        assert summed[0] / summed[1] == parts.value


def test_a_question_without_a_value_of_a_column_is_in_no_subset_of_it(tmp_path):
    rows = {id: Score.ok(n, "p") for n, id in enumerate("abc")}
    run = write_run(tmp_path, rows, subsets={"a": {"x": "1"}, "b": {"x": "2", "y": "only"}})
    assert subsets_of(run) == {"x": {"1": [0], "2": [1]}}


def test_languages_are_subsets_where_there_are_several(tmp_path):
    rows = {"a": Score.ok(1.0, "p"), "b": Score.ok(3.0, "p"), "c": dropped([0.0, 1.0])}
    run = write_run(tmp_path, rows, languages={"a": "en", "b": "zh", "c": "zh"})
    entry = summarise(run).as_dict()["systems"]["model"]["metrics"]["m"]
    note = too_few(1, 3, "interval")
    small = {"note": note, "note_code": note.as_dict()}
    counting = {"value": 1.5, "n": 2, "uncounted": 0}
    assert entry["subsets"]["language"] == {
        "en": {"value": 1.0, "ci95": None, **small, "n": 1, "failed": 0},
        "zh": {"value": 3.0, "ci95": None, **small, "n": 1, "failed": 1, "counting_failures": counting},
    }
    assert entry["counting_failures"] == {"value": pytest.approx(4 / 3), "n": 3, "uncounted": 0}
    assert (entry["value"], entry["n"], entry["failed"], entry["missing"]) == (2.0, 2, 1, {"unparsed": 1})


def test_a_column_of_names_is_no_subset(tmp_path):
    rows = {f"q{n}": Score.ok(0.0, "p") for n in range(MAX_SUBSETS + 1)}
    question_of = {id: {"id": id, "half": str(n % 2)} for n, id in enumerate(rows)}
    assert set(subsets_of(write_run(tmp_path, rows, subsets=question_of))) == {"half"}


def test_a_subset_in_which_all_failed_has_no_value():
    parts = MetricParts([0], np.asarray([[1.0, 1.0]]), [""], {}, FOLDS["bleu"], {"failed": 1})
    empty = parts.by_subset({"x": {"none": [1], "nobody": []}})["x"]
    assert (empty["none"].value, empty["none"].note.code, empty["none"].n, empty["none"].failed) == (
        None,
        "no_value",
        0,
        1,
    )
    assert (empty["nobody"].value, empty["nobody"].n, empty["nobody"].failed) == (None, 0, 0)


def answered(folder, *answers):
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.write_answers([(QuestionRecord(n, f"q{n}"), answer) for n, answer in enumerate(answers)])
    return answers_of(Run(folder)).as_dict()


def test_what_answering_took(tmp_path):
    seconds = [0.5, 1.5, 9.0]
    requests = [
        AnswerRecord("ok", text="x", usage={"output_tokens": 10, "cost_usd": 0.25}, latency_s=s) for s in seconds
    ]
    requests.append(
        AnswerRecord("ok", text="x", usage={"output_tokens": 5, "cost_usd": 9.0}, latency_s=None, cached=True)
    )
    requests.append(AnswerRecord("ok", text="x", usage={"output_tokens": 1, "cost_usd": 0.0}, first_s=0.25, cut_s=2.5))
    requests += [AnswerRecord("failed", "down"), AnswerRecord("refused", "no"), AnswerRecord("failed", "down")]
    took = answered(tmp_path, *requests)
    p50, p95 = np.percentile(seconds, [50, 95])
    assert took == {
        "asked": 8, "failed": {"failed": 2, "refused": 1}, "cached": 1,
        "cut": {"n": 1, "share": 1 / 8, "s": 2.5, "unheard": None},
        "too_long": {"n": 0, "share": 0.0}, "draws": 1, "judging": None, "choices": None,
        "usage": {"output_tokens": 36}, "cost_usd": 0.75, "latency_s": {"p50": p50, "p95": p95},
        "first_s": {"p50": 0.25, "p95": 0.25},
        "at_limit": {"n": 0, "share": 0.0}, "decoding": None, "asked_for": None, "served": [], "canary": None,
    }  # fmt: skip


def test_answers_that_still_hold_their_reasoning_are_counted_and_reported(tmp_path):
    with_it, without = AnswerRecord("ok", text="<think>one or two</think>two"), AnswerRecord("ok", text="I think two")
    took = answered(tmp_path, with_it, without, AnswerRecord("failed", "down"))
    assert took["with_reasoning"] == {"n": 1, "share": 1 / 3}
    (note,) = [one for one in answer_notes(answers_of(Run(tmp_path))) if "reasoning" in one]
    assert note.startswith("1 answers (33.3 %)")


def test_a_cost_that_is_not_known_of_all_is_not_known(tmp_path):
    priced, unpriced = AnswerRecord("ok", text="x", usage={"cost_usd": 0.5}), AnswerRecord("ok", text="x")
    assert answered(tmp_path / "a", priced, unpriced)["cost_usd"] is None
    ranged = AnswerRecord("ok", text="x", usage={"cost_usd": 0.5, "cost_unsure_usd": 0.25})
    took = answered(tmp_path / "e", priced, ranged)
    assert (took["cost_usd"], took["cost_range_usd"], took["usage"]) == (None, [0.75, 1.0], {})
    assert answered(tmp_path / "b", priced, AnswerRecord("failed", "down"))["cost_usd"] == 0.5
    assert answered(tmp_path / "c")["cut"] == {"n": 0, "share": 0.0, "s": 0.0, "unheard": None}
    details = [
        AnswerRecord("ok", text="x", sound_s=s, cut_s=cut) for s, cut in ((40.0, 10.0), (20.0, 0.0), (20.0, 10.0))
    ]
    unknown = AnswerRecord("ok", text="x", cut_s=7.0)
    assert answered(tmp_path / "d", *details, unknown)["cut"]["unheard"] == 20 / 80
