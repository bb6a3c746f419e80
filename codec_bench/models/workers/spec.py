"""Reads the description of an isolated environment: `configs/env/NAME.yaml`, or your own YAML file.

Conventions
    Every package of the environment is listed with its exact version, so that an environment made later is the same.
    `uv pip compile NAMES.txt -o LOCK.txt` writes such a list from the names of the packages that you need.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.config import SUFFIX, fit, load_yaml, read_config
from codec_bench.errors import UserError

_NAME = r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\])?"
_HASHES = r"(\s+--hash=\S+)*"
_PINNED = re.compile(rf"^{_NAME}\s*===?\s*[^\s;,*=]+(\s*;[^#]*?)?{_HASHES}$")
# A direct reference fixes its content: an archive by its SHA-256, a repository by a commit.
_DIRECT = re.compile(rf"^{_NAME}\s*@\s*\S+(#sha256=[0-9a-f]{{64}}|@[0-9a-f]{{40}}(#\S+)?)(\s*;[^#]*?)?{_HASHES}$")
_OPTIONS = ("--index-url", "--extra-index-url", "--find-links", "--no-index", "--no-binary", "--only-binary")


class EnvFile(BaseModel):
    """The schema of an environment's YAML file.

    Args:
        version: version of the schema.
        summary: what the environment is for.
        python: the Python versions that it works with, such as `3.10` or `>=3.11,<3.13`; None is the version that runs
            codec-bench.
        requirements: every package as NAME==VERSION.
        lock: the path of a file that lists the packages, relative to the YAML file; in place of `requirements`.
        code: the file of the worker code, relative to the YAML file; the config of a model may name another.
        variables: environment variables for the worker.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    summary: str
    python: str | None = Field(default=None, pattern=r"^[\d.,<>=!~* ]+$")
    requirements: list[str] = []
    lock: str | None = None
    code: str | None = None
    variables: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_list(self) -> EnvFile:
        if bool(self.requirements) == bool(self.lock):
            raise ValueError("expected either 'requirements' or 'lock', and not both")
        return self


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """The description of an environment.

    Args:
        name: used in messages and in the name of the folder.
        requirements: lines for the installer, each pinned to one version.
        python: the Python versions that it works with; None is the version that runs codec-bench.
        code: the file of its worker code, or None.
        variables: environment variables for the worker.
    """

    name: str
    requirements: tuple[str, ...]
    python: str | None = None
    code: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash (128 bits, hexadecimal) of the Python versions and the packages; not of the worker code and the variables."""
        content = json.dumps([1, self.python, self.requirements])
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def read_env(name: str, folder: Path | None = None) -> EnvSpec:
    """Reads the description of an environment.

    Args:
        name: a name in `configs/env`, or the path of a YAML file.
        folder: the folder that a relative path starts from; None is the working folder.

    Raises:
        UnknownName: there is no such environment; the message suggests the nearest name.
        UserError: the file does not follow the schema, its lock cannot be read, or a line is not pinned.
    """
    if name.endswith(SUFFIX):
        file = (folder or Path()) / Path(name).expanduser()
        document = load_yaml(file)
        if not isinstance(document, dict):
            raise UserError(f"'{file}' holds {type(document).__name__}; expected a mapping of names to values")
        found, name = fit(document, EnvFile, source=str(file)), file.name.removesuffix(SUFFIX)
        beside, source = file.parent, str(file)
    else:
        found = read_config("env", name, EnvFile)
        beside, source = Path(str(files("codec_bench") / "configs" / "env")), f"configs/env/{name}{SUFFIX}"
    lines = found.requirements
    if found.lock is not None:
        lock = beside / Path(found.lock).expanduser()
        try:
            lines, source = lock.read_text("utf-8").splitlines(), str(lock)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the lock '{lock}' of the environment '{name}' cannot be read: {error}") from error
    code = None if found.code is None else beside / Path(found.code).expanduser()
    return EnvSpec(name, pinned(lines, source), found.python, code, found.variables)


def pinned(lines: Iterable[str], source: str) -> tuple[str, ...]:
    """The requirements in a list of lines, without comments and with continued lines joined.

    Args:
        lines: the lines.
        source: the name of the file, for messages.

    Raises:
        UserError: a line is not pinned to one version, or includes another file; the message names the line.
    """
    kept, held = [], ""
    for line in [*lines, ""]:
        held += re.sub(r"(^|\s)#.*$", "", line).strip()
        if held.endswith("\\"):
            held = held[:-1].rstrip() + " "
            continue
        if held:
            if not (_PINNED.match(held) or _DIRECT.match(held) or held.split("=")[0].split()[0] in _OPTIONS):
                raise UserError(
                    f"'{source}' lists '{held}', which is not pinned to one version",
                    hint="expected NAME==VERSION on every line; 'uv pip compile NAMES.txt -o LOCK.txt' writes them",
                )
            kept.append(held)
        held = ""
    return tuple(kept)
