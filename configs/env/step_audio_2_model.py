"""Worker code of Step-Audio 2, from a clone of its authors' repository.

It runs the classes `StepAudio2` and `Token2wav`; no package index has them.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import soundfile
import torch

_RUNS = (
    "Step-Audio 2 runs code that is on no package index: clone github.com/stepfun-ai/Step-Audio2 and name the folder "
    "with "
    "--set NAME.load.repository=FOLDER; it also runs the Python files beside the checkpoint: look at them, and allow "
    "that with "
    "--set NAME.load.trust_remote_code=true"
)
_DRAWN = {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.05}
"""How answers are drawn in the repository's examples."""
_CODES = 6561  # codes of speech; what is above pads


def load(
    checkpoint: str, repository: str | None = None, trust_remote_code: bool = False, voice: str | None = None
) -> dict[str, Any]:
    """The model, and what makes waves of its codes if the checkpoint has it.

    Args:
        checkpoint: a folder or a hub id.
        repository: the folder of a clone of the authors' repository.
        trust_remote_code: whether the Python files beside the checkpoint may run.
        voice: the file of a recording of the voice in which answers are spoken; None takes the repository's
            `assets/default_female.wav`.
    """
    if repository is None or not trust_remote_code or not (Path(repository) / "stepaudio2.py").is_file():
        lacks = (
            ""
            if repository is None or (Path(repository) / "stepaudio2.py").is_file()
            else f"; '{repository}' has no stepaudio2.py"
        )
        raise ValueError(_RUNS + lacks)
    folder = Path(checkpoint)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(checkpoint))
    sys.path.insert(0, str(Path(repository).resolve()))
    from stepaudio2 import StepAudio2

    vocoder = None
    if (folder / "token2wav").is_dir():
        from token2wav import Token2wav

        vocoder = Token2wav(str(folder / "token2wav"))
    voice = voice or str(Path(repository) / "assets" / "default_female.wav")
    return {"model": StepAudio2(str(folder)), "vocoder": vocoder, "voice": voice}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers, one after the other; each is drawn from its own seed."""
    return [_answer(state, item) for item in batch]


def _answer(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    parameters, aloud = item["parameters"], item["wants"] == "audio"
    if not item["messages"]:
        return {"refused": "Step-Audio 2 takes messages; this request has fields alone"}
    if aloud and state["vocoder"] is None:
        return {"error": "the checkpoint of Step-Audio 2 has no folder 'token2wav', which makes waves of its codes"}
    torch.manual_seed(parameters.get("seed", zlib.crc32(item["id"].encode())))
    settings = {name: parameters[name] for name in ("temperature", "top_p", "repetition_penalty") if name in parameters}
    settings = {"do_sample": False} if parameters.get("temperature") == 0 else {**_DRAWN, **settings}
    if "max_tokens" in parameters:
        settings["max_new_tokens"] = parameters["max_tokens"]
    ends = (
        {"role": "assistant", "content": "<tts_start>", "eot": False}
        if aloud
        else {"role": "assistant", "content": None}
    )
    with tempfile.TemporaryDirectory() as folder:
        messages = [{"role": m["role"], "content": _content(m["content"], folder)} for m in item["messages"]]
        _, text, codes = state["model"]([*messages, ends], **settings)
    known = ("max_tokens", "seed", "temperature", "top_p", "repetition_penalty")
    notes = [f"Step-Audio 2 ignores '{name}'" for name in parameters if name not in known]
    if not aloud:
        return {"text": text, "notes": notes}
    codes = [code for code in codes if code < _CODES]
    if not codes:
        return {"error": "Step-Audio 2 gave no codes of speech"}
    wave, rate_hz = soundfile.read(io.BytesIO(state["vocoder"](codes, prompt_wav=state["voice"])), dtype="float32")
    return {"text": text, "audio": {"samples": wave, "sample_rate_hz": rate_hz}, "notes": notes}


def _content(parts: list[Any], folder: str) -> str | list[dict[str, str]]:
    """A message as the repository takes it: a text, or a list of texts and files of sounds."""
    if all(isinstance(content, str) for content in parts):
        return "".join(parts)
    return [_convert_content(content, folder) for content in parts]


def _convert_content(content: Any, folder: str) -> dict[str, str]:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".wav", delete=False) as file:
        soundfile.write(file.name, content["samples"].mean(0), content["sample_rate_hz"], subtype="FLOAT")
    return {"type": "audio", "audio": file.name}
