"""Worker code of Qwen3-TTS-Tokenizer-12Hz, by the package `qwen-tts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def load(checkpoint: str) -> dict[str, Any]:
    """The tokenizer of a hub id or a folder."""
    from qwen_tts import Qwen3TTSTokenizer

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    return {"model": Qwen3TTSTokenizer.from_pretrained(checkpoint, device_map=device)}


def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    sound = item["audio"]
    (codes,) = state["model"].encode(sound["samples"][0], sr=sound["sample_rate_hz"]).audio_codes
    return {"streams": [codes.T.tolist()]}


def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    codes = np.asarray(item["streams"][0], np.int64).T
    (wave,), rate_hz = state["model"].decode({"audio_codes": [codes]})
    return {"audio": {"samples": wave, "sample_rate_hz": rate_hz}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
