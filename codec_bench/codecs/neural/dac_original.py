"""Read an original DAC checkpoint into transformers' model, tensors only.

Weight normalisation (a direction and a gain) is folded into one weight, as in transformers' published files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from codec_bench.weights import convert_cached, load_into, load_state

# Modules of the original's sequences by their place, as transformers calls them. Blocks are counted from 1 there, from
# 0 here.
_UNIT = {"0": "snake1", "1": "conv1", "2": "snake2", "3": "conv2"}
_ENCODER = {"0": "conv1", "5": "snake1", "6": "conv2"}
_ENCODER_BLOCK = {"0": "res_unit1", "1": "res_unit2", "2": "res_unit3", "3": "snake1", "4": "conv1"}
_DECODER = {"0": "conv1", "5": "snake1", "6": "conv2"}
_DECODER_BLOCK = {"0": "snake1", "1": "conv_t1", "2": "res_unit1", "3": "res_unit2", "4": "res_unit3"}
_TENSOR_NAME = re.compile(
    r"^(?P<side>encoder\.block|decoder\.model)\.(?P<place>\d+)(\.block\.(?P<part>\d+))?(\.block\.(?P<layer>\d+))?"
    r"\.(?P<leaf>[a-z_]+)$"
)


def load_original(net: Any, path: Path) -> Any:
    """Load a checkpoint of the original package into transformers' `DacModel`.

    Raises:
        WeightsError: the file is broken, or another model's: tensors are missing, superfluous or of another shape.
    """
    load_into(net, convert_cached(lambda: renamed(load_state(path, key="state_dict")), path), path=path)
    return net


def renamed(state: dict[str, Any]) -> dict[str, Any]:
    """Rename the original package's tensors for transformers; fold weight norms.

    Args:
        state: its state dict; it stays as it is.
    """
    out = {}
    for name, tensor in state.items():
        if name.endswith("weight_g"):
            continue
        if name.endswith("weight_v") and (gain := state.get(name[:-1] + "g")) is not None:
            size = tensor.flatten(1).norm(dim=1).view(-1, *[1] * (tensor.ndim - 1))
            name, tensor = name[: -len("_v")], tensor * (gain / size)
        out[_ours(name)] = tensor
    return out


def _ours(name: str) -> str:
    """Translate a tensor's name in the original package to transformers' name."""
    match = _TENSOR_NAME.match(name)
    if match is None:
        return name
    encoder = match["side"].startswith("encoder")
    outer, block = (_ENCODER, _ENCODER_BLOCK) if encoder else (_DECODER, _DECODER_BLOCK)
    parts = ["encoder" if encoder else "decoder"]
    if match["part"] is None:
        parts.append(outer.get(match["place"], match["place"]))
    else:
        parts += ["block", str(int(match["place"]) - 1), block.get(match["part"], match["part"])]
    if match["layer"] is not None:
        parts.append(_UNIT.get(match["layer"], match["layer"]))
    return ".".join([*parts, match["leaf"]])
