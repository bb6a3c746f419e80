"""Run the benches of claims.yaml on a quiet machine, then write the texts.

    python bench/measure.py            the commands of claims without rows of a quiet machine
    python bench/measure.py --all      every command
    python bench/measure.py --list     prints the commands with the minutes that they need, and runs none
    python bench/measure.py dnsmos stoi

Where the load does not fall to that of a quiet machine within `--patience` minutes, a command is skipped.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from common import QUIET_SHARE, ROOT, cores
from table import CLAIMS, claims, standing

BENCH = Path(__file__).parent
COMMANDS = {name: command for name, command in CLAIMS["commands"].items() if not command.get("gpu")}
"""Those of a GPU are for `make gpu`."""


def select_benches(every: bool) -> list[str]:
    """The commands to run, in the order of claims.yaml."""
    standings = [(claim.command, standing(claim)) for claim in claims().values()]
    missing = {command for command, rows in standings if rows is None or not rows.quiet}
    return [name for name in COMMANDS if every or name in missing]


def waited(patience_min: float) -> bool:
    """Wait for a quiet machine; False if it does not become quiet."""
    end = time.monotonic() + 60 * patience_min
    # Four fifths of the limit: starting a bench is itself a load before the bench reads it.
    while os.getloadavg()[0] > 0.8 * QUIET_SHARE * cores():
        if time.monotonic() > end:
            return False
        time.sleep(5)
    return True


def measure(name: str, patience_min: float) -> str:
    """Run one command; return what became of it."""
    if not waited(patience_min):
        return f"skipped: the load stays above {0.8 * QUIET_SHARE * cores():.1f}"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # every process would compile what it imports, for seconds
    start = time.monotonic()
    words = [sys.executable, *shlex.split(f"bench/{COMMANDS[name]['run']}")]
    code = subprocess.run(words, cwd=ROOT, env=environment).returncode
    return f"{'measured' if code == 0 else f'failed with {code}'} in {(time.monotonic() - start) / 60:.1f} min"


def main() -> None:
    """List or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *COMMANDS], help="commands of claims.yaml")
    parser.add_argument("--all", action="store_true", help="also what has rows of a quiet machine")
    parser.add_argument("--list", action="store_true", help="print the commands, run none")
    parser.add_argument("--patience", type=float, default=5.0, help="minutes to wait for a quiet machine")
    options = parser.parse_args()
    chosen = options.names or select_benches(options.all)
    if options.list:
        for name in chosen:
            print(f"{name:22} {COMMANDS[name]['minutes']:>3} min  python bench/{COMMANDS[name]['run']}")
        print(f"{sum(COMMANDS[name]['minutes'] for name in chosen)} min in all")
        return
    states = {}
    for name in chosen:
        print(f"== {name}: {COMMANDS[name]['run']}", flush=True)
        states[name] = measure(name, options.patience)
        print(f"== {name}: {states[name]}", flush=True)
    subprocess.run([sys.executable, str(BENCH / "table.py")], cwd=ROOT, check=True)
    sys.exit(3 if any("measured" not in text for text in states.values()) else 0)


if __name__ == "__main__":
    main()
