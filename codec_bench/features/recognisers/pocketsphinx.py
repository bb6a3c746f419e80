"""Transcripts by PocketSphinx: a small English recogniser that works offline.

It is much worse than a large recogniser, also on clean read speech. Over systems on the same speech, its error rate
shows how much intelligible structure a codec keeps.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, Word
from codec_bench.messages.errors import MissingExtra, WeightsError

FAST = {
    "topn": 2,
    "pl_window": 3,
    "pl_weight": 5.0,
    "maxhmmpf": 2000,
    "maxwpf": 10,
    "wbeam": 1e-22,
    "pbeam": 1e-40,
    "lponlybeam": 1e-26,
    "fwdflatwbeam": 1e-20,
}
"""The `fast` search: two densities per state, a 3-frame phone look-ahead with more weight, at most 2000 states and 10
word ends per frame, narrower beams. All else is the package's default, with both further passes (flat lexicon,
lattice). docs/metrics/recognisers.md compares its time and words with the default's.
"""

WINDOW_S = 30.0
EARLIEST_CUT_S = 20.0
FRAME_S = 0.1
MODEL_FILES = ("en-us/mdef", "en-us.lm.bin", "cmudict-en-us.dict")


class Pocketsphinx(Feature):
    """Transcripts by PocketSphinx: lower-case words, numbers spelled out.

    The recogniser adapts its noise and channel estimates to earlier signals; here they are reset for every signal, and
    the channel is estimated from the whole signal. Signals longer than 30 s are cut where they are quietest (0.1 s
    frames) in the last 10 s of each 30 s, so time and memory grow linearly. Silence gives an empty transcript.

    Result: `{"transcript": str}`.

    Reference implementation: the `pocketsphinx` package, `Decoder` with the settings `FAST`, a new decoder per signal:
    the same transcripts.

    Args:
        device: unused; it runs on the CPU.
        weights: a folder with the layout of the package's `model/en-us`, or None for that folder.

    Raises:
        MissingExtra: the package is not installed. WeightsError: the folder lacks a file.
    """

    times_words = True
    name = "pocketsphinx"
    licence = "BSD-2-Clause"
    rate_hz = 16_000
    where = "cpu"
    batch_s = 30.0
    languages = ("en",)

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id()
        self._model = _model_folder(weights)
        self._decoder: Any = None

    @classmethod
    def protocol_id(cls, model: str = "pocketsphinx", point: str | None = None) -> str:
        """Return the id of the installed recogniser.

        Raises:
            MissingExtra: the package is not installed.
        """
        if importlib.util.find_spec("pocketsphinx") is None:
            raise MissingExtra("recogniser", "pocketsphinx", "embedded", name="pocketsphinx")
        return f"pocketsphinx-{'.'.join(version('pocketsphinx').split('.')[:2])}-en-us-fast"

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Transcribe signals `(samples,)`, float32 at 16 kHz."""
        return [{"transcript": self._transcript(signal)} for signal in signals]

    def _transcript(self, signal: np.ndarray) -> str:
        pcm = np.clip(np.rint(np.asarray(signal, np.float32) * 32768.0), -32768, 32767).astype(np.int16)
        texts = (self._decode(pcm[start:end]) for start, end in windows(pcm))
        return " ".join(words for words in texts if words)

    def _decode(self, pcm: np.ndarray) -> str:
        """Transcribe 16-bit samples independently of earlier calls; "" for silence.

        The decoder's estimates of noise and channel are reset before.
        """
        if not pcm.any():
            return ""
        decoder = self._loaded()
        decoder.reinit_feat()  # forgets the noise and channel estimates
        decoder.start_utt()
        decoder.process_raw(pcm.tobytes(), full_utt=True)
        decoder.end_utt()
        hypothesis = decoder.hyp()
        return hypothesis.hypstr if hypothesis is not None else ""

    def timed(self, signal: np.ndarray) -> list[Word]:
        """Return the words of a signal with start and end in seconds."""
        pcm = np.clip(np.rint(np.asarray(signal, np.float32) * 32768.0), -32768, 32767).astype(np.int16)
        out: list[Word] = []
        for start, end in windows(pcm):
            if not self._decode(pcm[start:end]):
                continue
            at_s = start / self.rate_hz
            for word_segment in self._decoder.seg():
                word = word_segment.word.partition("(")[0]
                if word and word[0] not in "<[+":  # silence, noise, and the marks of a sentence's ends
                    # A frame of the decoder is 10 ms.
                    out.append(
                        (
                            word,
                            round(at_s + word_segment.start_frame / 100, 3),
                            round(at_s + (word_segment.end_frame + 1) / 100, 3),
                        )
                    )
        return out

    def _loaded(self) -> Any:
        if self._decoder is None:
            import pocketsphinx

            self._decoder = pocketsphinx.Decoder(
                hmm=str(self._model / "en-us"),
                lm=str(self._model / "en-us.lm.bin"),
                dict=str(self._model / "cmudict-en-us.dict"),
                loglevel="FATAL",
                **FAST,
            )
        return self._decoder


def windows(pcm: np.ndarray, rate_hz: int = 16_000) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) samples of consecutive windows of at most 30 s.

    A window ends at the quietest frame of its last seconds.
    """
    longest, earliest, frame = (round(rate_hz * s) for s in (WINDOW_S, EARLIEST_CUT_S, FRAME_S))
    start = 0
    while pcm.size - start > longest:
        late = pcm[start + earliest : start + longest].astype(np.float64)
        quietest = int((late.reshape(-1, frame) ** 2).sum(axis=1).argmin())
        end = start + earliest + quietest * frame + frame // 2
        yield start, end
        start = end
    if start < pcm.size:
        yield start, pcm.size


def _model_folder(weights: str | None) -> Path:
    """Return the acoustic model's folder: `weights`, or that of the installed package."""
    if weights is None:
        spec = importlib.util.find_spec("pocketsphinx")
        if spec is None or spec.origin is None:
            raise MissingExtra("recogniser", "pocketsphinx", "embedded", name="pocketsphinx")
        return Path(spec.origin).parent / "model" / "en-us"
    folder = Path(weights).expanduser()
    missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
    if missing:
        raise WeightsError(
            "weights_folder_lacks",
            path=weights,
            names=missing[0],
            hint="give a folder with the layout of model/en-us in the pocketsphinx package",
        )
    return folder
