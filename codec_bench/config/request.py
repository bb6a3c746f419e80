"""The options of `eval`, `score`, `run` and `profile`, each declared once.

A declaration becomes a parameter of the command, a key of `--config` files, and their descriptions, also in the verb's
docstring (see `option.py`). Options outside `Running` are also arguments of their verb. The order is that of `--help`:
a class's own options before inherited ones.
"""

# ruff: noqa: RUF009  # `option` gives the field of a dataclass
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from codec_bench.config.option import Flag, PathText, Rows, Settings, Text, Texts, WholeNumber, option
from codec_bench.config.profile_request import ProfileRequest
from codec_bench.config.run_request import RunRequest
from codec_bench.config.shared_options import SETTINGS, CommandOptions, RunningOptions

Command = Literal["eval", "score", "run", "profile"]
COMMANDS: tuple[Command, ...] = ("eval", "score", "run", "profile")


@dataclass(frozen=True, kw_only=True)
class _Scoring(RunningOptions, CommandOptions):
    metrics: Texts | None = option(
        None,
        "Metrics and groups of metrics with commas, such as stoi,dnsmos,wer[pocketsphinx] or quality,speaker.",
        instead_of=("preset",),
        python="names of metrics (`stoi`, `wer[pocketsphinx]`, `dnsmos`, `./mine.py:MyMetric`) and of groups by topic "
        "(`quality`, `speaker`, `all-offline`), or one string with commas. A group is those of its metrics that need "
        "no download here and fit these data; a continued run keeps them. Pair metrics need reference audio.",
    )
    preset: Text | None = option(
        None,
        "A named set of metrics (see: list presets).",
        instead_of=("metrics",),
        python="a named set of metrics, which is added to `metrics`.",
    )
    out: PathText | None = option(
        None,
        "Run folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, "
        "or a new folder there.",
        python="the run folder; None continues the unfinished run of the same call under `runs/`, or starts one.",
    )
    limit: WholeNumber | None = option(
        None,
        "Take at most so many samples.",
        python="how many samples to take; None for all. A run on this machine that is continued with a larger limit "
        "measures only the further samples.",
    )
    seed: WholeNumber = option(0, "Seed of the choice of `limit` samples.")
    shard: Text | None = option(
        None,
        "Take one part of the samples: K/N, such as 3/8. See merge.",
        python='which part of the samples to take, as `"3/8"` or `(3, 8)` for the third of eight; None for all. A hash '
        "of a sample's id selects its part. `merge` joins the runs of all parts.",
    )
    trials: PathText | None = option(
        None,
        "A list of trials of speaker verification for asv_eer_listed, such as VoxCeleb's: 1 or 0, the enrolment's id "
        "and the test's in each line.",
    )
    set: Settings | None = option(
        None,
        SETTINGS,
        named="options",
        python='further arguments of codecs and features, such as {"dnsmos": {"weights": "folder"}}.',
    )
    executor: Text = option(
        "local",
        "local for this machine, or ray for the machines of a Ray cluster.",
        of="running",
        python="`local` for processes of this machine, or `ray` or an `OnRay` for the machines of a Ray cluster.",
    )
    ray_address: Text | None = option(
        None,
        "HOST:PORT of the Ray cluster's head node, or auto for the cluster on this machine. Default: RAY_ADDRESS, or a "
        "new cluster on this machine for the run.",
        of="cluster",
        named="address",
    )
    shards: WholeNumber | None = option(
        None, "How many shards --executor ray divides the data into. Default: by the cluster.", of="cluster"
    )
    actors: WholeNumber | None = option(
        None,
        "The most Ray actors. Default: one for each GPU, or as many as the CPUs allow.",
        of="cluster",
        python="the most actors, which may exceed the present room, so that a growing cluster grows. None for as many "
        "as fit: one for each GPU if networks run, otherwise one for each `cpus` CPUs.",
    )
    cpus_per_actor: WholeNumber | None = option(
        None,
        "CPUs, and so worker processes, of each Ray actor without a GPU. Default: 4, or fewer on smaller nodes.",
        of="cluster",
        named="cpus",
    )
    cpu_actors: WholeNumber = option(0, "Ray actors on CPUs in addition to those with a GPU.", of="cluster")
    timings: Flag = option(False, "Also print where the time went.", of="terminal")


@dataclass(frozen=True, kw_only=True)
class EvalRequest(_Scoring):
    """The options of `eval`."""

    codec: Rows = option(
        ...,
        "Codecs with commas: opus-12k,encodec-24khz@6,./mine.py:MyCodec,unprocessed. NAME=CODEC names the row.",
        python="names of codecs (`opus-12k`, `encodec-24khz@6`, `./mine.py:MyCodec`, `unprocessed`), classes and "
        "objects with `info`, `encode` and `decode`, a list of any of these, or one string of names with commas. "
        "`NAME=CODEC`, or a mapping of names to codecs, names the rows. Otherwise your codec has the name in its "
        "`info`.",
    )
    data: Text = option(
        ...,
        "A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.",
        python="a folder, a manifest, `embedded`, or a list of `Sample`.",
    )


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(_Scoring):
    """The options of `score`."""

    without: ClassVar = frozenset({"check"})  # there is no codec to check

    generated: Rows = option(
        ...,
        "A folder or manifest of existing audio; a file belongs to the sample with its stem as id. Several systems: "
        "FOLDER or NAME=FOLDER with commas.",
        python="a folder or a manifest. A file belongs to the sample of `data` whose id is the file's stem. Several "
        'systems are scored in one run as `{"name": folder, "other": folder}` or `name=FOLDER,other=FOLDER`.',
    )
    data: Text | None = option(
        None,
        "The references of the audio: transcripts, reference audio, speakers. Default: the texts next to the generated "
        "audio, and no references.",
        python="the references of the audio: transcripts, reference audio, speakers. A sample without a generated file "
        "fails for that system. None uses the texts next to the generated audio, and references only from a manifest "
        "with the columns `audio` and `estimate`.",
    )
    reference: Text | None = option(
        None,
        "What the audio of the data is to the generated audio: target (the same words), prompt (the voice), or none. "
        "Default: by the data.",
        python="what the audio of `data` is to the generated audio: `target`, a recording of the same words; `prompt`, "
        "a recording of the voice with other words, as in Seed-TTS' lists; `none` leaves it out. None goes by the "
        "data: `prompt` for lists of prompts and data with a column `prompt_text`, else `target`.",
    )
    allow_same: Flag = option(
        False,
        "Score audio that equals its reference, as a lossless system's.",
        python="whether estimates may equal their references; otherwise that is an error, since it mostly is a wrong "
        "path. Either way the summary counts these estimates.",
    )


REQUESTS: dict[Command, type[CommandOptions]] = {
    "eval": EvalRequest,
    "score": ScoreRequest,
    "run": RunRequest,
    "profile": ProfileRequest,
}
