"""Every checkpoint the project can use, as data: `configs/weights/<name>.yaml`.

Conventions
    Sizes and SHA-256 stand in an entry only where a source says them; a comment beside them names it.
    They are those of the entry's `revision`; another revision of the same repository may have others.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from codec_bench.config import config_names, read_config
from codec_bench.errors import UnknownName, UserError

_SHA256 = "^[0-9a-f]{64}$"
_HUB_FILE = re.compile(r"^hf://(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[\w.-]+)/(?P<path>.+)$")
_NON_COMMERCIAL = re.compile(r"(^|[^a-z])nc([^a-z]|$)|non-?commercial|research", re.IGNORECASE)


class Variant(BaseModel):
    """One file as it may be published.

    Args:
        path: relative to the repository or folder. url: where it is fetched from, for files outside a hub.
        size: bytes, or None where it is not known. sha256: of the content, or None where it is not known.
        mirrors: where others publish the same bytes, as URLs or `hf://OWNER/NAME@REVISION/PATH`; only with `sha256`,
            since nothing else shows that they are the same.
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
    def _mirrors_are_checked(self) -> Variant:
        if self.mirrors and self.sha256 is None:
            raise ValueError("mirrors need a sha256 to be checked against")
        if wrong := [url for url in self.mirrors if not (_HUB_FILE.match(url) or url.startswith("https://"))]:
            raise ValueError(f"the mirror '{wrong[0]}' is neither https:// nor hf://OWNER/NAME@REVISION/PATH")
        return self


class File(Variant):
    """One file of a checkpoint.

    Args:
        alternatives: the same content in another form, taken where `path` is not there, such as `pytorch_model.bin` in
            place of `model.safetensors`; in a YAML file under `or`, as paths or as mappings.
        optional: whether the checkpoint is complete without it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    alternatives: tuple[Variant, ...] = Field(default=(), alias="or")
    optional: bool = False

    @field_validator("alternatives", mode="before")
    @classmethod
    def _paths_are_variants(cls, given: object) -> object:
        return (
            [{"path": each} if isinstance(each, str) else each for each in given] if isinstance(given, list) else given
        )

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every form it may have, the preferred one first."""
        return (self, *self.alternatives)


class Checkpoint(BaseModel):
    """One checkpoint.

    Args:
        name: its name here, which is also the file's. summary: what it is, one sentence.
        hub: repository on the Hugging Face hub, or None. modelscope: repository on ModelScope, or None.
        revision: commit, tag or branch of the hub's repository. modelscope_revision: of ModelScope's.
        files: what must be there, the one that counts first.
        manual: for what cannot be fetched by a program: how a person gets it from `homepage`.
        licence: of the weights. homepage: where they were published. paper: who made them.
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
    manual: str | None = None
    licence: str
    homepage: str | None = None
    paper: str | None = None
    used_by: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """Bytes of the preferred form of every file, or None where one is not known."""
        sizes = [file.size for file in self.files if not file.optional]
        return sum(sizes) if all(sizes) else None

    @property
    def non_commercial(self) -> bool:
        """Whether the licence forbids commercial use."""
        return _NON_COMMERCIAL.search(self.licence) is not None

    def inside(self, folder: Path) -> tuple[str, ...] | None:
        """The paths of its files in a folder, in order and without optional ones that are not there; None if one is missing."""
        found = []
        for file in self.files:
            here = next((v.path for v in file.variants if (folder / v.path).is_file()), None)
            if here is not None:
                found.append(here)
            elif not file.optional:
                return None
        return tuple(found)

    def missing(self, folder: Path) -> list[str]:
        """What a folder lacks, one text a file with every name that it may have."""
        return [
            " or ".join(v.path for v in file.variants)
            for file in self.files
            if not file.optional and not any((folder / v.path).is_file() for v in file.variants)
        ]

    def variant(self, path: str) -> Variant | None:
        """What the catalogue says about one path, or None."""
        return next((v for file in self.files for v in file.variants if v.path == path), None)


def hub_file(url: str, endpoint: str) -> str:
    """A mirror's address as a URL: `hf://OWNER/NAME@REVISION/PATH` on the given hub, any other one as it is."""
    match = _HUB_FILE.match(url)
    return f"{endpoint}/{match['repo']}/resolve/{match['revision']}/{match['path']}" if match else url


def checkpoint_names() -> list[str]:
    """The names that `checkpoint` knows."""
    return config_names("weights")


@cache
def checkpoint(name: str) -> Checkpoint:
    """One checkpoint's entry.

    Raises:
        UnknownName: there is none of that name. UserError: its file does not fit.
    """
    if name not in checkpoint_names():
        raise UnknownName("checkpoint", name, checkpoint_names())
    entry = read_config("weights", name, Checkpoint)
    if entry.name != name:
        raise UserError(f"configs/weights/{name}.yaml is called '{entry.name}'; expected '{name}'")
    return entry
