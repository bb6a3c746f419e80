"""The summary of a run against hand counts, scipy and the laws that it states."""

from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest

import codec_bench
from codec_bench.audio.level_checks import SILENT
from codec_bench.messages import Diagnostic
from codec_bench.report.numbers import interval_notes
from codec_bench.stats.notes import Note
from codec_bench.stats.summary import MAX_REASONS, summarise
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.statuses import WITHOUT_VALUE
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score, Status

FACTS = {
    "wer": {"unit": "", "higher_is_better": False, "protocol": "wer/p", "aggregate": "ratio", "bounds": [0, None]},
    "stoi": {"unit": "", "higher_is_better": True, "protocol": "stoi/p", "aggregate": "mean"},
    "bitrate": {"unit": "bit/s", "higher_is_better": False, "protocol": "bitrate/p", "aggregate": "ratio"},
}


def test_every_status_stands_in_one_group():
    """What a status has no group for is neither counted, nor coloured, nor in order."""
    assert sorted(WITHOUT_VALUE) == sorted([*set(get_args(Status)) - {"ok"}, "no_estimate", "not_scored"])


def test_what_could_not_be_read_counts_as_failed_in_the_record_and_in_the_summary(tmp_path):
    scores = [Score.unparsed("no letter", "stoi/p"), Score.undefined("too short", "stoi/p"), Score.ok(1.0, "stoi/p")]
    run = write_run(tmp_path / "run", {"codec": {str(n): dict.fromkeys(FACTS, one) for n, one in enumerate(scores)}})
    assert run.counts()["failed_scores"] == summarise(run).failures.scores == len(FACTS)


def write_run(folder, rows, systems=("codec",), speakers=None, **meta) -> Run:
    """Writes a run of {system: {sample id: scores by metric, or the reason why there is no estimate}}."""
    ids = list(dict.fromkeys(i for items in rows.values() for i in items))
    writer = RunWriter(folder, {"of": "a test"})
    writer.begin({name: {} for name in systems}, FACTS, [Sample(i, None, speaker=(speakers or {}).get(i)) for i in ids])
    writer.set_meta(**{"config": {"seed": 3}, **meta})
    for system, items in rows.items():
        for i, scores in items.items():
            dropped = isinstance(scores, str)
            record = ItemRecord(
                system, i, "failed" if dropped else "ok", scores if dropped else None, {} if dropped else scores
            )
            writer.write([(ids.index(i), record)])
    writer.close()
    return Run(folder)


def errors(wrong: float, words: float) -> Score:
    return Score.ok(wrong / words, "wer/p", numerator=wrong, denominator=words)


STATUSES = (Score.undefined, Score.failed, Score.refused)


@pytest.fixture
def mixed_rows(rng):
    """Three systems over forty samples with every kind of missing value, by seeded chance."""

    def score(protocol):
        draw = rng.random()
        if draw < 0.2:
            return STATUSES[rng.integers(3)](f"because of {rng.integers(100)}", protocol)
        return Score(None, "unparsed", "not a number", protocol) if draw < 0.25 else Score.ok(rng.random(), protocol)

    rows = {
        name: {
            f"s{n:02d}": f"gave up after {n} packets" if rng.random() < 0.15 else {m: score("p") for m in FACTS}
            for n in range(40)
        }
        for name in ("a", "b")
    }
    rows["nothing works"] = {f"s{n:02d}": "no device" for n in range(40)}
    return rows


def test_every_sample_is_counted_once_for_every_system_and_metric(tmp_path, mixed_rows):
    summary = summarise(write_run(tmp_path / "run", mixed_rows, systems=mixed_rows)).as_dict()
    assert list(summary["systems"]) == list(mixed_rows)
    for name, system in summary["systems"].items():
        assert list(system["metrics"]) == list(FACTS)
        for metric, entry in system["metrics"].items():
            text = [v if isinstance(v, str) else v[metric].status for v in mixed_rows[name].values()]
            assert entry["n"] == text.count("ok")
            assert entry["n"] + entry["failed"] == 40
            assert sum(entry["missing"].values()) == entry["failed"]
            for status in ("undefined", "failed", "refused", "unparsed"):
                assert entry["missing"].get(status, 0) == text.count(status)
            assert (entry["value"] is None) == (entry["n"] == 0)
            if entry["ci95"]:
                assert entry["ci95"][0] <= entry["value"] <= entry["ci95"][1]
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_values_are_those_computed_by_hand(tmp_path):
    rows = {
        "codec": {
            "a": {"wer": errors(1, 10), "stoi": Score.ok(0.9, "p"), "bitrate": errors(6000, 2)},
            "b": {"wer": errors(3, 2), "stoi": Score.ok(0.8, "p"), "bitrate": errors(6000, 1)},
            "c": {"wer": errors(0, 8), "stoi": Score.undefined("too short", "p"), "bitrate": errors(3000, 1)},
            "d": "the encoder gave up",
        },
        "whole": {sample: {"wer": errors(1, 10)} for sample in "abcd"},
    }
    timings = {name: {"encode_s": 2.0, "times_real_time": 12.0} for name in rows}
    run = write_run(tmp_path / "run", rows, systems=tuple(rows), timings={"systems": timings})
    systems = summarise(run).as_dict()["systems"]
    codec = systems["codec"]
    wer, stoi = codec["metrics"]["wer"], codec["metrics"]["stoi"]
    assert wer["value"] == pytest.approx(4 / 20, rel=1e-12)  # not the mean of 0.1, 1.5 and 0
    assert (wer["n"], wer["failed"], wer["missing"]) == (3, 1, {"no_estimate": 1})
    assert stoi["value"] == pytest.approx(0.85, rel=1e-12)
    assert (stoi["n"], stoi["failed"], stoi["missing"]) == (2, 2, {"no_estimate": 1, "undefined": 1})
    assert (stoi["protocol"], stoi["higher_is_better"], stoi["unit"]) == ("stoi/p", True, "")
    assert codec["bitrate_bps"]["value"] == pytest.approx(15000 / 4, rel=1e-12)
    assert codec["bitrate_bps"] == codec["metrics"]["bitrate"]
    assert systems["whole"]["timing"] == {"encode_s": 2.0, "times_real_time": 12.0}
    assert codec["timing"] == {"encode_s": 2.0, "times_real_time": None}, "a codec that failed on an item has no speed"


def test_words_among_no_words_are_errors_and_alone_they_are_no_rate(tmp_path):
    silent = Score.ok(3, "wer/p", numerator=3, denominator=0, detail={"flag": "words heard"})
    rows = {
        "both": {"a": {"wer": errors(1, 4)}, "b": {"wer": silent}, "c": {"wer": errors(0, 4)}},
        "silence": {name: {"wer": silent} for name in "abc"},
    }
    summary = summarise(write_run(tmp_path / "run", rows, systems=rows)).as_dict()
    both, silence = (summary["systems"][name]["metrics"]["wer"] for name in rows)
    assert (both["value"], both["n"], both["failed"]) == (4 / 8, 3, 0)
    assert (silence["value"], silence["ci95"], silence["n"], silence["failed"]) == (None, None, 3, 0)
    assert silence["note_code"] == {"code": "zero_denominator"}
    flagged = {row["system"]: row["count"] for row in summary["failures"]["reasons"] if row["status"] == "flagged"}
    assert flagged == {"both": 1, "silence": 3}
    entries = [(name, "wer", summary["systems"][name]["metrics"]["wer"]) for name in rows]
    assert f"no value (wer of silence): {Note('zero_denominator')}" in interval_notes(
        (s, m, MetricSummary.from_dict(e)) for s, m, e in entries
    )


def test_an_error_rate_stands_next_to_the_one_without_items_above_half(tmp_path):
    counts = {"lost": (10, 10), "looped": (24, 8), "half": (5, 10), "good": (1, 20), "fine": (0, 12), "silent": (2, 0)}
    rows = {"codec": {name: {"wer": errors(*of)} for name, of in counts.items() if of[1]}}
    rows["codec"]["silent"] = {"wer": Score.ok(2.0, "wer/p", numerator=2.0, denominator=0.0)}
    result = summarise(write_run(tmp_path / "run", rows)).systems["codec"].metrics["wer"].below_50
    assert (result.value, result.n, result.above) == (6 / 42, 3, 3)
    low, high = codec_bench.interval([5, 1, 0], denominators=[10, 20, 12]).ends
    assert result.ci95 == pytest.approx([low, min(high, 0.5)]), "no item is above half"
    fine = {"codec": {name: {"wer": errors(*counts[name])} for name in ("half", "good", "fine")}}
    entry = summarise(write_run(tmp_path / "fine", fine)).systems["codec"].metrics["wer"]
    assert not entry.below_50 and "below_50" not in entry.as_dict()


def test_the_interval_is_that_of_the_public_function(tmp_path, rng):
    wrong, words = rng.poisson(1.2, 80).astype(float), rng.integers(4, 14, 80).astype(float)
    rows = {"codec": {f"s{n:02d}": {"wer": errors(w, m)} for n, (w, m) in enumerate(zip(wrong, words))}}
    entry = summarise(write_run(tmp_path / "run", rows)).as_dict()["systems"]["codec"]["metrics"]["wer"]
    public = codec_bench.interval(wrong, denominators=words)
    assert entry["ci95"] == public.ends and entry["method"] == public.method == "t"
    assert (entry["note"], entry["units"]) == (public.note, 80)


def test_speakers_are_the_units(tmp_path, rng):
    # Ten speakers that differ, whose utterances hardly do: what is not known is the speakers' mean.
    half = rng.normal(0, 0.1, 5)
    means = np.repeat(0.8 + np.concatenate([half, -half]), 12)  # not skewed
    ids = [f"s{n:03d}" for n in range(120)]
    rows = {"codec": {i: {"stoi": Score.ok(m + rng.normal(0, 0.001), "p")} for i, m in zip(ids, means)}}
    known = {i: f"speaker {n // 12}" for n, i in enumerate(ids)}

    def width(name, speakers):
        low, high = summarise(write_run(tmp_path / name, rows, speakers=speakers)).as_dict()["systems"]["codec"][
            "metrics"
        ]["stoi"]["ci95"]
        return high - low

    by_speaker, by_item = width("known", known), width("unknown", None)
    assert by_speaker == pytest.approx(2 * 2.262 * means[::12].std(ddof=1) / np.sqrt(10), rel=0.02)
    assert by_item == pytest.approx(2 * 1.96 * means.std() / np.sqrt(120), rel=0.15)
    # Of one or two speakers nothing is known of how speakers differ.
    for count in (1, 2):
        small = {i: f"speaker {n % count}" for n, i in enumerate(ids)}
        entry = summarise(write_run(tmp_path / f"few {count}", rows, speakers=small)).as_dict()["systems"]["codec"][
            "metrics"
        ]["stoi"]
        assert entry["ci95"] is None and entry["value"] is not None and entry["units"] == count
        assert entry["note_code"]["code"] == "too_few_units" and entry["note_code"]["needed"] == 3


def test_the_order_of_the_samples_changes_nothing(tmp_path, rng):
    scores = {f"s{n:02d}": {"wer": errors(n % 3, 7 + n % 5), "stoi": Score.ok(rng.random(), "p")} for n in range(40)}
    speakers = {i: f"speaker {n % 6}" for n, i in enumerate(scores)}
    shuffled = {i: scores[i] for i in rng.permutation(list(scores))}
    one = summarise(write_run(tmp_path / "one", {"codec": scores}, speakers=speakers)).as_dict()
    other = summarise(write_run(tmp_path / "other", {"codec": shuffled}, speakers=speakers)).as_dict()
    assert one["systems"] == other["systems"]


def test_parts_add_up_to_the_whole(tmp_path):
    scores = {f"s{n:02d}": {"wer": errors(n % 4, 5 + n % 7)} for n in range(30)}
    parts = [dict(list(scores.items())[:11]), dict(list(scores.items())[11:])]
    complete = summarise(write_run(tmp_path / "whole", {"codec": scores})).as_dict()["systems"]["codec"]["metrics"][
        "wer"
    ]
    sums = [write_run(tmp_path / f"{n}", {"codec": item}).columns("codec", "wer") for n, item in enumerate(parts)]
    assert complete["value"] == pytest.approx(
        sum(sum(numerators) for _, numerators, *_ in sums) / sum(sum(below) for _, _, below, *_ in sums), rel=1e-12
    )
    assert complete["n"] == sum(len(numbers) for numbers, *_ in sums)


def test_a_run_in_progress_counts_what_is_finished(tmp_path, mixed_rows):
    rows = {"a": dict(list(mixed_rows["a"].items())[:25]), "b": dict(list(mixed_rows["b"].items())[:7]), "nothing": {}}
    summary = summarise(write_run(tmp_path / "run", rows, systems=rows, state="running")).as_dict()
    for name, system in summary["systems"].items():
        for entry in system["metrics"].values():
            assert entry["n"] + entry["failed"] == len(rows[name])


def test_a_score_that_is_not_in_the_record_is_reported(tmp_path):
    rows = {"codec": {"a": {"wer": errors(0, 3), "stoi": Score.ok(1.0, "p")}, "b": {"wer": errors(1, 3)}}}
    summary = summarise(write_run(tmp_path / "run", rows)).as_dict()
    assert summary["systems"]["codec"]["metrics"]["stoi"]["missing"] == {"not_scored": 1}
    assert summary["failures"]["scores"] == 1 + 2  # two items have no bitrate either


def test_items_without_an_estimate_are_counted_once_whether_scored_or_not(tmp_path):
    """Of five items one is scored, two lost their scores, and two had no estimate, of which one has a score that says
    so.
    """
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"codec": {}}, {"stoi": FACTS["stoi"]}, [Sample(i, None) for i in "abcde"])
    failed = Score.failed("there is no estimate", "p")
    for number, (i, status, scores) in enumerate(
        (
            ("a", "ok", {"stoi": Score.ok(0.5, "p")}),
            ("b", "ok", {}),
            ("c", "failed", {"stoi": failed}),
            ("d", "failed", {}),
            ("e", "ok", {}),
        )
    ):
        writer.write([(number, ItemRecord("codec", i, status, None if status == "ok" else "gave up", scores))])
    writer.close()
    summary = summarise(Run(tmp_path / "run")).as_dict()
    entry = summary["systems"]["codec"]["metrics"]["stoi"]
    assert (entry["n"], entry["failed"], entry["missing"]) == (1, 4, {"no_estimate": 2, "not_scored": 2})
    assert list(entry["missing"]) == ["no_estimate", "not_scored"]
    assert (summary["failures"]["items"], summary["failures"]["scores"]) == (2, 2)
    assert [(r["metric"], r["status"], r["count"]) for r in summary["failures"]["reasons"]] == [
        (None, "failed", 2), ("stoi", "not_scored", 2),
    ]  # fmt: skip


def test_systems_are_compared_over_the_samples_that_all_have(tmp_path):
    stoi = lambda value: {"stoi": Score.ok(value, "p")}  # noqa: E731
    rows = {
        "careful": {f"s{n}": stoi(0.9 if n < 18 else 0.1) for n in range(20)},
        "fails on hard ones": {f"s{n}": stoi(0.85) if n < 18 else "gave up" for n in range(20)},
        "never works": {f"s{n}": "no device" for n in range(20)},
    }
    systems = summarise(write_run(tmp_path / "run", rows, systems=rows)).as_dict()["systems"]
    careful, fails, never = (systems[name]["metrics"]["stoi"] for name in rows)
    assert careful["value"] < fails["value"], "over its own samples the system that fails looks better"
    assert careful["common"]["value"] == pytest.approx(0.9) and careful["common"]["n"] == 18
    assert fails["common"] is None, "it has the common samples and no others"
    assert never["common"] is None
    apart = {"a": {"s0": stoi(0.5), "s1": "lost"}, "b": {"s0": "lost", "s1": stoi(0.6)}}
    for system in summarise(write_run(tmp_path / "apart", apart, systems=apart)).as_dict()["systems"].values():
        assert system["metrics"]["stoi"]["common"]["n"] == 0 and system["metrics"]["stoi"]["common"]["value"] is None


def test_failures_count_as_what_the_record_says(tmp_path):
    failed = Score.failed("gave up", "p").counting_wrong(Score.ok(-1.0, "p"))
    rows = {"codec": {"a": {"stoi": Score.ok(0.8, "p")}, "b": {"stoi": failed}, "c": {"stoi": Score.failed("x", "p")}}}
    entry = summarise(write_run(tmp_path / "run", rows)).as_dict()["systems"]["codec"]["metrics"]["stoi"]
    assert (entry["value"], entry["n"]) == (0.8, 1)
    assert entry["counting_failures"] == {"value": pytest.approx(-0.1), "n": 2, "uncounted": 1}


def test_reasons_are_grouped_and_complete(tmp_path, mixed_rows):
    failures = summarise(write_run(tmp_path / "run", mixed_rows, systems=mixed_rows)).as_dict()["failures"]
    dropped = [v for items in mixed_rows.values() for v in items.values() if isinstance(v, str)]
    scores = [s for items in mixed_rows.values() for v in items.values() if not isinstance(v, str) for s in v.values()]
    of_items = [r for r in failures["reasons"] if r["metric"] is None]
    assert sum(r["count"] for r in of_items) == failures["items"] == len(dropped)
    assert {r["reason"] for r in of_items} == {"gave up after … packets", "no device"}
    for status in ("undefined", "failed", "refused", "unparsed"):
        counted = sum(r["count"] for r in failures["reasons"] if r["metric"] and r["status"] == status)
        assert counted == sum(s.status == status for s in scores)
    # Undefined and refused scores are not failures.
    assert failures["scores"] == sum(s.status in ("failed", "unparsed") for s in scores)
    for row in failures["reasons"]:
        text = mixed_rows[row["system"]][row["example"]]
        assert (text if row["metric"] is None else text[row["metric"]].reason).split()[0] == row["reason"].split()[0]


def test_estimates_of_digital_silence_are_counted(tmp_path):
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"quiet": {}, "codec": {}}, {"stoi": FACTS["stoi"]}, [Sample(i, None) for i in "abc"])
    for number, (i, notes) in enumerate((("a", (SILENT,)), ("b", ("3 samples were cut",)), ("c", ("one", SILENT)))):
        writer.write([(number, ItemRecord("quiet", i, "ok", None, {"stoi": Score.ok(0.5, "p")}, notes=notes))])
        writer.write([(number, ItemRecord("codec", i, "ok", None, {"stoi": Score.ok(0.5, "p")}))])
    writer.close()
    systems = summarise(Run(tmp_path / "run")).as_dict()["systems"]
    assert {name: system["silent"] for name, system in systems.items()} == {"quiet": 2, "codec": 0}


def test_what_is_worse_and_more_frequent_stands_first(tmp_path):
    """Whole items, then failures, answers that cannot be read, scores that are missing,
    undefined, refused and flagged.
    """
    statuses = ("flagged", "refused", "undefined", "unparsed", "failed")
    scores = {status: Score(None, status, f"was {status}", "p") for status in statuses[1:]}
    scores["flagged"] = Score.ok(0.5, "p", detail={"flag": "was flagged"})
    rows = {f"{n} {status}": {"stoi": scores[status]} for n in range(2) for status in statuses}
    rows |= {"rare": {"stoi": Score.failed("rarely", "p")}, "lost": "gave up", "unscored": {}}
    result = summarise(write_run(tmp_path / "run", {"codec": rows})).as_dict()
    order = [(r["status"], r["reason"]) for r in result["failures"]["reasons"] if r["metric"] in (None, "stoi")]
    assert order == [
        ("failed", "gave up"), ("failed", "was failed"), ("failed", "rarely"), ("unparsed", "was unparsed"),
        ("not_scored", Diagnostic("no_score")), ("undefined", "was undefined"), ("refused", "was refused"),
        ("flagged", "was flagged"),
    ]  # fmt: skip
    missing = result["systems"]["codec"]["metrics"]["stoi"]["missing"]
    assert list(missing.items()) == [
        ("failed", 3), ("unparsed", 2), ("no_estimate", 1), ("not_scored", 1), ("undefined", 2), ("refused", 2),
    ]  # fmt: skip


def test_only_what_differs_between_reasons_is_excluded(tmp_path):
    texts = ("'a.wav' has 8 channels at 4000 Hz", "'b.wav' has 8 channels at 6000 Hz", "'b.wav' is empty")
    rows = {"codec": dict(zip("abc", texts))}
    reasons = summarise(write_run(tmp_path / "run", rows)).as_dict()["failures"]["reasons"]
    assert [(r["reason"], r["count"], r["example"]) for r in reasons] == [
        ("… has 8 channels at … Hz", 2, "a"),
        ("'b.wav' is empty", 1, "c"),
    ]


def test_a_hostile_reason_is_stored_as_text(tmp_path):
    reason = "\0 </script> \x1b[31m {0} \\1 " + "x" * 10_000
    rows = {"codec": {"a": reason, "b": reason}}
    (row,) = summarise(write_run(tmp_path / "run", rows)).as_dict()["failures"]["reasons"]
    assert row["count"] == 2
    assert row["reason"].startswith("� </script>")
    assert len(row["reason"]) == 500


def test_endless_reasons_do_not_grow_the_summary(tmp_path):
    letters = "abcdefghij"
    word = lambda n: "".join(letters[int(d)] for d in str(n))  # noqa: E731
    rows = {
        "codec": {
            f"s{n:04d}": {m: Score.failed(f"broke as {word(n // 2)}", "p") for m in ("wer", "stoi")}
            for n in range(1400)
        }
    }
    failures = summarise(write_run(tmp_path / "run", rows)).as_dict()["failures"]
    by_metric = {m: sum(r["count"] for r in failures["reasons"] if r["metric"] == m) for m in ("wer", "stoi")}
    assert by_metric == {"wer": 1400, "stoi": 1400}
    assert len(failures["reasons"]) <= MAX_REASONS + 3


def test_flags_of_scores_are_counted_though_they_have_a_value(tmp_path):
    flagged = {"wer": Score.ok(0.5, "p", detail={"flag": "the answer was cut"})}
    rows = {"codec": {"a": flagged, "b": {"wer": errors(0, 3)}, "c": flagged, "d": flagged}}
    summary = summarise(write_run(tmp_path / "run", rows)).as_dict()
    (row,) = [r for r in summary["failures"]["reasons"] if r["status"] == "flagged"]
    assert (row["metric"], row["reason"], row["count"], row["example"]) == ("wer", "the answer was cut", 3, "a")
    assert summary["systems"]["codec"]["metrics"]["wer"]["n"] == 4


@pytest.mark.parametrize(("tagged", "model"), [(1, 0), (2, 2)])
def test_tags_that_a_rule_takes_for_words_are_counted_from_more_than_a_hundredth_of_the_scores(tmp_path, tagged, model):
    flagged, plain = Score.ok(0.5, "p", detail={"flag": "held a tag", "flag_from": 0.01}), errors(0, 3)
    rows = {"codec": {f"{n:03d}": {"wer": flagged if n < tagged else plain} for n in range(100)}}
    summary = summarise(write_run(tmp_path / "run", rows))
    assert (summary.systems["codec"].metrics["wer"].flagged or 0) == model
    assert [row.count for row in summary.failures.reasons if row.status == "flagged"] == ([model] if model else [])


def test_a_run_that_recorded_nothing_but_its_names_has_a_summary(tmp_path):
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"codec": {}}, {"stoi": {"protocol": "stoi/p"}}, [Sample("a", None)])
    writer.close()
    summary = summarise(Run(tmp_path / "run")).as_dict()
    assert summary["systems"]["codec"]["metrics"]["stoi"] == {
        "value": None, "ci95": None, "note": None, "units": 0, "common": None, "n": 0,
        "method": "", "counting_failures": {"value": None, "n": 0, "uncounted": 0}, "failed": 0, "missing": {},
        "unit": "", "higher_is_better": None,
        "protocol": "stoi/p",
    }  # fmt: skip
    assert summary["failures"] == {"items": 0, "scores": 0, "reasons": []}
