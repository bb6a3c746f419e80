"""Equalises the sounds of an item, and makes anchors.

Sounds of an item share rate (the highest, at most 48 kHz), channels (mono is repeated) and file size (FLAC padding);
lengths within half a second are padded with silence, nothing is cut. Levels stay, apart from clipping, unless a
loudness (ITU-R BS.1770) is requested; then a common gain avoids peaks beyond full scale, and sounds below 0.4 s or
without loudness stay. Files are 16-bit FLAC, scrambled by position so that the page's text does not reveal equal
sounds; this is no encryption. The anchors' linear-phase FIR filter (Kaiser, 60 dB) passes to the cut-off and stops at
8/7 of it, which exceeds ITU-R BS.1534-3, 5.1, at 3.5 kHz (ripple 0.1 dB, 25 dB at 4 kHz, 50 dB at 4.5 kHz); 7 kHz has
no mask and uses it scaled. The delay is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from codec_bench.audio.encode import write_flac
from codec_bench.audio.loudness import loudness_lufs as measured
from codec_bench.audio.resample import fit_length, to_rate
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.types import Audio

HIGHEST_HZ = 48_000
_SAME_LENGTH_S = 0.5
FORMAT = "16-bit FLAC"
_INFO_END = 42  # "fLaC", and the block that describes the stream
_PADDING, _LAST = 1, 0x80
_MOST_PADDING = (1 << 24) - 1


def match_sounds(
    paths: Mapping[str, Path], *, rate_hz: int | None = None, loudness_lufs: float | None = None
) -> dict[str, Audio]:
    """Read sounds at one rate and channel count; close lengths are made equal.

    Args:
        rate_hz: None for the highest among them.
        loudness_lufs: of each sound; None keeps levels.

    Raises:
        AudioError: one cannot be read, or channel counts differ and neither is one.
    """
    read = {name: Audio.read(path) for name, path in paths.items()}
    if not read:
        return {}
    rate_hz = rate_hz or min(HIGHEST_HZ, max(sound.sample_rate_hz for sound in read.values()))
    channels = max(sound.channels for sound in read.values())
    resampled = {name: to_rate(sound, rate_hz) for name, sound in read.items()}
    if loudness_lufs is not None:
        resampled = _equally_loud(resampled, loudness_lufs)
    lengths = [sound.num_samples for sound in resampled.values()]
    one_length = max(lengths) - min(lengths) < _SAME_LENGTH_S * rate_hz
    matched = {}
    for name, sound in resampled.items():
        if sound.channels not in (1, channels):
            raise AudioError("channels_differ", path=paths[name], channels=sound.channels, other_channels=channels)
        wide = sound.samples if sound.channels == channels else np.repeat(sound.samples, channels, axis=0)
        long = fit_length(wide, max(lengths)) if one_length else wide
        matched[name] = Audio(np.clip(long, -1.0, 1.0), rate_hz)
    return matched


def _equally_loud(sounds: Mapping[str, Audio], lufs: float) -> dict[str, Audio]:
    """Scale sounds to a loudness, all lower by the same gain if a peak would clip."""
    held = {name: measured(sound) for name, sound in sounds.items()}
    gains = {name: 10 ** ((lufs - level) / 20) for name, level in held.items() if level is not None}
    peaks = [gain * float(np.abs(sounds[name].samples).max()) for name, gain in gains.items()]
    less = max(1.0, *peaks) if peaks else 1.0
    return {
        name: Audio((sound.samples * (gains[name] / less)).astype(np.float32),
            sound.sample_rate_hz) if name in gains else sound
        for name, sound in sounds.items()
    }  # fmt: skip


def equalise_sizes(sounds: Mapping[str, Audio]) -> dict[str, bytes]:
    """Encode each sound as a FLAC file; all files are equally large."""
    encoded = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, sound in sounds.items():
            path = Path(folder, "sound.flac")
            write_flac(path, sound)
            encoded[name] = path.read_bytes()
    # A block of padding takes 4 bytes itself, so the largest file gets an empty one.
    size = max(map(len, encoded.values()), default=0) + 4
    return {name: pad_flac(held, size) for name, held in encoded.items()}


def pad_flac(flac: bytes, size: int) -> bytes:
    """Insert padding after a FLAC file's first block, so that it has `size` bytes.

    It needs at least 4 bytes more than the file.
    """
    missing = size - len(flac)
    head, rest = bytearray(flac[:_INFO_END]), flac[_INFO_END:]
    was_last = head[4] & _LAST
    head[4] &= ~_LAST & 0xFF
    blocks = []
    while missing:
        content = min(missing - 4, _MOST_PADDING)
        if 0 < missing - 4 - content < 4:
            content -= 4  # the rest must hold the head of another block
        missing -= 4 + content
        blocks.append(bytes([_PADDING | (0 if missing else was_last)]) + content.to_bytes(3, "big") + bytes(content))
    return bytes(head) + b"".join(blocks) + rest


def scramble(content: bytes, clip: int) -> bytes:
    """XOR bytes with a sequence that depends on `clip`; a second call restores them."""
    mixed = (np.arange(len(content), dtype=np.uint32) + np.uint32((clip + 1) * 0x01000193 & 0xFFFFFFFF)) * np.uint32(
        0x9E3779B1
    )
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    return (np.frombuffer(content, np.uint8) ^ mixed.astype(np.uint8)).tobytes()


CUTOFFS_HZ = {"3.5k": 3_500, "7k": 7_000}
STOP = 8 / 7
"""Where the filter stops, as a multiple of its cut-off."""
_ATTENUATION_DB = 60.0
_FULL = 1 - 1e-6


def low_pass(cutoff_hz: float, sample_rate_hz: int) -> np.ndarray:
    """Design an anchor's filter taps, float64, an odd number; raises UserError."""
    from scipy.signal import firwin, kaiser_beta, kaiserord

    half_hz = sample_rate_hz / 2
    if cutoff_hz >= half_hz * _FULL:
        raise UserError(
            "anchor_needs_rate",
            cutoff_khz=cutoff_hz / 1000,
            needed_hz=2 * cutoff_hz,
            rate_hz=sample_rate_hz,
            hint="leave this anchor out with --anchors 3.5k, or take data of a higher rate",
        )
    stop_hz = min(STOP * cutoff_hz, half_hz)
    count, _ = kaiserord(_ATTENUATION_DB, (stop_hz - cutoff_hz) / half_hz)
    middle_hz = min((cutoff_hz + stop_hz) / 2, half_hz * _FULL)
    coefficients: np.ndarray = firwin(
        count | 1, middle_hz, window=("kaiser", kaiser_beta(_ATTENUATION_DB)), fs=sample_rate_hz
    )
    return coefficients


def anchor(reference: Audio, cutoff_hz: float) -> Audio:
    """Low-pass the reference to a MUSHRA anchor of the same rate, channels and length."""
    from scipy.signal import oaconvolve

    coefficients = low_pass(cutoff_hz, reference.sample_rate_hz)
    filtered = oaconvolve(reference.samples, coefficients[None, :], mode="full", axes=1)
    delay = len(coefficients) // 2
    aligned = filtered[:, delay : delay + reference.num_samples]
    return Audio(np.clip(aligned, -1.0, 1.0).astype(np.float32), reference.sample_rate_hz)
