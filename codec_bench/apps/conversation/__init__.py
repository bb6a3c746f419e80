"""Full-duplex conversations on one clock, and measures of their turn-taking.

Which file to open
    `api.py`, `command.py`   the verb and the command. `session_files.py` holds sessions on disk, and `words.py` writes
                             the table.
    `prices.py`      what sessions cost.
    `script.py`      what the user says, as YAML; `user.py` says it frame by frame. `embedded.yaml` is the script that
                     comes with the package.
    `session.py`     one conversation with a `Partner`: the clock, the frames, what came and when.
    `services.py`    models behind a WebSocket as partners. `in_process.py` models of this process, `streaming.py` the
                     base of a custom one; `turn_ends.py` rules for the end of a turn.
    `network.py`     a simulated network; `playback.py` what of it is heard. `activity.py` where a track has speech.
    `measures.py`    the measures of one session; `distributions.py` those of all, with `quantiles.py`. `transcripts.py` has the words of
                     what was heard, `judged.py` what a language model is asked of them, and `voice.py` how a voice
                     changes after an event.
    `official.py` and `full_duplex.py` have the definitions and the layout of Full-Duplex-Bench, and `tau_voice.py`
    those of tau-Voice.
    `spoken_questions.py`    a benchmark's questions, each in a session of its own.
    `page/`          the page.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "converse": Command(
        "Measure",
        "Talk with models at the speed of speech and measure turn-taking, latency, interruptions and pauses.",
        "codec_bench.apps.conversation.command:converse",
    ),
}
VERBS = {"converse": "codec_bench.apps.conversation.api"}
