"""Find and identify the user's programs, run them in a folder, stop them after a time."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import wave
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from codec_bench.config.custom_code import code_hash
from codec_bench.config.file_content import file_hash
from codec_bench.messages.errors import UserError, on_disk

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/snap", "/nix", "/etc", "/System", "/Library")
_SCRIPTS = frozenset((".py", ".sh", ".pl", ".rb", ".js", ".lua", ".jl", ".m", ".R", ".jar"))
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|java|julia|Rscript|octave|matlab|lua|bash|dash|zsh|sh|wine|docker|uv)[\d.]*(-cli)?"
)
_LOG = "program.log"
_MESSAGE_BYTES, _MESSAGE_CHARS = 4096, 300


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with values for its placeholders."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def find_program(name: str, path: Path, role: str) -> str:
    """The path of a program: relative to its file's folder with a slash, else on PATH."""
    folder = path.resolve().parent
    name = filled(name, {"folder": str(folder)})
    program = shutil.which(str(folder / name) if "/" in name else name)
    if program is None:
        raise UserError(
            "no_program",
            path=path,
            program=name,
            role=role,
            hint="a name without a slash is looked for on the PATH, one with a slash from the file's folder",
        )
    return program


def programs_hash(path: Path, commands: Sequence[Sequence[str]]) -> str:
    """64 bits of the SHA-256 of a file of commands, and of the user's programs and scripts in them.

    Installed programs and interpreters are known by their names, so a copy of a run continues elsewhere.
    """
    digest = hashlib.sha256(path.read_bytes())
    for command in commands:
        for at, file in _user_files(command, path):
            with suppress(OSError):  # a program may be executable and not readable
                content = code_hash(f"{file}:{file.stem}") if file.suffix == ".py" else file_hash(file)
                digest.update(f"{at}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def _user_files(command: Sequence[str], path: Path) -> Iterator[tuple[int, Path]]:
    """The programs and scripts outside system folders in a command, by their positions.

    Args:
        path: of the file with the command.
    """
    folder = path.resolve().parent
    for at, text in enumerate(command):
        text = filled(text, {"folder": str(folder)})
        if at == 0:
            program = shutil.which(str(folder / text) if "/" in text else text)
            names = [] if program is None else [program]
        else:
            names = [one for one in (text, text.partition("=")[2]) if os.path.isabs(one)]
        for file in map(Path, names):
            is_program = file.suffix in _SCRIPTS or os.access(file, os.X_OK)
            if file.is_file() and is_program and not _is_installed(file):
                yield at, file


def _is_installed(file: Path) -> bool:
    """Whether a program is an interpreter, or in a folder of the system or of an environment."""
    resolved, parent = file.resolve(), file.absolute().parent.parent
    return (
        _INTERPRETERS.fullmatch(resolved.name) is not None
        or any(resolved.is_relative_to(folder) for folder in (*_SYSTEM, sys.prefix, sys.base_prefix))
        or any((parent / mark).exists() for mark in ("pyvenv.cfg", "conda-meta"))
    )


def run_program(arguments: Sequence[str], folder: Path, who: str, timeout_s: float) -> str:
    """Run a program in a folder; return its output, or raise UserError about `who`."""
    log = folder / _LOG
    with log.open("wb") as file:
        with on_disk("not_started", program=who):
            process = subprocess.Popen(
                arguments,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that its child processes can be ended with it
            )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            hint = "declare a longer timeout_s in the file"
            raise UserError("program_stopped", program=who, timeout_s=timeout_s, hint=hint) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code:
        ending = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        raise UserError("program_ended", program=who, ending=ending, output=last_words(folder))
    return log.read_text("utf-8", "replace")


def last_words(folder: Path) -> str:
    """The last line of the output of this folder's program, or ""."""
    log = folder / _LOG
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _MESSAGE_BYTES))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    words = "".join(c if c.isprintable() else " " for c in lines[-1]).strip()
    return words[:_MESSAGE_CHARS]


def write_pcm(path: Path, samples: np.ndarray, rate_hz: int, kind: str = "wav") -> None:
    """Write float `(channels, samples)`, clipped, as PCM16: `wav` or headerless `raw`."""
    content = np.clip(np.round(samples.T * 32768.0), -32768, 32767).astype("<i2").tobytes()
    if kind == "raw":
        path.write_bytes(content)
        return
    with wave.open(str(path), "wb") as file:
        file.setparams((samples.shape[0], 2, rate_hz, 0, "NONE", ""))
        file.writeframes(content)
