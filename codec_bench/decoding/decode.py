"""Decodes sound files, and refuses those that must not be scored.

libsndfile reads WAV, FLAC, Ogg and MP3; FFmpeg (through PyAV) reads the rest. Integer samples are scaled to [-1, 1) by
their full scale, without level normalisation. All external audio passes `check_audio`. Any exception of a decoder
becomes an `AudioError` with the file's name. Memory follows a file's content, not its header.
"""

from __future__ import annotations

import io
import itertools
import math
import mmap
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from codec_bench.decoding.concatenated_files import missing_bytes, second_file
from codec_bench.decoding.declared_sizes import SizePlan, plan
from codec_bench.messages.errors import AudioError, describe

if TYPE_CHECKING:
    import soundfile
    from av.container import InputContainer

SUFFIXES = frozenset(
    ".wav .flac .ogg .oga .opus .mp3 .m4a .mp4 .aac .amr .wma .aif .aiff .au .caf .w64 .webm .mka .sph".split()
)
FFMPEG_FORMATS = "wav,w64,flac,ogg,mp3,mp4,aac,amr,amrnb,amrwb,asf,aiff,au,caf,matroska,nistsphere"
"""FFmpeg's allowed formats; others are lists that open files, hosts or sockets."""
LOWEST_HZ, HIGHEST_HZ = 1_000, 768_000
"""The sample rates of audio; any other in a file is a damaged header."""
LOUDEST = 1e4
"""Samples are nominally in [-1, 1]; beyond this, they are integers read as floats."""
MOST_BYTES = 7 << 28
"""Memory for one file's samples: eight hours of mono at 16 kHz."""
_AT_ONCE = 16 << 20
"""Samples per block: the allocator returns 64 MiB, but keeps under 32 MiB."""
_MAPPED_FROM = 128 << 10
"""Bytes from which mapping a file into memory takes less time than reading it."""
_PLAIN_WAV = struct.Struct("<4sI8sIHHIIHH4sI")
"""Header of a WAV file with two chunks, `fmt ` and `data`, as most programs write PCM."""
_DECLARES_LENGTH = frozenset(("WAV", "WAVEX", "FLAC", "AIFF", "W64", "AU"))
_Result = TypeVar("_Result")
_MENDED_SIZE = re.compile(r"^\s*(?:data|SSND|Data Size|riff)\s*:\s*(\d+) \(should be (\d+)\)", re.MULTILINE)


class Decoded(NamedTuple):
    """Decoded audio: float32 samples `(channels, samples)` and their rate."""

    samples: np.ndarray
    sample_rate_hz: int


class SampledSound(Protocol):
    """Samples with their rate."""

    @property
    def samples(self) -> np.ndarray:
        """As in `Decoded`."""

    @property
    def sample_rate_hz(self) -> int:
        """As in `Decoded`."""


def decoded(samples: Any, sample_rate_hz: Any) -> Decoded:
    """Return samples in the package's layout; a one-dimensional array is one channel.

    Raises:
        ValueError: not floats, not one or two dimensions, or the rate is not a positive whole number.
    """
    try:
        array = np.asarray(samples)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: a tensor of torch that has a gradient
        raise ValueError(f"audio is a {type(samples).__name__} that is no array of numbers: {error}") from error
    if array.dtype.kind in "iu":
        # Their full scale is unknown, and unscaled integers lie beyond any.
        raise ValueError(
            f"audio holds {array.dtype}; expected floats in [-1, 1], such as 16-bit integers divided by 32768"
        )
    if array.dtype.kind != "f":
        raise ValueError(f"audio holds {array.dtype}; expected floats in [-1, 1], (channels, samples)")
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise ValueError(f"audio has shape {array.shape}; expected (channels, samples)")
    try:
        rate = int(sample_rate_hz)
    except (TypeError, ValueError, OverflowError):
        rate = 0
    if rate <= 0 or rate != sample_rate_hz:
        raise ValueError(f"the sample rate is {sample_rate_hz!r}; expected a positive whole number of Hz")
    return Decoded(np.ascontiguousarray(array, dtype=np.float32), rate)


def read_file(path: str, most_s: float = math.inf) -> Decoded:
    """Decode a file: all channels, at its own rate.

    Args:
        most_s: longer audio is refused before all of it is decoded.

    Raises:
        AudioError: the file is missing, empty, truncated, too long or not audio, or as `check_audio`.
    """
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        raise AudioError("no_file", path=path) from None
    if stat.S_ISDIR(about.st_mode):
        raise AudioError("folder_for_sound", path=path)
    if about.st_size == 0:
        raise AudioError("sound_empty", name=path)
    return _decode(path, path, most_s)


def decode_bytes(data: bytes, name: str, most_s: float = math.inf) -> Decoded:
    """Decode the bytes of a sound file as `read_file`; `name` is for messages."""
    if not data:
        raise AudioError("sound_empty", name=name)
    return _decode(data, name, most_s)


def _decode(source: str | bytes, name: str, most_s: float) -> Decoded:
    audio = guarded(name, lambda: _read_whole(source, name, most_s))
    check_audio(audio, name)
    return audio


def _read_whole(source: str | bytes, name: str, most_s: float) -> Decoded:
    """Decode with libsndfile, or else FFmpeg, and check the number of samples."""
    if isinstance(source, bytes):
        checked = _read_plain_wav(source, name, most_s) or _checked(source, name)
    else:
        with open(source, "rb") as file:
            if len(head := file.read(_MAPPED_FROM)) < _MAPPED_FROM:
                checked = _read_plain_wav(head, name, most_s) or _checked(head, name)
            else:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    checked = _read_plain_wav(content, name, most_s) or _checked(content, name)
    if isinstance(checked, Decoded):
        return checked
    source = source if checked.content is None else checked.content
    audio = None if checked.needs_ffmpeg else _read_libsndfile(source, name, most_s)
    # libsndfile ends where the header of an MP3 says, or seems to say.
    if audio is None or audio.samples.shape[1] < checked.least:
        audio = _read_ffmpeg(source, name, most_s)
    held = audio.samples.shape[1]
    if checked.ends is not None and held not in checked.ends:
        raise AudioError("last_frame_elsewhere", name=name, held=held)
    if held < checked.least:
        raise AudioError("joined_sounds_short", name=name, held=held, least=checked.least)
    return audio


def _read_plain_wav(content: bytes | mmap.mmap, name: str, most_s: float) -> Decoded | None:
    """Read 16-bit PCM behind the plainest header, in a fifth of libsndfile's time.

    Returns:
        Samples equal to libsndfile's; None for any other file, also if one declared size differs from the file's.
    """
    if len(content) <= _PLAIN_WAV.size:
        return None
    riff, size, kind, chunk, coding, channels, rate, rate_bytes, frame, bits, data, held = _PLAIN_WAV.unpack_from(
        content
    )
    if (riff, kind, chunk, coding, bits, data) != (b"RIFF", b"WAVEfmt ", 16, 1, 16, b"data") or not channels:
        return None
    if (frame, rate_bytes) != (2 * channels, 2 * channels * rate) or held % frame:
        return None
    if held != len(content) - _PLAIN_WAV.size or size != len(content) - 8 or 2 * held > MOST_BYTES:
        return None
    _check_rate(rate, name)
    if held // frame > most_s * rate:
        raise AudioError("file_too_long", name=name, most_s=most_s)
    integers = np.frombuffer(content, "<i2", offset=_PLAIN_WAV.size).reshape(-1, channels).T
    return Decoded(np.multiply(integers, np.float32(2**-15), dtype=np.float32, order="C"), rate)


def _checked(content: bytes | mmap.mmap, name: str) -> SizePlan:
    """Raise AudioError for joined or truncated files; return the declared sizes."""
    if (offset := second_file(content)) is not None:
        raise AudioError("joined_sounds_first", name=name, offset=offset)
    if missing := missing_bytes(content):
        raise AudioError("end_missing", name=name, missing=missing)
    return plan(content, name)


def guarded(name: str, decode: Callable[[], _Result]) -> _Result:
    """Run a decoder; any exception becomes an AudioError with the file's name."""
    try:
        return decode()
    except AudioError:
        raise
    except MemoryError as error:
        raise AudioError("decoding_out_of_memory", name=name) from error
    except Exception as error:  # decoders raise anything on damaged bytes
        raise AudioError("not_decoded", name=name, message=describe(error)) from error


def check_audio(audio: SampledSound, name: str) -> None:
    """Refuse empty, non-finite or far too loud audio, or an impossible rate.

    Raises:
        AudioError: the message names the item, and the rate or the first bad sample.
    """
    rate = audio.sample_rate_hz
    _check_rate(rate, name)
    samples = audio.samples
    if samples.size == 0:
        raise AudioError("sound_without_samples", name=name)
    # NaN fails the comparison. Two passes over the samples, and no copy of them.
    if samples.min() >= -LOUDEST and samples.max() <= LOUDEST:
        return
    finite = np.isfinite(samples)
    bad = np.argwhere(~finite if not finite.all() else np.abs(samples) > LOUDEST)
    channel, first = bad[np.argmin(bad[:, 1])]
    facts = {"name": name, "samples": len(bad), "value": f"{samples[channel, first]:g}", "at_s": first / rate}
    if finite.all():
        raise AudioError("samples_too_loud", most=LOUDEST, **facts)
    raise AudioError("samples_not_finite", **facts)


def _read_libsndfile(source: str | bytes, name: str, most_s: float) -> Decoded | None:
    """Decode with libsndfile; None for formats it cannot read."""
    import soundfile

    try:
        with soundfile.SoundFile(source if isinstance(source, str) else _Bytes(source)) as file:
            expected, rate, log, kind = file.frames, file.samplerate, file.extra_info, file.format
            _check_rate(rate, name)
            samples = _gathered(_read_blocks(file), name, rate, most_s)
            held = samples.shape[1]
    except soundfile.LibsndfileError as error:
        message = error.error_string.lower()  # without the file's name
        if "flac" in message or "psf" in message:
            raise AudioError("not_decoded", name=name, message=error.error_string.strip()) from error
        return None
    # A compressed stream may declare no length (2**63 - 1); a shorter file was cut off. libsndfile corrects wrong sizes
    # of WAV, AIFF, AU and W64, which only its log shows; piped files (0 or 2**32 - 1) are complete.
    if held < expected < 2**62 and kind in _DECLARES_LENGTH:
        raise AudioError("samples_missing", name=name, declared=expected, held=held)
    mended = _MENDED_SIZE.search(log)
    if mended and int(mended[2]) < int(mended[1]) < 2**32 - 256:
        raise AudioError("bytes_missing", name=name, declared=mended[1], held=mended[2])
    return decoded(samples, rate)


class _Bytes(io.BytesIO):
    """Bytes as a file for libsndfile, which seeks before the start if a header lies."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Seek, or stay if the position is invalid."""
        try:
            return super().seek(offset, whence)
        except (ValueError, OverflowError):
            return self.tell()


def _read_blocks(file: soundfile.SoundFile) -> Iterator[np.ndarray]:
    """Yield blocks of limited size, float32 `(channels, samples)`."""
    at_once = max(1, _AT_ONCE // file.channels)
    while len(block := file.read(at_once, dtype="float32", always_2d=True)):  # a short block need not be the last
        yield block.T


def _gathered(pieces: Iterable[np.ndarray], name: str, rate: int, most_s: float) -> np.ndarray:
    """Join the chunks `(channels, samples)` of a file, `(0, 0)` if there are none.

    Memory follows the data, not the declared length, and never holds the audio twice.
    """
    blocks: list[np.ndarray] = []
    waiting: list[np.ndarray] = []
    size = waits = length = 0
    for chunk in pieces:
        length += chunk.shape[1]
        if length > most_s * rate:
            raise AudioError("file_too_long", name=name, most_s=most_s)
        size, waits = size + chunk.nbytes, waits + chunk.size
        if size > MOST_BYTES:
            raise AudioError("file_too_large", name=name, most_gib=MOST_BYTES / 2**30)
        waiting.append(chunk)
        if waits >= _AT_ONCE:
            blocks.append(_together(waiting))
            waiting, waits = [], 0
    blocks += [_together(waiting)] if waiting else []
    if len(blocks) < 2:
        return blocks[0] if blocks else np.zeros((0, 0), np.float32)
    end = sum(block.shape[1] for block in blocks)
    joined = np.empty((len(blocks[0]), end), np.float32)
    while blocks:
        block = blocks.pop()
        joined[:, end - block.shape[1] : end] = block
        end -= block.shape[1]
    return joined


def _together(pieces: list[np.ndarray]) -> np.ndarray:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


def _check_rate(rate: int, name: str) -> None:
    if not LOWEST_HZ <= rate <= HIGHEST_HZ:
        raise AudioError("sound_rate", name=name, rate_hz=rate, lowest_hz=LOWEST_HZ, highest_hz=HIGHEST_HZ)


def _read_ffmpeg(source: str | bytes, name: str, most_s: float) -> Decoded:
    """Decode the first audio stream with FFmpeg."""
    import av

    try:
        with opened_sound(source) as container:
            if not container.streams.audio:
                raise AudioError("no_audio_stream", name=name)
            stream = container.streams.audio[0]
            if stream.codec_context is None:
                raise AudioError("coding_unknown", name=name)
            rate = stream.codec_context.sample_rate
            _check_rate(rate, name)
            # Not planar: with more than eight planes PyAV reads out of bounds.
            resampler = av.AudioResampler(format="flt", rate=rate)
            frames = itertools.chain(container.decode(stream), [None])
            pieces = (chunk for frame in frames for chunk in resampler.resample(frame))
            arrays = (one.to_ndarray().reshape(-1, one.layout.nb_channels).T for one in pieces)
            samples = _gathered(arrays, name, rate, most_s)
    except (av.error.FFmpegError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AudioError("not_a_sound", name=name, reason=reason) from error
    return decoded(samples, rate)


class _Nameless(io.BufferedReader):
    """A file without a name, so FFmpeg ignores the suffix."""

    name = ""


@contextmanager
def opened_sound(source: str | bytes) -> Iterator[InputContainer]:
    """Open bytes in FFmpeg, as audio only, without access to paths or anything else."""
    import av

    with (
        _Nameless(io.FileIO(source)) if isinstance(source, str) else io.BytesIO(source) as file,
        av.open(file, "r", options={"format_whitelist": FFMPEG_FORMATS, "protocol_whitelist": ""}) as container,
    ):
        yield container
