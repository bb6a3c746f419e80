"""The options of `run`, each declared once (see `request.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codec_bench.config.option import Flag, Kept, Number, Option, Place, Rows, Settings, Text, Texts, Whole
from codec_bench.config.shared_options import Request


@dataclass(frozen=True, kw_only=True)
class RunRequest(Request):
    """The options of `run`."""

    benchmark: Annotated[
        Texts | None,
        Option(
            "Benchmarks with commas (see: list benchmarks), or ./folder of your own.",
            positional=True,
            instead_of=("suite",),
            python="names (`librispeech-test-clean`), own folders, or one string with commas.",
        ),
    ] = None
    model: Annotated[
        Texts,
        Option(
            "Models with commas (see: list models), ./mine.yaml or ./mine.py:Class.",
            instead_of=("codec",),
            python="names of configs (`qwen2-audio-7b-instruct`), own files, or one string with commas.",
        ),
    ] = ""
    codec: Annotated[
        Rows | None, Option("In place of models: codecs with commas, for benchmarks of codecs.", instead_of=("model",))
    ] = None
    suite: Annotated[
        Text | None, Option("A named list of benchmarks (see: list suites).", of="terminal", instead_of=("benchmark",))
    ] = None
    out: Annotated[
        Place | None,
        Option(
            "Folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, or a new folder there.",
            python="the folder; None continues the unfinished run of the same call under `runs/`, or makes a new folder there.",
        ),
    ] = None
    phase: Annotated[
        Text,
        Option(
            "both, answers (only asks the model), or scores (only scores recorded answers).",
            python="`both`, `answers` (only asks), or `scores` (only scores the recorded answers).",
        ),
    ] = "both"
    judge: Annotated[
        Texts | None,
        Option(
            "The model that judges answers, for benchmarks that need one; several with commas (see: agreement).",
            python="the model that judges answers, for benchmarks that need one; several as names or one string with commas. The "
            "verdicts of the first stand under the metric's plain name, `rating[RUBRIC]`, and those of another judge under "
            "`rating[RUBRIC]@JUDGE`. `codec_bench.agreement` compares them.",
        ),
    ] = None
    data: Annotated[
        Place | None,
        Option(
            "A folder with the data sets as OWNER/NAME, used in place of the hub.",
            python="a folder that holds the data sets as `OWNER/NAME`, used in place of the hub.",
        ),
    ] = None
    limit: Annotated[
        Whole | None,
        Option(
            "Take at most so many questions of each benchmark.",
            python="how many questions to take; None for all. A run that is continued with a larger limit asks only the further "
            "questions.",
        ),
    ] = None
    seed: Annotated[
        Whole,
        Option(
            "Seed of the choice that --limit makes, and of what a model draws at random.",
            python="decides which questions `limit` takes, and what a model draws at random.",
        ),
    ] = 0
    shard: Annotated[
        Text | None,
        Option(
            "Take one part of the questions: K/N, such as 3/8. See merge.",
            python="which part of the questions to take, as for `evaluate`; `merge` makes one run of the runs of all parts.",
        ),
    ] = None
    repeats: Annotated[
        Whole,
        Option(
            "Draw so many answers to each question, where the model does not answer greedily.",
            python="how many answers to draw to each question, where the model does not answer greedily. A run that is continued with "
            "more asks only for the further ones.",
        ),
    ] = 1
    prompts: Annotated[
        Text,
        Option(
            "Where a prompt has several wordings: seeded (seed and id choose one), first, a number from 1, or each (every question in all of them).",
            python="for prompts with several wordings, which of them a question is asked in: `seeded` (the seed and the question's id "
            "choose it), `first`, a number from 1, or `each` (every question is asked in all of them).",
        ),
    ] = "seeded"
    choices: Annotated[
        Text,
        Option(
            "The order of the options of a question: given, shuffled (by seed and id), or all-rotations (every question in every rotation of its options).",
            python="in which order the options of a question are offered: `given` (as in the data), `shuffled` (the seed and the "
            "question's id decide), or `all-rotations` (every question is asked in every rotation of its options).",
        ),
    ] = "given"
    device: Annotated[Text, Option("auto, cpu, cuda:0, or several GPUs with commas.", of="running")] = "auto"
    workers: Annotated[
        Whole | None,
        Option(
            "CPU worker processes that score audio. Default: one per core; beside GPUs, some cores are left free.",
            of="running",
        ),
    ] = None
    cache: Annotated[Flag, Option("Keep answers and computed features for other runs.", of="running")] = True
    save_audio: Annotated[
        Kept | None, Option("all, none, or the number of questions whose sound is kept.", of="running")
    ] = None
    set: Annotated[
        Settings | None,
        Option(
            "NAME.OPTION=VALUE for a model, benchmark or feature.",
            named="options",
            python='arguments by model, benchmark or feature, such as {"openai-chat": {"base_url": "..."}}.',
        ),
    ] = None
    retry_failed: Annotated[Flag, Option("Ask questions again that failed before.", of="running")] = False
    wait: Annotated[
        Flag,
        Option(
            "Wait for a service that takes no requests for as long as it takes, also for a quota of the day. With --batch: stay until the batches are answered.",
            of="terms",
            python="whether to wait for a service that takes no requests for as long as it takes, also for a quota of the day, and for "
            "batches until they are answered.",
        ),
    ] = False
    batch: Annotated[
        Flag,
        Option(
            "Submit the questions as batches of the service: half the price, within a day. The same command collects the answers.",
            of="terms",
            python="whether the questions are submitted in batches, which are answered within a day at half the price. The same call "
            "collects the answers.",
        ),
    ] = False
    anyway: Annotated[
        Flag,
        Option(
            "Ask a model although its config says that its service has shut it down.",
            of="terms",
            python="whether a model is asked that its service has shut down by the config.",
        ),
    ] = False
    reuse_answers: Annotated[
        Flag,
        Option(
            "Take the answers of other runs, although the service may serve another checkpoint under the same name by now.",
            of="terms",
            python="whether answers of other runs are taken where the service does not say enough to tell two checkpoints under one "
            "name apart.",
        ),
    ] = False
    max_cost_usd: Annotated[
        Number | None,
        Option(
            "Ask nothing more once this command has spent so much on answers and verdicts, by the prices of the models and judges.",
            of="terms",
            python="US dollars after which nothing more is asked, of all models and judges together, by the prices of their configs; "
            "None for no limit.",
        ),
    ] = None
    max_hours: Annotated[
        Number | None,
        Option(
            "Ask nothing more after so many hours.",
            of="terms",
            python="hours after which nothing more is asked; None for no limit.",
        ),
    ] = None
    rescore: Annotated[
        Flag,
        Option(
            "Make the scores again, from the recorded answers.",
            python="delete the scores in the record and make them again by the present rules.",
        ),
    ] = False
