"""The first codebooks alone, and an exchanged global part: against own sums and codecs that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Audio
from codec_bench.apps.profiling import changed_codes
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.neural.mimi import Mimi


def test_fewer_codebooks_have_the_quality_of_fewer_bits(measured, files):
    """The first of two codebooks of 256 holds the sample in 8 bits; the ratio is summed up here."""
    result = measured(changed_codes.measure_first_codebooks, "Coarse", robust_metrics=("snr",))
    assert [point["codebooks"] for point in result["points"]] == [1, 2] and result["codebooks"] == 2
    assert [point["bps"] for point in result["points"]] == [128000.0, 256000.0]
    codec = load_codec("tests/apps/profiling/assets/odd_codecs.py:Coarse")
    ratios = []
    for clip in ProfileClips(files, codec).first_clips[:2]:
        sample = clip.samples[0].astype(float)
        held = np.floor((np.round(sample * 32767) + 32768) / 256)
        error = (held * 256 + 128 - 32768) / 32767 - sample
        ratios.append(10 * np.log10(np.square(sample).sum() / np.square(error).sum()))
    one, two = (point["quality"]["snr"]["value"] for point in result["points"])
    assert one == pytest.approx(np.mean(ratios), abs=0.05) and two > one + 30


def test_the_metrics_of_a_group_are_scored_each(measured):
    result = measured(changed_codes.measure_first_codebooks, "Coarse", robust_metrics=("dnsmos",))
    of_group = {"dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "dnsmos_p808"}
    assert set(result["metrics"]) == of_group
    for point in result["points"]:
        assert {name: one["n"] for name, one in point["quality"].items()} == dict.fromkeys(of_group, 2)


def test_the_sweep_doubles_and_ends_with_all():
    assert changed_codes.codebook_counts(8) == [1, 2, 4, 8] and changed_codes.codebook_counts(18) == [
        1,
        2,
        4,
        8,
        16,
        18,
    ]
    assert changed_codes.codebook_counts(2) == [1, 2]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Pcm", {"code": "one_codebook"}),
        ("Framed", {"code": "no_first"}),
        ("Voice", {"code": "several_streams", "streams": 2}),
    ],
)
def test_what_has_no_first_codebooks_says_so(measured, name, why):
    with refuses(**why, error=NotApplicable):
        measured(changed_codes.measure_first_codebooks, name)


def test_speech_in_the_clips_reaches_the_metrics(measured, files, monkeypatch):
    from codec_bench.apps.profiling.scoring import SectionScorer

    seen = []

    def transcribe(self, references, estimates, texts=None):
        seen.append(texts)
        return {name: {"value": 0.0, "n": 1, "reason": None} for name in self.metrics}

    monkeypatch.setattr(SectionScorer, "__call__", transcribe)
    codec = load_codec("tests/apps/profiling/assets/odd_codecs.py:Coarse")
    texts = {files[0][0]: "good morning"}
    result = changed_codes.measure_first_codebooks(
        codec, ProfileClips(files, codec), Settings(robust_metrics=("snr",)), ("wer[pocketsphinx]",), texts
    )
    assert seen == [["good morning", None]] * 2 and list(result["metrics"]) == ["snr", "wer[pocketsphinx]"]


def test_first_codebooks_of_a_network_are_those_of_the_smaller_operating_point():
    large, small = (Mimi(count, weights="random") for count in (8, 4))
    clip = Audio(0.1 * np.random.default_rng(0).standard_normal(24000 // 2), 24000)
    (all_codes,), (base,) = large.encode([clip]), small.encode([clip])
    cut = changed_codes._cut(all_codes, 4)
    np.testing.assert_array_equal(cut.streams[0].values, base.streams[0].values)
    fewer = large.first(4)
    np.testing.assert_array_equal(fewer.decode([cut])[0].samples, small.decode([base])[0].samples)
    assert fewer.info.nominal_bitrate_bps == small.info.nominal_bitrate_bps
    assert large.decode([all_codes])[0].num_samples == clip.num_samples  # it is as it was
    with refuses("codebook_count", codebooks=9):
        large.first(9)
    with refuses("fewer_codebooks_unsupported"):
        load_codec("opus-12k").first(1)


@pytest.mark.parametrize("name", ["Voice", "VoiceWithExtra"])
def test_an_exchanged_level_is_that_of_the_other_clip(files, name):
    codec = load_codec(f"tests/apps/profiling/assets/odd_codecs.py:{name}")
    material = ProfileClips(files, codec)
    loud, soft = material.first_clips[0], Audio(0.05 * material.first_clips[1].samples, 16000)
    (a, b) = codec.encode([loud, soft])
    out = codec.decode([changed_codes.exchange_voice(a, b, codec.info.global_side)])[0]
    assert np.abs(out.samples).max() == pytest.approx(np.abs(soft.samples).max(), abs=1 / 255)
    shape = lambda wave: wave / np.abs(wave).max()  # noqa: E731
    np.testing.assert_allclose(shape(out.samples), shape(loud.samples), atol=0.02)


@pytest.mark.parametrize("name", ["Voice", "VoiceWithExtra"])
def test_similarity_is_to_the_clip_whose_sound_it_is(files, name):
    codec = load_codec(f"tests/apps/profiling/assets/odd_codecs.py:{name}")
    speakers = {name: ("ann", "bob")[k % 2] for k, (name, _) in enumerate(files)}
    measured = changed_codes.measure_speaker_swap(
        codec, ProfileClips(files, codec), Settings(voice_metric="si_sdr", swap_pairs=3), speakers
    )
    assert measured["pairs"] == 3 and measured["speakers_known"]
    assert measured["to_content"]["value"] > 20 > 0 > measured["to_voice"]["value"]
    assert measured["kept"]["value"] > 20 and measured["apart"]["value"] < 0


def test_the_voice_of_bicodec_is_exchanged(files):
    codec = load_codec("spark-bicodec", weights="random")
    material = ProfileClips(files, codec)
    one, other = material.first_clips[:2]
    a, b = codec.encode([one, other])
    text, speaker = b.streams  # made-up weights hear the same speaker in every clip
    b = replace(b, streams=(text, replace(speaker, values=4095 - speaker.values)))
    mixed = changed_codes.exchange_voice(a, b)
    assert mixed.streams[0] is a.streams[0] and mixed.streams[1] is b.streams[1]
    out, actual = codec.decode([mixed, a])
    assert out.num_samples == one.num_samples and not np.allclose(out.samples, actual.samples, atol=1e-3)
    measured = changed_codes.measure_speaker_swap(codec, material, Settings(voice_metric="sim[ge2e]", swap_pairs=1), {})
    assert (
        measured["pairs"] == 1
        and not measured["speakers_known"]
        and measured["kept"]["n"] == measured["to_voice"]["n"] == 1
    )


def test_an_exchange_needs_two_speakers_and_a_global_part(files, measured):
    assert changed_codes.pairs_of(["a", "a", "b"]) == [(0, 2), (1, 2), (2, 0), (2, 1)]
    assert changed_codes.pairs_of([None, None]) == [(0, 1), (1, 0)]
    codec = load_codec("tests/apps/profiling/assets/odd_codecs.py:Voice")
    with refuses("no_second_speaker", error=NotApplicable):
        changed_codes.measure_speaker_swap(
            codec, ProfileClips(files, codec), Settings(), {name: "ann" for name, _ in files}
        )
    pcm = load_codec("tests/apps/profiling/assets/odd_codecs.py:Pcm")
    with refuses("no_global_codes", error=NotApplicable):
        changed_codes.measure_speaker_swap(pcm, ProfileClips(files, pcm), Settings(), {})


@pytest.mark.parametrize("section", [changed_codes.measure_first_codebooks, changed_codes.measure_speaker_swap])
def test_what_does_not_apply_costs_one_clip(section, files, monkeypatch):
    pcm = load_codec("tests/apps/profiling/assets/odd_codecs.py:Pcm")
    encoded, encode = [], pcm.encode
    monkeypatch.setattr(pcm, "encode", lambda batch: encoded.append(len(batch)) or encode(batch))
    with pytest.raises(NotApplicable):
        section(
            pcm, ProfileClips(files, pcm), Settings(), *([{}] if section is changed_codes.measure_speaker_swap else [])
        )
    assert encoded == [1]
