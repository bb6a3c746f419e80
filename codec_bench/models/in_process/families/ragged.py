"""Models whose audio encoders depend on padding: audio is encoded one by one."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from codec_bench.messages.errors import UserError
from codec_bench.models.in_process.families.base import FamilyRow, FamilySettings, OneByOne, hearing
from codec_bench.models.in_process.families.chat import Chat
from codec_bench.types import Response

if TYPE_CHECKING:
    import torch


class Ragged(Chat):
    """A model whose encoder does not mask padding.

    Attributes
        sound: the names of the encoder's inputs; their first dimension is the recordings.
        alone: the replacement of the encoder.
    """

    parts: ClassVar[bool] = False
    sound: ClassVar[tuple[str, ...]] = ()
    alone: OneByOne

    def marker(self) -> str:
        """Return the text that marks the position of audio."""
        return self.processor.audio_token

    def collate(self, rows: Sequence[FamilyRow]) -> dict[str, torch.Tensor]:
        """Stack rows. Audio is padded on the right; the padding is not encoded."""
        import torch

        stacked = super().collate([self._without_sound(row) for row in rows])
        for key in self.sound:
            tensors = [row.inputs[key] for row in rows if key in row.inputs]
            if tensors:
                longest = max(tensor.shape[1] for tensor in tensors)
                stacked[key] = torch.cat([padded(tensor, longest) for tensor in tensors])
        return stacked

    def _without_sound(self, row: FamilyRow) -> FamilyRow:
        return FamilyRow({key: value for key, value in row.inputs.items() if key not in self.sound}, row.group)

    def around(self, rows: Sequence[FamilyRow]) -> AbstractContextManager[Any]:
        """Give the encoder the rows' unpadded recordings; return a context without effect."""
        sounding = [row.inputs for row in rows if self.sound[0] in row.inputs]
        named = {(index, key): value for index, inputs in enumerate(sounding) for key, value in inputs.items()}
        there = self.on_device(named)  # one transfer for all recordings
        self.alone.alone = [
            self.arguments({key: there[index, key] for key in inputs}) for index, inputs in enumerate(sounding)
        ]
        return nullcontext()

    def arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the encoder for one request."""
        raise NotImplementedError


class GraniteSpeech(Ragged):
    """IBM's Granite-Speech: conformer and Q-Former before Granite, with a speech LoRA."""

    sound: ClassVar[tuple[str, ...]] = ("input_features", "input_features_mask")

    def load(self) -> None:
        """Load network and processor; an adapter needs peft."""
        from codec_bench.models.in_process.families.checkpoint import read_config

        if read_config(self.loading.folder).get("has_lora_adapter"):
            need_peft(self.loading.model_type)
        super().load()
        inner = self.net.model
        self.alone = OneByOne(inner.get_audio_features, _joined_features)
        inner.get_audio_features = self.alone

    def arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spectrogram of one request."""
        return {"input_features": inputs["input_features"], "return_dict": True}


class Phi4Multimodal(Ragged):
    """Microsoft's Phi-4-multimodal: a conformer before Phi-4-mini, with a speech LoRA."""

    sound: ClassVar[tuple[str, ...]] = ("audio_input_features", "audio_attention_mask")

    def load(self) -> None:
        """Load network, processor and the adapter for speech, which needs peft."""
        adapter = self.loading.folder / "speech-lora"
        if adapter.is_dir():
            need_peft(self.loading.model_type)
        super().load()
        if adapter.is_dir():
            self.net.load_adapter(
                str(self.loading.folder), adapter_name="speech", adapter_kwargs={"subfolder": adapter.name}
            )
            self.net.set_adapter("speech")
        embedding = self.net.model.embed_tokens_extend.audio_embed
        self.alone = OneByOne(embedding.encoder.forward, _joined)
        embedding.encoder.forward = self.alone

    def load_processor(self) -> Any:
        """Load the processor for text and audio."""
        from transformers import Phi4MultimodalProcessor

        return hearing(
            Phi4MultimodalProcessor,
            image_processor=None,
            audio_processor=self.load_part("AutoFeatureExtractor"),
            tokenizer=(tokenizer := self.load_part("AutoTokenizer")),
            chat_template=tokenizer.chat_template,
        )

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Generate the responses of all rows as one batch, but long rows alone.

        A long row would change the rotary positions of all rows.
        """
        reach = self.net.config.original_max_position_embeddings or math.inf
        far = [row.inputs["input_ids"].shape[1] + settings.max_tokens > reach for row in rows]
        near = [row for row, is_far in zip(rows, far) if not is_far]
        together = iter(super().answer(near, settings) if near else [])
        return [
            super(Phi4Multimodal, self).answer([row], settings)[0] if is_far else next(together)
            for row, is_far in zip(rows, far)
        ]

    def called(self, text: str, sounds: Sequence[Any]) -> Mapping[str, Any]:
        """Return the processor's output for a text with markers and its audio."""
        more = {"audio": list(sounds), "sampling_rate": self.rate_hz} if sounds else {}
        return self.processor(text=[text], return_tensors="pt", **more)

    def arguments(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spectrogram of one request, with a mask for several recordings."""
        return {"hidden_states": inputs["audio_input_features"], "mask": inputs.get("audio_attention_mask")}


def need_peft(model_type: str) -> None:
    """Check for peft. Without its adapter a model silently understands speech badly."""
    if importlib.util.find_spec("peft") is None:
        raise UserError("needs_peft", model_type=model_type, hint="pip install peft")


def padded(tensor: torch.Tensor, longest: int) -> torch.Tensor:
    """Pad a tensor `(recordings, frames, ...)` with zeros up to `longest` frames."""
    import torch

    return torch.nn.functional.pad(tensor, (0, 0) * (tensor.ndim - 2) + (0, longest - tensor.shape[1]))


def _joined(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    import torch

    longest = max(output.shape[1] for output in outputs)
    return torch.cat([padded(output, longest) for output in outputs])


def _joined_features(outputs: Sequence[Any]) -> Any:
    joined = outputs[0]
    joined.pooler_output = _joined([output.pooler_output for output in outputs])
    return joined
