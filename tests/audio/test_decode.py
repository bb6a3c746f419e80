"""Reading sound files: the right samples, and one clear sentence for everything that is not sound."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from codec_bench.audio.read import read_audio
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
    audio = read_audio(path)
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
    audio = read_audio(path)
    assert (audio.sample_rate_hz, audio.channels) == (16000, 1)
    assert abs(audio.num_samples - 16000) <= 2048


def _truncated(path, tone):
    soundfile.write(path, tone, 16000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


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
        read_audio(path)
    assert name in str(caught.value)


def test_values_beyond_full_scale_are_kept(tmp_path, tone):
    path = tmp_path / "loud.wav"
    soundfile.write(path, 5 * tone, 16000, subtype="FLOAT")
    np.testing.assert_array_equal(read_audio(path).samples[0], 5 * tone)


@pytest.mark.parametrize("rate, channels", [(4000, 1), (192000, 2), (16000, 8)])
def test_unusual_rates_and_channel_counts(tmp_path, tone, rate, channels):
    path = tmp_path / "odd.wav"
    soundfile.write(path, np.stack([tone] * channels, 1), rate)
    audio = read_audio(path)
    assert (audio.sample_rate_hz, audio.channels, audio.num_samples) == (rate, channels, len(tone))


def test_audio_checks_its_shape_and_rate():
    with pytest.raises(ValueError, match="shape"):
        Audio(np.zeros((1, 2, 3)), 16000)
    with pytest.raises(ValueError, match="rate"):
        Audio(np.zeros(3), 0)
