"""Counts are jiwer's on every pair, and parts add up to the whole."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.text import error_rate as text_error_rate
from codec_bench.text.error_rate import ErrorRate, alignment, error_rate, error_rates, tokens
from codec_bench.text.normalise import get_normaliser

JIWER = {"word": jiwer.process_words, "char": jiwer.process_characters}
UNITS = list(JIWER)
counts = st.builds(ErrorRate, *[st.integers(0, 1000)] * 4)
# White space of every kind, repeated, at the edges and alone: where splitting rules differ.
texts = st.text(st.sampled_from("aab  \t\n\u00a0\u3000\x1fé😀"), max_size=16) | st.text(max_size=12)


def as_tuple(counted):
    return counted.hits, counted.substitutions, counted.deletions, counted.insertions


def chunks(alignments):
    return [(c.type, c.ref_start_idx, c.ref_end_idx, c.hyp_start_idx, c.hyp_end_idx) for c in alignments]


def corpus(rng, utterances, vocabulary):
    names = ["".join(rng.choice(list("abcdefghij"), rng.integers(1, 8))) for _ in range(vocabulary)]
    references, estimates = [], []
    for _ in range(utterances):
        words = rng.choice(names, rng.integers(0, 30)).tolist()
        received = []
        for word in words:
            draw = rng.random()
            if draw > 0.05:
                received.append(word if draw > 0.1 else str(rng.choice(names)))
            if draw < 0.02 or draw > 0.97:
                received.append(str(rng.choice(names)))
        references.append(" ".join(words))
        estimates.append(" ".join(received))
    return references, estimates


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("vocabulary", [2, 5, 500])
def test_every_pair_counts_as_jiwer(rng, unit, vocabulary):
    references, estimates = corpus(rng, 1500, vocabulary)
    ours = error_rates(reference=references, estimate=estimates, unit=unit, normaliser="none")
    expected = [JIWER[unit](r, e) for r, e in zip(references, estimates)]
    assert [as_tuple(o) for o in ours] == [as_tuple(x) for x in expected]
    complete = error_rate(reference=references, estimate=estimates, unit=unit, normaliser="none")
    assert as_tuple(complete) == as_tuple(JIWER[unit](references, estimates))
    assert complete.rate == getattr(JIWER[unit](references, estimates), {"word": "wer", "char": "cer"}[unit])


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=300, deadline=None)
@given(reference=texts, estimate=texts)
def test_hostile_text_counts_and_aligns_as_jiwer(unit, reference, estimate):
    expected = JIWER[unit](reference, estimate)
    ours = error_rate(reference=reference, estimate=estimate, unit=unit, normaliser="none")
    assert as_tuple(ours) == as_tuple(expected)
    runs = alignment(reference=reference, estimate=estimate, unit=unit, normaliser="none")
    assert runs == chunks(expected.alignments[0])
    assert (tokens(reference, unit), tokens(estimate, unit)) == (expected.references[0], expected.hypotheses[0])


@pytest.mark.parametrize("unit", UNITS)
def test_sentences_of_real_data_count_as_jiwer(spoken, unit):
    text = [row["text"] for row, _ in spoken if row.get("text")]
    # Every text is compared with every other, so the pairs are more or less alike.
    references = [a for a in text for _ in text]
    estimates = [b for _ in text for b in text]
    apply = get_normaliser("whisper-en")
    ours = error_rates(reference=references, estimate=estimates, unit=unit)
    for reference, estimate, counted in zip(references, estimates, ours):
        assert as_tuple(counted) == as_tuple(JIWER[unit](apply(reference), apply(estimate)))


@pytest.mark.parametrize("unit", UNITS)
@settings(deadline=None)
@given(pairs=st.lists(st.tuples(texts, texts), max_size=12), cut=st.integers(0, 12))
def test_parts_add_up_to_the_whole_in_any_order(unit, pairs, cut):
    def rate(some):
        return error_rate(reference=[r for r, _ in some], estimate=[e for _, e in some], unit=unit, normaliser="none")

    assert rate(pairs[:cut]) + rate(pairs[cut:]) == rate(pairs) == rate(pairs[::-1])
    each = error_rates(reference=[r for r, _ in pairs], estimate=[e for _, e in pairs], unit=unit, normaliser="none")
    assert sum(each, ErrorRate.zero()) == rate(pairs)


@given(a=counts, b=counts, c=counts)
def test_counts_add_like_numbers(a, b, c):
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ErrorRate.zero() == a
    assert (a + b).errors == a.errors + b.errors
    assert (a + b).reference_length == a.reference_length + b.reference_length


@settings(deadline=None)
@given(text=texts)
def test_a_text_against_itself_has_no_error(text):
    same = error_rate(reference=text, estimate=text, normaliser="none")
    assert same.errors == 0
    assert same.hits == len(tokens(text))
    assert same.rate == (0.0 if same.hits else None)


def test_normalisation_comes_first():
    spoken = {"reference": "Mr. Jones paid $20, didn't he?", "estimate": "mister jones paid twenty dollars did not he"}
    assert error_rate(**spoken).errors == 0
    assert error_rate(**spoken, normaliser="none").errors > 0


def test_an_empty_reference_has_no_rate():
    insertions = error_rate(reference="", estimate="two words")
    assert (insertions.rate, insertions.insertions) == (None, 2)
    assert error_rate(reference=[], estimate=[]) == ErrorRate.zero()
    assert ErrorRate.zero().rate is None


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_inserted_where_the_reference_is_empty_counts_in_the_corpus(unit):
    references, estimates = ["one two", "", "", "a"], ["one", "three more words", "", "b"]
    complete = error_rate(reference=references, estimate=estimates, unit=unit, normaliser="none")
    expected = JIWER[unit](references, estimates)
    assert as_tuple(complete) == as_tuple(expected)
    assert complete.rate == getattr(expected, {"word": "wer", "char": "cer"}[unit])
    assert (
        complete.rate
        > error_rate(reference=references[::3], estimate=estimates[::3], unit=unit, normaliser="none").rate
    )


def test_a_rate_may_exceed_one():
    assert error_rate(reference="a", estimate="b c d", normaliser="none").rate == 3.0


@pytest.mark.parametrize("bad", [{"hits": -1}, {"insertions": -3}, {"deletions": 0.5}])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        ErrorRate(**bad)


def test_counts_may_be_numpy_integers():
    assert ErrorRate(np.int64(3), np.int32(1)) == ErrorRate(3, 1)


def test_sides_must_match():
    with refuses("unequal_texts", references=2, estimates=1):
        error_rate(reference=["a", "b"], estimate=["a"])
    with refuses("one_text_one_list"):
        error_rate(reference="a", estimate=["a"])


def test_unknown_units_and_normalisers_are_named():
    with refuses("unknown_name", name="words", hint="word"):
        error_rate(reference="a", estimate="a", unit="words")
    with refuses("unknown_name", name="whisper-eng", hint="whisper-en"):
        error_rate(reference="a", estimate="a", normaliser="whisper-eng")
    with refuses("unknown_name", name="chars", hint="char"):
        tokens("a", "chars")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reference": ["a", None]}, {"code": "not_a_text", "role": "reference", "index": 1, "type": "NoneType"}),
        ({"estimate": ["a", float("nan")]}, {"code": "not_a_text", "role": "estimate", "index": 1, "type": "float"}),
        ({"reference": b"a b", "estimate": b"a b"}, {"code": "not_texts", "type": "bytes"}),
        ({"reference": {"x": "a"}, "estimate": {"x": "b"}}, {"code": "not_texts", "type": "dict"}),
        ({"reference": 3}, {"code": "not_texts", "type": "int"}),
        ({"normaliser": None}, {"code": "unknown_name", "kind": "normaliser", "name": "None"}),
        ({"unit": None}, {"code": "unknown_name", "kind": "error_rate_unit", "name": "None"}),
    ],
)
def test_what_is_no_text_is_named_in_one_sentence(arguments, message):
    with refuses(**message):
        error_rate(**{"reference": ["a", "b"], "estimate": ["a", "b"], **arguments})


def test_texts_may_come_from_an_iterator():
    result = error_rate(reference=(text for text in ("a b", "c")), estimate=iter(["a b", "d"]))
    assert (result.hits, result.substitutions) == (2, 1)


@pytest.mark.parametrize("unit", ["word", "mixed"])
@settings(max_examples=150)
@given(texts=st.lists(st.text(st.sampled_from("ab 今日 \t\u3000\x1f😀-"), max_size=14), min_size=1, max_size=6))
def test_words_of_many_characters_have_the_numbers_of_few(unit, texts):
    plain = text_error_rate._numbered(texts, unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_error_rate, "PLAIN_CHARACTERS", -1)
        compiled = text_error_rate._numbered(texts, unit)
    assert [np.asarray(one).tolist() for one in plain] == [np.asarray(one).tolist() for one in compiled]
