"""Worker code of MiniCPM-o 4.5: the class in its checkpoint's folder.

transformers loads the class; requests go to its method `chat`.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any

import soundfile
import torch

RATE_HZ = 16_000  # of the sounds that `chat` takes
_RUNS = (
    "MiniCPM-o runs the Python files beside its checkpoint: look at them, and allow that with --set "
    "NAME.load.trust_remote_code=true"
)
# How the authors ask for a text to be read aloud in the voice of a sound that stands between the first two.
_READ = (
    "模仿音频样本的音色并生成新的内容。",
    "请用这种声音风格来为用户提供帮助。 直接作答，不要有冗余内容",
    "请朗读以下内容。 ",
)
_READING = {"max_tokens": 512, "temperature": 0.1}  # as the authors read texts aloud


def load(
    checkpoint: str,
    trust_remote_code: bool = False,
    speaks: bool = False,
    voice: str | None = None,
    language: str = "en",
) -> dict[str, Any]:
    """The model, without its eyes.

    Args:
        checkpoint: a folder or a hub id.
        trust_remote_code: whether the Python files beside the checkpoint may run.
        speaks: whether what makes speech is loaded.
        voice: the file of a recording of the voice in which answers are spoken, at 16 kHz.
        language: of the authors' instruction to speak in that voice, `en` or `zh`.
    """
    if not trust_remote_code:
        raise ValueError(_RUNS)
    sound = None
    if voice is not None:
        samples, rate_hz = soundfile.read(voice, dtype="float32", always_2d=True)
        if rate_hz != RATE_HZ:
            raise ValueError(f"'{voice}' has {rate_hz} Hz; expected {RATE_HZ}: convert it")
        sound = samples.mean(1)
    from transformers import AutoModel

    model = AutoModel.from_pretrained(
        checkpoint, trust_remote_code=True, attn_implementation="sdpa", torch_dtype=torch.bfloat16,
        init_vision=False, init_audio=True, init_tts=speaks,
    )  # fmt: skip
    model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    if speaks:
        model.init_tts()
    return {"model": model, "speaks": speaks, "voice": sound, "language": language}


def answer(state: dict[str, Any], batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers, one after the other; each is drawn from its own seed."""
    return [_answer(state, item) for item in batch]


def _answer(state: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    parameters, aloud = item["parameters"], item["wants"] == "audio"
    if aloud and not state["speaks"]:
        return {"error": "MiniCPM-o was loaded without what makes speech: --set NAME.load.speaks=true"}
    messages = [
        {"role": m["role"], "content": [_convert_content(content) for content in m["content"]]}
        for m in item["messages"]
    ]
    if aloud or not messages:
        prompt = item["fields"].get("prompt_audio")
        voice = state["voice"] if prompt is None else _convert_content(prompt)
        if voice is None:
            return {"error": "MiniCPM-o speaks in the voice of a recording: --set NAME.load.voice=FILE"}
        if messages:
            messages = _spoken(state, messages, voice)
        else:
            messages, parameters = _read(item["fields"]["text"], voice), {**_READING, **parameters}
    torch.manual_seed(parameters.get("seed", zlib.crc32(item["id"].encode())))
    settings: dict[str, Any] = {"do_sample": parameters.get("temperature") != 0, "num_beams": 1}
    names = {
        "max_tokens": "max_new_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "repetition_penalty": "repetition_penalty",
    }
    drawn = () if settings["do_sample"] else ("temperature", "top_p")
    settings |= {names[name]: value for name, value in parameters.items() if name in names and name not in drawn}
    notes = [f"MiniCPM-o ignores '{name}'" for name in parameters if name not in names and name != "seed"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.wav"
        text = state["model"].chat(
            msgs=messages, enable_thinking=False, use_tts_template=aloud, generate_audio=aloud,
            output_audio_path=str(file) if aloud else None, **settings,
        )  # fmt: skip
        if not aloud:
            return {"text": text, "notes": notes}
        if not file.is_file():
            return {
                "error": "MiniCPM-o made no sound of its answer; what it printed of that is in the log of the worker"
            }
        wave, rate_hz = soundfile.read(file, dtype="float32", always_2d=True)
    return {"text": text, "audio": {"samples": wave.T.copy(), "sample_rate_hz": rate_hz}, "notes": notes}


def _convert_content(content: Any) -> Any:
    """A part of a message as `chat` takes it: a text, or the samples of a sound."""
    return content if isinstance(content, str) else content["samples"].mean(0)


def _spoken(state: dict[str, Any], messages: list[dict[str, Any]], voice: Any) -> list[dict[str, Any]]:
    """Messages behind the authors' instruction to speak in a voice; the request's own system message ends that
    instruction.
    """
    system = state["model"].get_sys_prompt(ref_audio=voice, mode="audio_assistant", language=state["language"])
    if messages[0]["role"] != "system":
        return [system, *messages]
    return [{"role": "system", "content": [*system["content"][:2], *messages[0]["content"]]}, *messages[1:]]


def _read(text: str, voice: Any) -> list[dict[str, Any]]:
    before, after, read = _READ
    return [{"role": "system", "content": [before, voice, after]}, {"role": "user", "content": [read + text]}]
