"""Judges: whether a judge can be believed, and what changes when another one takes its place.

Which file to open
    `api.py`        the verb `judge_check`: sounds and texts with known answers are put to a judge, and its replies are
                    counted.
    `sounds.py`     the sounds, made on the spot, and what is true of each. `claims.py` asks about them.
    `question.py`   one question to a judge; `questions.py` makes benchmarks of all and reads the replies from their
                    records.
    `planted.py`    answers of known quality (`planted.yaml`), which a judge of texts marks by the rubrics that are in
                    use.
    `figures.py`    from replies to figures: Youden's J, changed verdicts, biases, refusals. `words.py` says them.
    `compare.py`    the verb `judge_compare`: another judge marks the same answers.
    `strengths.py`  the verb `judge_strengths`: how strong many systems are by verdicts on pairs of answers.
    `page/`         the pages of a test and of a comparison.
    `command.py`    what is typed. What is kept of a check is read by `store/judge_tests.py`.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "judge": Command(
        "Benchmarks",
        "Test a judge before it is believed, and see what another one changes.",
        "codec_bench.apps.judging.command:judge_app",
    ),
}
VERBS = {
    "judge_check": "codec_bench.apps.judging.api",
    "judge_compare": "codec_bench.apps.judging.compare",
    "judge_strengths": "codec_bench.apps.judging.strengths",
}
