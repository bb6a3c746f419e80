"""Imports the runs of another site; data files are parsed, never executed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codec_bench.apps.site.boards import boards_of, index_of
from codec_bench.apps.site.contradictions import contradictions, placed
from codec_bench.apps.site.folder import SOUNDS, SiteFolder
from codec_bench.errors import UserError
from codec_bench.report.page.sound import is_sound
from codec_bench.store.files import read_json, write_json

_SOUND = re.compile(rf"{SOUNDS}/[0-9a-f]{{2}}/[0-9a-f]{{24}}(\.[a-z0-9]{{1,5}})?")
_DATA = re.compile(r"samples|(values|texts)-[0-9]+")
_BOARD = re.compile(r"[0-9a-f]{10}")
_FOR_PEOPLE = ("run.json", "summary.json")
_SCORES = "scores.parquet"
_AGAIN = "make that site again from its runs"
_NEEDED = (
    "content",
    "name",
    "board",
    "date",
    "state",
    "counts",
    "metrics",
    "systems",
    "versions",
    "benchmark",
    "asked",
    "chunk",
    "heard",
    "notes",
)


def take_over(site: SiteFolder, other: SiteFolder) -> tuple[list[str], list[str], list[str]]:
    """Copy the missing or newer runs of another site.

    Returns:
        The names of the added, replaced and unchanged runs.

    Raises:
        UserError: both are the same folder, or a file of the other site is malformed.
    """
    if site.path.resolve() == other.path.resolve():
        raise UserError(
            f"'{site.path}' is both the site and what is to be added to it", hint="name the folder of another site"
        )
    added: list[str] = []
    replaced: list[str] = []
    unchanged: list[str] = []
    for key in other.keys():
        theirs, ours = _checked(other, key), site.entry(key)
        if ours is not None and (
            ours["content"] == theirs["content"] or (ours["date"] or "") >= (theirs["date"] or "")
        ):
            unchanged.append(theirs["name"])
            continue
        site.remove(key)
        _copy(site, other, key, theirs)
        (added if ours is None else replaced).append(theirs["name"])
    return added, replaced, unchanged


def _checked(other: SiteFolder, key: str) -> dict[str, Any]:
    """Validate the entry of another site's run; raises UserError for a bad one."""
    entry = other.entry(key)
    lacking = [name for name in _NEEDED if entry is None or name not in entry]
    if entry is None or lacking:
        raise UserError(f"the run {key} of the site '{other.path}' lacks {', '.join(lacking)}", hint=_AGAIN)
    try:
        (put,) = placed([entry])
        board = boards_of([put], [])
        index_of([put], board, {}, contradictions(placed([entry, entry])), "")
        is_complete = all(_BOARD.fullmatch(name) for name in board) and entry["chunk"] > 0
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        is_complete = False
    if not is_complete:
        raise UserError(f"what the site '{other.path}' says of the run {key} is not as a site writes it", hint=_AGAIN)
    return entry


def _copy(site: SiteFolder, other: SiteFolder, key: str, entry: dict[str, Any]) -> None:
    source, target = other.run_folder(key), site.run_folder(key)
    target.mkdir(parents=True, exist_ok=True)
    files = sorted(path.stem for path in source.glob("*.js") if _DATA.fullmatch(path.stem))
    chunks = -(-entry["board"]["samples"] // entry["chunk"])
    named = ("samples", *(f"values-{n}" for n in range(len(entry["metrics"]))), *(f"texts-{n}" for n in range(chunks)))
    lacking = set(named) - set(files)
    if lacking:
        raise UserError(
            f"the run '{entry['name']}' of the site '{other.path}' lacks {', '.join(sorted(lacking))}", hint=_AGAIN
        )
    for name in files:
        payload = other.read_data(f"runs/{key}/{name}")
        if name.startswith("texts-"):
            try:
                _with_sound(payload, lambda sound: _sound(site, other, sound))
            except (AttributeError, KeyError, TypeError):
                raise UserError(f"'{source / name}.js' is not as a site writes it", hint=_AGAIN) from None
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
