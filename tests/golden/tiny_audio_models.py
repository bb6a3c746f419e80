"""Audio language models with random weights in the layout of published checkpoints: small, and with varied answers.

Architectures, special tokens and chat templates have the published form; sizes, words and weights have not. Random
weights as a class initialises them write one token for ever, whatever they hear. So weights are as large as their
fan-in asks for, which makes the input audio decide, and the end wins now and then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}SOUND{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% "
    "endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
STRINGS = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ALPHABET = 256


def write_tokenizer(
    folder: Path,
    special: Sequence[str],
    *,
    end: str,
    pad: str,
    template: str | None = None,
    names: dict[str, str] | None = None,
) -> dict[str, int]:
    """Writes a tokenizer of bytes and special tokens.

    Returns:
        The ids of the special tokens.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, pad_token=pad, extra_special_tokens=names or {}
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    return {token: tokenizer.token_to_id(token) for token in special}


def enliven(net: Any, heads: Sequence[Any], end: int, *, seed: int, ends: float, gain: float = 1.5) -> None:
    """Gives a network weights that answer differently to different sounds; `ends` makes answers shorter."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    written = set(range(32, 32 + 60))  # letters and digits: bytes beyond them make no text
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if weight.ndim >= 2:
                fan_in = weight[0].numel()
                scale = 1.0 if "embed_tokens" in name or "rel_pos" in name else gain * fan_in**-0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
        for head in heads:
            width = head.weight.shape[1]
            end_row = ends * torch.randn(width, generator=generator) * width**-0.5
            head.weight *= torch.tensor([index in written for index in range(len(head.weight))])[:, None]
            head.weight[end] = end_row


def save(net: Any, folder: Path, end: int, pad: int) -> None:
    """Writes configuration and weights, with a generation configuration as chat models have it: drawn, penalised."""
    from transformers import GenerationConfig

    net.generation_config = GenerationConfig(
        eos_token_id=[end], pad_token_id=pad, do_sample=True, temperature=0.7, top_p=0.5, repetition_penalty=1.3
    )
    silently(lambda: net.save_pretrained(folder))


def silently(call: Callable[[], Any]) -> Any:
    """Without transformers' progress bars."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return call()
    finally:
        logging.enable_progress_bar()


def text_config(vocabulary: int, *, layers: int = 2, width: int = 32, **more: Any) -> dict[str, Any]:
    """The configuration of a small language model."""
    return {
        "vocab_size": vocabulary, "hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096, **more,
    }  # fmt: skip


def finish(
    net: Any, folder: Path, ids: dict[str, int], end: str, pad: str, *, seed: int, ends: float, head: Any
) -> None:
    """Gives a network lively weights, and writes it."""
    enliven(net, [head], ids[end], seed=seed, ends=ends)
    save(net, folder, ids[end], ids[pad])


def write_qwen2_audio(
    folder: Path, *, seed: int = 2, ends: float = 1.3, layers: int = 2, width: int = 32, words: Sequence[str] = ()
) -> None:
    """Qwen2-Audio: a Whisper encoder with its mean over pairs of frames, and Qwen2. `words` are one token each."""
    from transformers import Qwen2AudioConfig, Qwen2AudioForConditionalGeneration, WhisperFeatureExtractor

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>", *words]
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>")
    WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "Qwen2AudioProcessor"}))
    config = Qwen2AudioConfig(
        audio_config={
            "num_mel_bins": 16, "d_model": width, "encoder_layers": 1, "encoder_attention_heads": 2,
            "encoder_ffn_dim": 2 * width, "max_source_positions": 1500,
        },
        text_config={"model_type": "qwen2", **text_config(ALPHABET + len(special), layers=layers, width=width)},
        audio_token_index=ids["<|AUDIO|>"],
    )  # fmt: skip
    net = Qwen2AudioForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())


def write_auto_att(folder: Path, *, words: Sequence[str] = ("Good", "Fair", "Bad"), seed: int = 2) -> str:
    """A Qwen2-Audio that finds each of the words likelier or less likely by what it hears; gives the folder."""
    import torch
    from transformers import Qwen2AudioForConditionalGeneration

    write_qwen2_audio(folder, seed=seed, words=words)
    net = silently(lambda: Qwen2AudioForConditionalGeneration.from_pretrained(folder))
    with torch.no_grad():
        text = net.lm_head.weight[len(net.lm_head.weight) - len(words) :]
        text.copy_(0.2 * torch.randn(text.shape, generator=torch.Generator().manual_seed(seed)))
    silently(lambda: net.save_pretrained(folder))
    return str(folder)


def write_granite_speech(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Granite-Speech without its LoRA: a conformer over blocks of frames, a Q-Former, and Granite."""
    from transformers import (
        GraniteSpeechConfig,
        GraniteSpeechFeatureExtractor,
        GraniteSpeechForConditionalGeneration,
        GraniteSpeechProcessor,
        PreTrainedTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|end_of_text|>", "<|pad|>", "<|audio|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    ids = write_tokenizer(folder, special, end="<|end_of_text|>", pad="<|pad|>", template=STRINGS)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    GraniteSpeechProcessor(GraniteSpeechFeatureExtractor(), tokenizer, chat_template=STRINGS).save_pretrained(folder)
    config = GraniteSpeechConfig(
        text_config={"model_type": "granite", **text_config(ALPHABET + len(special))},
        encoder_config={
            "num_layers": 2, "hidden_dim": 32, "num_heads": 2, "dim_head": 16, "output_dim": 12, "context_size": 20,
            "max_pos_emb": 40, "feedforward_mult": 2,
        },
        projector_config={
            "model_type": "blip_2_qformer", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "encoder_hidden_size": 32, "cross_attention_frequency": 1,
        },
        audio_token_index=ids["<|audio|>"], has_lora_adapter=False, tie_word_embeddings=False,
    )  # fmt: skip
    net = GraniteSpeechForConditionalGeneration(config)
    finish(net, folder, ids, "<|end_of_text|>", "<|pad|>", seed=seed, ends=ends, head=net.lm_head)


def write_phi4_multimodal(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Phi-4-multimodal without its LoRA: a conformer with relative positions, and Phi-4-mini."""
    from transformers import Phi4MultimodalConfig, Phi4MultimodalFeatureExtractor, Phi4MultimodalForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|image|>", "<|audio|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    names = {"image_token": "<|image|>", "audio_token": "<|audio|>"}
    ids = write_tokenizer(folder, special, end="<|end|>", pad="<|endoftext|>", template=STRINGS, names=names)
    Phi4MultimodalFeatureExtractor().save_pretrained(folder)
    config = Phi4MultimodalConfig(
        **text_config(ALPHABET + len(special)),
        pad_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|end|>"], bos_token_id=ids["<|endoftext|>"],
        vision_config={
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 28, "crop_size": 28, "image_token_id": ids["<|image|>"],
        },
        audio_config={
            "hidden_size": 32, "intermediate_size": 48, "num_blocks": 2, "num_attention_heads": 2,
            "ext_pw_out_channel": 32, "depthwise_separable_out_channel": 32, "nemo_conv_channels": 16,
            "bias_max_distance": 50, "audio_token_id": ids["<|audio|>"],
        },
    )  # fmt: skip
    net = Phi4MultimodalForCausalLM(config)
    finish(net, folder, ids, "<|end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.lm_head)


OMNI = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|IMAGE|>",
    "<|VIDEO|>",
    "<|vision_bos|>", "<|vision_eos|>",
)  # fmt: skip
OMNI_NAMES = {
    "image_token": "<|IMAGE|>", "audio_token": "<|AUDIO|>", "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>", "audio_bos_token": "<|audio_bos|>", "audio_eos_token": "<|audio_eos|>",
}  # fmt: skip


def _omni_parts(folder: Path) -> dict[str, int]:
    from transformers import WhisperFeatureExtractor

    folder.mkdir(parents=True, exist_ok=True)
    template = CHATML.replace("SOUND", "<|audio_bos|><|AUDIO|><|audio_eos|>")
    ids = write_tokenizer(folder, OMNI, end="<|im_end|>", pad="<|endoftext|>", template=template, names=OMNI_NAMES)
    WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    return ids


def write_qwen25_omni(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Qwen2.5-Omni with its talker, which a thinker alone leaves in the file."""
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration

    ids = _omni_parts(folder)
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10_000.0}
    text = text_config(ALPHABET + len(OMNI), rope_parameters=rope, tie_word_embeddings=False)
    vision = {
        "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
        "fullatt_block_indexes": [0],
    }  # fmt: skip
    audio = {
        "num_mel_bins": 16, "d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 64,
        "output_dim": 32, "n_window": 100,
    }  # fmt: skip
    tokens = {
        "audio_token_index": ids["<|AUDIO|>"], "image_token_index": ids["<|IMAGE|>"],
        "video_token_index": ids["<|VIDEO|>"],
        "audio_start_token_id": ids["<|audio_bos|>"], "audio_end_token_id": ids["<|audio_eos|>"],
        "vision_start_token_id": ids["<|vision_bos|>"],
    }  # fmt: skip
    config = Qwen2_5OmniConfig(
        thinker_config={"text_config": text, "audio_config": audio, "vision_config": vision, **tokens},
        talker_config={
            **text_config(64, rope_parameters=rope), "head_dim": 8, "embedding_size": 32, **tokens,
            "tts_text_start_token_id": 1, "tts_text_end_token_id": 2, "tts_text_pad_token_id": 3,
            "tts_codec_start_token_id": 60, "tts_codec_end_token_id": 61, "tts_codec_pad_token_id": 62,
            "tts_codec_mask_token_id": 63,
        },
        token2wav_config={
            "dit_config": {
                "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16, "emb_dim": 16,
                "num_embeds": 65, "mel_dim": 8, "enc_emb_dim": 8, "enc_dim": 8, "enc_channels": [8, 8, 8, 8, 24],
                "enc_attention_channels": 4, "enc_se_channels": 4, "look_ahead_layers": [0],
                "look_backward_layers": [0],
            },
            "bigvgan_config": {"mel_dim": 8, "upsample_initial_channel": 64},
        },
    )  # fmt: skip
    net = Qwen2_5OmniForConditionalGeneration(config)
    _finish_omni(net, folder, ids, seed, ends)


def write_qwen3_omni(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Qwen3-Omni, a mixture of experts, without its talker."""
    from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

    ids = _omni_parts(folder)
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10_000.0, "mrope_interleaved": True}
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 8}
    config = Qwen3OmniMoeConfig(
        thinker_config={
            "text_config": text_config(ALPHABET + len(OMNI), rope_parameters=rope, **experts),
            "audio_config": {
                "num_mel_bins": 16, "d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2,
                "encoder_ffn_dim": 64, "output_dim": 32, "n_window": 50, "n_window_infer": 200,
                "downsample_hidden_size": 8,
            },
            "vision_config": {
                "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
                "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
            },
            "audio_token_id": ids["<|AUDIO|>"], "image_token_id": ids["<|IMAGE|>"], "video_token_id": ids["<|VIDEO|>"],
            "audio_start_token_id": ids["<|audio_bos|>"], "vision_start_token_id": ids["<|vision_bos|>"],
        },
        enable_audio_output=False,
    )  # fmt: skip
    net = Qwen3OmniMoeForConditionalGeneration(config)
    _finish_omni(net, folder, ids, seed, ends)


def _finish_omni(net: Any, folder: Path, ids: dict[str, int], seed: int, ends: float) -> None:
    from transformers import GenerationConfig

    net.thinker.generation_config = GenerationConfig(
        eos_token_id=[ids["<|im_end|>"]], pad_token_id=ids["<|endoftext|>"]
    )
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.thinker.lm_head)


def write_voxtral(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Voxtral's network. Its tokenizer is mistral-common's: tests bring `SpokenTokens` in its place."""
    from transformers import VoxtralConfig, VoxtralForConditionalGeneration, WhisperFeatureExtractor

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, ["<s>", "</s>", "<pad>", "[INST]", "[/INST]"], end="</s>", pad="<pad>")
    WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    config = VoxtralConfig(
        audio_config={
            "num_mel_bins": 16, "hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
        text_config={"model_type": "llama", "head_dim": 8, **text_config(ALPHABET + len(ids))},
        audio_token_id=24,
    )  # fmt: skip
    net = VoxtralForConditionalGeneration(config)
    finish(net, folder, ids, "</s>", "<pad>", seed=seed, ends=ends, head=net.get_output_embeddings())


def voxtral_processor(folder: Path) -> Any:
    """Voxtral's processor over a tokenizer that lays a conversation out as mistral-common does.

    A user's turn is `[INST]`, 375 times token 24 for every 30 s of a sound begun, text, `[/INST]`.
    """
    import base64
    import io

    import numpy as np
    import soundfile
    from transformers import BatchEncoding, PreTrainedTokenizerFast, VoxtralProcessor, WhisperFeatureExtractor

    class Spoken(PreTrainedTokenizerFast):
        def apply_chat_template(self, conversations, **_):
            (turns,) = conversations
            tokens, sounds = [self.convert_tokens_to_ids("<s>")], []
            for turn in turns:
                assert turn["role"] in ("user", "assistant")  # mistral-common refuses any other
                tokens.append(self.convert_tokens_to_ids("[INST]"))
                for item in turn["content"]:
                    if item["type"] == "audio":
                        samples, rate = soundfile.read(io.BytesIO(base64.b64decode(item["base64"])), dtype="float32")
                        assert rate == 16_000
                        sounds.append(samples)
                        tokens += [24] * (375 * int(np.ceil(len(samples) / 480_000)))
                    else:
                        tokens += self.encode(item["text"], add_special_tokens=False)
                tokens.append(self.convert_tokens_to_ids("[/INST]"))
            by_name = {"input_ids": [tokens], "attention_mask": [[1] * len(tokens)]}
            return BatchEncoding({**by_name, "audio": sounds} if sounds else by_name)

    return VoxtralProcessor(WhisperFeatureExtractor.from_pretrained(folder), Spoken.from_pretrained(folder))


def write_llama(folder: Path, *, seed: int = 2, ends: float = 1.3) -> None:
    """Llama: text only."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    ids = write_tokenizer(folder, special, end="<|end|>", pad="<|endoftext|>", template=STRINGS)
    net = LlamaForCausalLM(LlamaConfig(**text_config(ALPHABET + len(special)), tie_word_embeddings=False))
    finish(net, folder, ids, "<|end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.lm_head)


WRITERS: dict[str, Callable[..., None]] = {
    "granite_speech": write_granite_speech,
    "phi4_multimodal": write_phi4_multimodal,
    "qwen2_5_omni": write_qwen25_omni,
    "qwen2_audio": write_qwen2_audio,
    "qwen3_omni_moe": write_qwen3_omni,
    "voxtral": write_voxtral,
}
