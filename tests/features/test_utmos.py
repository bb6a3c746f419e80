"""UTMOS22 against numbers of SpeechMOS with stand-in weights, and batches against signals alone."""

from __future__ import annotations

import json
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest

from codec_bench.audio.resample import prepare
from codec_bench.errors import UserError, WeightsError
from codec_bench.features import Unavailable, load_feature, utmos

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "utmos22_strong.json").read_text("utf-8"))
TOLERANCE = EXPECTED["tolerance"]
FILE = "utmos22_strong_step7459_v1.pt"
FIELD = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The published file's names and shapes with stand-in numbers, as a bare state dict."""
    import torch

    folder = tmp_path_factory.mktemp("utmos")
    state = deterministic_weights.state_dict_from(GOLDEN / "utmos22_strong_keys.json")
    torch.save({name: torch.from_numpy(value) for name, value in state.items()}, folder / FILE)
    yield folder
    (folder / FILE).unlink()  # 400 MB


@pytest.fixture(scope="module")
def feature(folder):
    feature = load_feature("utmos", weights=str(folder))
    feature.load()
    return feature


@pytest.fixture(scope="module")
def small():
    """The same network, small."""
    from codec_bench.networks.speech_encoder import EncoderConfig

    convolutions = ((24, 10, 5), *((24, 3, 2),) * 4, *((24, 2, 2),) * 2)
    config = EncoderConfig("group_norm", 32, 2, 4, 48, False, conv_layers=convolutions, conv_pos=16, conv_pos_groups=4)
    net = utmos.network(config, 24, 40)
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net


def voices(rng, lengths):
    """Noise of changing level, with an offset, at levels far apart."""
    signals = []
    for length in lengths:
        knots = rng.random(length // 800 + 2)
        level = np.interp(np.arange(length) / 800, np.arange(knots.size), knots)
        signals.append((10 ** rng.uniform(-3, 0) * (rng.normal(0.1, 1, length) * level)).astype(np.float32))
    return signals


def opinions(net, signals):
    import torch

    from codec_bench.networks.speech_encoder import padded

    with torch.inference_mode():
        return utmos.mean_opinions(net, *padded(signals, "cpu")).numpy()


def check_against_speechmos(feature, signals, clips, monkeypatch):
    # Puts all into one padded batch, as on a GPU, however different their lengths are.
    monkeypatch.setattr(utmos, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    for signal, clip in zip(signals, clips):
        assert signal.size == clip["samples"]
        assert float((signal.astype(np.float64) ** 2).sum()) == pytest.approx(clip["sum_of_squares"], rel=1e-6)
    seen = []
    hook = feature._net.wav2vec2.register_forward_hook(lambda module, given, out: seen.append(out))
    results = feature.compute(signals)
    hook.remove()
    for result, clip in zip(results, clips):
        assert result["utmos"] == pytest.approx(clip["score"], abs=TOLERANCE["score_absolute"])
        assert result["frames"] == clip["features"]["shape"][0]
    ((frames, counts),) = seen
    for values, count, clip in zip(frames.numpy(), counts, clips):
        own, expected = values[:count], clip["features"]
        assert list(own.shape) == expected["shape"]
        assert own.mean(dtype=np.float64) == pytest.approx(
            expected["mean"], abs=TOLERANCE["features_mean_std_absolute"]
        )
        assert own.std(dtype=np.float64) == pytest.approx(
            expected["std_population"], abs=TOLERANCE["features_mean_std_absolute"]
        )
        for row, key in ((own[0], "first_4"), (own[-1], "last_frame_first_4")):
            np.testing.assert_allclose(row[:4], expected[key], atol=TOLERANCE["features_absolute"])


def test_equals_speechmos_in_one_batch(feature, speech_set, spoken, monkeypatch):
    by_id = {row["id"]: audio for row, audio in spoken}
    clips = EXPECTED[speech_set]["clips"]
    signals = [prepare(by_id[clip["id"]], utmos.RATE_HZ)[: clip["samples"]] for clip in clips]
    check_against_speechmos(feature, signals, clips, monkeypatch)


def test_a_batch_equals_every_signal_alone(small):
    rng = np.random.default_rng(20)
    for _ in range(6):
        lengths = [FIELD, *rng.integers(FIELD, 30_000, 7)]
        rng.shuffle(lengths)
        signals = voices(rng, lengths)
        alone = np.concatenate([opinions(small, [signal]) for signal in signals])
        assert alone.std() > 1e-3  # otherwise equality would prove little
        np.testing.assert_allclose(opinions(small, signals), alone, rtol=1e-5)


def test_alone_it_is_the_mean_of_what_the_recurrent_network_says(small):
    """The definition, without packing or masks."""
    import torch

    rng = np.random.default_rng(21)
    for signal in voices(rng, [FIELD, 719, 720, 16_000, 16_320]):
        with torch.inference_mode():
            frames, _ = small.wav2vec2(torch.from_numpy(signal)[None], [signal.size])
            constants = [value.expand(frames.shape[1], -1)[None] for value in (small.domain_emb, small.judge_emb)]
            expected = small.projection(small.blstm(torch.cat([frames, *constants], 2))[0]).mean() * 2 + 3
        assert opinions(small, [signal])[0] == pytest.approx(float(expected), rel=1e-6)


def test_zeros_appended_to_a_signal_change_its_score(small):
    """The masks are needed: without a length, the network takes the padding for a part of the signal."""
    rng = np.random.default_rng(22)
    (signal,) = voices(rng, [12_000])
    apart = opinions(small, [signal]) - opinions(small, [np.pad(signal, (0, 12_000))])
    assert abs(float(apart[0])) > 1e-3


def test_what_lies_beyond_an_end_does_not_count(small):
    import torch

    rng = np.random.default_rng(23)
    (signal,) = voices(rng, [9_000])
    waves = torch.from_numpy(rng.normal(0, 10, (1, 20_000)).astype(np.float32))
    waves[0, :9_000] = torch.from_numpy(signal)
    with torch.inference_mode():
        found = utmos.mean_opinions(small, waves, [9_000])
    np.testing.assert_allclose(found.numpy(), opinions(small, [signal]), rtol=1e-5)


def test_too_short_is_unavailable_and_harms_nobody(feature):
    (fine,) = voices(np.random.default_rng(24), [8_000])
    none, short, heard, shortest = feature.compute(
        [np.zeros(0, np.float32), np.ones(FIELD - 1, np.float32), fine, fine[:FIELD]]
    )
    for result in (none, short):
        assert isinstance(result, Unavailable)
    assert str(short) == "the signal has 399 samples; UTMOS needs at least 400"
    assert heard["utmos"] == pytest.approx(feature.compute([fine])[0]["utmos"], rel=1e-5)
    assert shortest["frames"] == 1
    assert feature.compute([]) == []


def test_bfloat16_is_near_and_another_protocol(folder, feature, embedded):
    rough = load_feature("utmos@bfloat16", weights=str(folder))
    assert rough.protocol == f"{feature.protocol}/bfloat16"
    signal = prepare(embedded[0][1], utmos.RATE_HZ)[:20_000]
    exact, found = (each.compute([signal])[0]["utmos"] for each in (feature, rough))
    assert 0 < abs(exact - found) < 0.05


def test_protocols_need_no_weights():
    assert utmos.Utmos.protocol_id() == "utmos22-strong/speechmos-1.2"
    assert utmos.Utmos.protocol_id("tf32") == "utmos22-strong/speechmos-1.2/tf32"
    with pytest.raises(UserError, match="@float16"):
        utmos.Utmos.protocol_id("float16")


def test_missing_weights_say_how_to_fetch_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS", raising=False)
    with pytest.raises(WeightsError, match="codec-bench weights fetch utmos22-strong"):
        load_feature("utmos")
    with pytest.raises(WeightsError, match=FILE):
        load_feature("utmos", weights=str(tmp_path))


def test_files_of_something_else_are_one_sentence(tmp_path):
    import pickle

    import torch

    class Payload:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    torch.save({"blstm.weight_ih_l0": torch.zeros(3)}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("not weights")
    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"blstm.weight_ih_l0": Payload()}, protocol=2))
    for name in ("other.pt", "text.pt", "evil.pt"):
        with pytest.raises(WeightsError, match=name):
            load_feature("utmos", weights=str(tmp_path / name)).load()
    assert not (tmp_path / "touched").exists()


def test_importing_the_module_loads_no_torch():
    import subprocess
    import sys

    code = "import sys, codec_bench.features.utmos, codec_bench.metrics.utmos; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
