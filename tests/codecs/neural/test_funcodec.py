"""FunCodec against the toolkit's codes and waves for stand-in weights, and batches against items alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import deterministic_weights
import numpy as np
import pytest
from glides import glide, golden_glide
from golden_files import golden
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.types import Audio

torch = pytest.importorskip("torch")

RATIOS = {320: (8, 5, 4, 2), 640: (8, 5, 4, 2, 2)}
# What the toolkit's recipe for 640 samples a frame says of the network (egs/LibriTTS/codec/conf), and some of the rest.
SETTINGS = """
encoder: encodec_seanet_encoder
encoder_conf: {{ratios: {ratios}, norm: time_group_norm, causal: false, n_filters: 4, dimension: 32{more}}}
quantizer: costume_quantizer
quantizer_conf: {{codebook_size: 1024, num_quantizers: 32, ema_decay: 0.99, kmeans_init: true, sampling_rate: 16000,
  quantize_dropout: true, rand_num_quant: [2, 4, 8, 16, 32], use_ddp: true, encoder_hop_length: {hop}}}
decoder: encodec_seanet_decoder
decoder_conf: {{ratios: {ratios}, norm: time_group_norm, causal: false, n_filters: 4{more}}}
model: encodec
model_conf: {{odim: 128, target_sample_hz: 16000, audio_normalize: true, segment_dur: null, overlap_ratio: null}}
optim: adam
"""
pytestmark = pytest.mark.usefixtures("all_together")


@cache
def built(hop=640, kbps=8):
    return load_codec(f"funcodec-zh-en-ds{hop}@{kbps}", weights="random")


def write_checkpoint(folder, model, settings=SETTINGS):
    """A model of the golden file in the published layout, with 32 codebooks, and its settings."""
    from codec_bench.networks.funcodec import FunCodecNet, FunCodecShape

    facts = golden("funcodec_small")["models"][model]
    sizes = {"residual_layers": facts["more"].get("n_residual_layers", 1), "true_skip": "true_skip" in facts["more"]}
    net = FunCodecNet(FunCodecShape(tuple(facts["ratios"]), filters=4, dimension=32, **sizes))
    state = {}
    for name, value in net.state_dict().items():
        values = deterministic_weights.values_for(name, tuple(value.shape))
        if name.endswith("rq.model.embed"):  # the golden file's four codebooks, and 28 further ones
            small = deterministic_weights.values_for(name, (4, 1024, 32))
            values[:4] = small * np.float32(0.75) ** np.arange(4, dtype=np.float32)[:, None, None]
        state[name] = torch.from_numpy(np.asarray(values))
    for name in ("inited", "cluster_size", "embed_avg"):
        state[f"quantizer.rq.model.{name}"] = torch.zeros(32)
    state["discriminator.discriminators.0.weight"] = torch.zeros(3)
    state["mel_spec_transforms.0.window"] = torch.zeros(32)
    torch.save(state, folder / "model.pth")
    more = "".join(f", {key}: {json.dumps(value)}" for key, value in facts["more"].items())
    text = settings.format(ratios=facts["ratios"], hop=int(np.prod(facts["ratios"])), more=more)
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module", params=["320", "640", "320, three residual layers"])
def published(request, tmp_path_factory):
    """A model of the golden file with its four codebooks, from a folder as published, and its clips."""
    facts = golden("funcodec_small")["models"][request.param]
    folder = write_checkpoint(tmp_path_factory.mktemp("funcodec"), request.param)
    hop = int(np.prod(facts["ratios"]))
    return hop, facts["clips"], load_codec(f"funcodec-zh-en-ds{hop}@{2 if hop == 320 else 1}", weights=str(folder))


@pytest.mark.parametrize("hop", [320, 640])
def test_tensors_have_the_names_and_shapes_of_the_toolkits(hop):
    from codec_bench.networks.funcodec import FunCodecNet, FunCodecShape

    with torch.device("meta"):
        net = FunCodecNet(FunCodecShape(RATIOS[hop]))
    expected = {name: tuple(shape) for name, shape in golden("funcodec_keys")[str(hop)].items()}
    extra = {f"quantizer.rq.model.{name}" for name in ("inited", "cluster_size", "embed_avg")}
    assert extra < set(expected)
    ours = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert ours == {name: shape for name, shape in expected.items() if name not in extra}
    if hop == 320:  # the toolkit's table says 14.85 M
        assert sum(value.numel() for value in net.parameters()) == 14_855_843


def test_codes_and_waves_are_the_toolkits(published):
    hop, clips, codec = published
    together = codec.encode([golden_glide(clip["samples"]) for clip in clips])
    for clip, codes in zip(clips, together, strict=True):
        assert clip["smallest_relative_margin"] > 1e-5
        assert codes.streams[0].values.tolist() == clip["codes"]
        assert codes.side["scale"] == pytest.approx(clip["scale"], rel=1e-6)
    complete = [replace(codes, num_samples=hop * codes.streams[0].values.shape[1]) for codes in together]
    for clip, out in zip(clips, codec.decode(complete), strict=True):
        wave, facts = out.samples[0].astype(np.float64), clip["decoded"]
        assert len(wave) == facts["samples"]
        # Float32 noise: sixteen normalisations, each a sum over up to 8640 x 4 values.
        np.testing.assert_allclose(wave[-16:], facts["last_16"], rtol=0, atol=2e-5 * facts["abs_max"])
        assert np.abs(wave).sum() == pytest.approx(facts["sum_of_absolute_values"], rel=1e-5)
        assert np.abs(wave).max() == pytest.approx(facts["abs_max"], rel=1e-4)


def test_latents_are_the_toolkits(published):
    _, clips, codec = published
    for clip in clips:
        audio, facts = golden_glide(clip["samples"]), clip["latents"]
        wave = torch.from_numpy(audio.samples / np.float32(clip["scale"]))[None]
        with torch.inference_mode():
            latents = codec._net.encoder(wave, [audio.num_samples])[0]
        np.testing.assert_allclose(latents[:4, 0], facts["first_frame_first_4"], rtol=0, atol=2e-5)
        assert latents.std(correction=0).item() == pytest.approx(facts["std_population"], rel=1e-5)


def test_the_normalisation_of_a_padded_pass_is_that_of_each_item(monkeypatch):
    from codec_bench.networks.funcodec import UtteranceNorm

    norm, lengths = UtteranceNorm(6), [40, 1, 17]
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
        options = 3 + torch.randn(3, 6, 40)
        for row, length in zip(options, lengths):
            row[:, length:] = float("nan")
        on_a_cpu = norm(options.clone(), lengths)
        # The code for a GPU, run on CPU tensors: masked sums instead of one item at a time.
        monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda self: False))
        masked = norm(options.clone(), lengths)
    for row, one, other, length in zip(options, on_a_cpu, masked, lengths):
        expected = torch.nn.functional.group_norm(row[None, :, :length], 1, norm.weight, norm.bias)[0]
        torch.testing.assert_close(one[:, :length], expected, rtol=0, atol=1e-5)
        assert torch.equal(one[:, :length], other[:, :length])  # to the last bit, so that no near tie is decided by it
        alone = norm(row[None, :, :length].clone(), [length])[0]
        assert torch.equal(one[:, :length], alone)


def test_without_its_own_statistics_an_item_would_differ(monkeypatch):
    # These differences show that the tests above can fail.
    from codec_bench.networks import funcodec as funcodec_net

    codec, batch = built(), [glide(8000), glide(3333)]
    alone = codec.encode(batch[1:])[0].streams[0].values
    monkeypatch.setattr(
        funcodec_net.UtteranceNorm, "forward", lambda self, x, lengths: torch.nn.GroupNorm.forward(self, x)
    )
    assert (codec.encode(batch)[1].streams[0].values != alone).mean() > 0.05


def test_the_level_is_preserved_and_changes_no_code():
    codec = built()
    audio = glide(8000)
    (codes,), (quiet,) = codec.encode([audio]), codec.encode([Audio(audio.samples * 0.03125, 16000)])
    assert np.array_equal(codes.streams[0].values, quiet.streams[0].values)
    assert quiet.side["scale"] == pytest.approx(0.03125 * codes.side["scale"], rel=1e-5)
    (loud,), (soft,) = codec.decode([codes]), codec.decode([quiet])
    np.testing.assert_allclose(soft.samples, 0.03125 * loud.samples, rtol=0, atol=1e-6)


def test_fewer_codebooks_are_the_first_ones():
    audio = glide(8000)
    (all_codes,), (two,) = built().encode([audio]), built(kbps=0.5).encode([audio])
    assert np.array_equal(two.streams[0].values, all_codes.streams[0].values[:2])
    (coarse,), (fine,) = built(kbps=0.5).decode([two]), built().decode([all_codes])
    assert np.abs(coarse.samples - fine.samples).max() > 1e-3


@pytest.mark.parametrize(("hop", "kbps", "codebooks"), [(640, 0.25, 1), (640, 8, 32), (320, 0.5, 1), (320, 16, 32)])
def test_the_bitrate_is_derived_from_the_codes(hop, kbps, codebooks):
    codec = built(hop, kbps)
    (codes,) = codec.encode([glide(16000)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (
        1024,
        16000 / hop,
        (codebooks, 16000 // hop),
    )
    assert stream.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == 1000 * kbps
    assert codes.bits == 1000 * kbps + 32  # and 32 bits for the scale
    assert len(np.unique(stream.values[-1])) > 10


def test_settings_of_another_model_are_refused_with_their_values(tmp_path):
    load_codec("funcodec-zh-en-ds640@8", weights=str(write_checkpoint(tmp_path, "640")))
    text = (tmp_path / "config.yaml").read_text("utf-8")
    for broken, says in (
        (
            text.replace("encodec_seanet_encoder", "encodec_seanet_encoder_2d"),
            {"code": "weights_of_another_model", "difference": Containing("encoder 'encodec_seanet_encoder_2d")},
        ),
        (
            text.replace("time_group_norm", "weight_norm"),
            {
                "code": "weights_of_another_model",
                "difference": Containing("encoder_conf.norm 'weight_norm' (expected 'time_group_norm"),
            },
        ),
        (
            text.replace("use_ddp: true", "use_ddp: false"),
            {"code": "weights_of_another_model", "difference": Containing("quantizer_conf.use_ddp False")},
        ),
        (
            text.replace("audio_normalize: true", "audio_normalize: false"),
            {"code": "weights_of_another_model", "difference": Containing("model_conf.audio_normalize False")},
        ),
        (
            text.replace("dimension: 32", "dimension: 32, stretch: 2"),
            {"code": "weights_of_another_model", "difference": "encoder_conf.stretch 2 (an unknown setting)"},
        ),
        (
            text.replace("n_filters: 4}", "n_filters: 4, final_activation: Tanh}"),
            {"code": "weights_of_another_model", "difference": Containing("decoder_conf.final_activation 'Tanh")},
        ),
        (
            text.replace("[8, 5, 4, 2, 2]", "[8, 5, 4, 2]"),
            {"code": "weights_of_another_model", "difference": Containing("expected a product of 640")},
        ),
        (
            text.replace("n_filters: 4}", "n_filters: 8}"),
            {
                "code": "weights_of_another_model",
                "difference": Containing("decoder_conf.n_filters 8 (expected 4, as the encoder has"),
            },
        ),
        (
            text.replace("segment_dur: null, ", ""),
            {"code": "weights_of_another_model", "difference": Containing("model_conf.segment_dur 1.0 (expected None")},
        ),
        ("optim: adam", {"code": "weights_of_another_model", "difference": Containing("encoder None")}),
    ):
        (tmp_path / "config.yaml").write_text(broken, "utf-8")
        with refuses(**says):
            load_codec("funcodec-zh-en-ds640@8", weights=str(tmp_path))


def test_a_checkpoint_of_the_other_frame_rate_is_recognised(tmp_path):
    write_checkpoint(tmp_path, "320")
    with refuses("weights_of_another_model", difference=Containing("ratios [8, 5, 4, 2] (expected a product of 640)")):
        load_codec("funcodec-zh-en-ds640@8", weights=str(tmp_path))
    (tmp_path / "config.yaml").write_text(SETTINGS.format(ratios=[8, 5, 4, 2, 2], hop=640, more=""), "utf-8")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing(".")}):
        load_codec("funcodec-zh-en-ds640@8", weights=str(tmp_path))


def test_what_does_not_fit_is_refused():
    with refuses("codec_bitrate", hint="every multiple of 0.25 kbps up to 8"):
        load_codec("funcodec-zh-en-ds640-8k", weights="random", bitrate_bps=300)
    (codes,) = built().encode([glide(5000)])
    with refuses("codes_unexpected", shapes="(32, 8)", samples=5000, expected="(2, 8)"):
        built(kbps=0.5).decode([codes])
    with refuses("codes_without_scale"):
        built().decode([replace(codes, side={})])
