"""Reading sound files, and refusing those that must not be scored.

libsndfile reads WAV, FLAC, Ogg and MP3. FFmpeg (through PyAV) reads the formats that libsndfile does not know. Integer
samples are scaled to [-1, 1) by their full scale; the level is not normalised.
"""

from __future__ import annotations

import io
import os
import re

import numpy as np

from codec_bench.errors import AudioError
from codec_bench.types import Audio

SUFFIXES = frozenset(
    ".wav .flac .ogg .oga .opus .mp3 .m4a .mp4 .aac .amr .wma .aif .aiff .au .caf .w64 .webm .mka .sph".split()
)
_DECLARES_LENGTH = frozenset(("WAV", "WAVEX", "FLAC", "AIFF", "W64", "AU"))
_MENDED_SIZE = re.compile(r"^\s*data\s*:\s*(\d+) \(should be (\d+)\)", re.MULTILINE)


def read_file(path: str) -> Audio:
    """Decodes a file: all channels, at its own rate.

    Raises:
        AudioError: the file is missing, empty, truncated or not audio, or it holds no samples or samples that are not
            finite.
    """
    if not os.path.exists(path):
        raise AudioError(f"there is no file '{path}'")
    if os.path.isdir(path):
        raise AudioError(f"'{path}' is a folder; expected a sound file")
    if os.path.getsize(path) == 0:
        raise AudioError(f"'{path}' is empty (0 bytes)")
    return _decode(path, path)


def decode_bytes(data: bytes, name: str) -> Audio:
    """Decodes the bytes of a sound file.

    Args:
        data: the content of the file.
        name: its name, for messages.

    Raises:
        AudioError: as `read_file`.
    """
    if not data:
        raise AudioError(f"'{name}' is empty (0 bytes)")
    return _decode(data, name)


def _decode(source: str | bytes, name: str) -> Audio:
    audio = _read_libsndfile(source, name)
    if audio is None:
        audio = _read_ffmpeg(source, name)
    check_samples(audio, name)
    return audio


def check_samples(audio: Audio, name: str) -> None:
    """Refuses audio without samples, or with samples that are not finite.

    Raises:
        AudioError: the message names the item and the first bad sample.
    """
    if audio.samples.size == 0:
        raise AudioError(f"'{name}' holds no samples")
    # A sum is finite only if every sample is, and it needs one pass over the samples and no copy of them.
    with np.errstate(over="ignore", invalid="ignore"):
        total = audio.samples.sum(dtype=np.float64)
    if not np.isfinite(total):
        bad = np.argwhere(~np.isfinite(audio.samples))
        channel, first = bad[np.argmin(bad[:, 1])]
        raise AudioError(
            f"'{name}' has {len(bad)} samples that are not finite, the first "
            f"({audio.samples[channel, first]}) at {first / audio.sample_rate_hz:.3f} s"
        )


def _read_libsndfile(source: str | bytes, name: str) -> Audio | None:
    import soundfile

    try:
        with soundfile.SoundFile(source if isinstance(source, str) else io.BytesIO(source)) as file:
            expected, rate, log, kind = file.frames, file.samplerate, file.extra_info, file.format
            samples = file.read(dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        if "flac" in str(error).lower() or "psf" in str(error).lower():
            raise AudioError(f"'{name}' cannot be decoded: {error.error_string.strip()}") from error
        return None
    # A compressed stream may declare no length (2**63 - 1). A file with fewer samples than it declares was cut off.
    # libsndfile corrects the declared size of a WAV file, and only its log says so. It also logs the size of a file that
    # was written to a pipe (0 or 2**32 - 1), which is whole.
    if len(samples) < expected < 2**62 and kind in _DECLARES_LENGTH:
        raise AudioError(f"'{name}' is truncated: it declares {expected} samples and holds {len(samples)}")
    mended = _MENDED_SIZE.search(log)
    if mended and int(mended[2]) < int(mended[1]) < 2**32 - 256:
        raise AudioError(f"'{name}' is truncated: it declares {mended[1]} bytes of sound and holds {mended[2]}")
    return Audio(samples.T, rate)


def _read_ffmpeg(source: str | bytes, name: str) -> Audio:
    import av

    try:
        with av.open(source if isinstance(source, str) else io.BytesIO(source), "r") as container:
            if not container.streams.audio:
                raise AudioError(f"'{name}' holds no audio stream")
            stream = container.streams.audio[0]
            rate = stream.codec_context.sample_rate
            resampler = av.AudioResampler(format="fltp", rate=rate)
            parts = [f.to_ndarray() for frame in container.decode(stream) for f in resampler.resample(frame)]
            parts += [f.to_ndarray() for f in resampler.resample(None)]
    except AudioError:
        raise
    except (av.error.FFmpegError, ValueError, IndexError) as error:
        raise AudioError(f"'{name}' is not a sound file that libsndfile or FFmpeg can read ({error})") from error
    if not parts:
        raise AudioError(f"'{name}' holds no samples")
    return Audio(np.concatenate(parts, axis=1), rate)
