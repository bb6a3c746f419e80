"""FunASR's models and front end, without running code of a folder.

A published folder holds `config.yaml`, `model.pt`, `am.mvn` and a vocabulary. FunASR's loader unpickles the weights,
sets the number of threads, seeds torch, contacts a server and logs; here its classes are built from the configuration
alone.

The front end is Kaldi's filter bank (25 ms every 10 ms, 80 bands), seven frames joined every six, a fixed shift and
scale. The published `dither` of 1 adds noise of one 16-bit step from torch's global generator, so FunASR's transcripts
depend on earlier ones. Without it digital silence is -15.9 in every band, which no model saw in training. So the noise
stays, seeded with 0 for every signal, as FunASR computes right after `torch.manual_seed(0)`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from codec_bench.features.base import Feature
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, WeightsError
from codec_bench.networks.kaldi import HOP, RATE_HZ, WINDOW, analysis_window, filter_bank, mel_bands

if TYPE_CHECKING:
    import torch

    from codec_bench.weights import LocalCheckpoint

FULL_SCALE = 32_768.0
FRAMES_AT_ONCE = 8_192
"""Frames whose spectra are computed at a time: 13 MB of samples."""
SIMILAR = 1.4
"""Largest ratio of lengths in one pass on a CPU, where batches are up to 1.5 times faster."""
_FRONT_END = {"fs": RATE_HZ, "window": "hamming", "frame_length": 25, "frame_shift": 10, "snip_edges": True}
_STATE_ENTRIES = ("state_dict", "model_state_dict", "model")


def require(recogniser: str) -> None:
    """Raise MissingExtra without FunASR, whose import takes ten seconds."""
    if importlib.util.find_spec("funasr") is None:
        raise MissingExtra("recogniser", "funasr", "asr", name=recogniser)


@cache
def tables() -> Any:
    """Import FunASR, and return its registry of classes.

    What the import prints is dropped, and its changes of the logging are undone.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            import funasr  # noqa: F401 - it registers its classes
            from funasr.register import tables as registered
    finally:
        root.handlers[:], root.level = handlers, level
    return registered


class FunAsrRecogniser:
    """A model of FunASR with its front end and vocabulary, on a device.

    Args:
        found: the folder with `config.yaml`, `am.mvn`, the weights and the vocabulary's file.
        allowed: the classes that the configuration may name, by key. Another class could download or run something.
        vocabulary: the name of the tokenizer's argument for its vocabulary, and the file.

    Raises:
        WeightsError: the configuration is another kind of model's, or the weights do not fit it.
    """

    def __init__(
        self,
        checkpoint: LocalCheckpoint,
        allowed: Mapping[str, Sequence[str | None]],
        vocabulary: tuple[str, str],
        device: str,
    ) -> None:
        from codec_bench.weights import unfilled

        config = _configuration(checkpoint.folder, allowed)
        registered = tables()
        try:
            wave = registered.frontend_classes[config["frontend"]](
                **{**(config.get("frontend_conf") or {}), "cmvn_file": str(checkpoint.folder / "am.mvn")}
            )
            argument, file = vocabulary
            self.tokenizer = registered.tokenizer_classes[config["tokenizer"]](
                **{**(config.get("tokenizer_conf") or {}), argument: str(checkpoint.folder / file)}
            )
            size = (
                len(self.tokenizer.token_list)
                if hasattr(self.tokenizer, "token_list")
                else self.tokenizer.get_vocab_size()
            )
            # As in AutoModel, the keys of `model_conf` and of the whole file are arguments. Augmentation is for
            # training.
            options = {**config.get("model_conf", {}), **config, "vocab_size": size, "input_size": wave.output_size()}
            options |= {"specaug": None, "normalize": None}
            net = unfilled(lambda: registered.model_classes[config["model"]](**options))
        except Exception as error:  # a broken configuration raises whatever FunASR's classes meet
            reason = str(error).split("\n")[0]
            raise WeightsError(
                "weights_not_loaded", folder=checkpoint.folder, type=type(error).__name__, reason=reason
            ) from error
        _load(net, checkpoint.path)
        self.net = net.to(device).eval()
        self.kind = config["model"]
        self.front = FrontEnd(wave, checkpoint.folder, device)


class FunasrFeature(Feature):
    """A recogniser through FunASR's network.

    Class attributes:
        allowed: the classes that its configuration may name, by key.
        vocabulary: the name of the tokenizer's argument for its vocabulary, and the file.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder in the published layout or its `.pt` file; None for the published weights.
        model: the registered name.

    Raises:
        MissingExtra: FunASR is not installed. WeightsError: the weights are missing.
    """

    rate_hz = RATE_HZ
    where = "device"
    batch_s = 240.0
    allowed: ClassVar[Mapping[str, Sequence[str | None]]]
    vocabulary: ClassVar[tuple[str, str]]

    def __init__(self, device: str, weights: str | None, model: str) -> None:
        from codec_bench.weights import find

        super().__init__(device, weights)
        require(model)
        self._checkpoint = find(model, weights)
        self._recogniser: FunAsrRecogniser | None = None

    def load(self) -> None:
        """Build the network and load its weights."""
        self._loaded()

    def _loaded(self) -> FunAsrRecogniser:
        if self._recogniser is None:
            self._recogniser = FunAsrRecogniser(self._checkpoint, self.allowed, self.vocabulary, self.device)
        return self._recogniser


def _configuration(folder: Path, allowed: Mapping[str, Sequence[str | None]]) -> dict[str, Any]:
    """Read `config.yaml` of a folder; WeightsError for values that are not allowed.

    Args:
        allowed: by key, the allowed names of classes; None among them allows a missing key.
    """
    from codec_bench.weights import load_configuration

    file = folder / "config.yaml"
    config = load_configuration(file)
    if not isinstance(config, dict):
        raise WeightsError("not_a_configuration", path=file)
    for key, names in allowed.items():
        if config.get(key) not in names:
            raise WeightsError(
                "configuration_value", path=file, key=key, value=config.get(key), expected=" or ".join(map(str, names))
            )
    return config


def _load(net: Any, path: Path) -> None:
    """Load a checkpoint's tensors into a network, in place.

    None may be missing. Further tensors are ignored, as FunASR does.
    """
    from codec_bench.weights import load_into, load_state

    state = load_state(path)
    for key in _STATE_ENTRIES if not state else ():  # a training checkpoint holds them one level down
        with contextlib.suppress(WeightsError):
            state = load_state(path, key=key)
            break
    state = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    load_into(net, state, path=path, unused=[name for name in state if name not in net.state_dict()])


class FrontEnd:
    """FunASR's `WavFrontend` for a batch on a device, equal to it signal by signal.

    Args:
        wave: the `WavFrontend`, whose settings and normalisation are used.
        folder: its origin, for messages.

    Raises:
        WeightsError: its settings differ from the published ones.
    """

    def __init__(self, wave: Any, folder: Path, device: str) -> None:
        import torch

        differs = {key: getattr(wave, key) for key, value in _FRONT_END.items() if getattr(wave, key) != value}
        if differs or wave.cmvn is None or not wave.upsacle_samples:
            raise WeightsError("front_end_unexpected", folder=folder, difference=differs)
        if wave.cmvn.shape != (2, wave.output_size()):
            raise WeightsError("normalisation_size", path=folder / "am.mvn")
        self._wave, self._device = wave, device
        self._shift, self._scale = wave.cmvn.to(device)
        self._bands = mel_bands(wave.n_mels).to(device)
        self._window = analysis_window("hamming").to(device)
        self._noise = torch.zeros((0, WINDOW))

    def __call__(self, signals: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute features of signals float32 `(samples,)`, each of at least one frame.

        Returns:
            Float32 `(signals, frames, coefficients)`, zero-padded, and the number of frames of each, int64 on the CPU.
        """
        import torch

        from codec_bench.networks.transfer import sent

        features = [self._features(x) for x in sent([np.array(x, np.float32) for x in signals], self._device)]
        lengths = torch.tensor([len(x) for x in features])
        return torch.nn.utils.rnn.pad_sequence(features, batch_first=True), lengths

    def _features(self, signal: torch.Tensor) -> torch.Tensor:
        """Compute a signal's log filter bank, stacked by frames and normalised."""
        import torch

        frames = (signal * FULL_SCALE).unfold(0, WINDOW, HOP)
        noise = self._noise_for(len(frames))
        parts = zip(frames.split(FRAMES_AT_ONCE), noise.split(FRAMES_AT_ONCE))
        dithered = (samples + added * self._wave.dither for samples, added in parts)
        bands = torch.cat([filter_bank(samples, self._window, self._bands) for samples in dithered])
        # Every six frames, seven frames around the middle one are joined. At the ends, the first and last are repeated.
        joined, step, count = self._wave.lfr_m, self._wave.lfr_n, len(bands)
        middle = torch.arange(0, count, step, device=bands.device)[:, None]
        around = torch.arange(joined, device=bands.device) - (joined - 1) // 2
        rows = bands[(middle + around).clamp(0, count - 1)].flatten(1)
        return (rows + self._shift) * self._scale

    def _noise_for(self, count: int) -> torch.Tensor:
        """Return the dither of `count` frames, `(count, 400)`; longer ones begin alike."""
        if len(self._noise) < count:
            import torch

            rows = max(count, min(2 * len(self._noise), FRAMES_AT_ONCE))
            self._noise = torch.randn((rows, WINDOW), generator=torch.Generator().manual_seed(0)).to(self._device)
        return self._noise[:count]


def why_not(signal: np.ndarray) -> Diagnostic | None:
    """Return why a signal cannot be recognised (too short, not finite), or None."""
    if signal.size < WINDOW:
        return Diagnostic("signal_below_frame", frame_ms=WINDOW / RATE_HZ * 1000)
    return None if np.isfinite(signal).all() else Diagnostic("signal_not_finite")
