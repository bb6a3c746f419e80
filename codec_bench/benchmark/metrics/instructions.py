"""The instructions of IFEval, each with a function that checks an answer.

J. Zhou et al., "Instruction-Following Evaluation for Large Language Models", 2023, table 5, and the released checkers
(github.com/google-research/google-research `instruction_following_eval`). The checks agree with the released ones, with
two exceptions: sentences and words in capitals are counted by the project's own rules (there by NLTK's Punkt model and
word tokeniser), and keywords are literal (there regular expressions). Every check takes linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from codec_bench.messages.errors import MissingExtra

Check = Callable[[Mapping[str, Any], str], bool]

_RELATIONS: dict[str, Callable[[int, int], bool]] = {"at least": int.__ge__, "less than": int.__lt__}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_ENDS = frozenset(".,?!'\"")
_SENTENCE = re.compile(r"[.!?]+[\"'”’)\]]{0,3}(?=\s|\Z)|[。！？]+")
_ABBREVIATION = re.compile(r"(?<!\w)(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|jr|sr|no|[a-z])\Z", re.IGNORECASE)


def language_of(text: str) -> str | None:
    """The language that langdetect finds in a text (seed 0); None without letters.

    Raises:
        MissingExtra: langdetect is not installed.
    """
    try:
        import langdetect
    except ImportError:
        raise MissingExtra("answer_language", "langdetect", "text") from None
    langdetect.DetectorFactory.seed = 0
    try:
        return langdetect.detect(text)
    except langdetect.LangDetectException:
        return None


def _compared(count: int, arguments: Mapping[str, Any], bound: str, relation: str = "relation") -> bool:
    return _RELATIONS[arguments[relation]](count, int(arguments[bound]))


def _keywords(a: Mapping[str, Any], text: str) -> bool:
    return all(re.search(re.escape(word), text, re.IGNORECASE) for word in a["keywords"])


def _keyword_frequency(a: Mapping[str, Any], text: str) -> bool:
    return _compared(len(re.findall(re.escape(a["keyword"]), text, re.IGNORECASE)), a, "frequency")


def _forbidden_words(a: Mapping[str, Any], text: str) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in a["forbidden_words"])


def _letter_frequency(a: Mapping[str, Any], text: str) -> bool:
    return _compared(text.lower().count(a["letter"].lower()), a, "let_frequency", "let_relation")


def _language(a: Mapping[str, Any], text: str) -> bool:
    return language_of(text) in (None, a["language"])


def count_sentences(text: str) -> int:
    """Count sentences by their end marks; an abbreviation such as `Dr.` ends none."""
    ends = [m for m in _SENTENCE.finditer(text) if not _ABBREVIATION.search(text, max(0, m.start() - 8), m.start())]
    return len(ends) + bool(text[ends[-1].end() :].strip() if ends else text.strip())


def _sentences(a: Mapping[str, Any], text: str) -> bool:
    return _compared(count_sentences(text), a, "num_sentences")


def _paragraphs(a: Mapping[str, Any], text: str) -> bool:
    """Whether `***` separates a text into exactly `num_paragraphs` paragraphs."""
    parts = text.split("***")
    if any(not paragraph.strip() for paragraph in parts[1:-1]):
        return False
    blank_ends = sum(not paragraph.strip() for paragraph in {0: parts[0], len(parts) - 1: parts[-1]}.values())
    return len(parts) - blank_ends == int(a["num_paragraphs"])


def _words(a: Mapping[str, Any], text: str) -> bool:
    return _compared(len(re.findall(r"\w+", text)), a, "num_words")


def _first_word_of_paragraph(a: Mapping[str, Any], text: str) -> bool:
    """Whether `nth_paragraph` of `num_paragraphs` begins with `first_word`."""
    parts, nth = text.split("\n\n"), int(a["nth_paragraph"])
    filled = sum(bool(paragraph.strip()) for paragraph in parts)
    if nth > filled or not parts[nth - 1].strip():
        return False
    word = parts[nth - 1].split()[0].lstrip("'").lstrip('"')
    end = next((at for at, letter in enumerate(word) if letter in _ENDS), len(word))
    return filled == int(a["num_paragraphs"]) and word[:end].lower() == a["first_word"].lower()


def _placeholders(a: Mapping[str, Any], text: str) -> bool:
    """Whether a text has enough `[...]` placeholders, each on one line."""
    count = 0
    for line in text.split("\n"):
        at = 0
        while (start := line.find("[", at)) >= 0 and (end := line.find("]", start)) >= 0:
            count, at = count + 1, end + 1
    return count >= int(a["num_placeholders"])


def _postscript(a: Mapping[str, Any], text: str) -> bool:
    marker = a["postscript_marker"].strip()
    spaced = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return re.search(spaced.get(marker, re.escape(marker.lower())), text.lower()) is not None


def _bullets(a: Mapping[str, Any], text: str) -> bool:
    stars = re.findall(r"^[^\S\n]*\*[^*].*$", text, re.MULTILINE)
    dashes = re.findall(r"^[^\S\n]*-.*$", text, re.MULTILINE)
    return len(stars) + len(dashes) == int(a["num_bullets"])


def _constrained(a: Mapping[str, Any], text: str) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _highlights(a: Mapping[str, Any], text: str) -> bool:
    single = sum(bool(span.strip("*").strip()) for span in re.findall(r"\*[^\n*]*\*", text))
    double = sum(bool(span[2:-2].strip()) for span in re.findall(r"\*\*[^\n*]*\*\*", text))
    return single + double >= int(a["num_highlights"])


def _sections(a: Mapping[str, Any], text: str) -> bool:
    return len(re.findall(rf"{re.escape(a['section_spliter'])}\s?\d+", text)) >= int(a["num_sections"])


def _json(a: Mapping[str, Any], text: str) -> bool:
    """Whether the whole text is JSON, possibly in a code block."""
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(a: Mapping[str, Any], text: str) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end - 2 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def _two_responses(a: Mapping[str, Any], text: str) -> bool:
    """Whether the text is two different responses, separated by `******`."""
    parts = text.split("******")
    if any(not response.strip() for response in parts[1:-1]):
        return False
    filled = [response.strip() for response in parts if response.strip()]
    return len(filled) == 2 and filled[0] != filled[1]


def _repeated_prompt(a: Mapping[str, Any], text: str) -> bool:
    return text.strip().lower().startswith(a["prompt_to_repeat"].strip().lower())


def _ending(a: Mapping[str, Any], text: str) -> bool:
    return text.strip().strip('"').lower().endswith(a["end_phrase"].strip().lower())


def _quotation(a: Mapping[str, Any], text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _capital_words(a: Mapping[str, Any], text: str) -> bool:
    count = sum(word.isupper() for word in re.findall(r"[\w'’-]+", text))
    return _compared(count, a, "capital_frequency", "capital_relation")


def _english(case: Callable[[str], bool]) -> Check:
    return lambda a, text: case(text) and language_of(text) in (None, "en")


def _no_comma(a: Mapping[str, Any], text: str) -> bool:
    return "," not in text


CHECKS: dict[str, Check] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": _english(str.isupper),
    "change_case:english_lowercase": _english(str.islower),
    "combination:repeat_prompt": _repeated_prompt,
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": _keywords,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:frequency": _keyword_frequency,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _language,
    "length_constraints:nth_paragraph_first_word": _first_word_of_paragraph,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_words": _words,
    "punctuation:no_comma": _no_comma,
    "startend:end_checker": _ending,
    "startend:quotation": _quotation,
}
"""The check of every instruction, by IFEval's id."""
