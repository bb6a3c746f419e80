"""Codes of the room models."""

from __future__ import annotations

SENTENCES: dict[str, dict[str, str]] = {"info": {}, "warning": {}, "error": {}}
