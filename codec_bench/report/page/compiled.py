"""Compiled templates on disk, like Python's compiled modules."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import BytecodeCache

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

_DIGEST_BYTES = 16


class CompiledTemplates(BytecodeCache):
    """A package's compiled templates, in `NUMBA_CACHE_DIR` or its `__pycache__`.

    Each file begins with the hash of its content; jinja2 checks the hash of the template's text.
    """

    def __init__(self, package: Path) -> None:
        chosen = os.environ.get("NUMBA_CACHE_DIR")
        self._folder = (
            Path(chosen) / "templates" if chosen else Path(cache_from_source(str(package / "template"))).parent
        )

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the bucket from its file, if that is intact."""
        with suppress(OSError):
            data = self._path(bucket).read_bytes()
            code = data[_DIGEST_BYTES:]
            if data[:_DIGEST_BYTES] == _digest(code):
                bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the bucket's file, if the folder is writable."""
        if sys.dont_write_bytecode:
            return
        code = bucket.bytecode_to_string()
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._folder, suffix=".tmp")
            try:
                with open(descriptor, "wb") as file:
                    file.write(_digest(code) + code)
                os.chmod(name, 0o644)
                os.replace(name, self._path(bucket))
            except OSError:
                os.unlink(name)
                raise

    def _path(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}.template"


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_DIGEST_BYTES).digest()
