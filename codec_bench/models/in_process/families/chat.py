"""Language models with audio input behind a chat template, and Voxtral.

Each request is processed alone; a batch only stacks rows, padded on the left. So an answer does not depend on the
batch. Only generated tokens are decoded.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import wav_base64
from codec_bench.models.base import EMPTY
from codec_bench.models.in_process.families.base import Family, FamilyRow, FamilySettings, Loading, seeded
from codec_bench.models.in_process.families.checkpoint import As, load_net, read_config
from codec_bench.networks.precision import computing
from codec_bench.types import Request, Response, Sound

if TYPE_CHECKING:
    import torch

Key = TypeVar("Key")


class Chat(Family):
    """A language model with audio and text as input and text as output.

    Batch independence is verified for Qwen2-Audio, Audio Flamingo 3 and GLM-ASR, whose encoders use 30 s windows.
    """

    net_class: ClassVar[str | None] = None
    parts: ClassVar[bool] = True
    """Whether the chat template takes parts; otherwise a text marker is the audio."""

    def load(self) -> None:
        """Load network and processor."""
        name = self.net_class or _net_class(self.loading)
        self.processor = self.load_processor()
        self.tokenizer = self.processor.tokenizer
        loader = As(name, self.loading.dtype, trust=self.loading.trust, **self.excluded_parts())
        self.net = load_net(loader, self.loading.folder, self.loading.model_type, self.loading.device)

    def excluded_parts(self) -> dict[str, Any]:
        """Return `As` arguments that exclude parts of the checkpoint."""
        return {}

    def load_processor(self) -> Any:
        """Load the checkpoint's processor."""
        return self.load_part("AutoProcessor")

    def load_part(self, name: str) -> Any:
        """Load one part of the processor with the class `name` of transformers."""
        import transformers

        try:
            return getattr(transformers, name).from_pretrained(
                str(self.loading.folder), local_files_only=True, trust_remote_code=self.loading.trust
            )
        except Exception as error:  # a missing file, a broken one, or a package that is not installed
            reason = " ".join(str(error).split())[:300]
            raise UserError("processor_not_loaded", folder=self.loading.folder, cause=reason) from error

    # ---- from a request to a row ----

    def prepare(self, request: Request) -> FamilyRow:
        """Process one request alone."""
        inputs = {k: v for k, v in dict(self.processed(request)).items() if v is not None}
        return FamilyRow(inputs, group=tuple(sorted(inputs)), wants=request.wants)

    def processed(self, request: Request) -> Mapping[str, Any]:
        """Apply the chat template, and compute a request's inputs as a batch of one."""
        turns: list[tuple[str, list[str | Sound]]] = [
            (message.role, list(message.content)) for message in request.messages
        ]
        if self.loading.system is not None and turns[0][0] != "system":
            turns.insert(0, ("system", [self.loading.system]))
        sounds = [item.read().samples[0] for _, parts in turns for item in parts if not isinstance(item, str)]
        if self.loading.template == "plain":
            return self.called("".join(self._marked(parts) for _, parts in turns), sounds)
        if self.parts:
            return self.processor.apply_chat_template(
                [{"role": role, "content": [_content_part(item) for item in parts]} for role, parts in turns],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                # A question must not open a new turn or stand for audio.
                sanitize_control_tokens=True,
            )
        for _, parts in turns:
            if any(isinstance(item, str) and self.marker() in item for item in parts):
                raise UserError("text_holds_marker", marker=self.marker())
        flat = [{"role": role, "content": self._marked(parts)} for role, parts in turns]
        text = self.tokenizer.apply_chat_template(flat, add_generation_prompt=True, tokenize=False)
        return self.called(text, sounds)

    def _marked(self, parts: Sequence[str | Sound]) -> str:
        return "".join(item if isinstance(item, str) else self.marker() for item in parts)

    def called(self, text: str, sounds: Sequence[Any]) -> Mapping[str, Any]:
        """Return the processor's output for a text with markers and its audio."""
        more = {"audio": list(sounds)} if sounds else {}
        return self.processor(text=[text], return_tensors="pt", **more)

    def marker(self) -> str:
        """Return the text that marks the position of audio."""
        names = [getattr(self.processor, f"audio{suffix}_token", None) for suffix in ("_bos", "", "_eos")]
        return "".join(name for name in names if name)

    # ---- from rows to answers ----

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Generate the responses of all rows (prepared requests) as one batch."""
        collated = self.collate(rows)
        counts = collated["attention_mask"].sum(dim=1).tolist()  # here, where nothing waits for the device
        inputs = self.on_device(collated)
        with computing(self.loading.device, "float32"), self.around(rows), seeded(settings, self.loading.device):
            out = self.net_that_writes().generate(
                **inputs,
                generation_config=self.generation(settings),
                **({"tokenizer": self.tokenizer} if settings.stop else {}),
            )
        width = inputs["input_ids"].shape[1]
        return [
            self.response(tokens[width:], count, settings) for tokens, count in zip(out.tolist(), counts, strict=True)
        ]

    def net_that_writes(self) -> Any:
        """Return the network whose `generate` gives the text."""
        return self.net

    def around(self, rows: Sequence[FamilyRow]) -> AbstractContextManager[Any]:
        """Return the context in which a batch is computed."""
        return nullcontext()

    def collate(self, rows: Sequence[FamilyRow]) -> dict[str, torch.Tensor]:
        """Stack prepared requests into a batch, inputs per token padded on the left.

        All other inputs have equal shapes.
        """
        import torch

        width = max(row.inputs["input_ids"].shape[1] for row in rows)
        stacked = {}
        for key in rows[0].inputs:
            tensors = [row.inputs[key] for row in rows]
            if all(row.inputs[key].shape == row.inputs["input_ids"].shape for row in rows):
                fill = self.pad_id if key == "input_ids" else 0
                tensors = [
                    torch.nn.functional.pad(tensor, (width - tensor.shape[1], 0), value=fill) for tensor in tensors
                ]
            stacked[key] = torch.cat(tensors)
        return stacked

    def on_device(self, inputs: Mapping[Key, Any]) -> dict[Key, Any]:
        """Move inputs to the network's device, floating-point ones in its type."""
        from codec_bench.networks.transfer import sent

        there = sent([value.numpy() for value in inputs.values()], self.loading.device)
        dtype = self.net.dtype
        return {
            key: value.to(dtype) if value.is_floating_point() else value
            for key, value in zip(inputs, there, strict=True)
        }

    @property
    def pad_id(self) -> int:
        """The token that pads rows."""
        token_id = self.tokenizer.pad_token_id
        return token_id if token_id is not None else self.end_ids[0]

    @property
    def end_ids(self) -> list[int]:
        """The ids of the tokens that end an answer."""
        ends = getattr(self.net_that_writes().generation_config, "eos_token_id", None)
        ends = self.tokenizer.eos_token_id if ends is None else ends
        return list(ends) if isinstance(ends, (list, tuple)) else [ends]

    def generation(self, settings: FamilySettings) -> Any:
        """Return the settings as a transformers `GenerationConfig`.

        Neutral settings are explicit, because transformers fills missing ones from the checkpoint.
        """
        config = deepcopy(self.net_that_writes().generation_config)
        changes = {
            "max_new_tokens": settings.max_tokens, "min_new_tokens": settings.min_tokens or None,
            "do_sample": settings.sampled, "num_beams": 1, "num_return_sequences": 1, "use_cache": True,
            "temperature": settings.temperature if settings.sampled else 1.0, "top_p": settings.top_p,
            "top_k": settings.top_k if settings.sampled else 50,  # transformers treats 50 as unset
            "repetition_penalty": settings.repetition_penalty, "no_repeat_ngram_size": 0, "length_penalty": 1.0,
            "eos_token_id": self.end_ids, "pad_token_id": self.pad_id, "stop_strings": list(settings.stop) or None,
        }  # fmt: skip
        for key, value in changes.items():
            setattr(config, key, value)
        return config

    def response(self, tokens: Sequence[int], prompt_tokens: int, settings: FamilySettings) -> Response:
        """Decode generated tokens, up to the first end token or stop text, to a response.

        Reasoning is split off; unfinished reasoning gives a failed response.
        """
        ends = set(self.end_ids)
        count = next((index + 1 for index, token in enumerate(tokens) if token in ends), None)
        text = self.tokenizer.decode(tokens[: (count or len(tokens) + 1) - 1], skip_special_tokens=True)
        finish = "length" if count is None else "stop"
        for stop in settings.stop:
            head, separator, _ = text.partition(stop)
            if separator:
                text, finish = head, "stop"
        if count is None and finish == "stop":  # rows that a stop text ended are padded
            tokens = _unpadded(tokens, self.pad_id)
        usage = {"input_tokens": prompt_tokens, "output_tokens": count or len(tokens)}
        after = self.loading.reasoning_end
        reasoning = None
        if after is not None and after in text:
            reasoning, _, text = text.rpartition(after)
        elif after is not None and finish == "length":
            return Response.failed(
                Diagnostic("unfinished_reasoning", tokens=usage["output_tokens"]),
                usage=usage,
                finish=finish,
            )
        text = text.strip()
        notes = () if text else (EMPTY,)
        return Response(text=text, usage=usage, finish=finish, notes=notes, reasoning=reasoning)


class Unproven(Chat):
    """A model without a proof of batch independence. It answers one request at a time."""

    together = False


def _content_part(item: str | Sound) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    return {"type": "audio", "audio": item.read().samples[0]}


def _unpadded(tokens: Sequence[int], pad: int) -> Sequence[int]:
    last = len(tokens)
    while last and tokens[last - 1] == pad:
        last -= 1
    return tokens[:last]


def _net_class(loading: Loading) -> str:
    """Return the name of a checkpoint's class in transformers; UserError if none fits."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES as KNOWN

    if loading.model_type in KNOWN:
        return KNOWN[loading.model_type]
    config = read_config(loading.folder)
    for name in config.get("architectures") or []:
        if str(name).endswith(("ForConditionalGeneration", "ForCausalLM")) and hasattr(transformers, name):
            return name
    classes = [name for name in config.get("auto_map") or {} if name.startswith("AutoModel")]
    if loading.trust and classes:
        return next((name for name in classes if name != "AutoModel"), "AutoModel")
    raise UserError(
        "model_type_unknown",
        model_type=loading.model_type,
        hint="--set NAME.trust_remote_code=true runs the checkpoint's code; or write your own class (./file.py:Class)"
        if classes
        else "write your own class (./file.py:Class) that asks it",
    )


class ChatText(Chat):
    """A decoder of attention layers, where left padding can be masked, without audio."""

    net_class: ClassVar[str | None] = "AutoModelForCausalLM"

    def load_processor(self) -> Any:
        """Return the tokenizer alone."""
        return SimpleNamespace(tokenizer=self.load_part("AutoTokenizer"))

    def processed(self, request: Request) -> Mapping[str, Any]:
        """Apply the chat template and tokenize a request; UserError if it has audio."""
        turns: list[tuple[str, tuple[str, ...]]] = []
        for message in request.messages:
            texts = tuple(text for text in message.content if isinstance(text, str))
            if len(texts) < len(message.content):
                raise UserError("model_takes_no_audio")
            turns.append((message.role, texts))
        if self.loading.system is not None and turns[0][0] != "system":
            turns.insert(0, ("system", (self.loading.system,)))
        if self.loading.template == "plain":
            return self.tokenizer("".join(text for _, parts in turns for text in parts), return_tensors="pt")
        return self.tokenizer.apply_chat_template(
            [{"role": role, "content": "\n".join(parts)} for role, parts in turns],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            # A transcript must not be able to open a new turn.
            sanitize_control_tokens=True,
        )


class UnprovenText(ChatText):
    """A language model with unverified left padding. It answers one request at a time."""

    together: ClassVar[bool] = False


class Voxtral(Chat):
    """Mistral's Voxtral in conversation mode. System text opens the first user turn.

    Audio is converted to 16 bits, as in the files that its tokenizer takes.
    """

    def load_processor(self) -> Any:
        """Load the checkpoint's processor; needs mistral-common."""
        if importlib.util.find_spec("mistral_common") is None:
            raise UserError("needs_mistral_common", hint="pip install 'mistral-common[audio]'")
        return super().load_processor()

    def processed(self, request: Request) -> Mapping[str, Any]:
        """Apply Voxtral's chat template to a request; UserError for another template."""
        if self.loading.template != "chat":
            raise UserError("voxtral_template", template=self.loading.template)
        opening: list[str | Sound] = [self.loading.system] if self.loading.system is not None else []
        turns = []
        for message in request.messages:
            if message.role == "system":
                opening = list(message.content)
                continue
            parts = [*(opening if message.role == "user" else []), *message.content]
            opening = [] if message.role == "user" else opening
            turns.append({"role": message.role, "content": [_voxtral_part(item) for item in parts]})
        return self.processor.apply_chat_template(turns, tokenize=True, return_dict=True, return_tensors="pt")


def _voxtral_part(item: str | Sound) -> dict[str, str]:
    return {"type": "text", "text": item} if isinstance(item, str) else {"type": "audio", "base64": wav_base64(item)}
