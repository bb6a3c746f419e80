"""Steps by name, in a chain; hostile answers take milliseconds and do no harm."""

from __future__ import annotations

import pytest
from reading_time import fill, is_proportional
from refusals import refuses

from codec_bench.benchmark.reading import Chain, Parsed, Unparsed, load_steps, step_names, steps_on, version_steps
from codec_bench.benchmark.reading.base import FORMAT_IGNORED
from codec_bench.messages.errors import UnknownName

ARGUMENTS = {"after": "[x]", "before": "[x]", "json-field": "[content]", "label": "[happy,sad,a]"}
FIELDS = {"choices": ["Acoustic guitar", "Bass drum", "Cello", "None"], "labels": ["happy", "sad"]}
# Each begins a structure that it never closes, on which a regular expression or parser could take very long.
HOSTILE = [
    "{", '{"a":', '{"content":"', "[", "<think>", "</think>", "<|", "|>", "```\n", "`", "*a ", "* ", "_", "__a",
    "#", "> \n", '"', "“", "'", "\\boxed{",
    "答案是", "答案选项", "the correct answer is", "answer is ", "(A", "A ", "A, not ", "not ", "option ", "no ", "是",
    "不", "1,", "1.", "9", "1/", ".1", "e1", "-1",
    " ", "\n", "\t ", "a", "\\", "$", "\u0301", "\ud800", "\x00", "happy ", '{"content": -', "((((", "\u3000", "İ",
]  # fmt: skip


def test_a_chain_goes_from_step_to_step_and_ends_at_the_first_that_reads_nothing():
    chain = load_steps(["json-field[content]", "strip-tags", "option-letter"])
    assert chain('```json\n{"content": "<think>A?</think>The answer is **B**"}\n```', {}) == Parsed("B")
    stopped = chain('{"x": 1, "y": "B"}', {})
    assert isinstance(stopped, Unparsed) and "'content'" in stopped.reason and '"B"' in stopped.reason
    assert chain("B", {}) == Parsed("B", FORMAT_IGNORED)
    assert load_steps([])(" as it is ", {}) == Parsed(" as it is ")


def test_a_choice_of_recognisers_may_be_another_one_on_a_gpu():
    steps = ["transcript[ultraeval-audio]", "first-line"]
    assert steps_on(steps, gpu=True) == ["transcript[whisper-large-v3@float16]", "first-line"]
    assert steps_on(steps, gpu=False) == ["transcript[whisper-large-v3]", "first-line"]
    for same in (["transcript[pocketsphinx]", "after[transcript[x]]"], ["transcript[seed-tts]"], []):
        assert steps_on(same, gpu=True) == same


def test_the_transcript_comes_first_and_is_left_to_who_runs_it():
    chain = load_steps(["transcript[whisper-large-v3@28s]", "first-line"])
    assert (chain.recogniser, len(chain.steps)) == ("whisper-large-v3@28s", 1)
    assert isinstance(chain, Chain) and chain("a\nb", {}) == Parsed("a")
    with refuses("step_order", names="first-line"):
        load_steps(["first-line", "transcript[x]"])
    with refuses("step_without_recogniser"):
        load_steps(["transcript"])


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["option-leter"], {"code": "unknown_name", "name": "option-leter", "hint": "option-letter"}),
        (["json-field"], {"code": "step_needs_argument", "name": "json-field"}),
        (["yes-no[x]"], {"code": "step_without_argument", "name": "yes-no", "argument": "x"}),
        (["after[x"], {"code": "not_a_step", "text": "after[x"}),
        ("yes-no", {"code": "steps_not_a_list", "names": "yes-no"}),
        (["official/ultraeval-audio/qwen-asr[fr]"], {"code": "step_language", "language": "fr"}),
    ],
)  # fmt: skip
def test_a_wrong_name_says_what_to_do(names, says):
    with refuses(**says):
        load_steps(names)


def test_an_unknown_step_is_an_unknown_name():
    with pytest.raises(UnknownName):
        load_steps(["nothing"])


@pytest.mark.parametrize("name", [name for name in step_names() if name != "transcript"])
def test_hostile_answers_take_time_in_proportion_to_their_length(name):
    chain = load_steps([name + ARGUMENTS.get(name, "")])
    chain("warm", FIELDS)
    for segment in HOSTILE:

        def read(length, segment=segment):
            assert isinstance(chain(fill(segment, length), FIELDS), (Parsed, Unparsed))

        assert is_proportional(read), segment


def test_a_changed_reading_of_decisions_is_another_protocol():
    assert version_steps(["strip-tags", "label[a,b]", "official/rul-muchomusic"]) == [
        "strip-tags",
        "label[a,b]/3",
        "official/rul-muchomusic",
    ]
