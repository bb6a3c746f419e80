"""Tokens for language models: sections `language` and `transformer`.

Streams are modelled separately and their bits per second added, so the sum is an upper bound. `ngrams.py` and
`token_model.py` define the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from codec_bench.apps.profiling import token_model
from codec_bench.apps.profiling.ngrams import ORDERS, EntropyRate, entropy_rates, heaps_exponent, zipf_exponent
from codec_bench.apps.profiling.token_corpus import TokenCorpus, TokenStream
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic


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
    """Compute entropy rates over time, and the exponents of Zipf and Heaps, as JSON values.

    Args:
        seed: decides the halves of Zipf's law.

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
    """Sum the entropy rates of codebooks, or return the worst one's reason."""
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
    """Compute the bits that a small transformer needs, as JSON values.

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
