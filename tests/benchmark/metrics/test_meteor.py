"""METEOR: NLTK's value, with the WordNet of NLTK or of the system."""

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import load_answer_metric, meteor
from codec_bench.messages.errors import MissingResource

PAIRS = [
    ("a child shouts", "a kid yells"),
    ("the dog barks", "the dog barks"),
    ("", "a dog"),
    ("rain falls", "an engine hums"),
]


def values(name):
    metric = load_answer_metric(name)
    return [metric.compare([theirs.split()], ours.split()).value for ours, theirs in PAIRS]


def test_synonyms_count_where_wordnet_is_on_the_machine():
    pytest.importorskip("nltk")
    try:
        result = values("meteor")
    except MissingResource:
        pytest.skip("there is no WordNet on this machine")
    alone = values("meteor[exact-stem]")
    # Three words in one run: 1 - 0.5 * (1 / 3) ** 3. Without synonyms one of three: precision and recall 1/3, one run
    # of one word.
    assert result[0] == pytest.approx(1 - 0.5 / 27) and alone[0] == pytest.approx((1 / 3) * 0.5)
    assert result[1:] == alone[1:] == pytest.approx([1 - 0.5 / 27, 0, 0])


def test_without_wordnet_it_says_what_to_do(monkeypatch):
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(meteor, "_SYSTEM", "/nowhere")
    with refuses("no_wordnet"):
        load_answer_metric("meteor")
