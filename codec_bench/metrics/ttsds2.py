"""Benchmarks of TTSDS2: are estimates nearer to references or to noise?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from codec_bench.features.ttsds2 import NOISE, NOISE_PROTOCOL, Ttsds2Pitch
from codec_bench.features.ttsds2_activations import Ttsds2Wav2vec2, Ttsds2Whisper
from codec_bench.metrics.base import FeatureMetric, Inputs
from codec_bench.stats.embeddings import KEY, pack_embeddings
from codec_bench.stats.ttsds import score_of
from codec_bench.types import Score

PAPER = "Minixhofer, Klejch, Bell: TTSDS2, arXiv 2506.19441, 2025; the same: TTSDS, SLT 2024"


class _Ttsds2(FeatureMetric):
    """Base class of the benchmarks.

    An item's own value is the score of its three points, by squared Euclidean distances: 100 at the reference, 0 at a
    noise.
    """

    kind = "pair"
    takes_prompt = True
    range = (0.0, 100.0)
    aggregate = "ttsds"
    paper = PAPER
    feature: ClassVar[str]
    stem: ClassVar[str]
    distance: ClassVar[str]

    def __init__(self) -> None:
        self._noise = f"{self.feature}[{NOISE}]"
        self.estimate_features, self.reference_features = (self.feature,), (self.feature, self._noise)
        self.protocol = f"{self.name}/pairs/{self.distance}/{self.stem}/{NOISE}-{NOISE_PROTOCOL}"

    def _score(self, item: Inputs) -> Score:
        """Score one item by its distances from the reference and from sets of noise.

        The embeddings are stored in `detail` for the value of the set.
        """
        reference, estimate = (np.asarray(result["embedding"], np.float32) for result in item.features(self.feature))
        noise = np.asarray(item.reference_features[self._noise]["embedding"], np.float32)
        distances = [float(((estimate.astype(np.float64) - other) ** 2).sum()) for other in (reference, *noise)]
        # An estimate that is both its reference and a noise is no speech, and neither was its reference.
        value = score_of(distances[0], distances[1:]) or 0.0
        return Score.ok(value, self.protocol, detail={KEY: pack_embeddings(reference, estimate, *noise)})


class Ttsds2PitchScore(_Ttsds2):
    """TTSDS2's `pitch`, on mean pitches. Higher is better; 100 is the references' set.

    `100 n / (n + r)`: `r` is the 2-Wasserstein distance in Hz of the estimates' mean pitches from the references', `n`
    that from the nearest of four sets of noise (uniform, normal, ones, zeros) of the same size and lengths. A value of
    the whole set, of at least 2 items. It is one of four benchmarks of prosody.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("ttsds2_pitch")(reference=[clip], estimate=[coarse])[0]["ttsds2_pitch"].value)
        100
    """

    name = "ttsds2_pitch"
    feature, stem = Ttsds2Pitch.name, Ttsds2Pitch.stem
    distance = "wasserstein-2"
    source = "ttsds 2.1.3 PitchBenchmark and wasserstein_distance on the same noise, to 1e-6"


class Ttsds2Wav2vec2Score(_Ttsds2):
    """TTSDS2's `wav2vec2_activations`. Higher is better; 100 is the references' set.

    `100 n / (n + r)`: `r` is the Fréchet distance of wav2vec2-base-960h's mean last hidden states over the estimates
    from those over the references, `n` that from the nearest of four sets of noise, as for `ttsds2_pitch`. A value of
    the whole set, of at least 2 items; with fewer items than dimensions (768) it depends on the size of the set.
    """

    name = "ttsds2_wav2vec2"
    feature, stem = Ttsds2Wav2vec2.name, Ttsds2Wav2vec2.stem
    distance = "frechet"
    source = "ttsds 2.1.3 Wav2Vec2ActivationsBenchmark, to 1e-5, and frechet_distance on the same noise, to 1e-6"


class Ttsds2WhisperScore(_Ttsds2):
    """TTSDS2's `whisper_activations`. Higher is better; 100 is the references' set.

    As `ttsds2_wav2vec2`, of the averaged hidden states of whisper-small.en's encoder (1,500 dimensions). The mean of
    the two is TTSDS2's factor intelligibility.
    """

    name = "ttsds2_whisper"
    feature, stem = Ttsds2Whisper.name, Ttsds2Whisper.stem
    distance = "frechet"
    source = "ttsds 2.1.3 WhisperActivationsBenchmark, to 1e-5, and frechet_distance on the same noise, to 1e-6"
