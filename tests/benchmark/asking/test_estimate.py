"""The estimated cost of a run's questions, as a sentence."""

import pytest

from codec_bench.benchmark.asking.estimate import CostEstimate

SOUND = "how many tokens a second of sound is"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((640, 20, 9.0, 0.001, 0.002, (), "of 2026-11-22"),
            "640 questions with 1.6 h of sound will cost 0.64 to 1.3 USD by the prices of 2026-11-22, if all are like "
            "the first 20"),
        ((3000, 20, 9.0, 0.001, 0.002, (), "in its configuration", 30),
            "3,000 questions with 7.5 h of sound and 30 repeated will cost 3 to 6.1 USD by the prices in its "
            "configuration, if all are like the first 20"),
        ((1, 1, 9.0, 0.001, 0.002, (), "in its configuration"),
            "1 question with 9 s of sound will cost 0.001 to 0.002 USD by the prices in its configuration"),
        ((None, 20, 1.8, 0.001, 0.002, (), "in its configuration"),
            "it is not known how many questions there are; 1,000 of them, with 30 min of sound, will cost 1 to 2 USD "
            "by the prices in its configuration, if all are like the first 20"),
        ((8, 8, 1.0, 0.25, None, ("how long answers are",), "in its configuration"),
            "8 questions with 8 s of sound will cost at least 2 USD by the prices in its configuration; not known: how "
            "long answers are"),
        ((8, 8, 1.0, 0.0, None, (SOUND, "how long answers are"), "in its configuration"),
            f"the cost of 8 questions with 8 s of sound is unknown without {SOUND} and how long answers are"),
        ((None, 20, 1.0, 0.0, None, (SOUND,), "in its configuration"),
            f"the cost of the questions is unknown without {SOUND}"),
    ],
)  # fmt: skip
def test_an_estimate_is_one_sentence(options, words):
    assert CostEstimate(*options).words == words
