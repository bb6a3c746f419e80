"""Data as toolkits leave them: every layout gives the texts, speakers, languages and sounds that it holds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from layout_miniatures import MINIATURES, clips, parquet, put, write

from codec_bench import score
from codec_bench.data import match_estimates, open_source
from codec_bench.data.cells import name_class
from codec_bench.data.convert import convert_data
from codec_bench.data.layouts import LAYOUTS
from codec_bench.data.pairing import open_generated
from codec_bench.messages.errors import Note, UserError
from codec_bench.types import Audio, Sample

pytestmark = pytest.mark.filterwarnings("ignore::codec_bench.messages.errors.Note")


@pytest.mark.parametrize("name", MINIATURES)
def test_a_layout_gives_what_it_holds(tmp_path, name):
    layout, build = MINIATURES[name]
    expected = build(tmp_path)
    source = open_source(tmp_path)
    assert source.report is not None and source.report.layout == layout
    assert {s.id: (s.text, s.speaker, s.language) for s in source} == expected
    assert not source.problems and not source.report.absent and not source.report.unlisted
    texts = {text: audio for text, audio in clips()}
    for sample in source:
        if name == "seed_tts":  # the sound is another text's
            continue
        audio = Audio.read(sample.audio)
        original = texts[sample.text]
        if name == "common_voice":  # MP3 is lossy
            assert abs(audio.duration_s - original.duration_s) < 0.2
            continue
        assert audio.samples.shape == original.samples.shape
        assert np.abs(audio.samples - original.samples).max() < 1e-4


def _replace(folder, file, old, new):
    path = folder / file
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def _edit(name, file, old, new):
    """A fault: other bytes in one text file of a miniature."""
    return name, lambda folder: _replace(folder, file, old, new)


FAULTS = {
    "fields": (_edit("ljspeech", "metadata.csv", b"|A cold wind blew across the river before the morning came.|", b""),
        "line 2 of metadata.csv has 1 fields") ,
    "latin-1": (_edit("ljspeech", "metadata.csv", b"morning", b"m\xf6rning"), "line 2 of 'metadata.csv' is not UTF-8"),
    "utf-16": (("ljspeech", lambda f: (f / "metadata.csv").write_bytes("LJ001-0000|a".encode("utf-16"))),
        "line 1 of 'metadata.csv' is UTF-16"),
    "leaves": (_edit("ljspeech", "metadata.csv", b"LJ001-0001|", b"../../LJ001-0001|"),
        "line 2 of metadata.csv names '../../LJ001-0001', which is outside the folder"),
    "no sound": (("ljspeech", lambda f: (f / "wavs/LJ001-0002.wav").unlink()),
        "line 3 of metadata.csv names 'LJ001-0002', and there is no such sound file"),
    "two sounds": (("librispeech", lambda f: [write(f, f"{d}/84-121123-0009.flac", clips()[0][1]) for d in "ab"]
        + [_replace(f, "test-clean/84/121123/84-121123.trans.txt", b"-0000 ", b"-0009 ")]),
        "line 1 of 84-121123.trans.txt names '84-121123-0009', which may be 'a/84-121123-0009.flac' or 'b/"),
    "sidecar": (("text_files", lambda f: (f / "part/1.txt").write_bytes(b"ok\nb\xe9")),
        "line 2 of '1.txt' is not UTF-8"),
    "pipe": (_edit("kaldi", "data/test/wav.scp", b"audio/meeting.flac", b"sph2pipe -f wav a.sph |"),
        "line 1 of wav.scp is a command ('sph2pipe -f wav a.sph |'), which is not run"),
    "ark": (_edit("kaldi", "data/test/wav.scp", b"audio/meeting.flac", b"raw.ark:123"),
        "line 1 of wav.scp names an archive ('raw.ark:123')"),
    "beyond": (_edit("kaldi", "data/test/segments", b"utt2 meeting 7.08", b"utt2 meeting 99.08"),
        "line 3 of segments goes from 99.08 to"),
    "segment end": (("kaldi", lambda f: put(f, "data/test/segments", "utt0 meeting 0.5 99\n")),
        "line 1 of segments goes to 99 s, and 'meeting.flac' ends at 10.325 s"),
    "segment form": (_edit("kaldi", "data/test/segments", b"utt1 meeting 3", b"utt1 meeting x3"),
        "line 2 of segments is not UTTERANCE RECORDING BEGIN END"),
    "recording": (_edit("kaldi", "data/test/segments", b"utt1 meeting", b"utt1 lecture"),
        "line 2 of segments names the recording 'lecture', which wav.scp lacks"),
    "offset": (_edit("nemo", "test_manifest.json", b'"offset": 1.0', b'"offset": "soon"'),
        "line 2 of test_manifest.json has the offset 'soon'"),
    "nemo end": (_edit("nemo", "test_manifest.json", b'"offset": 1.0', b'"offset": 90.0'),
        "line 2 of test_manifest.json goes to 9"),
    "json": (_edit("nemo", "test_manifest.json", b'{"audio_filepath": "wav/2', b'"audio_filepath": "wav/2'),
        "line 3 of test_manifest.json is not JSON"),
    "lhotse recording": (_edit("lhotse", "toy_supervisions_train.jsonl", b'"recording_id": "rec1"',
        b'"recording_id": "rec9"'), "line 2 of toy_supervisions_train.jsonl names the recording 'rec9'"),
    "lhotse command": (_edit("lhotse", "toy_recordings_train.jsonl", b'"type": "file"', b'"type": "command"'),
        "line 1 of toy_supervisions_train.jsonl has a recording that is a command; expected a file"),
    "prompts": (_edit("seed_tts", "meta.lst", b"item1|", b"item1||"), "line 2 of meta.lst names"),
    "few fields": (_edit("seed_tts", "meta.lst", b"|prompt-wavs/p1.wav|", b"|"),
        "line 2 of meta.lst has 3 fields between bars; expected 4 or 5"),
    "metadata leaves": (_edit("audiofolder", "train/metadata.csv", b"0.wav", b"../../0.wav"),
        "line 2 of metadata.csv names '../../0.wav', which is outside the folder"),
    "cells": (_edit("common_voice", "validated.tsv", b"\tid1\t", b"\t"),
        "line 3 of validated.tsv has 12 cells where the header has 13"),
    "arrow": (("save_to_disk", lambda f: next(f.rglob("*.arrow")).write_bytes(b"\xff\xff\xff\xff" + b"x" * 99)),
        ".arrow' cannot be read as Arrow"),
    "two layouts": (("ljspeech", lambda f: put(f, "wav.scp", "a wavs/LJ001-0000.wav\n")),
        "files of two layouts: LJSpeech (metadata.csv) and Kaldi and ESPnet (wav.scp)"),
    "an id twice": (_edit("ljspeech", "metadata.csv", b"LJ001-0002|", b"LJ001-0000|"),
        "line 3 of metadata.csv has the id 'LJ001-0000', which line 1 has already"),
    "a recording twice": (_edit("kaldi", "data/test/wav.scp", b"audio/meeting.flac",
        b"audio/meeting.flac\nmeeting audio/other.flac"),
        "line 2 of wav.scp has the id 'meeting', which line 1 has already"),
    "a text twice": (_edit("kaldi", "data/test/text", b"utt1 ", b"utt1 other words\nutt1 "),
        "line 3 of text has the id 'utt1', which line 2 has already"),
    "no tab": (_edit("esd", "0011/0011.txt", b"0011_000350\t", b"0011_000359 words\n0011_000350\t"),
        "line 1 of 0011.txt has no tab"),
    "two lists": (("kaldi", lambda f: put(f, "data/dev/wav.scp", "a b.wav\n")),
        "2 lists of the layout Kaldi and ESPnet: data/dev/wav.scp, data/test/wav.scp"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_layout_is_one_sentence_with_its_file_and_line(tmp_path, fault):
    (name, plant), says = FAULTS[fault]
    MINIATURES[name][1](tmp_path)
    plant(tmp_path)
    try:
        result = list(open_source(tmp_path).problems.values())
    except UserError as error:
        result = [error.message]
    assert any(says in one for one in result), result
    assert all("\n" not in one for one in result)


def test_texts_without_sound_and_sounds_without_text_are_counted(tmp_path):
    MINIATURES["ljspeech"][1](tmp_path)
    (tmp_path / "wavs/LJ001-0002.wav").rename(tmp_path / "wavs/other.wav")
    put(tmp_path, "wavs/notes.txt", "read by nobody")
    with pytest.warns(Note):
        report = open_source(tmp_path).report
    assert (report.absent, report.unlisted, report.unread) == (["LJ001-0002"], ["wavs/other.wav"], ["wavs/notes.txt"])
    texts = open_source(tmp_path, require_audio=False)
    assert not texts.problems and [s.audio is None for s in texts] == [False, False, True]


def test_text_files_next_to_sound_are_never_ignored_silently(tmp_path):
    write(tmp_path, "a.wav", clips()[0][1])
    put(tmp_path, "transcripts.tsv", "a\thello\n")
    put(tmp_path, "README.md", "about")
    with pytest.warns(Note) as noted:
        assert open_source(tmp_path).report.unread == ["transcripts.tsv"]
    assert noted[0].message.message.parameters["cause"].code == "text_files_unread"


def test_a_named_file_decides_between_two_layouts(tmp_path):
    expected = MINIATURES["ljspeech"][1](tmp_path)
    put(tmp_path, "wav.scp", "only wavs/LJ001-0000.wav\n")
    assert {s.id for s in open_source(tmp_path / "metadata.csv")} == set(expected)
    assert [s.id for s in open_source(tmp_path / "wav.scp")] == ["only"]


def test_words_come_from_a_text_grid_next_to_the_sound(tmp_path):
    MINIATURES["text_files"][1](tmp_path)
    grid = (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2\n<exists>\n1\n"IntervalTier"\n"words"\n0\n2\n3\n'
        '0\n0.5\n"the"\n0.5\n1.25\n""\n1.25\n2\n"farmer"\n'
    )
    put(tmp_path, "part/0.TextGrid", grid)
    source = open_source(tmp_path)
    assert source.samples[0].extra == {"words": [(0.0, 0.5, "the"), (1.25, 2.0, "farmer")]}
    assert source.report.unread == []


def test_a_channel_of_a_segment_is_read_alone(tmp_path):
    """A supervision of one channel of a recording with two, as lhotse 1.33 writes it."""
    left, right = (np.full(32000, value, np.float32) for value in (0.25, -0.5))
    soundfile.write(tmp_path / "rec2.wav", np.stack([left, right], 1), 16000, subtype="FLOAT")
    put(
        tmp_path,
        "recordings.jsonl",
        '{"id": "rec2", "sources": [{"type": "file", "channels": [0, 1], "source": "rec2.wav"}], "sampling_rate": '
        '16000, "num_samples": 32000, "duration": 2.0, "channel_ids": [0, 1]}\n',
    )
    put(
        tmp_path,
        "supervisions.jsonl",
        '{"id": "utt3", "recording_id": "rec2", "start": 0.5, "duration": 1.0, "channel": 1, "text": "five", '
        '"language": "English", "speaker": "c"}\n',
    )
    audio = Audio.read(open_source(tmp_path).samples[0].audio)
    assert audio.samples.shape == (1, 16000) and np.all(audio.samples == -0.5)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", ["kaldi", "save_splits_to_disk", "libritts"])
def test_a_converted_manifest_gives_the_same_rows(tmp_path, name, kind):
    MINIATURES[name][1](tmp_path / name)
    assert convert_data(tmp_path / name, tmp_path / f"manifest.{kind}") == (3, {})
    before, after = open_source(tmp_path / name), open_source(tmp_path / f"manifest.{kind}")
    for one, other in zip(before, after, strict=True):
        assert (one.id, one.text, one.speaker, one.language, dict(one.extra)) == (
            other.id, other.text, other.speaker, other.language, dict(other.extra),
        )  # fmt: skip
        assert np.array_equal(Audio.read(one.audio).samples, Audio.read(other.audio).samples)


@pytest.mark.parametrize("name", ["kaldi", "common_voice", "save_to_disk", "webdataset", "seed_tts"])
def test_generated_sound_in_a_layout_is_matched(tmp_path, name):
    expected = MINIATURES[name][1](tmp_path / name)
    generated = open_generated(tmp_path / name)
    if name == "seed_tts":  # its list names prompts, so the folder's sounds are taken
        assert {s.id for s in generated} == {f"prompt-wavs/p{n}" for n in range(3)}
        return
    assert {s.id for s in generated} == set(expected)
    manifest = [Sample(id, None, text=text) for id, (text, _, _) in expected.items()]
    matched = match_estimates(open_source(manifest, require_audio=False), tmp_path / name)
    assert all(sample.estimate for sample in matched)


def test_numbers_of_classes_are_read_as_their_names(tmp_path):
    """As `datasets` writes a column of the type `ClassLabel`."""
    expected = parquet(tmp_path)
    assert {s.id: (s.text, s.speaker, s.language) for s in open_source(tmp_path)} == expected
    (file,) = tmp_path.rglob("*.parquet")
    assert [s.speaker for s in open_source(file)] == ["a", "b", "a"]
    assert [name_class(value, ["a", "b"]) for value in (1, -1, 2, None)] == ["b", None, 2, None]


def test_a_cut_that_holds_a_part_of_its_words_has_no_text(tmp_path):
    """As `CutSet.cut_into_windows` writes cuts: the supervisions stay whole."""
    MINIATURES["lhotse_cuts"][1](tmp_path)
    file = tmp_path / "cuts_train.jsonl.gz"
    first, second, third = gzip.open(file, "rt").read().splitlines()
    halved = {**json.loads(second), "duration": 0.5}
    file.write_bytes(gzip.compress("\n".join([first, json.dumps(halved), third]).encode()))
    with pytest.warns(Note):
        source = open_source(tmp_path)
    assert [s.text is None for s in source] == [False, True, False]
    assert source.report.unlisted == ["utt1"]


def test_utterances_without_text_are_counted(tmp_path):
    MINIATURES["kaldi"][1](tmp_path)
    text = tmp_path / "data/test/text"
    text.write_text("\n".join(text.read_text("utf-8").splitlines()[:2]) + "\n", "utf-8")
    with pytest.warns(Note):
        assert open_source(tmp_path).report.unlisted == ["utt2"]


def test_the_page_has_a_line_for_every_layout():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    for layout in LAYOUTS:
        assert f"| {layout.name} | {layout.form.replace('|', chr(92) + '|')} |" in page


def test_texts_of_every_layout_are_scored_with_one_command(tmp_path):
    """Recognised words depend on the text alone, so every layout gives the counts of the first."""
    counts = {}
    for name in ("ljspeech", "kaldi", "nemo", "lhotse_cuts", "save_to_disk"):
        expected = MINIATURES[name][1](tmp_path / name)
        audio_of = dict(clips())
        for id, (text, _, _) in expected.items():
            write(tmp_path / f"{name}_generated", f"{id}.wav", audio_of[text])
        run = score(
            generated=tmp_path / f"{name}_generated", data=tmp_path / name, metrics="wer[pocketsphinx],sim[ge2e]",
            out=tmp_path / f"{name}_run", allow_same=True, workers=1, page=False,
        )  # fmt: skip
        rows = list(run.rows())
        assert {row.status for row in rows} == {"ok"}
        counts[name] = sorted((row.denominator, row.numerator) for row in rows if row.metric == "wer[pocketsphinx]")
    assert len({tuple(one) for one in counts.values()}) == 1, counts
