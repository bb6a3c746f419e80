"""Values of a whole set that are not a ratio of two sums: from summed counts to a number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FOLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
