"""The option that is most like an answer, by a model of embeddings.

So every answer with words is read as some option, also one that names none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading.choices import chance_of, choices_of
from codec_bench.types import Score


def options_of(fields: Mapping[str, Any]) -> list[str]:
    """The options as the data write them, with the labels before them that a list may hold."""
    choices = fields.get("choices")
    return [str(text) for text in choices] if isinstance(choices, (list, tuple)) else list(choices_of(fields).values())


def by_likeness(reply: str, answer: Answer, protocol: str) -> Score:
    """1 if the first of the options that are most like the answer is the expected answer, letter by letter, else 0.

    Args:
        reply: `{"similarities": [...]}`, one number for each of `options_of`.
        answer: what was compared. protocol: of the metric.
    """
    options = options_of(answer.fields)
    try:
        likeness = np.array(json.loads(reply)["similarities"], np.float64)
    except (ValueError, TypeError, KeyError, RecursionError):
        likeness = np.array([])
    if likeness.shape != (len(options),) or not np.isfinite(likeness).all():
        message = (
            f"the judge's reply is not the similarities of {len(options)} texts, which a model of embeddings gives"
        )
        return Score.unparsed(message, protocol, detail={"replies": [reply]})
    nearest = options[int(likeness.argmax())]
    detail = {"replies": [reply], "option": nearest, "chance": chance_of(answer.fields, answer.references)}
    return Score.ok(float(nearest in answer.references), protocol, detail=detail)
