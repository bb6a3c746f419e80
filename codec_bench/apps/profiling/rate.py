"""The bitrates of a codec over a corpus, and how much of its codebooks it uses.

    declared       from the codec's `info`. nominal: from the number of codes and of entries of each codebook.
    measured       all bits sent (codes, packets, side information) per second; incomplete last frames add to it.
    entropy-coded  codes at the ideal rate of each codebook (Miller and Madow), plus packets and side bits.
    joint          the same with each codebook conditioned on the one before it; not an upper bound (`codebook_use.py`).
A continuous codec has no bitrate: `latents` is the numbers a frame, and `no_bits` the reason.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from codec_bench.apps.profiling.codebook_use import CodebookCounts, CodebookSummary, summarise
from codec_bench.codecs.base import CodecInfo
from codec_bench.messages import Diagnostic
from codec_bench.types import Codes, Latents, Sent, not_discrete

HISTOGRAM_BINS = 1024
_BUFFERED_CODES = 4_000_000


class RateCounter:
    """Counts the codes and packets of a corpus, item by item."""

    def __init__(self, info: CodecInfo) -> None:
        self._info = info
        self._streams: list[_RateStream] | None = None
        self._seconds = self._bits = self._nominal = self._other_bits = 0.0
        self._packet_bytes: list[int] = []
        self._items = self._latent_frames = 0

    def add(self, codes: Sent) -> None:
        """Count one item; all items have the same streams."""
        if isinstance(codes, Latents):
            self._latent_frames += np.asarray(codes.values).shape[1]
            self._items += 1
            self._seconds += codes.duration_s
            return
        self._count(codes)

    def _count(self, codes: Codes) -> None:
        if self._streams is None:
            self._streams = [
                _RateStream(s.values.shape[0], s.cardinality, float(s.frame_rate_hz), s.name) for s in codes.streams
            ]
        for stream, of in zip(self._streams, codes.streams):
            stream.add(np.asarray(of.values))
        self._items += 1
        self._seconds += codes.duration_s
        self._bits += codes.bits
        self._nominal += codes.nominal_bitrate_bps * codes.duration_s
        self._other_bits += 8 * sum(map(len, codes.packets)) + codes.side_bits
        self._packet_bytes += map(len, codes.packets)

    def result(self) -> dict[str, Any]:
        """Return the bitrates and the use of codebooks as JSON values."""
        seconds, info = self._seconds, self._info
        if info.latents is not None:
            return self._of_latents(info.latents, info.frame_rate_hz or 0.0)
        streams = [stream.result(seconds) for stream in self._streams or []]
        other_bps = self._other_bits / seconds
        out = {
            "declared_bps": info.nominal_bitrate_bps,
            "no_bits": None,
            "latents": None,
            "nominal_bps": self._nominal / seconds,
            "measured_bps": self._bits / seconds,
            "packets_and_side_bps": other_bps,
            "seconds": seconds,
            "items": self._items,
            "frame_rate_hz": max((s["frame_rate_hz"] for s in streams), default=0.0) or info.frame_rate_hz,
            "tokens": sum(s["tokens"] for s in streams),
            "tokens_per_s": sum(s["codebooks"] * s["frame_rate_hz"] for s in streams),
            "tokens_per_item": sum(s["codebooks"] for s in streams if not s["frame_rate_hz"]),
            "bits_per_token": _bits_per_token(streams),
            "streams": streams,
            "packets": self._packets(),
        }
        reason = Diagnostic("packets")
        for key in ("entropy_coded_bps", "joint_bps"):
            parts = [s[key] for s in streams]
            known = bool(streams) and all(p is not None for p in parts)
            out[key] = sum(parts) + other_bps if known else None
        out["entropy_coded_reason"] = None if streams else reason
        out["joint_reason"] = next(
            (s["joint_reason"] for s in streams if s["joint_reason"]), None if streams else reason
        )
        return out

    def _of_latents(self, dimensions: int, rate_hz: float) -> dict[str, Any]:
        """Return the same keys for a continuous codec, with the reason why it has no bits."""
        reason = not_discrete(dimensions, rate_hz)
        bits = dict.fromkeys(
            (
                "declared_bps",
                "nominal_bps",
                "measured_bps",
                "packets_and_side_bps",
                "entropy_coded_bps",
                "joint_bps",
                "packets",
            )
        )
        return {
            **bits, "no_bits": reason, "entropy_coded_reason": reason, "joint_reason": reason, "latents": dimensions,
            "latent_frames": self._latent_frames, "frame_rate_hz": rate_hz, "seconds": self._seconds,
            "items": self._items,
            "tokens": 0, "tokens_per_s": 0, "tokens_per_item": 0, "bits_per_token": None, "streams": [],
        }  # fmt: skip

    def _packets(self) -> dict[str, Any] | None:
        if not self._packet_bytes:
            return None
        sizes = np.asarray(self._packet_bytes)
        return {
            "packets": len(sizes),
            "packets_per_s": len(sizes) / self._seconds,
            "bytes_lowest": int(sizes.min()),
            "bytes_median": float(np.median(sizes)),
            "bytes_highest": int(sizes.max()),
        }


class _RateStream:
    def __init__(self, codebooks: int, cardinality: int, frame_rate_hz: float, name: str) -> None:
        self.facts = (codebooks, cardinality, frame_rate_hz, name)
        self._counts = CodebookCounts.zero()
        self._waiting: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        self._waiting.append(values)
        if sum(v.size for v in self._waiting) > _BUFFERED_CODES:
            self._count()

    def _count(self) -> None:
        # Pairs are counted within frames, so items may be joined in time.
        if self._waiting and self.facts[0]:
            values = np.ascontiguousarray(np.concatenate(self._waiting, axis=1)).astype(np.int64)
            self._counts = self._counts + CodebookCounts.of(values, self.facts[1])
        self._waiting = []

    def result(self, seconds: float) -> dict[str, Any]:
        self._count()
        codebooks, cardinality, frame_rate_hz, name = self.facts
        use: CodebookSummary = summarise(self._counts)
        # Codes sent once per utterance have no frame rate: divide by seconds.
        per_s = frame_rate_hz or self._counts.frames / seconds
        books = []
        for book, row in zip(use.codebooks, self._counts.counts):
            books.append({**asdict(book), "histogram": _binned(row)})
        return {
            "name": name,
            "codebooks": codebooks,
            "cardinality": cardinality,
            "frame_rate_hz": frame_rate_hz,
            "frames": self._counts.frames,
            "tokens": self._counts.frames * codebooks,
            "nominal_bps": use.nominal_bps(per_s),
            "entropy_coded_bps": use.entropy_coded_bps(per_s),
            "joint_bps": use.joint_bps(per_s),
            "joint_reason": use.joint.reason,
            "joint_coverage": use.joint.coverage,
            "utilisation": _mean([b["utilisation"] for b in books]),
            "perplexity": _mean([b["perplexity"] for b in books]),
            "dead": sum(b["dead"] for b in books),
            "entries": codebooks * cardinality,
            "per_codebook": books,
        }


def _bits_per_token(streams: list[dict[str, Any]]) -> float | None:
    """Return the mean of log2 K over all counted codes; None without any."""
    tokens = sum(s["tokens"] for s in streams)
    return sum(s["tokens"] * math.log2(s["cardinality"]) for s in streams) / tokens if tokens else None


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known else None


def _binned(row: np.ndarray) -> list[int]:
    """Count by entry, or by neighbours together above `HISTOGRAM_BINS` entries."""
    if len(row) <= HISTOGRAM_BINS:
        return row.tolist()
    edges = np.linspace(0, len(row), HISTOGRAM_BINS + 1).astype(int)[:-1]
    return np.add.reduceat(row, edges).tolist()
