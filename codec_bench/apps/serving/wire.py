"""Requests of the service as items; no file named by a client is opened.

Version 1 of verl-omni's protocol of remote audio rewards.
A request has a waveform as base64 of little-endian floats; the reply is a finite `score` with further finite scalars.
The client repeats 408, 429 and 5xx, and stops training at any other status or missing score.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from codec_bench.apps.serving.items import MOST_BYTES, BadItem, Item, Result, wav_bytes
from codec_bench.apps.serving.rewards import Reward
from codec_bench.data.rows import DoubleKey
from codec_bench.data.rows import parse_json as parse_once
from codec_bench.messages import Diagnostic
from codec_bench.types import Score

FIELDS = (
    "id",
    "audio_base64",
    "waveform_f32_base64",
    "num_samples",
    "sample_rate_hz",
    "reference",
    "reference_id",
    "text",
    "language",
)
OF_AUDIO = ("audio_base64", "waveform_f32_base64", "num_samples", "sample_rate_hz")
VERSION = "1"


def parse_json(data: bytes | str) -> dict[str, Any]:
    """Parse a JSON object; raises BadItem for anything else."""
    try:
        value = parse_once(data if isinstance(data, str) else data.decode())
    except DoubleKey as error:
        raise BadItem(f"the request {error}", code="bad_json") from error
    except (ValueError, RecursionError) as error:
        raise BadItem("the request is not JSON", code="bad_json") from error
    if not isinstance(value, dict):
        raise BadItem(f"the request is a {type(value).__name__}; expected a JSON object", code="bad_json")
    return value


def item_of(value: Mapping[str, Any], audio: bytes | None = None, reference: bytes | None = None) -> Item:
    """Build the item of a JSON object with the fields of `FIELDS`.

    Args:
        audio, reference: parts of a multipart request.

    Raises:
        BadItem: a field is unknown, missing, or has a wrong value.
    """
    unknown = sorted(map(str, value.keys() - set(FIELDS)))
    if unknown:
        raise BadItem(f"there is no field '{unknown[0][:60]}'; expected {', '.join(FIELDS)}", code="bad_item")
    for name in ("id", "reference_id", "text", "language"):
        if not isinstance(value.get(name), str | None):
            raise BadItem(f"'{name}' is a {type(value[name]).__name__}; expected a text", code="bad_item")
    reference_value = value.get("reference")
    if reference is None and reference_value is not None:
        if not isinstance(reference_value, Mapping):
            raise BadItem(
                "'reference' is no object; expected one with audio_base64 or waveform_f32_base64", code="bad_item"
            )
        if wrong := sorted(map(str, reference_value.keys() - set(OF_AUDIO))):
            raise BadItem(
                f"there is no field 'reference.{wrong[0][:60]}'; expected {', '.join(OF_AUDIO)}", code="bad_item"
            )
        reference = audio_of(reference_value, "the reference")
    return Item(
        audio_of(value, "the audio") if audio is None else audio,
        reference,
        value.get("reference_id"),
        value.get("text"),
        value.get("language"),
        value.get("id") or "",
    )


def audio_of(value: Mapping[str, Any], name: str) -> bytes:
    """Decode base64 of a file, or of floats with a rate; raises BadItem."""
    if (text := value.get("audio_base64")) is not None:
        return decode_base64(text, f"{name} (audio_base64)")
    if (text := value.get("waveform_f32_base64")) is None:
        raise BadItem(f"{name} is missing; expected audio_base64 or waveform_f32_base64", code="no_audio")
    rate = value.get("sample_rate_hz")
    if not isinstance(rate, int) or isinstance(rate, bool):
        raise BadItem(f"sample_rate_hz of {name} is {json.dumps(rate)[:40]}; expected a whole number", code="bad_rate")
    return waveform_bytes(text, value.get("num_samples"), rate, name)


def waveform_bytes(text: Any, num_samples: Any, rate_hz: int, name: str) -> bytes:
    """Decode base64 of little-endian 32-bit floats to a WAV file.

    Args:
        num_samples: the expected number of floats, or None. name: for messages.

    Raises:
        BadItem: the number differs, or one is not finite.
    """
    data = decode_base64(text, name)
    if len(data) % 4:
        raise BadItem(f"{name} has {len(data)} bytes; expected a multiple of 4", code="bad_count")
    samples = np.frombuffer(data, "<f4")
    if num_samples is not None and num_samples != len(samples):
        raise BadItem(
            f"{name} has {len(samples)} samples; num_samples says {json.dumps(num_samples)[:40]}", code="bad_count"
        )
    return wav_bytes(samples, rate_hz, name)


def decode_base64(text: Any, name: str) -> bytes:
    """Decode base64; raises BadItem if invalid or too long."""
    if not isinstance(text, str):
        raise BadItem(f"{name} is a {type(text).__name__}; expected a text in base64", code="bad_base64")
    if len(text) > MOST_BYTES * 4 // 3 + 4:
        raise BadItem(f"{name} is larger than {MOST_BYTES:,} bytes", code="too_large")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadItem(f"{name} is not base64", code="bad_base64") from error


def _flag_of(score: Score) -> dict[str, Any] | None:
    flag = score.detail.get("flag")
    return flag.as_dict() if isinstance(flag, Diagnostic) else None


def result_json(result: Result) -> dict[str, Any]:
    """Convert a result to JSON values."""
    return {
        "id": result.id,
        "scores": {
            name: {
                "value": score.value,
                "status": score.status,
                "code": score.code,
                "reason": None if score.reason is None else str(score.reason),
                "flag": _flag_of(score),
                "protocol": score.protocol,
            }
            for name, score in result.scores.items()
        },
        "duration_s": result.duration_s,
        "seconds": round(result.seconds, 6),
    }


def verl_item(value: Mapping[str, Any]) -> Item:
    """Parse the item of a version 1 request; raises BadItem."""
    if value.get("protocol_version") != VERSION:
        raise BadItem(
            f"protocol_version is {value.get('protocol_version')!r:.40}; expected '{VERSION}'", code="bad_protocol"
        )
    rate, count = (_whole_number(value, name) for name in ("sample_rate", "num_samples"))
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise BadItem("metadata is no object", code="bad_item")
    texts = {name: metadata.get(name) for name in ("reference_id", "language", "id")}
    for name in ("reference_id", "id"):  # metadata holds any scalars
        if isinstance(texts[name], int) and not isinstance(texts[name], bool):
            texts[name] = str(texts[name])
    texts["text"] = metadata.get("text", value.get("prompt"))
    for name, text in texts.items():
        if not isinstance(text, str | None):
            raise BadItem(f"{name} is a {type(text).__name__}; expected a text", code="bad_item")
    audio = waveform_bytes(value.get("waveform_f32_base64"), count, rate, "the audio")
    return Item(audio, None, texts["reference_id"], texts["text"], texts["language"], texts["id"] or "")


def _whole_number(value: Mapping[str, Any], name: str) -> int:
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadItem(f"{name} is {number!r:.40}; expected a whole number", code="bad_item")
    return number


def verl_reply(reward: Reward) -> dict[str, float]:
    """Build the reply: the reward, the metrics, and terms not named like a metric."""
    return {**{f"term_{name}": x for name, x in reward.terms.items()}, **reward.values, "score": reward.score}
