"""Worker code of Kanade, with the vocoder that its checkpoint names.

It runs `KanadeModel` of the package `kanade-tokenizer`.
"""

from __future__ import annotations

from typing import Any

import torch


def load(checkpoint: str) -> dict[str, Any]:
    """The model of a hub id, with its vocoder."""
    from kanade_tokenizer import KanadeModel, load_vocoder

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = KanadeModel.from_pretrained(checkpoint).eval().to(device)
    return {"model": model, "vocoder": load_vocoder(model.config.vocoder_name).to(device), "device": device}


def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    wave = torch.from_numpy(item["audio"]["samples"][0]).to(state["device"])
    encoded = state["model"].encode(wave)
    return {"streams": [[encoded.content_token_indices.tolist()]], "side": encoded.global_embedding.float().tolist()}


def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    from kanade_tokenizer import vocode

    codes = torch.tensor(item["streams"][0][0], device=state["device"])
    voice = torch.tensor(item["side"], device=state["device"])
    mel = state["model"].decode(voice, content_token_indices=codes, target_audio_length=item["num_samples"])
    wave = vocode(state["vocoder"], mel[None])
    return {"audio": {"samples": wave.reshape(1, -1), "sample_rate_hz": item["sample_rate_hz"]}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
