"""The YAML file of a codec of programs, and whether they can be run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from codec_bench.config import fit, load_yaml
from codec_bench.messages.errors import UserError
from codec_bench.workers.programs import PLACEHOLDER, find_program

Bytes = Annotated[int, Field(ge=0)]
Samples = Annotated[int, Field(ge=0)]
Arguments = Annotated[tuple[str, ...], Field(min_length=1)]


class _StrictFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class CommandFile(_StrictFile):
    """The declarations of a file.

    Args:
        version: of this file layout.
        encoder, decoder: program and arguments with `{input}` and `{output}`, optionally `{bitrate}` (bit/s), `{kbps}`,
            `{rate}` (Hz), `{rate_khz}`, `{channels}` and `{folder}` (of the YAML file). A program with a slash in its
            name is relative to that folder, any other one on the PATH.
        sample_rates_hz, channels: those that the programs accept.
        delay_samples: samples by which the output is late: one number, one for each rate, or `measure`.
        audio: `wav`, or `raw` for samples without a header (little-endian, channels interleaved).
        bitrate_bps: the value of `{bitrate}` when the name has no `@KBPS`.
        points: the bitrates in kbps that may follow the file's name after an `@`.
        header_bytes: length of the header at the start of the encoder's file, which is not counted.
        frame_s: length of a frame in seconds. The input is extended with silence to whole frames.
        frame_header_bytes: length of every frame's header in the encoder's file, which is not counted.
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


def read_command(path: Path, changes: Mapping[str, object]) -> CommandFile:
    """Read the YAML file of a command codec.

    Args:
        changes: values that replace those in the file.

    Raises:
        UserError: the file does not fit its layout.
    """
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise UserError("mapping_expected", path=path, type=type(document).__name__)
    document |= {key: value for key, value in changes.items() if value is not None}
    file = fit(document, CommandFile, source=str(path))
    if isinstance(file.delay_samples, dict):
        missing = [rate for rate in file.sample_rates_hz if rate not in file.delay_samples]
        if missing:
            raise UserError("delay_not_declared", path=path, rate_hz=missing[0])
    if file.frame_s is not None:
        for rate_hz in file.sample_rates_hz:
            if abs(file.frame_s * rate_hz - frame_samples(file.frame_s, rate_hz)) > 1e-6 * rate_hz:
                raise UserError("frame_not_whole", path=path, frame_s=file.frame_s, rate_hz=rate_hz)
    elif file.frame_header_bytes:
        raise UserError(
            "frame_header_without_frame", path=path, hint="declare frame_s, too: the number of frames follows from it"
        )
    return file


def bitrate_of(file: CommandFile, path: Path, requested: int | None) -> int | None:
    """Return the programs' bitrate: the requested one, else the file's, else None.

    Raises:
        UserError: the file does not declare the requested bitrate.
    """
    if requested is None:
        return file.bitrate_bps
    known = {round(1000 * point) for point in file.points}
    if requested not in known | {file.bitrate_bps}:
        hint = f"its points are {', '.join(f'{p:g}' for p in file.points)} kbps" if file.points else "it has no points"
        raise UserError("point_not_declared", path=path, kbps=requested / 1000, hint=hint)
    return requested


def program_of(file: CommandFile, path: Path, role: str, bitrate_bps: int | None) -> str:
    """Return the path of the encoder or decoder program, and check its arguments.

    Args:
        role: `encoder` or `decoder`.

    Raises:
        UserError: there is no such program, or its arguments cannot be filled in.
    """
    arguments = getattr(file, role)
    used = {name for text in arguments for name in PLACEHOLDER.findall(text)}
    known = {"input", "output", "rate", "rate_khz", "channels", "folder", "bitrate", "kbps"}
    for name in sorted(used - known):
        hint = f"there are {', '.join(sorted(known))}"
        raise UserError("unknown_placeholder", path=path, role=role, name=name, hint=hint)
    for name in ("input", "output"):
        if name not in used:
            raise UserError("no_placeholder", path=path, role=role, name=name)
    if bitrate_bps is None and used & {"bitrate", "kbps"}:
        raise UserError("bitrate_not_declared", path=path, role=role, hint="declare bitrate_bps in the file")
    return find_program(arguments[0], path, role)


def frame_samples(frame_s: float, rate_hz: int) -> int:
    """Return the samples of a frame of `frame_s` seconds."""
    return max(1, round(frame_s * rate_hz))
