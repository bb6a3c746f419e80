"""Voxtral: a Whisper encoder for windows of 30 s before a model of Mistral, asked through mistral-common."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from codec_bench.errors import UserError
from codec_bench.models.in_process.families.chat import Chat
from codec_bench.models.sound import wav_base64
from codec_bench.types import Request, Sound


class Voxtral(Chat):
    """Mistral's Voxtral in its conversation mode. It has no system's turn, so the text of the system's turn is put before the
    user's first turn.

    Sounds are converted to 16 bits, as in the files that its tokenizer takes.
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
        """The processor's output for a request, as a batch of one.

        Raises:
            UserError: the template is not `chat`, which is the only one that Voxtral has.
        """
        if self.loading.template != "chat":
            raise UserError(
                f"Voxtral has only the template 'chat', and the option is template={self.loading.template!r}"
            )
        opening: list[str | Sound] = [self.loading.system] if self.loading.system is not None else []
        turns = []
        for message in request.messages:
            if message.role == "system":
                opening = list(message.content)
                continue
            parts = [*(opening if message.role == "user" else []), *message.content]
            opening = [] if message.role == "user" else opening
            turns.append({"role": message.role, "content": [_part(part) for part in parts]})
        return self.processor.apply_chat_template(turns, tokenize=True, return_dict=True, return_tensors="pt")


def _part(part: str | Sound) -> dict[str, str]:
    return {"type": "text", "text": part} if isinstance(part, str) else {"type": "audio", "base64": wav_base64(part)}
