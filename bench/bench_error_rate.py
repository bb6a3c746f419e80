"""Time error rates from texts to counts against jiwer, with equal counts.

    python bench/bench_error_rate.py

20,000 utterances of 450,000 words by Zipf's law, a tenth of them wrong, not normalised; and as many Chinese characters,
as `char` and as `mixed` (for jiwer with spaces between them). Floor: the alignment of items that are numbers already.
"""

from __future__ import annotations

import random
from functools import partial
from operator import attrgetter

import jiwer
import numpy as np
from common import Cases, Options, bench, race

from codec_bench.kernels.edit_distance.cpu import align
from codec_bench.kernels.edit_distance.ref import WHOLE_BYTES
from codec_bench.text.error_rate import _numbered, error_rate, error_rates

CASES = (
    ("word", "word", jiwer.process_words, False),
    ("char", "char", jiwer.process_characters, False),
    ("char, Chinese", "char", jiwer.process_characters, True),
    ("mixed, Chinese", "mixed", jiwer.process_words, True),
)
"""Name of the row, unit, jiwer's function, whether the text is Chinese."""
as_tuple = attrgetter("hits", "substitutions", "deletions", "insertions")


def corpus(words: int, utterances: int, chinese: bool = False) -> tuple[list[str], list[str]]:
    """References and estimates: spaced words, or Chinese characters."""
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(20_000)]
    if chinese:
        vocabulary = [chr(code) for code in rng.sample(range(0x4E00, 0x9FA6), 3_500)]
    between = "" if chinese else " "
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    spoken = rng.choices(vocabulary, weights, k=words)
    references, estimates = [], []
    for segment in np.array_split(np.arange(words), utterances):
        transcript = []
        for index in segment:
            draw = rng.random()
            if draw < 0.05:
                transcript.append(rng.choice(vocabulary))
            elif draw > 0.075:
                transcript.append(spoken[index])
            if draw > 0.975:
                transcript.append(rng.choice(vocabulary))
        references.append(between.join(spoken[index] for index in segment))
        estimates.append(between.join(transcript))
    return references, estimates


@bench("codec-bench", "jiwer", "rapidfuzz", "numba", "numpy", words=450_000, utterances=20_000, repeats=7)
def main(options: Options) -> Cases:
    """Every unit."""
    corpora = {chinese: corpus(options.words, options.utterances, chinese) for chinese in (False, True)}
    for case, unit, process, chinese in CASES:
        references, estimates = corpora[chinese]
        theirs = [[" ".join(text) if unit == "mixed" else text for text in texts] for texts in (references, estimates)]
        ours = partial(error_rate, reference=references, estimate=estimates, unit=unit, normaliser="none")
        if as_tuple(ours()) != as_tuple(process(*theirs)):
            raise SystemExit(f"{case}: not jiwer's counts of the corpus")
        each = error_rates(reference=references, estimate=estimates, unit=unit, normaliser="none")
        apart = sum(as_tuple(a) != as_tuple(process(r, e)) for a, r, e in zip(each, *theirs, strict=True))
        if apart:
            raise SystemExit(f"{case}: not jiwer's counts of {apart} utterances")
        items, offsets, symbols = _numbered([*references, *estimates], unit)
        pairs, nothing = len(references), np.empty(0, np.uint8)
        alone = (items, offsets[: pairs + 1], items, offsets[pairs:], symbols, nothing, WHOLE_BYTES)
        calls = {"jiwer": partial(process, *theirs), "codec-bench": ours, "floor": partial(align, *alone)}
        note = f"{options.words} {'characters' if chinese else 'words'}, one thread"
        agreement = {"codec-bench": "equal counts of every utterance"}
        yield race(case, calls, n=pairs, repeats=options.repeats, warmup=2, note=note, agreement=agreement)
