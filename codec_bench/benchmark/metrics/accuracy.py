"""`accuracy[RULE]`: the share of right answers by a rule.

The project's own rules
    `exact`: the answer equals a reference, apart from case, compatibility forms, white space and closing marks.
    `prefix`: the answer begins with the words of a reference. `malefactor` does not begin with the word `male`.
    `contains`: the answer contains the words of a reference in a row. `female` does not contain the word `male`.
    `answer-match`: as `contains`, without accents and articles, for open questions with several references (`has
        answer` of D. Chen et al., "Reading Wikipedia to Answer Open-Domain Questions", ACL 2017). A Han character is a
        word.
    `choice`: the answer names the same option as the reference. Either may be a letter or the text of a choice.
    `number`: the numbers are exactly equal (`1,000.0` equals `1000`, `0.5` equals `1/2`).
    `label`: the answer has the words of a reference, with any separators (`throat-clearing`, `Throat clearing`).
    `mmau`: the answer has every word of the right choice and no word that only wrong choices have (S. Sakshi et al.,
        "MMAU", ICLR 2025). Labels such as `(A)` are removed first.

Published rules, with their quirks: `official/ultraeval-audio/...`, `official/audiobench/...`,
`official/air-bench/...`, `official/mmsu`, `official/rul-muchomusic`, `official/mimo-audio/...`,
`official/vocalbench/...` (see `ultraeval`, `audiobench`, `air_bench_foundation`, `mmsu`, `muchomusic`, `spoken_rules`).

The project's own rules never match an empty reference. Higher is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from codec_bench.benchmark.metrics import air_bench_foundation, audiobench, mmsu, muchomusic, spoken_rules, ultraeval
from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.reading.choices import chance_of, choices_of, named_choices, remove_label, right_letters
from codec_bench.benchmark.reading.number import read_number
from codec_bench.benchmark.reading.option import labels_of
from codec_bench.benchmark.reading.words import contains, plain, words
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Score, Status

_ARTICLES = frozenset(("a", "an", "the"))
TWO_CORRECT_OPTIONS = Diagnostic("doubled_choice")
"""The flag of a score whose question has its answer twice; by the project's own rules either is right."""

NO_LABEL = Diagnostic("no_such_label")
"""The flag of a score whose question has no right label, mostly because of another spelling in the data."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision of a rule about one answer.

    Args:
        value: 1 for a right answer, 0 for a wrong one, None if the rule has no value.
        status, reason: why there is no value.
        detail: what the rule read, for the record.
    """

    value: float | None
    status: Status = "ok"
    reason: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccuracyRule:
    """A rule and its needs.

    Args:
        decide: decides about an answer that has a reference.
        choices: whether it needs the row's choices, in any form that `choices_of` knows.
        source: where the rule was published.
        whole_set: whether it decides about all answers at once, in order, because one depends on earlier ones.
    """

    decide: Callable[..., Any]
    choices: bool = False
    source: str = ""
    whole_set: bool = False


class Accuracy(AnswerMetric):
    """The share of right answers. Higher is better; 1 is every answer right.

    Args:
        variant: the name of a rule in `RULES`.
    """

    compares = True

    def __init__(self, variant: str = "exact") -> None:
        if variant not in RULES:
            raise UnknownName("accuracy_rule", variant, RULES)
        self._rule = RULES[variant]
        self.name = f"accuracy[{variant}]"
        self.source = self._rule.source
        self.whole_set = self._rule.whole_set
        self.protocol = f"accuracy/{variant}-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """1 or 0 for each answer; no value without a reference or if the rule excludes it."""
        refusals = [self._refuse_unjudgeable(answer) for answer in answers]
        open_to_it = [answer for answer, bar in zip(answers, refusals) if bar is None]
        decide = self._rule.decide
        rulings = iter(decide(open_to_it) if self.whole_set else map(decide, open_to_it))
        return [
            bar if bar is not None else self._scored(answer, next(rulings)) for answer, bar in zip(answers, refusals)
        ]

    def worst(self, answer: Answer) -> Score:
        """0, even if the rule would match an empty text."""
        return Score.ok(0.0, self.protocol)

    def _refuse_unjudgeable(self, answer: Answer) -> Score | None:
        """An undefined score if the question lacks a reference or choices, else None."""
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        if self._rule.choices and not choices_of(answer.fields):
            return Score.undefined(Diagnostic("no_choices", id=answer.id), self.protocol)
        return None

    def _scored(self, answer: Answer, ruling: Ruling) -> Score:
        if ruling.value is None:
            return Score(None, ruling.status, ruling.reason, self.protocol, detail=ruling.detail)
        return Score.ok(ruling.value, self.protocol, detail={**ruling.detail, **_of_choices(answer)})


def _of_choices(answer: Answer) -> dict[str, Any]:
    """Score details: the chance of a right guess, and a flag if two choices are right."""
    chance = chance_of(answer.fields, answer.references)
    if chance is None:
        labels = {tuple(words(label)) for label in labels_of(answer.fields.get("labels"))}
        right = labels & {tuple(words(reference)) for reference in answer.references}
        return {"chance": len(right) / len(labels)} if right else {}
    has_twin = len(right_letters(answer.fields, answer.references)) > len(answer.references)
    return {"chance": chance, **({"flag": TWO_CORRECT_OPTIONS} if has_twin else {})}


def _any(matches: Callable[[str, str], bool]) -> AccuracyRule:
    return AccuracyRule(lambda answer: Ruling(float(any(matches(answer.text, ref) for ref in answer.references))))


def _exact(text: str, reference: str) -> bool:
    return plain(text) == plain(reference) != ""


def _prefix(text: str, reference: str) -> bool:
    expected = words(reference)
    return bool(expected) and words(text)[: len(expected)] == expected


def _contains(text: str, reference: str) -> bool:
    return contains(words(text), words(reference))


def _answer_match(text: str, reference: str) -> bool:
    items, expected = words(text, fold_accents=True), words(reference, fold_accents=True)
    # A reference of articles only ("The The") keeps them; without them it would be empty.
    bare = [item for item in expected if item not in _ARTICLES]
    return contains([item for item in items if item not in _ARTICLES], bare) if bare else contains(items, expected)


def _number(text: str, reference: str) -> bool:
    value = read_number(text)
    return value is not None and value == read_number(reference)


def _label(answer: Answer) -> Ruling:
    """Compare the answer's words with the references; flag one that is no label."""
    expected = [words(reference) for reference in answer.references]
    offered = [words(label) for label in labels_of(answer.fields.get("labels"))]
    strange = bool(offered) and not any(one in offered for one in expected)
    right = any(one and words(answer.text) == one for one in expected)
    return Ruling(float(right), detail={"flag": NO_LABEL} if strange else {})


def _choice(answer: Answer) -> Ruling:
    """Compare the letters that the answer and the reference name."""
    choices = choices_of(answer.fields)
    letters = "".join(choices) or "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    expected = {letter for ref in answer.references for letter in named_choices(ref, choices, letters)}
    if not expected:
        reason = Diagnostic("reference_outside_choices", reference=answer.references[0], choices=list(choices.values()))
        return Ruling(None, "undefined", reason)
    chosen = named_choices(answer.text, choices, letters)
    return Ruling(float(bool(chosen) and chosen <= expected), detail={"letter": "".join(sorted(chosen))})


def _mmau(answer: Answer) -> Ruling:
    """Apply MMAU's string match to answer and references, without labels like `(A)`."""
    choices = [*choices_of(answer.fields).values()]
    text = remove_label(answer.text)
    matches = (
        ultraeval.choice_strings_match(text, remove_label(ref), choices).match
        for ref in answer.references
        if ref.strip()
    )
    return Ruling(float(any(matches)))


def _match(decide: Callable[[Answer], ultraeval.Match]) -> Callable[[Answer], Ruling]:
    """Turn a published match rule into a ruling with the read options."""

    def ruling(answer: Answer) -> Ruling:
        """Apply the published rule; unparsed if it reads no option."""
        match = decide(answer)
        # Floats are stored as text, because a record must not hold NaN.
        sides = {"pred": match.pred, "ref": match.ref}
        detail = {key: str(text) if isinstance(text, float) else text for key, text in sides.items()}
        if match.letter:
            detail["letter"] = match.letter
        if match.reason:
            return Ruling(None, "undefined", match.reason, detail)
        if match.match is None:
            return _no_option(detail)
        return Ruling(float(match.match), detail=detail | ({"unread": True} if match.unread else {}))

    return ruling


def _several(answer: Answer) -> Any:
    """The references in the published program's form: a text, or a list of several."""
    return answer.references[0] if len(answer.references) == 1 else list(answer.references)


def _numeric_reference(answer: Answer) -> float | str:
    try:
        return float(answer.references[0])
    except ValueError:
        return answer.references[0]


def _listed(answer: Answer) -> list[str]:
    """The choices with their labels, because published rules compare the labels too."""
    texts = answer.fields.get("choices")
    return [str(one) for one in texts] if isinstance(texts, (list, tuple)) else [*choices_of(answer.fields).values()]


def _spoken(kind: Any, answer: Answer) -> Ruling:
    result = audiobench.spoken_mqa(answer.text, answer.references, kind)
    reason = None if result.acc is not None else Diagnostic("one_or_two_references")
    return Ruling(result.acc, "ok" if reason is None else "undefined", reason, {"extracted": result.extracted})


def _no_option(detail: dict[str, Any]) -> Ruling:
    return Ruling(None, "unparsed", "the published rule reads no option here and leaves the item out", detail)


def _foundation(answer: Answer) -> Ruling:
    """Apply AIR-Bench's foundation rule, which excludes answers without a letter."""
    result = air_bench_foundation.foundation(answer.text, answer.references[0], choices_of(answer.fields))
    if result.reason:
        return Ruling(None, "undefined", result.reason)
    if not result.counted:
        return _no_option({})
    return Ruling(float(bool(result.correct)), detail={"letter": result.letter})


def _mmsu(answer: Answer) -> Ruling:
    return _mmsu_ruling(mmsu.marked(answer.text, answer.references[0], choices_of(answer.fields)))


def _mmsu_in_order(answers: Sequence[Answer]) -> list[Ruling]:
    rows = [(answer.text, answer.references[0], choices_of(answer.fields)) for answer in answers]
    return [_mmsu_ruling(one) for one in mmsu.marked_in_order(rows)]


def _mmsu_ruling(marked_row: mmsu.MmsuDecision | None) -> Ruling:
    if marked_row is None:
        return Ruling(None, "undefined", Diagnostic("program_fails_at_first"))
    if not marked_row.counted:
        return _no_option({})
    return Ruling(float(marked_row.correct), detail={"letter": marked_row.letter or ""})


def _muchomusic(answer: Answer) -> Ruling:
    choices = choices_of(answer.fields)
    letter = muchomusic.letter_of(answer.text, choices)
    return Ruling(float(choices.get(letter or "") == answer.references[0]), detail={"letter": letter or ""})


def _speech_mmlu(answer: Answer) -> Ruling:
    letter = spoken_rules.speech_mmlu_letter(answer.text)
    return Ruling(float(letter == answer.references[0]), detail={"letter": letter or ""})


_ULTRAEVAL = "github.com/OpenBMB/UltraEval-Audio 9b69da6"
_AUDIOBENCH = "github.com/AudioLLMs/AudioBench e991641"
_PUBLISHED: dict[str, tuple[bool, Callable[[Answer], ultraeval.Match]]] = {
    "choice-strings-match": (
        True, lambda a: ultraeval.choice_strings_match(a.text, a.references[0], _listed(a))
    ),
    "em": (False, lambda a: ultraeval.em(a.text, _several(a))),
    "em-number": (False, lambda a: ultraeval.em(a.text, _numeric_reference(a))),
    "exist-match": (False, lambda a: ultraeval.exist_match(a.text, _several(a))),
    "kimi-mmau-choices": (True, lambda a: ultraeval.kimi_mmau_choices(a.text, a.references[0], _listed(a))),
    "kimi-vocalsound-choices": (False, lambda a: ultraeval.kimi_vocalsound_choices(a.text, a.references[0])),
    "mcq-abcd": (False, lambda a: ultraeval.mcq_abcd(a.text, a.references[0])),
    "mmsu-choices": (False, lambda a: ultraeval.mmsu_choices(a.text, a.references[0], _listed(a))),
    "prefix-match": (False, lambda a: ultraeval.prefix_match(a.text, a.references[0])),
    "qa-exist-match": (False, lambda a: ultraeval.qa_exist_match(a.text, list(a.references))),
}  # fmt: skip

RULES: dict[str, AccuracyRule] = {
    "answer-match": _any(_answer_match),
    "choice": AccuracyRule(_choice),
    "contains": _any(_contains),
    "exact": _any(_exact),
    "label": AccuracyRule(_label),
    "mmau": AccuracyRule(_mmau, True, "the rule of MMAU's evaluation.py, with labels taken off"),
    "number": _any(_number),
    "prefix": _any(_prefix),
    **{
        f"official/ultraeval-audio/{name}": AccuracyRule(_match(decide), choices, f"{_ULTRAEVAL}, exactly")
        for name, (choices, decide) in _PUBLISHED.items()
    },
    "official/audiobench/string-match": AccuracyRule(
        lambda a: Ruling(audiobench.string_match(a.text, a.references[0], _listed(a))),
        True,
        f"{_AUDIOBENCH} eval_methods/string_match.py, exactly",
    ),
    "official/audiobench/spoken-mqa": AccuracyRule(
        partial(_spoken, "reasoning"), False, f"{_AUDIOBENCH} spoken_mqa.py (reasoning), exactly"
    ),
    "official/audiobench/spoken-mqa-arithmetic": AccuracyRule(
        partial(_spoken, "arithmetic"), False, f"{_AUDIOBENCH} spoken_mqa.py (arithmetic), exactly"
    ),
    "official/mmsu": AccuracyRule(_mmsu, True, "github.com/dingdongwang/MMSU 217d1d3 mmsu_evaluation.py, exactly"),
    "official/mmsu-2025-06": AccuracyRule(
        _mmsu_in_order, True, "github.com/dingdongwang/MMSU_Bench f0ef334 mmsu_evaluation.py, exactly", whole_set=True
    ),
    "official/rul-muchomusic": AccuracyRule(
        _muchomusic,
        True,
        "github.com/yongyizang/AreYouReallyListening d3971de ExampleAudioEval/qwen_2_audio.py, exactly",
    ),
    "official/mimo-audio/speech-mmlu": AccuracyRule(
        _speech_mmlu, source="github.com/XiaomiMiMo/MiMo-Audio-Eval d64df78 speechmmlu_evaluator.py, exactly"
    ),
    "official/vocalbench/knowledge": AccuracyRule(
        lambda a: Ruling(float(spoken_rules.names_reference(a.text, a.references[0]))),
        source="github.com/SJTU-OmniAgent/VocalBench 5e9cce0 read_score_knowledge.py, exactly",
    ),
    "official/air-bench/foundation": AccuracyRule(
        _foundation, True, "github.com/OFA-Sys/AIR-Bench 9832476 score_foundation.py, exactly"
    ),
}
"""Every rule by name."""
