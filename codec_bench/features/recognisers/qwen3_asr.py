"""Transcripts by Qwen3-ASR through transformers, in batches, greedily.

Every piece passes the front end alone, because it normalises by its maximum. The encoder reads seconds of 100 frames
one by one and attends within 8 s of one recording; frames beyond the end are omitted. Prompts are padded on the left
and masked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import Result
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser, joined
from codec_bench.features.recognisers.speech_windows import UNSPACED
from codec_bench.features.recognisers.transformers_checkpoint import GREEDY, check_kind, parts_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.precision import computing

KIND = "qwen3_asr"
LANGUAGES = tuple("ar yue zh cs da nl en fil fi fr de el hi hu id it ja ko mk ms fa pl pt ro ru es sv th tr vi".split())
"""Base codes of the model card's languages. Its 22 dialects of Chinese have no separate codes."""
MAX_TOKENS = 512
"""The default of `qwen-asr`. Sixty seconds of fast speech take about half of it."""


class Qwen3Asr(PiecewiseRecogniser):
    """Transcripts by Qwen3-ASR with punctuation, decoded greedily without a context.

    The model gets the signal's language, or detects and reports it. As in the authors' code, more than 20 repetitions
    of a character or a short pattern become one. A signal longer than 60 s is cut (`PiecewiseRecogniser`; the authors'
    package reads 20 minutes whole), and one shorter than 0.5 s is padded with zeros, as there.

    Result: `transcript`; `language`, the input or the detected one (empty if the model states none), and
    `language_detected`. `fault` reports a text that did not end.

    Paper: Qwen team, "Qwen3-ASR Technical Report", 2026, arXiv 2601.21337. Reference implementation: transformers 5.23
    `Qwen3ASRForConditionalGeneration.generate` with `Qwen3ASRProcessor`, each signal alone: the same tokens in float32.
    Prompts and the processing of the text are those of `qwen-asr`.

    Args:
        model: a key of `models`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model.
    """

    name = "qwen3-asr"
    languages = LANGUAGES
    reads_language = True
    models: ClassVar[Mapping[str, str]] = {name: name for name in ("qwen3-asr-0.6b", "qwen3-asr-1.7b")}

    def _network(self) -> Any:
        """Load the network, and its processor with the chat template."""
        from codec_bench.weights.pretrained import class_of, load_pretrained

        net, processor = class_of("Qwen3ASRForConditionalGeneration"), class_of("Qwen3ASRProcessor")
        check_kind(self.name, self._folder, KIND)
        extractor, tokenizer = parts_of(self._folder, RATE_HZ, "Qwen3ASRFeatureExtractor", "AutoTokenizer")
        if not tokenizer.chat_template:
            raise WeightsError("no_chat_template", folder=self._folder)
        self._processor = processor(extractor, tokenizer, chat_template=tokenizer.chat_template)
        return load_pretrained(net, str(self._folder), {})

    @property
    def shortest(self) -> int:
        """One frame in samples."""
        return int(self._processor.feature_extractor.hop_length)

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe each segment in its language, or detect it."""
        inputs = self._collated([self._prompt(segment, code) for segment, code in zip(pieces, languages)])
        config = self._net.generation_config
        with computing(self.device, self._precision):
            generated = self._net.generate(**inputs, max_new_tokens=MAX_TOKENS, **GREEDY)
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        return [
            self._transcript(tokens, code, set(ends))
            for tokens, code in zip(generated[:, inputs["input_ids"].shape[1] :].tolist(), languages)
        ]

    def _prompt(self, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
        """Build the inputs of one segment, as a batch of one."""
        inputs: Any = self._processor.apply_transcription_request(segment, language=language)
        return inputs

    def _collated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Batch inputs on the device, prompts padded on the left, spectrograms right."""
        import torch

        from codec_bench.networks.transfer import sent

        pad = self._processor.tokenizer.pad_token_id
        padding = {"input_ids": (True, pad), "attention_mask": (True, 0), "input_features": (False, 0.0)}
        padding["input_features_mask"] = (False, 0)
        batch = []
        for key, (on_the_left, value) in padding.items():
            longest = max(row[key].shape[-1] for row in rows)
            missing = [longest - row[key].shape[-1] for row in rows]
            sides = [(count, 0) if on_the_left else (0, count) for count in missing]
            parts = [torch.nn.functional.pad(row[key], amounts, value=value) for row, amounts in zip(rows, sides)]
            batch.append(torch.cat(parts).numpy())
        return dict(zip(padding, sent(batch, self.device)))

    def _transcript(self, tokens: list[int], language: str | None, ends: set[int]) -> PieceTranscript:
        """Decode a segment's tokens up to the first end token.

        Args:
            language: of the segment; None takes the one that the model reports.
            ends: the ids of end tokens; a text without any has a `fault`.
        """
        last = next((index for index, token in enumerate(tokens) if token in ends), None)
        parsed = self._processor.decode(tokens[:last], return_format="parsed")
        fault = None if last is not None else Diagnostic("text_endless", tokens=MAX_TOKENS)
        return PieceTranscript(parsed["transcription"], language or _code(parsed["language"]), fault)

    def result(self, parts: Sequence[PieceTranscript], language: str | None) -> Result:
        """Join the transcripts of a signal's segments, and add the signal's language.

        Args:
            language: of the signal; None if the model detected it.
        """
        spoken = next((transcript.language for transcript in parts if transcript.language), "")
        result = super().result(parts, language)
        if spoken in UNSPACED:
            result["transcript"] = joined(parts, between="")
        return {**result, "language": spoken, "language_detected": language is None and bool(spoken)}


def _code(name: str | None) -> str:
    from transformers.models.qwen3_asr.processing_qwen3_asr import LANGUAGE_CODE_TO_NAME

    return next((code for code, known in LANGUAGE_CODE_TO_NAME.items() if known == name), "")
