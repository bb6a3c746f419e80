"""SpeechTokenizer against its package's codes and waves for stand-in weights, and batches against items alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import deterministic_weights
import numpy as np
import pytest
from glides import glide, golden_glide
from golden_files import golden
from refusals import Containing, refuses

from codec_bench.codecs import load_codec

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("all_together")


@cache
def built(kbps=4):
    return load_codec(f"speechtokenizer@{kbps}", weights="random")


def split_names(state):
    """The shapes of all tensors of the published file by its names. There, a weight is a gain and a direction."""
    out = {"transform.weight": (24, 32)}
    for name, value in state.items():
        if name.endswith(".weight"):
            out[f"{name}_g"], out[f"{name}_v"] = (len(value), *[1] * (value.ndim - 1)), tuple(value.shape)
        else:
            out[name] = tuple(value.shape)
        if name.endswith("embed"):
            out[f"{name}_avg"] = tuple(value.shape)
    return out


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The codec at the small size of the golden file, from a file in the published layout."""
    from codec_bench.networks.speechtokenizer import SpeechTokenizerNet, SpeechTokenizerShape

    small = SpeechTokenizerShape(filters=4, dimension=32)
    state = {}
    for name, shape in split_names(SpeechTokenizerNet(small).state_dict()).items():
        values = deterministic_weights.values_for(name, shape)
        if name.endswith("_codebook.embed"):
            values = values * np.float32(0.75 ** int(name.split(".")[3]))
        state[name] = torch.from_numpy(np.asarray(values))
    path = tmp_path_factory.mktemp("speechtokenizer") / "SpeechTokenizer.pt"
    torch.save(state, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codec_bench.networks.speechtokenizer.SpeechTokenizerShape", lambda: small)
        return load_codec("speechtokenizer-4k", weights=str(path))


def test_tensors_have_the_names_and_shapes_of_the_published_file():
    from codec_bench.networks.speechtokenizer import SpeechTokenizerNet, SpeechTokenizerShape
    from codec_bench.networks.weight_norm import fold_weight_norm

    with torch.device("meta"):
        net = SpeechTokenizerNet(SpeechTokenizerShape())
        folded = fold_weight_norm({k: torch.zeros(shape) for k, shape in golden("speechtokenizer_keys").items()})
    extra = {k for k in folded if k.startswith("transform") or k.endswith(("inited", "cluster_size", "embed_avg"))}
    assert len(extra) == 2 + 3 * 8
    expected = {name: tuple(value.shape) for name, value in folded.items() if name not in extra}
    assert {name: tuple(value.shape) for name, value in net.state_dict().items()} == expected


def test_codes_and_waves_are_the_packages(published):
    clips = golden("speechtokenizer_small")["clips"]
    batch = [golden_glide(clip["samples"]) for clip in clips]
    together = published.encode(batch)
    for clip, codes in zip(clips, together, strict=True):
        assert clip["smallest_relative_margin"] > 1e-5
        assert codes.streams[0].values.tolist() == clip["codes"]
    complete = [replace(codes, num_samples=320 * codes.streams[0].values.shape[1]) for codes in together]
    for clip, out in zip(clips, published.decode(complete), strict=True):
        wave, facts = out.samples[0].astype(np.float64), clip["decoded"]
        assert len(wave) == facts["samples"]
        np.testing.assert_allclose(wave[-16:], facts["last_16"], rtol=0, atol=1e-5 * facts["abs_max"])
        assert np.abs(wave).sum() == pytest.approx(facts["sum_of_absolute_values"], rel=1e-5)


def test_latents_are_the_packages(published):
    for clip in golden("speechtokenizer_small")["clips"]:
        audio, facts = golden_glide(clip["samples"]), clip["latents"]
        with torch.inference_mode():
            latents = published._net.encoder(torch.from_numpy(audio.samples)[None], [audio.num_samples])[0]
        np.testing.assert_allclose(latents[:4, 0], facts["first_frame_first_4"], rtol=0, atol=1e-5)
        assert latents.std(correction=0).item() == pytest.approx(facts["std_population"], rel=1e-5)


def test_fewer_codebooks_are_the_first_ones():
    audio = glide(8000)
    (all_codes,), (two,) = built().encode([audio]), built(1).encode([audio])
    assert np.array_equal(two.streams[0].values, all_codes.streams[0].values[:2])
    (coarse,), (fine,) = built(1).decode([two]), built().decode([all_codes])
    assert np.abs(coarse.samples - fine.samples).max() > 1e-3


@pytest.mark.parametrize(("kbps", "codebooks"), [(0.5, 1), (2, 4), (4, 8)])
def test_the_bitrate_is_derived_from_the_codes(kbps, codebooks):
    codec = built(kbps)
    (codes,) = codec.encode([glide(16000)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (1024, 50.0, (codebooks, 50))
    assert codes.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == codes.bits == 1000 * kbps
    assert len(np.unique(stream.values[-1])) > 20


def test_what_does_not_fit_is_refused(tmp_path):
    with refuses("codec_point", hint="0.5, 1, 1.5"):
        load_codec("speechtokenizer@6", weights="random")
    (codes,) = built().encode([glide(5000)])
    with refuses("codes_unexpected", shapes="(8, 16)", samples=5000, expected="(2, 16)"):
        built(1).decode([codes])
    torch.save({"encoder.model.0.conv.conv.bias": torch.zeros(32)}, tmp_path / "a.pt")
    with refuses(
        "tensors_wrong", difference={"code": "tensors_differ", "reshaped": Containing("encoder.model.0.conv.conv.bias")}
    ):
        load_codec("speechtokenizer-4k", weights=str(tmp_path / "a.pt"))
