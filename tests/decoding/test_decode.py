"""Reading sound files: the right samples, and one clear sentence for everything that is not sound."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from refusals import refuses

import codec_bench
from codec_bench.decoding.concatenated_files import second_file
from codec_bench.decoding.decode import _read_plain_wav, decode_bytes
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


@pytest.mark.parametrize("channels", [1, 2, 7])
@pytest.mark.parametrize("samples", [1, 400, 100_003])
def test_plain_wav_files_are_read_as_libsndfile_reads_them(tmp_path, channels, samples):
    integers = np.random.default_rng(channels).integers(-32768, 32768, (samples, channels), dtype=np.int16)
    path = tmp_path / "a.wav"
    soundfile.write(path, integers, 22_050)
    expected = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    for audio in (Audio.read(path), decode_bytes(path.read_bytes(), "a")):
        assert (audio.sample_rate_hz, audio.samples.flags.c_contiguous) == (22_050, True)
        np.testing.assert_array_equal(audio.samples, expected)


@pytest.mark.parametrize(("at", "value"), [(4, 9), (16, 18), (20, 3), (22, 2), (28, 9), (32, 3), (34, 24), (40, 400)])
def test_a_plain_wav_file_with_one_other_number_is_left_to_libsndfile(tone, at, value):
    file = io.BytesIO()
    soundfile.write(file, tone, 16_000, format="WAV")
    changed = bytearray(file.getvalue())
    assert _read_plain_wav(bytes(changed), "a", 1e9) is not None
    changed[at : at + 2] = value.to_bytes(2, "little")
    assert _read_plain_wav(bytes(changed), "a", 1e9) is None


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
    soundfile.write(path, np.tile(tone, 4), 16000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _with_bits(path, tone, bits):
    soundfile.write(path, tone, 16000)
    head = bytearray(path.read_bytes())
    head[34:36] = bits.to_bytes(2, "little")
    path.write_bytes(head)


@pytest.mark.parametrize(
    "name, make, code, shown",
    [
        ("none.wav", lambda p, t: None, "no_file", {}),
        ("empty.wav", lambda p, t: p.write_bytes(b""), "sound_empty", {}),
        ("text.wav", lambda p, t: p.write_text("this is not sound\n" * 50), "not_a_sound", {}),
        ("cut.flac", _truncated, "samples_missing|not_decoded", {}),
        ("cut.wav", _truncated, "bytes_missing", {}),
        *((f"cut.{kind}", _truncated, "bytes_missing", {}) for kind in ("aiff", "au", "w64")),
        ("cut.mp3", _truncated, "end_missing|frames_missing", {}),
        ("cut.ogg", _truncated, "end_missing", {}),
        ("nothing.wav", lambda p, t: soundfile.write(p, t[:0], 16000), "sound_without_samples", {}),
        ("folder.wav", lambda p, t: p.mkdir(), "folder_for_sound", {}),
        (
            "nan.wav",
            lambda p, t: soundfile.write(p, np.r_[t[:100], np.nan], 16000, subtype="FLOAT"),
            "samples_not_finite",
            {"samples": 1, "at_s": 100 / 16000},
        ),
        (
            "beyond.wav",
            lambda p, t: soundfile.write(p, np.r_[t[:99], 1e34], 16000, subtype="FLOAT"),
            "samples_too_loud",
            {"value": "1e+34", "at_s": 99 / 16000},
        ),
        (
            "negative.wav",
            lambda p, t: soundfile.write(p, np.r_[t, -20000], 16000, subtype="FLOAT"),
            "samples_too_loud",
            {"samples": 1},
        ),
        ("slow.wav", lambda p, t: soundfile.write(p, t, 999), "sound_rate", {"rate_hz": 999}),
        ("fast.wav", lambda p, t: soundfile.write(p, t, 8_600_000), "sound_rate", {"rate_hz": 8_600_000}),
        ("bits.wav", lambda p, t: _with_bits(p, t, 201), "coding_unknown|not_a_sound", {}),
        (
            "inf.wav",
            lambda p, t: soundfile.write(p, np.r_[np.inf, t[:100], -np.inf], 16000, subtype="FLOAT"),
            "samples_not_finite",
            {"samples": 2},
        ),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, tone, name, make, code, shown):
    path = tmp_path / name
    make(path, tone)
    with refuses(code, **shown) as caught:
        Audio.read(path)
    assert name in str(caught.value)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize("kind", ["mp3", "ogg", "aiff", "au", "w64"])
def test_a_file_that_went_through_a_pipe_or_ends_in_a_tag_is_whole(tmp_path, tone, kind):
    path, options = tmp_path / f"whole.{kind}", {"mp3": ["-id3v2_version", "3", "-write_id3v1", "1"]}.get(kind, [])
    soundfile.write(tmp_path / "tone.wav", tone, 16000)
    with path.open("wb") as out:
        command = [
            "ffmpeg",
            "-v",
            "error",
            "-i",
            tmp_path / "tone.wav",
            "-metadata",
            "title=" + 3000 * "x",
            *options,
            "-f",
            kind,
            "-",
        ]
        subprocess.run(command, stdout=out, check=True)
    assert Audio.read(path).duration_s == pytest.approx(1.0, abs=0.1)
    if kind == "mp3":  # to a file, its encoder writes how long it is
        subprocess.run([*command[:-3], path, "-y"], check=True)
        assert Audio.read(path).duration_s == pytest.approx(1.0, abs=0.1)


def test_values_beyond_full_scale_are_preserved(tmp_path, tone):
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


def test_memory_is_allocated_for_what_a_file_contains(tmp_path, tone, monkeypatch):
    """A header may declare terabytes: an MP3 file whose Xing header says so, and a FLAC file of 2**36 - 1 samples."""
    path = tmp_path / "declares.flac"
    soundfile.write(path, tone, 16000)
    data = bytearray(path.read_bytes())
    data[21] |= 0x0F
    data[22:26] = b"\xff" * 4
    path.write_bytes(data)
    with refuses("samples_missing|not_decoded"):
        Audio.read(path)
    path = tmp_path / "declares.mp3"
    soundfile.write(path, tone, 16000)
    data = bytearray(path.read_bytes())
    position = data.find(b"Xing") if b"Xing" in data else data.find(b"Info")
    data[position + 8 : position + 12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    assert Audio.read(path).num_samples < 40000
    monkeypatch.setattr("codec_bench.decoding.decode.MOST_BYTES", 50_000)
    monkeypatch.setattr("codec_bench.decoding.decode._AT_ONCE", 1000)
    soundfile.write(path := tmp_path / "long.wav", tone, 16000)
    with refuses("file_too_large", name="long.wav"):
        Audio.read(path)


@pytest.mark.parametrize("error", [AttributeError("no stream"), StopIteration(), MemoryError(), RecursionError("deep")])
def test_whatever_a_decoder_raises_is_reported_with_the_name(tmp_path, tone, monkeypatch, error):
    soundfile.write(path := tmp_path / "a.flac", tone, 16000)

    def decode(*_args, **_more):
        raise error

    monkeypatch.setattr(soundfile, "SoundFile", decode)
    with refuses("decoding_out_of_memory|not_decoded", name="a.flac"):
        Audio.read(path)


PLAYLISTS = {
    "ffconcat": "ffconcat version 1.0\nfile secret.wav\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 18098 RTP/AVP 0\n",
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.wav\n#EXT-X-ENDLIST\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period/></MPD>',
    "meta": ";FFMETADATA1\ntitle=x\n",
}


@pytest.mark.parametrize("kind", sorted(PLAYLISTS))
@pytest.mark.parametrize("suffix", [".wav", ".mp3", ".flac"])
def test_text_that_names_other_files_or_hosts_is_no_sound(tmp_path, tone, monkeypatch, kind, suffix):
    soundfile.write(tmp_path / "secret.wav", tone, 16000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "socket", lambda *_a, **_k: pytest.fail("a socket was opened"))
    (tmp_path / f"a{suffix}").write_text(PLAYLISTS[kind])
    start = time.monotonic()
    with refuses("not_a_sound"):
        Audio.read(tmp_path / f"a{suffix}")
    with refuses("not_a_sound"):
        decode_bytes(PLAYLISTS[kind].encode(), "a")
    assert time.monotonic() - start < 10  # FFmpeg waits 20 s at a socket


def test_there_is_no_other_way_to_ffmpegs_formats():
    """Every other way would take what a stranger wrote for whatever FFmpeg knows, with the network and all files open
    to it.

    A file that is written is one's own.
    """
    ways = re.compile(
        r"\bav\.open\((?!\w+, "
        r"\"w\")|\bav\.container\.open\(|torchaudio\.load|torchcodec\.|librosa\.load|[\"']ffmpeg[\"']|decode_audio\("
    )
    package = Path(codec_bench.__file__).parent
    folders = [package, package.parent / "kernels", package.parent / "examples"]
    by_name = {
        f"{path.relative_to(package.parent)}: {line.strip()}"
        for folder in folders
        for path in folder.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if ways.search(line)
    }
    (only,) = by_name
    assert only.startswith("codec_bench/decoding/decode.py: ") and "format_whitelist" in only


def _written(kind, subtype, tone):
    file = io.BytesIO()
    soundfile.write(file, tone, 16000, format=kind, subtype=subtype)
    return file.getvalue()


@pytest.mark.parametrize(
    "kind, subtype",
    [("WAV", "PCM_16"), ("RF64", "PCM_16"), ("W64", "PCM_16"), ("FLAC", "PCM_16"), ("AIFF", "PCM_16"), ("AU", "PCM_16"),
        ("CAF", "PCM_16"),
     ("NIST", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")],
)  # fmt: skip
def test_joined_files_and_chained_streams_are_refused_and_not_cut(tmp_path, tone, kind, subtype):
    one = _written(kind, subtype, tone)
    assert abs(decode_bytes(one, "one").samples.shape[1] - len(tone)) < 200
    path = tmp_path / "two.wav"
    path.write_bytes(one + one)
    for read in (lambda: decode_bytes(one + one, "two"), lambda: Audio.read(path)):
        with refuses("joined_sounds|joined_sounds_first"):
            read()


KINDS = {"WAV": "PCM_16", "FLAC": "PCM_16", "AIFF": "PCM_16", "AU": "PCM_16", "OGG": "OPUS", "MP3": "MPEG_LAYER_III"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_behind_the_first_is_seen(tone, kind):
    files = {other: _written(other, subtype, tone) for other, subtype in KINDS.items()}
    one = files[kind]
    assert second_file(one) is None
    for other, behind in files.items():
        assert second_file(one + behind) in range(len(one), len(one) + 100), other
        with refuses("joined_sounds_first"):
            decode_bytes(one + behind, "two")


@pytest.mark.parametrize("message", [0, 7, 0xFFFFFFFF])
def test_a_wav_file_with_a_wrong_size_hides_no_second_one(tone, message):
    one = bytearray(_written("WAV", "PCM_16", tone))
    one[4:8] = message.to_bytes(4, "little")
    assert second_file(bytes(one)) is None
    assert second_file(bytes(one) + _written("FLAC", "PCM_16", tone)) == len(one)


@pytest.mark.parametrize("channels", [3, 9, 64])
def test_every_channel_of_a_matroska_file_is_read(channels):
    """Of more than eight planes PyAV reads memory that is not the frame's, and may end the process."""
    import av

    file, values = io.BytesIO(), np.arange(channels, dtype=np.int16) * 100
    with av.open(file, "w", format="matroska") as container:
        stream = container.add_stream("pcm_s16le", rate=16_000)
        stream.layout = f"{channels} channels"
        frame = av.AudioFrame(format="s16", layout=stream.layout.name, samples=1600)
        frame.planes[0].update(np.tile(values, (1, 1600)).tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
        frame.rate = 16_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    samples = decode_bytes(file.getvalue(), "many").samples
    assert samples.shape == (channels, 1600) and (samples * 32768 == values[:, None]).all()


def test_wav_files_of_telephones_are_read(tone):
    assert abs(decode_bytes(_written("WAV", "GSM610", tone), "gsm").samples.shape[1] - len(tone)) <= 320


@pytest.mark.parametrize("channels", [1, 2])
def test_an_hour_of_sound_is_in_memory_once(tmp_path, channels):
    """A sparse file, which holds an hour of samples and next to no bytes on the disk."""
    frames = 3600 * 16_000 // channels
    soundfile.write(path := tmp_path / "sparse.wav", np.zeros((1, channels), np.float32), 16_000, subtype="PCM_16")
    size = frames * channels * 2
    head = bytearray(path.read_bytes()[:44])
    head[4:8], head[40:44] = (size + 36).to_bytes(4, "little"), size.to_bytes(4, "little")
    path.write_bytes(head)
    os.truncate(path, 44 + size)
    program = (
        "import re, sys; from codec_bench.types import Audio; print(Audio.read(sys.argv[1]).num_samples, "
        # Not the peak of `getrusage`, which a process inherits from the one that started it.
        "int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) >> 10)"
    )
    output = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    read, mebibytes = map(int, output.stdout.split())
    assert read == frames and mebibytes < 460  # 220 for the samples; twice they would be 440, and 130 for the rest
