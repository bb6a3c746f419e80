"""Audio Flamingo 3 and GLM-ASR with random weights: encoders that hear windows of 30 s, with what is padded masked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tiny_audio_models import ALPHABET, CHATML, finish, text_config, write_tokenizer

TURNS = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|pad|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|end|>{% endfor "
    "%}<|assistant|>"
)
ENCODER = {"num_mel_bins": 16, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def write_audio_flamingo3(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Audio Flamingo 3: a Whisper encoder with a mean over pairs of frames, a projector of two layers, and Qwen2."""
    from transformers import (
        AudioFlamingo3Config,
        AudioFlamingo3ForConditionalGeneration,
        AudioFlamingo3Processor,
        PreTrainedTokenizerFast,
        WhisperFeatureExtractor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<sound>"]
    template = CHATML.replace("SOUND", "<sound>")
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>", template=template)
    extractor = WhisperFeatureExtractor(feature_size=16, return_attention_mask=True)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    AudioFlamingo3Processor(extractor, tokenizer, chat_template=template).save_pretrained(folder)
    config = AudioFlamingo3Config(
        audio_config={**ENCODER, "intermediate_size": 64},
        text_config={"model_type": "qwen2", **text_config(ALPHABET + len(special))},
        audio_token_id=ids["<sound>"],
    )
    net = AudioFlamingo3ForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())


def write_glm_asr(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """GLM-ASR: an encoder with rotary positions whose frames are taken four at a time, and a Llama."""
    from transformers import (
        GlmAsrConfig,
        GlmAsrForConditionalGeneration,
        GlmAsrProcessor,
        PreTrainedTokenizerFast,
        WhisperFeatureExtractor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|pad|>", "<|end|>"]
    ids = write_tokenizer(folder, special, end="<|end|>", pad="<|endoftext|>", template=TURNS)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    GlmAsrProcessor(WhisperFeatureExtractor(feature_size=16), tokenizer, chat_template=TURNS).save_pretrained(folder)
    config = GlmAsrConfig(
        audio_config={**ENCODER, "intermediate_size": 128},  # four frames of 32
        text_config={"model_type": "llama", **text_config(ALPHABET + len(special))},
        audio_token_id=ids["<|pad|>"],
    )
    net = GlmAsrForConditionalGeneration(config)
    finish(net, folder, ids, "<|end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())


WRITERS: dict[str, Callable[..., None]] = {"audioflamingo3": write_audio_flamingo3, "glmasr": write_glm_asr}
