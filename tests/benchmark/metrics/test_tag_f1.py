"""Micro F1 of tags, against scikit-learn, and how tags are read in an answer."""

import random

import pytest

from codec_bench.benchmark import load_benchmark
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer

LABELS = load_benchmark("mtg-jamendo-genre").spec.fields["labels"]
TUNE = load_benchmark("magnatagatune").spec.fields["labels"]


def scored(text, tags, labels=LABELS):
    return load_answer_metric("tag_f1").compute([Answer("a", text, (tags,), {"labels": labels})])[0]


@pytest.mark.parametrize("labels", [LABELS, TUNE], ids=["MTG-Jamendo", "MagnaTagATune"])
def test_the_value_of_a_set_is_scikit_learns(labels):
    learn = pytest.importorskip("sklearn.metrics")
    draw = random.Random(7)
    sets = [[draw.sample(labels, draw.randrange(7)) for _ in range(120)] for _ in range(2)]
    for named, expected in zip(*sets):  # chance alone would hardly agree
        named += [tag for tag in expected if draw.random() < 0.5 and tag not in named]
    scores = [scored(", ".join(named), ", ".join(expected), labels) for named, expected in zip(*sets)]
    value = sum(score.numerator for score in scores) / sum(score.denominator for score in scores)
    hot = [[[int(label in one) for label in labels] for one in rows] for rows in sets]
    assert value == pytest.approx(learn.f1_score(hot[1], hot[0], average="micro"), abs=1e-12) and 0.2 < value < 0.8
    # Of one item: the same, over its own tags.
    for score, named, expected in zip(scores, *hot):
        requested = learn.f1_score([expected], [named], average="micro", zero_division=1.0)
        assert score.value == pytest.approx(requested, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Hip-Hop, easy listening and Drum 'n' Bass.", ["drumnbass", "easylistening", "hiphop"]),
        ("pop rock", ["poprock"]),  # the longest
        ("pop, rock", ["pop", "rock"]),
        ("It is not rock but metal", ["metal"]),
        ("**Genre:** synthpop/new wave", ["newwave", "synthpop"]),
        ("popular music", []),
        ("[80s; 90s]\njazz\njazz", ["80s", "90s", "jazz"]),
        ("", []),
    ],
)
def test_tags_that_are_named(text, named):
    score = scored(text, "")
    assert score.detail["added"] == named and score.value == (0.0 if named else 1.0)


def test_no_vocals_is_a_tag_of_its_own():
    score = scored("No vocals, female-voice", "no vocals, vocals, no piano", TUNE)
    assert score.detail == {"right": ["no vocals"], "missed": ["vocals"], "added": ["female voice"]}
    assert (score.numerator, score.denominator, score.value) == (2, 4, 0.5)


def test_an_item_without_a_reference_has_no_value():
    score = load_answer_metric("tag_f1").compute([Answer("a", "rock", (), {"labels": LABELS})])[0]
    assert score.status == "undefined" and score.reason.as_dict() == {"code": "no_expected", "id": "a"}
