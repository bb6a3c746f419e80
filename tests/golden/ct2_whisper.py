"""A Whisper in CTranslate2's format, written again as transformers keeps it, with the numbers that the file holds.

CTranslate2's converter joins the projections of queries, keys and values, and gives the keys a bias of zeros, which
Whisper has not. Everything else is renamed.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

VERSION = 6
TYPES = {0: "f4", 1: "i1", 2: "i2", 3: "i4", 4: "f2"}
OUTSIDE = {
    "conv1": "conv1", "conv2": "conv2", "layer_norm": "layer_norm", "embeddings": "embed_tokens",
    "position_encodings": "embed_positions",
}  # fmt: skip
INSIDE = {
    "self_attention/layer_norm": ("self_attn_layer_norm",),
    "self_attention/linear_0": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention/linear_1": ("self_attn.out_proj",),
    "attention/layer_norm": ("encoder_attn_layer_norm",),
    "attention/linear_0": ("encoder_attn.q_proj",),
    "attention/linear_1": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "attention/linear_2": ("encoder_attn.out_proj",),
    "ffn/layer_norm": ("final_layer_norm",),
    "ffn/linear_0": ("fc1",),
    "ffn/linear_1": ("fc2",),
}
KINDS = {"gamma": "weight", "beta": "bias", "encodings": "weight", "weight": "weight", "bias": "bias"}


def read(path: Path) -> dict[str, np.ndarray]:
    """The variables of a model.bin by name, as stored.

    Equal ones are stored once, and the others' names point to them.
    """
    with path.open("rb") as file:
        assert _number(file, "I") == VERSION and _text(file) == "WhisperSpec"
        _number(file, "I")
        variables = dict(_variable(file) for _ in range(_number(file, "I")))
        aliases = [(_text(file), _text(file)) for _ in range(_number(file, "I"))]
        return variables | {alias: variables[name] for alias, name in aliases}


def _number(file: BinaryIO, kind: str) -> int:
    return int(struct.unpack(kind, file.read(struct.calcsize(kind)))[0])


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "H"))[:-1].decode()


def _variable(file: BinaryIO) -> tuple[str, np.ndarray]:
    name = _text(file)
    shape = [_number(file, "I") for _ in range(_number(file, "B"))]
    kind = TYPES[_number(file, "B")]
    return name, np.frombuffer(file.read(_number(file, "I")), kind).reshape(shape)


def state_of(variables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same numbers by the names of transformers."""
    state = {}
    for name, values in variables.items():
        role, *parts = name.split("/")
        # Facts of the architecture; and the last product, whose weights are the embeddings.
        if not values.ndim or parts[-1] not in KINDS or parts[0] == "projection":
            continue
        kind = KINDS[parts.pop()]
        if not parts[0].startswith("layer_") or parts[0] == "layer_norm":
            state[f"model.{role}.{OUTSIDE[parts[0]]}.{kind}"] = values
            continue
        layer = parts.pop(0).removeprefix("layer_")
        targets = INSIDE["/".join(parts)]
        for target, segment in zip(targets, np.split(values, len(targets))):
            if target.endswith("k_proj") and kind == "bias":
                assert not segment.any(), name
            else:
                state[f"model.{role}.layers.{layer}.{target}.{kind}"] = np.ascontiguousarray(segment)
    return state


def write_transformers(converted: Path, folder: Path) -> Path:
    """Writes a folder in the layout of transformers from one in CTranslate2's."""
    from safetensors.numpy import save_file

    variables = read(converted / "model.bin")
    folder.mkdir(parents=True)
    save_file(state_of(variables), folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(_config(variables)))
    details = json.loads((converted / "config.json").read_text("utf-8"))
    generation = {"suppress_tokens": details["suppress_ids"], "begin_suppress_tokens": details["suppress_ids_begin"]}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    for name in ("tokenizer.json", "preprocessor_config.json"):
        if (converted / name).is_file():
            shutil.copy(converted / name, folder)
    return folder


def _config(variables: dict[str, np.ndarray]) -> dict[str, Any]:
    words, width = variables["decoder/embeddings/weight"].shape
    layers = {
        role: len({name.split("/")[1] for name in variables if name.startswith(f"{role}/layer_")
            and "norm" not in name.split("/")[1]})
        for role in ("encoder", "decoder")
    }  # fmt: skip
    return {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "vocab_size": words,
        "d_model": width,
        "num_mel_bins": variables["encoder/conv1/weight"].shape[1],
        **{f"{role}_layers": layers[role] for role in layers},
        **{f"{role}_attention_heads": int(variables[f"{role}/num_heads"]) for role in layers},
        **{f"{role}_ffn_dim": variables[f"{role}/layer_0/ffn/linear_0/weight"].shape[0] for role in layers},
    }  # fmt: skip
