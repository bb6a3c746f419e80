"""Offline mode and server timeouts."""

from __future__ import annotations

import os

TIMEOUT_S = 10.0
"""The longest wait for a server's next bytes."""
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def offline() -> str | None:
    """Return the environment variable that forbids the network, or None."""
    return next((name for name in _OFFLINE if os.environ.get(name, "").upper() in ("1", "TRUE", "YES", "ON")), None)
