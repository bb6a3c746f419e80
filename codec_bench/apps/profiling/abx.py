"""ABX error rates of the codes of a codec, where the user gives alignments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from codec_bench.apps.profiling.abx_error import SIZE, SPEAKERS, AbxError, Item, Speaker, abx_error
from codec_bench.codecs.adapt import CodecFault
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.errors import UserError
from codec_bench.types import Codes

NO_SPEECH = ("sil", "sp", "spn", "nsn", "noise", "silence", "<sil>", "<eps>")
"""Names of what is no phone, in small letters; nothing is compared with it, and it is no context."""
ADJACENT_S = 0.001
Vectors = Callable[[np.ndarray], np.ndarray]
WAYS: tuple[Speaker, ...] = ("within", "across")


class AbxItems:
    """Collects the phones of a corpus with their codes, item by item.

    A phone is heard with both neighbours, as in ZeroSpeech: from the start of the one before to the end of the one after, with all
    frames whose middle lies there. It must follow and be followed by a phone, without a gap.

    Args:
        alignments, speakers: by the ids of the samples.
    """

    def __init__(self, alignments: Mapping[str, Alignment], speakers: Mapping[str, str]) -> None:
        self._alignments, self._speakers = alignments, speakers
        self._streams: dict[str, list[Item]] = {}
        self._unknown = 0

    def add(self, name: str, codes: Codes) -> None:
        """Takes the phones of one sample.

        Args:
            name: the sample's id. codes: of its sound, or of one of its channels.
        """
        alignment, speaker = self._alignments.get(name), self._speakers.get(name)
        self._unknown += speaker is None
        for stream in codes.streams:
            if not stream.frame_rate_hz:
                continue
            items = self._streams.setdefault(stream.name, [])
            if alignment is not None and speaker is not None:
                values = np.ascontiguousarray(np.asarray(stream.values).T)
                items += _items(alignment, values, float(stream.frame_rate_hz), speaker)

    def result(self, seed: int, alive: Callable[[], None], vectors: Vectors | None = None) -> dict[str, Any]:
        """The error rates, as JSON values.

        Args:
            seed: decides which items are compared. alive: called now and then.
            vectors: the codec's own method, if it has one.

        Raises:
            NotApplicable: the codec has no codes with a frame rate, or no phone can be compared.
        """
        if not self._streams:
            raise NotApplicable("it has no codes with a frame rate")
        if not any(self._streams.values()):
            more = f"; {self._unknown} clips have no speaker" if self._unknown else ""
            raise NotApplicable(f"no clip has a speaker and an alignment of three phones in a row{more}")
        return {
            "size": SIZE,
            "speakers_of_x": SPEAKERS,
            "items_without_speaker": self._unknown,
            "streams": [
                {
                    "name": name,
                    "items": len(items),
                    "all_codebooks": _errors(items, seed, alive),
                    "first_codebook": _errors(
                        [replace(item, frames=item.frames[:, :1]) for item in items], seed, alive
                    ),
                    "vectors": self._of_vectors(items, seed, alive, vectors),
                }
                for name, items in self._streams.items()
            ],
        }

    def _of_vectors(
        self, items: list[Item], seed: int, alive: Callable[[], None], vectors: Vectors | None
    ) -> dict[str, Any]:
        """The errors of the vectors that codes stand for, or why there are none."""
        reason = "it gives no vectors for its codes" if vectors is None else None
        if len(self._streams) > 1:
            reason = "its codes are several streams, which have no vectors in common"
        if vectors is not None and reason is None:
            try:
                return _errors(items, seed, alive, partial(_looked_up, vectors))
            except (UserError, CodecFault) as error:
                reason = str(error)
        nothing = AbxError(None, 0, 0, 0)
        return {way: {**asdict(nothing), "reason": reason} for way in WAYS}


def _looked_up(vectors: Vectors, frames: np.ndarray) -> np.ndarray:
    """The vectors of codes `(frames, codebooks)`.

    Raises:
        CodecFault: the codec gives something else.
    """
    found = np.asarray(vectors(np.ascontiguousarray(frames.T)))
    if found.ndim != 2 or len(found) != len(frames) or found.dtype.kind != "f" or not np.isfinite(found).all():
        raise CodecFault(
            f"its 'vectors' gave {found.dtype} of shape {found.shape} for {len(frames)} frames; expected finite floats "
            "(frames, dimensions)"
        )
    return found


def _items(alignment: Alignment, values: np.ndarray, frame_rate_hz: float, speaker: str) -> Iterator[Item]:
    """The phones of one sample that have both neighbours and a frame."""
    speech = [phone.lower() not in NO_SPEECH for phone in alignment.phones]
    joined = np.abs(alignment.starts_s[1:] - alignment.ends_s[:-1]) <= ADJACENT_S
    for place in range(1, len(speech) - 1):
        if not (all(speech[place - 1 : place + 2]) and joined[place - 1] and joined[place]):
            continue
        onset, offset = alignment.starts_s[place - 1], alignment.ends_s[place + 1]
        first = math.ceil(onset * frame_rate_hz - 0.5 - 1e-9)
        frames = values[max(0, first) : math.floor(offset * frame_rate_hz - 0.5 + 1e-9) + 1]
        if len(frames):
            before, phone, after = alignment.phones[place - 1 : place + 2]
            yield Item(phone, before, after, speaker, frames)


def _errors(items: list[Item], seed: int, alive: Callable[[], None], vectors: Vectors | None = None) -> dict[str, Any]:
    """The errors within and across speakers, each with the reason where there is none."""
    return {way: _said(abx_error(items, speaker=way, seed=seed, vectors=vectors, alive=alive), way) for way in WAYS}


def _said(found: AbxError, way: Speaker) -> dict[str, Any]:
    reasons = {
        "within": "no speaker says two phones between the same neighbours, one of them twice",
        "across": "no two speakers say a phone between the same neighbours, between which one of them says another phone",
    }
    return {**asdict(found), "reason": reasons[way] if found.error is None else None}
