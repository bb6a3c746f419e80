"""Reads the centres of a joblib k-means without unpickling it."""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import IO

import numpy as np

from codec_bench.messages.errors import WeightsError

CENTRES = "cluster_centers_"
_NO_CONSTANT = ("PUT", "GET", "PROTO")
"""Parts of the names of instructions whose argument is no value."""
_ALIGNED = ["numpy_array_alignment_bytes", 16]
"""Newer joblib's alignment entry; a byte then counts the padding."""


def load_centres(path: Path) -> np.ndarray:
    """Read the centres of a joblib k-means, float32 `(clusters, width)`.

    In this pickle, arrays are between instructions. It is not unpickled: the instructions are read as data up to the
    first array, which must be the centres, and none is executed.

    Raises:
        WeightsError: the file cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            rows, width = _shape(file)
            numbers = file.read(4 * rows * width)
    except OSError as error:
        raise WeightsError("weights_unreadable", path=path, cause=error.strerror) from error
    except Exception as error:  # pickletools raises ValueError and others for other files
        raise WeightsError("not_a_kmeans", path=path) from error
    if len(numbers) < 4 * rows * width:
        raise WeightsError("weights_cut_short", path=path, hint="codec-bench weights verify")
    centres = np.frombuffer(numbers, "<f4").reshape(rows, width).astype(np.float32)
    if not np.isfinite(centres).all():
        raise WeightsError("centres_not_finite", path=path)
    return centres


def _shape(file: IO[bytes]) -> tuple[int, int]:
    """Read up to the centres' numbers, and return their shape, or raise ValueError."""
    constants: list[object] = []
    builds = 0
    has_centres = False
    for instruction, argument, _ in pickletools.genops(file):
        if not has_centres:
            has_centres = argument == CENTRES
            continue
        if argument is not None and not any(fragment in instruction.name for fragment in _NO_CONSTANT):
            constants.append(argument)
        builds += instruction.name == "BUILD"
        if builds == 2:  # the first builds the dtype, the second the array
            break
    aligned = constants[-2:] == _ALIGNED
    declared = constants[:-2] if aligned else constants
    rows, width = declared[4:6]
    if not (isinstance(rows, int) and isinstance(width, int) and min(rows, width) > 0) or declared != _layout(
        rows, width
    ):
        raise ValueError("the first array is another one")
    if aligned:
        file.read(file.read(1)[0])
    return rows, width


def _layout(rows: int, width: int) -> list[object]:
    kind = ["dtype", "numpy dtype", "f4", 3, "<", -1, -1, 0]
    array = ["joblib.numpy_pickle NumpyArrayWrapper", "subclass", "numpy ndarray"]
    return [*array, "shape", rows, width, "order", "C", *kind, "allow_mmap"]
