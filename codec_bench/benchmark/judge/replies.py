"""Readers of the verdict in a judge's reply, the project's own and published ones.

A reader returns a `Verdict`: named numbers, or a reason. It never raises, and never falls back to a number. Two
different verdicts are no verdict. The project's own readers use only the judge's own words, without quotations
(quotation marks, fences, `>`) and without what repeats the judged answer: an answer that imitates a verdict gains
nothing by a citation. A verdict that equals an imitated one counts only if it occurs once more, alone on the last line.
An answer under 5 characters, such as `5` or `Yes`, is rarely an imitation; then the first line counts too. Published
readers (`official/TOOLKIT/NAME`) keep their quirks. They agree with their sources case by case (tests/golden/text).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec

from codec_bench.benchmark.judge import published
from codec_bench.benchmark.judge.judge_reply import BRACKETED, ECHO, FULL_REPLY, LABELLED, NUMBER, JudgeReply
from codec_bench.benchmark.reading.patterns import compile_pattern
from codec_bench.benchmark.reading.words import plain
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UnknownName

P = ParamSpec("P")
SHOWN = 80
FIELDS = ("score", "rating")
"""The fields of a JSON reply that hold a rating."""
_YES_NO = re.compile(r"(?:answer|verdict|result|结论|答案)?\s?[:]?[\s*]{0,4}(yes|no|是的?|否)\b")
_LETTER = compile_pattern("judge_replies", "letter")
_NO_LETTER = re.compile(r"[\s*_`\"']{0,6}(?:none|no\s+option|neither)\b", re.IGNORECASE)
_CONCLUDES = compile_pattern("judge_replies", "concludes", number=NUMBER)
_CONCLUDES_YES_NO = compile_pattern("judge_replies", "concludes_yes_no")
_BY_CONCLUSION = 240
"""A conclusion counts only within this many characters before the end of the reasoning."""
ALSO_SAYS = Diagnostic("also_says")
"""The flag of a verdict whose reply also holds another one of a weaker kind."""
MOST_PAIRS = 8
"""How many different lines may be pairs, because each is searched for in the answer."""
_PAIR = re.compile(rf"[\s*(\[]{{0,6}}{NUMBER}(?:[ \t]*[,;/|\s][ \t]*){NUMBER}[\s*)\].]{{0,6}}")


_SIDES = {"first": 1.0, "a": 1.0, "second": 0.0, "b": 0.0, "tie": 0.5, "equal": 0.5, "both": 0.5}
_PREFERRED = re.compile(
    r"[\s*_`(\[\"']{0,6}(?:(?:better|verdict|winner|preferred|answer)\s{0,2}[:=]\s{0,2})?[\s*_`(\[\"']{0,6}"
    rf"(?:the\s)?({'|'.join(_SIDES)})(?:\sanswer)?[\s*_`)\]\"'.!]{{0,6}}", re.IGNORECASE
)  # fmt: skip
_NOUN = "(?:answer|response|reply|recording|assistant|one)"
_POSITION = rf"(?:the\s)?(?:{_NOUN}\s)?(?:%s)(?:\s{_NOUN})?"
_DEGREE = r"(?:(?:clearly|slightly|much|far|definitely|overall|significantly|somewhat|marginally|considerably)\s)?"
_TIE = (
    rf"it\sis\sa\stie|neither(?:\s{_NOUN})?\sis\sbetter"
    rf"|(?:both|the\stwo|they)(?:\s{_NOUN}s)?\sare\s(?:equal|tied|equally\sgood)"
)
_PREFERENCE = re.compile(
    rf"[\s*_`(\[\"']{{0,6}}(?:(?:{_POSITION % '(?P<better>first|second|a|b)'}\s(?:(?:is|sounds)\s{_DEGREE}better|wins)"
    rf"(?:\sthan\s{_POSITION % '(?P<worse>first|second|a|b|other)'})?)"
    rf"|I\sprefer\s{_POSITION % '(?P<preferred>first|second|a|b)'}|(?P<tie>{_TIE}))[\s*_`)\]\"'.!]{{0,6}}",
    re.IGNORECASE,
)
"""A sentence that prefers an answer, such as `The first answer is better.`"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict in a reply.

    Args:
        values: numbers by name, such as `score`, or `first` and `second`; empty if there is no verdict.
        reason: why there is no verdict, with the shortened reply; None if there is one.
        text: a verdict that is no number, such as the letter of an option; else "".
        warning: why a clear verdict is doubtful, such as `ALSO_SAYS`; None otherwise.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    text: str = ""
    warning: str | None = None


def _telling_repeats(read: Callable[Concatenate[str, P], Verdict]) -> Callable[Concatenate[str, P], Verdict]:
    """Wrap a reader: without a verdict, say whether one was ignored as a repetition."""

    @wraps(read)
    def read_once(reply: str, /, *args: P.args, **kwargs: P.kwargs) -> Verdict:
        """Read a reply; give a repeated answer as the reason why there is no verdict."""
        verdict = read(reply, *args, **kwargs)
        if verdict.reason is None or not kwargs.get("answer"):
            return verdict
        kwargs["answer"] = ""
        if read(reply, *args, **kwargs).reason is not None:
            return verdict
        return replace(verdict, reason=Diagnostic("repeats_answer", cause=verdict.reason))

    return read_once


@_telling_repeats
def read_rating(reply: str, *, low: float, high: float, answer: str = "") -> Verdict:
    """Read the one rating in a reply, as `score`.

    The first of these kinds that occurs decides:
    1. the field `score` or `rating` of a reply that is one JSON object (fenced or not), or of an object on its own
       lines;
    2. `[[4]]`;
    3. `Rating: 4`, `Score: 4`, `评分：4`, `[RESULT] 4`;
    4. a reply that is one number.
    `4/5` counts if 5 is the highest rating.

    There is no rating if the reasoning ends in another number. A different rating of a weaker kind adds a warning.

    Args:
        low, high: the range of the rubric; a number outside of it is no rating.
        answer: the judged answer, whose repetitions in the reply are ignored.
    """
    judge_reply = JudgeReply(reply, answer)
    verdict = _rating(judge_reply, low, high, reply)
    if verdict.reason is not None:
        return verdict
    value, reasoned = verdict.values["score"], judge_reply.reasoning()
    ends = [float(m[1]) for text in reasoned for m in _CONCLUDES.finditer(text[-_BY_CONCLUSION:])]
    if ends and low <= ends[-1] <= high and ends[-1] != value:
        return Verdict(reason=Diagnostic("reasoning_differs", last=ends[-1], value=value, reply=_quote(reply)))
    others = {float(m[1]) for text in reasoned for pattern in (BRACKETED, LABELLED) for m in pattern.finditer(text)}
    others |= {float(m[1]) for line in judge_reply.ends() if (m := FULL_REPLY.fullmatch(line)) is not None}
    return replace(verdict, warning=ALSO_SAYS) if any(low <= one <= high for one in others - {value}) else verdict


def _rating(judge_reply: JudgeReply, low: float, high: float, reply: str) -> Verdict:
    """Read one rating from a judge's reply: JSON fields, brackets, labels or a number."""
    objects = judge_reply.objects(FIELDS)
    held = [(name, one[name]) for one in objects for name in FIELDS if name in one]
    if len({json.dumps(value) for _, value in held}) > 1:
        return Verdict(reason=Diagnostic("several_ratings", reply=_quote(reply)))
    if objects and not held:
        return Verdict(reason=Diagnostic("no_rating_field", fields=" or ".join(map(repr, FIELDS)), reply=_quote(reply)))
    if held:
        key, value = held[0]
        if isinstance(value, str):
            value = _one_number(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return Verdict(reason=Diagnostic("field_without_number", key=key, reply=_quote(reply)))
        return _in_range({"score": float(value)}, low, high, reply)
    for judge_text in judge_reply.lines_without_echoes():
        for pattern in (BRACKETED, LABELLED):
            ratings = {(float(m[1]), m["below"] or m["of"]) for m in pattern.finditer(judge_text)}
            if ratings:
                return _the_rating(ratings, low, high, reply)
        full_match = FULL_REPLY.fullmatch(judge_text.replace(ECHO, " ").strip())
        if full_match is not None:
            return _the_rating({(float(full_match[1]), full_match["below"] or full_match["of"])}, low, high, reply)
    return Verdict(reason=Diagnostic("no_rating", reply=_quote(reply)))


@_telling_repeats
def read_pair(reply: str, *, low: float, high: float, answer: str = "") -> Verdict:
    """Read two ratings, `first` and `second`, from the only line of two numbers.

    Args:
        low, high: the range of the rubric; a number outside of it is no rating.
        answer: the judged answer, whose repetitions in the reply are ignored.
    """
    judge_reply = JudgeReply(reply, answer)
    lines = [line for line in judge_reply.judge_text.replace(ECHO, " ").splitlines() if line.strip()]
    pairs = {line: (float(m[1]), float(m[2])) for line in lines if len(line) < SHOWN and (m := _PAIR.fullmatch(line))}
    if not pairs and len(lines) == 2 and all(len(line) < SHOWN for line in lines):
        one, two = (FULL_REPLY.fullmatch(line.strip()) for line in lines)
        pairs = {"\n".join(lines): (float(one[1]), float(two[1]))} if one and two else {}
    if len(pairs) > MOST_PAIRS:
        return Verdict(reason=Diagnostic("several_pairs", reply=_quote(reply)))
    verdicts = {pair for line, pair in pairs.items() if not judge_reply.repeats_numbers(line)}
    if not verdicts and judge_reply.short and pairs:
        line, pair = next(iter(pairs.items()))
        verdicts = {pair} if line.startswith(lines[0]) else verdicts
    if len(verdicts) != 1:
        return Verdict(reason=Diagnostic("several_pairs" if verdicts else "no_pair", reply=_quote(reply)))
    first, second = verdicts.pop()
    return _in_range({"first": first, "second": second}, low, high, reply)


@_telling_repeats
def read_preferred(reply: str, *, answer: str = "") -> Verdict:
    """Read the better of two answers as `first` and `second`: 1, 0, or 0.5 for a tie.

    The first or the last line of the reply is `first`, `second` or `tie`, also as `A`, `B` or `equal`, after `Better:`
    or `Verdict:`, alone, or in a plain sentence (`The first answer is better.`). Contradicting lines are no verdict.
    `answer` is the judged answer, whose repetitions are ignored.
    """
    judge_reply = JudgeReply(reply, answer)
    lines = [line.strip() for line in judge_reply.judge_text.replace(ECHO, " ").splitlines() if line.strip()]
    ends = {*lines[:1], *lines[-1:]}
    sides = {_SIDES[match[1].casefold()] for line in ends if (match := _PREFERRED.fullmatch(line))}
    sentences = [line for line in ends if not judge_reply.is_phrase_of_answer(line)]
    sides |= {share for line in sentences if (share := _preference(line)) is not None}
    if len(sides) != 1:
        return Verdict(reason=Diagnostic("several_preferences" if sides else "no_preference", reply=_quote(reply)))
    share = sides.pop()
    return Verdict({"first": share, "second": 1 - share})


def _preference(line: str) -> float | None:
    """The share of the first answer by a sentence that prefers one; None otherwise."""
    match = _PREFERENCE.fullmatch(line) if len(line) < SHOWN else None
    if match is None:
        return None
    share = 0.5 if match["tie"] else _SIDES[(match["better"] or match["preferred"]).casefold()]
    return None if _SIDES.get((match["worse"] or "").casefold()) == share else share


@_telling_repeats
def read_yes_no(reply: str, *, answer: str = "") -> Verdict:
    """Read yes (1) or no (0) as `score` from the start of the first or last line.

    `answer` is the judged answer, whose repetitions in the reply are ignored.
    """
    judge_reply = JudgeReply(reply, answer)
    answers: set[bool] = set()
    for judge_text in judge_reply.lines_without_echoes():
        lines = [line for line in judge_text.replace(ECHO, " ").splitlines() if line.strip()]
        ends = [
            line.casefold().strip(" \t*_.。!\"'()[]")
            for line in lines[:1] + lines[-1:]
            if not judge_reply.is_phrase_of_answer(line)
        ]
        marked = [
            match for line in ends if (match := _YES_NO.match(line)) and not judge_reply.is_phrase_of_answer(match[0])
        ]
        answers = {match[1] not in ("no", "否") for match in marked}
        if answers:
            break
    if len(answers) != 1:
        return Verdict(reason=Diagnostic("yes_and_no" if answers else "no_yes_or_no", reply=_quote(reply)))
    yes = answers.pop()
    ends = [m[1] for line in judge_reply.ends()[-1:] if (m := _CONCLUDES_YES_NO.search(line.casefold())) is not None]
    if ends and (ends[0] == "yes") != yes:
        return Verdict(reason=Diagnostic("reasoning_ends_in", last=ends[0], yes=yes, reply=_quote(reply)))
    return Verdict({"score": float(yes)})


@_telling_repeats
def read_letter(reply: str, *, choices: Mapping[str, str], answer: str = "") -> Verdict:
    """Read the letter of a choice, as `text`, from the reply's first and last line.

    Either line may be a letter alone, `Answer: B`, or `B. the text of choice B`. A letter that is no choice, two
    letters, and the word `none` are no verdict.

    Args:
        choices: the texts of the choices by letter.
        answer: the judged answer, whose repetitions in the reply are ignored.
    """
    judge_reply = JudgeReply(reply, answer)
    letters: set[str] = set()
    for judge_text in judge_reply.lines_without_echoes():
        lines = [line.strip() for line in judge_text.replace(ECHO, " ").splitlines() if line.strip()]
        ends = lines[:1] + lines[1:][-1:]
        if any(_NO_LETTER.match(line) for line in ends):
            return Verdict(reason=Diagnostic("judge_finds_no_option", reply=_quote(reply)))
        letters = {letter for line in ends if (letter := _letter(line, choices)) is not None}
        if letters:
            break
    if len(letters) != 1:
        return Verdict(reason=Diagnostic("several_options" if letters else "no_option", reply=_quote(reply)))
    letter = letters.pop()
    if letter not in choices:
        reason = Diagnostic("not_among_options", letter=letter, options=", ".join(choices), reply=_quote(reply))
        return Verdict(reason=reason)
    return Verdict(text=letter)


def _letter(line: str, choices: Mapping[str, str]) -> str | None:
    """The option letter that a line states, or whose text it is; None if unclear."""
    same = [letter for letter, choice in choices.items() if plain(choice) == plain(line)]
    if len(same) == 1:
        return same[0]
    match = _LETTER.fullmatch(line)
    if match is None:
        return None
    letter = match["letter"].upper()
    text = match["text"]
    return letter if text is None or plain(text) == plain(choices.get(letter, "")) else None


def majority(verdicts: Sequence[Verdict], name: str = "score") -> Verdict:
    """The most frequent value of `name`; none for a tie, or if most are unreadable."""
    counts = Counter(verdict.values.get(name) for verdict in verdicts)
    ranked = counts.most_common(2)
    if not ranked or ranked[0][0] is None or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return Verdict(reason=Diagnostic("replies_disagree", replies=len(verdicts)))
    return Verdict({name: ranked[0][0]})


def read_official(
    name: str, replies: Sequence[str | None], *, followed: bool | None = None, criteria: object = None
) -> Verdict:
    """Read a judge's replies to one question by a published reader.

    Args:
        name: such as `official/ultraeval-audio/chatbot-eval`; see `published.READERS`.
        replies: one reply, or all for the readers of `published.SEVERAL_REPLIES`; None for a missing reply.
        followed: whether the answer follows its rule; only `official/audiobench/ifeval-combined` needs it, and gives no
            number where it is unknown (None).
        criteria: those of the question, each with its `choices`; only `official/mmar/rubrics` needs them.

    Raises:
        UnknownName: there is no such reader.
        MissingExtra: the reader needs a package that is not installed.
    """
    if name not in _OFFICIAL:
        raise UnknownName("reply_reader", name, _OFFICIAL)
    arguments = [followed] if name == published.COMBINED else [criteria] if name == published.MMAR_RUBRICS else []
    several = name in published.SEVERAL_REPLIES
    try:
        values = _OFFICIAL[name](list(replies) if several else replies[0], *arguments)
    except MissingExtra:
        raise
    except Exception as error:  # the published program raises this exception too, and drops the item
        shown = _quote(str(replies[0]) if replies else "")
        return Verdict(reason=Diagnostic("official_error", type=type(error).__name__, reply=shown))
    if values is None:
        return Verdict(reason=Diagnostic("official_reads_nothing", reply=_quote(str(replies[0]))))
    return Verdict(values)


_OFFICIAL: Mapping[str, Callable[..., dict[str, float] | None]] = published.READERS


def _one_number(text: str) -> float | None:
    match = FULL_REPLY.fullmatch(text.strip())
    return float(match[1]) if match else None


def _the_rating(ratings: set[tuple[float, str | None]], low: float, high: float, reply: str) -> Verdict:
    """Turn the ratings found in a reply into a verdict; several are none.

    Args:
        ratings: (number, its stated maximum or None), such as (4, "5") for `4/5`; another maximum than `high` is none.
    """
    if len({value for value, _ in ratings}) > 1:
        return Verdict(reason=Diagnostic("several_ratings", reply=_quote(reply)))
    value, below = next(iter(ratings))
    if below is not None and float(below) != high:
        return Verdict(reason=Diagnostic("rating_of_other_scale", below=below, high=high, reply=_quote(reply)))
    return _in_range({"score": value}, low, high, reply)


def _in_range(values: dict[str, float], low: float, high: float, reply: str) -> Verdict:
    outside = [value for value in values.values() if not low <= value <= high]
    if outside:
        reason = Diagnostic("rating_out_of_range", rating=outside[0], low=low, high=high, reply=_quote(reply))
        return Verdict(reason=reason)
    return Verdict(values)


def _quote(text: str) -> str:
    line = " ".join(text[: 4 * SHOWN].split())
    short = len(line) <= SHOWN and len(text) <= 4 * SHOWN
    return f"'{line}'" if short else f"'{line[: SHOWN // 2]} ... {' '.join(text[-4 * SHOWN :].split())[-SHOWN // 2 :]}'"
