"""Estimate what the questions of a run will cost, from the first of them.

Unknowns such as the length of an answer make the estimate a range; missing facts are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from codec_bench.benchmark.asking.rounds import rounds_of
from codec_bench.messages.errors import AudioError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import Model
from codec_bench.models.endpoints.accounts import Prices
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.types import Request

READ = 20
"""How many questions are read for an estimate."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of questions.

    Args:
        questions: how many there are; None if that is not known in advance.
        sound_s: mean seconds of sound of one question.
        least_usd, most_usd: bounds of the cost of one question; None if unknown.
        unknown: the missing facts.
        day: of the prices, such as "of 2026-11-22".
        canaries: how many questions are repeated to detect another model.
    """

    questions: int | None
    read: int
    sound_s: float
    least_usd: float
    most_usd: float | None
    unknown: tuple[str, ...]
    day: str
    canaries: int = 0

    @property
    def words(self) -> str:
        """The estimate as a sentence."""
        count = self.questions or 1000
        seconds = count * self.sound_s
        minutes = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.3g} s"
        sound = f"{seconds / 3600:.2g} h" if seconds >= 3600 else minutes
        amount = f"{count:,} question{'' if count == 1 else 's'} with {sound} of sound"
        if not self.least_usd and self.most_usd is None:
            subject = "the questions" if self.questions is None else amount
            return f"the cost of {subject} is unknown without {' and '.join(self.unknown)}"
        if self.questions is None:
            amount = f"it is not known how many questions there are; {count:,} of them, with {sound} of sound,"
        amount += f" and {self.canaries:,} repeated" if self.canaries else ""
        count += self.canaries
        assumption = "" if self.questions == self.read else f", if all are like the first {self.read:,}"
        least, most = f"{count * self.least_usd:.2g}", self.most_usd
        cost = f"at least {least} USD" if most is None else f"{least} to {count * most:.2g} USD"
        unknown = f"; not known: {', '.join(self.unknown)}" if self.unknown else ""
        return f"{amount} will cost {cost} by the prices {self.day}{assumption}{unknown}"


def estimate_of(
    model: Model,
    requests: Iterable[Request],
    questions: int | None,
    share: float = 1.0,
    canaries: Callable[[Sequence[Request], int], int] = lambda requests, questions: 0,
) -> CostEstimate | None:
    """Estimate the cost of requests; None without prices or if there are no requests.

    Args:
        model: it need not be started.
        requests: the first `READ` of them are read, with their sounds.
        questions: how many there are; None if unknown.
        share: fraction of the prices that is charged, such as 0.5 in batches.
        canaries: returns the number of repeated questions, called with (first requests, number of questions).
    """
    if not isinstance(model, RemoteModel) or not model.prices.has_prices:
        return None
    prices, sounds, least, most = model.prices, [], [], []
    unknown: dict[str, None] = {}
    first = list(islice(requests, READ))
    for request in first:
        sounds.append(_seconds(request, model))
        low, high, missing = _bounds(request, model, prices, sounds[-1])
        if rounds_of(request) > 1:  # each round sends the earlier ones again
            missing.append("the answers that later rounds contain")
        least.append(low)
        most.append(high)
        unknown |= dict.fromkeys(missing)
    if not sounds:
        return None
    read = len(sounds)
    count = read if read < READ else questions
    return CostEstimate(
        count, read, sum(sounds) / read, share * sum(least) / read, None if unknown else share * sum(most) / read,
        tuple(unknown), f"of {prices.date}" if prices.date else "in its configuration",
        canaries(first, 1000 if count is None else count),
    )  # fmt: skip


def _seconds(request: Request, model: RemoteModel) -> float:
    """Seconds of audio that a request sends; unreadable audio counts as 0."""
    total, limit = 0.0, None if model.info.window_s is not None else model.info.limit_s
    for clip in clips_of(request):
        try:
            seconds = clip.read().duration_s
        except AudioError:
            continue
        total += seconds if limit is None else min(seconds, limit)
    return total


def _bounds(request: Request, model: RemoteModel, prices: Prices, sound_s: float) -> tuple[float, float, list[str]]:
    """The least and most cost of one answer in US dollars, and the missing facts."""
    words = [one for message in request.messages for one in message.content if isinstance(one, str)]
    words += [value for value in request.fields.values() if isinstance(value, str)]
    room = request.parameters.get("max_tokens")
    if room is not None and model.reasons:
        room += request.parameters.get("reasoning_tokens") or 0
    return prices.bounds(
        sound_s=sound_s,
        text_bytes=sum(len(text.encode("utf-8", "replace")) for text in words),
        characters=len(str(request.fields.get("text") or "")),
        most_tokens=room if model.service_parameter("max_tokens") is not None else None,
        speaks="audio" in model.info.outputs,
    )
