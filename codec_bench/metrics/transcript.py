"""A recogniser's transcript of a signal, its speaking rate and its language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from codec_bench.features.recognisers.names import protocol_of_recogniser, resolve_recognisers
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.text.language import base_language
from codec_bench.types import Score

LEVEL = "level"


class Transcript(Metric):
    """The number of recognised words. No direction is better.

    Args:
        variant: the recogniser, or a choice by language, as in `wer[...]`.

    Examples:
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> score = load_metric("transcript[pocketsphinx]")(estimate=[clip])[0]["transcript[pocketsphinx]"]
        >>> score.value, score.detail["transcript"]
        (10.0, 'the farmer put seven like eggs in the run basket')
    """

    kind = "single"
    signals = False
    higher_is_better = None
    range = (0.0, None)
    unit = "words"
    source = "the recogniser's own transcript, unchanged"
    where = "inline"
    stem = "transcript"
    silence_flags = (None, None)

    def __init__(self, variant: str | None = None) -> None:
        self._by_language, self._otherwise = resolve_recognisers(self.stem, variant)
        self.name = f"{self.stem}[{variant}]"
        read = dict.fromkeys([*self._by_language.values(), *filter(None, [self._otherwise])])
        self.estimate_features = tuple(read)
        if self._otherwise is None:
            self.languages = tuple(self._by_language)
        self.protocol = f"{self.stem}/" + "+".join(protocol_of_recogniser(name) for name in read)

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the recogniser for the language, to be run on the estimate only."""
        spoken = base_language(language) if language is not None else None
        name = self._by_language.get(spoken, self._otherwise) if spoken else self._otherwise
        return (name or self.estimate_features[0],), ()

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item."""
        scores = []
        for item in batch:
            result = item.estimate_features[self.features_of(item.language)[0][0]]
            transcript, fault = result.get("transcript"), result.get("fault")
            if fault or not isinstance(transcript, str):
                scores.append(Score.failed(fault or Diagnostic("recogniser_silent"), self.protocol))
            else:
                scores.append(Score.ok(len(transcript.split()), self.protocol, detail={"transcript": transcript}))
        return scores


class SpeakingRate(Transcript):
    """Recognised words per second of the signal. No direction is better.

    Words are separated by spaces, as written. For languages without spaces count characters (`@char`).
    `speaking_rate_error` compares with a reference, over speech alone.

    Args:
        variant: the recogniser, or a choice by language, as in `wer[...]`. point: `char` to count characters, or None.
    """

    stem = "speaking_rate"
    unit = "words/s"
    source = "VERSA's speaking_rate at c398480 on the same transcript"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        if point not in (None, "char"):
            raise UserError(
                "no_point_of_metric", point=point, name="speaking_rate", hint="leave it out for words, or use @char"
            )
        super().__init__(variant)
        self._characters = point is not None
        if point:
            self.name, self.protocol, self.unit = f"{self.name}@{point}", f"{self.protocol}/characters", "characters/s"
        self.estimate_features = (*self.estimate_features, LEVEL)

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the recogniser for the language, and the level."""
        return (*super().features_of(language)[0], LEVEL), ()

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item; `detail` holds the transcript."""
        return [self._rate(item, score) for item, score in zip(batch, super().compute(batch), strict=True)]

    def _rate(self, item: Inputs, score: Score) -> Score:
        """Divide the number of words or characters by the seconds of audio.

        Args:
            score: the item's word count.
        """
        seconds = float(item.estimate_features[LEVEL]["duration_s"])
        if score.value is None or not seconds:
            return score
        count = len(score.detail["transcript"]) if self._characters else score.value
        return Score.ok(count / seconds, self.protocol, detail=score.detail)


class Lid(Metric):
    """The probability of the detected language. No direction is better.

    `detail["language"]` is detected in the first 30 s, without the data's own language. A low probability or another
    language shows an accent or wrong pronunciation.

    Args:
        variant: a multilingual Whisper, such as `whisper-large-v3`. point: its backend and compute type, or None.
    """

    kind = "single"
    signals = False
    higher_is_better = None
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    paper = "Radford et al.: Robust Speech Recognition via Large-Scale Weak Supervision, ICML 2023"
    source = "faster-whisper 1.2.1 detect_language, to 1e-4"
    where = "inline"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        from codec_bench.features.recognisers.whisper import ENGLISH, Whisper

        name = str(variant)
        if not name.startswith("whisper-") or Whisper.languages_of(name) == ENGLISH:
            raise UserError(
                "variant_without_language", variant=variant, hint="name a multilingual Whisper: lid[whisper-large-v3]"
            )
        suffix = f"@{point}" if point else ""
        self.name = f"lid[{name}]{suffix}"
        self._feature = f"spoken-language[{name}]{suffix}"
        self.estimate_features = (self._feature,)
        self.protocol = "lid/" + protocol_of_recogniser(name + suffix)

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item; `detail` holds the language."""
        results: list[Any] = [item.estimate_features[self._feature] for item in batch]
        return [Score.ok(one["probability"], self.protocol, detail={"language": one["language"]}) for one in results]
