"""The files of `configs/command`, with programs that take the arguments and write the formats of those that they name.

The programs are the user's own. A stand-in refuses other arguments, keeps the upper byte of every sample in frames with
the headers of the format, and is as late as its namesake, so that a wrong header, length or delay shows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from codec_bench.codecs.command import CommandCodec
from codec_bench.types import Audio

FILES = Path(__file__).parents[2] / "configs" / "command"
COMMON = """#!{python}
import array, sys, wave
args = sys.argv[1:]

def wav(path):
    with wave.open(path) as file:
        return array.array("h", file.readframes(file.getnframes())), file.getframerate(), file.getnchannels()

def raw(path):
    return array.array("h", open(path, "rb").read())

def frames(samples, size, head):
    made = b""
    for at in range(0, len(samples), size):
        piece = bytes((s >> 8) + 128 for s in samples[at : at + size])
        made += head(len(piece)) + piece
    return made

def back(content, size, head):
    step = size + head
    starts = range(0, len(content), step)
    return array.array("h", [(c - 128) * 256 for at in starts for c in content[at + head : at + step]])

def late(samples, count):
    return (array.array("h", [0] * count) + samples)[: len(samples)]

def write(path, samples, rate, channels):
    with wave.open(path, "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
"""
PROGRAMS = {
    "EVS_cod": """
assert args[:3] == ["-q", "-mime", "-no_delay_cmp"], args
assert args[3] in ("13200", "24400") and args[4] in ("16", "32", "48"), args
coded = frames(raw(args[5]), 20 * int(args[4]), lambda n: b"\\x04")
open(args[6], "wb").write(b"#!EVS_MC1.0\\n" + bytes([0, 0, 0, 1]) + coded)
""",
    "EVS_dec": """
assert args[:3] == ["-q", "-mime", "-no_delay_cmp"] and len(args) == 6, args
content = open(args[4], "rb").read()
assert content.startswith(b"#!EVS_MC1.0\\n")
open(args[5], "wb").write(late(back(content[16:], 20 * int(args[3]), 1), 12 * int(args[3])).tobytes())
""",
    "LC3plus": """
if args[0] == "-E":
    assert args[1:4] == ["-q", "-frame_ms", "5"] and args[6] in ("64000", "96000"), args
    samples, rate, channels = wav(args[4])
    header = [0xCC1C, 20, rate // 100, int(args[6]) // 100, channels, 500, 0]
    header += [len(samples) & 0xFFFF, len(samples) >> 16, 0]
    coded = frames(samples, rate // 200, lambda n: n.to_bytes(2, "little"))
    open(args[5], "wb").write(array.array("H", header).tobytes() + coded)
else:
    assert args[:2] == ["-D", "-q"] and len(args) == 4, args
    content = open(args[2], "rb").read()
    rate = 100 * int.from_bytes(content[4:6], "little")
    write(args[3], back(content[20:], rate // 200, 2), rate, 1)
""",
    "opus_demo": """
if args[0] == "-e":
    assert args[1:6] == ["voip", "16000", "1", "12000", "-cbr"], args
    open(args[7], "wb").write(frames(raw(args[6]), 320, lambda n: n.to_bytes(4, "big") + b"\\x01\\x02\\x03\\x04"))
else:
    assert args[:5] == ["-d", "16000", "1", "-dec_complexity", "7"], args
    open(args[6], "wb").write(late(back(open(args[5], "rb").read(), 320, 8), 91).tobytes())
""",
    "exhale": """
assert args[0] == "1" and args[2].endswith(".m4a"), args
samples, rate, channels = wav(args[1])
open(args[2], "wb").write(rate.to_bytes(4, "big") + bytes([channels]) + bytes((s >> 8) + 128 for s in samples))
""",
    "ffmpeg": """
assert args[:3] == ["-loglevel", "error", "-i"] and args[4:6] == ["-c:a", "pcm_s16le"], args
assert args[6].endswith(".wav"), args
content = open(args[3], "rb").read()
samples = array.array("h", [(c - 128) * 256 for c in content[5:]])
write(args[6], array.array("h", [0] * (1600 * content[4])) + samples, int.from_bytes(content[:4], "big"), content[4])
""",
}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(COMMON.replace("{python}", sys.executable) + text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def coarse(samples):
    return ((np.round(samples * 32768).astype(np.int64) >> 8) * 256 / 32768).astype(np.float32)


def test_every_file_has_a_test():
    assert {path.stem for path in FILES.iterdir()} == {"evs", "lc3plus", "opus-own", "xhe-aac"}


@pytest.mark.parametrize(
    ("name", "point", "frame_ms"), [("evs", None, 20), ("evs", 24400, 20), ("lc3plus", None, 5), ("lc3plus", 96000, 5)]
)
def test_headers_are_not_counted_and_the_delay_is_cut_off(name, point, frame_ms, programs, rng):
    codec = CommandCodec(FILES / f"{name}.yaml", point)
    for rate_hz in (16000, 32000, 48000):
        audio = Audio(0.2 * rng.standard_normal((1, 1000)), rate_hz)
        (codes,) = codec.encode([audio])
        frame = rate_hz * frame_ms // 1000
        late = 12 * rate_hz // 1000 if name == "evs" else 0
        assert codes.bits == 8 * frame * -(-(1000 + late) // frame)
        (out,) = codec.decode([codes])
        np.testing.assert_array_equal(out.samples, coarse(audio.samples))


@pytest.mark.parametrize(("name", "rate_hz", "counts"), [("xhe-aac", 32000, (1, 2)), ("opus-own", 16000, (1,))])
def test_a_delay_that_depends_on_the_build_is_measured(name, rate_hz, counts, programs, rng):
    codec = CommandCodec(FILES / f"{name}.yaml")
    for channels in counts:
        audio = Audio(0.2 * rng.standard_normal((channels, 1000)), rate_hz)
        (out,) = codec.decode(codec.encode([audio]))
        np.testing.assert_array_equal(out.samples, coarse(audio.samples))
