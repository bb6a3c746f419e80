"""Several systems whose audio was made elsewhere, scored in one run beside the references that they share."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import soundfile
from refusals import Containing, refuses

from codec_bench import Audio, score
from codec_bench.data import open_source
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import Note
from codec_bench.types import Sample

METRICS = "si_sdr,mel_distance,dnsmos_ovrl"


@pytest.fixture(scope="module")
def samples():
    return list(open_source("embedded"))[:4]


@pytest.fixture(scope="module")
def build(samples, tmp_path_factory):
    """Two systems: `soft` at half the level, without the second clip; `loud` with noise, its third file broken."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(7)
    for name in ("soft", "loud"):
        (folder / name).mkdir()
    for index, sample in enumerate(samples):
        audio = Audio.read(sample.audio)
        if index != 1:
            soundfile.write(folder / "soft" / f"{sample.id}.wav", 0.5 * audio.samples.T, audio.sample_rate_hz)
        noise = 0.01 * rng.standard_normal(audio.samples.T.shape)
        soundfile.write(folder / "loud" / f"{sample.id}.wav", audio.samples.T + noise, audio.sample_rate_hz)
    (folder / "loud" / f"{samples[2].id}.wav").write_bytes(b"no sound")
    soundfile.write(folder / "loud" / "stranger.wav", np.zeros(8000), 16000)
    return folder


@pytest.fixture(scope="module")
def run_it(tmp_path_factory):
    folder = tmp_path_factory.mktemp("score")

    def run(out, **requests):
        return score(out=folder / out, **{"metrics": METRICS, "workers": 1, "page": False, "cache": False, **requests})

    return run


@pytest.fixture(scope="module")
def both(run_it, samples, build):
    return run_it("both", generated=f"soft={build / 'soft'},loud={build / 'loud'}", data=samples)


def numbers(run, system):
    return {(s.id, s.metric): (s.value, s.status) for s in run.scores(system)}


def test_each_system_has_the_scores_that_it_has_alone(both, run_it, samples, build):
    assert list(both.systems) == ["soft", "loud"]
    for name in ("soft", "loud"):
        alone = run_it(name, generated=build / name, data=samples)
        assert list(alone.systems) == ["generated"]
        assert numbers(both, name) == numbers(alone, "generated")
    assert next(iter(both.scores("soft", "si_sdr"))).value > 60, "half the level is no distortion beyond 16 bits"


def test_what_one_system_lacks_is_its_failure(both, samples):
    missing, broken = samples[1].id, samples[2].id
    assert {s.id: s.reason for s in both.items("soft") if s.status == "failed"} == {
        missing: Diagnostic("no_generated_audio")
    }
    assert {s.id for s in both.items("loud") if s.status == "failed"} == {broken}
    counts = both.counts()
    assert (counts["items"], counts["finished"], counts["failed_items"]) == (8, 8, 2)
    entries = {name: system["metrics"]["mel_distance"] for name, system in both.summary()["systems"].items()}
    assert [(e["n"], e["failed"]) for e in entries.values()] == [(3, 1), (3, 1)]
    assert both.meta["data"]["unmatched"] == ["loud: stranger"]


def test_each_system_keeps_its_audio(both, samples, build):
    for name in ("soft", "loud"):
        for item in both.items(name):
            if item.status == "ok":
                retained, options = Audio.read(item.audio), Audio.read(build / name / f"{item.id}.wav")
                assert item.audio.parent.name == name and np.abs(retained.samples - options.samples).max() < 1e-4
    assert both.reference_audio(samples[0].id) is not None


def test_references_are_computed_once_for_all_systems(run_it, samples, build, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    requests = {"data": samples[:1], "metrics": "sim[ge2e]", "cache": True, "workers": 1}
    run = run_it("shared", generated={"soft": build / "soft", "loud": build / "loud"}, **requests)
    assert run.meta["timings"]["cache"] == {"hits": 0, "misses": 3}, "one reference and two estimates"


def test_the_same_call_goes_on_and_changed_audio_is_another_run(run_it, samples, build, tmp_path):
    folder = tmp_path / "made"
    shutil.copytree(build, folder)
    requests = {
        "generated": {"soft": folder / "soft", "loud": folder / "loud"},
        "data": samples,
        "metrics": "mel_distance",
    }
    first = run_it("on", **requests)
    assert run_it("on", **requests).meta["timings"] == first.meta["timings"], "nothing was left to do"
    (folder / "loud" / f"{samples[0].id}.wav").unlink()
    with refuses("other_settings", differences=Containing("systems.loud.audio was")):
        run_it("on", **requests)


def test_one_system_can_have_a_name_and_samples_in_place_of_a_folder(run_it, samples, build):
    options = [Sample(s.id, str(build / "loud" / f"{s.id}.wav")) for s in samples[:2]]
    by_list = run_it("list", generated={"tts": options}, data=samples[:2], metrics="mel_distance")
    by_name = run_it("name", generated=f"tts={build / 'loud'}", data=samples[:2], metrics="mel_distance")
    assert list(by_list.systems) == list(by_name.systems) == ["tts"]
    assert numbers(by_list, "tts") == numbers(by_name, "tts")
    assert by_list.meta["config"]["generated"] == {"tts": "samples"}


def test_what_is_wrong_with_one_system_is_reported_with_its_name(run_it, samples, build, tmp_path):
    (tmp_path / "empty").mkdir()
    soundfile.write(tmp_path / "empty" / "nobody.wav", np.zeros(800), 16000)
    for generated, says in (
        (
            f"soft={build / 'soft'},other={tmp_path / 'empty'}",
            {
                "code": "of_system",
                "system": "other",
                "cause": {"code": "no_file_belongs", "files": 1, "samples": 4},
            },
        ),
        (
            f"soft={build / 'soft'},other={tmp_path / 'nothing'}",
            {"code": "of_system", "system": "other", "cause": {"code": "no_data", "path": str(tmp_path / "nothing")}},
        ),
    ):
        with refuses(**says):
            run_it("wrong", generated=generated, data=samples)


def test_the_references_themselves_are_refused_or_marked(run_it, samples, build, tmp_path):
    with refuses(
        "is_the_reference",
        cause={"code": "estimates_are_references", "files": 4, "estimates": 4},
        hint="--allow-same",
    ):
        run_it("own", generated=samples, data=samples)
    copies = tmp_path / "copies"
    copies.mkdir()
    for index, sample in enumerate(samples):
        audio = Audio.read(sample.audio)
        soundfile.write(copies / f"{sample.id}.wav", audio.samples.T * (0.5 if not index else 1), audio.sample_rate_hz)
    with refuses("is_the_reference", cause={"code": "estimates_equal_references", "equal": 3, "compared": 4}):
        run_it("copies", generated=copies, data=samples)
    run = run_it("allowed", generated=copies, data=samples, metrics="si_sdr", allow_same=True)
    assert run.summary()["systems"]["generated"]["same"] == 3 and run.meta["config"]["allow_same"]
    soft = run_it("half", generated=build / "soft", data=samples, metrics="si_sdr")
    assert soft.summary()["systems"]["generated"]["same"] == 0


def test_a_manifest_of_the_references_is_omitted(run_it, samples, build, tmp_path):
    folder = tmp_path / "tts"
    shutil.copytree(build / "soft", folder)
    rows = [json.dumps({"id": s.id, "audio": s.audio}) for s in samples]
    (folder / "manifest.jsonl").write_text("\n".join(rows))
    with pytest.warns(Note) as noted:
        run = run_it("beside", generated=folder, data=samples, metrics="si_sdr")
    origin = noted[0].message.message.parameters["origin"]
    assert (origin.code, origin.parameters["name"]) == ("files_of_folder", "manifest.jsonl")
    assert run.meta["origins"][str(folder)]["code"] == "files_of_folder"
    assert run.summary()["systems"]["generated"]["metrics"]["si_sdr"]["n"] == 3
    # One that names the generated files is used, and says which file belongs to which sample.
    (folder / f"{samples[0].id}.wav").rename(folder / "take 1.wav")
    rows = [json.dumps({"id": samples[0].id, "audio": "take 1.wav"})]
    (folder / "manifest.jsonl").write_text("\n".join(rows))
    with pytest.warns(Note) as noted:
        run = run_it("inside", generated=folder, data=samples[:1], metrics="mel_distance")
    assert noted[0].message.message.parameters["origin"] == Diagnostic("files_of_list", name="manifest.jsonl")
    assert run.summary()["systems"]["generated"]["metrics"]["mel_distance"]["n"] == 1
    # A folder with nothing else needs its manifest to be named, since that may be the references'.
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "manifest.jsonl").write_text(json.dumps({"id": samples[0].id, "audio": samples[0].audio}))
    with refuses("list_without_sounds", name=Containing("manifest")):
        run_it("only", generated=tmp_path / "only", data=samples)


def test_generated_audio_is_scored_without_data(run_it, build, samples):
    run = run_it("alone", generated=f"soft={build / 'soft'},loud={build / 'loud'}", metrics="srmr,si_sdr")
    assert {item.id for item in run.items("loud")} == {sample.id for sample in samples} | {"stranger"}
    status = {(name, s.id): s.status for name in run.systems for s in run.scores(name, "srmr")}
    assert status["soft", samples[0].id] == status["loud", samples[0].id] == "ok"
    assert status["soft", "stranger"] == "failed"
    assert {score.status for score in run.scores("soft", "si_sdr")} == {"failed", "refused"}


def test_a_manifest_may_name_references_and_estimates(run_it, build, samples, tmp_path):
    rows = [{"id": s.id, "audio": s.audio, "estimate": str(build / "soft" / f"{s.id}.wav")} for s in samples[2:]]
    manifest = tmp_path / "pairs.jsonl"
    manifest.write_text("\n".join(map(json.dumps, rows)))
    alone = run_it("pairs", generated=manifest, metrics="si_sdr")
    assert numbers(alone, "generated") == numbers(
        run_it("given", generated=manifest, data=manifest, metrics="si_sdr"), "generated"
    )
    assert len(numbers(alone, "generated")) == 2
