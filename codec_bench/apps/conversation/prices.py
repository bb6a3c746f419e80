"""Costs of sessions: expected from the user's minimum, then counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.apps.conversation.session import Partner, Session


def price_before(name: str, model: Partner, seconds: Sequence[float]) -> str:
    """Describe the least cost of sessions of `seconds`; empty without prices."""
    if model.prices is None or not model.prices.known or not seconds:
        return ""
    sound_s = sum(seconds)
    least, _, unknown = model.prices.bounds(sound_s=sound_s, text_bytes=0, characters=0, most_tokens=None, speaks=True)
    missing = ", ".join(dict.fromkeys([*unknown, "how long answers are"]))
    day = model.prices.date or "an unknown day"
    return (
        f"{name}: {len(seconds)} sessions with at least {sound_s:.0f} s of sent sound will cost at least {least:.2g} "
        f"USD by the prices of {day}; not known: {missing}"
    )


def priced(model: Partner, session: Session) -> dict[str, float]:
    """Return the usage of a session, with its cost where prices and counts give one."""
    if model.prices is None or not session.sent_s:
        return session.usage
    sent = {"sent_audio_s": session.duration_s} if model.prices.counts("audio_minute") else {}
    return model.prices.priced({**session.usage, **sent}, sent=True, came=bool(session.packets))


def cost_words(system: Mapping[str, Any]) -> str:
    """Describe the cost of a system's sessions; empty without any."""
    if not system["priced"]:
        return ""
    usage, count = system["usage"], sum(system["sessions"].values())
    unsure = usage.get("cost_unsure_usd", 0.0)
    low = f"{usage['cost_usd'] - unsure:.3g} to " if unsure else ""
    return (
        f"{system['priced']} of {count} sessions cost {low}{usage['cost_usd']:.3g} USD by what was counted and the "
        "prices of its config"
    )
