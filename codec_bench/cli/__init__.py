"""The command line: parses arguments, calls the public API, and prints.

Data goes to stdout, messages to stderr.

Which file to open
    `app.py` the program and its `--help`; `commands.py` the core's commands. `evaluate.py` and `run.py` measure, and
    `finished.py` prints their results. `compare.py`, `report.py`, `record.py` and `imports.py` for existing runs.
    `check.py` has `doctor`, `validate` and `verify-batching`; `names.py` `list` and `show`; `data.py` converts data;
    `weights.py` and `answers.py` manage caches. Options are declared in `codec_bench/config`, shared parts in
    `codec_bench/terminal`.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run `codec-bench`.

    Exits with 0 when done, 2 for wrong input, 3 when finished with failures, and 130 after Ctrl-C.
    """
    try:
        _main()
    except KeyboardInterrupt:
        _stopped()
    except SystemExit as end:
        # typer exits silently on an interrupt; commands with a run describe themselves what is saved.
        if end.code == 130 and isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _stopped()
        raise


def _stopped() -> None:
    from codec_bench.terminal.stopping import INTERRUPTED, ignore_interrupts

    ignore_interrupts()
    sys.stderr.write("stopped\n")
    sys.exit(INTERRUPTED)


def _main() -> None:
    """Run the command line; errors for the user are printed without a traceback."""
    import gc
    import warnings

    # Collecting garbage while importing takes a tenth of a short command's time.
    gc.disable()
    from codec_bench.cli.app import app
    from codec_bench.messages.errors import UserError
    from codec_bench.terminal.output import guard_output, print_notes, talk

    gc.freeze()
    gc.set_threshold(200_000)  # commands import more, and a run keeps hundreds of objects per item
    gc.enable()
    try:
        with warnings.catch_warnings():
            print_notes()
            with guard_output():
                app()
    except UserError as error:
        talk(f"error: {error.message}")
        if error.hint:
            talk(f"hint: {error.hint}")
        sys.exit(2)
