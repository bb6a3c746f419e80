"""Error rates by several recognisers: each, mean, smallest, disagreement."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal

from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.registry import Spec
from codec_bench.features.recognisers.names import RECOGNISERS
from codec_bench.messages import Diagnostic, as_reason, as_remark
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.metrics.error_rate import Wer
from codec_bench.types import Score

EACH = "wer"
"""The metric computed with each recogniser. Its name with several recognisers selects all of them."""
TOGETHER = ("wer_mean", "wer_smallest", "wer_between")
"""Metrics over all recognisers together."""


def recognisers_in(variant: str) -> list[str]:
    """Split `a@28s+float16+b` into the recognisers `a@28s+float16` and `b`.

    Raises:
        UserError: one of them is named twice.
    """
    names: list[str] = []
    own_file = is_custom_code(variant) and Path(variant.rpartition(":")[0]).is_file()  # its path may have a plus
    for token in [variant] if own_file else variant.split("+"):
        if names and "@" in names[-1] and not _is_recogniser(token):
            names[-1] += f"+{token}"
        else:
            names.append(token.strip())
    if again := next((name for name in names if names.count(name) > 1), None):
        raise UserError("recogniser_named_twice", variant=variant, recogniser=again, hint="name each recogniser once")
    return names


def members(spec: Spec) -> list[str]:
    """Return the metrics of `wer[a+b]`: each recogniser's rate, and those over all.

    The list is empty for any other name.

    Raises:
        UserError: another error rate has several recognisers, or a recogniser is named twice.
    """
    rates = (EACH, "cer", "dwer", "hallucinated", "wer_above_50", "wer_below_50", "wer_macro")
    named = recognisers_in(spec.argument or "") if spec.name in rates and "+" in (spec.argument or "") else []
    if len(named) < 2:
        return []
    if spec.name != EACH:
        raise UserError(
            "one_recogniser_expected",
            name=spec.text,
            recognisers=len(named),
            metric=spec.name,
            hint=", ".join(f"{spec.name}[{one}]" for one in named) + f", or {EACH}[{spec.argument}]",
        )
    rule = f"@{spec.point}" if spec.point else ""
    return [f"{EACH}[{one}]{rule}" for one in named] + [f"{stem}[{spec.argument}]{rule}" for stem in TOGETHER]


def _is_recogniser(text: str) -> bool:
    """Whether a text, up to `@`, is read as the name of a recogniser.

    Any feature's name is, a table by language (a file of `configs/recogniser`), custom code (`file.py:Class`), and any
    text with a prefix of `RECOGNISERS`.
    """
    from codec_bench import features
    from codec_bench.config import config_names

    name = text.partition("@")[0].strip()
    known = name in features.REGISTRY.table() or name in config_names("recogniser")
    return known or is_custom_code(name) or name.startswith(RECOGNISERS)


class _Consensus(Metric):
    """Base class of values over several recognisers.

    An item has a value only if every recogniser has a transcript.

    Args:
        variant: the recognisers, joined by `+`, each as for `wer`. point: the text rule, as for `wer`.
    """

    signals = False
    aggregate = "ratio"
    where = "cpu"
    stem: ClassVar[str]

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        named = recognisers_in(variant or "")
        if len(named) < 2:
            raise UserError(
                "several_recognisers_expected",
                metric=self.stem,
                variant=variant,
                hint=f"{self.stem}[pocketsphinx+whisper-tiny.en]",
            )
        self._each = {name: Wer(name, point) for name in named}
        self.name = f"{self.stem}[{variant}]" + (f"@{point}" if point else "")
        features = [feature for one in self._each.values() for feature in one.estimate_features]
        self.estimate_features = tuple(dict.fromkeys(features))
        asr, rule = [one.protocol.removeprefix("wer/") for one in self._each.values()], "/" + self._first.rule_name
        self.protocol = f"{self.stem}/{'+'.join(text.removesuffix(rule) for text in asr)}{rule}"
        self.bounds = self.range

    @property
    def _first(self) -> Wer:
        return next(iter(self._each.values()))

    def features_of(self, language: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return each recogniser's feature for the language."""
        return tuple(dict.fromkeys(one.features_of(language)[0][0] for one in self._each.values())), ()

    def refusal(self, *, text: str | None, language: str | None) -> str | None:
        """Return the first reason for which one of the recognisers refuses the item."""
        reference_text = text if self.kind == "text" else text or ""
        reasons = (one.refusal(text=reference_text, language=language) for one in self._each.values())
        return next(filter(None, reasons), None)


class _OfRates(_Consensus):
    """Values made of each recogniser's own error rate."""

    kind: ClassVar[Literal["pair", "single", "text"]] = "text"
    higher_is_better = False
    range: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    paper = Wer.paper
    source = "made of each recogniser's `wer`, whose counts are equal to jiwer 4.0's"

    def worst(self, *, text: str | None, language: str | None) -> Score | None:
        """Return the score if all transcripts are empty; None if one has no bound."""
        scores = {name: one.worst(text=text, language=language) for name, one in self._each.items()}
        known = {name: score for name, score in scores.items() if score is not None}
        return self._score(known) if len(known) == len(scores) else None

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item. `detail["rates"]` holds each recogniser's own."""
        columns = [one.compute(batch) for one in self._each.values()]
        return [self._of_item(dict(zip(self._each, row, strict=True))) for row in zip(*columns, strict=True)]

    def _of_item(self, scores: Mapping[str, Score]) -> Score:
        """Combine the recognisers' scores of one item by `_score`; keep the first flag.

        If one has no value, the result has its status and reason.
        """
        for name, score in scores.items():
            if score.status != "ok":
                return Score(None, score.status, _named(name, as_reason(score.reason)), self.protocol)
        combined = self._score(scores)
        for name, score in scores.items():
            if "flag" in score.detail:
                flag = _named(name, as_remark(score.detail["flag"]))
                return replace(combined, detail={**combined.detail, "flag": flag})
        return combined

    @abstractmethod
    def _score(self, scores: Mapping[str, Score]) -> Score:
        pass


class WerMean(_OfRates):
    """The mean of several recognisers' word error rates. Lower is better, from 0.

    Over a corpus: the mean of the recognisers' corpus rates, over items with a transcript of each. It depends less on
    which voices or codecs suit one recogniser.

    Examples:
        >>> features = {"pocketsphinx": {"transcript": "a cap sat"}, "whisper-tiny.en": {"transcript": "a cat sat"}}
        >>> item = Inputs("a", 16_000, text="a cat sat", language="en", estimate_features=features)
        >>> (score,) = WerMean("pocketsphinx+whisper-tiny.en").compute([item])
        >>> round(score.value, 3), {name: round(rate, 3) for name, rate in score.detail["rates"].items()}
        (0.167, {'pocketsphinx': 0.333, 'whisper-tiny.en': 0.0})
    """

    stem = "wer_mean"

    def _score(self, scores: Mapping[str, Score]) -> Score:
        """Average the recognisers' error counts, word counts and rates."""
        count = len(scores)
        errors = sum(score.numerator or 0.0 for score in scores.values()) / count
        words = sum(score.denominator or 0.0 for score in scores.values()) / count
        rates = {name: score.value for name, score in scores.items()}
        value = sum(score.value or 0.0 for score in scores.values()) / count
        return Score.ok(value, self.protocol, numerator=errors, denominator=words, detail={"rates": rates})


class WerSmallest(_OfRates):
    """The smallest of several recognisers' word error rates. Lower is better.

    Over a corpus: the errors of the chosen recognisers over the words. Reports print it as a word error rate, but it is
    at most each recogniser's own rate and falls with each recogniser added. Compare it with the same recognisers alone.
    """

    stem = "wer_smallest"

    def _score(self, scores: Mapping[str, Score]) -> Score:
        """Return the score of the recogniser with the lowest rate."""
        chosen = min(scores, key=lambda name: scores[name].value or 0.0)
        best = scores[chosen]
        detail = {"recogniser": chosen, "rates": {name: score.value for name, score in scores.items()}}
        ratio = {"numerator": best.numerator, "denominator": best.denominator}
        return Score.ok(best.value or 0.0, self.protocol, **ratio, detail=detail)


class WerBetween(_Consensus):
    """The disagreement of several recognisers, 0 to 2. No direction is better.

    It shows how much a word error rate depends on the recogniser. It needs no text. Over all pairs of recognisers: the
    fewest edits between the two transcripts, and the mean length of the two, are summed; the value is the ratio, for a
    corpus over all items. It is 0 for equal transcripts, and 2 where only one of each pair has words. Undefined where
    no recogniser finds a word.
    """

    stem = "wer_between"
    kind = "single"
    higher_is_better = None
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)
    paper = Wer.paper
    source = "counts equal to jiwer 4.0's; the rule of the text is in the protocol"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item; `detail` has all transcripts and pairs' values."""
        by_recogniser = [one.transcripts(batch) for one in self._each.values()]
        scores: dict[int, Score] = {}
        for index, row in enumerate(zip(*by_recogniser, strict=True)):
            for name, transcript in zip(self._each, row):
                if isinstance(transcript, Score):
                    reason = _named(name, as_reason(transcript.reason))
                    scores.setdefault(index, Score(None, transcript.status, reason, self.protocol))
        complete = [index for index in range(len(batch)) if index not in scores]
        items = [batch[index] for index in complete]
        pairs: dict[str, list[Any]] = {}
        for (one, transcript), (other, answered) in combinations(zip(self._each, by_recogniser), 2):
            texts = [(str(transcript[index]), str(answered[index])) for index in complete]
            pairs[f"{one}+{other}"] = self._each[one].between(items, texts)
        for at, index in enumerate(complete):
            transcripts = {name: str(transcript[index]) for name, transcript in zip(self._each, by_recogniser)}
            scores[index] = self._score({name: compared[at] for name, compared in pairs.items()}, transcripts)
        return [scores[index] for index in range(len(batch))]

    def _score(self, pairs: Mapping[str, Any], transcripts: Mapping[str, str]) -> Score:
        """Divide the errors over all pairs of transcripts by their mean lengths, summed."""
        errors, words, values = 0.0, 0.0, {}
        for name, compared in pairs.items():
            if isinstance(compared, Score):
                return Score(None, compared.status, compared.reason, self.protocol)
            counts = compared.counts
            length = counts.hits + counts.substitutions + (counts.deletions + counts.insertions) / 2
            values[name] = counts.errors / length if length else None
            errors, words = errors + counts.errors, words + length
        if not words:
            return Score.undefined(Diagnostic("no_words_heard"), self.protocol)
        detail = {"pairs": values, "transcripts": dict(transcripts)}
        return Score.ok(errors / words, self.protocol, numerator=errors, denominator=words, detail=detail)


def _named(recogniser: str, cause: Diagnostic | None) -> Diagnostic:
    """Add the recogniser's name to a reason or flag, unless it has it."""
    if cause is None:
        return Diagnostic("unknown")
    if recogniser in cause.parameters.values():
        return cause
    return Diagnostic("of_recogniser", recogniser=recogniser, cause=cause)
