"""What a judge's reply says: the project's own readers, and published ones by name.

Conventions
    A reader gives a `Verdict`: numbers by name, or a reason why there are none. It never raises, whatever the reply
    holds, and never falls back to a number. The project's own readers take a verdict only where there is one: several
    that differ are none. What the reply quotes (in quotation marks, fences, or after `>`), and what it repeats of the
    judged answer, does not count: neither the whole answer nor a verdict that stands in it. An answer that imitates a
    verdict so earns nothing by being cited, and what cannot be told from a citation is no verdict. One equal to an
    imitated one counts where it stands once more, as the reply's last line and nothing else. An answer of less than 5
    characters is more often honest (`5`, `Yes`): there the reply's first line counts too. Published readers
    (`official/TOOLKIT/NAME`) keep their quirks and agree with their sources case by case
    (tests/golden/text).
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codec_bench.judges import published

SHOWN = 80
_FLAT_OBJECT = re.compile(r"^[ \t]{0,8}(\{[^{}]{0,4000}\})[ \t]*$", re.MULTILINE)
_QUOTES = re.compile(
    r"```.{0,20000}?(?:```|\Z)|^[ \t]{0,8}>[^\n]*|\"[^\"\n]{1,2000}\"|`[^`\n]{1,2000}`"
    r"|“[^“”\n]{1,2000}”|‘[^‘’\n]{1,2000}’|「[^「」\n]{1,2000}」",
    re.DOTALL | re.MULTILINE,
)
_N = r"(-?\d{1,6}(?:\.\d{1,6})?)(?![.,_]?\d|[A-Za-z_])"
_OUT_OF = r"(?:\s?/\s?(?P<below>\d{1,4})|\s+out\s+of\s+(?P<of>\d{1,4}))?"
_BRACKETED = re.compile(rf"\[\[\s?{_N}\s?{_OUT_OF}\s?\]\]")
_LABELLED = re.compile(
    rf"(?:rating|score|评分|得分|分数)[\s*_]{{0,4}}(?:[:=]|is)[\s*_(\[]{{0,6}}{_N}{_OUT_OF}", re.IGNORECASE
)
_WHOLE = re.compile(rf"[\s*_(\[]{{0,6}}{_N}{_OUT_OF}[\s*_)\].]{{0,6}}")
_OBJECT = re.compile(r"\{[^{}]{0,4000}\}")
_YES_NO = re.compile(r"(?:answer|verdict|result|结论|答案)?\s?[:]?[\s*]{0,4}(yes|no|是的?|否)\b")
_IMITATES = re.compile(r"\d|yes|no|是|否", re.IGNORECASE)
_ONE_WORD = re.compile(r"[-\w.]+[!。]?")
_MARKS = " \t\r*_`"
_ECHO = "…"
"""Stands where something was taken out; text in NFKC has no such character, so no verdict comes about across it."""
SHORT = 5
"""Characters below which an answer is as likely an honest `5` or `Yes` as an imitation."""
PHRASE = 8
"""Characters from which a line that stands within a line of the answer is no accident: `Yes` is, `Yes, it is` is not."""
MOST_PAIRS = 8
"""Different lines that are pairs, each of which is looked for in the answer; where there are more, none counts."""
_PAIR = re.compile(rf"[\s*(\[]{{0,6}}{_N}(?:[ \t]*[,;/|\s][ \t]*){_N}[\s*)\].]{{0,6}}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply says.

    Args:
        values: numbers by name (`score`; `first` and `second`; ...); empty where there are none.
        reason: why there are none, with the shortened reply; None where there are some.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None


def read_rating(reply: str, *, low: float, high: float, key: str = "score", answer: str = "") -> Verdict:
    """The one rating in a reply, as `score`.

    Read in this order, the first kind that occurs deciding: the field `key` of a reply that is one JSON object
    (fenced or not), or of an object on lines of its own; `[[4]]`; `Rating: 4`, `Score: 4`, `评分：4`; a reply that is one number. `4/5` counts where 5 is the
    highest rating.

    Args:
        low, high: the range of the rubric; a number outside is no rating.
        key: the field of a JSON reply.
        answer: the judged answer, whose repetitions are taken out before reading.
    """
    said = _Said(reply, answer)
    given = said.objects(key)
    if len({json.dumps(one.get(key)) for one in given}) > 1:
        return Verdict(reason=f"there are several ratings in {_quote(reply)}")
    if given:
        value = given[0].get(key)
        if isinstance(value, str):
            value = _one_number(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return Verdict(reason=f"the field '{key}' holds no number in {_quote(reply)}")
        return _in_range({"score": float(value)}, low, high, reply)
    for own in said.own_lines():
        for pattern in (_BRACKETED, _LABELLED):
            found = {(float(m[1]), m["below"] or m["of"]) for m in pattern.finditer(own)}
            if found:
                return _the_rating(found, low, high, reply)
        whole = _WHOLE.fullmatch(own.replace(_ECHO, " ").strip())
        if whole is not None:
            return _the_rating({(float(whole[1]), whole["below"] or whole["of"])}, low, high, reply)
    return Verdict(reason=f"there is no rating in {_quote(reply)}")


def read_pair(reply: str, *, low: float, high: float, answer: str = "") -> Verdict:
    """Two ratings, as `first` and `second`: the one line of the reply that is two numbers and nothing else.

    Args:
        low, high: the range of the rubric.
        answer: the judged answer, whose repetitions are taken out before reading.
    """
    said = _Said(reply, answer)
    lines = [line for line in said.own.replace(_ECHO, " ").splitlines() if line.strip()]
    pairs = {line: (float(m[1]), float(m[2])) for line in lines if len(line) < SHOWN and (m := _PAIR.fullmatch(line))}
    if not pairs and len(lines) == 2 and all(len(line) < SHOWN for line in lines):
        one, two = (_WHOLE.fullmatch(line.strip()) for line in lines)
        pairs = {"\n".join(lines): (float(one[1]), float(two[1]))} if one and two else {}
    if len(pairs) > MOST_PAIRS:
        return Verdict(reason=f"there are several pairs of ratings in {_quote(reply)}")
    found = {pair for line, pair in pairs.items() if not said.repeats(line)}
    if not found and said.short and pairs:
        first, pair = next(iter(pairs.items()))
        found = {pair} if first.startswith(lines[0]) else found
    if len(found) != 1:
        return Verdict(reason=f"there {'are several pairs' if found else 'is no pair'} of ratings in {_quote(reply)}")
    first, second = found.pop()
    return _in_range({"first": first, "second": second}, low, high, reply)


def read_yes_no(reply: str, *, answer: str = "") -> Verdict:
    """1 for yes, 0 for no, as `score`: the first or the last line's only word, marks aside."""
    said = _Said(reply, answer)
    found: set[bool] = set()
    for own in said.own_lines():
        lines = [line for line in own.replace(_ECHO, " ").splitlines() if line.strip()]
        ends = [line.casefold().strip(" \t*_.。!\"'()[]") for line in lines[:1] + lines[-1:] if not said.holds(line)]
        marked = [match for line in ends if (match := _YES_NO.match(line)) and not said.holds(match[0])]
        found = {match[1] not in ("no", "否") for match in marked}
        if found:
            break
    if len(found) != 1:
        return Verdict(reason=f"there is {'both yes and no' if found else 'neither yes nor no'} in {_quote(reply)}")
    return Verdict({"score": float(found.pop())})


def read_ranking(reply: str, *, names: Sequence[str], answers: Sequence[str] = ()) -> Verdict:
    """The rank of each name, 1 for the best: a JSON list of objects with `model` and `rank`, or an object that holds
    one.

    Args:
        names: who is ranked; each must stand there once, with ranks from 1 on.
        answers: the judged answers, whose repetitions are taken out before reading.
    """
    text = reply
    for answer in answers:
        text = "" if _squeezed(reply) in _squeezed(answer) else _without_answer(text, answer.strip())
    try:
        given = json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return Verdict(reason=f"there is no JSON ranking in {_quote(reply)}")
    if isinstance(given, dict) and len(given) == 1:
        given = next(iter(given.values()))
    entries = given if isinstance(given, list) and all(isinstance(entry, dict) for entry in given) else []
    ranks = {entry.get("model"): entry.get("rank") for entry in entries if isinstance(entry.get("model"), str)}
    whole = all(isinstance(rank, int) and not isinstance(rank, bool) for rank in ranks.values())
    if (
        len(entries) != len(names)
        or set(ranks) != set(names)
        or not whole
        or sorted(ranks.values()) != [*range(1, len(names) + 1)]
    ):
        return Verdict(reason=f"the ranking does not rank {', '.join(names)} in {_quote(reply)}")
    return Verdict({name: float(ranks[name]) for name in names})


def majority(verdicts: Sequence[Verdict], name: str = "score") -> Verdict:
    """What most of several replies say; undecided where two values are as frequent, and where most say nothing."""
    counts = Counter(verdict.values.get(name) for verdict in verdicts)
    ranked = counts.most_common(2)
    if not ranked or ranked[0][0] is None or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return Verdict(reason=f"{len(verdicts)} replies do not agree")
    return Verdict({name: ranked[0][0]})


def read_official(name: str, replies: Sequence[str | None], *, followed: bool = False) -> Verdict:
    """What a published reader makes of a judge's replies to one item.

    Args:
        name: such as `official/ultraeval-audio/chatbot-eval`; see `official_names`.
        replies: one, or three for VoiceBench's; None where the judge gave none.
        followed: whether the answer follows its rule, for `official/audiobench/ifeval-combined`.

    Raises:
        UnknownName: there is no such reader.
    """
    if name not in _OFFICIAL:
        from codec_bench.errors import UnknownName

        raise UnknownName("published reader of replies", name, _OFFICIAL)
    given = [followed] if name == published.COMBINED else []
    several = name in published.SEVERAL_REPLIES
    try:
        values = _OFFICIAL[name](list(replies) if several else replies[0], *given)
    except (
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        KeyError,
        SyntaxError,
        MemoryError,
        RecursionError,
    ) as error:
        # The sources end in these; they lose the item, and its reason with it.
        return Verdict(
            reason=f"{type(error).__name__} as in the source, at {_quote(str(replies[0]) if replies else '')}"
        )
    if values is None:
        return Verdict(reason=f"the published rule reads nothing in {_quote(str(replies[0]))}")
    return Verdict(values)


def official_names() -> list[str]:
    """The names of the published readers."""
    return sorted(_OFFICIAL)


_OFFICIAL: Mapping[str, Callable[..., dict[str, float] | None]] = published.READERS


class _Said:
    """What a reply says of its own: without what it quotes and what it repeats of the answer.

    Args:
        reply: of the judge. answer: what it judged.
    """

    def __init__(self, reply: str, answer: str) -> None:
        answer = answer.strip()
        self.short = len(answer) < SHORT
        part = _squeezed(reply) in _squeezed(answer) and not _ONE_WORD.fullmatch(reply.strip())
        self._rest = "" if part and not self.short else _without_answer(reply, answer)
        self._reply, self._answer = unicodedata.normalize("NFKC", reply), unicodedata.normalize("NFKC", answer)
        self._here, self._there = _pieces(self._reply), _pieces(self._answer)
        text = unicodedata.normalize("NFKC", self._rest)
        bare = _QUOTES.sub(" ", _unfenced(text))
        own = bare if bare.strip() else text
        for pattern in (_OBJECT, _BRACKETED, _LABELLED):
            own = self._without_echoes(pattern, own)
        self.own = own

    def objects(self, key: str) -> list[dict[str, Any]]:
        """The reply where it is one JSON object, else flat ones with the key that stand on lines of their own."""
        text = _unfenced(self._rest)
        whole = _loaded(text)
        if whole is not None:
            if _OBJECT.fullmatch(text):
                return [] if self._echoed(_key(_OBJECT, text), True) else [whole]
            return [] if _squeezed(text) in _squeezed(self._answer) else [whole]
        end = len(self._rest.rstrip(_MARKS + "\n"))
        own = [
            _loaded(match[1])
            for match in _FLAT_OBJECT.finditer(self._rest)
            if not self._echoed(_key(_OBJECT, match[1]), match.end(1) >= end)
        ]
        return [one for one in own if one is not None and key in one]

    def own_lines(self) -> Iterator[str]:
        """Its words without lines that stand in the answer; then, for a short answer or a reply of one bare word, with the
        first line at any rate: a rubric that asks for the number alone is answered so, whatever the answer holds."""
        lines = [line for line in self.own.splitlines() if line.strip()]
        own = [line for at, line in enumerate(lines) if not self._echoed_line(line, at == len(lines) - 1)]
        yield "\n".join(own)
        bare = len(lines) == 1 and _ONE_WORD.fullmatch(lines[0].strip(_MARKS)) is not None
        if (self.short or bare) and lines and own[:1] != lines[:1]:
            yield "\n".join([lines[0], *own])

    def holds(self, line: str) -> bool:
        """Whether a line, or its beginning, is a phrase of the answer, in any case."""
        phrase = _line(line).casefold()
        return len(phrase) >= PHRASE and phrase in " ".join(self._answer.casefold().split())

    def repeats(self, line: str) -> bool:
        """Whether numbers on lines stand in the answer, and not once more at the reply's end."""
        words = " ".join(line.split())
        pattern = re.compile(rf"(?<![\d.]){re.escape(words)}(?![.,]?\d)")
        reply, answer = " ".join(self._reply.split()), " ".join(self._answer.split())
        there = len(pattern.findall(answer))
        return there > 0 and not (reply.endswith(words) and len(pattern.findall(reply)) > there)

    def _echoed(self, key: Hashable, last: bool) -> bool:
        return key in self._there and not (last and self._here[key] > self._there[key])

    def _echoed_line(self, line: str, last: bool) -> bool:
        # A verdict with its mark was looked at already, wherever in a line it stood.
        if _BRACKETED.search(line) or _LABELLED.search(line):
            return False
        return self._echoed(_line(line), last)

    def _without_echoes(self, pattern: re.Pattern[str], text: str) -> str:
        start = text.rstrip().rfind("\n") + 1
        # Only a last line that is nothing else is a verdict again: `[[5]] is a trick` is not.
        lone = pattern.fullmatch(text[start:].strip(_MARKS + "\n.#")) is not None

        def kept(match: re.Match[str]) -> str:
            echoed = self._echoed(_key(pattern, match), lone and match.start() >= start)
            return _ECHO if echoed else match[0]

        return pattern.sub(kept, text)


def _pieces(text: str) -> Counter[Hashable]:
    """How often each imitation of a verdict, and each line, stands in a text in NFKC."""
    found: Counter[Hashable] = Counter(
        _key(pattern, match) for pattern in (_OBJECT, _BRACKETED, _LABELLED) for match in pattern.finditer(text)
    )
    found.update(line for line in map(_line, text.splitlines()) if line)
    return found


def _key(pattern: re.Pattern[str], match: re.Match[str] | str) -> Hashable:
    """What makes two imitations the same: all of an object, else the label and the number."""
    if pattern is _OBJECT:
        return "object", _squeezed(match if isinstance(match, str) else match[0])
    label = match[0][: match.start(1) - match.start()]
    return "rating", _squeezed(label).casefold(), float(match[1])


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_MARKS)


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _loaded(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        given = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _unfenced(text: str) -> str:
    """A reply that is one fenced block without its fence; any other without outer white space."""
    text = text.strip()
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    first, _, rest = text[3:-3].partition("\n")
    return rest.strip() if first.strip().isalpha() or not first.strip() else text[3:-3].strip()


def _without_answer(reply: str, answer: str) -> str:
    # A word such as "score" stands in replies by chance, and so does a short answer; one that is a verdict and nothing
    # else cannot be told from the judge's by its place.
    lone = any(pattern.fullmatch(answer) for pattern in (_OBJECT, _BRACKETED, _LABELLED, _WHOLE))
    if len(answer) < SHORT or lone or not _IMITATES.search(answer):
        return reply
    return reply.replace(answer, " ")


def _one_number(text: str) -> float | None:
    match = _WHOLE.fullmatch(text.strip())
    return float(match[1]) if match else None


def _the_rating(found: set[tuple[float, str | None]], low: float, high: float, reply: str) -> Verdict:
    if len({value for value, _ in found}) > 1:
        return Verdict(reason=f"there are several ratings in {_quote(reply)}")
    value, below = next(iter(found))
    if below is not None and float(below) != high:
        return Verdict(reason=f"the rating is out of {below}, not of {high:g}, in {_quote(reply)}")
    return _in_range({"score": value}, low, high, reply)


def _in_range(values: dict[str, float], low: float, high: float, reply: str) -> Verdict:
    outside = [value for value in values.values() if not low <= value <= high]
    if outside:
        return Verdict(reason=f"{outside[0]:g} is not between {low:g} and {high:g} in {_quote(reply)}")
    return Verdict(values)


def _quote(text: str) -> str:
    line = " ".join(text[: 4 * SHOWN].split())
    short = len(line) <= SHOWN and len(text) <= 4 * SHOWN
    return f"'{line}'" if short else f"'{line[: SHOWN // 2]} ... {' '.join(text[-4 * SHOWN :].split())[-SHOWN // 2 :]}'"
