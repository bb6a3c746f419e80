"""Worker code of DualCodec:

`get_model` and `Inference` of the package `dualcodec`, which takes its semantic network from w2v-BERT 2.0.
"""

from __future__ import annotations

from typing import Any

import torch


def load(checkpoint: str, model: str, codebooks: int, semantic: str) -> dict[str, Any]:
    """The model of this id, coded with so many codebooks.

    `checkpoint` and `semantic` are hub ids (`hf://OWNER/NAME`) or folders.
    """
    import dualcodec

    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = dualcodec.get_model(model, checkpoint)
    coder = dualcodec.Inference(
        dualcodec_model=network, dualcodec_path=checkpoint, w2v_path=semantic, device=device, autocast=device == "cuda"
    )
    return {"coder": coder, "device": device, "codebooks": codebooks}


def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    wave = torch.from_numpy(item["audio"]["samples"])[None]
    semantic, acoustic = state["coder"].encode(wave, n_quantizers=state["codebooks"])
    return {"streams": [semantic[0].tolist(), acoustic[0].tolist()]}


def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    semantic, acoustic = (torch.tensor(codes, device=state["device"])[None] for codes in item["streams"])
    wave = state["coder"].decode(semantic, acoustic)
    return {"audio": {"samples": wave[0], "sample_rate_hz": item["sample_rate_hz"]}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
