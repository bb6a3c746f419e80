"""`ifeval[strict]`, `ifeval[loose]`: answers that follow all their instructions.

J. Zhou et al., "Instruction-Following Evaluation for Large Language Models", 2023. `loose` also tries an answer without
its first line, its last line or both, with or without asterisks. `ifeval[strict-instruction]` and
`ifeval[loose-instruction]` are the shares of followed instructions. `official/ultraeval-audio/...` removes VoiceBench's
tags `<1>` and `<|user|>` first, and its share of instructions is the mean of the items' shares.
`ifeval[official/audiobench]` checks the thirteen rules of IFEval-Audio (see `audiobench`), and
`ifeval[official/mmau-pro]` the 28 instructions of MMAU-Pro (see `mmau_pro`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codec_bench.benchmark.metrics.audiobench import follows
from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.metrics.instructions import CHECKS
from codec_bench.benchmark.metrics.mmau_pro import keeps
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UnknownName, describe
from codec_bench.types import Score

AUDIOBENCH = "official/audiobench"
MMAU_PRO = "official/mmau-pro"
_ULTRAEVAL = "official/ultraeval-audio/"
_KINDS = ("strict", "loose", "strict-instruction", "loose-instruction")
VARIANTS = (*_KINDS, *(f"{_ULTRAEVAL}{kind}" for kind in _KINDS), AUDIOBENCH, MMAU_PRO)
_NEEDS = {AUDIOBENCH: ("rule", "rule_target"), MMAU_PRO: ("task_identifier", "kwargs", "question")}
_SOURCES = {
    AUDIOBENCH: "github.com/AudioLLMs/AudioBench e991641 eval_llama_3_70b_combined.py format_test, exactly",
    MMAU_PRO: "github.com/sonalkum/MMAUPro 960e93a evaluate_aif_sample, with the difference named in `mmau_pro`",
}


class IfEval(AnswerMetric):
    """The share of answers (or instructions) that are followed. Higher is better.

    The row needs `instruction_id_list` and `kwargs` (for each instruction a mapping of arguments, or its JSON).
    AudioBench's rules need `rule` and `rule_target`, MMAU-Pro's `task_identifier`, `kwargs` (one mapping) and
    `question`.

    Args:
        variant: one of `VARIANTS`; the module's description explains them.
    """

    paper = "Zhou et al.: Instruction-Following Evaluation for Large Language Models, 2023"

    def __init__(self, variant: str = "strict") -> None:
        if variant not in VARIANTS:
            raise UnknownName("ifeval_variant", variant, VARIANTS)
        kind = variant.removeprefix(_ULTRAEVAL)
        self._official = kind != variant
        self._rules = {AUDIOBENCH: _by_audiobench, MMAU_PRO: _by_mmau_pro}.get(variant)
        self._loose = kind.startswith("loose")
        self._instructions = kind.endswith("-instruction")
        self.name = f"ifeval[{variant}]"
        self.aggregate = "ratio" if self._instructions and not self._official else "mean"
        self.needs = _NEEDS.get(variant, ("instruction_id_list", "kwargs"))
        self.source = "the released checkers, with the differences named in `instructions`"
        if self._rules is not None:
            self.source = _SOURCES[variant]
        self.protocol = f"ifeval/{variant}-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer; `detail["followed"]` says which instructions it follows.

        Raises:
            MissingExtra: an instruction is about the language of the answer, and langdetect is not installed.
        """
        return [self._one(answer) for answer in answers]

    def worst(self, answer: Answer) -> Score:
        """No instruction is followed. (An empty text would follow some.)"""
        return Score.ok(0.0, self.protocol) if self._rules is not None else super().worst(answer)

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `detail["followed"]` says which instructions it follows."""
        if self._rules is not None:
            return self._ruled(answer, self._rules)
        ids = _parse_list(answer.fields.get("instruction_id_list"))
        arguments = _parse_list(answer.fields.get("kwargs"))
        if not ids or len(arguments) != len(ids):
            reason = Diagnostic("instruction_counts", id=answer.id, instructions=len(ids), arguments=len(arguments))
            return Score.undefined(reason, self.protocol)
        unknown = [one for one in ids if one not in CHECKS]
        if unknown:
            return Score.failed(Diagnostic("unknown_instruction", instruction=unknown[0]), self.protocol)
        try:
            text = without_tags(answer.text) if self._official else answer.text
            followed = followed_instructions(text, ids, arguments, loose=self._loose)
        except MissingExtra:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = Diagnostic("instruction_arguments", id=answer.id, message=describe(error))
            return Score.failed(why, self.protocol)
        detail = {"followed": dict(zip(ids, followed))}
        if not self._instructions:
            return Score.ok(float(all(followed)), self.protocol, detail=detail)
        share = sum(followed) / len(followed)
        if self._official:
            return Score.ok(share, self.protocol, detail=detail)
        return Score.ok(share, self.protocol, numerator=sum(followed), denominator=len(followed), detail=detail)

    def _ruled(self, answer: Answer, rules: Callable[[Answer], bool]) -> Score:
        try:
            return Score.ok(float(rules(answer)), self.protocol)
        except (AttributeError, TypeError, ValueError) as error:
            return Score.failed(Diagnostic("instruction_arguments", id=answer.id, message=error), self.protocol)


def _by_audiobench(answer: Answer) -> bool:
    return follows(answer.text, answer.fields.get("rule"), answer.fields.get("rule_target"))


def _by_mmau_pro(answer: Answer) -> bool:
    """Whether an answer follows its instruction by MMAU-Pro's checks."""
    value = answer.fields.get("kwargs") or {}
    arguments = json.loads(value) if isinstance(value, str) else value
    kind = str(answer.fields.get("task_identifier"))
    return keeps(answer.text, kind, {**arguments, "prompt": str(answer.fields.get("question", ""))})


def followed_instructions(
    text: str, ids: Sequence[str], arguments: Sequence[Mapping[str, Any] | None], *, loose: bool
) -> list[bool]:
    """Which instructions a text follows. A blank text follows none.

    Args:
        ids: the instructions, keys of `CHECKS`.
        arguments: the arguments of each instruction.
        loose: whether the text may follow an instruction after lines or asterisks were removed.

    Raises:
        KeyError: there is no such instruction, or an argument is missing.
        MissingExtra: langdetect is needed and not installed.
    """
    texts = [one for one in (_variants(text) if loose else [text]) if one.strip()]
    return [
        any(CHECKS[name]({k: v for k, v in (argument or {}).items() if v is not None}, one) for one in texts)
        for name, argument in zip(ids, arguments)
    ]


def without_tags(text: str) -> str:
    """A text without the tags `<1>`, `<2>`, `<3>` before and `<|user|>` after it."""
    if text.startswith(("<1>", "<2>", "<3>")):
        text = text[3:].strip()
    return text[:-8].strip() if text.endswith("<|user|>") else text


def _variants(text: str) -> list[str]:
    lines = text.split("\n")
    cut = [text, *("\n".join(trimmed).strip() for trimmed in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(one.replace("*", "") for one in cut)]


def _parse_list(value: Any) -> list[Any]:
    """Parse a list, or its JSON text; anything else is an empty list."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return list(value) if isinstance(value, (list, tuple)) else []
