"""Transcripts in five languages by SenseVoice-Small, through FunASR's network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.audio.padded_passes import passes
from codec_bench.features.base import Result, Unavailable
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.features.recognisers import funasr
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import computing

NAME = "sensevoice-small"
ALLOWED = {
    "model": ("SenseVoiceSmall",),
    "encoder": ("SenseVoiceEncoderSmall",),
    "frontend": ("WavFrontend",),
    "tokenizer": ("SentencepiecesTokenizer",),
}
EVENT_AND_EMOTION = (1, 2)
"""Rows of the model's prompt table that request the sound event and the emotion."""
NO_NUMERALS = "woitn"
FRAMES_PER_S = 100 / 6
LANGUAGES = ("zh", "en", "yue", "ja", "ko", "nospeech")
EMOTIONS = ("HAPPY", "SAD", "ANGRY", "NEUTRAL", "FEARFUL", "DISGUSTED", "SURPRISED", "EMO_UNKNOWN")
EVENTS = (
    *("BGM", "Speech", "Applause", "Laughter", "Cry", "Sneeze", "Breath", "Cough", "Sing", "Speech_Noise"),
    *("Event_UNK", "GBG"),
)
_TAG = re.compile(r"<\|([^|]*)\|>")


class SenseVoice(funasr.FunasrFeature):
    """Transcripts by SenseVoice-Small, without punctuation, with tags for the speech.

    Four prompts precede the signal: its language (`auto` if unknown), the sound event, the emotion, and that numbers
    stay words (`woitn`, FunASR's default). The model writes tags such as `<|zh|><|NEUTRAL|><|Speech|><|woitn|>` at the
    start of its text, which are removed. The whole signal is recognised in one pass. FunASR masks all layers, so
    padding changes nothing.

    Result: `{"transcript": str, "tokens": int64 (tokens,), "language": str, "emotion": str, "event": str}`. The tokens
    are entries of the vocabulary, including tags. A missing tag is "".

    Paper: K. An et al., "FunAudioLLM", 2024. Reference implementation: FunASR 1.4 `AutoModel.generate`, one file at a
    time, right after `torch.manual_seed(0)`: the same tokens and text (log-probabilities to 1e-5 of their largest).

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder in the published layout or its `.pt` file; None for the published weights.
        point: `tf32`, `bfloat16`, or None.

    Raises:
        UserError: no such point. MissingExtra: FunASR is not installed. WeightsError: the weights are missing or belong
            to another model (raised by `load`).
    """

    name = NAME
    languages = ("zh", "en", "yue", "ja", "ko")
    reads_language = True
    allowed = ALLOWED
    vocabulary = ("bpemodel", "chn_jpn_yue_eng_ko_spectok.bpe.model")

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        self.protocol = self.protocol_id(point=point)
        self._precision = parse_precision(NAME, point)
        super().__init__(device, weights, NAME)

    @classmethod
    def protocol_id(cls, model: str = NAME, point: str | None = None) -> str:
        """Return the id at a point; weights and FunASR need not be installed.

        Raises:
            UserError: no such model or point.
        """
        if model != NAME:
            raise UserError("no_variant", variant=model, name="SenseVoice", hint=f"use {NAME}")
        return f"{NAME}/funasr-1{suffix(parse_precision(NAME, point))}"

    def compute(
        self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None
    ) -> list[Result | Unavailable]:
        """Transcribe signals `(samples,)`, float32 at 16 kHz.

        Args:
            languages: base code of each signal's language, or None.
        """
        self.load()
        languages = [None] * len(signals) if languages is None else languages
        results: list[Any] = [
            None if reason is None else Unavailable(reason) for reason in map(funasr.why_not, signals)
        ]
        places = [index for index, result in enumerate(results) if result is None]
        most = round(self.batch_s * self.rate_hz)
        for group in passes(
            [signals[index].size for index in places], self.device, most=most, most_on_cpu=most, slack=funasr.SIMILAR
        ):
            some = [places[n] for n in group]
            recognised = self._recognise([signals[index] for index in some], [languages[index] for index in some])
            for index, tokens in zip(some, recognised):
                results[index] = self._result(tokens)
        return results

    def _recognise(self, signals: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[list[int]]:
        """Return each signal's tokens: the best of each frame, collapsed as CTC does."""
        import torch

        logits, lengths = self._logits(signals, languages)
        tokens = []
        for best, length in zip(logits.argmax(dim=-1).cpu(), lengths.tolist()):
            collapsed = torch.unique_consecutive(best[:length])
            tokens.append(collapsed[collapsed != self._loaded().net.blank_id].tolist())
        return tokens

    def _logits(self, signals: Sequence[np.ndarray], languages: Sequence[str | None]) -> tuple[Any, Any]:
        """Compute log-probabilities of tokens for prompts and frames of each signal.

        Returns:
            `(signals, frames, vocabulary)`, and the number of frames of each signal; both include the prompts.
        """
        import torch

        from codec_bench.networks.transfer import sent

        net, front = self._loaded().net, self._loaded().front
        rows = [
            [net.lid_dict.get(language or "auto", 0), *EVENT_AND_EMOTION, net.textnorm_dict[NO_NUMERALS]]
            for language in languages
        ]
        with computing(self.device, self._precision):
            with torch.autocast(torch.device(self.device).type, enabled=False):
                features, lengths = front(signals)
                prompts = net.embed(sent([np.asarray(rows, np.int64)], self.device)[0])
            logits = in_shape(
                self._encoded, [features.transpose(1, 2)], lengths.tolist(), [prompts], steps_per_s=FRAMES_PER_S
            )
            return logits, lengths + prompts.shape[1]

    def _encoded(self, features: Any, prompts: Any, lengths: Sequence[int]) -> Any:
        """Run the encoder on prompts and features; return log-probabilities of tokens.

        Args:
            lengths: frames of each signal, without prompts.
        """
        import torch

        from codec_bench.networks.ragged import on_device

        net = self._loaded().net
        frames = on_device(lengths, self.device) + prompts.shape[1]
        encoded, _ = net.encoder(torch.cat([prompts, features.transpose(1, 2)], dim=1), frames)
        return net.ctc.log_softmax(encoded).float()

    def _result(self, tokens: Sequence[int]) -> Result:
        """Decode tokens to the transcript and the tags (language, emotion, event)."""
        text = self._loaded().tokenizer.decode(list(tokens))
        tags = _TAG.findall(text)
        labels = {
            label: next((tag for tag in tags if tag in known), "")
            for label, known in (("language", LANGUAGES), ("emotion", EMOTIONS), ("event", EVENTS))
        }
        return {"transcript": _TAG.sub("", text).strip(), "tokens": np.asarray(tokens, np.int64), **labels}
