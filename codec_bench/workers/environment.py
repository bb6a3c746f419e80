"""Reads and builds an isolated environment (`configs/env/NAME.yaml`, your YAML).

Every package has its exact version, so later builds are the same; `uv pip compile NAMES.txt -o LOCK.txt` writes such a
list. An environment is built in a temporary folder with a marker file, and renamed in a single step. An interrupted
build is never used; the next build removes it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.config import SUFFIX, fit, invalid_value, load_yaml, read_config
from codec_bench.config.paths import cache_folder
from codec_bench.messages.errors import MissingExtra, UserError

_NAME = r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\])?"
_HASHES = r"(\s+--hash=\S+)*"
_PINNED = re.compile(rf"^{_NAME}\s*===?\s*[^\s;,*=]+(\s*;[^#]*?)?{_HASHES}$")
# A direct reference fixes its content: an archive by its SHA-256, a repository by a commit.
_DIRECT = re.compile(rf"^{_NAME}\s*@\s*\S+(#sha256=[0-9a-f]{{64}}|@[0-9a-f]{{40}}(#\S+)?)(\s*;[^#]*?)?{_HASHES}$")
_OPTIONS = ("--index-url", "--extra-index-url", "--find-links", "--no-index", "--no-binary", "--only-binary")


class EnvFile(BaseModel):
    """The schema of an environment's YAML file.

    Args:
        python: its Python versions, such as `3.10` or `>=3.11,<3.13`; None is the version that runs codec-bench.
        requirements: every package as NAME==VERSION; an empty list for none.
        lock: the path of a file that lists the packages, relative to the YAML file; in place of `requirements`.
        code: the file of the worker code, relative to the YAML file; the config of a model may name another.
        variables: environment variables for the worker.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    summary: str
    python: str | None = Field(default=None, pattern=r"^[\d.,<>=!~* ]+$")
    requirements: list[str] | None = None
    lock: str | None = None
    code: str | None = None
    variables: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_list(self) -> EnvFile:
        if (self.requirements is None) == (self.lock is None):
            raise invalid_value("requirements_or_lock")
        return self


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """The description of an environment."""

    name: str
    requirements: tuple[str, ...]
    python: str | None = None
    code: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash (128 bits, hexadecimal) of Python versions and packages."""
        content = json.dumps([1, self.python, self.requirements])
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def read_env(name: str, folder: Path | None = None) -> EnvSpec:
    """Read the description of an environment.

    Args:
        name: a name in `configs/env`, or the path of a YAML file.
        folder: the base of a relative path; None is the working folder.

    Raises:
        UnknownName: there is no such environment; the message suggests the nearest name.
        UserError: the file does not follow the schema, its lock cannot be read, or a line is not pinned.
    """
    if name.endswith(SUFFIX):
        file = (folder or Path()) / Path(name).expanduser()
        document = load_yaml(file)
        if not isinstance(document, dict):
            raise UserError("mapping_expected", path=file, type=type(document).__name__)
        parsed, name = fit(document, EnvFile, source=str(file)), file.name.removesuffix(SUFFIX)
        parent, source = file.parent, str(file)
    else:
        parsed = read_config("env", name, EnvFile)
        parent, source = Path(str(files("codec_bench") / "configs" / "env")), f"configs/env/{name}{SUFFIX}"
    lines = parsed.requirements
    if parsed.lock is not None:
        lock = parent / Path(parsed.lock).expanduser()
        try:
            lines, source = lock.read_text("utf-8-sig").splitlines(), str(lock)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError("lock_unreadable", lock=lock, environment=name, cause=error) from error
    code = None if parsed.code is None else parent / Path(parsed.code).expanduser()
    return EnvSpec(name, pinned(lines or (), source), parsed.python, code, parsed.variables)


def pinned(lines: Iterable[str], source: str) -> tuple[str, ...]:
    """Parse requirement lines: no comments, continued lines joined.

    Args:
        source: the name of the file, for messages.
    """
    requirements, held = [], ""
    for line in [*lines, ""]:
        held += re.sub(r"(^|\s)#.*$", "", line).strip()
        if held.endswith("\\"):
            held = held[:-1].rstrip() + " "
            continue
        if held:
            if not (_PINNED.match(held) or _DIRECT.match(held) or held.split("=")[0].split()[0] in _OPTIONS):
                raise UserError(
                    "package_not_pinned",
                    lock=source,
                    line=held,
                    hint="expected NAME==VERSION on every line; 'uv pip compile NAMES.txt -o LOCK.txt' writes them",
                )
            requirements.append(held)
        held = ""
    return tuple(requirements)


MARKER = "codec-bench.json"
_TAIL_LINES = 12
# Variables of codec-bench's Python that must not reach another environment's.
_FOREIGN = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT")
_UV_INDEXES = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE",
    "UV_OFFLINE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment: its folder and its Python interpreter."""

    folder: Path
    python: Path


def foreign_variables() -> dict[str, str]:
    """Return this process's environment without variables that steer Python."""
    return {name: value for name, value in os.environ.items() if name not in _FOREIGN}


def find_environment(spec: EnvSpec) -> Environment | None:
    """Return the environment if it is complete, else None. Needs no uv, no network."""
    folder = _folder(spec)
    python = folder / "bin" / "python"
    try:
        digest = json.loads((folder / MARKER).read_text("utf-8"))["digest"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    # The link to a removed interpreter is broken.
    return Environment(folder, python) if digest == spec.digest and python.exists() else None


def make_environment(spec: EnvSpec, notify: Callable[[str], None] = lambda line: None) -> Environment:
    """Find or build the environment. One process builds, others wait.

    Args:
        notify: called with a sentence when something takes long.

    Raises:
        MissingExtra: uv is not installed.
        UserError: there is no suitable Python, the packages cannot be installed, or the list lacks a dependency.
    """
    from filelock import FileLock, Timeout

    existing = find_environment(spec)
    if existing is not None:
        return existing
    final = _folder(spec)
    uv = _find_uv()
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{final}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            notify(f"waiting for another process that is making the environment '{spec.name}'")
            lock.acquire()
        try:
            existing = find_environment(spec)
            if existing is not None:
                return existing
            notify(f"making the environment '{spec.name}' in {final}")
            _build_environment(spec, uv, final)
        finally:
            lock.release()
    except OSError as error:
        raise UserError("environment_not_writable", environment=spec.name, folder=final.parent, cause=error) from error
    return Environment(final, final / "bin" / "python")


def _folder(spec: EnvSpec) -> Path:
    # Without a Python version, the environment is for the running one, which its folder names.
    version = "" if spec.python else f"-py{sys.version_info.major}{sys.version_info.minor}"
    return cache_folder() / "env" / f"{spec.name}-{spec.digest[:16]}{version}"


def _build_environment(spec: EnvSpec, uv: str, final: Path) -> None:
    """Build an environment in a temporary folder, and rename it when complete."""
    for left in [*final.parent.glob(f"{final.name}.*.part"), final]:
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{final.name}.", suffix=".part", dir=final.parent))
    try:
        listed = scratch / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in spec.requirements), "utf-8")
        environment = {**foreign_variables(), "UV_PYTHON_DOWNLOADS": "never"}
        variables, options = pip_settings(environment)
        environment.update(variables)
        interpreter = _find_interpreter(spec, uv, environment)
        venv = scratch / "env"
        # Relocatable, because the folder is renamed at the end.
        _run_uv(spec, [uv, "venv", "--relocatable", "--python", interpreter, str(venv)], environment, final)
        python = str(venv / "bin" / "python")
        if spec.requirements:
            install = [uv, "pip", "install", "--python", python, "--no-deps", *options, "-r", str(listed)]
            _run_uv(spec, install, environment, final)
        _check(spec, uv, python, environment)
        marker = {"name": spec.name, "digest": spec.digest, "python": spec.python, "requirements": spec.requirements}
        (venv / MARKER).write_text(json.dumps(marker, indent=1), "utf-8")
        venv.rename(final)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _find_interpreter(spec: EnvSpec, uv: str, environment: Mapping[str, str]) -> str:
    """Find a Python of the requested version; raises UserError without one."""
    if spec.python is None:
        return sys.executable
    # The running Python is preferred if its version is suitable.
    path = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), environment.get("PATH", os.defpath)])
    preferring = {"UV_PYTHON_PREFERENCE": "system", **environment, "PATH": path}
    command = [uv, "python", "find", "--system", spec.python]
    done = subprocess.run(command, env=preferring, capture_output=True, text=True, cwd=cache_folder())
    if done.returncode:
        raise UserError(
            "environment_python",
            environment=spec.name,
            python=spec.python,
            hint=f"'uv python install' installs one; uv's message: {_tail(done.stderr, 1)}",
        )
    return done.stdout.strip()


def _run_uv(spec: EnvSpec, command: list[str], environment: Mapping[str, str], final: Path) -> None:
    """Run uv; raises UserError with its output if it fails."""
    # Not in the working folder, whose project settings do not apply to this environment.
    done = subprocess.run(
        command, env=environment, cwd=final.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise UserError(
            "environment_failed",
            environment=spec.name,
            status=done.returncode,
            output=_tail(done.stderr or done.stdout),
            hint="this needs a package index: run it once online, or name a local index in the settings of uv or pip",
        )


def _check(spec: EnvSpec, uv: str, python: str, environment: Mapping[str, str]) -> None:
    """Refuse a list that lacks a dependency. The list alone decides versions."""
    done = subprocess.run(
        [uv, "pip", "check", "--python", python], env=environment, cwd=cache_folder(), capture_output=True, text=True
    )
    lines = (done.stderr + done.stdout).splitlines()
    missing = [line.strip() for line in lines if line.rstrip().endswith("not installed")]
    if missing:
        raise UserError(
            "environment_incomplete",
            environment=spec.name,
            packages="; ".join(missing),
            hint="list every package; 'uv pip compile NAMES.txt -o LOCK.txt' writes the complete list",
        )


def _tail(text: str, lines: int = _TAIL_LINES) -> str:
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:]) or "no message"


def _find_uv() -> str:
    """Find the program uv; raises MissingExtra."""
    program: str | None
    try:
        from uv import find_uv_bin
    except ImportError:
        program = shutil.which("uv")
    else:
        try:
            program = str(find_uv_bin())
        except FileNotFoundError:
            program = shutil.which("uv")
    if program is None:
        raise MissingExtra("isolated_environment", "uv", "isolated")
    return program


def pip_settings(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Translate pip's index settings for uv, unless uv has its own.

    Args:
        environment: the variables that uv will see.

    Returns:
        (variables, command-line options) for uv.
    """
    if any(name in environment for name in _UV_INDEXES) or any(file.is_file() for file in _uv_files(environment)):
        return {}, []
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "config", "list"], env=dict(environment), capture_output=True, text=True
    )
    # Without pip, its environment variables still apply.
    stated = {f":env:.{k[4:].lower().replace('_', '-')}": v for k, v in environment.items() if k.startswith("PIP_")}
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        name, _, value = line.partition("=")
        try:
            stated[name] = str(ast.literal_eval(value))
        except (SyntaxError, ValueError):
            continue

    def setting(name: str) -> str | None:
        # pip's own order: a variable, then the command's section, then the global one.
        return next((stated[k] for k in (f":env:.{name}", f"install.{name}", f"global.{name}") if stated.get(k)), None)

    variables: dict[str, str] = {}
    for name, variable, separator in (
        ("index-url", "UV_DEFAULT_INDEX", None),
        ("extra-index-url", "UV_INDEX", " "),
        ("find-links", "UV_FIND_LINKS", ","),
        ("trusted-host", "UV_INSECURE_HOST", " "),
        ("cert", "SSL_CERT_FILE", None),
        ("proxy", "ALL_PROXY", None),
    ):
        stated_value = setting(name)
        if stated_value is not None and variable not in environment:
            words = stated_value if separator is None else separator.join(stated_value.split())
            variables[variable] = words
    if "UV_INDEX" in variables:
        variables.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")  # pip treats all indexes alike
    return variables, ["--no-index"] if (setting("no-index") or "").lower() in ("1", "true", "yes", "on") else []


def _uv_files(environment: Mapping[str, str]) -> list[Path]:
    home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    system = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [Path(folder) / "uv" / "uv.toml" for folder in (home, *system, "/etc")]
