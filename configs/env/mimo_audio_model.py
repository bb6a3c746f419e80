"""Worker code of MiMo-Audio, from a clone of its authors' repository.

The repository has a method for each kind of conversation, and a request takes the one that fits. What none of them
takes is refused.
"""

from __future__ import annotations

import dataclasses
import importlib.machinery
import importlib.util
import itertools
import random
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

RATE_HZ = 24_000  # of sounds in and out; a tensor is taken to have this rate
_CLONE = (
    "the code of MiMo-Audio is on no package index: clone github.com/XiaomiMiMo/MiMo-Audio and name the folder, whose "
    "code then "
    "runs: --set NAME.load.repository=FOLDER"
)


def load(checkpoint: str, tokenizer: str, repository: str | None = None, voice: str | None = None) -> dict[str, Any]:
    """The model.

    Args:
        checkpoint, tokenizer: a folder or a hub id of the language model, and of MiMo-Audio-Tokenizer.
        repository: the folder of a clone of the authors' repository.
        voice: the file of a recording of the voice in which answers are spoken; None leaves it to the model.
    """
    if repository is None or not (Path(repository) / "src" / "mimo_audio" / "mimo_audio.py").is_file():
        raise ValueError(
            _CLONE + ("" if repository is None else f"; '{repository}' has no src/mimo_audio/mimo_audio.py")
        )
    sys.path.insert(0, str(Path(repository).resolve()))
    without = importlib.util.find_spec("flash_attn") is None
    if without:
        stand_in: Any = ModuleType("flash_attn")
        stand_in.__spec__ = importlib.machinery.ModuleSpec("flash_attn", None)
        stand_in.flash_attn_varlen_func = attention
        sys.modules["flash_attn"] = stand_in
    from src.mimo_audio.mimo_audio import MimoAudio

    if without:
        del sys.modules["flash_attn"]  # transformers must not take it for the package
    return {"model": MimoAudio(checkpoint, tokenizer), "voice": voice}


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    starts: torch.Tensor,
    *_: Any,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
) -> torch.Tensor:
    """Compute `flash_attn_varlen_func` by torch: attention inside each sequence.

    Args:
        query, key, value: `(frames, heads, width)`.
        starts: where each sequence starts, and after them the number of all frames.
        causal: whether a frame sees no later one.
        window_size: how many frames before and after itself a frame sees; -1 for all.
    """
    outputs = []
    before, after = window_size[0], 0 if causal else window_size[1]
    for begin, end in itertools.pairwise(starts.tolist()):
        positions = torch.arange(end - begin, device=query.device)
        ahead = positions[None] - positions[:, None]
        seen = torch.ones_like(ahead, dtype=torch.bool)
        if before >= 0:
            seen &= ahead >= -before
        if after >= 0:
            seen &= ahead <= after
        parts = [tensor[begin:end].transpose(0, 1)[None] for tensor in (query, key, value)]
        outputs.append(torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=seen)[0].transpose(0, 1))
    return torch.cat(outputs)


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers, one after the other; each is drawn from its own seed."""
    return [_answer(state, item) for item in batch]


def _answer(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    model, parameters = state["model"], item["parameters"]
    seed = parameters.get("seed", zlib.crc32(item["id"].encode()))
    random.seed(seed)  # the repository draws its instruction to read a text aloud
    torch.manual_seed(seed)
    spoken: list[torch.Tensor] = []
    model.save_wav = lambda path, wave: spoken.append(wave.reshape(1, -1).detach().float().cpu())
    model.forward = lambda *arguments, **named: type(model).forward(
        model,
        *arguments,
        **named,
        **({"max_new_tokens": parameters["max_tokens"]} if "max_tokens" in parameters else {}),
    )
    model.get_task_sampler = lambda task: _sampler(type(model).get_task_sampler(model, task), parameters)
    try:
        text = _speak(model, item, state["voice"])
    except Refused as reason:
        return {"refused": str(reason)}
    notes = [
        f"MiMo-Audio ignores '{name}'"
        for name in parameters
        if name not in ("max_tokens", "temperature", "top_p", "seed")
    ]
    if item["wants"] == "text":
        return {"text": text, "notes": notes}
    # The repository writes a second of silence where there are no tokens of speech.
    if not spoken or not spoken[0].any():
        return {"error": "MiMo-Audio gave no tokens of speech"}
    return {"text": text, "audio": {"samples": spoken[0], "sample_rate_hz": RATE_HZ}, "notes": notes}


class Refused(Exception):
    """Why no method of the repository takes a request."""


def _sampler(of_task: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """How tokens of text are drawn: as the repository does for the task, unless the request says otherwise."""
    if "temperature" not in parameters:
        changed = {"top_p": parameters["top_p"]} if "top_p" in parameters else {}
    elif parameters["temperature"] == 0:
        changed = {"do_sample": False, "temperature": 1.0, "top_p": 1.0}
    else:
        changed = {
            "do_sample": True,
            "temperature": parameters["temperature"],
            "top_p": parameters.get("top_p", of_task["global"].top_p),
        }
    return {**of_task, "global": dataclasses.replace(of_task["global"], **changed)}


def _speak(model: Any, item: dict[str, Any], voice: str | None) -> str:
    """The answer's text; what is spoken goes to `save_wav`."""
    aloud = item["wants"] == "audio"
    if not item["messages"]:
        fields = item["fields"]
        if not aloud:
            raise Refused("MiMo-Audio reads fields only to speak their text; it answers in text to messages")
        speaker = _sound(fields["prompt_audio"]) if fields.get("prompt_audio") else voice
        return model.tts_sft(fields["text"], "answer", instruct=fields.get("instruction"), prompt_speech=speaker)
    system = "\n\n".join(
        content
        for m in item["messages"]
        if m["role"] == "system"
        for content in m["content"]
        if isinstance(content, str)
    )
    turns = [(m["role"], *_parts(m["content"])) for m in item["messages"] if m["role"] != "system"]
    asks = [(sounds, text) for role, sounds, text in turns if role == "user"]
    if aloud:
        return _converse(model, turns, system, voice)
    if all(not sounds for sounds, _ in asks):
        dialogue = [{"role": role, "content": text} for role, _, text in turns]
        dialogue[0]["content"] = "\n\n".join(filter(None, (system, dialogue[0]["content"])))
        return model.text_dialogue_sft_multiturn(dialogue)
    if len(turns) == 1 and len(asks[0][0]) == 1 and (asks[0][1] or system):
        return model.audio_understanding_sft(asks[0][0][0], "\n\n".join(filter(None, (system, asks[0][1]))))
    if system or any(len(sounds) != 1 or text for sounds, text in asks):
        raise Refused(
            "MiMo-Audio takes one sound with a text, or turns that are one sound each, or turns of text; this request "
            "is none of them"
        )
    dialogue = [{"role": role, "content": text if role == "assistant" else sounds[0]} for role, sounds, text in turns]
    return model.speech2text_dialogue_sft_multiturn(dialogue)


def _converse(model: Any, turns: list[tuple[str, list[torch.Tensor], str]], system: str, voice: str | None) -> str:
    """A spoken answer to spoken turns. A text may stand before the sound of the first one."""
    dialogue: list[dict[str, Any]] = []
    for index, (role, sounds, text) in enumerate(turns):
        if len(sounds) != 1 or (role == "user" and index and text):
            raise Refused(
                "MiMo-Audio answers in speech to turns that are one sound each, the first perhaps with a text"
            )
        dialogue.append({"role": role, "content": sounds[0] if role == "user" else {"text": text, "audio": sounds[0]}})
    before = "\n\n".join(filter(None, (system, turns[0][2])))
    return model.spoken_dialogue_sft_multiturn(
        dialogue, output_audio_path="answer", system_prompt=before or None, prompt_speech=voice
    )


def _parts(content: list[Any]) -> tuple[list[torch.Tensor], str]:
    """The sounds of a message, and its texts as one."""
    texts = [entry for entry in content if isinstance(entry, str)]
    return [_sound(entry) for entry in content if not isinstance(entry, str)], "".join(texts)


def _sound(content: dict[str, Any]) -> torch.Tensor:
    return torch.from_numpy(content["samples"]).mean(0)
