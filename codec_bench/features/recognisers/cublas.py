"""cuBLAS 12 for CTranslate2, loaded before CTranslate2 needs it.

CTranslate2's wheels are built for CUDA 12. They open `libcublas.so.12` by its name at the first product of matrices on
a GPU, and torch may bring cuBLAS of another version only. A library of that name that the process has already loaded is
the one that is found, so the one of the package nvidia-cublas-cu12 is loaded here from where pip has put it. Version 13
has another name inside the file, by which a process that has loaded it knows it, so it cannot stand in here
(`docs/speed.md`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from codec_bench.errors import MissingExtra

LIBRARY = "libcublas.so.12"
PACKAGE = "nvidia-cublas-cu12"


def load_cublas(purpose: str, otherwise: str | None = None) -> str:
    """Loads cuBLAS 12 into this process: the system's if the loader finds one, else that of the package.

    Args:
        purpose: needs it, for the message.
        otherwise: what can be done without it, for the message.

    Returns:
        The name or the path that it was loaded from; empty on systems other than Linux, whose loaders work otherwise.

    Raises:
        MissingExtra: there is none.
    """
    if sys.platform != "linux":
        return ""
    for library in (LIBRARY, *map(str, _of_the_package())):
        with suppress(OSError):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            return library
    raise MissingExtra(f"{purpose}, which computes with {LIBRARY},", PACKAGE, "gpu", otherwise)


def _of_the_package() -> list[Path]:
    try:
        spec = importlib.util.find_spec("nvidia.cublas")
    except ModuleNotFoundError:  # no package of NVIDIA is installed
        return []
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return [path for folder in folders if (path := Path(folder, "lib", LIBRARY)).is_file()]
