"""UltraEval-Audio's rules for right answers, with their quirks.

Source: github.com/OpenBMB/UltraEval-Audio 9b69da6, `audio_evals/evaluator`. Each rule gives `match`, and `pred` and
`ref` as the published program rewrites them; its exceptions give no match and a `reason`. All rules agree with it case
by case (tests/golden/text).

`mcq_abcd` is VoiceBench's rule for options: the first wording that occurs in an answer decides
(github.com/MatthewCYM/VoiceBench `src/evaluator/mcq.py`, and `mcq.py` of the source above, whose list `templates` is
complete and in order here, with `@` for the letter). Some wordings read `is a.` and `vitamin c.` as options.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from codec_bench.benchmark.reading.words import contains
from codec_bench.messages import Diagnostic

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
VOCALSOUND = ("Laughter", "Sigh", "Cough", "Throat clearing", "Sneeze", "Sniff")
"""The choices of `kimi-vocalsound-choices` in that repository's `registry/evaluator/kimi.yaml`."""


@dataclass(frozen=True, slots=True)
class Match:
    """The decision of a published rule about one answer.

    Args:
        match: 1 or 0; None if the rule has no value and excludes the item.
        pred, ref: the answer and the reference as the rule rewrites them.
        letter: the option that it read, for rules about options.
        unread: whether it could not read an option.
        reason: why the published program raises an exception here, or None.
    """

    match: int | None
    pred: Any = None
    ref: Any = None
    letter: str | None = None
    unread: bool = False
    reason: Diagnostic | None = None


def em(pred: Any, ref: Any) -> Match:
    """Compare answer and reference, as floats or else as stripped texts."""
    if type(ref) in (int, float):
        try:
            pred, ref = float(pred), float(ref)
        except (TypeError, ValueError):
            return Match(0, pred, ref)
    elif isinstance(ref, str):
        pred, ref = str(pred).strip(), ref.strip()
    return Match(int(pred == ref), pred, ref)


def exist_match(pred: Any, ref: Any) -> Match:
    """Match an answer that contains a reference, even inside of words.

    Args:
        ref: a text or a list of texts; a number gives no value.
    """
    if isinstance(ref, list):
        for one in ref:
            match = exist_match(pred, one)
            if match.match:
                return match
        return Match(0, pred, ref)
    if not isinstance(ref, str):
        return Match(None, pred, ref, reason=Diagnostic("number_in_number"))
    pred, ref = str(pred).strip().lower(), ref.strip().lower()
    return Match(1, ref, ref) if ref in pred else Match(0, pred, ref)


def prefix_match(pred: str, ref: Any) -> Match:
    """Match an answer that begins with the reference, ignoring case."""
    pred, ref = pred.lower().strip(), str(ref).lower().strip()
    if pred[: len(ref)] != ref and " " in ref and " " not in pred:
        ref = ref.replace(" ", "")
    return Match(int(pred[: len(ref)] == ref), pred[: len(ref)], ref)


def qa_exist_match(pred: Any, ref: Any) -> Match:
    """Match an answer with the words of any reference in a row; an empty one matches."""
    refs = [ref] if isinstance(ref, str) else list(ref)
    items = _qa_items(str(pred))
    for one in refs:
        expected = _qa_items(str(one))
        if not expected or contains(items, expected):
            return Match(1, refs, refs)
    return Match(0, pred, refs)


def choice_strings_match(pred: Any, ref: str, choices: Sequence[str]) -> Match:
    """Match an answer with all words of the right choice, and none of only wrong ones."""
    pred = str(pred)
    answer_words, ref_words = _word_set(pred), _word_set(ref)
    wrong = set().union(*(_word_set(choice) for choice in choices if _word_set(choice) != ref_words)) - ref_words
    if answer_words and ref_words <= answer_words and not answer_words & wrong:
        return Match(1, ref, ref)
    return Match(0, pred, ref)


def mmsu_choices(pred: str, ref: str, choices: Sequence[str]) -> Match:
    """Apply `_choices_eval` with four letters; no value if no option is read."""
    texts = [*choices, *[""] * (4 - len(choices))]
    match = _choices_eval(pred, ref, [text.replace("-", " ") for text in texts])
    return match if not match.unread else Match(None, match.pred, match.ref, unread=True)


def kimi_mmau_choices(pred: str, ref: str, choices: Sequence[str]) -> Match:
    """Apply `_choices_eval`, a letter per choice; unread is wrong."""
    return _choices_eval(pred, ref, choices)


def kimi_vocalsound_choices(pred: str, ref: str) -> Match:
    """Apply `_choices_eval` to VocalSound's six sounds as A to F; unread is wrong."""
    return _choices_eval(pred, ref, VOCALSOUND)


def first_or_last_but_one(pred: str, letters: str) -> str | None:
    """A stripped answer's first character if it is a letter, else the last but one."""
    if pred[:1] and pred[0] in letters:
        return pred[0]
    return pred[-2] if len(pred) > 1 and pred[-2] in letters else None


def _choices_eval(pred: str, ref: str, choices: Sequence[str]) -> Match:
    """Compare the letter at an answer's start or end with that of the choice `ref`."""
    pred, ref = pred.strip(), ref.strip()
    letter = first_or_last_but_one(pred, LETTERS[: len(choices)])
    if letter is None:
        return Match(0, pred, ref, unread=True)
    by_text: Mapping[str, str] = {text.lower(): of for of, text in zip(LETTERS, choices)}
    gold = by_text.get(ref.lower().replace("-", " "))
    if gold is None:
        return Match(None, pred, ref, letter, reason=Diagnostic("reference_outside_choices", reference=ref))
    return Match(int(letter == gold), pred, ref, letter)


def _word_set(text: str) -> set[str]:
    return set(re.findall(r"\b\w+\b", text.lower()))


@cache
def _qa_pattern() -> Any:
    import regex

    return regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")


def _qa_items(text: str) -> list[str]:
    return [item.lower() for item in _qa_pattern().findall(unicodedata.normalize("NFD", text))]


# Bars separate the wordings; \n is a line break.
_WORDINGS = r"""
答案是@|答案是:@|答案是：@|答案是 @|答案是选项@|答案应该是@|答案应该是 @|答案就是选项@|答案是'@|是@：|答案选@|@是正确|选项@是最合适的|answer is: **@|answer is **@
the answer to the question is: **@|the answer to the multiple-choice question is **@|the answer is '@'
@ is the best answer|the answer is @|the correct answer is @|would select @|would choose @|would select option @
would choose option @|is "@"|is "@.|is: **@)|is **@,|is **@:|is **@)|is: **@.|is: **@:|is **@.|be **@,|is: **@**
is therefore option **@:|is: \n\n**@)|as **@:|be **@)|be **@:|is: \n\n**@**|suggests **@)|be option **@:|with **@)
is typically "@)|be to **@)|is: \n\n@)|is likely to be: **@.|is **@ (|is option **@**|is likely **@**|is:\n**@.
is:\n\n**@.|would be @|would be option @|would be (@)|would be option (@)|is @,|is typically @,|is typically @.
i'd say @.|option @.|option @:|option @,|the answer is:\n**@|is @:|is @.|is @,|is: @.|is (@)|is:\n**@)|is likely **@:
is the **@)|:\n@.|:\n@)|:\n@,|: \n@.|:  \n@.|:\n\n@.|:\n\n@)|is most likely **@:|:\n\n@,|: \n\n@.|is option @,
(@) would be|is (@).|is @)|is: @)|is:\n\n@:|is: **@,|(option @)|answer is (@)|select option "@"|is: @
is typically **@,|is **@**|is likely '@'|is option '@'|is:\n**@:|is \( \boxed{@ |would be '@'
is the **@** |question is @ (|is:\n\n**@)|closest to option **@**|is most likely **@)|the answer to the question is '@'
question is **@**|known as '@'|is '@)|is typically **@:|is \( \boxed{\text{@}} \)|is \( \text{@) }|is \( \text{@} \)
is \( \text{@:|is \( \text{@)|is \(\text{@.|is:\n\n**@|is \( \text{@.}|is \( \text{@.|is \( \boxed{@}
is:\n\[ \boxed{\text{@}}|is:\n\[ \text{@)|is:\n\n\[ \text{@)|is \( \textbf{@)|is \( \text{@}|is: \( \text{@.
corresponds to:\n- **@:|would be: **@**.|is \( @ \)|is:\n**@ |corresponds to option **@**|be **@**|be: \n\n@)
is:\n\[ \boxed{@}|is:  \n**@:|is: \( \text{@)|is likely: **@,|is } \mathbf{@.|is \( \boxed{@)|is \( \textbf{@}
is \(@\)|is:\n  \n**@:|is option **@ |is:\n\( \textbf{@.|is \( \mathbf{@}|was option **@**|is likely "@)|option **@:
is "@)|is most likely **@,|is often **@:|is:  \n@)| @.| @,| @:| @)|**@.|**@)|"@.|"@,|"@:|(@)|"@"
"""
WORDINGS = tuple(w.replace("\\n", "\n") for line in _WORDINGS.strip("\n").split("\n") for w in line.split("|"))
_FILLED = tuple((wording.replace("@", letter), letter.upper()) for wording in WORDINGS for letter in "abcd")
_TAG = re.compile(r"<[123]>")


def mcq_abcd(pred: str, ref: str) -> Match:
    """Read an option A to D by `read_option` and compare it; unread is wrong."""
    letter = read_option(str(pred))
    ref = str(ref).lower()
    if letter is None:
        return Match(0, None, ref, unread=True)
    return Match(int(letter.lower() == ref), letter, ref, letter)


def read_option(answer: str) -> str | None:
    """The letter in the first published wording (`answer is @`) found in an answer.

    A comes before B, C and D for the same wording. None if there is no wording.
    """
    text = answer.lower()
    if _TAG.match(text):
        text = text[3:].strip()
    for wording, letter in _FILLED:
        if wording in text:
            return letter
    if text[:1] in tuple("abcd") and (len(text) == 1 or text[1] in ".,:)"):
        return text[0].upper()
    # The published rule's further attempts contain one of its wordings and are unreachable.
    return None
