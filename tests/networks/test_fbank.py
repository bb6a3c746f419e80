"""Kaldi's filter bank of a padded batch is torchaudio's of each signal alone."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from codec_bench.networks.fbank import Fbank, halved  # noqa: E402
from codec_bench.networks.kaldi import num_frames, samples_of  # noqa: E402
from codec_bench.networks.speech_encoder import padded  # noqa: E402


@pytest.mark.parametrize(("window", "scale", "bands"), [("povey", 1.0, 80), ("hamming", 32_768.0, 24)])
def test_every_item_of_a_batch_is_torchaudios(window, scale, bands):
    from torchaudio.compliance.kaldi import fbank

    rng = np.random.default_rng(31)
    signals = [rng.normal(0.01, level, n).astype(np.float32) for level, n in ((0.1, 400), (0.003, 5039), (0.3, 9_999))]
    signals.append(np.zeros(4_000, np.float32))
    with torch.inference_mode():
        result, counts = Fbank(bands, window, scale)(*padded(signals, "cpu"))
    for got, count, signal in zip(result, counts, signals, strict=True):
        expected = fbank(torch.from_numpy(signal * scale)[None], num_mel_bins=bands, dither=0.0, window_type=window)
        expected = (expected - expected.mean(0)).T
        assert expected.shape[1] == count == num_frames(signal.size)
        np.testing.assert_allclose(got[:, :count], expected, atol=2e-5)
        assert not got[:, count:].any()
    assert float(result[2].abs().max()) > 1


def test_numbers_of_frames_of_numbers_and_of_tensors():
    samples = [0, 399, 400, 559, 560, 16_000]
    assert [num_frames(n) for n in samples] == num_frames(torch.tensor(samples)).tolist() == [0, 0, 1, 1, 2, 98]
    assert [num_frames(samples_of(frames)) for frames in (1, 2, 9)] == [1, 2, 9]
    assert [num_frames(samples_of(frames) - 1) for frames in (1, 2, 9)] == [0, 1, 8]
    assert [halved(n) for n in (1, 2, 3, 8, 9)] == [1, 1, 2, 4, 5]
