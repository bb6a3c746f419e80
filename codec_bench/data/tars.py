"""Tar files of samples in WebDataset's form, local or behind URLs.

A member's name up to the first dot of its last part is its key. Neighbouring members with one key are one sample:
`a/0001.flac`, `a/0001.json`, `a/0001.txt`. The sound has a sound file's suffix; `.json` holds further fields, named
like a manifest's columns; `.txt` the text. Several sounds of a key (`clip.0.flac`, `clip.1.flac`) are separate samples,
`clip.0` and `clip.1`, each with its own text. Other members are ignored. The sample's id is its key. Members are read
by position, never by name. A member that is no ordinary file, or whose name leads out of the tar file, makes its sample
a problem. Braces name several files: `train-{0000..0099}.tar`. The cache keeps the positions of all members until the
file's state (`config/file_content.py`) or ETag changes.

Source: the format of WebDataset (https://github.com/webdataset/webdataset, `base_plus_ext` in `tariterators.py`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import posixpath
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codec_bench.config.file_content import file_state
from codec_bench.config.paths import cache_folder
from codec_bench.data.manifest import CellSound, Columns, make_row
from codec_bench.data.rows import ALIASES, DoubleKey, Position, Row, parse_json
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.decoding.read import TarMember
from codec_bench.decoding.remote import filesystem, is_url, shown, tried
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk

SUFFIX = ".tar"
MOST_FILES = 100_000
MOST_TEXT_BYTES = 1 << 20
_BLOCK_BYTES = 128 << 10
"""Bytes of a remote file to read at a time in the search for members; longer sounds in between are skipped."""
_VERSION = 4
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_NAME = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)")
_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_TAGS = ("ETag", "etag")


@dataclass(frozen=True, slots=True)
class _TarEntry:
    """One sample of a tar file, as the cache stores it.

    Args:
        name, begin, size: of its sound; an empty name if it has none.
        problem: why they cannot be read, or None.
    """

    key: str
    name: str = ""
    begin: int = 0
    size: int = 0
    fields: dict[str, Any] | None = None
    problem: Diagnostic | None = None


def names_tars(data: str) -> bool:
    """Whether a text names tar files: one, or several with braces.

    Raises:
        UserError: the files are compressed.
    """
    if data.lower().endswith(_PACKED):
        raise UserError("tar_compressed", path=shown(data), hint="unpack it to .tar; sound is compressed already")
    return data.lower().endswith(SUFFIX)


def expanded(data: str) -> list[str]:
    """Expand braces in a path: `a-{08..10}.tar` gives `a-08.tar` to `a-10.tar`.

    Raises:
        UserError: the braces count backwards, or name too many files.
    """
    match = _BRACES.search(data)
    if match is None:
        return [data]
    first, last = match.groups()
    if int(last) < int(first) or int(last) - int(first) >= MOST_FILES:
        raise UserError("tar_numbers", path=shown(data), first=first, last=last, most=MOST_FILES)
    width = len(first) if first.startswith("0") else 0
    head, tail = data[: match.start()], data[match.end() :]
    return [one for number in range(int(first), int(last) + 1) for one in expanded(f"{head}{number:0{width}d}{tail}")]


def tar_rows(data: str, *, require_audio: bool) -> Iterator[Row]:
    """Yield a row per sample of tar files in WebDataset's form, in order.

    Args:
        data: path or URL, with braces for several files.
        require_audio: whether a sample without sound is a problem.

    Raises:
        UserError: a file is missing, truncated, or no tar file.
    """
    needed = ("audio",) if require_audio else ("audio", "estimate", "text")
    number = 0
    for file in expanded(data):
        for entry in _entries(file):
            number += 1
            yield _row(number, file, entry, needed)


def _row(number: int, file: str, entry: _TarEntry, needed: tuple[str, ...]) -> Row:
    """Convert a tar sample to a row; its audio is a byte range of the file."""
    where = Position("sample", entry.key, os.path.basename(shown(file)))
    if entry.problem is not None:
        return Row(number, entry.key, problem=where.problem(entry.problem))
    reserved = {*ALIASES["audio"], *ALIASES["id"], *ALIASES["estimate"]}
    fields = {k: v for k, v in (entry.fields or {}).items() if k.strip().lower() not in reserved}
    cells = {
        "audio": CellSound(str(TarMember(file, entry.begin, entry.size, entry.name)), entry.name)
        if entry.name
        else None,
        **fields,
    }
    names = tuple(cells)
    parsed = make_row(number, Columns(names), names, list(cells.values()), "", needed)
    extra = {k: v for k, v in parsed.extra.items() if isinstance(v, (str, int, float, bool))}
    problem = parsed.problem and where.problem(parsed.problem)
    return parsed._replace(id=entry.key, extra=extra, problem=problem)


def _entries(file: str) -> list[_TarEntry]:
    """The samples of a tar file, from the cache if the file has not changed."""
    state = _state(file)
    path = cache_folder() / "tars" / f"{hashlib.blake2b(shown(file).encode(), digest_size=16).hexdigest()}.json"
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        held = json.loads(path.read_text("utf-8"))
        if held["state"] == state and state[2] is not None:
            return [_TarEntry(**one) for one in held["entries"]]
    entries = _scan(file)
    if state[2] is not None and state == _state(file):
        _write_cache(path, {"state": state, "entries": [asdict(one) for one in entries]})
    return entries


def _write_cache(path: Path, value: Any) -> None:
    """Write a cache file atomically; without success, it is written next time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.part")
        temporary.write_text(json.dumps(value), encoding="utf-8")
        os.replace(temporary, path)


def _state(file: str) -> list[Any]:
    """[cache version, size, file state or ETag]; the last is None if it is not unique."""
    if is_url(file):
        facts = tried(file, lambda: filesystem(file).info(file))
        return [_VERSION, facts.get("size"), next((str(facts[name]) for name in _TAGS if facts.get(name)), None)]
    with on_disk("file_not_readable", path=file):
        return [_VERSION, os.path.getsize(file), file_state(file)]


def _scan(file: str) -> list[_TarEntry]:
    """Find the samples of a tar file; of a remote one, only headers' blocks are read."""

    def look() -> list[_TarEntry]:
        if not is_url(file):
            with open(file, "rb") as opened:
                return _samples_of(opened)
        with filesystem(file).open(file, "rb", block_size=_BLOCK_BYTES, cache_type="readahead") as opened:
            return _samples_of(opened)

    try:
        read = _with_message(file, look)
        return tried(file, read) if is_url(file) else read()
    except OSError as error:
        # EINVAL: a size in the file is wrong.
        hint = "copy it again" if error.errno == errno.EINVAL else None
        raise UserError("tar_unreadable", file=file, cause=error.strerror or error, hint=hint) from error


def _with_message(file: str, look: Any) -> Any:
    """Wrap a reader of tar entries; a damaged file raises UserError."""

    def called() -> list[_TarEntry]:
        try:
            entries: list[_TarEntry] = look()
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise UserError("tar_damaged", file=shown(file), cause=error, hint="copy it again") from error
        return entries

    return called


def _samples_of(opened: Any) -> list[_TarEntry]:
    """Scan a tar file for samples: members that share a name without suffix."""
    entries: list[_TarEntry] = []
    key, wrong = "", None
    sounds: dict[str, tuple[str, int, int]] = {}
    texts: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=opened, mode="r:") as tar:
        for member in tar:
            tar.members = []  # type: ignore[attr-defined]  # tarfile keeps all of them otherwise
            match = None if member.isdir() else _NAME.fullmatch(member.name)
            if match is None:
                continue
            if match[1] != key:
                entries += _entries_of(key, sounds, texts, wrong)
                sounds, texts, wrong = {}, {}, None
            key = match[1]
            stem, _, kind = match[2].rpartition(".")
            kind = kind.lower()
            if (reason := _wrong(member)) is not None:
                wrong = wrong or reason
            elif f".{kind}" in SUFFIXES:
                sounds[stem] = (member.name, member.offset_data, member.size)
            elif kind in ("json", "txt") and member.size <= MOST_TEXT_BYTES:
                body = tar.extractfile(member)
                texts.setdefault(stem, {})[kind] = body.read() if body is not None else b""
        entries += _entries_of(key, sounds, texts, wrong)
        opened.seek(tar.offset)
        # `tarfile` itself accepts a missing end mark.
        if opened.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("unexpected end of data: the mark of its end is missing")
    return entries


def _wrong(member: tarfile.TarInfo) -> Diagnostic | None:
    """Why a member of a tar file fails its sample, such as a link; None if it is fine."""
    if not member.isreg() or member.issparse():
        return Diagnostic("member_kind", member=member.name)
    if posixpath.isabs(member.name) or posixpath.normpath(member.name).startswith("../"):
        return Diagnostic("member_outside", member=member.name)
    return None


def _entries_of(
    key: str,
    sounds: Mapping[str, tuple[str, int, int]],
    texts: Mapping[str, Mapping[str, bytes]],
    wrong: Diagnostic | None,
) -> list[_TarEntry]:
    """Build the samples of members that share a key: one, or one per sound.

    Args:
        key: path of the members without suffixes.
        sounds: (name, offset, bytes) by the part of the name between key and suffix.
        texts: JSON and text members by the same part.
        wrong: problem of a member, which fails the sample.
    """
    if wrong is not None:
        return [_TarEntry(key, problem=wrong)]
    if len(sounds) < 2:
        stem = next(iter(sounds), "")
        shared = {**texts.get("", {}), **texts.get(stem, {})}
        return [_entry(key, sounds.get(stem, ("", 0, 0)), shared)] if sounds or shared else []
    if "" in texts:
        names = ", ".join(name for name, _, _ in sounds.values())
        return [_TarEntry(key, problem=Diagnostic("one_text_for_sounds", sounds=len(sounds), names=names))]
    return [_entry(f"{key}.{stem}".rstrip("."), sound, texts.get(stem, {})) for stem, sound in sounds.items()]


def _entry(key: str, sound: tuple[str, int, int], parts: Mapping[str, bytes]) -> _TarEntry:
    """Build a sample from its sound and its JSON and text members.

    Args:
        sound: (name, offset, bytes).
        parts: the members' content by suffix.
    """
    name, begin, size = sound
    fields: dict[str, Any] = {}
    try:
        if "json" in parts:
            fields = parse_json(parts["json"].decode("utf-8-sig"))
        if not isinstance(fields, dict):
            return _TarEntry(key, problem=Diagnostic("member_json_type", type=type(fields).__name__))
        if "txt" in parts and not any(alias in fields for alias in ALIASES["text"]):
            fields["text"] = parts["txt"].decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return _TarEntry(key, problem=Diagnostic("member_not_utf8"))
    except DoubleKey as error:
        return _TarEntry(key, problem=Diagnostic("member_json", cause=error.args[0]))
    except (ValueError, RecursionError) as error:
        return _TarEntry(key, problem=Diagnostic("member_json", cause=Diagnostic("row_not_json", cause=error)))
    return _TarEntry(key, name, begin, size, fields)
