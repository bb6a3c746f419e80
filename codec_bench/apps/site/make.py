"""Adds runs to a site, and makes its leaderboards, index and pages.

All content is in `data/`, as scripts that call `codecBench(NAME, JSON, HASH)`, because a browser reads no JSON from
disk. Data files escape `<`, and scripts set text as text. `data/runs/KEY/` holds a run; leaderboards and index come
from these files, so the folders of earlier runs are not needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.site.boards import boards_of, definitions_of, index_of
from codec_bench.apps.site.contradictions import Contradiction, contradictions
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.apps.site.records import content_of, describe_run, is_part, key_of, write_run
from codec_bench.apps.site.same_sounds import placed
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class Site:
    """The result of a call: run names by what happened to them, and contradictions."""

    folder: Path
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """Run names by what happened to them; `parts` are excluded shards."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def add_runs(site: SiteFolder, folders: Sequence[str | os.PathLike[str]], audio_mb: float) -> Added:
    """Write the files of runs; unchanged runs stay as they are.

    Args:
        audio_mb: megabytes of audio to copy from each run.

    Raises:
        UserError: a folder holds no run, or its record is damaged.
    """
    added: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "parts": []}
    for folder in folders:
        run = Run(folder)
        try:
            run.check()
            if is_part(run):
                added["parts"].append(run.folder.name)
                continue
            key = key_of(run)
            before = site.entry(key)
            if before is not None and before["content"] == content_of(run):
                added["unchanged"].append(before["name"])
            else:
                entry = describe_run(run)
                site.remove(key)
                write_run(site, run, entry, audio_mb=audio_mb)
                added["added" if before is None else "replaced"].append(entry["name"])
            site.remember(key, run.folder)
        finally:
            run.close()
    return Added(**{label: tuple(names) for label, names in added.items()})


def finish(site: SiteFolder, done: Added, published: Mapping[str, Mapping[str, Any]], title: str | None) -> Site:
    """Make the leaderboards, the index and the pages of a site from its runs.

    Args:
        published: the published leaderboards by name, as `published.py` writes them.
        title: of the site; None keeps the present one.
    """
    entries = placed(site.entries())
    conflicts = contradictions(entries)
    boards = boards_of(entries, conflicts, site)
    site.write_boards(boards)
    site.write_published(published)
    for name, payload in definitions_of(entries).items():
        site.write_data(name, payload)
    site.write_data("checks", [one.as_row() for one in conflicts])
    site.write_data("index", index_of(entries, boards, published, conflicts, site.title(title)))
    site.write_pages()
    site.drop_sounds()
    return Site(site.path, done.added, done.replaced, done.unchanged, tuple(conflicts))
