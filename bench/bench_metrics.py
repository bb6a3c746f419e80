"""Processor time of every metric, alone, for an hour of sound.

    python bench/bench_metrics.py [--metrics stoi utmos] [--repeats 1]

Each metric of `load_metric` scores the embedded speech with a little noise, after a first call that loads and
compiles. Metrics of texts take Whisper tiny.en. A metric without its weights here is skipped, and so is one that reads
no sound. `bench/table.py` writes the newest numbers to `codec_bench/metrics/costs.csv`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from time import process_time

import numpy as np
from common import Cases, Options, bench, row

from codec_bench import Audio, Score, load_metric
from codec_bench.data import open_source
from codec_bench.messages.errors import UserError
from codec_bench.metrics import REGISTRY

Scorer = Callable[..., Sequence[Mapping[str, Score]]]
RECOGNISER = "whisper-tiny.en"
FIRST = 8  # clips of the first call, which is not timed
NO_SOUND, NO_WORDS = "bitrate", "hallucinated"
"""The metric that reads no sound, and the one that needs references without words."""


def check(name: str, scores: Sequence[Mapping[str, Score]]) -> None:
    """Stop if a metric has no value for most clips: the time would be of refusals."""
    values = [score.value for of_clip in scores for score in of_clip.values()]
    valued = sum(value is not None and bool(np.isfinite(value)) for value in values)
    if not 2 * valued > len(scores):
        raise SystemExit(f"{name} has a value for {valued} of {len(scores)} clips: {list(scores)[:1]}")


def loaded(name: str) -> tuple[str, Scorer]:
    """A metric, with a recogniser if it needs one, and the name of this form."""
    try:
        return name, load_metric(name, device="cpu")
    except UserError as error:
        if RECOGNISER not in str(error) and "needs a recogniser" not in str(error):
            raise
    return (form := f"{name}[{RECOGNISER}]"), load_metric(form, device="cpu")


@bench("torch", "numba", "scipy", metrics=tuple(REGISTRY.names()), repeats=1, threads=1)
def main(options: Options) -> Cases:
    """Every metric that can be had here."""
    samples = open_source("embedded").samples
    reference = [Audio.read(sample.audio) for sample in samples]
    rng = np.random.default_rng(0)
    estimate = [
        Audio(sound.samples + rng.normal(0, 0.003, sound.samples.shape).astype(np.float32), sound.sample_rate_hz)
        for sound in reference
    ]
    text = [sample.text for sample in samples]
    hours = sum(sound.duration_s for sound in estimate) / 3600
    for name in options.metrics:
        if name == NO_SOUND:
            continue
        texts = [""] * len(text) if name == NO_WORDS else text
        inputs = {"estimate": estimate, "reference": reference, "text": texts, "language": "en"}
        first_inputs = {key: value[:FIRST] if isinstance(value, list) else value for key, value in inputs.items()}
        try:
            form, metric = loaded(name)
            first = metric(**first_inputs)
        except UserError as error:
            sys.stdout.write(f"{name}: skipped; {error}\n")
            continue
        check(name, first)
        seconds = []
        for _ in range(options.repeats):
            before = process_time()
            metric(**inputs)
            seconds.append((process_time() - before) / hours)
        sys.stdout.write(f"{form}: {np.median(seconds):.3g} s for an hour of sound\n")
        note = f"processor time, from {3600 * hours:.0f} s of embedded speech"
        yield [row("an hour of sound", form, np.asarray(seconds), n=len(samples), note=note)]
