"""Words of many texts as numbers, in numba, for `cpu.align`."""

from __future__ import annotations

import numpy as np

from ..compilation.cpu import jit

_SPACE = 32
_NONE = np.uint64(0)
_MIX = np.uint64(0x9E3779B97F4A7C15)

_jit = jit(nogil=True)


@_jit
def number_words(codes: np.ndarray, offsets: np.ndarray, white: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Split texts into words and number them. Equal words have equal numbers.

    Args:
        codes: int32 code points of all joined texts. offsets: int64 `(texts + 1,)`, where each text begins.
        white: bool, whether each code point is white space. Code points beyond its end are not.

    Returns:
        int32 numbers of the words of all texts; int64 `(texts + 1,)`, where each text begins; the number of different
        words.
    """
    texts = offsets.size - 1
    numbers = np.empty(codes.size // 2 + texts + 1, np.int32)
    starts = np.zeros(texts + 1, np.int64)
    # Open addressing. Different words are copied into one place: comparing with `codes` would be slower.
    table = np.full(1024, -1, np.int32)
    hashes = np.empty(512, np.uint64)
    spans = np.zeros(513, np.int64)
    letters = np.empty(4096, np.int32)
    words = 0
    count = 0
    for text in range(texts):
        at, end = _trimmed(codes, offsets[text], offsets[text + 1], white)
        while at < end:
            start = at
            key = _NONE
            gap = 0
            while at < end:
                code = codes[at]
                if code < white.size and white[code]:
                    gap = _gap(codes, at, white)
                    if gap > 0:
                        break
                key = (key ^ np.uint64(code)) * _MIX
                at += 1
            size = at - start
            at += gap
            key ^= key >> np.uint64(32)
            slot = np.int64(key & np.uint64(table.size - 1))
            word = table[slot]
            while word >= 0 and not (hashes[word] == key and _equals(codes, start, size, letters, spans, word)):
                slot = (slot + 1) & (table.size - 1)
                word = table[slot]
            if word < 0:
                word = words
                words += 1
                table[slot] = word
                hashes[word] = key
                spans[words] = spans[word] + size
                letters = _appended(letters, spans[word], codes, start, size)
            numbers[count] = word
            count += 1
            if words == hashes.size:
                hashes = np.concatenate((hashes, np.empty(words, np.uint64)))
                spans = np.concatenate((spans, np.empty(words, np.int64)))
                table = _spread(hashes, words, 2 * table.size)
        starts[text + 1] = count
    return numbers[:count], starts, words


@_jit
def _trimmed(codes: np.ndarray, at: int, end: int, white: np.ndarray) -> tuple[int, int]:
    """Return a text's start and end without surrounding white space."""
    while at < end and codes[at] < white.size and white[codes[at]]:
        at += 1
    while end > at and codes[end - 1] < white.size and white[codes[end - 1]]:
        end -= 1
    return at, end


@_jit
def _gap(codes: np.ndarray, at: int, white: np.ndarray) -> int:
    """Return the white code points that end a word here: 0 for a single one that is not a space, a letter."""
    gap = 1
    while codes[at + gap] < white.size and white[codes[at + gap]]:  # a text ends with another one
        gap += 1
    return gap if gap > 1 or codes[at] == _SPACE else 0


@_jit
def _equals(codes: np.ndarray, start: int, size: int, letters: np.ndarray, spans: np.ndarray, word: int) -> bool:
    begin = spans[word]
    if spans[word + 1] - begin != size:
        return False
    k = 0
    while k < size and letters[begin + k] == codes[start + k]:
        k += 1
    return k == size


@_jit
def _appended(letters: np.ndarray, begin: int, codes: np.ndarray, start: int, size: int) -> np.ndarray:
    """Append a word's letters to those of all words, in larger memory if needed."""
    while letters.size < begin + size:
        letters = np.concatenate((letters, np.empty(letters.size, np.int32)))
    for k in range(size):
        letters[begin + k] = codes[start + k]
    return letters


@_jit
def _spread(hashes: np.ndarray, words: int, size: int) -> np.ndarray:
    table = np.full(size, -1, np.int32)
    for word in range(words):
        slot = np.int64(hashes[word] & np.uint64(size - 1))
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = word
    return table
