"""ABX error rates of the codes of a codec, where the user gives alignments.

    items = [Item("AE", "K", "T", "anna", frames), ...]     # a phone in its context, by a speaker
    abx_error(items, speaker="within", seed=0).error

What is compared
    A triple has two items of one phone, A and X, and one of another phone, B, all between the same two phones. It is an
    error if X is farther from A than from B, and half of one if both are equally far. Chance is 50 %, and 0 is best.
    within   A, B and X are by one speaker.
    across   A and B are by one speaker, and X is by another one. What a speaker sounds like is then of no help.
    The distance of two items is the mean angle between their frames, over pi, along the cheapest path of dynamic time
    warping.

How triples make one number
    A cell holds the triples with the same phones of A and B, the same context and the same speakers. Its error is the
    mean over its triples. Cells are averaged over contexts (and over the speakers of X), then over speakers, then over
    the pairs of phones. So frequent phones and talkative speakers do not decide.

What is left out
    The items of one phone, context and speaker are cut to `SIZE` by a seed; of the speakers of X, at most `SPEAKERS`
    are taken by a seed for each pair of phones, context and speaker. A group of one item can be B, and X across
    speakers, but never A and X.

Paper: T. Schatz et al., "Evaluating speech features with the Minimal-Pair ABX task", Interspeech 2013; M. Poli et al.,
"fastabx", arXiv 2505.02692. It follows the definition of ZeroSpeech 2021 as fastabx has it (averages, limits, frames,
path).
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
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic
from codec_bench.types import Sent

SIZE = 10
SPEAKERS = 5

Speaker = Literal["within", "across"]


@dataclass(frozen=True, slots=True, eq=False)
class PhoneItem:
    """One phone, between two others.

    Args:
        phone, before, after: the phone and its neighbours. speaker: who says it.
        frames: codes, integers `(frames, codebooks)`, or vectors, floats `(frames, dimensions)`; at least one frame.
    """

    phone: str
    before: str
    after: str
    speaker: str
    frames: np.ndarray


@dataclass(frozen=True, slots=True)
class AbxError:
    """An ABX error rate.

    Args:
        error: 0 to 1; None without a triple. cells, triples, pairs: how many it is made of; pairs of phones count in
            each order.
    """

    error: float | None
    cells: int
    triples: int
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The items of one phone, context and speaker: their frames one after the other, and where each begins."""

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
    """The ABX error rate of items.

    Args:
        items: all with codes of one number of codebooks, or all with vectors of one width.
        speaker: `within` or `across`. seed: decides which items and speakers are taken where there are many.
        vectors: makes the vectors `(frames, dimensions)` that are compared, from codes `(frames, codebooks)` of several
            items one after the other; None compares the items' own frames. So vectors need not be held for all items.
        alive: called now and then, so that a caller sees that it goes on.
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
) -> list[_Group]:
    """The groups of one context.

    Vectors are brought to length 1; one of zeros stays as it is, at a right angle to all others.
    """
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
        groups.append(_Group(phone, speaker, np.ascontiguousarray(frames), starts))
    return groups


def _cells(
    groups: Sequence[_Group], speaker: Speaker, rng: np.random.Generator
) -> Iterator[tuple[str, str, str, float, int]]:
    """The cells of one context: the phones of A and B, the speaker of both, the error, and the number of triples."""
    distances: dict[tuple[int, int], np.ndarray] = {}

    def apart(x: int, y: int) -> np.ndarray:
        """Distances between the items of two groups, `(items of x, items of y)`."""
        if (x, y) not in distances:
            distances[x, y] = _distances(groups[x], groups[y])
        return distances[x, y]

    for a, one in enumerate(groups):
        others = [b for b, other in enumerate(groups) if other.speaker == one.speaker and other.phone != one.phone]
        if speaker == "within":
            for b in others if one.size > 1 else ():
                yield one.phone, groups[b].phone, one.speaker, *_error(apart(a, a), apart(a, b), itself=True)
            continue
        speakers_of_phone = [
            x for x, group in enumerate(groups) if group.phone == one.phone and group.speaker != one.speaker
        ]
        for b in others if speakers_of_phone else ():
            chosen = (
                speakers_of_phone
                if len(speakers_of_phone) <= SPEAKERS
                else sorted(rng.choice(speakers_of_phone, SPEAKERS, replace=False).tolist())
            )
            for x in chosen:
                yield one.phone, groups[b].phone, one.speaker, *_error(apart(x, a), apart(x, b), itself=False)


def _distances(x: _Group, y: _Group) -> np.ndarray:
    from codec_bench.kernels.dtw import cpu

    measure = cpu.mean_costs_of_vectors if x.frames.dtype.kind == "f" else cpu.mean_costs_of_codes
    return measure(x.frames, x.starts, y.frames, y.starts)


def _error(to_a: np.ndarray, to_b: np.ndarray, *, itself: bool) -> tuple[float, int]:
    """The error of a cell, and how many triples it has.

    Args:
        to_a, to_b: distances `(items of X, items of A)` and `(items of X, items of B)`.
        itself: whether A and X are the same items, of which none is compared with itself.
    """
    wrong = 0.5 * (1 + np.sign(to_a[:, :, None] - to_b[:, None, :]))
    if itself:
        wrong = wrong[~np.eye(len(to_a), dtype=bool)]
    return float(wrong.mean()), wrong.size


NO_SPEECH = ("sil", "sp", "spn", "nsn", "noise", "silence", "<sil>", "<eps>")
"""Names of what is no phone, in small letters; nothing is compared with it, and it is no context."""
ADJACENT_S = 0.001
Vectors = Callable[[np.ndarray], np.ndarray]
SPEAKER_MODES: tuple[Speaker, ...] = ("within", "across")


class AbxItems:
    """Collects the phones of a corpus with their codes, item by item.

    A phone is heard with both neighbours, as in ZeroSpeech: from the start of the one before to the end of the one
    after, with all frames whose middle lies there. It must follow and be followed by a phone, without a gap.

    Args:
        alignments, speakers: by the ids of the samples.
    """

    def __init__(self, alignments: Mapping[str, Alignment], speakers: Mapping[str, str]) -> None:
        self._alignments, self._speakers = alignments, speakers
        self._streams: dict[str, list[PhoneItem]] = {}
        self._unknown = 0

    def add(self, name: str, codes: Sent) -> None:
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
            raise NotApplicable(Diagnostic("no_frame_rate"))
        if not any(self._streams.values()):
            raise NotApplicable(Diagnostic("no_triphones", without_speaker=self._unknown))
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
        self, items: list[PhoneItem], seed: int, alive: Callable[[], None], vectors: Vectors | None
    ) -> dict[str, Any]:
        """The errors of the vectors that codes stand for, or why there are none."""
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
    """The vectors of codes `(frames, codebooks)`.

    Raises:
        CodecFault: the codec gives something else.
    """
    looked_up = np.asarray(vectors(np.ascontiguousarray(frames.T)))
    if (
        looked_up.ndim != 2
        or len(looked_up) != len(frames)
        or looked_up.dtype.kind != "f"
        or not np.isfinite(looked_up).all()
    ):
        facts = {"dtype": str(looked_up.dtype), "shape": looked_up.shape, "frames": len(frames)}
        raise CodecFault(Diagnostic("vectors_shape", **facts))
    return looked_up


def _items(alignment: Alignment, values: np.ndarray, frame_rate_hz: float, speaker: str) -> Iterator[PhoneItem]:
    """The phones of one sample that have both neighbours and a frame."""
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
    """The errors within and across speakers, each with the reason where there is none."""
    return {
        mode: _describe_error(abx_error(items, speaker=mode, seed=seed, vectors=vectors, alive=alive), mode)
        for mode in SPEAKER_MODES
    }


def _describe_error(result: AbxError, mode: Speaker) -> dict[str, Any]:
    return {**asdict(result), "reason": Diagnostic(f"no_pairs_{mode}") if result.error is None else None}
