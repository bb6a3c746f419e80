"""Parts of an answer are read by its form. Parts that are missing are not invented."""

from __future__ import annotations

import pytest

from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps
from codec_bench.benchmark.reading.base import FORMAT_IGNORED, REFUSAL


def read(name, text):
    result = load_steps([name])(text, {})
    return result.text if isinstance(result, Parsed) else None


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ('{"content": "x"}', "x"), ('```json\n{"content": "raw\nline"}\n```', "raw\nline"),
        ('Here: {"content": "in"} there', "in"),
        ('<think>{"x": 1}</think>{"content": "中"}', "中"), ('{"content": 3.50}', "3.5"),
        ('{"content": true}', "true"), ('{"content": ""}', ""),
        ('{"content": "a"} {"content": "a"}', "a"), ('```json\n{"content": "no closing fence"}', "no closing fence"),
        ('{"content": "a"} {"content": "b"}', None), ('{"content": null}', None), ('{"content": ["a"]}', None),
        ('{"text": "a"}', "a"), ('{"text": "a", "language": "en"}', None), ("plain", "plain"), ("", None),
        ('{"content": "unterminated', None), ("{'content': 'python'}", None),
        ('["content"]', None),
    ],
)  # fmt: skip
def test_a_json_field(answer, content):
    assert read("json-field[content]", answer) == content


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        ("<think>a\nb</think> **B**", "B"), ("thought</think>yes", "yes"), ("<|en|>hello<|end|>", "hello"),
        ("# Title\n> said `x`", "Title\nsaid x"),
        ("```json\n{}\n```", "{}"), ("2*3 = 6, 2 * 3, snake_case, *it*, __b__", "2*3 = 6, 2 * 3, snake_case, it, b"),
        ("<think><think>a</think>b</think>c", "c"), ("a<think>b</think>c", "ac"), ("<think>never ends", None),
        ("<think>x</think>", None), ("", None),
    ],
)  # fmt: skip
def test_tags(answer, rest):
    assert read("strip-tags", answer) == rest


@pytest.mark.parametrize(
    ("name", "answer", "rest"),
    [
        ("after[Answer:]", "x answer: A\nANSWER: B", "B"), ("after[Answer:]", "A", None),
        ("after[Answer:]", "Answer: ", None),
        ("after[ ]]", "a ] b", "b"), ("after[.*]", "a.*b", "b"), ("before[because]", "B Because it is", "B"),
        ("before[because]", "B", "B"),
        ("before[because]", "because", None), ("first-line", "\n\n  a \nb", "a"), ("first-line", " \n", None),
    ],
)  # fmt: skip
def test_lines_and_markers(name, answer, rest):
    assert read(name, answer) == rest


def test_a_reason_quotes_the_shortened_answer():
    result = load_steps(["json-field[content]"])('{"x": ["' + "long " * 10_000, {})
    assert (
        isinstance(result, Unparsed)
        and result.reason.as_dict()
        == {
            "code": "no_json_field",
            "name": "content",
            "answer": '\'{"x": ["long long long long long long lo ...  long long long long long long long long\'',
        }
        and len(result.reason) < 200
    )


BARE = 'well, I said: "no", and left'


@pytest.mark.parametrize(
    "answer",
    [
        "{}", "  {}\n", '"{}"', "\u201c{}\u201d", "```\n{}\n```", "```text\n{}\n```", "Transcription: {}",
        "**Transcription:** {}",
        "Transcript: {}", 'The transcription is: "{}"', "Here is the transcription: {}",
        "Here's the transcript of the audio:\n\n{}",
        "Here is the translation in English: {}", "Sure! Here is the transcript:\n{}", "<|en|>{}", "[en] {}",
        "[English] {}",
        "<|startoftranscript|><|en|><|transcribe|>{}<|endoftext|>", "language English<asr_text>{}",
        "<transcript>{}</transcript>",
        "<answer>{}</answer>", "\u8f6c\u5199\uff1a{}", "\u8bc6\u522b\u7ed3\u679c\uff1a{}",
        "\u97f3\u9891\u7684\u8f6c\u5f55\u5185\u5bb9\u5982\u4e0b\uff1a{}", "\u8bd1\u6587\uff1a{}", "Translation: {}",
        "\u00dcbersetzung: {}",
        "\u300c{}\u300d", "**{}**", "The speaker says: {}", '```\nTranscription: "{}"\n```', "<think>{{}}</think>{}",
    ],
)  # fmt: skip
def test_a_plain_transcript_where_json_was_requested(answer):
    """A perfect transcript is one, however it is announced, and it is noted that the format was ignored."""
    for text in ("the cat sat on the mat", "\u5c0f\u7537\u5b69\u4eca\u5929\u53bb\u4e86\u5b66\u6821", "It is ten: go"):
        assert load_steps(["json-field[content]"])(answer.format(text), {}) == Parsed(text, FORMAT_IGNORED)


@pytest.mark.parametrize(
    "message", [BARE, "he said: hello", '"a" and "b"', "text", "the transcript", "[laughs] so", "no, really"]
)
def test_spoken_words_stay(message):
    assert load_steps(["json-field[content]"])(message, {}) == Parsed(message, FORMAT_IGNORED)


@pytest.mark.parametrize(
    "answer", ["I'm sorry, but there is no audio attached.", "I can't listen to audio files.", "没有收到音频。"]
)
def test_a_refusal_is_no_transcript(answer):
    read = load_steps(["json-field[content]"])(answer, {})
    assert isinstance(read, Unparsed) and read.code == REFUSAL


def test_the_format_stays_strict_under_a_published_rule():
    steps = ["official/ultraeval-audio/json-content"]
    assert load_steps(steps)("Transcription: hello", {}).text == "Transcription: hello"
