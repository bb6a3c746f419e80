"""The miniatures of the package with six rows, of which 4 has no sound (no text where there is no sound to begin with)
and 5 has nothing in the column of the reference.

`right_answer(question)` says what a perfect model would write or say. All rows are made up and the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codec_bench.benchmark import Question
from codec_bench.benchmark import miniature as _package
from codec_bench.benchmark.miniature import (
    EXPRESSO_TEXTS,
    NO_REFERENCE,
    NO_SOUND,
    OPTIONS,
    RATE_HZ,
    SENTENCES,
    air_bench_sources,
    load,
    tone,
    write_card,
    write_miniature,
)
from codec_bench.data import table

ROWS, _wav = 6, _package._wav
__all__ = [
    "EXPRESSO_TEXTS",
    "NO_REFERENCE",
    "NO_SOUND",
    "OPTIONS",
    "RATE_HZ",
    "ROWS",
    "SENTENCES",
    "air_bench_sources",
    "build",
    "layouts_read_once",
    "like_another",
    "load",
    "right_answer",
    "tone",
    "write_card",
    "wrong_answer",
]


FLEURS_SHOWN = (
    "fleurs-st-de-en",
    "fleurs-st-en-zh",
    "fleurs-sv-se",
    "fleurs-ta-in",
    "fleurs-th-th",
    "fleurs-tr-tr",
    "fleurs-yue-hant-hk",
)


def like_another(name: str) -> bool:
    """Whether a benchmark is one of FLEURS's languages that differ from those which are checked in their rows alone."""
    one = load(name)
    return one.entry.family in ("fleurs", "fleurs-st") and one.spec.upstream is None and name not in FLEURS_SHOWN


def build(name: str, folder: Path) -> Path:
    """Writes the rows of one benchmark into a mirror: what `CODEC_BENCH_DATA` names; several may share it."""
    if like_another(name):
        return Path(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_package, "ROWS", ROWS)
        patch.setattr(_package, "_wav", _wav)
        return write_miniature(name, folder)


@contextmanager
def layouts_read_once() -> Iterator[None]:
    """Inside, the datasets library finds the files of a benchmark once. The rows are read each time.

    It takes longer to find them than all else takes, and they stay the same.
    """
    layouts, reading = {}, table.read_layout

    def once(location: Any, *keys: Any) -> Any:
        if (location.root, *keys) not in layouts:
            layouts[location.root, *keys] = reading(location, *keys)
        return layouts[location.root, *keys]

    table.read_layout = once
    try:
        yield
    finally:
        table.read_layout = reading


def right_answer(question: Question, prompt: Any = None) -> str:
    """What a perfect model writes, or says where it is to speak.

    Args:
        prompt: the one that was asked with; without, the answer comes in no special format.
    """
    asks_letter = prompt is not None and prompt.name.startswith("choice-letter")
    if "other_audio" in question.fields:
        return '{"preferred": -1.5, "other": -2}'
    if "sections" in question.fields:  # SongFormBench
        text = "\n".join(f"{one['start']} {one['label']}" for one in question.fields["sections"])
    elif "instruction_id_list" in question.fields:
        text = "There is no such mark in this answer"
    elif (
        question.references
        and question.references[0] in (choices := list(question.fields.get("choices") or ()))
        and asks_letter
    ):
        text = "ABCD"[choices.index(question.references[0])]
        text = f"[[{text}]]" if prompt.name == "choice-letter-brackets" else text
    elif "criteria" in question.fields and question.references and question.fields.get("choices"):  # MMAR-Rubrics
        text = f"I hear it.\nAnswer: {question.references[0]}"
    elif question.references and "the word Option" in str(question.fields.get("asks")):  # SpeechMMLU
        text = f"Option {question.references[0]}"
    elif question.references:
        text = question.references[0]
    else:
        text = str(question.fields.get("text") or "I'm sorry, but I cannot help with that request.")
    if question.fields.get("rule") == 1 and question.fields["rule_target"] not in text:
        text = f"{text} {question.fields['rule_target']}"  # IFEval-Audio: a word that the answer must have
    if prompt is not None and "json-field[content]" in prompt.process:
        return json.dumps({"content": text}, ensure_ascii=False)
    return text


def wrong_answer(question: Question, prompt: Any = None) -> str:
    """What no rule takes for right: without a letter of an option too, which some published rules find in any word."""
    if "other_audio" in question.fields:
        return '{"preferred": -2, "other": -1.5}'
    text = "Quite so, one, two, three: qqq www zzz"
    if prompt is not None and "json-field[content]" in prompt.process:
        return json.dumps({"content": text})
    return text
