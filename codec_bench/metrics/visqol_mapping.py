"""ViSQOL's mappings to opinion scores: exponential, SVR, lattice network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from codec_bench.messages.errors import WeightsError, describe


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A support vector regression with Gaussian kernels.

    Args:
        vectors: float64 `(vectors, bands)`. weights: of each. gamma: of the kernel. offset: subtracted.
    """

    vectors: np.ndarray
    weights: np.ndarray
    gamma: float
    offset: float

    def predict(self, bands: np.ndarray) -> float:
        """Predict the score from similarities by band, limited to 1 to 5."""
        distances = ((self.vectors - bands) ** 2).sum(axis=1)
        return float(np.clip(self.weights @ np.exp(-self.gamma * distances) - self.offset, 1.0, 5.0))


@cache
def regression(path: Path) -> Regression:
    """Read a regression of libsvm.

    Raises:
        WeightsError: the file is another one.
    """
    try:
        head, _, body = path.read_text("ascii").partition("\nSV\n")
        facts = dict(line.split(" ", 1) for line in head.splitlines())
        rows = [line.split() for line in body.splitlines()]
        vectors = np.array([[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows])
        weights = np.array([float(row[0]) for row in rows])
        if (facts["svm_type"], facts["kernel_type"], vectors.shape[1]) != ("nu_svr", "rbf", 32):
            raise ValueError("it is no regression over 32 bands")
        return Regression(vectors, weights, float(facts["gamma"]), float(facts["rho"]))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise WeightsError("file_not_readable", path=path, cause=describe(error)) from error


def exponential(similarity: float) -> float:
    """Map a similarity by the authors' fit to TCD-VoIP, scaled so that a copy has 5."""
    return float(np.clip(1.245063 * (-262.847869 + np.exp(0.0154302525 * (similarity + 361.063949))), 1.0, 5.0))


def lattice(path: Path, similarities: np.ndarray, lowest: np.ndarray, spreads: np.ndarray, levels: np.ndarray) -> float:
    """Return the lattice network's score at the listeners' median.

    Args:
        path: the network's file.
        similarities: mean similarity by band.
        lowest: the same over the lowest tenth of the patches.
        spreads: standard deviation over frames by band.
        levels: mean level by band.
    """
    named = {"fvnsim": similarities, "fvnsim10_": lowest, "fstdnsim": spreads, "fvdegenergy": levels}
    inputs = {f"{name}{band}": [value] for name, values in named.items() for band, value in enumerate(values)}
    inputs["tau"] = [0.5]
    outputs = _runner(path)(**{name: np.array(value, np.float32) for name, value in inputs.items()})
    return float(outputs["predictions"].ravel()[0])


@cache
def _runner(path: Path) -> Callable[..., Mapping[str, np.ndarray]]:
    """Load the lattice network."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(model_content=path.read_bytes(), num_threads=1)
        interpreter.allocate_tensors()
        return interpreter.get_signature_runner("predict")
    except (OSError, ValueError, RuntimeError) as error:
        raise WeightsError("file_not_readable", path=path, cause=describe(error)) from error
