"""The encoder equals s3prl's and transformers' layer by layer, and a batch changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
import tiny_speech

torch = pytest.importorskip("torch")

from codec_bench.networks import speech_transformer as module  # noqa: E402
from codec_bench.networks.half_precision import reduce_weights  # noqa: E402
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAVLM_LARGE, EncoderConfig  # noqa: E402
from codec_bench.networks.speech_encoder import SpeechEncoder, fairseq_name, padded, standardised  # noqa: E402
from codec_bench.networks.speech_transformer import distance_buckets  # noqa: E402

GOLDEN = Path(__file__).parents[1] / "golden"
CONVS = ((24, 10, 5), *((24, 3, 2),) * 4, *((24, 2, 2),) * 2)
LARGE = EncoderConfig("layer_norm", 32, 3, 4, 64, True, CONVS, conv_pos=16, conv_pos_groups=2, relative_buckets=320)
BASE = replace(LARGE, extractor="group_norm", pre_norm=False)
PLAIN = replace(BASE, relative_buckets=0)
XLSR = replace(LARGE, relative_buckets=0, conv_bias=True)
KINDS = {"wavlm-large": LARGE, "wavlm-base": BASE, "wav2vec2-base": PLAIN, "xlsr": XLSR}
LENGTHS = (9001, 400, 719, 720, 16000, 5003, 1999)


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


@pytest.fixture(params=KINDS)
def config(request) -> EncoderConfig:
    return KINDS[request.param]


def filled(net):
    """The module with stand-in weights; they are of the size of trained ones, so that every part counts."""
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net.eval()


def signals(rng, lengths=LENGTHS):
    return [rng.normal(0.02, 0.1, n).astype(np.float32) for n in lengths]


def worst(ours, theirs) -> float:
    """The largest difference, relative to the largest number."""
    return float((ours - theirs).abs().max() / theirs.abs().max())


def s3prl_states(config: EncoderConfig, state):
    """A function of one wave `(1, samples)` to the hidden states of s3prl's network with these weights."""
    pytest.importorskip("s3prl")
    net = tiny_speech.s3prl_net(config, state)
    inputs: list[torch.Tensor] = []
    for layer in net.encoder.layers:
        layer.register_forward_hook(lambda _, arguments, __: inputs.append(arguments[0].transpose(0, 1)))

    def states(wave):
        inputs.clear()
        features = net.extract_features(wave, padding_mask=None, mask=False)
        last = features[0] if isinstance(features, tuple) else features["x"]
        return [*(hidden[:, : last.shape[1]] for hidden in inputs), last]

    return states


def test_every_hidden_state_of_a_batch_is_that_of_s3prl_one_by_one(config, rng):
    net = filled(SpeechEncoder(config))
    theirs = s3prl_states(config, net.state_dict())
    waves, lengths = padded(signals(rng), "cpu")
    ours = list(net.hidden_states(waves, lengths))
    assert len(ours) == config.layers + 1
    for item, length in enumerate(lengths):
        expected = theirs(waves[item : item + 1, :length])
        frames = config.frames(length)
        for state, reference in zip(ours, expected, strict=True):
            assert reference.shape[1] == frames
            assert worst(state[item, :frames], reference[0]) < 1e-5


@pytest.mark.parametrize(
    ("kind", "name"), [("wavlm-base", "WavLM"), ("wav2vec2-base", "Wav2Vec2"), ("xlsr", "Wav2Vec2")]
)
def test_the_last_hidden_state_of_a_batch_is_that_of_transformers_one_by_one(kind, name, rng):
    transformers = pytest.importorskip("transformers")
    ours = KINDS[kind]
    facts = dict(
        hidden_size=ours.width, num_hidden_layers=ours.layers, num_attention_heads=ours.heads,
        intermediate_size=ours.feed_forward, do_stable_layer_norm=ours.pre_norm, conv_bias=ours.conv_bias,
        feat_extract_norm=ours.extractor.split("_")[0], num_conv_pos_embeddings=ours.conv_pos,
        num_conv_pos_embedding_groups=ours.conv_pos_groups, num_buckets=ours.relative_buckets,
        conv_dim=[c for c, _, _ in CONVS], conv_kernel=[k for _, k, _ in CONVS], conv_stride=[s for _, _, s in CONVS],
    )  # fmt: skip
    with torch.inference_mode(False):
        theirs = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**facts))
    state = deterministic_weights.stand_in(theirs)
    theirs.load_state_dict(state)
    theirs.eval()
    net = SpeechEncoder(ours).eval()
    net.load_state_dict({fairseq_name(key, ours.extractor): value for key, value in state.items()})
    waves, lengths = padded(signals(rng), "cpu")
    last, frames = net(waves, lengths)
    for item, length in enumerate(lengths):
        reference = theirs(waves[item : item + 1, :length]).last_hidden_state
        assert worst(last[item, : frames[item]], reference[0]) < 1e-5


def test_mixing_is_the_weighted_sum_of_the_hidden_states(config, rng):
    net = filled(SpeechEncoder(config))
    batch = padded(signals(rng, (4000, 2500)), "cpu")
    weights = torch.from_numpy(rng.random(config.layers + 1).astype(np.float32))
    expected = (weights[:, None, None, None] * torch.stack(list(net.hidden_states(*batch)))).sum(0)
    assert worst(net.mixed(*batch, weights), expected) < 1e-5


def test_a_result_depends_on_neither_the_batch_nor_its_order_nor_the_padding(config, rng):
    net = filled(SpeechEncoder(config))
    lengths = [400, *rng.integers(400, 12_000, 9).tolist()]
    items = signals(rng, lengths)
    alone = [net(*padded([item], "cpu"))[0][0] for item in items]
    order = rng.permutation(len(items))
    waves, sizes = padded([items[k] for k in order], "cpu")
    noisy = torch.nn.functional.pad(waves, (0, 3000))
    for item, size in enumerate(sizes):
        noisy[item, size:] = torch.from_numpy(rng.normal(0, 10, noisy.shape[1] - size).astype(np.float32))
    for batch in (waves, noisy):
        last, frames = net(batch, sizes)
        assert last.shape[1] == max(frames)
        for index, k in enumerate(order):
            assert worst(last[index, : frames[index]], alone[k]) < 1e-5


def test_the_group_norm_is_exact_for_a_quiet_signal_on_a_large_offset(rng):
    net = filled(SpeechEncoder(replace(PLAIN, conv_bias=True)))
    conv, norm = net.feature_extractor.conv_layers[0]["0"], net.feature_extractor.conv_layers[0]["2"]
    wave = torch.from_numpy(rng.normal(0.5, 1e-2, (1, 4000)).astype(np.float32))
    rows = net.feature_extractor._first(net.feature_extractor.conv_layers[0], wave, [4000])
    convolved = torch.nn.functional.conv1d(wave[:, None].double(), conv.weight.double(), conv.bias.double(), stride=5)
    norms = [norm.weight.double(), norm.bias.double()]
    expected = torch.nn.functional.group_norm(convolved, norm.num_groups, *norms, eps=norm.eps)
    assert worst(rows[0, : expected.shape[2]].T, expected[0].float()) < 1e-4


@pytest.mark.parametrize("rows", [7, 28])  # of 56 at a time; with 28 the positions are kept for all layers
def test_long_signals_are_attended_to_in_blocks(config, rows, rng, monkeypatch):
    net = filled(SpeechEncoder(config))
    batch = padded(signals(rng, (16_000, 8_000)), "cpu")
    expected, _ = net(*batch)
    monkeypatch.setattr(module, "BIAS_ENTRIES", 2 * config.heads * 56 * rows)
    blocks, frames = net(*batch)
    for item, count in enumerate(frames):
        assert worst(blocks[item, :count], expected[item, :count]) < 1e-5


def test_new_weights_take_effect(config, rng):
    net = filled(SpeechEncoder(config))
    batch = padded(signals(rng, (3000,)), "cpu")
    before, _ = net(*batch)
    state = {name: value * 1.1 for name, value in net.state_dict().items()}
    net.load_state_dict(state)
    fresh = SpeechEncoder(config).eval()
    fresh.load_state_dict(state)
    assert torch.equal(net(*batch)[0], fresh(*batch)[0])
    assert worst(net(*batch)[0], before) > 1e-3


@pytest.mark.parametrize("length", [1, 40, 81, 900])
def test_distances_fall_into_s3prls_buckets(length):
    pytest.importorskip("s3prl")
    from codec_bench.features.speakers.s3prl import mended

    with mended():
        from s3prl.upstream.wavlm.modules import MultiheadAttention
    with torch.inference_mode(False):
        attention = MultiheadAttention(8, 2, has_relative_attention_bias=True, num_buckets=320, max_distance=800)
    distance = torch.arange(1 - length, length)
    assert torch.equal(distance_buckets(length, 320, 800), attention._relative_positions_bucket(distance))


@pytest.mark.parametrize("samples", [0, 399, 400, 719, 720, 16_000, 139_680])
def test_frames_are_those_of_the_convolutions(samples):
    length = samples
    for _, kernel, stride in WAVLM_LARGE.conv_layers:
        length = len(range(0, max(0, length - kernel + 1), stride))
    assert WAVLM_LARGE.frames(samples) == length
    assert (WAVLM_LARGE.hop, WAVLM_LARGE.receptive_field) == (320, 400)


@pytest.mark.parametrize(
    ("config", "file", "prefix"),
    [
        (WAVLM_LARGE, "wavlm_large_sv_keys.json", "feature_extract.model."),
        (WAV2VEC2_BASE, "utmos22_strong_keys.json", "wav2vec2."),
    ],
)
def test_parameters_have_the_names_and_shapes_of_published_checkpoints(config, file, prefix):
    published = json.loads((GOLDEN / file).read_text("utf-8"))
    with torch.device("meta"):
        ours = {prefix + name: list(value.shape) for name, value in SpeechEncoder(config).state_dict().items()}
    assert ours == {name: shape for name, shape in published.items() if name.startswith(prefix)}


def test_a_signal_below_the_receptive_field_is_an_error():
    net = SpeechEncoder(PLAIN)
    with pytest.raises(ValueError, match="receptive field of 400"):
        net(torch.zeros(2, 800), [800, 399])
    with pytest.raises(ValueError, match="do not fit"):
        net(torch.zeros(1, 800), [801])


@pytest.mark.parametrize("eps", [1e-5, 1e-7])
def test_a_standardised_wave_is_torchs_layer_norm_of_its_own_samples(eps, rng):
    items = signals(rng, (800, 401))
    waves, lengths = padded(items, "cpu")
    waves[1, 401:] = 7.0
    ours = standardised(waves, lengths, eps)
    for row, item in zip(ours, items, strict=True):
        expected = torch.nn.functional.layer_norm(torch.from_numpy(item), (item.size,), eps=eps)
        assert torch.allclose(row[: item.size], expected, atol=1e-5)
    assert not ours[1, 401:].any()


def test_half_precision_is_near(config, rng):
    net = filled(SpeechEncoder(config))
    batch = padded(signals(rng, (8000, 5000)), "cpu")
    exact, frames = net(*batch)
    with torch.inference_mode():
        rough, _ = reduce_weights(net, "bfloat16-weights")(*batch)
    for item, count in enumerate(frames):
        drift = (rough[item, :count].float() - exact[item, :count]).norm() / exact[item, :count].norm()
        assert 0 < drift < 0.1
