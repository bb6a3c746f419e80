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

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from common import append_rows, asked, interleaved, product_rate, race, waited
from whisper_folder import POSITIONS, SIZES, Size, write

from codec_bench.audio.resample import prepare
from codec_bench.data import open_source
from codec_bench.features.precision_names import BY_WEIGHTS
from codec_bench.features.recognisers.whisper import WINDOWS_AT_ONCE, Whisper
from codec_bench.types import Audio

RATE_HZ, VOCABULARY = 16_000, 51_866
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


def floor_s(size: Size, windows: int, tokens: int, device: str, kind: str) -> tuple[float, str]:
    """Seconds that the arithmetic takes at this machine's rates, and where they go."""
    place, bytes_each = torch.device(device), 2 if kind in ("float16", "bfloat16") else 4
    macs = product_rate(place, BY_WEIGHTS.get(kind, "float32")) / 2
    words = VOCABULARY * size.d_model
    cached = size.decoder_layers * 2 * POSITIONS * size.d_model * bytes_each
    weights = (size.step_weights + words) * bytes_each
    together = min(windows, WINDOWS_AT_ONCE["cpu" if device == "cpu" else "cuda"])
    # What a step reads is read again by the next one: measured at its own size, which may fit a cache.
    again = torch.ones(int(weights + together * cached) // 4, device=device)
    read = again.nbytes / interleaved({"": waited(lambda: torch.dot(again, again), place)})[""].min()
    batches = -(-windows // together)
    heard_s = windows * size.encoder_macs / macs
    written_s = tokens * max(windows * (size.step_macs + words) / macs, (batches * weights + windows * cached) / read)
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
    defaults = {"size": "reduced", "compute_type": "float32", "clips": 48, "tokens_per_second": 3.5}
    options = asked(__doc__, **defaults, repeats=3, threads=1, device="cpu")
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
        floor, parts = floor_s(size, windows, tokens, options.device, options.compute_type)
        note = f"{len(clips)} clips, {duration_s:.0f} s, {windows} windows, {written:.0f} tokens a window, {options.threads} thread(s)"
        said = {"codec-bench": f"{sum(same)} of {len(same)} clips token for token"}
        calls = {"faster-whisper": one_by_one, "codec-bench": lambda: feature.compute(clips, languages)}
        case = f"{options.size}, {options.device}, {options.compute_type}"
        note += f"; floor {floor:.3g} s: {parts}"
        rows = race(case, calls, n=len(clips), repeats=options.repeats, note=note, agreement=said)
    append_rows("whisper", rows, ("codec-bench", "faster-whisper", "ctranslate2", "torch", "numpy"))


if __name__ == "__main__":
    main()
