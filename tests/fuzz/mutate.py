"""A mutator of bytes: what a disk, a network, an editor or an attacker may make of a file."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

TOKENS = (
    b"NaN", b"1e400", b"-1", b"0", b"null", b"true", b"[" * 300, b"[" * 20_000, b'{"a":' * 20_000, b'"', b"'", b"\x00",
    b"\xff\xfe", b"\xed\xa0\x80",
    "\u202e".encode(), b"\x1b[2J", b"9" * 5000, b"!!bool x", b"!!int ''", b"&a [*a]", b"*a", b"<<: 5", b"\r", b"\n",
    b"\t", b"\\u0000",
    b"\\ud800", b"../../x", b"::0", b"{{", b"{%", b"=1+1", b"2026-13-01", b"a" * 20_000, b"[]", b"{}", b"<think>",
    b"[[5]]", b",",
)  # fmt: skip
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """A copy of the bytes with one to six changes. `others` are further files of the same kind, to splice in."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(_CHANGES)(changed, rng, others)
    return bytes(changed)


def _flip(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 4, 30))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(min(len(data), rng.choice((64, 512, len(data)))))] = rng.choice(
            (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
        )


def _number(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    size = rng.choice((2, 4, 8))
    if len(data) >= size:
        position = rng.randrange(min(len(data) - size + 1, rng.choice((64, 512, len(data)))))
        value = rng.choice(NUMBERS) % (1 << 8 * size)
        data[position : position + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _cut(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    position = rng.randrange(len(data) + 1)
    end = len(data) if rng.random() < 0.6 else min(len(data), position + rng.randrange(1, 200))
    del data[position:end]


def _zero(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    position = rng.randrange(len(data) + 1)
    end = min(len(data), position + rng.choice((1, 16, 512, 4096)))
    data[position:end] = bytes(end - position)


def _insert(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    position = rng.randrange(len(data) + 1)
    data[position:position] = rng.choice(TOKENS) if rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 64))


def _replace(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    position = rng.randrange(len(data) + 1)
    token = rng.choice(TOKENS)
    data[position : position + rng.choice((0, 1, len(token)))] = token


def _repeat(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    position = rng.randrange(len(data) + 1)
    block = bytes(data[position : position + rng.choice((1, 8, 64, 1024))])
    data[position:position] = block * rng.choice((1, 2, 50))


def _splice(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    position, start = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    data[position:] = other[start:]


_CHANGES: Sequence[Callable[[bytearray, random.Random, Sequence[bytes]], None]] = (
    _flip, _flip, _set, _number, _cut, _zero, _insert, _replace, _repeat, _splice,
)  # fmt: skip
