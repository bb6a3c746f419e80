"""False alarms and regressions found by the quality gate, on known runs.

The rule `worst of five` is the comparison.

    python bench/bench_gate.py [--repetitions 2000] [--only WORD]

A study draws the baseline's repeats, calibrates a margin, and checks a new run: of the same system, of one that is
worse by the margin, and of one that is worse by margin and detectable regression. Each is checked again with margin 0.
`worst of five`: the largest loss of five runs of the baseline is the threshold that a new run may not pass.

Real systems are compared with themselves and with a worse variant, by STOI over the embedded clips: Opus at 12 kbit/s
with another resampler and at 11 kbit/s, and three voices from a vocoder whose phases are drawn (Griffin and Lim), with
other seeds and with half as many iterations. A scripted model loses 2 % of its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from common import Cases, Options, bench, figures
from scipy.signal import istft, resample_poly, stft

from codec_bench import Audio, load_metric
from codec_bench.apps.gating.repeats import PairedRuns, measure_spread
from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.classical.opus import Opus
from codec_bench.data import open_source
from codec_bench.stats.intervals import ratios

ALPHA, POWER = 0.01, 0.8
UNITS = {
    "alarm_zero": "false alarms",
    "worst_alarm": "false alarms, worst of five",
    "found_zero": "regressions found",
    "worst_found": "regressions found, worst of five",
    "alarm": "false alarms at the margin",
    "found": "regressions found beyond the margin",
    "same": "unchanged runs that are the same",
    "size": "the regression, in standard deviations of a run's value",
}
CHECKS = (("alarm_zero", 0, 0), ("found_zero", 1, 0), ("alarm", 1, 1), ("found", 2, 1), ("same", 0, 1))
"""What is counted, the loss and the margin, both in detectable regressions."""
WORST = {"alarm_zero": "worst_alarm", "found_zero": "worst_found"}


class Design(NamedTuple):
    """Parameters of a study: items, repeats, spread within items and of runs."""

    items: int
    repeats: int
    within: float
    shared: float = 0.0
    tail: float = 0.0


DESIGNS = {
    "50 items, 2 repeats": Design(50, 2, 0.5),
    "50 items, 5 repeats": Design(50, 5, 0.5),
    "300 items, 3 repeats": Design(300, 3, 0.5),
    "1,088 items, 3 repeats": Design(1088, 3, 0.5),
    "error rate, 200 items, 3 repeats, 1 % loop": Design(200, 3, 0.0, tail=0.01),
    "error rate, 1,088 items, 3 repeats, 1 % loop": Design(1088, 3, 0.0, tail=0.01),
    "error rate, 1,088 items, 5 repeats, 1 % loop": Design(1088, 5, 0.0, tail=0.01),
    "300 items, 1 repeat": Design(300, 1, 0.5),
    "300 items, 1 repeat, runs that share a shift": Design(300, 1, 0.5, shared=0.05),
    "300 items, 2 repeats, runs that share a shift": Design(300, 2, 0.5, shared=0.05),
    "300 items, 3 repeats, runs that share a shift": Design(300, 3, 0.5, shared=0.05),
    "300 items, 5 repeats, runs that share a shift": Design(300, 5, 0.5, shared=0.05),
}


class Study:
    """The items of a study, of which runs are drawn: losses, or errors over words."""

    def __init__(self, design: Design, rng: np.random.Generator) -> None:
        self.design, self.rng = design, rng
        self.hard = rng.normal(size=design.items)
        self.words = rng.integers(3, 41, design.items)

    def run(self, loss: float = 0.0) -> np.ndarray:
        """The parts of a run that is worse by `loss`, `(items, 2)`."""
        design, rng = self.design, self.rng
        shift = loss + design.shared * rng.normal()
        if design.tail:
            rate = np.clip(0.05 * np.exp(0.5 * self.hard) + shift, 0, 1)
            errors = rng.binomial(self.words, rate).astype(float)
            loops = rng.random(design.items) < design.tail
            errors = np.where(loops, np.floor(self.words * rng.uniform(1, 3, design.items)), errors)
            return np.stack([errors, self.words.astype(float)], axis=1)
        values = self.hard + shift + design.within * rng.normal(size=design.items)
        return np.stack([values, np.ones(design.items)], axis=1)


def study(name: str, repetitions: int) -> dict[str, float]:
    """Shares of the studies of a design, by the keys of `UNITS`."""
    design, rng = DESIGNS[name], np.random.default_rng(list(name.encode()))
    counts = dict.fromkeys(UNITS, 0)
    sizes, differences = np.empty((2, repetitions))
    for n in range(repetitions):
        one = Study(design, rng)
        baseline = [one.run() for _ in range(design.repeats)]
        spread = measure_spread(ratios, baseline, None)
        assert spread is not None
        size = spread.detectable(1 - 2 * ALPHA, POWER) or 0.0
        five = [*baseline, *(one.run() for _ in range(5 - design.repeats))]
        threshold = max(_value(run) for run in five)
        sizes[n], differences[n] = size, _value(one.run()) - _value(one.run())
        for key, loss, margin in CHECKS:
            run = one.run(loss * size)
            low, high = _ends(baseline, run)
            counts[key] += high <= margin * size if key == "same" else low > margin * size
            if worst := WORST.get(key):
                counts[worst] += _value(run) > threshold
    shares = {key: count / repetitions for key, count in counts.items()}
    if design.repeats == 1:  # no regression is known to be found
        return {key: shares[key] for key in ("alarm_zero", "worst_alarm")}
    return shares | {"size": float(np.median(sizes) / (differences.std() / np.sqrt(2)))}


def _ends(baseline: list[np.ndarray], run: np.ndarray, *, higher_is_better: bool = False) -> tuple[float, float]:
    """The ends of the gate's interval of a run's loss."""
    ends = PairedRuns(ratios, baseline, [run], None, higher_is_better=higher_is_better).interval(1 - 2 * ALPHA)
    assert ends is not None
    return ends.low, ends.high


def _clips(speaker: str | None = None) -> list[Audio]:
    return [Audio.read(s.audio) for s in open_source("embedded") if s.audio and speaker in (None, s.speaker)]


def _scores(clips: list[Audio], outputs: list[Audio]) -> np.ndarray:
    """The STOI of outputs as parts, `(items, 2)`."""
    scores = load_metric("stoi", device="cpu")(estimate=outputs, reference=clips)
    return np.array([[one["stoi"].value, 1.0] for one in scores])


def _opus(seed: int, worse: bool) -> np.ndarray:
    """Opus at 12 kbit/s, behind a resampling to 48 kHz and back but for seed 0; at 11 kbit/s if `worse`."""
    clips = _clips()
    inputs = clips
    if seed and not worse:
        there = [resample_poly(resample_poly(c.samples, 3, 1, axis=1), 1, 3, axis=1) for c in clips]
        inputs = [Audio(x[:, : c.num_samples].astype(np.float32), c.sample_rate_hz) for x, c in zip(there, clips)]
    coded = reconstruct(Opus(11_000 if worse else 12_000), inputs)
    return _scores(clips, [item.estimate for item in coded.items])


def _voice(speaker: str, seed: int, worse: bool) -> np.ndarray:
    """A voice from its magnitudes alone, with phases that begin at random: 16 iterations, or 8."""
    rng, clips, outputs = np.random.default_rng([seed, worse]), _clips(speaker), []
    options = {"nperseg": 512, "noverlap": 384}
    for clip in clips:
        magnitudes = np.abs(stft(clip.samples[0], **options)[2])
        spectrum = magnitudes * np.exp(2j * np.pi * rng.random(magnitudes.shape))
        for _ in range(8 if worse else 16):
            again = stft(istft(spectrum, **options)[1], **options)[2]
            spectrum = magnitudes * np.exp(1j * np.angle(again))
        wave = istft(spectrum, **options)[1][: clip.num_samples]
        outputs.append(Audio(np.clip(wave, -1, 1)[None].astype(np.float32), clip.sample_rate_hz))
    return _scores(clips, outputs)


def _model(seed: int, worse: bool) -> np.ndarray:
    """A scripted model that answers 450 of 500 questions right, or ten fewer."""
    right = np.arange(500) < 450
    if worse:
        right[np.random.default_rng(seed).choice(450, 10, replace=False)] = False
    return np.stack([right.astype(float), np.ones(500)], axis=1)


REAL: dict[str, tuple[Callable[[int, bool], np.ndarray], int, int]] = {
    "Opus at 12 kbit/s, another resampler; 11 kbit/s": (_opus, 1, 1),
    **{
        f"voice {name}, other seeds of a vocoder, 5 repeats; half the iterations": (partial(_voice, name), 5, 40)
        for name in ("awb", "rms", "slt")
    },
    "a scripted model, 500 questions; 2 % worse": (_model, 1, 40),
}
"""The run of a seed, as it is and worse; repeats of the baseline, and checked runs."""


def compare_real(name: str) -> dict[str, float]:
    """Shares of checked runs of a real system, by keys of `UNITS`."""
    run, repeats, checks = REAL[name]
    baseline = [run(seed, False) for seed in range(repeats)]
    unchanged, worse = (
        [run(seed, is_worse) for seed in range(repeats, repeats + checks)] for is_worse in (False, True)
    )
    values = {"alarm_zero": unchanged, "found_zero": worse}
    shares = {
        key: float(np.mean([_ends(baseline, one, higher_is_better=True)[0] > 0 for one in runs]))
        for key, runs in values.items()
    }
    if repeats > 1:
        threshold = min(_value(one) for one in baseline)
        shares |= {
            WORST[key]: float(np.mean([_value(one) < threshold for one in runs])) for key, runs in values.items()
        }
        loss = np.mean([_value(one) for one in unchanged]) - np.mean([_value(one) for one in worse])
        shares["size"] = float(loss / np.std([_value(one) for one in unchanged], ddof=1))
    return shares


def _value(run: np.ndarray) -> float:
    return float(run[:, 0].sum() / run[:, 1].sum())


@bench(repetitions=2000, only="")
def main(options: Options) -> Cases:
    """A design after the other; `--only` those whose name holds a word."""
    for name in DESIGNS:
        if options.only in name:
            counts = study(name, options.repetitions)
            values = {UNITS[key]: value for key, value in counts.items()}
            yield figures(values, case=f"design: {name}", variant="codec-bench", n=options.repetitions, note="")
    for name, (_, _, checks) in REAL.items():
        if options.only in name:
            values = {UNITS[key]: value for key, value in compare_real(name).items()}
            yield figures(values, case=f"design: {name}", variant="codec-bench", n=checks, note="")
