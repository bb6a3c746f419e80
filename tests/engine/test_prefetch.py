"""Sound behind URLs that is fetched ahead: together where it lies together, bounded, and with a reason where it cannot
be.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codec_bench.decoding.read import TarMember
from codec_bench.decoding.remote import RemoteError
from codec_bench.engine import prefetch
from codec_bench.engine.prefetch import SamplePrefetch
from codec_bench.types import Sample


def entries(*paths):
    return [(number, Sample(f"u{number}", path), []) for number, path in enumerate(paths)]


def drain(held):
    """Every entry, with its file's content or the reason, in the order in which they come."""
    by_name = {}
    end = time.monotonic() + 30
    while not held.is_exhausted:
        entry = held.next()
        if entry is None:
            assert time.monotonic() < end
            time.sleep(0.001)
            continue
        number, sample, _ = entry
        one = held.copy_of(number, sample.audio)
        if one.path is None or one.path == sample.audio:
            by_name[sample.id] = one.path or one.reason
        else:
            by_name[sample.id] = Path(one.path).read_bytes()
        held.drop(number)
    held.close()
    return by_name


@pytest.fixture
def fetches(monkeypatch):
    calls = []

    def read(url, begin=0, end=None):
        calls.append((url, begin, end))
        if "bad" in url:
            raise RemoteError(f"'{url}' is not there")
        return bytes(range(256)) * 64 if end is None else (bytes(range(256)) * 64)[begin:end]

    monkeypatch.setattr(prefetch, "read_remote", read)
    return calls


def test_members_of_one_tar_file_are_fetched_together(fetches):
    places = [(512, 100), (1536, 50), (2048, 10)]
    members = [str(TarMember("s3://b/a.tar", begin, size, f"{n}.flac")) for n, (begin, size) in enumerate(places)]
    far = str(TarMember("s3://b/a.tar", 12_000_000, 5, "far.flac"))
    result = drain(SamplePrefetch(iter(entries(*members, far, "s3://b/other.flac"))))
    complete = bytes(range(256)) * 64
    assert [result[f"u{n}"] for n in range(3)] == [complete[begin : begin + size] for begin, size in places]
    assert sorted(fetches, key=lambda call: call[:2]) == [
        ("s3://b/a.tar", 512, 2058),
        ("s3://b/a.tar", 12_000_000, 12_000_005),
        ("s3://b/other.flac", 0, None),
    ]


def test_what_is_here_passes_and_what_cannot_be_fetched_is_a_reason(fetches):
    result = drain(SamplePrefetch(iter(entries("/here/a.flac", "s3://b/bad.flac", "s3://b/good.flac", "/here/b.flac"))))
    assert result["u0"] == "/here/a.flac" and result["u3"] == "/here/b.flac"
    assert result["u1"] == "'s3://b/bad.flac' is not there" and len(result["u2"]) == 256 * 64


def test_what_is_held_is_bounded_and_removed(fetches, monkeypatch):
    monkeypatch.setattr(prefetch, "SAMPLES", 5)
    held = SamplePrefetch(iter(entries(*(f"s3://b/{n}.flac" for n in range(50)))))
    held.next()
    end = time.monotonic() + 30
    while held.is_downloading and time.monotonic() < end:
        held._collect()
        time.sleep(0.001)
    assert len(fetches) == 5 and len(os.listdir(held._folder)) == 5
    assert len(drain(held)) == 50 and not os.path.exists(held._folder)
    monkeypatch.setattr(prefetch, "HELD_BYTES", 1)
    assert len(drain(SamplePrefetch(iter(entries(*(f"s3://b/{n}.flac" for n in range(20))))))) == 20
