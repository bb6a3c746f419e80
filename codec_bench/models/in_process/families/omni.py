"""Qwen2.5-Omni and Qwen3-Omni: the thinker writes, talker and vocoder speak."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from codec_bench.messages.errors import WeightsError
from codec_bench.models.in_process.families.base import FamilyRow, FamilySettings, hearing, seeded
from codec_bench.models.in_process.families.chat import Chat
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Response

if TYPE_CHECKING:
    import torch

SPOKEN_HZ = 24_000


class Omni(Chat):
    """The base of both generations. Loads the talker for speech, no image parts.

    The talker samples, as published, because its greedy output is unusable. Spoken answers run one at a time.
    """

    processor_name: ClassVar[str]
    spoken: ClassVar[tuple[str, ...]] = ("talker.", "token2wav.", "code2wav.")

    def excluded_parts(self) -> dict[str, Any]:
        """Exclude the talker if only text is requested."""
        if self.loading.speaks:
            return {}
        return {"without": self.spoken, "changes": (("enable_audio_output", False),)}

    def load_processor(self) -> Any:
        """Load the processor for text and audio."""
        import transformers

        tokenizer = self.load_part("AutoTokenizer")
        template = self.loading.folder / "chat_template.json"  # of the first checkpoints
        text = tokenizer.chat_template
        if text is None and template.is_file():
            text = json.loads(template.read_text("utf-8"))["chat_template"]
        return hearing(
            getattr(transformers, self.processor_name),
            feature_extractor=self.load_part("AutoFeatureExtractor"),
            tokenizer=tokenizer,
            chat_template=text,
        )

    def net_that_writes(self) -> Any:
        """The thinker."""
        return self.net.thinker

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Generate texts of all rows together; spoken answers one row at a time."""
        if rows[0].wants == "text":
            return super().answer(rows, settings)
        return [self._spoken(row, settings) for row in rows]

    def _spoken(self, row: FamilyRow, settings: FamilySettings) -> Response:
        """Generate a spoken answer: the thinker's text, spoken by the talker."""
        inputs = self.on_device(row.inputs)
        # The talker samples, even if the thinker is greedy.
        spoken = FamilySettings(temperature=1.0, seed=settings.seed)
        voice = {"speaker": self.loading.speaker} if self.loading.speaker else {}
        with computing(self.loading.device, "float32"), seeded(spoken, self.loading.device):
            options = {**voice, **self.thinker(settings)}
            tokens, wave = self.net.generate(**inputs, generation_mode="audio", **options)
        prompt_tokens = inputs["input_ids"].shape[1]
        sequence = tokens.sequences if hasattr(tokens, "sequences") else tokens
        response = self.response(sequence[0, prompt_tokens:].tolist(), prompt_tokens, settings)
        if response.status != "ok":
            return response
        wave = wave[0] if isinstance(wave, (list, tuple)) else wave
        samples = wave.reshape(1, -1).float().cpu().numpy()
        return Response(
            text=response.text, audio=Audio(samples, SPOKEN_HZ), usage=response.usage, finish=response.finish
        )

    def thinker(self, settings: FamilySettings) -> dict[str, Any]:
        """Return the generation arguments of the thinker, which writes the text."""
        options = {
            "thinker_max_new_tokens": settings.max_tokens,
            "thinker_do_sample": settings.sampled,
            "thinker_eos_token_id": self.end_ids,
            "thinker_repetition_penalty": settings.repetition_penalty,
        }
        if settings.sampled:
            options |= {"thinker_temperature": settings.temperature, "thinker_top_p": settings.top_p}
            options |= {"thinker_top_k": settings.top_k}
        return options


class Qwen25Omni(Omni):
    """Qwen2.5-Omni. Its encoder takes packed blocks of 2 s and masks padding."""

    net_class: ClassVar[str | None] = "Qwen2_5OmniForConditionalGeneration"
    processor_name: ClassVar[str] = "Qwen2_5OmniProcessor"

    def load(self) -> None:
        """Load network and processor, and the voices for spoken answers."""
        super().load()
        if not self.loading.speaks:
            return
        voices = self.loading.folder / "spk_dict.pt"
        if not voices.is_file():
            raise WeightsError("no_voice_table", folder=self.loading.folder)
        self.net.load_speakers(str(voices))


class Qwen3Omni(Omni):
    """Qwen3-Omni, Instruct and Thinking.

    Its encoder pads windows of 1 s to the longest of the batch without a mask. A recording shorter than one window
    therefore depends on the batch, and is answered alone.
    """

    net_class: ClassVar[str | None] = "Qwen3OmniMoeForConditionalGeneration"
    processor_name: ClassVar[str] = "Qwen3OmniMoeProcessor"

    def prepare(self, request: Any) -> FamilyRow:
        """Process one request. A recording shorter than one window gets its own batch."""
        row = super().prepare(request)
        mask = row.inputs.get("feature_attention_mask")
        window = 2 * self.net.thinker.config.audio_config.n_window
        if mask is None or int(mask.sum(-1).max()) >= window:
            return row
        return FamilyRow(row.inputs, (row.group, "short", request.id), row.wants)

    def collate(self, rows: Sequence[FamilyRow]) -> dict[str, torch.Tensor]:
        """Stack rows, with spectrograms padded to the longest and masked."""
        longest = max((r.inputs["input_features"].shape[2] for r in rows if "input_features" in r.inputs), default=0)
        return super().collate([FamilyRow(_pad_inputs(row.inputs, longest), row.group) for row in rows])


def _pad_inputs(inputs: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Pad the audio features and their mask to a length."""
    import torch

    return {
        key: torch.nn.functional.pad(value, (0, longest - value.shape[-1]))
        if key in ("input_features", "feature_attention_mask")
        else value
        for key, value in inputs.items()
    }
