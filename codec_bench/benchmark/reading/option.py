"""The steps `option-letter`, `label` and `yes-no`, which read a decision. Two different decisions count as none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from codec_bench.benchmark.reading.base import Parsed, Step, Unparsed, quote
from codec_bench.benchmark.reading.choices import choices_of
from codec_bench.benchmark.reading.words import negated, phrases_in, plain, words
from codec_bench.errors import UserError, first_of

_MARKS = r"[\s(\[{<\"'“‘*_`$]{0,6}(?:\\(?:text|textbf|mathbf|mathrm)\{)?\(?"
_L = rf"{_MARKS}(?P<letter>[A-Za-z])(?!\w|['’]\w)"
_BE = r"(?:\s+(?:is|was|be|are)|\s+(?:would|should|must|will|may|might|could)\s+be)"
# Three kinds of wordings, the most explicit first. The first kind that occurs decides.
_WORDINGS = tuple(
    tuple(re.compile(pattern, re.IGNORECASE) for pattern in kind)
    for kind in (
        (
            rf"\\boxed\s?\{{{_L}",
            rf"(?:answer|correct|right|best)(?:\s+(?:one|answer|option|choice|letter))?(?:\s+to\s+(?:the|this)\s+question)?"
            rf"(?:{_BE}(?:\s+(?:most\s+)?(?:likely|probably|clearly|therefore))?\s*:?|\s*[:=])"
            rf"\s*(?:the\s+)?(?:option|choice|letter)?{_L}",
            rf"(?:正确|最终)?(?:答案|選項|选项)(?:应该|应当|应|就|可能)?(?:是|为|為|选|選|[:=])(?:选项|選項|选|選|项)?{_L}",
            rf"(?:故|应|應|应该|因此|所以)(?:选择|選擇|选|選){_L}",
            r"(?<![\w'’])(?P<letter>[A-Za-z])[)\]}*\"'”’]{0,4}\s+(?:is|would\s+be)\s+(?:the\s+)?(?:correct|right|best)(?!\w)",
            r"(?<![\w'’])(?P<letter>[A-Za-z])(?:选项|選項|项|項)?(?:是|为|為)?(?:正确|正確|对的|最合适)",
        ),
        (
            rf"(?<!\w)(?:options?|choices?|choose|chose|select|pick|go\s+with|go\s+for)(?:\s+(?:option|choice|answer|letter))?"
            rf"\s*[:=]?{_L}",
            rf"(?:选择|選擇|选项|選項|选|選){_L}",
            r"(?<![\w'’])(?P<letter>[A-Za-z])(?:选项|選項|项|項)",
        ),
        (
            r"\A[\s(\[{<\"'“‘*_`]{0,6}(?P<letter>[A-Za-z])[)\]}>\"'”’*_`]{0,4}\s?(?:[).:、,;\n-]|\Z)",
            r"(?:\(\s?(?P<letter>[A-Za-z])\s?\)|\[\s?(?P<bracketed>[A-Za-z])\s?\]|\*\*(?P<strong>[A-Za-z])[.):]?\*\*)",
        ),
    )
)
# A single letter in prose is an option only in upper case and if no word follows: "A dog" and "T cell" name no option.
_ALONE = re.compile(r"(?<![A-Za-z0-9_'.\-])(?P<letter>[A-Z])(?!\w|['.]\w|-)")
_ARTICLE = re.compile(r"\s+(?!(?:because|since|as|is|due|based|and|or|but|which|would|seems|fits|matches)\b)[A-Za-z]")
_NOTE = re.compile(r"[-\s]{0,3}(?:major|minor|sharp|flat|maj|min)(?!\w)|[#♯♭]", re.IGNORECASE)
"""What follows a letter that is the name of a note."""
_NOT_BEFORE = re.compile(
    r"(?:\b(?:not|isn't|isn’t|never|neither|nor)|不是|不选|非|not\s+(?:option|choice))[\s(\"'“‘*]{0,4}\Z", re.IGNORECASE
)
_NOT_AFTER = re.compile(
    r"[)\]}*\"'”’]{0,4}\s*(?:(?:选项|項|项)?(?:不正确|不对|错误|是错)"
    r"|(?:is|are|was|would\s+be)\s*(?:n't|n’t|\s+not|\s+(?:clearly\s+)?(?:wrong|incorrect|false)))", re.IGNORECASE
)  # fmt: skip
_NEAR = 40
_MOST_CUES = 100
"""How many cues are examined, so that an answer of nothing but cues does not take long."""


def option_letter(letters: str | None) -> Step:
    """The letter of the chosen option.

    These are tried in order:
    1. the whole answer is a letter or the text of a choice;
    2. an explicit wording: `the answer is B`, `option B`, `B is correct`, `\\boxed{B}`, `答案是B`, `故选B`, `选B`, `B. ...`
    at
       the start, `(B)`;
    3. a single letter, or the text of just one of the choices (see `codec_bench.benchmark.reading.choices`).
    Negated options do not count. Unparsed if nothing of this occurs, or if two different letters do.

    Args:
        letters: the possible letters, such as `ABCD`; None for those of the row's choices, or A to D without choices.
    """

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        choices = choices_of(fields)
        allowed = letters or "".join(choices) or "ABCD"
        folded = unicodedata.normalize("NFKC", text).replace("’", "'")
        found = _whole(folded, choices, allowed)
        found = found or _worded(folded, allowed)
        # A letter in prose is weak evidence. If the text of another choice occurs too, there are two answers.
        found = found or _alone(folded, allowed) | phrases_in(folded, choices)
        if len(found) == 1:
            return Parsed(found.pop())
        if found:
            return Unparsed(f"there are several options ({', '.join(sorted(found))}) in {quote(text)}")
        return Unparsed(f"there is no option in {quote(text)}")

    return step


def label(given: str | None) -> Step:
    """The one label of a closed set that an answer names, in the spelling of the set.

    `not happy` does not name `happy`. Unparsed if none of the labels occurs, or if several do.

    Args:
        given: the labels, separated by commas; None for the row's `labels` (a list, or the values of a mapping).
    """
    own = [part.strip() for part in given.split(",") if part.strip()] if given else None
    if given is not None and not own:
        raise UserError(f"the step 'label[{given}]' names no label", hint="name some, such as label[happy,sad,neutral]")

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        labels = own or labels_of(fields.get("labels"))
        if not labels:
            return Unparsed("the row has no labels to choose from")
        whole = plain(text)
        found = {one for one in labels if plain(one) == whole} or phrases_in(text, labels)
        if len(found) == 1:
            return Parsed(found.pop())
        what = f"several labels ({', '.join(sorted(found))})" if found else f"none of the labels {first_of(labels, 12)}"
        return Unparsed(f"there {'are' if found else 'is'} {what} in {quote(text)}")

    return step


_YES = frozenset(("yes", "yeah", "yep", "yea"))
_NO = frozenset(("no", "nope", "nah"))
_HAN_NO = re.compile(r"\A(?:不是|不对|不正确|否定|否|没有|沒有|不)")
_HAN_YES = re.compile(r"\A(?:是的|是(?!否|不是)|对的|对(?!不起)|正确|肯定|有(?!没有|可能))")
_CUE = re.compile(r"answer(?:\s+is|\s*:)|答案(?:是|为|:)", re.IGNORECASE)


def yes_no(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """`yes` or `no`: the word after `the answer is`, else the first word, else the only one of the two that occurs.

    Chinese answers are read by their first words (`是的`, `对`, `不是`, `没有`). Unparsed if neither occurs, or both do.
    """
    folded = unicodedata.normalize("NFKC", text)
    cues = islice(_CUE.finditer(folded), _MOST_CUES)
    found = {word for cue in cues if (word := _first(folded[cue.end() : cue.end() + _NEAR])) is not None}
    if not found:
        found = {word for word in (_first(folded),) if word is not None}
    if not found:
        items = words(folded)
        found = {
            "yes" if item in _YES else "no"
            for at, item in enumerate(items)
            if (item in _YES or item in _NO) and not negated(items, at, item)
        }
    if len(found) == 1:
        return Parsed(found.pop())
    return Unparsed(f"there is {'both yes and no' if found else 'neither yes nor no'} in {quote(text)}")


def _first(text: str) -> str | None:
    start = text.lstrip(" \t\r\n\"'“‘*(:_`")
    item, *rest = words(start[:_NEAR]) or [""]
    if rest[:1] in (["and"], ["or"]) and {item, *rest[1:2]} & _YES and {item, *rest[1:2]} & _NO:
        return None  # "yes and no" is no decision
    if item in _YES or _HAN_YES.match(start):
        return "yes"
    return "no" if item in _NO or _HAN_NO.match(start) else None


def labels_of(given: Any) -> list[str]:
    """The labels of a question: a list, the values of a mapping, or a text with commas between them."""
    if isinstance(given, str):
        given = given.split(",")
    if isinstance(given, Mapping):
        given = given.values()
    return [str(one).strip() for one in given or () if str(one).strip()] if isinstance(given, Iterable) else []


def _whole(text: str, choices: Mapping[str, str], allowed: str) -> set[str]:
    """The letters that the whole answer can mean.

    The text `B` may be the letter, and also the text of another choice.
    """
    bare = plain(text).strip("()[]{}<>$_ ").upper()
    found = {bare} if len(bare) == 1 and bare in allowed else set()
    labelled = re.fullmatch(r"[(\[]?([a-z])[)\].:、]\s*(\S.*)", plain(text), re.DOTALL)
    texts = {letter: plain(choice) for letter, choice in choices.items()}
    found |= {letter for letter, choice in texts.items() if choice and choice == plain(text)}
    if labelled and labelled[1].upper() in allowed:
        same = {letter for letter, choice in texts.items() if choice and choice == labelled[2].strip()}
        found |= same | {labelled[1].upper()} if same else set()
    return found


def _worded(text: str, allowed: str) -> set[str]:
    for kind in _WORDINGS:
        found = set()
        for pattern in kind:
            for match in pattern.finditer(text):
                name = next(name for name, value in match.groupdict().items() if value)
                found |= _letter(match, name, allowed)
        if found:
            return found
    return set()


def _alone(text: str, allowed: str) -> set[str]:
    found: set[str] = set()
    for match in _ALONE.finditer(text):
        if not _ARTICLE.match(text, match.end(), match.end() + _NEAR):
            found |= _letter(match, "letter", allowed)
    return found


def _letter(match: re.Match[str], name: str, allowed: str) -> set[str]:
    """The letter of a match as a set; empty if it is not an option, is an article or a note, or is negated."""
    text, start, end = match.string, match.start(name), match.end(name)
    letter = match[name]
    if letter.upper() not in allowed:
        return set()
    # A word follows directly after an article, and a lower-case letter in prose is hardly ever an option.
    if (letter.islower() or letter in "AI") and _ARTICLE.match(text, end, end + _NEAR):
        return set()
    if _NOTE.match(text, end, end + _NEAR):
        return set()
    if _NOT_BEFORE.search(text[max(0, match.start() - 16) : start]) or _NOT_AFTER.match(text, end, end + _NEAR):
        return set()
    return {letter.upper()}
