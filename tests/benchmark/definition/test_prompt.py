"""Prompts: the lookup, what templates may do, and data that is hostile."""

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.prompt import (
    LIMIT,
    Prompt,
    choose,
    load_prompt,
    prompt_names,
    render_text,
    variables,
)
from codec_bench.benchmark.definition.schema import Template
from codec_bench.messages.errors import UserError
from codec_bench.models.base import ModelInfo
from codec_bench.types import Audio

CLIP = Clip(Audio(np.zeros(160, np.float32), 16_000))


def template(text, **more):
    return Template.model_validate({"messages": [{"content": [{"audio": "audio"}, text]}], **more})


def info(name="someone", family=None, reads="messages"):
    return ModelInfo(name, family=family, reads=reads)


def question(**fields):
    return Question("q1", {"audio": CLIP, **fields}, audio=CLIP, language="de")


def test_a_request_has_the_parts_in_order():
    request = Prompt("p", template("What is {{ thing }}?"), "messages", "audio", {"max_tokens": 5}).render(
        question(thing="that")
    )
    assert (request.id, request.wants, request.parameters) == ("q1", "audio", {"max_tokens": 5})
    assert request.messages[0].content == (CLIP, "What is that?")


def test_the_lookup_goes_from_the_model_to_the_default():
    actual = {"my_model": template("model"), "Fam": template("family")}
    text = lambda prompt: prompt.template.messages[0].content[1].text  # noqa: E731
    assert text(choose(template("benchmark"), actual, info("My-Model", "fam"))) == "model"
    assert text(choose(template("benchmark"), actual, info("another", "fam"))) == "family"
    assert text(choose(template("benchmark"), actual, info("another", "other"))) == "benchmark"


def test_a_prompt_has_variants_by_model_and_family():
    assert choose("transcribe", {}, info("x", "Qwen3_Omni")).name == "transcribe/qwen3-omni"
    assert choose("transcribe", {}, info("kimi-audio", "qwen3-omni")).name == "transcribe/kimi-audio"
    assert choose("transcribe", {}, info("x")).name == "transcribe"
    # A variant that has only messages does not apply to a model that reads fields.
    assert choose("transcribe", {}, info("x", "qwen3-omni", "fields")).name == "transcribe"
    assert choose("voice-clone", {}, info("x", "cosyvoice3", "fields")).name == "voice-clone/cosyvoice3"
    # The benchmark's prompt for the family comes before the prompt's own variant for the model.
    assert choose("transcribe", {"fam": "translate"}, info("kimi-audio", "fam")).name == "translate"


def test_the_format_that_is_requested_is_undone_for_models_prompted_in_words():
    assert choose("transcribe", {}, info()).process == ("json-field[content]",)
    assert choose("transcribe", {}, info("x", "qwen3-omni")).process == ()
    assert choose("transcribe", {}, info(reads="fields")).process == ()


def test_the_identity_changes_with_the_template_alone():
    first, second = (Prompt("p", template(text), "messages").identity for text in ("one", "two"))
    assert first != second and first == Prompt("p", template("one"), "messages").identity


def test_parts_are_omitted_where_there_is_nothing():
    spec = load_prompt("voice-clone")
    prompt = Prompt("p", spec, "fields")
    assert "prompt_text" in prompt.render(question(text="hallo", prompt_text="wie geht es")).fields
    assert "prompt_text" not in prompt.render(question(text="hallo")).fields
    assert "prompt_text" not in prompt.required_columns and {"text", "audio"} <= prompt.required_columns


def test_an_unknown_prompt_suggests_and_a_missing_side_says_so():
    with refuses("unknown_name", hint="transcribe"):
        choose("trancribe", {}, info())
    with refuses("prompt_lacks_part", reads="fields"):
        choose("caption", {}, info(reads="fields"))


@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        ("{{ missing }}", {"there": 1}, {"code": "prompt_not_rendered", "cause": "'missing' is undefined"}),
        ("{{ empty }}", {"empty": None}, {"code": "prompt_not_rendered", "cause": Containing("null")}),
        ("{{ choices[9] }}", {"choices": ["a"]}, {"code": "prompt_not_rendered"}),
        (
            "{{ a | join(', ') }}",
            {"a": "woman, man"},
            {"code": "prompt_not_rendered", "cause": "'join' got the text 'woman, man'; expected a list"},
        ),
    ],
)
def test_what_is_not_there_is_an_error(text, values, says):
    with refuses(**says):
        render_text(text, values, "the prompt")


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ x.__class__.__mro__ }}",
        "{{ x['__class__'] }}",
        "{{ x | attr('__class__') }}",
    ],
)
def test_a_template_reaches_no_insides(text):
    with pytest.raises(UserError):
        rendered = render_text(text, {"x": "data"}, "the prompt")
        assert "class" not in rendered  # an undefined attribute may not be inserted either


@pytest.mark.parametrize(
    "text",
    [
        "{{ range(9) }}",
        "{{ x.upper() }}",
        "{{ x * 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{% set y = x %}",
        "{% macro m() %}{% endmacro %}",
        "{% include 'secret' %}",
        "{% import 'os' as os %}",
        "{% for a in x %}{% for b in x %}{{ b }}{% endfor %}{% endfor %}",
        "{{ x | center(1000000000) }}",
        "{{ x",
    ],
)
def test_a_template_inserts_chooses_and_loops_once_and_nothing_else(text):
    with pytest.raises(UserError):
        variables(text)


def test_data_is_never_read_as_a_template():
    hostile = "{{ 7 * 7 }}{% for i in range(10) %}x{% endfor %}{# gone #}"
    assert render_text("Say: {{ text }}", {"text": hostile}, "the prompt") == f"Say: {hostile}"
    # HTML is not escaped either.
    assert render_text("{{ text }} {{ text | tojson }}", {"text": "<é>'"}, "p") == "<é>' \"<é>'\""


def test_what_a_template_renders_is_bounded():
    with refuses("prompt_too_long"):
        render_text("{% for letter in text %}{{ text }}{% endfor %}", {"text": "x" * 50_000}, "the prompt")
    assert len(render_text("{{ text }}", {"text": "y" * LIMIT}, "the prompt")) == LIMIT
    with refuses("prompt_too_long"):
        render_text("{{ text }}", {"text": "y" * (LIMIT + 1)}, "the prompt")


def test_a_sound_is_no_text():
    with refuses("prompt_not_rendered", cause="'audio' is undefined"):
        Prompt("p", template("{{ audio }}"), "messages").render(question())
    with refuses("prompt_needs_sound", sound="voice"):
        Prompt("p", Template.model_validate({"fields": {"a": {"audio": "voice"}}}), "fields").render(question())


# --- several wordings


def prompts_of(*wordings):
    return Template.model_validate({"messages": [{"content": [{"audio": "audio"}, {"wordings": list(wordings)}]}]})


def render_questions(prompt, ids):
    return [prompt.render(Question(id, {"audio": CLIP}, audio=CLIP)).messages[0].content[1] for id in ids]


def test_seed_and_id_choose_the_wording_and_nothing_else_does():
    ids = [f"q{number}" for number in range(400)]
    wordings = [f"wording {number}" for number in range(20)]
    drawn = render_questions(Prompt("p", prompts_of(*wordings), "messages", seed=1), ids)
    assert drawn == render_questions(Prompt("p", prompts_of(*wordings), "messages", seed=1), ids)
    assert render_questions(Prompt("p", prompts_of(*wordings), "messages", seed=1), reversed(ids)) == drawn[::-1]
    assert drawn != render_questions(Prompt("p", prompts_of(*wordings), "messages", seed=2), ids)
    counts = [drawn.count(wording) for wording in wordings]
    # The chi-square statistic of 400 draws from 20 with equal chances exceeds 45.3 once in 1,600.
    assert sum((count - 20) ** 2 / 20 for count in counts) < 45.3


def test_one_wording_can_be_requested_by_its_number():
    prompt = Prompt("p", prompts_of("a", "b"), "messages", wording="2")
    assert render_questions(prompt, ["x", "y"]) == ["b", "b"]
    assert prompt.wording_of(question()) == 2 and prompt.wordings == 2
    assert prompt.identity != Prompt("p", prompts_of("a", "b"), "messages").identity
    assert render_questions(Prompt("p", prompts_of("a", "b"), "messages", wording="first"), ["x", "y"]) == ["a", "a"]
    with refuses("no_wording", wording="3"):
        Prompt("p", prompts_of("a", "b"), "messages", wording="3")
    for wrong in ("0", "b", "-1", ""):
        with refuses("wording_form", seeded="seeded", first="first", each="each"):
            Prompt("p", prompts_of("a", "b"), "messages", wording=wrong)


def test_a_prompt_without_wordings_is_sent_as_before():
    prompt = Prompt("p", template("one"), "messages", seed=7)
    assert prompt.wordings == 0 and prompt.wording_of(question()) is None
    assert prompt.identity == {
        "name": "p",
        "messages": [{"role": "user", "content": [{"audio": "audio"}, {"text": "one"}]}],
    }


def test_a_wording_reads_columns_and_may_not_do_more_than_a_text():
    prompt = Prompt("p", prompts_of("Is it {{ labels | join(' or ') }}?", "{{ other }}"), "messages")
    assert prompt.columns == prompt.required_columns == {"audio", "labels", "other"}
    with refuses("template_forbidden"):
        Prompt("p", prompts_of("fine", "{{ labels.append(1) }}"), "messages")


@pytest.mark.parametrize(
    "content",
    [
        [{"wordings": ["one"]}],
        [{"wordings": ["one", "one"]}],
        [{"wordings": ["one", "two"], "text": "three"}],
        [{"wordings": ["one", "two"]}, {"wordings": ["three", "four"]}],
    ],
)
def test_wordings_that_are_no_choice_are_refused(content):
    with pytest.raises(ValueError, match=r"at least 2|the same|expected one"):
        Template.model_validate({"messages": [{"content": content}]})


@pytest.mark.parametrize("name", [name for name in prompt_names() if name.startswith("reworded-")])
def test_every_prompt_of_many_wordings_has_twenty_that_differ_in_more_than_punctuation(name):
    wordings = load_prompt(name).wordings
    letters = ["".join(c for c in wording.lower() if c.isalnum()) for wording in wordings]
    assert len(set(letters)) == len(wordings) >= 20
    listed = [("labels" in wording) for wording in wordings]
    assert all(listed) or not any(listed)  # where there are labels, every wording names them
    if name.startswith("reworded-choice"):
        assert all("{{ question }}" in wording and "{{ choices }}" in wording for wording in wordings)
    assert name.endswith("-zh") == all(any("\u4e00" <= c <= "\u9fff" for c in wording) for wording in wordings)


@pytest.mark.parametrize("text", ["{{ " + "[" * 20_000, "{{ " + "9" * 5_000 + " }}", "{{ " + "not " * 20_000 + "x }}"])
def test_a_template_that_its_parser_cannot_take_is_one_sentence(text):
    with refuses("not_a_template"):
        variables(text)
