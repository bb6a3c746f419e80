"""cuBLAS 12 for CTranslate2, loaded before CTranslate2 needs it.

CTranslate2's wheels open `libcublas.so.12` by name at the first matrix product on a GPU, and torch may bring another
version. The loader finds a library of that name that the process has already loaded, so this loads the one of the
package nvidia-cublas-cu12. Version 13 has another soname and cannot replace it (`docs/speed.md`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from codec_bench.messages.errors import MissingExtra

LIBRARY = "libcublas.so.12"
PACKAGE = "nvidia-cublas-cu12"


def load_cublas(recogniser: str, otherwise: str | None = None) -> str:
    """Load cuBLAS 12: the system's if the loader finds one, else the package's.

    Args:
        recogniser: its name, for the message.
        otherwise: what works without it, for the message.

    Returns:
        The name or path of the library; empty on systems other than Linux, whose loaders differ.

    Raises:
        MissingExtra: it is not installed.
    """
    if sys.platform != "linux":
        return ""
    for library in (LIBRARY, *map(str, _of_the_package())):
        with suppress(OSError):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            return library
    raise MissingExtra("recogniser_with_cublas", PACKAGE, "gpu", otherwise, name=recogniser)


def _of_the_package() -> list[Path]:
    """Find cuBLAS files in the installed package `nvidia.cublas`; none if missing."""
    try:
        spec = importlib.util.find_spec("nvidia.cublas")
    except ModuleNotFoundError:  # no package of NVIDIA is installed
        return []
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return [path for folder in folders if (path := Path(folder, "lib", LIBRARY)).is_file()]
