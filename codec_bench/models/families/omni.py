"""Qwen2.5-Omni and Qwen3-Omni: a thinker that writes, and a talker with a vocoder that speaks what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from codec_bench.errors import WeightsError
from codec_bench.features.precision import computing
from codec_bench.models.families.base import Row, drawing, hearing
from codec_bench.models.families.chat import Chat
from codec_bench.models.families.settings import Settings
from codec_bench.types import Audio, Response

if TYPE_CHECKING:
    import torch

SPOKEN_HZ = 24_000


class Omni(Chat):
    """What both generations share: the talker is loaded where sound is wanted, and pictures never.

    Spoken answers are drawn, as published (the talker has no greedy decoding worth hearing), one request at a time.
    """

    processor_name: ClassVar[str]
    spoken: ClassVar[tuple[str, ...]] = ("talker.", "token2wav.", "code2wav.")

    def left_out(self) -> dict[str, Any]:
        """The talker, where only text is wanted."""
        if self.loading.speaks:
            return {}
        return {"without": self.spoken, "changes": (("enable_audio_output", False),)}

    def load_processor(self) -> Any:
        """The processor for text and sound."""
        import transformers

        tokenizer = self.load_part("AutoTokenizer")
        template = self.loading.folder / "chat_template.json"  # where the first checkpoints keep it
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

    def answer(self, rows: Sequence[Row], settings: Settings) -> list[Response]:
        """Texts of all rows together; where sound is wanted, a row at a time."""
        if rows[0].wants == "text":
            return super().answer(rows, settings)
        return [self._spoken(row, settings) for row in rows]

    def _spoken(self, row: Row, settings: Settings) -> Response:
        inputs = self.on_device(row.inputs)
        spoken = Settings(temperature=1.0, seed=settings.seed)  # the talker draws whatever the thinker does
        voice = {"speaker": self.loading.speaker} if self.loading.speaker else {}
        with computing(self.loading.device, "float32"), drawing(spoken, self.loading.device):
            tokens, wave = self.net.generate(
                **inputs,
                **voice,
                generation_mode="audio",
                **self.thinker(settings),
            )
        asked = inputs["input_ids"].shape[1]
        sequence = tokens.sequences if hasattr(tokens, "sequences") else tokens
        said = self.response(sequence[0, asked:].tolist(), asked, settings)
        if said.status != "ok":
            return said
        wave = wave[0] if isinstance(wave, (list, tuple)) else wave
        samples = wave.reshape(1, -1).float().cpu().numpy()
        return Response(text=said.text, audio=Audio(samples, SPOKEN_HZ), usage=said.usage, finish=said.finish)

    def thinker(self, settings: Settings) -> dict[str, Any]:
        """The settings of the written part."""
        given = {
            "thinker_max_new_tokens": settings.max_tokens,
            "thinker_do_sample": settings.sampled,
            "thinker_eos_token_id": self.end_ids,
            "thinker_repetition_penalty": settings.repetition_penalty,
        }
        if settings.sampled:
            given |= {"thinker_temperature": settings.temperature, "thinker_top_p": settings.top_p}
            given |= {"thinker_top_k": settings.top_k}
        return given


class Qwen25Omni(Omni):
    """Qwen2.5-Omni; its encoder hears 2 s at a time, packed, with what is padded masked."""

    net_class: ClassVar[str | None] = "Qwen2_5OmniForConditionalGeneration"
    processor_name: ClassVar[str] = "Qwen2_5OmniProcessor"

    def load(self) -> None:
        """Loads network and processor, and the voices where sound is wanted.

        Raises:
            WeightsError: the file with the voices is missing.
        """
        super().load()
        if not self.loading.speaks:
            return
        voices = self.loading.folder / "spk_dict.pt"
        if not voices.is_file():
            raise WeightsError(f"the weights in '{self.loading.folder}' have no spk_dict.pt, which holds the voices")
        self.net.load_speakers(str(voices))


class Qwen3Omni(Omni):
    """Qwen3-Omni, Instruct and Thinking.

    Its encoder pads the windows of 1 s that it hears to the longest of the batch and does not mask them: a recording
    shorter than one window is heard otherwise beside a longer one, and so asked by itself.
    """

    net_class: ClassVar[str | None] = "Qwen3OmniMoeForConditionalGeneration"
    processor_name: ClassVar[str] = "Qwen3OmniMoeProcessor"

    def prepare(self, request: Any) -> Row:
        """The request through the processor, alone; one that is heard otherwise in a batch has a group of its own."""
        row = super().prepare(request)
        mask = row.inputs.get("feature_attention_mask")
        window = 2 * self.net.thinker.config.audio_config.n_window
        if mask is None or int(mask.sum(-1).max()) >= window:
            return row
        return Row(row.inputs, (*row.group, "short", request.id), row.wants)

    def collate(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """Rows stacked; spectrograms are padded to the longest, and the network takes them apart by their masks."""
        longest = max((r.inputs["input_features"].shape[2] for r in rows if "input_features" in r.inputs), default=0)
        return super().collate([Row(_to_length(row.inputs, longest), row.group) for row in rows])


def _to_length(inputs: Mapping[str, Any], longest: int) -> dict[str, Any]:
    import torch

    return {
        key: torch.nn.functional.pad(value, (0, longest - value.shape[-1]))
        if key in ("input_features", "feature_attention_mask")
        else value
        for key, value in inputs.items()
    }
