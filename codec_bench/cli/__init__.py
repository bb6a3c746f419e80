"""The command line: parse, call the public API, print. stdout is data, stderr is talk."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `codec-bench`; exits 0 when done, 2 for the caller's input, 3 when finished with failures."""
    try:
        _main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was finished is kept, and the same command goes on\n")
        sys.exit(130)


def _main() -> None:
    from codec_bench.cli.app import app
    from codec_bench.errors import UserError

    try:
        app()
    except UserError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        sys.exit(2)
