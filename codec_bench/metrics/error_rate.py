"""Word, character and phone error rates of a recogniser's transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from codec_bench.config.registry import Spec
from codec_bench.features.recognisers.names import (
    known_languages,
    languages_of,
    protocol_of_recogniser,
    resolve_recognisers,
)
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.text.language import base_language
from codec_bench.text.rules import EMPTY_REFERENCE, HALLUCINATED, ComparedTexts, get_rule
from codec_bench.types import Score

RULE = "by-language"
"""The default text rule: `wer[pocketsphinx]` is `wer[pocketsphinx]@by-language`."""

FAILED_ABOVE = 0.5
"""Items with a higher error rate are failed syntheses, loops or dropouts, by the convention of seed-tts-eval."""

NO_SPEECH = 0.6
"""No-speech probability from which Whisper's authors treat a window as silence."""


class _Pair(NamedTuple):
    """Two texts to compare, their language, and the item's position in the batch."""

    position: int
    reference: str
    estimate: str
    language: str | None
    spoken: str | None = None


class _RecognisedErrorRate(Metric):
    """Base class of the error rates.

    Args:
        variant: the recogniser (`whisper-large-v3`, `pocketsphinx`), with its own settings after an `@`
            (`whisper-large-v3@28s`); a choice by language from `configs/recogniser` (`seed-tts`); or a feature of
            another package, or `./file.py:Class`, whose result has a `transcript`.
        point: the text rule (`codec_bench.text.rules`), or None for `by-language`.
    """

    kind: ClassVar[Literal["pair", "single", "text"]] = "text"
    signals = False
    higher_is_better = False
    range: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    paper = "Levenshtein: Binary codes capable of correcting deletions, insertions and reversals, 1966"
    source = "counts equal to jiwer 4.0's; the rule of the text is in the protocol"
    where = "cpu"
    stem: ClassVar[str]
    unit_counted: ClassVar[Any] = None

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        self._by_language, self._otherwise = self._recognisers(variant)
        self._rule = get_rule(point or RULE)
        if self.unit_counted is not None and self._rule.fixed:
            raise UserError(
                "rule_counts_itself", metric=self.stem, rule=self._rule.name, hint=f"use wer[{variant}]@{point}"
            )
        self.name = f"{self.stem}[{variant}]" + (f"@{point}" if point else "")
        names = dict.fromkeys([*self._by_language.values(), *filter(None, [self._otherwise])])
        self.estimate_features = tuple(names)
        self.languages = known_languages(self._by_language, self._otherwise)
        asr = "+".join(protocol_of_recogniser(name) for name in names)
        self.protocol = f"{self.stem}/{asr}/{self._rule.name}"
        self.bounds = self.range

    def _recognisers(self, variant: str | None) -> tuple[dict[str, str], str | None]:
        return resolve_recognisers(self.stem, variant)

    @property
    def rule_name(self) -> str:
        """The name of the text rule."""
        return self._rule.name

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the recogniser for the language, to be run on the estimate only.

        Returns:
            The features of the estimate, and of the reference: one name, and none.
        """
        base = base_language(language) if language is not None else None
        name = self._by_language.get(base, self._otherwise) if base else self._otherwise
        return (name or self.estimate_features[0],), ()

    def refusal(self, *, text: str | None, language: str | None) -> str | None:
        """Return why an item cannot be measured, or None.

        Besides a missing text, the text rule or the recogniser may not know the language.
        """
        reason = super().refusal(text=text, language=language)
        if reason is not None or language is None:
            return reason
        if self._rule.languages and base_language(language) not in self._rule.languages:
            known = _list_languages(self._rule.languages)
            return Diagnostic("language_unknown_to_rule", rule=self._rule.name, languages=known, language=language)
        self._rule.check(language)
        name = self.features_of(language)[0][0]
        spoken = languages_of(name)
        if spoken and base_language(language) not in spoken:
            return Diagnostic(
                "language_unknown_to_recogniser", name=name, languages=_list_languages(spoken), language=language
            )
        return None

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return the score of an empty transcript; None for an empty reference.

        With an empty reference, the number of insertions has no bound.
        """
        score = self._without_words(text, language)
        return score if score is not None and score.status == "ok" and score.denominator else None

    def _without_words(self, text: str | None, language: str | None) -> Score | None:
        """Score an empty transcript of the reference text; None if the item is refused."""
        if text is None or self.refusal(text=text, language=language) is not None:
            return None
        spoken = base_language(language) if language is not None else None
        compared = self._compare([_Pair(0, text, "", spoken)])[0]
        return compared if isinstance(compared, Score) else self._score(compared, {})

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item.

        `detail` holds the counts, both normalised texts and the recogniser's other results.
        """
        scores: dict[int, Score] = {}
        pairs: list[_Pair] = []
        results: list[Mapping[str, Any]] = []
        for index, item in enumerate(batch):
            outcome = self._texts(item)
            if isinstance(outcome, Score):
                scores[index] = outcome
                continue
            pairs.append(_Pair(index, outcome[0], outcome[1], self._language(item, outcome[2]), item.spoken))
            results.append(outcome[2])
        for pair, compared, result in zip(pairs, self._compare(pairs), results):
            scores[pair.position] = compared if isinstance(compared, Score) else self._score(compared, result)
        return [scores[index] for index in range(len(batch))]

    def transcripts(self, batch: Sequence[Inputs]) -> list[str | Score]:
        """Return each item's transcript, or a score with the reason why it is missing."""
        names = [self.features_of(item.language)[0][0] for item in batch]
        return [self._transcript(name, item.estimate_features[name]) for name, item in zip(names, batch)]

    def between(self, batch: Sequence[Inputs], texts: Sequence[tuple[str, str]]) -> list[ComparedTexts | Score]:
        """Compare two texts of each item with each other.

        Both are normalised by the text rule, and aligned.

        Args:
            texts: for each item, the text that serves as reference, and the text to compare.

        Returns:
            For each item the aligned texts, or a failed score if they cannot be normalised.
        """
        results = [item.estimate_features[self.features_of(item.language)[0][0]] for item in batch]
        languages = [self._language(item, result) for item, result in zip(batch, results)]
        return self._compare([_Pair(at, *pair, code) for at, (pair, code) in enumerate(zip(texts, languages))])

    def _language(self, item: Inputs, result: Mapping[str, Any]) -> str | None:
        """Return the language of an item for the text rule; None if unknown.

        It is the sample's own, else the one that the recogniser detected, else the only one that it knows.
        """
        if item.language is not None:
            return base_language(item.language)
        known = languages_of(self.features_of(None)[0][0])
        return result.get("language") or (known[0] if len(known) == 1 else None)

    def _compare(self, pairs: Sequence[_Pair]) -> list[Any]:
        """Normalise and align all pairs of texts; a pair that cannot be normalised fails."""
        if not pairs:
            return []
        try:
            return self._rule.compare(
                reference=[pair.reference for pair in pairs],
                estimate=[pair.estimate for pair in pairs],
                language=[pair.language for pair in pairs],
                unit=self.unit_counted,
                spoken=[pair.spoken for pair in pairs] if self._rule.two_references else None,
            )
        except Exception as error:  # the libraries that spell numbers may fail on any text
            if len(pairs) == 1:
                return [Score.failed(Diagnostic("not_normalised", cause=of_error(error)), self.protocol)]
            return [self._compare([one])[0] for one in pairs]

    def _texts(self, item: Inputs) -> tuple[str, str, Mapping[str, Any]] | Score:
        """Return both texts and the recogniser's result, or a score if one is missing."""
        name = self.features_of(item.language)[0][0]
        result = item.estimate_features[name]
        transcript = self._transcript(name, result)
        return transcript if isinstance(transcript, Score) else (item.text or "", transcript, result)

    def _transcript(self, name: str, result: Mapping[str, Any]) -> str | Score:
        """Return the transcript in a recogniser's result, or a failed score."""
        transcript = result.get("transcript")
        if not isinstance(transcript, str):
            return Score.failed(Diagnostic("no_transcript", name=name), self.protocol)
        if fault := result.get("fault"):
            return Score.failed(Diagnostic("recogniser_failed", name=name, cause=fault), self.protocol)
        return transcript

    def _score(self, compared: ComparedTexts, result: Mapping[str, Any]) -> Score:
        """Compute the error rate of two aligned texts, with its counts.

        Args:
            result: the recogniser's, for the record.
        """
        value = self._value(compared)
        if value is None:
            return Score.undefined(compared.note or Diagnostic("empty_transcript"), self.protocol)
        ratio = {}
        if self.aggregate == "ratio":
            share: tuple[float, float] = (compared.counts.errors, compared.counts.reference_length)
            if self._rule.aggregate == "weighted":  # a published rule with its own weights of pairs
                share = self._rule.share(compared)
            ratio = dict(zip(("numerator", "denominator"), share))
        return Score.ok(value, self.protocol, **ratio, detail=self._detail(compared, result))

    def _value(self, compared: ComparedTexts) -> float | None:
        return self._rule.item_value(compared)

    def _detail(self, compared: ComparedTexts, result: Mapping[str, Any]) -> dict[str, Any]:
        """Collect counts, normalised texts, raw transcript and other facts for the record."""
        detail = compared.detail
        if isinstance(transcript := result.get("transcript"), str):
            detail["transcript"] = transcript
        if compared.note:
            detail["note"] = compared.note
        if result.get("language_detected"):
            detail["language"] = result.get("language")
        if "no_speech_prob" in result:
            detail["no_speech_prob"] = float(result["no_speech_prob"])
            if detail["no_speech_prob"] >= NO_SPEECH and compared.estimate:
                detail["flag"] = Diagnostic("words_without_speech")
        if compared.hallucinated:
            detail["flag"] = HALLUCINATED
        return detail


class Wer(_RecognisedErrorRate):
    """Word error rate. Lower is better; insertions can take it above 1.

    Errors divided by words, summed over the corpus, so long utterances weigh more. The default rule counts characters
    in languages without spaces. Compare it with the rate of the unprocessed audio, because recognisers make errors too.

    For an empty reference the value is the number of inserted words, which adds to the errors only. A set without
    reference words has no error rate.

    Examples:
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> sample = next(iter(open_source("embedded")))
        >>> (scores,) = load_metric("wer[pocketsphinx]")(estimate=[Audio.read(sample.audio)], text=[sample.text])
        >>> score = scores["wer[pocketsphinx]"]
        >>> score.numerator, score.denominator, score.value
        (3.0, 10.0, 0.3)
    """

    stem = "wer"
    aggregate = "ratio"


class WerMacro(_RecognisedErrorRate):
    """The mean of utterances' word error rates, as seed-tts-eval. Lower is better.

    One short utterance with many insertions can change it much. Items without reference words are undefined; `wer` and
    `hallucinated` count them.
    """

    stem = "wer_macro"
    aggregate = "mean"

    def _value(self, compared: ComparedTexts) -> float | None:
        return compared.value


class WerBelow50(Wer):
    """Word error rate over items of at most 50 %. Lower is better, 0 to 0.5.

    A few items with lost or repeated sentences can dominate `wer`. They are undefined here and counted by
    `wer_above_50`. Aggregated as `wer`.
    """

    stem = "wer_below_50"
    range = (0.0, FAILED_ABOVE)
    source = "errors over words of the items at or below 50 %, as seed-tts-eval and sglang-omni report it"

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return None: an item without a transcript is above the limit."""
        return None

    def _score(self, compared: ComparedTexts, result: Mapping[str, Any]) -> Score:
        """Compute the error rate; undefined above 50 %."""
        score = super()._score(compared, result)
        if score.value is None or score.value <= FAILED_ABOVE:
            return score
        return Score.undefined(Diagnostic("rate_above", percent=100 * FAILED_ABOVE), self.protocol)


class WerAbove50(_RecognisedErrorRate):
    """The share of items whose word error rate is above 50 %. Lower is better, 0 to 1.

    It counts the items that `wer_below_50` omits: lost or repeated sentences and invented transcripts. `detail["rate"]`
    holds the item's error rate.
    """

    stem = "wer_above_50"
    aggregate = "mean"
    range = (0.0, 1.0)
    source = "the items above 50 %, as seed-tts-eval and sglang-omni count them"

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return the score of an empty transcript."""
        score = self._without_words(text, language)
        return score if score is not None and score.status == "ok" and score.value == 1 else None

    def _value(self, compared: ComparedTexts) -> float | None:
        rate = self._rule.item_value(compared)
        return None if rate is None else float(rate > FAILED_ABOVE)

    def _detail(self, compared: ComparedTexts, result: Mapping[str, Any]) -> dict[str, Any]:
        return super()._detail(compared, result) | {"rate": self._rule.item_value(compared)}


class Cer(_RecognisedErrorRate):
    """Character error rate, with spaces, as jiwer. Lower is better."""

    stem = "cer"
    aggregate = "ratio"
    unit_counted = "char"


class Hallucinated(_RecognisedErrorRate):
    """The share of utterances with words where none are expected. Lower is better.

    Measured where the reference is empty or the rule removes all of it: silence, noise, music, a hesitation. Items with
    reference words are refused. `detail["insertions"]` counts the words.
    """

    stem = "hallucinated"
    aggregate = "mean"
    range = (0.0, 1.0)
    paper = "Barański et al.: Investigation of Whisper ASR Hallucinations Induced by Non-Speech Audio, ICASSP 2025"
    source = "the share of non-empty transcripts; the rule of the text is in the protocol"

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return the score of an item with inserted words."""
        score = self._without_words(text, language)
        return Score.ok(1.0, self.protocol) if score is not None and score.status == "ok" else None

    def _score(self, compared: ComparedTexts, result: Mapping[str, Any]) -> Score:
        """Score an item without reference words; refuse others."""
        if compared.counts.reference_length:
            return Score.refused(Diagnostic("reference_has_words"), self.protocol)
        return super()._score(compared, result)

    def _detail(self, compared: ComparedTexts, result: Mapping[str, Any]) -> dict[str, Any]:
        detail = super()._detail(compared, result)
        detail.pop("flag", None)  # the value says it
        return detail

    def _value(self, compared: ComparedTexts) -> float | None:
        return float(compared.hallucinated) if compared.note == EMPTY_REFERENCE else None


class Dwer(_RecognisedErrorRate):
    """Word error rate against the reference audio's transcript. Lower is better.

    It needs no texts. It measures what the system changed, not the recogniser's own errors. Undefined where the
    recogniser fails on the reference. Aggregated as `wer`. Codec papers and DASB use it.
    """

    stem = "dwer"
    kind = "pair"
    aggregate: ClassVar[Literal["mean", "ratio"]] = "ratio"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.reference_features = self.estimate_features

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the recogniser for the language, for the estimate and the reference."""
        of_estimate, _ = super().features_of(language)
        return of_estimate, of_estimate

    def _texts(self, item: Inputs) -> tuple[str, str, Mapping[str, Any]] | Score:
        """Return both transcripts (reference first) and the estimate's full result.

        If a transcript is missing, return its failed score.
        """
        name = self.features_of(item.language)[0][0]
        reference_text, estimate_text = (self._transcript(name, result) for result in item.features(name))
        if isinstance(reference_text, Score):
            return reference_text
        if isinstance(estimate_text, Score):
            return estimate_text
        return reference_text, estimate_text, item.estimate_features[name]


class Per(Dwer):
    """Phone error rate against the reference audio's phones. Lower is better.

    Errors divided by reference phones, aggregated as `wer`. It needs no texts, dictionary or language: the recogniser
    knows phones of some 60 languages, and no language model repairs wrong sounds. So it finds slips of pronunciation
    that a word error rate hides, and not the recogniser's own errors.

    Args:
        variant: the phone recogniser: `phones-wav2vec2-lv60` (default), also with `@bfloat16` or `@tf32`.
        point: None; phones have no text rule.
    """

    stem = "per"
    paper = "Xu, Baevski, Auli: Simple and Effective Zero-shot Cross-lingual Phoneme Recognition, Interspeech 2022"
    source = "transformers 5.23 Wav2Vec2ForCTC, the same phones; counts equal to jiwer 4.0's"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        if point is not None:
            raise UserError("no_point_of_metric", point=point, name="per", hint="use per")
        super().__init__(variant, "none")
        self.name = "per" + (f"[{variant}]" if variant else "")

    def _recognisers(self, variant: str | None) -> tuple[dict[str, str], str | None]:
        """Return the phone recogniser, which is the same for all languages."""
        from codec_bench.features.recognisers.ctc import PHONES  # imports all that reads checkpoints

        known = list(PHONES)
        if variant is not None and Spec.parse(variant).name not in known:
            raise UserError("no_variant", variant=variant, name="per", hint=f"use per, or per[{known[0]}]")
        return {}, variant or known[0]


def _list_languages(codes: Sequence[str]) -> str:
    return " and ".join(codes) if len(codes) < 6 else f"{len(codes)} languages"
