"""Judges: their validation, and the effect of replacing one.

Which file to open
    `api.py`        the verb `judge_check`: sounds and texts with known answers for a judge, and its score.
    `sounds.py`     the generated sounds with true statements, and the questions about them.
    `injected.py`   answers of known quality (`injected.yaml`), for the rubrics of judges of texts.
    `figures.py`    benchmarks of all questions; figures from replies: Youden's J, changed verdicts, biases,
                    refusals. `words.py` describes them.
    `compare.py`    the verb `judge_compare`: another judge marks the same answers.
    `strengths.py`  the verb `judge_strengths`: systems ranked by verdicts on pairs of answers.
    `page/`         the pages of a test and of a comparison.
    `command.py`    the commands. `store/judge_tests.py` reads stored tests.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "judge": Command(
        "Benchmarks",
        "Test a judge, and see what another one changes.",
        "codec_bench.apps.judging.command:judge_app",
    )
}
VERBS = {
    "judge_check": "codec_bench.apps.judging.api",
    "judge_compare": "codec_bench.apps.judging.compare",
    "judge_strengths": "codec_bench.apps.judging.strengths",
}
