"""The options of `eval`, `score`, `run` and `profile`, each declared once.

What a declaration becomes
    The parameter of the command, a key of a file for `--config`, an argument of the verb in Python, and the words that
    describe it in each of these places (see `option.py`). Of a new option only the place that acts on it is written elsewhere.

Conventions
    The order of the options is that of `--help`: a class's own before those of the class that it builds on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from codec_bench.config.option import Flag, Option, Place, Rows, Settings, Text, Texts, Whole
from codec_bench.config.profile_request import ProfileRequest
from codec_bench.config.run_request import RunRequest
from codec_bench.config.shared_options import SETTINGS, Request, RunningOptions

Command = Literal["eval", "score", "run", "profile"]
COMMANDS: tuple[Command, ...] = ("eval", "score", "run", "profile")


@dataclass(frozen=True, kw_only=True)
class _Scoring(RunningOptions, Request):
    """The options of `eval` and `score`."""

    metrics: Annotated[
        Texts | None,
        Option(
            "Metrics and groups of metrics with commas, such as stoi,dnsmos,wer[pocketsphinx] or quality,speaker.",
            instead_of=("preset",),
            python="names of metrics (`stoi`, `wer[pocketsphinx]`, `dnsmos`, `./mine.py:MyMetric`) and of groups by topic (`quality`, "
            "`speaker`, `all-offline`), or one string with commas. A group stands for those of its metrics that can be measured "
            "without a download here and of these data; the run keeps them when it is continued. Pair metrics need reference audio.",
        ),
    ] = None
    preset: Annotated[
        Text | None,
        Option(
            "A named set of metrics (see: list presets).",
            instead_of=("metrics",),
            python="a named set of metrics, which is added to `metrics`.",
        ),
    ] = None
    out: Annotated[
        Place | None,
        Option(
            "Run folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, or a new folder there.",
            python="the run folder; None continues the unfinished run of the same call under `runs/`, or makes a new folder there.",
        ),
    ] = None
    limit: Annotated[
        Whole | None,
        Option(
            "Take at most so many samples.",
            python="how many samples to take; None for all. A run on this machine that is continued with a larger limit measures only "
            "the further samples.",
        ),
    ] = None
    seed: Annotated[
        Whole, Option("Seed of the choice that --limit makes.", python="decides which samples `limit` takes.")
    ] = 0
    shard: Annotated[
        Text | None,
        Option(
            "Take one part of the samples: K/N, such as 3/8. See merge.",
            python='which part of the samples to take, as `"3/8"` or `(3, 8)` for the third of eight; None for all. A hash of a '
            "sample's id says which part it is in. `merge` makes one run of the runs of all parts.",
        ),
    ] = None
    set: Annotated[
        Settings | None,
        Option(
            SETTINGS,
            named="options",
            python='further arguments of codecs and features, such as {"dnsmos": {"weights": "folder"}}.',
        ),
    ] = None
    executor: Annotated[
        Text,
        Option(
            "local for this machine, or ray for the machines of a Ray cluster.",
            of="running",
            python="`local` for worker processes of this machine, or `ray` or an `OnRay` for the machines of a Ray cluster.",
        ),
    ] = "local"
    ray_address: Annotated[
        Text | None,
        Option(
            "HOST:PORT of the Ray cluster's head node. Default: RAY_ADDRESS, or the Ray of this machine.",
            of="cluster",
            named="address",
            python="of the head node, as `HOST:PORT`. None takes the environment's RAY_ADDRESS, otherwise the Ray that runs on this "
            "machine; if there is none, one is started on this machine for the run.",
        ),
    ] = None
    shards: Annotated[
        Whole | None,
        Option(
            "How many shards --executor ray divides the data into. Default: by the cluster.",
            of="cluster",
            python="how many the data is divided into; None for as many as suit the cluster.",
        ),
    ] = None
    actors: Annotated[
        Whole | None,
        Option(
            "How many Ray actors there are at most. Default: one for each GPU, or as many as the CPUs allow.",
            of="cluster",
            python="how many actors there are at most, which may be more than fit now, so that a cluster that grows on demand does. "
            "None for as many as fit: one for each GPU if networks run, otherwise one for each `cpus` CPUs.",
        ),
    ] = None
    cpus_per_actor: Annotated[
        Whole | None,
        Option(
            "CPUs of each Ray actor that has no GPU. Default: 4 at most.",
            of="cluster",
            named="cpus",
            python="how many CPUs an actor on the CPU has, each with one worker process; None for 4, or fewer if the nodes have fewer.",
        ),
    ] = None
    cpu_actors: Annotated[
        Whole,
        Option(
            "Ray actors on CPUs beside those that have a GPU. Default: none.",
            of="cluster",
            python="how many actors on the CPU there are beside those that have a GPU.",
        ),
    ] = 0
    timings: Annotated[Flag, Option("Also print where the time went.", of="terminal")] = False


@dataclass(frozen=True, kw_only=True)
class EvalRequest(_Scoring):
    """The options of `eval`."""

    codec: Annotated[
        Rows,
        Option(
            "Codecs with commas: opus-12k,encodec-24khz@6,./mine.py:MyCodec,unprocessed. NAME=CODEC names the row.",
            python="names of codecs (`opus-12k`, `encodec-24khz@6`, `./mine.py:MyCodec`, `unprocessed`), classes and objects with "
            "`info`, `encode` and `decode`, a list of any of these, or one string of names with commas. `NAME=CODEC`, or a mapping of "
            "names to codecs, names the rows. Otherwise a codec of one's own has the name in its `info`.",
        ),
    ]
    data: Annotated[
        Text,
        Option(
            "A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.",
            python="a folder, a manifest, `embedded`, or a list of `Sample`.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(_Scoring):
    """The options of `score`."""

    without: ClassVar = frozenset({"check"})  # there is no codec to check

    generated: Annotated[
        Rows,
        Option(
            "A folder or manifest of audio made elsewhere; a file belongs to the sample with its stem as id. Several systems: NAME=FOLDER with commas.",
            python="a folder or a manifest. A file belongs to the sample of `data` whose id is the file's stem. Several systems are "
            'scored in one run as `{"name": folder, "other": folder}` or `name=FOLDER,other=FOLDER`.',
        ),
    ]
    data: Annotated[
        Text,
        Option(
            "What the audio is compared with: transcripts, reference audio, speakers.",
            python="what the audio is compared with: transcripts, reference audio, speakers. A sample without a generated file fails "
            "for that system, with that as the reason.",
        ),
    ]
    allow_same: Annotated[
        Flag,
        Option(
            "Score audio that is the reference audio itself, as that of a lossless system.",
            python="whether estimates may be the references themselves; otherwise that is an error, since it mostly is a mistake in a "
            "path. Either way the summary counts the estimates that equal their references sample by sample.",
        ),
    ] = False


REQUESTS: dict[Command, type[Request]] = {
    "eval": EvalRequest,
    "score": ScoreRequest,
    "run": RunRequest,
    "profile": ProfileRequest,
}
