"""Worker code of LongCat-Audio-Codec, from a checkout of its repository.

The weights are in the checkout's folder `ckpts`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch


def load(checkpoint: str, decoder: str, codebooks: int) -> dict[str, Any]:
    """Load the encoder and one decoder of a checkout, for so many codebooks.

    Its files name others relative to it.
    """
    sys.path.insert(0, os.path.abspath(checkpoint))
    os.chdir(checkpoint)
    from networks.semantic_codec.model_loader import load_decoder, load_encoder

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder = load_encoder("configs/LongCatAudioCodec_encoder.yaml", device)
    return {
        "encoder": encoder,
        "decoder": load_decoder(f"configs/{decoder}.yaml", device),
        "device": device,
        "codebooks": codebooks,
    }


@torch.inference_mode()
def _encode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    wave = torch.from_numpy(item["audio"]["samples"])[None].to(state["device"])
    semantic, acoustic = state["encoder"](
        wave, item["audio"]["sample_rate_hz"], n_acoustic_codebooks=state["codebooks"]
    )
    return {"streams": [semantic.tolist(), acoustic[0].tolist()]}


@torch.inference_mode()
def _decode(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    semantic, acoustic = (torch.tensor(codes, device=state["device"]) for codes in item["streams"])
    wave = state["decoder"](semantic, acoustic[None])
    return {"audio": {"samples": wave[0], "sample_rate_hz": state["decoder"].output_rate}}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Codes of sounds, and sounds of codes, one after the other."""
    return [_encode(state, item) if item["wants"] == "codes" else _decode(state, item) for item in batch]
