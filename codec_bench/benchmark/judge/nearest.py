"""The option nearest to an answer by an embedding model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading.choices import chance_of, choices_of
from codec_bench.messages import Diagnostic
from codec_bench.types import Score


def options_of(fields: Mapping[str, Any]) -> list[str]:
    """The options as the data write them, with their labels."""
    choices = fields.get("choices")
    return [str(text) for text in choices] if isinstance(choices, (list, tuple)) else list(choices_of(fields).values())


def score_by_similarity(reply: str, answer: Answer, protocol: str) -> Score:
    """Score 1 if the option most similar to the answer is an expected one, else 0.

    Args:
        reply: `{"similarities": [...]}`, one number for each of `options_of`.
    """
    options = options_of(answer.fields)
    try:
        likeness = np.array(json.loads(reply)["similarities"], np.float64)
    except (ValueError, TypeError, KeyError, RecursionError):
        likeness = np.array([])
    if likeness.shape != (len(options),) or not np.isfinite(likeness).all():
        problem = Diagnostic("reply_without_similarities", texts=len(options))
        return Score.unparsed(problem, protocol, detail={"replies": [reply]})
    nearest = options[int(likeness.argmax())]
    detail = {"replies": [reply], "option": nearest, "chance": chance_of(answer.fields, answer.references)}
    return Score.ok(float(nearest in answer.references), protocol, detail=detail)
