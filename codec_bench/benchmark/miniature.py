"""Miniature data sets: a few invented rows for each benchmark, with the columns and types that its definition declares.

`write_miniature(name, folder)` writes them in the layout of the real data. `run --data FOLDER` reads them, so a model or
an endpoint can be tried without the data.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from codec_bench.benchmark import Benchmark, benchmark_names, load_benchmark
from codec_bench.errors import UserError
from codec_bench.store.answers import SOUNDS

ROWS = 4
"""Rows of each split."""
NO_SOUND, NO_REFERENCE = 4, 5
"""With more rows, this one has no sound (no text where there is no sound), and this one no reference."""
RATE_HZ = 16_000

SENTENCES = {
    "ar": ["ذهب الولد إلى المدرسة صباح اليوم", "تشرق الشمس على المدينة القديمة الآن"],
    "ca": ["El noi va anar a l'escola aquest matí", "El sol surt sobre la ciutat vella"],
    "cs": ["Chlapec šel dnes ráno do staré školy", "Slunce vychází nad naším malým městem"],
    "cy": ["Aeth y bachgen i'r ysgol y bore hwn", "Mae'r haul yn codi dros yr hen dref"],
    "de": ["Der Junge ging heute früh in die große Schule", "Über der alten Stadt geht die Sonne auf"],
    "el": ["Το αγόρι πήγε στο σχολείο σήμερα το πρωί", "Ο ήλιος ανατέλλει πάνω από την παλιά πόλη"],
    "en": [
        "the boy went to school this morning",
        "the sun rises over the old town",
        "a naïve café owner said hello to us",
    ],
    "es": ["El niño fue a la escuela esta mañana", "El sol sale sobre la vieja ciudad"],
    "et": ["Poiss läks täna hommikul vanasse kooli", "Päike tõuseb meie väikese linna kohal"],
    "fa": ["پسر امروز صبح به مدرسه رفت", "خورشید بر فراز شهر قدیمی طلوع می‌کند"],
    "fi": ["Poika meni tänään aamulla vanhaan kouluun", "Aurinko nousee meidän pienen kaupungin yllä"],
    "fr": ["Le garçon est allé à l'école ce matin", "Le soleil se lève sur la vieille ville"],
    "hi": ["लड़का आज सुबह अपने स्कूल गया", "पुराने शहर के ऊपर सूरज निकलता है"],
    "id": ["Anak itu pergi ke sekolah pagi ini", "Matahari terbit di atas kota tua kami"],
    "it": ["Il ragazzo è andato a scuola questa mattina", "Il sole sorge sopra la vecchia città"],
    "ja": ["少年は今朝早く学校に行きました", "古い町の上に太陽が昇ります"],
    "ko": ["소년은 오늘 아침 일찍 학교에 갔습니다", "오래된 도시 위로 해가 천천히 뜹니다"],
    "lv": ["Zēns šorīt agri gāja uz veco skolu", "Saule lec pār mūsu mazo veco pilsētu"],
    "mn": ["Хүү өнөө өглөө эрт сургууль руугаа явсан", "Нар хуучин хотын дээгүүр аажмаар мандаж байна"],
    "nl": ["De jongen ging vanmorgen vroeg naar school", "De zon komt op boven de oude stad"],
    "pl": ["Chłopiec poszedł dziś rano do starej szkoły", "Słońce wschodzi nad naszym małym miastem"],
    "pt": ["O menino foi para a escola esta manhã", "O sol nasce sobre a velha cidade"],
    "ro": ["Băiatul a mers la școală în această dimineață", "Soarele răsare peste orașul nostru vechi"],
    "ru": ["Мальчик пошёл сегодня утром в старую школу", "Солнце встаёт над нашим старым городом"],
    "sl": ["Deček je šel danes zjutraj v šolo", "Sonce vzhaja nad našim starim mestom"],
    "sv": ["Pojken gick till skolan tidigt i morse", "Solen går upp över den gamla staden"],
    "ta": ["சிறுவன் இன்று காலை பள்ளிக்கு நடந்து சென்றான்", "பழைய நகரத்தின் மேல் சூரியன் மெதுவாக உதிக்கிறது"],
    "th": ["เด็กชายไปโรงเรียนเมื่อเช้านี้", "พระอาทิตย์ขึ้นเหนือเมืองเก่า"],
    "tr": ["Çocuk bu sabah erkenden eski okula gitti", "Güneş eski şehrin üzerinden yavaşça doğuyor"],
    "uk": ["Хлопець пішов сьогодні вранці до старої школи", "Сонце сходить над нашим старим містом"],
    "vi": ["Cậu bé đã đi đến trường sáng nay", "Mặt trời mọc trên thành phố cổ kính"],
    "yue": ["個細路今朝好早就返咗學校", "太陽喺舊城上面慢慢升起"],
    "zh": ["小男孩今天早上去了学校", "太阳从老城的上空升起", "我们明天一起去公园散步"],
}
OPTIONS = ("A guitar", "Two violins", "Three drums", "Four flutes")
ANSWERS = (["Paris"], ["the Nile", "Nile"], ["Jane Austen"], ["Zürich"])


@cache
def load(name: str) -> Benchmark:
    """A benchmark, read once."""
    return load_benchmark(name)


def write_miniature(name: str, folder: Path) -> Path:
    """Writes the rows of one benchmark into a folder that serves as a mirror; several may share it.

    Raises:
        UserError: the benchmark's data are files of its own.
    """
    benchmark = load(name)
    data = benchmark.data
    if data.repository is None:
        raise UserError(f"'{name}' reads files of its own", hint="run it with --limit to try a model on a few rows")
    root = Path(folder) / str(data.repository)
    if data.layout == "minimax":
        _write_minimax(root, str(data.language), str(benchmark.language))
        return Path(folder)
    if data.layout == "esd":
        _write_esd(root, str(data.language))
        return Path(folder)
    if data.layout == "expresso":
        _write_expresso(root)
        return Path(folder)
    if data.layout == "air-bench":
        _write_air_bench(root, str(data.config))
        return Path(folder)
    if data.layout == "seed-tts":
        _write_seed_tts(root, str(data.config), str(benchmark.language))
        return Path(folder)
    if data.layout == "zerospeech":
        _write_zerospeech(root / str(data.config), benchmark)
        return Path(folder)
    if data.layout == "story-cloze":
        _write_story_cloze(root / str(data.config))
        return Path(folder)
    if data.layout == "listed":
        zipped = str(data.sounds).endswith(".zip")
        (_write_rounds if zipped else _write_roles if "*" in str(data.config) else _write_listed)(root, benchmark)
        return Path(folder)
    if data.layout == "transcribed":
        _write_transcribed(root, benchmark)
        return Path(folder)
    if data.layout == "tagged":
        _write_tagged(root, benchmark)
        return Path(folder)
    if str(data.repository) in SOUND_FOLDERS:
        _write_sound_folder(root)
        return Path(folder)
    for config in data.configs or [data.data_dir or data.config or "data"]:
        for split in data.splits or ([data.split] if data.split else ["dev", "test"]):
            file = root / config / f"{split}-00000-of-00001.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():  # or a benchmark that shares it has written the same
                pq.write_table(_table(_sharing(data, split if data.split or data.splits else None)), file)
    if data.sounds is not None:
        _write_archive(root / data.sounds)
    write_card(root)
    if data.join is not None and data.join.repository is not None:
        _write_joined(Path(folder) / data.join.repository, benchmark)
    elif data.join is not None:
        other = next(
            one
            for one in _all().values()
            if (one.data.repository, one.data.config) == (data.repository, data.join.config)
        )
        write_miniature(other.name, folder)
    return Path(folder)


def tone(index: int, seconds: float = 0.1) -> np.ndarray:
    """A tone of its own for each row, float64 `(samples,)` at 16 kHz."""
    return 0.3 * np.sin(2 * math.pi * (220 + 20 * index) * np.arange(round(RATE_HZ * seconds)) / RATE_HZ)


@cache
def _all() -> dict[str, Benchmark]:
    return {name: load(name) for name in benchmark_names()}


@cache
def _by_place() -> dict[tuple[str | None, ...], list[Benchmark]]:
    """The benchmarks by the repository, configuration and folder of their rows."""
    benchmarks: dict[tuple[str | None, ...], list[Benchmark]] = {}
    for benchmark in _all().values():
        data = benchmark.data
        benchmarks.setdefault((data.repository, data.config, data.data_dir), []).append(benchmark)
    return benchmarks


def _sharing(data: Any, split: str | None) -> list[Benchmark]:
    """The benchmarks whose rows are in one file: it has the columns of all."""
    return [
        benchmark
        for benchmark in _by_place()[data.repository, data.config, data.data_dir]
        if benchmark.data.split == split or split in (benchmark.data.splits or ())
    ]


def _table(benchmarks: list[Benchmark]) -> pa.Table:
    columns: dict[str, list[Any]] = {}
    # A benchmark may ask without the choices of another: the reference is one of the choices all the same.
    for benchmark in sorted(benchmarks, key=lambda one: "choices" in one.data.columns):
        data = benchmark.data
        if data.join is not None:
            columns[data.join.key] = [_key(index, data) for index in range(ROWS)]
        for our, column in data.columns.items():
            if data.join is not None and column in data.join.columns:
                continue  # it lies in another table
            if isinstance(column, list):
                columns |= {
                    field: _several(our, at, benchmark) for at, field in enumerate(column) if field not in columns
                }
            elif column == "split":
                continue  # the reader's own, not the data's
            elif column not in columns or our == "reference":
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
    # A benchmark of chosen rows has rows of its own behind those of the others.
    for at, where in enumerate(where for n, where in enumerate(conditions) if where not in conditions[:n]):
        for name, values in first.items():
            columns[name] = columns[name] + ([where[name]] * len(values) if name in where else _again(values, at))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _again(values: list[Any], at: int) -> list[Any]:
    return [f"{value}-again-{at}" if isinstance(value, str) and value.startswith("row-") else value for value in values]


def _key(index: int, data: Any) -> Any:
    """The key of a row: a sentence's number, or the name of a call, which has one part."""
    return index if data.join.repository is None else f"call-{index}"


def _write_joined(root: Path, benchmark: Benchmark) -> None:
    """The table of another repository; the last key has nothing there."""
    data = benchmark.data
    assert data.join is not None
    keys = list(dict.fromkeys(_key(index, data) for index in range(ROWS)))
    columns: dict[str, list[Any]] = {data.join.other_key or data.join.key: keys}
    for column in data.join.columns.values():
        columns[column] = [
            None if key == keys[-1] else _sentence(benchmark.language, at) for at, key in enumerate(keys)
        ]
    file = root / "data" / f"{data.join.split or data.split}-00000-of-00001.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    write_card(root)


SPEAKERS = {
    "TwinkStart/librispeech": "data/{0}/12/{0}-12-0003.flac",
    "TwinkStart/AISHELL-1": "wav/test/S{0}/BAC009S{0}W0121.wav",
}
"""Paths in which the speaker is found, by repository; elsewhere the cell is the speaker."""


def _speaker(index: int, repository: str | None) -> str:
    """Three speakers, of whom the third is not named."""
    number = index % 3
    if number == 2:
        return "None"
    return SPEAKERS.get(repository or "", "{0}").format(1080 + number)


def _several(our: str, at: int, benchmark: Benchmark) -> list[Any]:
    if our == "choices":
        return [None if index == 1 and at == 3 else OPTIONS[at] for index in range(ROWS)]
    return [_cell("text", index, benchmark) for index in range(ROWS)]


def _cell(our: str, index: int, benchmark: Benchmark) -> Any:
    if our in SOUNDS or (benchmark.name.startswith("audio-multichallenge") and our.startswith("user_")):
        if our not in SOUNDS and int(our[-1]) > 2 + index % 3:  # conversations of two, three and four turns
            return None
        if benchmark.data.sounds is not None:  # the paths of members of an archive; in MMAU-Pro one to three of them
            paths = [] if index == NO_SOUND else [f"./audio/{at}.wav" for at in range(index, index + 1 + index % 3)]
            return paths if benchmark.name.startswith("mmau-pro") else next(iter(paths), None)
        return None if index == NO_SOUND else {"bytes": _wav(index), "path": f"{index}.wav"}
    if our == "text":
        sounding = any(name in benchmark.data.columns for name in SOUNDS)
        return None if index == NO_SOUND and not sounding else _sentence(benchmark.language, index)
    if our == "reference":
        return None if index == NO_REFERENCE else _reference(index, benchmark)
    if (
        benchmark.name.startswith("audio-multichallenge")
        and our[-1].isdigit()
        and int(our[-1]) > 2 + index % 3 - our.startswith("assistant")
    ):
        return None
    return {
        "emotion": ("happy", "sad", "angry", "neutral")[index % 4],
        "kind": "With emotion" if benchmark.name == "vocalbench-voice" else f"kind {index}",
        "weights": [1, 5, 3, 2, 4],
        "criteria": [{"name": "Names the sound", "scoring_point": "A point for it.", "choices": [0, 1]}]
        if benchmark.name == "mmar-rubrics"
        else ["It names a place.", "It is short."],
        "choices": _with_labels() if _labelled(benchmark) else list(OPTIONS),
        "id": f"navigate_{index}",
        "instruction_id_list": ["punctuation:no_comma"],
        "key": index,
        "part": 0,
        "kwargs": {"N": 9}  # the right answer has nine words, the wrong one eight
        if benchmark.name.startswith("mmau-pro")
        else [{"keywords": None, "num_words": None}],
        "task_identifier": "Number Words (at least)",
        "prompt": "Answer without a comma.",
        "question": f"Repeat the following question with sad emotion. Where is number {index}?"
        if benchmark.name == "vocalbench-voice"
        else f"What plays in recording {index}?",
        "sections": [
            {"start": 7.5 * at + index, "label": label} for at, label in enumerate(("intro", "verse", "chorus", "end"))
        ],
        "rule": 1,  # of IFEval-Audio: the answer has a word
        "rule_target": _sentence(benchmark.language, index).split()[-1],
    }.get(our, f"{our} {index}")


def _labelled(benchmark: Benchmark) -> bool:
    """Whether the data set stores every choice, and the right one, with its letter, as AudioBench's do."""
    return "choices" in benchmark.data.columns and benchmark.data.columns["audio"] == "context"


def _with_labels() -> list[str]:
    return [f"({letter}) {option}" for letter, option in zip("ABCD", OPTIONS)]


def _reference(index: int, benchmark: Benchmark) -> Any:
    labels = benchmark.spec.fields.get("labels")
    column = benchmark.data.columns["reference"]
    if labels:
        return labels[index % len(labels)]
    if column in ("answers",):
        return ANSWERS[index % len(ANSWERS)]
    if benchmark.primary == "accuracy[number]":
        return str(10 + index)
    if _labelled(benchmark):
        return _with_labels()[index % 4]
    if "accuracy[mmau]" in benchmark.metrics or "rating[mmau-pro-nearest-official]" in benchmark.metrics:
        return OPTIONS[index % 4]
    if (words := benchmark.data.values.get("reference")) is not None:
        return list(words)[index % len(words)]
    if column == "correct_answer":
        return OPTIONS[index % 4]
    if column == "answer_gt" and "choices" in benchmark.data.columns:
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
    """The data set's card, which says what its configurations and splits are."""
    lines = ["---", "configs:"]
    files = sorted(root.glob("*/*.parquet"))
    for folder, of_folder in itertools.groupby(files, lambda file: file.parent.name):
        lines += [f"- config_name: {'default' if folder == 'data' else folder}", "  data_files:"]
        for file in of_folder:
            split = file.name.split("-00000-of-")[0]
            lines += [f"  - split: {split}", f"    path: {folder}/{split}-*"]
    (root / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")


def _write_minimax(root: Path, file: str, language: str) -> None:
    (root / "text").mkdir(parents=True, exist_ok=True)
    prompts = root / "speaker" / "prompt_text.txt"
    lines = []
    for at, who in enumerate(("female", "male")):
        folder = root / "speaker" / file / f"{file}_{who}"
        folder.mkdir(parents=True, exist_ok=True)
        mp3 = folder / f"voice_{file}_{who}.mp3"
        soundfile.write(mp3, tone(at, 0.5), RATE_HZ, format="MP3")
        lines.append(f"{mp3.name}|{_sentence(language, at)}")
    prompts.write_text("".join(f"{line}\n" for line in [*_known(prompts), *lines]), encoding="utf-8")
    # The last line is of a speaker without a recording.
    speakers = [f"{file}_{who}" for who in ("female", "male", "female", "male", "nobody")]
    sentences = [f"{speaker}|{_sentence(language, at)}" for at, speaker in enumerate(speakers)]
    (root / "text" / f"{file}.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")


SOUND_FOLDERS = ("ArtificialAnalysis/big_bench_audio",)
"""Repositories of sound files with a `metadata.jsonl` beside them."""


def _write_sound_folder(root: Path) -> None:
    (root / "data").mkdir(parents=True, exist_ok=True)
    lines = []
    for index in range(ROWS):
        file = None if index == NO_SOUND else f"data/question_{index}.mp3"
        if file is not None:
            soundfile.write(root / file, tone(index, 0.5), RATE_HZ, format="MP3")
        right = None if index == NO_REFERENCE else ("valid", "7", "No", "yes")[index % 4]
        lines.append({"category": "navigate", "official_answer": right, "file_name": file, "id": index})
    (root / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (root / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")


def _write_listed(root: Path, benchmark: Benchmark) -> None:
    """A JSON file with a list of objects, and a folder of sounds."""
    data = benchmark.data
    rows: list[dict[str, Any]] = []
    (root / (data.sounds or "") / "part").mkdir(parents=True, exist_ok=True)
    named = data.columns.get("audio") == "sound"  # RUL-MuchoMusic: rows by their ids, which name the sounds
    shares = [
        one for one in _all().values() if (one.data.repository, one.data.config) == (data.repository, data.config)
    ]
    for number, (one, index) in enumerate((one, index) for one in shares for index in range(ROWS)):
        benchmark, data = one, one.data
        row: dict[str, Any] = {str(data.id): f"row-{number}"} if data.id is not None else {}
        for our, column in data.columns.items():
            if named and our == "choices":
                row[str(column)] = [option for at, option in enumerate(OPTIONS) if at != index % 4]
            elif our == "audio" and named:
                continue
            elif our == "audio":
                row[str(column)] = f"part/{index}.wav"
            elif "." not in str(column):
                row[str(column)] = (data.where or {}).get(our) or _cell(our, index, benchmark)
            elif (
                int(str(column).split(".")[1]) <= 2 * (index % 3) + 1
            ):  # conversations of one, two and three turns before the question
                turn = {"from": our.rpartition("_")[0], "value": f"{our} {index}"}
                row.setdefault(str(column).split(".")[0], []).append(turn)
        rows.append(row)
        if index != NO_SOUND and "audio" in data.columns:
            at = f"row-{index}" if named else f"part/{index}"
            (root / (data.sounds or "") / f"{at}.wav").write_bytes(_wav(index))
    file = root / str(data.config)
    file.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps({row.pop("id"): row for row in rows} if named else rows)
    text = document if file.suffix == ".json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    file.write_text(text, encoding="utf-8")


def _write_rounds(root: Path, benchmark: Benchmark) -> None:
    """An archive with a file of conversations, one a line, and a folder of sounds for each set; of two rounds, three
    and so on.
    """
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / str(benchmark.data.sounds), "w") as opened:
        for one in (one for one in _all().values() if one.data.sounds == benchmark.data.sounds):
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
    """Two files of conversations for each set, each named as a character, and a folder of sounds for each of them."""
    for kind in ("single_turn", "multi_turn"):
        for name, rows in (("Hamlet", range(3)), ("Lin Daiyu", range(3, ROWS))):
            conversations: list[dict[str, Any]] = []
            for index in rows:
                at = [f"test_data/{kind.replace('turn', 'turn_speech')}/{name}/{index}_{turn}" for turn in range(4)]
                dialogue = [
                    {"user": f"Ask {index} {turn}.", "role": f"Say {index} {turn}.",
                     "user_speech_path": f"{one}_user.wav", "role_speech_path": f"{one}_role.wav"}
                    for turn, one in enumerate(at[: 1 if kind == "single_turn" else 2 + index % 3])
                ]  # fmt: skip
                conversations.append(
                    {"dialogue": dialogue, "context": "", "system_prompt": f"Play {name}.", "category": "Film"}
                )
                for turn, one in enumerate(dialogue if index != NO_SOUND else ()):
                    for key in ("user_speech_path", "role_speech_path"):
                        file = root / str(benchmark.data.sounds) / one[key]
                        file.parent.mkdir(parents=True, exist_ok=True)
                        file.write_bytes(_wav(index + turn))
            file = root / "benchmark" / "test_data" / kind / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(conversations), encoding="utf-8")


def _write_transcribed(root: Path, benchmark: Benchmark) -> None:
    """A list of ids and words or a file of words for each id, and a folder of sounds for each of three speakers, of
    whom the third is not named.
    """
    data = benchmark.data
    lines = []
    bar = "|" if benchmark.name == "opencpop" else "\t"
    words = root / str(data.config)
    words.parent.mkdir(parents=True, exist_ok=True)
    for index in range(ROWS):
        name = f"Ani_{index % 3}_{index:02d}" if benchmark.name == "mir-1k-vocal" else f"row-{index}"
        folder = root / str(data.sounds) / ("" if name[0] == "A" else _speaker(index, data.repository))
        folder.mkdir(parents=True, exist_ok=True)
        if index != NO_SOUND:
            (folder / f"{name}.wav").write_bytes(_wav(index))
        if words.suffix:
            lines.append(f"{name}{bar}{_sentence(benchmark.language, index)}{'|a b|C4' if bar == '|' else ''}\n")
        else:
            words.mkdir(exist_ok=True)
            (words / f"{name}.txt").write_text(_sentence(benchmark.language, index), encoding="utf-8")
    if lines:
        words.write_text("".join(lines), encoding="utf-8")


def _write_tagged(root: Path, benchmark: Benchmark) -> None:
    """A table between tabs with two tags a row, in MTG-Jamendo's form or MagnaTagATune's, of which a seventh row is no
    part of the test.
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
    (root / listed).parent.mkdir(parents=True, exist_ok=True)
    (root / listed).write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    for index, name in enumerate(names):
        file = root / str(data.sounds) / (name.replace(".mp3", ".low.mp3") if index == 1 else name)
        file.parent.mkdir(parents=True, exist_ok=True)
        if index != NO_SOUND and not file.exists():
            soundfile.write(file, tone(index, 0.5), RATE_HZ, format="MP3")


def _write_archive(file: Path) -> None:
    sounds = {f"audio/{index}.wav": _wav(index) for index in range(ROWS + 3)}
    if not file.suffix:  # a folder
        file.mkdir(exist_ok=True)
        for name, data in sounds.items():
            (file.parent / name).write_bytes(data)
        return
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as opened:
            for name, data in sounds.items():
                opened.writestr(name, data)
        return
    with tarfile.open(file, "w:gz") as tar:
        for name, data in sounds.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def _write_seed_tts(root: Path, listed: str, language: str) -> None:
    file = root / listed
    (file.parent / "prompt-wavs").mkdir(parents=True, exist_ok=True)
    converts = "non_para" in listed
    lines = []
    for index in range(ROWS):
        voice = f"prompt-wavs/{index}.wav"
        if index != NO_SOUND:
            (file.parent / voice).write_bytes(_wav(index))
        text = _sentence(language, index)
        lines.append("|".join([f"row-{index}", text, voice, text, *([voice] if converts else [])]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_esd(root: Path, language: str) -> None:
    """Two sentences by one speaker with five emotions; of the second, those without emotion and the angry one have no
    sound.
    """
    speaker = {"zh": "0001", "en": "0011"}[language]
    folder, lines = root / speaker, []
    for emotion, before in {"Neutral": 0, "Angry": 350, "Happy": 700, "Sad": 1050, "Surprise": 1400}.items():
        for number in (21, 22):
            name = f"{speaker}_{before + number:06d}"
            lines.append(f"{name}\t{_sentence(language, number)}\t{emotion}\n")
            (folder / emotion / "test").mkdir(parents=True, exist_ok=True)
            if number == 21 or emotion not in ("Neutral", "Angry"):
                (folder / emotion / "test" / f"{name}.wav").write_bytes(_wav(number))
    (folder / f"{speaker}.txt").write_text("".join(lines), encoding="utf-8")


EXPRESSO_TEXTS = (
    "*What* is this?",
    "<breath> The cat sat on the mat, and the *dog* sat by it.",
    "Where did all of the small red boats go today?",
)


def _write_expresso(root: Path) -> None:
    """Three sentences by two speakers in seven styles, of which the first is too short for a voice; of the third, the
    second speaker's neutral and whispered ones have no sound. A sentence of the training part, one with a stressed
    word, a long text and a song stand there too.
    """
    styles = ("confused", "default", "enunciated", "happy", "laughing", "sad", "whisper")
    ids = [
        f"{speaker}_{style}_{number:05d}"
        for speaker in ("ex01", "ex02")
        for style in styles
        for number in (344, 345, 346, 347)
    ]
    texts = [EXPRESSO_TEXTS[int(name[-5:]) % 345 % 3] for name in ids]
    for other in ("ex01_default_emphasis_00345", "ex01_default_longform_00001", "ex01_singing_00003"):
        ids.append(other)
        texts.append("Another *text*.")
    columns = {
        "audio": [
            None if name in ("ex02_default_00347", "ex02_whisper_00347") else {"bytes": _wav(at), "path": f"{name}.wav"}
            for at, name in enumerate(ids)
        ],
        "text": texts,
        "speaker_id": [name.partition("_")[0] for name in ids],
        "style": [name.split("_")[1] for name in ids],
        "id": ids,
    }
    file = root / "read" / "train-00000-of-00001.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    write_card(root)


def _write_zerospeech(folder: Path, benchmark: Benchmark) -> None:
    """Six pairs by three voices, of which the third is not named; the fifth has no preferred sound."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = list(benchmark.data.columns)[2:]
    lines = [
        ",".join(
            [
                "id",
                "filename",
                "voice",
                "correct",
                *(str(benchmark.data.columns[name]) for name in texts if name != "band"),
            ]
        )
    ]
    for index in range(ROWS):
        for correct in (1, 0):
            name = f"pair{index}{correct}"
            if not (index == NO_SOUND and correct):
                (folder / f"{name}.wav").write_bytes(_wav(index + correct))
            values = [f"{text} {index}" for text in texts if text != "band"]
            lines.append(",".join([str(index), name, _speaker(index, None), str(correct), *values]))
    (folder / "gold.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_story_cloze(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(ROWS):
        sides = ("incorrect",) if index == NO_SOUND else ("correct", "incorrect")
        for at, label in enumerate(sides):
            (folder / f"{2 * index + at}_story{index}_{label}.wav").write_bytes(_wav(index + at))


AIR_BENCH_CHAT = (
    ("speech_QA", "common_voice_en"), ("speech_dialogue_QA", "spokenwoz"), ("sound_QA", "clotho"), ("sound_generation_QA", "clotho"),
    ("music_QA", "musiccaps"), ("music_generation_analysis_QA", "musiccaps"), ("speech_and_sound_QA", "audiocaps_cv"),
    ("speech_and_music_QA", "musiccaps_cv"),
)  # fmt: skip
TWO_WAY = ("Speaker_Gender_Recognition", "Synthesized_Voice_Detection")
"""The tasks of AIR-Bench with two options."""


def air_bench_sources() -> list[tuple[str, str]]:
    """The tasks and sources of AIR-Bench's foundation part; a task whose definition names no source gets one."""
    conditions = [one.data.where for one in _all().values() if one.data.layout == "air-bench" and one.data.where]
    named = {(str(where["task"]), str(where["dataset"])) for where in conditions if "dataset" in where}
    alone = {str(where["task"]) for where in conditions} - {task for task, _ in named}
    return sorted(named | {(task, "one") for task in alone})


def _write_air_bench(root: Path, track: str) -> None:
    """All questions of one of AIR-Bench's two parts. Sounds of Audio_Grounding are FLAC although their rows say WAV."""
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
    listed.write_text(json.dumps(questions), encoding="utf-8")


def _known(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
