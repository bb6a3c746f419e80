"""Continuous codecs, as they are and rounded: laws of an orthonormal transform are the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench import Audio, Inputs, evaluate, load_codec, profile
from codec_bench.api.check_codec import check_codec
from codec_bench.codecs.adapt import CodecFault, fault_of, reconstruct
from codec_bench.codecs.checks import faulty_findings
from codec_bench.codecs.checks.batching import latent_flips
from codec_bench.codecs.checks.serialised_codes import from_bytes, to_bytes
from codec_bench.codecs.quantised import RANGE_CLIPS, Quantised
from codec_bench.data import open_source
from codec_bench.metrics import build_metric

CODECS = Path(__file__).parent / "assets" / "latent_codecs.py"
HOP = 64
SENTENCE = "it is not discrete: its 64 real numbers 250 times a second have no bitrate"


def blocks():
    return load_codec(f"{CODECS}:Blocks")


@pytest.fixture(scope="module")
def speech():
    return [Audio.read(sample.audio) for sample in open_source("embedded") if sample.id in RANGE_CLIPS]


def snr_db(a, b):
    return 10 * np.log10(np.square(a).sum() / np.square(a - b).sum())


def test_latents_have_no_bits_and_state_why(speech):
    (result,) = reconstruct(blocks(), speech[:1]).items
    assert result.bits is None and result.no_bits == SENTENCE
    assert np.allclose(result.estimate.samples, speech[0].samples, atol=1e-6)
    score = build_metric("bitrate").compute([Inputs("a", 16000, no_bits=result.no_bits, duration_s=1.0)])[0]
    assert (score.value, score.status, score.reason) == (None, "undefined", SENTENCE)


@pytest.mark.parametrize("bits", [4, 8, 12])
def test_rounding_has_the_noise_of_uniform_rounding_and_the_rate_of_its_bits(speech, bits):
    codec = Quantised(blocks(), bits)
    (codes, *_) = sent = codec.encode(speech)
    assert codes.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == HOP * bits * 250
    steps = codec._range[1][:, 0]
    noise = np.concatenate([a.samples - b.samples for a, b in zip(speech, codec.decode(sent))], axis=1)
    if bits > 4:  # with few levels most blocks are rounded to nothing, so that the error is not uniform
        assert 10 * np.log10(np.square(noise).mean() / (steps**2 / 12).mean()) == pytest.approx(0, abs=0.3)
    else:
        assert np.abs(codes.streams[0].values).max() < 2**bits


def test_each_bit_gains_six_db(speech):
    results = [
        snr_db(speech[0].samples, reconstruct(Quantised(blocks(), b), speech[:1]).items[0].estimate.samples)
        for b in (9, 10, 11)
    ]
    assert np.diff(results) == pytest.approx([20 * np.log10(2)] * 2, abs=0.4)


def test_latents_that_were_sent_come_back_and_vectors_are_what_is_decoded(speech):
    (outputs,) = blocks().encode(speech[:1])
    again = from_bytes(to_bytes(outputs))
    assert (
        again.values.dtype == np.float32 and np.array_equal(again.values, outputs.values) and again.no_bits == SENTENCE
    )
    codec = load_codec(f"{CODECS}:Blocks", latent_bits=8)
    (codes,) = codec.encode(speech[:1])
    near = codec.vectors(codes.streams[0].values).T
    assert (np.abs(near - outputs.values) <= codec._range[1] / 2 + 1e-6).all()


def test_frames_of_latents_are_compared_within_a_tolerance():
    one = np.ones((2, 5), np.float32)
    assert latent_flips(one, one + 0.9e-4) == (0, 5)
    other = one.copy()
    other[0, 2] += 1.1e-4
    assert latent_flips(one, other) == (1, 5) and latent_flips(one, one[:, :4]) == (5, 5)


REFUSED = {
    "Undeclared": "returned_type",
    "Narrow": "latents_shape",
    "Infinite": "latents_not_finite",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_the_contract_is_one_sentence(name, speech):
    with pytest.raises(CodecFault) as caught:
        reconstruct(load_codec(f"{CODECS}:{name}"), speech[:1])
    assert fault_of(caught.value).code == REFUSED[name]


def test_bad_input_is_one_sentence():
    with refuses("codec_declares_bitrate", cause=Containing("it is not discrete: its 64 real numbers")):
        load_codec(f"{CODECS}:Rated")
    with refuses("option_bits", codec="blocks", option="latent_bits", bits=0, most=16):
        load_codec(f"{CODECS}:Blocks", latent_bits=0)
    with refuses("no_latents_to_round", option="latent_bits", bits=4):
        load_codec("g711-ulaw", latent_bits=4)


def test_validate_passes_a_continuous_codec_and_names_one_whose_batches_leak():
    by_name = {f["check"]: f for f in check_codec(codec=f"{CODECS}:Blocks")}
    assert not faulty_findings(by_name.values())
    assert (by_name["bitrate label"]["state"], by_name["bitrate label"]["found"]) == ("not applicable", SENTENCE)
    assert by_name["batch"]["state"] == by_name["decoded elsewhere"]["state"] == "ok"
    checks = {f["check"] for f in faulty_findings(check_codec(codec=f"{CODECS}:Leaking"))}
    assert "batch" in checks


def test_a_profile_has_no_bitrate_and_all_else(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    names = [f"{CODECS}:Blocks"]
    small = {"clip_s": 0.5, "repeats": 1, "latency_s": 1.0, "stream_s": 0.5, "robust_clips": 1, "robust_s": 1.0}
    measured = profile(
        codec=names, data="embedded", out=str(tmp_path / "out"), limit=2, metrics="snr", page=False, settings=small
    )
    codec = measured.codecs[names[0]]
    assert codec["rate"]["measured_bps"] is None and codec["rate"]["no_bits"] == SENTENCE
    assert codec["stability"]["reencoding"][0]["latent_snr_db"] > 100  # the transform loses nothing
    assert codec["streaming"]["equals_offline"] and codec["streaming"]["codes_equal"] == 1.0


def test_a_run_says_why_there_is_no_bitrate(tmp_path):
    run = evaluate(
        codec=f"{CODECS}:Blocks", data="embedded", metrics="bitrate,snr", limit=2, out=str(tmp_path / "run"), workers=1
    )
    assert {(row.status, row.reason) for row in run.rows() if row.metric == "bitrate"} == {("undefined", SENTENCE)}
