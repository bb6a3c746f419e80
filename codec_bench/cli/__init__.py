"""The command line: reads arguments, calls the public API, and prints. Data goes to stdout, messages to stderr."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `codec-bench`. Exits with 0 when done, 2 for wrong input, 3 when finished with failures."""
    try:
        _main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; finished items are kept, and the same command continues the run\n")
        sys.exit(130)


def _main() -> None:
    import warnings

    from codec_bench.cli.app import app
    from codec_bench.cli.output import talk_notes
    from codec_bench.errors import UserError

    try:
        with warnings.catch_warnings():
            talk_notes()
            app()
    except UserError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        sys.exit(2)
