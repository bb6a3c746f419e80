"""Saves what is whole of a damaged record into a new run folder."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from codec_bench.errors import UserError
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.survey import ANSWERING, Survey, survey
from codec_bench.store.writer import RunWriter

_NOT_KEPT = ("schema", "fingerprint", "state", "finished")
_AT_ONCE = 10_000


def rescue(folder: Path, out: Path) -> Survey:
    """Writes a new record that holds the items, and the questions with their answers, that are whole in another one.

    The same command with the new folder as `--out` runs what was lost again. The damaged record is not changed.

    Args:
        folder: the run folder with the damaged record. out: a folder that does not exist yet, or is empty.

    Returns:
        What was saved, and what was lost.

    Raises:
        UserError: nothing can be saved, or `out` holds something or cannot be written.
    """
    if out.is_dir() and any(out.iterdir()):
        raise UserError(f"'{out}' is not empty", hint="give --out a folder that does not exist yet")
    found = survey(folder)
    kind = RunWriter if found.answers is None else AnswerWriter
    audio = folder / "audio"
    with closing(kind(out, found.meta["fingerprint"])) as writer:
        for table in ("systems", "metrics", "samples", *(ANSWERING if found.answers is not None else ())):
            _copy(found, writer, table)
        for table in ("items", "scores", *(("readings",) if "readings" in found.parts else ())):
            _copy(found, writer, table)
        writer.set_meta(
            **{key: value for key, value in found.meta.items() if key not in _NOT_KEPT},
            state="rescued",
            rescued={
                "from": str(folder), "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "lost_items": found.lost_items, "lost_answers": found.lost_answers,
            },
        )  # fmt: skip
        if audio.is_dir():
            try:
                shutil.copytree(audio, writer.folder / "audio", dirs_exist_ok=True)
            except (OSError, shutil.Error) as error:
                raise UserError(f"the sound in '{audio}' cannot be copied to '{out}': {error}") from error
    return found


def _copy(found: Survey, writer: RunWriter, table: str) -> None:
    rows = found.rows(table)
    while chunk := list(islice(rows, _AT_ONCE)):
        writer.copy(table, chunk[0][0], [cells for _, cells in chunk])
