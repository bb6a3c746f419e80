"""Cache of converted tensors (folded norms, half precision), mapped when loaded.

A cached file is named by its key and the SHA-256 of its content.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from codec_bench.config.file_content import file_hash
from codec_bench.config.paths import cache_folder
from codec_bench.messages.errors import WeightsError
from codec_bench.weights.state import load_state

LEAST_BYTES = 64 << 20
"""Smaller checkpoints are converted within a tenth of a second."""
MAX_BYTES = 8 << 30
"""The size of the cache; the files that were not used for longest go first."""
_SPARE = 1 << 30
"""Bytes of the disk that stay free."""
_STALE_S = 86_400
_NETWORKS = Path(__file__).parents[1] / "networks"


def converted_folder() -> Path:
    """Return the folder of the cached tensors."""
    return cache_folder() / "converted"


def convert_cached(convert: Callable[[], dict[str, Any]], source: Path, *identity: object) -> dict[str, Any]:
    """The tensors of `convert()`, cached by the source and the code.

    Without a usable cache (permissions, space, damage) the tensors are converted.

    Args:
        convert: reads the source and returns tensors by name, on the CPU.
        identity: what the result depends on besides the source's content and the code.
    """
    if source.stat().st_size < LEAST_BYTES:
        return convert()
    key = _conversion_key(convert, source, identity)
    if (cached := _read_converted(key)) is not None:
        return cached
    tensors = convert()
    with suppress(OSError, RuntimeError):  # torch reports a full disk as a RuntimeError
        _write(key, tensors)
    return tensors


def converted_size() -> int:
    """Return the bytes of the cached tensors."""
    return sum(size for _, size, _ in _files())


def _conversion_key(convert: Callable[[], Any], source: Path, identity: tuple[object, ...]) -> str:
    """Hash the source, the converting code, torch and the identity."""
    import torch

    real = source.resolve()
    content = real.name if source.is_symlink() and real.parent.name == "blobs" else file_hash(source)
    computed_by = (torch.__version__, torch.backends.cpu.get_cpu_capability(), convert.__qualname__)
    code = _code_hash(Path(convert.__code__.co_filename).parent)
    return hashlib.blake2b(repr((content, code, computed_by, identity)).encode(), digest_size=20).hexdigest()


@cache
def _code_hash(caller: Path) -> str:
    """Return a hash of the code that may take part in a conversion: networks, weights, and the caller's folder."""
    digest = hashlib.blake2b(digest_size=20)
    for path in (
        path for folder in (_NETWORKS, Path(__file__).parent, caller) for path in sorted(folder.rglob("*.py"))
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_converted(key: str) -> dict[str, Any] | None:
    """Read a converted checkpoint; deletes damaged files, None without a good one."""
    for path in converted_folder().glob(f"{key}-*.pt"):
        with suppress(OSError, WeightsError):
            if file_hash(path) == path.stem.removeprefix(f"{key}-"):
                return load_state(path)
        with suppress(OSError):
            path.unlink()
    return None


def _write(key: str, tensors: dict[str, Any]) -> None:
    """Write tensors unless another process does or the disk has too little room."""
    import shutil

    import torch
    from filelock import FileLock

    folder = converted_folder()
    folder.mkdir(parents=True, exist_ok=True)
    size = sum(value.nbytes for value in tensors.values())
    if size > MAX_BYTES or shutil.disk_usage(folder).free < size + _SPARE:
        return
    partial = folder / f"{key}.part"
    with FileLock(folder / f"{key}.lock", timeout=0):
        try:
            # A view would be saved with all of its storage.
            torch.save(
                {n: v if v.untyped_storage().nbytes() == v.nbytes else v.clone() for n, v in tensors.items()}, partial
            )
            partial.replace(folder / f"{key}-{file_hash(partial)}.pt")
        finally:
            partial.unlink(missing_ok=True)
    _evict()


def _evict() -> None:
    """Delete the files over the limit, and what killed processes left."""
    excess = converted_size() - MAX_BYTES
    for _, size, path in sorted(_files()):
        if excess > 0:
            path.unlink(missing_ok=True)
            excess -= size
    for path in converted_folder().iterdir():
        if path.suffix in (".part", ".lock") and path.stat().st_mtime < time.time() - _STALE_S:
            path.unlink(missing_ok=True)


def _files() -> list[tuple[float, int, Path]]:
    """Return the last use, size and path of each cached file."""
    with suppress(OSError):
        facts = [(path.stat(), path) for path in converted_folder().glob("*.pt")]
        return [(max(about.st_atime, about.st_mtime), about.st_size, path) for about, path in facts]
    return []
