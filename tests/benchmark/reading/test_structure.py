"""Parts of an answer are read by its form. Parts that are missing are not invented."""

from __future__ import annotations

import pytest

from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps


def read(name, text):
    found = load_steps([name])(text, {})
    return found.text if isinstance(found, Parsed) else None


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ('{"content": "x"}', "x"), ('```json\n{"content": "raw\nline"}\n```', "raw\nline"),
        ('Here: {"content": "in"} there', "in"),
        ('<think>{"x": 1}</think>{"content": "中"}', "中"), ('{"content": 3.50}', "3.5"),
        ('{"content": true}', "true"), ('{"content": ""}', ""),
        ('{"content": "a"} {"content": "a"}', "a"), ('```json\n{"content": "no closing fence"}', "no closing fence"),
        ('{"content": "a"} {"content": "b"}', None), ('{"content": null}', None), ('{"content": ["a"]}', None),
        ('{"text": "a"}', None),
        ("plain", None), ("", None), ('{"content": "unterminated', None), ("{'content': 'python'}", None),
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
    found = load_steps(["json-field[content]"])("long " * 10_000, {})
    assert isinstance(found, Unparsed) and "long long" in found.reason and len(found.reason) < 200
