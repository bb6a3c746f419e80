"""UTMOS: how natural speech sounds, as a network trained on listening tests predicts it without a reference."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.errors import UserError
from codec_bench.features.utmos import Utmos as UtmosFeature
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score

ANY_LANGUAGE = "any-language"


class Utmos(Metric):
    """The predicted mean opinion score of the estimate's naturalness. Higher is better; nominally 1 to 5.

    It was trained on English. Speech in another language is refused, unless the variant `any-language` is used; its
    authors report no results for Chinese. The score is a mean over 20 ms frames, and `detail` holds their number.

    Paper: T. Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022", Interspeech 2022. Reference
    implementation: SpeechMOS 1.2.0 `utmos22_strong` at 16 kHz, to 2e-5.

    Args:
        variant: None for English (and for speech whose language is not known), or `any-language`.
        point: `float16`, `bfloat16` or `tf32`, or None for float32.

    Raises:
        UserError: no such variant or precision.
    """

    kind = "single"
    rate_hz = 16_000
    signals = False
    range = (1.0, 5.0)
    where = "inline"
    paper = "Saeki, Xin, Nakata, Koriyama, Takamichi, Saruwatari: UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022, Interspeech 2022"
    source = "SpeechMOS 1.2.0 utmos22_strong, to 2e-5"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        if variant not in (None, ANY_LANGUAGE):
            raise UserError(f"utmos has no variant '{variant}'", hint=f"use utmos or utmos[{ANY_LANGUAGE}]")
        protocol, at = UtmosFeature.protocol_id(point), f"@{point}" if point else ""
        self.languages = () if variant else ("en",)
        self.name = f"utmos[{variant}]{at}" if variant else f"utmos{at}"
        self.protocol = f"utmos/{protocol}/{variant}" if variant else f"utmos/{protocol}"
        self.estimate_features = (f"utmos{at}",)

    def refusal(self, *, text: str | None, language: str | None) -> str | None:
        """Why an item is not measured: its language is known and is not English, and the variant is not `any-language`."""
        if super().refusal(text=text, language=language) is None:
            return None
        return (
            f"UTMOS22 was trained on English, and the language is '{language}'; utmos[{ANY_LANGUAGE}] gives a number for "
            "every language"
        )

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        reason = self.refusal(text=item.text, language=item.language)
        if reason is not None:
            return Score.refused(reason, self.protocol)
        result = item.estimate_features[self.estimate_features[0]]
        return Score.ok(result["utmos"], self.protocol, detail={"frames": result["frames"]})
