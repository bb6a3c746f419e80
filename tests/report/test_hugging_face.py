"""Results for the Hugging Face hub: read back with `huggingface_hub`, and equal to the summary of the run."""

from __future__ import annotations

from contextlib import closing

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results
from refusals import refuses

from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.hugging_face import export_hugging_face
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

COMMIT = "5503434ddd753f426f4b38109466949a1217c2bb"
PRIMARY = "wer[answer]@by-language"
FACTS = {"kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
REQUESTED = {"repository": "TwinkStart/librispeech", "config": "clean", "split": "test"}
BENCHMARK = {"name": "librispeech-clean", "category": "ASR", "kind": "understanding", "primary": PRIMARY}


@pytest.fixture
def build(tmp_path):
    """Makes a run of the given systems with two metrics, and a third (`pesq`) that never has a value."""

    def make(
        systems=("whisper",), *, state="finished", benchmark=BENCHMARK, data=REQUESTED, named="x", **config
    ) -> Run:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        fingerprint = {"asked": {"data": data}, "scored": {}}
        metrics = {name: {**FACTS, "protocol": f"{name}/1"} for name in (PRIMARY, "stoi", "pesq")}
        with closing(RunWriter(folder, fingerprint)) as writer:
            samples = [Sample(f"s{n}", audio=f"s{n}.wav", speaker=f"p{n}") for n in range(6)]
            writer.begin({name: {} for name in systems}, metrics, samples)
            for number in range(6):
                for system in systems:
                    scores = {
                        name: Score(0.125 * number, "ok", None, f"{name}/1", 0.125 * number, 1.0)
                        for name in (PRIMARY, "stoi")
                    }
                    scores["pesq"] = Score(None, "failed", "too short", "pesq/1")
                    writer.write([(number, ItemRecord(system, f"s{number}", "ok", None, scores))])
            writer.set_meta(
                state=state, finished="2026-11-22T22:23:40+00:00", config={"limit": None, "data": named, **config},
                data={"name": "data", "fingerprint": COMMIT}, **({"benchmark": benchmark} if benchmark else {}),
            )  # fmt: skip
        return Run(folder)

    return make


def written(run, form, tmp_path, **chosen):
    """What the file holds, and the excluded metrics."""
    out = tmp_path / f"{form}.yaml"
    left = export_hugging_face(run, form, out, **chosen)
    return yaml.safe_load(out.read_text("utf-8")), left


def test_eval_results_are_read_back_by_the_hubs_own_reader(build, tmp_path):
    run = build()
    (entry,) = parse_eval_result_entries(written(run, "hf-eval-results", tmp_path)[0])
    details = summarise(run).as_dict()["systems"]["whisper"]["metrics"][PRIMARY]
    assert (entry.dataset_id, entry.task_id, entry.dataset_revision) == ("TwinkStart/librispeech", "clean", None)
    pinned = build(data={**REQUESTED, "revision": COMMIT})
    assert parse_eval_result_entries(written(pinned, "hf-eval-results", tmp_path)[0])[0].dataset_revision == COMMIT
    assert entry.value == details["value"] == pytest.approx(0.3125)
    assert entry.date == "2026-11-22T22:23:40+00:00"
    assert PRIMARY in entry.notes and str(details["ci95"][0]) in entry.notes and "n 6" in entry.notes
    assert "limited" not in entry.notes


def test_a_model_index_is_read_back_with_every_metric_that_has_a_value(build, tmp_path):
    run = build(limit=6)
    index, left = written(run, "model-index", tmp_path)
    name, results = model_index_to_eval_results(index["model-index"])
    entries = summarise(run).as_dict()["systems"]["whisper"]["metrics"]
    assert name == "whisper" and left == ["pesq"]
    assert {r.metric_name: r.metric_value for r in results} == {
        f"{m} (limited to 6 items)": entries[m]["value"] for m in (PRIMARY, "stoi")
    }
    wer = results[0]
    assert (wer.task_type, wer.metric_type) == ("automatic-speech-recognition", "wer")
    assert (wer.dataset_type, wer.dataset_config, wer.dataset_split) == ("TwinkStart/librispeech", "clean", "test")
    assert wer.metric_args["ci95"] == entries[PRIMARY]["ci95"]
    assert (wer.metric_args["failed"], wer.metric_args["part"]) == (0, "limited to 6 items")


def test_a_limited_run_and_a_mirror_are_marked(build, tmp_path):
    mirrored = build(limit=6, mirror="/data", data={**REQUESTED, "revision": COMMIT})
    (entry,) = parse_eval_result_entries(written(mirrored, "hf-eval-results", tmp_path)[0])
    assert "limited to 6 items" in entry.notes and "mirror" in entry.notes
    assert entry.dataset_revision is None


def test_a_codec_run_has_the_name_of_its_data(build, tmp_path):
    local = build(("unprocessed", "opus-12k"), benchmark=None, named="/data/vctk")
    index, _ = written(local, "model-index", tmp_path)
    name, results = model_index_to_eval_results(index["model-index"])
    assert "/data" not in yaml.safe_dump(index)  # the paths of this machine are nobody's business
    assert name == "opus-12k" and {(r.task_type, r.dataset_type) for r in results} == {("audio-to-audio", "vctk")}
    with refuses("not_hub_data"):
        export_hugging_face(local, "hf-eval-results", None, metric="stoi")
    hub = build(("unprocessed", "opus-12k"), benchmark=None, named=f"hf:owner/set@{COMMIT}:en:test")
    (entry,) = parse_eval_result_entries(written(hub, "hf-eval-results", tmp_path, metric="stoi")[0])
    assert (entry.dataset_id, entry.task_id, entry.dataset_revision) == ("owner/set", "en", COMMIT)
    with refuses("export_one_value", metrics=3):
        export_hugging_face(hub, "hf-eval-results", None)


@pytest.mark.parametrize(
    "of, chosen, error, says",
    [
        ({"state": "answered"}, {}, UserError, {"code": "export_unfinished"}),
        ({"systems": ("a", "b")}, {}, UserError, {"code": "export_one_system", "systems": 2, "names": ["a", "b"]}),
        ({}, {"system": "c"}, UnknownName, {"code": "unknown_name", "name": "c"}),
        ({}, {"metric": "mos"}, UnknownName, {"code": "unknown_name", "name": "mos"}),
        ({}, {"metric": "pesq"}, UserError, {"code": "metric_without_value"}),
        ({"data": {"path": "rows.jsonl"}}, {}, UserError, {"code": "not_hub_data"}),
    ],
)
def test_what_the_format_cannot_hold_is_refused(build, tmp_path, of, chosen, error, says):
    with refuses(**says):
        export_hugging_face(build(**of), "hf-eval-results", tmp_path / "out.yaml", **chosen)
    assert not (tmp_path / "out.yaml").exists()
