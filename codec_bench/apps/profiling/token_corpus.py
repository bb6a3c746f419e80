"""The codes of a corpus as sequences over time.

Streams with a frame rate are sequences; codes sent once a clip are separate. At most `MOST_CODES` codes are held, from
the first clips; `excluded` counts the items beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import Sent

MOST_CODES = 4_000_000
TIMELESS = Diagnostic("no_frame_rate")


@dataclass(slots=True, eq=False)
class TokenStream:
    """The codes of one stream: int32 `(codebooks, frames)` with clip ids."""

    name: str
    codebooks: int
    cardinality: int
    frame_rate_hz: float
    sequences: list[tuple[str, np.ndarray]] = field(default_factory=list)

    @property
    def tokens_per_s(self) -> float:
        """Codes per second of audio, over all codebooks."""
        return self.codebooks * self.frame_rate_hz

    @property
    def frames(self) -> int:
        """Frames of all sequences."""
        return sum(values.shape[1] for _, values in self.sequences)


class TokenCorpus:
    """Holds the codes of a corpus.

    Attributes:
        once: (codes, cardinality) of codes sent once a clip, by id. seconds: of each clip, by id.
        items, excluded: how many are held, and how many are not.
    """

    def __init__(self) -> None:
        self._streams: list[TokenStream] = []
        self.seconds: dict[str, float] = {}
        self.once: dict[str, list[tuple[np.ndarray, int]]] = {}
        self._stored = self.items = self.excluded = 0

    def add(self, name: str, codes: Sent) -> None:
        """Add the codes of one sample's audio, or of one of its channels."""
        streams = [stream for stream in codes.streams if stream.frame_rate_hz]
        if not self._streams:
            self._streams = [
                TokenStream(s.name, s.values.shape[0], s.cardinality, float(s.frame_rate_hz)) for s in streams
            ]
        if self._stored > MOST_CODES:
            self.excluded += 1
            return
        self.items += 1
        if name not in self.once:  # of the first channel
            self.once[name] = [(np.asarray(s.values), s.cardinality) for s in codes.streams if not s.frame_rate_hz]
        self.seconds[name] = codes.duration_s
        for buffer, stream in zip(self._streams, streams, strict=True):
            values = np.asarray(stream.values).astype(np.int32)
            buffer.sequences.append((name, values))
            self._stored += values.size

    @property
    def streams(self) -> list[TokenStream]:
        """The streams that have codes over time; raises NotApplicable without any."""
        if not any(stream.frames for stream in self._streams):
            raise NotApplicable(TIMELESS)
        return self._streams
