"""The key of a test: the system of each stimulus. Raters must not see it.

A key is JSON with the SHA-256 of its own content and of its page. A changed key is refused, because answers would count
for the wrong systems.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.store.files import read_json, write_json

SUFFIX = ".key.json"
FORMAT, VERSION = "codec-bench listening key", 1
REFERENCE = "(reference)"
SYSTEM_ROLE, REFERENCE_ROLE, ANCHOR_ROLE, UNKNOWN_ROLE = "system", "reference", "anchor", "unknown"


@dataclass(frozen=True, slots=True)
class Stimulus:
    """One stimulus.

    Args:
        role: `system`, `reference`, `anchor`, or `unknown` for X of an ABX trial.
        system: `(reference)` for the hidden reference, such as `(7k anchor)` for an anchor; of X, its system.
    """

    id: str
    role: str
    system: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial.

    Args:
        choices: the options.
        right: the numbers of the right ones; of a gold question or a trap the right answer on each scale, None for any.
        check: such as `headphones` or `gold`; empty for ratings.
        seconds: of its shortest sound, the least listening time; None without audio.
    """

    id: str
    item: str
    speaker: str | None
    stimuli: tuple[Stimulus, ...]
    training: bool = False
    repeat_of: str | None = None
    choices: tuple[str, ...] = ()
    right: tuple[int | None, ...] = ()
    check: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a listening test.

    Args:
        sheet: the id of the test, in its page and all answers.
        scale: lowest and highest answer.
        beside_reference: whether the reference is open.
        answers: whether it is about the answers or questions of a benchmark.
        page_sha256: of the page; empty for webMUSHRA, which has several files.
        screening: preregistered rules that exclude raters; None for those of the kind.
        loudness_lufs: target loudness; None if no level was changed.
    """

    sheet: str
    kind: str
    scale: tuple[int, int]
    beside_reference: bool
    answers: bool
    systems: tuple[str, ...]
    runs: tuple[str, ...]
    seed: int
    trials: tuple[Trial, ...]
    page_sha256: str = ""
    screening: tuple[str, ...] | None = None
    loudness_lufs: float | None = None

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The trials that count: without practice, repeats and checks of the rater."""
        return tuple(t for t in self.trials if not (t.training or t.check) and t.repeat_of is None)


def anchor_name(name: str) -> str:
    """Return an anchor's name as a system."""
    return f"({name} anchor)"


def sheet_id(content: Mapping[str, Any]) -> str:
    """Return the id of a test: 48 bits of its content's SHA-256 in hexadecimal."""
    return hashlib.sha256(_text(content)).hexdigest()[:12]


def write_key(key: Key, path: Path) -> None:
    """Write a key atomically."""
    content = {"format": FORMAT, "version": VERSION, **asdict(key)}
    write_json(path, {**content, "sha256": hashlib.sha256(_text(content)).hexdigest()})


def read_key(path: Path) -> Key:
    """Read a test's key, which tells its systems; raises UserError if it was changed."""
    label, hint = f"the key '{path}'", "listen export writes the key next to the page"
    held = read_json(path, hint=hint)
    if held.get("format") != FORMAT:
        raise UserError("not_a_key", path=path, hint=hint)
    if held.get("version") != VERSION:
        raise UserError("key_version", key=label, version=held.get("version"), expected=VERSION)
    if held.pop("sha256", None) != hashlib.sha256(_text(held)).hexdigest():
        raise UserError("key_changed", key=label, hint="the same listen export writes it again")
    try:
        values = {field.name: held[field.name] for field in fields(Key) if field.name in held}
        values.update({name: tuple(value) for name, value in values.items() if isinstance(value, list)})
        return Key(**{**values, "trials": tuple(map(_trial, held["trials"]))})
    except (KeyError, TypeError) as error:
        raise UserError("key_damaged", key=label, type=type(error).__name__, cause=error) from error


def find_key(run: Path, sheets: Sequence[str]) -> Path:
    """Find the key of one of the tests `sheets` below a run folder; raises UserError."""
    keys = sorted(run.rglob(f"*{SUFFIX}"))
    for path in keys:
        try:
            if read_key(path).sheet in sheets:
                return path
        except UserError:
            continue
    raise UserError(
        "no_key_in_run",
        run=run,
        sheets=sorted(sheets),
        hint="name the key with --key; listen export wrote it next to the page",
    )


def _trial(held: Mapping[str, Any]) -> Trial:
    stimuli = tuple(Stimulus(**one) for one in held["stimuli"])
    lists = {name: tuple(held[name]) for name in ("choices", "right")}
    return Trial(**{**held, **lists, "stimuli": stimuli})


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
