"""The transcript that a recogniser makes of a signal. It is used to read spoken answers."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.metrics.error_rate import protocol_of_recogniser, recognisers
from codec_bench.text.language import base_language
from codec_bench.types import Score


class Transcript(Metric):
    """How many words a recogniser hears. Neither more nor fewer is better. The transcript is in `detail["transcript"]`.

    Args:
        variant: the recogniser, or a choice by language, as in `wer[...]`.

    Raises:
        UserError: no recogniser was named, or the named feature is not a recogniser.

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

    def __init__(self, variant: str | None = None) -> None:
        self._by_language, self._otherwise = recognisers("transcript", variant)
        self.name = f"transcript[{variant}]"
        read = dict.fromkeys([*self._by_language.values(), *filter(None, [self._otherwise])])
        self.estimate_features = tuple(read)
        if self._otherwise is None:
            self.languages = tuple(self._by_language)
        self.protocol = "transcript/" + "+".join(protocol_of_recogniser(name) for name in read)

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The one recogniser of the language."""
        spoken = base_language(language) if language is not None else None
        name = self._by_language.get(spoken, self._otherwise) if spoken else self._otherwise
        return (name or self.estimate_features[0],), ()

    def check_silence(self, *, estimate_silent: bool, reference_silent: bool) -> str | None:
        """None: no word is what should be heard in silence."""
        return None

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        scores = []
        for item in batch:
            result = item.estimate_features[self.features_of(item.language)[0][0]]
            transcript, fault = result.get("transcript"), result.get("fault")
            if fault or not isinstance(transcript, str):
                scores.append(Score.failed(str(fault or "the recogniser gave no transcript"), self.protocol))
            else:
                scores.append(Score.ok(len(transcript.split()), self.protocol, detail={"transcript": transcript}))
        return scores
