"""Makes a run of results that another toolkit computed."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from codec_bench.errors import UnknownName, UserError

if TYPE_CHECKING:
    from codec_bench.store.record import Run


def import_results(
    file: str | os.PathLike[str], *, toolkit: str, out: str | os.PathLike[str], system: str | None = None
) -> Run:
    """Makes a run of a result file of another toolkit, so that its numbers stand beside new ones.

    Their protocols begin with `imported/`, and their metrics carry the toolkit's name, so that they are never averaged with, or
    compared with, numbers of this package.

    Args:
        file: the result file. toolkit: `versa` or `ultraeval`.
        out: the new run folder. system: what the system is called; None for the stem of the file.

    Returns:
        The finished run; `run.folder` holds the record, `summary.json` and `report.html`.

    Raises:
        UnknownName: there is no reader for this toolkit.
        UserError: the file cannot be read or is not of that toolkit, or the folder holds another run.
    """
    from codec_bench.environment import versions
    from codec_bench.report.results import write_results
    from codec_bench.store.imported import READERS
    from codec_bench.store.record import Run
    from codec_bench.store.rows import ItemRecord
    from codec_bench.store.writer import RunWriter

    if toolkit not in READERS:
        raise UnknownName("toolkit whose results can be read", toolkit, list(READERS))
    path = Path(file)
    found = READERS[toolkit](path)
    name = system or path.stem
    folder = Path(out)
    if (folder / "run.sqlite").exists():
        raise UserError(f"'{folder}' holds a run already", hint="name another folder")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    ids = hashlib.sha256("\0".join(sample.id for sample in found.samples).encode()).hexdigest()[:40]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with closing(RunWriter(folder, {"imported": {"toolkit": found.toolkit, "sha256": digest}})) as writer:
        writer.begin({name: {"imported": found.toolkit}}, found.metrics, found.samples)
        records = []
        for number, sample in enumerate(found.samples):
            why = found.failed.get(sample.id)
            status = "ok" if why is None else "failed"
            records.append((number, ItemRecord(name, sample.id, status, why, found.scores.get(sample.id, {}))))
        writer.write(records)
        writer.set_meta(
            config={"command": "import", "data": str(path.name), "toolkit": found.toolkit, "limit": None, "seed": 0},
            data={"name": path.stem, "samples": len(found.samples), "fingerprint": f"imported-{ids}"},
            versions=versions(), started=now, finished=now, state="finished",
        )  # fmt: skip
    run = Run(folder)
    write_results(run)
    return run
