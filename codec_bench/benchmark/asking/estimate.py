"""What the questions of a run will cost, before the first of them is asked.

The first questions are read, and the others are taken to be like them. What nobody can know before asking, such as the
length of an answer, makes the estimate a range; what is not known at all is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from codec_bench.benchmark.asking.rounds import rounds_of
from codec_bench.errors import AudioError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import Model
from codec_bench.models.endpoints.accounts import Prices
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.types import Request

READ = 20
"""How many questions are read for an estimate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What questions will cost.

    Args:
        questions: how many are asked; None if that is not known before they are read. read: how many were read.
        sound_s: seconds of sound of one question, the mean of those that were read.
        least_usd, most_usd: what one question costs at least and at most; None if that is not known.
        unknown: what is not known. day: of the prices, such as "of 2026-11-22".
        canaries: how many questions are asked again to see whether the same model answers.
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
        sound = (
            f"{seconds / 3600:.2g} h"
            if seconds >= 3600
            else f"{seconds / 60:.0f} min"
            if seconds >= 120
            else f"{seconds:.3g} s"
        )
        amount = f"{count:,} question{'' if count == 1 else 's'} with {sound} of sound"
        if not self.least_usd and self.most_usd is None:
            subject = "the questions" if self.questions is None else amount
            return f"what {subject} will cost cannot be told without knowing {' and '.join(self.unknown)}"
        if self.questions is None:
            amount = f"it is not known how many questions there are; {count:,} of them, with {sound} of sound,"
        amount += f" and {self.canaries:,} asked again" if self.canaries else ""
        count += self.canaries
        alike = "" if self.questions == self.read else f", if all are like the first {self.read:,}"
        least, most = f"{count * self.least_usd:.2g}", self.most_usd
        cost = f"at least {least} USD" if most is None else f"{least} to {count * most:.2g} USD"
        unknown = f"; not known: {', '.join(self.unknown)}" if self.unknown else ""
        return f"{amount} will cost {cost} by the prices {self.day}{alike}{unknown}"


def estimate_of(
    model: Model,
    requests: Iterable[Request],
    questions: int | None,
    share: float = 1.0,
    canaries: Callable[[Sequence[Request], int], int] = lambda requests, questions: 0,
) -> Estimate | None:
    """What asking will cost; None for a model without prices, and where no question is left.

    Args:
        model: it need not be started. requests: to be asked; the first `READ` of them are read, with their sounds.
        questions: how many there are; None if that is not known. share: of the prices that an answer costs.
        canaries: how many questions are asked again, by the first requests and the number of all.
    """
    if not isinstance(model, RemoteModel) or not model.prices.known:
        return None
    prices, sounds, least, most = model.prices, [], [], []
    unknown: dict[str, None] = {}
    first = list(islice(requests, READ))
    for request in first:
        sounds.append(_seconds(request, model))
        low, high, missing = _bounds(request, model, prices, sounds[-1])
        if rounds_of(request) > 1:  # each round sends all that was said before again
            missing.append("the answers that stand in later rounds")
        least.append(low)
        most.append(high)
        unknown |= dict.fromkeys(missing)
    if not sounds:
        return None
    read = len(sounds)
    count = read if read < READ else questions
    return Estimate(
        count, read, sum(sounds) / read, share * sum(least) / read, None if unknown else share * sum(most) / read,
        tuple(unknown), f"of {prices.date}" if prices.date else "given",
        canaries(first, 1000 if count is None else count),
    )  # fmt: skip


def _seconds(request: Request, model: RemoteModel) -> float:
    """Seconds of sound that are sent. A sound that cannot be read is not sent."""
    total, limit = 0.0, None if model.info.window_s is not None else model.info.limit_s
    for clip in clips_of(request):
        try:
            seconds = clip.read().duration_s
        except AudioError:
            continue
        total += seconds if limit is None else min(seconds, limit)
    return total


def _bounds(request: Request, model: RemoteModel, prices: Prices, sound_s: float) -> tuple[float, float, list[str]]:
    """What one answer costs at least and at most in US dollars, and what is not known of it."""
    words = [one for message in request.messages for one in message.content if isinstance(one, str)]
    words += [value for value in request.fields.values() if isinstance(value, str)]
    room = request.parameters.get("max_tokens")
    if room is not None and model.reasons:
        room += request.parameters.get("reasoning_tokens") or 0
    return prices.bounds(
        sound_s=sound_s,
        text_bytes=sum(len(text.encode("utf-8", "replace")) for text in words),
        characters=len(str(request.fields.get("text") or "")),
        most_tokens=room if model.called("max_tokens") is not None else None,
        speaks="audio" in model.info.outputs,
    )
