"""Text files next to sounds: LibriTTS, VCTK, `.txt`, `.lab`, TextGrid.

Formats: https://www.openslr.org/60, https://datashare.ed.ac.uk/handle/10283/3443, Montreal Forced Aligner's corpora
    (https://montreal-forced-aligner.readthedocs.io/en/latest/user_guide/corpus_structure.html).
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence

from codec_bench.data.alignments import words_of
from codec_bench.data.folder import read_folder
from codec_bench.data.layouts.base import LayoutResult
from codec_bench.data.layouts.tree import Tree, decode_line
from codec_bench.data.rows import NOTHING, Row, stem, without_suffix
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.types import SPOKEN, WORDS

_TIMES = re.compile(r"\s*\d+\s+\d+\s+\S")
_MICROPHONE = re.compile(r"(?P<id>.+)_(?P<mic>mic\d)")
_TEXT_FOLDERS = ("txt", "text", "texts", "lab", "transcripts")


def read_text(tree: Tree, file: str) -> str:
    """The words of a file, with single spaces.

    Raises:
        UserError: it cannot be read, or is not UTF-8.
    """
    with on_disk("file_not_readable", path=tree.path(file)), open(tree.path(file), "rb") as opened:
        lines = [decode_line(raw, number, tree.path(file)) for number, raw in enumerate(opened, 1)]
    return " ".join(" ".join(lines).split())


def _with_text(tree: Tree, row: Row, file: str | None, **fields: object) -> Row:
    """A row with the words of a text file; an unreadable file is the row's problem."""
    try:
        text = None if file is None else read_text(tree, file)
    except UserError as error:
        return row._replace(problem=of_error(error), lacks_sound=False)
    return row._replace(text=text, **fields)  # type: ignore[arg-type]


_ORIGINAL, _NORMALISED = ".original.txt", ".normalized.txt"


def claims_libritts(tree: Tree, file: str) -> bool:
    """Whether the file is the text of a sound next to it."""
    return file.removesuffix(_ORIGINAL).removesuffix(_NORMALISED) in tree.by_base


def read_libritts(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read `ID.original.txt`, and `ID.normalized.txt` with numbers written out."""
    there = set(files)

    def rows() -> Iterator[Row]:
        for row in read_folder(tree.root, tree.sounds):
            base = without_suffix(row.name or "")
            text_files = [base + kind for kind in (_ORIGINAL, _NORMALISED) if base + kind in there]
            id = posixpath.basename(base)
            row = _with_text(tree, row, text_files[0] if text_files else None, id=id, speaker=id.split("_")[0])
            if len(text_files) == 2:
                row = row._replace(extra={SPOKEN: _with_text(tree, row, text_files[1]).text or ""})
            yield row
        yield from _without_sound(len(tree.sounds), tree, [file for file in files if not claims_libritts(tree, file)])

    pattern = re.compile(r"(\.trans|\.book)\.tsv$|(^|/)(SPEAKERS|CHAPTERS|BOOKS|speakers)\.\w+$")
    known = [file for file in tree.texts if pattern.search(file)]
    return LayoutResult(rows(), files, known, lists_sounds=False)


def _without_sound(count: int, tree: Tree, files: Sequence[str]) -> Iterator[Row]:
    for at, file in enumerate(files, count + 1):
        id = posixpath.basename(file).split(".")[0]
        problem = Diagnostic("text_without_sound", file=file)
        yield _with_text(tree, Row(at, id, problem=problem, lacks_sound=True), file)


def claims_vctk(tree: Tree, file: str) -> bool:
    """Whether the file is in a folder of texts, and its sound in another one."""
    return _is_in_text_folder(file) and bool(_vctk_sounds(tree, file))


def _is_in_text_folder(file: str) -> bool:
    return any(name in _TEXT_FOLDERS for name in file.lower().split("/")[:-1])


def _vctk_sounds(tree: Tree, file: str) -> list[str]:
    name = stem(file)
    candidates = [sound for one in (name, f"{name}_mic1", f"{name}_mic2") for sound in tree.by_stem.get(one, [])]
    return [sound for sound in candidates if posixpath.dirname(sound) != posixpath.dirname(file)]


def read_vctk(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read `txt/SPEAKER/ID.txt` for `wav*/SPEAKER/ID.wav` (or ID_mic1, ID_mic2)."""
    known = [file for file in tree.texts if re.search(r"(^|/)(speaker-info|update|log)\.txt$", file)]
    files = [file for file in files if _is_in_text_folder(file)]
    texts = {stem(file): file for file in files}

    def rows() -> Iterator[Row]:
        for row in read_folder(tree.root, tree.sounds):
            name = stem(row.name or "")
            match = _MICROPHONE.fullmatch(name)
            text = texts.get(name) or (texts.get(match["id"]) if match else None)
            speaker = posixpath.basename(posixpath.dirname(text)) if text else None
            speaker = None if speaker is not None and speaker.lower() in _TEXT_FOLDERS else speaker
            extra = {"microphone": match["mic"]} if match else NOTHING
            yield _with_text(tree, row, text, id=None, speaker=speaker, extra=extra)
        yield from _without_sound(len(tree.sounds), tree, [file for file in files if not _vctk_sounds(tree, file)])

    return LayoutResult(rows(), files, known, lists_sounds=False)


def claims_sidecar(tree: Tree, file: str) -> bool:
    """Whether a sound has the file's name, and the file has words."""
    return without_suffix(file) in tree.by_base and not _TIMES.match(tree.first_line(file))


def read_sidecars(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read `a.txt`, else `a.lab`, as the text of `a.wav`."""
    of: dict[str, str] = {}
    for file in sorted(files, reverse=True):  # .txt comes after .lab
        if claims_sidecar(tree, file) or without_suffix(file) not in tree.by_base:
            of[without_suffix(file)] = file

    def rows() -> Iterator[Row]:
        for row in read_folder(tree.root, tree.sounds):
            yield _with_text(tree, row, of.get(without_suffix(row.name or "")))

    used = [file for base, file in of.items() if base in tree.by_base]
    return LayoutResult(rows(), used, lists_sounds=False)


def add_words(tree: Tree, row: Row) -> tuple[Row, str | None]:
    """Add word times from the TextGrid next to a row's sound, if there is one.

    Returns:
        (the row, the TextGrid's path below the folder or None).
    """
    file = None if row.audio is None else os.path.splitext(row.audio)[0] + ".TextGrid"
    if file is None or WORDS in row.extra or not os.path.isfile(file):
        return row, None
    name = os.path.relpath(file, tree.root).replace(os.sep, "/")
    try:
        words = words_of(file)
    except UserError as error:
        return row._replace(problem=of_error(error), lacks_sound=False), name
    return (row if words is None else row._replace(extra={**row.extra, WORDS: words})), name
