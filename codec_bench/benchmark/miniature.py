"""Miniature data sets: a few invented rows with a definition's columns and types.

`write_miniature(name, folder)` writes them in the layout of the real data. With `run --data FOLDER` they try a model or
an endpoint without the data.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from codec_bench.benchmark import Benchmark, benchmark_names, load_benchmark
from codec_bench.config import load_yaml
from codec_bench.messages.errors import UserError
from codec_bench.store.answers import SOUNDS

ROWS = 4
"""Rows of each split."""
NO_SOUND, NO_REFERENCE = 4, 5
"""With more rows, the row without a sound (or a text, if there are no sounds) and that without a reference."""
RATE_HZ = 16_000

SENTENCES: dict[str, list[str]] = load_yaml(files("codec_bench.benchmark").joinpath("miniature_sentences.yaml"))
OPTIONS = ("A guitar", "Two violins", "Three drums", "Four flutes")
ANSWERS = (["Paris"], ["the Nile", "Nile"], ["Jane Austen"], ["Zürich"])


@cache
def load(name: str) -> Benchmark:
    """Load a benchmark once."""
    return load_benchmark(name)


def write_miniature(name: str, folder: Path) -> Path:
    """Write a small invented data set in the layout of a benchmark's data.

    Args:
        name: of the benchmark.
        folder: a mirror of the hub, in which the data get the path of their repository. It is returned.

    Raises:
        UserError: the benchmark reads local files.
    """
    benchmark = load(name)
    data, folder = benchmark.data, Path(folder)
    if data.repository is None:
        raise UserError("reads_own_files", name=name, hint="run it with --limit to try a model on a few rows")
    root = folder / data.repository
    if data.layout in _WRITERS:
        _WRITERS[data.layout](root, benchmark)
        return folder
    if data.repository in SOUND_FOLDERS:
        _write_sound_folder(root)
        return folder
    for config in data.configs or [data.data_dir or data.config or "data"]:
        for split in data.splits or ([data.split] if data.split else ["dev", "test"]):
            file = _table_file(root, split, config)
            if not file.exists():  # else a benchmark with the same table wrote it
                _put_table(file, _table(_sharing(data, split if data.split or data.splits else None)))
    if data.sounds is not None:
        _write_archive(root / data.sounds)
    write_card(root)
    if data.join is not None and data.join.repository is not None:
        _write_joined(folder / data.join.repository, benchmark)
    elif data.join is not None:
        write_miniature(_with_data(repository=data.repository, config=data.join.config)[0].name, folder)
    return folder


def tone(index: int, seconds: float = 0.1) -> np.ndarray:
    """The tone of a row, float64 `(samples,)` at 16 kHz."""
    return 0.3 * np.sin(2 * math.pi * (220 + 20 * index) * np.arange(round(RATE_HZ * seconds)) / RATE_HZ)


def _put(file: Path, content: bytes | str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def _put_lines(file: Path, lines: Iterable[str]) -> None:
    _put(file, "".join(f"{line}\n" for line in lines))


def _put_mp3(file: Path, index: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(file, tone(index, 0.5), RATE_HZ, format="MP3")


def _put_table(file: Path, table: pa.Table) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)


def _table_file(root: Path, split: str | None, config: str = "data") -> Path:
    return root / config / f"{split}-00000-of-00001.parquet"


@cache
def _all() -> dict[str, Benchmark]:
    return {name: load(name) for name in benchmark_names()}


def _with_data(**values: str | None) -> list[Benchmark]:
    """The benchmarks whose `data` has these values."""
    return _by_data(tuple(values)).get(tuple(values.values()), [])


@cache
def _by_data(names: tuple[str, ...]) -> dict[tuple[str | None, ...], list[Benchmark]]:
    """Group all benchmarks by the values of these fields of their `data`."""
    benchmarks: dict[tuple[str | None, ...], list[Benchmark]] = {}
    for one in _all().values():
        benchmarks.setdefault(tuple(getattr(one.data, name) for name in names), []).append(one)
    return benchmarks


def _sharing(data: Any, split: str | None) -> list[Benchmark]:
    """The benchmarks with rows in the same file: it has the columns of all."""
    benchmarks = _with_data(repository=data.repository, config=data.config, data_dir=data.data_dir)
    return [one for one in benchmarks if one.data.split == split or split in (one.data.splits or ())]


def _table(benchmarks: list[Benchmark]) -> pa.Table:
    """Build a small table with all columns that these benchmarks read."""
    columns: dict[str, list[Any]] = {}
    # Without choices first: the reference of the others is one of the choices.
    for benchmark in sorted(benchmarks, key=lambda one: "choices" in one.data.columns):
        data = benchmark.data
        if data.join is not None:
            columns[data.join.key] = [_key(index, data) for index in range(ROWS)]
        for our, column in data.columns.items():
            if data.join is not None and column in data.join.columns:
                continue  # of another table
            if isinstance(column, list):
                for at, field in enumerate(column):
                    columns.setdefault(field, _several(our, at, benchmark))
            elif column != "split" and (column not in columns or our == "reference"):
                columns[column] = [_cell(our, index, benchmark) for index in range(ROWS)]
        if data.speaker is not None and data.speaker.column not in columns:
            columns[data.speaker.column] = [_speaker(index, data.repository) for index in range(ROWS)]
        if data.id is not None:
            columns[data.id] = [f"row-{index}" for index in range(ROWS)]
        if data.expand is not None:
            for field in data.expand.columns.values():
                columns[field] = [f"{field}: calm and slow, number {index}" for index in range(ROWS)]
    for name in [name for name in columns if "." in name]:
        outer, _, inner = name.partition(".")
        held = columns.setdefault(outer, [{} for _ in range(ROWS)])
        columns[outer] = [{**cell, inner: value} for cell, value in zip(held, columns.pop(name))]
    conditions = [one.data.where for one in benchmarks if one.data.where is not None]
    first = dict(columns)
    # The rows of a benchmark with a condition follow those of the others.
    for at, where in enumerate(where for n, where in enumerate(conditions) if where not in conditions[:n]):
        for name, values in first.items():
            columns[name] = columns[name] + ([where[name]] * len(values) if name in where else _again(values, at))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _again(values: list[Any], at: int) -> list[Any]:
    return [f"{value}-again-{at}" if isinstance(value, str) and value.startswith("row-") else value for value in values]


def _key(index: int, data: Any) -> Any:
    """A row's key for `join`: its number, or `call-N` if another data set is joined."""
    return index if data.join.repository is None else f"call-{index}"


def _write_joined(root: Path, benchmark: Benchmark) -> None:
    """Write the table that a benchmark joins; its last key has empty values."""
    data = benchmark.data
    assert data.join is not None
    keys = list(dict.fromkeys(_key(index, data) for index in range(ROWS)))
    columns: dict[str, list[Any]] = {data.join.other_key or data.join.key: keys}
    for column in data.join.columns.values():
        columns[column] = [
            None if key == keys[-1] else _sentence(benchmark.language, at) for at, key in enumerate(keys)
        ]
    _put_table(_table_file(root, data.join.split or data.split), pa.table(columns))
    write_card(root)


SPEAKERS = {
    "TwinkStart/librispeech": "data/{0}/12/{0}-12-0003.flac",
    "TwinkStart/AISHELL-1": "wav/test/S{0}/BAC009S{0}W0121.wav",
}
"""Paths that hold the speaker, by repository; elsewhere the cell is the speaker."""


def _speaker(index: int, repository: str | None) -> str:
    """The speaker cell of a row: two speakers in turn, and `None` for every third row."""
    number = index % 3
    if number == 2:
        return "None"
    return SPEAKERS.get(repository or "", "{0}").format(1080 + number)


def _several(our: str, at: int, benchmark: Benchmark) -> list[Any]:
    if our == "choices":
        return [None if index == 1 and at == 3 else OPTIONS[at] for index in range(ROWS)]
    return [_cell("text", index, benchmark) for index in range(ROWS)]


def _cell(our: str, index: int, benchmark: Benchmark) -> Any:
    """Invent the value of the field `our` in one row."""
    name, data = benchmark.name, benchmark.data
    in_conversation = name.startswith("audio-multichallenge")  # conversations of two, three and four turns
    if our in SOUNDS or (in_conversation and our.startswith("user_")):
        if our not in SOUNDS and int(our[-1]) > 2 + index % 3:
            return None
        if data.sounds is not None:  # the paths of members of an archive; in MMAU-Pro one to three of them
            paths = [] if index == NO_SOUND else [f"./audio/{at}.wav" for at in range(index, index + 1 + index % 3)]
            return paths if name.startswith("mmau-pro") else next(iter(paths), None)
        return None if index == NO_SOUND else {"bytes": _wav(index), "path": f"{index}.wav"}
    if our == "text":
        sounding = any(sound in data.columns for sound in SOUNDS)
        return None if index == NO_SOUND and not sounding else _sentence(benchmark.language, index)
    if our == "reference":
        return None if index == NO_REFERENCE else _reference(index, benchmark)
    if in_conversation and our[-1].isdigit() and int(our[-1]) > 2 + index % 3 - our.startswith("assistant"):
        return None
    question, kind = f"What plays in recording {index}?", f"kind {index}"
    if name == "vocalbench-voice":
        question = f"Repeat the following question with sad emotion. Where is number {index}?"
        kind = "With emotion"
    return {
        "emotion": ("happy", "sad", "angry", "neutral")[index % 4],
        "kind": kind,
        "weights": [1, 5, 3, 2, 4],
        "criteria": [{"name": "Names the sound", "scoring_point": "A point for it.", "choices": [0, 1]}]
        if name == "mmar-rubrics"
        else ["It names a place.", "It is short."],
        "choices": _with_labels() if _labelled(benchmark) else list(OPTIONS),
        "id": f"navigate_{index}",
        "instruction_id_list": ["punctuation:no_comma"],
        "key": index,
        "part": 0,
        # In MMAU-Pro, the right answer has nine words, the wrong one eight.
        "kwargs": {"N": 9} if name.startswith("mmau-pro") else [{"keywords": None, "num_words": None}],
        "task_identifier": "Number Words (at least)",
        "prompt": "Answer without a comma.",
        "question": question,
        "sections": [
            {"start": 7.5 * at + index, "label": label} for at, label in enumerate(("intro", "verse", "chorus", "end"))
        ],
        "rule": 1,  # of IFEval-Audio: the answer has a word
        "rule_target": _sentence(benchmark.language, index).split()[-1],
    }.get(our, f"{our} {index}")


def _labelled(benchmark: Benchmark) -> bool:
    """Whether the data store each choice with its letter, as those of AudioBench do."""
    return "choices" in benchmark.data.columns and benchmark.data.columns["audio"] == "context"


def _with_labels() -> list[str]:
    return [f"({letter}) {option}" for letter, option in zip("ABCD", OPTIONS)]


def _reference(index: int, benchmark: Benchmark) -> Any:
    """Invent a reference that fits the benchmark's labels, options or metric."""
    labels = benchmark.spec.fields.get("labels")
    column = benchmark.data.columns["reference"]
    if labels:
        return labels[index % len(labels)]
    if column == "answers":
        return ANSWERS[index % len(ANSWERS)]
    if benchmark.primary == "accuracy[number]":
        return str(10 + index)
    if _labelled(benchmark):
        return _with_labels()[index % 4]
    if {"accuracy[mmau]", "rating[mmau-pro-nearest-official]"} & set(benchmark.metrics):
        return OPTIONS[index % 4]
    if (words := benchmark.data.values.get("reference")) is not None:
        return list(words)[index % len(words)]
    if column == "correct_answer" or (column == "answer_gt" and "choices" in benchmark.data.columns):
        return OPTIONS[index % 4]
    if "option-letter" in benchmark.process:
        return "ABCD"[index % 4]
    if benchmark.category == "Speech QA":
        return ANSWERS[index % len(ANSWERS)][0]
    if benchmark.name == "voice-bench-bbh":
        return ("yes", "no")[index % 2]
    return _sentence(benchmark.language, index)


def _sentence(language: str | None, index: int) -> str:
    sentences = SENTENCES.get(language or "en", SENTENCES["en"])
    return sentences[index % len(sentences)]


@cache
def _wav(index: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(index), RATE_HZ, format="WAV", subtype="PCM_16")
    return file.getvalue()


def write_card(root: Path) -> None:
    """Write the README of a data set with its configurations and splits."""
    lines = ["---", "configs:"]
    tables = sorted(root.glob("*/*.parquet"))
    for folder, in_folder in itertools.groupby(tables, lambda file: file.parent.name):
        lines += [f"- config_name: {'default' if folder == 'data' else folder}", "  data_files:"]
        for split in (file.name.split("-00000-of-")[0] for file in in_folder):
            lines += [f"  - split: {split}", f"    path: {folder}/{split}-*"]
    _put_lines(root / "README.md", [*lines, "---"])


def _write_minimax(root: Path, benchmark: Benchmark) -> None:
    """Write texts and reference voices of one language in the layout of MiniMax."""
    file, language = str(benchmark.data.language), benchmark.language
    prompts = root / "speaker" / "prompt_text.txt"
    lines = prompts.read_text(encoding="utf-8").splitlines() if prompts.is_file() else []
    for at, who in enumerate(("female", "male")):
        mp3 = root / "speaker" / file / f"{file}_{who}" / f"voice_{file}_{who}.mp3"
        _put_mp3(mp3, at)
        lines.append(f"{mp3.name}|{_sentence(language, at)}")
    _put_lines(prompts, lines)
    # The last speaker has no recording.
    speakers = [f"{file}_{who}" for who in ("female", "male", "female", "male", "nobody")]
    sentences = (f"{speaker}|{_sentence(language, at)}" for at, speaker in enumerate(speakers))
    _put_lines(root / "text" / f"{file}.txt", sentences)


SOUND_FOLDERS = ("ArtificialAnalysis/big_bench_audio",)
"""Repositories of sound files with a `metadata.jsonl`."""


def _write_sound_folder(root: Path) -> None:
    """Write MP3 files and their `metadata.jsonl`."""
    lines = []
    for index in range(ROWS):
        file = None if index == NO_SOUND else f"data/question_{index}.mp3"
        if file is not None:
            _put_mp3(root / file, index)
        right = None if index == NO_REFERENCE else ("valid", "7", "No", "yes")[index % 4]
        lines.append({"category": "navigate", "official_answer": right, "file_name": file, "id": index})
    _put_lines(root / "metadata.jsonl", map(json.dumps, lines))
    _put(root / "README.md", "---\nlicense: mit\n---\n")


def _write_listed(root: Path, benchmark: Benchmark) -> None:
    """Write rows as JSON or JSON lines, with a folder of sounds.

    Data of several rounds or of roles get their own layouts.
    """
    data = benchmark.data
    if str(data.sounds).endswith(".zip"):
        return _write_rounds(root, benchmark)
    if "*" in str(data.config):
        return _write_roles(root, benchmark)
    rows: list[dict[str, Any]] = []
    named = data.columns.get("audio") == "sound"  # RUL-MuchoMusic: the ids of the rows name the sounds
    shares = itertools.product(_with_data(repository=data.repository, config=data.config), range(ROWS))
    for number, (benchmark, index) in enumerate(shares):
        data = benchmark.data
        row: dict[str, Any] = {str(data.id): f"row-{number}"} if data.id is not None else {}
        for our, column in ((our, str(column)) for our, column in data.columns.items()):
            outer, turn = [*column.split("."), ""][:2]
            if named and our == "choices":
                row[column] = [option for at, option in enumerate(OPTIONS) if at != index % 4]
            elif our == "audio":
                row |= {} if named else {column: f"part/{index}.wav"}
            elif not turn:
                row[column] = (data.where or {}).get(our) or _cell(our, index, benchmark)
            elif int(turn) <= 2 * (index % 3) + 1:  # one, two or three turns before the question
                row.setdefault(outer, []).append({"from": our.rpartition("_")[0], "value": f"{our} {index}"})
        rows.append(row)
        if index != NO_SOUND and "audio" in data.columns:
            at = f"row-{index}" if named else f"part/{index}"
            _put(root / (data.sounds or "") / f"{at}.wav", _wav(index))
    file = root / str(data.config)
    if file.suffix == ".json":
        _put(file, json.dumps({row.pop("id"): row for row in rows} if named else rows))
    else:
        _put_lines(file, map(json.dumps, rows))


def _write_rounds(root: Path, benchmark: Benchmark) -> None:
    """Write an archive with a JSON lines file and a sound folder for each data set."""
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / str(benchmark.data.sounds), "w") as opened:
        for one in _with_data(sounds=benchmark.data.sounds):
            rows, most = [], len(one.data.columns["audio"])
            for index in range(ROWS):
                turns = range(min(2 + index % 4, most) if most > 3 else most)
                wavs = [f"wav/{index}_{turn}.wav" for turn in turns]
                texts = [{"source_text": f"Ask {turn}.", "target_text": f"Say {turn}."} for turn in turns]
                dialogue = [{"round": t, "source_wav": wav, **text} for t, wav, text in zip(turns, wavs, texts)]
                rows.append({"id": index, "num_round": len(dialogue), "dialogue": dialogue})
                for turn, wav in enumerate(wavs if index != NO_SOUND else ()):
                    opened.writestr(f"{Path(str(one.data.config)).parent.as_posix()}/{wav}", _wav(index + turn))
            opened.writestr(str(one.data.config), "\n".join(map(json.dumps, rows)))


def _write_roles(root: Path, benchmark: Benchmark) -> None:
    """Write two files of role plays, named by character, with a folder of sounds each."""
    for kind, (name, rows) in itertools.product(
        ("single_turn", "multi_turn"), (("Hamlet", range(3)), ("Lin Daiyu", range(3, ROWS)))
    ):
        conversations: list[dict[str, Any]] = []
        for index in rows:
            dialogue = []
            for turn in range(1 if kind == "single_turn" else 2 + index % 3):
                sound = f"test_data/{kind.replace('turn', 'turn_speech')}/{name}/{index}_{turn}"
                paths = {f"{who}_speech_path": f"{sound}_{who}.wav" for who in ("user", "role")}
                dialogue.append({"user": f"Ask {index} {turn}.", "role": f"Say {index} {turn}.", **paths})
                for path in paths.values() if index != NO_SOUND else ():
                    _put(root / str(benchmark.data.sounds) / path, _wav(index + turn))
            conversations.append(
                {"dialogue": dialogue, "context": "", "system_prompt": f"Play {name}.", "category": "Film"}
            )
        _put(root / "benchmark" / "test_data" / kind / f"{name}.json", json.dumps(conversations))


def _write_transcribed(root: Path, benchmark: Benchmark) -> None:
    """Write transcripts in one file or one per id, and a sound folder per speaker.

    The third speaker has no name.
    """
    data = benchmark.data
    lines = []
    bar, notes = ("|", "|a b|C4") if benchmark.name == "opencpop" else ("\t", "")
    words = root / str(data.config)
    for index in range(ROWS):
        name = f"Ani_{index % 3}_{index:02d}" if benchmark.name == "mir-1k-vocal" else f"row-{index}"
        folder = root / str(data.sounds) / ("" if name[0] == "A" else _speaker(index, data.repository))
        folder.mkdir(parents=True, exist_ok=True)
        if index != NO_SOUND:
            _put(folder / f"{name}.wav", _wav(index))
        if words.suffix:
            lines.append(f"{name}{bar}{_sentence(benchmark.language, index)}{notes}")
        else:
            _put(words / f"{name}.txt", _sentence(benchmark.language, index))
    if lines:
        _put_lines(words, lines)


def _write_tagged(root: Path, benchmark: Benchmark) -> None:
    """Write a tab-separated table with tags in each row, and MP3 files.

    The layout is MTG-Jamendo's, or MagnaTagATune's if the definition selects rows (`data.where`). The latter has one
    more row, which the definition does not select.
    """
    data, labels = benchmark.data, benchmark.spec.fields["labels"]
    listed, sound = str(data.config), str(data.columns["audio"])
    tags = [(labels[index], labels[index + 2]) for index in range(ROWS)]
    if data.where is None:
        names = [f"{index:02d}/{index}.mp3" for index in range(ROWS)]
        lines = [["TRACK_ID", "ARTIST_ID", "ALBUM_ID", "PATH", "DURATION", "TAGS"]]
        for index, (name, two) in enumerate(zip(names, tags)):
            who = _speaker(index, data.repository)
            lines.append([f"track_{index}", who, "album_1", name, "0.5", *(f"genre---{tag}" for tag in two)])
    else:
        names = [*(f"{'def'[index % 3]}/{index}.mp3" for index in range(ROWS)), "0/train.mp3"]
        lines = [["clip_id", *labels, "no piano", sound]]
        for index, name in enumerate(names):
            row_tags = (*tags[index % ROWS], "no piano")
            lines.append([str(index), *("01"[label in row_tags] for label in (*labels, "no piano")), name])
    _put_lines(root / listed, map("\t".join, lines))
    for index, name in enumerate(names):
        file = root / str(data.sounds) / (name.replace(".mp3", ".low.mp3") if index == 1 else name)
        file.parent.mkdir(parents=True, exist_ok=True)
        if index != NO_SOUND and not file.exists():
            _put_mp3(file, index)


def _write_archive(file: Path) -> None:
    """Write sounds as a folder, a zip or a tar.gz, by the name's ending."""
    sounds = {f"audio/{index}.wav": _wav(index) for index in range(ROWS + 3)}
    if not file.suffix:  # a folder
        file.mkdir(exist_ok=True)
        for name, data in sounds.items():
            (file.parent / name).write_bytes(data)
    elif file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as opened:
            for name, data in sounds.items():
                opened.writestr(name, data)
    else:
        with tarfile.open(file, "w:gz") as tar:
            for name, data in sounds.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def _write_seed_tts(root: Path, benchmark: Benchmark) -> None:
    """Write a list of texts with reference voices in the layout of Seed-TTS."""
    file = root / str(benchmark.data.config)
    lines = []
    for index in range(ROWS):
        voice = f"prompt-wavs/{index}.wav"
        if index != NO_SOUND:
            _put(file.parent / voice, _wav(index))
        text = _sentence(benchmark.language, index)
        converted = [voice] if "non_para" in file.as_posix() else []
        lines.append("|".join([f"row-{index}", text, voice, text, *converted]))
    _put_lines(file, lines)


def _write_esd(root: Path, benchmark: Benchmark) -> None:
    """Write two sentences of one speaker in five emotions, in the layout of ESD.

    The second has no sound without emotion and in anger.
    """
    language = str(benchmark.data.language)
    speaker = {"zh": "0001", "en": "0011"}[language]
    folder, lines = root / speaker, []
    for emotion, before in {"Neutral": 0, "Angry": 350, "Happy": 700, "Sad": 1050, "Surprise": 1400}.items():
        for number in (21, 22):
            name = f"{speaker}_{before + number:06d}"
            lines.append(f"{name}\t{_sentence(language, number)}\t{emotion}")
            (folder / emotion / "test").mkdir(parents=True, exist_ok=True)
            if number == 21 or emotion not in ("Neutral", "Angry"):
                _put(folder / emotion / "test" / f"{name}.wav", _wav(number))
    _put_lines(folder / f"{speaker}.txt", lines)


EXPRESSO_TEXTS = (
    "*What* is this?",
    "<breath> The cat sat on the mat, and the *dog* sat by it.",
    "Where did all of the small red boats go today?",
)


def _write_expresso(root: Path, benchmark: Benchmark) -> None:
    """Write three sentences by two speakers in seven styles, in Expresso's layout.

    The first is too short for a voice. The second speaker has no sound of the third, neutral and whispered. Further
    rows: a sentence of the training part, one with a stressed word, a long text and a song.
    """
    styles = ("confused", "default", "enunciated", "happy", "laughing", "sad", "whisper")
    rows = itertools.product(("ex01", "ex02"), styles, (344, 345, 346, 347))
    texts = {f"{who}_{style}_{number:05d}": EXPRESSO_TEXTS[number % 345 % 3] for who, style, number in rows}
    others = ("ex01_default_emphasis_00345", "ex01_default_longform_00001", "ex01_singing_00003")
    texts |= dict.fromkeys(others, "Another *text*.")
    columns = {
        "audio": [
            None if name in ("ex02_default_00347", "ex02_whisper_00347") else {"bytes": _wav(at), "path": f"{name}.wav"}
            for at, name in enumerate(texts)
        ],
        "text": list(texts.values()),
        "speaker_id": [name.partition("_")[0] for name in texts],
        "style": [name.split("_")[1] for name in texts],
        "id": list(texts),
    }
    _put_table(_table_file(root, "train", "read"), pa.table(columns))
    write_card(root)


def _write_zerospeech(root: Path, benchmark: Benchmark) -> None:
    """Write six pairs of sounds in the layout of ZeroSpeech.

    The third voice has no name; the fifth pair has no preferred sound.
    """
    folder, columns = root / str(benchmark.data.config), benchmark.data.columns
    texts = [name for name in list(columns)[2:] if name != "band"]
    lines = [",".join(["id", "filename", "voice", "correct", *(str(columns[name]) for name in texts)])]
    for index, correct in itertools.product(range(ROWS), (1, 0)):
        name = f"pair{index}{correct}"
        if not (index == NO_SOUND and correct):
            _put(folder / f"{name}.wav", _wav(index + correct))
        values = [f"{text} {index}" for text in texts]
        lines.append(",".join([str(index), name, _speaker(index, None), str(correct), *values]))
    _put_lines(folder / "gold.csv", lines)


def _write_story_cloze(root: Path, benchmark: Benchmark) -> None:
    for index in range(ROWS):
        sides = ("incorrect",) if index == NO_SOUND else ("correct", "incorrect")
        for at, label in enumerate(sides):
            file = f"{2 * index + at}_story{index}_{label}.wav"
            _put(root / str(benchmark.data.config) / file, _wav(index + at))


AIR_BENCH_CHAT = (
    ("speech_QA", "common_voice_en"),
    ("speech_dialogue_QA", "spokenwoz"),
    ("sound_QA", "clotho"),
    ("sound_generation_QA", "clotho"),
    ("music_QA", "musiccaps"),
    ("music_generation_analysis_QA", "musiccaps"),
    ("speech_and_sound_QA", "audiocaps_cv"),
    ("speech_and_music_QA", "musiccaps_cv"),
)
TWO_WAY = ("Speaker_Gender_Recognition", "Synthesized_Voice_Detection")
"""The tasks of AIR-Bench with two options."""


def air_bench_sources() -> list[tuple[str, str]]:
    """(task, source) of AIR-Bench's foundation part, sorted.

    A task without a source in the definitions gets the source `one`.
    """
    conditions = [one.data.where for one in _all().values() if one.data.layout == "air-bench" and one.data.where]
    named = {(str(where["task"]), str(where["dataset"])) for where in conditions if "dataset" in where}
    alone = {str(where["task"]) for where in conditions} - {task for task, _ in named}
    return sorted(named | {(task, "one") for task in alone})


def _write_air_bench(root: Path, benchmark: Benchmark) -> None:
    """Write one part of AIR-Bench, foundation or chat, unless it exists.

    The sounds of Audio_Grounding are FLAC, its rows say WAV.
    """
    track = str(benchmark.data.config)
    listed = root / track / f"{track}_meta.json"
    if listed.is_file():
        return
    questions: list[dict[str, Any]] = []
    for task, dataset in air_bench_sources() if track == "Foundation" else AIR_BENCH_CHAT:
        folder = root / track / f"{task}_{dataset}"
        folder.mkdir(parents=True)
        for index in range(ROWS):
            stored = folder / f"{index}.{'flac' if task == 'Audio_Grounding' else 'wav'}"
            if index != NO_SOUND:
                soundfile.write(stored, tone(index), RATE_HZ)
            right = None if index == NO_REFERENCE else OPTIONS[index % (2 if task in TWO_WAY else 4)]
            row: dict[str, Any] = {
                "path": f"{index}.wav",
                "question": f"What plays in recording {index}?",
                "task_name": task,
                "dataset_name": dataset,
            }
            if track == "Chat":
                row |= {"answer_gt": right and f"It is {right}.", "meta_info": "{'caption': 'an instrument'}"}
            else:
                named = zip("abcd", OPTIONS[:2] if task in TWO_WAY else OPTIONS)
                row |= {"answer_gt": right, **{f"choice_{letter}": option for letter, option in named}}
            questions.append({**row, "uniq_id": len(questions)})
    _put(listed, json.dumps(questions))


_WRITERS: dict[str, Callable[[Path, Benchmark], None]] = {
    "air-bench": _write_air_bench,
    "esd": _write_esd,
    "expresso": _write_expresso,
    "listed": _write_listed,
    "minimax": _write_minimax,
    "seed-tts": _write_seed_tts,
    "story-cloze": _write_story_cloze,
    "tagged": _write_tagged,
    "transcribed": _write_transcribed,
    "zerospeech": _write_zerospeech,
}
"""The function that writes each layout; that of tables is in `write_miniature`."""
