"""GE2E speaker embeddings in 256 dimensions, by Resemblyzer's small encoder."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, WeightsError, describe
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.on_device import change_samples, concatenate
from codec_bench.weights.state import check_archive

if TYPE_CHECKING:
    import torch

RATE_HZ = 16_000
WINDOW, HOP, MELS = 400, 160, 40
PARTIAL_FRAMES = 160
PARTIAL_STEP = 77  # frames between partials: 1.3 of them per second
MIN_COVERAGE = 0.75
LOUDNESS_DBFS = -30.0
FULL_SCALE = 32_767
HIDDEN, LAYERS = 256, 3
VAD_MODE, VAD_WINDOW = 3, 480  # webrtcvad's strictest mode, on 30 ms
VAD_AVERAGED, VAD_VOICED = 8, 6  # windows
FRAMES_AT_ONCE = 8_192
PARTIALS_AT_ONCE = 64
"""Frames and partials per pass. They bound the memory of the spectra (30 MB) and the recurrent layers (40 MB)."""


class Ge2e(Feature):
    """Resemblyzer's speaker embedding: the mean of 1.6 s partials, normalised.

    Protocol `ge2e/resemblyzer-0.1/no-vad`: Resemblyzer's `preprocess_wav` without its last step, then its
    `embed_utterance`. A signal below -30 dBFS is raised to that level. Long silences stay: Resemblyzer removes them by
    webrtcvad, whose decisions differ between a recording and its reconstruction, and the embeddings would then belong
    to different stretches of speech. All partials have one length, so a batch needs no padding.

    Result: `{"embedding": float32 (256,)}`, of norm 1 and without negative entries.

    Paper: L. Wan, Q. Wang, A. Papir, I. Lopez Moreno, "Generalized end-to-end loss for speaker verification", ICASSP
    2018. Reference implementation: Resemblyzer 0.1.4 `VoiceEncoder.embed_utterance` with librosa 0.11, to 1e-5.

    Args:
        weights: a checkpoint in Resemblyzer's format, or None for the one in the installed package.

    Raises:
        MissingExtra: Resemblyzer is not installed, and weights are None. WeightsError: no such file.
    """

    name = "ge2e"
    licence = "Apache-2.0"
    protocol = "ge2e/resemblyzer-0.1/no-vad"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 120.0

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights)
        self._path = _checkpoint(weights)
        self._net: Any = None

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Embed signals `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.precision import computing

        # A GPU's recurrent layers would otherwise compute in TensorFloat-32, whose error is 1e-3.
        with computing(self.device, "float32"):
            return self._embeddings(signals)

    def _embeddings(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Embed the partials of all signals in one batch, and average them by signal."""
        results: list[Result | Unavailable] = [Unavailable(Diagnostic("signal_silent")) for _ in signals]
        usable: dict[int, np.ndarray] = {}
        for index, signal in enumerate(signals):
            if not signal.size or not signal.any():
                continue
            signal = self._prepared(signal)
            if not signal.size:
                results[index] = Unavailable(Diagnostic("no_speech_heard"))
                continue
            usable[index] = signal
        places: list[int] = []
        mels: list[torch.Tensor] = []
        for (index, signal), mel in zip(usable.items(), mel_spectrograms([*usable.values()], self.device)):
            starts = partial_starts(signal.size)
            places += [index] * len(starts)
            mels += [mel[start : start + PARTIAL_FRAMES] for start in starts]
        embedded = self._embed(mels)
        owner = np.asarray(places)
        for index in dict.fromkeys(places):
            mean = embedded[owner == index].mean(axis=0)
            norm = float(np.linalg.norm(mean))
            if not math.isfinite(norm) or norm == 0.0:
                results[index] = Unavailable(Diagnostic("no_voice_heard"))
            else:
                results[index] = {"embedding": mean / np.float32(norm)}
        return results

    def _prepared(self, signal: np.ndarray) -> np.ndarray:
        """Raise a quiet signal's level; the subclass also removes long silences."""
        return raised(signal)

    def _embed(self, mels: list[torch.Tensor]) -> np.ndarray:
        """Embed partials `(160, 40)`: unit vectors `(partials, 256)`; NaN if all are 0."""
        import torch

        net = self._loaded()
        parts = []
        for first in range(0, len(mels), PARTIALS_AT_ONCE):
            raw = in_rows(
                lambda batch: torch.relu(net["linear"](net["lstm"](batch)[1][0][-1])),
                [torch.stack(mels[first : first + PARTIALS_AT_ONCE])],
            )
            parts.append(raw / torch.linalg.vector_norm(raw, dim=1, keepdim=True))
        return torch.cat(parts).cpu().numpy() if parts else np.zeros((0, HIDDEN), np.float32)

    def _loaded(self) -> Any:
        """Build the LSTM and load the checkpoint's tensors, once."""
        if self._net is None:
            import torch

            net = torch.nn.ModuleDict(
                {
                    "lstm": torch.nn.LSTM(MELS, HIDDEN, LAYERS, batch_first=True),
                    "linear": torch.nn.Linear(HIDDEN, HIDDEN),
                }
            )
            check_archive(self._path)
            try:
                state = torch.load(self._path, map_location="cpu", weights_only=True)["model_state"]
                used = {key: state[key] for key in net.state_dict()}
                net.load_state_dict(used)
            except Exception as error:  # a broken file raises anything from KeyError to UnpicklingError
                raise WeightsError("weights_of_another_model", folder=self._path, difference=describe(error)) from error
            self._net = net.to(self.device).eval()
        return self._net


class Ge2eVad(Ge2e):
    """Resemblyzer's embedding without long silences, as `preprocess_wav`.

    Protocol `ge2e/resemblyzer-0.1/webrtcvad-2.0`: as `ge2e`, and the raised signal is cut to the speech of webrtcvad
    (see `spoken`). A signal without speech has no embedding; Resemblyzer would embed silence.

    Result: `{"embedding": float32 (256,)}`, of norm 1 and without negative entries.

    Paper: as `ge2e`. Reference implementation: Resemblyzer 0.1.4 `preprocess_wav` and `VoiceEncoder.embed_utterance`
    with webrtcvad 2.0.10 and librosa 0.11, to 1e-5.

    Args:
        weights: a checkpoint in Resemblyzer's format, or None for the one in the installed package.

    Raises:
        MissingExtra: webrtcvad is not installed, or Resemblyzer is not and weights are None. WeightsError: no such
            file.
    """

    name = "ge2e-vad"
    protocol = "ge2e/resemblyzer-0.1/webrtcvad-2.0"

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        if importlib.util.find_spec("_webrtcvad") is None:
            raise MissingExtra("speaker_embedding", "webrtcvad", "embedded", name="ge2e-vad")
        super().__init__(device, weights)

    def _prepared(self, signal: np.ndarray) -> np.ndarray:
        return spoken(raised(signal))


def _checkpoint(weights: str | None) -> Path:
    """Return the checkpoint's path: `weights`, or that of the installed Resemblyzer."""
    if weights is not None:
        path = Path(weights).expanduser()
        path = path / "pretrained.pt" if path.is_dir() else path
        if not path.is_file():
            raise WeightsError("no_file", path=path, hint="give a file in Resemblyzer's format")
        return path
    spec = importlib.util.find_spec("resemblyzer")
    if spec is None or spec.origin is None:
        raise MissingExtra("speaker_embedding", "Resemblyzer", "embedded", name="ge2e")
    return Path(spec.origin).parent / "pretrained.pt"


def raised(signal: np.ndarray) -> np.ndarray:
    """Amplify a signal `(samples,)`, not silent, if it is below -30 dBFS."""
    level_db = 20 * math.log10(float(np.sqrt(np.mean((signal * FULL_SCALE).astype(np.float64) ** 2))) / FULL_SCALE)
    if level_db > LOUDNESS_DBFS:
        return signal
    gain = np.float32(10 ** ((LOUDNESS_DBFS - level_db) / 20))
    return change_samples(signal, lambda samples: samples * gain)


def spoken(signal: np.ndarray) -> np.ndarray:
    """Remove long silences from a signal at 16 kHz, as `trim_long_silences`.

    webrtcvad decides on every 30 ms. A window is speech if more than half of the eight windows around it are; three
    windows on both sides stay. The last, incomplete window is dropped.
    """
    # The module below webrtcvad's, whose own first line needs pkg_resources, which setuptools dropped.
    import _webrtcvad
    from scipy.ndimage import binary_dilation

    signal = signal[: signal.size - signal.size % VAD_WINDOW]
    pcm = np.round(signal * FULL_SCALE).astype(np.int16)
    detector = _webrtcvad.create()
    _webrtcvad.init(detector)
    _webrtcvad.set_mode(detector, VAD_MODE)
    voiced = [
        _webrtcvad.process(detector, RATE_HZ, window.tobytes(), VAD_WINDOW) for window in pcm.reshape(-1, VAD_WINDOW)
    ]
    before = (VAD_AVERAGED - 1) // 2
    sums = np.convolve(voiced, np.ones(VAD_AVERAGED)) if voiced else np.zeros(0)
    # A window is speech if more than half of those around it are: three before it to four after it.
    mask = sums[VAD_AVERAGED - 1 - before :][: len(voiced)] > VAD_AVERAGED / 2
    edges = np.flatnonzero(np.diff(binary_dilation(mask, np.ones(VAD_VOICED + 1)), prepend=False, append=False))
    stretches = (VAD_WINDOW * edges).reshape(-1, 2)
    return concatenate([signal[:0], *(signal[start:end] for start, end in stretches)])


def partial_starts(num_samples: int) -> list[int]:
    """Return the first mel frame of each partial (segment of 1.6 s), every 77 frames.

    The last partial is dropped if less than 3/4 of it is signal, unless it is the only one.
    """
    frames = math.ceil((num_samples + 1) / HOP)
    starts = list(range(0, max(1, frames - PARTIAL_FRAMES + PARTIAL_STEP + 1), PARTIAL_STEP))
    coverage = (num_samples - starts[-1] * HOP) / (PARTIAL_FRAMES * HOP)
    return starts[:-1] if coverage < MIN_COVERAGE and len(starts) > 1 else starts


def mel_spectrograms(signals: Sequence[np.ndarray], device: str = "cpu") -> list[torch.Tensor]:
    """Compute librosa's mel power spectra, zero-padded to the end of the last partial.

    Frames of 25 ms every 10 ms, the first centred on the first sample, zeros around; periodic Hann window; 40 Slaney
    bands of unit area up to 8 kHz; power, not its logarithm.

    Returns:
        Float32 `(frames, 40)` per signal `(samples,)`, on the device.
    """
    import torch

    from codec_bench.networks.log_mel import analysis
    from codec_bench.networks.transfer import place_signals, sent, uploaded

    needed = [(partial_starts(signal.size)[-1] + PARTIAL_FRAMES) * HOP for signal in signals]
    lengths = [WINDOW + max(signal.size, length) for signal, length in zip(signals, needed)]
    ends = [0, *accumulate(lengths)]
    samples = uploaded(place_signals(signals, [end + WINDOW // 2 for end in ends], ends[-1], device), device)
    window, bands = sent(analysis(MELS), device)
    mels = []
    for wave in samples.split(lengths):
        parts = []
        for some in wave.unfold(0, WINDOW, HOP).split(FRAMES_AT_ONCE):
            spectra = torch.fft.rfft(some * window)
            parts.append((spectra.real**2 + spectra.imag**2) @ bands)
        mels.append(torch.cat(parts))
    return mels
