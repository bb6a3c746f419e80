"""Models of transformers that read fields: Whisper and VITS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.features.recognisers.whisper_checkpoint import ALIASES
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import EMPTY
from codec_bench.models.in_process.families.base import Family, FamilyRow, FamilySettings, seeded
from codec_bench.models.in_process.families.checkpoint import As, load_net
from codec_bench.networks.precision import computing
from codec_bench.text.language import base_language
from codec_bench.types import Audio, Request, Response


class WhisperModel(Family):
    """Transcribes audio of up to 30 s without timestamps; longer audio in windows.

    The language is the request's field `language`, or detected per recording. The recogniser of the same name
    (`kind: recogniser`) is faster and has no limit of length.
    """

    def load(self) -> None:
        """Load network, feature extractor and tokenizer."""
        from transformers import AutoFeatureExtractor, AutoTokenizer

        folder = str(self.loading.folder)
        self.extractor: Any = AutoFeatureExtractor.from_pretrained(folder, local_files_only=True)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        loader = As("WhisperForConditionalGeneration", self.loading.dtype)
        self.net = load_net(loader, self.loading.folder, self.loading.model_type, self.loading.device)

    def prepare(self, request: Request) -> FamilyRow:
        """Compute a recording's spectrogram; only rows of one language share a batch.

        Raises:
            UserError: the request has not exactly one recording, or a language that the network does not know.
        """
        clips = list(clips_of(request))
        if len(clips) != 1:
            raise UserError("whisper_one_recording", recordings=len(clips))
        named = request.fields.get("language")
        language = ALIASES.get(base_language(named), base_language(named)) if named else None
        known = getattr(self.net.generation_config, "lang_to_id", None) or {}
        if language is not None and known and f"<|{language}|>" not in known:
            raise UserError("whisper_language", language=language)
        signal = clips[0].read().samples[0]
        mel = self.extractor(signal, sampling_rate=self.rate_hz, return_tensors="pt")
        return FamilyRow({"input_features": mel["input_features"]}, group=language if known else None)

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Generate the transcripts of all rows (prepared requests) as one batch."""
        import torch

        features = torch.cat([row.inputs["input_features"] for row in rows])
        features = features.to(self.loading.device, self.net.dtype)
        # The four tokens of the prompt take positions of the decoder.
        room = min(settings.max_tokens, self.net.config.max_target_positions - 4)
        sampling = (
            {"temperature": settings.temperature, "do_sample": True} if settings.sampled else {"do_sample": False}
        )
        options = {"language": rows[0].group, "task": "transcribe"} if _is_multilingual(self.net) else {}
        with computing(self.loading.device, "float32"), seeded(settings, self.loading.device):
            out = self.net.generate(
                features, max_new_tokens=room, num_beams=1, return_timestamps=False, **options, **sampling
            )
        return [self._response(tokens, room) for tokens in out.tolist()]

    def _response(self, tokens: list[int], room: int) -> Response:
        """Decode tokens to a response; from `room` tokens on it ends by `length`."""
        ends = self.net.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        # `generate` omits the end token of a single row, and pads several rows with it.
        last = next((index for index, token in enumerate(tokens) if token in ends), len(tokens))
        special = set(self.tokenizer.all_special_ids)
        written = [token for token in tokens[:last] if token not in special]
        finish = "length" if len(written) >= room else "stop"
        text = self.tokenizer.decode(written, skip_special_tokens=True).strip()
        usage = {"output_tokens": len(written) + (finish == "stop")}
        return Response(text=text, usage=usage, finish=finish, notes=() if text else (EMPTY,))


def _is_multilingual(net: Any) -> bool:
    return bool(
        getattr(net.generation_config, "is_multilingual", None) or getattr(net.generation_config, "lang_to_id", None)
    )


class Vits(Family):
    """Speaks the field `text` in its one voice, one request at a time, seeded."""

    def load(self) -> None:
        """Load network and tokenizer."""
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(str(self.loading.folder), local_files_only=True)
        loader = As("VitsModel", self.loading.dtype)
        self.net = load_net(loader, self.loading.folder, self.loading.model_type, self.loading.device)

    def prepare(self, request: Request) -> FamilyRow:
        """Tokenize the field `text`; UserError if it cannot be spoken."""
        text = request.fields.get("text")
        if not isinstance(text, str) or not text.strip():
            raise UserError("no_text_to_speak")
        if any(isinstance(value, Clip) for value in request.fields.values()):
            raise UserError("single_voice")
        inputs = self.tokenizer(text, return_tensors="pt")
        if not inputs["input_ids"].shape[1]:
            raise UserError("no_known_character", text=text[:80])
        return FamilyRow(dict(inputs), wants=request.wants)

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Synthesise each row's text, one after the other; `settings` give the seed."""
        return [self._speak(row, settings) for row in rows]

    def _speak(self, row: FamilyRow, settings: FamilySettings) -> Response:
        """Synthesise one prepared text, with noise from the settings' seed."""
        noise = FamilySettings(temperature=1.0, seed=settings.seed)
        inputs = {key: value.to(self.loading.device) for key, value in row.inputs.items()}
        with computing(self.loading.device, "float32"), seeded(noise, self.loading.device):
            wave = self.net(**inputs).waveform
        audio = Audio(wave.reshape(1, -1).float().cpu().numpy(), self.net.config.sampling_rate)
        return Response(audio=audio, finish="stop")
