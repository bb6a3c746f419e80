"""Text-to-speech models of transformers: CSM, Dia, Pocket TTS, Higgs, VibeVoice.

A request has the field `text`, and for voice cloning `prompt_audio` and its transcript `prompt_text`. An instruction or
an unsupported field is refused. Sampling follows the checkpoint's generation_config.json unless a temperature replaces
it: greedy output is unusable. Texts run one at a time because transformers draws all rows of a batch from one
generator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UserError, WeightsError, optional_package
from codec_bench.models.in_process.families.base import Family, FamilyRow, FamilySettings, seeded
from codec_bench.models.in_process.families.checkpoint import As, codec_of, load_net, read_config, read_settings
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Request, Response

if TYPE_CHECKING:
    import numpy as np
    import torch

Inputs = Mapping[str, Any]
PAUSE_S, CHARACTER_S = 10.0, 0.5
"""Longest output, in total and per character (Chinese takes 0.25 s, English 0.07)."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines(FamilyRow):
    """One text to read.

    Args:
        parts: network inputs of each segment, as a batch of one; segments are read in order.
        rooms: the most frames of each segment.
    """

    parts: tuple[Inputs, ...] = ()
    rooms: tuple[int, ...] = ()


class Voice(Family):
    """A model that reads a text aloud. Subclasses build inputs and decode outputs."""

    together = False
    net_class: ClassVar[str]
    processor_class: ClassVar[str]
    codec_name: ClassVar[str | None] = None
    imitates: ClassVar[bool] = True
    needs_transcript: ClassVar[bool] = False

    def load(self) -> None:
        """Load network, processor, and the codec that the processor names."""
        self.codec = self._codec()
        self.processor = self._load_processor()
        if self.codec is not None:  # only now: transformers copies it when it makes the processor
            self.codec.to(self.loading.device)
        loader = As(self.net_class, self.loading.dtype)
        self.net = load_net(loader, self.loading.folder, self.loading.model_type, self.loading.device)
        self.rate_hz = int(self.processor.feature_extractor.sampling_rate)

    def _codec(self) -> Any:
        """Load the codec that the checkpoint names, on the CPU; None for classes without."""
        if self.codec_name is None:
            return None
        codec = codec_of(self.loading.folder)
        if codec is None:
            raise WeightsError("voice_without_codec", folder=self.loading.folder)
        model_type = read_config(codec.folder)["model_type"]
        return load_net(As(self.codec_name, "float32"), codec.folder, model_type, "cpu")

    def _load_processor(self) -> Any:
        """Load feature extractor and tokeniser as one processor."""
        import transformers

        folder = str(self.loading.folder)
        try:
            parts = [
                kind.from_pretrained(folder, local_files_only=True)
                for kind in (transformers.AutoFeatureExtractor, transformers.AutoTokenizer)
            ]
            settings = {**read_settings(self.loading.folder, "processor_config.json")}
            settings.pop("audio_tokenizer", None)
            template = parts[1].chat_template or settings.pop("chat_template", None)
            more = {"chat_template": template} if template else {}
            more |= {"audio_tokenizer": self.codec} if self.codec is not None else {}
            return getattr(transformers, self.processor_class).from_args_and_dict(parts, settings, **more)
        except Exception as error:  # a missing file, a broken one, or a package that is not installed
            reason = " ".join(str(error).split())[:300]
            raise UserError("processor_not_loaded", folder=folder, cause=reason) from error

    # ---- from a request to inputs ----

    def prepare(self, request: Request) -> Lines:
        """Build the network inputs of the field `text`, with the voice prompt if any.

        UserError if the model lacks a requested feature.
        """
        text, prompt_text = request.fields.get("text"), request.fields.get("prompt_text")
        if not isinstance(text, str) or not text.strip():
            raise UserError("no_text_to_speak")
        if str(request.fields.get("instruction") or "").strip():
            raise UserError("follows_no_instruction")
        clips = {name: value for name, value in request.fields.items() if isinstance(value, Clip)}
        voice = clips.pop("prompt_audio", None)
        if clips or (voice is not None and not self.imitates):
            raise UserError("takes_no_sound", field=next(iter(clips), "prompt_audio"))
        prompt_text = prompt_text.strip() if isinstance(prompt_text, str) and voice is not None else ""
        if voice is not None and self.needs_transcript and not prompt_text:
            raise UserError("voice_without_transcript")
        self._refuse_marks(f"{text}\n{prompt_text}")
        wave = None if voice is None else voice.read().samples[0]
        with computing(self.loading.device, "float32"):
            parts = tuple(self.inputs(text.strip(), wave, prompt_text))
        rooms = tuple(self._room(text, segment, request.parameters.get("max_tokens")) for segment in parts)
        temperature = request.parameters.get("temperature")
        return Lines({}, group=temperature, wants=request.wants, parts=parts, rooms=rooms)

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of each segment of a text.

        Args:
            wave: the voice prompt, one channel at `rate_hz`, or None.
            prompt_text: its transcript, or empty.
        """
        raise NotImplementedError

    def _refuse_marks(self, text: str) -> None:
        """Raise a UserError if a text contains a special token of the model."""
        names = {token for token in self.processor.tokenizer.all_special_tokens if token}
        names |= {value for key, value in vars(self.processor).items() if key.endswith("_token") and value}
        mark = next((name for name in sorted(names) if name in text), None)
        if mark is not None:
            raise UserError("text_holds_mark", mark=mark)

    # ---- from inputs to sound ----

    frame_rate: float = 12.5
    """Frames of the network per second of sound."""

    def positions(self) -> int:
        """Return the network's maximum of frames and tokens."""
        return int(self.net.config.max_position_embeddings)

    def budget(self, text: str, inputs: Inputs) -> int:
        """Return the most frames of a segment for its text length."""
        return math.ceil((PAUSE_S + CHARACTER_S * len(text)) * self.frame_rate)

    def _prompt(self, wave: np.ndarray | None) -> dict[str, Any]:
        return {} if wave is None else {"audio": [wave], "sampling_rate": self.rate_hz}

    def _room(self, text: str, inputs: Inputs, requested: int | None) -> int:
        left = self.positions() - self.used_positions(inputs)
        if left < 1:
            raise UserError("no_position_to_speak", positions=self.positions())
        return min(self.budget(text, inputs), left, *([] if requested is None else [requested]))

    def used_positions(self, inputs: Inputs) -> int:
        """Return the number of positions that the inputs occupy."""
        return int(inputs["input_ids"].shape[1])

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Return the audio of each text, one after the other."""
        return [self._spoken(row, settings) for row in rows if isinstance(row, Lines)]

    def _spoken(self, row: Lines, settings: FamilySettings) -> Response:
        """Synthesise the segments of a prepared text, and join their waveforms."""
        import torch

        device = self.loading.device
        noise = FamilySettings(temperature=1.0, seed=settings.seed)
        waves, cut = [], False
        try:
            with computing(device, "float32"), seeded(noise, device):
                for inputs, room in zip(row.parts, row.rooms, strict=True):
                    there = {key: self._to_device(value) for key, value in inputs.items()}
                    wave, is_complete = self.speak(there, room, self._sampling(row, settings))
                    if wave is not None and wave.numel():
                        waves.append(wave.reshape(-1).float().cpu())
                    cut = cut or not is_complete
        except UserError as error:
            return Response.failed(error.message)
        if not waves:
            return Response.failed(Diagnostic("no_sound_made"))
        audio = Audio(torch.cat(waves)[None].numpy(), self.rate_hz)
        return Response(audio=audio, finish="length" if cut else "stop")

    def _to_device(self, value: Any) -> Any:
        value = value.to(self.loading.device)
        return value.to(self.net.dtype) if value.is_floating_point() else value

    def _sampling(self, row: Lines, settings: FamilySettings) -> dict[str, Any]:
        if settings.sampled:
            return {"do_sample": True, **{name: getattr(settings, name) for name in ("temperature", "top_p", "top_k")}}
        return {"do_sample": False} if row.group == 0 else {}

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate the audio of one segment of a text.

        Args:
            inputs: from `inputs`, on the device.
            room: the most frames.
            sampling: arguments of `generate`.

        Returns:
            The waveform, None if there is none, and whether the segment ended before the limit.
        """
        raise NotImplementedError


class Csm(Voice):
    """CSM. The voice prompt is an earlier turn. A frame of zero codes ends the output."""

    net_class, processor_class = "CsmForConditionalGeneration", "CsmProcessor"
    needs_transcript = True

    def load(self) -> None:
        """Load network and processor, and the depth decoder's own sampling."""
        super().load()
        config, prefix = self.net.generation_config, "depth_decoder_"
        depth_settings = {name: value for name, value in vars(config).items() if name.startswith(prefix)}
        vars(self.net.depth_decoder.generation_config).update(
            {"_from_model_config": False},
            **{name.removeprefix(prefix): value for name, value in depth_settings.items()},
        )
        for name in depth_settings:
            delattr(config, name)
        self.frame_rate = float(self.net.config.codec_config.frame_rate)

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of a text, in a list of one.

        The voice prompt `wave` and its transcript come first, as an earlier turn of the same speaker.
        """
        speaker = self.loading.speaker or "0"
        turns = [{"role": speaker, "content": [{"type": "text", "text": text}]}]
        if wave is not None:
            content = [{"type": "text", "text": prompt_text}, {"type": "audio", "path": "voice"}]
            turns.insert(0, {"role": speaker, "content": content})
        written = self.processor.apply_chat_template(turns, tokenize=False)
        return [dict(self.processor(text=[written], **self._prompt(wave)))]

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate at most `room` frames of codes, and decode them by its own Mimi.

        Returns:
            The waveform, None if there is none, and whether the output ended before the limit.
        """
        more = {f"depth_decoder_{name}": value for name, value in sampling.items()}
        saved = dict(vars(self.net.depth_decoder.generation_config))
        try:
            out = self.net.generate(**inputs, max_new_tokens=room, **sampling, **more)
        finally:  # the sampling of one request does not leak into the next
            vars(self.net.depth_decoder.generation_config).clear()
            vars(self.net.depth_decoder.generation_config).update(saved)
        codes = getattr(out, "sequences", out)[0]
        zeros = codes == self.net.config.codebook_eos_token_id
        # As in transformers: generation stops when all codes but the last are zero; an all-zero frame is dropped.
        is_complete = bool(zeros[-1, :-1].all())
        frames = len(codes) - bool(zeros[-1].all())
        if not frames:
            return None, is_complete
        known = int(self.net.config.codec_config.codebook_size)
        if int(codes[:frames].max()) >= known:  # the network has three codes more than Mimi
            raise UserError("code_beyond_codec", value=int(codes[:frames].max()), known=known)
        wave = self.net.codec_model.decode(codes[:frames].T[None]).audio_values
        return wave, is_complete


class Dia(Voice):
    """Dia. Transcript and codes of the voice prompt precede text and output codes.

    A text without a speaker tag gets `[S1]`. The network reads 1,024 bytes of text.
    """

    net_class, processor_class = "DiaForConditionalGeneration", "DiaProcessor"
    codec_name = "DacModel"
    needs_transcript = True

    def load(self) -> None:
        """Load network, processor and the codec (DAC)."""
        super().load()
        self.frame_rate = self.rate_hz / self.codec.config.hop_length

    def _refuse_marks(self, text: str) -> None:
        # [S1] and [S2] name the speaker; they are not special tokens.
        return

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of a text: its bytes, and codes of the voice prompt."""
        # The same speaker says both, so the tag appears once.
        words = " ".join(filter(None, (prompt_text if wave is not None else "", text)))
        words = words if words.startswith(("[S1]", "[S2]")) else f"[S1] {words}"
        most = int(self.net.config.encoder_config.max_position_embeddings)
        length = len(self.processor.tokenizer(words, add_special_tokens=False)["input_ids"])
        if length > most:
            raise UserError("text_too_long_to_speak", bytes=length, most=most)
        # By name: the default value would warn of an unrelated length.
        return [dict(self.processor(text=[words], text_kwargs={"padding": "longest"}, **self._prompt(wave)))]

    def positions(self) -> int:
        """Return the decoder's maximum, less the end frames (one plus the codebook delay)."""
        return int(self.net.config.decoder_config.max_position_embeddings) - self._end()

    def _end(self) -> int:
        return max(self.net.config.delay_pattern) + 1

    def used_positions(self, inputs: Inputs) -> int:
        """Return the frames of the voice prompt plus the first new frame."""
        return int(self.processor.get_audio_prompt_len(inputs["decoder_attention_mask"]))

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate at most `room` frames after the voice prompt, and decode them by DAC.

        Returns:
            The waveform, None if there is none, and whether the output ended before the limit.
        """
        prompt_length = self.used_positions(inputs)
        out = self.net.generate(**inputs, max_new_tokens=room + self._end(), **sampling)
        codes = getattr(out, "sequences", out)
        unused = int((codes[0, :, 0] == self.net.config.decoder_config.pad_token_id).sum())
        frames = codes.shape[1] - unused - 1 - prompt_length
        is_complete = frames < room  # the class itself writes the end token at the limit
        if frames < 1:
            return None, is_complete
        return self.processor.batch_decode(codes, audio_prompt_len=prompt_length)[0], is_complete


class PocketTts(Voice):
    """Pocket TTS. Splits texts into sentences of at most 50 tokens, as its reference.

    Without a voice prompt it uses the voice `speaker`: a file, or a name in the checkpoint's folder `voices`, with
    latents `(frames, width)`, or `speaker_wavs` `(width, frames)`.
    """

    net_class, processor_class = "PocketTTSForConditionalGeneration", "PocketTTSProcessor"
    codec_name = "PocketTTSAudioTokenizerModel"

    def load(self) -> None:
        """Load network, processor, codec and the voice."""
        super().load()
        self.frame_rate = float(self.net.config.frame_rate)
        self.own_voice = self._own_voice()

    def width(self) -> int:
        """Return the width of a voice's latents."""
        return int(self.net.config.latent_dim)

    def _own_voice(self) -> torch.Tensor | None:
        """Read the latents of the voice that `speaker` names, `(frames, width)`, or None."""
        if self.loading.speaker is None:
            return None
        from safetensors.torch import load_file

        voice_path = Path(self.loading.speaker).expanduser()
        places = (voice_path, self.loading.folder / "voices" / f"{self.loading.speaker}.safetensors")
        file = next((path for path in places if path.is_file()), None)
        if file is None:
            raise WeightsError("voice_missing", voice=self.loading.speaker, path=places[0], other_path=places[1])
        try:
            held = load_file(str(file))
        except Exception as error:  # whatever a broken file raises
            raise WeightsError("voice_unreadable", path=file, cause=error) from error
        latents = held["speaker_wavs"].squeeze(0).T if "speaker_wavs" in held else next(iter(held.values())).squeeze(0)
        if len(held) != 1 or latents.ndim != 2 or latents.shape[1] != self.width():
            raise WeightsError(
                "voice_of_other_model",
                path=file,
                width=self.width(),
                shapes=", ".join((f"{name} {tuple(value.shape)}" for name, value in list(held.items())[:3])),
            )
        return latents.float().contiguous()

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of each sentence of a text, each with the voice.

        The voice is the recording `wave`, else that of `speaker`; the transcript is not used.
        """
        if wave is None and self.own_voice is None:
            raise UserError("needs_voice_recording")
        voice: dict[str, Any] = {"audio": [wave]} if wave is not None else {"audio_prompt_latents": [self.own_voice]}
        voice |= {"sampling_rate": self.rate_hz} if wave is not None else {}
        parts = []
        for segment in self.processor.split_text(text):
            content = [{"type": "audio", "path": "voice"}, {"type": "text", "text": segment}]
            written = self.processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
            parts.append(dict(self.processor(text=[written], return_tensors="pt", **voice)))
        if not parts:
            raise UserError("nothing_to_speak", text=text[:80])
        return parts

    def budget(self, text: str, inputs: Inputs) -> int:
        """Return the most frames of a sentence, by its tokens, as the reference does."""
        others = set(self.net._placeholder_token_ids())
        words = sum(token not in others for token in inputs["input_ids"][0].tolist())
        return math.ceil((words / 3 + 2) * self.frame_rate)

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate at most `room` latents of one sentence, and decode them by the codec.

        Returns:
            The waveform, None if there is none, and whether the output ended before the limit.
        """
        options = {name: value for name, value in sampling.items() if name in ("do_sample", "temperature")}
        out = self.net.generate(**inputs, return_dict_in_generate=True, max_new_tokens=room, **options)
        latents = out.audio_latents[0][out.audio_latents_mask[0].bool()]
        return (self.processor.decode(latents) if len(latents) else None), len(latents) < room


class GradiumPhonon(PocketTts):
    """Gradium Phonon: Pocket TTS with an unpublished voice codec, so it cannot clone."""

    net_class = "GradiumPhononTTSForConditionalGeneration"
    imitates = False

    def width(self) -> int:
        """Return the width of a voice's latents."""
        return int(self.net.config.audio_prompt_dim)


class HiggsAudio(Voice):
    """Higgs Audio v2. The voice prompt is a turn: user's text, model's audio.

    System text and scene are those of the examples in transformers.
    """

    net_class, processor_class = "HiggsAudioV2ForConditionalGeneration", "HiggsAudioV2Processor"
    codec_name = "HiggsAudioV2TokenizerModel"
    needs_transcript = True
    scene: ClassVar[tuple[str, str]] = ("Generate audio following instruction.", "Audio is recorded from a quiet room.")

    def load(self) -> None:
        """Load network, processor and codec."""
        super().load()
        self.frame_rate = self.rate_hz / self.codec.config.hop_length

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of a text, in a list of one.

        The voice prompt `wave`, as codes, and its transcript come first, as an earlier turn.
        """
        turns: list[tuple[str, dict[str, str]]] = [
            (role, {"type": "text", "text": description})
            for role, description in zip(("system", "scene"), self.scene, strict=True)
        ]
        if wave is not None:
            voice = {"type": "audio", "path": "voice"}
            turns += [("user", {"type": "text", "text": prompt_text}), ("assistant", voice)]
        turns.append(("user", {"type": "text", "text": text}))
        written = self.processor.apply_chat_template(
            [{"role": role, "content": [item]} for role, item in turns], add_generation_prompt=True, tokenize=False
        )
        return [dict(self.processor(text=[written], return_tensors="pt", **self._prompt(wave)))]

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate at most `room` frames of codes, and decode them by the codec.

        Returns:
            The waveform, None if there is none, and whether the output ended before the limit.
        """
        config = self.net.config
        codes = self.net.generate(**inputs, max_new_tokens=room + config.num_codebooks, **sampling)
        codes = getattr(codes, "audio_sequences", codes)
        start = int((codes[0] == config.audio_stream_bos_id).all(-1).nonzero()[-1])
        ends = (codes[0, start:] == config.audio_stream_eos_id).all(-1).nonzero()
        # Of the frames that are written, as many as there are codebooks less one begin or end the delayed ones.
        frames = (int(ends.min()) if len(ends) else codes.shape[1] - start) - config.num_codebooks
        if frames < 1:
            return None, bool(len(ends))
        return self.processor.batch_decode(codes)[0], bool(len(ends))


class VibeVoice(Voice):
    """VibeVoice, one speaker. Tokens are greedy; audio is drawn from noise.

    A voice prompt needs no transcript, and a temperature has no meaning.
    """

    net_class, processor_class = "VibeVoiceForConditionalGeneration", "VibeVoiceProcessor"

    def load(self) -> None:
        """Load network and processor; needs diffusers for the noise scheduler."""
        optional_package("diffusers", MissingExtra("vibevoice_scheduler", "diffusers", "audio-llm"))
        super().load()
        self.frame_rate = self.rate_hz / self.net.config.audio_config.hop_length

    def prepare(self, request: Request) -> Lines:
        """Build the inputs of a text. A temperature raises UserError."""
        if request.parameters.get("temperature") is not None:
            raise UserError("no_temperature")
        return super().prepare(request)

    def inputs(self, text: str, wave: np.ndarray | None, prompt_text: str) -> Sequence[Inputs]:
        """Return the network inputs of a text with the voice prompt, in a list of one."""
        content = [{"type": "text", "text": text}, *([] if wave is None else [{"type": "audio", "path": "voice"}])]
        turn = {"role": self.loading.speaker or "0", "content": content}
        written = self.processor.apply_chat_template([turn], tokenize=False)
        return [dict(self.processor(text=[written], return_tensors="pt", **self._prompt(wave)))]

    def positions(self) -> int:
        """Return the network's maximum of frames and tokens."""
        return int(self.net.config.text_config.max_position_embeddings)

    def speak(self, inputs: Inputs, room: int, sampling: Mapping[str, Any]) -> tuple[torch.Tensor | None, bool]:
        """Generate at most `room` frames of audio, which the network decodes itself.

        Returns:
            The waveform, and whether the output ended before the limit.
        """
        out = self.net.generate(**inputs, return_dict_in_generate=True, max_new_tokens=room)
        return out.audio[0], int(out.sequences[0, -1]) == self.net.config.eos_token_id
