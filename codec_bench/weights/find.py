"""Where a checkpoint lies on this machine. Nothing here fetches anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from codec_bench.errors import WeightsError
from codec_bench.weights.catalogue import Checkpoint, checkpoint

WEIGHTS_VARIABLE = "CODEC_BENCH_WEIGHTS"
"""Folders with checkpoints, separated as in PATH: each may hold `<hub owner>/<hub name>/` or `<our name>/`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint on this machine.

    Args:
        folder: what holds its files. used: how to name it in a record.
    """

    folder: Path
    used: str
    files: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The first file: the checkpoint itself where there is one file that counts."""
        return self.folder / self.files[0]


def find(name: str, weights: str | None = None) -> Found:
    """Finds a checkpoint's files.

    Args:
        name: a name of the catalogue. weights: a file or a folder in place of the published one, or None.

    Raises:
        WeightsError: it is not on this machine; the hint is the command that fetches it.
    """
    entry = checkpoint(name)
    names = tuple(file.path for file in entry.files)
    if weights is not None:
        return _given(entry, names, Path(weights).expanduser())
    for folder, used in _places(entry):
        if all((folder / file).is_file() for file in names):
            return Found(folder, used, names)
    raise WeightsError(
        f"the weights '{name}' are not on this machine",
        hint=f"fetch them: codec-bench weights fetch {name}",
    )


def _given(entry: Checkpoint, names: tuple[str, ...], path: Path) -> Found:
    if path.is_file():
        return Found(path.parent, str(path), (path.name, *names[1:]))
    if not path.is_dir():
        raise WeightsError(f"there are no weights '{path}'", hint=f"give a file or a folder with {', '.join(names)}")
    missing = [file for file in names if not (path / file).is_file()]
    if missing:
        raise WeightsError(f"the weights folder '{path}' has no {', and no '.join(missing)}")
    return Found(path, str(path), names)


def _places(entry: Checkpoint) -> list[tuple[Path, str]]:
    """Folders where a checkpoint may lie, the caller's own first, and what a record calls it there."""
    places = []
    for root in filter(None, os.environ.get(WEIGHTS_VARIABLE, "").split(os.pathsep)):
        places += [
            (Path(root, part), f"{entry.name}@local") for part in (entry.hub, entry.modelscope, entry.name) if part
        ]
    if entry.hub is not None:
        from codec_bench.weights.pretrained import cached_folder

        folder = cached_folder(entry.hub, [[file.path] for file in entry.files], entry.revision)
        if folder is not None:
            places.append((Path(folder), f"{entry.hub}@{Path(folder).name}"))
    return places
