"""Metrics of spoken answers: words, and emotion2vec+'s reading of the sound.

`said_with_emotion` is the score of URO-Bench's GenEmotion, `said_as_told` that of VocalBench's instructions about the
voice, and `said_fittingly` the second half of VocalBench's score for emotion.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import Answer, SeparateMetric
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.text.error_rate import error_rate
from codec_bench.text.rules import get_rule
from codec_bench.types import Score

EMOTION = "emotion_heard"
FIVE = ("angry", "happy", "neutral", "sad", "surprised")
"""VocalBench's emotions, in addition to `unknown`; the network's other three do not occur there."""
MOST_WRONG, LEAST_SURE = 0.2, 0.5
FASTER, SLOWER = (0.25, 0.75), (1.5, 2.5)
"""Bounds of an answer's duration at twice and half the speed, relative to the repeated speech."""
_URO, _VOCALBENCH = "official/uro-bench", "official/vocalbench"


class _SpeakingStyle(SeparateMetric):
    """Rates how an answer is spoken; `variant` None is the project's own rule."""

    sound_metrics = (EMOTION,)
    stem: str
    official: str | None

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, self.official):
            raise UnknownName("rule", str(variant), [self.official] if self.official else [], within=self.stem)
        self._official = variant is not None
        self.name = self.stem + (f"[{variant}]" if variant else "")
        self.protocol = f"{self.stem}/{variant or 'by-language'}-1"

    def worst(self, answer: Answer) -> Score:
        """The lowest value."""
        return Score.ok(float(self.range[0] or 0.0), self.protocol)

    def _probabilities(self, answer: Answer) -> dict[str, float] | Score:
        """The nine emotions' probabilities from the audio's score, or a failed score."""
        score = answer.sound_scores.get(EMOTION)
        if score is None or score.status != "ok":
            reason = (score.reason if score is not None else None) or Diagnostic("no_sound_for_emotion")
            return Score.failed(reason, self.protocol)
        return dict(score.detail["probabilities"])


class EmotionalSpeech(_SpeakingStyle):
    """How well an answer says its text in an emotion, 0 to 1. Higher is better.

    The probability of the emotion among nine by emotion2vec+ large, times one minus the error rate (at most 1). Errors
    are counted by the rule `by-language`. `official/uro-bench` counts words of English by Whisper's rule and divides by
    the length of the answer, because its program swaps the two; other languages are refused, as its Mandarin rule needs
    a package that is not included.

    Source: Yan et al., "URO-Bench", EMNLP Findings 2025; `metrics/mark_emotion.py` of its repository (9e74bc0),
    English, exactly, for equal probabilities.

    Args:
        variant: `official/uro-bench`, or None for the project's own.
    """

    stem = "said_with_emotion"
    official = _URO
    needs = ("emotion",)
    paper = "Yan et al.: URO-Bench, EMNLP Findings 2025"
    source = "github.com/Ruiqi-Yan/URO-Bench 9e74bc0 metrics/mark_emotion.py eval_ge, English, exactly"

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `detail` has the emotion's probability and the error rate."""
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        if self._official and answer.language not in (None, "en"):
            return Score.refused(Diagnostic("english_rule_only", language=answer.language), self.protocol)
        probabilities = self._probabilities(answer)
        if isinstance(probabilities, Score):
            return probabilities
        emotion = str(answer.fields["emotion"]).strip().lower()
        if emotion not in probabilities:
            reason = Diagnostic("emotion_not_among", emotion=emotion[:40], emotions=", ".join(probabilities))
            return Score.undefined(reason, self.protocol)
        rate = self._rate(answer)
        if rate is None:
            return Score.undefined(Diagnostic("expected_without_words", id=answer.id), self.protocol)
        probability = probabilities[emotion]
        detail = {"probability": probability, "error_rate": rate}
        return Score.ok(probability * (1 - min(rate, 1.0)), self.protocol, detail=detail)

    def _rate(self, answer: Answer) -> float | None:
        expected = answer.references[0]
        if self._official:
            rate = error_rate(reference=answer.text.strip().lower(), estimate=expected.strip().lower()).rate
            return 1.0 if rate is None else rate  # the program's comparison fails on an empty answer
        return _own_rate(expected, answer)


class InstructedStyle(_SpeakingStyle):
    """Whether text, emotion and speed are as requested: 1 or 0. Higher is better.

    `question` is an instruction ("Repeat the following question in sad emotion at half my speaking speed.") and the
    text. An answer counts if less than a fifth of its words is wrong, the likeliest of five emotions is the requested
    one, and its duration is 0.25 to 0.75 (twice the speed) or 1.5 to 2.5 times (half the speed) the part of the
    question's sound that has these words, by their number.

    `official/vocalbench` requires a probability above one half among the five emotions and `unknown`, takes the first
    emotion anywhere in the question, and counts the model's written words, if any, instead of the spoken ones. Plain
    repetition is refused there, because it also needs a judge.

    Source: Liu et al., "VocalBench", 2025; `utils/read_score_instruction.py` of its repository (5e9cce0), exactly, for
    equal probabilities and durations.

    Args:
        variant: `official/vocalbench`, or None for the project's own.
    """

    stem = "said_as_told"
    official = _VOCALBENCH
    needs = ("question", "kind")
    paper = "Liu et al.: VocalBench, 2025"
    source = "github.com/SJTU-OmniAgent/VocalBench 5e9cce0 utils/read_score_instruction.py gen_score, exactly"

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `detail` has the error rate, emotion and relative duration."""
        question, kind = str(answer.fields["question"]), str(answer.fields["kind"]).lower()
        instruction, stop, words = question.partition(".")
        if not stop or not words.strip():
            return Score.undefined(Diagnostic("question_without_repetition", id=answer.id), self.protocol)
        with_emotion, with_speed = "emotion" in kind, "speed" in kind
        if self._official and not (with_emotion or with_speed):
            return Score.refused(Diagnostic("judge_asked_instead"), self.protocol)
        estimate = (answer.raw if self._official and answer.raw.strip() else answer.text) or ""
        rate = _vocalbench_rate(words, estimate) if self._official else _own_rate(words, answer)
        detail: dict[str, object] = {"error_rate": rate}
        followed = rate is not None and rate < MOST_WRONG
        if with_emotion:
            probabilities = self._probabilities(answer)
            if isinstance(probabilities, Score):
                return probabilities
            six = _renormalised(probabilities, (*FIVE, "unknown"))
            searched = (question if self._official else instruction).lower()
            named = next((one for one in six if one in searched), "unknown")
            likeliest = max(FIVE, key=six.__getitem__)
            followed &= six[named] > LEAST_SURE if self._official else likeliest == named
            detail |= {"emotion": named, "probability": six[named]}
        if with_speed:
            if answer.question_s is None or answer.answer_s is None:
                return Score.failed(Diagnostic("length_unknown"), self.protocol)
            share = answer.answer_s / (answer.question_s * len(words.split()) / len(question.split()))
            low, high = FASTER if "twice" in instruction.lower() else SLOWER
            followed &= low < share < high
            detail["lengths"] = share
        return Score.ok(float(followed), self.protocol, detail=detail)


class FittingStyle(_SpeakingStyle):
    """How well an answer's emotion fits the question, 1 to 5. Higher is better.

    `weights` rates the emotions angry, happy, neutral, sad, surprised from 1 to 5. The value is their mean, weighted by
    the probabilities of emotion2vec+ large. It is the second half of VocalBench's score for emotion.

    Source: Liu et al., "VocalBench", 2025; `utils/calc_emotion_acoustic.py` of its repository (5e9cce0), to 1e-9, for
    equal probabilities.
    """

    stem = "said_fittingly"
    official = None
    needs = ("weights",)
    range = (1.0, 5.0)
    paper = "Liu et al.: VocalBench, 2025"
    source = "github.com/SJTU-OmniAgent/VocalBench 5e9cce0 utils/calc_emotion_acoustic.py, to 1e-9"

    def __init__(self, variant: str | None = None) -> None:
        super().__init__(variant)
        self.protocol = f"{self.stem}/{_VOCALBENCH.removeprefix('official/')}-1"

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `detail` has the five emotions' probabilities."""
        weights = answer.fields["weights"]
        if not isinstance(weights, (list, tuple)) or len(weights) != len(FIVE):
            return Score.undefined(Diagnostic("no_weights", id=answer.id, names=", ".join(FIVE)), self.protocol)
        probabilities = self._probabilities(answer)
        if isinstance(probabilities, Score):
            return probabilities
        five = _renormalised(probabilities, FIVE)
        value = sum(five[name] * float(weight) for name, weight in zip(FIVE, weights))
        return Score.ok(value, self.protocol, detail={"probabilities": five})


def _renormalised(probabilities: dict[str, float], names: Sequence[str]) -> dict[str, float]:
    """Probabilities of some emotions, conditional on no other."""
    total = sum(probabilities[name] for name in names)
    return {name: probabilities[name] / total if total else 1 / len(names) for name in names}


def _own_rate(expected: str, answer: Answer) -> float | None:
    rule = get_rule("by-language")
    (compared,) = rule.compare(reference=[expected], estimate=[answer.text], language=[answer.language])
    return rule.item_value(compared)


def _vocalbench_rate(expected: str, estimate: str) -> float:
    """The word error rate after Whisper's English normaliser, without punctuation.

    It is 0 for an empty reference.
    """
    from codec_bench.text.whisper import whisper_en

    words = [
        " ".join(
            word
            for word in whisper_en()(text.lower()).split(" ")
            if not all(unicodedata.category(letter)[0] == "P" for letter in word)
        )
        for text in (expected, estimate)
    ]
    return error_rate(reference=words[0].lower(), estimate=words[1].lower(), normaliser="none").rate or 0.0
