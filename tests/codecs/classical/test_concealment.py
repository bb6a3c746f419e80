"""What decoders put in the place of lost packets, against the libraries' own programs and interfaces."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import resample
from codec_bench.codecs import load_codec
from codec_bench.types import Audio, Codes

ASSETS = Path(__file__).parent / "assets"


@pytest.fixture
def clip(spoken):
    """Two seconds of speech at a rate."""
    first = spoken[0][1]
    return lambda rate_hz: Audio(
        resample(first.samples[:1, : 2 * first.sample_rate_hz], first.sample_rate_hz, rate_hz), rate_hz
    )


def of_opencore(band):
    """The functions of opencore-amr in PyAV's wheel."""
    import av

    result = list((Path(av.__file__).parent.parent / "av.libs").glob(f"libopencore-amr{band}*"))
    if not result:
        pytest.skip("this build of PyAV has no opencore-amr of its own")
    return ctypes.CDLL(str(result[0]))


@pytest.mark.parametrize(
    ("name", "band", "begin", "decode", "frame", "delay"),
    [
        ("amr-nb@12.2", "nb", "Decoder_Interface_init", "Decoder_Interface_Decode", 160, 40),
        ("amr-wb@12.65", "wb", "D_IF_init", "D_IF_decode", 320, 95),
    ],
)
def test_dropped_amr_frames_are_those_of_a_decoder_that_is_notified_of_bad_frames(
    name, band, begin, decode, frame, delay, clip
):
    codec, library = load_codec(name), of_opencore(band)
    (codes,) = codec.encode([clip(codec.info.sample_rates_hz[0])])
    dropped = np.isin(np.arange(len(codes.packets)), [0, 20, 21, 22, 40, 60, 61])
    getattr(library, begin).restype = ctypes.c_void_p
    output, state = getattr(library, decode), getattr(library, begin)()
    output.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
    pcm = np.zeros((dropped.size, frame), np.int16)
    for number, packet in enumerate(codes.packets):
        output(state, codec._header + packet, pcm[number].ctypes.data, int(dropped[number]))
    (ours,) = codec.conceal([codes], [dropped])
    np.testing.assert_array_equal(ours.samples[0], pcm.ravel()[delay:][: ours.num_samples] / np.float32(32768))


def test_dropped_lc3_frames_are_those_of_liblc3s_own_program():
    """`dlc3` of liblc3 1.0.1 made the asset of the packets whose frames 20, 21, 22 and 40 were damaged so that it
    conceals: frames 19 to 25 and 39 to 43.
    """
    held = (ASSETS / "awb_01_elc3_32k.bin").read_bytes()
    packets = tuple(held[start : start + 40] for start in range(0, len(held), 40))
    expected = np.frombuffer((ASSETS / "awb_01_dlc3_gaps.bin").read_bytes(), "<i2").reshape(-1, 160) / 32768
    codec = load_codec("lc3-32k")
    codes = Codes((), 160 * 49 - 40, 16000, packets=packets, side={"channels": 1})
    (ours,) = codec.conceal([codes], [np.isin(np.arange(49), [20, 21, 22, 40])])
    frames = ours.samples[0, : 160 * 48].reshape(-1, 160)[[*range(19, 26), *range(39, 44)]]
    assert np.abs(frames - expected).max() < 1.5 / 32768 < 0.1 < np.abs(expected).max()


def test_both_channels_of_a_dropped_lc3_packet_are_concealed(clip):
    one = clip(16000)
    two = Audio(np.concatenate([one.samples, one.samples]), 16000)
    received = []
    for codec, audio in ((load_codec("lc3-64k"), two), (load_codec("lc3-32k"), one)):
        (codes,) = codec.encode([audio])
        received += codec.conceal([codes], [np.arange(len(codes.packets)) % 20 == 19])
    np.testing.assert_array_equal(received[0].samples, np.repeat(received[1].samples, 2, axis=0))


@pytest.mark.parametrize("name", ["lc3-32k", "amr-nb@12.2"])
def test_what_was_dropped_is_not_looked_at_and_nothing_dropped_changes_nothing(name, clip):
    codec = load_codec(name)
    (codes,) = codec.encode([clip(codec.info.sample_rates_hz[0])])
    dropped = np.arange(len(codes.packets)) == len(codes.packets) // 2
    (plain,) = codec.decode([codes])
    np.testing.assert_array_equal(codec.conceal([codes], [~dropped & dropped])[0].samples, plain.samples)
    other = tuple(b"" if gone else packet for packet, gone in zip(codes.packets, dropped))
    hidden = Codes((), codes.num_samples, codes.sample_rate_hz, packets=other, side=codes.side)
    np.testing.assert_array_equal(
        *(codec.conceal([sent], [dropped])[0].samples for sent in (codes, hidden)), err_msg="the lost packet was read"
    )


def test_a_decoder_without_concealment_says_so(clip):
    codec = load_codec("g722")
    codes = codec.encode([clip(16000)])
    with refuses("concealment_unsupported", codec="g722"):
        codec.conceal(codes, [np.zeros(len(codes[0].packets), bool)])
