"""Full-duplex conversations on one clock, and measures of their turn-taking.

Which file to open
    `api.py`, `command.py`   the verb and the command. `session_files.py` stores sessions.
    `script.py`      the user's side as YAML; `user.py` plays it frame by frame. `embedded.yaml` is the included script.
    `session.py`     one conversation with a `Partner`: clock, frames, network, received audio. `playback.py` audible
                     output.
    `services.py`    models behind a WebSocket as partners. `in_process.py` models of this process, and the base of a
                     custom one. `turn_ends.py` speech in a track, and detectors of the end of a turn.
    `measures.py`    the measures of one session; `distributions.py` those of all, with costs and the table.
                     `transcripts.py` has recognised words, `judged.py` verdicts on them and a benchmark's spoken
                     questions, `voice.py` changes of voice after an event.
    `full_duplex.py` definitions and layout of Full-Duplex-Bench; `tau_voice.py` those of tau-Voice.
    `page/`          the page.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "converse": Command(
        "Measure",
        "Talk with models in real time, measure turn-taking.",
        "codec_bench.apps.conversation.command:converse",
    )
}
VERBS = {"converse": "codec_bench.apps.conversation.api"}
