"""Tensors of a training loop on a GPU that is not there: the CPU's scores, and one wait for a side of a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny_speech
import tiny_whisper
import torch
from test_features import SmallDnsmos, voices

from codec_bench import load_metric
from codec_bench.api.load_metric import LoadedMetric
from codec_bench.features import load_feature
from codec_bench.features.utmos import Utmos
from codec_bench.networks.on_device import OnDevice

RATE_HZ = 16_000


def scores(metric, **tensors):
    return [row["si_sdr"] for row in metric(**tensors, sample_rate_hz=RATE_HZ)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [2, 9])
def test_a_batch_comes_in_one_transfer_however_many_items_it_has(there, dtype, count):
    reference = torch.randn(count, RATE_HZ, generator=torch.Generator().manual_seed(0)) / 10
    estimate = (reference + torch.roll(reference, 7, 1) / 10).to(dtype)
    estimate[0, 5] = torch.nan
    metric, lengths = load_metric("si_sdr", device="cpu"), torch.full((count,), 8_000)
    expected = scores(metric, estimate=estimate, reference=reference, lengths=lengths)
    estimate, reference, lengths = (values.to("cuda:0") for values in (estimate, reference, lengths))
    there.reset()
    assert scores(metric, estimate=estimate, reference=reference, lengths=lengths) == expected
    assert expected[0].status == "failed" and expected[1].status == "ok"
    assert sum(there.waits.values()) == 4  # for both sides and their lengths


class SmallUtmos(Utmos):
    """The feature with a small network."""

    __module__ = Utmos.__module__  # code of others gets copies of the signals

    def __init__(self, device):
        self.device, self._precision, self._net = device, "float32", None

    def load(self):
        if self._net is None:
            self._net = tiny_speech.small_utmos().to(self.device)


def test_what_is_on_the_gpu_of_a_network_is_not_sent_there_again(there, monkeypatch, tmp_path):
    weights = tmp_path / "utmos22_strong_step7459_v1.pt"
    weights.touch()
    signals, lengths = (
        torch.randn(3, 9_000, generator=torch.Generator().manual_seed(0)),
        torch.tensor([9_000, 5_200, 7_001]),
    )
    scored, uploads = {}, {}
    for device in ("cpu", "cuda:0"):
        monkeypatch.setattr("codec_bench.api.load_metric.load_feature", lambda *_, **__: SmallUtmos("cuda:0"))
        metric = LoadedMetric("utmos", device="cuda:0", weights=str(weights))
        inputs = {"estimate": signals.to(device), "lengths": lengths, "sample_rate_hz": RATE_HZ}
        metric(**inputs)  # loads the network
        there.reset()
        scored[device] = [row["utmos"].value for row in metric(**inputs)]
        uploads[device] = sum(there.uploads.values())
    assert scored["cuda:0"] == scored["cpu"] and None not in scored["cpu"]
    assert uploads["cuda:0"] == uploads["cpu"] - 1


def small_whisper(folder, device):
    tiny_whisper.write_transformers(folder, end=55.0)
    return load_feature("whisper-tiny@torch", device=device, weights=str(folder))


def small_dnsmos(**variant):
    def make(_, device):
        feature = SmallDnsmos(device)
        feature._variant = replace(feature._variant, **variant)
        return feature

    return make


FEATURES = {
    "whisper": small_whisper,
    "ge2e": lambda _, device: load_feature("ge2e", device=device),
    "ge2e-vad": lambda _, device: load_feature("ge2e-vad", device=device),
    "dnsmos": small_dnsmos(),
    "dnsmos first": small_dnsmos(windows="first"),
    "dnsmos peak": small_dnsmos(peak=True),
}


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_sends_no_signal_that_is_on_its_gpu(there, monkeypatch, tmp_path, name):
    monkeypatch.setattr("codec_bench.features.recognisers.whisper_network.MAX_LENGTH", 12)
    monkeypatch.setattr("codec_bench.features.recognisers.whisper.room", lambda _: 1e12)
    feature = FEATURES[name](tmp_path, "cuda:0")
    signals = [(wave * np.float32(0.02)).view(OnDevice) for wave in voices((9_001, 20_000, 150_000))]
    for signal in signals:
        signal.there = torch.from_numpy(np.array(signal)).to("cuda:0")
    results, uploads = [], []
    feature.compute([np.asarray(signals[0])])  # loads the network
    for batch in ([np.asarray(signal) for signal in signals], signals):
        there.reset()
        results.append(feature.compute(batch))
        uploads.append(sum(there.uploads.values()))
    np.testing.assert_equal(results[1], results[0])
    assert all(isinstance(result, dict) for result in results[0])
    assert uploads[1] == uploads[0] - 1


def test_a_slice_on_a_device_is_that_of_the_samples():
    samples = np.arange(10, dtype=np.float32)
    signal = samples.view(OnDevice)
    signal.there = torch.from_numpy(samples * 2)
    assert signal[2:5].there.tolist() == [4, 6, 8]
    assert all(one.there is None for one in (signal[::2], signal[::-1], signal + 1, signal.copy()))
