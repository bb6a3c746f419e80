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

from codec_bench.apps.serving.items import MOST_BYTES, BadItem, Item, Result, bad_type, too_large, wav_bytes
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
        raise BadItem(Diagnostic("request_double_key", cause=error), code="bad_json") from error
    except (ValueError, RecursionError) as error:
        raise BadItem(Diagnostic("request_not_json"), code="bad_json") from error
    if not isinstance(value, dict):
        raise bad_type("request", value, "json_object", code="bad_json")
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
        raise BadItem(Diagnostic("no_item_field", field=unknown[0][:60], known=FIELDS), code="bad_item")
    for name in ("id", "reference_id", "text", "language"):
        if not isinstance(value.get(name), str | None):
            raise bad_type(name, value[name], "text")
    reference_value = value.get("reference")
    if reference is None and reference_value is not None:
        if not isinstance(reference_value, Mapping):
            raise bad_type("reference", reference_value, "audio_object")
        if wrong := sorted(map(str, reference_value.keys() - set(OF_AUDIO))):
            field = f"reference.{wrong[0][:60]}"
            raise BadItem(Diagnostic("no_item_field", field=field, known=OF_AUDIO), code="bad_item")
        reference = audio_of(reference_value, "reference")
    return Item(
        audio_of(value, "audio") if audio is None else audio,
        reference,
        value.get("reference_id"),
        value.get("text"),
        value.get("language"),
        value.get("id") or "",
    )


def audio_of(value: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of `audio_base64`, or of `waveform_f32_base64` as WAV.

    Raises:
        BadItem: there is neither, or it is malformed.
    """
    if (text := value.get("audio_base64")) is not None:
        return decode_base64(text, f"{name} (audio_base64)")
    if (text := value.get("waveform_f32_base64")) is None:
        raise BadItem(Diagnostic("no_audio_field", name=name), code="no_audio")
    rate = value.get("sample_rate_hz")
    if not isinstance(rate, int) or isinstance(rate, bool):
        fraction = Diagnostic("no_whole_number", name="sample_rate_hz", value=json.dumps(rate)[:40])
        raise BadItem(fraction, code="bad_rate")
    return waveform_bytes(text, value.get("num_samples"), rate, name)


def waveform_bytes(text: Any, num_samples: Any, rate_hz: int, name: str) -> bytes:
    """Decode base64 of little-endian 32-bit floats to a WAV file.

    Args:
        num_samples: the expected number of floats, or None.
        name: for messages.

    Raises:
        BadItem: the number differs, or one is not finite.
    """
    data = decode_base64(text, name)
    if len(data) % 4:
        raise BadItem(Diagnostic("partial_float", name=name, bytes=len(data)), code="bad_count")
    samples = np.frombuffer(data, "<f4")
    if num_samples is not None and num_samples != len(samples):
        declared = json.dumps(num_samples)[:40]
        raise BadItem(Diagnostic("sample_count", name=name, samples=len(samples), declared=declared), code="bad_count")
    return wav_bytes(samples, rate_hz, name)


def decode_base64(text: Any, name: str) -> bytes:
    """Decode base64; raises BadItem if invalid or too long. `name` is for messages."""
    if not isinstance(text, str):
        raise bad_type(name, text, "base64", code="bad_base64")
    if len(text) > MOST_BYTES * 4 // 3 + 4:
        raise too_large(name, len(text) * 3 // 4, MOST_BYTES)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadItem(Diagnostic("not_base64", name=name), code="bad_base64") from error


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
    """Parse the item of a request in verl-omni's protocol; raises BadItem."""
    if value.get("protocol_version") != VERSION:
        version = repr(value.get("protocol_version"))[:40]
        raise BadItem(Diagnostic("protocol_version", version=version, expected=VERSION), code="bad_protocol")
    rate, count = (_whole_number(value, name) for name in ("sample_rate", "num_samples"))
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise bad_type("metadata", metadata, "object")
    texts = {name: metadata.get(name) for name in ("reference_id", "language", "id")}
    for name in ("reference_id", "id"):  # metadata holds any scalars
        if isinstance(texts[name], int) and not isinstance(texts[name], bool):
            texts[name] = str(texts[name])
    texts["text"] = metadata.get("text", value.get("prompt"))
    for name, text in texts.items():
        if not isinstance(text, str | None):
            raise bad_type(name, text, "text")
    audio = waveform_bytes(value.get("waveform_f32_base64"), count, rate, "audio")
    return Item(audio, None, texts["reference_id"], texts["text"], texts["language"], texts["id"] or "")


def _whole_number(value: Mapping[str, Any], name: str) -> int:
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadItem(Diagnostic("no_whole_number", name=name, value=repr(number)[:40]), code="bad_item")
    return number


def verl_reply(reward: Reward) -> dict[str, float]:
    """Build the reply: the reward, the metrics, and terms not named like a metric."""
    return {**{f"term_{name}": x for name, x in reward.terms.items()}, **reward.values, "score": reward.score}
