"""Metrics in training code: tensors, one value for all or per item, bad items, torchmetrics over processes."""

from __future__ import annotations

import pickle
import runpy
import socket
import sys
from pathlib import Path

import forked
import numpy as np
import pytest
import torch
from refusals import refuses

from codec_bench import load_metric
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

RATE = 16_000


@pytest.fixture(scope="module", autouse=True)
def _torchmetrics():
    """Imports torchmetrics with the first test: every process that collects the tests would wait for it."""
    global TorchMetric, scale_invariant_signal_distortion_ratio
    from torchmetrics.functional.audio import scale_invariant_signal_distortion_ratio

    from codec_bench.torchmetrics import TorchMetric


def _batch(count=3, seed=0):
    """Sounds `(count, samples)` with their references, the estimates 20 dB noisier each."""
    random = torch.Generator().manual_seed(seed)
    reference = torch.randn(count, RATE, generator=random) / 10
    noise = torch.randn(count, RATE, generator=random) / 10
    return reference + noise * torch.tensor([0.1, 0.3, 0.9])[:count, None], reference


def _values(scores, name="si_sdr"):
    return [row[name].value for row in scores]


def _expected(estimate, reference):
    return [float(scale_invariant_signal_distortion_ratio(a, b)) for a, b in zip(estimate.double(), reference.double())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_tensors_of_any_float_type_with_or_without_gradient(dtype):
    estimate, reference = _batch()
    options = estimate.to(dtype).requires_grad_(True)
    result = load_metric("si_sdr")(estimate=list(options), reference=list(reference.to(dtype)), sample_rate_hz=RATE)
    assert _values(result) == pytest.approx(_expected(options.detach(), reference.to(dtype)), abs=1e-3)
    assert options.grad is None and options.requires_grad


def test_shapes():
    estimate, reference = _batch()
    expected = _expected(estimate, reference)
    metric = load_metric("si_sdr")
    lengths = torch.full((3,), RATE)
    one = metric(estimate=estimate[0], reference=reference[0], sample_rate_hz=RATE)
    stereo = metric(estimate=estimate[:1].repeat(2, 1), reference=reference[:1].repeat(2, 1), sample_rate_hz=RATE)
    batch = metric(estimate=estimate, reference=reference, lengths=lengths, sample_rate_hz=RATE)
    channels = metric(estimate=estimate[:, None], reference=reference[:, None], sample_rate_hz=RATE)
    arrays = metric(estimate=list(estimate.numpy()), reference=list(reference.numpy()), sample_rate_hz=RATE)
    assert _values(one) == _values(stereo) == pytest.approx(expected[:1], abs=1e-3)
    assert _values(batch) == _values(channels) == _values(arrays) == pytest.approx(expected, abs=1e-3)


def test_padding_is_not_scored():
    estimate, reference = _batch()
    padded = torch.cat([estimate, torch.full((3, 4000), 0.5)], 1)
    result = load_metric("si_sdr")(estimate=padded, reference=reference, lengths=[RATE] * 3, sample_rate_hz=RATE)
    assert _values(result) == pytest.approx(_expected(estimate, reference), abs=1e-3)


def test_a_bad_item_fails_and_the_others_have_their_scores():
    estimate, reference = _batch()
    estimate[1, 7] = float("nan")
    result = load_metric("si_sdr,snr")(estimate=list(estimate), reference=list(reference), sample_rate_hz=RATE)
    assert [row["si_sdr"].status for row in result] == ["ok", "failed", "ok"] == [row["snr"].status for row in result]
    complete = _expected(estimate, reference)
    assert [result[0]["si_sdr"].value, result[2]["si_sdr"].value] == pytest.approx([complete[0], complete[2]], abs=1e-3)
    integers = load_metric("snr")(estimate=[(estimate[0] * 100).int()], reference=[reference[0]], sample_rate_hz=RATE)
    assert integers[0]["snr"].status == "failed"


def test_texts_and_languages_are_one_for_all_or_one_each():
    sound = Audio(np.zeros(RATE), RATE)
    metric = load_metric("wer[pocketsphinx]")
    one = metric(estimate=[sound] * 2, text="hello", language="en")
    each = metric(estimate=[sound] * 2, text=["hello", "hello"], language=["en", "de"])
    assert [row["wer[pocketsphinx]"].status for row in each][1] == "refused"
    assert one[0]["wer[pocketsphinx]"] == one[1]["wer[pocketsphinx]"] == each[0]["wer[pocketsphinx]"]
    custom = load_metric(f"{Path(__file__).parent / 'assets' / 'custom_metric.py'}:SpeakerLength")
    for speaker, expected in (("anna", [4, 4]), (["anna", "li"], [4, 2])):
        rows = custom(estimate=[sound] * 2, speaker=speaker)
        assert [score.value for row in rows for score in row.values()] == expected
    with refuses("item_count", items=3, name="text", count=2):
        metric(estimate=[sound] * 2, text=["a"] * 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"estimate": torch.zeros(64, 100)}, {"code": "shape_of_channels", "hint": "lengths="}),
        ({"estimate": torch.zeros(100), "sample_rate_hz": None}, {"code": "no_rate_stated"}),
        (
            {"estimate": torch.zeros(2, 100), "lengths": [100]},
            {"code": "item_count", "items": 1, "name": "lengths", "count": 2},
        ),
        ({"estimate": torch.zeros(2, 100), "lengths": [100, 101]}, {"code": "length_beyond", "length": 101}),
        ({"estimate": "a.wav"}, {"code": "item_type", "expected": "sounds"}),
        ({"estimate": [3]}, {"code": "item_type", "expected": "sound"}),
        ({"estimate": torch.zeros(1, 2, 3, 4)}, {"code": "shape_unexpected"}),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, says):
    with refuses(**says):
        load_metric("snr")(**{"sample_rate_hz": RATE, **arguments})


# torchmetrics


def _update(metric, estimate, reference):
    metric.update(estimate, reference)


@pytest.mark.parametrize("name", ["si_sdr", "snr", "stoi"])
def test_updates_add_up_to_the_mean_of_all_items(name):
    estimate, reference = _batch()
    metric = TorchMetric(name, sample_rate_hz=RATE, device="cpu")
    for n in range(3):
        _update(metric, estimate[n : n + 1], reference[n : n + 1])
    scores = load_metric(name, device="cpu")(estimate=list(estimate), reference=list(reference), sample_rate_hz=RATE)
    assert float(metric.compute()) == pytest.approx(np.mean(_values(scores, name)), rel=1e-12)
    metric.reset()
    _update(metric, estimate[:1], reference[:1])
    assert float(metric.compute()) == pytest.approx(scores[0][name].value, rel=1e-12)
    copies = [metric.clone(), pickle.loads(pickle.dumps(metric))]
    assert [float(copy.compute()) for copy in copies] == [float(metric.compute())] * 2
    forward = metric(list(estimate[1:2]), list(reference[1:2]))
    assert float(forward) == pytest.approx(scores[1][name].value, rel=1e-12)
    assert torch.jit.script(metric)  # as torchmetrics' own harness does


def test_several_names_give_several_values_and_failures_are_counted():
    estimate, reference = _batch()
    estimate[0, 0] = float("inf")
    metric = TorchMetric("si_sdr,snr", sample_rate_hz=RATE, device="cpu")
    _update(metric, estimate, reference)
    assert set(metric.compute()) == {"si_sdr", "snr"} and metric.failures.tolist() == [1, 1]
    with pytest.raises(UserError, match="fad"):
        TorchMetric("fad[ge2e]", sample_rate_hz=RATE)


def test_a_batch_in_the_other_order_is_refused():
    estimate, reference = _batch()
    metric = TorchMetric("si_sdr", sample_rate_hz=RATE, device="cpu")
    with refuses("batch_of_tiny_items", side="estimate", items=RATE, samples=3):
        metric.update(estimate.T, reference.T)
    assert metric.failures.tolist() == [0]


def test_processes_are_joined_by_their_sums(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.save(_batch(), tmp_path / "batch.pt")
    script = Path(__file__).parent / "assets" / "one_rank.py"
    more = [str(port), "si_sdr", str(tmp_path / "batch.pt")]
    other = forked.start([sys.executable, str(script), "1", *more], cwd=tmp_path)
    here = runpy.run_path(str(script))["value"](0, *more)
    results = [here, float(other.communicate(timeout=300)[0])]
    assert results == pytest.approx([np.mean(_expected(*_batch()))] * 2, abs=1e-3)


# ------------------------------------------------------------------------------------------------------------- own code


def test_a_package_in_the_current_folder_is_loaded(tmp_path, monkeypatch):
    from codec_bench.config.registry import declared_methods, load_attribute

    package = tmp_path / "mypkg_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    source = "class RVQ:\n    def encode(self, batch): ...\n    def decode(self, codes): ...\n"
    (package / "codec.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert {"encode", "decode"} <= declared_methods("mypkg_of_a_test.codec:RVQ")
    built = load_attribute("mypkg_of_a_test.codec:RVQ")
    assert built.__name__ == "RVQ" and Path(built.encode.__code__.co_filename).parent == package
