"""The metrics count as jiwer does, aggregate as their names say, and give a reason where there is no number."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import load_feature
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs, inputs_or_score
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.rules import HALLUCINATED, get_rule, rule_names

NAMES = ["wer[pocketsphinx]", "wer_macro[pocketsphinx]", "cer[pocketsphinx]"]
TEXT = [
    "Author of the danger trail, Philip Steels, etc.",
    "For the twentieth time that evening the two men shook hands.",
    "Will we ever forget it.",
    "He paid $20 in 1984.",
]
OUTPUT = [
    "author of the danger trail philips deals etc",
    "for the twentieth time that evening the two men shook hands",
    "",
    "he paid twenty dollars and more in nineteen eighty four",
]


def item(text, output, language=None, name="a"):
    return Inputs(
        name, 16_000, text=text, language=language, estimate_features={"pocketsphinx": {"transcript": output}}
    )


def scores_of(metric, batch):
    """Computes as the engine does: an item that cannot be measured is refused before the metric gets it."""
    ready = [
        inputs_or_score(
            metric, id=i.id, rate_hz=i.rate_hz, text=i.text, language=i.language,
            estimate_features=i.estimate_features, reference_features=i.reference_features,
        )
        for i in batch
    ]  # fmt: skip
    scores = iter(metric.compute([r for r in ready if isinstance(r, Inputs)]))
    return [next(scores) if isinstance(r, Inputs) else r for r in ready]


def by_jiwer(name, text, output):
    apply = get_normaliser("folded-en")
    process = jiwer.process_characters if name.startswith("cer") else jiwer.process_words
    return process(apply(text), apply(output))


@pytest.mark.compares("cer", "wer", "wer_macro", weights="none")
@pytest.mark.parametrize("name", NAMES)
def test_every_item_counts_as_jiwer(name):
    scores = build_metric(name).compute([item(s, h, "en") for s, h in zip(TEXT, OUTPUT)])
    for text, output, score in zip(TEXT, OUTPUT, scores):
        expected = by_jiwer(name, text, output)
        assert score.status == "ok"
        assert score.value == getattr(expected, "cer" if name.startswith("cer") else "wer")
        for count in ("hits", "substitutions", "deletions", "insertions"):
            assert score.detail[count] == getattr(expected, count)
        assert score.detail["reference"] == get_normaliser("whisper-en")(text).strip()
        assert score.detail["hypothesis"] == get_normaliser("whisper-en")(output).strip()
    assert scores[1].value == 0
    assert scores[2].value == 1


def ratio(scores):
    """The corpus value: the sum of the numerators over that of the denominators; None if the
    denominators add up to 0.
    """
    scored = [score for score in scores if score.status == "ok"]
    below = sum(score.denominator for score in scored)
    return sum(score.numerator for score in scored) / below if below else None


@pytest.mark.parametrize("name", ["wer[pocketsphinx]", "cer[pocketsphinx]"])
def test_a_corpus_is_errors_over_items(name):
    metric = build_metric(name)
    assert metric.aggregate == "ratio"
    apply = get_normaliser("folded-en")
    process = jiwer.process_characters if name.startswith("cer") else jiwer.process_words
    expected = process([apply(s) for s in TEXT], [apply(h) for h in OUTPUT])
    corpus = ratio(metric.compute([item(s, h) for s, h in zip(TEXT, OUTPUT)]))
    assert corpus == getattr(expected, "cer" if name.startswith("cer") else "wer")


def test_the_macro_mean_weighs_utterances_alike():
    metric = build_metric("wer_macro[pocketsphinx]")
    assert metric.aggregate == "mean"
    scores = metric.compute([item(s, h) for s, h in zip(TEXT, OUTPUT)])
    mean = ratio(scores)
    assert mean == pytest.approx(np.mean([by_jiwer("wer", s, h).wer for s, h in zip(TEXT, OUTPUT)]))
    corpus = ratio(build_metric("wer[pocketsphinx]").compute([item(s, h) for s, h in zip(TEXT, OUTPUT)]))
    assert mean != corpus


@pytest.mark.compares("wer_above_50", "wer_below_50", weights="none")
def test_items_above_50_percent_are_apart_and_counted():
    """Seed-tts-eval's convention: errors over words of the items at or below 50 %, and how many are above it."""
    text = ["a b c d", "e f g h", "i j k l", "m n", "o p q r"]
    output = ["a b c x", "e f y z", "i i i i i i", "", "o p q r"]
    rates = [jiwer.wer(s, h) for s, h in zip(text, output)]
    assert rates[1] == 0.5 and sum(rate > 0.5 for rate in rates) == 2
    batch = [item(s, h, "en") for s, h in zip(text, output)]
    below = build_metric("wer_below_50[pocketsphinx]@none").compute(batch)
    assert [score.status for score in below] == ["ok" if rate <= 0.5 else "undefined" for rate in rates]
    within = [n for n, rate in enumerate(rates) if rate <= 0.5]
    assert ratio(below) == jiwer.wer([text[n] for n in within], [output[n] for n in within])
    above = build_metric("wer_above_50[pocketsphinx]@none").compute(batch)
    assert [score.value for score in above] == [float(rate > 0.5) for rate in rates]
    assert [score.detail["rate"] for score in above] == rates


@pytest.mark.parametrize("name", NAMES)
def test_an_item_without_a_number_says_why_and_leaves_the_others_alone(name):
    metric = build_metric(name)
    good = item(TEXT[0], OUTPUT[0], "en-US")
    batch = [
        item(None, "words"),
        good,
        item("广州市房地产中介协会分析", "one", "zh"),
        item(TEXT[1], None),
        good,
    ]
    scores = scores_of(metric, batch)
    assert [s.status for s in scores] == ["refused", "ok", "refused", "failed", "ok"]
    assert [s.value for s in scores if s.status != "ok"] == [None] * 3
    assert scores[0].reason.code == "no_reference_text"
    assert "'zh'" in scores[2].reason
    assert scores[3].reason.as_dict() == {"code": "no_transcript", "name": "pocketsphinx"}
    assert scores[1] == scores[4] == metric.compute([good])[0]
    assert {s.protocol for s in scores} == {metric.protocol}


SILENCE = [("", "three more words"), ("[noise] uh", "hello there"), ("[music]", ""), ("", "um")]
"""References without a word, by the text or by the rule, and their transcripts: five words in all."""


@pytest.mark.parametrize("name", ["wer[pocketsphinx]", "cer[pocketsphinx]"])
def test_words_recognised_in_silence_are_errors_among_no_words(name):
    metric = build_metric(name)
    assert metric.protocol.endswith("/by-language")
    texts = [*zip(TEXT, OUTPUT), *SILENCE]
    scores = metric.compute([item(message, usable, "en") for message, usable in texts])
    apply = get_normaliser("folded-en")
    process = jiwer.process_characters if name.startswith("cer") else jiwer.process_words
    complete = process([apply(message) for message, _ in texts], [apply(usable) for _, usable in texts])
    assert ratio(scores) == getattr(complete, "cer" if name.startswith("cer") else "wer")
    silent = scores[len(TEXT) :]
    usable = [process(apply(message), apply(text)).insertions for message, text in SILENCE]
    assert [(s.status, s.value, s.numerator, s.denominator) for s in silent] == [("ok", n, n, 0) for n in usable]
    assert [s.detail.get("flag") for s in silent] == [HALLUCINATED, HALLUCINATED, None, None]
    assert not any("flag" in s.detail for s in scores[: len(TEXT)])
    assert ratio(silent) is None, "no rate over no words at all"
    # Nothing bounds the words that a transcript of silence may have, and an empty transcript would be the best one.
    assert metric.worst(text="[noise]", language="en") is None
    assert metric.worst(text=TEXT[0], language="en").value == 1


def test_a_mean_of_rates_leaves_out_an_item_that_has_no_rate():
    scores = build_metric("wer_macro[pocketsphinx]").compute([item(text, usable, "en") for text, usable in SILENCE])
    assert {(s.status, s.value) for s in scores} == {("undefined", None)}
    assert all(s.reason.code == "empty_reference" for s in scores)


@pytest.mark.parametrize("rule", [name for name in rule_names() if get_rule(name).empty_reference == "undefined"])
def test_by_every_other_rule_silence_has_no_value(rule):
    assert rule not in ("by-language", "mixed")
    (score,) = build_metric(f"wer[pocketsphinx]@{rule}").compute([item("", "two words", "en")])
    if rule.startswith("official/audiobench"):  # the source writes a word there
        assert (score.status, score.detail["reference"]) == ("ok", "empty")
    else:
        assert score.status == "undefined"
    assert score.protocol.endswith(f"/{get_rule(rule).name}")


@pytest.mark.compares("hallucinated", weights="none")
def test_the_share_of_silences_in_which_words_are_recognised():
    metric = build_metric("hallucinated[pocketsphinx]")
    assert (metric.aggregate, metric.higher_is_better, metric.range) == ("mean", False, (0.0, 1.0))
    scores = scores_of(
        metric, [item(text, output, "en") for text, output in [*SILENCE, (TEXT[0], ""), (None, "words")]]
    )
    assert [s.value for s in scores] == [1, 1, 0, 0, None, None]
    assert [s.status for s in scores[4:]] == ["refused", "refused"]
    assert [s.detail["insertions"] for s in scores[:4]] == [3, 2, 0, 0]
    assert not any("flag" in s.detail for s in scores), "the value says it"
    assert ratio(scores) == 0.5
    assert metric.worst(text="", language="en").value == 1
    assert metric.worst(text=TEXT[0], language="en") is None


@pytest.mark.compares("transcript", weights="none")
def test_a_transcript_is_the_recognisers_own():
    (result,) = build_metric("transcript[pocketsphinx]").compute([item("", "Red,  green!", "en")])
    assert (result.value, result.detail["transcript"]) == (2, "Red,  green!")


def test_what_the_same_recogniser_transcribes_of_nothing_counts_in_dwer():
    sides = [("", "red green"), ("red green blue", "red green"), ("", "")]
    batch = [
        Inputs(
            "a", 16_000, language="en", estimate_features={"pocketsphinx": {"transcript": output}},
            reference_features={"pocketsphinx": {"transcript": text}},
        )
        for text, output in sides
    ]  # fmt: skip
    scores = build_metric("dwer[pocketsphinx]").compute(batch)
    assert [(s.numerator, s.denominator) for s in scores] == [(2, 0), (1, 3), (0, 0)]
    expected = jiwer.process_words([text for text, _ in sides], [output for _, output in sides]).wer
    assert ratio(scores) == expected == 1


@pytest.mark.parametrize("language", [None, "en", "EN", "en-US", "en_GB", "eng", "English"])
def test_english_by_any_name_is_scored(language):
    assert build_metric(NAMES[0]).compute([item("one", "one", language)])[0].value == 0


def test_an_empty_batch_has_no_scores():
    assert build_metric(NAMES[0]).compute([]) == []


def test_names_and_protocols_state_what_was_measured():
    recogniser = load_feature("pocketsphinx").protocol
    for name in NAMES:
        metric = build_metric(name)
        assert metric.name == name
        assert metric.protocol == f"{name.split('[')[0]}/{recogniser}/{get_rule('by-language').name}"
        assert metric.estimate_features == ("pocketsphinx",)
        assert metric.reference_features == ()
        assert (metric.kind, metric.signals, metric.higher_is_better) == ("text", False, False)


@pytest.mark.parametrize("name", ["wer", "cer", "wer_macro"])
def test_a_bare_name_asks_for_a_recogniser(name):
    with refuses("recogniser_unnamed", metric=name):
        build_metric(name)
    with refuses("not_a_recogniser", hint="known recognisers:"):
        build_metric(f"{name}[ge2e]")
    with refuses("unknown_name", hint="pocketsphinx"):
        build_metric(f"{name}[pocketsphynx]")


def test_a_missing_recogniser_is_one_sentence(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", hint="embedded"):
        build_metric("wer[pocketsphinx]")


def test_a_recogniser_of_ones_own_is_one_file(tmp_path):
    actual = tmp_path / "asr.py"
    actual.write_text(
        "from codec_bench.features import Feature\n"
        "class Parrot(Feature):\n"
        "    name, protocol, rate_hz, where = 'parrot', 'parrot-1', 16000, 'cpu'\n"
        "    def compute(self, signals):\n"
        "        return [{'transcript': 'guten tag'} for _ in signals]\n"
    )
    name = f"wer[{actual}:Parrot]"
    metric = build_metric(name)
    assert (metric.name, metric.protocol) == (name, f"wer/parrot-1/{get_rule('by-language').name}")
    (feature,) = metric.estimate_features
    usable = load_feature(feature).compute([np.zeros(10, np.float32)])[0]
    inputs = Inputs("a", 16_000, text="Guten Abend", language="de", estimate_features={feature: usable})
    assert metric.compute([inputs])[0].value == 0.5


def test_speech_end_to_end(spoken):
    rows = [(row, audio) for row, audio in spoken if row.get("language") == "en" and audio.duration_s > 2][:3]
    usable = load_feature("pocketsphinx").compute([prepare(audio, 16_000) for _, audio in rows])
    batch = [item(row["text"], result["transcript"], row["language"]) for (row, _), result in zip(rows, usable)]
    apply = get_normaliser("whisper-en")
    expected = jiwer.wer([apply(i.text) for i in batch], [apply(r["transcript"]) for r in usable])
    assert ratio(build_metric("wer[pocketsphinx]").compute(batch)) == expected
    assert expected < 0.5


OWN_RECOGNISERS = """
from codec_bench.features import Feature

class German(Feature):
    name, protocol, rate_hz, where, languages = 'german', 'german-1', 16000, 'cpu', ('de',)
    def compute(self, signals):
        return [{'transcript': 'guten tag'} for _ in signals]

class Any(Feature):
    name, protocol, rate_hz, where, reads_language = 'any', 'any-1', 16000, 'cpu', True
    def compute(self, signals, languages=None):
        return [{'transcript': f'spoken in {language}'} for language in languages]
"""


@pytest.fixture
def custom_file(tmp_path):
    file = tmp_path / "asr.py"
    file.write_text(OWN_RECOGNISERS)
    return lambda name: f"{file}:{name}"


def test_a_choice_by_language_asks_the_language_s_recogniser(monkeypatch, custom_file):
    from codec_bench.features.recognisers import names

    choice = {"version": 1, "languages": {"de": custom_file("German")}, "otherwise": custom_file("Any")}
    read = names.read_config
    monkeypatch.setattr(names, "config_names", lambda kind: ["mixed"] if kind == "recogniser" else [])
    monkeypatch.setattr(
        names, "read_config", lambda kind, name, *a: choice if name == "mixed" else read(kind, name, *a)
    )
    metric = build_metric("wer[mixed]")
    assert metric.features_of("de-AT") == ((custom_file("German"),), ())
    assert metric.features_of("fr") == metric.features_of(None) == ((custom_file("Any"),), ())
    assert set(metric.estimate_features) == {custom_file("German"), custom_file("Any")}
    assert "german-1" in metric.protocol and "any-1" in metric.protocol
    german = Inputs(
        "a",
        16_000,
        text="Guten Tag",
        language="de",
        estimate_features={custom_file("German"): {"transcript": "guten tag"}},
    )
    french = Inputs(
        "b", 16_000, text="bonjour", language="fr", estimate_features={custom_file("Any"): {"transcript": "bonsoir"}}
    )
    assert [s.value for s in scores_of(metric, [german, french])] == [0, 1]


def test_the_recogniser_is_queried_only_for_its_languages(custom_file):
    metric = build_metric(f"wer[{custom_file('German')}]")
    assert metric.refusal(text="x", language="de") is None
    assert "'zh-CN'" in metric.refusal(text="x", language="zh-CN")


@pytest.mark.compares("dwer", weights="none")
def test_dwer_compares_with_the_transcript_of_the_reference(custom_file):
    metric = build_metric(f"dwer[{custom_file('German')}]")
    assert (metric.kind, metric.higher_is_better, metric.aggregate) == ("pair", False, "ratio")
    transcript = lambda text: {custom_file("German"): {"transcript": text}}  # noqa: E731
    items = [
        Inputs("a", 16_000, estimate_features=transcript("guten abend"), reference_features=transcript("Guten Tag!")),
        Inputs(
            "b",
            16_000,
            text="never read",
            estimate_features=transcript("eins zwei"),
            reference_features=transcript("eins zwei"),
        ),
        Inputs("c", 16_000, estimate_features=transcript("eins"), reference_features=transcript("")),
    ]
    scores = scores_of(metric, items)
    assert [(s.status, s.value, s.denominator) for s in scores] == [("ok", 0.5, 2), ("ok", 0.0, 2), ("ok", 1.0, 0)]


def test_a_recogniser_that_loops_is_a_failure_and_silence_is_flagged(custom_file):
    metric = build_metric(f"wer[{custom_file('German')}]")
    looped = {custom_file("German"): {"transcript": "ja ja ja", "fault": "no end within 448 tokens"}}
    silent = {custom_file("German"): {"transcript": "danke", "no_speech_prob": 0.9}}
    scores = scores_of(metric, [Inputs("a", 16_000, text="ja", estimate_features=f) for f in (looped, silent)])
    assert scores[0].status == "failed" and scores[0].reason.code == "recogniser_failed"
    assert (
        scores[1].status == "ok"
        and scores[1].detail["no_speech_prob"] == 0.9
        and "no speech" in scores[1].detail["flag"]
    )


def test_a_published_rule_counts_what_it_counts():
    metric = build_metric("wer_macro[pocketsphinx]@seed-tts")
    assert metric.protocol.endswith("/official/seed-tts-eval")
    # The published rule converts neither numbers nor contractions, so it compares the words as they are.
    text, output = "It's 5 o'clock.", "it's five o'clock"
    assert metric.compute([item(text, output, "en")])[0].value == 1 / 3
    assert build_metric("wer_macro[pocketsphinx]").compute([item(text, output, "en")])[0].value == 0
    with refuses("rule_counts_itself"):
        build_metric("cer[pocketsphinx]@seed-tts")
    with refuses("unknown_name", hint="by-language"):
        build_metric("wer[pocketsphinx]@by-langage")


def test_a_missing_package_is_reported_before_the_run(monkeypatch, custom_file):
    from codec_bench.text import rule

    metric = build_metric(f"wer[{custom_file('Any')}]")
    monkeypatch.setattr(rule, "_version", lambda package: "missing")
    assert metric.refusal(text="x", language="en") is None
    with refuses("package_not_installed"):
        metric.refusal(text="x", language="zh")


def test_a_rule_with_two_references_takes_the_better_one():
    from codec_bench.metrics.base import Inputs

    metric = build_metric("wer[pocketsphinx]@official/ultraeval-audio/long-tts")
    transcript = {"pocketsphinx": {"transcript": "doctor smith came"}}
    written = Inputs("a", 16000, text="Dr. Smith came", language="en", estimate_features=transcript)
    spoken = Inputs(
        "b", 16000, text="Dr. Smith came", spoken="doctor smith came", language="en", estimate_features=transcript
    )
    one, two = metric.compute([written, spoken])
    assert one.value == pytest.approx(1 / 3) and two.value == 0.0
    # Other rules use one reference, and a second one changes nothing.
    metric = build_metric("wer[pocketsphinx]@none")
    assert [score.value for score in metric.compute([written, spoken])] == [pytest.approx(2 / 3)] * 2
