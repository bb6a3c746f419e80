"""Data sets that are not tables, read as rows.

`air-bench` (qyang1021/AIR-Bench-Dataset), for TRACK Foundation and Chat: `TRACK/TRACK_meta.json` is a list of
questions with `task_name`, `dataset_name` and `path`; `TRACK/TASK_DATASET/PATH` are the sounds. The suffix of some
differs from that of `path` (FLAC for WAV).

`minimax` (MiniMaxAI/TTS-Multilingual-Test-Set): `text/LANGUAGE.txt` has one `SPEAKER|SENTENCE` a line;
`speaker/LANGUAGE/SPEAKER/*.mp3` are recordings of the voice; the first by name counts;
`speaker/prompt_text.txt` has their words, one `FILE.mp3|TEXT` a line.

`seed-tts` (BytedanceSpeech/seed-tts-eval): lists of one `NAME|WORDS OF THE VOICE|VOICE|TEXT` a line, some with a fifth
field for voice conversion, the recording of the text by another speaker. Paths begin at the list's folder.

`listed` (VocalNet/VocalBench): a JSON file with a list of questions. A file of objects by id (RUL-MuchoMusic) gives
rows with the id in the columns `id` and `sound`; `.jsonl` (SongFormBench) has an object a line, and may be in the
archive of the sounds (URO-Bench). A path with `*` means all matching files (SpeechRole), named in the column `file`. A
sound's name may lack the suffix; `a.0.b` is `b` of the first entry of the list `a`.

`tagged`: a tab-separated table of sounds. Tags are `KIND---TAG` from the last column, `TAGS`, on (MTG-Jamendo), or
columns of 0 and 1 between the id and the sound (MagnaTagATune). Rows have them in `TAGS`, comma-separated, and in
`folder` the first folder of the sound's path.

`transcribed`: sounds `ID.wav` in a folder per speaker, with a list of `ID<tab>WORDS` (AISHELL-2) or `ID|WORDS|MORE`
lines (Opencpop), or files `ID.txt` in UTF-8 or Big5 (MIR-1K).

Pairs of sounds are read in `benchmark_pairs.py`, and styles of speech in `benchmark_styles.py`.
"""

from __future__ import annotations

import csv
import io
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.data.archives import is_archive
from codec_bench.data.cells import cell_of
from codec_bench.data.hub import PREFIX, Repository, find_repository, folder_repository
from codec_bench.data.layouts.lists import SEED_TTS_FIELDS, seed_tts_fields
from codec_bench.data.rows import Position, parse_json, random_part
from codec_bench.data.streamed import ProblemRow
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk

_SPOKEN = "speaker/prompt_text.txt"
COLUMNS = ("text", "audio", "prompt_text", "speaker", "language")
_SUFFIXES = (".flac", ".wav", ".mp3")
"""Suffixes to try for a sound of AIR-Bench if its row's own does not exist."""
_FOLDER = ("task_name", "dataset_name")


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows that were read from files; iterating yields `(key, row)`.

    Args:
        finish: completes a row when it is read, such as by fetching its sound; None if the rows are complete.
    """

    repository: Repository
    columns: tuple[str, ...]
    rows: list[tuple[str, dict[str, Any]]]
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.repository.name

    @property
    def revision(self) -> str | None:
        """The data set's revision, if it has one."""
        return self.repository.revision

    @property
    def total(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        finish = self.finish
        return iter(self.rows) if finish is None else ((key, finish(row)) for key, row in self.rows)

    def select(self, limit: int | None, seed: int | None) -> FileRows:
        """The first rows up to a limit, or a random part with a seed; all without a limit."""
        if limit is None or limit >= self.total:
            return self
        rows = self.rows[:limit] if seed is None else random_part(self.rows, lambda row: row[0], limit, seed)
        return replace(self, rows=rows)


def open_minimax(repository: Repository, *, language: str) -> FileRows:
    """Read one language of MiniMax's test set: sentences, each with a voice recording.

    Args:
        language: such as `english`.

    Raises:
        UserError: the files cannot be found.
    """
    files = _files(repository)
    sentences = f"text/{language}.txt"
    if sentences not in files:
        there = sorted(file[5:-4] for file in files if file.startswith("text/") and file.endswith(".txt"))
        raise UserError(
            "no_sentences",
            name=repository.name,
            file=sentences,
            hint=f"it has {', '.join(there) or 'no text/LANGUAGE.txt'}",
        )
    spoken_in = dict(_pairs(repository, _SPOKEN)) if _SPOKEN in files else {}
    prompts: dict[str, Clip | None] = {}
    spoken: dict[str, str | None] = {}
    rows = []
    for number, (speaker, text) in enumerate(_pairs(repository, sentences), 1):
        if speaker not in prompts:
            file = _prompt(files, speaker)
            prompts[speaker] = None if file is None else Clip(repository.local(file))
            spoken[speaker] = None if file is None else spoken_in.get(os.path.basename(file))
        row = {
            "text": text,
            "audio": prompts[speaker],
            "prompt_text": spoken[speaker],
            "speaker": speaker,
            "language": language,
        }
        rows.append((f"{language}-{number:03d}", row))
    return FileRows(repository, COLUMNS, rows)


def open_seed_tts(repository: Repository, *, listed: str) -> FileRows:
    """Read a list of Seed-TTS: texts with recordings in `audio` and `source_audio`.

    `audio` is the voice; `source_audio` speaks the text, if the list has it.

    Args:
        listed: path of the list, such as `zh/hardcase.lst`.

    Raises:
        UserError: the list cannot be found or read.
    """
    lines = text_of(repository, listed).split("\n")
    stem = posixpath.splitext(listed)[0]
    rows = [
        (f"{stem}/{at}", _seed_tts_row(line, Position("line", at, listed)))
        for at, line in enumerate(lines, 1)
        if line.strip()
    ]
    return FileRows(repository, SEED_TTS_FIELDS, rows, lambda row: _with_voices(row, listed, repository))


def open_listed(
    repository: Repository,
    *,
    listed: str,
    folder: str | None,
    sounds: tuple[str, ...],
    keep: Callable[[Mapping[str, Any]], bool],
) -> FileRows:
    """Read the objects of a JSON file or JSON lines as rows, each with its sounds.

    Args:
        listed: path of the file, or of several by a `*`.
        folder: folder or archive where the paths of sounds begin.
        sounds: the names under which an object names a sound.
        keep: whether the definition reads a row.

    Raises:
        UserError: the file cannot be found, or holds no list of objects.
    """
    repository = replace(repository, sounds=folder)
    rows: list[tuple[str, dict[str, Any]]] = []
    for file in _matching_files(repository, listed) if "*" in listed else [listed]:
        stem = posixpath.splitext(file)[0]
        extra = {"file": posixpath.basename(stem)} if "*" in listed else {}
        for at, record in enumerate(_records(repository, file)):
            is_object = isinstance(record, dict)
            row = {**record, **extra} if is_object else ProblemRow(Diagnostic("entry_no_object", entry=at, file=file))
            rows.append((f"{stem}/{at}", row))
    columns = dict.fromkeys(name for _, row in rows for name in row)

    def finish(row: dict[str, Any]) -> dict[str, Any]:
        """Replace the paths of sounds in a row by clips."""
        held = {} if isinstance(row, ProblemRow) else {name: cell_of(row, name) for name in sounds}
        named = {name: path for name, path in held.items() if path}
        sounds_of = {name: _sound(repository, str(path), listed) for name, path in named.items()}
        return {**row, **_clips(sounds_of)} if sounds_of else row

    return FileRows(repository, tuple(columns), _select_rows(rows, keep), finish)


def open_tagged(
    repository: Repository,
    *,
    listed: str,
    folder: str | None,
    sounds: tuple[str, ...],
    keep: Callable[[Mapping[str, Any]], bool],
) -> FileRows:
    """Read a tab-separated table with one audio file and its tags per row.

    A missing file `14/214.mp3` is replaced by `14/214.low.mp3`, as in MTG-Jamendo's smaller version. If that is
    missing too, the row keeps the path.

    Args:
        listed: path of the table.
        folder: folder of the repository where the audio paths begin.
        sounds: the columns with audio paths; the first folder of the first one's path fills the column `folder`.
        keep: whether the benchmark selects a row; rows with problems always stay.

    Raises:
        UserError: the table cannot be found, or has no rows between tabs.
    """
    repository = replace(repository, sounds=folder)
    lines = list(csv.reader(io.StringIO(text_of(repository, listed), newline=""), delimiter="\t"))
    columns = tuple(lines[0]) if lines else ()
    absent = [name for name in sounds if name not in columns]
    if len(columns) < 2 or absent:
        raise UserError("not_a_tab_table", listed=listed, name=repository.name, known=" and ".join(sounds))
    stem = posixpath.splitext(listed)[0]
    rows = [
        (f"{stem}/{at}", _tagged_row(columns, cells, sounds, Position("line", at, listed)))
        for at, cells in enumerate(lines[1:], 2)
        if cells
    ]

    def finish(row: dict[str, Any]) -> dict[str, Any]:
        """Replace the paths of sounds in a row by clips."""
        if isinstance(row, ProblemRow):
            return row
        sounds_of = {name: _stored_path(repository, str(row[name]), listed) for name in sounds}
        return {**row, **_clips(sounds_of)}

    of_row = columns if columns[-1] == TAGS else (columns[0], columns[-1], TAGS)
    return FileRows(repository, (*of_row, "folder"), _select_rows(rows, keep), finish)


def open_transcribed(repository: Repository, *, listed: str, folder: str | None) -> FileRows:
    """Read transcripts (a list, or one file each) with their sounds in `audio`.

    A missing sound leaves its file name there.

    Args:
        listed: path of the list or folder.
        folder: the folder below which sounds are found by name.

    Raises:
        UserError: the list cannot be found or read, or holds nothing, or the data are no folder.
    """
    if repository.root is None:
        raise UserError("not_a_folder_of_sounds", name=repository.name)
    stem, texts = posixpath.splitext(listed)[0], Path(repository.root, listed)
    if texts.is_dir():
        lines = [(f"{listed}/{file.stem}", _read_words(file)) for file in sorted(texts.glob("*.txt"))]
    else:
        listing = enumerate(text_of(repository, listed).split("\n"), 1)
        lines = [
            (f"{stem}/{at}", _parse_line(line, Position("line", at, listed))) for at, line in listing if line.strip()
        ]
    if not lines:
        raise UserError("list_of_nothing", listed=listed, name=repository.name)
    sounds = {file.stem: file for file in sorted(Path(repository.root, folder or "").rglob("*.wav"))}

    def row(entry: ProblemRow | tuple[str, str]) -> dict[str, Any]:
        """The row of an id and its words, with the sound and speaker."""
        if isinstance(entry, ProblemRow):
            return entry
        name, text = entry
        file = sounds.get(name)
        fields: dict[str, Any] = {"audio": f"{name}.wav", "speaker": None}
        if file is not None:
            fields = {"audio": Clip(str(file)), "speaker": file.parent.name}
        return {"id": name, "text": text, **fields}

    return FileRows(repository, ("id", "text", "audio", "speaker"), [(key, row(entry)) for key, entry in lines])


def _parse_line(line: str, where: Position) -> ProblemRow | tuple[str, str]:
    """Parse `ID|WORDS` (or tabs) to (id, words), or return a row with a problem."""
    mark = "\t" if "\t" in line else "|"
    name, *fields = line.split(mark)
    if not fields:
        return ProblemRow(where.problem(Diagnostic("row_without_mark")))
    return name.strip(), fields[0].strip()


def _read_words(file: Path) -> ProblemRow | tuple[str, str]:
    """Read a transcript file as (stem, text), or a row with a problem."""
    try:
        data = file.read_bytes()
    except OSError as error:
        return ProblemRow(Diagnostic("file_not_readable", path=file.name, cause=error.strerror))
    for encoding in ("utf-8-sig", "cp950"):
        try:
            return file.stem, " ".join(data.decode(encoding).split())
        except UnicodeDecodeError:
            continue
    return ProblemRow(Diagnostic("text_encoding_unknown", file=file.name))


TAGS = "TAGS"


def _tagged_row(columns: tuple[str, ...], cells: list[str], sounds: tuple[str, ...], where: Position) -> dict[str, Any]:
    """Parse a table row into columns, with its tags joined by commas in `TAGS`."""
    if columns[-1] == TAGS:
        head, tags = columns[:-1], [tag.rpartition("---")[2] for tag in cells[len(columns) - 1 :]]
        row = dict(zip(head, cells))
        is_complete = len(cells) >= len(head)
    else:
        row = {columns[0]: cells[0], columns[-1]: cells[-1]}
        tags = [name for name, cell in zip(columns[1:-1], cells[1:-1]) if cell == "1"]
        is_complete = len(cells) == len(columns)
    if not is_complete:
        cause = Diagnostic("row_cells", cells=len(cells), columns=len(columns))
        return ProblemRow(where.problem(cause))
    return {**row, TAGS: ", ".join(tags), "folder": row[sounds[0]].partition("/")[0]}


def _stored_path(repository: Repository, named: str, listed: str) -> str:
    """The path of a sound, or of its `.low` version if only that exists."""
    stem, suffix = posixpath.splitext(named)
    paths = [repository.sound(name, listed) for name in (named, f"{stem}.low{suffix}")]
    return next((path for path in paths if os.path.isfile(path)), paths[0])


def _select_rows(
    rows: list[tuple[str, dict[str, Any]]], keep: Callable[[Mapping[str, Any]], bool]
) -> list[tuple[str, dict[str, Any]]]:
    """The selected rows, and every row with a problem."""
    return [(key, row) for key, row in rows if isinstance(row, ProblemRow) or keep(row)]


def _clips(paths: Mapping[str, str]) -> dict[str, Clip]:
    """The sounds that exist."""
    return {name: Clip(path) for name, path in paths.items() if os.path.isfile(path)}


def _sound(repository: Repository, named: str, listed: str) -> str:
    """The path of a sound; for a name without a suffix, of the first existing file."""
    suffixes = ("",) if posixpath.splitext(named)[1] else _SUFFIXES
    paths = [repository.sound(f"{named}{suffix}", listed) for suffix in suffixes]
    return next((path for path in paths if os.path.isfile(path)), paths[0])


def _matching_files(repository: Repository, pattern: str) -> list[str]:
    """The sorted paths of a folder's files that match a pattern with `*`."""
    if repository.root is None:
        raise UserError("not_a_folder_of_files", name=repository.name, pattern=pattern)
    files = sorted(file.relative_to(repository.root).as_posix() for file in Path(repository.root).glob(pattern))
    if not files:
        raise UserError("no_files_of_pattern", name=repository.name, pattern=pattern)
    return files


def _records(repository: Repository, listed: str) -> list[Any]:
    """Read the entries of a JSON list, of JSON lines, or of an object by id."""
    archived = repository.sounds is not None and is_archive(repository.sounds) and not repository.has(listed)
    try:
        text = Path(repository.sound(listed, "") if archived else repository.local(listed)).read_text(
            encoding="utf-8-sig"
        )
        records = list(_json_lines(text)) if listed.endswith(".jsonl") else parse_json(text)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError("questions_unreadable", listed=listed, name=repository.name, cause=error) from error
    if isinstance(records, dict) and records and all(isinstance(one, dict) for one in records.values()):
        return [{"id": key, "sound": key, **one} for key, one in records.items()]
    if not isinstance(records, list):
        raise UserError("no_list_of_questions", listed=listed, name=repository.name)
    return records


def _json_lines(text: str) -> Iterator[Any]:
    """Parse JSON lines; errors name the line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield parse_json(line)
            except ValueError as error:
                raise ValueError(f"line {number} {error}") from error


def _seed_tts_row(line: str, where: Position) -> dict[str, Any]:
    fields = seed_tts_fields(line)
    cause = Diagnostic("row_fields", fields=len(line.split("|")), layout="seed_tts")
    return fields or ProblemRow(where.problem(cause))


def _with_voices(row: dict[str, Any], listed: str, repository: Repository) -> dict[str, Any]:
    """Replace a row's audio paths by clips of the files that exist."""
    if isinstance(row, ProblemRow):
        return row
    named = {name: row[name] for name in ("audio", "source_audio") if row[name] is not None}
    paths = {name: repository.sound(path, listed) for name, path in named.items()}
    return {**row, **{name: Clip(path) if os.path.isfile(path) else named[name] for name, path in paths.items()}}


def text_of(repository: Repository, file: str) -> str:
    """Read the text of a file.

    Raises:
        UserError: it cannot be found or read.
    """
    with on_disk("file_not_readable", path=f"{repository.name}/{file}"):
        return Path(repository.local(file)).read_text(encoding="utf-8-sig")


def _files(repository: Repository) -> frozenset[str]:
    """The paths of MiniMax's files, from the repository's root."""
    if repository.root is None:
        return repository.files
    root = Path(repository.root)
    return frozenset(
        file.relative_to(root).as_posix() for kind in ("text", "speaker") for file in root.glob(f"{kind}/**/*")
    )


def _pairs(repository: Repository, file: str) -> Iterator[tuple[str, str]]:
    """Left and right of every line of the form `LEFT|RIGHT`."""
    for line in Path(repository.local(file)).read_text(encoding="utf-8-sig").split("\n"):
        left, bar, right = line.partition("|")
        if bar and left.strip():
            yield left.strip(), right.strip()


def _prompt(files: frozenset[str], speaker: str) -> str | None:
    """The first recording of a speaker `LANGUAGE_NAME`, below the language's folder."""
    inside = f"speaker/{speaker.rpartition('_')[0]}/{speaker}/"
    return min((file for file in files if file.startswith(inside) and file.endswith(".mp3")), default=None)


def repository_of(where: str, revision: str | None, mirror: str | os.PathLike[str] | None) -> Repository:
    """Find the repository of a hub name (`hf:OWNER/NAME`), or a local folder."""
    if where.startswith(PREFIX):
        return find_repository(where.removeprefix(PREFIX), revision, mirror)
    path = os.path.abspath(os.path.expanduser(where))
    if not os.path.isdir(path):
        raise UserError("no_folder", path=path)
    return folder_repository(path, os.path.basename(path), revision)


def open_air_bench(repository: Repository, *, track: str, keep: Callable[[Mapping[str, Any]], bool]) -> FileRows:
    """Read AIR-Bench's questions, each with its sound in `audio`.

    A missing sound leaves its expected path there. The column `renamed` says whether the sound's suffix differs from
    its row's.

    Args:
        track: `Foundation` or `Chat`.
        keep: whether the definition reads a row; the sounds of others are not fetched.

    Raises:
        UserError: the files cannot be found, or the list of questions cannot be read.
    """
    listed = f"{track}/{track}_meta.json"
    records = _records(repository, listed)
    numbered = list(enumerate(map(_record, records, [listed] * len(records))))
    rows = [(f"{track}/{at}", row) for at, row in numbered if isinstance(row, ProblemRow) or keep(row)]
    columns = dict.fromkeys(name for row in records if isinstance(row, dict) for name in row)
    names = (*(name for name in columns if name not in ("audio", "renamed")), "audio", "renamed")
    return FileRows(repository, names, rows, lambda row: _with_sound(row, track, repository))


def _record(record: Any, listed: str) -> dict[str, Any]:
    """Return an AIR-Bench question with task and source, or a row with a problem."""
    if not isinstance(record, dict):
        return ProblemRow(Diagnostic("question_no_object", listed=listed))
    absent = [name for name in _FOLDER if not isinstance(record.get(name), str) or not record[name].strip()]
    lacks = Diagnostic("question_lacks", listed=listed, fields=", ".join(absent))
    return ProblemRow(lacks) if absent else record


def _with_sound(row: dict[str, Any], track: str, repository: Repository) -> dict[str, Any]:
    """Add an AIR-Bench row's audio; `renamed` says if only the suffix differs."""
    if isinstance(row, ProblemRow):
        return row
    path = row.get("path")
    if not isinstance(path, str) or not path.strip():
        return {**row, "audio": None, "renamed": False}
    named = posixpath.normpath(f"{track}/{'_'.join(row[name] for name in _FOLDER)}/{path}")
    if not named.startswith(f"{track}/"):
        return ProblemRow(Diagnostic("sound_outside", sound=path))
    stem = posixpath.splitext(named)[0]
    file = next((one for one in (named, *(stem + suffix for suffix in _SUFFIXES)) if repository.has(one)), None)
    if file is None:
        return {**row, "audio": named, "renamed": False}
    return {**row, "audio": Clip(repository.local(file)), "renamed": file != named}
