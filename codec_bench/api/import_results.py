"""Make a run from another toolkit's results."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codec_bench.report.open_run import Run
    from codec_bench.store.imported import Imported
    from codec_bench.types import Sample


@dataclass(frozen=True, slots=True)
class _About:
    samples: Sequence[Sample]
    data: dict[str, Any]
    config: dict[str, Any]


def import_results(
    file: str | os.PathLike[str],
    *,
    toolkit: str,
    out: str | os.PathLike[str],
    system: str | None = None,
    beside: str | os.PathLike[str] | None = None,
) -> Run:
    """Make a run from a result file of another toolkit, for comparison with new ones.

    Protocols start with `imported/` and metrics carry the toolkit's name, so they are never averaged or compared with
    numbers of this package.

    Args:
        file: the result file.
        toolkit: `versa`, `ultraeval`, `audiobench`, `lm-eval`, `lmms-eval` or `inspect`.
        out: the new run folder.
        system: name of the system; None for the stem of the file.
        beside: a run over the same data, with the same ids. The new run then has its samples with texts and speakers,
            and is on its leaderboards. Items that the file lacks have failed.

    Returns:
        The finished run; `run.folder` holds the record, `summary.json` and `report.html`.

    Raises:
        UnknownName: there is no reader for this toolkit.
        UserError: the file cannot be read or is not of that toolkit, the folder holds another run, or an item of the
            file is not in that run.
    """
    from codec_bench.machine.environment import versions
    from codec_bench.report.open_run import Run
    from codec_bench.report.results import write_results
    from codec_bench.store.imported import READERS
    from codec_bench.store.rows import ItemRecord
    from codec_bench.store.writer import RunWriter

    if toolkit not in READERS:
        raise UnknownName("toolkit", toolkit, list(READERS))
    path = Path(file)
    imported = READERS[toolkit](path)
    name = system or path.stem
    folder = Path(out)
    if (folder / "run.sqlite").exists():
        raise UserError("holds_a_run", folder=folder, hint="name another folder")
    about = _describe_run(path, imported.samples, beside) if beside else _describe_file(path, imported.samples)
    in_file = {sample.id for sample in imported.samples}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    with closing(RunWriter(folder, {"imported": {"toolkit": imported.toolkit, "sha256": digest}})) as writer:
        writer.begin({name: {"imported": imported.toolkit}}, imported.metrics, about.samples)
        records = []
        for number, sample in enumerate(about.samples):
            why = imported.failed.get(sample.id) if sample.id in in_file else "the file has no result of this item"
            status = "ok" if why is None else "failed"
            records.append((number, ItemRecord(name, sample.id, status, why, imported.scores.get(sample.id, {}))))
        writer.write(records)
        writer.set_meta(
            config={"command": "import", "toolkit": imported.toolkit, **about.config}, data=about.data,
            versions=versions(), started=now, finished=now, state="finished",
            **({"checks": {name: _read_checks(imported)}} if imported.suspect else {}),
        )  # fmt: skip
    run = Run(folder)
    write_results(run)
    return run


def _read_checks(imported: Imported) -> dict[str, Any]:
    remark = Diagnostic("remark", message=imported.suspect)
    text = {"check": "export", "state": "suspect", "found": remark, "value": None}
    return {"ok": [], "findings": list(imported.findings) or [text], "unchecked": []}


def _describe_file(path: Path, samples: Sequence[Sample]) -> _About:
    """Describe imported items as a separate data set, identified by their ids."""
    ids = hashlib.sha256("\0".join(sample.id for sample in samples).encode()).hexdigest()[:40]
    data = {"name": path.stem, "samples": len(samples), "fingerprint": f"imported-{ids}"}
    return _About(samples, data, {"data": path.name, "limit": None, "seed": 0})


def _describe_run(path: Path, samples: Sequence[Sample], folder: str | os.PathLike[str]) -> _About:
    """Describe imported items by the samples of a run over the same data.

    Args:
        path: the imported file, for messages.
        folder: of the run.

    Raises:
        UserError: the run is of a benchmark, or lacks an item.
    """
    from codec_bench.report.open_run import open_run
    from codec_bench.types import Sample

    with closing(open_run(folder)) as run:
        run.check()
        meta = run.meta
        samples_of_run = [Sample(row.id, None, row.text, row.speaker, row.language) for row in run.samples()]
    if meta.get("benchmark"):
        raise UserError(
            "run_of_benchmark",
            folder=folder,
            benchmark=meta["benchmark"].get("name"),
            hint="leave the run out; the numbers are then on a separate leaderboard",
        )
    known = {sample.id for sample in samples_of_run}
    other = [sample.id for sample in samples if sample.id not in known]
    if other:
        raise UserError(
            "foreign_items",
            items=len(other),
            samples=len(samples),
            path=path,
            folder=folder,
            example=other[0],
            hint="name a run over the same data with the same ids, or no run",
        )
    config = meta.get("config") or {}
    settings = {name: config.get(name) for name in ("data", "limit", "seed")}
    return _About(samples_of_run, dict(meta.get("data") or {}), {**settings, "beside": config.get("command")})
