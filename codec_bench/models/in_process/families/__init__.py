"""Families of transformers' audio models; `model_type` selects a class.

An unknown type uses its processor's chat template and answers one request at a time: batch independence is unproven.

Which file to open
    `chat.py` conversations with audio or text; `ragged.py` those whose encoder depends on padding; `omni.py` those that
    also speak. `speech.py` Whisper and VITS. `voices.py` speech synthesis and voice cloning. `base.py` the base class
    and generation parameters. `checkpoint.py` finds and loads.
"""

from __future__ import annotations

from codec_bench.config.registry import load_attribute
from codec_bench.models.in_process.families.base import Family

FAMILIES = {
    "audioflamingo3": "codec_bench.models.in_process.families.chat:Chat",
    "csm": "codec_bench.models.in_process.families.voices:Csm",
    "dia": "codec_bench.models.in_process.families.voices:Dia",
    "glmasr": "codec_bench.models.in_process.families.chat:Chat",
    "gradium_phonon_tts": "codec_bench.models.in_process.families.voices:GradiumPhonon",
    "granite_speech": "codec_bench.models.in_process.families.ragged:GraniteSpeech",
    "higgs_audio_v2": "codec_bench.models.in_process.families.voices:HiggsAudio",
    "llama": "codec_bench.models.in_process.families.chat:ChatText",
    "mistral": "codec_bench.models.in_process.families.chat:ChatText",
    "phi4_multimodal": "codec_bench.models.in_process.families.ragged:Phi4Multimodal",
    "pocket_tts": "codec_bench.models.in_process.families.voices:PocketTts",
    "qwen2": "codec_bench.models.in_process.families.chat:ChatText",
    "qwen2_5_omni": "codec_bench.models.in_process.families.omni:Qwen25Omni",
    "qwen2_audio": "codec_bench.models.in_process.families.chat:Chat",
    "qwen3": "codec_bench.models.in_process.families.chat:ChatText",
    "qwen3_omni_moe": "codec_bench.models.in_process.families.omni:Qwen3Omni",
    "vibevoice": "codec_bench.models.in_process.families.voices:VibeVoice",
    "vits": "codec_bench.models.in_process.families.speech:Vits",
    "voxtral": "codec_bench.models.in_process.families.chat:Voxtral",
    "whisper": "codec_bench.models.in_process.families.speech:WhisperModel",
}


def family_of(model_type: str) -> type[Family]:
    """Return the class that runs a transformers model type, or else a generic class."""
    if model_type in FAMILIES:
        return load_attribute(FAMILIES[model_type])
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    )

    text = model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES
    return load_attribute(f"codec_bench.models.in_process.families.chat:{'UnprovenText' if text else 'Unproven'}")
