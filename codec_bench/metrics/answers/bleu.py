"""`bleu[TOKENISER]`: BLEU by sacreBLEU, an item at a time with the sums that give the corpus value.

K. Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL 2002; M. Post, "A Call for
Clarity in Reporting BLEU Scores", WMT 2018. The corpus value, which is not the mean of the items, is the fold `bleu`
of the summed counts and equals `sacrebleu.corpus_bleu` to rounding. Mixed case, exponential smoothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codec_bench.errors import MissingExtra, UnknownName, UserError
from codec_bench.metrics.answers.base import Answer, AnswerMetric
from codec_bench.text.language import base_language
from codec_bench.types import Score

TOKENISERS = ("13a", "char", "flores101", "flores200", "intl", "ja-mecab", "ko-mecab", "none", "zh")
BY_LANGUAGE = {"ja": "ja-mecab", "ko": "ko-mecab", "yue": "zh", "zh": "zh"}
"""Which tokeniser a language needs where the name of the metric says none; every other language has `13a`."""

OFFICIAL = {
    "official/ultraeval-audio/bleu": "13a",
    "official/ultraeval-audio/bleu-char": "13a",
    "official/ultraeval-audio/bleu-zh": "zh",
}
"""UltraEval-Audio's, by tokeniser: an item is a corpus of one (a short text has 0), and an empty reference is left out.
`bleu-char` asks for another tokeniser and gets this one for an item."""

PACKAGES = {"ja-mecab": "mecab-python3", "ko-mecab": "mecab-ko"}


class Bleu(AnswerMetric):
    """BLEU, from 0 to 100. Higher is better.

    The published rules take sacreBLEU 1.5's value where nothing matches at all, which is not 0.

    An item's own value has the effective order (an item of two words is scored by words and pairs); the corpus value
    has all four orders. Several references of an item are used together, as sacreBLEU does.

    Args:
        variant: a tokeniser of sacreBLEU, or a published rule; without, by the language of each answer.

    Raises:
        UnknownName: there is no such tokeniser. MissingExtra: sacreBLEU, or what its tokeniser needs, is not installed.
        UserError: its tokeniser has to be fetched and cannot be.
    """

    range = (0.0, 100.0)
    aggregate = "bleu"
    paper = "Papineni et al.: BLEU, ACL 2002; Post: A Call for Clarity in Reporting BLEU Scores, WMT 2018"

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None and variant not in (*TOKENISERS, *OFFICIAL):
            raise UnknownName("tokeniser of BLEU", variant, [*TOKENISERS, *OFFICIAL])
        self._official = variant in OFFICIAL
        self._tokeniser = OFFICIAL.get(variant, variant)
        if self._tokeniser is not None:
            _metric(self._tokeniser, not self._official)  # a tokeniser that is not here is found before a long run
        self.aggregate = "bleu-sacrebleu-1.5" if self._official else "bleu"
        self.name = "bleu" if variant is None else f"bleu[{variant}]"
        self.source = f"sacrebleu {_sacrebleu_version()}, exactly"
        self.protocol = f"bleu/{variant or 'by-language'}/sacrebleu-{_sacrebleu_version()}"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer; `detail["counts"]` is what it adds: both lengths, 4 matches, 4 n-grams."""
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        references = [ref for ref in answer.references if ref.strip()]
        if not references:
            return Score.undefined(f"the sample '{answer.id}' has no reference, or an empty one", self.protocol)
        base = base_language(answer.language) if answer.language else ""
        tokeniser = self._tokeniser or BY_LANGUAGE.get(base, "13a")
        found = _metric(tokeniser, not self._official).corpus_score([answer.text], [[ref] for ref in references])
        counts = [int(n) for n in (found.sys_len, found.ref_len, *found.counts, *found.totals)]
        return Score.ok(
            _older(found) if self._official else found.score,
            self.protocol,
            detail={"counts": counts, "tokeniser": tokeniser},
        )


def official_corpus(variant: str, pairs: Sequence[tuple[str, str]]) -> float:
    """The corpus value of UltraEval-Audio, 0 to 100; pairs of answer and reference with an empty reference are left
    out.

    Raises:
        KeyError: no such published rule. ValueError: no pair is left.
    """
    kept = [(answer, reference) for answer, reference in pairs if reference.strip()]
    if not kept:
        raise ValueError("every reference is empty")
    answers, references = zip(*kept)
    return _older(_metric(OFFICIAL[variant], False).corpus_score(list(answers), [list(references)]))


def _older(found: Any) -> float:
    """The value of sacreBLEU 1.5: where nothing matches, every order is smoothed; 0 where an order has no n-grams."""
    if any(found.counts) or not all(found.totals):
        return found.score
    product = math.prod(100.0 / (2.0 ** (n + 1) * total) for n, total in enumerate(found.totals))
    return found.bp * product ** (1 / len(found.totals))


def _sacrebleu_version() -> str:
    try:
        return version("sacrebleu")
    except PackageNotFoundError:
        raise MissingExtra("BLEU", "sacrebleu", "text") from None


@cache
def _metric(tokeniser: str, effective_order: bool) -> Any:
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise MissingExtra("BLEU", "sacrebleu", "text") from None
    try:
        return BLEU(tokenize=tokeniser, effective_order=effective_order)
    except Exception as error:
        if tokeniser in PACKAGES:
            raise MissingExtra(f"BLEU with the tokeniser '{tokeniser}'", PACKAGES[tokeniser], "text") from error
        raise UserError(
            f"sacreBLEU cannot make its tokeniser '{tokeniser}': {type(error).__name__}: {error}",
            hint="flores101 and flores200 fetch a model once; run it where there is a network, or take bleu[char]",
        ) from error
