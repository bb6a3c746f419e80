"""A static site over many runs: the function behind `codec-bench site`.

Adds runs to a site, and makes its leaderboards, index and pages. All content is in `data/`, as scripts that call
`codecBench(NAME, JSON, HASH)`, because a browser reads no JSON from disk. `data/runs/KEY/` holds a run; leaderboards
and index come from these files, so the folders of earlier runs are not needed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.site.boards import boards_of, definitions_of, index_of
from codec_bench.apps.site.contradictions import Contradiction, assign_boards
from codec_bench.apps.site.contradictions import contradictions as find_contradictions
from codec_bench.apps.site.folder import SOUNDS, SiteFolder
from codec_bench.apps.site.records import content_of, describe_run, is_shard, key_of, write_run
from codec_bench.messages.errors import UserError
from codec_bench.report.page.sound import is_sound
from codec_bench.store.files import read_json, write_json
from codec_bench.store.record import Run

_PathLike = str | os.PathLike[str]
_SOUND = re.compile(rf"{SOUNDS}/[0-9a-f]{{2}}/[0-9a-f]{{24}}(\.[a-z0-9]{{1,5}})?")
_DATA = re.compile(r"samples|(values|texts)-[0-9]+")
_BOARD = re.compile(r"[0-9a-f]{10}")
_FOR_PEOPLE = ("run.json", "summary.json")
_SCORES = "scores.parquet"
_AGAIN = "make that site again from its runs"
_NEEDED = "content name board date state counts metrics systems versions benchmark asked chunk heard notes".split()


def site(
    runs: Iterable[_PathLike] = (),
    *,
    out: _PathLike,
    audio_mb: float = 25.0,
    title: str | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Site:
    """Make a static site over runs, or add runs to an existing one.

    Runs in the site stay as they are, unless their record has changed. Runs of another site are copied from its files,
    without the run folders. Runs of shards are excluded.

    Args:
        runs: run folders, folders that hold run folders at any depth, and folders of other sites.
        out: the folder of the site; new, empty, or a site.
        audio_mb: megabytes of audio to copy from each run; 0 copies none.
        title: of the site; None keeps the present one.
        notify: receives sentences on progress.

    Returns:
        Added, replaced and unchanged runs, and contradictions.

    Raises:
        UserError: a folder holds neither a run nor a site, a record is damaged, or `out` holds something else.

    Examples:
        >>> from codec_bench import site
        >>> made = site(["runs/small"], out="site", audio_mb=0)  # the run of evaluate's example
        >>> len(made.added) + len(made.unchanged), (made.folder / "index.html").is_file()
        (1, True)
    """

    if audio_mb < 0:
        raise UserError("audio_mb_below_zero", value=audio_mb, hint="0 copies no sound")
    folders, sites = _split_folders(runs)
    site_folder = SiteFolder(out, new=bool(folders or sites))
    update = add_runs(site_folder, folders, audio_mb)
    if update.shards:
        one = len(update.shards) == 1
        notify(
            f"{len(update.shards)} {'run' if one else 'runs'} of {'a shard is' if one else 'shards are'} excluded; "
            f"codec-bench merge makes one run of all shards"
        )
    counts: list[list[str]] = [list(update.added), list(update.replaced), list(update.unchanged)]
    for other in sites:
        for names, more in zip(counts, copy_runs(site_folder, other)):
            names += more
    return finish(site_folder, SiteUpdate(*map(tuple, counts)), _build_leaderboards(site_folder, notify), title)


def contradictions(runs: Iterable[_PathLike]) -> list[Contradiction]:
    """Find comparable runs with values outside each other's intervals.

    Args:
        runs: as for `site`. Nothing is written.

    Raises:
        UserError: a folder holds neither a run nor a site, or there is none.
    """
    from codec_bench.apps.site.folder import age_key
    from codec_bench.report.open_run import open_run

    folders, sites = _split_folders(runs)
    entries: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        with closing(open_run(folder)) as run:
            if not is_shard(run):
                entry = describe_run(run)
                entries[entry["key"]] = entry
    for other in sites:
        for entry in other.entries():
            entries.setdefault(entry["key"], entry)
    if not entries:
        raise UserError("no_run_to_check", hint="name run folders, or the folder of a site")
    return find_contradictions(assign_boards(sorted(entries.values(), key=age_key)))


def _split_folders(runs: Iterable[_PathLike]) -> tuple[list[Path], list[SiteFolder]]:
    """Find the run folders in paths, and the sites among them."""
    from codec_bench.apps.site.folder import is_site
    from codec_bench.store.folders import run_folders

    folders: dict[Path, None] = {}
    sites = []
    for path in map(Path, runs):
        if is_site(path):
            sites.append(SiteFolder(path, new=False))
        else:
            folders.update(dict.fromkeys(run_folders(path)))
    return list(folders), sites


def _build_leaderboards(site_folder: SiteFolder, notify: Callable[[str], None]) -> dict[str, Mapping[str, Any]]:
    """Build the published leaderboards that have runs of the site, by name.

    A table of codecs is added if a run has bitrates. `notify` receives a sentence on run folders that are missing.
    """
    from codec_bench.apps.leaderboards.api import board_names, definition_of, leaderboard
    from codec_bench.apps.leaderboards.codecs import codec_board
    from codec_bench.apps.site.published import published_board, published_codecs

    by_board: dict[str, Mapping[str, Any]] = {}
    entries = site_folder.entries()
    if any("bitrate" in entry["metrics"] for entry in entries):
        by_board["codecs"] = published_codecs(codec_board())
    benchmarks = {entry["key"]: entry["board"]["benchmark"] for entry in entries if entry["board"]["benchmark"]}
    if not benchmarks:
        return by_board
    here = {key: folder for key, folder in site_folder.folders().items() if key in benchmarks}
    if lacking := len(benchmarks) - len(here):
        runs = "1 run of a benchmark is" if lacking == 1 else f"{lacking} runs of benchmarks are"
        notify(f"{runs} not on this machine, and so on no published leaderboard of the site")
    keys = {folder: key for key, folder in here.items()}
    for name in board_names():
        definition, _ = definition_of(name)
        held = {variant.of(column)[0] for variant in definition.board_variants for column in definition.columns}
        folders = [folder for key, folder in here.items() if benchmarks[key] in held]
        if folders:
            ranked = definition.averages and definition.one != "sample"
            board = leaderboard(name, folders, robustness=ranked, correlations=len(definition.columns) > 1)
            if any(not row.published for row in board.rows):
                by_board[name] = published_board(board, keys)
    return by_board


@dataclass(frozen=True, slots=True)
class Site:
    """A written site: names of added, replaced and unchanged runs, contradictions."""

    folder: Path
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, slots=True)
class SiteUpdate:
    """Names of added, replaced and unchanged runs; `shards` were excluded."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()


def add_runs(site: SiteFolder, folders: Sequence[str | os.PathLike[str]], audio_mb: float) -> SiteUpdate:
    """Write the files of new and changed runs; runs of one shard are excluded.

    Args:
        audio_mb: megabytes of audio to copy from each run.

    Raises:
        UserError: a folder holds no run, or its record is damaged.
    """
    added: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "shards": []}
    for folder in folders:
        run = Run(folder)
        try:
            run.check()
            if is_shard(run):
                added["shards"].append(run.folder.name)
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
            site.record_folder(key, run.folder)
        finally:
            run.close()
    return SiteUpdate(**{label: tuple(names) for label, names in added.items()})


def finish(site: SiteFolder, update: SiteUpdate, published: Mapping[str, Mapping[str, Any]], title: str | None) -> Site:
    """Write a site's leaderboards, index and pages from the runs in it.

    Args:
        update: the runs that `add_runs` and `copy_runs` wrote, for the result.
        published: the published leaderboards by name, as `published.py` writes them.
        title: of the site; None keeps the present one.
    """
    entries = assign_boards(site.entries())
    conflicts = find_contradictions(entries)
    boards = boards_of(entries, conflicts, site)
    site.write_boards(boards)
    site.write_published(published)
    for name, payload in definitions_of(entries).items():
        site.write_data(name, payload)
    site.write_data("checks", [one.as_row() for one in conflicts])
    site.write_data("index", index_of(entries, boards, published, conflicts, site.title(title)))
    site.write_pages()
    site.drop_sounds()
    return Site(site.path, update.added, update.replaced, update.unchanged, tuple(conflicts))


def copy_runs(site: SiteFolder, other: SiteFolder) -> tuple[list[str], list[str], list[str]]:
    """Copy the runs of site `other` that are missing in `site`, or newer.

    Returns:
        The names of the added, replaced and unchanged runs.

    Raises:
        UserError: both are the same folder, or a file of the other site is malformed.
    """
    if site.path.resolve() == other.path.resolve():
        raise UserError("site_into_itself", path=site.path, hint="name the folder of another site")
    added: list[str] = []
    replaced: list[str] = []
    unchanged: list[str] = []
    for key in other.keys():
        theirs, ours = _validate_entry(other, key), site.entry(key)
        if ours is not None and (
            ours["content"] == theirs["content"] or (ours["date"] or "") >= (theirs["date"] or "")
        ):
            unchanged.append(theirs["name"])
            continue
        site.remove(key)
        _copy(site, other, key, theirs)
        (added if ours is None else replaced).append(theirs["name"])
    return added, replaced, unchanged


def _validate_entry(other: SiteFolder, key: str) -> dict[str, Any]:
    """Return the description of a run of another site; raises UserError if malformed.

    Args:
        key: of the run.
    """
    entry = other.entry(key)
    lacking = [name for name in _NEEDED if entry is None or name not in entry]
    if entry is None or lacking:
        raise UserError("site_run_lacks", run=key, site=other.path, files=", ".join(lacking), hint=_AGAIN)
    try:
        (put,) = assign_boards([entry])
        board = boards_of([put], [])
        index_of([put], board, {}, find_contradictions(assign_boards([entry, entry])), "")
        is_complete = all(_BOARD.fullmatch(name) for name in board) and entry["chunk"] > 0
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        is_complete = False
    if not is_complete:
        raise UserError("site_facts_changed", site=other.path, run=key, hint=_AGAIN)
    return entry


def _copy(site: SiteFolder, other: SiteFolder, key: str, entry: dict[str, Any]) -> None:
    """Copy the files of one run from another site, and check that none is missing."""
    source, target = other.run_folder(key), site.run_folder(key)
    target.mkdir(parents=True, exist_ok=True)
    files = sorted(path.stem for path in source.glob("*.js") if _DATA.fullmatch(path.stem))
    chunks = -(-entry["board"]["samples"] // entry["chunk"])
    named = ("samples", *(f"values-{n}" for n in range(len(entry["metrics"]))), *(f"texts-{n}" for n in range(chunks)))
    lacking = set(named) - set(files)
    if lacking:
        raise UserError(
            "site_run_lacks", run=entry["name"], site=other.path, files=", ".join(sorted(lacking)), hint=_AGAIN
        )
    for name in files:
        payload = other.read_data(f"runs/{key}/{name}")
        if name.startswith("texts-"):
            try:
                _with_sound(payload, lambda sound: _sound(site, other, sound))
            except (AttributeError, KeyError, TypeError):
                raise UserError("site_file_changed", path=source / name, hint=_AGAIN) from None
        site.write_data(f"runs/{key}/{name}", payload)
    for name in _FOR_PEOPLE:
        if _is_own(source / name):
            write_json(target / name, read_json(source / name))
    if _is_parquet(source / _SCORES):
        shutil.copyfile(source / _SCORES, target / _SCORES)
    site.write_data(f"runs/{key}/run", entry)


def _with_sound(payload: Any, copied: Callable[[str], str | None]) -> None:
    """Copy the audio of a file of texts, and exclude other files."""
    for sample in payload["samples"]:
        saved = {
            system: name for system, sound in sample.pop("sound", {}).items() if (name := copied(sound)) is not None
        }
        if saved:
            sample["sound"] = saved


def _sound(site: SiteFolder, other: SiteFolder, name: Any) -> str | None:
    if not isinstance(name, str) or not _SOUND.fullmatch(name):
        return None
    path = Path(other.path, name)
    return site.keep_sound(path) if _is_own(path) and is_sound(path) else None


def _is_own(path: Path) -> bool:
    """Whether a file exists, and is no link to this machine's files."""
    return path.is_file() and not path.is_symlink()


def _is_parquet(path: Path) -> bool:
    if not _is_own(path):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"
