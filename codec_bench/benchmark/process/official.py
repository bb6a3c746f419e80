"""Published post-processing, quirks included, as UltraEval-Audio does it (github.com/OpenBMB/UltraEval-Audio 9b69da6).

`official/ultraeval-audio/json-content`: a JSON object's or a Python literal's `content`; anything else passes through,
    stripped. A fence is cut by fixed lengths, so a missing closing fence costs three characters.
`.../extract-audio`, `.../extract-text`: a JSON object's key; text that is not JSON passes through. Where the source
    ends in an exception, the answer is unparsed.
`.../first-option`, `.../first-option-a`: some fifty patterns in a fixed order, the last of which finds an a, b, c or
    d in any word. Where nothing is found, an empty text (which is then wrong), or A. `[ABCDE]` names other letters.
`.../qwen-asr`, `.../qwen-asr[zh]`: `<|...|>` tags and spaces removed.

The results are the source's case by case (tests/golden/text); the ways there are other ones where the source's regular
expressions take quadratic time.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from codec_bench.benchmark.process.base import Parsed, Step, Unparsed, quote
from codec_bench.errors import UserError


def json_content(answer: str) -> Any:
    """What the source takes for the content: mostly text, but a number, a list or None where the content is one."""
    text = answer.strip()
    if text.startswith("```"):
        text = text[7 if text.startswith("```json") else 3 : -3].strip()
    try:
        return json.loads(text)["content"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        pass
    # Only a mapping can hold a content, and what is not one need not be given to Python's parser.
    if text[:1] in ("{", "(") and "content" in text:
        try:
            return ast.literal_eval(text)["content"]
        except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
            pass
    return text


def extract(answer: Any, key: str) -> Any:
    """The key of an answer that is a mapping or the JSON of one; text that is no JSON as it is; else `Unparsed`."""
    if isinstance(answer, str):
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):
            return answer
    else:
        found = answer
    if isinstance(found, Mapping) and key in found:
        return found[key]
    return Unparsed(f"there is no '{key}' in {quote(str(answer))}")


def qwen_asr(answer: str, language: str = "en") -> str:
    """A transcript without tags; in Chinese without any white space."""
    text = re.sub(r"\s+", " ", _without_tags(answer))
    text = re.sub(r" ([!,.?;:])", r"\1", text).lstrip()
    return re.sub(r"\s", "", text) if language == "zh" else text


def first_option(answer: str, letters: str = "ABCD", default: str = "") -> str:
    """The letter that the source reads out of an answer, or the default."""
    text = answer.strip()
    for search in _searches(letters):
        captured = search(text)
        if captured:
            # The first letter of the list that the capture holds, not the first one in the capture.
            for letter in letters:
                if letter.upper() in captured.upper():
                    return letter
    return default


def _without_tags(text: str) -> str:
    out, at = [], 0
    while (start := text.find("<|", at)) >= 0:
        line_end = text.find("\n", start)
        end = text.find("|>", start + 2, len(text) if line_end < 0 else line_end)
        if end < 0:
            # No tag ends on this line any more; the next one may hold some.
            stop = len(text) if line_end < 0 else line_end + 1
            out.append(text[at:stop])
            at = stop
        else:
            out += [text[at:start], " "]
            at = end + 2
    return "".join([*out, text[at:]])


@cache
def _searches(letters: str) -> tuple[Callable[[str], str | None], ...]:
    """What each pattern captures in an answer, in the source's order. `@` is a captured letter, `_` a possible space."""
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
        *(rf"{what}选项为?\s+\(?\*?\*?@\*?\*?\)?" for what in ("答案", "")), r"答案选项是?\s*:\s*@", r"答案为\s*@", r"答案选\s*@", r"选择?\s*@",
        r"故选?\s*@只有选?项?_@_是?对",  # two patterns, joined where a comma is missing
        *(rf"只有选?项?_@_{end}" for end in ("是?错", "不?正确", "错误")),
        *(rf"说法{kind}选?项?的?是_@" for kind in ("不?对", "不?正确", "错误")),
        r"@_是正确的", r"@_是正确答案", r"选项_@_正确", r"所以答_@",
        *(rf"{so}_({one[1:-1]}[.。$]?$)" for so in ("所以", "所有")),
        r"[\s，：:,]@[。，,\.]?$", r"[\s，,：:][故即]@[。\.]?$", r"[\s，,：:]因此@[。\.]?$",
        *(rf"{so}_@[。\.]?$" for so in ("[是为。]", "因此", "显然")),
    ]  # fmt: skip
    english_answers = [
        r"ANSWER\s*:\s*@", r"The answer is:?\s+\(?@\)?", r"The answer is:?\s+\(?\*?\*?@\*?\*?\)?",
        r"The answer is option:?\s+\(?@\)?", r"The correct answer is:?\s+\(?@\)?", r"The correct answer is option:?\s+\(?@\)?",
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
        *(_boxed_after(f"the correct {what} is", one) for what in ("answer", "option", "answer option")),
        *map(pattern, anywhere),
    )


def _run_after(words: str) -> Callable[[str], str | None]:
    """`WORDS\\s?(\\S+)(?:。|$)` in linear time: the black run behind the words up to its last full stop or the end."""
    begin = re.compile(rf"{words}\s?(?=\S)", re.IGNORECASE)
    run = re.compile(r"\S+")

    def search(answer: str) -> str | None:
        at = 0
        while (match := begin.search(answer, at)) is not None:
            black = run.match(answer, match.end())
            if black.end() == len(answer):
                return black[0]
            stop = black[0].rfind("。")
            if stop > 0:
                return black[0][:stop]
            # A later start in the same run has no full stop behind it either; one at its very end has the next run.
            at = max(match.start() + 1, black.end() - len(words))
        return None

    return search


def _boxed_after(words: str, one: str) -> Callable[[str], str | None]:
    """`WORDS:?.*?boxed{@}` in linear time: the first boxed letter behind the first of the words."""
    begin, boxed = re.compile(words, re.IGNORECASE), re.compile(rf"boxed\{{{one}\}}", re.IGNORECASE)

    def search(answer: str) -> str | None:
        match = begin.search(answer)
        found = boxed.search(answer, match.end()) if match else None
        return found[1] if found else None

    return search


def _json_content(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    return Parsed(str(json_content(text)))  # as the source's matchers do with what is no text


def _extract(key: str) -> Step:
    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        found = extract(text, key)
        return found if isinstance(found, Unparsed) else Parsed(str(found))

    return step


def _first_option(default: str) -> Callable[[str | None], Step]:
    def build(letters: str | None) -> Step:
        return lambda text, fields: Parsed(first_option(text, letters or "ABCD", default))

    return build


def _qwen_asr(language: str | None) -> Step:
    if language not in (None, "en", "zh"):
        raise UserError(f"the step 'qwen-asr' knows en and zh, not '{language}'")
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
