"""The commands of the core by name.

Their modules are imported when one is typed; applications declare theirs in the same way.
"""

from __future__ import annotations

from codec_bench.registry import Command

GROUPS = ("Measure", "Look at results", "Benchmarks", "Many machines", "Housekeeping")
MEASURE, LOOK, BENCHMARKS, MACHINES, HOUSEKEEPING = GROUPS
_CLI = "codec_bench.cli"

COMMANDS = {
    "demo": Command(MEASURE, "Run the main job on embedded speech: eight systems, embedded metrics, no network.", f"{_CLI}.evaluate:demo", True),
    "eval": Command(MEASURE, "Send audio through codecs and score what comes out.", f"{_CLI}.evaluate:evaluate", True),
    "score": Command(MEASURE, "Score audio that exists already: speech synthesis, voice conversion, another toolkit's reconstructions.", f"{_CLI}.evaluate:score", True),
    "report": Command(LOOK, "Write the page of a run again, or one page for several runs.", f"{_CLI}.report:report", True),
    "compare": Command(LOOK, "Compare systems or runs pair by pair, over the samples that both have, with intervals and paired tests.", f"{_CLI}.compare:compare", True),
    "export": Command(LOOK, "Write every score as a row, with --summary the table for a paper, or the results for a model's repository.", f"{_CLI}.report:export", True),
    "sample-size": Command(LOOK, "Say how many speakers and utterances are needed to show a difference, judged from a pilot run.", f"{_CLI}.compare:sample_size"),
    "run": Command(BENCHMARKS, "Ask models the questions of benchmarks and score their answers, or send a benchmark's audio through codecs.", f"{_CLI}.run:run", True),
    "merge": Command(MACHINES, "Make one run of the runs of all shards, row for row that of one machine.", f"{_CLI}.record:merge", True),
    "list": Command(HOUSEKEEPING, "List the names of one kind of thing.", f"{_CLI}.names:list_", True),
    "show": Command(HOUSEKEEPING, "Show everything about one name.", f"{_CLI}.names:show", True),
    "doctor": Command(HOUSEKEEPING, "Check the installation; exits with 2 if something is wrong.", f"{_CLI}.check:doctor", True),
    "validate": Command(HOUSEKEEPING, "Check data, codecs, metrics, benchmarks, prompts and models before a long run; exits with 2 if something is wrong.", f"{_CLI}.check:validate", True),
    "data": Command(HOUSEKEEPING, "Write data of any layout as a manifest.", f"{_CLI}.data:data_app"),
    "weights": Command(HOUSEKEEPING, "Published checkpoints: list, fetch and verify them, and show where they are.", f"{_CLI}.weights:weights_app", True),
    "answers": Command(HOUSEKEEPING, "Answers of models that are kept for other runs: list and forget them.", f"{_CLI}.answers:answers_app"),
    "import": Command(HOUSEKEEPING, "Read results of other toolkits in, so that old numbers stand beside new ones.", f"{_CLI}.imports:import_app"),
    "verify-batching": Command(HOUSEKEEPING, "Check that results do not depend on the batch: each clip alone, and batches of mixed lengths in other orders.", f"{_CLI}.check:verify_batching"),
    "verify": Command(HOUSEKEEPING, "Check that a run record is as it was written, and say what can be saved if not; exits with 2 if it is damaged.", f"{_CLI}.record:verify"),
    "rescue": Command(HOUSEKEEPING, "Save what is whole of a damaged record; the run's own command with the new folder as --out runs the rest again.", f"{_CLI}.record:rescue"),
}  # fmt: skip
