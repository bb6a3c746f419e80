"""A codec made of two programs. The programs here are small scripts whose output is known exactly."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from refusals import Containing, refuses

from codec_bench import evaluate
from codec_bench.codecs import has_codec, load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.command import CommandCodec
from codec_bench.messages.errors import RunMismatch
from codec_bench.types import Audio

RATE_HZ = 16000

# Keeps the upper byte of every sample, so that what comes back is known to the bit. The encoder writes a header and,
# before each frame, two bytes; the decoder may be late and may leave things undone.
SCRIPT = """
import array, json, sys, wave

how, source, target, options = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
frame = options.get("frame", 0)
if how == "encode":
    with wave.open(source) as file:
        rate, channels = file.getframerate(), file.getnchannels()
        assert file.getsampwidth() == 2
        samples = array.array("h", file.readframes(file.getnframes()))
    codes = bytes((sample >> 8) + 128 for sample in samples)
    with open(target, "wb") as file:
        file.write(bytes([0x43, channels]) + rate.to_bytes(4, "big"))
        if not frame:
            file.write(codes)
        else:
            assert len(codes) % (frame * channels) == 0, "not whole frames"
            for start in range(0, len(codes), frame * channels):
                file.write(b"##" + codes[start : start + frame * channels])
else:
    content = open(source, "rb").read()
    assert content[0] == 0x43
    channels, rate, codes = content[1], int.from_bytes(content[2:6], "big"), content[6:]
    if frame:
        step = frame * channels + 2
        assert all(codes[start : start + 2] == b"##" for start in range(0, len(codes), step))
        codes = b"".join(codes[start + 2 : start + step] for start in range(0, len(codes), step))
    samples = array.array("h", [(code - 128) * 256 for code in codes])
    samples = array.array("h", [0] * (channels * options.get("late", 0))) + samples
    with wave.open(target, "wb") as file:
        file.setparams((options.get("channels", channels), 2, options.get("rate", rate), 0, "NONE", ""))
        file.writeframes(samples[: len(samples) - channels * options.get("cut", 0)].tobytes())
"""


def coarse(samples):
    """The signal that the script's codec gives back."""
    pcm = np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int64)
    return ((pcm >> 8) * 256 / 32768.0).astype(np.float32)


@pytest.fixture
def declare(tmp_path):
    """Writes a file whose programs are the script above, with changes, and returns its path."""
    (tmp_path / "coarse.py").write_text(SCRIPT)

    def write(options="{}", **changes):
        line = [sys.executable, "{folder}/coarse.py"]
        document = {
            "version": 1,
            "encoder": [*line, "encode", "{input}", "{output}", options],
            "decoder": [*line, "decode", "{input}", "{output}", options],
            "sample_rates_hz": [8000, RATE_HZ],
            "channels": [1, 2],
            "delay_samples": 0,
            "header_bytes": 6,
            **changes,
        }
        path = tmp_path / "coarse.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in document.items() if v is not None}))
        return path

    return write


def program(folder, name, code):
    """A Python script as program and first argument."""
    (folder / name).write_text(textwrap.dedent(code))
    return [sys.executable, f"{{folder}}/{name}", "{input}", "{output}"]


def noise(rng, channels=1, length=1000, rate_hz=RATE_HZ):
    return Audio(0.2 * rng.standard_normal((channels, length)), rate_hz)


def test_what_comes_back_is_what_the_programs_make_of_it(declare, rng):
    codec = CommandCodec(declare())
    batch = [noise(rng, c, n, r) for c, n, r in ((1, 1, 8000), (2, 7, 8000), (1, 1000, RATE_HZ), (2, 333, RATE_HZ))]
    codes = codec.encode(batch)
    for audio, item, out in zip(batch, codes, codec.decode(codes), strict=True):
        np.testing.assert_array_equal(out.samples, coarse(audio.samples))
        assert out.sample_rate_hz == audio.sample_rate_hz
        assert item.bits == 8 * audio.samples.size  # one byte a sample; the header does not count
    loud = Audio(np.array([[1.5, -1.5, 1.0, -1.0]]), RATE_HZ)
    (out,) = codec.decode(codec.encode([loud]))
    np.testing.assert_array_equal(out.samples, [[127 / 128, -1, 127 / 128, -1]])


def test_frames_are_whole_and_their_headers_do_not_count(declare, rng):
    codec = CommandCodec(declare('{"frame": 160}', sample_rates_hz=[RATE_HZ], frame_s=0.01, frame_header_bytes=2))
    assert codec.info.frame_rate_hz == 100
    for length in (1, 159, 160, 161, 1000):
        audio = noise(rng, 2, length)
        (codes,) = codec.encode([audio])
        assert codes.bits == 8 * 2 * 160 * -(-length // 160)
        assert codes.nominal_bitrate_bps == pytest.approx(codes.bits / audio.duration_s)
        (out,) = codec.decode([codes])
        np.testing.assert_array_equal(out.samples, coarse(audio.samples))


@pytest.mark.parametrize("delay", [37, {8000: 37, RATE_HZ: 37}, "measure"])
def test_a_delay_is_cut_off_whether_declared_or_measured(delay, declare, rng):
    codec = CommandCodec(declare('{"late": 37}', delay_samples=delay))
    for audio in (noise(rng, 1, 1), noise(rng, 2, 500), noise(rng, 1, 500, 8000)):
        (out,) = codec.decode(codec.encode([audio]))
        np.testing.assert_array_equal(out.samples, coarse(audio.samples))


def test_a_delay_that_speech_does_not_show_is_not_guessed(declare, tmp_path, rng):
    decoder = program(
        tmp_path,
        "noise.py",
        """
        import random, sys, wave

        random.seed(0)
        with wave.open(sys.argv[2], "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(random.randbytes(2 * 200000))
        """,
    )
    codec = CommandCodec(declare(decoder=decoder, delay_samples="measure"))
    with refuses("delay_unclear", rate_hz=16000, expected=0.3, hint="declare delay_samples"):
        codec.encode([noise(rng)])


def test_samples_without_a_header(declare, tmp_path, rng):
    copy = "import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2])"
    line = program(tmp_path, "copy.py", copy)
    codec = CommandCodec(declare(encoder=line, decoder=line, audio="raw", header_bytes=0))
    audio = Audio(np.round(noise(rng, 2).samples * 32768) / 32768, RATE_HZ)
    (codes,) = codec.encode([audio])
    assert np.array_equal(np.frombuffer(codes.packets[0], "<i2").reshape(-1, 2).T / 32768, audio.samples)
    (out,) = codec.decode([codes])
    np.testing.assert_array_equal(out.samples, audio.samples)
    odd = program(tmp_path, "odd.py", "import sys; open(sys.argv[2], 'wb').write(bytes(7))")
    with refuses("partial_samples", bytes=7):
        CommandCodec(declare(encoder=line, decoder=odd, audio="raw", header_bytes=0)).decode([codes])


@pytest.mark.skipif(shutil.which("cp") is None, reason="there is no cp")
def test_a_program_on_the_path_is_used(declare, rng):
    line = ["cp", "{input}", "{output}"]
    codec = CommandCodec(declare(encoder=line, decoder=line, header_bytes=44))
    audio = Audio(np.round(noise(rng).samples * 32768) / 32768, RATE_HZ)
    (codes,) = codec.encode([audio])
    assert codes.bits / codes.duration_s == 16 * RATE_HZ  # a WAV file's header has 44 bytes
    (out,) = codec.decode([codes])
    np.testing.assert_array_equal(out.samples, audio.samples)


def test_any_rate_and_channels_pass_through_the_adaptor(declare, rng):
    codec = CommandCodec(declare(channels=[1]))
    (item,) = reconstruct(codec, [noise(rng, 2, 24000, 48000)]).items
    assert item.estimate.samples.shape == (2, 8000) and item.bits == 8 * 2 * 8000


def test_placeholders_are_filled_in_and_nothing_goes_through_a_shell(declare, tmp_path, rng):
    encoder = program(
        tmp_path,
        "arguments.py",
        """
        import json, os, sys

        json.dump([sys.argv[3:], os.listdir(".")], open(sys.argv[2], "w"))
        """,
    )
    texts = ["{bitrate}", "{kbps}/{rate}/{rate_khz}", "{channels}", "; touch made", "$HOME", "*", "{}", 7]
    path = declare(encoder=[*encoder, *texts], header_bytes=0, bitrate_bps=13200, points=[9.6])
    for codec, rate_kbps in ((CommandCodec(path), "13.2"), (CommandCodec(path, bitrate_bps=9600), "9.6")):
        (codes,) = codec.encode([noise(rng, 2)])
        arguments, files = yaml.safe_load(codes.packets[0])
        bitrate = str(round(1000 * float(rate_kbps)))
        assert arguments == [bitrate, f"{rate_kbps}/16000/16", "2", "; touch made", "$HOME", "*", "{}", "7"]
        assert "made" not in files and "input.wav" in files
        assert codec.info.nominal_bitrate_bps == float(bitrate)


def test_a_program_that_hangs_is_stopped_with_what_it_started(declare, tmp_path, rng):
    note = tmp_path / "child.pid"
    encoder = program(
        tmp_path,
        "hang.py",
        f"""
        import subprocess, sys, time

        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        open({str(note)!r}, "w").write(str(child.pid))
        time.sleep(3600)
        """,
    )
    for timeout_s in (1.5, 6.0, 24.0, 96.0):  # until the program had the time to start its own
        codec = CommandCodec(declare(encoder=encoder, timeout_s=timeout_s))
        start = time.monotonic()
        with refuses("program_stopped", timeout_s=1.5, program=Containing("the encoder"), hint="timeout_s"):
            codec.encode([noise(rng)])
        assert time.monotonic() - start >= timeout_s
        if note.exists() and note.read_text():
            break
    for _ in range(2400):
        if _ended(int(note.read_text())):
            return
        time.sleep(0.05)
    pytest.fail("the program's child is still running")


def _ended(pid):
    """Whether a process is gone, or only waits for its parent to notice."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            return stat.read_text().rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import sys; print('first'); sys.exit('no such mode: \\x1b[31m9')",
            {"code": "program_ended", "ending": "exit status 1", "output": Containing("no such mode:  [31m9")},
        ),
        ("raise SystemExit(3)", {"code": "program_ended", "ending": "exit status 3"}),
        ("import os; os.kill(os.getpid(), 11)", {"code": "program_ended", "ending": "SIGSEGV"}),
        ("print('nothing to do')", {"code": "program_wrote_no_file", "output": Containing("nothing to do")}),
        (
            "import sys; open(sys.argv[2], 'wb').write(b'')",
            {"code": "bitstream_without_codes", "bytes": 0, "headers": 6},
        ),
        (
            "import sys; open(sys.argv[2], 'wb').write(b'header')",
            {"code": "bitstream_without_codes", "bytes": 6, "headers": 6},
        ),
        ("print('x' * 100000); raise SystemExit(1)", {"code": "program_ended", "output": 300 * "x"}),
    ],
)
def test_what_an_encoder_does_wrong_is_reported_in_a_sentence(code, message, declare, tmp_path, rng):
    codec = CommandCodec(declare(encoder=program(tmp_path, "wrong.py", code)))
    with refuses(**message) as caught:
        codec.encode([noise(rng)])
    assert caught.value.message.startswith("coarse: the encoder") and "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{"cut": 1}', {"code": "decoded_short", "samples": 999, "expected": 1000, "hint": "frame_s"}),
        ('{"rate": 48000}', {"code": "decoded_format", "format": "1 x 48000 Hz", "expected": "1 x 16000 Hz"}),
        ('{"channels": 2}', {"code": "decoded_format", "format": "2 x 16000 Hz", "expected": "1 x 16000 Hz"}),
    ],
)
def test_what_a_decoder_gives_is_checked(options, message, declare, rng):
    codec = CommandCodec(declare(options))
    with refuses(**message):
        codec.decode(codec.encode([noise(rng)]))


def test_what_is_no_audio_is_reported(declare, tmp_path, rng):
    for content, text in (
        ("b'hello'", {"code": "decoded_unreadable", "cause": Containing("its file is not")}),
        ("b''", {"code": "decoder_without_audio"}),
    ):
        wrong = program(tmp_path, "wrong.py", f"import sys; open(sys.argv[2], 'wb').write({content})")
        codec = CommandCodec(declare(decoder=wrong))
        with refuses(**text) as caught:
            codec.decode(codec.encode([noise(rng)]))
        assert "codec-bench-" not in str(caught.value)  # the message names no temporary folder that no longer exists


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder": ["no-such-program", "{input}", "{output}"]},
            {"code": "no_program", "program": "no-such-program", "role": "encoder"},
        ),
        (
            {"decoder": ["./none", "{input}", "{output}"]},
            {"code": "no_program", "program": "./none", "role": "decoder"},
        ),
        ({"encoder": ["cp", "{input}", "{out}"]}, {"code": "unknown_placeholder", "name": "out"}),
        ({"decoder": ["cp", "{input}"]}, {"code": "no_placeholder", "role": "decoder", "name": "output"}),
        ({"encoder": ["cp", "{input}", "{output}", "{bitrate}"]}, {"code": "bitrate_not_declared"}),
        (
            {"encoder": "cp {input} {output}"},
            {"code": "does_not_fit", "mistakes": {"code": "wrong_field", "name": Containing("encoder")}},
        ),
        ({"shell": True}, {"code": "does_not_fit", "mistakes": {"code": "unknown_field", "name": "shell"}}),
        (
            {"delay_samples": None},
            {"code": "does_not_fit", "mistakes": {"code": "missing_field", "name": "delay_samples"}},
        ),
        (
            {"delay_samples": -1},
            {"code": "does_not_fit", "mistakes": {"code": "wrong_field", "name": Containing("delay_samples")}},
        ),
        (
            {"delay_samples": {8000: 1}},
            {"code": "delay_not_declared", "rate_hz": 16000},
        ),
        ({"frame_header_bytes": 2}, {"code": "frame_header_without_frame", "hint": "frame_s"}),
        (
            {"frame_s": 0.01003},
            {"code": "frame_not_whole", "frame_s": 0.01003, "rate_hz": 8000},
        ),
        (
            {"extension": "/../x"},
            {"code": "does_not_fit", "mistakes": {"code": "wrong_field", "name": "extension"}},
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused_when_it_is_read(changes, message, declare):
    with refuses(**message) as caught:
        CommandCodec(declare(**changes))
    assert "coarse.yaml" in str(caught.value)


def test_a_file_is_a_name(declare, tmp_path, monkeypatch, rng):
    path = declare(bitrate_bps=128000, points=[64, 13.2], licence="MIT", paper="a script")
    monkeypatch.chdir(tmp_path)
    assert has_codec("./coarse.yaml") and has_codec(f"{path}@64") and not has_codec("coarse.txt")
    plain, point = load_codec("./coarse.yaml"), load_codec(f"{path}@13.2", device="cpu")
    assert (plain.info.name, point.info.name) == ("coarse", "coarse@13.2")
    assert (plain.info.nominal_bitrate_bps, point.info.nominal_bitrate_bps) == (128000, 13200)
    assert (plain.info.code_licence, plain.info.weights_licence, plain.info.paper) == ("MIT", None, "a script")
    assert plain.info.weights == point.info.weights  # the same file
    audio = noise(rng)
    (out,) = plain.decode(plain.encode([audio]))
    np.testing.assert_array_equal(out.samples, coarse(audio.samples))
    for name, text in (
        ("./coarse.yaml@32", {"code": "point_not_declared", "kbps": 32.0}),
        ("./coarse.yaml@fast", {"code": "point_not_a_bitrate"}),
        ("./none.yaml", {"code": "no_file", "path": "none.yaml"}),
    ):
        with refuses(**text):
            load_codec(name)
    with refuses("unknown_option", option="weights"):
        load_codec("./coarse.yaml", weights="here")
    declare(bitrate_bps=128000, header_bytes=0)
    assert load_codec("./coarse.yaml").info.weights != plain.info.weights  # another file: another codec


def test_a_program_or_script_that_was_built_again_is_another_codec_and_a_copy_is_the_same(tmp_path):
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "encode").write_text("#!/bin/sh\ncp $1 $2\n")
    (folder / "encode").chmod(0o755)
    (folder / "decode.py").write_text("import shutil, sys, helper\nshutil.copy(*sys.argv[1:])\n")
    (folder / "helper.py").write_text("K = 1\n")
    document = {
        "version": 1, "encoder": ["./encode", "{input}", "{output}"],
        "decoder": [sys.executable, "{folder}/decode.py", "{input}", "{output}", "--log={folder}/log.txt"],
        "sample_rates_hz": [RATE_HZ], "delay_samples": 0,
    }  # fmt: skip
    (folder / "own.yaml").write_text(yaml.safe_dump(document))
    weights = lambda where=folder: CommandCodec(where / "own.yaml").info.weights  # noqa: E731
    seen = [weights()]
    for name, content in (
        ("encode", "#!/bin/sh\ncat $1 > $2\n"),
        ("decode.py", "import helper\n"),
        ("helper.py", "K = 2"),
    ):
        (folder / name).write_text(content)
        seen.append(weights())
    assert len(set(seen)) == 4
    (folder / "log.txt").write_text("what the decoder wrote")
    shutil.copytree(folder, tmp_path / "copy")
    os.utime(tmp_path / "copy" / "encode")
    assert weights() == weights(tmp_path / "copy") == seen[-1]


def test_installed_programs_are_known_by_their_names_alone(tmp_path):
    program = ["cp", "{input}", "{output}"]
    document = {"version": 1, "encoder": program, "decoder": program, "sample_rates_hz": [8000], "delay_samples": 0}
    path = tmp_path / "copies.yaml"
    path.write_text(yaml.safe_dump(document))
    content = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert CommandCodec(path).info.weights == f"copies.yaml {content}"


def test_a_run_does_not_continue_with_a_program_that_was_built_again(tmp_path):
    encoder = tmp_path / "encode"
    encoder.write_text("#!/bin/sh\ncp $1 $2\n")
    encoder.chmod(0o755)
    document = {
        "version": 1, "encoder": ["./encode", "{input}", "{output}"], "decoder": ["cp", "{input}", "{output}"],
        "sample_rates_hz": [RATE_HZ], "delay_samples": 0,
    }  # fmt: skip
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(document))
    requested = {
        "codec": str(tmp_path / "own.yaml"), "data": "embedded", "metrics": "si_sdr", "limit": 1, "page": False,
        "workers": 1, "check": False,
    }  # fmt: skip
    evaluate(out=tmp_path / "run", **requested).close()
    evaluate(out=tmp_path / "run", **requested).close()
    encoder.write_text("#!/bin/sh\ncat $1 > $2\n")
    with pytest.raises(RunMismatch):
        evaluate(out=tmp_path / "run", **requested)


def test_options_stand_above_the_file(declare, rng):
    path = declare('{"late": 37}')
    audio = noise(rng)
    codec = load_codec(str(path), delay_samples=37, timeout_s=30)
    (out,) = codec.decode(codec.encode([audio]))
    np.testing.assert_array_equal(out.samples, coarse(audio.samples))


def test_what_the_codec_does_not_take_is_refused_before_anything_runs(declare, rng):
    codec = CommandCodec(declare(encoder=["false", "{input}", "{output}"]))
    for audio, text in (
        (noise(rng, 1, 10, 44100), {"code": "codec_rate", "rate_hz": 44100}),
        (noise(rng, 3, 10), {"code": "codec_channels", "channels": 3}),
        (Audio(np.zeros((1, 0)), RATE_HZ), {"code": "codec_without_samples"}),
    ):
        with refuses(**text):
            codec.encode([audio])
