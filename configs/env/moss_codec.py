"""Worker code of MOSS-Audio-Tokenizer, with the class in its checkpoint's folder."""

from __future__ import annotations

from typing import Any

import torch


def load(checkpoint: str, codebooks: int) -> dict[str, Any]:
    """The model of a hub id or a folder, coded with so many codebooks.

    It runs Python code that lies beside the weights.
    """
    from transformers import AutoModel

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModel.from_pretrained(checkpoint, trust_remote_code=True).eval().to(device)
    return {"model": model, "device": device, "codebooks": codebooks}


@torch.inference_mode()
def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    wave = torch.from_numpy(item["audio"]["samples"])[None].to(state["device"])
    codes = state["model"].encode(wave, num_quantizers=state["codebooks"], return_dict=True).audio_codes
    return {"streams": [codes[: state["codebooks"], 0].tolist()]}


@torch.inference_mode()
def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    codes = torch.tensor(item["streams"][0], device=state["device"])[:, None]
    audio = state["model"].decode(codes, return_dict=True).audio
    return {"audio": {"samples": audio[0], "sample_rate_hz": item["sample_rate_hz"]}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
