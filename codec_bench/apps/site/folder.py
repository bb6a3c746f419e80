"""The files of a site: their names, atomic writing, and reading."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UserError, first_of, on_disk
from codec_bench.report.page.markup import SHARED, as_json
from codec_bench.store.files import read_json, write_json, write_text

SCHEMA = 2
MARKER = "site.json"
SOUNDS = "audio"
_HEAD, _TAIL = "codecBench(", ");\n"
_KEY = re.compile(r"[0-9a-f]{12}")
_STYLES = ((SHARED, "style.css"), (SHARED, "tables.css"), (SHARED, "sample.css"), (__package__, "assets/site.css"))
_OWN_SCRIPTS = (
    *("load", "route", "numbers", "table", "paired", "clock", "overview", "board", "pareto", "explorer", "sample"),
    *("compare", "system", "definitions", "run", "published", "codecs", "checks", "main"),
)
_SCRIPTS = (
    *((SHARED, f"{name}.js") for name in ("elements", "words", "marks", "frames", "labels", "scales", "plane")),
    *((__package__, f"assets/{name}.js") for name in _OWN_SCRIPTS),
)


def age_key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the sort key of runs, oldest first: end to the second, then start."""
    return entry["date"] or "", entry["started"] or "", entry["key"]


class SiteFolder:
    """The folder of a site, new or existing.

    Args:
        new: whether it may be created, or must be a site already.

    Raises:
        UserError: the folder holds something else, or a site of another version, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, new: bool = True) -> None:
        self.path = Path(path)
        self._has_removed = False
        if self.path.exists() and not self.path.is_dir():
            raise UserError("site_is_file", path=self.path, hint="give another --out")
        if is_site(self.path):
            self._facts = read_json(self.path / MARKER)
            if self._facts.get("schema") != SCHEMA or not isinstance(self._facts.get("folders"), dict):
                raise UserError(
                    "site_schema",
                    path=self.path,
                    schema=self._facts.get("schema"),
                    expected=SCHEMA,
                    hint="give another --out, or update codec-bench",
                )
            return
        if not new:
            raise UserError(
                "not_a_site", path=self.path, marker=MARKER, hint="make one: codec-bench site RUN --out DIR"
            )
        if self.path.is_dir() and (inside := sorted(path.name for path in self.path.iterdir())):
            raise UserError(
                "folder_of_something_else",
                path=self.path,
                files=first_of(inside, 3),
                hint="give an empty folder, or the folder of a site",
            )
        self._facts = {"schema": SCHEMA, "title": None, "folders": {}}
        with on_disk("file_not_writable", path=self.path, hint="give another --out"):
            self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / MARKER, self._facts)

    def write_data(self, name: str, payload: Any) -> None:
        """Write `data/NAME.js` atomically, with a hash of its content."""
        # Lone surrogates of a transcript cannot be written, and would change the hash.
        held = f"{as_json(name)},{as_json(payload)}".encode("utf-8", "replace").decode("utf-8")
        self._write(Path("data", f"{name}.js"), f'{_HEAD}{held},"{_digest(held)}"{_TAIL}')

    def read_data(self, name: str) -> Any:
        """Read a data file without executing it; raises UserError."""
        file = self.path / "data" / f"{name}.js"
        try:
            text = file.read_text("utf-8")
            held, comma, digest = text.removeprefix(_HEAD).removesuffix(_TAIL).rpartition(",")
            if text != f'{_HEAD}{held}{comma}"{_digest(held)}"{_TAIL}' or digest != f'"{_digest(held)}"':
                raise ValueError("it does not have the hash that it was written with")
            named, payload = json.loads(f"[{held}]")
            if named != name:
                raise ValueError(f"it is the file of {named}")
            return payload
        except OSError as error:
            raise UserError("file_not_readable", path=file, cause=error.strerror or error) from error
        except (ValueError, RecursionError) as error:
            raise UserError(
                "site_file_unreadable",
                path=file,
                cause=str(error).splitlines()[0],
                hint="make the site again in a new folder",
            ) from error

    def _write(self, name: Path, text: str) -> None:
        target = self.path / name
        with on_disk("file_not_writable", path=target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, text)

    def run_folder(self, key: str) -> Path:
        """Return the folder with the files of the run with this key."""
        return self.path / "data" / "runs" / key

    def keys(self) -> list[str]:
        """Return the keys of all complete runs, as `records.key_of` builds them."""
        files = (self.path / "data" / "runs").glob("*/run.js")
        return sorted(path.parent.name for path in files if _KEY.fullmatch(path.parent.name))

    def entry(self, key: str) -> dict[str, Any] | None:
        """Return the description of a run; None if missing, UserError if it was changed."""
        if not (self.run_folder(key) / "run.js").is_file():
            return None
        value = self.read_data(f"runs/{key}/run")
        if not isinstance(value, dict) or value.get("key") != key or value.get("schema") != SCHEMA:
            raise UserError(
                "site_run_changed",
                path=self.run_folder(key) / "run.js",
                run=key,
                hint="make the site again in a new folder",
            )
        return value

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of all runs, the oldest first."""
        readable = [entry for key in self.keys() if (entry := self.entry(key)) is not None]
        return sorted(readable, key=age_key)

    def remove(self, key: str) -> None:
        """Remove the files of the run with this key."""
        if (folder := self.run_folder(key)).is_dir():
            self._has_removed = True
            (folder / "run.js").unlink(missing_ok=True)
            shutil.rmtree(folder)

    def record_folder(self, key: str, folder: Path) -> None:
        """Note a run's folder, relative to the site."""
        self._facts["folders"][key] = os.path.relpath(folder.resolve(), self.path.resolve())

    def folders(self) -> dict[str, Path]:
        """Return the run folders that exist on this machine, by key."""
        held = set(self.keys())
        by_key = {key: (self.path / str(path)).resolve() for key, path in self._facts["folders"].items() if key in held}
        return {key: path for key, path in by_key.items() if path.is_dir()}

    def keep_sound(self, path: Path) -> str:
        """Copy audio once, named by its content; returns its name."""
        with on_disk("not_copied", path=path, to=self.path):
            with path.open("rb") as file:
                named = hashlib.file_digest(file, "blake2b").hexdigest()[:24]
            ending = path.suffix.lower() if path.suffix.isascii() and path.suffix[1:].isalnum() else ""
            name = f"{SOUNDS}/{named[:2]}/{named}{ending}"
            target = self.path / name
            if not target.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                partial = target.with_name(f".{target.name}.{os.getpid()}")
                shutil.copyfile(path, partial)
                os.replace(partial, target)
        return name

    def drop_sounds(self) -> None:
        """Remove audio files that belong to no run, if a run was removed or replaced."""
        if not self._has_removed:
            return
        named = {sound for entry in self.entries() for sound in self._sounds(entry)}
        for path in (self.path / SOUNDS).glob("*/*"):
            if path.relative_to(self.path).as_posix() not in named:
                path.unlink(missing_ok=True)
        self._has_removed = False

    def _sounds(self, entry: Mapping[str, Any]) -> Iterator[str]:
        for chunk in range(-(-entry["board"]["samples"] // entry["chunk"])):
            for sample in self.read_data(f"runs/{entry['key']}/texts-{chunk}")["samples"]:
                yield from sample.get("sound", {}).values()

    def title(self, title: str | None) -> str:
        """Return the title of the site, after changing it to `title` unless that is None."""
        if title is not None:
            self._facts["title"] = title
        return str(self._facts.get("title") or "codec-bench")

    def write_boards(self, boards: Mapping[str, Any]) -> None:
        """Write the leaderboards of the runs, and remove others."""
        self._replace("boards", boards)

    def write_published(self, boards: Mapping[str, Any]) -> None:
        """Write the published leaderboards, and remove others."""
        self._replace("published", boards)

    def _replace(self, kind: str, payloads: Mapping[str, Any]) -> None:
        for old in (self.path / "data" / kind).glob("*.js"):
            if old.stem not in payloads:
                old.unlink(missing_ok=True)
        for name, payload in payloads.items():
            self.write_data(f"{kind}/{name}", payload)

    def write_pages(self) -> None:
        """Write the site's HTML, style, script and state."""
        text = lambda file: (files(file[0]) / file[1]).read_text("utf-8")  # noqa: E731
        script = "\n".join(map(text, _SCRIPTS))
        self._write(Path("assets", "site.css"), "\n".join(map(text, _STYLES)))
        self._write(Path("assets", "site.js"), f'"use strict";\n(() => {{\n{script}\n}})();\n')
        self._write(Path("index.html"), text((__package__, "assets/index.html")))
        write_json(self.path / MARKER, self._facts)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def is_site(path: Path) -> bool:
    """Whether a folder is a site."""
    return (path / MARKER).is_file()
