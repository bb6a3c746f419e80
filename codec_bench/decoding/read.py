"""Reads audio by its path: a file, a URL, a table row, or a tar member.

A member's locator is `FILE::BEGIN+SIZE::NAME`, such as `/data/a-0000.tar::1536+48044::clip1.flac` or
`s3://bucket/a-0000.tar::1536+48044::clip1.flac`, with BEGIN as byte offset. Any process can read it in any order.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from codec_bench.decoding.decode import Decoded, decode_bytes, read_file
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.decoding.span import find_span, read_span
from codec_bench.decoding.table import find_locator, read_located
from codec_bench.messages.errors import AudioError, UserError

_LOCATOR = re.compile(r"(?P<file>.+?)::(?P<begin>\d+)\+(?P<size>\d+)::(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TarMember:
    """One file in a tar file.

    Args:
        file: path or URL of the tar file. begin, size: its bytes.
    """

    file: str
    begin: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.begin}+{self.size}::{self.name}"

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.begin + self.size

    @property
    def words(self) -> str:
        """Its name in messages."""
        return f"{self.name} in {shown(self.file)}"


def find_member(path: str) -> TarMember | None:
    """Parse a locator, or return None. An existing file of that name is a path."""
    match = _LOCATOR.fullmatch(path)
    if match is None or (not is_url(path) and os.path.exists(path)):
        return None
    return TarMember(match["file"], int(match["begin"]), int(match["size"]), match["name"])


def file_of(path: str) -> str:
    """Return the file of a locator or span, else the path itself."""
    if (span := find_span(path)) is not None:
        return file_of(span.file)
    held = (find_locator(path) or find_member(path)) if "::" in path else None
    return path if held is None else held.file


def read_member(member: TarMember) -> Decoded:
    """Decode audio in a tar file: all channels, at its own rate."""
    return decode_bytes(member_bytes(member), member.words)


def member_bytes(member: TarMember) -> bytes:
    """Return the bytes of a member.

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
        raise AudioError("file_not_readable", path=member.file, cause=error.strerror or error) from error
    if len(data) != member.size:
        raise AudioError("member_cut", member=member.words, held=len(data), size=member.size)
    return data


def read_sound(path: str | os.PathLike[str]) -> Decoded:
    """Decode audio from a path, a URL or a locator: all channels, at its own rate.

    Args:
        path: the path of a file; a URL such as `s3://bucket/a.flac` (see `codec_bench.decoding.remote`); a locator such
            as `/data/test.parquet::audio::17` (see `codec_bench.decoding.table`) or
            `/data/a.tar::1536+48044::clip1.flac` (see `codec_bench.decoding.read`); a part of one of these, such as
            `/data/a.wav#t=1.5,3.25` (see `codec_bench.decoding.span`).

    Raises:
        AudioError: the audio is missing, empty, truncated, not audio, or not finite.
        UserError: this is no path, or the package that reads such URLs is not installed.
    """
    try:
        path = os.fsdecode(path)
    except TypeError as error:
        raise UserError("sound_name_type", type=type(path).__name__) from error
    if (span := find_span(path)) is not None:
        return read_span(span, read_sound)
    if "::" in path:
        if (locator := find_locator(path)) is not None:
            return read_located(locator)
        if (member := find_member(path)) is not None:
            return read_member(member)
    if is_url(path):
        return decode_bytes(read_remote(path), shown(path))
    return read_file(path)
