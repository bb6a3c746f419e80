"""Declared facts against sent codes: bitrate, tokens, frame rate, side bits.

`info` declares a bitrate; each stream its frame rate and cardinality, which give a nominal bitrate. Sent are codes,
packets and side information. Packets of whole bytes may exceed the declaration by 10 %, above all on short clips;
others may differ by 2 %. A scale and the padding of the last block are allowed for every clip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.checks import finding
from codec_bench.messages import Diagnostic
from codec_bench.types import CodeStream, Latents, Sent

_RATE_SHARE = 0.02
_PACKETS_SHARE = 0.1
_PACKETS = 2  # that a clip may have more than its length says
_CLIP_BITS = 256  # of side information that each clip may have, however short it is
_PADDING_S = 1.0  # some codecs pad every clip to blocks of many frames
_UNCOUNTED_BPS = 100.0
_FRAMES = 50  # fewer do not show that a codebook is constant
_DEAD_SHARE, _DEAD_FRAMES = 0.99, 1000  # one code in this share of as many frames: a dead codebook


class LabelChecks:
    """Compares the codes of some clips with the codec's declared rates and bitrate."""

    def __init__(self) -> None:
        self._seconds = self._sent = self._nominal = self._of_clips = self._tokens = 0.0
        self._frames = self._frames_declared = self._frames_allowed = 0.0
        self._rates: set[float] = set()
        self._packets = False
        self._no_bits: Diagnostic | None = None
        self._side_info: list[tuple[float, float]] = []
        self._codes: dict[tuple[int, int], Counter[int]] = {}

    def add(self, codes: Sent) -> None:
        """Add the codes of one clip to the totals."""
        seconds = codes.duration_s
        self._seconds += seconds
        if isinstance(codes, Latents):
            self._count_frames(codes.frame_rate_hz, np.asarray(codes.values).shape[1], seconds)
            self._no_bits = codes.no_bits
            return
        self._sent += codes.bits
        self._nominal += codes.nominal_bitrate_bps * seconds
        self._packets = self._packets or bool(codes.packets)
        self._of_clips += _PACKETS * max((8.0 * len(packet) for packet in codes.packets), default=0.0)
        self._of_clips += min(max(codes.side_bits, 0.0), _CLIP_BITS)
        for number, stream in enumerate(codes.streams):
            if stream.frame_rate_hz:
                self._span(number, stream)
                self._tokens += len(stream.values) * stream.frame_rate_hz * seconds
                self._count_frames(stream.frame_rate_hz, np.asarray(stream.values).shape[1], seconds)
        self._side_info.append((seconds, side_bits(codes.side) - max(0.0, codes.side_bits)))

    def _span(self, number: int, stream: CodeStream) -> None:
        """Count how often each codebook of a stream used each code."""
        for book, row in enumerate(np.asarray(stream.values)):
            if row.size and stream.cardinality > 1:
                codes, counts = np.unique(row, return_counts=True)
                self._codes.setdefault((number, book), Counter()).update(dict(zip(codes.tolist(), counts.tolist())))

    def _constant(self) -> list[dict[str, Any]]:
        """Find codebooks that give one code in nearly all frames; at most one finding."""
        constant = []
        for position, counts in self._codes.items():
            ((code, most),), frames = counts.most_common(1), counts.total()
            if most == frames >= _FRAMES or (most >= _DEAD_SHARE * frames and frames >= _DEAD_FRAMES):
                constant.append((-most / frames, *position, code))
        if not constant:
            return []
        share, stream, book, code = min(constant)
        diagnostic = Diagnostic(
            "constant_codebooks", constant=len(constant), codebooks=len(self._codes), codebook=book + 1,
            stream=stream + 1 if any(number for number, _ in self._codes) else None, value=code,
            percent=-100 * share,
        )  # fmt: skip
        return [finding("constant codebook", "suspect", diagnostic, float(len(constant)))]

    def _count_frames(self, rate_hz: float, frames: int, seconds: float) -> None:
        """Add the frames of one stream, and how many its rate and duration predict."""
        self._rates.add(rate_hz)
        self._frames += frames
        self._frames_declared += rate_hz * seconds
        self._frames_allowed += rate_hz * (_PADDING_S + _RATE_SHARE * seconds) + 2

    def findings(self, info: CodecInfo) -> list[dict[str, Any]]:
        """Compare the totals over all clips with the facts that the codec declares."""
        if not self._seconds:
            return []
        if self._no_bits is not None:
            return [finding("bitrate label", "not applicable", self._no_bits), *self._frame_rate(info)]
        rates = [self._bitrate(info), *self._token_rate(info), *self._frame_rate(info)]
        return [*rates, *self._uncounted(), *self._constant()]

    def _bitrate(self, info: CodecInfo) -> dict[str, Any]:
        """Compare the bits per second of the codes with the declared bitrate."""
        declared = info.nominal_bitrate_bps
        nominal, sent = self._nominal / self._seconds, self._sent / self._seconds
        if declared is None:
            diagnostic = Diagnostic("no_bitrate_declared", coded_bps=nominal, sent_bps=sent)
            return finding("bitrate label", "not applicable", diagnostic)
        share = nominal / declared - 1
        allowed = (_PACKETS_SHARE if self._packets else _RATE_SHARE) + self._of_clips / (declared * self._seconds)
        diagnostic = Diagnostic("bitrate", declared_bps=declared, coded_bps=nominal, share=share)
        return finding("bitrate label", "suspect" if abs(share) > allowed else "ok", diagnostic, share)

    def _token_rate(self, info: CodecInfo) -> list[dict[str, Any]]:
        """Compare the tokens per second of the codes with the declared rate."""
        declared, measured = info.tokens_per_s, self._tokens / self._seconds
        if declared is None or abs(measured - declared) <= _RATE_SHARE * declared:
            return []
        diagnostic = Diagnostic("tokens", declared=declared, measured=measured)
        return [finding("token label", "suspect", diagnostic, measured / declared - 1 if declared else None)]

    def _frame_rate(self, info: CodecInfo) -> list[dict[str, Any]]:
        """Compare the streams' frame rates and frame counts with the declared rate."""
        out = []
        declared = info.frame_rate_hz
        if self._rates and declared and not any(abs(rate - declared) <= 1e-3 * declared for rate in self._rates):
            diagnostic = Diagnostic("frame_rates", declared=declared, rates=sorted(self._rates))
            out.append(finding("frame rate", "suspect", diagnostic))
        if abs(self._frames - self._frames_declared) > self._frames_allowed:
            diagnostic = Diagnostic("frames", declared=self._frames_declared, frames=self._frames)
            out.append(finding("frame rate", "suspect", diagnostic, self._frames / max(1.0, self._frames_declared)))
        return out

    def _uncounted(self) -> list[dict[str, Any]]:
        """Find side information that grows with duration but is not in the counted bits."""
        seconds, bits = np.array(self._side_info).T
        spread = seconds - seconds.mean()
        if not (spread @ spread) > 0:
            return []
        growth = float(spread @ bits / (spread @ spread))
        allowed = max(_UNCOUNTED_BPS, _RATE_SHARE * self._sent / self._seconds)
        if growth <= allowed:
            return []
        return [finding("side information", "suspect", Diagnostic("side_uncounted", bps=growth), growth)]


def side_bits(side_info: Mapping[str, Any]) -> float:
    """Count the bits of the values of `Codes.side` in their present form."""
    return 8.0 * sum(map(_bytes, side_info.values()))


def _bytes(value: Any) -> int:
    """Count the bytes of side information, also inside lists and mappings.

    Text has a byte per character, a number 4 and an array its own size; keys of mappings do not count.
    """
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
    if isinstance(value, Sequence):
        return sum(map(_bytes, value))
    if isinstance(value, int | float | None):
        return 4
    return int(getattr(value, "nbytes", 0))
