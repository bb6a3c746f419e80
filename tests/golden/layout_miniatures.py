"""Small data sets in every layout, with embedded speech. The texts of Lhotse's manifests were
written by lhotse 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile

from codec_bench.data import open_source
from codec_bench.types import Audio

Expected = dict[str, tuple[str | None, str | None, str | None]]
"""By id: text, speaker, language."""


def clips() -> list[tuple[str, Audio]]:
    """Three utterances: words and sound."""
    samples = list(open_source("embedded"))[:3]
    return [(sample.text, Audio.read(sample.audio)) for sample in samples]


def write(folder: Path, name: str, audio: Audio) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {".wav": "WAV", ".flac": "FLAC", ".mp3": "MP3"}[path.suffix]
    soundfile.write(
        path, audio.samples.T, audio.sample_rate_hz, format=kind, subtype="PCM_16" if kind != "MP3" else None
    )


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def ljspeech(folder: Path) -> Expected:
    lines = []
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"wavs/LJ001-000{n}.wav", audio)
        lines.append(f"LJ001-000{n}|{text}|{text.lower()}")
    put(folder, "metadata.csv", "\n".join(lines) + "\n")
    put(folder, "README", "The LJ Speech Dataset")
    return {f"LJ001-000{n}": (text, None, None) for n, (text, _) in enumerate(clips())}


def librispeech(folder: Path) -> Expected:
    lines = []
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"test-clean/84/121123/84-121123-000{n}.flac", audio)
        lines.append(f"84-121123-000{n} {text}")
    put(folder, "test-clean/84/121123/84-121123.trans.txt", "\n".join(lines) + "\n")
    put(folder, "SPEAKERS.TXT", "84 | F | test-clean | 8.0 | Christie Nowak\n")
    return {f"84-121123-000{n}": (text, "84", None) for n, (text, _) in enumerate(clips())}


def libritts(folder: Path) -> Expected:
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"84/121123/84_121123_00000{n}_000000.wav", audio)
        put(folder, f"84/121123/84_121123_00000{n}_000000.original.txt", text)
        put(folder, f"84/121123/84_121123_00000{n}_000000.normalized.txt", text.lower())
    put(folder, "84/121123/84_121123.trans.tsv", "84_121123_000000_000000\ta\tb\n")
    return {f"84_121123_00000{n}_000000": (text, "84", None) for n, (text, _) in enumerate(clips())}


def vctk(folder: Path) -> Expected:
    expected: Expected = {}
    for n, (text, audio) in enumerate(clips()):
        put(folder, f"txt/p22{n}/p22{n}_001.txt", text + "\n")
        for mic in ("mic1", "mic2"):
            write(folder, f"wav48_silence_trimmed/p22{n}/p22{n}_001_{mic}.flac", audio)
            expected[f"p22{n}_001_{mic}"] = (text, f"p22{n}", None)
    put(folder, "speaker-info.txt", "ID  AGE  GENDER  ACCENTS  REGION\np220  23  F    English    Southern  England\n")
    return expected


def text_files(folder: Path) -> Expected:
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"part/{n}.wav", audio)
        put(folder, f"part/{n}.{'lab' if n == 2 else 'txt'}", text)
    return {f"part/{n}": (text, None, None) for n, (text, _) in enumerate(clips())}


def common_voice(folder: Path) -> Expected:
    columns = "client_id path sentence_id sentence sentence_domain up_votes down_votes age gender accents variant"
    lines = ["\t".join([*columns.split(), "locale", "segment"])]
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"clips/common_voice_en_{n}.mp3", audio)
        lines.append(f"speaker{n}\tcommon_voice_en_{n}.mp3\tid{n}\t{text}\t\t2\t0\t\t\t\t\ten\t")
    put(folder, "validated.tsv", "\n".join(lines) + "\n")
    put(folder, "test.tsv", "\n".join(lines[:2]) + "\n")
    return {f"common_voice_en_{n}": (text, f"speaker{n}", "en") for n, (text, _) in enumerate(clips())}


def kaldi(folder: Path) -> Expected:
    """One recording of three segments."""
    texts, segments, at, sounds = [], [], 0.5, [np.zeros((1, 8000), np.float32)]
    for n, (text, audio) in enumerate(clips()):
        assert audio.sample_rate_hz == 16000
        segments.append(f"utt{n} meeting {at:.6f} {at + audio.duration_s:.6f}")
        texts.append(f"utt{n} {text}")
        sounds += [audio.samples, np.zeros((1, 1600), np.float32)]
        at += audio.duration_s + 0.1
    write(folder, "audio/meeting.flac", Audio(np.concatenate(sounds, axis=1), 16000))
    put(folder, "data/test/wav.scp", "meeting audio/meeting.flac\n")
    put(folder, "data/test/segments", "\n".join(segments) + "\n")
    put(folder, "data/test/text", "\n".join(texts) + "\n")
    put(folder, "data/test/utt2spk", "".join(f"utt{n} spk{n % 2}\n" for n in range(3)))
    put(folder, "data/test/spk2utt", "spk0 utt0 utt2\nspk1 utt1\n")
    put(folder, "data/test/utt2lang", "".join(f"utt{n} en\n" for n in range(3)))
    return {f"utt{n}": (text, f"spk{n % 2}", "en") for n, (text, _) in enumerate(clips())}


def nemo(folder: Path) -> Expected:
    """The second utterance is a part of its file."""
    lines = []
    for n, (text, audio) in enumerate(clips()):
        pad = np.zeros((1, 16000), np.float32)
        write(folder, f"wav/{n}.wav", Audio(np.concatenate([pad, audio.samples, pad], 1), 16000) if n == 1 else audio)
        item = {"offset": 1.0} if n == 1 else {}
        lines.append(
            json.dumps(
                {"audio_filepath": f"wav/{n}.wav", "duration": audio.duration_s, **item, "text": text, "lang": "en"}
            )
        )
    put(folder, "test_manifest.json", "\n".join(lines) + "\n")
    end = 1000 + round(clips()[1][1].duration_s * 1000)
    ids = ["0", f"1-0001000-{end:07d}", "2"]
    return {id: (text, None, "en") for id, (text, _) in zip(ids, clips())}


_RECORDING = (
    '{{"id": "rec{n}", "sources": [{{"type": "file", "channels": [0], "source": "rec{n}.wav"}}], "sampling_rate": '
    '16000, "num_samples": {size}, "duration": {length}, "channel_ids": [0]}}'
)
_SUPERVISION = (
    '{{"id": "utt{n}", "recording_id": "rec{n}", "start": {start}, "duration": {length}, "channel": 0, "text": {text}, '
    '"language": "English", "speaker": "spk{n}"}}'
)
_CUT = (
    '{{"id": "utt{n}", "start": {start}, "duration": {length}, "channel": 0, "supervisions": [{{"id": "utt{n}", '
    '"recording_id": "rec{n}", "start": 0.0, "duration": {length}, "channel": 0, "text": {text}, "language": '
    '"English", "speaker": "spk{n}"}}], "recording": {recording}, "type": "MonoCut"}}'
)


def _lhotse(folder: Path) -> tuple[list[str], list[str], list[str]]:
    recordings, supervisions, cuts = [], [], []
    for n, (text, audio) in enumerate(clips()):
        start = 0.5 * n
        sound = np.concatenate([np.zeros((1, 8000 * n), np.float32), audio.samples], axis=1)
        write(folder, f"rec{n}.wav", Audio(sound, 16000))
        size = sound.shape[1]
        recordings.append(_RECORDING.format(n=n, size=size, length=size / 16000))
        fields = {"n": n, "start": start, "length": audio.duration_s, "text": json.dumps(text)}
        supervisions.append(_SUPERVISION.format(**fields))
        cuts.append(_CUT.format(**fields, recording=recordings[-1]))
    return recordings, supervisions, cuts


def lhotse(folder: Path) -> Expected:
    recordings, supervisions, _ = _lhotse(folder)
    put(folder, "toy_recordings_train.jsonl", "\n".join(recordings) + "\n")
    put(folder, "toy_supervisions_train.jsonl", "\n".join(supervisions) + "\n")
    return {f"utt{n}": (text, f"spk{n}", "English") for n, (text, _) in enumerate(clips())}


def lhotse_cuts(folder: Path) -> Expected:
    import gzip

    _, _, cuts = _lhotse(folder)
    with gzip.open(folder / "cuts_train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(cuts) + "\n")
    return {f"utt{n}": (text, f"spk{n}", "English") for n, (text, _) in enumerate(clips())}


def seed_tts(folder: Path) -> Expected:
    """The sound of each row is the prompt: the utterance before."""
    for n, (_, audio) in enumerate(clips()):
        write(folder, f"prompt-wavs/p{n}.wav", audio)
    texts = [text for text, _ in clips()]
    put(folder, "meta.lst", "".join(f"item{n}|{texts[n]}|prompt-wavs/p{n}.wav|{texts[n - 1]}\n" for n in range(3)))
    return {f"item{n}": (texts[n - 1], None, None) for n in range(3)}


def esd(folder: Path) -> Expected:
    lines = []
    for n, (text, audio) in enumerate(clips()):
        write(folder, f"0011/Angry/0011_00035{n}.wav", audio)
        lines.append(f"0011_00035{n}\t{text}\tAngry")
    put(folder, "0011/0011.txt", "\n".join(lines) + "\n")
    return {f"0011_00035{n}": (text, "0011", "en") for n, (text, _) in enumerate(clips())}


def audiofolder(folder: Path) -> Expected:
    for split, numbers in (("train", (0, 1)), ("test", (2,))):
        lines = ["file_name,transcription,speaker_id"]
        for n in numbers:
            text, audio = clips()[n]
            write(folder, f"{split}/{n}.wav", audio)
            lines.append(f'{n}.wav,"{text}",s{n}')
        put(folder, f"{split}/metadata.csv", "\n".join(lines) + "\n")
    return {f"{n}": (text, f"s{n}", None) for n, (text, _) in enumerate(clips())}


def _features(folder: Path):  # type: ignore[no-untyped-def]
    from datasets import Audio as Feature
    from datasets import ClassLabel, Dataset

    for n, (_, audio) in enumerate(clips()):
        write(folder, f"source/{n}.wav", audio)
    spoken_by = ClassLabel(names=["a", "b"])
    table = {
        "audio": [{"bytes": (folder / f"source/{n}.wav").read_bytes(), "path": f"clip{n}.wav"} for n in range(3)],
        "text": [text for text, _ in clips()],
        "speaker_id": [0, 1, 0],
    }
    return Dataset.from_dict(table).cast_column("audio", Feature()).cast_column("speaker_id", spoken_by)


def save_to_disk(folder: Path) -> Expected:
    import shutil

    _features(folder / "made").save_to_disk(folder / "saved", num_shards=2)
    shutil.rmtree(folder / "made")
    return {f"clip{n}": (text, "aba"[n], None) for n, (text, _) in enumerate(clips())}


def save_splits_to_disk(folder: Path) -> Expected:
    import shutil

    from datasets import DatasetDict

    built = _features(folder / "made")
    DatasetDict({"train": built.select([0, 2]), "test": built.select([1])}).save_to_disk(folder / "saved")
    shutil.rmtree(folder / "made")
    return {f"clip{n}": (text, "aba"[n], None) for n, (text, _) in enumerate(clips())}


def webdataset(folder: Path) -> Expected:
    """As `webdataset.TarWriter` writes it: members in the order of their keys, with POSIX headers."""
    import io
    import tarfile

    folder.mkdir(parents=True, exist_ok=True)
    for n, (text, audio) in enumerate(clips()):
        with tarfile.open(folder / f"part-{n:06d}.tar", "w") as tar:
            sound = io.BytesIO()
            soundfile.write(sound, audio.samples.T, audio.sample_rate_hz, format="FLAC", subtype="PCM_16")
            parts = {
                "flac": sound.getvalue(),
                "json": b'{"speaker": "s%d", "language": "en"}' % n,
                "txt": text.encode(),
            }
            for kind, data in parts.items():
                member = tarfile.TarInfo(f"clip{n}.{kind}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return {f"clip{n}": (text, f"s{n}", "en") for n, (text, _) in enumerate(clips())}


def parquet(folder: Path) -> Expected:
    import shutil

    _features(folder / "made").to_parquet(folder / "data" / "test-00000-of-00001.parquet")
    shutil.rmtree(folder / "made")
    return {f"test/{n}": (text, "aba"[n], None) for n, (text, _) in enumerate(clips())}


MINIATURES: dict[str, tuple[str, Callable[[Path], Expected]]] = {
    "ljspeech": ("LJSpeech", ljspeech),
    "librispeech": ("LibriSpeech", librispeech),
    "libritts": ("LibriTTS", libritts),
    "vctk": ("VCTK", vctk),
    "text_files": ("sound with text files", text_files),
    "common_voice": ("Common Voice", common_voice),
    "kaldi": ("Kaldi and ESPnet", kaldi),
    "nemo": ("NeMo", nemo),
    "lhotse": ("Lhotse", lhotse),
    "lhotse_cuts": ("Lhotse", lhotse_cuts),
    "seed_tts": ("Seed-TTS", seed_tts),
    "esd": ("ESD", esd),
    "audiofolder": ("audiofolder", audiofolder),
    "save_to_disk": ("datasets.save_to_disk", save_to_disk),
    "save_splits_to_disk": ("datasets.save_to_disk", save_splits_to_disk),
    "webdataset": ("WebDataset", webdataset),
}
"""By name: the layout's name, and what writes a data set into a folder."""
