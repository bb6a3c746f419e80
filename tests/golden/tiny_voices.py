"""Small models that read texts aloud, with seeded weights, in the layout of the published checkpoints: CSM, Dia, Pocket
TTS, Gradium Phonon, Higgs Audio v2 and VibeVoice. They end by themselves now and then.

The templates write what those of the published checkpoints write.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tiny_audio_models import silently, text_config, write_tokenizer

RATE_HZ = 24_000
CSM_TEMPLATE = (
    "{%- for message in messages %}{{ bos_token }}{{ '[' + message['role'] + ']' }}{{ message['content'][0]['text'] }}"
    "{{ eos_token }}{% if message['content']|length > 1 %}<|AUDIO|><|audio_eos|>{% endif %}{%- endfor %}"
)
POCKET_TEMPLATE = (
    "{%- for part in messages[0]['content'] %}{% if part['type'] == 'audio' %}VOICE{% endif %}{%- endfor %}"
    "{%- for part in messages[0]['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{%- endfor %}"
    "<|audio_bos|>"
)


def lively(net: Any, seed: int, gain: float = 1.0) -> Any:
    """Weights as large as their fan-in asks for."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if weight.ndim >= 2:
                scale = 1.0 if "embed_" in name else gain * max(weight[0].numel(), 1) ** -0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
        for name, value in net.named_buffers():  # the vectors of codebooks, which a new network has as zeros
            if value.ndim == 2 and "embed" in name.rpartition(".")[2]:
                value.copy_(torch.randn(value.shape, generator=generator))
    return net.eval()


def _saved(item: Any, folder: Path) -> None:
    silently(lambda: item.save_pretrained(folder))


def _tokens(folder: Path, special: Sequence[str], template: str | None, **names: str) -> dict[str, int]:
    from transformers import AutoTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, special, end=special[1], pad=special[1], template=template, names=names)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.bos_token = special[0]
    _saved(tokenizer, folder)
    return ids


def write_csm(folder: Path, *, seed: int = 1) -> None:
    """CSM: a backbone, a decoder of the depth, and Mimi."""
    from transformers import CsmConfig, CsmForConditionalGeneration, CsmProcessor, EncodecFeatureExtractor

    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|AUDIO|>", "<|audio_eos|>"]
    ids = _tokens(folder, special, CSM_TEMPLATE)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    books = {"num_codebooks": 4, "vocab_size": 32}
    config = CsmConfig(
        **size, **books, num_hidden_layers=2, text_vocab_size=len(ids) + 256, head_dim=8, max_position_embeddings=256,
        codebook_pad_token_id=31, codebook_eos_token_id=0, audio_token_id=ids["<|AUDIO|>"],
        audio_eos_token_id=ids["<|audio_eos|>"], bos_token_id=ids["<|begin_of_text|>"], pad_token_id=ids["<|AUDIO|>"],
        depth_decoder_config={**size, **books, "num_hidden_layers": 1, "backbone_hidden_size": 32, "head_dim": 8,
            "max_position_embeddings": 5},
        codec_config={
            "model_type": "mimi", "hidden_size": 32, "num_filters": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32, "codebook_size": 32, "codebook_dim": 16,
            "num_quantizers": 4, "upsample_groups": 32, "vector_quantization_hidden_dimension": 16,
            "sliding_window": 16,
        },
    )  # fmt: skip
    torch.manual_seed(seed)
    net = lively(CsmForConditionalGeneration(config), seed)
    # A frame of zeros ends; random heads would hardly ever agree on one.
    with torch.no_grad():
        net.lm_head.weight[0] *= 3.0
        net.depth_decoder.codebooks_head.weight[:, :, 0] *= 3.0
    actual = net.generation_config
    actual.do_sample, actual.temperature, actual.top_k, actual.max_new_tokens = True, 0.9, 50, 125
    depth = net.depth_decoder.generation_config
    depth.do_sample, depth.temperature, depth.top_k = True, 0.9, 50
    _saved(net, folder)
    from transformers import AutoTokenizer

    extractor = EncodecFeatureExtractor(sampling_rate=RATE_HZ)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _saved(CsmProcessor(extractor, tokenizer, chat_template=CSM_TEMPLATE), folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "csm"


def write_dia(folder: Path, *, seed: int = 2) -> None:
    """Dia: an encoder of bytes, a decoder of delayed codes, and DAC in a folder of its own."""
    from transformers import (
        DacConfig,
        DacModel,
        DiaConfig,
        DiaFeatureExtractor,
        DiaForConditionalGeneration,
        DiaProcessor,
        DiaTokenizer,
    )

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    codec = DacModel(
        DacConfig(
            encoder_hidden_size=4, downsampling_ratios=[2, 4, 8, 8], decoder_hidden_size=32, n_codebooks=9,
            codebook_size=1024,
            codebook_dim=4, sampling_rate=44_100, hidden_size=64,
        )
    )  # fmt: skip
    lively(codec, seed)
    _saved(codec, folder / "codec")
    size = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 16,
    }
    config = DiaConfig(
        encoder_config={**size, "num_key_value_heads": 2, "max_position_embeddings": 64},
        decoder_config={
            **size, "num_key_value_heads": 1, "cross_num_attention_heads": 2, "cross_head_dim": 16,
            "cross_num_key_value_heads": 2,
            "cross_hidden_size": 32, "max_position_embeddings": 512,
        },
    )  # fmt: skip
    torch.manual_seed(seed)
    net = lively(DiaForConditionalGeneration(config), seed)
    with torch.no_grad():
        heads = net.logits_dense.weight.view(9, 1028, -1)
        heads[:, 1025:] = 0.0
        heads[0, 1024] *= 3.0
    actual = net.generation_config
    actual.do_sample, actual.temperature, actual.top_p, actual.top_k, actual.guidance_scale, actual.max_length = (
        True,
        1.8,
        0.9,
        45,
        3.0,
        512,
    )
    actual.bos_token_id, actual.eos_token_id, actual.pad_token_id = 1026, 1024, 1025
    _saved(net, folder)
    processor = DiaProcessor(DiaFeatureExtractor(sampling_rate=44_100, hop_length=512), DiaTokenizer(), codec)
    _saved(processor, folder)
    _codec_named(folder, "DacModel")


def _codec_named(folder: Path, kind: str) -> None:
    file = folder / "processor_config.json"
    details = json.loads(file.read_text())
    details["audio_tokenizer"] = {"audio_tokenizer_class": kind, "audio_tokenizer_name_or_path": "codec"}
    file.write_text(json.dumps(details))


POCKET_SPECIAL = ("<s>", "</s>", "<|prompt_bos|>", "<|audio_prompt|>", "<|audio_latent|>", "<|audio_bos|>")
"""Of Phonon's tokens the third is missing: its voices have no beginning of their own."""


def _write_pocket(folder: Path, kind: str, special: Sequence[str], template: str, seed: int, **more: Any) -> None:
    import transformers

    names = {
        "audio_prompt_bos_token": special[2], "audio_prompt_token": special[-3], "audio_latent_token": special[-2],
        "audio_bos_token": special[-1],
    }  # fmt: skip
    if len(special) == 5:
        del names["audio_prompt_bos_token"]
    ids = _tokens(folder, special, template, **names)
    torch.manual_seed(seed)
    codec = transformers.PocketTTSAudioTokenizerModel(
        transformers.PocketTTSAudioTokenizerConfig(
            hidden_size=32, num_filters=4, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            intermediate_size=32,
            upsample_groups=32, latent_dim=8, sliding_window=16,
        )
    )  # fmt: skip
    _saved(lively(codec, seed), folder / "codec")
    tokens = {f"{name}_id": ids[token] for name, token in names.items()}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(ids) + 256, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        latent_dim=8,
        max_position_embeddings=512, pad_token_id=ids["</s>"],
        flow_head_config={"hidden_size": 16, "num_hidden_layers": 1, "latent_dim": 8, "condition_dim": 32,
            "frequency_embedding_size": 8},
        **tokens, **more,
    )  # fmt: skip
    torch.manual_seed(seed)
    net = lively(getattr(transformers, f"{kind}ForConditionalGeneration")(config), seed)
    actual = net.generation_config
    (
        actual.do_sample,
        actual.temperature,
        actual.num_flow_steps,
        actual.eos_threshold,
        actual.return_dict_in_generate,
    ) = (
        True,
        0.7,
        1,
        1.5,
        True,
    )
    _saved(net, folder)
    extractor = transformers.PocketTTSFeatureExtractor()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    _saved(transformers.PocketTTSProcessor(extractor, tokenizer, codec, chat_template=template), folder)
    _codec_named(folder, "PocketTTSAudioTokenizerModel")


def write_pocket_tts(folder: Path, *, seed: int = 3) -> None:
    """Pocket TTS: a backbone with a flow head, and its codec in a folder of its own."""
    template = POCKET_TEMPLATE.replace("VOICE", "<|prompt_bos|><|audio_prompt|>")
    _write_pocket(folder, "PocketTTS", POCKET_SPECIAL, template, seed)


def write_gradium_phonon_tts(folder: Path, *, seed: int = 4) -> None:
    """Gradium Phonon: as Pocket TTS, with the voice `ida` in the folder `voices`."""
    from safetensors.torch import save_file

    special = [token for token in POCKET_SPECIAL if token != "<|prompt_bos|>"]
    _write_pocket(
        folder,
        "GradiumPhononTTS",
        special,
        POCKET_TEMPLATE.replace("VOICE", "<|audio_prompt|>"),
        seed,
        audio_prompt_dim=12,
    )
    (folder / "voices").mkdir()
    voice = torch.randn(1, 12, 9, generator=torch.Generator().manual_seed(seed))
    save_file({"speaker_wavs": voice}, folder / "voices" / "ida.safetensors")


HIGGS_TEMPLATE = (
    "{{ bos_token }}{%- for message in messages %}<|{{ message['role'] }}|>{% if message['content'][0]['type'] == "
    "'audio' %}"
    "<|audio_out_bos|><|AUDIO_OUT|><|audio_eos|>{% else %}{{ message['content'][0]['text'] }}{% endif %}<|eot_id|>{%- "
    "endfor %}"
    "{% if add_generation_prompt %}<|assistant|><|audio_out_bos|>{% endif %}"
)


def write_higgs_audio_v2(folder: Path, *, seed: int = 5) -> None:
    """Higgs Audio v2: a language model with two feed-forward networks, and its codec in a folder of its own."""
    from transformers import (
        AutoTokenizer,
        DacFeatureExtractor,
        HiggsAudioV2Config,
        HiggsAudioV2ForConditionalGeneration,
        HiggsAudioV2Processor,
        HiggsAudioV2TokenizerConfig,
        HiggsAudioV2TokenizerModel,
    )

    special = [
        "<|begin_of_text|>", "<|eot_id|>", "<|AUDIO_OUT|>", "<|audio_out_bos|>", "<|audio_eos|>",
        "<|reserved_special_token_6|>",
    ]  # fmt: skip
    ids = _tokens(folder, special, HIGGS_TEMPLATE)
    torch.manual_seed(seed)
    codec = HiggsAudioV2TokenizerModel(
        HiggsAudioV2TokenizerConfig(
            target_bandwidths=[1], codebook_dim=8,
            acoustic_model_config={
                "encoder_hidden_size": 4, "decoder_hidden_size": 32, "hidden_size": 16,
                "downsampling_ratios": [8, 5, 4, 2, 3],
                "upsampling_ratios": [8, 5, 4, 2, 3],
            },
            semantic_model_config={
                "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
                "conv_dim": [8] * 7,
                "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
            },
        )
    )  # fmt: skip
    _saved(lively(codec, seed), folder / "codec")
    config = HiggsAudioV2Config(
        vocab_size=len(ids) + 256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=512, num_codebooks=codec.config.num_quantizers,
        codebook_size=1026,
        pad_token_id=ids["<|eot_id|>"], bos_token_id=ids["<|begin_of_text|>"], eos_token_id=ids["<|eot_id|>"],
        audio_token_id=ids["<|AUDIO_OUT|>"], audio_bos_token_id=ids["<|audio_out_bos|>"],
        audio_delay_token_id=ids["<|reserved_special_token_6|>"],
    )  # fmt: skip
    net = lively(HiggsAudioV2ForConditionalGeneration(config), seed)
    actual = net.generation_config
    actual.do_sample, actual.temperature, actual.top_p, actual.top_k = True, 1.0, 0.95, 50
    actual.ras_win_len, actual.ras_win_max_num_repeat = 7, 2
    _saved(net, folder)
    extractor = DacFeatureExtractor(
        feature_size=1,
        hop_length=1,
        padding_side="right",
        padding_value=0.0,
        sampling_rate=RATE_HZ,
        return_attention_mask=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _saved(HiggsAudioV2Processor(extractor, tokenizer, codec, chat_template=HIGGS_TEMPLATE), folder)
    _codec_named(folder, "HiggsAudioV2TokenizerModel")


VIBE_TEMPLATE = (
    "Read.\n{%- for part in messages[0]['content'] %}{% if part['type'] == 'audio' %} Voice input:\n"
    " Speaker {{ messages[0]['role'] }}:"
    "<|vision_start|><|vision_pad|><|vision_end|>\n{% endif %}{%- endfor %} Text input:\n"
    "{%- for part in messages[0]['content'] %}{% if part['type'] == 'text' %} Speaker {{ messages[0]['role'] }}: {{ "
    "part['text'] }}\n"
    "{% endif %}{%- endfor %} Speech output:\n<|vision_start|>"
)


def write_vibevoice(folder: Path, *, seed: int = 6) -> None:
    """VibeVoice: a language model, a head that takes the noise away, and two networks of waveforms with frames of 3200
    samples.
    """
    from transformers import (
        AutoTokenizer,
        VibeVoiceAcousticTokenizerFeatureExtractor,
        VibeVoiceConfig,
        VibeVoiceForConditionalGeneration,
        VibeVoiceProcessor,
    )

    special = ["<|endoftext|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"]
    ids = _tokens(folder, special, VIBE_TEMPLATE)
    waves = {"num_filters": 2, "depths": [1, 1, 1, 1, 1, 1, 1]}
    config = VibeVoiceConfig(
        text_config={"model_type": "qwen2", **text_config(len(ids) + 256), "max_position_embeddings": 512,
            "tie_word_embeddings": False},
        audio_config={"model_type": "vibevoice_acoustic_tokenizer", **waves, "hidden_size": 8},
        semantic_model_config={"model_type": "vibevoice_acoustic_tokenizer_encoder", **waves, "hidden_size": 16},
        diffusion_head_config={"num_hidden_layers": 1, "intermediate_size": 32, "frequency_embedding_size": 8},
        pad_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|endoftext|>"],
        audio_bos_token_id=ids["<|vision_start|>"],
        audio_eos_token_id=ids["<|vision_end|>"], audio_token_id=ids["<|vision_pad|>"],
    )  # fmt: skip
    torch.manual_seed(seed)
    net = lively(VibeVoiceForConditionalGeneration(config), seed)
    with torch.no_grad():  # one direction that all inputs have, and that says to go on; the end wins now and then
        net.get_input_embeddings().weight[:, 0] = 4.0
        net.model.multi_modal_projector.linear_2.bias[0] = 4.0
        for token in ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"):
            net.lm_head.weight[ids[token]] = 0.0
        net.lm_head.weight[ids["<|vision_pad|>"], 0] = 2.0
        net.lm_head.weight[ids["<|endoftext|>"]] *= 3.0
    actual = net.generation_config
    actual.do_sample, actual.guidance_scale, actual.max_new_tokens = False, 1.3, 40_500
    actual.noise_scheduler_class = "DPMSolverMultistepScheduler"
    actual.noise_scheduler_config = {"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"}
    _saved(net, folder)
    extractor = VibeVoiceAcousticTokenizerFeatureExtractor()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _saved(VibeVoiceProcessor(extractor, tokenizer, chat_template=VIBE_TEMPLATE), folder)


WRITERS = {
    "csm": write_csm,
    "dia": write_dia,
    "gradium_phonon_tts": write_gradium_phonon_tts,
    "higgs_audio_v2": write_higgs_audio_v2,
    "pocket_tts": write_pocket_tts,
    "vibevoice": write_vibevoice,
}
