"""Cut the reasoning off a model's answer, by the marks of models and servers.

`<think>` and its variants: DeepSeek-R1, Qwen3, Step-Audio-R1, EXAONE; `[THINK]`: Magistral; `◁think▷`: Kimi;
`<seed:think>`: Seed-OSS; `<|START_THINKING|>`: Command A; `<|begin_of_thought|>`: Sky-T1; `<unused94>`: MedGemma;
channels of OpenAI's Harmony, with and without tokens. An unclosed block lasts to the end; everything before an end
without a beginning is reasoning, as some prompts open the block. Blocks may nest. Time is linear in the length.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TAGS = "think(?:ing)?|thoughts?|reasoning|reflection|analysis|scratch_?pad|seed:think|antml:thinking"
_BLOCK = re.compile(
    rf"<(?P<end>/)?(?:{_TAGS})>|\[(?P<end2>/)?THINK(?:ING)?\]|\u25c1(?P<end3>/)?think\u25b7"
    r"|<\|(?:START_THINKING|begin_of_thought)\|>|(?P<end4><\|(?:END_THINKING|end_of_thought)\|>)"
    r"|<unused94>|(?P<end5><unused95>)",
    re.IGNORECASE,
)
_WRAPS = re.compile(
    r"<\|(?:START|END)_RESPONSE\|>|<\|(?:begin|end)_of_solution\|>|</?answer>|\A\s*assistant(?=<)", re.IGNORECASE
)
_CHANNEL = re.compile(
    r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?P<name>[A-Za-z]+)"
    r"(?:[^<]{0,200}(?:<\|constrain\|>[^<]{0,60})?<\|message\|>)?"
)
_CLOSE = re.compile(r"<\|(?:end|return|call|start)\|>")
# Harmony whose tokens a server has dropped: the names of the channels are left.
_BARE = re.compile(r"\A\s*(?:assistant)?\s*analysis(?=[A-Z\"'“])")
_BARE_FINAL = re.compile(r"assistant\s?final")
MARKS = ("think", "thought", "reasoning>", "reflection>", "analysis", "scratch", "unused9", "<|channel|>")
"""A text with reasoning contains one of these in lower case; for searches of a database."""


class CutText(NamedTuple):
    """A text without its reasoning.

    Args:
        text: stripped; unchanged if nothing was cut.
        reasoning: without its marks.
        unfinished: the text ends inside its reasoning, and nothing else is left.
    """

    text: str
    reasoning: str = ""
    unfinished: bool = False


def cut_reasoning(text: str) -> CutText:
    """Separate the reasoning in a model's text from its answer.

    Examples:
        >>> cut_reasoning("<think>It may be A.</think>B")
        CutText(text='B', reasoning='It may be A.', unfinished=False)
        >>> cut_reasoning("<think>It may be").unfinished
        True
    """
    lowered = text.casefold()
    if not any(mark in lowered for mark in MARKS):
        return CutText(text)
    rest, cut, is_open = _channels(text)
    answer, thoughts, never_ends = _blocks(rest)
    reasoning = "\n\n".join(thought for thought in (*cut, *thoughts) if thought)
    if answer == text and not cut:
        return CutText(text)
    answer = _WRAPS.sub("", answer).strip()
    return CutText(answer, reasoning, (is_open or never_ends) and not answer)


def _channels(text: str) -> tuple[str, list[str], bool]:
    """The final channel of a Harmony text, the others, and whether it ends in another."""
    if _BARE.match(text):
        final = max(_BARE_FINAL.finditer(text), key=re.Match.start, default=None)
        reasoning = text[: final.start()] if final is not None else text
        return text[final.end() :] if final is not None else "", [reasoning.strip()], final is None
    starts = list(_CHANNEL.finditer(text))
    if not starts:
        return text, [], False
    answer, cut, is_final = [text[: starts[0].start()]], list[str](), True
    for start, end in zip(starts, [*(one.start() for one in starts[1:]), len(text)]):
        close = _CLOSE.search(text, start.end(), end)
        segment = text[start.end() : close.start() if close else end].strip()
        is_final = start["name"].lower() == "final"
        (answer if is_final else cut).append(segment)
        if close is not None and (after := _CLOSE.sub("", text[close.end() : end]).strip()):
            answer.append(after.removeprefix("assistant"))
    return "\n".join(segment for segment in answer if segment.strip()), cut, not is_final


def _blocks(text: str) -> tuple[str, list[str], bool]:
    """Text outside of blocks, texts inside, and whether the last block never ends."""
    outside: list[str] = []
    cut: list[str] = []
    depth = at = 0
    for mark in _BLOCK.finditer(text):
        if not depth:
            outside.append(text[at : mark.start()])
        else:
            cut.append(text[at : mark.start()].strip())
        if any(mark[name] for name in ("end", "end2", "end3", "end4", "end5")):
            if not depth:
                cut += [segment.strip() for segment in outside]
                outside.clear()
            depth = max(0, depth - 1)
        else:
            depth += 1
        at = mark.end()
    (cut if depth else outside).append(text[at:])
    return "".join(outside), cut, depth > 0
