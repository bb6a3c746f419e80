"""Conversations in time with a scripted server: how late frames are sent when many sessions are held at once from one
process.

The server runs in a process of its own, on the same machine. Each session has a turn and an interruption of the
embedded voices, in real time, and is kept on disk while others go on. The lateness of every frame is the sender's own,
as it stands in the record. Every session must be whole, with an answer to the turn.

    python bench/bench_conversation.py [--sessions 64] [--repeats 3]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml
from common import ROOT, Cases, Options, bench, row, served

from codec_bench import converse

MODEL = "gpt-realtime-2.1"


def serve(port: multiprocessing.Queue) -> None:
    """The scripted server of the tests, which answers after 0.8 s and stops 0.3 s after it hears an interruption."""
    import sys

    sys.path.insert(0, str(ROOT))
    from tests.apps.conversation.server import Plan, serving

    async def main() -> None:
        async with serving({"": Plan(answer_after_s=0.8, answer_s=3.0, jitter_s=0.02)}) as url:
            port.put(url)
            await asyncio.Event().wait()

    asyncio.run(main())


def held(url: str, folder: Path, sessions: int, repeat: int) -> np.ndarray:
    """The lateness of every frame in seconds."""
    draw = [{"form": "interruption", "count": sessions, "between": [0.6, 1.4]}]
    script = {"version": 1, "title": "Load", "data": "embedded", "seed": repeat, "ends_s": 0.5, "draw": draw}
    (folder / "script.yaml").write_text(yaml.safe_dump(script))
    made = converse(
        model=MODEL, scripts=folder / "script.yaml", out=folder / f"run{repeat}", at_once=sessions, page=False,
        options={MODEL: {"base_url": url, "key_env": None}},
    )  # fmt: skip
    late = [one.late_s for one in made.sessions[MODEL] if one.sent_s]
    lost = {reason for reason in made.faults.values() if not reason.startswith("slower than real time")}
    if lost or len(late) != sessions:
        raise SystemExit(f"{len(late)} of {sessions} sessions were held: {lost}")
    answered = [v for v in made.values[MODEL] if v.measure == "turn_taken" and v.place == 0]
    if any(v.value != 1 for v in answered):
        raise SystemExit("a turn was not answered")
    return np.concatenate(late)


@bench("websockets", sessions=64, repeats=3)
def main(options: Options) -> Cases:
    """All sessions at once, as often as asked."""
    with tempfile.TemporaryDirectory() as folder, served(serve) as url:
        load, cpu = os.getloadavg()[0], time.process_time()
        runs = [held(url, Path(folder), options.sessions, repeat) for repeat in range(options.repeats)]
    late_ms = 1000 * np.concatenate(runs)
    cpu_us = (time.process_time() - cpu) / late_ms.size * 1e6
    p99 = float(np.median([np.quantile(1000 * run, 0.99) for run in runs]))
    note = f"{p99:.2f} ms late at p99; {late_ms.max():.1f} ms at most; {late_ms.size} frames; {cpu_us:.0f} us of CPU a frame; load {load:.1f}"
    case = f"{options.sessions} sessions at once, one process"
    print(f"{case}: {note}")
    said = "every session whole, every turn answered"
    yield [row(case, "converse", late_ms / 1000, n=late_ms.size, agreement=said, note=note, repeats=options.repeats)]
