"""What is recognised after a codec, from data in their published layouts to the board, with small networks that were
taught what is right.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import miniature
import planted_sounds
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from planted_sounds import EMOTIONS, EVENTS
from tiny_speech import write_emotion2vec

from codec_bench import Audio, leaderboard
from codec_bench.api.run_benchmark import run_codecs
from codec_bench.benchmark import suite
from codec_bench.data import open_source
from codec_bench.features import REGISTRY

GOLDEN = Path(miniature.__file__).parent
HISS = f"{GOLDEN / 'planted_codecs.py'}:Hiss"
STAND_INS = {
    "emotion2vec-plus-large": "tiny_speech:SmallEmotion2vec",
    "wavlm-large-sv": "codec_bench.features.speakers.ge2e:Ge2e",
    "whisper-large-v3": "codec_bench.features.recognisers.pocketsphinx:Pocketsphinx",
}


def stored(samples, rate_hz, name):
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format="WAV", subtype="FLOAT")
    return {"bytes": file.getvalue(), "path": name}


def write_split(root, repository, split, columns):
    folder = root / repository / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / f"{split}-00000-of-00001.parquet")
    miniature.write_card(root / repository)


def write_events(root, each=2):
    rows = [(kind, n) for kind in EVENTS for n in range(each)]
    names = [f"1-{n}-{kind}.wav" for kind, n in rows]
    sounds = [stored(planted_sounds.event(*row), planted_sounds.RATE_HZ, name) for row, name in zip(rows, names)]
    write_split(
        root, "ashraq/esc50", "train", {"filename": names, "category": [kind for kind, _ in rows], "audio": sounds}
    )


def write_emotions(root, each=2):
    """The definition excludes the label calm, and the name of disgust is another one in the data."""
    rows = [(kind, n) for kind in EMOTIONS for n in range(each)] + [("calm", 0)]
    sounds = [
        stored(planted_sounds.voice("neutral" if kind == "calm" else kind, n), 16_000, "a.wav") for kind, n in rows
    ]
    text = [{"disgusted": "disgust"}.get(kind, kind) for kind, _ in rows]
    write_split(root, "TwinkStart/RAVDESS", "ravdess_emo", {"audio": sounds, "emotion": text})


def write_people(root, trials, each=3):
    """Published trials name recordings with `.wav`: here all pairs, and one of a recording that is not there."""
    clips = [s for k, s in enumerate(open_source("embedded")) if k % 8 < each]
    sounds = [stored(Audio.read(clip.audio).samples[0], 16_000, "a.wav") for clip in clips]
    ids = [f"{clip.speaker}/video/{clip.id}" for clip in clips]
    people = [clip.speaker for clip in clips]
    write_split(root, "macabdul9/VoxCeleb_test", "test", {"audio": sounds, "id": ids, "speaker_id": people})
    lines = [
        f"{int(people[a] == people[b])} {ids[a]}.wav {ids[b]}.wav"
        for a in range(len(ids)) for b in range(len(ids)) if a != b
    ]  # fmt: skip
    trials.write_text("\n".join([*lines, f"1 nobody/video/1.wav {ids[0]}.wav"]))


def write_words(root, count=3):
    clips = list(open_source("embedded"))[:count]
    sounds = [stored(Audio.read(clip.audio).samples[0], 16_000, "a.flac") for clip in clips]
    paths = [f"data/{1080 + n}/12/{1080 + n}-12-0003.flac" for n in range(count)]
    columns = {"audio": sounds, "text": [clip.text.upper() for clip in clips], "WavPath": paths}
    write_split(root, "TwinkStart/librispeech", "test_clean", columns)


@pytest.fixture
def taught(tmp_path, monkeypatch):
    """Small networks where the published ones are looked for; voices and words are recognised by those that the project
    brings.
    """
    weights = tmp_path / "weights"
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(weights))
    planted_sounds.write_reading_clap(weights / "clap-htsat-unfused")
    planted_sounds.teach_clap(weights / "clap-htsat-unfused")
    (weights / "emotion2vec-plus-large").mkdir()
    planted_sounds.teach_emotion2vec(write_emotion2vec(weights / "emotion2vec-plus-large"))
    stood_in = (
        tmp_path / "stood_in"
    )  # the workers are processes of their own, which Python lets a module like this one prepare
    stood_in.mkdir()
    (stood_in / "sitecustomize.py").write_text(
        f"from codec_bench.features import REGISTRY\nREGISTRY.built_in.update({STAND_INS})\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(stood_in), str(GOLDEN)]))
    for name, path in STAND_INS.items():
        monkeypatch.setitem(REGISTRY.built_in, name, path)


@pytest.mark.long  # its parts have short tests: trials, emotions, and events in the samples
def test_a_codec_that_keeps_what_is_recognised_is_first_and_noise_is_last(taught, tmp_path):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    mirror, trials = tmp_path / "mirror", tmp_path / "veri_test2.txt"
    write_events(mirror)
    write_emotions(mirror)
    write_people(mirror, trials)
    write_words(mirror)
    chosen = {
        "codec-librispeech-test-clean": {"metrics": "wer[seed-tts]", "primary": "wer[seed-tts]"},
        "codec-voxceleb1-o": {"metrics": "bitrate,asv_eer_listed", "data.trials": str(trials)},
    }
    run_codecs(
        benchmark=suite("codec-applications"), codec=f"unprocessed,opus-24k,{HISS}", data=mirror, out=tmp_path / "run",
        page=False, cache=False,
        workers=1, options=chosen,
    )  # fmt: skip
    board = leaderboard("codec-applications", [tmp_path / "run"])
    cells = {}
    for row in board.rows:  # of the data with a published size these are a part, which is a row of its own
        cells.setdefault(row.name.removesuffix(" (parts of the questions)"), {}).update(row.cells)
    assert set(cells) == {"unprocessed", "opus-24k", "hiss"} and not board.ignored
    assert all(len(values) == 4 for values in cells.values())
    (first, good, bad) = (
        {name.partition("/")[0]: float(v) for name, v in cells[codec].items()}
        for codec in ("unprocessed", "opus-24k", "hiss")
    )
    assert first["esc-50"] == good["esc-50"] == 100 and bad["esc-50"] <= 75
    assert first["ravdess"] >= good["ravdess"] >= 70 and bad["ravdess"] == pytest.approx(100 / len(EMOTIONS), abs=0.01)
    assert first["voxceleb1-o"] == good["voxceleb1-o"] == 0 and bad["voxceleb1-o"] > 35
    assert (
        first["librispeech-test-clean"] <= good["librispeech-test-clean"] + 10 < 60
        and bad["librispeech-test-clean"] > 90
    )
