"""Entropies obey their laws and equal SciPy's, and counts can be added."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats

from codec_bench.apps.profiling.codebook_use import ESTIMABLE, CodebookCounts, entropy_bits, summarise


@pytest.mark.parametrize("entries", [2, 37, 1024])
def test_uniform_codes_use_everything(entries):
    codes = np.tile(np.arange(entries), 50)[None]
    use = summarise(CodebookCounts.of(codes, entries))
    (book,) = use.codebooks
    assert book.entropy_bits == pytest.approx(math.log2(entries), abs=1e-12)
    assert book.perplexity == pytest.approx(entries)
    assert (book.used, book.dead, book.utilisation, book.tokens) == (entries, 0, 1.0, 50 * entries)
    assert book.entropy_bits_corrected == math.log2(entries)  # a correction beyond what is possible is cut
    assert use.entropy_bits == pytest.approx(use.nominal_bits)


def test_constant_codes_are_silent():
    use = summarise(CodebookCounts.of(np.full((3, 400), 5), 64))
    for book in use.codebooks:
        assert (book.entropy_bits, book.entropy_bits_corrected, book.perplexity) == (0.0, 0.0, 1.0)
        assert (book.used, book.dead, book.utilisation) == (1, 63, 1 / 64)
    assert use.entropy_bits_corrected == use.joint.bits_corrected == 0.0
    assert use.nominal_bits == 3 * 6


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60).filter(any))
def test_the_plug_in_entropy_is_scipy_s(counts):
    assert entropy_bits(np.asarray(counts)) == pytest.approx(stats.entropy(counts, base=2), abs=1e-12)


def test_nothing_has_no_entropy():
    with pytest.raises(ValueError, match="nothing was counted"):
        entropy_bits(np.zeros(4, int))
    use = summarise(CodebookCounts.of(np.zeros((2, 0), int), 16))
    assert use.entropy_bits is use.entropy_bits_corrected is use.joint.bits_corrected is None
    assert use.codebooks[0].utilisation is None and use.joint.reason
    assert summarise(CodebookCounts.zero()).codebooks == ()


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("tokens", [300, 1000, 5000])
def test_the_correction_takes_most_of_the_bias(rng, exponent, tokens):
    share = np.arange(1, 257.0) ** -exponent
    share /= share.sum()
    truth = float(stats.entropy(share, base=2))
    drawn = rng.multinomial(tokens, share, size=200)
    plain = np.mean([entropy_bits(row) for row in drawn]) - truth
    corrected = np.mean([entropy_bits(row, corrected=True) for row in drawn]) - truth
    assert plain < 0
    assert abs(corrected) < (0.6 if tokens == 300 else 0.5) * abs(plain)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 12), st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 99))
def test_parts_add_to_the_whole(codebooks, cardinality, lengths, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, cardinality, (codebooks, frames)) for frames in lengths]
    complete = CodebookCounts.of(np.concatenate(parts, axis=1), cardinality)
    merged = sum((CodebookCounts.of(item, cardinality) for item in parts), CodebookCounts.zero())
    for other in merged, complete + CodebookCounts.zero():
        assert np.array_equal(other.counts, complete.counts)
        assert np.array_equal(other.pair_keys, complete.pair_keys)
        assert np.array_equal(other.pair_counts, complete.pair_counts)
        assert summarise(other) == summarise(complete)


def test_pairs_are_those_of_neighbouring_codebooks(rng):
    codes = rng.integers(0, 20, (3, 400))
    counts = CodebookCounts.of(codes, 20)
    for index in range(2):
        table, here = np.zeros((20, 20), int), counts.pair_keys // 400 == index
        table[counts.pair_keys[here] // 20 % 20, counts.pair_keys[here] % 20] = counts.pair_counts[here]
        expected = np.histogram2d(codes[index], codes[index + 1], bins=20, range=((-0.5, 19.5), (-0.5, 19.5)))[0]
        assert np.array_equal(table, expected)


def test_other_codebooks_do_not_add():
    with pytest.raises(ValueError, match="cannot be added"):
        CodebookCounts.of(np.zeros((2, 3), int), 8) + CodebookCounts.of(np.zeros((2, 3), int), 16)


@pytest.mark.parametrize("wrong", [-1, 16])
def test_codes_out_of_range_are_named(wrong):
    codes = np.zeros((3, 10), int)
    codes[1, 4:6] = wrong
    with refuses("codes_out_of_range", codebook=1, count=2, cardinality=16):
        CodebookCounts.of(codes, 16)


def test_the_joint_entropy_of_independent_codebooks_is_the_sum(rng):
    codes = rng.integers(0, 16, (3, 60_000))
    use = summarise(CodebookCounts.of(codes, 16))
    assert use.joint.coverage > 0.999 and use.joint.tokens == 60_000 and use.joint.pairs == 2 * 256
    assert use.joint.bits_corrected == pytest.approx(12.0, abs=0.01)
    assert 50 * use.joint.bits_corrected == pytest.approx(600, abs=0.5)


def test_a_codebook_that_repeats_another_adds_nothing(rng):
    first = rng.integers(0, 32, 20_000)
    use = summarise(CodebookCounts.of(np.stack([first, first, (first * 7 + 3) % 32]), 32))
    assert use.entropy_bits == pytest.approx(15, abs=0.01)
    assert use.joint.bits == pytest.approx(use.codebooks[0].entropy_bits)
    assert use.joint.bits_corrected == pytest.approx(use.codebooks[0].entropy_bits_corrected)


def test_a_known_dependence(rng):
    # The second code is the first one, or with probability 1/4 any of 64: a known conditional entropy.
    first, any_code = rng.integers(0, 64, (2, 200_000))
    second = np.where(rng.random(200_000) < 0.25, any_code, first)
    table = np.full((64, 64), 0.25 / 64**2) + np.eye(64) * 0.75 / 64
    use = summarise(CodebookCounts.of(np.stack([first, second]), 64))
    assert use.joint.coverage >= ESTIMABLE
    assert use.joint.bits_corrected == pytest.approx(stats.entropy(table.ravel(), base=2), abs=0.02)
    assert abs(use.joint.bits_corrected - use.joint.bits) > 0.005


def test_too_few_tokens_give_no_joint_entropy(rng):
    use = summarise(CodebookCounts.of(rng.integers(0, 1024, (8, 5000)), 1024))
    assert use.joint.bits_corrected is None
    assert use.joint.coverage < 0.05 and use.joint.reason.code == "pairs_unseen"
    assert use.joint.bits < 60  # the plug-in value is far below the true 80 bits: not to be believed
    assert 78 < use.entropy_bits_corrected <= 80
