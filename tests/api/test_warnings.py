"""Where data and metrics meet badly, a run says so, with figures: on the terminal, in the record, and on the page.

Good data have no warning.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_bench import Audio, evaluate, score
from codec_bench.audio.level_checks import channel_peaks, loudest_levels
from codec_bench.audio.resample import to_rate
from codec_bench.data import open_source
from codec_bench.engine.reading import content_notes
from codec_bench.report.table import summary_notes
from codec_bench.stats.data_warnings import Tally
from codec_bench.stats.summary import summarise
from codec_bench.store.writer import RunWriter

LIMIT = 4


def written(folder, change):
    """The first embedded clips after a change, as 16-bit files."""
    folder.mkdir()
    for sample in list(open_source("embedded"))[:LIMIT]:
        audio = change(Audio.read(sample.audio))
        soundfile.write(folder / f"{sample.id}.wav", audio.samples.T, audio.sample_rate_hz, subtype="PCM_16")
    return str(folder)


def changed(change):
    return lambda audio: Audio(change(audio.samples), audio.sample_rate_hz)


def messages(run, *words):
    """The notes of a run with these words; the page has them too."""
    results = [note for note in summary_notes(summarise(run), None) if all(word in note for word in words)]
    page = (run.folder / "report.html").read_text()
    assert all(note.split(";")[0].split(": ")[-1][:60] in page for note in results)
    return results


def warned(run):
    return {name: [one["kind"] for one in held.get("warned", [])] for name, held in run.summary()["systems"].items()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    at = tmp_path_factory.mktemp("warned")
    generated = {
        "silence": written(at / "silence", changed(lambda x: np.pad(x * 0.9, ((0, 0), (32_000, 80_000))))),
        "half": written(at / "half", changed(lambda x: x / 2)),
        "half_again": written(at / "other", changed(lambda x: x / 2)),
        "later": written(at / "later", changed(lambda x: np.roll(x, 16_000, axis=1))),
    }
    return score(
        generated=generated, data=list(open_source("embedded"))[:LIMIT], metrics="si_sdr,stoi,lsd", out=at / "run"
    )


def test_long_silence_is_reported_with_seconds_and_with_what_it_moves(run):
    assert warned(run)["silence"] == ["around"]
    (note,) = messages(run, "have more silence than speech")
    assert note.startswith("silence: all 4 items") and "(7." in note and "lsd by 3.4" in note and "stoi" not in note


def test_the_sound_of_another_system_is_reported(run):
    assert warned(run)["half_again"] == ["another"] and warned(run)["half"] == []
    (note,) = messages(run, "half_again: in all 4 items the audio equals that of half")
    assert "half" in note


def test_the_sound_of_another_system_is_reported_after_a_call_that_was_killed_between_the_two(tmp_path, monkeypatch):
    """The first call records one system of each item; the second has only the other left."""
    generated = {name: written(tmp_path / name, changed(lambda x: x / 2)) for name in ("half", "half_again")}
    expected = dict(
        generated=generated, data=list(open_source("embedded"))[:LIMIT], metrics="si_sdr", out=tmp_path / "run"
    )
    with monkeypatch.context() as killed:
        write = RunWriter.write
        killed.setattr(
            RunWriter, "write", lambda self, rows: write(self, [row for row in rows if row[1].system == "half"])
        )
        score(**expected)
    run = score(**expected)
    assert len(list(run.scores())) == 2 * LIMIT and warned(run) == {"half": [], "half_again": ["another"]}


def test_two_codecs_with_one_sound_are_reported(tmp_path):
    (tmp_path / "own.py").write_text(
        "from codec_bench.codecs import load_codec\n\ndef first():\n    return load_codec('opus-12k')\n\n\n"
        "def second():\n    return load_codec('opus-12k')\n", "utf-8"
    )  # fmt: skip
    codecs = [f"{name}={tmp_path / 'own.py'}:{name}" for name in ("first", "second")]
    run = evaluate(
        codec=codecs, data=list(open_source("embedded"))[:LIMIT], metrics="si_sdr", out=tmp_path / "run", check=False
    )
    results = [entry for held in run.summary()["systems"].values() for entry in held.get("warned", [])]
    assert sum(entry["n"] for entry in results if entry["kind"] == "another") == LIMIT, (
        "each item is told once, of the slower codec"
    )


COPY = """
import numpy as np
from codec_bench import Audio, CodecInfo, Codes, CodeStream


class Copy:
    info = CodecInfo("copy", (16000,), frame_rate_hz=16000.0, nominal_bitrate_bps=256000)

    def encode(self, batch):
        whole = [np.round(audio.samples[:1] * 32768).astype(int) + 32768 for audio in batch]
        return [Codes((CodeStream(x, 65536, 16000.0),), x.shape[1], 16000) for x in whole]

    def decode(self, codes):
        return [Audio((c.streams[0].values[:, : c.num_samples] - 32768) / 32768, 16000) for c in codes]
"""


def test_a_codec_that_gives_its_reference_back_is_reported(tmp_path):
    (tmp_path / "own.py").write_text(COPY, "utf-8")
    run = evaluate(
        codec=f"unprocessed,{tmp_path / 'own.py'}:Copy,opus-12k", data=list(open_source("embedded"))[:LIMIT],
        metrics="stoi", out=tmp_path / "run",
    )  # fmt: skip
    assert {name: held["same"] for name, held in run.summary()["systems"].items()} == {
        "unprocessed": 0,
        "copy": LIMIT,
        "opus-12k": 0,
    }
    (note,) = messages(run, "equal their references sample by sample")
    assert note.startswith("copy: 4 estimates")


def test_values_that_no_working_audio_has_are_reported(run):
    assert warned(run)["later"] == ["implausible", "implausible"]
    (of_snr,), (of_stoi,) = messages(run, "later: si_sdr is below -20"), messages(run, "later: stoi is below 0.3")
    assert all("shifted, reordered or inverted" in note for note in (of_snr, of_stoi))


def test_a_narrow_band_in_a_wide_file_is_reported(tmp_path):
    data = written(tmp_path / "narrow", lambda audio: to_rate(to_rate(audio, 8_000), 48_000))
    result = evaluate(codec="g722,opus-24k", data=data, metrics="stoi,pesq_wb,lsd", out=tmp_path / "run")
    assert warned(result) == {"g722": ["empty"], "opus-24k": ["empty"]}
    (note,) = messages(result, "all 4 items are band-limited to 3.9 kHz")
    assert "lsd" in note and "pesq_wb" not in note and "48 kHz" in note


def test_networks_that_cover_more_than_the_data_hold_are_named():
    tally = Tally()
    for _ in range(8):
        tally.add([{"code": "reference", "note": {"code": "empty_band", "top_khz": 3.9, "rate_khz": 8.0}}])
    wide = {name: {"hears_hz": 48_000, "moved_by": None} for name in ("nisqa_mos", "sigmos_ovrl")}
    facts = {**wide, "dnsmos_ovrl": {"hears_hz": 16_000, "moved_by": {"narrow band": 0.8}},
        "stoi": {"hears_hz": 10_000, "moved_by": {"narrow band": 0.0}},
             "pesq_nb": {"hears_hz": 8_000, "moved_by": None}, "bitrate": {}}  # fmt: skip
    (one,) = tally.warned(8, facts)
    assert (one.kind, one.n, one.of) == ("empty", 8, 8)
    assert one.moved == {"nisqa_mos": None, "sigmos_ovrl": None, "dnsmos_ovrl": 0.8}
    assert [*tally.warned(8, {"stoi": facts["stoi"]})] == [], "no metric meets it"
    assert [*tally.warned(1_000, facts)] == [], "too few items"


def test_an_item_counts_once_where_both_sides_are_silent():
    tally = Tally()
    around = {"code": "silence_around", "silence_s": 7.0, "sound_s": 2.0}
    tally.add([around, {"code": "reference", "note": {**around, "silence_s": 5.0}}])
    (one,) = tally.warned(1, {"lsd": {"hears_hz": 0, "moved_by": {"zeros around": 3.4}}})
    assert (one.n, one.figures) == (1, {"silence_s": 7.0, "sound_s": 2.0})


def test_good_data_have_no_warning(tmp_path):
    result = evaluate(
        codec="opus-6k,amr-nb-12k,g722", data=list(open_source("embedded"))[::3], metrics="si_sdr,snr,stoi,estoi,lsd",
        out=tmp_path / "run", check=False,
    )  # fmt: skip
    assert warned(result) == {"opus-6k": [], "amr-nb-12k": [], "g722": []}


@pytest.mark.skipif("CODEC_BENCH_TEST_RECORDINGS" not in os.environ, reason="needs recordings of people")
def test_recordings_of_people_have_the_notes_of_their_rates_alone():
    for path in sorted(Path(os.environ["CODEC_BENCH_TEST_RECORDINGS"]).glob("*.flac")):
        audio = Audio.read(path)
        peaks = channel_peaks(audio.samples)
        notes = content_notes(audio, loudest_levels(audio, peaks), peaks)
        assert len(notes) == (audio.sample_rate_hz == 8_000), path.name
        assert not notes or notes[0].endswith("at a rate of 8 kHz")


def test_files_that_state_a_wrong_rate_are_reported(tmp_path):
    wrong = written(tmp_path / "wrong", lambda audio: Audio(audio.samples / 2, audio.sample_rate_hz * 3 // 2))
    right = written(tmp_path / "right", lambda audio: to_rate(changed(lambda x: x / 2)(audio), 24_000))
    run = score(
        generated={"wrong": wrong, "right": right}, data=list(open_source("embedded"))[:LIMIT], metrics="speech_share",
        out=tmp_path / "run", workers=1,
    )  # fmt: skip
    assert warned(run) == {"wrong": ["rate"], "right": []}
    (note,) = messages(run, "have as many samples as their references, at 24 kHz in place of 16 kHz")
    assert note.startswith("wrong: all 4 items")


def test_channels_without_sound_are_reported(tmp_path):
    generated = {"half": written(tmp_path / "half", changed(lambda x: np.concatenate([x, 0 * x])))}
    run = score(
        generated=generated, data=list(open_source("embedded"))[:LIMIT], metrics="snr", out=tmp_path / "run"
    )  # fmt: skip
    assert messages(run, f"all {LIMIT} items have audio in 1 of 2 channels")


def test_channels_that_cancel_out_are_reported_and_silent_ones_flagged(tmp_path):
    hiss = np.random.default_rng(0).uniform(-0.002, 0.002, 10**6).astype(np.float32)
    turned = {
        "silent": lambda x: np.concatenate([x, -x]),
        "hissing": lambda x: np.concatenate([x, hiss[: x.shape[1]] - x]),
        "in phase": lambda x: np.concatenate([x, x]),
        "one": lambda x: np.concatenate([x, 0 * x]),
    }
    generated = {name: written(tmp_path / name, changed(change)) for name, change in turned.items()}
    run = score(
        generated=generated, data=list(open_source("embedded"))[:LIMIT], metrics="dnsmos", reference="none",
        out=tmp_path / "run",
    )  # fmt: skip
    systems = summarise(run).systems
    kinds = {name: [one.kind for one in system.warned or ()] for name, system in systems.items()}
    assert {name for name in kinds if "cancelled" in kinds[name]} == {"silent", "hissing"}
    of_system = run.summary()["systems"]
    flagged = {name: one["metrics"]["dnsmos_ovrl"].get("flagged", 0) for name, one in of_system.items()}
    assert flagged == {"silent": LIMIT, "hissing": 0, "in phase": 0, "one": 0}
    assert messages(run, f"the 2 channels of all {LIMIT} items cancel out")


def test_a_codec_that_folds_channels_is_named_and_no_other(tmp_path):
    planted = Path(__file__).parents[1] / "codecs" / "checks" / "assets" / "planted_codecs.py"

    def two_voices(samples):
        return np.concatenate([samples, np.roll(samples, samples.shape[1] // 3, axis=1)]) / 2

    data = written(tmp_path / "in", changed(two_voices))
    codecs = [f"{planted}:FoldsToMono", f"{planted}:FoldsAtHalfTheBitrate", f"{planted}:Wide"]
    run = evaluate(codec=codecs, data=data, metrics="si_sdr", out=str(tmp_path / "run"), workers=1)
    systems = summarise(run).systems
    by_name = {name: [one.kind for one in system.warned] if system.warned else [] for name, system in systems.items()}
    assert {name for name, kinds in by_name.items() if "folded" in kinds} == {"FoldsToMono", "FoldsAtHalfTheBitrate"}
    (folded,) = (one for one in systems["FoldsToMono"].warned if one.kind == "folded")
    assert (folded.n, folded.of, folded.figures) == (LIMIT, LIMIT, {"channels": 2})
