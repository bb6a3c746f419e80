"""What the tests of all applications may use: a run, a browser, and the command line."""

from __future__ import annotations

from command_line import cli  # noqa: F401
from written_runs import demo_run, make_run  # noqa: F401
