"""What answers cost: tokens as the service counted them, and money by the prices in the model's config.

Conventions
    A price that is not known makes the cost unknown (None), never 0; an answer from the cache costs nothing now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codec_bench.errors import UserError
from codec_bench.types import Response

PARTS = ("input", "output", "audio_input", "audio_output")


@dataclass(frozen=True, slots=True)
class Prices:
    """Price per million tokens, in US dollars.

    Args:
        input, output: of text, and of audio where that has no price of its own.
        audio_input, audio_output: of audio.
    """

    input: float | None = None
    output: float | None = None
    audio_input: float | None = None
    audio_output: float | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any] | None) -> Prices:
        """Prices of a config's `prices`.

        Raises:
            UserError: an unknown part, or a price that is no number of at least 0.
        """
        for part, price in (given or {}).items():
            if part not in PARTS:
                raise UserError(f"there is no price of '{part}'", hint=f"known: {', '.join(PARTS)}")
            if price is not None and (isinstance(price, bool) or not isinstance(price, (int, float)) or price < 0):
                raise UserError(f"the price of '{part}' is {price!r}; expected US dollars per million tokens")
        return cls(**(given or {}))

    def cost(self, usage: Mapping[str, float]) -> float | None:
        """US dollars of one answer, or None where a count or the price of what was counted is not known.

        Args:
            usage: `input_tokens` and `output_tokens`, with `audio_input_tokens` and `audio_output_tokens` among them.
        """
        total = 0.0
        for side, price, audio_price in (
            ("input", self.input, self.audio_input),
            ("output", self.output, self.audio_output),
        ):
            tokens = usage.get(f"{side}_tokens")
            if tokens is None:
                return None
            audio = min(tokens, usage.get(f"audio_{side}_tokens", 0.0))
            for amount, each in ((tokens - audio, price), (audio, audio_price if audio_price is not None else price)):
                if amount and each is None:
                    return None
                total += amount * (each or 0.0) / 1e6
        return total


@dataclass(slots=True)
class Account:
    """What a run's answers took, all together.

    Args:
        answers: how many there were. cached: how many of them came from the cache. unpriced: how many have no known cost.
        tokens: sums of every count of tokens that was reported, of answers that were asked for.
    """

    answers: int = 0
    cached: int = 0
    unpriced: int = 0
    tokens: dict[str, float] = field(default_factory=dict)
    _cost_usd: float = 0.0

    def add(self, response: Response) -> None:
        """Enters one answer."""
        self.answers += 1
        if response.cached:
            self.cached += 1
            return
        for name, amount in response.usage.items():
            if name != "cost_usd":
                self.tokens[name] = self.tokens.get(name, 0.0) + amount
        if "cost_usd" in response.usage:
            self._cost_usd += response.usage["cost_usd"]
        else:
            self.unpriced += 1

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all answers, or None where one of them has no known cost."""
        return self._cost_usd if self.unpriced == 0 else None


def openai_usage(reported: Any) -> dict[str, float]:
    """The counts of an OpenAI-like `usage`: of chats, transcriptions and realtime answers, which name them differently."""
    if not isinstance(reported, Mapping):
        return {}
    out: dict[str, float] = {}
    for side, names in (
        ("input", ("prompt_tokens", "input_tokens")),
        ("output", ("completion_tokens", "output_tokens")),
    ):
        for name in names:
            _put(out, f"{side}_tokens", reported.get(name))
            details = reported.get(f"{name}_details") or reported.get(f"{name.replace('tokens', 'token')}_details")
            if isinstance(details, Mapping):
                _put(out, f"audio_{side}_tokens", details.get("audio_tokens"))
                _put(out, "reasoning_tokens", details.get("reasoning_tokens"))
    return out


def gemini_usage(reported: Any) -> dict[str, float]:
    """The counts of Gemini's `usageMetadata`; thinking counts as output, as it is billed."""
    if not isinstance(reported, Mapping):
        return {}
    out: dict[str, float] = {}
    _put(out, "input_tokens", reported.get("promptTokenCount"))
    thoughts = reported.get("thoughtsTokenCount")
    written = reported.get("candidatesTokenCount")
    if _is_count(written) or _is_count(thoughts):
        _put(out, "output_tokens", (written or 0) + (thoughts or 0))
    _put(out, "reasoning_tokens", thoughts)
    for name, key in (
        ("promptTokensDetails", "audio_input_tokens"),
        ("candidatesTokensDetails", "audio_output_tokens"),
    ):
        for detail in reported.get(name) or ():
            if isinstance(detail, Mapping) and detail.get("modality") == "AUDIO":
                _put(out, key, detail.get("tokenCount"))
    return out


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _put(out: dict[str, float], name: str, value: Any) -> None:
    if _is_count(value):
        out[name] = float(value)


__all__ = ["PARTS", "Account", "Prices", "gemini_usage", "openai_usage"]
