"""Word and character error rates of what a recogniser hears in the estimate, against what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from codec_bench.errors import UserError
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.text.error_rate import ErrorRate, Unit
from codec_bench.types import Score

RECOGNISERS = ("pocketsphinx",)
"""The project's own features whose result has a transcript."""

NORMALISER = "whisper-en"


class _RecognisedErrorRate(Metric):
    """What the error rates share.

    Args:
        variant: the recogniser, such as `pocketsphinx`: one of `RECOGNISERS`, a feature of another package, or
            `./file.py:Class`, whose result has a `transcript`.

    Raises:
        UserError: no recogniser was named, or the feature is none. UnknownName: no such feature.
    """

    kind = "text"
    signals = False
    higher_is_better = False
    range = (0.0, None)
    paper = "Levenshtein: Binary codes capable of correcting deletions, insertions and reversals, 1966"
    source = "jiwer 4.0 and Whisper's English normaliser, exactly"
    where = "cpu"
    stem: ClassVar[str]
    unit_counted: ClassVar[Unit] = "word"

    def __init__(self, variant: str | None = None) -> None:
        recogniser = _recogniser(self.stem, variant)
        self.name = f"{self.stem}[{variant}]"
        self.estimate_features = (variant,)
        self.languages: tuple[str, ...] = getattr(recogniser, "languages", ())
        self.protocol = f"{self.stem}/{_protocol_of(recogniser, variant)}/{NORMALISER}"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item; `detail` holds the counts and both normalised texts."""
        from codec_bench.text.error_rate import error_rates
        from codec_bench.text.normalise import get_normaliser

        apply = get_normaliser(NORMALISER)
        scores: list[Score | None] = []
        places, references, hypotheses = [], [], []
        for place, item in enumerate(batch):
            outcome = self._texts(item, apply)
            if isinstance(outcome, Score):
                scores.append(outcome)
                continue
            scores.append(None)
            places.append(place)
            references.append(outcome[0])
            hypotheses.append(outcome[1])
        counted = error_rates(reference=references, estimate=hypotheses, unit=self.unit_counted, normaliser="none")
        for place, reference, hypothesis, counts in zip(places, references, hypotheses, counted):
            scores[place] = self._score(reference, hypothesis, counts)
        return scores

    def _texts(self, item: Inputs, apply: Any) -> tuple[str, str] | Score:
        """Both normalised texts, or the score where there is nothing to compare."""
        if item.text is None:
            return Score.refused("no transcript in the manifest to compare with", self.protocol)
        if self.languages and item.language is not None and _base_language(item.language) not in self.languages:
            return Score.refused(
                f"{self.estimate_features[0]} knows {' and '.join(self.languages)} only, and the language is '{item.language}'",
                self.protocol,
            )
        heard = item.estimate_features[self.estimate_features[0]].get("transcript")
        if not isinstance(heard, str):
            return Score.failed(f"the result of '{self.estimate_features[0]}' has no transcript", self.protocol)
        try:
            return apply(item.text).strip(), apply(heard).strip()
        except Exception as error:  # text is foreign input, and the rules for numbers are code of a library
            return Score.failed(f"the text cannot be normalised: {type(error).__name__}: {error}", self.protocol)

    def _score(self, reference: str, hypothesis: str, counts: ErrorRate) -> Score:
        if counts.rate is None:
            return Score.undefined("nothing is left of the transcript after normalisation", self.protocol)
        ratio = (
            {"numerator": counts.errors, "denominator": counts.reference_length} if self.aggregate == "ratio" else {}
        )
        detail = {
            "hits": counts.hits,
            "substitutions": counts.substitutions,
            "deletions": counts.deletions,
            "insertions": counts.insertions,
            "reference": reference,
            "hypothesis": hypothesis,
        }
        return Score.ok(counts.rate, self.protocol, **ratio, detail=detail)


class Wer(_RecognisedErrorRate):
    """Word error rate. Lower is better; 0 is every word right, and insertions can take it above 1.

    Errors over words: of one item, and for a corpus the errors of all items over the words of all (long utterances
    weigh more). Compare it with that of the unprocessed audio: the recogniser makes errors of its own.
    """

    stem = "wer"
    aggregate = "ratio"


class WerMacro(_RecognisedErrorRate):
    """The mean of the word error rates of the utterances, each of equal weight (as seed-tts-eval). Lower is better.

    Another number than `wer`, and one that a single short utterance with many insertions can move.
    """

    stem = "wer_macro"
    aggregate = "mean"


class Cer(_RecognisedErrorRate):
    """Character error rate, the spaces between words counted as characters (as jiwer). Lower is better.

    Aggregated as `wer`.
    """

    stem = "cer"
    aggregate = "ratio"
    unit_counted = "char"


def _recogniser(stem: str, variant: str | None) -> Any:
    """The feature class that transcribes."""
    from codec_bench import features

    hint = f"known recognisers: {', '.join(RECOGNISERS)}"
    if variant is None:
        raise UserError(f"{stem} needs a recogniser to be named: {stem}[{RECOGNISERS[0]}]", hint=hint)
    if variant in features.TABLE and variant not in RECOGNISERS:
        raise UserError(f"{stem}[{variant}]: '{variant}' does not transcribe speech", hint=hint)
    return features.REGISTRY.resolve(variant)


def _protocol_of(recogniser: Any, variant: str) -> str:
    protocol_id = getattr(recogniser, "protocol_id", None)
    return protocol_id() if protocol_id is not None else str(getattr(recogniser, "protocol", variant))


def _base_language(language: str) -> str:
    """`en` for en, EN, en-US, en_GB, eng and English."""
    base = language.strip().lower().replace("_", "-").split("-")[0]
    return "en" if base in ("eng", "english") else base
