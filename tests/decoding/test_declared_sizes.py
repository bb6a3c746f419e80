"""Headers that declare other sizes than the file holds: read whole, or refused, and never a part in silence."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench import evaluate
from codec_bench.decoding.decode import decode_bytes
from codec_bench.messages.errors import AudioError

RATE_HZ = 16_000


@pytest.fixture(scope="module")
def tone():
    t = np.arange(2 * RATE_HZ) / RATE_HZ
    return (0.4 * np.sin(2 * np.pi * (200 + 300 * t) * t)).astype(np.float32)


def written(samples, kind, subtype="PCM_16", rate_hz=RATE_HZ):
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=kind, subtype=subtype)
    return file.getvalue()


def through_ffmpeg(samples, container, codec, rate_hz=RATE_HZ, options=None):
    """What FFmpeg writes."""
    file = io.BytesIO()
    with av.open(file, "w", format=container, options=options or {}) as out:
        stream = out.add_stream(codec, rate=rate_hz)
        stream.layout = "mono"
        pcm = np.rint(samples * 32767).astype(np.int16)[None]
        stream.codec_context.open()
        size = stream.codec_context.frame_size or pcm.shape[1]
        for at in range(0, pcm.shape[1], size):
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(pcm[:, at : at + size]), format="s16", layout="mono"
            )
            frame.rate, frame.pts = rate_hz, at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def with_flac_length(data, samples):
    """A FLAC file that declares so many samples."""
    packed = int.from_bytes(data[21:26], "big") & ~((1 << 36) - 1) | samples
    return data[:21] + packed.to_bytes(5, "big") + data[26:]


STREAMED = [0, 0x7FFFF000, 0x7FFFFF9B, 0x7FFFFFFF, 2_000_000_000, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("size", STREAMED)
def test_a_wav_of_a_pipe_is_whole(tone, size):
    data = bytearray(written(tone, "WAV"))
    at = data.index(b"data") + 4
    data[at : at + 4] = size.to_bytes(4, "little")
    data[4:8] = min(size + 36, 0xFFFFFFFF).to_bytes(4, "little")
    sound = decode_bytes(bytes(data), "piped.wav")
    assert sound.samples.shape == (1, tone.size) and np.abs(sound.samples[0] - tone).max() < 1e-4


@pytest.mark.parametrize("size", [0, 0x7FFFF000])
def test_a_wav_of_a_pipe_may_begin_with_digital_silence(tone, size):
    silent = np.concatenate([np.zeros(800, np.float32), tone])
    data = bytearray(written(silent, "WAV"))
    at = data.index(b"data") + 4
    data[at : at + 4] = size.to_bytes(4, "little")
    assert decode_bytes(bytes(data), "piped.wav").samples.shape == (1, silent.size)


@pytest.mark.parametrize("kind", ["WAV", "AIFF"])
def test_silence_behind_the_declared_end_is_no_padding_if_sound_follows(tone, kind):
    gap = np.concatenate([tone, np.zeros(800, np.float32), tone])
    data = bytearray(written(gap, kind))
    mark, order, before = (b"data", "little", 0) if kind == "WAV" else (b"SSND", "big", 8)
    at = data.index(mark) + 4
    data[at : at + 4] = (2 * tone.size + before).to_bytes(4, order)
    with refuses("bytes_not_declared", name="short.x"):
        decode_bytes(bytes(data), "short.x")


@pytest.mark.parametrize("change", [1, 1000, 100_000])
def test_a_wav_that_lacks_bytes_is_truncated(tone, change):
    data = bytearray(written(tone, "WAV"))
    at = data.index(b"data") + 4
    data[at : at + 4] = (2 * tone.size + change).to_bytes(4, "little")
    with refuses("bytes_missing", name="cut.wav"):
        decode_bytes(bytes(data), "cut.wav")


@pytest.mark.parametrize("kind", ["WAV", "AIFF", "AU", "CAF"])
def test_audio_behind_the_declared_end_is_not_dropped(tone, kind):
    data = bytearray(written(tone, kind))
    half = tone.size  # bytes of half of the samples
    mark, skip, size_bytes, order = {
        "WAV": (b"data", 4, 4, "little"), "AIFF": (b"SSND", 4, 4, "big"),
        "AU": (b".snd", 8, 4, "big"), "CAF": (b"data", 4, 8, "big"),
    }[kind]  # fmt: skip
    at = data.index(mark) + skip
    size = half + int.from_bytes(data[at : at + size_bytes], order) - 2 * tone.size
    data[at : at + size_bytes] = size.to_bytes(size_bytes, order)
    with refuses("bytes_not_declared", name="short.x"):
        decode_bytes(bytes(data), "short.x")


@pytest.mark.parametrize("tail", [b"", b"\n", b"LIST\x04\0\0\0INFO", b"TAG" + 125 * b"x", bytes(64)])
def test_chunks_and_tags_behind_a_wav_are_no_audio(tone, tail):
    assert decode_bytes(written(tone, "WAV") + tail, "tagged.wav").samples.shape == (1, tone.size)


def test_an_empty_wav_with_a_chunk_behind_it_holds_nothing(tone):
    with refuses("sound_without_samples"):
        decode_bytes(written(tone[:0], "WAV") + b"LIST\x04\0\0\0INFO", "empty.wav")


@pytest.mark.parametrize("declared", [0, 1, 4096, 16_000, 31_999])
def test_a_flac_that_declares_too_little_is_whole(tone, declared):
    data = with_flac_length(written(tone, "FLAC"), declared)
    try:
        sound = decode_bytes(data, "short.flac")
    except AudioError:
        assert declared == 31_999  # inside of its last frame, which no reader explains
        return
    assert sound.samples.shape == (1, tone.size) and np.abs(sound.samples[0] - tone).max() < 1e-4


def test_a_flac_of_a_pipe_with_a_damaged_frame_is_refused(tone):
    data = bytearray(with_flac_length(written(tone, "FLAC"), 0))
    data[len(data) // 2] ^= 0x55
    with refuses("last_frame_elsewhere"):
        decode_bytes(bytes(data), "damaged.flac")


def test_flac_in_ogg_is_read(tone):
    data = through_ffmpeg(tone, "ogg", "flac")
    sound = decode_bytes(data, "a.oga")
    assert sound.samples.shape == (1, tone.size) and np.abs(sound.samples[0] - tone).max() < 1e-4
    with pytest.raises(AudioError):
        decode_bytes(data[: len(data) * 2 // 3], "cut.oga")


def test_mp3_in_wav_is_read(tone):
    data = through_ffmpeg(tone, "wav", "libmp3lame")
    assert tone.size <= decode_bytes(data, "a.wav").samples.shape[1] <= tone.size + 3 * 1152


def without_xing(data):
    """The frames of an MP3 file without the one that its encoder adds."""
    at = data.index(b"\xff\xf3")
    mark = max(data.find(b"Xing"), data.find(b"Info"))
    return data[data.index(b"\xff\xf3", mark) :] if mark >= 0 else data[at:]


def test_mp3_is_whole_whatever_its_header_counts(tone):
    one = written(tone, "MP3", "MPEG_LAYER_III")
    joined = one + without_xing(one)
    assert decode_bytes(joined, "joined.mp3").samples.shape[1] >= 2 * tone.size - 2000
    bare = without_xing(one)
    assert decode_bytes(bare + bare, "bare.mp3").samples.shape[1] >= 2 * tone.size - 2000
    faster = without_xing(written(tone, "MP3", "MPEG_LAYER_III", 22_050))
    with refuses("joined_rates", name="mixed.mp3"):
        decode_bytes(bare + faster, "mixed.mp3")


@pytest.mark.parametrize("declared", ["none", 0, "half", "one less", 2_000_000_000])
def test_mp3_begins_at_its_first_sample_whatever_its_header_declares(tone, declared):
    data = bytearray(written(tone, "MP3", "MPEG_LAYER_III"))
    complete = decode_bytes(bytes(data), "a.mp3").samples
    mark = max(data.find(b"Xing"), data.find(b"Info"))
    frames = int.from_bytes(data[mark + 8 : mark + 12], "big")
    if declared == "none":
        data[mark + 7] &= 0xFE
        del data[mark + 8 : mark + 12]  # the frame has the same size: four bytes more at its end
        end = mark + 8 + 4 + 100 + 4 + 24
        data[end:end] = bytes(4)
    else:
        frames = {"half": frames // 2, "one less": frames - 1}.get(declared, declared)
        data[mark + 8 : mark + 12] = frames.to_bytes(4, "big")
    result = decode_bytes(bytes(data), "a.mp3").samples
    assert complete.shape[1] <= result.shape[1] <= complete.shape[1] + 1152
    assert np.abs(result[:, : complete.shape[1]] - complete).max() < 1e-4


def test_mp3_without_its_last_frame_or_a_part_of_it_is_truncated(tone):
    """A whole file of FFmpeg's, whose header counts the frames and the bytes."""
    data = through_ffmpeg(tone, "mp3", "libmp3lame")
    last = data.rindex(data[data.index(b"\xff\xf3") :][:2])
    bare = without_xing(data)
    assert decode_bytes(data, "a.mp3").samples.shape[1] >= tone.size
    assert decode_bytes(bare[: last - len(data)], "bare.mp3").samples.shape[1] >= tone.size - 1152
    for cut in (data[:last], data[: last + 2], data[:-1], bare[:-1], bare[: last + 2 - len(data)]):
        with refuses("frames_missing|last_frame_cut", name="cut"):
            decode_bytes(cut, "cut")


@pytest.mark.parametrize("quality", [0.0, 0.5, 0.99])
def test_whole_mp3_of_any_quality_is_no_suspect(tone, quality):
    for samples in (tone, tone[:3000], np.tile(tone, 3)):
        file = io.BytesIO()
        soundfile.write(file, samples, RATE_HZ, format="MP3", subtype="MPEG_LAYER_III", compression_level=quality)
        assert decode_bytes(file.getvalue(), "a.mp3").samples.shape[1] == pytest.approx(samples.size, abs=2400)


def crc(page):
    value = 0
    for byte in page:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x104C11DB7) if value & 0x80000000 else value << 1
    return value


def test_opus_whose_granules_start_late_is_not_shifted(tone):
    """A cut of a stream: the pre-skip is discarded as from any other (RFC 7845, section 4.3)."""
    samples = np.interp(np.arange(48_000) / 48_000, np.arange(tone.size) / RATE_HZ, tone).astype(np.float32)
    data = bytearray(written(samples, "OGG", "OPUS", 48_000))
    complete = decode_bytes(bytes(data), "a.opus").samples
    at = number = 0
    while at < len(data):
        size = 27 + data[at + 26] + sum(data[at + 27 : at + 27 + data[at + 26]])
        granule = int.from_bytes(data[at + 6 : at + 14], "little")
        if number > 1:
            data[at + 6 : at + 14] = (granule + 48_000).to_bytes(8, "little")
            data[at + 22 : at + 26] = bytes(4)
            data[at + 22 : at + 26] = crc(data[at : at + size]).to_bytes(4, "little")
        at, number = at + size, number + 1
    late = decode_bytes(bytes(data), "late.opus").samples
    assert late.shape == complete.shape and np.abs(late - complete)[:, 2000:-2000].max() < 0.01


@pytest.mark.parametrize("container,codec", [("mp4", "aac"), ("webm", "libopus"), ("mp3", "libmp3lame")])
@pytest.mark.parametrize("item", [0.4, 0.95])
def test_a_coded_file_that_is_cut_is_refused(tone, tmp_path, container, codec, item):
    path = tmp_path / f"whole.{container}"
    options = {"movflags": "faststart"} if container == "mp4" else {}
    with av.open(str(path), "w", options=options) as out:
        stream = out.add_stream(codec, rate=RATE_HZ, layout="mono")
        stream.codec_context.open()
        size = stream.codec_context.frame_size
        for at in range(0, tone.size - size, size):
            pcm = np.rint(tone[None, at : at + size] * 32767).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(pcm, format="s16p" if codec == "libmp3lame" else "s16", layout="mono")
            frame.rate, frame.pts = RATE_HZ, at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    data = path.read_bytes()
    sound = decode_bytes(data, "whole")
    assert sound.samples.shape[1] / sound.sample_rate_hz == pytest.approx(2, abs=0.1)
    with refuses("bytes_missing|end_missing|frames_missing", name="cut"):
        decode_bytes(data[: int(item * len(data))], "cut")


@pytest.mark.parametrize("kind,dropped", [("CAF", 2), ("NIST", 2), ("NIST", 30_000), ("W64", 2)])
def test_pcm_that_is_cut_is_truncated(tone, kind, dropped):
    with refuses("bytes_missing", name="cut"):
        decode_bytes(written(tone, kind)[:-dropped], "cut")


def test_a_w64_whose_riff_has_another_size_is_truncated_all_the_same(tone):
    data = bytearray(written(tone, "W64"))
    data[16:24] = bytes(8)
    assert decode_bytes(bytes(data), "a.w64").samples.shape == (1, tone.size)
    with refuses("bytes_missing", name="cut"):
        decode_bytes(bytes(data[:-5000]), "cut")


@pytest.mark.parametrize("container,codec", [("webm", "libopus"), ("matroska", "flac"), ("adts", "aac")])
def test_a_stream_without_a_declared_size_that_ends_inside_a_frame_is_truncated(tone, container, codec):
    data = through_ffmpeg(tone, container, codec, options={"live": "1"} if container != "adts" else {})
    sound = decode_bytes(data, "whole")
    assert sound.samples.shape[1] / sound.sample_rate_hz == pytest.approx(2, abs=0.15)
    for dropped in (1, 5, len(data) // 2 + 1):
        with refuses("bytes_missing", name="cut"):
            decode_bytes(data[:-dropped], "cut")


@pytest.fixture(scope="module")
def run_and_lengths(tmp_path_factory):
    """A run over the folder, and how many seconds every file holds; 0 for one that must fail."""
    folder = tmp_path_factory.mktemp("folder")
    rng = np.random.default_rng(5)
    noise = (0.1 * rng.standard_normal(18 * RATE_HZ)).astype(np.float32)
    short = noise[: 2 * RATE_HZ]
    piped = bytearray(written(short, "WAV"))
    at = piped.index(b"data") + 4
    piped[at : at + 4] = (0xFFFFFFFF).to_bytes(4, "little")
    mp3 = written(short, "MP3", "MPEG_LAYER_III")
    files = {
        "good_a.wav": (written(short, "WAV"), 2), "good_b.flac": (written(short, "FLAC"), 2),
        "piped.wav": (bytes(piped), 2),
        "unknown.flac": (with_flac_length(written(noise, "FLAC"), 0), 18),
        "half.flac": (with_flac_length(written(noise, "FLAC"), 9 * RATE_HZ), 18),
        "in_ogg.oga": (through_ffmpeg(short, "ogg", "flac"), 2),
        "mp3_in.wav": (through_ffmpeg(short, "wav", "libmp3lame"), 2), "joined.mp3": (mp3 + without_xing(mp3), 4),
        "cut.wav": (written(short, "WAV")[:-5000], 0), "cut.mp3": (mp3[: len(mp3) // 2], 0),
        "cut.caf": (written(short, "CAF")[:-5000], 0),
    }  # fmt: skip
    for name, (content, _) in files.items():
        (folder / name).write_bytes(content)
    run = evaluate(
        codec="g711-ulaw", data=str(folder), metrics="snr",
        out=tmp_path_factory.mktemp("run") / "run", page=False, cache=False, check=False, save_audio="none", workers=1,
    )  # fmt: skip
    return run, {name: seconds for name, (_, seconds) in files.items()}


def test_every_row_has_all_of_its_samples_or_has_failed(run_and_lengths):
    run, seconds = run_and_lengths
    held = {sample.audio.rpartition("/")[2]: sample for sample in run.samples()}
    assert set(held) == set(seconds)
    values = {score.id: score.value for score in run.scores()}
    for name, expected in seconds.items():
        value = values.get(held[name].id)
        if expected:
            assert held[name].duration_s == pytest.approx(expected, abs=0.3) and value is not None, name
        else:
            assert held[name].duration_s is None and value is None, name
