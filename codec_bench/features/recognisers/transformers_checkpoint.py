"""Configuration, front end and tokens of a folder of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import WeightsError

GREEDY: dict[str, Any] = {
    "do_sample": False, "num_beams": 1, "repetition_penalty": 1.0, "temperature": None, "top_p": None, "top_k": None,
}  # fmt: skip
"""Arguments of `generate` for greedy decoding, whatever the checkpoint's settings are."""


def config_of(folder: Path) -> dict[str, Any]:
    """Read the configuration of a checkpoint, which names its `model_type`.

    Raises:
        WeightsError: it cannot be read, or names no model.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        config["model_type"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError("weights_not_read", path=folder, type=type(error).__name__, reason=error) from error
    return config


def check_kind(name: str, folder: Path, kind: str) -> None:
    """Refuse a checkpoint of another kind of model.

    Args:
        name: the recogniser's name, for the message.
        kind: the expected `model_type`.

    Raises:
        WeightsError: it states another kind, or none.
    """
    model_type = config_of(folder)["model_type"]
    if model_type != kind:
        raise WeightsError("weights_kind", folder=folder, kind=model_type, expected=kind)


def parts_of(folder: Path, rate_hz: int, extractor: str, tokenizer: str, **options: Any) -> tuple[Any, Any]:
    """Load the front end and the tokeniser of a checkpoint.

    Args:
        rate_hz: the expected rate of the front end.
        extractor, tokenizer: the names of their classes in transformers.
        options: further arguments of the tokeniser.

    Raises:
        WeightsError: they cannot be read, or the front end has another rate.
    """
    import transformers

    try:
        front = getattr(transformers, extractor).from_pretrained(folder, local_files_only=True)
        tokens = getattr(transformers, tokenizer).from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # a broken file raises anything from KeyError to OSError
        reason = str(error).split("\n")[0]
        raise WeightsError("processor_unreadable", folder=folder, cause=f"{type(error).__name__}: {reason}") from error
    if front.sampling_rate != rate_hz:
        raise WeightsError("weights_rate", folder=folder, rate_hz=front.sampling_rate, expected_hz=rate_hz)
    return front, tokens
