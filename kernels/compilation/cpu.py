"""numba's `njit` with a disk cache: one process compiles, others wait.

numba's own cache lets every first process compile, and knows only the function's file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numba
from numba.core.caching import FunctionCache

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

WAIT_S = 120.0
"""The longest wait for another process's code; then this process compiles."""
_LOOK_EVERY_S = 0.02
_KERNELS = Path(__file__).resolve().parents[1]


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` cached on disk and compiled by one process."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(cache=True, **options)(function)
        compiled._cache = SharedCache(function)
        return compiled

    return decorate


@cache
def _content(root: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py") if root == _KERNELS else root.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode() + content)
    return digest.digest()


class SharedCache(FunctionCache):
    """A function's cache. The compiling process holds a lock until it saved."""

    _lock: int | None = None

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = Path(function.__code__.co_filename).resolve()
        root = _KERNELS if _KERNELS in file.parents else file.parent
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _content(root))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for a signature; None if this process is to compile it."""
        overload = super().load_overload(sig, target_context)
        if overload is None and self._enabled:
            self._acquire()
            overload = super().load_overload(sig, target_context)  # another process may have saved it by now
            if overload is not None:
                self._release()
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the code of a signature for all processes."""
        try:
            super().save_overload(sig, data)
        finally:
            self._release()

    def _acquire(self) -> None:
        if fcntl is None or self._lock is not None:
            return
        with suppress(OSError):  # a folder that cannot be written has no lock, and no cache either
            self._impl.locator.ensure_cache_path()
            path = os.path.join(self._cache_path, f"{self._impl.filename_base}.lock")
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        until = monotonic() + WAIT_S
        while self._lock is not None and monotonic() < until:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sleep(_LOOK_EVERY_S)  # numba's own lock is held, so no other thread of this process compiles
            except OSError:  # a file system without locks
                return
            else:
                return

    def _release(self) -> None:
        if self._lock is not None:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = None
