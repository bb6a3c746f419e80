"""ABX error rates of the codes of a codec, over aligned phones.

A triple has two items of one phone, A and X, and one of another phone, B, in the same context. It is an error if X is
farther from A than from B, and half of one at equal distance. Chance is 50 %. All three are by one speaker (`within`),
or X is by another (`across`). The distance is the mean angle between frames over pi along the cheapest DTW path. Cells
(phones, context, speakers) are averaged over contexts and speakers of X, then speakers, then pairs of phones. Groups
are cut to `SIZE` items and `SPEAKERS` speakers of X by a seed.
Papers: T. Schatz et al., Interspeech 2013; M. Poli et al., "fastabx", arXiv 2505.02692, whose ZeroSpeech 2021 settings
these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Literal

import numpy as np

from codec_bench.codecs.adapt import CodecFault, fault_of
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.types import Sent

SIZE = 10
SPEAKERS = 5

Speaker = Literal["within", "across"]


@dataclass(frozen=True, slots=True, eq=False)
class PhoneItem:
    """One phone in its context.

    Args:
        frames: codes, integers `(frames, codebooks)`, or vectors, floats `(frames, dimensions)`.
    """

    phone: str
    before: str
    after: str
    speaker: str
    frames: np.ndarray


@dataclass(frozen=True, slots=True)
class AbxError:
    """An ABX error rate, 0 to 1, and its counts; pairs count in each order."""

    error: float | None
    cells: int
    triples: int
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class _PhoneGroup:
    """The items of one phone, context and speaker, concatenated with their starts."""

    phone: str
    speaker: str
    frames: np.ndarray
    starts: np.ndarray

    @property
    def size(self) -> int:
        return len(self.starts) - 1


def abx_error(
    items: Iterable[PhoneItem],
    *,
    speaker: Speaker,
    seed: int,
    vectors: Callable[[np.ndarray], np.ndarray] | None = None,
    alive: Callable[[], None] = lambda: None,
) -> AbxError:
    """Compute the ABX error rate of items: a mean over pairs of different phones.

    Args:
        items: all codes with one number of codebooks, or all vectors of one width.
        seed: selects items and speakers where there are many.
        vectors: maps codes `(frames, codebooks)` of several items to the vectors `(frames, dimensions)` that are
            compared; None compares the items' own frames. Vectors are made one context at a time, to bound memory.
        alive: called for each context, as a sign of life.
        speaker: `within` for items of one speaker; `across` if X is by another speaker than A and B.
    """
    sums: dict[tuple[str, str, str], tuple[float, int]] = {}
    cells = triples = 0
    ordered = sorted(items, key=lambda item: (item.before, item.after, item.phone, item.speaker))
    for number, (_, context) in enumerate(groupby(ordered, key=lambda item: (item.before, item.after))):
        alive()
        rng = np.random.default_rng([seed, number])
        for one, other, talker, error, count in _cells(_groups(context, vectors, rng), speaker, rng):
            total, seen = sums.get((one, other, talker), (0.0, 0))
            sums[one, other, talker] = (total + error, seen + 1)
            cells, triples = cells + 1, triples + count
    pairs: dict[tuple[str, str], list[float]] = {}
    for (one, other, _), (total, seen) in sums.items():
        pairs.setdefault((one, other), []).append(total / seen)
    means = [math.fsum(values) / len(values) for values in pairs.values()]
    return AbxError(math.fsum(means) / len(means) if means else None, cells, triples, len(pairs))


def _groups(
    items: Iterable[PhoneItem], vectors: Callable[[np.ndarray], np.ndarray] | None, rng: np.random.Generator
) -> list[_PhoneGroup]:
    """Group a context's items, sorted by phone and speaker; vectors get unit length."""
    groups = []
    for (phone, speaker), members in groupby(items, key=lambda item: (item.phone, item.speaker)):
        selected = list(members)
        if len(selected) > SIZE:
            selected = [selected[index] for index in sorted(rng.choice(len(selected), SIZE, replace=False).tolist())]
        frames = np.concatenate([item.frames for item in selected])
        frames = frames if vectors is None else vectors(frames)
        if frames.dtype.kind == "f":
            frames = np.asarray(frames, np.float64)
            frames = frames / np.maximum(np.linalg.norm(frames, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        else:
            frames = np.asarray(frames, np.int64)
        starts = np.cumsum([0, *(len(item.frames) for item in selected)])
        groups.append(_PhoneGroup(phone, speaker, np.ascontiguousarray(frames), starts))
    return groups


def _cells(
    groups: Sequence[_PhoneGroup], speaker: Speaker, rng: np.random.Generator
) -> Iterator[tuple[str, str, str, float, int]]:
    """Yield (phone of A and X, phone of B, speaker of A, error, triples) of a context."""
    distances: dict[tuple[int, int], np.ndarray] = {}

    def distances_of(x: int, y: int) -> np.ndarray:
        if (x, y) not in distances:
            distances[x, y] = _distances(groups[x], groups[y])
        return distances[x, y]

    for a, one in enumerate(groups):
        others = [b for b, other in enumerate(groups) if other.speaker == one.speaker and other.phone != one.phone]
        if speaker == "within":
            for b in others if one.size > 1 else ():
                yield (
                    one.phone,
                    groups[b].phone,
                    one.speaker,
                    *_error(distances_of(a, a), distances_of(a, b), itself=True),
                )
            continue
        same = [x for x, group in enumerate(groups) if group.phone == one.phone and group.speaker != one.speaker]
        for b in others if same else ():
            many = len(same) > SPEAKERS
            for x in sorted(rng.choice(same, SPEAKERS, replace=False).tolist()) if many else same:
                yield (
                    one.phone,
                    groups[b].phone,
                    one.speaker,
                    *_error(distances_of(x, a), distances_of(x, b), itself=False),
                )


def _distances(x: _PhoneGroup, y: _PhoneGroup) -> np.ndarray:
    from codec_bench.kernels.dtw import cpu

    measure = cpu.mean_costs_of_vectors if x.frames.dtype.kind == "f" else cpu.mean_costs_of_codes
    return measure(x.frames, x.starts, y.frames, y.starts)


def _error(to_a: np.ndarray, to_b: np.ndarray, *, itself: bool) -> tuple[float, int]:
    """Return the error of a cell, and its number of triples.

    Args:
        to_a, to_b: distances `(items of X, items of A)` and `(items of X, items of B)`.
        itself: A and X are the same items; none is compared with itself.
    """
    wrong = 0.5 * (1 + np.sign(to_a[:, :, None] - to_b[:, None, :]))
    if itself:
        wrong = wrong[~np.eye(len(to_a), dtype=bool)]
    return float(wrong.mean()), wrong.size


NO_SPEECH = ("sil", "sp", "spn", "nsn", "noise", "silence", "<sil>", "<eps>")
"""Labels that are not phones, in lower case; they are neither compared nor context."""
ADJACENT_S = 0.001
Vectors = Callable[[np.ndarray], np.ndarray]
SPEAKER_MODES: tuple[Speaker, ...] = ("within", "across")


class AbxItems:
    """Collects the phones of a corpus with their codes, item by item.

    As in ZeroSpeech, a phone comes with both neighbours: all frames whose middle lies between the start of the one
    before and the end of the one after. It needs a phone on both sides, without a gap.

    Args:
        alignments, speakers: by sample id.
    """

    def __init__(self, alignments: Mapping[str, Alignment], speakers: Mapping[str, str]) -> None:
        self._alignments, self._speakers = alignments, speakers
        self._streams: dict[str, list[PhoneItem]] = {}
        self._unknown = 0

    def add(self, name: str, codes: Sent) -> None:
        """Add the phones of sample `name`, from its codes or those of one of its channels."""
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
        """Return the ABX errors by stream as JSON values, of codes and of their vectors.

        Args:
            alive: called repeatedly, as a sign of life.
            vectors: the codec's method that maps codes to embeddings; None if it has none.

        Raises:
            NotApplicable: the codec has no codes with a frame rate, or no phone can be compared.
        """
        if not self._streams:
            raise NotApplicable(Diagnostic("no_frame_rate"))
        if not any(self._streams.values()):
            raise NotApplicable(Diagnostic("no_triphones", without_speaker=self._unknown))
        first = lambda items: [replace(item, frames=item.frames[:, :1]) for item in items]  # noqa: E731
        streams = [
            {
                "name": name,
                "items": len(items),
                "all_codebooks": _errors(items, seed, alive),
                "first_codebook": _errors(first(items), seed, alive),
                "vectors": self._of_vectors(items, seed, alive, vectors),
            }
            for name, items in self._streams.items()
        ]
        counts = {"size": SIZE, "speakers_of_x": SPEAKERS, "items_without_speaker": self._unknown}
        return {**counts, "streams": streams}

    def _of_vectors(
        self, items: list[PhoneItem], seed: int, alive: Callable[[], None], vectors: Vectors | None
    ) -> dict[str, Any]:
        """Compute the ABX errors of the codes' vectors, or the reason why there are none."""
        reason = Diagnostic("no_vectors") if vectors is None else None
        if len(self._streams) > 1:
            reason = Diagnostic("no_common_vectors")
        if vectors is not None and reason is None:
            try:
                return _errors(items, seed, alive, partial(_look_up, vectors))
            except (UserError, CodecFault) as error:
                reason = fault_of(error)
        nothing = AbxError(None, 0, 0, 0)
        return {mode: {**asdict(nothing), "reason": reason} for mode in SPEAKER_MODES}


def _look_up(vectors: Vectors, frames: np.ndarray) -> np.ndarray:
    """Map codes `(frames, codebooks)` to float vectors; or raise CodecFault."""
    looked_up = np.asarray(vectors(np.ascontiguousarray(frames.T)))
    is_table = looked_up.ndim == 2 and len(looked_up) == len(frames) and looked_up.dtype.kind == "f"
    if not (is_table and np.isfinite(looked_up).all()):
        facts = {"dtype": str(looked_up.dtype), "shape": looked_up.shape, "frames": len(frames)}
        raise CodecFault(Diagnostic("vectors_shape", **facts))
    return looked_up


def _items(alignment: Alignment, values: np.ndarray, frame_rate_hz: float, speaker: str) -> Iterator[PhoneItem]:
    """Yield each phone of a sample that has both neighbours and a frame of `values`."""
    speech = [phone.lower() not in NO_SPEECH for phone in alignment.phones]
    joined = np.abs(alignment.starts_s[1:] - alignment.ends_s[:-1]) <= ADJACENT_S
    for index in range(1, len(speech) - 1):
        if not (all(speech[index - 1 : index + 2]) and joined[index - 1] and joined[index]):
            continue
        onset, offset = alignment.starts_s[index - 1], alignment.ends_s[index + 1]
        first = math.ceil(onset * frame_rate_hz - 0.5 - 1e-9)
        frames = values[max(0, first) : math.floor(offset * frame_rate_hz - 0.5 + 1e-9) + 1]
        if len(frames):
            before, phone, after = alignment.phones[index - 1 : index + 2]
            yield PhoneItem(phone, before, after, speaker, frames)


def _errors(
    items: list[PhoneItem], seed: int, alive: Callable[[], None], vectors: Vectors | None = None
) -> dict[str, Any]:
    """Compute ABX errors within and across speakers, each with a reason if it is None."""
    errors: dict[str, Any] = {}
    for mode in SPEAKER_MODES:
        result = abx_error(items, speaker=mode, seed=seed, vectors=vectors, alive=alive)
        reason = Diagnostic(f"no_pairs_{mode}") if result.error is None else None
        errors[mode] = {**asdict(result), "reason": reason}
    return errors
