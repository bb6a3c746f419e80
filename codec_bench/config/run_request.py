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
from codec_bench.config.shared_options import CommandOptions


@dataclass(frozen=True, kw_only=True)
class RunRequest(CommandOptions):
    """The options of `run`."""

    benchmark: Texts | None = option(
        None,
        "Benchmarks with commas (see: list benchmarks), or ./FOLDER of a custom one.",
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
        python="the folder; None continues the unfinished run of the same call under `runs/`, or creates a new one.",
    )
    phase: Text = option("both", "both, answers (only asks the model), or scores (only scores recorded answers).")
    judge: Texts | None = option(
        None,
        "The model that judges answers, for benchmarks that need one; several with commas (see: agreement).",
        python="the model that judges answers, for benchmarks that need one; several as names or one string with "
        "commas. The first judge's verdicts have the metric's plain name, `rating[RUBRIC]`, another's "
        "`rating[RUBRIC]@JUDGE`. `codec_bench.agreement` compares them.",
    )
    baseline: Text | None = option(
        None,
        "Whose answers a judge compares with each answer, for rubrics that compare two: a model of this command, or "
        "the folder of a run. Default: by the rubric.",
    )
    data: PathText | None = option(None, "A folder with the data sets as OWNER/NAME, used in place of the hub.")
    limit: WholeNumber | None = option(
        None,
        "Take at most so many questions of each benchmark.",
        python="how many questions to take; None for all. A run that is continued with a larger limit asks only the "
        "further questions.",
    )
    seed: WholeNumber = option(
        0,
        "Seed of the choice that --limit makes, and of sampled answers.",
        python="the seed of the choice of `limit` questions, and of sampled answers.",
    )
    shard: Text | None = option(
        None,
        "Take one part of the questions: K/N, such as 3/8. See merge.",
        python="which part of the questions to take, as for `evaluate`; `merge` joins the runs of all parts.",
    )
    repeats: WholeNumber = option(
        1,
        "Draw so many answers to each question, where the model does not answer greedily.",
        python="how many answers to draw to each question, where the model does not answer greedily. A run that is "
        "continued with more asks only for the further ones.",
    )
    prompts: Text = option(
        "seeded",
        "Where a prompt has several wordings: seeded (seed and id choose one), first, a number from 1, or each (every "
        "question in all of them).",
    )
    choices: Text = option(
        "given",
        "The order of the options of a question: given, shuffled (by seed and id), or all-rotations (every question in "
        "every rotation of its options).",
    )
    sound: Text = option(
        "given",
        "A control, which is no result: in place of the audio none (the text alone), silence, noise, another (another "
        "item's, of about the same length), shuffled (pieces of 0.5 s) or level (all audio at one level).",
    )
    question: Text = option(
        "given", "A control, which is no result: none leaves out the question and keeps its options."
    )
    controls: Flag = option(
        False,
        "Also run the useful controls over the same questions, and show the differences.",
        python="whether the useful controls also run, over the same questions: the text alone, another audio, and the "
        "options alone, if there are any. They are in `Outcome.controls`.",
    )
    device: Text = option("auto", "auto, cpu, cuda:0, or several GPUs with commas.", of="running")
    workers: WholeNumber | None = option(
        None, "CPU worker processes that score audio. Default: one per core, fewer with GPUs.", of="running"
    )
    cache: Flag = option(True, "Keep answers and computed features for other runs.", of="running")
    save_audio: Retention | None = option(
        None,
        "all, none, or the number of questions whose audio is saved. Without a value: all.",
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
        "Wait without limit for a service that rejects requests, also for a daily quota, and for batches until they "
        "are answered.",
        of="terms",
    )
    batch: Flag = option(
        False,
        "Submit the questions as batches of the service: half the price, within a day. The same command collects the "
        "answers.",
        of="terms",
    )
    anyway: Flag = option(
        False, "Ask a model although its service has shut it down, according to its config.", of="terms"
    )
    reuse_answers: Flag = option(
        False,
        "Reuse the answers of other runs, although the service may serve another checkpoint under the same name now.",
        of="terms",
    )
    max_cost_usd: Number | None = option(
        None,
        "Stop after so many US dollars for answers and verdicts, by the prices in the configs of models and judges.",
        of="terms",
    )
    max_hours: Number | None = option(None, "Stop after so many hours.", of="terms")
    dry_run: Flag = option(
        False,
        "Ask nothing: show the cost of the questions, and the first three requests.",
        python="whether nothing is sent: the outcome then holds `previews`, with the cost of the questions and the "
        "first three requests.",
    )
    rescore: Flag = option(False, "Compute the scores again, from the recorded answers.")
