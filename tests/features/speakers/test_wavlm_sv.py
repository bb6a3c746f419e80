"""The speaker embedding is seed-tts-eval's own, and a batch changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
from refusals import Containing, refuses
from tiny_speech import SmallWavlmSv, published

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from codec_bench.audio.resample import prepare  # noqa: E402
from codec_bench.features import Unavailable  # noqa: E402
from codec_bench.features import padded as padded_batches  # noqa: E402
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv  # noqa: E402
from codec_bench.networks.ecapa import EcapaTdnn  # noqa: E402
from codec_bench.networks.speech_encoder import padded, standardised  # noqa: E402

GOLDEN = Path(__file__).parents[2] / "golden"
FILE = "wavlm_large_finetune.pth"


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch):
    """Puts all signals into one padded batch, as on a GPU, however different their lengths are."""
    monkeypatch.setattr(padded_batches, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    return published(
        deterministic_weights.stand_in(SmallWavlmSv._architecture(None)), tmp_path_factory.mktemp("small") / FILE
    )


@pytest.fixture(scope="module")
def small(small_file):
    return SmallWavlmSv(weights=small_file)


def voices(rng, lengths):
    """Buzzes of other pitches and timbres, with noise."""
    time = np.arange(max(lengths)) / 16_000
    out = []
    for n in lengths:
        f0, tilt = rng.uniform(80, 250), rng.uniform(0.5, 2)
        buzz = sum(np.sin(2 * np.pi * f0 * k * time[:n]) / k**tilt for k in range(1, 12))
        out.append((0.1 * buzz + rng.normal(0, 0.02, n)).astype(np.float32))
    return out


def plain_head(state, frames):
    """The head as its reference computes it: one item `(width, frames)` at a time, nothing masked."""

    def conv(x, name, **options):
        return F.conv1d(x, state[f"{name}.weight"], state[f"{name}.bias"], **options)

    def norm(x, name):
        retained = (state[f"{name}.{item}"] for item in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, *retained)

    def block(x, name, dilation):
        y = norm(F.relu(conv(x, f"{name}.Conv1dReluBn1.conv")), f"{name}.Conv1dReluBn1.bn")
        parts, done = y.chunk(8, 1), []
        for k, item in enumerate(parts[:-1]):
            inner = f"{name}.Res2Conv1dReluBn"
            y = F.relu(
                conv(item + (done[-1] if done else 0), f"{inner}.convs.{k}", padding=dilation, dilation=dilation)
            )
            done.append(norm(y, f"{inner}.bns.{k}"))
        y = torch.cat([*done, parts[-1]], 1)
        y = norm(F.relu(conv(y, f"{name}.Conv1dReluBn2.conv")), f"{name}.Conv1dReluBn2.bn")
        first, second = ([state[f"{name}.SE_Connect.linear{k}.{p}"] for p in ("weight", "bias")] for k in (1, 2))
        return x + y * F.linear(F.relu(F.linear(y.mean(2), *first)), *second).sigmoid()[..., None]

    x = F.instance_norm(frames[None])
    x = norm(F.relu(conv(x, "layer1.conv", padding=2)), "layer1.bn")
    outs = []
    for name, dilation in (("layer2", 2), ("layer3", 3), ("layer4", 4)):
        outs.append(x := block(x, name, dilation))
    x = F.relu(conv(torch.cat(outs, 1), "conv"))
    alpha = conv(torch.tanh(conv(x, "pooling.linear1")), "pooling.linear2").softmax(2)
    mean = (alpha * x).sum(2)
    deviation = ((alpha * x**2).sum(2) - mean**2).clamp(min=1e-9).sqrt()
    return F.linear(norm(torch.cat([mean, deviation], 1), "bn"), state["linear.weight"], state["linear.bias"])[0]


def test_the_head_of_a_batch_is_the_plain_one_item_by_item(rng):
    head = EcapaTdnn(16, channels=32, pooled=48, embedding=20).eval()
    head.load_state_dict(state := deterministic_weights.stand_in(head))
    counts = [30, 2, 3, 9, 57, 17]
    frames = torch.from_numpy(rng.normal(0, 1, (6, 57, 16)).astype(np.float32)).cumsum(1)
    with torch.inference_mode():
        ours = head.embed(frames, counts)
        for item, count in enumerate(counts):
            expected = plain_head(state, frames[item, :count].T)
            assert float((ours[item] - expected).abs().max() / expected.abs().max()) < 1e-5


def test_an_embedding_is_the_plain_head_over_the_weighted_hidden_states(small, rng):
    """The parts as the reference puts them together; its own numbers are those of the full size, below."""
    (item,) = voices(rng, (8000,))
    result = small.compute([item])[0]["embedding"]
    state = small._net.state_dict()
    wave = torch.from_numpy(item)[None]
    with torch.inference_mode():
        states = list(
            small._net.feature_extract["model"].hidden_states(F.layer_norm(wave, wave.shape, eps=1e-5), [8000])
        )
        weights = state["feature_weight"].softmax(0)
        mixed = sum(weight * hidden[0] for weight, hidden in zip(weights, states, strict=True)) + 1e-6
        expected = plain_head(state, mixed.T).numpy()
    assert np.abs(result - expected).max() < 1e-5 * np.abs(expected).max()


def test_an_embedding_does_not_depend_on_the_batch(small, rng):
    items = voices(rng, [720, 1039, 1040, *rng.integers(800, 24_000, 8).tolist()])
    alone = [small.compute([item])[0]["embedding"] for item in items]
    order = rng.permutation(len(items))
    together = small.compute([items[k] for k in order])
    for index, k in enumerate(order):
        result = together[index]["embedding"]
        assert result.dtype == np.float32 and result.shape == (20,)
        assert np.abs(result - alone[k]).max() < 1e-5 * np.abs(alone[k]).max()
    assert max(np.abs(alone[k] - alone[0]).max() / np.abs(alone[0]).max() for k in range(3, 11)) > 1e-2


def test_on_a_cpu_a_batch_in_parts_is_the_whole_batch(small, rng, monkeypatch):
    items = voices(rng, [8000, 30_000, 7900, 800, 64_000, 7990, 820])
    complete = small.compute(items)
    monkeypatch.undo()
    for one, two in zip(complete, small.compute(items), strict=True):
        assert np.abs(one["embedding"] - two["embedding"]).max() < 1e-5 * np.abs(one["embedding"]).max()


def test_an_embedding_does_not_depend_on_level_or_offset(small, rng):
    (item,) = voices(rng, (8000,))
    one, two = (small.compute([x])[0]["embedding"] for x in (item, 0.25 * item + 0.1))
    assert np.abs(one - two).max() < 2e-3 * np.abs(one).max()  # the eps of the standardisation


def test_what_has_no_embedding_says_why_and_harms_nobody(small, rng):
    (item,) = voices(rng, (5000,))
    bad = [np.zeros(0, np.float32), item[:719], np.zeros(9000, np.float32), np.full(9000, 0.5, np.float32)]
    loud = np.full(9000, np.nan, np.float32)
    results = small.compute([bad[0], item, *bad[1:], loud])
    assert [isinstance(r, Unavailable) for r in results] == [True, False, True, True, True, True]
    reasons = [r.args[0] for r in results if isinstance(r, Unavailable)]
    assert [(reason.parameters["samples"], reason.parameters["needed"]) for reason in reasons[:2]] == [
        (0, 720),
        (719, 720),
    ]
    codes = [reason.code for reason in reasons]
    assert codes == ["signal_short"] * 2 + ["signal_silent"] * 2 + ["encoder_not_finite"]
    alone = small.compute([item])[0]["embedding"]
    assert np.abs(results[1]["embedding"] - alone).max() < 1e-5 * np.abs(alone).max()
    assert small.compute([]) == []


def test_precisions_are_protocols_of_their_own(small_file, small, rng):
    items = voices(rng, (12_000, 8_000))
    rough = SmallWavlmSv(weights=small_file, point="bfloat16")
    assert small.protocol == "wavlm-large-sv/seed-tts-eval"
    assert rough.protocol == "wavlm-large-sv/seed-tts-eval/bfloat16-weights"
    assert SmallWavlmSv(weights=small_file, point="tf32").protocol.endswith("/tf32")
    for one, two in zip(small.compute(items), rough.compute(items), strict=True):
        a, b = one["embedding"], two["embedding"]
        assert b.dtype == np.float32
        assert 0 < np.linalg.norm(a - b) / np.linalg.norm(a) < 0.1
    with refuses("no_point_of_metric", point="int8"):
        SmallWavlmSv(weights=small_file, point="int8")


@pytest.mark.gpu
def test_a_gpu_gives_the_same_embeddings(small_file, small, rng):
    items = voices(rng, (720, 8000, 30_000, 12_345))
    results = SmallWavlmSv(device="cuda:0", weights=small_file).compute(items)
    for one, two in zip(small.compute(items), results, strict=True):
        assert np.abs(one["embedding"] - two["embedding"]).max() < 1e-4 * np.abs(one["embedding"]).max()


def test_other_weights_are_refused_by_name(small_file, tmp_path, monkeypatch):
    state = deterministic_weights.stand_in(SmallWavlmSv._architecture(None))
    lacking = {name: value for name, value in state.items() if name != "linear.bias"}
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("linear.bias")}):
        SmallWavlmSv(weights=published(lacking, tmp_path / "lacking.pth")).load()
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "extra": Containing("head.weight")}):
        SmallWavlmSv(weights=published({**state, "head.weight": torch.zeros(1)}, tmp_path / "more.pth")).load()
    torch.save(state, tmp_path / "bare.pth")
    with refuses("no_weights_entry", key="model"):
        SmallWavlmSv(weights=str(tmp_path / "bare.pth")).load()
    (tmp_path / "cut.pth").write_bytes(Path(small_file).read_bytes()[:5000])
    with refuses("weights_not_read"):
        SmallWavlmSv(weights=str(tmp_path / "cut.pth")).load()
    for name in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    with refuses("weights_missing", hint="codec-bench weights fetch wavlm-large-sv"):
        WavlmLargeSv()


def test_the_published_names_and_shapes():
    keys = json.loads((GOLDEN / "wavlm_large_sv_keys.json").read_text("utf-8"))
    with torch.device("meta"):
        net = WavlmLargeSv._architecture(None)
    assert {name: list(value.shape) for name, value in net.state_dict().items()} == keys


@pytest.fixture(scope="module")
def expected(speech_set):
    """What seed-tts-eval's own code gave for the same weights and clips."""
    facts = json.loads((GOLDEN / "wavlm_large_sv.json").read_text("utf-8"))
    if speech_set == "embedded":
        facts.update(json.loads((GOLDEN / "embedded_speech.json").read_text("utf-8"))["wavlm_large_sv"])
    return facts


@pytest.fixture(scope="module")
def clips(expected, spoken):
    by_id = {row["id"]: audio for row, audio in spoken}
    results = [prepare(by_id[clip["input"]["id"]], expected["sample_rate"]) for clip in expected["clips"]]
    for wave, clip in zip(results, expected["clips"], strict=True):
        assert wave.size == clip["input"]["samples"]
        assert float(wave.astype(np.float64).sum()) == pytest.approx(clip["input"]["sum"], abs=1e-5)
    return results


@pytest.fixture(scope="module")
def feature(tmp_path_factory):
    state = {
        k: torch.from_numpy(v)
        for k, v in deterministic_weights.state_dict_from(GOLDEN / "wavlm_large_sv_keys.json").items()
    }
    path = tmp_path_factory.mktemp("full") / FILE
    feature = WavlmLargeSv(weights=published(state, path))
    del state
    feature.load()
    path.unlink()  # 1.3 GB
    return feature


@pytest.mark.compares("wavlm-large-sv", weights="stand-in")
@pytest.mark.long
def test_full_size_embeddings_of_a_batch_and_their_cosine(feature, clips, expected):
    results = [result["embedding"] for result in feature.compute(clips)]
    for embedding, clip in zip(results, expected["clips"], strict=True):
        assert np.abs(embedding - np.asarray(clip["expected"]["embedding"])).max() < 1e-5
    cosine = float(F.cosine_similarity(*(torch.from_numpy(x)[None] for x in results)))
    assert cosine == pytest.approx(expected["cosine"], abs=expected["tolerance"]["cosine_absolute"])


@pytest.mark.long
def test_full_size_hidden_states(feature, clips, expected):
    requested, tolerance = expected["clips"][0]["expected"], expected["tolerance"]
    with torch.inference_mode():
        waves, lengths = padded(clips[:1], "cpu")
        states = list(feature._net.feature_extract["model"].hidden_states(standardised(waves, lengths, 1e-5), lengths))
    assert len(states) == requested["hidden_states"]["count"]
    assert list(states[0].shape) == requested["hidden_states"]["shape"]
    for index, values in requested["hidden_states"]["first_frame_first_4"].items():
        result = states[int(index)][0, 0, :4].numpy()
        assert np.abs(result - values).max() < tolerance["hidden_states_absolute"]
    for index, (mean, deviation) in requested["hidden_states"]["mean_std_population"].items():
        state = states[int(index)]
        assert float(state.mean()) == pytest.approx(mean, abs=1e-6)
        assert float(state.std(correction=0)) == pytest.approx(deviation, abs=1e-5)
