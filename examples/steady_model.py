"""The likelihood of audio, by a model that expects each frame to repeat."""

import numpy as np

from codec_bench import ModelInfo
from codec_bench.models.likelihood import LikelihoodModel


class SteadyModel(LikelihoodModel):
    """Predicts the spectrum of 100 ms from the 100 ms before.

    The error is normal, with 6 dB in each of 20 bands.
    """

    info = ModelInfo("steady", outputs=("likelihood",))

    @property
    def identity(self):
        """Whatever changes a likelihood; also whether it is a sum or a mean."""
        return {"version": 1, "likelihood": "mean over frames and bands"}

    def log_likelihood(self, request):
        """The mean logarithm of the probability density, in nats; 0 dB is full scale."""
        audio, _ = request.fields["audio"].signal(16000)
        samples = audio.samples[0]
        frames = samples[: len(samples) // 1600 * 1600].reshape(-1, 1600)
        power = np.abs(np.fft.rfft(frames * np.hanning(1600))) ** 2
        bands = np.stack([band.mean(axis=1) for band in np.array_split(power, 20, axis=1)], axis=1)
        steps = np.diff(10 * np.log10(bands + 1e-6), axis=0) / 6
        return -0.5 * np.mean(steps**2) - np.log(6 * np.sqrt(2 * np.pi))
