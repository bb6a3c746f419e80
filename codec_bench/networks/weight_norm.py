"""Weight normalisation: weights from gains and directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PAIRS = (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"))


def fold_weight_norm(state: Mapping[str, Any]) -> dict[str, Any]:
    """Replace every gain and direction by `weight` = gain x direction / |direction|.

    The norm is over all dimensions but the first, as torch's default. A gain without a fitting direction stays, so
    loading the weights reports it by name.

    Args:
        state: tensors by name, in either of torch's two forms of the pair.
    """
    out = dict(state)
    del state  # a pair goes as soon as it is folded, unless the caller still holds it: a weight is not in memory twice
    for gain_name, direction_name in _PAIRS:
        for name in list(out):
            stem = name.removesuffix(gain_name)
            gain, direction = out.get(name), out.get(stem + direction_name)
            if stem == name or gain is None or direction is None:
                continue
            if gain.shape != (len(direction), *[1] * (direction.ndim - 1)):
                continue
            del out[name], out[stem + direction_name]
            norm = direction.float().flatten(1).norm(dim=1).view(gain.shape)
            out[f"{stem}weight"] = direction.float() * (gain.float() / norm)
    return out
