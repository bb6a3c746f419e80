"""Times batched Whisper against faster-whisper's `transcribe` file by file, and checks that the tokens are the same.

    python bench/bench_whisper.py [--clips N] [--repeats N] [--threads N]
    python bench/bench_whisper.py --size large-v3 --device cuda:0 --compute-type float16 --clips 200

The model has random weights in the published architecture of `--size`, or is small (`reduced`, the default); each
transcript ends after `--tokens-per-second` times the mean length of the clips. The clips are cut from the embedded speech,
their lengths drawn from a distribution like that of LibriSpeech's test-clean. Both sides get the same signals in memory.

The floor is arithmetic: the encoder's multiply-accumulates and the decoder's, or the bytes that each decoding step must
read, at the rates at which this machine multiplies and reads in this run; its note says which part takes what.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from common import append_rows, interleaved, parsed, row
from whisper_folder import POSITIONS, SIZES, Size, write

from codec_bench.audio.resample import prepare
from codec_bench.data import open_source
from codec_bench.features.recognisers.whisper import WINDOWS_AT_ONCE, Whisper
from codec_bench.types import Audio

RATE_HZ = 16_000
GREEDY = {
    "beam_size": 1, "best_of": 1, "temperature": 0.0, "without_timestamps": True, "condition_on_previous_text": False,
    "no_speech_threshold": None, "log_prob_threshold": None, "compression_ratio_threshold": None,
}  # fmt: skip


def utterances(count: int) -> list[np.ndarray]:
    """Clips of 1.3 to 35 s, 7.4 s in the mean."""
    rng = np.random.default_rng(0)
    speech = np.concatenate([prepare(Audio.read(sample.audio), RATE_HZ) for sample in open_source("embedded")])
    lengths_s = np.clip(rng.lognormal(np.log(5.8), 0.7, count), 1.3, 35.0)
    starts = rng.integers(0, speech.size - 36 * RATE_HZ, count)
    return [speech[start : start + round(s * RATE_HZ)] for start, s in zip(starts, lengths_s)]


def per_second(work: float, call: Callable[[], object], device: str) -> float:
    """Work per second of a call, the best of five."""
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        call()
        if device != "cpu":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start)
    return work / best


def floor_s(size: Size, windows: int, tokens: int, device: str, kind: str) -> tuple[float, str]:
    """Seconds that the arithmetic takes at this machine's rates, and where they go."""
    dtype = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(kind, torch.float32)
    side = 8_192 if device != "cpu" else 1_024
    a = torch.randn(side, side, device=device, dtype=dtype)
    macs = per_second(side**3, lambda: a @ a, device)
    d = size.d_model
    encoder = size.layers * POSITIONS * (12 * d * d + 2 * POSITIONS * d)
    encoder += 2 * POSITIONS * 3 * size.n_mels * d + POSITIONS * 3 * d * d
    memory = size.decoder_layers * POSITIONS * 2 * d * d  # keys and values of what was heard
    step = size.decoder_layers * (14 * d * d + 2 * POSITIONS * d) + 51_866 * d
    weights = (size.decoder_layers * 14 * d * d + 51_866 * d) * a.element_size()
    cached = size.decoder_layers * 2 * POSITIONS * d * a.element_size()
    together = min(windows, WINDOWS_AT_ONCE["cpu" if device == "cpu" else "cuda"])
    # What a step reads is read again by the next one: measured at its own size, which may fit a cache.
    again = torch.ones((weights + together * cached) // 4, device=device)
    read = per_second(again.nbytes, lambda: torch.dot(again, again), device)
    batches = -(-windows // together)
    heard_s = windows * (encoder + memory) / macs
    written_s = tokens * max(windows * step / macs, (batches * weights + windows * cached) / read)
    note = (
        f"encoder {heard_s:.3g} s, decoder {written_s:.3g} s at {2 * macs / 1e9:.3g} GFLOP/s and {read / 1e9:.3g} GB/s"
    )
    return heard_s + written_s, note


def compare(found: list[list[int]], expected: list[list[int]], exact: bool) -> list[bool]:
    """Which clips have faster-whisper's tokens; stops where one has not (if they must be exact), or none has a token."""
    same = [tokens == other for tokens, other in zip(found, expected, strict=True)]
    if (exact and not all(same)) or not any(expected):
        raise SystemExit(f"not faster-whisper's tokens: {same.count(False)} of {len(same)} clips differ")
    return same


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="reduced")
    parser.add_argument("--compute-type", default="float32")
    parser.add_argument("--clips", type=int, default=48)
    parser.add_argument("--tokens-per-second", type=float, default=3.5)
    options = parsed(parser, repeats=3, threads=1)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # as the engine tells a worker its share of the cores
    from faster_whisper import WhisperModel

    cuda = options.device != "cpu"
    size, clips = SIZES[options.size], utterances(options.clips)
    duration_s = sum(clip.size for clip in clips) / RATE_HZ
    tokens = max(1, round(options.tokens_per_second * duration_s / len(clips)))
    with tempfile.TemporaryDirectory() as root:
        dtype = "float16" if options.compute_type == "float16" else "float32"
        folder = write(Path(root, "whisper"), size, tokens=tokens, dtype=dtype)
        point = None if options.compute_type == "float32" else options.compute_type
        feature = Whisper(options.device, str(folder), model=size.model, point=point)
        oracle = WhisperModel(
            str(folder), device="cuda" if cuda else "cpu", device_index=int(options.device.partition(":")[2] or 0),
            compute_type=options.compute_type, cpu_threads=options.threads,
        )  # fmt: skip
        languages = ["en"] * len(clips)

        def one_by_one() -> list[list[int]]:
            found = []
            for clip in clips:
                segments, _ = oracle.transcribe(clip, language="en", **GREEDY)
                found.append([token for segment in segments for token in segment.tokens])
            return found

        ours = feature.compute(clips, languages)
        found = [result["tokens"].tolist() for result in ours]
        same = compare(found, one_by_one(), exact=options.compute_type == "float32")
        windows = sum(result["windows"] for result in ours)
        written = sum(result["tokens"].size for result in ours) / windows
        seconds = interleaved(
            {"faster-whisper": one_by_one, "codec-bench": lambda: feature.compute(clips, languages)},
            repeats=options.repeats,
        )
    floor, parts = floor_s(size, windows, tokens, options.device, options.compute_type)
    case = f"{options.size}, {options.device}, {options.compute_type}"
    note = f"{len(clips)} clips, {duration_s:.0f} s, {windows} windows, {written:.0f} tokens a window, {options.threads} thread(s)"
    agreement = f"{sum(same)} of {len(same)} clips token for token"
    rows = []
    sys.stdout.write(f"{case}: {note}\n{'variant':>15} {'p50 s':>8} {'ratio':>6} {'x real time':>12}  agreement\n")
    for variant, times in {**seconds, "floor": np.array([floor])}.items():
        ratio = float(np.median(seconds["faster-whisper"]) / np.median(times))
        said = {"codec-bench": agreement, "floor": parts}.get(variant, "")
        rows.append(
            row(case, variant, times, n=len(clips), ratio=ratio, agreement=said if variant != "floor" else "",
                note=f"{note}; {parts}" if variant == "floor" else note)
        )  # fmt: skip
        sys.stdout.write(
            f"{variant:>15} {np.median(times):>8.3f} {ratio:>6.2f} {duration_s / np.median(times):>12.0f}  {said}\n"
        )
    if not cuda:
        rows.append({"case": "large-v3, cuda, float16", "variant": "codec-bench", "note": "not measured"})
        sys.stdout.write("on a GPU: not measured\n")
    path = append_rows("whisper", rows, ("codec-bench", "faster-whisper", "ctranslate2", "torch", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
