"""A scorer that stays loaded: items in, scores out, with batches across callers.

A score equals that of `codec-bench score` for the same file alone, at any load.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from codec_bench.apps.serving.items import (
    MOST_SECONDS,
    AudioInput,
    BadItem,
    Item,
    QueueFull,
    Result,
    as_item,
    audio_bytes,
    check_text,
)
from codec_bench.config.option import names
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Audio, Sample, Score

if TYPE_CHECKING:
    from codec_bench.apps.serving.recorder import Recorder

LOG = logging.getLogger(__name__)
QUEUE = 1_024
QUEUE_BYTES = 2 << 30
"""Limit of the audio files of all open items."""
MAX_WAIT_MS = 10.0
MOST_REFERENCES, REFERENCE_BYTES = 1_024, 2 << 30
"""Limits of all stored references."""
RESERVED_FILES = 256
"""Open files for workers, sockets and libraries."""


def _room_for_files() -> int:
    """Raise the process's limit of open files; return how many items may be open."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return QUEUE * QUEUE
    used = len(os.listdir("/proc/self/fd"))
    return max(1, (soft - used - RESERVED_FILES) // 2)


class Scorer:
    """Metrics that stay loaded.

    Args:
        metrics: names, as on the command line.
        device: `auto`, `cpu` or `cuda:0`.
        workers: processes for CPU work; None for one a core.
        options: arguments by feature name, such as `{"utmos": {"weights": "path"}}`.
        max_wait_ms: how long an item waits for others to fill a batch.
        queue: limit of open items.
        time_limit_s: seconds that a batch may take.
        record: a run folder for every scored item; None writes nothing.

    Raises:
        UserError: a metric is unknown, its weights are missing, or the folder cannot be written; the message names the
            command that gets the weights.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, Scorer
        >>> tone = Audio(np.sin(np.arange(16000) / 20), 16000)
        >>> with Scorer("stoi", device="cpu", workers=1) as scorer:
        ...     (result,) = scorer.score([{"audio": tone, "reference": tone, "id": "a"}])
        >>> result.id, round(result.scores["stoi"].value, 3)
        ('a', 1.0)
    """

    def __init__(
        self,
        metrics: str | Sequence[str],
        *,
        device: str = "auto",
        workers: int | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        max_wait_ms: float = MAX_WAIT_MS,
        queue: int = QUEUE,
        time_limit_s: float | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        from codec_bench.apps.serving.recorder import Recorder
        from codec_bench.engine.cache import FeatureMemory
        from codec_bench.engine.device import cpu_workers, has_gpu, resolve_devices
        from codec_bench.engine.live import Inbox, LiveEngine
        from codec_bench.engine.plan import build_plan
        from codec_bench.engine.pool import Pool
        from codec_bench.engine.run import EngineSettings
        from codec_bench.engine.running import ON_A_GPU
        from codec_bench.engine.systems import build_generated

        plan = build_plan([build_generated()], names(metrics), options or {}, gpu=has_gpu(device))
        devices = resolve_devices(device)
        settings = EngineSettings(time_limit_s=time_limit_s)
        if devices != ["cpu"]:
            settings = replace(settings, look_ahead=ON_A_GPU)
        self._log = os.memfd_create("workers")
        self._pool = Pool(list(devices), workers or cpu_workers(devices), self._log)
        self._closed = False
        self._fault: str | None = None
        self._references: dict[str, bytes] = {}
        self._lock, self._open, self._most = threading.Lock(), 0, min(queue, _room_for_files())
        self._bytes = 0
        self._numbers = itertools.count()
        self.finished, self.failed, self.audio_s, self.replaced = 0, 0, 0.0, 0
        self._recorder: Recorder | None = None
        try:
            self._engine = LiveEngine(
                plan, settings, self._pool, FeatureMemory(), "the log of the workers", on_death=self._note_death
            )
            self._engine.load()
            if record is not None:
                self._recorder = Recorder(record, self._engine.plan, options or {}, self._end)
        except BaseException:
            self._pool.close()
            os.close(self._log)
            raise
        self._inbox = Inbox(max_wait_ms / 1000)
        self._thread = threading.Thread(target=self._run, name="codec-bench scorer", daemon=True)
        self._thread.start()

    @property
    def protocols(self) -> dict[str, str]:
        """The protocol of each score, by metric."""
        return {name: metric.protocol for name, metric in self._engine.plan.metrics.items()}

    @property
    def higher_is_better(self) -> dict[str, bool | None]:
        """The direction of each metric."""
        return {name: metric.higher_is_better for name, metric in self._engine.plan.metrics.items()}

    @property
    def is_running(self) -> bool:
        """Whether the scorer is open, and its workers run or can be restarted."""
        return not self._closed and self._fault is None and self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """How many items are open."""
        return self._open

    @property
    def queue(self) -> int:
        """The limit of open items."""
        return self._most

    def submit(self, item: Item | Mapping[str, Any], then: Callable[[], bool] | None = None) -> Future[Result]:
        """Queue an item for scoring; the returned future gets its `Result`.

        Args:
            then: called before it is scored; True cancels the item, because nobody waits for it.

        Raises:
            BadItem: the item cannot be scored.
            QueueFull: too many items wait.
            UserError: the scorer has ended.
        """
        from codec_bench.engine.live import LiveSample, MemoryFile

        one = as_item(item)
        check_text(one)
        data = audio_bytes(one.audio, "audio")
        reference = self._reference(one)
        with self._lock:
            if self._fault is not None:
                raise UserError("scorer_ended", cause=self._fault)
            if self._closed:
                raise UserError("scorer_closed")
            if self._open >= self._most:
                raise QueueFull("queue_full", items=self._open, most=self._most, hint="try again in a second")
            size = len(data) + len(reference or b"")
            if self._open and self._bytes + size > QUEUE_BYTES:
                raise QueueFull("queue_audio_full", mib=self._bytes >> 20, hint="try again in a second")
            self._open += 1
            self._bytes += size
        files: list[MemoryFile] = []
        try:
            files.append(MemoryFile(data, "audio"))
            if reference is not None:
                files.append(MemoryFile(reference, "reference"))
        except OSError as error:
            self._release(files, size)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise QueueFull("too_many_files", hint="try again in a second") from error
            raise UserError("no_audio_memory", cause=error.strerror or error) from error
        future: Future[Result] = Future()
        start = monotonic()

        def done(record: ItemRecord) -> None:
            """Free the item's memory, record it, and set the future's result."""
            self._release(files, size)
            self._count(record)
            if self._recorder is not None:
                self._recorder.add(Sample(one.id, None, text=one.text, language=one.language), record)
            result = Result(one.id, record.scores, record.estimate_s, monotonic() - start, record.reason)
            with suppress(Exception):  # it was cancelled
                future.set_result(result)

        def fail(reason: str) -> None:
            self._release(files, size)
            with suppress(Exception):
                future.set_exception(UserError("scorer_ended", cause=reason))

        sample = Sample(
            str(next(self._numbers)), files[1].path if reference is not None else None,
            text=one.text, language=one.language, estimate=files[0].path,
        )  # fmt: skip

        def is_cancelled() -> bool:
            """Whether the item was cancelled; then its memory is freed."""
            if not (future.cancelled() or (then is not None and then())):
                return False
            self._release(files, size)
            future.cancel()
            return True

        names_of = {f.path: f.name for f in files}
        try:
            self._inbox.put(LiveSample(sample, names_of, MOST_SECONDS, done, fail, is_cancelled=is_cancelled))
        except RuntimeError as error:
            self._release(files, size)
            raise UserError("scorer_closed") from error
        return future

    def score(self, items: Iterable[Item | Mapping[str, Any]]) -> list[Result]:
        """Score items together, and wait for results in order, even if the queue is full.

        An item that cannot be scored has failed scores.
        """
        futures: list[Future[Result] | Result] = []
        for index, item in enumerate(items):
            while True:
                try:
                    futures.append(self.submit(item))
                except QueueFull:
                    sleep(0.01)
                    continue
                except BadItem as error:
                    futures.append(self._refused(item, error, index))
                break
        return [one.result() if isinstance(one, Future) else one for one in futures]

    async def score_async(self, item: Item | Mapping[str, Any]) -> Result:
        """Score an item; raises as `submit`."""
        future = await asyncio.get_running_loop().run_in_executor(None, self.submit, item)
        return await asyncio.wrap_future(future)

    def warm_up(self) -> None:
        """Score embedded speech, so that all workers load their models; counters restart."""
        from codec_bench.data import open_source

        sample = next(iter(open_source("embedded")))
        item = Item(str(sample.audio), str(sample.audio), text=sample.text, language=sample.language)
        recorder, self._recorder = self._recorder, None
        self.score([item] * 2 * len(self._pool.workers))
        self._recorder = recorder
        self.finished, self.failed, self.audio_s = 0, 0, 0.0

    def put_reference(self, id: str, audio: AudioInput) -> None:
        """Store a reference; its embeddings are computed once."""
        data = check_reference(id, audio)
        with self._lock:
            if not fits_references(self._references, id, data):
                raise too_many_references()
            self._references[id] = data

    def drop_reference(self, id: str) -> bool:
        """Delete a reference; returns whether there was one."""
        with self._lock:
            return self._references.pop(id, None) is not None

    def close(self, timeout_s: float = 60.0) -> None:
        """Finish waiting items for up to `timeout_s`, and end workers and recorder."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._inbox.close()
        self._thread.join(timeout_s)
        self._pool.close()
        if self._recorder is not None:
            self._recorder.close()
        os.close(self._log)

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def connect(url: str, *, token: str | None = None) -> Any:
        """Connect to a running service; returns a client with the methods of `Scorer`.

        Args:
            url: such as `http://127.0.0.1:8765`.
            token: access token, if the service requires one.
        """
        from codec_bench.apps.serving.client import RemoteScorer

        return RemoteScorer(url, token=token)

    def _run(self) -> None:
        try:
            self._engine.serve(self._inbox)
        except BaseException as error:  # whoever waits gets the error
            self._end(str(error))

    def _end(self, reason: str) -> None:
        self._fault = reason
        LOG.error("the scorer has ended: %s", reason)

    def _note_death(self, reason: str) -> None:
        self.replaced += 1
        LOG.warning("a worker ended (%s) and was replaced; its items are scored again", reason)

    def _reference(self, item: Item) -> bytes | None:
        """Return the bytes of an item's reference, also of a stored one; None without one.

        Raises:
            BadItem: it names two, or none is stored under its id.
        """
        if item.reference is not None and item.reference_id is not None:
            raise BadItem(Diagnostic("two_references"), code="bad_item")
        if item.reference is not None:
            return audio_bytes(item.reference, "reference")
        if item.reference_id is None:
            return None
        if (reference := self._references.get(item.reference_id)) is None:
            raise unknown_reference(item.reference_id)
        return reference

    def _release(self, files: Sequence[Any], size: int) -> None:
        for file in files:
            file.close()
        with self._lock:
            self._open -= 1
            self._bytes -= size

    def _count(self, record: ItemRecord) -> None:
        self.finished += 1
        self.failed += record.status != "ok"
        self.audio_s += record.estimate_s or 0.0

    def _refused(self, item: Any, error: BadItem, index: int) -> Result:
        id = item.id if isinstance(item, Item) else (item.get("id") or "") if isinstance(item, Mapping) else ""
        scores = {name: Score.failed(error.message, protocol) for name, protocol in self.protocols.items()}
        return Result(str(id) or str(index), scores, None, 0.0, error.message)


def check_reference(id: str, audio: AudioInput) -> bytes:
    """Return the bytes of a reference after decoding it; raises BadItem if it fails."""
    name = f"reference {id[:60]}"
    data = audio_bytes(audio, name)
    try:
        Audio.decode(data, name, MOST_SECONDS)
    except UserError as error:
        raise BadItem(error.message, code="unreadable") from error
    return data


def fits_references(others: Mapping[str, bytes], id: str, data: bytes) -> bool:
    """Whether a reference fits into the store; one with the same id is replaced."""
    sizes = [len(one) for name, one in others.items() if name != id]
    return len(sizes) < MOST_REFERENCES and sum(sizes) + len(data) <= REFERENCE_BYTES


def too_many_references() -> BadItem:
    """Build the error of a reference beyond the limit."""
    most = Diagnostic("too_many_references", most=MOST_REFERENCES, most_mib=REFERENCE_BYTES >> 20)
    return BadItem(most, code="too_many_references", hint="DELETE /v1/references/ID frees one")


def unknown_reference(id: str) -> BadItem:
    """Build the error of an item without its stored reference."""
    hint = "PUT /v1/references/ID, or put_reference, keeps one"
    return BadItem(Diagnostic("no_stored_reference", id=id[:60]), code="unknown_reference", hint=hint)
