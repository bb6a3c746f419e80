"""What `bench_intervals.py` draws for medians and higher quantiles: conversations whose latencies are planted, taken
the whole way.

Sessions are kept on disk with both tracks, as `codec-bench converse` keeps those that it holds. It then marks them: the
latencies are found in the sound, the quantiles stand in `summary.json`, and the page shows them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from interval_designs import in_places

from codec_bench import converse
from codec_bench.apps.conversation.activity import WINDOW_S
from codec_bench.apps.conversation.distributions import QUANTILES
from codec_bench.apps.conversation.measures import shown
from codec_bench.apps.conversation.script import Script
from codec_bench.apps.conversation.session import FRAME_S, Session
from codec_bench.apps.conversation.session_files import folder_of, write_session
from codec_bench.apps.conversation.user import SaidEvent
from codec_bench.store.files import write_json

MEDIANS = {
    "median of latencies, 12 sessions": ("median", (1,) * 12, 0.0),
    "median of latencies, 15 sessions of 4 turns, 0.5 alike": ("median", (4,) * 15, 0.5),
    "90th percentile of latencies, 30 sessions of 2 turns, 0.9 alike": ("p90", (2,) * 30, 0.9),
}
"""The quantile, the turns of each session, and how alike the logarithms of a session's latencies are."""
RATE_HZ = 8_000
MIDDLE_S, SPREAD = 0.4, 0.5
"""The median latency, and the standard deviation of its logarithm."""
SAID_S, BETWEEN_S = 0.1, 0.3
"""How long the user and the model speak, and how long nobody does before the next turn."""
MEASURE = "response_latency_s"


def medians(repetitions: int, names: Iterable[str] = MEDIANS) -> Iterator[dict[str, object]]:
    """One row per design and place: how often the interval of a quantile that a run tells holds the true one.

    A run holds a system for each of some repetitions.
    """
    for name in names:
        yield from in_places(name, repetitions, partial(_through_a_run, name))


def _on_the_grid(latency_s: float) -> float:
    """The end of the window in which a latency lies: sound is looked at in such windows."""
    return math.ceil(latency_s / WINDOW_S - 1e-9) * WINDOW_S


def _through_a_run(name: str, seed: int, several: int, folder: Path) -> tuple[float, dict[str, list[Any]]]:
    """The true quantile of a design, and the ends of its intervals of some systems as they are told in each place."""
    which, turns, alike = MEDIANS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    systems, talks = [f"system-{n}" for n in range(several)], [f"talk-{n}" for n in range(len(turns))]
    for system in systems:
        for talk, count in zip(talks, turns):
            logs = rng.normal(0, alike**0.5) + rng.normal(0, (1 - alike) ** 0.5, count)
            latencies_s = [_on_the_grid(MIDDLE_S * math.exp(SPREAD * one)) for one in logs]
            write_session(folder_of(folder, system, talk), _session(talk, latencies_s), {})
    script = Script.model_validate({"version": 1, "title": "Planted", "data": "", "conversations": [{"id": talk, "silence_s": 1} for talk in talks]})  # fmt: skip
    asked = {"command": "converse", "script": json.loads(script.model_dump_json()), "conversations": talks, "systems": {name: {} for name in systems}}  # fmt: skip
    write_json(folder / "run.json", asked)
    made = converse(out=folder, remark=True)
    summary = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]
    page = made.page.read_text("utf-8")
    row = re.search(rf'<tr><th scope="row">[^/]*{shown(MEASURE)} [^/]*</span></th>(.*?)</tr>', page)
    cells = [] if row is None else re.findall(r"<td>(.*?)</td>", row[1])[1:]
    place = list(QUANTILES).index(which)
    truth = _on_the_grid(MIDDLE_S * math.exp(SPREAD * NormalDist().inv_cdf(QUANTILES[which])))
    return truth, {
        "summary.json": [summary[name]["measures"][MEASURE][which]["ci95"] for name in systems],
        "page": [_ends(cell.partition(" (n=")[0].split(" / ")[place]) for cell in cells],
    }


def _ends(text: str) -> list[float] | None:
    """The ends in a cell such as `0.410 [0.350, 0.480]`."""
    found = re.search(r"\[(.+), (.+)\]", text)
    return None if found is None else [float(found[1]), float(found[2])]


def _session(name: str, latencies_s: list[float]) -> Session:
    """A session of one turn for each latency: the user speaks, and the model answers so much later."""
    events, at_s, answers = [], 0.0, []
    for latency_s in latencies_s:
        end_s = at_s + SAID_S
        events.append(SaidEvent("turn", at_s, end_s, [(at_s, end_s)]))
        answers.append((end_s + latency_s, end_s + latency_s + SAID_S))
        at_s = answers[-1][1] + BETWEEN_S
    heard = np.zeros(round(at_s * RATE_HZ), np.int16)
    for begin_s, end_s in answers:
        heard[round(begin_s * RATE_HZ) : round(end_s * RATE_HZ)] = 8_000
    sent_s = [FRAME_S * (n + 1) for n in range(round(at_s / FRAME_S))]
    silent = np.zeros_like(heard)
    return Session(name, RATE_HZ, RATE_HZ, events=events, sent_s=sent_s, user=silent, clean=silent, heard=heard)
