"""Finds concatenated files and cut streams, which decoders silently truncate.

A chained Ogg stream counts too: each of its links is a complete stream, with its own rate and channels.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from typing import Literal

import numpy as np

from codec_bench.decoding.declared_sizes import behind_tag

_OGG, _FLAC, _MATROSKA = b"OggS\x00\x02", b"fLaC", b"\x1aE\xdf\xa3"
_XING, _INFO = b"Xing\x00\x00\x00", b"Info\x00\x00\x00"
_HEADERS = {
    needle: (back, re.compile(header, re.DOTALL))
    for needle, back, header in (
        (b"RIFF", 0, rb"RIFF....WAVE"), (b"RF64", 0, rb"RF64....WAVE"), (b"riff\x2e\x91\xcf\x11", 0, rb"riff"),
        (_FLAC, 0, rb"fLaC[\x00\x80]\x00\x00\x22"), (b"FORM", 0, rb"FORM....AIF[FC]"),
        (b"caff\x00\x01\x00\x00", 0, rb"caff"),
        (b".snd\x00\x00\x00", 0, rb"\.snd\x00\x00\x00.{5}\x00\x00\x00"), (b"NIST_1A\n", 0, rb"NIST"),
        (b"ftyp", 4, rb"\x00\x00\x00.ftyp"), (b"#!AMR", 0, rb"#!AMR(?:-WB)?\n"),
        (_MATROSKA, 0, rb".{4}.{0,60}?(?:matroska|webm)"), (_OGG, 0, rb"OggS\x00\x02\x00{8}"),
        (_XING, 0, rb"Xing\x00\x00\x00[\x00-\x0f]"), (_INFO, 0, rb"Info\x00\x00\x00[\x00-\x0f]"),
    )
}  # fmt: skip
"""By kind: the bytes to search, their offset in the header, and the header."""
_BY_PAIR = {pair: [needle for needle in _HEADERS if needle[:2] == pair] for pair in {needle[:2] for needle in _HEADERS}}
_IS_PAIR = np.zeros(1 << 16, bool)
_IS_PAIR[[int.from_bytes(pair, "little") for pair in _BY_PAIR]] = True
"""The 16-bit beginnings of all searched bytes: a joint search is 8 times faster."""
_AT_ONCE = 1 << 22
_SHORT = b"#!AMR"
"""A header so short that other audio may hold it by chance."""
_SIZED: dict[bytes, Literal["little", "big"]] = {b"RIFF": "little", b"FORM": "big"}
"""Kinds with their remaining size after four bytes, and its byte order."""
_OGG_PAGE_BYTES = 27
"""A page's header before its segment lengths."""
_PAGE = b"OggS"
_LENGTH_OF_MP3 = re.compile(rb"(?:Xing|Info)\x00\x00\x00(?:[\x02\x06\x0a\x0e]|[\x03\x07\x0b\x0f].{4})(.{4})", re.DOTALL)
"""An MP3 header with the stream's bytes, after an optional number of frames."""
_FIRST_FRAME_BYTES, _MP3_FRAME_BYTES = 4096, 1441
_MP3 = re.compile(rb"ID3|\xff[\xe2-\xff]")


def second_file(content: bytes | mmap.mmap) -> int | None:
    """Return the offset of a second sound file's header, or None.

    Raw AAC and MP3 without an encoder's header are not found behind another file. Decoders read on over a join of raw
    AAC.
    """
    kind = next((needle for needle in _HEADERS if _is_header_at(content, needle, 0)), None)
    start = 1
    if kind in _SIZED and (end := 8 + int.from_bytes(content[4:8], _SIZED[kind])) <= len(content):
        start = end
    elif kind == _OGG:
        start = _behind_first_pages(content)
    elif kind is None and _MP3.match(content) is None:
        return None
    hidden = {_SHORT, *([_FLAC] if kind == _MATROSKA else [])} - {kind}  # Matroska may contain FLAC
    headers = _headers(content, start)
    if kind is None:  # data before the encoder's header belongs to the MP3 file
        next((offset for offset, needle in headers if needle in (_XING, _INFO)), None)
    return next((offset for offset, needle in headers if needle not in hidden), None)


def _headers(content: bytes | mmap.mmap, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and search bytes of every header from `start` on."""
    for first in range(start, len(content) - 1, _AT_ONCE):
        for at in _pairs(content, first, min(first + _AT_ONCE, len(content) - 1)):
            for needle in _BY_PAIR[content[at : at + 2]]:
                offset = at - _HEADERS[needle][0]
                if (
                    offset >= start
                    and content[at : at + len(needle)] == needle
                    and _is_header_at(content, needle, offset)
                ):
                    yield offset, needle


def _pairs(content: bytes | mmap.mmap, first: int, end: int) -> list[int]:
    """Return the offsets in a range where any searched bytes may begin."""
    offsets: list[int] = []
    for begin in (first, first + 1):
        pairs = np.frombuffer(content, "<u2", (end - begin + 1) // 2, begin)
        offsets += (np.flatnonzero(_IS_PAIR.take(pairs)) * 2 + begin).tolist()
    return sorted(offsets)


def missing_bytes(content: bytes | mmap.mmap) -> int:
    """Return how many bytes an Ogg or MP3 stream lacks at its end; 0 if unknown."""
    if content[:4] == _PAGE:
        sizes = content.rfind(_PAGE) + _OGG_PAGE_BYTES
        count = content[sizes - 1] if sizes <= len(content) else 0
        return max(0, sizes + count + sum(content[sizes : sizes + count]) - len(content))
    if _MP3.match(content) is None:
        return 0
    header = _LENGTH_OF_MP3.search(content, 0, min(len(content), _FIRST_FRAME_BYTES + behind_tag(content)))
    if header is None:
        return 0
    missing = header.start() + int.from_bytes(header[1], "big") - len(content)
    return missing if missing > _MP3_FRAME_BYTES else 0


def _behind_first_pages(content: bytes | mmap.mmap) -> int:
    """Return the end of an Ogg stream's first pages, where parallel streams begin."""
    offset = 0
    while _is_header_at(content, _OGG, offset):
        sizes = offset + _OGG_PAGE_BYTES
        count = content[sizes - 1] if sizes <= len(content) else 0
        offset = sizes + count + sum(content[sizes : sizes + count])
    return offset


def _is_header_at(content: bytes | mmap.mmap, needle: bytes, offset: int) -> bool:
    return _HEADERS[needle][1].match(content, offset) is not None
