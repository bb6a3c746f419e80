"""Small Parakeets, Canaries, Qwen3-ASRs and recognisers of `transformers_asr.py` with seeded weights, in the layout of
the published checkpoints, that hear different things.
"""

from __future__ import annotations

import base64
import json

import torch
from tiny_audio_models import ALPHABET, CHATML, enliven, finish, save, silently, text_config, write_tokenizer

PIECES = ["<unk>", "▁", *(f"{space}{letter}" for letter in "etaonihsrdlumwcfgypbvk" for space in ("▁", ""))]
ENCODER = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "num_mel_bins": 16,
    "subsampling_conv_channels": 8, "conv_kernel_size": 5, "scale_input": False,
}  # fmt: skip


def _tokens(folder, special):
    """A tokenizer of letters, and of special tokens after them."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import ParakeetTokenizer

    tokenizer = Tokenizer(models.WordLevel({segment: index for index, segment in enumerate(PIECES)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    ParakeetTokenizer(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>").save_pretrained(folder)
    return {token: tokenizer.token_to_id(token) for token in special}


def _enlivened(net, generator, head, quiet):
    """Weights as large as their fan-in asks for; statistics of batch norms that are not those of a new network."""
    with torch.no_grad():
        for name, value in (*net.named_parameters(), *net.named_buffers()):
            if "running_var" in name:
                value.copy_(0.5 + torch.rand(value.shape, generator=generator))
            elif value.ndim >= 2:
                value.copy_(1.5 * value[0].numel() ** -0.5 * torch.randn(value.shape, generator=generator))
            elif "norm" not in name or "running_mean" in name:
                if value.is_floating_point():
                    value.copy_(0.1 * torch.randn(value.shape, generator=generator))
        head.weight.mul_(6)
        head.bias[quiet] += 2.0  # the blank wins often, as in a trained network
    return net.eval()


def write_parakeet(folder, kind, *, seed=3, **changes):
    """A Parakeet of the kind `ctc` or `tdt`."""
    from transformers import (
        ParakeetCTCConfig,
        ParakeetFeatureExtractor,
        ParakeetForCTC,
        ParakeetForTDT,
        ParakeetTDTConfig,
    )

    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    ParakeetFeatureExtractor(feature_size=ENCODER["num_mel_bins"]).save_pretrained(folder)
    encoder = {**ENCODER, **changes}
    if kind == "ctc":
        ids = _tokens(folder, ["<pad>"])
        config = ParakeetCTCConfig(vocab_size=len(PIECES) + 1, pad_token_id=ids["<pad>"], encoder_config=encoder)
        net = ParakeetForCTC(config)
        _enlivened(net, generator, net.ctc_head, ids["<pad>"])
    else:
        ids = _tokens(folder, ["<pad>", "<blank>"])
        config = ParakeetTDTConfig(
            vocab_size=len(PIECES) + 2, blank_token_id=ids["<blank>"], pad_token_id=ids["<pad>"],
            encoder_config=encoder,
            decoder_hidden_size=24, decoder_start_token_id=ids["<blank>"],
        )  # fmt: skip
        net = ParakeetForTDT(config)
        _enlivened(net, generator, net.joint.head, ids["<blank>"])
        with torch.no_grad():  # no network writes its padding
            net.joint.head.weight[ids["<pad>"]] = 0.0
            net.joint.head.bias[ids["<pad>"]] = -10.0
    net.save_pretrained(folder)
    return folder


DETAILS = (
    "<|startofcontext|><|startoftranscript|>{{ messages[0]['content'][1]['source_language'] | string }}"
    "{{ messages[0]['content'][1]['target_language'] | string }}<|pnc|>"
)


def write_canary(folder, *, seed=5, ends=1.3):
    """A Canary. Its prompt has languages as letters, two each."""
    from transformers import CanaryConfig, CanaryForConditionalGeneration, ParakeetFeatureExtractor

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<pad>", "<|endoftext|>", "<|startofcontext|>", "<|startoftranscript|>", "<|pnc|>"]
    ids = write_tokenizer(folder, special, end="<|endoftext|>", pad="<pad>", template=DETAILS)
    ParakeetFeatureExtractor(feature_size=ENCODER["num_mel_bins"]).save_pretrained(folder)
    tokens = {
        "pad_token_id": ids["<pad>"],
        "eos_token_id": ids["<|endoftext|>"],
        "bos_token_id": ids["<|startofcontext|>"],
    }
    size = ALPHABET + len(special)
    config = CanaryConfig(
        vocab_size=size, encoder_config={"model_type": "parakeet_encoder", **ENCODER}, **tokens,
        decoder_start_token_id=ids["<|startofcontext|>"], tie_word_embeddings=False,
        decoder_config={
            "vocab_size": size, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4, "head_dim": 8, **tokens,
        },
    )  # fmt: skip
    net = CanaryForConditionalGeneration(config)
    finish(net, folder, ids, "<|endoftext|>", "<pad>", seed=seed, ends=ends, head=net.get_output_embeddings())
    return folder


def write_qwen3_asr(folder, *, seed=4, ends=1.3):
    """A Qwen3-ASR."""
    from transformers import Qwen3ASRConfig, Qwen3ASRFeatureExtractor, Qwen3ASRForConditionalGeneration

    folder.mkdir(parents=True, exist_ok=True)
    special = [
        "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_start|>", "<|audio_pad|>", "<|audio_end|>",
        "<asr_text>",
    ]  # fmt: skip
    names = {
        "audio_bos_token": "<|audio_start|>", "audio_token": "<|audio_pad|>", "audio_eos_token": "<|audio_end|>",
    }  # fmt: skip
    template = CHATML.replace("SOUND", "<|audio_start|><|audio_pad|><|audio_end|>")
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>", template=template, names=names)
    Qwen3ASRFeatureExtractor(feature_size=16).save_pretrained(folder)
    config = Qwen3ASRConfig(
        audio_config={
            "num_mel_bins": 16, "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64,
            "downsample_hidden_size": 8, "output_dim": 32, "n_window": 50, "n_window_infer": 800,
        },
        text_config={"model_type": "qwen3", **text_config(ALPHABET + len(special)), "head_dim": 8},
        audio_token_id=ids["<|audio_pad|>"], pad_token_id=ids["<|endoftext|>"], eos_token_id=[ids["<|im_end|>"]],
        tie_word_embeddings=False,
    )  # fmt: skip
    net = Qwen3ASRForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())
    settings = json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
    (folder / "processor_config.json").write_text(json.dumps({"feature_extractor": settings}), "utf-8")
    return folder


COHERE = [
    "<unk>", "<pad>", "<|endoftext|>", "▁", "<|startofcontext|>", "<|startoftranscript|>", "<|emo:undefined|>",
    "<|pnc|>",
    "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>", *(f"<|{code}|>" for code in ("en", "de", "fr", "it", "zh")),
]  # fmt: skip


def write_cohere_asr(folder, *, seed=5, ends=1.3):
    """A Cohere Transcribe: Parakeet's encoder, and a decoder whose prompt has one of five languages."""
    from transformers import (
        CohereAsrConfig,
        CohereAsrFeatureExtractor,
        CohereAsrForConditionalGeneration,
        CohereAsrProcessor,
        PreTrainedTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, COHERE, end="<|endoftext|>", pad="<pad>")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    CohereAsrProcessor(CohereAsrFeatureExtractor(feature_size=16), tokenizer).save_pretrained(folder)
    config = CohereAsrConfig(
        vocab_size=ALPHABET + len(COHERE), encoder_config={"model_type": "parakeet_encoder", **ENCODER}, hidden_size=32,
        intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, pad_token_id=ids["<pad>"],
        eos_token_id=ids["<|endoftext|>"], bos_token_id=ids["<|startoftranscript|>"],
        decoder_start_token_id=ids["▁"],
    )  # fmt: skip
    net = CohereAsrForConditionalGeneration(config)
    finish(net, folder, ids, "<|endoftext|>", "<pad>", seed=seed, ends=ends, head=net.get_output_embeddings())
    settings = json.loads((folder / "generation_config.json").read_text("utf-8"))
    settings["decoder_start_token_id"] = ids["▁"]
    (folder / "generation_config.json").write_text(json.dumps(settings), "utf-8")
    return folder


LANGUAGE_AND_SOUND = (
    "{% for part in messages[0]['content'] %}{% if part['type'] == 'language' %}{{ part['language'] }}{% elif "
    "part['type'] == 'audio' %}"
    "<|object_ref_start|>{% endif %}{% endfor %}<|im_end|>"
)


def write_fun_asr_nano(folder, *, seed=4, ends=1.3):
    """A Fun-ASR-Nano: SenseVoice's encoder, an adaptor, and Qwen3."""
    from transformers import (
        FunAsrNanoConfig,
        FunAsrNanoFeatureExtractor,
        FunAsrNanoForConditionalGeneration,
        FunAsrNanoProcessor,
        PreTrainedTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"]
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>", template=LANGUAGE_AND_SOUND)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    front = FunAsrNanoFeatureExtractor(feature_size=16)
    FunAsrNanoProcessor(front, tokenizer, chat_template=LANGUAGE_AND_SOUND).save_pretrained(folder)
    config = FunAsrNanoConfig(
        audio_config={
            "model_type": "fun_asr_nano_encoder", "num_mel_bins": 16, "hidden_size": 32, "num_attention_heads": 2,
            "intermediate_size": 64, "num_hidden_layers": 3, "num_timestamp_prediction_layers": 1,
            "fsmn_kernel_size": 5,
        },
        adaptor_config={
            "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 1,
            "projector_hidden_size": 48,
        },
        text_config={"model_type": "qwen3", **text_config(ALPHABET + len(special)), "head_dim": 8,
            "tie_word_embeddings": False},
        audio_token_id=ids["<|object_ref_start|>"], tie_word_embeddings=False,
    )  # fmt: skip
    net = FunAsrNanoForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())
    return folder


def write_granite_speech5(folder, *, seed=4):
    """A Granite Speech 5.0 with two layers that halve the frames, whose attention is cut into short blocks."""
    from transformers import (
        GraniteSpeech5CTCConfig,
        GraniteSpeech5FeatureExtractor,
        GraniteSpeech5ForCTC,
        GraniteSpeech5Processor,
        ParakeetTokenizer,
    )

    folder.mkdir(parents=True, exist_ok=True)
    ids = _tokens(folder, ["<pad>"])
    tokenizer = ParakeetTokenizer.from_pretrained(folder)
    GraniteSpeech5Processor(GraniteSpeech5FeatureExtractor(num_mel_bins=16), tokenizer).save_pretrained(folder)
    size = len(PIECES) + 1
    encoder = {
        "vocab_size": size, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_mel_bins": 16, "context_size": 8, "max_position_embeddings": 16, "conv_kernel_size": 5,
    }  # fmt: skip
    config = GraniteSpeech5CTCConfig(vocab_size=size, pad_token_id=ids["<pad>"], encoder_config=encoder)
    net = GraniteSpeech5ForCTC(config)
    _enlivened(net, torch.Generator().manual_seed(seed), net.ctc_head, ids["<pad>"])
    with torch.no_grad():
        net.encoder.input_linear.weight.mul_(8)  # else all sounds are alike to it
    net.save_pretrained(folder)
    return folder


def _write_nemotron(folder, words, net_of, *, seed):
    """A recogniser of the Nemotrons:

    FastConformer that looks ahead by blocks of frames, and a transducer. It is made by `net_of`.
    """
    from transformers import NemotronAsrStreamingFeatureExtractor

    folder.mkdir(parents=True, exist_ok=True)
    ids = _tokens(folder, ["<pad>", "<blank>", *words])
    front = NemotronAsrStreamingFeatureExtractor(feature_size=ENCODER["num_mel_bins"])
    encoder = {**ENCODER, "sliding_window": 9, "default_num_lookahead_tokens": 3}
    sizes = {
        "vocab_size": len(PIECES) + len(ids), "blank_token_id": ids["<blank>"], "pad_token_id": ids["<pad>"],
        "encoder_config": encoder, "decoder_hidden_size": 24, "decoder_start_token_id": ids["<blank>"],
    }  # fmt: skip
    processor, net = net_of(front, sizes)
    processor.save_pretrained(folder)
    _enlivened(net, torch.Generator().manual_seed(seed), net.joint.head, ids["<blank>"])
    with torch.no_grad():  # no network writes its padding
        net.joint.head.weight[ids["<pad>"]] = 0.0
        net.joint.head.bias[ids["<pad>"]] = -10.0
        net.joint.head.bias[ids["<blank>"]] += 7.0
        net.decoder.decoder_projector.weight.mul_(6)  # else it writes one letter for ever
    with torch.no_grad():  # else it writes one letter for ever
        net.joint.head.bias[ids["<blank>"]] += 7.0
        net.decoder.decoder_projector.weight.mul_(6)
    net.save_pretrained(folder)
    return folder


def write_nemotron_asr_streaming(folder, *, seed=3):
    """A Nemotron ASR of English."""
    from transformers import (
        NemotronAsrStreamingConfig,
        NemotronAsrStreamingForRNNT,
        NemotronAsrStreamingProcessor,
        ParakeetTokenizer,
    )

    def build(front, sizes):
        tokenizer = ParakeetTokenizer.from_pretrained(folder)
        processor = NemotronAsrStreamingProcessor(front, tokenizer, default_num_lookahead_tokens=3)
        return processor, NemotronAsrStreamingForRNNT(NemotronAsrStreamingConfig(**sizes))

    return _write_nemotron(folder, [], build, seed=seed)


def write_nemotron3_5_asr(folder, *, seed=4):
    """A Nemotron 3.5 ASR, which takes a language or `auto`, and writes a tag now and then."""
    from transformers import Nemotron3_5AsrConfig, Nemotron3_5AsrForRNNT, Nemotron3_5AsrProcessor, ParakeetTokenizer

    def build(front, sizes):
        tokenizer = ParakeetTokenizer.from_pretrained(folder)
        processor = Nemotron3_5AsrProcessor(front, tokenizer, default_num_lookahead_tokens=3)
        config = Nemotron3_5AsrConfig(**sizes, num_prompts=128, prompt_intermediate_size=48)
        return processor, Nemotron3_5AsrForRNNT(config)

    return _write_nemotron(folder, ["<en-US>"], build, seed=seed)


SOUND_ALONE = (
    "{% for part in messages[0]['content'] %}{% if part['type'] == 'audio' %}MARK{% endif %}{% endfor %}<|im_end|>"
)


def write_moss_transcribe_diarize(folder, *, seed=4, ends=1.3):
    """A MOSS-Transcribe-Diarize: Whisper's encoder, four frames as one, and Qwen3."""
    from transformers import (
        MossTranscribeDiarizeConfig,
        MossTranscribeDiarizeFeatureExtractor,
        MossTranscribeDiarizeForConditionalGeneration,
        MossTranscribeDiarizeProcessor,
        PreTrainedTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_start|>", "<|audio_pad|>", "<|audio_end|>"]
    template = SOUND_ALONE.replace("MARK", "<|audio_start|><|audio_pad|><|audio_end|>")
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>", template=template)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    front = MossTranscribeDiarizeFeatureExtractor(feature_size=16)
    MossTranscribeDiarizeProcessor(front, tokenizer, chat_template=template).save_pretrained(folder)
    config = MossTranscribeDiarizeConfig(
        audio_config={
            "num_mel_bins": 16, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64,
            "num_hidden_layers": 1,
        },
        text_config={
                    "model_type": "qwen3", **text_config(ALPHABET + len(special)), "head_dim": 8,
                    "tie_word_embeddings": False,
                },
        audio_token_id=ids["<|audio_pad|>"], tie_word_embeddings=False,
    )  # fmt: skip
    net = MossTranscribeDiarizeForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())
    return folder


def write_vibevoice_asr(folder, *, seed=4, ends=1.3):
    """A VibeVoice ASR: two encoders of waveforms, and Qwen2.

    Its frames are of 3200 samples, as those of the published one.
    """
    from transformers import (
        PreTrainedTokenizerFast,
        VibeVoiceAcousticTokenizerFeatureExtractor,
        VibeVoiceAsrConfig,
        VibeVoiceAsrForConditionalGeneration,
        VibeVoiceAsrProcessor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|object_ref_start|>",
        "<|box_start|>",
        "<|object_ref_end|>",
    ]
    template = SOUND_ALONE.replace("MARK", "<|object_ref_start|><|box_start|><|object_ref_end|><|AUDIO_DURATION|>")
    ids = write_tokenizer(folder, special, end="<|im_end|>", pad="<|endoftext|>", template=template)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    VibeVoiceAsrProcessor(
        VibeVoiceAcousticTokenizerFeatureExtractor(), tokenizer, chat_template=template
    ).save_pretrained(folder)
    encoder = {"hidden_size": 8, "num_filters": 2, "depths": [1, 1, 1, 1, 1, 1, 1]}
    config = VibeVoiceAsrConfig(
        acoustic_tokenizer_encoder_config={"model_type": "vibevoice_acoustic_tokenizer_encoder", **encoder},
        semantic_tokenizer_encoder_config={"model_type": "vibevoice_acoustic_tokenizer_encoder", **encoder},
        text_config={"model_type": "qwen2", **text_config(ALPHABET + len(special)), "tie_word_embeddings": False},
        audio_token_id=ids["<|box_start|>"], audio_bos_token_id=ids["<|object_ref_start|>"],
        audio_eos_token_id=ids["<|object_ref_end|>"], tie_word_embeddings=False,
    )  # fmt: skip
    net = VibeVoiceAsrForConditionalGeneration(config)
    finish(net, folder, ids, "<|im_end|>", "<|endoftext|>", seed=seed, ends=ends, head=net.get_output_embeddings())
    return folder


def write_kyutai_speech_to_text(folder, *, seed=4, ends=1.6):
    """A Kyutai STT: Mimi frame by frame, and a language model that writes a token or padding for each frame."""
    from transformers import (
        KyutaiSpeechToTextConfig,
        KyutaiSpeechToTextFeatureExtractor,
        KyutaiSpeechToTextForConditionalGeneration,
        KyutaiSpeechToTextProcessor,
        MimiConfig,
        PreTrainedTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, ["<unk>", "</s>", "<pad>"], end="</s>", pad="<pad>")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    front = KyutaiSpeechToTextFeatureExtractor(audio_delay_seconds=0.24, audio_silence_prefix_seconds=0.16)
    KyutaiSpeechToTextProcessor(front, tokenizer).save_pretrained(folder)
    codec = MimiConfig(
        hidden_size=16, num_filters=2, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=8,
        intermediate_size=32, codebook_size=32, codebook_dim=8, vector_quantization_hidden_dimension=8,
        num_quantizers=4,
        upsample_groups=16, sliding_window=20,
    )  # fmt: skip
    words = ALPHABET + len(ids)
    config = KyutaiSpeechToTextConfig(
        codebook_vocab_size=33, vocab_size=words + 1, sliding_window=12, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, ffn_dim=64,
        num_codebooks=4, audio_bos_token_id=32, audio_pad_token_id=words + 1 + 4 * 33, pad_token_id=ids["<pad>"],
        bos_token_id=words, codec_config=codec.to_dict(),
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = KyutaiSpeechToTextForConditionalGeneration(config)
    enliven(net, [net.lm_head], ids["<pad>"], seed=seed, ends=ends)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():  # a codec that gives different codes to different sounds
        for name, value in net.codec_model.named_buffers():
            if name.endswith("embed_sum"):
                value.copy_(torch.randn(value.shape, generator=generator))
    for settings in (net.generation_config, net.codec_model.generation_config):
        settings._from_model_config = False
        settings.cache_implementation = "sliding_window"
    net.generation_config.audio_window_size = 1
    net.codec_model.generation_config.use_cache = True
    silently(lambda: net.save_pretrained(folder))
    return folder


def write_voxtral_realtime(folder, *, seed=4, ends=0.6):
    """A Voxtral Realtime: a causal encoder, and Mistral's decoder that writes a token or padding for each 80 ms of
    sound.
    """
    from transformers import (
        VoxtralRealtimeConfig,
        VoxtralRealtimeFeatureExtractor,
        VoxtralRealtimeForConditionalGeneration,
    )

    folder.mkdir(parents=True, exist_ok=True)
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"]
    special += ["[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"]
    special += ["[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "[AUDIO]", "[BEGIN_AUDIO]"]
    special += ["[TRANSCRIBE]", "[STREAMING_PAD]", "[STREAMING_WORD]"]
    size = ALPHABET + len(special)
    tokens = [base64.b64encode(bytes([byte])).decode() for byte in range(ALPHABET)]
    tekken = {
        "config": {
            "pattern": ".", "num_vocab_tokens": ALPHABET, "default_vocab_size": size,
            "default_num_special_tokens": len(special), "version": "v7",
        },
        "vocab": [{"rank": rank, "token_bytes": token, "token_str": None} for rank, token in enumerate(tokens)],
        "special_tokens": [
            {"rank": rank, "token_str": token, "is_control": True} for rank, token in enumerate(special)
        ],
        "audio": {
            "sampling_rate": 16_000, "frame_rate": 12.5, "transcription_format": "streaming",
            "transcription_delay_ms": 480,
            "streaming_look_ahead_ms": 2.5, "streaming_look_back_ms": 52.5, "streaming_n_left_pad_tokens": 32,
            "audio_encoding_config": {"num_mel_bins": 16, "hop_length": 160, "window_size": 400},
        },
    }  # fmt: skip
    (folder / "tekken.json").write_text(json.dumps(tekken))
    front = {**VoxtralRealtimeFeatureExtractor(feature_size=16).to_dict()}
    front.pop("mel_filters", None)
    described = {"feature_extractor": front, "processor_class": "VoxtralRealtimeProcessor"}
    (folder / "processor_config.json").write_text(json.dumps(described))
    ids = {token: index for index, token in enumerate(special)}
    config = VoxtralRealtimeConfig(
        audio_config={
            "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_mel_bins": 16,
            "head_dim": 16, "sliding_window": 40, "vocab_size": size,
        },
        text_config={
            "model_type": "voxtral_realtime_text", **text_config(size), "head_dim": 8, "sliding_window": 30,
            "tie_word_embeddings": False,
        },
        tie_word_embeddings=False,
    )  # fmt: skip
    net = VoxtralRealtimeForConditionalGeneration(config)
    enliven(net, [net.lm_head], ids["</s>"], seed=seed, ends=ends)
    save(net, folder, ids["</s>"], ids["<pad>"])
    return folder


REQUESTED = {
    "cohere-transcribe-03-2026": write_cohere_asr,
    "fun-asr-nano-2512": write_fun_asr_nano,
    "granite-speech-5.0-470m-turboctc": write_granite_speech5,
    "nemotron-speech-streaming-en-0.6b": write_nemotron_asr_streaming,
    "nemotron-3.5-asr-streaming-0.6b": write_nemotron3_5_asr,
    "moss-transcribe-diarize": write_moss_transcribe_diarize,
    "vibevoice-asr": write_vibevoice_asr,
    "kyutai-stt-2.6b-en": write_kyutai_speech_to_text,
    "voxtral-mini-4b-realtime-2602": write_voxtral_realtime,
}
"""The recognisers of `features/recognisers/transformers_asr.py`."""
