"""Tokens for language models: sections `language` and `transformer`.

Streams are modelled separately and their bits per second added, so the sum is an upper bound.

The entropy rate of codes by n-grams, and the laws of Zipf and Heaps. Order n is H(n) - H(n - 1), the entropy of a code
that knows the n - 1 before it in its codebook. Other codebooks are ignored, so the sum over codebooks is an upper
bound. Lower is easier to model; white codes have log2 K at every order. Both entropies are Grassberger's estimate of
2003, log N - sum(n_i G(n_i)) / N, and no value exceeds that of a lower order. `coverage` is Good and Turing's
probability of the n-grams seen, or if lower of those that differ from the n-gram one frame earlier: codes that stay for
many frames were up to 59 % too low otherwise. Below `ESTIMABLE` there is a reason in place of a number. Above it,
simulated sources (white, Zipf, Markov; 4 to 1,024 entries; 300 to 100,000 codes) had errors up to 0.05 bit. References:
P. Grassberger, arXiv physics/0307138; I. J. Good, Biometrika 40 (1953); C. E. Shannon, Bell System Technical Journal 30
(1951), whose F_N this is.

The exponents of Zipf's and Heaps' laws: how unequally codes occur, how fast new ones appear. Zipf is the most likely s
of p(rank r) ~ r ** -s. One random half of the codes ranks the entries and the other counts them, and vice versa: with
shared errors even white codes would fall with the rank. It is too low where entries were seen less than a few times: of
1,024 entries with s = 0.5, 500 codes gave 0.39, 10,000 gave 0.47 (simulated; white at most 0.04). Heaps is the growth n
** b of distinct entries between a tenth of the codes, over all draws (hypergeometric), and all; a finite codebook ends
at 0, so compare equal numbers of codes. References: S. T. Piantadosi, Psychonomic Bulletin & Review 21 (2014); H. S.
Heaps, 1978; J. Park et al., arXiv 2509.01390.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from codec_bench.apps.profiling import token_model
from codec_bench.apps.profiling.codebook_use import ESTIMABLE
from codec_bench.apps.profiling.token_model import TokenCorpus, TokenStream
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic

ORDERS = (1, 2, 3, 4)
_STEEPEST = 20.0


@dataclass(frozen=True, slots=True)
class SpokenContent:
    """Transcripts and phone alignments of the clips, by id; either may be empty."""

    texts: Mapping[str, str]
    alignments: Mapping[str, Alignment]

    def phones_per_s(self, seconds: Mapping[str, float]) -> float | None:
        """Phones per second over the clips that have an alignment; None without one."""
        return _per_s({name: len(alignment.phones) for name, alignment in self.alignments.items()}, seconds)

    def characters_per_s(self, seconds: Mapping[str, float]) -> float | None:
        """Characters without spaces per second of clips with text."""
        return _per_s({name: len("".join(text.split())) for name, text in self.texts.items()}, seconds)


def _per_s(counts: Mapping[str, int], seconds: Mapping[str, float]) -> float | None:
    known = [name for name in seconds if counts.get(name)]
    return sum(counts[name] for name in known) / sum(seconds[name] for name in known) if known else None


def language(corpus: TokenCorpus, *, seed: int) -> dict[str, Any]:
    """Compute entropy rates, and the exponents of Zipf and Heaps, as JSON values.

    Args:
        seed: splits the counts for Zipf's exponent: half rank the entries, half are fitted.

    Raises:
        NotApplicable: there are no codes over time.
    """
    streams = [_of_stream(stream, seed) for stream in corpus.streams]
    per_s = sum(stream.tokens_per_s for stream in corpus.streams)
    orders = [_over_streams(order, [s["orders"][index] for s in streams], per_s) for index, order in enumerate(ORDERS)]
    nominal = sum(s.tokens_per_s * math.log2(s.cardinality) for s in corpus.streams)
    return {
        "items": corpus.items, "left_out": corpus.excluded, "tokens_per_s": per_s, "nominal_bps": nominal,
        "orders": orders, "streams": streams,
    }  # fmt: skip


def _of_stream(stream: TokenStream, seed: int) -> dict[str, Any]:
    """Compute entropy rates and Zipf and Heaps exponents of one stream's codebooks."""
    books = range(stream.codebooks)
    rows = [[values[book] for _, values in stream.sequences] for book in books]
    counts = [np.bincount(np.concatenate(row), minlength=stream.cardinality) for row in rows]
    rates = [entropy_rates(row, stream.cardinality) for row in rows]
    return {
        "name": stream.name, "codebooks": stream.codebooks, "cardinality": stream.cardinality,
        "frame_rate_hz": stream.frame_rate_hz, "frames": stream.frames,
        "orders": [_over_books(order, [r[k] for r in rates], stream) for k, order in enumerate(ORDERS)],
        "zipf": [zipf_exponent(row, seed=seed) for row in counts], "heaps": [heaps_exponent(row) for row in counts],
    }  # fmt: skip


def _over_books(order: int, rates: list[EntropyRate], stream: TokenStream) -> dict[str, Any]:
    """Sum the codebooks' entropy rates of one order; None with a reason if one lacks."""
    worst = min(rates, key=lambda rate: rate.coverage or 0.0)
    reason = worst.reason
    bits = None if reason else sum(rate.bits or 0.0 for rate in rates)
    return {
        "order": order, "bps": None if bits is None else bits * stream.frame_rate_hz, "reason": reason,
        "coverage": min((rate.coverage for rate in rates if rate.coverage is not None), default=None),
        "per_codebook": [asdict(rate) for rate in rates],
    }  # fmt: skip


def _over_streams(order: int, streams: list[dict[str, Any]], per_s: float) -> dict[str, Any]:
    reason = next((stream["reason"] for stream in streams if stream["reason"]), None)
    bps = None if reason else sum(stream["bps"] for stream in streams)
    return {"order": order, "bps": bps, "bits_per_token": None if bps is None else bps / per_s, "reason": reason}


def transformer(
    corpus: TokenCorpus, spoken: SpokenContent, *, steps: int, seed: int, alive: Callable[[], None]
) -> dict[str, Any]:
    """Train a small transformer per stream, and return the bits of other clips' codes.

    They are per second, token, phone and character; the last two are None without alignments or texts in `spoken`.

    Raises:
        NotApplicable: there are no codes over time, or a stream has too few of them or too many entries.
    """
    if not steps:
        raise NotApplicable(Diagnostic("no_training"))
    fits = [token_model.fit(stream, steps=steps, seed=seed, alive=alive) for stream in corpus.streams]
    bps = [fit.bits_per_token * stream.tokens_per_s for fit, stream in zip(fits, corpus.streams)]
    per_s = sum(stream.tokens_per_s for stream in corpus.streams)
    phones, characters = spoken.phones_per_s(corpus.seconds), spoken.characters_per_s(corpus.seconds)
    return {
        "bps": sum(bps), "bits_per_token": sum(bps) / per_s,
        "uniform_bps": sum(f.uniform_bits * s.tokens_per_s for f, s in zip(fits, corpus.streams)),
        "phones_per_s": phones, "bits_per_phone": sum(bps) / phones if phones else None,
        "characters_per_s": characters, "bits_per_character": sum(bps) / characters if characters else None,
        "protocol": token_model.protocol(steps, seed),
        "streams": [
            {"name": s.name, "bps": rate, **asdict(fit)} for s, rate, fit in zip(corpus.streams, bps, fits, strict=True)
        ],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class EntropyRate:
    """The entropy of a code that knows those before it.

    Args:
        bits: per code; None with a `reason` where the corpus cannot support the order.
        coverage: the estimated probability of the n-grams that were seen; None without any.
        ngrams, different: n-grams counted, and distinct ones.
    """

    bits: float | None
    coverage: float | None
    ngrams: int
    different: int
    reason: Diagnostic | None = None


def grassberger_bits(counts: np.ndarray) -> float:
    """Compute Grassberger's entropy estimate in bits, from positive counts.

    Examples:
        >>> import numpy as np
        >>> round(grassberger_bits(np.array([500, 500])), 3)
        1.0
    """
    from scipy.special import digamma

    sizes, times = np.unique(counts, return_counts=True)  # most counts are small and equal
    n = sizes.astype(np.float64)
    g = digamma(n) + 0.5 * np.where(sizes % 2, -1.0, 1.0) * (digamma((n + 1) / 2) - digamma(n / 2))
    total = float(n @ times)
    return (math.log(total) - float((times * n * g).sum()) / total) / math.log(2)


def entropy_rates(sequences: Sequence[np.ndarray], cardinality: int) -> list[EntropyRate]:
    """Estimate the entropy of a code given those before it, for each of `ORDERS`."""
    rates: list[EntropyRate] = []
    bound = math.log2(cardinality)
    for order in ORDERS:
        rate = _rate(sequences, cardinality, order)
        if rate.bits is not None:
            bound = min(bound, max(0.0, rate.bits))
            rate = EntropyRate(bound, rate.coverage, rate.ngrams, rate.different)
        rates.append(rate)
    return rates


def _rate(sequences: Sequence[np.ndarray], cardinality: int, order: int) -> EntropyRate:
    """Estimate the entropy given `order - 1` codes; None if too few n-grams were seen."""
    contexts, grams = _ngrams(sequences, cardinality, order)
    if not len(grams):
        return EntropyRate(None, None, 0, 0, Diagnostic("no_such_order", order=order))
    counts = np.unique(grams, return_counts=True)[1]
    coverage = min(_coverage(counts), _coverage(np.unique(grams[1:][np.diff(grams) != 0], return_counts=True)[1]))
    if coverage < ESTIMABLE:
        reason = Diagnostic("order_unseen", order=order, codes=len(grams), coverage=coverage, needed=ESTIMABLE)
        return EntropyRate(None, coverage, len(grams), len(counts), reason)
    before = grassberger_bits(np.unique(contexts, return_counts=True)[1]) if order > 1 else 0.0
    return EntropyRate(grassberger_bits(counts) - before, coverage, len(grams), len(counts))


def _coverage(counts: np.ndarray) -> float:
    """Compute Good and Turing's probability of seen values; 1 without counts."""
    return 1 - float((counts == 1).sum()) / max(1, int(counts.sum()))


def _ngrams(sequences: Sequence[np.ndarray], cardinality: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the contexts and the n-grams, both int64 `(n-grams,)`, in this order."""
    long = [np.asarray(s, np.int64) for s in sequences if len(s) >= order]
    if not long:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    grams = contexts = np.zeros(sum(len(s) - order + 1 for s in long), np.int64)
    for offset in range(order):
        codes = np.concatenate([s[offset : len(s) - order + 1 + offset] for s in long])
        contexts = np.unique(grams, return_inverse=True)[1]  # numbered anew, so that a product fits into 64 bits
        grams = contexts * cardinality + codes
    return contexts, grams


def zipf_exponent(counts: np.ndarray, *, seed: int) -> float | None:
    """Estimate Zipf's exponent of counts by entry; None below two used entries.

    Args:
        seed: splits the counts: half rank the entries, half are fitted.
    """
    if counts.sum() < 2 or np.count_nonzero(counts) < 2:
        return None
    half = np.random.default_rng(seed).binomial(counts, 0.5)
    pairs = ((half, counts - half), (counts - half, half))
    exponents = [_exponent(counted[np.argsort(-ranking, kind="stable")]) for ranking, counted in pairs if counted.any()]
    return math.fsum(exponents) / len(exponents) if exponents else None


def _exponent(counts: np.ndarray) -> float:
    """Fit Zipf's exponent by maximum likelihood to counts in rank order."""
    from scipy.optimize import brentq

    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs / counts.sum())

    def surplus(s: float) -> float:
        """Compute the expected less the observed log rank; it falls with s."""
        weights = np.exp(-s * (logs - logs[0]) - max(0.0, -s * float(logs[-1])))
        return float(weights @ logs / weights.sum()) - seen

    if surplus(_STEEPEST) > 0:  # all codes are one entry
        return _STEEPEST
    return 0.0 if surplus(0.0) <= 0 else float(brentq(surplus, 0.0, _STEEPEST, xtol=1e-10))


def heaps_exponent(counts: np.ndarray) -> float | None:
    """Estimate Heaps' exponent, 0 to 1, from counts by entry; None below ten codes."""
    total = int(counts.sum())
    if total < 10:
        return None
    sample_size = total // 10
    return math.log(np.count_nonzero(counts) / _different(counts, sample_size)) / math.log(total / sample_size)


def _different(counts: np.ndarray, sample_size: int) -> float:
    """Compute the expected number of distinct entries in a sample of the codes."""
    from scipy.special import gammaln

    total, sizes = int(counts.sum()), counts[counts > 0].astype(np.float64)
    left = total - sizes
    fits = left >= sample_size  # otherwise the entry is in every draw
    none = (
        gammaln(left[fits] + 1)
        - gammaln(left[fits] - sample_size + 1)
        - gammaln(total + 1)
        + gammaln(total - sample_size + 1)
    )
    return float(len(sizes) - np.exp(none).sum())
