"""Reading a sound by its path: a file, a URL, a row of a table, or a member of a tar file."""

from __future__ import annotations

import os

from codec_bench.decoding.decode import Decoded, decode_bytes, read_file
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.decoding.table import find_locator, read_located
from codec_bench.decoding.tar import find_member, read_member


def read_sound(path: str | os.PathLike[str]) -> Decoded:
    """Decodes a file, the sound behind a URL, in a row of a table or in a tar file: all channels, at its own rate.

    Args:
        path: the path of a file; a URL such as `s3://bucket/a.flac` (see `codec_bench.decoding.remote`); a locator such as
            `/data/test.parquet::audio::17` (see `codec_bench.decoding.table`) or `/data/a.tar::1536+48044::clip1.flac` (see
            `codec_bench.decoding.tar`).

    Raises:
        AudioError: the sound is missing, empty, truncated or not audio, or it holds no samples or samples that are not
            finite.
        UserError: the package that reads such URLs is not installed.
    """
    path = os.fspath(path)
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
