"""The response cache: an answered request is not sent again.

A key hashes the model's identity and the request with the content of its audio, so no entry becomes invalid. Only
answers are stored, not failures or refusals. Spoken answers are FLAC where that is lossless, else float32. An unchanged
file is not decoded again for its key. The cache is one SQLite file of limited size per user, with eviction of the least
recently used. If it cannot be used (space, permission, corruption), the run continues without it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from codec_bench.audio.clip import Clip, clip_digest
from codec_bench.config.bounded_cache import BoundedCache
from codec_bench.config.file_content import file_state
from codec_bench.config.paths import cache_folder
from codec_bench.messages import as_remark, read
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Request, Response

FILE = "responses.sqlite"
MAX_BYTES = 8 << 30
_SUM_DIGITS = 8
_FIELDS = ("text", "usage", "finish", "cut_s", "notes", "sound_s", "reasoning")
_SOUNDS = 10_000  # the most digests of files in memory
_MOST_VARIABLES = 500  # in one SQLite statement; old versions of SQLite allow 999


@dataclass(frozen=True, slots=True)
class StoredModel:
    """Usage of one model: its answers, their bytes, and the time of last use."""

    model: str
    answers: int
    size_bytes: int
    used: float


class ResponseCache(BoundedCache):
    """Answers by key.

    Args:
        path: the SQLite file; None for a cache that stores nothing.

    Attributes:
        hits, misses: how many keys were found and not found. trouble: why the cache is not used, or None.
    """

    content = "response"
    tables = (
        "CREATE TABLE IF NOT EXISTS responses "
        "(key TEXT PRIMARY KEY, head TEXT NOT NULL, audio BLOB, used REAL NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS sounds (file TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS models (key TEXT PRIMARY KEY, model TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS aliases (key TEXT PRIMARY KEY, of TEXT NOT NULL) WITHOUT ROWID;"
    )
    table = "responses"
    length = "LENGTH(CAST(head AS BLOB)) + COALESCE(LENGTH(audio), 0)"
    synchronous = "NORMAL"

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        self._sounds: dict[str, str] = {}
        self._new_sounds: dict[str, str] = {}
        self._new_models: dict[str, str] = {}
        self._new_aliases: dict[str, str] = {}
        super().__init__(path, max_bytes)

    @classmethod
    def of_user(cls) -> ResponseCache:
        """Return the cache in the cache folder of this user."""
        return cls(cache_folder() / FILE)

    def look_up(
        self, identity: Mapping[str, Any], requests: Sequence[Request]
    ) -> list[tuple[str | None, Response | None]]:
        """Return for each request its key and its stored answer or None.

        A request with unreadable audio has no key; the model reports the error.

        Raises:
            UserError: the identity holds a value that is not a JSON value.
        """
        with self._lock:
            if self._db is None:
                return [(None, None)] * len(requests)
            keys: list[str | None] = []
            model = _text(identity, clip_digest)
            for request in requests:
                try:
                    keys.append(_request_key(model, request, self._digest))
                except (UserError, OSError):
                    keys.append(None)
            responses = self.get_many([key for key in keys if key is not None])
            return [(key, responses.get(key) if key is not None else None) for key in keys]

    def key_of(self, identity: Mapping[str, Any], request: Request) -> str | None:
        """Return the key of one request; None if its audio cannot be read."""
        with self._lock:
            try:
                return _request_key(_text(identity, clip_digest), request, self._digest)
            except (UserError, OSError):
                return None

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the answers of keys or of their aliases; keys without one are omitted."""
        with self._lock:
            rows = self._rows(keys)
            other = self._aliases([key for key in keys if key not in rows])
            there = self._rows(list(other.values()))
            rows |= {alias: there[of] for alias, of in other.items() if of in there}
            responses = {key: answer for key, row in rows.items() if (answer := _unpack_row(*row)) is not None}
            self.hits += len(responses)
            self.misses += len(set(keys)) - len(responses)
            self._used |= {other.get(key, key) for key in responses}
            return responses

    def _rows(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return (JSON, audio) by key, from the database and from unwritten entries."""
        new = {key: self._new[key] for key in keys if key in self._new}
        query = "SELECT key, head, audio FROM responses WHERE key IN ({})"
        stored = self._select(query, [key for key in keys if key not in new])
        return new | {key: (head, audio) for key, head, audio in stored}

    def _aliases(self, keys: Sequence[str]) -> dict[str, str]:
        new = {key: self._new_aliases[key] for key in keys if key in self._new_aliases}
        return (
            dict(self._select("SELECT key, of FROM aliases WHERE key IN ({})", [k for k in keys if k not in new])) | new
        )

    def _select(self, query: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        """Run a query, with `{}` for its keys, in chunks that SQLite allows; return rows."""
        unique, rows = sorted(set(keys)), []
        for start in range(0, len(unique), _MOST_VARIABLES):
            if self._db is None:
                break
            chunk = unique[start : start + _MOST_VARIABLES]
            try:
                rows += self._db.execute(query.format(",".join("?" * len(chunk))), chunk).fetchall()
            except sqlite3.Error as error:
                self._give_up(error)
        return rows

    def put(self, key: str, response: Response, model: str, alias: str | None = None) -> None:
        """Store an ok response; the next `flush` writes it to the disk.

        Args:
            alias: a further key for lookups, used if the key has no answer.
        """
        with self._lock:
            if self._db is not None and response.status == "ok":
                self._new_models[key] = model
                if alias is not None:
                    self._new_aliases[alias] = key
                self._keep(key, pack(response))

    def list_models(self) -> list[StoredModel]:
        """Return the usage of each model, by name."""
        with self._lock:
            self.flush()
            if self._db is None:
                return []
            query = (
                f"SELECT m.model, COUNT(*), TOTAL({self.length}), MAX(r.used) FROM responses r "
                "JOIN models m ON m.key = r.key GROUP BY 1 ORDER BY 1"
            )
            return [StoredModel(model, count, int(size), used) for model, count, size, used in self._db.execute(query)]

    def evict(self, model: str | None = None) -> int:
        """Delete the answers of a model, or of all; return how many."""
        with self._lock:
            self.flush()
            if self._db is None:
                return 0
            where = "" if model is None else "WHERE key IN (SELECT key FROM models WHERE model = ?)"
            arguments = () if model is None else (model,)
            count = self._db.execute(f"DELETE FROM responses {where}", arguments).rowcount
            _drop_orphans(self._db)
            self._db.execute("PRAGMA incremental_vacuum")
            return int(count)

    def _write(self, db: sqlite3.Connection, now: float) -> None:
        """Write all new entries to the open database, with the time `now`."""
        db.executemany(
            "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)",
            [(key, head, audio, now) for key, (head, audio) in self._new.items()],
        )
        db.executemany("INSERT OR REPLACE INTO sounds VALUES (?, ?)", self._new_sounds.items())
        self._new_sounds.clear()
        for table, new in (("models", self._new_models), ("aliases", self._new_aliases)):
            db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", new.items())
            new.clear()

    def _digest(self, clip: Clip) -> str:
        """Return a digest of the audio; of an unchanged file it is cached."""
        if not isinstance(clip.source, str) or not os.path.isfile(clip.source):
            return clip_digest(clip)
        file = file_state(clip.source)
        digest = None if file is None else self._sounds.get(file) or self._stored_digest(file)
        if digest is None:
            digest = clip_digest(clip)
            if file is None or file != file_state(clip.source):
                return digest
            self._new_sounds[file] = digest
        if len(self._sounds) >= _SOUNDS:
            self._sounds.clear()
        if file is not None:
            self._sounds[file] = digest
        return digest

    def _stored_digest(self, file: str) -> str | None:
        rows = self._select("SELECT digest FROM sounds WHERE file IN ({})", [file])
        return rows[0][0] if rows else None

    def _shrink(self, db: sqlite3.Connection, excess: int) -> None:
        db.execute("DELETE FROM sounds")  # the digests of files can be computed again
        super()._shrink(db, excess)
        _drop_orphans(db)


def _drop_orphans(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM models WHERE key NOT IN (SELECT key FROM responses)")
    db.execute("DELETE FROM aliases WHERE of NOT IN (SELECT key FROM responses)")


def _request_key(model: str, request: Request, digest: Callable[[Clip], str]) -> str:
    """Hash a model's identity and a request with its audio."""
    content = {
        "messages": [[message.role, message.content] for message in request.messages],
        "fields": request.fields,
        "wants": request.wants,
        "parameters": request.parameters,
        **({"windows": asdict(request.windows)} if request.windows is not None else {}),
    }
    text = f"{model}\n{_text(content, digest)}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _text(value: Any, digest: Callable[[Clip], str]) -> str:
    """Return canonical JSON, with digests in place of audio."""

    def special(component: Any) -> Any:
        if isinstance(component, Clip):
            return {"\0sound": digest(component)}
        if isinstance(component, Mapping):
            return dict(component)
        raise TypeError(f"{type(component).__name__} is not a JSON value")

    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=special)
    except (TypeError, ValueError) as error:
        raise UserError("identity_not_json", cause=error) from None


def pack(response: Response) -> tuple[str, bytes | None]:
    """Serialise a response: a checksum with JSON, and the encoded audio or None."""
    head = {name: getattr(response, name) for name in _FIELDS}
    head |= {"usage": dict(response.usage), "notes": [as_remark(note).as_dict() for note in response.notes]}
    audio = None
    if response.audio is not None:
        head["rate_hz"], head["channels"] = response.audio.sample_rate_hz, response.audio.channels
        head["coding"], audio = _pack_sound(response.audio)
    text = json.dumps(head)
    return f"{_checksum(text, audio)}{text}", audio


def unpack(head: str, audio: bytes | None) -> Response:
    """Return the response that `pack` serialised.

    Raises:
        ValueError: the entry is damaged.
    """
    checksum, text = head[:_SUM_DIGITS], head[_SUM_DIGITS:]
    if checksum != _checksum(text, audio):
        raise ValueError("an entry of the cache is damaged")
    fields = json.loads(text)
    values: dict[str, Any] = {name: fields.get(name) for name in _FIELDS}
    values |= {"notes": tuple(map(read, fields["notes"])), "audio": audio and _unpack_sound(fields, audio)}
    return Response(**values, cached=True, attempts=0)


def _checksum(text: str, audio: bytes | None) -> str:
    return f"{crc32(audio or b'', crc32(text.encode())):0{_SUM_DIGITS}x}"


def _unpack_row(head: Any, audio: Any) -> Response | None:
    try:
        return unpack(head, audio)
    except Exception:  # a damaged row may hold anything; the model then answers again
        return None


def _pack_sound(audio: Audio) -> tuple[str, bytes]:
    """Encode audio losslessly; return the name of the encoding and the bytes.

    It is `flac` for samples that are exact in 16 or 24 bits, else `float32`.
    """
    import soundfile

    samples = audio.samples.astype(np.float64)
    for bits in (16, 24):
        scaled = samples * 2 ** (bits - 1)
        fits = -(2 ** (bits - 1)) <= scaled.min(initial=0) and scaled.max(initial=0) < 2 ** (bits - 1)
        exact = fits and np.array_equal(scaled, np.round(scaled))
        if exact and scaled.size and audio.channels <= 8 and audio.sample_rate_hz <= 655_350:
            file = io.BytesIO()
            # soundfile takes samples of 24 bits as left-aligned samples of 32 bits.
            values = scaled.astype(np.int16) if bits == 16 else (scaled * 256).astype(np.int32)
            soundfile.write(file, values.T, audio.sample_rate_hz, format="FLAC", subtype=f"PCM_{bits}")
            return "flac", file.getvalue()
    return "float32", audio.samples.astype("<f4").tobytes()


def _unpack_sound(head: Mapping[str, Any], data: bytes) -> Audio:
    """Decode the audio of `_pack_sound`, with its facts in the response's JSON `head`."""
    import soundfile

    if head["coding"] == "float32":
        return Audio(np.frombuffer(data, "<f4").reshape(head["channels"], -1), head["rate_hz"])
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    return Audio(samples.T, rate)
