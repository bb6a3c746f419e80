"""What recognisers read of a folder in the layout of transformers next to its weights, and how they have it decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codec_bench.errors import WeightsError

GREEDY: dict[str, Any] = {
    "do_sample": False, "num_beams": 1, "repetition_penalty": 1.0, "temperature": None, "top_p": None, "top_k": None,
}  # fmt: skip
"""Arguments of `generate` for the most probable token at each step, whatever the checkpoint's own settings say."""


def config_of(folder: Path) -> dict[str, Any]:
    """The configuration of a checkpoint, which names its `model_type`.

    Raises:
        WeightsError: it cannot be read, or names no model.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        config["model_type"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError(f"the config.json in '{folder}' names no model: {type(error).__name__}: {error}") from error
    return config


def check_kind(name: str, folder: Path, kind: str) -> None:
    """Refuses a checkpoint of another kind of model.

    Args:
        name: of the recogniser, for the message. folder: of the checkpoint. kind: the `model_type` that it must state.

    Raises:
        WeightsError: it is of another kind, or says none.
    """
    model_type = config_of(folder)["model_type"]
    if model_type != kind:
        raise WeightsError(f"the weights in '{folder}' are of the kind '{model_type}'; {name} needs '{kind}'")


def parts_of(folder: Path, rate_hz: int, extractor: str, tokenizer: str, **options: Any) -> tuple[Any, Any]:
    """The front end and the tokens of a checkpoint.

    Args:
        folder: of the checkpoint.
        rate_hz: the rate that the front end must read.
        extractor, tokenizer: the names of their classes in transformers.
        options: further arguments for the tokens.

    Raises:
        WeightsError: they cannot be read, or the front end reads another rate.
    """
    import transformers

    try:
        front = getattr(transformers, extractor).from_pretrained(folder, local_files_only=True)
        tokens = getattr(transformers, tokenizer).from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # a broken file raises anything from KeyError to OSError
        reason = str(error).split("\n")[0]
        raise WeightsError(f"the processor in '{folder}' cannot be read: {type(error).__name__}: {reason}") from error
    if front.sampling_rate != rate_hz:
        raise WeightsError(f"the weights in '{folder}' read {front.sampling_rate} Hz; expected {rate_hz} Hz")
    return front, tokens
