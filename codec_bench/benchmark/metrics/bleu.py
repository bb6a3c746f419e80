"""`bleu[TOKENISER]`: sacreBLEU's BLEU per item, with sums for the corpus value.

K. Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL 2002; M. Post, "A Call for
Clarity in Reporting BLEU Scores", WMT 2018. The corpus value is not the mean of the items: it comes from the summed
counts and equals `sacrebleu.corpus_bleu` up to rounding. Case matters; smoothing is exponential.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, MissingResource, UnknownName
from codec_bench.text.language import base_language
from codec_bench.types import Score

TOKENISERS = ("13a", "char", "flores101", "flores200", "intl", "ja-mecab", "ko-mecab", "none", "zh")
BY_LANGUAGE = {"ja": "ja-mecab", "ko": "ko-mecab", "yue": "zh", "zh": "zh"}
"""The tokeniser for a language if the metric's name has none; every other language uses `13a`."""

OFFICIAL = {
    "official/ultraeval-audio/bleu": "13a",
    "official/ultraeval-audio/bleu-char": "13a",
    "official/ultraeval-audio/bleu-zh": "zh",
}
"""UltraEval-Audio's rules and their tokenisers. An item is a corpus of one (a short text has 0); an empty reference
excludes it. `bleu-char` names another tokeniser, but its program uses this one for an item."""

PACKAGES = {"ja-mecab": "mecab-python3", "ko-mecab": "mecab-ko"}


class Bleu(AnswerMetric):
    """BLEU, from 0 to 100. Higher is better.

    An item's own value uses the effective order: an item of two words is scored by words and pairs. The corpus value
    uses all four orders. Several references of an item are used together, as in sacreBLEU. If nothing matches at all,
    the published rules use the value of sacreBLEU 1.5, which is not 0.

    Args:
        variant: a tokeniser of sacreBLEU, or a published rule; None chooses the tokeniser by each answer's language.

    Raises:
        MissingExtra: sacreBLEU, or a package that its tokeniser needs, is not installed.
        UserError: the tokeniser must be downloaded first, and that failed.
    """

    compares = True

    range = (0.0, 100.0)
    aggregate = "bleu"
    paper = "Papineni et al.: BLEU, ACL 2002; Post: A Call for Clarity in Reporting BLEU Scores, WMT 2018"

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None and variant not in (*TOKENISERS, *OFFICIAL):
            raise UnknownName("bleu_tokeniser", variant, [*TOKENISERS, *OFFICIAL])
        self._official = variant in OFFICIAL
        self._tokeniser = OFFICIAL.get(variant, variant) if variant is not None else None
        if self._tokeniser is not None:
            _load_bleu(self._tokeniser, not self._official)  # fail on a missing tokeniser before a long run
        self.aggregate = "bleu-sacrebleu-1.5" if self._official else "bleu"
        self.name = "bleu" if variant is None else f"bleu[{variant}]"
        self.source = f"sacrebleu {_sacrebleu_version()}, exactly"
        self.protocol = f"bleu/{variant or 'by-language'}/sacrebleu-{_sacrebleu_version()}"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, with its share of the corpus in `detail["counts"]`.

        The counts are both lengths, 4 matches, 4 numbers of n-grams.
        """
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        """Score one answer against all its references; undefined without any."""
        references = [ref for ref in answer.references if ref.strip()]
        if not references:
            return Score.undefined(Diagnostic("no_expected_text", id=answer.id), self.protocol)
        base = base_language(answer.language) if answer.language else ""
        tokeniser = self._tokeniser or BY_LANGUAGE.get(base, "13a")
        result = _load_bleu(tokeniser, not self._official).corpus_score([answer.text], [[ref] for ref in references])
        counts = [int(n) for n in (result.sys_len, result.ref_len, *result.counts, *result.totals)]
        value = _older(result) if self._official else result.score
        return Score.ok(value, self.protocol, detail={"counts": counts, "tokeniser": tokeniser})


def _older(result: Any) -> float:
    """The value of sacreBLEU 1.5, which smooths all orders if no n-gram matches."""
    if any(result.counts) or not all(result.totals):
        return result.score
    product = math.prod(100.0 / (2.0 ** (n + 1) * total) for n, total in enumerate(result.totals))
    return result.bp * product ** (1 / len(result.totals))


@cache
def _sacrebleu_version() -> str:
    try:
        return version("sacrebleu")
    except PackageNotFoundError:
        raise MissingExtra("BLEU", "sacrebleu", "text") from None


@cache
def _load_bleu(tokeniser: str, effective_order: bool) -> Any:
    """Load sacrebleu's BLEU; raises an error that names the missing package."""
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise MissingExtra("BLEU", "sacrebleu", "text") from None
    try:
        return BLEU(tokenize=tokeniser, effective_order=effective_order)
    except Exception as error:
        if tokeniser in PACKAGES:
            raise MissingExtra("bleu_tokeniser", PACKAGES[tokeniser], "text", name=tokeniser) from error
        raise MissingResource(
            "tokeniser_not_made",
            tokeniser=tokeniser,
            type=type(error).__name__,
            cause=error,
            hint="flores101 and flores200 download a model once; run it with a network, or use bleu[char]",
        ) from error
