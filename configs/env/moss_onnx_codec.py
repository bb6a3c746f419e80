"""Worker code of MOSS-Audio-Tokenizer in ONNX Runtime, without torch.

The files are `encoder.onnx` and `decoder.onnx`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

_HOP = 1920


def load(checkpoint: str, codebooks: int) -> dict[str, Any]:
    """Both files of a folder or a hub id, coded with so many codebooks."""
    import onnxruntime

    if not os.path.isdir(checkpoint):
        from huggingface_hub import snapshot_download

        checkpoint = snapshot_download(checkpoint)
    parts = {
        name: onnxruntime.InferenceSession(
            os.path.join(checkpoint, f"{name}.onnx"), providers=onnxruntime.get_available_providers()
        )
        for name in ("encoder", "decoder")
    }
    return {**parts, "codebooks": codebooks}


def _run(state: dict[str, Any], name: str, values: np.ndarray) -> Any:
    """Both files take the values and the number of codebooks, and give values and how many of them count."""
    session = state[name]
    first, second = (each.name for each in session.get_inputs())
    output, lengths = session.run(None, {first: values, second: np.array(state["codebooks"], np.int64)})
    return output, int(lengths[0])


def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    wave = item["audio"]["samples"]
    padded = np.pad(wave, ((0, 0), (0, -wave.shape[1] % _HOP)))[None]
    codes, frames = _run(state, "encoder", np.ascontiguousarray(padded, np.float32))
    return {"streams": [codes[: state["codebooks"], 0, :frames].tolist()]}


def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    codes = np.asarray(item["streams"][0], np.int64)[:, None]
    audio, length = _run(state, "decoder", codes)
    return {"audio": {"samples": np.float32(audio[0, :, :length]), "sample_rate_hz": item["sample_rate_hz"]}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
