"""Rules obey the laws of error rates, and in each language the project's own rule counts real differences only."""

from __future__ import annotations

from importlib.util import find_spec

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.text import basic_steps, normalise, rules
from codec_bench.text.error_rate import ErrorRate, alignment, error_rate, error_rates, tokens
from codec_bench.text.language import script_language
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.rules import EMPTY_REFERENCE, Recipe, Rule, get_rule, rule_names, weighted_mean

# Not imported here: every process of tests collects this file, and would hold wetext's 36 MB for good.
MISSING = [name for name in ("wetext", "opencc", "sacrebleu", "pythainlp", "ipadic") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed")

LANGUAGES = ["en", "zh", "yue", "ja", "ko", "th", "de", "hi", "ar", "tr", "vi", None]
PIECES = (
    "the cat's 21 three % $5 [noise] (ah) 今天 我 買 3个 25％ 1/2 、 。 東京 タワー が か ガ 안녕 하세요 สวัสดี น้ำ नमस्ते दुनिया "
    "مُحَمَّد İstanbul ILIK tiếng Straße œuvre \u200d \ufe0f 😀 \ud800 \u3000 - ' ’ { } < > uh er 〇 幺 ½ ①"
).split(" ")
texts = st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join) | st.text(max_size=12)
pairs = st.lists(st.tuples(texts, texts, st.sampled_from(LANGUAGES)), max_size=5)


def compare(rule, some):
    return get_rule(rule).compare(
        reference=[r for r, _, _ in some], estimate=[e for _, e, _ in some], language=[w for _, _, w in some]
    )


def one(reference, estimate, language, rule="by-language", **options):
    (result,) = get_rule(rule).compare(reference=[reference], estimate=[estimate], language=[language], **options)
    return result


JOINS_WORDS = "open-asr/2026-06"


@pytest.mark.parametrize("name", rule_names())
@settings(max_examples=15, deadline=None)
@given(some=pairs)
def test_a_batch_is_its_pairs_in_any_order_and_counts_are_jiwers(name, some):
    batch = compare(name, some)
    assert batch == [compare(name, [pair])[0] for pair in some]
    assert batch[::-1] == compare(name, some[::-1])
    for result in batch:
        if result.note and result.note != EMPTY_REFERENCE:
            continue
        if result.unit == "char":
            expected = jiwer.process_characters(result.reference, result.estimate)
        else:
            words = result.unit == "word"
            sides = [text if words else " ".join(tokens(text, "mixed")) for text in (result.reference, result.estimate)]
            expected = jiwer.process_words(*sides)
        counted = result.counts
        theirs = ErrorRate(expected.hits, expected.substitutions, expected.deletions, expected.insertions)
        if JOINS_WORDS in name:  # aligned with words that one side writes apart as one; another of the shortest paths
            assert counted.errors <= theirs.errors and counted.reference_length == theirs.reference_length
        else:
            assert counted == theirs
        assert result.value == counted.rate
        assert (result.value is None) == (not tokens(result.reference, result.unit)) == bool(result.note)


@pytest.mark.parametrize("name", rule_names())
@settings(max_examples=25, deadline=None)
@given(text=texts, language=st.sampled_from(LANGUAGES))
def test_a_text_against_itself_has_no_error(name, text, language):
    recipe = get_rule(name).recipe(language, text)
    if recipe is None or recipe.estimate is not None:  # a published rule that treats the sides differently
        return
    assert one(text, text, language, name).value in (0.0, None)


@pytest.mark.parametrize("name", rule_names())
@settings(max_examples=15, deadline=None)
@given(some=pairs, cut=st.integers(0, 5))
def test_shares_add_up_to_the_corpus(name, some, cut):
    rule = get_rule(name)
    results = compare(name, some)
    above, below = (sum(rule.share(result)[role] for result in results) for role in (0, 1))
    complete = rule.corpus(results)
    assert complete is None if not below else complete == pytest.approx(above / below, rel=1e-12)
    assert rule.corpus(results[cut:] + results[:cut]) == complete
    if rule.aggregate == "ratio":
        counts = sum((result.counts for result in results), ErrorRate.zero())
        assert complete == counts.rate


# The same speech in another spelling: no error is counted.
SAME = [
    ("en", "Mr. Jones paid $20, didn't he?", "mister jones paid twenty dollars did not he"),
    ("zh", "会议在2023年5月12日举行，价格是58.5元。", "會議在二〇二三年五月十二日舉行價格是五十八點五元"),
    ("zh", "增长了25％，温度25℃，跑了3.5公里", "增长了百分之二十五 温度二十五摄氏度跑了三点五公里"),
    ("zh", "打电话到13812345678", "打电话到一三八一二三四五六七八"),
    ("zh", "下午3:30我用ＩＰＨＯＮＥ 15拍照", "下午三点三十分我用 iphone 十五 拍照"),
    ("zh", "他说“don’t worry”，然后走了", "他说 dont worry 然后走了"),
    ("zh", "共有1000人和12345", "共有一千人和一二三四五"),
    ("yue", "我哋聽日去食飯！", "我哋听日去食饭"),
    ("ja", "東京 タワー に １２行く。", "東京ﾀﾜｰに12行く"),
    ("ja", "ガラス", "カ\u3099ラス"),
    ("ko", "안녕 하세요!", "안녕하세요"),
    ("th", "นํ้า ๑๒ บาท", "น้ำ12บาท"),
    ("hi", "नमस्ते दुनिया, १२", "नमस्ते दुनिया 12"),
    ("vi", "tiếng Việt", "Tiếng Việt."),
    ("ar", "مُحَمَّد", "محمد"),
    ("he", "שָׁלוֹם", "שלום"),
    ("fa", "می\u200cخواهم", "میخواهم"),
    ("tr", "İstanbul ILIK", "istanbul ılık"),
    ("uk", "м’ята", "мʼята"),
    ("en", "hello 👩\u200d👩\u200d👧 world", "hello\ufeff world\u200b"),
    ("en", "co\u00adoperate now", "cooperate now"),
    ("de", "Die Straße [Lachen] ist größer ❤️", "die straße ist größer"),
    (None, "Привет, мир!", "привет мир"),
    (None, "东京的天气", "东京 的 天气。"),
]
# Different speech with a similar spelling, and the number of items that differ.
OTHER = [
    ("zh", "他买了3个苹果", "他买了四个苹果", 1),
    ("zh", "我用 iphone", "我用 android", 1),
    ("zh", "他負7分", "他7分", 1),
    ("zh", "编号007", "编号7", 2),
    ("ja", "ガラス", "カラス", 1),
    ("ko", "안녕하세요", "안영하세요", 1),
    ("th", "มา", "ม้า", 1),
    ("hi", "कि की", "की की", 1),
    ("ta", "வணக்கம்", "வணககம", 1),
    ("vi", "ma mà", "má mà", 1),
    ("fr", "le péché", "le pêche", 1),
    ("tr", "ılık", "ilik", 1),
]


@pytest.mark.parametrize(("language", "reference", "estimate"), SAME)
def test_the_same_speech_written_otherwise_is_no_error(language, reference, estimate):
    for a, b in ((reference, estimate), (estimate, reference)):
        result = one(a, b, language)
        assert (result.reference, result.value) == (result.estimate, 0.0)
        assert result.counts.hits
        # The same by characters: spaces cannot be heard, so they are not counted.
        assert one(a, b, language, unit="char").value == 0.0


@pytest.mark.parametrize(("language", "reference", "estimate", "errors"), OTHER)
def test_other_speech_is_an_error(language, reference, estimate, errors):
    assert one(reference, estimate, language).counts.errors == errors


def test_every_name_of_a_language_takes_its_rule():
    rule = get_rule("by-language")
    for names in (("zh", "zh-CN", "cmn", "Mandarin"), ("en", "en-US", "English"), ("ja", "jp"), ("ko", "kr")):
        assert len({rule.recipe(name) for name in names}) == 1
    assert [rule.rate(language) for language in ("en", "zh", "ko", "de")] == ["wer", "cer", "cer", "wer"]
    assert rule.protocol("de") == "by-language"
    assert rule.protocol("zh-TW").startswith("by-language-2+OpenCC-")


@pytest.mark.parametrize(
    ("text", "language"),
    [("hello there 你", "en"), ("你好world", "zh"), ("東京タワー", "ja"), ("안녕 hello", "ko"), ("น้ำ", "th"), ("Привет", "und"),
     ("नमस्ते", "und"), ("مرحبا", "ar"), ("", "en"), ("123", "en")],
)  # fmt: skip
def test_a_script_stands_for_a_language_where_none_is_named(text, language):
    assert script_language(text) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_reference_has_a_note_and_no_value(language):
    for name in rule_names():
        result = one("", "x", language, name)
        if name.startswith("official/audiobench"):  # the source writes a word there
            assert (result.reference, result.value) == ("empty", 1.0)
        else:
            assert result.value is None
            assert result.note


def test_a_unit_can_be_requested_of_own_rules_only():
    assert one("a bc", "a bd", "en", unit="char").counts == error_rate(
        reference="a bc", estimate="a bd", unit="char", normaliser="none"
    )
    with refuses("rule_unit", unit="word"):
        one("a", "a", "en", "seed-tts", unit="char")
    assert one("a", "a", "en", "seed-tts", unit="word").value == 0.0


def test_a_published_rule_says_which_languages_it_knows():
    assert get_rule("seed-tts").languages == ("en", "zh")
    result = one("das", "das", "de", "seed-tts")
    assert result.value is None
    assert result.note.as_dict() == {"code": "unknown_language", "languages": ["en", "zh"], "language": "de"}
    with refuses("rule_language", languages="en and zh"):
        get_rule("seed-tts").trace("das", "de")


def test_the_better_of_two_references_counts():
    rule = get_rule("official/ultraeval-audio/long-tts")
    near = one("21 cats", "twenty one cats", "en", rule.name, spoken=["a dog"])
    far = one("a dog", "twenty one cats", "en", rule.name, spoken=["21 cats"])
    assert (near.value, near.weight) == (far.value, far.weight) == (0.0, 3.0)
    assert one("a dog", "twenty one cats", "en", rule.name, spoken=[None]).value == 1.5
    assert one("a", "a", "en", rule.name, spoken=["!"]).value is None
    with refuses("rule_one_reference"):
        one("a", "a", "en", spoken=["a"])


def test_unequal_lengths_are_refused():
    with refuses("unequal_rule_inputs", references=2, estimates=1, languages=2):
        get_rule("none").compare(reference=["a", "b"], estimate=["a"], language=["en", "en"])


def test_names_are_known_and_near_ones_suggested():
    assert [get_rule(name).name for name in rule_names()] == rule_names()
    assert get_rule("seed-tts").name == "official/seed-tts-eval"
    with refuses("unknown_name", name="by-languages", hint="by-language"):
        get_rule("by-languages")


def test_a_text_that_a_step_cannot_take_is_noted(monkeypatch):
    def broken(text):
        if "boom" in text:
            raise ZeroDivisionError("at 3")
        return text

    monkeypatch.setitem(normalise._STEPS, "broken", lambda: broken)
    rule = Rule("mine", "", "", otherwise=Recipe(("broken",)))
    first, second = rule.compare(reference=["boom", "a b"], estimate=["boom", "a b"], language=["en", "en"])
    assert (first.value, first.note) == (None, "the text cannot be normalised: ZeroDivisionError: at 3")
    assert second.value == 0.0


def test_a_missing_package_is_named(monkeypatch):
    def absent(module):
        raise ImportError(module)

    monkeypatch.setattr(basic_steps, "import_module", absent)
    with refuses("package_not_installed", hint="codec-bench[text]"):
        basic_steps.STEPS["wetext-zh"]()


def test_weighted_means_leave_out_what_has_no_value():
    assert weighted_mean([0.1, None, 0.4], [3, 5, 1]) == pytest.approx(0.175)
    assert weighted_mean([0.1], [0]) is None
    assert weighted_mean([], []) is None


def test_a_trace_ends_with_what_is_compared():
    rule = get_rule("official/ultraeval-audio/wer")
    trace = rule.trace("他买了3个苹果。", "zh")
    assert [step for step, _ in trace] == list(rule.recipe("zh").reference)
    assert trace[-1][1] == one("他买了3个苹果。", "", "zh", rule.name).reference


MIXED = st.text(st.sampled_from("ab é \t\n\u3000你好𠮷カがｶー〇안1-\u0301"), max_size=16) | st.text(max_size=12)


@settings(max_examples=300, deadline=None)
@given(reference=MIXED, estimate=MIXED)
def test_mixed_counts_and_aligns_as_jiwer_with_spaces_between_items(reference, estimate):
    sides = [" ".join(tokens(text, "mixed")) for text in (reference, estimate)]
    expected = jiwer.process_words(*sides)
    ours = error_rate(reference=reference, estimate=estimate, unit="mixed", normaliser="none")
    assert ours == ErrorRate(expected.hits, expected.substitutions, expected.deletions, expected.insertions)
    runs = alignment(reference=reference, estimate=estimate, unit="mixed", normaliser="none")
    assert runs == [
        (c.type, c.ref_start_idx, c.ref_end_idx, c.hyp_start_idx, c.hyp_end_idx) for c in expected.alignments[0]
    ]
    assert "".join(tokens(reference, "mixed")) == "".join(reference.split())


def test_an_item_of_mixed_text_is_a_character_or_a_word():
    assert tokens("我今天很happy，因为 meeting\tcancelled了", "mixed") == [
        *"我今天很", "happy，", *"因为", "meeting", "cancelled", "了",
    ]  # fmt: skip
    assert error_rates(reference=["你好 world"], estimate=["你们 word"], unit="mixed", normaliser="none") == [
        ErrorRate(1, 2, 0, 0)
    ]


def test_rules_name_only_steps_that_exist():
    for rule in rules._rules().values():
        for recipe in filter(None, (*rule.recipes.values(), rule.otherwise)):
            for role in ("reference", "estimate"):
                assert all(get_normaliser(step)("a 1") is not None for step in recipe.steps(role))
