"""A codec that runs two programs, an encoder and a decoder, which a YAML file of the user names.

Conventions
    A program is run with a list of arguments; no shell reads them. It runs in a folder of its own, which is deleted
    afterwards, and its standard input is empty. When its time is over, it is killed with all processes that it started.
    Audio goes in and out as files of 16-bit PCM. The payload is the encoder's file without the headers that are
    declared.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import wave
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from codec_bench.audio.read import read_audio
from codec_bench.audio.resample import resample
from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.config import fit, load_yaml
from codec_bench.errors import AudioError, UserError
from codec_bench.types import Audio, Codes

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_LONGEST_DELAY_S = 0.5
_EARLIEST_S = 0.05
# The least normalised correlation, after pre-emphasis, that counts as a match. On the clip used, Opus at 6 kbps reaches
# 0.45, AMR at 4.75 kbps 0.79, and another voice 0.05.
_LEAST_CORRELATION = 0.3
_EMPHASIS = 0.95
_MESSAGE_BYTES = 4096
_MESSAGE_CHARS = 300

Bytes = Annotated[int, Field(ge=0)]
Samples = Annotated[int, Field(ge=0)]
Arguments = Annotated[tuple[str, ...], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class CommandFile(_Strict):
    """What a file declares.

    Args:
        version: of this file layout.
        encoder, decoder: program and arguments, which contain `{input}` and `{output}`. They may also contain
            `{bitrate}` (bit/s), `{kbps}`, `{rate}` (Hz), `{rate_khz}`, `{channels}` and `{folder}` (the folder of the
            YAML file). A program with a slash in its name is looked up relative to that folder, any other one on the
            PATH.
        sample_rates_hz, channels: what the programs take.
        delay_samples: by how many samples the decoded signal is late: one number, one number for each rate, or
            `measure`.
        audio: `wav`, or `raw` for samples without a header (little-endian, channels interleaved).
        bitrate_bps: what `{bitrate}` stands for when the name has no `@KBPS`.
        points: the bitrates in kbps that may follow the file's name after an `@`. Without points, only `bitrate_bps` is
            used.
        header_bytes: length of the header at the start of the encoder's file, which is not counted.
        frame_s: length of a frame in seconds. The input is extended with silence to whole frames.
        frame_header_bytes: length of the header of every frame in the encoder's file, which is not counted.
        timeout_s: seconds that a program may run for one item.
        extension: file extension of the encoder's file.
        causal, lookahead_s, licence, paper: facts for the list; see `CodecInfo`.
    """

    version: Literal[1]
    encoder: Arguments
    decoder: Arguments
    sample_rates_hz: Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
    channels: Annotated[tuple[Literal[1, 2], ...], Field(min_length=1)] = (1,)
    delay_samples: Samples | dict[PositiveInt, Samples] | Literal["measure"]
    audio: Literal["wav", "raw"] = "wav"
    bitrate_bps: PositiveInt | None = None
    points: tuple[PositiveFloat, ...] = ()
    header_bytes: Bytes = 0
    frame_s: PositiveFloat | None = None
    frame_header_bytes: Bytes = 0
    timeout_s: PositiveFloat = 60.0
    extension: Annotated[str, Field(pattern=r"^\.\w+$")] = ".bin"
    causal: bool | None = None
    lookahead_s: float | None = None
    licence: str | None = None
    paper: str = ""


class Command(Codec):
    """A codec that runs the programs of a file.

    Args:
        path: the YAML file.
        bitrate_bps, delay_samples, timeout_s: replace the values in the file.

    Raises:
        UserError: the file does not fit its layout, or a program does not exist.
    """

    where: ClassVar = "cpu"

    def __init__(
        self,
        path: str | os.PathLike[str],
        bitrate_bps: int | None = None,
        delay_samples: int | Literal["measure"] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._path = Path(path).expanduser()
        self._file = _read(self._path, {"delay_samples": delay_samples, "timeout_s": timeout_s})
        self._bitrate_bps = _bitrate(self._file, self._path, bitrate_bps)
        self._measured: dict[int, int] = {}
        point = "" if bitrate_bps is None else f"@{bitrate_bps / 1000:g}"
        # The file decides what is run, as weights do for a network. So its hash is recorded as the weights.
        content = hashlib.sha256(self._path.read_bytes()).hexdigest()[:16]
        self.info = CodecInfo(
            name=f"{self._path.stem}{point}",
            sample_rates_hz=self._file.sample_rates_hz,
            channels=self._file.channels,
            frame_rate_hz=None if self._file.frame_s is None else 1 / self._file.frame_s,
            nominal_bitrate_bps=None if self._bitrate_bps is None else float(self._bitrate_bps),
            causal=self._file.causal,
            lookahead_s=self._file.lookahead_s,
            code_licence=self._file.licence,
            weights=f"{self._path.name} {content}",
            paper=self._file.paper,
        )
        self._programs = {role: self._checked_program(role) for role in ("encoder", "decoder")}

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """The bitstream of each item: one packet, which is the encoder's file without its header.

        Headers of frames stay in the packet, because only the decoder knows where they are. A negative `side_bits`
        takes them out of the count.

        Raises:
            UserError: a rate or channel count that the codec does not take, no samples, or a program that failed.
        """
        for audio in batch:
            check_input(audio, self.info)
        return [self._encode(audio, self._delay(audio.sample_rate_hz)) for audio in batch]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item without its delay, as long as it was.

        Raises:
            UserError: a program that failed, or that gave another rate, other channels or too few samples.
        """
        out = []
        for item in codes:
            delay = self._delay(item.sample_rate_hz)
            samples = self._decode(item)
            needed = item.num_samples + delay
            if samples.shape[1] < needed:
                raise UserError(
                    f"{self.info.name}: the decoder gave {samples.shape[1]} of {needed} samples",
                    hint=""
                    if self._file.frame_s
                    else "declare frame_s in the file: the encoder is then given whole frames",
                )
            out.append(Audio(samples[:, delay:needed], item.sample_rate_hz))
        return out

    def _encode(self, audio: Audio, extra: int) -> Codes:
        """Codes of one item, followed by at least `extra` samples of silence."""
        file, rate_hz = self._file, audio.sample_rate_hz
        length, frames = audio.num_samples + extra, 0
        if file.frame_s is not None:
            frame = _frame_samples(file.frame_s, rate_hz)
            frames = -(-length // frame)
            length = frames * frame
        samples = np.pad(audio.samples, ((0, 0), (0, length - audio.num_samples)))
        with TemporaryDirectory(prefix="codec-bench-") as folder:
            given, made = Path(folder, f"input.{file.audio}"), Path(folder, f"coded{file.extension}")
            _write(given, samples, rate_hz, file.audio)
            self._run("encoder", given, made, rate_hz, audio.channels)
            stream = made.read_bytes()
        side_bits = -8.0 * frames * file.frame_header_bytes
        if 8 * (len(stream) - file.header_bytes) + side_bits <= 0:
            headers = file.header_bytes + frames * file.frame_header_bytes
            expected = f"more than the {headers} bytes of its headers" if headers else "a bitstream"
            raise UserError(f"{self.info.name}: the encoder wrote {len(stream)} bytes; expected {expected}")
        header = np.frombuffer(stream[: file.header_bytes], np.uint8)
        return Codes(
            streams=(),
            num_samples=audio.num_samples,
            sample_rate_hz=rate_hz,
            packets=(stream[file.header_bytes :],),
            side_bits=side_bits,
            side={"channels": audio.channels, "header": header},
        )

    def _decode(self, item: Codes) -> np.ndarray:
        """float32 `(channels, samples)`: everything that the decoder wrote for one item."""
        rate_hz, channels = item.sample_rate_hz, item.side["channels"]
        with TemporaryDirectory(prefix="codec-bench-") as folder:
            given, made = Path(folder, f"coded{self._file.extension}"), Path(folder, f"output.{self._file.audio}")
            given.write_bytes(item.side["header"].tobytes() + b"".join(item.packets))
            self._run("decoder", given, made, rate_hz, channels)
            if self._file.audio == "raw":
                return self._read_raw(made, channels)
            if made.stat().st_size == 0:
                raise UserError(f"{self.info.name}: the decoder wrote an empty file")
            try:
                audio = read_audio(made)
            except AudioError as error:
                reason = error.message.replace(f"'{made}'", "its file")
                raise UserError(f"{self.info.name}: what the decoder wrote is not sound: {reason}") from error
        if (audio.sample_rate_hz, audio.channels) != (rate_hz, channels):
            got, expected = f"{audio.channels} x {audio.sample_rate_hz} Hz", f"{channels} x {rate_hz} Hz"
            raise UserError(f"{self.info.name}: the decoder gave {got} (channels x rate); expected {expected}")
        return audio.samples

    def _read_raw(self, path: Path, channels: int) -> np.ndarray:
        content = path.read_bytes()
        if len(content) % (2 * channels):
            expected = f"a multiple of {2 * channels}: 16-bit samples in {channels} channels"
            raise UserError(f"{self.info.name}: the decoder wrote {len(content)} bytes; expected {expected}")
        return np.frombuffer(content, "<i2").reshape(-1, channels).T.astype(np.float32) / 32768.0

    def _delay(self, rate_hz: int) -> int:
        """The delay of both programs at one rate, in samples. It is measured once if the file asks for it."""
        declared = self._file.delay_samples
        if isinstance(declared, int):
            return declared
        if isinstance(declared, dict):
            return declared[rate_hz]
        if rate_hz not in self._measured:
            self._measured[rate_hz] = self._measure(rate_hz)
        return self._measured[rate_hz]

    def _measure(self, rate_hz: int) -> int:
        """The delay at which the cross-correlation of speech and decoded speech is largest.

        Both have pre-emphasis, because the high-pass filter of a codec changes the phase of a voice's fundamental.
        """
        from codec_bench.data import open_source

        sample = next(iter(open_source("embedded")))
        assert sample.audio is not None, "the embedded speech has audio"
        voice = Audio.read(sample.audio)
        wave_in = resample(voice.samples[:1], voice.sample_rate_hz, rate_hz)
        probe = Audio(np.repeat(wave_in, self.info.channels[0], axis=0), rate_hz)
        reach, early = round(_LONGEST_DELAY_S * rate_hz), round(_EARLIEST_S * rate_hz)
        decoded = self._decode(self._encode(probe, reach))[0]
        lag, likeness = _lag(wave_in[0], decoded, early, reach)
        if likeness < _LEAST_CORRELATION:
            reason = f"its output correlates with its input by {likeness:.2f} at most; expected {_LEAST_CORRELATION}"
            hint = "declare delay_samples in the file"
            raise UserError(f"{self.info.name}: the delay at {rate_hz} Hz cannot be measured: {reason}", hint=hint)
        if lag < 0:
            raise UserError(f"{self.info.name}: what it decodes at {rate_hz} Hz comes {-lag} samples early")
        return lag

    def _run(self, role: Literal["encoder", "decoder"], given: Path, made: Path, rate_hz: int, channels: int) -> None:
        """Runs one program in the folder of its files.

        Raises:
            UserError: the program did not end in time, ended with an error, or wrote no file.
        """
        arguments = self._arguments(role, str(given), str(made), rate_hz, channels)
        who = f"{self.info.name}: the {role} '{Path(arguments[0]).name}'"
        log = given.parent / f"{role}.log"
        with log.open("wb") as file:
            try:
                process = subprocess.Popen(
                    arguments,
                    cwd=given.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that what it starts can be ended with it
                )
            except OSError as error:
                raise UserError(f"{who} cannot be started: {error.strerror}") from error
            try:
                code = process.wait(self._file.timeout_s)
            except subprocess.TimeoutExpired:
                hint = "declare a longer timeout_s in the file"
                raise UserError(f"{who} was stopped after {self._file.timeout_s:g} s", hint=hint) from None
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
            raise UserError(f"{who} {how}{_last_words(log)}")
        if not made.is_file():
            raise UserError(f"{who} wrote no file{_last_words(log)}")

    def _arguments(self, role: str, given: str, made: str, rate_hz: int, channels: int) -> list[str]:
        values = {
            "input": given,
            "output": made,
            "rate": str(rate_hz),
            "rate_khz": f"{rate_hz / 1000:g}",
            "channels": str(channels),
            "folder": str(self._path.resolve().parent),
        }
        if self._bitrate_bps is not None:
            values |= {"bitrate": str(self._bitrate_bps), "kbps": f"{self._bitrate_bps / 1000:g}"}
        return [self._programs[role], *(_filled(text, values) for text in getattr(self._file, role)[1:])]

    def _checked_program(self, role: str) -> str:
        """The path of a program.

        Raises:
            UserError: there is no such program, or its arguments cannot be filled in.
        """
        arguments = getattr(self._file, role)
        used = {name for text in arguments for name in _PLACEHOLDER.findall(text)}
        known = {"input", "output", "rate", "rate_khz", "channels", "folder", "bitrate", "kbps"}
        for name in sorted(used - known):
            hint = f"there are {', '.join(sorted(known))}"
            raise UserError(f"'{self._path}': the {role} has an unknown placeholder {{{name}}}", hint=hint)
        for name in ("input", "output"):
            if name not in used:
                raise UserError(f"'{self._path}': the {role} has no {{{name}}} among its arguments")
        if self._bitrate_bps is None and used & {"bitrate", "kbps"}:
            raise UserError(f"'{self._path}': the {role} asks for a bitrate", hint="declare bitrate_bps in the file")
        return _program(arguments[0], self._path, role)


def _read(path: Path, changes: Mapping[str, object]) -> CommandFile:
    """The file's declarations, some of them replaced."""
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise UserError(f"'{path}' holds {type(document).__name__}; expected a mapping of names to values")
    document |= {key: value for key, value in changes.items() if value is not None}
    file = fit(document, CommandFile, source=str(path))
    if isinstance(file.delay_samples, dict):
        missing = [rate for rate in file.sample_rates_hz if rate not in file.delay_samples]
        if missing:
            raise UserError(f"'{path}': delay_samples has no number for {missing[0]} Hz")
    if file.frame_s is not None:
        for rate_hz in file.sample_rates_hz:
            if abs(file.frame_s * rate_hz - _frame_samples(file.frame_s, rate_hz)) > 1e-6 * rate_hz:
                raise UserError(f"'{path}': frame_s is {file.frame_s:g}, not a whole number of samples at {rate_hz} Hz")
    elif file.frame_header_bytes:
        raise UserError(
            f"'{path}' declares frame_header_bytes", hint="declare frame_s, too: the number of frames follows from it"
        )
    return file


def _bitrate(file: CommandFile, path: Path, asked: int | None) -> int | None:
    if asked is None:
        return file.bitrate_bps
    known = {round(1000 * point) for point in file.points}
    if asked not in known | {file.bitrate_bps}:
        hint = f"its points are {', '.join(f'{p:g}' for p in file.points)} kbps" if file.points else "it has no points"
        raise UserError(f"'{path}' does not declare the point of {asked / 1000:g} kbps", hint=hint)
    return asked


def _program(name: str, path: Path, role: str) -> str:
    """The path of a program: relative to the file's folder if its name has a slash, else on the PATH."""
    name = _filled(name, {"folder": str(path.resolve().parent)})
    found = shutil.which(str(path.resolve().parent / name) if "/" in name else name)
    if found is None:
        raise UserError(
            f"'{path}': there is no program '{name}' to run as the {role}",
            hint="a name without a slash is looked for on the PATH, one with a slash from the file's folder",
        )
    return found


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _frame_samples(frame_s: float, rate_hz: int) -> int:
    return max(1, round(frame_s * rate_hz))


def _write(path: Path, samples: np.ndarray, rate_hz: int, kind: str) -> None:
    """Writes 16-bit PCM, clipped at full scale."""
    content = np.clip(np.round(samples.T * 32768.0), -32768, 32767).astype("<i2").tobytes()
    if kind == "raw":
        path.write_bytes(content)
        return
    with wave.open(str(path), "wb") as file:
        file.setparams((samples.shape[0], 2, rate_hz, 0, "NONE", ""))
        file.writeframes(content)


def _lag(reference: np.ndarray, estimate: np.ndarray, early: int, reach: int) -> tuple[int, float]:
    """Samples by which the estimate is late, from `-early` to `reach`, and the normalised correlation there."""
    x, y = (s[1:].astype(np.float64) - _EMPHASIS * s[:-1] for s in (reference, estimate))
    size = 1 << (len(x) + len(y)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(y, size) * np.conj(np.fft.rfft(x, size)), size)
    around = np.concatenate([correlation[-early:], correlation[: reach + 1]])
    best = int(np.argmax(around))
    scale = float(np.linalg.norm(x) * np.linalg.norm(y))
    return best - early, float(around[best]) / scale if scale > 0 else 0.0


def _last_words(log: Path) -> str:
    """The last line that a program wrote, as the end of a message; empty if it wrote nothing."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _MESSAGE_BYTES))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    words = "".join(c if c.isprintable() else " " for c in lines[-1]).strip()
    return f": {words[:_MESSAGE_CHARS]}"
