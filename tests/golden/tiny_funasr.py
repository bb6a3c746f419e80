"""Paraformer and SenseVoice with random weights in the layout of the published folders, built by FunASR's own classes.

The architecture is the published one; sizes, words and weights are not. Random weights would say the same token again
and again, or none: the output layer is turned up, and the predictor's bias lets a token end every three to four frames.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

COEFFICIENTS = 560
FRONT_END = {
    "fs": 16000,
    "window": "hamming",
    "n_mels": 80,
    "frame_length": 25,
    "frame_shift": 10,
    "lfr_m": 7,
    "lfr_n": 6,
}
AUGMENTATION = {
    "apply_time_warp": False,
    "time_warp_window": 5,
    "time_warp_mode": "bicubic",
    "apply_freq_mask": True,
    "freq_mask_width_range": [0, 30],
    "lfr_rate": 6,
    "num_freq_mask": 1,
    "apply_time_mask": True,
    "time_mask_width_range": [0, 12],
    "num_time_mask": 1,
}
TIMED = {
    "smooth_factor2": 0.25,
    "noise_threshold2": 0.01,
    "upsample_times": 3,
    "use_cif1_cnn": False,
    "upsample_type": "cnn_blstm",
}
ENGLISH = ["a", "b", "he@@", "llo", "wor@@", "ld", "it", "'", "1"]
TAGS = [
    "zh",
    "en",
    "yue",
    "ja",
    "ko",
    "nospeech",
    "HAPPY",
    "SAD",
    "NEUTRAL",
    "EMO_UNKNOWN",
    "Speech",
    "BGM",
    "Event_UNK",
]
SIZES = {
    "tiny": {"size": 32, "units": 64, "encoder_layers": 3, "decoder_layers": 2, "words": 60},
    "small": {"size": 256, "units": 1024, "encoder_layers": 12, "decoder_layers": 4, "words": 1000},
    "full": {"size": 512, "units": 2048, "encoder_layers": 50, "decoder_layers": 16, "words": 8404},
}


def write_paraformer(
    folder: Path, model: str = "Paraformer", predictor: str = "CifPredictorV2", size: str = "tiny", seed: int = 0
) -> Path:
    """Writes a folder such as funasr/paraformer-zh: config.yaml, model.pt, tokens.json, am.mvn, configuration.json."""
    import torch

    of = SIZES[size]
    chinese = [chr(0x4E00 + n) for n in range(of["words"] - len(ENGLISH) - 4)]
    tokens = ["<blank>", "<s>", "</s>", *chinese, *ENGLISH, "<unk>"]
    decoder = _decoder(of["units"], of["decoder_layers"])
    config: dict[str, Any] = {
        "model": model,
        "model_conf": {
            "ctc_weight": 0.0,
            "lsm_weight": 0.1,
            "length_normalized_loss": True,
            "predictor_weight": 1.0,
            "predictor_bias": 1,
            "sampling_ratio": 0.75,
        },
        "encoder": "SANMEncoder",
        "encoder_conf": {
            **_encoder(of["size"], of["units"], of["encoder_layers"]),
            "input_layer": "pe",
            "pos_enc_class": "SinusoidalPositionEncoder",
        },
        "decoder": "ParaformerSANMDecoder",
        "decoder_conf": {**decoder, "att_layer_num": of["decoder_layers"]},
        "predictor": predictor,
        "predictor_conf": {
            "idim": of["size"],
            "threshold": 1.0,
            "l_order": 1,
            "r_order": 1,
            "tail_threshold": 0.45,
            **(TIMED if predictor == "CifPredictorV3" else {}),
        },
        "frontend": "WavFrontend",
        "frontend_conf": dict(FRONT_END),
        "specaug": "SpecAugLFR",
        "specaug_conf": AUGMENTATION,
        "tokenizer": "CharTokenizer",
        "tokenizer_conf": {"unk_symbol": "<unk>", "split_with_space": True},
        "ctc_conf": {"dropout_rate": 0.0, "ctc_type": "builtin", "reduce": True, "ignore_nan_grad": True},
        "normalize": None,
    }
    if model == "SeacoParaformer":
        config["model_conf"] |= {
            "inner_dim": of["size"],
            "bias_encoder_type": "lstm",
            "bias_encoder_bid": False,
            "seaco_lsm_weight": 0.1,
            "train_decoder": True,
            "NO_BIAS": len(tokens) - 2,
        }
        config["seaco_decoder"] = "ParaformerSANMDecoder"
        config["seaco_decoder_conf"] = {
            **_decoder(of["units"], 2),
            "att_layer_num": 2,
            "use_output_layer": False,
            "wo_input_layer": True,
        }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.json").write_text(json.dumps(tokens, ensure_ascii=False), "utf-8")
    net = _build(config, len(tokens), seed)
    with torch.no_grad():
        net.decoder.output_layer.weight.normal_()
        net.decoder.output_layer.bias.zero_()
        net.predictor.cif_output.bias.fill_(-0.8)
    _write(folder, config, net, {"tokenizer_conf": {"token_list": "tokens.json"}}, seed)
    return folder


def write_sensevoice(folder: Path, size: str = "tiny", seed: int = 0) -> Path:
    """Writes a folder such as FunAudioLLM/SenseVoiceSmall, with a vocabulary of SentencePiece's trained here."""
    import sentencepiece
    import torch

    of = SIZES[size]
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "hello world it is a test of speech",
        "the quick brown fox jumps over the lazy dog",
        "一二三四五六七八九十 百千万",
    ]
    vocabulary = folder / "chn_jpn_yue_eng_ko_spectok.bpe.model"
    with vocabulary.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines * 4),
            model_writer=file,
            model_type="bpe",
            vocab_size=120,
            character_coverage=1.0,
            user_defined_symbols=[f"<|{tag}|>" for tag in [*TAGS, "withitn", "woitn"]],
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
        )
    config: dict[str, Any] = {
        "model": "SenseVoiceSmall",
        "model_conf": {"length_normalized_loss": True, "sos": 1, "eos": 2, "ignore_id": -1},
        "encoder": "SenseVoiceEncoderSmall",
        "encoder_conf": {
            **_encoder(of["size"], of["units"], of["encoder_layers"]),
            "tp_blocks": max(1, of["encoder_layers"] // 2),
            "input_layer": "pe",
            "pos_enc_class": "SinusoidalPositionEncoder",
        },
        "frontend": "WavFrontend",
        "frontend_conf": dict(FRONT_END),
        "specaug": "SpecAugLFR",
        "specaug_conf": AUGMENTATION,
        "tokenizer": "SentencepiecesTokenizer",
        "tokenizer_conf": {"bpemodel": None, "unk_symbol": "<unk>", "split_with_space": True},
        "ctc_conf": {"dropout_rate": 0.0, "ctc_type": "builtin", "reduce": True, "ignore_nan_grad": True},
        "normalize": None,
    }
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary)).get_piece_size()
    net = _build(config, pieces, seed)
    with torch.no_grad():
        net.ctc.ctc_lo.weight.normal_()
        net.ctc.ctc_lo.bias.zero_()
        net.embed.weight.normal_(std=0.5)
    _write(folder, config, net, {"tokenizer_conf": {"bpemodel": vocabulary.name}}, seed)
    return folder


def _encoder(size: int, units: int, layers: int) -> dict[str, Any]:
    return {
        "output_size": size,
        "attention_heads": 4,
        "linear_units": units,
        "num_blocks": layers,
        "dropout_rate": 0.1,
        "positional_dropout_rate": 0.1,
        "attention_dropout_rate": 0.1,
        "normalize_before": True,
        "kernel_size": 11,
        "sanm_shfit": 0,
        "selfattention_layer_type": "sanm",
    }


def _decoder(units: int, layers: int) -> dict[str, Any]:
    return {
        "attention_heads": 4,
        "linear_units": units,
        "num_blocks": layers,
        "dropout_rate": 0.1,
        "positional_dropout_rate": 0.1,
        "self_attention_dropout_rate": 0.1,
        "src_attention_dropout_rate": 0.1,
        "kernel_size": 11,
        "sanm_shfit": 0,
    }


def _build(config: dict[str, Any], words: int, seed: int) -> Any:
    import torch

    with contextlib.redirect_stdout(io.StringIO()):
        import funasr  # noqa: F401 - it registers its classes
        from funasr.register import tables

    torch.manual_seed(seed)
    options = {**config["model_conf"], **config, "vocab_size": words, "input_size": COEFFICIENTS}
    return tables.model_classes[config["model"]](**options)


def _write(folder: Path, config: dict[str, Any], net: Any, files: dict[str, Any], seed: int) -> None:
    import torch
    import yaml

    rng = np.random.default_rng(seed)
    values = {"AddShift": rng.normal(-12, 1, COEFFICIENTS), "Rescale": rng.uniform(0.15, 0.25, COEFFICIENTS)}
    lines = ["<Nnet>", f"<Splice> {COEFFICIENTS} {COEFFICIENTS}", "[ 0 ]"]
    for name, numbers in values.items():
        lines.append(f"<{name}> {COEFFICIENTS} {COEFFICIENTS}")
        lines.append(f"<LearnRateCoef> 0 [ {' '.join(f'{value:.5f}' for value in numbers)} ]")
    (folder / "am.mvn").write_text("\n".join([*lines, "</Nnet>", ""]))
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    metas = {"init_param": "model.pt", "config": "config.yaml", "frontend_conf": {"cmvn_file": "am.mvn"}, **files}
    published = {"framework": "pytorch", "model": {"type": "funasr"}, "file_path_metas": metas}
    (folder / "configuration.json").write_text(json.dumps(published))
    torch.save(net.state_dict(), folder / "model.pt")
