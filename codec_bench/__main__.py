"""`python -m codec_bench`: the same as the command `codec-bench`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # `-m` puts the current folder on the path. In a checkout that would make `kernels` importable by its bare name.
    checkout = str(Path(__file__).resolve().parents[1])
    sys.path[:] = [entry for entry in sys.path if str(Path(entry).resolve()) != checkout]
    from codec_bench.cli import main

    main()
