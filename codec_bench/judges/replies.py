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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from codec_bench.judges import published
from codec_bench.judges.said import BRACKETED, ECHO, LABELLED, NUMBER, WHOLE, Said, squeezed, unfenced, without_answer

SHOWN = 80
_YES_NO = re.compile(r"(?:answer|verdict|result|结论|答案)?\s?[:]?[\s*]{0,4}(yes|no|是的?|否)\b")
MOST_PAIRS = 8
"""Different lines that are pairs, each of which is looked for in the answer; where there are more, none counts."""
_PAIR = re.compile(rf"[\s*(\[]{{0,6}}{NUMBER}(?:[ \t]*[,;/|\s][ \t]*){NUMBER}[\s*)\].]{{0,6}}")


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
    said = Said(reply, answer)
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
        for pattern in (BRACKETED, LABELLED):
            found = {(float(m[1]), m["below"] or m["of"]) for m in pattern.finditer(own)}
            if found:
                return _the_rating(found, low, high, reply)
        whole = WHOLE.fullmatch(own.replace(ECHO, " ").strip())
        if whole is not None:
            return _the_rating({(float(whole[1]), whole["below"] or whole["of"])}, low, high, reply)
    return Verdict(reason=f"there is no rating in {_quote(reply)}")


def read_pair(reply: str, *, low: float, high: float, answer: str = "") -> Verdict:
    """Two ratings, as `first` and `second`: the one line of the reply that is two numbers and nothing else.

    Args:
        low, high: the range of the rubric.
        answer: the judged answer, whose repetitions are taken out before reading.
    """
    said = Said(reply, answer)
    lines = [line for line in said.own.replace(ECHO, " ").splitlines() if line.strip()]
    pairs = {line: (float(m[1]), float(m[2])) for line in lines if len(line) < SHOWN and (m := _PAIR.fullmatch(line))}
    if not pairs and len(lines) == 2 and all(len(line) < SHOWN for line in lines):
        one, two = (WHOLE.fullmatch(line.strip()) for line in lines)
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
    said = Said(reply, answer)
    found: set[bool] = set()
    for own in said.own_lines():
        lines = [line for line in own.replace(ECHO, " ").splitlines() if line.strip()]
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
        text = "" if squeezed(reply) in squeezed(answer) else without_answer(text, answer.strip())
    try:
        given = json.loads(unfenced(text))
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


def _one_number(text: str) -> float | None:
    match = WHOLE.fullmatch(text.strip())
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
