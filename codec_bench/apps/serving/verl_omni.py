"""Version 1 of verl-omni's protocol of remote audio rewards.

A request has a waveform as base64 of little-endian floats; the reply is a finite `score` with further finite scalars.
The client repeats 408, 429 and 5xx, and stops training at any other status or missing score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.apps.serving.items import BadItem, Item
from codec_bench.apps.serving.rewards import Reward
from codec_bench.apps.serving.wire import waveform_bytes

VERSION = "1"


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
