"""Building mixtures: what stands in the data set, the reasons of what does not, equal bytes,
and a build that goes on.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
import soundfile
import yaml
from refusals import Containing, refuses

from codec_bench import build, run_benchmark
from codec_bench.apps.building.item import BuildItem
from codec_bench.apps.building.mixtures import Mixtures, excerpt
from codec_bench.apps.building.record import BuildRecord
from codec_bench.benchmark import load_benchmark
from codec_bench.decoding.decode import decode_bytes
from codec_bench.messages.errors import DamagedRecord
from codec_bench.types import Audio

from .conftest import RATE_HZ, noise, rows_of, same_bytes


def test_the_rows_hold_what_can_be_read(mixing, sounds):
    built = build(mixing(), out=sounds / "out")
    rows = rows_of(built.folder)
    assert len(rows) == built.funnel.usable == 12
    for row in rows:
        audio = Audio(*decode_bytes(row["audio"]["bytes"], row["id"]))
        assert audio.sample_rate_hz == RATE_HZ and audio.channels == 1
        assert audio.duration_s == pytest.approx(row["duration_s"], abs=1e-6)
        created = json.loads(row["provenance"])
        # From the provenance alone, with the files read by another library, the same mixture comes out.
        complete = np.zeros(audio.num_samples)
        offset = round(row["offset_s"] * RATE_HZ)
        for begin, gain_db, item in zip((max(0, -offset), max(0, offset)), created["gains_db"], created["excerpts"]):
            samples, _ = soundfile.read(sounds / item["id"].partition("_")[0] / f"{item['id']}.flac", dtype="float32")
            cut = excerpt(samples, item["start_samples"], item["length_samples"], RATE_HZ // 100)
            complete[begin : begin + cut.size] += cut * 10 ** (gain_db / 20)
        np.testing.assert_allclose(audio.samples[0], complete, atol=2e-4)
        assert np.abs(audio.samples).max() <= 10 ** (-1 / 20) + 1e-4
        sign = row["gap_db"] if row["about"] == "louder" else row["offset_s"]
        assert row["answer_text"] == ("the speech" if sign > 0 else "the music")
        assert row["choices"]["AB".index(row["answer"])] == row["answer_text"]
        assert abs(sign) >= (1 if row["about"] == "louder" else 0.05)
    assert {row["about"] for row in rows} == {"louder", "ahead"}
    assert {row["answer"] for row in rows} == {"A", "B"}


def test_equal_recipes_give_equal_bytes_and_another_seed_gives_others(mixing, sounds):
    first = build(mixing(), out=sounds / "a")
    again = build(mixing(), out=sounds / "b")
    same_bytes(first.folder, again.folder)
    other = build(mixing(), out=sounds / "c", seed=1)
    assert rows_of(other.folder) != rows_of(first.folder)
    once_more = build(mixing(), out=sounds / "a")
    assert once_more.num_new == 0
    same_bytes(first.folder, again.folder)


def test_no_item_is_missing_between_two_row_groups(mixing, sounds, monkeypatch):
    monkeypatch.setattr("codec_bench.apps.building.data_set._GROUP", 5)
    rows = rows_of(build(mixing(), out=sounds / "out").folder)
    assert [row["id"] for row in rows] == [f"mixture-{number:05d}" for number in range(12)]


def test_a_build_that_was_stopped_goes_on_and_makes_nothing_twice(mixing, sounds, monkeypatch):
    complete = build(mixing(), out=sounds / "whole")
    built, real = Counter(), Mixtures.make

    def failing(self, key):
        if sum(built.values()) % 5 == 4:
            built["stopped"] += 1
            raise KeyboardInterrupt
        built[key] += 1
        return real(self, key)

    monkeypatch.setattr(Mixtures, "make", failing)
    monkeypatch.setattr("codec_bench.apps.building.api._AT_ONCE", 1)
    messages = []
    for _ in range(20):
        try:
            stopped = build(mixing(), out=sounds / "stopped", notify=messages.append)
            break
        except KeyboardInterrupt:
            pass
    assert built.pop("stopped") >= 2 and set(built.values()) == {1} and len(built) == 12
    same_bytes(stopped.folder, complete.folder)
    assert any("are done already" in line for line in messages)


def test_a_folder_of_another_build_is_refused(mixing, sounds):
    build(mixing(count=1), out=sounds / "out")
    with refuses("other_build", differences=Containing("recipe.gap_db")):
        build(mixing(count=1, gap_db=3), out=sounds / "out")


def test_a_folder_of_other_sounds_of_the_same_size_is_refused(mixing, sounds):
    build(mixing(count=1), out=sounds / "out")
    build(mixing(count=1), out=sounds / "out")
    path = next((sounds / "speech").rglob("*.flac"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with refuses("other_build"):
        build(mixing(count=1), out=sounds / "out")


def test_a_damaged_record_is_reported_in_one_sentence(mixing, sounds):
    build(mixing(count=1), out=sounds / "out")
    (sounds / "out" / ".build" / "record.sqlite").write_bytes(b"no data base" * 100)
    with refuses("build_record_unusable"):
        build(mixing(count=1), out=sounds / "out")


@pytest.mark.parametrize(
    ("changed", "step", "code"),
    [
        ({"gap_db": 0.5, "overlap": ["full"], "questions": {"louder": {"wordings": ["?"], "least": 1}}}, "question",
            "differences_too_small"),
        ({"second": {"data": "speech", "is_what": "it", "ids": ["speech_0"], "licences": "MIT"},
            "first": {"data": "speech", "is_what": "that", "ids": ["speech_0"], "licences": "MIT"}}, "pair",
            "mixed_with_itself"),
    ],
    ids=["nothing to ask", "with itself"],
)  # fmt: skip
def test_what_cannot_be_built_is_counted_with_its_reason(mixing, sounds, changed, step, code):
    funnel = build(mixing(count=2, retries=1, **changed), out=sounds / "out").funnel
    assert funnel.usable == 0 and funnel.tries == 4
    (why,) = funnel.dropped[step]
    assert why.code == code and funnel.dropped[step][why] == 2
    lines = [json.loads(line) for line in (sounds / "out" / "dropped.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["mixture-00000", "mixture-00001"]
    assert all(len(line["tries"]) == 2 and line["reason_code"] == {"code": code} for line in lines)
    assert not rows_of(sounds / "out")
    assert (
        not (sounds / "out" / "benchmark.yaml").exists()
        and "benchmark.yaml" not in (sounds / "out" / "README.md").read_text()
    )


def test_recordings_that_are_too_short_are_set_aside_first(mixing, sounds):
    messages = []
    built = build(mixing(excerpt={"least_s": 2.2, "most_s": 3}, retries=0), out=sounds / "out", notify=messages.append)
    assert built.funnel.usable == built.funnel.tries == 12, "no try is lost to them"
    assert {row["first_id"] for row in rows_of(built.folder)} == {"speech_1", "speech_2"}
    assert "2 of 4 recordings of 'speech' are excluded, each because it is shorter than 2.2 s" in messages
    assert "1 of 3 recordings of 'music' are excluded, each because it is shorter than 2.2 s" in messages
    assert "2: it is shorter than 2.2 s" in (built.folder / "README.md").read_text()
    with refuses("no_recording_left", data="speech", reasons="4: it is shorter than 3.5 s"):
        build(mixing(excerpt={"least_s": 3.5, "most_s": 4}), out=sounds / "none")


def test_the_same_mixture_is_stored_once(mixing, sounds):
    # Two whole sounds of one length each, one way to mix them: every mixture is the same.
    one = {"ids": ["speech_0"], "data": "speech", "is_what": "the speech", "licences": "MIT"}
    other = {"ids": ["music_2"], "data": "music", "is_what": "the music", "licences": "MIT"}
    options = {"first": one, "second": other, "excerpt": {"least_s": 2, "most_s": 2}, "gap_db": 6, "overlap": ["full"]}
    built = build(mixing(**options), out=sounds / "out")
    assert built.funnel.usable == 1 and built.funnel.dropped["duplicate"].total() == 11
    assert (
        "the recipe asks for 12 items, and 1 are usable; most were dropped at the step 'duplicate' (11)"
        in built.shortage
    )
    retained = build(mixing(**options, duplicates="keep"), out=sounds / "kept")
    assert {row["unit"] for row in rows_of(retained.folder)} == {"mixture-00000"} and not retained.shortage


def test_a_quiet_or_broken_recording_costs_a_try_and_not_the_build(mixing, sounds):
    soundfile.write(sounds / "music" / "music_0.flac", np.zeros(RATE_HZ * 4), RATE_HZ)
    soundfile.write(sounds / "music" / "music_1.flac", noise(3, 5, 0.0003), RATE_HZ)
    (sounds / "speech" / "speech_1.flac").write_bytes(b"this is no sound")
    funnel = build(mixing(retries=30), out=sounds / "out").funnel
    assert funnel.usable == 12
    codes = {reason.code for held in funnel.failed.values() for reason in held}
    assert codes >= {"no_loudness", "too_quiet_to_raise", "recording_unreadable"}


def test_recordings_without_a_licence_are_omitted_and_counted(mixing, sounds):
    music = {"data": "music", "is_what": "the music", "licences": {"music_0": "MIT", "music_1": "CC0"}}
    built = build(mixing(second=music), out=sounds / "out")
    assert {row["second_id"] for row in rows_of(built.folder)} <= {"music_0", "music_1"}
    assert {row["second_licence"] for row in rows_of(built.folder)} == {"MIT", "CC0"}
    assert "1: no licence is named for it" in (built.folder / "README.md").read_text()
    nothing = {**music, "licences": {"other_*": "MIT"}}
    with refuses("no_recording_left", data="music"):
        build(mixing(second=nothing), out=sounds / "none")


def test_the_card_has_the_funnel_and_the_hub_reads_the_data(mixing, sounds):
    built = build(mixing(choices=["A choice of ours."]), out=sounds / "out")
    card = (built.folder / "README.md").read_text()
    for item in (
        "12 of 12 items are usable",
        "path: data/test-*",
        "CC BY 4.0 (4)",
        "MIT (3)",
        "gap_db",
        "A choice of ours.",
    ):
        assert item in card
    for licence, front in (
        ("CC BY-NC 4.0", {"license": "cc-by-nc-4.0"}),
        ("For study, ask us first!", {"license": "other", "license_name": "for-study-ask-us-first"}),
    ):
        text = (build(mixing(count=1, licence=licence), out=sounds / front["license"]).folder / "README.md").read_text()
        held = yaml.safe_load(text.split("---")[1])
        assert {
            name: held[name] for name in held if name.startswith("license")
        } == front and f"Licence: {licence}" in text
    datasets = pytest.importorskip("datasets")
    result = datasets.load_dataset(str(built.folder), split="test", cache_dir=str(sounds / "cache"))
    assert len(result) == 12 and type(result.features["audio"]).__name__ == "Audio"


MODEL = '''
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Always(Model):
    """Answers A."""
    info = ModelInfo("always")
    identity = {"always": 1}

    async def ask(self, request):
        return Response(text="A")
'''


def test_the_definition_next_to_the_data_is_run_as_it_is(mixing, sounds):
    built = build(mixing(), out=sounds / "out")
    (sounds / "always.py").write_text(MODEL)
    assert load_benchmark(str(built.folder / "benchmark.yaml")).size == 12
    outcome = run_benchmark(
        benchmark=str(built.folder / "benchmark.yaml"), model=f"{sounds / 'always.py'}:Always", out=sounds / "run"
    )
    (run,) = outcome.runs.values()
    (system,) = json.loads((run.folder / "summary.json").read_text())["systems"].values()
    result = system["metrics"]["accuracy[exact]"]
    expected = Counter(row["answer"] for row in rows_of(built.folder))["A"] / 12
    assert result["n"] == 12 and math.isclose(result["value"], expected)


def test_a_log_of_an_earlier_copy_next_to_a_finished_build_is_refused(tmp_path):
    """As `cp -r` leaves it where the finished folder is copied over one that was copied in the middle."""
    record = BuildRecord(tmp_path / "one", {"recipe": 1})
    record.write([BuildItem("a", {}, (), {"id": "a"}, b"sound")])
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    record.write([BuildItem("b", {}, (), {"id": "b"}, b"sound")])
    record.close()
    shutil.copytree(tmp_path / "one", tmp_path / "copy", dirs_exist_ok=True)
    log = tmp_path / "copy" / ".build" / "record.sqlite-wal"
    assert log.stat().st_size
    with pytest.raises(DamagedRecord):
        BuildRecord(tmp_path / "copy", {"recipe": 1})
    log.unlink()
    with closing(BuildRecord(tmp_path / "copy", {"recipe": 1})) as complete:
        assert complete.done() == {"a", "b"}
