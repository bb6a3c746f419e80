"""A Whisper with random weights in the layout of a converted checkpoint: small, and with transcripts of many lengths.

The architecture, the special tokens and their order are the published ones; sizes, words and weights are not. Random
weights would loop until the bound, so three things are arranged: special tokens other than the end never win
(faster-whisper takes timestamps that come in spite of `<|notimestamps|>` for cuts), the end wins now and then, and the
encoder is turned up so that the input audio decides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te "
    "fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz "
    "fo ht ps "
    "tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
).split()
WORDS = 1_000
PUBLISHED_WORDS = 50_257
TIMESTAMPS = 1_501


def special_tokens(kind: str) -> list[str]:
    """The special tokens after the words, up to the first timestamp: of `multilingual`, `v3` (one language more) or
    `en`.
    """
    languages = LANGUAGES if kind == "v3" else LANGUAGES[:99]
    tokens = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in languages)]
    nothing = "<|nospeech|>" if kind == "v3" else "<|nocaptions|>"
    return [*tokens, "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", nothing, "<|notimestamps|>"]


def write_tokenizer(folder: Path, kind: str, words: int = WORDS) -> dict[str, int]:
    """Writes tokenizer.json and tokenizer_config.json: bytes, made-up words, special tokens.

    A vocabulary of several languages has the empty token as its last word, by which CTranslate2 knows it.

    Returns:
        The ids of the special tokens.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(alphabet)}
    vocabulary |= {f"Ġw{index}": index for index in range(len(alphabet), words - 1)}
    if kind != "en":
        vocabulary[""] = words - 1
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = special_tokens(kind)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return {token: tokenizer.token_to_id(token) for token in special}


def write_transformers(
    folder: Path,
    *,
    kind: str = "multilingual",
    n_mels: int = 80,
    words: int = WORDS,
    d_model: int = 64,
    layers: int = 2,
    decoder_layers: int | None = None,
    heads: int = 2,
    seed: int = 0,
    end: float = 0.0,
) -> None:
    """Writes a checkpoint as transformers keeps it.

    Args:
        end: added to the logit of the end; larger makes transcripts shorter.
    """
    import torch
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, kind, words)
    stop = ids["<|endoftext|>"]
    config = WhisperConfig(
        vocab_size=ids["<|notimestamps|>"] + 1 + TIMESTAMPS, num_mel_bins=n_mels, d_model=d_model,
        encoder_layers=layers, decoder_layers=decoder_layers or layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * d_model, decoder_ffn_dim=4 * d_model,
        bos_token_id=stop, eos_token_id=stop, pad_token_id=stop, decoder_start_token_id=ids["<|startoftranscript|>"],
        suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    torch.manual_seed(seed)
    net = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        decoder = net.model.decoder
        rows = decoder.embed_tokens.weight
        rows.normal_(0, 0.1)
        rows[:, 0] = 0.0
        rows[stop:, 0] = -2.0
        rows[stop, 0] = end / 100
        rows[ids["<|nospeech|>" if kind == "v3" else "<|nocaptions|>"], 0] = 0.7  # never written, so it may be likely
        decoder.embed_positions.weight.normal_(0, 1)
        decoder.layer_norm.weight.fill_(30.0)
        decoder.layer_norm.bias[0] = 100.0  # times the first column: what is added to a token's logit
        for layer in decoder.layers:
            written, output = layer.self_attn, layer.encoder_attn
            written.v_proj.weight.normal_(0, 4 * d_model**-0.5)
            written.out_proj.weight.normal_(0, d_model**-0.5)
            output.q_proj.weight.normal_(0, d_model**-0.5)
            output.k_proj.weight.normal_(0, 4 * d_model**-0.5)
            output.v_proj.weight.normal_(0, 4 * d_model**-0.5)
            output.out_proj.weight.normal_(0, 3 * d_model**-0.5)
        encoder = net.model.encoder
        encoder.conv1.weight.normal_(0, 2 * n_mels**-0.5)
        encoder.conv2.weight.normal_(0, d_model**-0.5)
    net.generation_config = GenerationConfig(
        eos_token_id=stop, suppress_tokens=[], begin_suppress_tokens=[stop],
        lang_to_id={token: ids[token] for token in special_tokens(kind)[2 : 2 + (100 if kind == "v3" else 99)]},
        alignment_heads=[[0, 0]],
    )  # fmt: skip
    net.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(features(n_mels)))


def features(n_mels: int) -> dict[str, int]:
    """What a checkpoint says of its spectrograms."""
    return {"feature_size": n_mels, "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400, "chunk_length": 30}


def write_converted(folder: Path, *, quantization: str | None = None, **options: Any) -> Path:
    """Writes a checkpoint in CTranslate2's layout, in float32 or another type; `options`: of `write_transformers`."""
    from ctranslate2.converters import TransformersConverter

    source = folder.with_name(folder.name + "-transformers")
    write_transformers(source, **options)
    converter = TransformersConverter(str(source), copy_files=["tokenizer.json", "preprocessor_config.json"])
    converter.convert(str(folder), quantization=quantization, force=True)
    return folder
