"""Transcripts by recognisers with their own transformers processors.

The processor gets every piece alone, because front ends normalise over their input. Prompts are padded on the left and
spectrograms on the right, both masked. Tokens beyond a piece's own frames are dropped: a transducer, like a network
that writes after each frame, goes on while others of its batch do. No token depends on later frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, ClassVar, Literal

import numpy as np

from codec_bench.features.base import Result
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser, joined
from codec_bench.features.recognisers.speech_windows import UNSPACED
from codec_bench.features.recognisers.transformers_checkpoint import GREEDY, check_kind
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, WeightsError, optional_package
from codec_bench.networks.precision import computing

MAX_TOKENS = 512
"""Limit per piece. Thirty-five seconds of fast speech take less than half of it."""
ON_THE_LEFT = ("input_ids", "attention_mask")
"""Inputs padded on the left where there is a prompt: the prompt and its mask."""


@dataclass(frozen=True, slots=True)
class RecogniserFamily:
    """The inputs and outputs of the recognisers of one class.

    Args:
        kind: the `model_type` that a checkpoint states. net: the class of the network in transformers.
        languages: base codes of those that it transcribes.
        ask: the processor's inputs for a piece `(samples,)` in a language or None, as a batch of one.
        whole_s: the longest signal that is not cut.
        takes_language: whether it needs the language.
        writes: `text`: tokens until an end; `frames`: a token or blank per frame; `transducer`: tokens and blanks, a
            blank advances one frame; `steps`: a token or padding per step of sound; `codes`: the same per frame of a
            codec.
        needs: a package that its processor imports, and its extra.
        longer: the limit of tokens per piece, as a multiple of `MAX_TOKENS`. rate_hz: of the input.
        clean: post-processes a decoded text. mended: the network with the parts that transformers omits.
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
    """Inputs of recognisers that write speakers and times and take no language."""
    inputs: Any = processor.apply_transcription_request(segment, return_tensors="pt")
    return inputs


def _audio_inputs(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    inputs: Any = processor(segment, sampling_rate=RATE_HZ, return_tensors="pt")
    return inputs


def _prompted(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """Return the inputs of Nemotron 3.5 for a segment in a language.

    Its prompts name a language with a region, or the code alone; None lets the model detect it.
    """
    known = processor.prompt_dictionary
    spoken = (name for name in known if name == language or name.startswith(f"{language}-"))
    inputs: Any = processor(segment, language=next(spoken, "auto"), sampling_rate=RATE_HZ, return_tensors="pt")
    return inputs


def _framed(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """Inputs of Kyutai's recognisers, whose processor adds the silence at both ends."""
    inputs: Any = processor(audio=segment, sampling_rate=24_000, return_tensors="pt")
    return {"input_values": inputs["input_values"]}


def _stepped(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """Return the inputs of Voxtral Realtime; its tokenizer adds silence and padding."""
    inputs: Any = processor(segment, sampling_rate=RATE_HZ, return_tensors="pt")
    return {**inputs, "num_delay_tokens": processor.num_delay_tokens}


def _words_alone(processor: Any, text: str) -> str:
    """Return a text without its speakers and times; unreadable text as it is."""
    return str(processor.extract_transcription(text))


def _without_noise(processor: Any, segment: np.ndarray, language: str | None) -> Mapping[str, Any]:
    """Return inputs of VibeVoice ASR that switch off its noise, to be reproducible."""
    return {**_written_down(processor, segment, language), "sample": False}


def _masked_adaptor(net: Any) -> Any:
    """Mask the padding in Fun-ASR-Nano's adaptor.

    In transformers 5.23 its attention has no implementation, and adds the boolean mask to the weights.
    """
    net.config.adaptor_config._attn_implementation = net.config.audio_config._attn_implementation
    return net


def _precise_codec(net: Any) -> Any:
    """Make a network's codec compute in float32 at every precision, in place.

    So does transformers, since lower precision changes the codes. Returns the network.
    """
    import torch

    encode = net.codec_model.encode

    def precise(values: Any, **state: Any) -> Any:
        with torch.autocast(values.device.type, enabled=False):
            return encode(values, **state)

    net.codec_model.encode = precise
    return net


NEMOTRON = tuple(
    (
        "en es de fr it ar ja ko pt ru hi zh vi he nl cs da pl no nb nn sv th tr bg el et fi hr hu lt lv ro sk uk mt sl"
    ).split()
)
"""Nemotron 3.5's languages by its card, which says that eight of its forty locales need more training."""

FAMILIES = {
    "cohere-transcribe-03-2026": RecogniserFamily(
        "cohere_asr", "CohereAsrForConditionalGeneration",
        ("ar", "de", "el", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "vi", "zh"), _language_inputs, 35.0,
        takes_language=True,
    ),
    "fun-asr-nano-2512": RecogniserFamily(
        "fun_asr_nano", "FunAsrNanoForConditionalGeneration", ("zh", "en", "ja"), _requested, 30.0,
        clean=lambda processor, text: processor._strip_assistant_prefix_and_quotes(text), mended=_masked_adaptor,
    ),
    "granite-speech-5.0-470m-turboctc": RecogniserFamily(
        "granite_speech5_ctc", "GraniteSpeech5ForCTC", ("en",), _audio_inputs, 60.0, writes="frames",
    ),
    "nemotron-speech-streaming-en-0.6b": RecogniserFamily(
        "nemotron_asr_streaming", "NemotronAsrStreamingForRNNT", ("en",), _audio_inputs, 60.0, writes="transducer",
    ),
    "nemotron-3.5-asr-streaming-0.6b": RecogniserFamily(
        "nemotron3_5_asr", "Nemotron3_5AsrForRNNT", NEMOTRON, _prompted, 60.0, writes="transducer",
    ),
    "moss-transcribe-diarize": RecogniserFamily(
        "moss_transcribe_diarize", "MossTranscribeDiarizeForConditionalGeneration", (), _written_down, 120.0, longer=2,
        clean=_words_alone,
    ),
    "vibevoice-asr": RecogniserFamily(
        "vibevoice_asr", "VibeVoiceAsrForConditionalGeneration", (), _without_noise, 120.0, longer=2, rate_hz=24_000,
        clean=_words_alone,
    ),
    "kyutai-stt-2.6b-en": RecogniserFamily(
        "kyutai_speech_to_text", "KyutaiSpeechToTextForConditionalGeneration", ("en",), _framed, 120.0, writes="codes",
        rate_hz=24_000, mended=_precise_codec,
    ),
    "kyutai-stt-1b-en-fr": RecogniserFamily(
        "kyutai_speech_to_text", "KyutaiSpeechToTextForConditionalGeneration", ("en", "fr"), _framed, 120.0,
        writes="codes", rate_hz=24_000, mended=_precise_codec,
    ),
    "voxtral-mini-4b-realtime-2602": RecogniserFamily(
        "voxtral_realtime", "VoxtralRealtimeForConditionalGeneration",
        ("ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pt", "ru", "zh"), _stepped, 120.0, writes="steps",
        needs=("mistral-common", "audio-llm"),
    ),
}  # fmt: skip
"""The recognisers. Their weights have the same names in the catalogue."""


class TransformersRecogniser(PiecewiseRecogniser):
    """Transcripts by recognisers with their own processors, decoded greedily.

    Cohere Transcribe needs the language, one of 14, and writes capitals and punctuation. Fun-ASR-Nano transcribes
    Mandarin, English and Japanese and takes the language if it is known. Granite Speech 5.0 TurboCTC transcribes
    English: the most probable token of each frame, without repeats and blanks. The Nemotrons look ahead by as many
    frames as their processor states and get the signal whole; 3.5 takes the language or detects it.
    MOSS-Transcribe-Diarize and VibeVoice ASR write speakers and times and detect the language; only the words stay, or
    all of an unreadable text. VibeVoice runs without the noise on its latents that it draws by default. Kyutai's
    recognisers write a token or padding after each frame of 80 ms, with a delay; their processor adds the silence
    before and the delay after. Voxtral Realtime does so too, with the delay that its tokenizer's file states (480 ms);
    its tokenizer rounds audio to 16 bits. A signal longer than `whole_s` is cut (`PiecewiseRecogniser`): Cohere's
    processor cuts after 30 to 35 s by a similar rule, and Fun-ASR's package after 30 s by a voice activity network.

    Result: `transcript`; `language`, if it was an input. `fault` reports a text that did not end.

    Reference implementation: each class of `FAMILIES` and its processor in transformers 5.23, each signal alone: the
    same tokens in float32.

    Args:
        model: a key of `FAMILIES`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model. MissingExtra: Voxtral Realtime's package is
            not installed (raised by `load`).
    """

    name = "transformers-asr"
    reads_language = True
    models: ClassVar[Mapping[str, str]] = {name: name for name, family in FAMILIES.items() if family.rate_hz == RATE_HZ}

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(model, device, weights, point)
        self._family = FAMILIES[model]
        self.languages, self.whole_s = self._family.languages, self._family.whole_s
        self.needs_language = self._family.takes_language

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """Return the id of a recogniser, without its weights; the family sets `whole_s`."""
        protocol = super().protocol_id(model, point)
        return protocol.replace(cls.decoding_id(), f"greedy/whole-to-{FAMILIES[model].whole_s:g}s", 1)

    @classmethod
    def languages_of(cls, model: str) -> tuple[str, ...]:
        """Return the base codes of the languages that a recogniser transcribes."""
        return FAMILIES[model].languages

    @property
    def _most(self) -> int:
        return MAX_TOKENS * self._family.longer

    @property
    def shortest(self) -> int:
        """The fewest samples: a tenth of a second."""
        return self.rate_hz // 10

    def _network(self) -> Any:
        """Load the network and its processor.

        Raises:
            WeightsError: they are broken, of another kind, or for another sample rate.
        """
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
            raise WeightsError("processor_unreadable", folder=self._folder, cause=reason) from error
        if rate_hz != self.rate_hz:
            raise WeightsError("weights_rate", folder=self._folder, rate_hz=rate_hz, expected_hz=self.rate_hz)
        return self._family.mended(load_pretrained(net, str(self._folder), {}))

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe each segment, in its language where the recogniser takes one."""
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
        """Return a transducer's tokens within each segment's frames, without padding."""
        for row, tokens, steps in zip(rows, generated.sequences.tolist(), generated.durations.tolist()):
            frames = self._net.encoder._get_subsampling_output_length(row["attention_mask"].sum(-1)).item()
            starts = accumulate(steps[:-1], initial=0)
            yield [token for token, start in zip(tokens[: self._most_tokens(row)], starts) if start < frames]

    def _own_steps(self, rows: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Iterator[list[int]]:
        """Generate a batch, with as many steps for each segment as its audio has.

        Yields:
            Each segment's tokens after the prompt, up to the first end token.
        """
        before, ends = inputs["input_ids"].shape[1], self._ends()
        counts = [-(-row["input_features"].shape[-1] // self._net.config.audio_length_per_tok) for row in rows]
        generated = self._net.generate(**inputs, **GREEDY, max_new_tokens=max(counts) - before)
        for tokens, count in zip(generated.tolist(), counts):
            yield list(takewhile(lambda token: token not in ends, tokens[before:count]))

    def _own_codes(self, rows: Sequence[Mapping[str, Any]], inputs: Mapping[str, Any]) -> Iterator[list[int]]:
        """Generate a batch; yield each segment's tokens, one for each codec frame.

        transformers runs the codec frame by frame, and on the first frame twice. Here it runs at once, with the first
        frame repeated: the same codes.

        Args:
            rows: the inputs of each segment, for its length.
            inputs: those of all segments, padded.
        """
        import torch

        size = self._net.config.frame_size
        frames = [row["input_values"].shape[-1] // size for row in rows]
        values = torch.cat([inputs["input_values"][..., :size], inputs["input_values"]], dim=-1)
        lengths = {"audio_window_size": max(frames) + 1, "max_new_tokens": max(frames)}
        generated = self._net.generate(input_values=values, **lengths, cache_implementation="dynamic", **GREEDY)
        for tokens, count in zip(generated.tolist(), frames):
            yield tokens[1 : 1 + count]

    def _most_tokens(self, row: Mapping[str, Any]) -> int:
        """Return a transducer's limit of tokens for a segment, as transformers does."""
        frames = row["attention_mask"].new_tensor([row["input_features"].shape[1]], dtype=int)
        return int(self._net.max_symbols_per_step * self._net.encoder._get_subsampling_output_length(frames).item())

    def _collated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Batch inputs on the device, prompts padded on the left, spectrograms right."""
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
        ends = self._net.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def _transcript(self, tokens: list[int], language: str | None) -> PieceTranscript:
        """Decode a segment's tokens up to the first end token.

        A text without an end token has a `fault`.
        """
        tokenizer, ends = self._processor.tokenizer, self._ends()
        last = next((index for index, token in enumerate(tokens) if token in ends), None)
        text = tokenizer.decode(tokens[:last], skip_special_tokens=True)
        fault = None if last is not None else Diagnostic("text_endless", tokens=self._most)
        return PieceTranscript(self._family.clean(self._processor, str(text)).strip(), language or "", fault)

    def _merged(self, tokens: list[int], language: str | None) -> PieceTranscript:
        """Join the text of tokens, one or none per frame, with equal neighbours merged."""
        return self._joined(tokens, language, group_tokens=True)

    def _joined(self, tokens: list[int], language: str | None, **options: bool) -> PieceTranscript:
        text = self._processor.tokenizer.decode(tokens, skip_special_tokens=True, **options)
        return PieceTranscript(str(text).strip(), language or "")

    def result(self, parts: Sequence[PieceTranscript], language: str | None) -> Result:
        """Join the transcripts of a signal's segments, in order, to the feature's result."""
        result = super().result(parts, language)
        if language in UNSPACED:
            result["transcript"] = joined(parts, between="")
        return {**result, "language": language, "language_detected": False} if language is not None else result


class TransformersRecogniser24k(TransformersRecogniser):
    """Recognisers of `FAMILIES` that read 24 kHz.

    Result: as `TransformersRecogniser`. Reference implementation: as there.

    Args:
        model: VibeVoice ASR or a recogniser of Kyutai. device, weights, point: as for `TransformersRecogniser`.
    """

    rate_hz = 24_000
    models: ClassVar[Mapping[str, str]] = {name: name for name, family in FAMILIES.items() if family.rate_hz == 24_000}
