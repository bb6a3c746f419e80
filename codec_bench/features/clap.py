"""CLAP: sound embeddings of a network trained on sounds and their descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.features.base import PreparedFeature, Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.pitch import unusable
from codec_bench.features.windowed import WindowedBatch, WindowLimits, windowed_batch
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

RATE_HZ = 48_000
WINDOW, HOP = 10 * RATE_HZ, RATE_HZ
"""Samples of a window, and from one window's start to the next."""
FULL_SCALE = 32767.0
FFT, FRAME_HOP, BANDS = 1024, 480, 64
LOW_HZ, HIGH_HZ = 50.0, 14_000.0
FLOOR = 1e-10
LIMITS = WindowLimits(on_cpu=WINDOW, on_gpu=32 * WINDOW)
"""On a CPU one window per pass, so batches do not change results."""
AUDIO_PREFIXES = ("audio_model.", "audio_projection.")
"""Prefixes of the audio tensors; those of `TEXT_PREFIXES` read texts."""
MOST_TOKENS = 77
"""Tokens of a text, as in CLAP's training."""
TOKENS = ("tokenizer.json", "vocab.json")
TEXT_PREFIXES = ("text_model.", "text_projection.")
PLACES = ("embeddings.position_ids", "embeddings.token_type_ids")
INDEX = "relative_position_index"
"""Suffix of tensors that follow from the architecture; not every file holds them."""


class Clap(PreparedFeature):
    """CLAP's sound embedding (HTSAT, unfused): mean unit vector of windows.

    A window of 10 s every second. Windows at the end are zero-padded, and samples are rounded to 16 bits first, as
    fadtk does. fadtk pools the windows of all sounds; here each sound has its own mean, so it counts once whatever its
    length.

    Result: `{"embedding": float32 (512,)}`.

    Paper: Y. Wu et al., "Large-Scale Contrastive Language-Audio Pretraining with Feature Fusion and Keyword-to-Caption
    Augmentation", ICASSP 2023. Reference implementation: transformers 5 `ClapFeatureExtractor` and
    `ClapModel.get_audio_features`, window by window, to 1e-5.

    Args:
        weights: a transformers folder in place of the published checkpoint, or None.

    Raises:
        WeightsError: the weights are missing.
    """

    name = "clap-htsat-unfused"
    protocol = "clap-htsat-unfused/10s-every-1s-mean/1"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 240.0

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights)
        self._checkpoint = find(self.name, weights)
        self._net: Any = None

    def load(self) -> None:
        """Load the network."""
        if self._net is not None:
            return
        import torch
        from transformers import ClapAudioModelWithProjection

        folder, path = self._checkpoint.folder, self._checkpoint.path
        config = _load_config(folder).audio_config
        if config.enable_fusion or config.num_mel_bins != BANDS:
            raise WeightsError(
                "clap_unexpected", folder=folder, fusion=config.enable_fusion, bands=config.num_mel_bins, expected=BANDS
            )
        net = unfilled(lambda: ClapAudioModelWithProjection(config))
        state = {name: value for name, value in net.state_dict().items() if name.endswith(INDEX)}
        state |= {name: value for name, value in load_state(path).items() if name.startswith(AUDIO_PREFIXES)}
        load_into(net, state, path=path)
        self._net = net.to(self.device)
        self._hann, self._bands = (torch.from_numpy(values).to(self.device) for values in _analysis())

    def prepare(self, signals: Sequence[np.ndarray]) -> WindowedBatch:
        """Cut the signals into windows on the device."""
        return windowed_batch(signals, unusable, _windows, self.device, LIMITS)

    def compute_prepared(self, batch: WindowedBatch) -> list[Result | Unavailable]:
        """Embed signals `(samples,)`, float32 at 48 kHz."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, "float32"):
            outputs = fetched([in_rows(self._pass, [one.waves]) for one in batch.passes])
        return batch.results(outputs, _result)

    def _pass(self, waves: Any) -> Any:
        """Run the network on windows `(windows, WINDOW)` at 48 kHz.

        Returns:
            Unit vectors, float32 `(windows, 512)`.
        """
        import torch

        # In float64: rounding in float32 would disturb bands far below the strongest of their frame.
        spectra = torch.stft(
            waves.double(), FFT, FRAME_HOP, window=self._hann, center=True, pad_mode="reflect", return_complex=True
        )
        power = spectra.real.square() + spectra.imag.square()
        mels = (power.transpose(1, 2) @ self._bands).clamp_(min=FLOOR).log10_().mul_(10.0).float()
        embeddings = self._net(input_features=mels[:, None]).audio_embeds
        return torch.nn.functional.normalize(embeddings, dim=-1)


def _load_config(folder: Path) -> Any:
    """Read CLAP's configuration; raises WeightsError."""
    from transformers import ClapConfig

    try:
        return ClapConfig.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise WeightsError("weights_unreadable", path=folder, cause=error) from error


class TextEncoder:
    """CLAP's text encoder, from the published checkpoint on this machine.

    Raises:
        WeightsError: it is missing, or lacks the tokeniser.
    """

    def __init__(self) -> None:
        from transformers import AutoTokenizer, ClapTextModelWithProjection

        checkpoint = find(Clap.name, None)
        folder = checkpoint.folder
        if not any((folder / name).is_file() for name in TOKENS):  # transformers would make tokens of no word
            raise WeightsError(
                "no_tokeniser",
                folder=folder,
                files=" or ".join(TOKENS),
                hint=f"codec-bench weights fetch {Clap.name} brings them",
            )
        try:
            self._tokens: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:  # a missing or broken file raises anything from OSError to KeyError
            reason = str(error).split("\n")[0]
            raise WeightsError("weights_not_read", path=folder, type=type(error).__name__, reason=reason) from error
        config = _load_config(folder).text_config
        self._net: Any = unfilled(lambda: ClapTextModelWithProjection(config))
        state = {name: value for name, value in self._net.state_dict().items() if name.endswith(PLACES)}
        state |= {name: value for name, value in load_state(checkpoint.path).items() if name.startswith(TEXT_PREFIXES)}
        load_into(self._net, state, path=checkpoint.path)

    def embeddings(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Embed texts by their first 77 tokens as unit vectors, float64 `(dimensions,)`."""
        import torch

        if not texts:
            return []
        tokens = self._tokens(list(texts), padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
        with torch.inference_mode():
            output = self._net(input_ids=tokens.input_ids, attention_mask=tokens.attention_mask).text_embeds
        return list(torch.nn.functional.normalize(output.double(), dim=-1).numpy())


def _windows(signal: np.ndarray) -> list[np.ndarray]:
    """Cut a signal into windows `(WINDOW,)`, zero-padded, a `HOP` apart."""
    quantised = np.trunc(np.clip(signal, -1.0, 1.0) * FULL_SCALE) / FULL_SCALE
    filled = np.pad(quantised, (0, WINDOW)).astype(np.float32)
    return [filled[start : start + WINDOW] for start in range(0, signal.size, HOP)]


@cache
def _analysis() -> tuple[np.ndarray, np.ndarray]:
    """Return the STFT window, float64 `(FFT,)`, and Slaney's mel filters."""
    from transformers.audio_utils import mel_filter_bank, window_function

    bands = mel_filter_bank(FFT // 2 + 1, BANDS, LOW_HZ, HIGH_HZ, RATE_HZ, norm="slaney", mel_scale="slaney")
    return window_function(FFT, "hann").astype(np.float64), np.ascontiguousarray(bands, np.float64)


def _result(rows: np.ndarray) -> Result | Unavailable:
    if not np.isfinite(rows).all():
        return Unavailable(NOT_FINITE)
    return {"embedding": rows.mean(axis=0).astype(np.float32)}
