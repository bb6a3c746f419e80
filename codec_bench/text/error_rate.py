"""Word and character error rates as counts that add up.

Counts equal those of jiwer 4 on every pair, also between equally short edit paths (`kernels.edit_distance.ref`). Lower
is better; insertions can raise a rate above 1.

Paper: V. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals", 1966. Reference
implementation: jiwer 4.0 `process_words` and `process_characters`, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any, Literal, get_args

import numpy as np

from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.text.language import ALONE, ALONE_CLASS
from codec_bench.text.normalise import get_normaliser

Unit = Literal["word", "char", "mixed"]
Operation = Literal["equal", "substitute", "delete", "insert"]
PLAIN_CHARACTERS = 300_000
"""Up to so many characters, words are numbered in Python, in at most 0.1 s; beyond, compiled code is loaded."""
_WHITE_CODES = 0x3001
"""From this code point on there is no white space."""
_OPERATIONS: tuple[Operation, ...] = get_args(Operation)  # in the order of the kernel's steps


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """Counts of right and wrong items of an estimate, which add with `+`.

    Args:
        hits: items of the reference that are also in the estimate.
        substitutions: items of the reference that are another item in the estimate.
        deletions: items of the reference that are missing in the estimate.
        insertions: items of the estimate that are not in the reference.

    Raises:
        ValueError: a count is negative or not a whole number.
    """

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if int(value) != value or value < 0:
                raise ValueError(f"there are {value} {name}; expected a whole number that is not negative")
            object.__setattr__(self, name, int(value))

    @classmethod
    def zero(cls) -> ErrorRate:
        """The neutral element of addition."""
        return cls()

    def __add__(self, other: ErrorRate) -> ErrorRate:
        if not isinstance(other, ErrorRate):
            return NotImplemented
        return ErrorRate(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions: the edit distance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def reference_length(self) -> int:
        """Items in the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def rate(self) -> float | None:
        """Errors per item of the reference; None if the reference is empty."""
        return self.errors / self.reference_length if self.reference_length else None


def error_rate(
    *,
    reference: Sequence[str] | str,
    estimate: Sequence[str] | str,
    unit: Unit = "word",
    normaliser: str = "whisper-en",
) -> ErrorRate:
    """The error rate of a text, or of a corpus.

    The estimate of an empty reference counts as insertions. If no reference has an item, there is no rate.

    Args:
        reference, estimate: one text each, or equally many texts each. An empty text has no items.
        unit: `word`; `char` for characters, spaces between words included; `mixed` for Chinese with words of other
            scripts:
            a Han character, a kana or a word of another script is one item.
        normaliser: the normaliser of both texts (see `codec_bench.text.normalise`).

    Raises:
        UserError: an entry is no text, or the numbers of texts differ.
        UnknownName: no such unit or normaliser.

    Examples:
        >>> texts = ["the cat sat on the mat", "hello"], ["the cat sat on a mat", "hello world"]
        >>> found = error_rate(reference=texts[0], estimate=texts[1])
        >>> found
        ErrorRate(hits=6, substitutions=1, deletions=0, insertions=1)
        >>> round(found.rate, 4)
        0.2857
    """
    return ErrorRate(*_counts(reference, estimate, unit, normaliser).sum(axis=0).tolist())


def error_rates(
    *,
    reference: Sequence[str] | str,
    estimate: Sequence[str] | str,
    unit: Unit = "word",
    normaliser: str = "whisper-en",
) -> list[ErrorRate]:
    """One error rate per pair of texts; see `error_rate`."""
    return [ErrorRate(*row) for row in _counts(reference, estimate, unit, normaliser).tolist()]


def compound_error_rates(*, reference: Sequence[str], estimate: Sequence[str]) -> list[ErrorRate]:
    """One word error rate per pair; joined and split words are hits.

    Insertions, deletions and substitutions equal kaldialign 0.12's `edit_distance(..., merge_compounds=True)`.

    Raises:
        UserError: the numbers of texts differ.

    Examples:
        >>> compound_error_rates(reference=["a white paper"], estimate=["the whitepaper"])
        [ErrorRate(hits=2, substitutions=1, deletions=0, insertions=0)]
    """
    from codec_bench.kernels.edit_distance.compounds import compound_counts

    _check_numbers(len(reference), len(estimate))
    return [ErrorRate(*compound_counts(tokens(mine), tokens(other))) for mine, other in zip(reference, estimate)]


def sequence_error_rates(*, reference: Sequence[np.ndarray], estimate: Sequence[np.ndarray]) -> list[ErrorRate]:
    """One error rate per pair of integer sequences, such as units or codes.

    Args:
        reference, estimate: equally many sequences `(length,)` of integers from 0 that fit int32.

    Raises:
        UserError: the numbers of sequences differ.
    """
    _check_numbers(len(reference), len(estimate))
    sequences = [*reference, *estimate]
    offsets = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([len(sequence) for sequence in sequences], out=offsets[1:])
    items = np.concatenate([np.empty(0, np.int32), *sequences]).astype(np.int32)
    counts = _aligned(items, offsets, int(items.max(initial=0)) + 1)
    return [ErrorRate(*row) for row in counts.tolist()]


def alignment(
    *, reference: str, estimate: str, unit: Unit = "word", normaliser: str = "whisper-en"
) -> list[tuple[Operation, int, int, int, int]]:
    """The edits from the reference to the estimate: runs of equal steps, in order.

    Positions count the items that `tokens` returns for the normalised texts.

    Returns:
        `(operation, reference start, reference end, estimate start, estimate end)`, with jiwer's names.

    Raises:
        UnknownName: no such unit or normaliser.
    """
    from codec_bench.kernels.edit_distance.dispatch import align

    apply = get_normaliser(normaliser)
    items, offsets, symbols = _numbered([apply(reference), apply(estimate)], unit)
    path = np.empty(items.size, np.uint8)
    counts = align(items, offsets[:2], items, offsets[1:], symbols, path)
    steps = path[path.size - int(counts.sum()) :]
    bounds = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), steps.size] if steps.size else [0]
    runs: list[tuple[Operation, int, int, int, int]] = []
    i = j = 0
    for start, end in pairwise(bounds):
        operation = _OPERATIONS[steps[start]]
        i_end = i + (0 if operation == "insert" else end - start)
        j_end = j + (0 if operation == "delete" else end - start)
        runs.append((operation, i, i_end, j, j_end))
        i, j = i_end, j_end
    return runs


def tokens(text: str, unit: Unit = "word") -> list[str]:
    """The items of a text that are compared.

    `word`: the words between spaces. `char`: the characters without outer white space. `mixed`: each Han character and
    kana, and each run of other characters without white space.

    Raises:
        UnknownName: no such unit.
    """
    from codec_bench.kernels.edit_distance.ref import split_words

    _check_unit(unit)
    if unit == "mixed":
        return re.findall(rf"[{ALONE_CLASS}]|[^\s{ALONE_CLASS}]+", text)
    return split_words(text) if unit == "word" else list(text.strip())


def _check_unit(unit: str) -> None:
    if unit not in get_args(Unit):
        raise UnknownName("error_rate_unit", str(unit), get_args(Unit))


def _counts(reference: Sequence[str] | str, estimate: Sequence[str] | str, unit: Unit, normaliser: str) -> np.ndarray:
    """int64 `(pairs, 4)`: hits, substitutions, deletions, insertions."""
    if isinstance(reference, str) != isinstance(estimate, str):
        raise UserError("one_text_one_list")
    references, estimates = _texts("reference", reference), _texts("estimate", estimate)
    _check_numbers(len(references), len(estimates))
    apply = get_normaliser(str(normaliser))
    return _aligned(*_numbered([*map(apply, references), *map(apply, estimates)], unit))


def _texts(role: str, texts: Any) -> list[str]:
    """Validate one argument as a list of texts; a mapping has no shared order."""
    if isinstance(texts, str):
        return [texts]
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise UserError("not_texts", role=role, type=type(texts).__name__)
    listed = list(texts)
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            raise UserError(
                "not_a_text",
                role=role,
                index=index,
                type=type(text).__name__,
                hint="leave out the pairs without one, on both sides",
            )
    return listed


def _check_numbers(references: int, estimates: int) -> None:
    if references != estimates:
        raise UserError("unequal_texts", references=references, estimates=estimates)


def _aligned(items: np.ndarray, offsets: np.ndarray, symbols: int) -> np.ndarray:
    """int64 `(pairs, 4)`: hits, substitutions, deletions, insertions.

    `items` holds all references, then all estimates; `offsets` has `2 * pairs + 1` entries, `symbols` is the maximum
    plus 1.
    """
    from codec_bench.kernels.edit_distance.dispatch import align

    pairs = len(offsets) // 2
    nothing = np.empty(0, np.uint8)
    counts = align(items, offsets[: pairs + 1], items, offsets[pairs:], symbols, nothing)
    lengths = np.diff(offsets)
    matched = counts[:, 0] + counts[:, 1]
    if not ((matched + counts[:, 2] == lengths[:pairs]) & (matched + counts[:, 3] == lengths[pairs:])).all():
        raise RuntimeError("the counts of an error rate do not add up to the lengths of the sequences")
    return counts


def _numbered(texts: list[str], unit: Unit) -> tuple[np.ndarray, np.ndarray, int]:
    """Texts as numbers: int32 items of all texts, int64 `(texts + 1,)` offsets, and the largest item plus one.

    A character's number is its code point. Words are numbered in the order of their first appearance.
    """
    _check_unit(unit)
    if unit == "char":
        codes, offsets = _code_points([text.strip() for text in texts])
        return codes, offsets, int(codes.max(initial=0)) + 1
    if sum(map(len, texts)) > PLAIN_CHARACTERS:
        from codec_bench.kernels.edit_distance.words import number_words

        codes, offsets = _code_points(texts)
        if unit == "mixed":
            codes, offsets = _spaced(codes, offsets)
        return number_words(codes, offsets, _white())
    split = [tokens(text, unit) for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([*map(len, split)], out=offsets[1:])
    words = list(chain.from_iterable(split))
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return np.array([*map(numbers.__getitem__, words)], np.int32), offsets, len(numbers)


def _code_points(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.array(np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<i4"), np.int32), offsets


def _spaced(codes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put spaces around each character in `ALONE`, and turn all white space into spaces."""
    white = np.zeros(codes.shape, bool)
    low = codes < _WHITE_CODES
    white[low] = _white()[codes[low]]
    alone = np.zeros(codes.shape, bool)
    for first, last in ALONE:
        alone |= (codes >= first) & (codes <= last)
    ends = np.zeros(codes.size + 1, np.int64)
    np.cumsum(1 + 2 * alone, out=ends[1:])
    spread = np.full(ends[-1], ord(" "), np.int32)
    spread[ends[:-1] + alone] = np.where(white, ord(" "), codes)
    return spread, ends[offsets]


@cache
def _white() -> np.ndarray:
    return np.array([chr(code).isspace() for code in range(_WHITE_CODES)])
