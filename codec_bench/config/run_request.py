"""The options of `run`, each declared once (see `request.py`)."""

# ruff: noqa: RUF009  # `option` gives the field of a dataclass
from __future__ import annotations

from dataclasses import dataclass

from codec_bench.config.option import (
    Flag,
    Number,
    PathText,
    Retention,
    Rows,
    Settings,
    Text,
    Texts,
    WholeNumber,
    option,
)
from codec_bench.config.shared_options import Request


@dataclass(frozen=True, kw_only=True)
class RunRequest(Request):
    """The options of `run`."""

    benchmark: Texts | None = option(
        None,
        "Benchmarks with commas (see: list benchmarks), or ./folder of your own.",
        positional=True,
        instead_of=("suite",),
        python="names (`librispeech-test-clean`), own folders, or one string with commas.",
    )
    model: Texts = option(
        "",
        "Models with commas (see: list models), ./mine.yaml or ./mine.py:Class.",
        instead_of=("codec",),
        python="names of configs (`qwen2-audio-7b-instruct`), own files, or one string with commas.",
    )
    codec: Rows | None = option(
        None, "In place of models: codecs with commas, for benchmarks of codecs.", instead_of=("model",)
    )
    suite: Text | None = option(
        None, "A named list of benchmarks (see: list suites).", of="terminal", instead_of=("benchmark",)
    )
    out: PathText | None = option(
        None,
        "Folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, or a "
        "new folder there.",
        python="the folder; None continues the unfinished run of the same call under `runs/`, or makes a new folder there.",
    )
    phase: Text = option(
        "both",
        "both, answers (only asks the model), or scores (only scores recorded answers).",
        python="`both`, `answers` (only asks), or `scores` (only scores the recorded answers).",
    )
    judge: Texts | None = option(
        None,
        "The model that judges answers, for benchmarks that need one; several with commas (see: agreement).",
        python="the model that judges answers, for benchmarks that need one; several as names or one string with commas. The "
        "verdicts of the first stand under the metric's plain name, `rating[RUBRIC]`, and those of another judge under "
        "`rating[RUBRIC]@JUDGE`. `codec_bench.agreement` compares them.",
    )
    baseline: Text | None = option(
        None,
        "Whose answers a judge sees beside each answer, for rubrics that compare two: a model of this command, or the "
        "folder of a run.",
        python="whose answers a judge sees beside each answer, for rubrics that compare two answers: a model of this call, or the "
        "folder of a run that is kept. None takes what the rubric names.",
    )
    data: PathText | None = option(
        None,
        "A folder with the data sets as OWNER/NAME, used in place of the hub.",
        python="a folder that holds the data sets as `OWNER/NAME`, used in place of the hub.",
    )
    limit: WholeNumber | None = option(
        None,
        "Take at most so many questions of each benchmark.",
        python="how many questions to take; None for all. A run that is continued with a larger limit asks only the further "
        "questions.",
    )
    seed: WholeNumber = option(
        0,
        "Seed of the choice that --limit makes, and of what a model draws at random.",
        python="decides which questions `limit` takes, and what a model draws at random.",
    )
    shard: Text | None = option(
        None,
        "Take one part of the questions: K/N, such as 3/8. See merge.",
        python="which part of the questions to take, as for `evaluate`; `merge` makes one run of the runs of all parts.",
    )
    repeats: WholeNumber = option(
        1,
        "Draw so many answers to each question, where the model does not answer greedily.",
        python="how many answers to draw to each question, where the model does not answer greedily. A run that is continued with "
        "more asks only for the further ones.",
    )
    prompts: Text = option(
        "seeded",
        "Where a prompt has several wordings: seeded (seed and id choose one), first, a number from 1, or each (every "
        "question in all of them).",
        python="for prompts with several wordings, which of them a question is asked in: `seeded` (the seed and the question's id "
        "choose it), `first`, a number from 1, or `each` (every question is asked in all of them).",
    )
    choices: Text = option(
        "given",
        "The order of the options of a question: given, shuffled (by seed and id), or all-rotations (every question in "
        "every rotation of its options).",
        python="in which order the options of a question are offered: `given` (as in the data), `shuffled` (the seed and the "
        "question's id decide), or `all-rotations` (every question is asked in every rotation of its options).",
    )
    sound: Text = option(
        "given",
        "A control, which is no result: in place of the sound give none (the text alone), silence, noise, another (of "
        "another item), shuffled (pieces of 0.5 s) or level (all sounds at one level).",
        python="what is given in place of the sound: `given`, `none` (the text alone), `silence`, `noise`, `another` (the sound of "
        "another item of about the same length), `shuffled` (pieces of 0.5 s in another order) or `level` (all sounds at one level). All but `given` are controls, "
        "which are no results.",
    )
    question: Text = option(
        "given",
        "A control, which is no result: none leaves out the question and keeps its options.",
        python="whether the question is `given`, or left out (`none`) so that its options stand alone, which is a control too.",
    )
    controls: Flag = option(
        False,
        "Also run the useful controls over the same questions, and show what the answers have beyond them.",
        python="whether the useful controls are run too, over the same questions: the text alone, another sound, and the options "
        "alone, as far as there are any. They are in `Outcome.controls`.",
    )
    device: Text = option("auto", "auto, cpu, cuda:0, or several GPUs with commas.", of="running")
    workers: WholeNumber | None = option(
        None,
        "CPU worker processes that score audio. Default: one per core; beside GPUs, some cores are left free.",
        of="running",
    )
    cache: Flag = option(True, "Keep answers and computed features for other runs.", of="running")
    save_audio: Retention | None = option(
        None,
        "all, none, or the number of questions whose sound is kept. Without a value: all.",
        alone="all",
        of="running",
    )
    set: Settings | None = option(
        None,
        "NAME.OPTION=VALUE for a model, benchmark or feature.",
        named="options",
        python='arguments by model, benchmark or feature, such as {"openai-chat": {"base_url": "..."}}.',
    )
    retry_failed: Flag = option(False, "Ask questions again that failed before.", of="running")
    wait: Flag = option(
        False,
        "Wait for a service that takes no requests for as long as it takes, also for a quota of the day. With --batch: "
        "stay until the batches are answered.",
        of="terms",
        python="whether to wait for a service that takes no requests for as long as it takes, also for a quota of the day, and for "
        "batches until they are answered.",
    )
    batch: Flag = option(
        False,
        "Submit the questions as batches of the service: half the price, within a day. The same command collects the "
        "answers.",
        of="terms",
        python="whether the questions are submitted in batches, which are answered within a day at half the price. The same call "
        "collects the answers.",
    )
    anyway: Flag = option(
        False,
        "Ask a model although its config says that its service has shut it down.",
        of="terms",
        python="whether a model is asked that its service has shut down by the config.",
    )
    reuse_answers: Flag = option(
        False,
        "Take the answers of other runs, although the service may serve another checkpoint under the same name by now.",
        of="terms",
        python="whether answers of other runs are taken where the service does not say enough to tell two checkpoints under one "
        "name apart.",
    )
    max_cost_usd: Number | None = option(
        None,
        "Ask nothing more once this command has spent so much on answers and verdicts, by the prices of the models and "
        "judges.",
        of="terms",
        python="US dollars after which nothing more is asked, of all models and judges together, by the prices of their configs; "
        "None for no limit.",
    )
    max_hours: Number | None = option(
        None,
        "Ask nothing more after so many hours.",
        of="terms",
        python="hours after which nothing more is asked; None for no limit.",
    )
    dry_run: Flag = option(
        False,
        "Ask nothing: show what the questions would cost, and the first three requests.",
        python="whether nothing is asked: the outcome then holds `previews`, with what the questions would cost and the first three "
        "requests.",
    )
    rescore: Flag = option(
        False,
        "Make the scores again, from the recorded answers.",
        python="delete the scores in the record and make them again by the present rules.",
    )
