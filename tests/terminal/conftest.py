"""The command line as a person uses it."""

from __future__ import annotations

from command_line import cli  # noqa: F401
