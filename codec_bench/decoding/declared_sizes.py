"""Compares a sound file's header with its bytes, before a decoder sees it.

Decoders believe a header and silently ignore the rest. A file with an impossible header is read as a whole (a stream to
a pipe), or refused (truncated, or audio left over).

Sources: RFC 9639 (FLAC), RFC 7845 (Ogg Opus), ISO 11172-3 (MPEG audio), the RIFF, AIFF, AU, CAF and W64 formats.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from codec_bench.messages.errors import AudioError

Content = bytes | mmap.mmap
Order = Literal["little", "big"]

STREAMED_FROM = 2_000_000_000
"""Sizes from here on mark a stream (0x7FFFF000, 0xFFFFFFFF, ...) of fewer bytes."""
_TAIL_BYTES = 1 << 18
"""Where to look for a FLAC file's last frame without a maximum frame size."""
_FLAC_SYNC = re.compile(rb"\xff[\xf8\xf9][\x10-\xff][\x00-\xaf]")
_PADDING_BYTES = 7
"""Trailing bytes that are no chunk: padding, a line break."""
_EBML, _SEGMENT = b"\x1aE\xdf\xa3", b"\x18\x53\x80\x67"
_SPHERE_BYTES = re.compile(rb"^(sample_count|sample_n_bytes|channel_count) -i (\d+)", re.MULTILINE)
_BEFORE_SOUND = {b"SSND": 8, b"data": 4}
"""Bytes at the start of a sound chunk (AIFF, CAF) that are no samples."""
_MPEG_IN_WAV = (0x50, 0x55)
_EXTENSIBLE = 0xFFFE


class SizePlan(NamedTuple):
    """How to decode a file.

    Args:
        content: replacement bytes with a correct header; None for the file's own.
        needs_ffmpeg: whether libsndfile would misread the file.
        ends: the possible numbers of decoded samples; None if unknown.
    """

    content: bytes | None = None
    needs_ffmpeg: bool = False
    ends: frozenset[int] | None = None
    least: int = 0


def plan(content: Content, name: str) -> SizePlan:
    """Compare the sizes in a file's header with its bytes, for each format.

    Returns:
        How to decode the file: rewritten content, whether FFmpeg is needed, and the expected number of samples.

    Raises:
        AudioError: the file is truncated, or holds audio that its header does not count.
    """
    head = content[:12]
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return _wav(content, name)
    if head[:4] == b"FORM":
        _check_rest(content, name, b"SSND", 12, 4, "big", 2)
    elif head[:4] == b"riff":
        _check_w64(content, name)
    elif head[:4] == b"caff":
        _check_rest(content, name, b"data", 8, 8, "big", 1)
    elif head[:4] == b".snd":
        begin, size = (int.from_bytes(content[at : at + 4], "big") for at in (4, 8))
        if size != 0xFFFFFFFF and begin + size + _PADDING_BYTES < len(content):
            raise _left_over(name, size, len(content) - begin)
    elif head[4:8] == b"ftyp":
        _check_mp4(content, name)
    elif head[:4] == _EBML:
        _check_matroska(content, name)
    elif head[:8] == b"NIST_1A\n":
        _check_sphere(content, name)
    elif head[:4] == b"OggS":
        if content[28:33] == b"\x7fFLAC":  # libsndfile cannot read what FFmpeg writes
            last = content.rfind(b"OggS")
            return SizePlan(
                needs_ffmpeg=True, ends=frozenset([int.from_bytes(content[last + 6 : last + 14], "little")])
            )
        return SizePlan(needs_ffmpeg=_opus_starts_late(content))
    else:
        start = behind_tag(content)
        if content[start : start + 4] == b"fLaC":
            return _flac(content, start)
        if int.from_bytes(content[start : start + 2], "big") & 0xFFF6 == 0xFFF0:
            _check_adts(content, start, name)
        elif content[start : start + 1] == b"\xff" or start:
            return _mp3(content, start, name)
    return SizePlan()


def behind_tag(content: Content) -> int:
    """Return the end of an ID3 tag (four 7-bit bytes), or 0."""
    if content[:3] != b"ID3":
        return 0
    return 10 + sum(byte << 7 * index for index, byte in enumerate(reversed(content[6:10])))


def _truncated(name: str, declared: int, held: int) -> AudioError:
    return AudioError("bytes_missing", name=name, declared=declared, held=held)


def _left_over(name: str, declared: int, held: int) -> AudioError:
    return AudioError("bytes_not_declared", name=name, declared=declared, held=held)


# ---------------------------------------------------------------------------------------------------- files of chunks


def _chunks(content: Content, at: int, size_bytes: int, order: Order, align: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and declared size of every chunk, to the first that overflows."""
    while at + 4 + size_bytes <= len(content):
        begin = at + 4 + size_bytes
        size = int.from_bytes(content[at + 4 : begin], order)
        yield content[at : at + 4], begin, size
        at = begin + size + (-size % align)


def _ends_in_chunks(content: Content, at: int, size_bytes: int = 4, order: Order = "little", align: int = 2) -> bool:
    """Whether everything from an offset on is chunks, tags or padding."""
    for name, begin, size in _chunks(content, at, size_bytes, order, align):
        if name[:3] == b"TAG":  # an ID3 tag of 128 bytes
            return True
        if not name.strip(b"\0"):
            return not content[begin:].strip(b"\0")
        if not (name.isascii() and name.decode("ascii").isprintable()) or begin + size > len(content):
            return False
        at = begin + size + (-size % align)
    return at + _PADDING_BYTES >= len(content)


def _check_rest(
    content: Content, name: str, expected: bytes, at: int, size_bytes: int, order: Order, align: int
) -> None:
    """Refuse a chunked file whose sound chunk is cut or followed by something else."""
    for chunk, begin, size in _chunks(content, at, size_bytes, order, align):
        end = begin + size + (-size % align)
        if chunk == expected:
            rest = len(content) - begin
            if rest <= _BEFORE_SOUND[expected]:
                raise AudioError("sound_without_samples", name=name)
            if size > rest and not _is_streamed(size, rest):
                raise _truncated(name, size, rest)
            if size and end < len(content) and not _ends_in_chunks(content, end, size_bytes, order, align):  # 0: a pipe
                raise _left_over(name, size, len(content) - begin)
            return


def _is_streamed(size: int, rest: int) -> bool:
    """Whether a declared size is that of a stream, not of a cut file."""
    return size >= STREAMED_FROM and rest < size // 2


def _check_w64(content: Content, name: str) -> None:
    """Refuse cut W64; its names have 16 bytes, and its sizes count the header."""
    at = 40
    while at + 24 <= len(content):
        size, rest = int.from_bytes(content[at + 16 : at + 24], "little") - 24, len(content) - at - 24
        if content[at : at + 4] == b"data":
            if size > rest and not _is_streamed(size, rest):
                raise _truncated(name, size, rest)
            return
        at += 24 + max(0, size + -size % 8)


def _check_mp4(content: Content, name: str) -> None:
    """Refuse MP4 with a cut box; FFmpeg ends with the last available sample."""
    at = 0
    while at + 16 <= len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(content[at + 8 : at + 16], "big")
        if size < 8 or not content[at + 4 : at + 8].isalnum():  # 0: to the end of the file; or padding
            return
        if at + size > len(content):
            raise _truncated(name, size, len(content) - at)
        at += size


def _check_matroska(content: Content, name: str) -> None:
    """Refuse Matroska and WebM with a cut element, or a segment that ends early."""
    at = content.find(_SEGMENT, 0, 4096)
    while 0 <= at < len(content) and content[at]:
        begin, size = _element(content, at)
        rest = len(content) - begin
        if begin > len(content) or (size is not None and size > rest):
            raise _truncated(name, size or 0, max(0, rest))
        if size is not None and content[at : at + 4] == _SEGMENT:
            if size + _PADDING_BYTES < rest:
                raise _left_over(name, size, rest)
            return
        at = begin + (size or 0)  # elements inside one of unknown size follow


def _element(content: Content, at: int) -> tuple[int, int | None]:
    """Return the data offset of an EBML element, and its size or None for a stream."""
    at += 9 - content[at].bit_length()
    if at >= len(content) or not content[at]:
        return len(content) + 1, None
    bits = 7 * (9 - content[at].bit_length())
    begin = at + bits // 7
    size = int.from_bytes(content[at:begin], "big") & (1 << bits) - 1
    return begin, None if size == (1 << bits) - 1 else size


def _check_sphere(content: Content, name: str) -> None:
    """Refuse NIST SPHERE with fewer samples than declared; libsndfile accepts it."""
    header = int(content[8:16]) if content[8:16].strip().isdigit() else 0
    fields = {key: int(value) for key, value in _SPHERE_BYTES.findall(content[:header])}
    if b"pcm" not in content[:header] and b"ulaw" not in content[:header] and b"alaw" not in content[:header]:
        return  # compressed
    declared = fields.get(b"sample_count", 0) * fields.get(b"sample_n_bytes", 1) * fields.get(b"channel_count", 1)
    if declared > len(content) - header:
        raise _truncated(name, declared, len(content) - header)


def _wav(content: Content, name: str) -> SizePlan:
    """Check a WAV file's chunk sizes; rewrite the header of a streamed one."""
    long_size = form = block = 0
    for chunk, begin, size in _chunks(content, 12, 4, "little", 2):
        if chunk == b"ds64":
            long_size = int.from_bytes(content[begin + 8 : begin + 16], "little")
        elif chunk == b"fmt ":
            form, block = (int.from_bytes(content[begin + at : begin + at + 2], "little") for at in (0, 12))
            if form == _EXTENSIBLE:
                form = int.from_bytes(content[begin + 24 : begin + 26], "little")
        elif chunk == b"data":
            rest = len(content) - begin
            size = long_size if size == 0xFFFFFFFF and content[:4] == b"RF64" else size
            is_streamed = _is_streamed(size, rest)
            # Audio may begin with digital silence, which looks like padding.
            is_padding = rest <= _PADDING_BYTES or content[begin : begin + 4] != bytes(4)
            is_streamed |= size == 0 < rest and not (is_padding and _ends_in_chunks(content, begin))
            if is_streamed:
                rest -= rest % max(1, block)
                riff_bytes = begin - 8 + rest
                body = b"RIFF" + riff_bytes.to_bytes(4, "little") + content[8 : begin - 4] + rest.to_bytes(4, "little")
                return SizePlan(body + content[begin : begin + rest], needs_ffmpeg=form in _MPEG_IN_WAV)
            if size > rest:
                raise _truncated(name, size, rest)
            if size + 1 < rest and not _ends_in_chunks(content, begin + size + size % 2):
                raise _left_over(name, size, rest)
            return SizePlan(needs_ffmpeg=form in _MPEG_IN_WAV)  # `fact` does not hold the decoded number of samples
    return SizePlan()


# --------------------------------------------------------------------------------------------------------------- FLAC


def _flac(content: Content, start: int) -> SizePlan:
    """Plan FLAC: the header of its last frame says where it ends."""
    info = content[start + 8 : start + 42]
    if len(info) < 34:
        return SizePlan()
    block, largest = int.from_bytes(info[2:4], "big"), int.from_bytes(info[7:10], "big")
    declared = int.from_bytes(info[13:18], "big") & (1 << 36) - 1
    tail = max(start + 42, len(content) - (largest or _TAIL_BYTES))
    frames = list(_flac_frames(content, tail, block))
    ends = frozenset(end for _, end in frames)
    if not declared:
        return SizePlan(needs_ffmpeg=True, ends=ends)
    goes_on = any(begin == declared for begin, _ in frames)
    if goes_on or (declared not in ends and any(end > declared for end in ends)):
        return SizePlan(needs_ffmpeg=True, ends=frozenset(end for end in ends if end > declared))
    return SizePlan()


def _flac_frames(content: Content, at: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield the first sample of every frame from an offset on, and its end."""
    tail = content[at:]
    for match in _FLAC_SYNC.finditer(tail):
        frame = tail[match.start() : match.start() + 16]
        extra = 4
        number = frame[extra] if len(frame) > 5 else 0xFF
        length = 8 - (number ^ 0xFF).bit_length()  # leading ones
        if length in (1, 8):
            continue
        number &= (0x7F >> length) if length else 0x7F
        for byte in frame[extra + 1 : extra + max(1, length)]:
            number = number << 6 | byte & 0x3F
        extra += max(1, length)
        code, rate = frame[2] >> 4, frame[2] & 15
        if code == 0 or rate == 15 or frame[3] & 1 or frame[3] >> 1 & 7 == 3:
            continue
        if code in (6, 7):
            size = int.from_bytes(frame[extra : extra + code - 5], "big") + 1
            extra += code - 5
        else:
            size = 192 if code == 1 else 576 << code - 2 if code < 6 else 256 << code - 8
        extra += {12: 1, 13: 2, 14: 2}.get(rate, 0)
        if extra < len(frame) and _crc8(frame[:extra]) == frame[extra]:
            begin = number if frame[1] & 1 else number * block
            yield begin, begin + size


def _crc8(data: bytes) -> int:
    """Compute FLAC's CRC-8 of a header."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x107) if crc & 0x80 else crc << 1
    return crc


# ---------------------------------------------------------------------------------------------------------------- MP3

_BITRATES = {  # by (is MPEG 1, layer), in kbit/s
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES_HZ = (44_100, 48_000, 32_000)
_DECODER_DELAY = 529


class _Mp3Frame(NamedTuple):
    size: int
    samples: int
    rate_hz: int


def _mp3_frame(head: bytes) -> _Mp3Frame | None:
    """Parse a frame header of four bytes; None if it is none, or without a size."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3)
    bitrate, rate = head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or layer == 4 or bitrate in (0, 15) or rate == 3:
        return None
    is_first = version == 3
    rate_hz = _RATES_HZ[rate] >> {3: 0, 2: 1, 0: 2}[version]
    bits_per_s = 1000 * _BITRATES[is_first, layer][bitrate - 1]
    samples = 384 if layer == 1 else 1152 if layer == 2 or is_first else 576
    slot = 4 if layer == 1 else 1
    return _Mp3Frame(samples // 8 // slot * bits_per_s // rate_hz * slot + (head[2] >> 1 & 1) * slot, samples, rate_hz)


def _check_adts(content: Content, at: int, name: str) -> None:
    """Raise AudioError if the last AAC frame of an ADTS stream is truncated."""
    while at + 7 <= len(content) and content[at] == 0xFF:
        size = (int.from_bytes(content[at + 3 : at + 6], "big") & 0x3FFE0) >> 5
        if at + size > len(content):
            raise _truncated(name, size, len(content) - at)
        at += max(7, size)
    if 0 < len(content) - at < 7 and content[at] == 0xFF:
        raise _truncated(name, 7, len(content) - at)


class _EncoderHeader(NamedTuple):
    """The header in an MP3 file's first frame, as LAME and FFmpeg write it.

    Args:
        at: where its fields begin.
        size: their bytes. frames, bytes: as declared, or None.
        delay, padding: samples that decoders drop at both ends.
    """

    at: int
    size: int
    frames: int | None
    bytes: int | None
    delay: int
    padding: int


def _encoder_header(content: Content, at: int) -> _EncoderHeader | None:
    """Parse an MP3's Xing or Info header: frames, bytes, delay and padding."""
    mark = max(content.find(mark, at, at + 48) for mark in (b"Xing", b"Info"))
    if mark < 0:
        return None
    flags, begin, values = int.from_bytes(content[mark + 4 : mark + 8], "big"), mark + 8, []
    for bit, length in enumerate((4, 4, 100, 4)):
        is_held = flags >> bit & 1
        values.append(int.from_bytes(content[begin : begin + length], "big") if is_held else None)
        begin += length * is_held
    both = int.from_bytes(content[begin + 21 : begin + 24], "big")
    return _EncoderHeader(mark + 8, begin - mark - 8, values[0], values[1], both >> 12, both & 0xFFF)


def _mp3(content: Content, start: int, name: str) -> SizePlan:
    """Plan MP3 by counting frames: a header counts those of the first part alone."""
    at, count, header, first = start, 0, None, None
    while (frame := _mp3_frame(content[at : at + 4])) is not None and at + frame.size <= len(content):
        if first is None:
            first, header = frame, _encoder_header(content, at)
            count -= header is not None
        elif frame.rate_hz != first.rate_hz:
            raise AudioError("joined_rates", name=name, rate_hz=first.rate_hz, other_rate_hz=frame.rate_hz, at=at)
        at, count = at + frame.size, count + 1
    if first is None:
        return SizePlan()
    rest = len(content) - at
    ends_in_frame = frame is not None or (0 < rest < 4 and content[at] == 0xFF)
    declared = (header.frames if header is not None else None) or 0
    # Some encoders count the header's own frame, but not its bytes twice.
    is_counted_twice = header is not None and declared == count + 1 and start + (header.bytes or 0) <= at
    ends_early = count < declared and rest < 4 and not is_counted_twice and not _is_streamed(declared, count)
    if ends_early or (ends_in_frame and declared != count):
        if not declared:
            raise AudioError("last_frame_cut", name=name)
        raise AudioError("frames_missing", name=name, declared=declared, held=count)
    if content[at : at + 3] == b"ID3" and _mp3_frame(content[at + behind_tag(content[at : at + 10]) :][:4]):
        raise AudioError("joined_sounds", name=name, at=at)
    if header is None:
        return SizePlan(least=max(0, (count - 1) * first.samples - _DECODER_DELAY))
    least = max(0, (count - 1) * first.samples - header.delay - header.padding - _DECODER_DELAY)
    if header.frames is None or declared in (count, count + 1):
        return SizePlan(needs_ffmpeg=header.frames is None, least=least)
    # Decoders end at the declared frame, or drop the padding there.
    end = header.at + header.size + 24
    delay = bytes((header.delay >> 4, (header.delay & 15) << 4, 0))
    fields = count.to_bytes(4, "big") + content[header.at + 4 : end - 3] + delay
    return SizePlan(content[: header.at] + fields + content[end:], least=least)


# --------------------------------------------------------------------------------------------------------------- Opus

_OPUS_S = (0.01, 0.02, 0.04, 0.06), (0.01, 0.02), (0.0025, 0.005, 0.01, 0.02)


def _opus_starts_late(content: Content) -> bool:
    """Whether an Ogg Opus stream's granule positions begin late, as in a cut stream."""
    at, number = 0, 0
    while content[at : at + 4] == b"OggS":
        count = content[at + 26] if at + 27 <= len(content) else 0
        lacing = content[at + 27 : at + 27 + count]
        body = at + 27 + count
        if number == 0 and content[body : body + 8] != b"OpusHead":
            return False
        granule = int.from_bytes(content[at + 6 : at + 14], "little", signed=True)
        if number > 1 and granule > 0:
            begin, size, samples = body, 0, 0
            for lace in lacing:
                size += lace
                if lace < 255:
                    samples += _opus_samples(content[begin : begin + min(size, 2)])
                    begin, size = begin + size, 0
            is_continued, is_last = content[at + 5] & 1, content[at + 5] & 4
            return not is_continued and not is_last and granule > samples
        at, number = body + sum(lacing), number + 1
    return False


def _opus_samples(packet: bytes) -> int:
    """Return the samples at 48 kHz of an Opus packet (RFC 6716, section 3.1)."""
    if not packet:
        return 0
    config, code = packet[0] >> 3, packet[0] & 3
    durations = _OPUS_S[0 if config < 12 else 1 if config < 16 else 2]
    frames = (1, 2, 2)[code] if code < 3 else packet[1] & 63 if len(packet) > 1 else 0
    return round(48_000 * durations[config % len(durations)]) * frames
