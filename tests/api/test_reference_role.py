"""What the audio of the data is to generated audio: a prompt, a target, or nothing; and systems that come later."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import soundfile
from command_line import cli  # noqa: F401
from layout_miniatures import MINIATURES, clips, write
from refusals import refuses

from codec_bench import score
from codec_bench.messages.errors import Note
from codec_bench.report.open_run import open_run
from codec_bench.report.page.collect import collect
from codec_bench.store.columns import sample_columns
from codec_bench.types import Audio

SMALL = {"workers": 1, "page": False}


def _spoken(folder, halves=False):
    """The texts of Seed-TTS' miniature, spoken by the right voice; the prompts are other utterances."""
    for n in range(3):
        _, audio = clips()[n - 1]
        samples = audio.samples[:, : audio.num_samples // 2] if halves else audio.samples
        write(folder, f"item{n}.wav", Audio(samples, audio.sample_rate_hz))


@pytest.fixture
def seed_tts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MINIATURES["seed_tts"][1](tmp_path / "data")
    _spoken(tmp_path / "generated")
    return tmp_path


def test_lists_of_prompts_are_accepted_as_prompts_and_reported(seed_tts):
    with pytest.warns(Note) as noted:
        run = score(generated="generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    assert "audio_is_prompt" in [one.message.code for one in noted if isinstance(one.message, Note)]
    assert run.meta["config"]["reference"] == "prompt"
    durations = {s.id: s.duration_s for s in run.samples()}
    assert durations == {f"item{n}": pytest.approx(clips()[n - 1][1].duration_s) for n in range(3)}
    for row in run.rows():
        n = int(row.id[-1])
        assert row.duration_s == pytest.approx(clips()[n - 1][1].duration_s)
        assert row.reference_duration_s == pytest.approx(clips()[n][1].duration_s)


def test_metrics_of_pairs_are_refused_for_prompts(seed_tts):
    with refuses("same_words_needed", metrics="pesq_wb, stoi"):
        score(generated="generated", data="data", metrics="pesq_wb,stoi,sim[ge2e]", out="run", **SMALL)
    with refuses("reference_role", role="voice"):
        score(generated="generated", data="data", metrics="snr", reference="voice", out="run", **SMALL)


def test_notes_are_of_the_generated_sound_and_not_of_the_prompt(seed_tts):
    """One prompt has the band of a telephone; so has one generated file, of another item."""
    _, audio = clips()[0]
    spectrum = np.fft.rfft(audio.samples)
    spectrum[:, spectrum.shape[1] // 3 :] = 0
    narrow = np.fft.irfft(spectrum, audio.num_samples).astype(np.float32)
    soundfile.write("data/prompt-wavs/p0.wav", narrow.T, 16000)
    soundfile.write("generated/item1.wav", narrow.T, 16000)
    run = score(generated="generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    noted = {item.id: [note for note in item.notes if note.code == "empty_band"] for item in run.items()}
    assert [id for id, notes in noted.items() if notes] == ["item1"]
    assert not any(note.code == "reference" for item in run.items() for note in item.notes)


def test_shared_prompts_are_no_wrong_files(seed_tts):
    lines = (seed_tts / "data/meta.lst").read_text().replace("p1.wav", "p0.wav").replace("p2.wav", "p0.wav")
    (seed_tts / "data/meta.lst").write_text(lines)
    run = score(generated="generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    (system,) = run.summary()["systems"].values()
    assert not [one for one in system.get("warned", []) if one["kind"] in ("shared", "another")]


def test_a_file_that_cannot_be_read_has_no_length_of_its_prompt(seed_tts):
    """Another system has the text's sound; where none has, nothing is known."""
    _spoken(seed_tts / "other")
    for folder, n in (("generated", 0), ("generated", 1), ("other", 1)):
        (seed_tts / f"{folder}/item{n}.wav").write_bytes(b"")
    run = score(generated="a=generated,b=other", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    lengths = {(row.system, row.id): row.duration_s for row in run.rows()}
    spoken_s = [clips()[n - 1][1].duration_s for n in range(3)]
    assert lengths["a", "item0"] is None and lengths["b", "item0"] == pytest.approx(spoken_s[0])
    assert lengths["a", "item1"] is None and lengths["a", "item2"] == pytest.approx(spoken_s[2])
    by_sample = {sample.id: sample.duration_s for sample in run.samples()}
    assert by_sample == {"item0": pytest.approx(spoken_s[0]), "item1": None, "item2": pytest.approx(spoken_s[2])}
    page = collect([run], None, audio_bytes=0, max_rows=9, folder=run.folder).data
    assert page["prompted"] and page["lengths"] == [[lengths[s, f"item{n}"] for n in range(3)] for s in "ab"]
    assert {sample: cells.get("duration") for sample, cells in sample_columns(run)} == dict(
        enumerate(by_sample.values())
    )
    assert not any("sample_rate" in cells for _, cells in sample_columns(run))  # it is the prompt's


def test_files_with_the_sound_of_another_text_and_clipped_files_are_named(seed_tts):
    (seed_tts / "generated/item2.wav").write_bytes((seed_tts / "generated/item1.wav").read_bytes())
    _, audio = clips()[2]
    write(seed_tts / "generated", "item0.wav", Audio(np.clip(audio.samples * 20, -1, 1), audio.sample_rate_hz))
    run = score(generated="generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    (system,) = run.summary()["systems"].values()
    copied = [one for one in system["warned"] if one["kind"] == "copied"]
    assert [(one["n"], one["of"], one["other"]) for one in copied] == [(2, 3, "item1")]
    assert system["clipped"] == 1
    assert [item.id for item in run.items() if any(note.code == "flat_peaks" for note in item.notes)] == ["item0"]


def test_none_leaves_the_audio_of_the_data_out(seed_tts):
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        run = score(generated="generated", data="data", metrics="speech_share", reference="none", out="run", **SMALL)
    assert all(row.reference_duration_s is None and row.duration_s for row in run.rows())


def test_a_metric_is_warned_about_the_side_that_it_reads(seed_tts):
    """The target alone is narrow, so a metric of the generated sound alone is not warned."""
    for n, (_, audio) in enumerate(clips()):
        spectrum = np.fft.rfft(audio.samples)
        spectrum[:, spectrum.shape[1] // 3 :] = 0
        narrow = np.fft.irfft(spectrum, audio.num_samples).astype(np.float32)
        soundfile.write(f"data/prompt-wavs/p{n}.wav", narrow.T, 16000)
    options = {
        "generated": "generated",
        "data": "data",
        "metrics": "wer[pocketsphinx],mel_distance",
        "reference": "target",
    }
    run = score(**options, out="run", **SMALL)
    (system,) = run.summary()["systems"].values()
    moved = [name for one in system["warned"] if one["kind"] == "empty" for name in one["moved"]]
    assert moved == ["mel_distance"]


def test_a_target_in_a_fifth_field_is_compared(seed_tts):
    lines = (seed_tts / "data/meta.lst").read_text().splitlines()
    with_targets = [f"{line}|prompt-wavs/p{(n + 2) % 3}.wav" for n, line in enumerate(lines)]
    (seed_tts / "data/meta.lst").write_text("\n".join(with_targets) + "\n")
    run = score(
        generated="generated", data="data", metrics="si_sdr", reference="target", allow_same=True, out="run", **SMALL
    )
    assert all(row.status == "ok" or row.reason for row in run.rows())
    assert {row.reference_duration_s for row in run.rows()} == {row.duration_s for row in run.rows()}


def test_a_system_is_added_to_a_finished_run_and_nothing_is_scored_again(seed_tts):
    _spoken(seed_tts / "shorter", halves=True)
    score(generated="a=generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    first = {(r.system, r.id): r.value for r in open_run("run").rows()}
    run = score(generated="b=shorter,a=generated", data="data", metrics="sim[ge2e]", out="run", **SMALL)
    rows = {(r.system, r.id): r.value for r in run.rows()}
    assert list(run.systems) == ["a", "b"] and len(rows) == 6
    assert {key: rows[key] for key in first} == first
    assert run.meta["timings"]["items"] == 3
    with refuses("other_settings", hint="compare A B"):
        score(generated="c=shorter", data="data", metrics="sim[ge2e]", out="run", **SMALL)


def test_a_metric_whose_scores_were_all_refused_ends_with_3(seed_tts, cli):  # noqa: F811
    """Texts are missing, and the other metric has its values."""
    for n in range(3):
        write(seed_tts / "plain", f"item{n}.wav", clips()[n][1])
    metrics = "sim[ge2e],wer[pocketsphinx]"
    code, _, err = cli(
        "score", "--generated", "generated", "--data", "plain", "--metrics", metrics, "--out", "run", "--workers", "1"
    )
    assert code == 3 and "wer[pocketsphinx]: every score was refused: no transcript" in err
