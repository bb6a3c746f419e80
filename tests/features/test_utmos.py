"""UTMOS22 against numbers of SpeechMOS with stand-in weights, and batches against signals alone."""

from __future__ import annotations

import json
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
import tiny_speech
from glides import glide
from hostile import Hostile
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, encoder_feature, load_feature, padded, utmos
from codec_bench.messages import Diagnostic

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "utmos22_strong.json").read_text("utf-8"))
TOLERANCE = EXPECTED["tolerance"]
FILE = "utmos22_strong_step7459_v1.pt"
FIELD = 400


class Small(utmos.Utmos):
    """The feature with a small network."""

    def _architecture(self):
        return tiny_speech.BASE

    def _network(self):
        from codec_bench.weights import load_into, load_state

        net = tiny_speech.small_utmos()
        load_into(net, load_state(self._path), path=self._path)
        return net


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory):
    """The weights of the small network."""
    import torch

    folder = tmp_path_factory.mktemp("utmos")
    torch.save(tiny_speech.small_utmos().state_dict(), folder / FILE)
    return folder


@pytest.fixture(scope="module")
def small(small_folder):
    return Small(weights=str(small_folder))


@pytest.fixture
def feature(tmp_path):
    """The published file's names and shapes with stand-in numbers, as a bare state dict."""
    import torch

    state = deterministic_weights.state_dict_from(GOLDEN / "utmos22_strong_keys.json")
    torch.save({name: torch.from_numpy(value) for name, value in state.items()}, tmp_path / FILE)
    deterministic_weights.release(state)  # 400 MB, which this frame would hold until the test ends
    feature = load_feature("utmos", weights=str(tmp_path))
    feature.load()
    (tmp_path / FILE).unlink()  # 400 MB
    return feature


def check_against_speechmos(feature, signals, clips, monkeypatch):
    # Puts all into one padded batch, as on a GPU, however different their lengths are.
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    for signal, clip in zip(signals, clips):
        assert signal.size == clip["samples"]
        assert float((signal.astype(np.float64) ** 2).sum()) == pytest.approx(clip["sum_of_squares"], rel=1e-6)
    seen = []
    hook = feature._net.wav2vec2.register_forward_hook(lambda module, options, out: seen.append(out))
    results = feature.compute(signals)
    hook.remove()
    for result, clip in zip(results, clips):
        assert result["utmos"] == pytest.approx(clip["score"], abs=TOLERANCE["score_absolute"])
        assert result["frames"] == clip["features"]["shape"][0]
    ((frames, counts),) = seen
    for values, count, clip in zip(frames.numpy(), counts, clips):
        actual, expected = values[:count], clip["features"]
        assert list(actual.shape) == expected["shape"]
        assert actual.mean(dtype=np.float64) == pytest.approx(
            expected["mean"], abs=TOLERANCE["features_mean_std_absolute"]
        )
        assert actual.std(dtype=np.float64) == pytest.approx(
            expected["std_population"], abs=TOLERANCE["features_mean_std_absolute"]
        )
        for row, key in ((actual[0], "first_4"), (actual[-1], "last_frame_first_4")):
            np.testing.assert_allclose(row[:4], expected[key], atol=TOLERANCE["features_absolute"])


@pytest.mark.compares("utmos", weights="stand-in")
def test_equals_speechmos_in_one_batch(feature, speech_set, spoken, monkeypatch):
    by_id = {row["id"]: audio for row, audio in spoken}
    clips = EXPECTED[speech_set]["clips"]
    signals = [prepare(by_id[clip["id"]], encoder_feature.RATE_HZ)[: clip["samples"]] for clip in clips]
    check_against_speechmos(feature, signals, clips, monkeypatch)


def test_too_short_is_unavailable_and_harms_nobody(small):
    fine = glide(8_000).samples[0]
    none, short, usable, shortest = small.compute(
        [np.zeros(0, np.float32), np.ones(FIELD - 1, np.float32), fine, fine[:FIELD]]
    )
    for result in (none, short):
        assert isinstance(result, Unavailable)
    assert str(short) == Diagnostic("signal_short", samples=399, model="UTMOS", needed=400)
    assert usable["utmos"] == pytest.approx(small.compute([fine])[0]["utmos"], rel=1e-5)
    assert shortest["frames"] == 1
    assert small.compute([]) == []


def test_a_score_that_is_no_number_is_none_and_harms_nobody(small):
    fine = glide(8_000).samples[0]
    none, usable = small.compute([np.full(8_000, np.nan, np.float32), fine])
    assert isinstance(none, Unavailable) and str(none) == Diagnostic("not_finite")
    assert usable["utmos"] == pytest.approx(small.compute([fine])[0]["utmos"], rel=1e-5)


def test_bfloat16_is_near_and_another_protocol(small_folder, small, embedded):
    rough = Small(weights=str(small_folder), point="bfloat16")
    assert rough.protocol == f"{small.protocol}/bfloat16-weights"
    signal = prepare(embedded[0][1], encoder_feature.RATE_HZ)[:20_000]
    exact = small.compute([signal])[0]["utmos"]
    (result,) = rough.compute([signal])
    assert 0 < abs(exact - result["utmos"]) < 0.05


def test_protocols_need_no_weights():
    assert utmos.Utmos.protocol_id() == "utmos22-strong/speechmos-1.2"
    assert utmos.Utmos.protocol_id("tf32") == "utmos22-strong/speechmos-1.2/tf32"
    with refuses("no_point_of_metric", point="int8"):
        utmos.Utmos.protocol_id("int8")


def test_missing_weights_explain_how_to_fetch_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS", raising=False)
    with refuses("weights_missing", hint="codec-bench weights fetch utmos22-strong"):
        load_feature("utmos")
    with refuses("weights_folder_lacks", names=FILE):
        load_feature("utmos", weights=str(tmp_path))


def test_files_of_something_else_are_one_sentence(tmp_path):
    import pickle

    import torch

    torch.save({"blstm.weight_ih_l0": torch.zeros(3)}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("not weights")
    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"blstm.weight_ih_l0": Hostile(tmp_path / "touched")}, protocol=2))
    for name in ("other.pt", "text.pt", "evil.pt"):
        with refuses("tensors_wrong|weights_not_read", path=name):
            load_feature("utmos", weights=str(tmp_path / name)).load()
    assert not (tmp_path / "touched").exists()


def test_importing_the_module_loads_no_torch():
    import subprocess
    import sys

    code = "import sys, codec_bench.features.utmos, codec_bench.metrics.predicted; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
