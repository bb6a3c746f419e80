"""Voxtral: windows of 30 s of a Whisper encoder in front of Mistral's models, asked through mistral-common."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.models.families.chat import Chat
from codec_bench.models.sound import wav_base64
from codec_bench.types import Request


class Voxtral(Chat):
    """Mistral's Voxtral as it converses. It has no system's turn: what that says opens the user's first turn.

    Sounds go through 16 bits, as in the files that its tokenizer takes.
    """

    def load_processor(self) -> Any:
        """The processor as the checkpoint describes it.

        Raises:
            UserError: mistral-common, which holds the tokenizer, is not installed.
        """
        if importlib.util.find_spec("mistral_common") is None:
            raise UserError(
                "Voxtral's tokenizer needs the package 'mistral-common', which is not installed",
                hint="pip install 'mistral-common[audio]'",
            )
        return super().load_processor()

    def processed(self, request: Request) -> Mapping[str, Any]:
        """What the processor makes of a request, as a batch of one.

        Raises:
            UserError: the model is asked without its chat template, which it does not know.
        """
        if self.loading.template != "chat":
            raise UserError("Voxtral is only asked through its chat template")
        opening = [self.loading.system] if self.loading.system is not None else []
        turns = []
        for message in request.messages:
            if message.role == "system":
                opening = list(message.content)
                continue
            parts = [*(opening if message.role == "user" else []), *message.content]
            opening = [] if message.role == "user" else opening
            turns.append({"role": message.role, "content": [_part(part) for part in parts]})
        return self.processor.apply_chat_template(turns, tokenize=True, return_dict=True, return_tensors="pt")


def _part(part: str | Clip) -> dict[str, str]:
    return {"type": "audio", "base64": wav_base64(part)} if isinstance(part, Clip) else {"type": "text", "text": part}
