"""Runs over the same audio: files with equal names and sizes may have changed.

A complete run has one hash over all references. Hashes of the same few ids in every run place incomplete runs too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.store.identity import hashed
from codec_bench.store.record import Run

Entry = Mapping[str, Any]
SOME = 200
"""Number of stored sample hashes; smaller runs are compared sample by sample."""


def sounds_of(run: Run) -> dict[str, Any]:
    """Hash a run's references: `all` or None if incomplete, and `some` by hashed id."""
    held = run.query("SELECT id, sound FROM samples ORDER BY id")
    known = {hashlib.blake2b(id.encode(), digest_size=6).hexdigest(): sound for id, sound in held if sound is not None}
    is_complete = bool(held) and len(known) == len(held) and run.meta.get("state") == "finished"
    return {
        "all": hashed([list(row) for row in held]) if is_complete else None,
        "some": dict(sorted(known.items())[:SOME]),
    }


def placed(entries: Sequence[Entry]) -> list[Entry]:
    """Assign each entry, oldest first, the `board` of its audio."""
    groups: dict[str, list[list[Entry]]] = {}
    for entry in entries:
        among = groups.setdefault(entry["board"]["key"], [])
        for group in among:
            if not any(_other(entry, one) for one in group):
                group.append(entry)
                break
        else:
            among.append([entry])
    boards = {
        one["key"]: _board(group, n) for among in groups.values() for n, group in enumerate(among) for one in group
    }
    return [{**entry, "board": {**entry["board"], **boards[entry["key"]]}} for entry in entries]


def _other(one: Entry, other: Entry) -> bool:
    (a, b) = (entry["board"]["sounds"] for entry in (one, other))
    if a["all"] is not None and b["all"] is not None:
        return bool(a["all"] != b["all"])
    return any(b["some"].get(id, sound) != sound for id, sound in a["some"].items())


def _board(group: Sequence[Entry], before: int) -> dict[str, str]:
    """Return key and title of the board after `before` others over the same files."""
    board, sound_hashes = group[0]["board"], [entry["board"]["sounds"]["all"] for entry in group]
    sounds = next((one for one in sound_hashes if one is not None), None) or (str(before) if before else None)
    suffix = "" if not before else " (other sounds)" if before == 1 else f" (other sounds, {before})"
    key = (
        board["key"]
        if sounds is None
        else hashlib.blake2b(f"{board['key']} {sounds}".encode(), digest_size=5).hexdigest()
    )
    return {"key": key, "title": f"{board['title']}{suffix}"}
