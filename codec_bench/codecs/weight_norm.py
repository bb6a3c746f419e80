"""Weight normalisation as checkpoints carry it: a gain and a direction for each weight, which become the weight itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PAIRS = (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"))


def fold_weight_norm(state: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of a checkpoint with every pair of gain and direction replaced by `weight` = gain x direction / |direction|.

    The norm is over all dimensions but the first, as torch's `weight_norm` takes it by default. A gain without its
    direction, or of a shape that is not its, stays as it is, so that loading names it.

    Args:
        state: tensors by name, of either of torch's two ways of storing the pair.
    """
    out = dict(state)
    for gain_name, direction_name in _PAIRS:
        for name in state:
            stem = name.removesuffix(gain_name)
            gain, direction = state[name], state.get(stem + direction_name)
            if stem == name or direction is None or gain.shape != (len(direction), *[1] * (direction.ndim - 1)):
                continue
            del out[name], out[stem + direction_name]
            norm = direction.float().flatten(1).norm(dim=1).view(gain.shape)
            out[f"{stem}weight"] = direction.float() * (gain.float() / norm)
    return out
