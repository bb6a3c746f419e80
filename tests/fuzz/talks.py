"""Kills conversations at random moments: `python tests/fuzz/talks.py --kills 30 --sessions 1000` (`make kills`).

`converse` talks with the scripted server of the tests in real time, is killed, and is started again, until it ends by
itself. Each session must then be kept whole, with the user's side bit for bit that of a run without any kill. A session
that was whole at a kill must not be held again. The exit code of this script is 1 if there was any fault.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import logging
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from queue import Queue
from threading import Thread

import numpy as np
import soundfile
import yaml

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for the server of the tests

from kills import Job, Killing, calm

from codec_bench.apps.conversation.session_files import read_session

REALTIME = "gpt-realtime-2.1"
TALKS = """
import sys
from codec_bench.cli import main

sys.argv = ["codec-bench", *sys.argv[1:-1]]  # without --no-cache
main()
"""
AT_ONCE = 20


class Talks(Job):
    """Conversations with the scripted server of the tests, each of half a second in real time.

    A machine that is too slow refuses sessions, and the exit code says so: they are kept like others.

    Attributes:
        whole: the sessions that were whole when the command was last started, by its folder, with when they were
            written.
    """

    complete: dict[Path, dict[Path, int]]

    def rows(self, out: Path) -> dict[tuple, tuple]:
        """The hash of the user's track of each session."""
        results: dict[tuple, tuple] = {}
        for folder in sorted((out / "sessions" / REALTIME).iterdir()):
            session = read_session(folder)
            if session is None or session.status == "failed":
                raise AssertionError(f"the session '{folder.name}' is not whole: {session and session.reason}")
            results[(folder.name,)] = (hashlib.sha256(session.user.tobytes()).hexdigest(), len(session.sent_s))
        return results

    def start(self, out: Path, clock: str | None = None) -> subprocess.Popen[bytes]:
        """As `Job.start`. A session that is whole must be the same when the command has ended: `check` compares."""
        self.check(out)
        return super().start(out, clock)

    def check(self, out: Path) -> None:
        """Compares the sessions that were whole before with what is there, and notes those that are whole now."""
        places = {folder: whole_since(folder) for folder in out.glob(f"sessions/{REALTIME}/*")} if out.exists() else {}
        for folder, since in self.complete.get(out, {}).items():
            if places.get(folder) != since:
                raise AssertionError(f"the session '{folder.name}' was whole and was held again")
        self.complete[out] = {folder: since for folder, since in places.items() if since is not None}


def whole_since(location: Path) -> int | None:
    """When a session that is whole was written, in nanoseconds; None if it is not whole."""
    session = read_session(location)
    complete = session is not None and session.status != "failed"
    return (location / "session.json").stat().st_mtime_ns if complete else None


def served() -> str:
    """The address of a scripted server in a thread."""
    from tests.apps.conversation.server import Plan, serving

    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)  # who asks is killed all the time
    details: Queue[str] = Queue()

    async def main() -> None:
        async with serving({"": Plan(answer_after_s=0.05, answer_s=0.1)}) as url:
            details.put(url)
            await asyncio.Event().wait()

    Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    return details.get()


def converse_job(location: Path, sessions: int) -> Job:
    """Short recordings as users, many at once."""
    rng = np.random.default_rng(0)
    talks = []
    for number in range(sessions):
        sound = np.concatenate([np.zeros(2400), rng.normal(0, 0.1, 4800), np.zeros(4800)])
        soundfile.write(location / f"{number}.wav", sound, 24_000)
        talks.append({"id": f"s{number:04d}", "recording": f"{number}.wav", "said": [{"begin_s": 0, "end_s": 0.5}]})
    script = {"version": 1, "title": "Short", "data": "", "conversations": talks}
    (location / "script.yaml").write_text(yaml.safe_dump(script))
    (location / "steps.py").write_text(TALKS)
    at = ("--set", f"{REALTIME}.base_url={served()}", "--set", f"{REALTIME}.key_env=null")
    requested = ("--model", REALTIME, "--scripts", str(location / "script.yaml"), "--at-once", str(AT_ONCE), *at)
    job = Talks("converse", requested, location, (sys.executable, "-P", str(location / "steps.py")), ends=(0, 3))
    job.complete = {}
    return job


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=200, help="of each series, which has up to 12 kills")
    parser.add_argument("--seed", type=int, default=0)
    requested = parser.parse_args()
    counts: Counter[str] = Counter()
    faults = series = 0
    with tempfile.TemporaryDirectory() as folder:
        job = calm(converse_job(Path(folder), requested.sessions))
        while counts["kills"] < requested.kills:
            rng = random.Random(f"{requested.seed}:{series}")
            try:
                most = min(12, requested.kills - counts["kills"])
                counts["kills"] += Killing(job, rng, counts).series(Path(folder, f"out{series}"), most)
            except (AssertionError, subprocess.TimeoutExpired) as fault:
                faults += 1
                print(f"series {series} of seed {requested.seed}: {fault}", flush=True)
            series += 1
            print(
                f"{series} series of {requested.sessions} sessions, {counts['kills']} kills, {faults} faults",
                flush=True,
            )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
