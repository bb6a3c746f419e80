"""Language models that take only text, for example as the second part of a cascade."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from codec_bench.errors import UserError
from codec_bench.models.in_process.families.chat import Chat
from codec_bench.types import Request


class Text(Chat):
    """A decoder that consists of attention layers, so that padding on the left can be masked. Asked through the chat template
    of its tokenizer."""

    net_class: ClassVar[str | None] = "AutoModelForCausalLM"

    def load_processor(self) -> Any:
        """The tokenizer, which is all that a request of text needs."""
        return SimpleNamespace(tokenizer=self.load_part("AutoTokenizer"))

    def processed(self, request: Request) -> Mapping[str, Any]:
        """The request's tokens.

        Raises:
            UserError: the request holds a sound.
        """
        turns: list[tuple[str, tuple[str, ...]]] = []
        for message in request.messages:
            texts = tuple(part for part in message.content if isinstance(part, str))
            if len(texts) < len(message.content):
                raise UserError("the model takes no audio")
            turns.append((message.role, texts))
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
            # A transcript must not be able to open a new turn.
            sanitize_control_tokens=True,
        )


class UnprovenText(Text):
    """A language model for which nobody has checked padding on the left. It answers one request at a time."""

    together: ClassVar[bool] = False
