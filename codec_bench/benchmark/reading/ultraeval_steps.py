"""UltraEval-Audio's post-processing with its quirks (9b69da6).

`official/ultraeval-audio/json-content`: the `content` of a JSON object or a Python literal; other text is only
    stripped. A fence is cut off by fixed lengths: without the closing fence three characters are lost.
`.../extract-audio`, `.../extract-text`: a key of a JSON object. Text that is not JSON stays. An exception of the
    published program makes the answer unparsed.
`.../first-option`, `.../first-option-a`: some fifty patterns in a fixed order, the last finds an a, b, c or d
    in any word. Without a match, the result is an empty text (which is wrong), or A. `[ABCDE]` gives other letters.
`.../qwen-asr`, `.../qwen-asr[zh]`: tags `<|...|>` and spaces are removed.

The patterns of `first-option` are those of `audio_evals/process/firstoption.py`, in its order. The results equal the
published program's case by case (tests/golden/text), with linear time where its expressions are quadratic.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from codec_bench.benchmark.reading.base import Parsed, Step, Unparsed, quote
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError


def json_content(answer: str) -> Any:
    """The field `content` of an answer in JSON or Python notation, else the text."""
    text = answer.strip()
    if text.startswith("```"):
        text = text[7 if text.startswith("```json") else 3 : -3].strip()
    try:
        return json.loads(text)["content"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        pass
    # Only a mapping can hold a content; other texts skip Python's parser.
    if text[:1] in ("{", "(") and "content" in text:
        try:
            return ast.literal_eval(text)["content"]
        except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
            pass
    return text


def extract(answer: Any, key: str) -> Any:
    """The value of a key in a mapping or JSON text; text that is no JSON stays.

    A value without the key is `Unparsed`.
    """
    if isinstance(answer, str):
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError):
            return answer
    else:
        value = answer
    if isinstance(value, Mapping) and key in value:
        return value[key]
    return Unparsed(Diagnostic("no_key", key=key, answer=quote(str(answer))))


def qwen_asr(answer: str, language: str = "en") -> str:
    """Remove `<|...|>` tags from a transcript, and for `zh` all white space."""
    text = re.sub(r"\s+", " ", _remove_tags(answer))
    text = re.sub(r" ([!,.?;:])", r"\1", text).lstrip()
    return re.sub(r"\s", "", text) if language == "zh" else text


def first_option(answer: str, letters: str = "ABCD", default: str = "") -> str:
    """The option letter that UltraEval-Audio reads in an answer, or the default."""
    text = answer.strip()
    for search in _searches(letters):
        captured = search(text)
        if captured:
            # As published: the first of `letters` in the match, not the match's first letter.
            for letter in letters:
                if letter.upper() in captured.upper():
                    return letter
    return default


def _remove_tags(text: str) -> str:
    """Replace each `<|...|>` on one line by a space."""
    out, at = [], 0
    while (start := text.find("<|", at)) >= 0:
        line_end = text.find("\n", start)
        end = text.find("|>", start + 2, len(text) if line_end < 0 else line_end)
        if end < 0:
            # No further tag ends on this line, but tags may follow on the next one.
            stop = len(text) if line_end < 0 else line_end + 1
            out.append(text[at:stop])
            at = stop
        else:
            out += [text[at:start], " "]
            at = end + 2
    return "".join([*out, text[at:]])


@cache
def _searches(letters: str) -> tuple[Callable[[str], str | None], ...]:
    """Build UltraEval-Audio's searches for an option letter, in the published order.

    In a pattern, `@` is the letter and `_` an optional space.
    """
    one = f"([{re.escape(letters)}])"

    def pattern(text: str) -> Callable[[str], str | None]:
        compiled = re.compile(text.replace("@", one).replace("_", r"\s?"), re.DOTALL | re.IGNORECASE)

        def search(answer: str) -> str | None:
            match = compiled.search(answer)
            return (match[1] or match[0]) if match else None

        return search

    chinese_answers = [
        *(rf"答案是?\s*{colon}@" for colon in ("", r"：\s*", r":\s*")),
        r"答案是选项?\s*:\s*@", r"答案选项应?该?是\s*@", r"答案选项应?该?为\s*@", r"答案应该?是\s*@", r"答案应该?选\s*@", r"答案选项为?\s*：\s*@",
        *(rf"{noun}选项为?\s+\(?\*?\*?@\*?\*?\)?" for noun in ("答案", "")),
        r"答案选项是?\s*:\s*@", r"答案为\s*@", r"答案选\s*@", r"选择?\s*@",
        r"故选?\s*@只有选?项?_@_是?对",  # two patterns in one, because the published list lacks a comma here
        *(rf"只有选?项?_@_{end}" for end in ("是?错", "不?正确", "错误")),
        *(rf"说法{kind}选?项?的?是_@" for kind in ("不?对", "不?正确", "错误")),
        r"@_是正确的", r"@_是正确答案", r"选项_@_正确", r"所以答_@",
        *(rf"{so}_({one[1:-1]}[.。$]?$)" for so in ("所以", "所有")),
        r"[\s，：:,]@[。，,\.]?$", r"[\s，,：:][故即]@[。\.]?$", r"[\s，,：:]因此@[。\.]?$",
        *(rf"{so}_@[。\.]?$" for so in ("[是为。]", "因此", "显然")),
    ]  # fmt: skip
    english_answers = [
        r"ANSWER\s*:\s*@", r"The answer is:?\s+\(?@\)?", r"The answer is:?\s+\(?\*?\*?@\*?\*?\)?",
        r"The answer is option:?\s+\(?@\)?", r"The correct answer is:?\s+\(?@\)?",
        r"The correct answer is option:?\s+\(?@\)?",
    ]  # fmt: skip
    anywhere = [
        r"The answer to the question is:?\s+\(?@\)?", r"^选项_@", r"^@_选?项",
        rf"(\s|^){one[1:-1]}[\s。，,：:\.$]", r"1._(.*?)$", r"1._@[.。$]?$",
        r"答案:\s*@", r"故此为\s*@", r"boxed\{@\}", r"@:", r"@",
    ]  # fmt: skip
    return (
        *map(pattern, chinese_answers),
        *(_run_after(words) for words in ("答案是", "答案应该是", "答案为")),
        *map(pattern, english_answers),
        *(_boxed_after(f"the correct {noun} is", one) for noun in ("answer", "option", "answer option")),
        *map(pattern, anywhere),
    )


def _run_after(words: str) -> Callable[[str], str | None]:
    r"""Build a search for the text after `words`, up to white space or a full stop (。).

    It finds `WORDS\s?(\S+)(?:。|$)` in linear time.
    """
    begin = re.compile(rf"{words}\s?(?=\S)", re.IGNORECASE)
    black = re.compile(r"\S+")

    def search(answer: str) -> str | None:
        at = 0
        while (match := begin.search(answer, at)) is not None:
            run = black.search(answer, match.end())
            assert run is not None  # `begin` ends before a character that is not white space
            if run.end() == len(answer):
                return run[0]
            stop = run[0].rfind("。")
            if stop > 0:
                return run[0][:stop]
            # A later start in the same run has no full stop either; one at its very end reads the next run.
            at = max(match.start() + 1, run.end() - len(words))
        return None

    return search


def _boxed_after(words: str, one: str) -> Callable[[str], str | None]:
    """Build a search for the first boxed letter after the first occurrence of `words`.

    It finds `WORDS:?.*?boxed{@}` in linear time; `one` is the pattern of a letter.
    """
    begin, boxed = re.compile(words, re.IGNORECASE), re.compile(rf"boxed\{{{one}\}}", re.IGNORECASE)

    def search(answer: str) -> str | None:
        match = begin.search(answer)
        boxed_match = boxed.search(answer, match.end()) if match else None
        return boxed_match[1] if boxed_match else None

    return search


def _json_content(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    return Parsed(str(json_content(text)))  # the published matchers turn other values into text too


def _extract(key: str) -> Step:
    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        value = extract(text, key)
        return value if isinstance(value, Unparsed) else Parsed(str(value))

    return step


def _first_option(default: str) -> Callable[[str | None], Step]:
    def build(letters: str | None) -> Step:
        return lambda text, fields: Parsed(first_option(text, letters or "ABCD", default))

    return build


def _qwen_asr(language: str | None) -> Step:
    if language not in (None, "en", "zh"):
        raise UserError("step_language", language=language)
    return lambda text, fields: Parsed(qwen_asr(text, language or "en"))


_NAME = "official/ultraeval-audio"
PLAIN: dict[str, Step] = {
    f"{_NAME}/extract-audio": _extract("audio"),
    f"{_NAME}/extract-text": _extract("text"),
    f"{_NAME}/json-content": _json_content,
}
MAY_HAVE_ARGUMENT: dict[str, Callable[[str | None], Step]] = {
    f"{_NAME}/first-option": _first_option(""),
    f"{_NAME}/first-option-a": _first_option("A"),
    f"{_NAME}/qwen-asr": _qwen_asr,
}
