"""A run as the engine would write it, and a browser."""

from __future__ import annotations

from written_runs import demo_run, make_run  # noqa: F401
