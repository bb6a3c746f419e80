"""Steps that read one decision: `option-letter`, `label` and `yes-no`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from codec_bench.benchmark.reading.base import NOTHING, REFUSAL, SEVERAL, Parsed, Step, Unparsed, quote
from codec_bench.benchmark.reading.choices import choices_of
from codec_bench.benchmark.reading.grammar import Mention, decide_options
from codec_bench.benchmark.reading.mentions import fold_text, letters_of, mentions_of, yes_no_mentions
from codec_bench.benchmark.reading.patterns import compile_pattern
from codec_bench.benchmark.reading.refusal import declines, is_unheard
from codec_bench.benchmark.reading.synonyms import phrases_of
from codec_bench.benchmark.reading.tables import answer_in, likeliest_options, loaded
from codec_bench.benchmark.reading.words import plain
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError


def option_letter(letters: str | None) -> Step:
    """The letter of the chosen option.

    The whole answer may be a letter or the text of a choice, a field of JSON, or a list of probabilities. Else the
    stances of all its letters and texts decide (`codec_bench.benchmark.reading.grammar`). A letter inside other words
    ("vitamin C") is no option.

    Args:
        letters: the possible letters, such as `ABCD`; None for those of the row's choices, or A to D without choices.
    """

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Extract the letter of the option that an answer chooses."""
        choices = choices_of(fields)
        allowed = letters or "".join(choices) or "ABCD"
        phrases = {phrase: letter for letter, choice in choices.items() for phrase in _phrases_of(choice)}
        sources = _find_sources(choices)
        chosen = _read(
            fold_text(text),
            lambda content: _match_full_text(content, choices, allowed),
            lambda content: (
                [*_texts_alone(content, mentions_of(content, phrases)), *letters_of(content, allowed)]
                or mentions_of(content, sources)
            ),
            len(choices) or len(allowed),
        )
        return _decision(chosen, text, "option")

    return step


def _read(
    text: str, match_full: Callable[[str], set[str]], find: Callable[[str], list[Mention]], options: int
) -> set[str]:
    """The options that an answer chooses; several or none if it is unclear.

    Args:
        match_full: the options that a whole text means.
        find: the mentions of options in a text.
        options: number of options.
    """
    if same := match_full(text):
        return same
    value = loaded(text)
    listed = likeliest_options(text, value, lambda name: next(iter(match_full(name)), None))
    if listed is not None:
        return listed
    if (inner := answer_in(value)) is not None and inner != text:
        return _read(inner, match_full, find, options)
    return decide_options(text, find(text), options=options)


_LEADING = compile_pattern("option", "leading")


def _without_leading(choice: str) -> str:
    leading = _LEADING.match(choice)
    return choice[leading.end() :] if leading else choice


def _phrases_of(choice: str) -> list[str]:
    """A choice, and the same without leading function words."""
    rest = _without_leading(choice)
    return [one for one in dict.fromkeys((choice, rest)) if one.strip() and (one == choice or len(one) > 2)]


def _find_sources(choices: Mapping[str, str]) -> dict[str, str]:
    """Map the sound source of a choice, `dog` of `a dog barking`, to its letter."""
    words = {letter: re.findall(r"[^\W\d_]+", _without_leading(text).lower()) for letter, text in choices.items()}
    counts = Counter(word for listed in words.values() for word in set(listed))
    return {
        listed[0]: letter
        for letter, listed in words.items()
        if 2 <= len(listed) <= 4
        and listed[1].endswith("ing")
        and not listed[0].endswith("ing")
        and counts[listed[0]] == 1
    }


def _texts_alone(text: str, mentions: Iterable[Mention]) -> list[Mention]:
    """Mentions by text, except before a single letter ("vitamin C")."""
    return [one for one in mentions if not re.match(r" [A-Z](?!\w)", text[one.end : one.end + 3])]


def _decision(chosen: set[str], text: str, kind: str, labels: Sequence[str] = ()) -> Parsed | Unparsed:
    """Return the only chosen option; none or several are unparsed, with the reason.

    Args:
        kind: `option`, `label` or `yes_no`. labels: those of the question.
    """
    if len(chosen) == 1:
        return Parsed(next(iter(chosen)))
    if declines(text) or is_unheard(text):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    if chosen:
        matches = sorted(chosen)
        reason = Diagnostic("several_answers", kind=kind, labels=labels, matches=matches, answer=quote(text))
        return Unparsed(reason, SEVERAL)
    return Unparsed(Diagnostic("no_such_answer", kind=kind, labels=labels, answer=quote(text)), NOTHING)


def label(listed: str | None) -> Step:
    """Extract the one label of a set that an answer names, in the set's spelling.

    This builds the step. `not happy`, `far from happy` and `can't say whether she is happy` do not name `happy`. Digits
    may be words (`seven`), and `male` and `female` may be `man`, `woman`, 男, 女. Unparsed if no label occurs, or
    several.

    Args:
        listed: the labels, separated by commas; None for the row's `labels` (a list, or the values of a mapping).
    """
    labels_listed = [name.strip() for name in listed.split(",") if name.strip()] if listed else None
    if listed is not None and not labels_listed:
        raise UserError("step_without_label", listed=listed, hint="name some, such as label[happy,sad,neutral]")

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Extract the label that an answer names."""
        labels = labels_listed or labels_of(fields.get("labels"))
        if not labels:
            return Unparsed(Diagnostic("no_labels"))
        phrases = phrases_of(tuple(labels))
        by_text = {plain(phrase): name for phrase, name in phrases.items()}

        def match_full(content: str) -> set[str]:
            bare = plain(content)
            return {one for one in labels if plain(one) == bare} or ({by_text[bare]} if bare in by_text else set())

        chosen = _read(
            fold_text(text),
            match_full,
            lambda content: _without_pronouns(content, mentions_of(content, phrases)),
            len(labels),
        )
        if declines(text):
            chosen = set()
        return _decision(chosen, text, "label", labels)

    return step


def _without_pronouns(text: str, mentions: list[Mention]) -> list[Mention]:
    """Mentions without the pronoun or article "one" and single letters ("I'm")."""
    return [
        one
        for one in mentions
        if not _PRONOUN.match(text, one.start) and not (re.fullmatch("[a-z]", text[one.start : one.end]))
    ]


_PRONOUN = compile_pattern("option", "pronoun")
"""The number one as a pronoun or an article."""


def yes_no(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """Extract `yes` or `no` at a clause's start or after `the answer is`.

    Twelve languages are read. Chinese answers are read by their first words (`是的`, `对`, `不是`, `没有`). `no idea` and
    `there is no audio` are no answers. Unparsed if neither occurs, or both.
    """
    content = fold_text(text)
    if (inner := answer_in(loaded(content))) is not None:
        content = inner
    if declines(content):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    return _decision(decide_options(content, yes_no_mentions(content), options=2), text, "yes_no")


def labels_of(values: Any) -> list[str]:
    """A question's labels: a list, a mapping's values, or a comma-separated text."""
    if isinstance(values, str):
        values = values.split(",")
    if isinstance(values, Mapping):
        values = values.values()
    return [str(one).strip() for one in values or () if str(one).strip()] if isinstance(values, Iterable) else []


def _match_full_text(text: str, choices: Mapping[str, str], allowed: str) -> set[str]:
    """The letters that a bare answer, a letter or an option's text, can mean.

    `B` may be the letter, and the text of another choice.
    """
    if (marked := re.fullmatch(r"\s*A\s?:\s*([A-Z])\W*", text)) and marked[1] in allowed:
        return {"A", marked[1]}  # "A:" may be the option or the answer
    bare = plain(text).strip("()[]{}<>$_ ").upper()
    letters = {bare} if len(bare) == 1 and bare in allowed else set()
    labelled = re.fullmatch(r"[(\[]?([a-z])[)\].:、]\s*(\S.*)", plain(text), re.DOTALL)
    texts = {letter: plain(choice) for letter, choice in choices.items()}
    letters |= {letter for letter, choice in texts.items() if choice and choice == plain(text)}
    if labelled and labelled[1].upper() in allowed:
        same = {letter for letter, choice in texts.items() if choice and choice == labelled[2].strip()}
        letters |= same | {labelled[1].upper()} if same else set()
    return letters
