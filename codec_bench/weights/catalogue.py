"""The catalogue of checkpoints: `configs/weights/<name>.yaml`.

An entry has sizes and SHA-256 only if a source publishes them, which a comment names. They belong to the entry's
`revision`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from codec_bench.config import config_names, read_config
from codec_bench.messages.errors import UnknownName, UserError

_SHA256 = "^[0-9a-f]{64}$"
_HUB_FILE = re.compile(r"^hf://(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[\w.-]+)/(?P<path>.+)$")
_NON_COMMERCIAL = re.compile(r"(^|[^a-z])nc([^a-z]|$)|non-?commercial|research", re.IGNORECASE)


class CheckpointVariant(BaseModel):
    """One form in which a file may be published.

    Args:
        path: relative to the repository or folder. url: its address, for files outside a hub.
        size: in bytes. sha256: of the content.
        mirrors: other addresses of the same bytes, as URLs or `hf://OWNER/NAME@REVISION/PATH`; they need a `sha256`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    url: str | None = None
    size: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern=_SHA256)
    mirrors: tuple[str, ...] = ()

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/") or "\\" in path:
            raise ValueError("expected a path inside the checkpoint's folder, with forward slashes")
        return path

    @model_validator(mode="after")
    def _mirrors_are_checked(self) -> CheckpointVariant:
        if self.mirrors and self.sha256 is None:
            raise ValueError("mirrors need a sha256 to be checked against")
        if wrong := [url for url in self.mirrors if not (_HUB_FILE.match(url) or url.startswith("https://"))]:
            raise ValueError(f"the mirror '{wrong[0]}' is neither https:// nor hf://OWNER/NAME@REVISION/PATH")
        return self


class File(CheckpointVariant):
    """One file of a checkpoint.

    Args:
        alternatives: the same content in other forms, such as `pytorch_model.bin` for `model.safetensors`, used if
            `path` is missing. In YAML they are under `or`, as paths or as mappings.
        optional: whether the checkpoint is complete without it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    alternatives: tuple[CheckpointVariant, ...] = Field(default=(), alias="or")
    optional: bool = False

    @field_validator("alternatives", mode="before")
    @classmethod
    def _paths_are_variants(cls, value: object) -> object:
        return (
            [{"path": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value
        )

    @property
    def variants(self) -> tuple[CheckpointVariant, ...]:
        """All forms of the file, the preferred one first."""
        return (self, *self.alternatives)


class Checkpoint(BaseModel):
    """One checkpoint.

    Args:
        name: its name in this project, which is also that of the YAML file. summary: one sentence.
        version: of the entry's format.
        hub: repository on the Hugging Face hub, or None. modelscope: repository on ModelScope, or None.
        revision: commit, tag or branch of the hub's repository. modelscope_revision: of ModelScope's.
        files: the files of the checkpoint, the most important first.
        about: approximate bytes, for display, where a file's size is unknown.
        manual: how a person gets the files from `homepage`, for checkpoints that a program cannot fetch.
        licence: of the weights. homepage: where they were published. paper: its authors' paper.
        used_by: the features and codecs that load it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int
    summary: str
    hub: str | None = None
    modelscope: str | None = None
    revision: str | None = None
    modelscope_revision: str | None = None
    files: tuple[File, ...] = Field(min_length=1)
    about: int | None = Field(default=None, gt=0)
    manual: str | None = None
    licence: str
    homepage: str | None = None
    paper: str | None = None
    used_by: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """Bytes of the preferred required files, or None if one is unknown."""
        sizes = [file.size or 0 for file in self.files if not file.optional]
        return sum(sizes) if all(sizes) else None

    @property
    def size_text(self) -> str:
        """The size for display."""
        if self.size is not None:
            return readable(self.size)
        return f"about {readable(self.about)}" if self.about else "of unknown size"

    @property
    def non_commercial(self) -> bool:
        """Whether the licence forbids commercial use."""
        return _NON_COMMERCIAL.search(self.licence) is not None

    def inside(self, folder: Path) -> tuple[str, ...] | None:
        """Return the files' paths in a folder, or None if a required one is missing."""
        folders = []
        for file in self.files:
            here = next((v.path for v in file.variants if (folder / v.path).is_file()), None)
            if here is not None:
                folders.append(here)
            elif not file.optional:
                return None
        return tuple(folders)

    def missing(self, folder: Path) -> list[str]:
        """Return the missing files of a folder, each with all its names."""
        return [
            " or ".join(v.path for v in file.variants)
            for file in self.files
            if not file.optional and not any((folder / v.path).is_file() for v in file.variants)
        ]

    def variant(self, path: str) -> CheckpointVariant | None:
        """Return the entry of one path, or None."""
        return next((v for file in self.files for v in file.variants if v.path == path), None)


def readable(size: int) -> str:
    """Format bytes for people, in powers of ten."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def hub_file(url: str, endpoint: str) -> str:
    """Return a mirror as a URL: `hf://OWNER/NAME@REVISION/PATH` on that hub."""
    match = _HUB_FILE.match(url)
    return f"{endpoint}/{match['repo']}/resolve/{match['revision']}/{match['path']}" if match else url


def checkpoint_names() -> list[str]:
    """Return the names of all checkpoints in the catalogue."""
    return config_names("weights")


@cache
def checkpoint(name: str) -> Checkpoint:
    """Load one checkpoint's entry."""
    try:
        entry = read_config("weights", name, Checkpoint)
    except UnknownName as error:
        raise UnknownName("checkpoint", name, checkpoint_names()) from error
    if entry.name != name:
        raise UserError("catalogue_name", name=name, entry=entry.name)
    return entry
