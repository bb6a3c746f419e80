"""Reasoning that stands in an answer is cut off, however a model or its server marks it; plain answers stay as they
are.
"""

from time import process_time

import pytest

from codec_bench.store.reasoning import cut_reasoning

HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"
FORMS = (
    "<think>{}</think>\n\n{}",
    "<think>\n{}\n</think>{}",
    "<THINK>{}</THINK>{}",
    "<thinking>{}</thinking>\n{}",
    "<thought>{}</thought>{}",
    "<think>{}</think>\n<answer>{}</answer>",
    "{}\n</think>\n\n{}",
    "[THINK]{}[/THINK]{}",
    "\u25c1think\u25b7{}\u25c1/think\u25b7{}",
    "<seed:think>{}</seed:think>{}",
    "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>{}<|end_of_solution|>",
    "<unused94>thought\n{}<unused95>{}",
    HARMONY,
    "<|start|>assistant" + HARMONY,
    HARMONY.replace("final<", "final <|constrain|>json<"),
    HARMONY.replace("<|message|>", "").replace("{}<|return|>", " {}").replace("analysis{}", "analysis {}"),
    "analysisWe think: {}assistantfinal{}",
    "<think>a <think>{}</think> b</think>{}",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("thoughts", "answer"),
    [("The answer is A.", "B"), ("第一个选项是A", "答案是B。"), ('{"content": "a"}', '{"content": "b"}')],
)
def test_reasoning_is_cut_and_stored(form, thoughts, answer):
    cut = cut_reasoning(form.format(thoughts, answer))
    assert cut.text == answer and thoughts in cut.reasoning and not cut.unfinished


@pytest.mark.parametrize(
    "text", ["<think>The answer is A", "<|channel|>analysis<|message|>It is A.", "[THINK]A or B", "analysisWe hear A.",
             "<think>a</think><think>The answer is A", "<|START_THINKING|>A"],
)  # fmt: skip
def test_an_answer_that_ends_inside_of_its_reasoning(text):
    cut = cut_reasoning(text)
    assert cut.unfinished and cut.text == "" and "A" in cut.reasoning


@pytest.mark.parametrize(
    "text", ["", "B", " B\n", "I think it is B.", "analysis of the sound: a dog", "<audio>", "a < b > c", "think",
             "Let me think about it", "thoughtful", "[thinking about it] hello", "the <b>bold</b> one"],
)  # fmt: skip
def test_an_answer_without_reasoning_stays_as_it_is(text):
    assert cut_reasoning(text) == (text, "", False)


def test_text_before_a_block_that_never_ends_is_the_answer():
    assert cut_reasoning("B\n<think>or rather A") == ("B", "or rather A", False)


@pytest.mark.parametrize(
    "segment", ["<think>", "</think>", "<|channel|>", "<|channel|>analysis<|message|>", "[THINK]", "x "]
)
def test_the_time_grows_with_the_length(segment):
    def cpu_s(count):
        began = process_time()
        cut_reasoning("<think>" + segment * count)
        return process_time() - began

    short, long = (min(cpu_s(count) for _ in range(3)) for count in (10_000, 40_000))
    assert long < 10 * short + 0.01
