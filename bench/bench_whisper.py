"""Times batched Whisper against faster-whisper's `transcribe` file by file, and checks that the tokens are the same.

    python bench/bench_whisper.py [--clips N] [--repeats N] [--threads N]
    python bench/bench_whisper.py --size tiny --device cuda:0

The model has random weights in the published architecture of `--size`, or is small (`reduced`, the default); each
transcript ends after 3.5 tokens for each second of a clip of mean length. The clips are cut from the embedded speech,
with lengths like those of LibriSpeech's test-clean. Both sides get the same signals in memory. The floors of encoder
and decoder are measured by `gpu_stages.py`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from common import Cases, Options, bench, race, utterances
from whisper_folder import GREEDY, SIZES, write

from codec_bench.features.recognisers.whisper import Whisper

RATE_HZ = 16_000


def compare(found: list[list[int]], expected: list[list[int]]) -> None:
    """Stops where a clip has not faster-whisper's tokens, or none has a token."""
    same = [tokens == other for tokens, other in zip(found, expected, strict=True)]
    if not all(same) or not any(expected):
        raise SystemExit(f"not faster-whisper's tokens: {same.count(False)} of {len(same)} clips differ")


@bench(
    "codec-bench", "faster-whisper", "ctranslate2", "torch", "numpy",
    size="reduced", clips=48, repeats=3, threads=1, device="cpu",
)  # fmt: skip
def main(options: Options) -> Cases:
    """All clips."""
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # as the engine tells a worker its share of the cores
    from faster_whisper import WhisperModel

    kind, _, index = options.device.partition(":")
    size, clips = SIZES[options.size], utterances(options.clips)
    duration_s = sum(clip.size for clip in clips) / RATE_HZ
    tokens = max(1, round(3.5 * duration_s / len(clips)))
    with tempfile.TemporaryDirectory() as root:
        folder = write(Path(root, "whisper"), size, tokens=tokens)
        feature = Whisper(options.device, str(folder), model=size.model)
        oracle = WhisperModel(
            str(folder), device=kind, device_index=int(index or 0), compute_type="float32", cpu_threads=options.threads
        )
        languages = ["en"] * len(clips)

        def one_by_one() -> list[list[int]]:
            found = []
            for clip in clips:
                segments, _ = oracle.transcribe(clip, language="en", **GREEDY)
                found.append([token for segment in segments for token in segment.tokens])
            return found

        ours = feature.compute(clips, languages)
        found = [result["tokens"].tolist() for result in ours]
        compare(found, one_by_one())
        windows = sum(result["windows"] for result in ours)
        written = sum(map(len, found)) / windows
        note = f"{duration_s:.0f} s, {windows} windows, {written:.0f} tokens a window, {options.threads} thread(s)"
        said = {"codec-bench": "every clip token for token"}
        calls = {"faster-whisper": one_by_one, "codec-bench": lambda: feature.compute(clips, languages)}
        case = f"{options.size}, {options.device}, float32"
        yield race(case, calls, n=len(clips), repeats=options.repeats, note=note, agreement=said)
