"""Reading back: recognisers write down what a synthesiser or a reader said, and it is compared with what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codec_bench.apps.building.asking import Asking
from codec_bench.apps.building.item import Dropped, Failure
from codec_bench.apps.building.recipe_spoken import Checks
from codec_bench.audio.clip import Clip
from codec_bench.models.base import Model
from codec_bench.text.error_rate import ErrorRate
from codec_bench.text.rules import get_rule
from codec_bench.types import Audio, Request


@dataclass(frozen=True, slots=True)
class Heard:
    """What one recogniser read back of an item.

    Args:
        recogniser: its name. model: what it is, as JSON values. transcripts: of the parts, in order. error_rate: over all parts.
        protocol: how the texts were compared.
    """

    recogniser: str
    model: Mapping[str, Any]
    transcripts: tuple[str, ...]
    error_rate: float
    protocol: str

    def as_dict(self) -> dict[str, Any]:
        """For the provenance of a row, as JSON values."""
        return {
            "recogniser": self.recogniser,
            "model": dict(self.model),
            "transcript": "\n".join(self.transcripts),
            "error_rate": round(self.error_rate, 6),
            "protocol": self.protocol,
        }


class ReadBack:
    """The recognisers of a recipe, and the rule by which they are compared with what was meant.

    Args:
        checks: as the recipe says. language: of the texts. folder: where the recipe's paths start. asking: where they are started.

    Raises:
        UserError: there is no such rule, a package that it needs is missing, or a recogniser cannot be started.
    """

    def __init__(self, checks: Checks, language: str, folder: Path, asking: Asking) -> None:
        self._checks, self._language, self._asking = checks, language, asking
        self._rule = get_rule(checks.rule)
        self._rule.check(language)
        self.models: list[Model] = [asking.load(used, folder) for used in checks.recognisers]

    @cached_property
    def protocol(self) -> str:
        """The rule and what one item is."""
        rule = self._rule.protocol(self._language)
        return rule if self._rule.fixed else f"{rule}/{self._checks.unit}"

    def facts(self) -> dict[str, Any]:
        """What the card says of the recognisers."""
        return {
            "recognisers": [dict(model.identity) for model in self.models],
            "rule": self._rule.protocol(self._language),
            "check": self._checks.read_back,
        }

    def check(self, parts: Sequence[tuple[str, Audio]], *, step: str = "recognition") -> list[Heard]:
        """Has every recogniser read back an item.

        Args:
            parts: what was meant, and the sound of it. step: where a failure counts.

        Raises:
            Dropped: at the step; a recogniser gave an error, or the error rate over all parts is too high.
        """
        return [self._heard(model, parts, step) for model in self.models]

    def _heard(self, model: Model, parts: Sequence[tuple[str, Audio]], step: str) -> Heard:
        name = model.info.name
        transcripts = tuple(self._transcript(model, audio, said, step) for said, audio in parts)
        unit = None if self._rule.fixed else self._checks.unit
        compared = self._rule.compare(
            reference=[said for said, _ in parts],
            estimate=list(transcripts),
            language=[self._language] * len(parts),
            unit=unit,
        )
        counts = sum((one.counts for one in compared), ErrorRate.zero())
        rate = counts.rate
        if rate is None or rate > self._checks.error_rate:
            found = "no rate" if rate is None else f"{100 * rate:.1f} %"
            wrong = [heard for heard, one in zip(transcripts, compared) if one.counts.errors] or list(transcripts)
            detail = f"{name}, {found}: {' / '.join(wrong)}"
            raise Dropped(Failure(step, "it was not read back as it was meant", detail, rate))
        return Heard(name, dict(model.identity), transcripts, rate, self.protocol)

    def _transcript(self, model: Model, audio: Audio, said: str, step: str) -> str:
        request = Request(said, fields={"audio": Clip(audio), "language": self._language})
        answer = self._asking.ask(model, request)
        if answer.status != "ok":
            why = answer.reason or answer.status
            raise Dropped(Failure(step, "the recogniser gave an error", f"{model.info.name}: {why}"))
        return answer.text or ""


def nearness(row: Mapping[str, Any], checks: Checks) -> float | None:
    """How near a kept row was to not being read back: its error rate as a share of the highest one; None where no error is let pass."""
    return (row["error_rate"] or 0.0) / checks.error_rate if checks.error_rate else None


def plain_text(rule: str, language: str) -> Callable[[str], str]:
    """What makes texts of a language equal that a rule cannot tell apart.

    Raises:
        UserError: there is no such rule, or a package that it needs is missing.
    """
    known = get_rule(rule)
    known.check(language)
    return lambda text: known.compare(reference=[text], estimate=[text], language=[language])[0].reference
