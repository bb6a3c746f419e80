"""Transcripts by recognisers of transformers that are asked through their own processors, greedily and in batches, by a
table.

Where padding would change results, and what is done about it
    The processor sees every piece alone, because front ends normalise by what else is there. Prompts are padded on the
    left and spectrograms on the right, and both are masked. What a network of frames writes beyond a piece's own frames
    is omitted: a transducer of transformers writes on while others of its batch go on, and so does a network that
    writes after each frame. Nothing that such a network heard comes from later frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, ClassVar, Literal

import numpy as np

from codec_bench.errors import MissingExtra, WeightsError, optional_package
from codec_bench.features.base import Result
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser, joined
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
        told: whether it needs to know the language.
        writes: `text` is written token by token until its end; `frames` are a token or a blank for each frame; a
            `transducer` writes tokens and blanks, and goes on by a frame after a blank; after each step of sound,
            `steps` are a token or padding written by the network that hears it, and `codes` the same from a codec's
            frames.
        needs: a package that its processor imports, and the extra that has it.
        longer: how many times `MAX_TOKENS` are written of a piece at most. rate_hz: of what it hears.
        clean: what is left of a decoded text. mended: the network with what transformers omits.
    """

    kind: str
    net: str
    languages: tuple[str, ...]
    ask: Callable[[Any, np.ndarray, str | None], Mapping[str, Any]]
    whole_s: float
    takes_language: bool = False
    writes: Literal["text", "frames", "transducer", "steps", "codes"] = "text"
    needs: tuple[str, str] | None = None
    longer: int = 1
    rate_hz: int = RATE_HZ
    clean: Callable[[Any, str], str] = lambda processor, text: text
    mended: Callable[[Any], Any] = lambda net: net


def _language_inputs(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor(segment, language=language, sampling_rate=RATE_HZ, return_tensors="pt")
    return {key: value for key, value in inputs.items() if key != "audio_chunk_index"}


def _requested(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor.apply_transcription_request(segment, language=language)
    return inputs


def _written_down(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """For recognisers that say who spoke and when, and are told no language."""
    inputs: Any = processor.apply_transcription_request(segment, return_tensors="pt")
    return inputs


def _audio_inputs(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor(segment, sampling_rate=RATE_HZ, return_tensors="pt")
    return inputs


def _prompted(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """For Nemotron 3.5, which is told a language by the name of a place where it is spoken, or by the code alone."""
    known = processor.prompt_dictionary
    spoken = (name for name in known if name == language or name.startswith(f"{language}-"))
    inputs: Any = processor(segment, language=next(spoken, "auto"), sampling_rate=RATE_HZ, return_tensors="pt")
    return inputs


def _framed(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """For Kyutai's recognisers, whose processor adds the silence at both ends."""
    inputs: Any = processor(audio=segment, sampling_rate=24_000, return_tensors="pt")
    return {"input_values": inputs["input_values"]}


def _stepped(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """For Voxtral Realtime, whose tokenizer adds silence at both ends, and before the text a token of padding for each
    step of it.
    """
    inputs: Any = processor(segment, sampling_rate=RATE_HZ, return_tensors="pt")
    return {**inputs, "num_delay_tokens": processor.num_delay_tokens}


def _words_alone(processor: Any, text: str) -> str:
    """A text without its speakers and times; as it is, if it cannot be read."""
    return str(processor.extract_transcription(text))


def _without_noise(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """For VibeVoice ASR, which by itself adds noise to what it hears, so that no two transcripts would be alike."""
    return {**_written_down(processor, segment, language), "sample": False}


def _masked_adaptor(net: Any) -> Any:
    """Fun-ASR-Nano whose adaptor masks what is padded.

    In transformers 5.23 its attention has no implementation, and adds the mask's truth to the weights.
    """
    net.config.adaptor_config._attn_implementation = net.config.audio_config._attn_implementation
    return net


def _precise_codec(net: Any) -> Any:
    """Kyutai's network whose codec is computed in float32 at every precision, as transformers keeps it: else its codes
    would be others.
    """
    import torch

    encode = net.codec_model.encode

    def precise(values: Any, **state: Any) -> Any:
        with torch.autocast(values.device.type, enabled=False):
            return encode(values, **state)

    net.codec_model.encode = precise
    return net


NEMOTRON = (
    "en", "es", "de", "fr", "it", "ar", "ja", "ko", "pt", "ru", "hi", "zh", "vi", "he", "nl", "cs", "da", "pl", "no", "nb", "nn",
    "sv", "th", "tr", "bg", "el", "et", "fi", "hr", "hu", "lt", "lv", "ro", "sk", "uk", "mt", "sl",
)  # fmt: skip
"""What Nemotron 3.5 transcribes by its card. Eight of its forty places are said to need more training."""

FAMILIES = {
    "cohere-transcribe-03-2026": Family(
        "cohere_asr", "CohereAsrForConditionalGeneration",
        ("ar", "de", "el", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "vi", "zh"), _language_inputs, 35.0,
        takes_language=True,
    ),
    "fun-asr-nano-2512": Family(
        "fun_asr_nano", "FunAsrNanoForConditionalGeneration", ("zh", "en", "ja"), _requested, 30.0,
        clean=lambda processor, text: processor._strip_assistant_prefix_and_quotes(text), mended=_masked_adaptor,
    ),
    "granite-speech-5.0-470m-turboctc": Family(
        "granite_speech5_ctc", "GraniteSpeech5ForCTC", ("en",), _audio_inputs, 60.0, writes="frames",
    ),
    "nemotron-speech-streaming-en-0.6b": Family(
        "nemotron_asr_streaming", "NemotronAsrStreamingForRNNT", ("en",), _audio_inputs, 60.0, writes="transducer",
    ),
    "nemotron-3.5-asr-streaming-0.6b": Family(
        "nemotron3_5_asr", "Nemotron3_5AsrForRNNT", NEMOTRON, _prompted, 60.0, writes="transducer",
    ),
    "moss-transcribe-diarize": Family(
        "moss_transcribe_diarize", "MossTranscribeDiarizeForConditionalGeneration", (), _written_down, 120.0, longer=2,
        clean=_words_alone,
    ),
    "vibevoice-asr": Family(
        "vibevoice_asr", "VibeVoiceAsrForConditionalGeneration", (), _without_noise, 120.0, longer=2, rate_hz=24_000,
        clean=_words_alone,
    ),
    "kyutai-stt-2.6b-en": Family(
        "kyutai_speech_to_text", "KyutaiSpeechToTextForConditionalGeneration", ("en",), _framed, 120.0, writes="codes",
        rate_hz=24_000, mended=_precise_codec,
    ),
    "kyutai-stt-1b-en-fr": Family(
        "kyutai_speech_to_text", "KyutaiSpeechToTextForConditionalGeneration", ("en", "fr"), _framed, 120.0, writes="codes",
        rate_hz=24_000, mended=_precise_codec,
    ),
    "voxtral-mini-4b-realtime-2602": Family(
        "voxtral_realtime", "VoxtralRealtimeForConditionalGeneration",
        ("ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pt", "ru", "zh"), _stepped, 120.0, writes="steps",
        needs=("mistral-common", "audio-llm"),
    ),
}  # fmt: skip
"""How each recogniser is asked. Their weights have the same names in the catalogue."""


class TransformersRecogniser(PiecewiseRecogniser):
    """Transcripts by a recogniser that is asked as its processor in transformers says: the most probable token at each
    step.

    Cohere Transcribe needs to know the language, of 14, and writes capitals and punctuation. Fun-ASR-Nano hears
    Mandarin, English and Japanese and is told the language if it is known. Granite Speech 5.0 TurboCTC hears English
    and writes the most probable token of each frame, without repeats and blanks. The Nemotrons look ahead by as many
    frames as their processor states, and the signal is given to them whole; 3.5 is told the language, or to find it.
    MOSS-Transcribe-Diarize and VibeVoice ASR write who spoke and when, and find the language; only the words are kept,
    and if what they wrote cannot be read, all of it. VibeVoice hears its latents without the noise that it draws by
    default. Kyutai's recognisers write a token or padding after each frame of 80 ms, some frames later than it is
    spoken; their processor adds the silence before and the delay after. Voxtral Realtime does so too, after each 80 ms
    and with the delay that its tokenizer's file states (480 ms); its tokenizer rounds sounds to 16 bits. A longer
    signal than `whole_s` is heard in pieces (`PiecewiseRecogniser`): Cohere's processor cuts after 30 to 35 s by a
    similar rule, and Fun-ASR's package after 30 s by a voice activity network.

    Result: `transcript`; `language`, the one that was told, where one was. If a text did not end, `fault` says so.

    Reference implementation: each class of `FAMILIES` and its processor in transformers 5.23, each signal alone: the
    same tokens in float32.

    Args:
        model: a key of `FAMILIES`.
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of transformers, or a hub id in the local cache, in place of the published one.
        point: `tf32` or `bfloat16`, or None for float32.

    Raises:
        WeightsError: the weights are not on this machine, or are those of something else. MissingExtra: when it is
            loaded, Voxtral Realtime's package is not installed.
    """

    name = "asked"
    reads_language = True
    models: ClassVar[Mapping[str, str]] = {name: name for name, family in FAMILIES.items() if family.rate_hz == RATE_HZ}

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(model, device, weights, point)
        self._family = FAMILIES[model]
        self.languages, self.whole_s = self._family.languages, self._family.whole_s

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """As for every recogniser in pieces, with the length that this one hears whole."""
        protocol = super().protocol_id(model, point)
        return protocol.replace(cls.decoding_id(), f"greedy/whole-to-{FAMILIES[model].whole_s:g}s", 1)

    @classmethod
    def languages_of(cls, model: str) -> tuple[str, ...]:
        """The base codes of the languages that a recogniser transcribes."""
        return FAMILIES[model].languages

    @property
    def _most(self) -> int:
        return MAX_TOKENS * self._family.longer

    @property
    def shortest(self) -> int:
        """A tenth of a second."""
        return self.rate_hz // 10

    def _network(self) -> Any:
        from transformers import AutoProcessor

        from codec_bench.weights.pretrained import class_of, load_pretrained

        net = class_of(self._family.net)
        if self._family.needs is not None:
            package, extra = self._family.needs
            optional_package(package.replace("-", "_"), MissingExtra(self.name, package, extra))
        check_kind(self.name, self._folder, self._family.kind)
        try:
            self._processor: Any = AutoProcessor.from_pretrained(str(self._folder), local_files_only=True)
            rate_hz = self._processor.feature_extractor.sampling_rate
        except Exception as error:  # a broken file raises anything from KeyError to OSError
            reason = str(error).strip().split("\n")[0]
            raise WeightsError(f"the processor in '{self._folder}' cannot be read: {reason}") from error
        if rate_hz != self.rate_hz:
            raise WeightsError(f"the weights in '{self._folder}' read {rate_hz} Hz; expected {self.rate_hz} Hz")
        return self._family.mended(load_pretrained(net, str(self._folder), {}))

    def refusal(self, signal: np.ndarray, language: str | None) -> str | None:
        """Why a signal cannot be transcribed, or None."""
        if language is None and self._family.takes_language:
            return f"{self.name} must be told the language, and the sample has none"
        if language is not None and self.languages and language not in self.languages:
            return f"{self.name} does not know the language '{language}'"
        return super().refusal(signal, language)

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """The text of each piece."""
        rows = [self._family.ask(self._processor, segment, code) for segment, code in zip(pieces, languages)]
        inputs = self._collated(rows)
        with computing(self.device, self._precision):
            if self._family.writes == "text":
                generated = self._net.generate(**inputs, max_new_tokens=self._most, **GREEDY)
            elif self._family.writes == "frames":
                generated = self._net.generate(**inputs)
            elif self._family.writes in ("steps", "codes"):
                steps = self._own_steps if self._family.writes == "steps" else self._own_codes
                return [self._joined(*of_one) for of_one in zip(steps(rows, inputs), languages)]
            else:
                generated = self._net.generate(**inputs, max_length=max(self._most_tokens(row) for row in rows))
                tokens_of = self._own_tokens(rows, generated)
                return [self._joined(*of_one, group_tokens=False) for of_one in zip(tokens_of, languages)]
        prompt = inputs.get("decoder_input_ids", inputs.get("input_ids"))
        skipped = 0 if prompt is None else prompt.shape[1]
        transcript_of = self._transcript if self._family.writes == "text" else self._merged
        return [transcript_of(tokens[skipped:], code) for tokens, code in zip(generated.tolist(), languages)]

    def _own_tokens(self, rows: Sequence[Mapping[str, Any]], generated: Any) -> Iterator[list[int]]:
        """What a transducer wrote in each piece's own frames."""
        for row, tokens, steps in zip(rows, generated.sequences.tolist(), generated.durations.tolist()):
            frames = self._net.encoder._get_subsampling_output_length(row["attention_mask"].sum(-1)).item()
            starts = accumulate(steps[:-1], initial=0)
            yield [token for token, start in zip(tokens[: self._most_tokens(row)], starts) if start < frames]

    def _own_steps(self, rows: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Iterator[list[int]]:
        """What was written after each piece's own steps, until its end, without the tokens of the silence before it."""
        before, ends = inputs["input_ids"].shape[1], self._ends()
        counts = [-(-row["input_features"].shape[-1] // self._net.config.audio_length_per_tok) for row in rows]
        generated = self._net.generate(**inputs, **GREEDY, max_new_tokens=max(counts) - before)
        for tokens, count in zip(generated.tolist(), counts):
            yield list(takewhile(lambda token: token not in ends, tokens[before:count]))

    def _own_codes(self, rows: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Iterator[list[int]]:
        """What was written after each piece's own frames, without the token that stands at the beginning.

        As transformers has the published checkpoints compute it, the codec hears one frame at a time, and the first one
        twice. Here it hears all at once, with the first frame repeated: the same codes.
        """
        import torch

        size = self._net.config.frame_size
        frames = [row["input_values"].shape[-1] // size for row in rows]
        values = torch.cat([inputs["input_values"][..., :size], inputs["input_values"]], dim=-1)
        generated = self._net.generate(
            input_values=values, audio_window_size=max(frames) + 1, max_new_tokens=max(frames), cache_implementation="dynamic",
            **GREEDY,
        )  # fmt: skip
        for tokens, count in zip(generated.tolist(), frames):
            yield tokens[1 : 1 + count]

    def _most_tokens(self, row: Mapping[str, Any]) -> int:
        """How many tokens a transducer writes of a piece at most, by the rule of transformers."""
        frames = row["attention_mask"].new_tensor([row["input_features"].shape[1]], dtype=int)
        return int(self._net.max_symbols_per_step * self._net.encoder._get_subsampling_output_length(frames).item())

    def _collated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The inputs of several pieces on the device: prompts padded on the left, spectrograms on the right."""
        import torch

        from codec_bench.networks.transfer import sent

        batch = {}
        same = {key: value for key, value in rows[0].items() if not isinstance(value, torch.Tensor)}
        for key in rows[0].keys() - same.keys():
            parts = [row[key] for row in rows]
            left = "input_ids" in rows[0] and key in ON_THE_LEFT
            value = self._processor.tokenizer.pad_token_id if key == "input_ids" else 0
            if parts[0].ndim > 1:  # all dimensions but that of time are alike
                time = next(
                    (axis for axis in range(1, parts[0].ndim) if len({array.shape[axis] for array in parts}) > 1), 1
                )
                longest = max(array.shape[time] for array in parts)
                behind = [0, 0] * (parts[0].ndim - 1 - time)
                missing = [longest - array.shape[time] for array in parts]
                sides = [[*behind, *((count, 0) if left else (0, count))] for count in missing]
                parts = [torch.nn.functional.pad(array, padding, value=value) for array, padding in zip(parts, sides)]
            batch[key] = torch.cat(parts).numpy()
        return {**same, **dict(zip(batch, sent(list(batch.values()), self.device)))}

    def _ends(self) -> set[int]:
        """The tokens with which a text ends."""
        ends = self._net.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def _transcript(self, tokens: list[int], language: str | None) -> PieceTranscript:
        tokenizer, ends = self._processor.tokenizer, self._ends()
        last = next((index for index, token in enumerate(tokens) if token in ends), None)
        text = tokenizer.decode(tokens[:last], skip_special_tokens=True)
        fault = "" if last is not None else f"the recogniser's text did not end within {self._most} tokens"
        return PieceTranscript(self._family.clean(self._processor, str(text)).strip(), language or "", fault)

    def _merged(self, tokens: list[int], language: str | None) -> PieceTranscript:
        """The text of the tokens of frames, of which equal neighbours are one."""
        return self._joined(tokens, language, group_tokens=True)

    def _joined(self, tokens: list[int], language: str | None, **options: bool) -> PieceTranscript:
        text = self._processor.tokenizer.decode(tokens, skip_special_tokens=True, **options)
        return PieceTranscript(str(text).strip(), language or "")

    def result(self, parts: Sequence[PieceTranscript], language: str | None) -> Result:
        """The result of a signal from what was heard in its pieces, in order."""
        result = super().result(parts, language)
        if language in UNSPACED:
            result["transcript"] = joined(parts, between="")
        return {**result, "language": language, "language_detected": False} if language is not None else result


class TransformersRecogniser24k(TransformersRecogniser):
    """Recognisers of `FAMILIES` that hear 24 kHz.

    Result: as for `TransformersRecogniser`.

    Reference implementation: as for `TransformersRecogniser`.

    Args:
        model: the name of VibeVoice ASR or of a recogniser of Kyutai. device, weights, point: as for
            `TransformersRecogniser`.
    """

    rate_hz = 24_000
    models: ClassVar[Mapping[str, str]] = {name: name for name, family in FAMILIES.items() if family.rate_hz == 24_000}
