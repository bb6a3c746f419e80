"""Language models without ears, for the second half of a cascade."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.models.families.chat import Chat
from codec_bench.types import Request


class Text(Chat):
    """A decoder with attention only, whose left padding is masked; asked through its tokenizer's chat template."""

    net_class: ClassVar[str | None] = "AutoModelForCausalLM"

    def load_processor(self) -> Any:
        """The tokenizer, which is all that text needs."""
        return SimpleNamespace(tokenizer=self.load_part("AutoTokenizer"))

    def processed(self, request: Request) -> Mapping[str, Any]:
        """The request's tokens.

        Raises:
            UserError: it holds a sound.
        """
        turns = [(message.role, message.content) for message in request.messages]
        if any(isinstance(part, Clip) for _, parts in turns for part in parts):
            raise UserError("the model takes no audio")
        if self.loading.system is not None and turns[0][0] != "system":
            turns.insert(0, ("system", (self.loading.system,)))
        if self.loading.template == "plain":
            return self.tokenizer("".join(part for _, parts in turns for part in parts), return_tensors="pt")
        return self.tokenizer.apply_chat_template(
            [{"role": role, "content": "\n".join(parts)} for role, parts in turns],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            # What a transcript says must not open a turn of its own.
            sanitize_control_tokens=True,
        )


class UnprovenText(Text):
    """A kind of language model whose left padding nobody has checked: it answers one request at a time."""

    together: ClassVar[bool] = False
