"""emotion2vec+ hears what FunASR's hears, and a batch changes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses
from tiny_speech import SmallEmotion2vec, write_emotion2vec

torch = pytest.importorskip("torch")

from codec_bench.audio.resample import prepare  # noqa: E402
from codec_bench.features import padded  # noqa: E402
from codec_bench.features.emotion2vec import EMOTIONS  # noqa: E402
from codec_bench.networks.emotion2vec import Emotion2vecConfig, Emotion2vecNet, head_slopes  # noqa: E402

EXPECTED = json.loads((Path(__file__).parents[1] / "golden" / "emotion2vec_small.json").read_text("utf-8"))
PUBLISHED = "f5f8f684302cf55fb399277a7446976a77f570816e7e3345a008e4d0b6774401"
"""The digest of the published file's names and shapes that a converter of it states, with the scales of distance flat.
"""


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch):
    """Puts all signals into one padded batch, as on a GPU, however different their lengths are."""
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return SmallEmotion2vec(weights=write_emotion2vec(tmp_path_factory.mktemp("emotion2vec")))


def voices(lengths):
    """Buzzes of changing level and other pitches, with noise and an offset."""
    rng = np.random.default_rng(12)
    out = []
    for length in lengths:
        time = np.arange(length) / 16_000
        level = np.interp(time, np.arange(40) / 20, rng.random(40))
        buzz = sum(np.sin(2 * np.pi * rng.uniform(80, 250) * k * time) / k for k in range(1, 9))
        out.append((0.1 * buzz * level + rng.normal(0.01, 0.01, length)).astype(np.float32))
    return out


def apart(one, two):
    return max(np.abs(one[key] - two[key]).max() / np.abs(one[key]).max() for key in ("embedding", "probabilities"))


@pytest.mark.compares("emotion2vec-plus-large", weights="stand-in")
def test_a_batch_is_what_funasr_transcribes_signal_by_signal(small, embedded):
    by_id = {sample.id: audio for sample, audio in embedded}
    signals = [prepare(by_id[clip["id"]], 16_000)[: clip["samples"]] for clip in EXPECTED["clips"]]
    for signal, clip in zip(signals, EXPECTED["clips"], strict=True):
        assert float((signal.astype(np.float64) ** 2).sum()) == pytest.approx(clip["sum_of_squares"], rel=1e-6)
    for result, clip in zip(small.compute(signals), EXPECTED["clips"], strict=True):
        assert apart({key: np.asarray(clip[key]) for key in result}, result) < 1e-5


def test_the_published_names_and_shapes():
    with torch.device("meta"):
        net = Emotion2vecNet(Emotion2vecConfig())
    digest = hashlib.sha256()
    for name, value in sorted(net.state_dict().items()):
        shape = [16] if name.endswith("alibi_scale") else list(value.shape)
        digest.update(name.encode() + b"\0" + b"".join(n.to_bytes(8, "little") for n in (len(shape), *shape)))
    assert digest.hexdigest() == PUBLISHED


def test_a_result_does_not_depend_on_the_batch(small):
    signals = voices([400, 719, 720, 8_000, 12_345, 23_999, 30_001])
    alone = [small.compute([signal])[0] for signal in signals]
    for one, result in zip(alone, small.compute(signals[::-1])[::-1], strict=True):
        assert result["embedding"].dtype == np.float32 and result["embedding"].shape == (48,)
        assert apart(one, result) < 1e-5
    assert min(apart(one, alone[-1]) for one in alone[:-1]) > 1e-3  # otherwise equality would prove little


def test_long_signals_are_attended_to_in_parts(small, monkeypatch):
    (signal,) = voices([9_000])
    complete = small.compute([signal])[0]
    monkeypatch.setattr("codec_bench.networks.emotion2vec.BIAS_ENTRIES", 1_000)
    assert apart(complete, small.compute([signal])[0]) < 1e-5


def test_the_distance_counts(small):
    """Without the bias of distance the result is another, so that equality with FunASR says that it is right."""
    (signal,) = voices([9_000])
    one = small.compute([signal])[0]
    slopes = small._net.d2v_model["modality_encoders"]["AUDIO"].slopes
    retained = slopes.clone()
    slopes.zero_()
    other = small.compute([signal])[0]
    slopes.copy_(retained)
    assert apart(one, other) > 1e-4


def test_slopes_are_powers_of_two_for_any_number_of_heads():
    assert head_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]
    assert head_slopes(16)[[0, 1, 15]].tolist() == pytest.approx([2**-0.5, 0.5, 2.0**-8])
    assert head_slopes(6).tolist() == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])


def test_what_has_no_result_says_why_and_harms_nobody(small):
    (fine,) = voices([5000])
    bad = [fine[:399], np.zeros(9000, np.float32), np.full(9000, np.nan, np.float32)]
    *reasons, result = small.compute([*bad, fine])
    diagnostics = [reason.args[0] for reason in reasons]
    assert [one.code for one in diagnostics] == ["signal_short", "signal_silent", "not_finite"]
    assert diagnostics[0].parameters["needed"] == 400
    assert apart(small.compute([fine])[0], result) < 1e-5
    assert result["probabilities"].sum() == pytest.approx(1, abs=1e-6) and len(EMOTIONS) == 9


def test_precisions_are_protocols_of_their_own(small):
    rough = SmallEmotion2vec(weights=small.weights, point="bfloat16")
    assert rough.protocol == "emotion2vec-plus-large/funasr-1.4/bfloat16-weights"
    (signal,) = voices([8_000])
    assert 0 < apart(small.compute([signal])[0], rough.compute([signal])[0]) < 0.2
    with refuses("no_point_of_metric", point="int8"):
        SmallEmotion2vec(weights=small.weights, point="int8")


def test_other_weights_are_refused_by_name(small, tmp_path):
    torch.save({"model": {"proj.bias": torch.zeros(9)}}, tmp_path / "other.pt")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing(".")}):
        SmallEmotion2vec(weights=str(tmp_path / "other.pt")).load()
    torch.save({"proj.bias": torch.zeros(9)}, tmp_path / "bare.pt")
    with refuses("no_weights_entry", key="model"):
        SmallEmotion2vec(weights=str(tmp_path / "bare.pt")).load()
