"""Decide for which option a text speaks, clause by clause.

Each option in a text has a stance by its clause: announced as the answer, asserted, possible, negated, compared, quoted
or in a question. The strongest stance decides; a later correction outranks earlier text. `cues.yaml` has the cues of
each stance in English, Chinese, German, French, Spanish, Italian, Portuguese, Russian, Japanese, Korean, Arabic and
Hindi. Joined options ("A or B") are one group with one stance. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

import yaml

from codec_bench.benchmark.reading.patterns import compile_pattern

REACH = 90
"""The most characters of a clause before and after a mention."""
MOST = 400
"""How many mentions count."""


class Mention(NamedTuple):
    """A place in a text that names an option."""

    key: str
    start: int
    end: int


class Group(NamedTuple):
    """Joined mentions: options, start, end, stance, and hedged or additive."""

    keys: frozenset[str]
    start: int
    end: int
    level: int
    hedged: bool = False
    added: bool = False


# The levels of a stance. The highest one decides; options at the lowest levels never do.
FINAL, ANSWER, CONCLUSION, ASSERTED, REASON, ASIDE, NEGATED = 5, 4, 3, 2, 1, 0, -1


@cache
def cue_pattern(role: str) -> re.Pattern[str]:
    """Compile the words of a role in `cues.yaml`, such as `negate`, to a pattern."""
    entry = _table()[role]
    words = rf"(?<![^\W_])[وف]?(?:{entry['words']})(?![^\W_])" if entry.get("words") else ""
    return re.compile("|".join(filter(None, (words, entry.get("parts", "")))), re.IGNORECASE)


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    roles = yaml.safe_load(files(__package__).joinpath("cues.yaml").read_text(encoding="utf-8"))
    return {
        role: {kind: re.sub(r"\s*\|\s*", "|", text) for kind, text in entry.items()} for role, entry in roles.items()
    }


_FINAL = re.compile(
    r"(?<!\w)(?:final(?!ly)|finale|endgültig\w*|définitive|definitiv[ao]|итогов\w+)(?!\w)|最终|最終|최종|النهائ|अंतिम",
    re.IGNORECASE,
)
_CORRECTS = compile_pattern("grammar", "corrects")
_OPEN, _CLOSE = r"[\s(\[{<\"'“«「『【《*_`$\\]", r"[\s)\]}>\"'”»」』】》*_`$]"
_CLOSERS = re.compile(f"{_CLOSE}*")
_VERDICT = compile_pattern("grammar", "verdict")
_LESS_THAN = re.compile(
    r"(\b(?:less|weniger|moins|menos|meno)\b[^.,;:!?\n]{1,60}?)\b(than|als|que|che|do que)\b", re.IGNORECASE
)
_RANKS = re.compile(
    r"\b(?:i'd |i would |i |would |let me )rank\b|\b(?:from )?most to least (?:likely|plausible)|可能性从[高大]到[低小]",
    re.IGNORECASE,
)
_PERCENT_BEFORE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?%[^%\n]{0,50}\Z")
_PERCENT_AFTER = re.compile(r"[^\w\n]{0,6}(?:at |with |is )?(\d{1,3}(?:\.\d+)?) ?%")
_ONLY_BUT = re.compile(r"\b(?:anything|everything|all|nothing like|any) but\W{1,3}(?:an? |the )?\Z", re.IGNORECASE)
_OR = r"(?<!\w)(?:or|oder|ou(?: bien)?|o(?: bien)?|или|либо|أو|या)(?!\w)|还是|還是|或|または|또는|혹은|이나|이거나|か(?!ら)"
_OR_AFTER = re.compile(rf"{_CLOSE}{{0,4}}[.,…]{{0,3}}\s?(?:{_OR})(?! (?:so|rather)\b)\s?\w", re.IGNORECASE)
_OR_BEFORE = re.compile(
    rf"\w{_CLOSE}{{0,4}},?\s?(?:{_OR})\s?(?:an? |the |une? |eine? )?{_OPEN}{{0,4}}\Z", re.IGNORECASE
)
_ITEM = re.compile(r"(?:\A|\n)[\s>|*•\d-]*(?:\d[.)]\s)?[\s*(\[_\"`]*\Z")
_ENDS = re.compile(r"[.!?。！？;；\n]")


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Compile the patterns of clause ends, conjunctions and announced answers."""
    table = _table()
    openers = [
        rf"(?<![^\W_])(?:{table[role]['words']})(?![^\W_])|{table[role]['parts']}"
        for role in ("so", "but", "aside", "reason")
    ]
    joint = rf"(?<!\w)(?:{table['joins']['words']})(?!\w)|{table['joins']['parts']}"
    return {
        "break": compile_pattern("grammar", "break", openers="|".join(openers)),
        "join": compile_pattern("grammar", "join", open=_OPEN, close=_CLOSE, joint=joint),
        # A mark after a cue of an answer does not end its clause.
        "announced": compile_pattern("grammar", "announced", answer=cue_pattern("answer").pattern),
    }


def decide_options(text: str, mentions: Sequence[Mention], *, options: int) -> set[str]:
    """Decide which of the mentioned options an answer chooses.

    Args:
        text: as `fold_text` returns it.
        mentions: in any order.
        options: number of options.

    Returns:
        The chosen option; several if it stays undecided, none if all are rejected or doubtful.
    """
    last = max(_CORRECTS.finditer(text), key=re.Match.start, default=None)
    start = last.end() if last is not None and last.start() else 0
    text = text[start:]
    shifted = [Mention(one.key, one.start - start, one.end - start) for one in mentions if one.start >= start]
    masked = _mask(text)
    groups = list(_groups(text, masked, shifted[:MOST]))
    ranks = _RANKS.search(masked)
    ranked = [group for group in groups if ranks is not None and group.start >= ranks.end()]
    if len(ranked) > 1 and len(ranked[0].keys) == 1:
        return set(ranked[0].keys)
    groups = _without_list(text, groups, options)
    level = max((group.level for group in groups), default=NEGATED)
    if level < REASON:
        quoted = {key for group in groups if group.level == ASIDE for key in group.keys}
        return quoted if len(quoted) > 1 else set()
    top = [group for group in groups if group.level == level]
    keys = {key for group in top for key in group.keys}
    if len(keys) > 1:
        top = _most_probable(text, top) or _after_turn(masked, top)
        keys = {key for group in top for key in group.keys}
    if len(keys) > 1 and len(top[-1].keys) == 1 and all(top[-1].keys < group.keys for group in top[:-1]):
        keys = set(top[-1].keys)
    if len(keys) != 1:
        return keys
    rivals = {
        key for group in groups if group.level >= ASSERTED and (group.added or group.hedged) for key in group.keys
    }
    if level <= CONCLUSION and rivals - keys:
        return rivals | keys
    doubts = len(cue_pattern("hedge").findall(masked)) + bool(cue_pattern("unsure").search(masked))
    is_doubtful = all(group.hedged for group in top) and doubts > 1
    return set() if is_doubtful or any(_has_other(text, group) for group in top) else keys


def _mask(text: str) -> str:
    """Hide phrases that only look like negations, and marks after "the answer is"."""
    text = cue_pattern("affirm").sub(lambda match: "·" * len(match[0]), text)
    text = _LESS_THAN.sub(lambda match: f"{match[1]}{',' * len(match[2])}", text)
    return _patterns()["announced"].sub(lambda match: re.sub(r"[\n:：=#—–*_]", " ", match[0]), text)


def _groups(text: str, masked: str, mentions: Sequence[Mention]) -> Iterator[Group]:
    """Group mentions joined by conjunctions, each with its clause's stance."""
    held: list[Mention] = []
    for one in _merged(text, mentions):
        if held and not joins(text, held[-1].end, one.start):
            yield _group(text, masked[: one.start], held, masked)
            held = []
        held.append(one)
    if held:
        yield _group(text, masked, held, masked)


def joins(text: str, end: int, start: int) -> bool:
    """Whether only a conjunction is between two mentions (`end` of one to `start`)."""
    return start - end <= REACH and _patterns()["join"].fullmatch(text, end, start) is not None


def _merged(text: str, mentions: Sequence[Mention]) -> Iterator[Mention]:
    """Sort mentions; a letter and its text next to it become one mention."""
    last: Mention | None = None
    for one in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if last is not None and one.start < last.end:
            continue
        between = text[last.end : one.start] if last is not None and one.key == last.key else None
        if last is not None and between is not None and re.fullmatch(r"[\W_]{0,6}(?:the |an? )?", between):
            last = Mention(last.key, last.start, one.end)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _group(text: str, until: str, held: Sequence[Mention], masked: str) -> Group:
    """Build a group of mentions: chosen, asserted, aside or negated by its clause.

    Args:
        until: the text up to the next mention.
        masked: the whole text by `_mask`.
    """
    start, end = held[0].start, held[-1].end
    before, after = clause_before(masked, start), _clause_after(masked, end)
    at = _CLOSERS.match(masked, end).end()  # type: ignore[union-attr]
    group = Group(frozenset(one.key for one in held), start, end, ASSERTED)
    verdict = _VERDICT.match(text, end)
    closing = _ENDS.search(masked, end, end + REACH)
    if verdict is not None:
        return group._replace(level=ANSWER if verdict["yes"] else NEGATED)
    if (
        cue_pattern("negate").search(before)
        or cue_pattern("negated").match(masked, at, at + REACH)
        or cue_pattern("negated_late").search(_clause_after(until, end))
        or _ONLY_BUT.search(masked[max(0, start - 30) : start])
    ):
        return group._replace(level=NEGATED)
    if cue_pattern("first").search(before) or cue_pattern("aside").search(before) or cue_pattern("list").search(before):
        return group._replace(level=ASIDE)
    if cue_pattern("listed").match(masked, at) or (closing is not None and closing[0] in "?？"):
        return group._replace(level=ASIDE)
    hedged = bool(cue_pattern("hedge").search(before) or cue_pattern("hedge").search(after))
    added = bool(cue_pattern("too").search(before) or cue_pattern("too").search(after))
    if _FINAL.search(before):
        level = FINAL
    elif cue_pattern("answer").search(before) or cue_pattern("answers").match(masked, at, at + REACH):
        level = ANSWER
    elif cue_pattern("reason").search(before) or re.match(
        r" ?(?:accent\w*|口音|akzent|acento)\b", masked[at : at + 10], re.IGNORECASE
    ):
        level = REASON
    elif cue_pattern("so").search(before) or (not before.strip(" *_\"'`([#>-") and not after.strip(" *_\"'`)]")):
        level = CONCLUSION
    else:
        level = ASSERTED
    return group._replace(level=level, hedged=hedged, added=added)


def clause_before(text: str, at: int) -> str:
    """The part of a clause before a position, with the word that opens the clause."""
    before = text[max(0, at - REACH) : at]
    last = max(_patterns()["break"].finditer(before), key=re.Match.start, default=None)
    if last is None:
        return before
    return before[last.start() if last[0][0].isalnum() else last.end() :]


def _clause_after(text: str, at: int) -> str:
    after = text[at : at + REACH]
    first = _patterns()["break"].search(after, _CLOSERS.match(after).end())  # type: ignore[union-attr]
    return after[: first.start()] if first is not None else after


def _without_list(text: str, groups: list[Group], options: int) -> list[Group]:
    """Remove groups that only quote the options: all at once, or one per line."""
    most = min(options, 3)
    if len(groups) > 1:
        groups = [group for group in groups if len(group.keys) < max(most, 2) or len(group.keys) < options]
    items: dict[str, Group] = {}
    for group in groups:
        alone = not text[group.end : group.end + 3].strip(" *_)].:") and group.end - group.start < 2
        if (
            _ITEM.search(text[max(0, group.start - 30) : group.start])
            and not alone
            and len(group.keys) == 1
            and group.level < ANSWER
        ):
            items.setdefault(min(group.keys), group)
    if len(items) < max(most, 2):
        return groups
    return [group for group in groups if group not in items.values()]


def _most_probable(text: str, candidates: list[Group]) -> list[Group]:
    """The groups with the highest percentage next to them; empty unless all have one."""
    shares, end = [], 0
    for group in candidates:
        after = _PERCENT_AFTER.match(text, group.end)
        stated = after or _PERCENT_BEFORE.search(text[max(end, group.start - 60) : group.start])
        if stated is None:
            return []
        shares.append(float(stated[1]))
        end = group.end if after is None else after.end()
    return [group for group, share in zip(candidates, shares) if share == max(shares)]


def _after_turn(text: str, candidates: list[Group]) -> list[Group]:
    """Candidates after the last "but" or the like; all of them if those are hedged."""
    for turn in reversed(list(islice(cue_pattern("but").finditer(text), MOST))):
        later = [group for group in candidates if group.start >= turn.start()]
        if later and len(later) < len(candidates):
            return later if not any(group.hedged or group.added for group in later) else candidates
    return candidates


def _has_other(text: str, group: Group) -> bool:
    """Whether the text joins something else to a group by "or"."""
    return bool(
        _OR_AFTER.match(text, group.end)
        or _OR_BEFORE.search(text[max(0, group.start - 30) : group.start])
        or cue_pattern("either").search(clause_before(text, group.start))
    )
