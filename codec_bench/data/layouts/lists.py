"""Lists of one utterance a line: LJSpeech, LibriSpeech, ESD, Seed-TTS, Kaldi.

Formats: https://keithito.com/LJ-Speech-Dataset/ (README), https://www.openslr.org/12,
    https://hltsingapore.github.io/ESD/, https://github.com/BytedanceSpeech/seed-tts-eval,
    https://kaldi-asr.org/doc/data_prep.html, https://espnet.github.io/espnet/espnet2_tutorial.html.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from codec_bench.data.layouts.base import LayoutResult
from codec_bench.data.layouts.tree import NO_SOUND, Tree, Unclear, segment_of
from codec_bench.data.rows import ALIASES, NOTHING, Position, Row
from codec_bench.messages import Diagnostic
from codec_bench.types import SPOKEN

_LIST_OF_PROMPTS = (4, 5)
_KALDI_KNOWN = (
    "spk2utt utt2dur utt2num_samples reco2dur spk2gender utt2gender feats.scp cmvn.scp vad.scp utt2category "
    "utt2num_frames frame_shift"
)
_PARENTS = 4


def _row(tree: Tree, number: int, id: str, sound: str, where: Position, folder: str = "", **fields: object) -> Row:
    """A row whose sound is the file that a list names."""
    try:
        file = tree.find_sound(sound, folder)
    except Unclear as error:
        problem = where.problem(error.problem)
        lacks_sound = error.problem.code == NO_SOUND
        return Row(number, id, sound, problem=problem, lacks_sound=lacks_sound, **fields)  # type: ignore[arg-type]
    return Row(number, id, file, tree.path(file), **fields)  # type: ignore[arg-type]


def claims_ljspeech(tree: Tree, file: str) -> bool:
    """Whether the first line is `ID|TEXT` or `ID|TEXT|NORMALISED TEXT`."""
    fields = [field.strip() for field in tree.first_line(file).split("|")]
    return len(fields) in (2, 3) and bool(fields[0]) and " " not in fields[0] and fields[0].lower() not in _HEADS


_HEADS = {name for names in ALIASES.values() for name in names}


def read_ljspeech(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read `wavs/ID.wav` per line `ID|TEXT|NORMALISED TEXT` (numbers written out)."""
    (file,) = files
    folder = posixpath.dirname(file)

    def rows() -> Iterator[Row]:
        for number, line in tree.read_lines(file):
            fields = [field.strip() for field in line.split("|")]
            where = Position("line", number, posixpath.basename(file))
            name = posixpath.splitext(posixpath.basename(fields[0]))[0] if "." in fields[0] else fields[0]
            if len(fields) not in (2, 3) or not fields[0]:
                cause = Diagnostic("row_fields", fields=len(fields), layout="ljspeech")
                problem = where.problem(cause)
                yield Row(number, name or None, problem=problem)
                continue
            extra = {SPOKEN: fields[2]} if len(fields) == 3 and fields[2] else NOTHING
            yield _row(tree, number, name, fields[0], where, folder, text=fields[1], extra=extra)

    return LayoutResult(rows(), files)


def claims_librispeech(tree: Tree, file: str) -> bool:
    """Whether the first line is `SPEAKER-CHAPTER-NUMBER WORDS`."""
    return re.match(r"\d+-\d+-\d+ ", tree.first_line(file)) is not None


def read_librispeech(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read a line `SPEAKER-CHAPTER-NUMBER WORDS` for each sound in the list's folder."""

    def rows() -> Iterator[Row]:
        count = 0
        for file in files:
            for number, line in tree.read_lines(file):
                count += 1
                id, _, text = line.partition(" ")
                where = Position("line", number, posixpath.basename(file))
                speaker = id.split("-")[0]
                yield _row(tree, count, id, id, where, posixpath.dirname(file), text=text.strip(), speaker=speaker)

    known = [file for file in tree.texts if re.search(r"(^|/)(SPEAKERS|CHAPTERS|BOOKS)\.TXT$", file)]
    return LayoutResult(rows(), files, known)


ESD_SPEAKERS = {"zh": range(1, 11), "en": range(11, 21)}
"""The numbers of ESD's speakers of each language."""


def esd_words(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str | None, str]]:
    """Number, id, words and emotion of a line `SPEAKER_NUMBER<tab>WORDS<tab>EMOTION`."""
    for number, line in lines:
        id, *fields = (field.strip() for field in line.split("\t"))
        yield number, id, fields[0] if fields else None, fields[1] if len(fields) > 1 else ""


def claims_esd(tree: Tree, file: str) -> bool:
    """Whether it is `0011/0011.txt` with `0011_000001<tab>WORDS<tab>EMOTION`."""
    name = posixpath.splitext(posixpath.basename(file))[0]
    return posixpath.basename(posixpath.dirname(file)) in (name, "") and tree.first_line(file).startswith(f"{name}_")


def read_esd(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read the recordings below each speaker's folder, with their emotions."""

    def rows() -> Iterator[Row]:
        count = 0
        for file in files:
            speaker = posixpath.splitext(posixpath.basename(file))[0]
            language = next((code for code, of in ESD_SPEAKERS.items() if int(speaker) in of), None)
            for number, id, text, emotion in esd_words(tree.read_lines(file)):
                count += 1
                extra = {"emotion": emotion} if emotion else NOTHING
                where = Position("line", number, posixpath.basename(file))
                if text is None:
                    yield Row(
                        count,
                        None,
                        problem=where.problem(Diagnostic("row_without_tab")),
                    )
                    continue
                yield _row(tree, count, id, id, where, text=text, speaker=speaker, language=language, extra=extra)

    return LayoutResult(rows(), files)


SEED_TTS_FIELDS = ("name", "prompt_text", "audio", "text", "source_audio")


def seed_tts_fields(line: str) -> dict[str, Any] | None:
    """Parse `NAME|WORDS OF THE PROMPT|PROMPT|TEXT[|RECORDING]`; None for other lines."""
    fields = [field.strip() for field in line.split("|")]
    if len(fields) not in _LIST_OF_PROMPTS or not fields[0]:
        return None
    return dict(zip(SEED_TTS_FIELDS, [*(field or None for field in fields), None]))


def claims_seed_tts(tree: Tree, file: str) -> bool:
    """Whether the first line has four or five fields."""
    return seed_tts_fields(tree.first_line(file)) is not None


def read_seed_tts(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read a list of texts for synthesis, each with a recording of the voice."""
    (file,) = files
    folder = posixpath.dirname(file)

    def rows() -> Iterator[Row]:
        for number, line in tree.read_lines(file):
            fields, where = seed_tts_fields(line), Position("line", number, posixpath.basename(file))
            if fields is None:
                cause = Diagnostic("row_fields", fields=len(line.split("|")), layout="seed_tts")
                yield Row(number, None, problem=where.problem(cause))
                continue
            name = posixpath.splitext(fields["name"] or "")[0]
            extra = {"prompt_text": fields["prompt_text"], TARGET: _target(tree, fields["source_audio"], folder)}
            present = {key: value for key, value in extra.items() if value}
            yield _row(tree, number, name, fields["audio"] or "", where, folder, text=fields["text"], extra=present)

    return LayoutResult(rows(), files, role="prompt")


TARGET = "target_audio"
"""The column of a recording of the same words, if the sound is that of the voice."""


def _target(tree: Tree, named: str | None, folder: str) -> str | None:
    try:
        return tree.path(tree.find_sound(named, folder)) if named else None
    except Unclear:
        return None


def claims_always(tree: Tree, file: str) -> bool:
    """Accept every file, for layouts with a unique file name."""
    return True


def read_kaldi(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read a Kaldi folder: `wav.scp` with `text`, `utt2spk`, `utt2lang`, `segments`."""
    (file,) = files
    folder = posixpath.dirname(file)
    there = {name: posixpath.join(folder, name) for name in ("text", "utt2spk", "utt2lang", "segments")}
    there = {name: path for name, path in there.items() if os.path.isfile(tree.path(path))}
    repeats: list[tuple[str, Diagnostic]] = []
    values = {name: _read_by_id(tree, path, repeats) for name, path in there.items()}
    texts, speakers, languages = (values.get(name, {}) for name in ("text", "utt2spk", "utt2lang"))

    def rows() -> Iterator[Row]:
        """Yield a row per utterance, and a problem per repeated id."""
        recordings = _read_by_id(tree, file, repeats)
        segments = values.get("segments", {id: (number, "") for id, (number, _) in recordings.items()})
        names = [*segments, *(id for id in texts if id not in segments)]
        for at, id in enumerate(names, 1):
            speaker, language = (of[id][1] if id in of else None for of in (speakers, languages))
            audio, problem = None, None
            try:
                if id not in segments:
                    lacks = "segments" if "segments" in values else "wav.scp"
                    raise Unclear(Diagnostic("id_lacking", line=texts[id][0], id=id, file=lacks))
                audio = _kaldi_sound(tree, folder, id, segments[id], recordings, "segments" in values)
            except Unclear as error:
                problem = error.problem
            text = texts[id][1] if id in texts else None
            yield Row(at, id, id, audio, text, speaker, language, problem=problem, lacks_sound=problem is not None)
        yield from (Row(at, id, problem=problem) for at, (id, problem) in enumerate(repeats, len(names) + 1))

    known = [path for name in _KALDI_KNOWN.split() if os.path.isfile(tree.path(path := posixpath.join(folder, name)))]
    return LayoutResult(rows(), [file, *there.values()], known)


def _read_by_id(tree: Tree, file: str, repeats: list[tuple[str, Diagnostic]]) -> dict[str, tuple[int, str]]:
    """Read `ID REST` lines of a Kaldi file into (line number, rest) by id.

    The first line of an id counts; `repeats` gets each later line with another rest.
    """
    keyed: dict[str, tuple[int, str]] = {}
    for number, line in tree.read_lines(file):
        id, _, rest = line.strip().partition(" ") if "\t" not in line.split(" ")[0] else line.strip().partition("\t")
        first, of_first = keyed.setdefault(id, (number, rest.strip()))
        if of_first != rest.strip():
            where = Position("line", number, posixpath.basename(file))
            cause = Diagnostic("id_repeated", id=id, unit="line", first=first)
            repeats.append((id, where.problem(cause)))
    return keyed


def _kaldi_sound(
    tree: Tree, folder: str, id: str, segment: tuple[int, str], recordings: dict[str, tuple[int, str]], is_cut: bool
) -> str:
    """The path of an utterance's sound, or of its segment of a recording.

    Args:
        segment: (line number, `RECORDING BEGIN END`), of `segments` if `is_cut`.
        recordings: (line number, path) by recording.
    """
    if not is_cut:
        return _kaldi_file(tree, folder, *recordings[id])
    number, rest = segment
    fields = rest.split()
    try:
        recording, begin, end = fields[0], float(fields[1]), float(fields[2])
    except (IndexError, ValueError):
        raise Unclear(Diagnostic("segment_form", line=number)) from None
    if recording not in recordings:
        raise Unclear(Diagnostic("segment_recording", line=number, recording=recording))
    path = _kaldi_file(tree, folder, *recordings[recording])
    return segment_of(path, begin, None if end == -1 else end, Position("line", number, "segments"))


def _kaldi_file(tree: Tree, folder: str, number: int, named: str) -> str:
    """Find the file that a line of `wav.scp` names, or raise Unclear.

    It is in the folder, one of its parents or the working directory.

    Args:
        number, named: the line's number, and what it names.
    """
    where = Position("line", number, "wav.scp")
    if named.endswith("|") or named.startswith("|"):
        raise Unclear(where.problem(Diagnostic("sound_command", command=named)))
    if re.search(r"\.ark:\d+$", named):
        raise Unclear(where.problem(Diagnostic("sound_archive", name=named)))
    directory = tree.path(folder)
    parents = (os.path.normpath(os.path.join(directory, *[".."] * up)) for up in range(1, _PARENTS))
    candidates = (os.path.join(one, named) for one in (directory, *parents, os.getcwd()))
    sound_path = next(filter(os.path.isfile, candidates), None)
    if sound_path is None:
        raise Unclear(where.problem(Diagnostic(NO_SOUND, name=named)))
    return os.path.abspath(sound_path)
