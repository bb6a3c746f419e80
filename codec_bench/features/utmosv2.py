"""UTMOSv2: the naturalness of synthetic speech, from randomly drawn crops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.audio.hash import content_hash
from codec_bench.features.base import PreparedFeature, Result, Unavailable, too_short
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

RATE_HZ = 16_000
MIN_SAMPLES = 400
"""The shortest signal: one frame of the speech encoder."""
SPREAD = 0.4
"""Both parameters of the beta distribution of a crop's share in a mixture."""
DRAWS_ON_GPU = 16
"""They bound the memory of the convolutions. On a CPU draws pass the network one by one."""
ENCODER = "ssl.encoder.model."
"""Prefix of the encoder's tensors in the published files."""


@dataclass(frozen=True, slots=True)
class Utmosv2Protocol:
    """How many random crops of a signal a score averages.

    Args:
        weights: the entry of the catalogue; each of its files is a fold.
        folds: how many networks, trained on other folds, are averaged.
        repetitions: how many crops each network scores.
    """

    weights: str
    folds: int
    repetitions: int


PROTOCOLS = {
    None: Utmosv2Protocol("utmosv2", 1, 1),
    "five-repetitions": Utmosv2Protocol("utmosv2", 1, 5),
    "five-folds": Utmosv2Protocol("utmosv2-folds", 5, 5),
}
"""By variant: the reference's `predict`, the same five times, and its script with all networks."""


@dataclass(frozen=True, slots=True, eq=False)
class CropDraw:
    """One random crop of a signal: inputs of `UtmosV2Net` without the first axis."""

    wave: np.ndarray
    crops: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """The crops that one fold's network scores at once, and each crop's signal."""

    fold: int
    owners: list[int]
    inputs: list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnBatch:
    """A prepared batch: passes, why a signal is in none, and the number of signals."""

    passes: list[_Pass]
    obstacles: Mapping[int, Unavailable]
    signals: int


class UtmosV2(PreparedFeature):
    """The naturalness of speech by UTMOSv2, 1 to 5. Higher is better.

    A wav2vec 2.0 base network reads three seconds of the signal. Four EfficientNetV2-S read mel spectrograms of two
    crops of 1.4 s, each mixed with a further crop in a random proportion, as in training. A linear layer gives the
    score on the scale of its authors' listening test. A short signal is repeated.

    The generator of crops and proportions is seeded with the signal's samples. So a number is the same in every run and
    batch, and equals the reference after `numpy.random.seed(seed_of(signal))`.

    Result: `{"mos": float, "draws": int}`, the mean over the draws and their number.

    Paper: K. Baba et al., "The T05 System for The VoiceMOS Challenge 2024", SLT 2024. Reference implementation:
    github.com/sarulab-speech/UTMOSv2 at cc2700d on a CPU (float32), `fusion_stage3`, to 1e-4.

    Args:
        weights: a file in the published layout, or None. For `five-folds`, a folder with five.
        variant: None for one fold and one draw; `five-repetitions` for five draws; `five-folds` for five folds with
            five draws each.

    Raises:
        WeightsError: the weights are missing. UserError: no such variant.
    """

    name = "utmosv2"
    rate_hz = RATE_HZ
    where = "device"

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        super().__init__(device, weights)
        self.name = f"utmosv2[{variant}]" if variant else "utmosv2"
        self.protocol = self.protocol_id(variant)
        self._variant = _find_protocol(variant)
        checkpoint = find(self._variant.weights, weights)
        self._paths = [checkpoint.folder / file for file in checkpoint.files]
        self._nets: list[Any] = []

    @classmethod
    def protocol_id(cls, variant: str | None = None) -> str:
        """Return the id that names a variant's method: number of folds and of crops."""
        facts = _find_protocol(variant)
        folds = "fold0" if facts.folds == 1 else f"{facts.folds}-folds"
        return f"utmosv2/fusion-stage3/{folds}/draws-{facts.repetitions}"

    def load(self) -> None:
        """Load the network of each fold."""
        if not self._nets:
            from codec_bench.networks.speech_encoder import fairseq_name

            nets = []
            for path in self._paths:
                net = unfilled(self._architecture)
                state = {
                    f"ssl.encoder.{fairseq_name(name.removeprefix(ENCODER), 'group_norm')}"
                    if name.startswith(ENCODER)
                    else name: value
                    for name, value in load_state(path).items()
                }
                load_into(net, state, path=path)
                nets.append(net.to(self.device))
            self._nets = nets

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAV2VEC2_BASE
        from codec_bench.networks.utmosv2 import UtmosV2Net

        return UtmosV2Net(WAV2VEC2_BASE)

    def prepare(self, signals: Sequence[np.ndarray]) -> DrawnBatch:
        """Draw crops of each signal, seeded by its samples, and upload them in passes."""
        obstacles: dict[int, Unavailable] = {}
        drawn: list[list[tuple[int, CropDraw]]] = [[] for _ in range(self._variant.folds)]
        for index, signal in enumerate(signals):
            if (why := _obstacle(signal)) is not None:
                obstacles[index] = why
                continue
            source = draws(signal, seed_of(signal))
            for of_fold in drawn:
                of_fold += [(index, next(source)) for _ in range(self._variant.repetitions)]
        at_once = DRAWS_ON_GPU if str(self.device).startswith("cuda") else 1
        passes = [
            self._upload_pass(fold, of_fold[first : first + at_once])
            for fold, of_fold in enumerate(drawn)
            for first in range(0, len(of_fold), at_once)
        ]
        return DrawnBatch(passes, obstacles, len(signals))

    def _upload_pass(self, fold: int, drawn: Sequence[tuple[int, CropDraw]]) -> _Pass:
        """Stack the crops of one pass of the network, and upload them.

        Args:
            fold: which of the networks scores them.
            drawn: for each crop, the index of its signal and the crop.
        """
        from codec_bench.networks.transfer import uploaded, zeros_for

        inputs = []
        for arrays in zip(*((draw.wave, draw.crops, draw.shares) for _, draw in drawn), strict=True):
            room = zeros_for(self.device, (len(arrays), *arrays[0].shape))
            np.stack(arrays, out=room.numpy())
            inputs.append(uploaded(room, self.device))
        return _Pass(fold, [owner for owner, _ in drawn], inputs)

    def compute_prepared(self, batch: DrawnBatch) -> list[Result | Unavailable]:
        """Score each signal: the mean over its crops."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, "float32"):
            outputs = fetched([in_rows(self._nets[one.fold], one.inputs) for one in batch.passes])
        scores: dict[int, list[float]] = {}
        for one, rows in zip(batch.passes, outputs, strict=True):
            for owner, score in zip(one.owners, rows, strict=True):
                scores.setdefault(owner, []).append(float(score))
        return [batch.obstacles.get(index) or _scored(scores[index]) for index in range(batch.signals)]


def seed_of(signal: np.ndarray) -> int:
    """Return the first 32 bits of the hash of a signal's samples, float32 at 16 kHz."""
    return int(content_hash(signal, RATE_HZ)[:8], 16)


def draws(signal: np.ndarray, seed: int) -> Iterator[CropDraw]:
    """Yield random crops of a signal without end, in the original code's order.

    Args:
        signal: float32 `(samples,)` at 16 kHz.
        seed: of NumPy's generator.
    """
    from codec_bench.networks.utmosv2 import FRAMES, SEEN, SSL_SAMPLES, WINDOWS

    # The reference draws from NumPy's global generator, which is one of this kind; its numbers never change.
    generator = np.random.RandomState(seed)
    long, short = _repeated(signal, SSL_SAMPLES), _repeated(signal, SEEN)

    def crop(of: np.ndarray, size: int) -> np.ndarray:
        start = generator.randint(0, of.size - size)
        return of[start : start + size]

    while True:
        wave = crop(long, SSL_SAMPLES)
        crops = np.empty((FRAMES, 1 + len(WINDOWS), SEEN), np.float32)
        shares = np.empty((FRAMES, len(WINDOWS)), np.float32)
        for frame in range(FRAMES):
            crops[frame, 0] = crop(short, SEEN)
            for index in range(len(WINDOWS)):
                crops[frame, 1 + index] = crop(short, SEEN)
                shares[frame, index] = generator.beta(SPREAD, SPREAD)
        yield CropDraw(wave, crops, shares)


def _repeated(signal: np.ndarray, size: int) -> np.ndarray:
    return signal if signal.size > size else np.tile(signal, size // signal.size + 1)


def _find_protocol(variant: str | None) -> Utmosv2Protocol:
    """Return the settings of a variant; raises UserError for an unknown one."""
    if variant not in PROTOCOLS:
        raise UserError(
            "no_variant",
            variant=variant,
            name="utmosv2",
            hint="use utmosv2, utmosv2[five-repetitions] or utmosv2[five-folds]",
        )
    return PROTOCOLS[variant]


def _obstacle(signal: np.ndarray) -> Unavailable | None:
    if (why := too_short(signal, "UTMOSv2", MIN_SAMPLES)) is not None:
        return why
    return None if signal.any() else Unavailable(Diagnostic("signal_silent"))


def _scored(scores: Sequence[float]) -> Result | Unavailable:
    mean = math.fsum(scores) / len(scores)
    return {"mos": mean, "draws": len(scores)} if math.isfinite(mean) else Unavailable(NOT_FINITE)
