"""Measures of captions and summaries against pycocoevalcap 1.2, rouge-score 0.1.2 and NLTK 3.10.

The numbers are what those packages gave for these captions, which are plain words, so that every tokeniser cuts them
alike; where a package is installed, random captions are compared too.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from codec_bench.benchmark.metrics import Answer, expand_answer_metrics, load_answer_metric
from codec_bench.benchmark.metrics.rouge import common_subsequence
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.corpus import FOLDS

CAPTIONS = [
    ("a dog barks loudly while rain falls on the roof",
     ["a dog is barking while rain falls", "rain falls on a roof and a dog barks", "heavy rain and a barking dog"]),
    ("a man speaks", ["a man is speaking to a crowd", "a man speaks and people clap"]),
    ("music plays softly in the background", ["soft music plays in the background"]),
    ("birds are singing in the trees near a river",
     ["birds sing near a river", "birds are singing in the trees near a river", "water flows while birds sing"]),
    ("engine noise", ["a car engine starts and then idles", "an engine is running"]),
    ("the the the the", ["the wind blows across the field"]),
]  # fmt: skip
CORPUS_BLEU = [0.6903016501901, 0.6098971322706399, 0.5540434799049037, 0.47361278539561086]
BLEU = {
    1: [0.7999999999200001, 0.3678794409261896, 0.8333333330555557, 0.9999999997777782, 0.1839397204017818,
        0.30326532970468434],
    4: [6.98534205574366e-05, 0.011633369375307054, 8.034284186199331e-05, 0.9999999997524806, 5.501080735107161e-08,
        1.8325568115857257e-12],
}  # fmt: skip
CIDER = [2.41695971, 2.67821675, 3.92997845, 4.24346699, 0.74500504, 0.42662324]
ROUGE_COCO = [0.60756972, 0.62886598, 0.83333333, 1.0, 0.31443299, 0.38607595]
ROUGE = [0.588235294117647, 0.6666666666666666, 0.8333333333333334, 1.0, 0.3333333333333333, 0.4]
METEOR = [
    0.7705479452054794,
    0.5165692007797271,
    0.8066666666666668,
    0.9993141289437586,
    0.13157894736842105,
    0.17241379310344826,
]
PRINTED = 5e-9  # half of the last digit that NumPy prints


def answers(captions=CAPTIONS):
    return [Answer(str(i), text, tuple(references)) for i, (text, references) in enumerate(captions)]


def values(metric, captions=CAPTIONS):
    return [score.value for score in load_answer_metric(metric).compute(answers(captions))]


def corpus(metric, captions=CAPTIONS):
    metric = load_answer_metric(metric)
    counts = np.sum([score.detail["counts"] for score in metric.compute(answers(captions))], axis=0)
    return float(FOLDS[metric.aggregate](counts))


def test_as_the_packages_gave():
    for order, expected in BLEU.items():
        assert values(f"coco_bleu[{order}]") == pytest.approx(expected, rel=1e-9)
    assert [corpus(f"coco_bleu[{order}]") for order in (1, 2, 3, 4)] == pytest.approx(CORPUS_BLEU, rel=1e-9)
    assert values("cider") == pytest.approx(CIDER, abs=PRINTED)
    assert values("rouge_l[coco]") == pytest.approx(ROUGE_COCO, abs=PRINTED)
    assert values("rouge_l") == pytest.approx(ROUGE, rel=1e-12)


def test_meteor_without_synonyms_is_nltks():
    pytest.importorskip("nltk")
    assert values("meteor[exact-stem]") == pytest.approx(METEOR, rel=1e-12)
    assert load_answer_metric("meteor[exact-stem]").protocol.startswith("meteor/exact-stem/nltk-")


def random_captions():
    draw = random.Random(5)
    words = "a man dog barks loudly while rain falls on the roof and wind blows softly".split()

    def text():
        return " ".join(draw.choices(words, k=draw.randint(1, 14)))

    several = [[text() for _ in range(draw.randint(1, 5))] for _ in range(100)]
    return [(draw.choice([*references, text()]), references) for references in several]


def test_random_captions_against_pycocoevalcap():
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu").Bleu
    cider = pytest.importorskip("pycocoevalcap.cider.cider").Cider
    rouge = pytest.importorskip("pycocoevalcap.rouge.rouge").Rouge
    captions = random_captions()
    expected = (
        {i: references for i, (_, references) in enumerate(captions)},
        {i: [s] for i, (s, _) in enumerate(captions)},
    )
    complete, items = bleu(4).compute_score(*expected, verbose=0)
    for order in (1, 2, 3, 4):
        assert values(f"coco_bleu[{order}]", captions) == pytest.approx(items[order - 1], rel=1e-9, abs=1e-12)
        assert corpus(f"coco_bleu[{order}]", captions) == pytest.approx(complete[order - 1], rel=1e-9)
    assert values("cider", captions) == pytest.approx(cider().compute_score(*expected)[1], rel=1e-9, abs=1e-12)
    assert values("rouge_l[coco]", captions) == pytest.approx(rouge().compute_score(*expected)[1], rel=1e-12)


def test_random_captions_against_rouge_score():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    captions = random_captions()
    expected = [scorer.score_multi(references, text)["rougeL"].fmeasure for text, references in captions]
    assert values("rouge_l", captions) == pytest.approx(expected, rel=1e-12)


def test_the_common_subsequence_by_dynamic_programming():
    draw = random.Random(7)
    for _ in range(300):
        one, other = (draw.choices("abcde", k=draw.randint(0, 12)) for _ in range(2))
        row = [0] * (len(other) + 1)
        for item in one:
            before = row[:]
            for at, expected in enumerate(other):
                row[at + 1] = before[at] + 1 if item == expected else max(row[at], before[at + 1])
        assert common_subsequence(one, other) == row[-1]


def test_cider_looks_at_the_whole_set():
    metric = load_answer_metric("cider")
    assert metric.whole_set
    alone = metric.compute(answers()[:1])[0].value
    assert alone == 0 != metric.compute(answers())[0].value  # in a set of one item, every n-gram occurs in every item
    assert metric.worst(answers()[0]).value == 0


@pytest.mark.parametrize("name", [*expand_answer_metrics(["captions"]), "rouge_l"])
def test_what_has_no_value(name):
    metric = load_answer_metric(name)
    none, empty = metric.compute([Answer("x", "a"), Answer("y", "", ("a dog barks",))])
    assert (none.status, bool(none.reason)) == ("undefined", True)
    assert empty.value == pytest.approx(0.0, abs=1e-12)


def test_chinese_captions_are_cut_into_characters():
    assert values("rouge_l", [("狗在叫", ["狗在大叫"])]) == pytest.approx([2 * 3 / 7])
    with pytest.raises(UnknownName):
        load_answer_metric("coco_bleu[5]")
