"""Text and JSON files that are written atomically."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codec_bench.messages import to_json
from codec_bench.messages.errors import UserError, on_disk

WRITTEN_AGAIN = "delete it and run the same command again, which writes it again"


def write_text(path: Path, text: str, *, hint: str | None = None) -> None:
    """Write a text file atomically; `hint` says what to do if it cannot be written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with on_disk("file_not_writable", path=path, hint=hint):
        try:
            partial.write_text(text, encoding="utf-8", errors="replace")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """As `write_text`, for JSON; diagnostics have their code next to the sentence."""
    write_text(path, json.dumps(to_json(value), indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, *, hint: str | None = WRITTEN_AGAIN) -> dict[str, Any]:
    """Read a JSON object from a file, or raise UserError with the hint."""
    try:
        held = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError("file_not_readable", path=path, cause=error.strerror or error) from error
    except (ValueError, RecursionError) as error:
        raise UserError("not_json", path=path, cause=str(error).splitlines()[0], hint=hint) from error
    if not isinstance(held, dict):
        raise UserError("not_a_json_object", path=path, type=type(held).__name__, hint=hint)
    return held
