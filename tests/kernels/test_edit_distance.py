"""The compiled edit path equals the specified one step by step, and both give rapidfuzz's counts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from codec_bench.kernels.edit_distance import cpu, dispatch, ref, words

KINDS = {"equal": ref.HIT, "replace": ref.SUBSTITUTION, "delete": ref.DELETION, "insert": ref.INSERTION}


def rapidfuzz_path(reference, estimate):
    steps = []
    for tag, i, i_end, j, j_end in Levenshtein.opcodes(reference, estimate):
        steps += [KINDS[tag]] * max(i_end - i, j_end - j)
    return steps


def compiled(pairs):
    """Counts of all pairs in one call."""
    return aligned(pairs, lambda *arguments: cpu.align(*arguments, ref.WHOLE_BYTES))


def aligned(pairs, align=dispatch.align):
    sides = [[np.array(pair[role], np.int32) for pair in pairs] for role in (0, 1)]
    offsets = [np.cumsum([0, *map(len, role)]) for role in sides]
    items = [np.concatenate([np.empty(0, np.int32), *role]) for role in sides]
    symbols = int(max(role.max(initial=0) for role in items)) + 1
    nothing = np.empty(0, np.uint8)
    return align(items[0], offsets[0], items[1], offsets[1], symbols, nothing)


def compiled_path(reference, estimate, whole_bytes=ref.WHOLE_BYTES):
    r, e = np.array(reference, np.int32), np.array(estimate, np.int32)
    path = np.empty(r.size + e.size, np.uint8)
    symbols = int(max(r.max(initial=0), e.max(initial=0))) + 1
    counts = cpu.align(r, np.array([0, r.size]), e, np.array([0, e.size]), symbols, path, whole_bytes)[0]
    steps = path[path.size - counts.sum() :].tolist()
    assert np.bincount(steps, minlength=4).tolist() == counts.tolist()
    return steps


def damaged(rng, items, vocabulary, rate):
    out = []
    for item in items:
        draw = rng.random()
        if draw < rate:
            out.append(rng.integers(vocabulary))
        elif draw < 2 * rate:
            continue
        elif draw < 3 * rate:
            out += [item, rng.integers(vocabulary)]
        else:
            out.append(item)
    return [int(x) for x in out]


def random_pair(rng, longest, vocabularies=(1, 2, 3, 5, 30, 1000)):
    vocabulary = int(rng.choice(vocabularies))
    reference = rng.integers(vocabulary, size=rng.integers(longest + 1)).tolist()
    if rng.random() < 0.5:
        return reference, rng.integers(vocabulary, size=rng.integers(longest + 1)).tolist()
    return reference, damaged(rng, reference, vocabulary, rng.choice([0.02, 0.1, 0.3]))


def counted(steps):
    return np.bincount(steps, minlength=4).tolist()


def test_counts_equal_rapidfuzz_on_tens_of_thousands_of_pairs(rng):
    # Small vocabularies make many shortest paths; the lengths straddle the 64 bits of a block.
    pairs = [random_pair(rng, longest) for longest in (0, 2, 5, 10, 20, 63, 64, 65, 66, 130) for _ in range(1000)]
    expected = [counted(rapidfuzz_path(*pair)) for pair in pairs]
    np.testing.assert_array_equal(compiled(pairs), expected)


def test_long_texts_are_divided_as_rapidfuzz_divides_them(rng):
    for _ in range(30):
        vocabulary = int(rng.choice([2, 3, 30, 5000]))
        reference = rng.integers(vocabulary, size=rng.integers(2100, 7000)).tolist()
        estimate = damaged(rng, reference, vocabulary, rng.choice([0.001, 0.02, 0.1, 0.3]))
        if rng.random() < 0.3:
            estimate = rng.integers(vocabulary, size=rng.integers(1500, 7000)).tolist()
        elif rng.random() < 0.3:
            reference = reference[len(reference) // 2 :]
        assert compiled_path(reference, estimate) == rapidfuzz_path(reference, estimate)


@settings(max_examples=150, deadline=None)
@given(
    reference=st.lists(st.integers(0, 3), max_size=150),
    estimate=st.lists(st.integers(0, 3), max_size=150),
    whole_bytes=st.sampled_from([0, 20, 100, 1000, ref.WHOLE_BYTES]),
)
def test_compiled_path_is_the_specified_one(reference, estimate, whole_bytes):
    assert compiled_path(reference, estimate, whole_bytes) == ref.path(reference, estimate, whole_bytes)


def test_division_is_specified_for_near_copies_too(rng):
    # Sequences that are almost equal have narrow bands, in which cells are skipped.
    for _ in range(60):
        reference, estimate = random_pair(rng, 300, (2, 3, 30))
        for whole_bytes in (0, 60, 400):
            assert compiled_path(reference, estimate, whole_bytes) == ref.path(reference, estimate, whole_bytes)


@given(reference=st.lists(st.integers(0, 4), max_size=25), estimate=st.lists(st.integers(0, 4), max_size=25))
def test_a_path_leads_from_reference_to_estimate_in_the_fewest_steps(reference, estimate):
    steps = ref.path(reference, estimate)
    walked, i, j = [], 0, 0
    for step in steps:
        if step in (ref.HIT, ref.SUBSTITUTION):
            assert (reference[i] == estimate[j]) == (step == ref.HIT)
        if step != ref.DELETION:
            walked.append(estimate[j])
        i += step != ref.INSERTION
        j += step != ref.DELETION
    assert (i, j, walked) == (len(reference), len(estimate), estimate)
    assert sum(step != ref.HIT for step in steps) == Levenshtein.distance(reference, estimate)


def test_a_pair_does_not_depend_on_its_neighbours(rng):
    pairs = [random_pair(rng, 200) for _ in range(200)]
    together = compiled(pairs)
    assert together.tolist() == [compiled([pair])[0].tolist() for pair in pairs]
    order = rng.permutation(len(pairs))
    assert compiled([pairs[k] for k in order]).tolist() == together[order].tolist()


@pytest.mark.parametrize("pair", [([], []), ([1], []), ([], [1, 2]), ([1], [1]), ([1], [2])])
def test_empty_and_single(pair):
    assert compiled_path(*pair) == ref.path(*pair) == rapidfuzz_path(*pair)


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab  \t\n\u00a0\u2003\u3000\x1c\x1f\u200bé😀"), max_size=24))
def test_words_are_split_at_spaces_and_runs_of_white_space(text):
    expected = [word for word in re.sub(r"\s{2,}", " ", text).strip().split(" ") if word]
    assert ref.split_words(text) == expected


def numbered(texts):
    codes = np.array([ord(c) for c in "".join(texts)], np.int32)
    white = np.array([chr(c).isspace() for c in range(0x3001)])
    return words.number_words(codes, np.cumsum([0, *map(len, texts)]), white)


@settings(max_examples=300)
@given(st.lists(st.text(st.sampled_from("ab  \t\n\u00a0\u2003\u3000\x1c\x1f\u200bé😀"), max_size=12), max_size=6))
def test_words_are_numbered_by_first_appearance(texts):
    numbers, starts, different = numbered(texts)
    expected = [ref.split_words(text) for text in texts]
    assert np.diff(starts).tolist() == [len(w) for w in expected]
    flat = [word for line in expected for word in line]
    first = {word: k for k, word in enumerate(dict.fromkeys(flat))}
    assert numbers.tolist() == [first[word] for word in flat] and different == len(first)


def test_many_different_words_make_the_table_grow():
    many = [f"{k:x}" for k in range(5000)] * 2
    numbers, _, different = numbered([" ".join(many)])
    assert different == 5000 and numbers.tolist() == [*range(5000)] * 2


def test_no_white_space_is_beyond_the_table():
    assert all(ord(c) < 0x3001 for c in map(chr, range(0x110000)) if c.isspace() or re.match(r"\s", c))


def test_few_pairs_are_aligned_without_compiled_code_and_many_with_it(rng, monkeypatch):
    pairs = [random_pair(rng, longest) for longest in (0, 5, 64, 65, 130, 300) for _ in range(10)]
    monkeypatch.setattr(dispatch, "_plain_rows", 0)
    monkeypatch.setattr(cpu, "align", None)
    plain = aligned(pairs)
    monkeypatch.undo()
    monkeypatch.setattr(dispatch, "_plain_rows", dispatch.PLAIN_ROWS)
    calls = []
    monkeypatch.setattr(cpu, "align", lambda *arguments, align=cpu.align: calls.append(1) or align(*arguments))
    np.testing.assert_array_equal(plain, aligned(pairs))
    assert calls == [1]


def test_a_plain_path_ends_where_the_compiled_one_does(rng, monkeypatch):
    for _ in range(20):
        reference, estimate = (np.array(items, np.int32) for items in random_pair(rng, 80))
        ends = np.array([0, reference.size]), np.array([0, estimate.size])
        paths = []
        for rows in (0, dispatch.PLAIN_ROWS):
            monkeypatch.setattr(dispatch, "_plain_rows", rows)
            path = np.full(reference.size + estimate.size, 9, np.uint8)
            counts = dispatch.align(reference, ends[0], estimate, ends[1], 1000, path)
            paths.append(path[path.size - counts.sum() :].tolist())
        assert paths[0] == paths[1]
