"""Tags in texts that are to be spoken: what is one, and what rules make of them."""

from __future__ import annotations

import time

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.text.rules import get_rule
from codec_bench.text.tags import REMOVED, TAG_NOTE, without_tags


@pytest.mark.parametrize(
    ("text", "bare", "count"),
    [
        ("[laughs] I know. [sighs deeply]", "I know.", 2),
        ("<emotion=happy>Hello</emotion> there", "Hello there", 2),
        ("<speak>Wait <break time='500ms'/> now</speak>", "Wait now", 3),
        ("Well (sighs) yes (clears throat)", "Well yes", 2),
        ("<|endofprompt|>Hi", "Hi", 1),
        ("[笑声]你好", "你好", 1),
        ("(叹气) 好", "好", 1),
        ("the second one (see page 3) and (Paris)", "the second one (see page 3) and (Paris)", 0),
        ("a < b and c > d", "a < b and c > d", 0),
        ("[1] and [ ] and <> and (…)", "[1] and [ ] and <> and (…)", 0),
        ("an open [bracket and a closed> one", "an open [bracket and a closed> one", 0),
        ("", "", 0),
    ],
)  # fmt: skip
def test_what_is_a_tag(text, bare, count):
    assert without_tags(text) == (bare, count)
    assert without_tags(bare)[1] == 0


def scored(rule, reference, text):
    return load_answer_metric(f"wer[answer]@{rule}").compute([Answer("1", text, (reference,), {}, "en")])[0]


def test_a_published_rule_takes_a_tag_for_words_and_says_so():
    retained = scored("seed-tts", "[laughs] well then", "well then")
    assert (
        retained.value == pytest.approx(1 / 3)
        and retained.detail["flag"] == TAG_NOTE
        and retained.detail["tags"] == 1
        and retained.detail["flag_from"] == 0.01
    )
    bare = scored("untagged/seed-tts", "[laughs] well then", "well then")
    assert bare.value == 0 and bare.detail["flag"] == REMOVED and bare.detail["tags"] == 1
    assert bare.protocol == "wer/answer/untagged/official/seed-tts-eval" != retained.protocol


def test_tags_of_the_transcript_go_too_and_a_text_without_tags_is_compared_as_before():
    assert scored("untagged/seed-tts", "well then", "[music] well then").value == 0
    for text in ("well then", "well, [x] now"):
        plain, untagged = scored("seed-tts", "well then now", text), scored("untagged/seed-tts", "well then now", text)
        assert "flag" not in plain.detail and "flag" not in untagged.detail
    assert scored("untagged/none", "a b c", "a c").value == scored("none", "a b c", "a c").value


@pytest.mark.parametrize("rule", ["by-language", "whisper-en"])
def test_a_rule_that_drops_what_is_in_brackets_says_nothing(rule):
    score = scored(rule, "[laughs] well then", "well then")
    assert score.value == 0 and "flag" not in score.detail


def test_a_rule_that_there_is_not_has_no_untagged_form():

    with refuses("unknown_name", name="seed-tsts"):
        get_rule("untagged/seed-tsts")


def test_brackets_alone_take_no_time():
    start = time.process_time()
    for sign in "[<(":
        assert without_tags((sign + "a ") * 20_000)[1] == 0
    assert time.process_time() - start < 2
