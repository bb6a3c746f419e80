"""The cost of answers, from the service's token counts and the config's prices.

An unknown price makes the cost unknown (None), not 0. An answer from the cache costs nothing. If a service counts audio
and text tokens together at different prices, the cost is an upper bound, lower by at most `unsure`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.types import Request

TOKENS = ("input", "output", "audio_input", "audio_output")
PARTS = (*TOKENS, "audio_minute", "characters")
NUMBERS = (*PARTS, "audio_tokens_s")


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a service in US dollars.

    Args:
        input, output: a million text tokens, and audio tokens that have no separate price.
        audio_input, audio_output: a million audio tokens.
        audio_minute: a minute of sent audio.
        characters: a million characters of spoken text.
        audio_tokens_s: tokens per second of sent audio; only estimates use it.
        date: the day on which the prices were looked up.
        source: where.
        until: the last day on which they hold, or None; after it they are unknown.
    """

    input: float | None = None
    output: float | None = None
    audio_input: float | None = None
    audio_output: float | None = None
    audio_minute: float | None = None
    characters: float | None = None
    audio_tokens_s: float | None = None
    date: Date | None = None
    source: str | None = None
    until: Date | None = None

    @classmethod
    def parse(cls, listed: Mapping[str, Any] | None) -> Prices:
        """Parse the `prices` of a model's config."""
        day, until = (_parse_date(name, (listed or {}).get(name)) for name in ("date", "until"))
        source = None if not listed or listed.get("source") is None else str(listed["source"])
        listed = {kind: price for kind, price in (listed or {}).items() if kind not in ("date", "until", "source")}
        for kind, price in listed.items():
            if kind not in NUMBERS:
                raise UserError("price_unknown", kind=kind, hint=f"known: {', '.join(NUMBERS)}")
            number = isinstance(price, (int, float)) and not isinstance(price, bool)
            if price is not None and not (number and 0 <= price < math.inf):
                raise UserError("price_out_of_range", kind=kind, price=price)
        return cls(**listed, date=day, until=until, source=source)

    def has_price(self, kind: str) -> bool:
        """Whether this part has a price."""
        return getattr(self, kind) is not None

    @property
    def words(self) -> str:
        """The prices with units, and when and where they were looked up, as text."""
        units = {
            "audio_minute": "USD a minute of sent sound",
            "characters": "USD a million characters",
            "audio_tokens_s": "tokens a second of sent sound",
        }
        priced = [
            f"{kind.replace('_', ' ')} {getattr(self, kind):g} USD a million tokens"
            if kind in TOKENS
            else f"{getattr(self, kind):g} {units[kind]}"
            for kind in NUMBERS
            if self.has_price(kind)
        ]
        looked_up = f"looked up on {self.date}" if self.date is not None else "of an unknown day"
        until = f"until {self.until}" if self.until is not None else ""
        return "; ".join(filter(None, (*priced, looked_up, until, self.source)))

    @property
    def has_prices(self) -> bool:
        """Whether anything has a price."""
        return any(map(self.has_price, PARTS))

    def bounds(
        self, *, sound_s: float, text_bytes: int, characters: int, most_tokens: int | None, speaks: bool
    ) -> tuple[float, float, list[str]]:
        """Estimate what an answer costs before it is requested.

        Args:
            sound_s: seconds of sent audio.
            text_bytes: of sent text; a token is at least one byte.
            characters: of spoken text.
            most_tokens: the limit of the answer, or None.
            speaks: whether the answer may hold audio.

        Returns:
            The lowest and the highest cost in US dollars, and texts for unknown parts, which the highest leaves out.
        """
        least = (self.audio_minute or 0.0) * sound_s / 60 + (self.characters or 0.0) * characters / 1e6
        if self.until is not None and Date.today() > self.until:
            return 0.0, 0.0, ["the prices of today"]
        if not any(map(self.has_price, TOKENS)):
            return least, least, []
        unknown, most = [], least
        sounding = self.input if self.audio_input is None else self.audio_input
        if sound_s and sounding is None:
            unknown.append("the price of sound that is sent")
        elif sound_s and self.audio_tokens_s is None:
            unknown.append("how many tokens a second of sound is (audio_tokens_s of the prices)")
        elif sound_s:
            most += (cost := sound_s * (self.audio_tokens_s or 0.0) * (sounding or 0.0) / 1e6)
            least += cost
        if text_bytes and self.input is None:
            unknown.append("the price of text that is sent")
        most += text_bytes * (self.input or 0.0) / 1e6
        written = max(
            (price for price in (self.output, self.audio_output if speaks else None) if price is not None), default=None
        )
        if written is None:
            unknown.append("the price of answers")
        elif most_tokens is None and written:
            unknown.append("how long answers are")
        return least, most + (most_tokens or 0) * (written or 0.0) / 1e6, unknown

    def unsplit(self, usage: Mapping[str, float], *, sent: bool, came: bool) -> tuple[str, ...]:
        """Return the directions (`input`, `output`) whose audio tokens are not reported.

        Only directions whose text and audio prices are known and differ count.
        """
        sides = (("input", sent, self.input, self.audio_input), ("output", came, self.output, self.audio_output))
        return tuple(
            direction
            for direction, sounded, price, audio_price in sides
            if sounded
            and not usage.get(f"audio_{direction}_tokens")
            and usage.get(f"{direction}_tokens")
            and None not in (price, audio_price)
            and price != audio_price
        )

    def unsure(self, usage: Mapping[str, float], unsplit: Sequence[str]) -> float:
        """Return by how many US dollars `cost` with these arguments may be too high."""
        return sum(
            usage[f"{direction}_tokens"]
            * abs((getattr(self, direction) or 0.0) - (getattr(self, f"audio_{direction}") or 0.0))
            / 1e6
            for direction in unsplit
        )

    def sent_parts(self, request: Request) -> dict[str, float]:
        """Return the sent amounts that are priced: `sent_audio_s` and `characters`."""
        out = {}
        if self.has_price("audio_minute"):
            out["sent_audio_s"] = sum(clip.duration_s for clip in clips_of(request))
        if self.has_price("characters"):
            out["characters"] = float(len(str(request.fields.get("text") or "")))
        return out

    def cost(
        self, usage: Mapping[str, float], *, unsplit: Sequence[str] = (), today: Date | None = None
    ) -> float | None:
        """Return an answer's cost in US dollars; None if a count or price is unknown.

        Args:
            usage: `input_tokens` and `output_tokens`, their audio shares `audio_input_tokens` and
                `audio_output_tokens`, and `sent_audio_s` and `characters`.
            unsplit: directions that count at the higher of their two prices.
            today: None for the current day.
        """
        if self.missing(usage, today=today):
            return None
        total = (self.audio_minute or 0.0) * usage.get("sent_audio_s", 0.0) / 60
        total += (self.characters or 0.0) * usage.get("characters", 0.0) / 1e6
        for direction, price, audio_price in (
            ("input", self.input, self.audio_input),
            ("output", self.output, self.audio_output),
        ):
            tokens = usage.get(f"{direction}_tokens", 0.0)
            audio = min(tokens, usage.get(f"audio_{direction}_tokens", 0.0))
            each_audio = audio_price if audio_price is not None else price
            if direction in unsplit:
                price = each_audio = max(price or 0.0, each_audio or 0.0)
            total += ((tokens - audio) * (price or 0.0) + audio * (each_audio or 0.0)) / 1e6
        return total

    def priced(self, usage: Mapping[str, float], *, sent: bool, came: bool, share: float = 1.0) -> dict[str, float]:
        """Return the counts with an answer's `cost_usd` and `cost_unsure_usd`, if known.

        Args:
            sent, came: whether audio was sent, and whether the answer holds audio.
            share: the factor of the cost, such as a discount of batches.
        """
        unsplit = self.unsplit(usage, sent=sent, came=came)
        cost = self.cost(usage, unsplit=unsplit)
        if cost is None:
            return dict(usage)
        unsure = {"cost_unsure_usd": share * self.unsure(usage, unsplit)} if unsplit else {}
        return {**usage, "cost_usd": share * cost, **unsure}

    def missing(self, usage: Mapping[str, float], *, today: Date | None = None) -> tuple[str, ...]:
        """Return the names of prices and counts that are missing for an answer's cost."""
        if self.until is not None and (today or Date.today()) > self.until:
            return tuple(kind for kind in PARTS if self.has_price(kind))
        if (self.has_price("audio_minute") or self.has_price("characters")) and not any(map(self.has_price, TOKENS)):
            return ()
        out = []
        for direction in ("input", "output"):
            tokens = usage.get(f"{direction}_tokens")
            if tokens is None:
                out.append(f"{direction}_tokens")
                continue
            audio = min(tokens, usage.get(f"audio_{direction}_tokens", 0.0))
            if tokens > audio and not self.has_price(direction):
                out.append(direction)
            if audio and not self.has_price(direction) and not self.has_price(f"audio_{direction}"):
                out.append(f"audio_{direction}")
        return tuple(out)


def _parse_date(name: str, value: Any) -> Date | None:
    """Parse a price's date; raises UserError."""
    if value is None or isinstance(value, Date):
        return value
    try:
        return Date.fromisoformat(str(value))
    except ValueError:
        raise UserError("price_date", name=name, value=value) from None


def openai_usage(reported: Any) -> dict[str, float]:
    """Convert OpenAI's `usage`, of any endpoint, to this package's counts of tokens."""
    if not isinstance(reported, Mapping):
        return {}
    out: dict[str, float] = {}
    for direction, names in (
        ("input", ("prompt_tokens", "input_tokens")),
        ("output", ("completion_tokens", "output_tokens")),
    ):
        for name in names:
            _put(out, f"{direction}_tokens", reported.get(name))
            details = reported.get(f"{name}_details") or reported.get(f"{name.replace('tokens', 'token')}_details")
            if isinstance(details, Mapping):
                _put(out, f"audio_{direction}_tokens", details.get("audio_tokens"))
                _put(out, "reasoning_tokens", details.get("reasoning_tokens"))
    return out


def gemini_usage(reported: Any) -> dict[str, float]:
    """Convert Gemini's `usageMetadata` to this package's counts of tokens."""
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
