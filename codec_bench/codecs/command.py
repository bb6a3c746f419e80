"""A codec of two programs, encoder and decoder, in a user's YAML file.

Programs run from an argument list without a shell, in their own temporary folder, with empty standard input; after the
timeout they are killed with their children. Audio is files of 16-bit PCM. The payload is the encoder's file without its
declared headers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import numpy as np

from codec_bench.audio.resample import resample
from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.codecs.command_file import bitrate_of, frame_samples, program_of, read_command
from codec_bench.codecs.embedded_speech import embedded_clip
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.types import Audio, Codes
from codec_bench.workers.programs import filled, last_words, programs_hash, run_program, write_pcm

_LONGEST_DELAY_S = 0.5
_EARLIEST_S = 0.05
# The least normalised correlation, after pre-emphasis, that counts as a match. On the clip used, Opus at 6 kbps reaches
# 0.45, AMR at 4.75 kbps 0.79, and another voice 0.05.
_LEAST_CORRELATION = 0.3
_EMPHASIS = 0.95
_CLIP = "awb_01"


class CommandCodec(Codec):
    """A codec that runs the programs of a file.

    Args:
        path: the YAML file. bitrate_bps, delay_samples, timeout_s: replace the values in the file.

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
        self._file = read_command(self._path, {"delay_samples": delay_samples, "timeout_s": timeout_s})
        self._bitrate_bps = bitrate_of(self._file, self._path, bitrate_bps)
        self._measured: dict[int, int] = {}
        point = "" if bitrate_bps is None else f"@{bitrate_bps / 1000:g}"
        # File and programs determine the codec, as weights do a network. So their hash is recorded as the weights.
        content = programs_hash(self._path, (self._file.encoder, self._file.decoder))
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
        sides = ("encoder", "decoder")
        self._programs = {role: program_of(self._file, self._path, role, self._bitrate_bps) for role in sides}

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item to one packet: the encoder's file without its header.

        Frame headers stay in the packet, because only the decoder knows where they are; a negative `side_bits` excludes
        them from the bits.
        """
        for audio in batch:
            check_input(audio, self.info)
        return [self._encode(audio, self._delay(audio.sample_rate_hz)) for audio in batch]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item, without the programs' delay and cut to the item's length."""
        out = []
        for item in codes:
            delay = self._delay(item.sample_rate_hz)
            samples = self._decode(item)
            needed = item.num_samples + delay
            if samples.shape[1] < needed:
                hint = "" if self._file.frame_s else "declare frame_s in the file: the encoder then gets whole frames"
                raise UserError(
                    "decoded_short", codec=self.info.name, samples=samples.shape[1], expected=needed, hint=hint
                )
            out.append(Audio(samples[:, delay:needed], item.sample_rate_hz))
        return out

    def _encode(self, audio: Audio, extra: int) -> Codes:
        """Encode one item, followed by at least `extra` samples of silence."""
        file, rate_hz = self._file, audio.sample_rate_hz
        length, frames = audio.num_samples + extra, 0
        if file.frame_s is not None:
            frame = frame_samples(file.frame_s, rate_hz)
            frames = -(-length // frame)
            length = frames * frame
        samples = np.pad(audio.samples, ((0, 0), (0, length - audio.num_samples)))
        with TemporaryDirectory(prefix="codec-bench-") as folder:
            source, target = Path(folder, f"input.{file.audio}"), Path(folder, f"coded{file.extension}")
            write_pcm(source, samples, rate_hz, file.audio)
            self._run("encoder", source, target, rate_hz, audio.channels)
            stream = target.read_bytes()
        side_bits = -8.0 * frames * file.frame_header_bytes
        if 8 * (len(stream) - file.header_bytes) + side_bits <= 0:
            raise UserError(
                "bitstream_without_codes",
                codec=self.info.name,
                bytes=len(stream),
                headers=file.header_bytes + frames * file.frame_header_bytes,
            )
        header = np.frombuffer(stream[: file.header_bytes], np.uint8)
        side_info = {"channels": audio.channels, "header": header}
        return Codes((), audio.num_samples, rate_hz, (stream[file.header_bytes :],), side_bits, side_info)

    def _decode(self, item: Codes) -> np.ndarray:
        """Decode one item to all that the decoder wrote: float32 `(channels, samples)`."""
        rate_hz, channels = item.sample_rate_hz, item.side["channels"]
        with TemporaryDirectory(prefix="codec-bench-") as folder:
            source, target = Path(folder, f"coded{self._file.extension}"), Path(folder, f"output.{self._file.audio}")
            source.write_bytes(item.side["header"].tobytes() + b"".join(item.packets))
            self._run("decoder", source, target, rate_hz, channels)
            if self._file.audio == "raw":
                return self._read_raw(target, channels)
            if target.stat().st_size == 0:
                raise UserError("decoder_without_audio", codec=self.info.name)
            try:
                audio = Audio.read(target)
            except AudioError as error:
                reason = error.message.replace(f"'{target}'", "its file")
                raise UserError("decoded_unreadable", codec=self.info.name, cause=reason) from error
        if (audio.sample_rate_hz, audio.channels) != (rate_hz, channels):
            got, expected = f"{audio.channels} x {audio.sample_rate_hz} Hz", f"{channels} x {rate_hz} Hz"
            raise UserError("decoded_format", codec=self.info.name, format=got, expected=expected)
        return audio.samples

    def _read_raw(self, path: Path, channels: int) -> np.ndarray:
        """Read 16-bit PCM as float32 `(channels, samples)` in [-1, 1).

        Raises:
            UserError: the file ends within a sample of all channels.
        """
        content = path.read_bytes()
        if len(content) % (2 * channels):
            raise UserError(
                "partial_samples",
                codec=self.info.name,
                bytes=len(content),
                multiple=2 * channels,
            )
        return np.frombuffer(content, "<i2").reshape(-1, channels).T.astype(np.float32) / 32768.0

    def _delay(self, rate_hz: int) -> int:
        """Return the delay of encoder and decoder together, in samples.

        The file declares it; else it is measured once for each rate.
        """
        declared = self._file.delay_samples
        if isinstance(declared, int):
            return declared
        if isinstance(declared, dict):
            return declared[rate_hz]
        if rate_hz not in self._measured:
            self._measured[rate_hz] = self._measure(rate_hz)
        return self._measured[rate_hz]

    def _measure(self, rate_hz: int) -> int:
        """Measure the delay in samples by correlating speech with the decoded speech.

        Both signals have pre-emphasis, because a codec's high-pass filter changes the phase of a voice's fundamental.
        """
        voice = embedded_clip(_CLIP)
        wave_in = resample(voice.samples[:1], voice.sample_rate_hz, rate_hz)
        probe = Audio(np.repeat(wave_in, self.info.channels[0], axis=0), rate_hz)
        reach, early = round(_LONGEST_DELAY_S * rate_hz), round(_EARLIEST_S * rate_hz)
        decoded = self._decode(self._encode(probe, reach))[0]
        lag, likeness = _lag(wave_in[0], decoded, early, reach)
        if likeness < _LEAST_CORRELATION:
            hint = "declare delay_samples in the file"
            raise UserError(
                "delay_unclear",
                codec=self.info.name,
                rate_hz=rate_hz,
                correlation=likeness,
                expected=_LEAST_CORRELATION,
                hint=hint,
            )
        if lag < 0:
            raise UserError("decoded_early", codec=self.info.name, rate_hz=rate_hz, samples=-lag)
        return lag

    def _run(
        self, role: Literal["encoder", "decoder"], source: Path, target: Path, rate_hz: int, channels: int
    ) -> None:
        """Run the encoder or decoder on files; its working directory is the files' folder.

        Args:
            source: the input file.
            target: the output file; UserError if the program does not write it.
        """
        arguments = self._arguments(role, str(source), str(target), rate_hz, channels)
        who = f"{self.info.name}: the {role} '{Path(arguments[0]).name}'"
        run_program(arguments, source.parent, who, self._file.timeout_s)
        if not target.is_file():
            raise UserError("program_wrote_no_file", program=who, output=last_words(source.parent))

    def _arguments(self, role: str, source: str, target: str, rate_hz: int, channels: int) -> list[str]:
        """Fill in the placeholders of a program's command line."""
        folder = str(self._path.resolve().parent)
        values = {"input": source, "output": target, "channels": str(channels), "folder": folder}
        values |= {"rate": str(rate_hz), "rate_khz": f"{rate_hz / 1000:g}"}
        if self._bitrate_bps is not None:
            values |= {"bitrate": str(self._bitrate_bps), "kbps": f"{self._bitrate_bps / 1000:g}"}
        return [self._programs[role], *(filled(text, values) for text in getattr(self._file, role)[1:])]


def _lag(reference: np.ndarray, estimate: np.ndarray, early: int, reach: int) -> tuple[int, float]:
    """Find the largest cross-correlation from `-early` to `reach` samples of delay.

    Returns:
        The samples by which the estimate is late, and the normalised correlation there.
    """
    x, y = (s[1:].astype(np.float64) - _EMPHASIS * s[:-1] for s in (reference, estimate))
    size = 1 << (len(x) + len(y)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(y, size) * np.conj(np.fft.rfft(x, size)), size)
    around = np.concatenate([correlation[-early:], correlation[: reach + 1]])
    best = int(np.argmax(around))
    scale = float(np.linalg.norm(x) * np.linalg.norm(y))
    return best - early, float(around[best]) / scale if scale > 0 else 0.0
