"""Phones are compared with both neighbours, by the frames whose middles lie in them."""

from __future__ import annotations

import numpy as np
from refusals import refuses

from codec_bench import Codes, CodeStream
from codec_bench.apps.profiling.abx import AbxItems, _items
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages.errors import UserError


def test_the_frames_of_a_phone_with_its_neighbours():
    rows = [(0.0, 0.1, "SIL"), (0.1, 0.2, "K"), (0.2, 0.3, "AE"), (0.3, 0.44, "T"), (0.44, 0.5, "S"), (0.6, 0.7, "P")]
    values = np.arange(35)[:, None]  # 50 frames a second: middles at 10, 30, 50 ... ms
    result = list(_items(Alignment.of(rows), values, 50.0, "anna"))
    assert [(item.before, item.phone, item.after) for item in result] == [("K", "AE", "T"), ("AE", "T", "S")]
    assert result[0].frames[:, 0].tolist() == [*range(5, 22)]  # 110 ms to 430 ms
    assert result[1].frames[:, 0].tolist() == [*range(10, 25)]
    assert [item.frames[:, 0].tolist() for item in _items(Alignment.of(rows), values[:6], 50.0, "anna")] == [[5]]


def streams(values, packets=()):
    output = (CodeStream(np.asarray(values), 8, 50.0),) if len(values) else ()
    return Codes(output, 16_000, 16_000, packets=packets)


def alternating(rng, count):
    """Phones A or B and C or D by turns, so that neighbours are never the compared phones; warped, A A B would equal A
    B B.
    """
    return [str(rng.choice(list(("AB", "CD")[index % 2]))) for index in range(count)]


def test_error_rates_of_a_corpus():
    rng = np.random.default_rng(6)
    alignments, speakers, corpus = {}, {}, {}
    for number in range(12):
        name = f"clip{number}"
        phones = alternating(rng, 30)
        alignments[name] = Alignment.of((k / 10, (k + 1) / 10, phone) for k, phone in enumerate(phones))
        speakers[name] = "xyz"[number % 3]
        output = np.repeat([ord(phone) - ord("A") for phone in phones], 5)
        corpus[name] = streams([output, rng.integers(0, 8, 150)])
    items = AbxItems(alignments, {**speakers, "clip11": None})
    calls = []
    for name, codes in corpus.items():
        items.add(name, codes)
    result = items.result(seed=0, alive=lambda: calls.append(1))
    (stream,) = result["streams"]
    assert stream["items"] == 11 * 28 and result["items_without_speaker"] == 1 and len(calls) == 4 * 8
    for variant in ("within", "across"):
        first, both = stream["first_codebook"][variant], stream["all_codebooks"][variant]
        assert first["error"] == 0 < both["error"] < 0.45 and first["triples"] == both["triples"] > 1000
        assert first["reason"] is None


def test_vectors_are_compared_where_a_codec_gives_them():
    rng = np.random.default_rng(8)
    phones = alternating(rng, 60)
    items = AbxItems({"a": Alignment.of((k / 10, (k + 1) / 10, phone) for k, phone in enumerate(phones))}, {"a": "x"})
    # Each phone has two codes, whose vectors lie near each other.
    items.add("a", streams([2 * np.repeat(["ABCD".index(phone) for phone in phones], 5) + rng.integers(0, 2, 300)]))
    book = np.eye(4)[np.arange(8) // 2] + 0.1 * rng.standard_normal((8, 4))

    def result(vectors):
        (stream,) = items.result(seed=0, alive=lambda: None, vectors=vectors)["streams"]
        return stream

    actual = result(lambda values: book[values[0]])
    assert actual["vectors"]["within"]["error"] < 0.5 * actual["all_codebooks"]["within"]["error"]
    for vectors, reason in (
        (None, "it gives no vectors"), (lambda values: book[values[0]].T, "expected finite floats"),
        (refuse_vectors, "has none"),
    ):  # fmt: skip
        text = result(vectors)["vectors"]["within"]
        assert text["error"] is None and reason in text["reason"]


def refuse_vectors(_):
    raise UserError("it has none")


def test_why_there_is_nothing_is_reported():
    aligned = {"a": Alignment.of([(0.0, 0.1, "A"), (0.1, 0.2, "B"), (0.2, 0.3, "A")])}
    nobody = AbxItems(aligned, {})
    nobody.add("a", streams(np.zeros((1, 15), int)))
    with refuses("no_triphones", without_speaker=1, error=NotApplicable):
        nobody.result(seed=0, alive=lambda: None)
    packets = AbxItems(aligned, {"a": "x"})
    packets.add("a", streams((), (b"1",)))
    with refuses("no_frame_rate", error=NotApplicable):
        packets.result(seed=0, alive=lambda: None)
    alone = AbxItems(aligned, {"a": "x"})
    alone.add("a", streams(np.zeros((1, 15), int)))
    (stream,) = alone.result(seed=0, alive=lambda: None)["streams"]
    assert stream["all_codebooks"]["within"]["error"] is None
    assert stream["all_codebooks"]["within"]["reason"].code == "no_pairs_within"
    assert stream["all_codebooks"]["across"]["reason"].code == "no_pairs_across"
