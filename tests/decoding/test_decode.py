"""Reading sound files: the right samples, and one clear sentence for everything that is not sound."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from codec_bench.errors import AudioError
from codec_bench.types import Audio


@pytest.fixture
def tone():
    seconds = np.arange(16000) / 16000
    return (0.3 * np.sin(2 * np.pi * 440 * seconds)).astype(np.float32)


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".aiff", ".ogg", ".mp3"])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_every_channel_at_its_own_rate(tmp_path, tone, suffix, rate):
    path = tmp_path / f"a b ü{suffix}"
    soundfile.write(path, np.stack([tone, -tone], 1), rate)
    audio = Audio.read(path)
    assert audio.sample_rate_hz == rate
    assert audio.samples.dtype == np.float32
    assert audio.channels == 2
    if suffix in (".wav", ".flac", ".aiff"):
        np.testing.assert_allclose(audio.samples[0], tone, atol=1 / 32768)
        np.testing.assert_allclose(audio.samples[1], -tone, atol=1 / 32768)


def test_what_libsndfile_does_not_know_goes_through_ffmpeg(tmp_path, tone):
    import av

    path = tmp_path / "a.m4a"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone[None], format="fltp", layout="mono")
        frame.rate = 16000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    audio = Audio.read(path)
    assert (audio.sample_rate_hz, audio.channels) == (16000, 1)
    assert abs(audio.num_samples - 16000) <= 2048


def _truncated(path, tone):
    soundfile.write(path, tone, 16000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _with_bits(path, tone, bits):
    soundfile.write(path, tone, 16000)
    head = bytearray(path.read_bytes())
    head[34:36] = bits.to_bytes(2, "little")
    path.write_bytes(head)


@pytest.mark.parametrize(
    "name, make, says",
    [
        ("none.wav", lambda p, t: None, "there is no file"),
        ("empty.wav", lambda p, t: p.write_bytes(b""), "is empty"),
        ("text.wav", lambda p, t: p.write_text("this is not sound\n" * 50), "not a sound file"),
        ("cut.flac", _truncated, "truncated|cannot be decoded"),
        ("cut.wav", _truncated, "truncated|holds"),
        ("nothing.wav", lambda p, t: soundfile.write(p, t[:0], 16000), "no samples"),
        ("folder.wav", lambda p, t: p.mkdir(), "is a folder"),
        (
            "nan.wav",
            lambda p, t: soundfile.write(p, np.r_[t[:100], np.nan], 16000, subtype="FLOAT"),
            "not finite.*0.006 s",
        ),
        (
            "beyond.wav",
            lambda p, t: soundfile.write(p, np.r_[t[:99], 1e34], 16000, subtype="FLOAT"),
            r"1e\+34.*0.006 s",
        ),
        ("negative.wav", lambda p, t: soundfile.write(p, np.r_[t, -20000], 16000, subtype="FLOAT"), "1 samples beyond"),
        ("slow.wav", lambda p, t: soundfile.write(p, t, 999), "sample rate of 999 Hz"),
        ("fast.wav", lambda p, t: soundfile.write(p, t, 8_600_000), "sample rate of 8600000 Hz"),
        ("bits.wav", lambda p, t: _with_bits(p, t, 201), "bits.wav"),
        (
            "inf.wav",
            lambda p, t: soundfile.write(p, np.r_[np.inf, t[:100], -np.inf], 16000, subtype="FLOAT"),
            "2 samples",
        ),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, tone, name, make, says):
    path = tmp_path / name
    make(path, tone)
    with pytest.raises(AudioError, match=says) as caught:
        Audio.read(path)
    assert name in str(caught.value)


def test_values_beyond_full_scale_are_kept(tmp_path, tone):
    path = tmp_path / "loud.wav"
    soundfile.write(path, 5 * tone, 16000, subtype="FLOAT")
    np.testing.assert_array_equal(Audio.read(path).samples[0], 5 * tone)


@pytest.mark.parametrize("rate, channels", [(4000, 1), (192000, 2), (16000, 8)])
def test_unusual_rates_and_channel_counts(tmp_path, tone, rate, channels):
    path = tmp_path / "odd.wav"
    soundfile.write(path, np.stack([tone] * channels, 1), rate)
    audio = Audio.read(path)
    assert (audio.sample_rate_hz, audio.channels, audio.num_samples) == (rate, channels, len(tone))


def test_audio_checks_its_shape_and_rate():
    with pytest.raises(ValueError, match="shape"):
        Audio(np.zeros((1, 2, 3)), 16000)
    with pytest.raises(ValueError, match="rate"):
        Audio(np.zeros(3), 0)


def test_samples_up_to_the_limit_are_read(tmp_path, tone):
    path = tmp_path / "loud.wav"
    soundfile.write(path, np.r_[tone, 9999.0], 768_000, subtype="FLOAT")
    assert Audio.read(path).samples.max() == 9999.0


def test_memory_is_taken_for_what_a_file_holds(tmp_path, tone, monkeypatch):
    """A header may declare terabytes: an MP3 file whose Xing header says so, and a FLAC file of 2**36 - 1 samples."""
    path = tmp_path / "declares.flac"
    soundfile.write(path, tone, 16000)
    data = bytearray(path.read_bytes())
    data[21] |= 0x0F
    data[22:26] = b"\xff" * 4
    path.write_bytes(data)
    with pytest.raises(AudioError, match=r"it declares 68719476735 samples and holds|cannot be decoded"):
        Audio.read(path)
    path = tmp_path / "declares.mp3"
    soundfile.write(path, tone, 16000)
    data = bytearray(path.read_bytes())
    place = data.find(b"Xing") if b"Xing" in data else data.find(b"Info")
    data[place + 8 : place + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    assert Audio.read(path).num_samples < 40000
    monkeypatch.setattr("codec_bench.decoding.decode.MOST_BYTES", 50_000)
    monkeypatch.setattr("codec_bench.decoding.decode._AT_ONCE", 1000)
    soundfile.write(path := tmp_path / "long.wav", tone, 16000)
    with pytest.raises(AudioError, match=r"long\.wav.*cut it into parts"):
        Audio.read(path)


@pytest.mark.parametrize("error", [AttributeError("no stream"), StopIteration(), MemoryError(), RecursionError("deep")])
def test_whatever_a_decoder_raises_is_told_with_the_name(tmp_path, tone, monkeypatch, error):
    soundfile.write(path := tmp_path / "a.wav", tone, 16000)

    def decode(*_args, **_more):
        raise error

    monkeypatch.setattr(soundfile, "SoundFile", decode)
    with pytest.raises(AudioError, match=r"a\.wav' cannot be decoded"):
        Audio.read(path)
