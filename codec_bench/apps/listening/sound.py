"""Equalises the sounds of an item, and makes anchors.

Conventions
    All sounds of an item have one sample rate, one number of channels and one size of file. The rate is the highest
    among them, and at most 48 kHz. One channel is repeated where others have several. Where all lengths lie within half
    a second, shorter sounds are followed by silence; longer differences belong to what is said, and stay. Nothing is
    cut. No level is changed, except that samples beyond full scale are clipped, unless a loudness is asked for: then
    every sound of an item is brought to it (ITU-R BS.1770), and all of them lower by the same gain where a peak would
    be beyond full scale. A sound of less than 0.4 s, or without loudness, keeps its level. The files are 16-bit FLAC,
    which loses nothing and which current browsers play (Chrome, Firefox, Safari, Edge). Unused room, which the format
    provides for, makes them equally large. In the page each file is scrambled with a sequence that depends on its
    place. The open and the hidden reference are the same sound, and this keeps a look at the page's text from showing
    it. It is no encryption.
How the filter is made
    ITU-R BS.1534-3, section 5.1, asks of the 3.5 kHz filter: a ripple of at most 0.1 dB up to 3.5 kHz, at least 25 dB
    of attenuation at 4 kHz and at least 50 dB at 4.5 kHz. The filter is a linear-phase FIR filter by Kaiser's window
    method for 60 dB: it passes up to the cut-off and stops from 8/7 of it on (4 kHz for 3.5 kHz, and 8 kHz for 7 kHz),
    so it exceeds what is asked at both frequencies. The Recommendation states no mask for 7 kHz; the same one is taken,
    scaled by 2. The delay of the filter is taken out, so that an anchor is in step with its reference.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from codec_bench.audio.encode import write_flac
from codec_bench.audio.loudness import loudness_lufs as measured
from codec_bench.audio.resample import fit_length, to_rate
from codec_bench.errors import AudioError, UserError
from codec_bench.types import Audio

HIGHEST_HZ = 48_000
_SAME_LENGTH_S = 0.5
FORMAT = "16-bit FLAC"
_INFO_END = 42  # "fLaC", and the block that describes the stream
_PADDING, _LAST = 1, 0x80
_MOST_PADDING = (1 << 24) - 1


def alike(
    paths: Mapping[str, Path], *, rate_hz: int | None = None, loudness_lufs: float | None = None
) -> dict[str, Audio]:
    """Reads sounds at one rate, channel count and, where close, one length.

    Args:
        paths: the files, by what each is. rate_hz: the rate; None for the highest among them.
        loudness_lufs: to which each sound is brought; None for the level that it has.

    Raises:
        AudioError: one cannot be read, or two of them have different numbers of channels and neither has one.
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
            raise AudioError(
                f"'{paths[name]}' has {sound.channels} channels and another sound of the item has {channels}; expected one number, or 1"
            )
        wide = sound.samples if sound.channels == channels else np.repeat(sound.samples, channels, axis=0)
        long = fit_length(wide, max(lengths)) if one_length else wide
        matched[name] = Audio(np.clip(long, -1.0, 1.0), rate_hz)
    return matched


def _equally_loud(sounds: Mapping[str, Audio], lufs: float) -> dict[str, Audio]:
    """Sounds of one loudness, or of one below it where the peak of one would be beyond full scale."""
    held = {name: measured(sound) for name, sound in sounds.items()}
    gains = {name: 10 ** ((lufs - level) / 20) for name, level in held.items() if level is not None}
    peaks = [gain * float(np.abs(sounds[name].samples).max()) for name, gain in gains.items()]
    less = max(1.0, *peaks) if peaks else 1.0
    return {
        name: Audio((sound.samples * (gains[name] / less)).astype(np.float32), sound.sample_rate_hz) if name in gains else sound
        for name, sound in sounds.items()
    }  # fmt: skip


def equal_files(sounds: Mapping[str, Audio]) -> dict[str, bytes]:
    """Each sound as a FLAC file; all files are equally large."""
    encoded = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, sound in sounds.items():
            path = Path(folder, "sound.flac")
            write_flac(path, sound)
            encoded[name] = path.read_bytes()
    # A block of padding takes 4 bytes itself, so the largest file gets an empty one.
    size = max(map(len, encoded.values()), default=0) + 4
    return {name: padded(held, size) for name, held in encoded.items()}


def padded(flac: bytes, size: int) -> bytes:
    """A FLAC file with blocks of padding after its first block, so that it has `size` bytes: at least 4 more than it
    has.
    """
    missing = size - len(flac)
    head, rest = bytearray(flac[:_INFO_END]), flac[_INFO_END:]
    was_last = head[4] & _LAST
    head[4] &= ~_LAST & 0xFF
    blocks = []
    while missing:
        content = min(missing - 4, _MOST_PADDING)
        if 0 < missing - 4 - content < 4:
            content -= 4  # what is left must hold the head of another block
        missing -= 4 + content
        blocks.append(bytes([_PADDING | (0 if missing else was_last)]) + content.to_bytes(3, "big") + bytes(content))
    return bytes(head) + b"".join(blocks) + rest


def scrambled(content: bytes, clip: int) -> bytes:
    """The bytes combined with a sequence that depends on the clip's number; doing it twice gives them back."""
    mixed = (np.arange(len(content), dtype=np.uint32) + np.uint32(_key(clip))) * np.uint32(0x9E3779B1)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    return (np.frombuffer(content, np.uint8) ^ mixed.astype(np.uint8)).tobytes()


def _key(clip: int) -> int:
    return (clip + 1) * 0x01000193 & 0xFFFFFFFF


CUTOFFS_HZ = {"3.5k": 3_500, "7k": 7_000}
STOP = 8 / 7
"""Where the filter stops, as a multiple of its cut-off."""
_ATTENUATION_DB = 60.0
_FULL = 1 - 1e-6


def low_pass(cutoff_hz: float, sample_rate_hz: int) -> np.ndarray:
    """The taps of an anchor's filter, float64, an odd number of them.

    Raises:
        UserError: sound of this rate holds nothing that the filter could take away.
    """
    from scipy.signal import firwin, kaiser_beta, kaiserord

    half_hz = sample_rate_hz / 2
    if cutoff_hz >= half_hz * _FULL:
        raise UserError(
            f"an anchor of {cutoff_hz / 1000:g} kHz needs sound of more than {2 * cutoff_hz:g} samples a second; this has {sample_rate_hz}",
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
    """The low-passed reference: same rate, channels and length, clipped.

    Raises:
        UserError: as `low_pass`.
    """
    from scipy.signal import oaconvolve

    coefficients = low_pass(cutoff_hz, reference.sample_rate_hz)
    filtered = oaconvolve(reference.samples, coefficients[None, :], mode="full", axes=1)
    delay = len(coefficients) // 2
    aligned = filtered[:, delay : delay + reference.num_samples]
    return Audio(np.clip(aligned, -1.0, 1.0).astype(np.float32), reference.sample_rate_hz)
