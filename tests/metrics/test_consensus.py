"""What several recognisers give together is what jiwer's counts of each give by hand, and no item lacks one of them."""

from __future__ import annotations

from itertools import combinations

import jiwer
import pytest
from refusals import Containing, refuses

from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.base import Inputs, inputs_or_score

EARS = ("pocketsphinx", "parakeet-tdt-0.6b-v3", "whisper-large-v3@28s+bfloat16")
NAMED = "+".join(EARS)
TEXT = ["the cat sat on the mat", "nobody knows", "a b c d e f g h", "one more time"]
OUTPUT = [
    ("the cat sat on a mat", "the cat sat on the mat", "cat sat on the"),
    ("nobody knows", "nobody", "nobody nose it"),
    ("a b c d e f g", "a c d e f g h h", "b b c d e f g h"),
    ("", "", "one"),
]


def items(output=OUTPUT, message=TEXT, language="en"):
    return [
        Inputs(
            str(index), 16_000, text=text, language=language,
            estimate_features={name: {"transcript": one} for name, one in zip(EARS, row)},
        )
        for index, (text, row) in enumerate(zip(message, output))
    ]  # fmt: skip


def of_corpus(scores):
    return sum(score.numerator for score in scores) / sum(score.denominator for score in scores)


@pytest.mark.compares("wer_mean", "wer_smallest", "wer_between", weights="none")
def test_the_values_are_built_from_jiwers_counts():
    mean, smallest, between = (
        build_metric(f"{stem}[{NAMED}]@none").compute(items()) for stem in ("wer_mean", "wer_smallest", "wer_between")
    )
    for index, (text, output) in enumerate(zip(TEXT, OUTPUT)):
        rates = [jiwer.wer(text, one) for one in output]
        assert mean[index].value == pytest.approx(sum(rates) / 3)
        assert smallest[index].value == pytest.approx(min(rates))
        assert rates[EARS.index(smallest[index].detail["recogniser"])] == min(rates)
        assert list(smallest[index].detail["rates"].values()) == pytest.approx(rates)
        edits = lengths = 0.0
        for one, other in combinations(output, 2):
            aligned = jiwer.process_words(one or "*", other or "*")
            words = len(one.split()), len(other.split())
            edits += (
                aligned.substitutions + aligned.deletions + aligned.insertions
                if all(words)
                else abs(words[0] - words[1])
            )
            lengths += sum(words) / 2
        assert (between[index].numerator, between[index].denominator) == (edits, lengths)
        assert between[index].value == pytest.approx(edits / lengths)
    complete = [jiwer.wer(TEXT, [row[ear] for row in OUTPUT]) for ear in range(3)]
    assert of_corpus(mean) == pytest.approx(sum(complete) / 3), "the mean of the recognisers' own corpus rates"
    assert of_corpus(smallest) < min(complete)


def test_one_name_stands_for_each_recogniser_and_for_all_of_them():
    assert expand([f"wer[{NAMED}]@seed-tts"]) == [
        *(f"wer[{ear}]@seed-tts" for ear in EARS),
        *(f"{stem}[{NAMED}]@seed-tts" for stem in ("wer_mean", "wer_smallest", "wer_between")),
    ]
    assert len(expand(["wer[pocketsphinx]", "wer[pocketsphinx+whisper-tiny.en]"])) == 5, "measured once"
    assert expand(["wer[whisper-large-v3@28s+bfloat16]"]) == ["wer[whisper-large-v3@28s+bfloat16]"]
    metric = build_metric(f"wer_mean[{NAMED}]")
    assert metric.estimate_features == EARS
    assert metric.protocol == "wer_mean/" + "+".join(
        build_metric(f"wer[{ear}]").protocol.split("/", 1)[1].rpartition("/")[0] for ear in EARS
    ) + "/by-language"  # fmt: skip


def test_the_language_chooses_within_a_choice_and_each_recogniser_must_know_it():
    metric = build_metric("wer_mean[seed-tts+qwen3-asr-0.6b]")
    assert metric.features_of("zh")[0] == ("seaco-paraformer-zh", "qwen3-asr-0.6b")
    assert metric.features_of("en")[0] == ("whisper-large-v3", "qwen3-asr-0.6b")
    for stem in ("wer_mean", "wer_between"):
        refused = inputs_or_score(build_metric(f"{stem}[{NAMED}]"), id="a", rate_hz=16_000, text="a", language="de")
        assert refused.status == "refused" and refused.reason.as_dict() == {
            "code": "language_unknown_to_metric",
            "metric": "wer[pocketsphinx]",
            "languages": "en",
            "language": "de",
        }
    assert build_metric(f"wer_between[{NAMED}]").refusal(text=None, language="en") is None, "it needs no text"
    assert "no transcript" in build_metric(f"wer_mean[{NAMED}]").refusal(text=None, language="en")


@pytest.mark.parametrize("stem", ["wer_mean", "wer_smallest", "wer_between"])
def test_an_item_that_one_of_them_did_not_transcribe_has_no_value(stem):
    batch = items()
    batch[1].estimate_features[EARS[1]]["fault"] = "the text did not end"
    batch[2].estimate_features[EARS[2]].pop("transcript")
    scores = build_metric(f"{stem}[{NAMED}]").compute(batch)
    assert [score.status for score in scores] == ["ok", "failed", "failed", "ok"]
    assert scores[1].reason == f"{EARS[1]}: the text did not end" and EARS[2] in scores[2].reason


def test_words_in_silence_are_errors_and_where_nobody_recognises_a_word_there_is_no_disagreement():
    output = [("", "", ""), ("cat", "cat sat", "")]
    mean, between = (
        build_metric(f"{stem}[{NAMED}]").compute(items(output, ["", ""])) for stem in ("wer_mean", "wer_between")
    )
    assert [(score.numerator, score.denominator) for score in mean] == [(0, 0), (1, 0)]
    assert "flag" in mean[1].detail
    assert [score.status for score in between] == ["undefined", "ok"]
    assert between[1].value == pytest.approx((1 + 1 + 2) / (1.5 + 0.5 + 1))


def test_a_wrong_name_is_one_sentence():
    with refuses("one_recogniser_expected", metric="cer") as caught:
        expand(["cer[pocketsphinx+whisper-tiny]"])
    assert "wer[pocketsphinx+whisper-tiny]" in caught.value.hint
    with refuses("recogniser_named_twice", recogniser="pocketsphinx", variant=Containing("pocketsphinx")):
        expand(["wer[pocketsphinx+pocketsphinx]"])
    for name in ("wer_mean", "wer_between[pocketsphinx]"):
        with refuses("several_recognisers_expected"):
            build_metric(name)
    with refuses("unknown_name", name="wisper-tiny"):
        build_metric("wer_mean[pocketsphinx+wisper-tiny]")
    with refuses("not_a_recogniser"):
        build_metric("wer_mean[pocketsphinx+utmos]")
