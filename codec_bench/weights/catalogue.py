"""Every checkpoint the project can use, as data: `configs/weights/<name>.yaml`."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from codec_bench.config import config_names, read_config


class File(BaseModel):
    """One file of a checkpoint.

    Args:
        path: relative to the repository or folder. url: where it is fetched from, for files outside a hub.
        size: bytes, or None where it is not known. sha256: of the content, or None where it is not known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    url: str | None = None
    size: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")


class Checkpoint(BaseModel):
    """One checkpoint.

    Args:
        name: its name here. summary: what it is, one sentence.
        hub: repository on the Hugging Face hub, or None. modelscope: repository on ModelScope, or None.
        revision: commit, tag or branch of the repository. files: what must be there.
        licence: of the weights. homepage: where they were published. paper: who made them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int
    summary: str
    hub: str | None = None
    modelscope: str | None = None
    revision: str | None = None
    files: tuple[File, ...] = Field(min_length=1)
    licence: str
    homepage: str | None = None
    paper: str | None = None


def checkpoint_names() -> list[str]:
    """The names that `checkpoint` knows."""
    return config_names("weights")


@cache
def checkpoint(name: str) -> Checkpoint:
    """One checkpoint's entry.

    Raises:
        UnknownName: there is none of that name. UserError: its file does not fit.
    """
    return read_config("weights", name, Checkpoint)
