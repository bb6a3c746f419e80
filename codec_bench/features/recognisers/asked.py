"""Transcripts by recognisers of transformers that are asked through their own processors, greedily and in batches, by a table.

Where padding would change results, and what is done about it
    The processor sees every piece alone, because front ends normalise by what else is there. Prompts are padded on the left and
    spectrograms on the right, and both are masked. A network of frames writes nothing beyond a piece's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codec_bench.errors import WeightsError
from codec_bench.features.base import Result
from codec_bench.features.recognisers.pieces import RATE_HZ, Heard, PiecewiseRecogniser, joined
from codec_bench.features.recognisers.speech_windows import UNSPACED
from codec_bench.features.recognisers.transformers_checkpoint import GREEDY, check_kind
from codec_bench.networks.precision import computing

MAX_TOKENS = 512
"""Of a piece. Thirty-five seconds of fast speech take less than half of them."""
ON_THE_LEFT = ("input_ids", "attention_mask")
"""What is padded on the left, where there is a prompt: that and its mask."""


@dataclass(frozen=True, slots=True)
class Family:
    """How the recognisers of one class are asked.

    Args:
        kind: the `model_type` that a checkpoint states. net: the class of the network in transformers.
        languages: base codes of those that it transcribes.
        ask: the processor's inputs for a piece `(samples,)` in a language or None, as a batch of one.
        whole_s: how long a signal may be that is heard whole.
        told: whether it must be told the language.
        by_frames: whether it writes a token or a blank for each frame, and no token after another.
        clean: what is left of a decoded text. mended: the network with what transformers leaves out.
    """

    kind: str
    net: str
    languages: tuple[str, ...]
    ask: Callable[[Any, np.ndarray, str | None], Mapping[str, Any]]
    whole_s: float
    told: bool = False
    by_frames: bool = False
    clean: Callable[[Any, str], str] = lambda processor, text: text
    mended: Callable[[Any], Any] = lambda net: net


def _heard_in(processor: Any, piece: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor(piece, language=language, sampling_rate=RATE_HZ, return_tensors="pt")
    return {key: value for key, value in inputs.items() if key != "audio_chunk_index"}


def _requested(processor: Any, piece: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor.apply_transcription_request(piece, language=language)
    return inputs


def _heard_alone(processor: Any, piece: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor(piece, sampling_rate=RATE_HZ, return_tensors="pt")
    return inputs


def _masked_adaptor(net: Any) -> Any:
    """Fun-ASR-Nano whose adaptor masks what is padded. In transformers 5.23 its attention has no implementation, and adds the mask's truth to the weights."""
    net.config.adaptor_config._attn_implementation = net.config.audio_config._attn_implementation
    return net


FAMILIES = {
    "cohere-transcribe-03-2026": Family(
        "cohere_asr", "CohereAsrForConditionalGeneration",
        ("ar", "de", "el", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "vi", "zh"), _heard_in, 35.0, told=True,
    ),
    "fun-asr-nano-2512": Family(
        "fun_asr_nano", "FunAsrNanoForConditionalGeneration", ("zh", "en", "ja"), _requested, 30.0,
        clean=lambda processor, text: processor._strip_assistant_prefix_and_quotes(text), mended=_masked_adaptor,
    ),
    "granite-speech-5.0-470m-turboctc": Family(
        "granite_speech5_ctc", "GraniteSpeech5ForCTC", ("en",), _heard_alone, 60.0, by_frames=True,
    ),
}  # fmt: skip
"""How each recogniser is asked. Their weights have the same names in the catalogue."""


class Asked(PiecewiseRecogniser):
    """Transcripts by a recogniser that is asked as its processor in transformers says: the most probable token at each step.

    Cohere Transcribe must be told the language, of 14, and writes capitals and punctuation. Fun-ASR-Nano hears Mandarin, English and
    Japanese and is told the language if it is known. Granite Speech 5.0 TurboCTC hears English and writes the most probable token of
    each frame, without repeats and blanks. A longer signal than `whole_s` is heard in pieces (`PiecewiseRecogniser`): Cohere's
    processor cuts after 30 to 35 s by a similar rule, and Fun-ASR's package after 30 s by a voice activity network.

    Result: `transcript`; `language`, the one that was told, where one was. If a text did not end, `fault` says so.

    Reference implementation: each class of `FAMILIES` and its processor in transformers 5.23, each signal alone: the same tokens in
    float32.

    Args:
        model: a key of `FAMILIES`.
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of transformers, or a hub id in the local cache, in place of the published one.
        point: `tf32` or `bfloat16`, or None for float32.

    Raises:
        WeightsError: the weights are not on this machine, or are those of something else.
    """

    name = "asked"
    reads_language = True
    models: ClassVar[Mapping[str, str]] = {model: model for model in FAMILIES}
    shortest = RATE_HZ // 10

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(model, device, weights, point)
        self._family = FAMILIES[model]
        self.languages, self.whole_s = self._family.languages, self._family.whole_s

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """As for every recogniser in pieces, with the length that this one hears whole."""
        told = super().protocol_id(model, point)
        return told.replace(cls.decoding_id(), f"greedy/whole-to-{FAMILIES[model].whole_s:g}s", 1)

    @classmethod
    def languages_of(cls, model: str) -> tuple[str, ...]:
        """The base codes of the languages that a recogniser transcribes."""
        return FAMILIES[model].languages

    def _network(self) -> Any:
        from transformers import AutoProcessor

        from codec_bench.weights.pretrained import class_of, load_pretrained

        net = class_of(self._family.net)
        check_kind(self.name, self._folder, self._family.kind)
        try:
            self._processor: Any = AutoProcessor.from_pretrained(str(self._folder), local_files_only=True)
            rate_hz = self._processor.feature_extractor.sampling_rate
        except Exception as error:  # a broken file raises anything from KeyError to OSError
            reason = str(error).split("\n")[0]
            raise WeightsError(f"the processor in '{self._folder}' cannot be read: {reason}") from error
        if rate_hz != RATE_HZ:
            raise WeightsError(f"the weights in '{self._folder}' read {rate_hz} Hz; expected {RATE_HZ} Hz")
        return self._family.mended(load_pretrained(net, str(self._folder), {}))

    def refusal(self, signal: np.ndarray, language: str | None) -> str | None:
        """Why a signal cannot be transcribed, or None."""
        if language is None and self._family.told:
            return f"{self.name} must be told the language, and the sample has none"
        if language is not None and language not in self.languages:
            return f"{self.name} does not know the language '{language}'"
        return super().refusal(signal, language)

    def hear(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[Heard]:
        """The text of each piece."""
        rows = [self._family.ask(self._processor, piece, code) for piece, code in zip(pieces, languages)]
        inputs = self._collated(rows)
        with computing(self.device, self._precision):
            if self._family.by_frames:
                made = self._net.generate(**inputs)
            else:
                made = self._net.generate(**inputs, max_new_tokens=MAX_TOKENS, **GREEDY)
        prompt = inputs.get("decoder_input_ids", inputs.get("input_ids"))
        skipped = 0 if prompt is None else prompt.shape[1]
        return [self._heard(tokens[skipped:], code) for tokens, code in zip(made.tolist(), languages)]

    def _collated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The inputs of several pieces on the device: prompts padded on the left, spectrograms on the right."""
        import torch

        from codec_bench.networks.transfer import sent

        batch = {}
        for key in rows[0]:
            parts = [row[key] for row in rows]
            left = "input_ids" in rows[0] and key in ON_THE_LEFT
            value = self._processor.tokenizer.pad_token_id if key == "input_ids" else 0
            if parts[0].ndim > 1:  # the second dimension is that of time
                longest = max(part.shape[1] for part in parts)
                behind = [0, 0] * (parts[0].ndim - 2)
                missing = [longest - part.shape[1] for part in parts]
                sides = [[*behind, *((count, 0) if left else (0, count))] for count in missing]
                parts = [torch.nn.functional.pad(part, side, value=value) for part, side in zip(parts, sides)]
            batch[key] = torch.cat(parts).numpy()
        return dict(zip(batch, sent(list(batch.values()), self.device)))

    def _heard(self, tokens: list[int], language: str | None) -> Heard:
        tokenizer = self._processor.tokenizer
        if self._family.by_frames:
            text = tokenizer.decode(tokens, group_tokens=True, skip_special_tokens=True)
            return Heard(str(text).strip(), language or "")
        ends = self._net.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        last = next((place for place, token in enumerate(tokens) if token in ends), None)
        text = tokenizer.decode(tokens[:last], skip_special_tokens=True)
        fault = "" if last is not None else f"the recogniser's text did not end within {MAX_TOKENS} tokens"
        return Heard(self._family.clean(self._processor, str(text)).strip(), language or "", fault)

    def result(self, parts: Sequence[Heard], language: str | None) -> Result:
        """The result of a signal from what was heard in its pieces, in order."""
        result = super().result(parts, language)
        if language in UNSPACED:
            result["transcript"] = joined(parts, between="")
        return {**result, "language": language, "language_detected": False} if language is not None else result
