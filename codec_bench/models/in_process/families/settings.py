"""Parameters of a generation. It is greedy unless a temperature is given; the defaults of the checkpoint are not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from codec_bench.errors import UserError


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of one generation.

    Args:
        max_tokens, min_tokens: the most and the fewest new tokens.
        temperature: 0 takes the most probable token each time. A larger number draws tokens at random, one request at a
            time, beginning at `seed`.
        top_p, top_k: limit the tokens that are drawn from; 1 and 0 set no limit.
        repetition_penalty: 1 is no penalty.
        stop: the answer ends before the first of these texts.
        seed: where random numbers begin.
    """

    max_tokens: int = 256
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def parse(cls, given: Mapping[str, Any], defaults: Settings | None = None) -> Settings:
        """The parameters of a request; those that it does not give are taken from `defaults`.

        Raises:
            UserError: a parameter is unknown or has a wrong value.
        """
        base = defaults or cls()
        values = {field.name: getattr(base, field.name) for field in fields(cls)}
        for key, value in given.items():
            if key not in values:
                raise UserError(f"there is no generation parameter '{key}'", hint=f"known: {', '.join(values)}")
            if value is not None:
                values[key] = _checked(key, value)
        return cls(**values)

    @property
    def sampled(self) -> bool:
        """Whether tokens are drawn at random."""
        return self.temperature > 0


def one_limit(parameters: Mapping[str, Any], reasons: bool) -> dict[str, Any]:
    """A request's parameters with one limit: a model that reasons writes its reasoning and its answer in one go."""
    given = dict(parameters)
    budget = given.pop("reasoning_tokens", None) or 0
    if given.get("max_tokens") is not None and reasons:
        given["max_tokens"] += budget
    return given


_WHOLE = {"max_tokens": 1, "min_tokens": 0, "top_k": 0, "seed": None}


def _checked(key: str, value: Any) -> Any:
    if key == "stop":
        texts = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(text, str) and text for text in texts):
            raise UserError(f"stop={value!r} is not a text or a list of texts")
        return texts
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in _WHOLE:
        least = _WHOLE[key]
        if not number or int(value) != value or (least is not None and value < least):
            raise UserError(
                f"{key}={value!r} is not a whole number" + (f" of at least {least}" if least is not None else "")
            )
        return int(value)
    if (
        not number
        or value < 0
        or (key == "top_p" and not 0 < value <= 1)
        or (key == "repetition_penalty" and not value)
    ):
        raise UserError(f"{key}={value!r} is out of range")
    return float(value)
