"""Check that a continued run reads the same sounds as its finished items.

The record holds a hash of the samples of every reference and every estimate from a file or URL, and one hash of all
their states. While the states match, nothing is read again. The state of a URL is its `ETag`; without one, the sounds
of finished items are read again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from codec_bench.audio.hash import content_hash
from codec_bench.config.file_content import file_state
from codec_bench.data.source import Source
from codec_bench.decoding.read import file_of
from codec_bench.decoding.remote import is_url, remote_state, shown
from codec_bench.engine.plan import Plan
from codec_bench.engine.run import SOUND_DIGITS
from codec_bench.engine.running import Progress
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio

_FILES = "files"
"""Entry of the record with the hash of the states of the files."""
_THREADS = 8


def check_sounds(writer: RunWriter, plan: Plan, source: Source, progress: Progress) -> None:
    """Raise RunMismatch if audio files of finished items changed; record file states."""
    references, estimates = writer.sounds()
    now = _states(plan, source, ask_servers=bool(references or estimates))
    if (references or estimates) and (now is None or now != writer.meta(_FILES)):
        recorded = {(None, number): sound for number, sound in references.items()} | estimates
        changed = [(recorded[key], id, path) for key, id, path in _paths(plan, source) if key in recorded]
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            try:
                for done, (sound, (before, id, path)) in enumerate(zip(pool.map(_sound, changed), changed)):
                    progress("checking the sounds of finished items", done, len(changed), 0, 0.0)
                    if sound != before:
                        raise _changed(writer, id, path, sound)
            finally:
                pool.shutdown(cancel_futures=True)
    writer.set_meta(**{_FILES: now})


def _changed(writer: RunWriter, id: str, path: str, sound: str | None) -> RunMismatch:
    hint = "use another --out, or the data of the run"
    if sound is None:
        return RunMismatch("sound_missing", path=shown(path), sample=id, hint=hint)
    return RunMismatch("sound_changed", path=shown(path), sample=id, folder=writer.folder, hint=hint)


def _paths(plan: Plan, source: Source) -> Iterator[tuple[tuple[int | None, int], str, str]]:
    """Files of references (system None) and estimates: numbers, id, path."""
    files = [(index, system) for index, system in enumerate(plan.systems) if system.kind == "files"]
    for number, sample in zip(source.numbers, source.samples, strict=True):
        paths = [(None, sample.audio), *((index, system.sample(number, sample).estimate) for index, system in files)]
        for system_number, path in paths:
            if path is not None:
                yield (system_number, number), sample.id, path


def _states(plan: Plan, source: Source, *, ask_servers: bool) -> str | None:
    """Hash the file states of all audio; None if the state of a file is unknown."""
    entries = [(key, file_of(path)) for key, _, path in _paths(plan, source)]
    files = list(dict.fromkeys(file for _, file in entries))
    urls = [file for file in files if is_url(file)]
    if urls and not ask_servers:
        return None
    known = {file: _state(file) for file in files if not is_url(file)}
    if None in known.values():
        return None
    with ThreadPoolExecutor(_THREADS) as pool:
        known |= dict(zip(urls, pool.map(_state, urls), strict=True))
    if None in known.values():
        return None
    digest = hashlib.blake2b(digest_size=20)
    for key, file in entries:
        digest.update(f"{key}:{known[file]}\n".encode())
    return digest.hexdigest()


def _state(file: str) -> str | None:
    try:
        return remote_state(file) if is_url(file) else file_state(file)
    except (OSError, ValueError, UserError):
        return "missing"


def _sound(entry: tuple[str, str, str]) -> str | None:
    try:
        audio = Audio.read(entry[2])
    except UserError:
        return None
    return content_hash(audio.samples, audio.sample_rate_hz)[:SOUND_DIGITS]
