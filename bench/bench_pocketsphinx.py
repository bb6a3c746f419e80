"""Error rate and processor time of PocketSphinx's searches, and a check that the recogniser uses the one called `fast`.

    python bench/bench_pocketsphinx.py [--recordings DIR] [--searches ...]

Each search transcribes English speech with a known text: the real recordings (a folder with a manifest.jsonl, also taken
from CODEC_BENCH_TEST_RECORDINGS), the embedded speech, and both after Opus at 6 kbps and after G.711 µ-law. Time is that
of the processor on one core. Right means: the feature's transcripts are those of a new decoder with the search `fast`
for every signal. Error rates do not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import append_rows, row

from codec_bench import error_rate
from codec_bench.audio.resample import prepare
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.data import open_source
from codec_bench.features.recognisers.pocketsphinx import FAST, MODEL_FILES, Pocketsphinx, windows
from codec_bench.types import Audio

RATE_HZ = 16_000
SEARCHES: dict[str, dict[str, Any]] = {
    "the package's default": {},
    "its first pass alone": {"fwdflat": False},
    "fast": FAST,
    "fast, first pass alone": {**FAST, "fwdflat": False},
    "fast, 1000 states per frame": {**FAST, "maxhmmpf": 1000},
}
Spoken = list[tuple[np.ndarray, str]]


def materials(folder: str | None) -> dict[str, Spoken]:
    """Signals at 16 kHz with their texts, by the name of the material."""
    sources = {"embedded": "embedded"}
    if folder:
        sources = {"recordings": str(Path(folder) / "manifest.jsonl"), **sources}
    read: dict[str, list[tuple[Audio, str]]] = {}
    for name, source in sources.items():
        samples = [
            s for s in open_source(source) if s.text and (s.language or "en") == "en" and len(s.text.split()) > 1
        ]
        read[name] = [(Audio.read(sample.audio), sample.text) for sample in samples]
    every = [pair for pairs in read.values() for pair in pairs]
    found = {name: [(prepare(audio, RATE_HZ), text) for audio, text in pairs] for name, pairs in read.items()}
    for name in ("opus-6k", "g711-ulaw"):
        codec = load_codec(name)
        done = [reconstruct(codec, [audio]).items[0].estimate for audio, _ in every]
        found[f"all after {name}"] = [
            (prepare(audio, RATE_HZ), text) for audio, (_, text) in zip(done, every, strict=True)
        ]
    return found


def decoder(search: dict[str, Any]) -> Any:
    """A decoder with the package's own model."""
    import pocketsphinx

    folder = Path(pocketsphinx.__file__).parent / "model" / "en-us"
    hmm, lm, words = (str(folder / name) for name in ("en-us", *MODEL_FILES[1:]))
    return pocketsphinx.Decoder(hmm=hmm, lm=lm, dict=words, loglevel="FATAL", **search)


def heard(search: dict[str, Any], signals: Sequence[np.ndarray]) -> tuple[list[str], float]:
    """What a decoder hears in each signal with its estimates made anew, and the processor's seconds, loading left out."""
    one, said = decoder(search), []
    start = time.process_time()
    for signal in signals:
        pcm = np.clip(np.rint(signal * 32768.0), -32768, 32767).astype(np.int16)
        words = []
        for begin, end in windows(pcm):
            one.reinit_feat()
            one.start_utt()
            one.process_raw(pcm[begin:end].tobytes(), full_utt=True)
            one.end_utt()
            hypothesis = one.hyp()
            words.append(hypothesis.hypstr if hypothesis is not None else "")
        said.append(" ".join(filter(None, words)))
    return said, time.process_time() - start


def compare(found: Sequence[str], expected: Sequence[str]) -> str:
    """How many of the feature's transcripts are those of the search; stops where one is not, or none has a word."""
    same = sum(text == other for text, other in zip(found, expected, strict=True))
    if same < len(expected) or not any(expected):
        raise SystemExit(f"{same} of {len(expected)} transcripts are those of `fast`")
    return f"{same} of {len(expected)} transcripts are the recogniser's"


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=list(SEARCHES))
    options = parser.parse_args()
    rows = []
    for material, spoken in materials(options.recordings).items():
        signals, texts = [signal for signal, _ in spoken], [text for _, text in spoken]
        audio_s = sum(signal.size for signal in signals) / RATE_HZ
        for name in options.searches:
            said, cpu_s = heard(SEARCHES[name], signals)
            agreement = ""
            if SEARCHES[name] is FAST:
                results = Pocketsphinx().compute(signals)
                agreement = compare([result["transcript"] for result in results], said)
            rate = error_rate(reference=texts, estimate=said, unit="word", normaliser="whisper-en").rate
            note = f"{audio_s:.0f} s; word error rate {100 * rate:.1f} %; {cpu_s / audio_s:.2f} of the audio's time"
            rows.append(row(material, name, np.array([cpu_s]), n=len(spoken), agreement=agreement, note=note))
            sys.stdout.write(f"{material:>22} {name:>28} {note} {agreement}\n")
            sys.stdout.flush()
    path = append_rows("pocketsphinx", rows, ("codec-bench", "pocketsphinx", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
