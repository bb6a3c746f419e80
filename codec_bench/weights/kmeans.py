"""Reading the clusters of a k-means as joblib writes it, without unpickling the file."""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import IO

import numpy as np

from codec_bench.errors import WeightsError

CENTRES = "cluster_centers_"
_NO_CONSTANT = ("PUT", "GET", "PROTO")
"""What stands in the names of instructions whose argument is no part of a value."""
_ALIGNED = ["numpy_array_alignment_bytes", 16]
"""What newer releases of joblib write of an array next to the rest.

A byte then says how many bytes stand before the numbers.
"""


def load_centres(path: Path) -> np.ndarray:
    """The centres of a k-means that scikit-learn fitted and joblib wrote, float32 `(clusters, width)`.

    Such a file is a pickle in which the numbers of each array stand between the instructions. It is not unpickled: the
    instructions are read as data up to the first array, which must be the centres, and none of them is carried out.

    Raises:
        WeightsError: the file cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            rows, width = _shape(file)
            numbers = file.read(4 * rows * width)
    except OSError as error:
        raise WeightsError(f"the weights in '{path}' cannot be read: {error.strerror}") from error
    except Exception as error:  # pickletools raises ValueError and others for what is no pickle
        raise WeightsError(f"the weights in '{path}' are no k-means of scikit-learn that joblib wrote") from error
    if len(numbers) < 4 * rows * width:
        raise WeightsError(f"the weights in '{path}' are cut short", hint="codec-bench weights verify")
    centres = np.frombuffer(numbers, "<f4").reshape(rows, width).astype(np.float32)
    if not np.isfinite(centres).all():
        raise WeightsError(f"the weights in '{path}' have centres that are not finite numbers")
    return centres


def _shape(file: IO[bytes]) -> tuple[int, int]:
    """Reads up to the numbers of the centres, and returns how many clusters there are and their width.

    Raises:
        ValueError: something else than the centres, float32 in rows, is the first array.
    """
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
        if builds == 2:  # the first is that of the type of the numbers, the second that of the array
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
    """What joblib writes of a matrix of float32, in order."""
    kind = ["dtype", "numpy dtype", "f4", 3, "<", -1, -1, 0]
    array = ["joblib.numpy_pickle NumpyArrayWrapper", "subclass", "numpy ndarray"]
    return [*array, "shape", rows, width, "order", "C", *kind, "allow_mmap"]
