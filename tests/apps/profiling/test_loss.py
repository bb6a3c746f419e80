"""Frames that are lost: which are, what stands in their place, and what is then heard; against plain loops and known
codecs.
"""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Codes, CodeStream, Latents
from codec_bench.apps.profiling import loss
from codec_bench.apps.profiling.frame_loss import (
    SILENT,
    GilbertElliott,
    at_random,
    frames_of,
    mute_gaps,
    repeat_last,
    replace_frames,
)
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic

SMALL = {"robust_metrics": ("si_sdr", "stoi"), "loss_rates": (0.05, 0.2), "loss_burst_rates": (0.2,)}


def test_a_channel_drops_what_gilbert_and_elliott_predict():
    """Both probabilities of the state, and the lengths of bursts, counted in a long draw."""
    model = GilbertElliott(to_bad=0.05, to_good=0.25, in_bad=0.8, in_good=0.01)
    assert model.rate == pytest.approx(0.05 / 0.3 * 0.8 + 0.25 / 0.3 * 0.01)
    dropped = model.draw(200_000, np.random.default_rng(0))
    assert dropped.mean() == pytest.approx(model.rate, rel=0.03)
    # A lost frame is followed by a lost frame as often as the chain of the states says.
    bad_if_dropped = model.bad * 0.8 / model.rate
    after = bad_if_dropped * (0.75 * 0.8 + 0.25 * 0.01) + (1 - bad_if_dropped) * (0.05 * 0.8 + 0.95 * 0.01)
    assert dropped[1:][dropped[:-1]].mean() == pytest.approx(after, rel=0.03)
    simple = GilbertElliott.of(0.2, 3.0)
    drawn = simple.draw(200_000, np.random.default_rng(1))
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], drawn, [0]]))))[::2]
    assert simple.rate == pytest.approx(0.2) and lengths.mean() == pytest.approx(3.0, rel=0.03)
    assert simple.typical(400, 0).sum() in range(76, 85)


def test_at_random_loses_an_exact_number_and_more_at_higher_rates():
    small, many = at_random(400, 0.03, 7), at_random(400, 0.1, 7)
    assert (small.sum(), many.sum(), at_random(20, 0.01, 7).sum()) == (12, 40, 1)
    assert not (small & ~many).any()


def test_what_stands_in_place_of_dropped_frames_as_in_a_plain_loop():
    rng = np.random.default_rng(0)
    slow, fast = (
        rng.integers(0, 64, (2, 12)),
        rng.integers(0, 64, (1, 23)),
    )  # the last slow frame has one fast place only
    once = CodeStream(rng.integers(0, 8, (1, 4)), 8, 0.0, "speaker")
    sent = Codes((CodeStream(slow, 64, 10.0), CodeStream(fast, 64, 20.0), once), 19000, 16000)
    quiet = Codes((CodeStream(0 * slow, 64, 10.0), CodeStream(0 * fast, 64, 20.0), once), 19000, 16000)
    assert frames_of(sent) == (12, 0.1)
    dropped = np.zeros(12, bool)
    dropped[[0, 3, 4, 11]] = True
    for source in (repeat_last(dropped), mute_gaps(dropped)):
        expected_slow, expected_fast = slow.copy(), fast.copy()
        last = None
        for frame in range(12):
            if not dropped[frame]:
                last = frame
                continue
            use = last if source[frame] != SILENT else None
            expected_slow[:, frame] = 0 if use is None else slow[:, use]
            for item in range(2):
                if 2 * frame + item < 23:
                    expected_fast[:, 2 * frame + item] = 0 if use is None else fast[:, 2 * use + item]
        out = replace_frames(sent, quiet, source)
        np.testing.assert_array_equal(out.streams[0].values, expected_slow)
        np.testing.assert_array_equal(out.streams[1].values, expected_fast)
        assert out.streams[2] is once
    assert repeat_last(dropped).tolist() == [SILENT, 1, 2, 2, 2, 5, 6, 7, 8, 9, 10, 10]
    packets = Codes((), 19000, 16000, packets=tuple(bytes([k]) for k in range(12)))
    other = Codes((), 19000, 16000, packets=(b"x",) * 12)
    assert replace_frames(packets, other, repeat_last(dropped)).packets == tuple(
        b"x" if k < 0 else bytes([k]) for k in repeat_last(dropped).tolist()
    )
    latents = Latents(np.arange(24.0).reshape(2, 12), 10.0, 19000, 16000)
    got = replace_frames(latents, Latents(np.full((2, 12), -1.0), 10.0, 19000, 16000), repeat_last(dropped))
    assert got.values[0].tolist() == [float(k) for k in repeat_last(dropped)]
    with refuses("too_few_frames", frames=2, error=NotApplicable):
        frames_of(Codes((), 16000, 16000, packets=(b"head", b"body")))


def test_a_codec_that_dies_on_loss_is_distinguished_from_one_that_does_not(measured):
    """Both have the same samples when everything arrives."""
    robust, fragile = (measured(loss.measure, name, **SMALL) for name in ("Blocks", "Differences"))
    assert robust["undisturbed"] == fragile["undisturbed"] and robust["frame_ms"] == 5.0
    for good, bad in zip(robust["points"], fragile["points"]):
        assert (good["channel"], good["lost"]) == (bad["channel"], bad["lost"])
        for repair in ("repeat", "silence"):
            assert good["quality"][repair]["si_sdr"]["value"] > bad["quality"][repair]["si_sdr"]["value"] + 6
    assert robust["recovery"]["longest_ms"] == 0.0 and robust["recovery"]["unrecovered"] == 0
    assert fragile["recovery"]["unrecovered"] == fragile["recovery"]["trials"] == 4


def test_quality_falls_with_loss_and_bursts_have_their_parameters(measured):
    result = measured(loss.measure, "Blocks", **SMALL)
    values = [point["quality"]["silence"]["si_sdr"]["value"] for point in result["points"][:2]]
    assert result["undisturbed"]["si_sdr"]["value"] > values[0] > values[1]
    assert result["points"][2]["parameters"] == pytest.approx(
        {"to_bad": 1 / 12, "to_good": 1 / 3, "in_bad": 1.0, "in_good": 0.0}
    )
    assert result["repair"] == "repeat" and result["repairs"]["own"] == Diagnostic("no_concealment", codec="blocks")


def test_the_time_to_recover_is_that_of_the_predictor(measured):
    """After the frame the error of a one-tap predictor fades by a known factor with every sample."""
    result = measured(loss.measure, "Leaky", **SMALL, recovery_db=-40.0)
    codec = load_codec("tests/apps/profiling/assets/odd_codecs.py:Leaky")
    from codec_bench.data import open_source

    files = [(s.id, s.audio) for s in list(open_source("embedded"))[:4]]
    link = loss.LossyLink(codec, ProfileClips(files, codec).cut(2, 2.0))
    times = []
    for clip, frame in loss.loud_frames(link, 4):
        dropped = np.arange(link.counts[clip]) == frame
        wave, complete = (
            link.decode_with_losses("repeat", [clip], [dropped])[0].samples[0],
            link.undisturbed[clip].samples[0],
        )
        end = (frame + 1) * 80
        error, least = float(wave[end - 1] - complete[end - 1]), 1e-4 * float(np.square(complete, dtype=float).mean())
        after = 0
        for window in range((complete.size - end) // 80):
            power = sum((error * codec.POLE ** (80 * window + n + 1)) ** 2 for n in range(80)) / 80
            after = window + 1 if power > least else after
        times.append(5.0 * after)
    assert result["recovery"]["median_ms"] == pytest.approx(np.median(times), abs=1e-6) and max(times) > 0
    assert result["recovery"]["longest_ms"] == pytest.approx(max(times), abs=1e-6)


@pytest.fixture(scope="module")
def opus():
    from codec_bench.data import open_source

    codec = load_codec("opus-12k")
    return codec, ProfileClips([(s.id, s.audio) for s in list(open_source("embedded"))[:2]], codec)


def test_opus_conceals_and_is_better_than_silence(opus):
    codec, material = opus
    measured = loss.measure(codec, material, Settings(**SMALL))
    assert measured["repair"] == "own" and measured["frame_ms"] == pytest.approx(20, abs=0.5)
    for point in measured["points"]:
        assert set(point["quality"]) == {"own", "silence"}
    quality = measured["points"][1]["quality"]
    assert quality["own"]["stoi"]["value"] > quality["silence"]["stoi"]["value"] + 0.05
    assert 0 < measured["recovery"]["median_ms"] < 1000


def test_concealment_of_nothing_changes_nothing_and_is_no_silence(opus):
    codec, material = opus
    clips = material.cut(1, 2.0)
    (sent,) = codec.encode(clips)
    plain = codec.decode([sent])[0].samples
    count = len(sent.packets)
    np.testing.assert_array_equal(codec.conceal([sent], [np.zeros(count, bool)])[0].samples, plain)
    dropped = np.arange(count) == count // 2
    (concealed,) = codec.conceal([sent], [dropped])
    rate = clips[0].sample_rate_hz
    inside = slice(count // 2 * rate // 50, (count // 2 + 1) * rate // 50)
    assert np.abs(concealed.samples - plain)[:, : inside.start - rate // 100].max() < 1e-3  # what came before stays
    assert np.square(concealed.samples[:, inside]).mean() > 0.02 * np.square(plain[:, inside]).mean()


def test_one_bit_is_turned_round_and_no_more():
    rng = np.random.default_rng(0)
    packets = Codes((), 100, 16000, packets=(b"\x00\x01", b"\xff"))
    codes = Codes((CodeStream(np.zeros((2, 5), int), 8, 50.0), CodeStream(np.full((1, 5), 4), 5, 50.0)), 100, 16000)
    places = set()
    for _ in range(200):
        changed = loss.flip_random_bit(packets, rng)
        bits = [(a ^ b).bit_count() for x, y in zip(packets.packets, changed.packets) for a, b in zip(x, y)]
        assert sum(bits) == 1
        places.add(tuple(bits))
        other = loss.flip_random_bit(codes, rng)
        apart = [
            int(a) ^ int(b)
            for one, two in zip(codes.streams, other.streams)
            for a, b in zip(one.values.flat, two.values.flat)
        ]
        assert sum(bin(a).count("1") for a in apart) == 1
        assert all(stream.values.max() < stream.cardinality for stream in other.streams)
    assert places == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_a_wrong_bit_is_audible_once_or_for_ever(measured):
    once, forever = (measured(loss.measure_bit_errors, name, loss_s=1.0) for name in ("Blocks", "Differences"))
    assert once["refused"] == forever["refused"] == 0.0 and once["longest_ms"] <= 5.0
    assert forever["longest_ms"] > 100 and forever["wave_snr_db"] < once["wave_snr_db"]


@pytest.mark.parametrize("measure", [loss.measure, loss.measure_bit_errors])
def test_a_codec_that_decodes_something_else_than_its_codes_is_not_robust(measure, measured):
    with refuses("codes_unused", error=NotApplicable):
        measured(measure, "Smuggling", **SMALL)


def test_latents_have_no_bits(measured):
    with refuses("not_discrete", error=NotApplicable):
        measured(loss.measure_bit_errors, "Leaky")


def test_a_decoder_that_refuses_is_counted(opus, monkeypatch):
    codec, material = opus

    def refuse(*_):
        raise ValueError("not mine")

    codes = codec.encode(material.cut(1, 2.0))
    original = codec.decode

    def decode(items):
        return original(items) if items[0].packets == codes[0].packets else refuse()

    monkeypatch.setattr(codec, "decode", decode)
    measured = loss.measure_bit_errors(codec, material, Settings())
    assert measured["refused"] == 1.0 and measured["disturbed_ms"] is None and measured["wave_snr_db"] is None


def test_a_packet_lasts_as_long_as_its_codec_declares_whatever_a_clip_has_more():
    packets = tuple(b"x" for _ in range(101))
    sent = Codes((), 2 * 16000, 16000, packets=packets)
    assert frames_of(sent, 50.0) == (101, 0.02)
    assert frames_of(sent, 25.0) == frames_of(sent) == (101, pytest.approx(2 / 101))
