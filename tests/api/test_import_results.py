"""Results of other toolkits as runs: values against plain sums, marks, and files that are not of that form."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from refusals import refuses

from codec_bench.api.import_results import import_results
from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.codecs import codec_board
from codec_bench.apps.site.api import site
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.messages.errors import UserError
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

VERSA = [
    {"key": "a", "utmos": 4.0, "dns_overall": 3.0, "whisper_wer_insert": 0, "whisper_wer_delete": 1,
        "whisper_wer_replace": 0, "whisper_wer_equal": 9, "whisper_hyp_text": "x", "ref_text": "y", "wer_note": True},
    {"key": "b", "utmos": 2.0, "whisper_wer_insert": 2, "whisper_wer_delete": 0, "whisper_wer_replace": 1,
        "whisper_wer_equal": 1},
    {"key": "c", "utmos": 3.0, "dns_overall": 2.0, "whisper_wer_insert": 0, "whisper_wer_delete": 0,
        "whisper_wer_replace": 0, "whisper_wer_equal": 0},
]  # fmt: skip
"""Lines of the form that `versa/bin/scorer.py` writes."""


def metrics(run):
    return next(iter(summarise(run).as_dict()["systems"].values()))["metrics"]


def written(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("form", [json.dumps, repr], ids=["json", "python literal of older versions"])
def test_versa(tmp_path, form):
    file = written(tmp_path / "codec_a.txt", [*map(form, VERSA), "", "{'key': 'd', 'utmos': nan, 'dns_overall': -inf}"])
    run = import_results(file, toolkit="versa", out=tmp_path / "run")
    result = metrics(run)
    assert set(result) == {f"{name}[imported/versa]" for name in ("utmos", "dns_overall", "whisper_wer")}
    utmos, wer = result["utmos[imported/versa]"], result["whisper_wer[imported/versa]"]
    assert (utmos["value"], utmos["n"], utmos["failed"], utmos["higher_is_better"]) == (3.0, 3, 1, True)
    # Four errors among twelve words; the item without words and the one without counts have no value.
    assert (wer["value"], wer["n"], wer["higher_is_better"]) == (pytest.approx(4 / 12), 2, False)
    assert result["dns_overall[imported/versa]"]["value"] == 2.5
    assert all(entry["protocol"].startswith("imported/versa/") for entry in result.values())
    reasons = {score.reason for score in run.scores(without_value=True)}
    assert "the file holds NaN" in reasons and "the reference has no word" in reasons
    assert list(run.systems) == ["codec_a"] and (run.folder / "report.html").is_file()


def test_words_of_versa_where_the_reference_has_none_are_errors(tmp_path):
    rows = [("a", 1, 2, 0, 9), ("b", 0, 0, 1, 1), ("c", 0, 5, 0, 0), ("d", 0, 0, 0, 0)]
    operations = [f"whisper_wer_{name}" for name in ("delete", "insert", "replace", "equal")]
    lines = [json.dumps({"key": key, **dict(zip(operations, counts))}) for key, *counts in rows]
    run = import_results(written(tmp_path / "x.txt", lines), toolkit="versa", out=tmp_path / "run")
    (entry,) = next(iter(run.summary()["systems"].values()))["metrics"].values()
    assert entry["value"] == pytest.approx((1 + 2 + 1 + 5) / (1 + 9 + 2))  # as scripts/show_result.py adds up
    assert (entry["n"], entry["flagged"], entry["missing"]) == (3, 1, {"undefined": 1})


@pytest.mark.parametrize(("name", "value", "message"), [
    ("wer", -0.3, "the file holds -0.3, and no wer is below 0"),
    ("other_cer/strict", -1, "no other_cer/strict is below 0"),
    ("si_snr", -0.3, None), ("utmos", 1e308, "which no average can hold"), ("utmos", 10**400, "the file holds 1000"),
])  # fmt: skip
def test_a_number_that_no_such_metric_has_is_a_failure(tmp_path, name, value, message):
    lines = [json.dumps({"key": key, name: of}) for key, of in (("a", value), ("b", value), ("c", 1.0))]
    run = import_results(written(tmp_path / "x.txt", lines), toolkit="versa", out=tmp_path / "run")
    (entry,) = metrics(run).values()
    reasons = {score.reason for score in run.scores(without_value=True)}
    assert entry["failed"] == (0 if message is None else 2)
    assert reasons == set() if message is None else message in reasons.pop()


def test_ultraeval(tmp_path):
    step = lambda kind, item, data: json.dumps({"type": kind, "id": item, "data": data})  # noqa: E731
    lines = [
        step("prompt", 0, {"content": "hear"}), step("inference", 0, {"content": "a b"}),
        step("eval", 0, {"pred": "a b", "ref": "a c", "wer%": 50.0, "match": 0}),
        step("eval", 1, {"pred": "x", "ref": "x", "wer%": 0.0, "match": True}),
        step("error", 2, {"info": "Traceback (most recent call last):\n  ...\nRuntimeError: no answer"}),
    ]  # fmt: skip
    run = import_results(written(tmp_path / "r.jsonl", lines), toolkit="ultraeval", out=tmp_path / "run", system="mine")
    result = metrics(run)
    wer = result["wer[imported/ultraeval-audio]"]
    assert (wer["value"], wer["unit"], wer["n"], wer["failed"]) == (25.0, "%", 2, 1)
    assert result["match[imported/ultraeval-audio]"]["value"] == 0.5
    assert [(item.id, item.reason) for item in run.items() if item.status != "ok"] == [("2", "RuntimeError: no answer")]
    assert [sample.text for sample in run.samples()] == ["a c", "x", None]


def test_no_character_of_a_text_splits_its_line(tmp_path):
    line = {"type": "eval", "id": 0, "data": {"pred": "a\u2028b", "ref": "a\x85c", "match": 1}}
    file = written(tmp_path / "r.jsonl", [json.dumps(line, ensure_ascii=False)])
    run = import_results(file, toolkit="ultraeval", out=tmp_path / "run", system="mine")
    assert [sample.text for sample in run.samples()] == ["a\x85c"]


def test_audiobenchs_error_rates_are_those_of_the_corpus(tmp_path):
    output = [("a b c d", 0.25), ("e f", 1.5), ("g h i j", 0.0)]
    items = [{"reference": text, "prediction": "x", "wer": rate} for text, rate in output]
    file = tmp_path / "set_wer_score.json"
    file.write_text(json.dumps({"wer": 0.4, "sample_wer": items}))
    result = metrics(import_results(file, toolkit="audiobench", out=tmp_path / "run"))["wer[imported/audiobench]"]
    assert (result["value"], result["n"], result["higher_is_better"]) == (pytest.approx(4 / 10), 3, False)


@pytest.mark.parametrize(("complete", "n", "value"), [(40.0, 2, 2.0), (55.0, 1, 55.0)])
def test_audiobenchs_ratings_are_read_by_item_where_all_are_in_the_file(tmp_path, complete, n, value):
    details = [{"reference": "yes", "rate_score": rating} for rating in (1.0, 3.0)]
    file = tmp_path / "set_gpt4o_judge_score.json"
    file.write_text(json.dumps({"gpt4o_judge": {"judge_score": complete, "success_rate": 1.0}, "details": details}))
    run = import_results(file, toolkit="audiobench", out=tmp_path / "run")
    result = metrics(run)["gpt4o_judge[imported/audiobench]"]
    assert (result["value"], result["n"]) == (value, n)
    if n == 1:
        assert [sample.id for sample in run.samples()] == ["set_gpt4o_judge_score"]
    file.write_text(json.dumps({"meteor": 0.25}))
    assert (
        metrics(import_results(file, toolkit="audiobench", out=tmp_path / "m"))["meteor[imported/audiobench]"]["value"]
        == 0.25
    )


@pytest.mark.parametrize("toolkit", ["lm-eval", "lmms-eval"])
def test_samples_and_results_of_the_harnesses(tmp_path, toolkit):
    lines = [
        {"doc_id": k, "doc": {"q": k}, "target": "a", "arguments": [], "resps": [["a"]], "filtered_resps": ["a"],
            "doc_hash": "0", "exact_match": k % 2}
        for k in range(4)
    ]  # fmt: skip
    if toolkit == "lm-eval":
        lines = [{**line, "filter": "strict", "metrics": ["exact_match"]} for line in lines]
    run = import_results(written(tmp_path / "s.jsonl", map(json.dumps, lines)), toolkit=toolkit, out=tmp_path / "items")
    (name,) = metrics(run)
    assert name == ("exact_match/strict" if toolkit == "lm-eval" else "exact_match") + f"[imported/{toolkit}]"
    assert (metrics(run)[name]["value"], metrics(run)[name]["n"]) == (0.5, 4)
    complete = {
        "results": {"gsm8k": {"alias": "gsm8k", "exact_match,strict": 0.5, "exact_match_stderr,strict": 0.1,
            "wer,none": 0.25}},
        "higher_is_better": {"gsm8k": {"exact_match": True, "wer": False}},
        "n-samples": {"gsm8k": {"original": 9, "effective": 4}},
    }  # fmt: skip
    file = tmp_path / "results.json"
    file.write_text(json.dumps(complete))
    run = import_results(file, toolkit=toolkit, out=tmp_path / "whole")
    result = metrics(run)
    assert result[f"exact_match/strict[imported/{toolkit}]"]["value"] == 0.5
    assert result[f"wer[imported/{toolkit}]"]["higher_is_better"] is False
    details = {score.metric.partition("[")[0]: score.detail for score in run.scores()}
    assert details["exact_match/strict"] == {"n": 4, "stderr": 0.1} and [s.id for s in run.samples()] == ["gsm8k"]


@pytest.mark.parametrize("listed", [True, False], ids=["named by the line", "a number in another line"])
def test_a_score_of_a_harness_that_is_no_number_has_failed(tmp_path, listed):
    values = [1.0, "N/A", None, float("nan"), [0.5, 2], 0.0]
    lines = [
        {"doc_id": k, "target": "a", "acc": v, **({"metrics": ["acc"]} if listed else {})} for k, v in enumerate(values)
    ]
    lines.append({"doc_id": len(values), "target": "a", **({"metrics": ["acc"]} if listed else {"acc": False})})
    run = import_results(written(tmp_path / "s.jsonl", map(json.dumps, lines)), toolkit="lm-eval", out=tmp_path / "run")
    options = {score.id: (score.status, score.reason) for score in run.scores()}
    assert [options[str(k)][0] for k in range(6)] == ["ok", "failed", "failed", "failed", "failed", "ok"]
    assert options["1"][1] == 'the file holds "N/A"' and options["4"][1] == "the file holds [0.5, 2]"
    assert options["6"] == (("failed", "the file holds no value") if listed else ("ok", None))
    (result,) = metrics(run).values()
    assert (result["n"], result["failed"]) == ((2, 5) if listed else (3, 4))


def test_a_log_of_inspect(tmp_path):
    options = [
        ("a", "C", None),
        ("b", "I", None),
        ("c", "P", None),
        ("d", "?", None),
        ("e", None, {"message": "it broke"}),
    ]
    samples = [
        {"id": id, "epoch": 1, "input": "q", "target": "t", "error": error,
         "scores": {} if error else {"match": {"value": letter}, "judge": {"value": {"tone": 0.5, "sense": 1}}}}
        for id, letter, error in options
    ]  # fmt: skip
    file = tmp_path / "log.json"
    file.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": samples}))
    run = import_results(file, toolkit="inspect", out=tmp_path / "run")
    result = metrics(run)
    assert (result["match[imported/inspect]"]["value"], result["match[imported/inspect]"]["n"]) == (0.5, 3)
    assert result["judge/tone[imported/inspect]"]["value"] == 0.5
    assert "it broke" in str([item.reason for item in run.items()])
    file.write_text(
        json.dumps(
            {"eval": {"task": "t"}, "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.5}}}]}}
        )
    )
    assert (
        metrics(import_results(file, toolkit="inspect", out=tmp_path / "w"))["match/accuracy[imported/inspect]"][
            "value"
        ]
        == 0.5
    )
    with refuses("packed_log"):
        import_results(tmp_path / "log.eval", toolkit="inspect", out=tmp_path / "none")


@pytest.mark.parametrize("toolkit", ["lm-eval", "lmms-eval"])
def test_results_of_several_tasks_are_not_averaged(tmp_path, toolkit):
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"results": {"mmlu": {"acc,none": 0.5}, "mmlu_law": {"acc,none": 0.1}}}))
    with refuses("imported_several_tasks", id="mmlu", task="mmlu_law"):
        import_results(file, toolkit=toolkit, out=tmp_path / "run")
    with refuses("imported_metrics", number=1):
        lines = written(tmp_path / "s.jsonl", ['{"doc_id": 0, "metrics": [["acc"]], "acc": 1}'])
        import_results(lines, toolkit=toolkit, out=tmp_path / "run")


def test_an_empty_reference_of_audiobench_has_no_error_rate(tmp_path):
    file = tmp_path / "set.json"
    items = [{"reference": "", "wer": 2.0}, {"reference": "a b", "wer": 0.5}]
    file.write_text(json.dumps({"wer": 1.0, "sample_wer": items}))
    run = import_results(file, toolkit="audiobench", out=tmp_path / "run")
    result = metrics(run)["wer[imported/audiobench]"]
    assert (result["value"], result["n"]) == (0.5, 1)
    assert [s.reason for s in run.scores(without_value=True) if s.value is None] == ["the reference has no word"]


def test_a_log_of_inspect_without_samples_has_its_direction_and_no_standard_error_as_a_metric(tmp_path):
    of = {
        "name": "m",
        "metrics": {"mean": {"value": 0.5}, "stderr": {"value": 0.1}},
        "metadata": {"higher_is_better": False},
    }
    file = tmp_path / "log.json"
    file.write_text(json.dumps({"eval": {"task": "t"}, "results": {"scores": [of]}}))
    run = import_results(file, toolkit="inspect", out=tmp_path / "run")
    assert {n: f["higher_is_better"] for n, f in run.metrics.items()} == {"m/mean[imported/inspect]": False}


def test_plain_values_of_inspect_are_means_and_counts_over_their_base_are_a_ratio(tmp_path):
    counts = [(1.0, 4.0), (0.0, 6.0)]
    samples = [
        {"id": str(n), "scores": {
            "tone": {"value": n / 4}, "stoi": {"value": n / 2, "metadata": {"numerator": n / 2, "denominator": 1.0}},
            "wer": {"value": top / under, "metadata": {"numerator": top, "denominator": under}},
        }} for n, (top, under) in enumerate(counts)
    ]  # fmt: skip
    file = tmp_path / "log.json"
    file.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": samples}))
    run = import_results(file, toolkit="inspect", out=tmp_path / "run")
    facts = {name.partition("[")[0]: (of["aggregate"], of.get("bounds")) for name, of in run.metrics.items()}
    assert facts == {"tone": ("mean", None), "stoi": ("mean", None), "wer": ("ratio", [0.0, None])}
    assert metrics(run)["wer[imported/inspect]"]["value"] == 0.1


@pytest.mark.parametrize("toolkit", ["audiobench", "lm-eval", "lmms-eval", "inspect"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{}",
        '{"results": 3}',
        '{"results": {"a": 1}, "samples": [1], "sample_wer": [2]}',
        '{"samples": {"scores": 2}}',
    ],
)
def test_what_is_not_of_a_toolkits_form_is_one_sentence(tmp_path, toolkit, text):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UserError):
        import_results(file, toolkit=toolkit, out=tmp_path / "run")


def test_imported_numbers_are_marked_and_stand_in_no_other_column(tmp_path, command):
    run = import_results(written(tmp_path / "a.txt", map(json.dumps, VERSA)), toolkit="versa", out=tmp_path / "run")
    assert leaderboard("ultraeval-codec", [run.folder]).ignored == (str(run.folder),)
    actual = [table for table in codec_board([run.folder]).tables if table.source == "your runs"]
    assert len(actual) == 3 and all(table.imported for table in actual)
    code, out, _ = command("leaderboard", "codecs", run.folder, "--metrics", "utmos[imported/versa]")
    assert code == 0 and "(imported)" in out


def measured(folder, ids, **about):
    """A run of ours over samples with these ids, two of each speaker."""
    facts = {"stoi": {"protocol": "stoi/1", "unit": "", "higher_is_better": True, "aggregate": "mean"}}
    with closing(RunWriter(folder, {"data": "d"})) as writer:
        writer.begin({"ours": {}}, facts, [Sample(id, None, f"text of {id}", f"p{n // 2}") for n, id in enumerate(ids)])
        writer.write(
            [(n, ItemRecord("ours", id, "ok", None, {"stoi": Score.ok(0.5, "stoi/1")})) for n, id in enumerate(ids)]
        )
        meta = {
            "config": {"command": "evaluate", "data": "speech"},
            "data": {"name": "speech", "fingerprint": "d"},
            **about,
        }
        writer.set_meta(
            state="finished", started="2026-11-20T10:00:00+00:00", finished="2026-11-20T10:01:00+00:00", **meta
        )
    return folder


def test_imported_numbers_join_those_of_a_run_over_the_same_data(tmp_path, command):
    file = written(tmp_path / "old.txt", map(json.dumps, VERSA))
    ours = measured(tmp_path / "ours", "abcd")
    code, _, err = command("import", "versa-results", file, "--out", tmp_path / "old", "--beside", ours)
    assert code == 3, err  # the file lacks one item
    run = Run(tmp_path / "old")
    assert [(s.id, s.text, s.speaker) for s in run.samples()] == [
        (id, f"text of {id}", f"p{n // 2}") for n, id in enumerate("abcd")
    ]
    assert [(item.id, item.reason) for item in run.items() if item.status != "ok"] == [
        ("d", "the file has no result of this item")
    ]
    built = SiteFolder(site([ours, tmp_path / "old"], out=tmp_path / "site").folder)
    (about,) = built.read_data("index")["boards"]
    board = built.read_data(f"boards/{about['key']}")
    # One leaderboard, and no column in which both have a number.
    assert {row["system"] for row in board["rows"]} == {"ours", "old"}
    assert all(sum(row["cells"][c] is not None for row in board["rows"]) == 1 for c in range(len(board["columns"])))
    assert sum(column["protocol"].startswith("imported/versa/") for column in board["columns"]) == 3


def test_what_is_not_over_the_same_data_matches_no_run(tmp_path):
    file = written(tmp_path / "old.txt", map(json.dumps, VERSA))
    with refuses("foreign_items", items=1, samples=3, path="old.txt", folder="ours", example="c"):
        import_results(file, toolkit="versa", out=tmp_path / "old", beside=measured(tmp_path / "ours", "ab"))
    requests = measured(tmp_path / "asked", "abc", benchmark={"name": "voice"})
    with refuses("run_of_benchmark", benchmark="voice"):
        import_results(file, toolkit="versa", out=tmp_path / "old", beside=requests)
    assert not (tmp_path / "old").exists()


def test_on_the_command_line(command, tmp_path):
    file = written(tmp_path / "a.txt", map(json.dumps, VERSA))
    code, out, _ = command("import", "versa-results", file, "--out", tmp_path / "run")
    assert code == 3 and "imported/versa" in out  # one score has no value
    code, _, err = command("import", "versa-results", file, "--out", tmp_path / "run")
    assert code == 2 and "holds a run already" in err
    code, _, err = command("import", "ultraeval-results", file, "--out", tmp_path / "other")
    assert code == 2 and "line 1: expected a mapping with 'type'" in err and not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"key": "a", "utmos": 1}'] * 2, {"code": "imported_twice", "number": 2, "key": "a"}),
        (['{"utmos": 1}'], {"code": "imported_no_key", "number": 1}),
        (["[1, 2]"], {"code": "imported_not_json", "number": 1}),
        (["{'key': __import__('os')}"], {"code": "imported_not_json", "number": 1}),
        (["key: a"], {"code": "imported_not_json", "number": 1}),
        (['{"key": "a", "text": "b"}'], {"code": "imported_no_score"}),
        ([], {"code": "imported_no_score"}),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path, lines, message):
    with refuses(**message):
        import_results(written(tmp_path / "x.txt", lines), toolkit="versa", out=tmp_path / "run")


def test_a_file_that_is_not_there_and_an_unknown_toolkit(tmp_path):
    with refuses("file_not_readable"):
        import_results(tmp_path / "none", toolkit="versa", out=tmp_path / "run")
    with refuses("unknown_name", hint="ultraeval"):
        import_results(tmp_path / "none", toolkit="ultraevl", out=tmp_path / "run")
