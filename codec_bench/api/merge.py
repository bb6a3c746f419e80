"""Makes one run of the runs of all shards: the function behind `codec-bench merge`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from codec_bench.errors import Note, UserError
from codec_bench.report.results import write_results
from codec_bench.store.folders import run_folders
from codec_bench.store.integrity import DATABASE
from codec_bench.store.merge import Merged, merge_records
from codec_bench.store.record import Run


def merge(
    *,
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    partial: bool = False,
    page: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Run:
    """Merges the runs of shards into one run, row for row that of one machine.

    The statistics are computed anew from the scores of all parts. `merge` into a folder that holds some of the parts adds the
    further ones.

    Args:
        parts: run folders of shards (`evaluate(..., shard="3/8")`), or folders that hold run folders at any depth.
        out: the folder of the merged run.
        partial: whether shards may be missing or unfinished. The run is then marked as partial.
        page: whether `report.html` is written. tell: is told what is happening.

    Returns:
        The merged run, opened for reading.

    Raises:
        UserError: a part is missing, doubled, unfinished, damaged or of another run; each is named.
    """
    given = [parts] if isinstance(parts, (str, os.PathLike)) else list(parts)
    place = Path(out)
    found = [folder for one in given for folder in _folders_of(Path(one)) if folder.resolve() != place.resolve()]
    if not found:
        raise UserError("no part was named", hint="name the run folders of the shards")
    merged = merge_records(list(dict.fromkeys(found)), place, partial=partial, tell=tell)
    if not merged.complete:
        warnings.warn(_what_lacks(merged), Note, stacklevel=2)
    tell("writing the report")
    run = Run(merged.folder)
    write_results(run, page=page)
    return run


def _folders_of(folder: Path) -> list[Path]:
    return [folder] if (folder / DATABASE).is_file() else run_folders(folder)


def _what_lacks(merged: Merged) -> str:
    said = []
    if merged.missing:
        said.append(f"{len(merged.missing)} of {merged.of} shards are missing")
    if merged.unfinished:
        said.append(f"{len(merged.unfinished)} are not finished")
    return f"the merged run is partial: {' and '.join(said)}"
