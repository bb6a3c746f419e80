"""The files of a folder: lines of a list, and the sound that a name means."""

from __future__ import annotations

import codecs
import gzip
import os
import posixpath
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache

from codec_bench.data.folder import all_files, is_sound
from codec_bench.data.rows import Position, stem, without_suffix
from codec_bench.decoding.span import SLACK_S, Span
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk

TEXT_SUFFIXES = frozenset(
    ".txt .csv .tsv .json .jsonl .gz .lst .lab .scp .ctm .stm .textgrid .srt .vtt .xml .eaf .parquet .arrow".split()
)
"""Files next to sound that may hold its texts."""
_NO_TEXTS = ("readme", "license", "licence", "copying", "notice", "changelog", "requirements")
_HEAD_BYTES = 64 << 10
NO_SOUND = "no_sound_of_name"
"""The code of a name without a sound."""
_SOUND_FOLDERS = ("wavs", "wav", "audio", "clips")


class Unclear(Exception):
    """A name of no sound or several, with its diagnostic, which may continue `line 3 of x.csv`."""

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__(problem)
        self.problem = problem


class Tree:
    """The files below the absolute path `root`, listed on first use."""

    def __init__(self, root: str) -> None:
        self.root = root

    @cached_property
    def files(self) -> list[str]:
        """Paths relative to the root, with `/`, sorted."""
        return sorted(all_files(self.root))

    @cached_property
    def sounds(self) -> list[str]:
        """The sound files."""
        return [file for file in self.files if is_sound(file)]

    @cached_property
    def others(self) -> list[str]:
        """The files other than sound."""
        return [file for file in self.files if not is_sound(file)]

    @cached_property
    def by_stem(self) -> dict[str, list[str]]:
        """The paths of the sound files, by file name without suffix."""
        files_by_stem: dict[str, list[str]] = {}
        for file in self.sounds:
            files_by_stem.setdefault(stem(file), []).append(file)
        return files_by_stem

    @cached_property
    def by_base(self) -> dict[str, str]:
        """The sound files by their paths without suffix."""
        return {without_suffix(file): file for file in self.sounds}

    @cached_property
    def texts(self) -> list[str]:
        """The files that may contain transcripts."""
        return [file for file in self.others if _may_hold_texts(file)]

    def path(self, file: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self.root, file)

    def find_sound(self, name: str, folder: str = "") -> str:
        """Find the sound that a list names: by path from `folder`, or else by its stem.

        Returns:
            Its path below the root.

        Raises:
            Unclear: there is none, there are several, or the path leads out of the folder.
        """
        path = posixpath.normpath(posixpath.join(folder, name))
        if posixpath.isabs(name):
            path = os.path.relpath(name, self.root).replace(os.sep, "/")
        if path.startswith("../"):
            raise Unclear(Diagnostic("name_outside", name=name))
        if is_sound(path) and os.path.isfile(self.path(path)):
            return path
        if path in self.by_base:
            return self.by_base[path]
        candidates = self.by_stem.get(stem(name) if is_sound(name) else posixpath.basename(name), [])
        near = [one for one in candidates if posixpath.basename(posixpath.dirname(one)) in _SOUND_FOLDERS]
        candidates = near if len(near) == 1 else candidates
        if len(candidates) > 1:
            raise Unclear(Diagnostic("name_of_several", name=name, one=candidates[0], other=candidates[1]))
        if not candidates:
            raise Unclear(Diagnostic(NO_SOUND, name=name))
        return candidates[0]

    def read_lines(self, file: str) -> Iterator[tuple[int, str]]:
        """The non-empty lines of a text file, with their numbers from 1.

        Raises:
            UserError: it cannot be read, or is not UTF-8.
        """
        with on_disk("file_not_readable", path=self.path(file)), _whole_gzip(self.path(file)):
            with gzip.open(self.path(file)) if file.endswith(".gz") else open(self.path(file), "rb") as opened:
                for number, raw in enumerate(opened, 1):
                    if (line := decode_line(raw, number, self.path(file)).strip("\r\n")).strip():
                        yield number, line

    def first_line(self, file: str) -> str:
        """The first non-blank line of a text file; "" if there is none.

        UTF-8 and UTF-16 are read; other bytes are replaced.
        """
        try:
            with gzip.open(self.path(file)) if file.endswith(".gz") else open(self.path(file), "rb") as opened:
                head = opened.read(_HEAD_BYTES)
        except (OSError, EOFError, zlib.error):
            return ""
        is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = head.decode("utf-16" if is_wide else "utf-8-sig", "replace")
        return next((line for line in text.splitlines() if line.strip()), "")


@contextmanager
def _whole_gzip(path: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error) as error:
        raise UserError("gzip_damaged", path=path, cause=error, hint="copy it again") from error


def segment_of(path: str, begin_s: float, end_s: float | None, where: Position, channel: int | None = None) -> str:
    """Build the locator of a segment of an audio file, a text in place of a path.

    Args:
        begin_s, end_s: in seconds; None for the end of the file.
        where: of the entry, for messages.
        channel: None for all.

    Raises:
        Unclear: the segment is empty, or ends after the audio by its header.
    """
    if begin_s < 0 or (end_s is not None and end_s <= begin_s):
        cause = Diagnostic("segment_order", begin_s=begin_s, end_s=end_s)
        raise Unclear(where.problem(cause))
    length_s = _length_s(path)
    if end_s is not None and length_s is not None and end_s > length_s + SLACK_S:
        cause = Diagnostic("segment_end", end_s=end_s, file=os.path.basename(path), length_s=length_s)
        raise Unclear(where.problem(cause))
    return str(Span(path, begin_s, end_s, channel))


@lru_cache(maxsize=1024)
def _length_s(path: str) -> float | None:
    """The seconds of a sound by its header; None if it cannot be read."""
    import soundfile

    with suppress(Exception):  # reading the sound explains the error
        header = soundfile.info(path)
        return header.frames / header.samplerate if 0 < header.frames else None
    return None


def decode_line(raw: bytes, number: int, path: str) -> str:
    """Decode a line of a UTF-8 text file; the first may begin with a byte order mark.

    Args:
        number: of the line, from 1, for messages.

    Raises:
        UserError: it is not UTF-8.
    """
    name, hint = os.path.basename(path), f"convert it: iconv -f ENCODING -t UTF-8 {path}"
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UserError("line_is_utf16", name=name, hint=hint)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError("line_not_utf8", line=number, name=name, byte=error.start + 1, hint=hint) from None


def _may_hold_texts(file: str) -> bool:
    name = posixpath.basename(file).lower()
    suffix = posixpath.splitext(name)[1]
    return (suffix in TEXT_SUFFIXES or not suffix) and not name.startswith(_NO_TEXTS)
