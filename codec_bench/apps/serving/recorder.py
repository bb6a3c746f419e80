"""The run of a scorer: a record of every scored item for `report` and `export`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any

from codec_bench.engine.evaluation import metric_facts
from codec_bench.engine.plan import Plan
from codec_bench.engine.running import describe_machine
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.metrics import code_of_metric
from codec_bench.store.files import write_json
from codec_bench.store.integrity import RUN_JSON
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample

NAME = "requests"
"""Of the data and of the audio in the record."""


class Recorder:
    """Writes items to a run folder in a thread; continues a record of equal metrics.

    Args:
        on_fault: called with a sentence if the record cannot be written any more.

    Raises:
        UserError: the folder cannot be written, or holds another run.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        plan: Plan,
        options: Mapping[str, Mapping[str, Any]],
        on_fault: Callable[[str], None],
    ) -> None:
        self._on_fault, self._is_whole = on_fault, True
        self._lock, self._waiting = threading.Lock(), list[tuple[Sample, ItemRecord]]()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")  # SQLite: one thread for the connection
        try:
            self._writer = self._thread.submit(self._open, folder, plan, options).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def add(self, sample: Sample, record: ItemRecord) -> None:
        """Enqueue an item."""
        with self._lock:
            self._waiting.append((sample, record))
            is_first = len(self._waiting) == 1
        if is_first:
            self._thread.submit(self._write)

    def close(self) -> None:
        """Write waiting items, and end the run."""
        self._thread.submit(self._finish)
        self._thread.shutdown()

    def _open(self, folder: str | os.PathLike[str], plan: Plan, options: Mapping[str, Mapping[str, Any]]) -> RunWriter:
        """Open the run folder for writing; raises UserError if it has other metrics.

        Args:
            options: settings by metric or feature; they identify the record too.
        """
        metrics = {n: f"{m.protocol} {code_of_metric(n)}".rstrip() for n, m in plan.metrics.items()}
        features = {n: f.identity for n, f in plan.features.items()}
        groups = {of: {name: str(value) for name, value in values.items()} for of, values in options.items()}
        fingerprint = {"data": NAME, "metrics": metrics, "features": features, "options": groups}
        try:
            writer = RunWriter(folder, fingerprint)
        except RunMismatch as error:
            raise UserError(error.message, hint="name another folder with --record") from error
        try:
            systems: dict[str, Any] = {system.name: {} for system in plan.systems}
            writer.begin(systems, metric_facts(plan), [])
            config = {"command": "score", "data": NAME, "generated": NAME, "seed": 0, "limit": None}
            writer.set_meta(
                config={**config, "systems": list(systems), "metrics": list(plan.metrics), "options": groups},
                **describe_machine(), started=_now(), state="running",
            )  # fmt: skip
        except BaseException:
            writer.close()
            raise
        return writer

    def _write(self) -> None:
        """Append the waiting records; after a failure the record is incomplete."""
        with self._lock:
            records, self._waiting = self._waiting, []
        try:
            self._writer.append(records)
            count = self._writer.count("samples")
            self._writer.set_meta(data={"name": NAME, "samples": count, "fingerprint": NAME, "unmatched": []})
        except Exception as error:  # in a thread whose results nobody reads
            self._is_whole = False
            self._on_fault(str(error))

    def _finish(self) -> None:
        """Mark a complete record as finished, and close it."""
        if self._is_whole:
            with suppress(UserError):  # the disk is full: the record stays one of an unfinished run
                self._writer.set_meta(finished=_now(), state="finished")
        self._writer.close()
        with closing(Run(self._writer.folder)) as run:
            write_json(run.folder / RUN_JSON, run.meta)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
