"""Sound files that were joined into one. Decoders end with the first of them and say nothing of the rest.

A chained Ogg stream is such a file too: each of its links is a whole stream, with a rate and channels of its own.
"""

from __future__ import annotations

import mmap
import re

_HEADERS = tuple(
    re.compile(header, re.DOTALL)
    for header in (
        rb"RIFF....WAVE", rb"RF64....WAVE", rb"riff\x2e\x91\xcf\x11", rb"fLaC[\x00\x80]\x00\x00\x22", rb"FORM....AIF[FC]",
        rb"\.snd\x00\x00..\x00\x00", rb"caff\x00\x01\x00\x00", rb"NIST_1A\n", rb"\x00\x00\x00.ftyp", rb"#!AMR(?:-WB)?\n",
        rb"\x1aE\xdf\xa3.{0,60}?(?:matroska|webm)",
    )
)  # fmt: skip
_OGG_BEGINS = re.compile(rb"OggS\x00[\x02\x06]", re.DOTALL)
_OGG_PAGE_BYTES = 27
"""Of a page's header, before the lengths of its segments."""
_MP3 = re.compile(rb"ID3|\xff[\xe2-\xff]")
_MP3_BEGINS = re.compile(rb"(?:Xing|Info)\x00\x00\x00[\x00-\x0f]")


def second_file(content: bytes | mmap.mmap) -> int | None:
    """Where the header of a second sound file stands in the bytes of one; None if there is none.

    Only a further header of the same kind counts. Raw AAC has no header, and decoders read on over a join.
    """
    place = 0
    while (
        begins := _OGG_BEGINS.match(content, place)
    ) is not None:  # streams beside each other begin in the first pages
        sizes = begins.start() + _OGG_PAGE_BYTES
        count = content[sizes - 1] if sizes <= len(content) else 0
        place = sizes + count + sum(content[sizes : sizes + count])
    if place:
        return _place(_OGG_BEGINS.search(content, place))
    for header in _HEADERS:
        if header.match(content) is not None:
            return _place(header.search(content, 1))
    if _MP3.match(content) is not None and (first := _MP3_BEGINS.search(content)) is not None:
        return _place(_MP3_BEGINS.search(content, first.end()))
    return None


def _place(found: re.Match[bytes] | None) -> int | None:
    return None if found is None else found.start()
