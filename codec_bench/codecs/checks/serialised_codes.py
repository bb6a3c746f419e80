"""Codes as bytes, and whether another process decodes them to the same audio.

An encoder that leaves something behind for its decoder (the audio itself, a length, a cache) gives unreal numbers.
Decoding in a process that has not encoded shows it.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import decode
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import WAVE_TOLERANCE
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Codes, CodeStream, Latents, Sent

CHECK = "decoded elsewhere"
_PLAIN = (bool, int, float, str, type(None))


class CannotSend(Exception):
    """Codes hold a value that is no number, text or array, so no bytes can be written."""


@dataclass(frozen=True, slots=True)
class SerialisedCodes:
    """Serialised codes, and the audio that the encoding process decoded from them.

    Another process decodes the same bytes and compares.

    Args:
        codes: the bytes of each item, from `to_bytes`.
        waves: float32 `(channels, samples)` of each item.
    """

    codes: tuple[bytes, ...]
    waves: tuple[np.ndarray, ...]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the codes and waveforms to an `.npz` file."""
        arrays = {f"wave {k}": wave for k, wave in enumerate(self.waves)}
        arrays |= {f"codes {k}": np.frombuffer(codes, np.uint8) for k, codes in enumerate(self.codes)}
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SerialisedCodes:
        """Read a file that `write` wrote."""
        with np.load(path, allow_pickle=False) as file:
            places = range(len(file.files) // 2)
            codes = tuple(file[f"codes {k}"].tobytes() for k in places)
            return cls(codes, tuple(file[f"wave {k}"] for k in places))


def pack(codes: Sequence[Sent], decoded: Sequence[Audio]) -> SerialisedCodes:
    """Serialise the codes of items, with their decoded audio.

    Raises:
        CannotSend: codes hold something that cannot be written as bytes.
    """
    return SerialisedCodes(tuple(map(to_bytes, codes)), tuple(audio.samples for audio in decoded))


def unserialised_finding(reason: Diagnostic) -> dict[str, Any]:
    """Build the finding `not applicable` of a codec whose codes were not serialised."""
    return finding(CHECK, "not applicable", reason)


def unpack(codec: Any, serialised: SerialisedCodes) -> dict[str, Any]:
    """Decode another process's codes in this one; compare with the output there.

    Raises:
        Exception: the codec raised it.
    """
    codes = [from_bytes(content) for content in serialised.codes]
    worst = 0.0
    for item, wave in zip(codes, serialised.waves):
        (out,) = decode(codec, [item], [Audio(wave, item.sample_rate_hz)])
        worst = max(worst, float(np.abs(out.samples - wave).max(initial=0.0)))
    if worst > WAVE_TOLERANCE:
        return finding(CHECK, "suspect", Diagnostic("decoded_otherwise", by=worst, allowed=WAVE_TOLERANCE), worst)
    return finding(CHECK, "ok", Diagnostic("decoded_elsewhere"), worst)


def to_bytes(codes: Sent) -> bytes:
    """Serialise codes or latents: numbers, texts and arrays only.

    Raises:
        CannotSend: `side` or a stream holds something else.
    """
    arrays: dict[str, np.ndarray] = {}
    streams = []
    for number, stream in enumerate(codes.streams):
        arrays[f"stream {number}"] = np.asarray(stream.values)
        streams.append((int(stream.cardinality), float(stream.frame_rate_hz), str(stream.name)))
    arrays["packets"] = np.frombuffer(b"".join(codes.packets), np.uint8)
    plain: dict[str, Any] = {}
    tuples = []
    for key, value in codes.side.items():
        if isinstance(value, bytes):
            arrays[f"bytes {key}"] = np.frombuffer(value, np.uint8)
        elif isinstance(value, tuple) and _is_plain(list(value)):
            plain[key] = list(value)
            tuples.append(key)
        elif _is_plain(value):
            plain[key] = value
        else:
            arrays[f"side {key}"] = _array(value, f"its codes hold side['{key}'], which")
    head = {
        "streams": streams, "packets": [len(packet) for packet in codes.packets], "side": plain, "tuples": tuples,
        "num_samples": int(codes.num_samples), "sample_rate_hz": int(codes.sample_rate_hz),
    }  # fmt: skip
    if isinstance(codes, Latents):
        arrays["latents"], head["latent_rate_hz"] = np.asarray(codes.values), float(codes.frame_rate_hz)
    else:
        head["side_bits"] = float(codes.side_bits)
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def from_bytes(content: bytes) -> Sent:
    """Deserialise the codes or latents of `to_bytes`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    head = json.loads(arrays.pop("head").tobytes())
    packets, at = [], 0
    joined = arrays.pop("packets").tobytes()
    for length in head["packets"]:
        packets.append(joined[at : at + length])
        at += length
    streams = [CodeStream(arrays[f"stream {n}"], *facts) for n, facts in enumerate(head["streams"])]
    side_info = {key: tuple(value) if key in head["tuples"] else value for key, value in head["side"].items()}
    for name, array in arrays.items():
        kind, _, key = name.partition(" ")
        if kind == "bytes":
            side_info[key] = array.tobytes()
        elif kind == "side":
            side_info[key] = array if array.ndim else array[()]
    length = head["num_samples"], head["sample_rate_hz"]
    if "latents" in arrays:
        return Latents(arrays["latents"], head["latent_rate_hz"], *length, side_info)
    return Codes(tuple(streams), *length, tuple(packets), head["side_bits"], side_info)


def _is_plain(value: Any) -> bool:
    """Whether a value is the same after writing and reading it as JSON."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return type(value) in _PLAIN or (isinstance(value, list) and all(map(_is_plain, value)))


def _array(value: Any, name: str) -> np.ndarray:
    """Return a value as an array of numbers; raise CannotSend for anything else."""
    array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else None
    if array is None or array.dtype.kind not in "biuf":
        kind = type(value).__name__ if array is None else f"array of {array.dtype}"
        raise CannotSend(Diagnostic("cannot_send", name=name, kind=kind))
    return array


__all__ = ["CHECK", "CannotSend", "SerialisedCodes", "from_bytes", "pack", "to_bytes", "unpack", "unserialised_finding"]
