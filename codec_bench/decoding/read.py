"""Reading a sound by its path: a file, a URL, a row of a table, or a member of a tar file.

A member's locator is `FILE::BEGIN+SIZE::NAME`, such as `/data/a-0000.tar::1536+48044::clip1.flac` or
`s3://bucket/a-0000.tar::1536+48044::clip1.flac`: its bytes begin at BEGIN. It holds all that is needed to read the
member, so that any process can, in any order, without unpacking the file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from codec_bench.decoding.decode import Decoded, decode_bytes, read_file
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.decoding.span import find_span, read_span
from codec_bench.decoding.table import find_locator, read_located
from codec_bench.errors import AudioError, UserError

_LOCATOR = re.compile(r"(?P<file>.+?)::(?P<begin>\d+)\+(?P<size>\d+)::(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Member:
    """One file in a tar file.

    Args:
        file: path or URL of the tar file. begin, size: where its bytes are. name: its name, for messages.
    """

    file: str
    begin: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.begin}+{self.size}::{self.name}"

    @property
    def end(self) -> int:
        """The place after its last byte."""
        return self.begin + self.size

    @property
    def words(self) -> str:
        """What it is called in messages."""
        return f"{self.name} in {shown(self.file)}"


def find_member(path: str) -> Member | None:
    """Reads a string as a locator; None if it is none. If a file of exactly that name exists, it is a path."""
    match = _LOCATOR.fullmatch(path)
    if match is None or (not is_url(path) and os.path.exists(path)):
        return None
    return Member(match["file"], int(match["begin"]), int(match["size"]), match["name"])


def file_of(path: str) -> str:
    """The file that holds a sound: of a locator or a part of a sound its file, else the path itself."""
    if (span := find_span(path)) is not None:
        return file_of(span.file)
    held = (find_locator(path) or find_member(path)) if "::" in path else None
    return path if held is None else held.file


def read_member(member: Member) -> Decoded:
    """Decodes a sound of a tar file: all channels, at its own rate.

    Raises:
        AudioError: the file is missing, is shorter than it was, or the sound cannot be decoded.
    """
    return decode_bytes(member_bytes(member), member.words)


def member_bytes(member: Member) -> bytes:
    """The bytes of a member.

    Raises:
        AudioError: the file is missing, or is shorter than it was.
    """
    if is_url(member.file):
        return read_remote(member.file, member.begin, member.end)
    try:
        with open(member.file, "rb") as file:
            file.seek(member.begin)
            data = file.read(member.size)
    except OSError as error:
        raise AudioError(f"'{member.file}' cannot be read: {error.strerror or error}") from error
    if len(data) != member.size:
        raise AudioError(f"'{member.words}' is cut: the file ends after {len(data)} of its {member.size} bytes")
    return data


def read_sound(path: str | os.PathLike[str]) -> Decoded:
    """Decodes a file, the sound behind a URL, in a row of a table or in a tar file: all channels, at its own rate.

    Args:
        path: the path of a file; a URL such as `s3://bucket/a.flac` (see `codec_bench.decoding.remote`); a locator such
            as `/data/test.parquet::audio::17` (see `codec_bench.decoding.table`) or
            `/data/a.tar::1536+48044::clip1.flac` (see `codec_bench.decoding.read`); a part of one of these, such as
            `/data/a.wav#t=1.5,3.25` (see `codec_bench.decoding.span`).

    Raises:
        AudioError: the sound is missing, empty, truncated or not audio, or it holds no samples or samples that are not
            finite.
        UserError: this is no path, or the package that reads such URLs is not installed.
    """
    try:
        path = os.fsdecode(path)
    except TypeError as error:
        raise UserError(f"a sound is read from a path, a URL or a locator; got a {type(path).__name__}") from error
    if (span := find_span(path)) is not None:
        return read_span(span, read_sound)
    if "::" in path:
        locator = find_locator(path)
        if locator is not None:
            return read_located(locator)
        member = find_member(path)
        if member is not None:
            return read_member(member)
    if is_url(path):
        return decode_bytes(read_remote(path), shown(path))
    return read_file(path)
