"""Sound inside a tar file. A string like a path names it, and it is read without unpacking the file.

A locator is `FILE::BEGIN+SIZE::NAME`, such as `/data/a-0000.tar::1536+48044::clip1.flac` or `s3://bucket/a-0000.tar::1536+48044::clip1.flac`:
the member's bytes begin at BEGIN. It holds all that is needed to read the member, so that any process can, in any order.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from codec_bench.decoding.decode import Decoded, decode_bytes
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.errors import AudioError

_LOCATOR = re.compile(r"(?P<file>.+)::(?P<begin>\d+)\+(?P<size>\d+)::(?P<name>.+)", re.DOTALL)


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
