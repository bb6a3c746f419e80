"""A run as the engine would write it: nine systems, thirty samples, every kind of failure, and kept audio."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.audio.encode import write_flac
from codec_bench.report.open_run import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample, Score

RATE = 16000
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;</b>'\u202e{{ 7*7 }}"
SYSTEMS = {  # name: (bits per second or None, highest frequency kept in Hz, noise amplitude)
    "unprocessed": (None, 8000, 0.0),
    "opus-6k": (6000, 4000, 0.02),
    "opus-12k": (12000, 6000, 0.01),
    "opus-24k": (24000, 8000, 0.004),
    "mp3-24k": (24000, 5000, 0.012),
    "mp3-32k": (32000, 6500, 0.008),
    "amr-nb-12.2k": (12200, 3400, 0.015),
    "g722": (64000, 7000, 0.003),
    "g711-ulaw": (64000, 3400, 0.006),
}
PAPER = "https://doi.org/10.0000/example"
METRICS = {  # name: (unit, higher is better, protocol, aggregate, (at no damage, per unit of damage))
    "bitrate": ("bps", False, "bitrate/payload-1", "ratio", None),
    "wer[pocketsphinx]": ("", False, "wer/pocketsphinx-5+whisper-en", "ratio", None),
    "sim[ge2e]": ("", True, "sim/ge2e-resemblyzer", "mean", (0.99, -0.3)),
    "dnsmos_sig": ("", True, "dnsmos/speechmos", "mean", (3.55, -1.1)),
    "dnsmos_bak": ("", True, "dnsmos/speechmos", "mean", (4.05, -0.6)),
    "dnsmos_ovrl": ("", True, "dnsmos/speechmos", "mean", (3.25, -1.2)),
    "dnsmos_p808": ("", True, "dnsmos/speechmos", "mean", (3.7, -0.9)),
    "pesq_wb": ("", True, "pesq/p862.2", "mean", (4.6, -2.9)),
    "stoi": ("", True, "stoi/pystoi-0.4", "mean", (1.0, -0.16)),
    "estoi": ("", True, "estoi/pystoi-0.4", "mean", (1.0, -0.3)),
    "si_sdr": ("dB", True, "si-sdr/torchmetrics", "mean", (30.0, -34.0)),
    "mel_distance": ("", False, "mel/80-log10-l1", "mean", (0.0, 0.9)),
    "stft_distance": ("", False, "stft/multi-3", "mean", (0.0, 1.4)),
}
WORDS = "she had your dark suit in greasy wash water all year the quick brown fox jumps over a lazy dog".split()


def voice(rng: np.random.Generator, seconds: float) -> np.ndarray:
    """A voiced-looking sound: harmonics of a moving pitch under moving formants, with pauses."""
    t = np.arange(int(seconds * RATE)) / RATE
    pitch = 110 * (1 + rng.random()) * (1 + 0.12 * np.sin(2 * np.pi * 1.3 * t + rng.random()))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = [500 + 250 * np.sin(2 * np.pi * 2.1 * t), 1500 + 500 * np.sin(2 * np.pi * 1.7 * t + 1), 2800 + 0 * t]
    out = np.zeros_like(t)
    for harmonic in range(1, 40):
        f = harmonic * pitch
        gain = sum(np.exp(-(((f - formant) / 220) ** 2)) for formant in formants) + 0.02
        out += np.where(f < 7800, gain, 0) * np.sin(harmonic * phase) / harmonic**0.4
    rhythm = np.clip(1.5 * np.sin(2 * np.pi * 2.4 * t) + 0.8, 0, 1)
    hiss = np.diff(rng.standard_normal(t.size + 1)) * 0.25 * (1 - rhythm) * (np.sin(2 * np.pi * 0.9 * t) > 0)
    out = out * rhythm + hiss
    return (0.5 * out / np.abs(out).max()).astype(np.float32)


def degrade(signal: np.ndarray, rng: np.random.Generator, top_hz: float, noise: float) -> np.ndarray:
    spectrum = np.fft.rfft(signal)
    spectrum[np.fft.rfftfreq(signal.size, 1 / RATE) > top_hz] = 0
    out = np.fft.irfft(spectrum, signal.size)
    return (out + noise * rng.standard_normal(signal.size) * (0.2 + np.abs(out))).astype(np.float32)


def transcript_score(rng: np.random.Generator, words: list[str], damage: float, protocol: str) -> Score:
    received, errors = [], {"hits": 0, "substitutions": 0, "deletions": 0, "insertions": 0}
    for word in words:
        draw = rng.random()
        if draw < 0.25 * damage:
            errors["substitutions"] += 1
            received.append(str(rng.choice(WORDS)) + "s")
        elif draw < 0.35 * damage:
            errors["deletions"] += 1
        else:
            errors["hits"] += 1
            received.append(word)
        if rng.random() < 0.06 * damage:
            errors["insertions"] += 1
            received.append("uh")
    wrong = errors["substitutions"] + errors["deletions"] + errors["insertions"]
    detail = {"reference": " ".join(words), "hypothesis": " ".join(received), **errors}
    return Score.ok(wrong / len(words), protocol, numerator=wrong, denominator=len(words), detail=detail)


def item_scores(rng, system: str, words: list[str], duration_s: float, hard: float) -> dict[str, Score]:
    bps, top_hz, noise = SYSTEMS[system]
    damage = hard * ((8000 - top_hz) / 8000 * 0.9 + noise * 18) + (0.0 if bps is None else 0.04)
    scores = {}
    for name, (_, _, protocol, _, line) in METRICS.items():
        if name == "bitrate":
            if bps is None:
                scores[name] = Score.undefined("this system is not a codec: it sends no bits", protocol)
                continue
            bits = bps * duration_s * rng.normal(1, 0.03)
            scores[name] = Score.ok(bits / duration_s, protocol, numerator=bits, denominator=duration_s)
        elif line is None:
            scores[name] = transcript_score(rng, words, 0.15 + damage, protocol)
        elif name == "si_sdr" and bps is None:
            scores[name] = Score.undefined("the estimate equals the reference: the ratio is infinite", protocol)
        else:
            clean, slope = line
            spread = abs(slope) * 0.06
            scores[name] = Score.ok(clean + slope * damage + spread * rng.standard_normal(), protocol)
    return scores


def build_run(
    folder,
    *,
    samples=30,
    systems=None,
    hostile=True,
    audio=True,
    finish=True,
    seed=5,
    metrics=None,
    stop_after=None,
    longer_s=0.0,
    data="synthetic voices",
) -> Run:
    """Writes a run through the writer that the engine uses and opens it."""
    rng = np.random.default_rng(seed)
    systems, metrics = list(systems or SYSTEMS), list(metrics or METRICS)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(5, 12))) for _ in range(samples)]
    rows = [Sample(f"spk{n % 4}/utt_{n:04d}", None, text, f"spk{n % 4}", "en") for n, text in enumerate(texts)]
    if hostile and samples > 3:
        rows[3] = Sample(HOSTILE, None, HOSTILE, HOSTILE, "en")
    writer = RunWriter(folder, {"data": "synthetic", "metrics": metrics, "note": HOSTILE if hostile else ""})
    facts = {
        name: {"unit": u, "higher_is_better": h, "protocol": p, "aggregate": a, "kind": "pair", "paper": PAPER,
            "source": "reference 1.0", "summary": f"What {name} measures, in one line."}
        for name, (u, h, p, a, _) in METRICS.items()
        if name in metrics
    }  # fmt: skip
    writer.begin({name: {"sample_rates_hz": [RATE]} for name in systems}, facts, rows)
    writer.set_meta(
        config={"data": "synthetic", "systems": systems, "metrics": metrics, "seed": 7, "device": "cpu"},
        versions={"codec-bench": "0.1.0", "python": "3.11.9", "numpy": np.__version__},
        machine={"cpu": "Example CPU @ 2.0 GHz", "cores": 2, "gpu": "none"},
        started="2026-11-20T18:40:00+00:00",
        state="running",
        data={"name": data, "fingerprint": f"{data} {samples} {seed}", "samples": samples, "audio_s": 2.2 * samples},
    )
    written = 0
    for n, sample in enumerate(rows):
        # A page holds all sounds: short ones keep it small.
        duration_s = {samples - 1: 2.2, 0: 1.6}.get(n, 0.4 + 0.05 * n % 0.3) + longer_s
        signal = voice(rng, duration_s) if audio else None
        if audio:
            write(folder / "audio" / "reference" / f"{n:07d}.flac", signal)
        hard = rng.lognormal(0, 0.25)
        records = []
        for system in systems:
            if stop_after is not None and written >= stop_after:
                break
            written += 1
            if system == "mp3-24k" and n in (5, 6):
                reason = f"the encoder gave no packet for {duration_s:.2f} s of audio"
                dropped = {m: Score.failed(reason, METRICS[m][2]) for m in metrics}
                records.append((n, ItemRecord(system, sample.id, "failed", reason, dropped, duration_s=duration_s)))
                continue
            scores = item_scores(rng, system, sample.text.split(), duration_s, hard)
            if n == 11:
                p = METRICS["pesq_wb"][2]
                scores["pesq_wb"] = Score.failed(HOSTILE if hostile else "no utterance was found", p)
            if n in (17, 18) and system == "g722":
                scores["stoi"] = Score.undefined(f"only 0.{n} s are left once silence is removed", METRICS["stoi"][2])
            retained = None
            if audio:
                retained = f"audio/{'reference' if system == 'unprocessed' else system}/{n:07d}.flac"
                _, top_hz, noise = SYSTEMS[system]
                if system != "unprocessed":
                    write(folder / retained, degrade(signal, rng, top_hz, noise))
            records.append(
                (
                    n,
                    ItemRecord(
                        system, sample.id, "ok", None, {m: scores[m] for m in metrics}, audio=retained,
                        notes=["3 samples were clipped"] if n == 8 else [],
                        duration_s=duration_s, sample_rate_hz=RATE, channels=1,
                    ),
                )
            )  # fmt: skip
        writer.write(records)
    if finish:
        writer.set_meta(
            finished="2026-11-20T18:41:32+00:00",
            state="finished",
            timings={
                "wall_s": 92.4,
                "stages": [
                    {"stage": "wer[pocketsphinx]", "items": samples * len(systems), "audio_s": 594.0, "busy_s": 61.2,
                        "share": 0.52, "steps": {"transcribe": 60.0}},
                    {"stage": "dnsmos", "items": samples * len(systems), "audio_s": 594.0, "busy_s": 30.1,
                        "share": 0.31},
                    {"stage": "pesq_wb", "items": samples * len(systems), "audio_s": 594.0, "busy_s": 14.8,
                        "share": 0.17},
                ],
                "systems": {name: {"codec_s": 1.25, "audio_s": 66.0, "times_real_time": 52.8} for name in systems},
            },
        )  # fmt: skip
    writer.close()
    return Run(folder)


def write(path, signal: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_flac(path, Audio(signal, RATE))


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory) -> Run:
    """The finished run with everything in it, hostile texts included."""
    return build_run(tmp_path_factory.mktemp("runs") / "demo run")


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Builds further runs; arguments as of `build_run`."""
    return lambda name="run", **kwargs: build_run(tmp_path_factory.mktemp("runs") / name, **kwargs)
