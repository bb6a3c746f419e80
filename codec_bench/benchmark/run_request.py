"""A command's request to run benchmarks, its run folders and identities."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codec_bench.benchmark import Benchmark
from codec_bench.benchmark.baselines import label_of
from codec_bench.benchmark.definition.prompt import SEEDED
from codec_bench.benchmark.reading import steps_on
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.config.custom_code import code_hash, is_custom_code
from codec_bench.config.option import documented
from codec_bench.config.run_request import RunRequest
from codec_bench.data.shard import Shard
from codec_bench.engine.device import has_gpu
from codec_bench.engine.running import Running
from codec_bench.messages.errors import UserError
from codec_bench.models import is_custom_file, load_model, own_name
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.controls import NO_CONTROL, Control
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.integrity import DATABASE
from codec_bench.store.record import REQUEST

Phase = Literal["both", "answers", "scores"]
PHASES: tuple[str, ...] = ("both", "answers", "scores")
_UNFIT = re.compile(r"[@\[\],\s]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@-]+")


@documented(RunRequest, "terms")
@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of requests to a service. None of them changes a question.

    Args:

    Raises:
        UserError: a limit is not a number over 0.
    """

    wait: bool = False
    reuse_answers: bool = False
    anyway: bool = False
    max_cost_usd: float | None = None
    max_hours: float | None = None
    batch: bool = False

    def __post_init__(self) -> None:
        for name in ("max_cost_usd", "max_hours"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
                raise UserError("not_above_zero", name=name, value=value)


@dataclass(frozen=True, slots=True)
class BenchmarkRequest:
    """The command's request, the same for every benchmark and model.

    Args:
        phase: whether to ask, to score, or both.
        data: a folder that is used instead of the hub, or None.
        seed: of the part that `limit` takes, and of the model's sampling.
        limit: the highest number of questions, or None for all.
        rescore: whether to drop and recompute the scores in the record.
        options: arguments by model or feature.
        by: columns to break the results down by.
        prompts: the wording of its prompt, as in `definition.prompt.Prompt`.
        choices: the order of its options, as in `asking.variants`.
        control: the replacement of the sound or question.
        controls: whether the useful ones run too.
        baseline: the other answers for rubrics that compare two, as named by the user, or None.
        baseline_model: the name of that model in the record, if it is one of the command.
        models, set_options: the models and all options as the user named them, for the record.
        arguments: all options of the command with their values, for the record.
    """

    phase: Phase
    data: str | None
    seed: int
    limit: int | None
    judges: Sequence[str]
    rescore: bool
    options: Mapping[str, Mapping[str, Any]]
    running: Running
    models: Sequence[str] = ()
    set_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    terms: Terms = Terms()
    by: Sequence[str] = ()
    repeats: int = 1
    prompts: str = SEEDED
    shard: Shard | None = None
    choices: str = AS_WRITTEN
    control: Control = NO_CONTROL
    controls: bool = False
    baseline: str | None = None
    baseline_model: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def run_folder(folder: Path, benchmark: str, model: str, control: Control = NO_CONTROL) -> Path:
    """The run folder of one benchmark and model; that of a control is next to it."""
    return folder / safe_name(benchmark) / f"{safe_name(model)}{control.suffix}"


def safe_name(name: str) -> str:
    """Replace every character that a folder's name should not have."""
    return _UNSAFE.sub("_", name).strip(".") or "_"


@contextmanager
def open_writer(
    folder: Path,
    request: Mapping[str, Any],
    scored: Mapping[str, Any],
    *,
    shard: str | None = None,
    rescore: bool = False,
) -> Iterator[AnswerWriter]:
    """Open a run's record for writing, as a context manager; it may be a new one.

    A `UserError` before the first answer removes a new record.

    Args:
        request: everything that changes an answer.
        scored: everything that changes a score.
        shard: which part of the questions the run takes; None for all.
        rescore: whether to drop the scores of the record.

    Raises:
        RunMismatch: the record has other questions, another model or other rules of scoring.
    """
    fingerprint = {REQUEST: request, "scored": scored, **({"shard": shard} if shard is not None else {})}
    is_new = not (folder / DATABASE).exists()
    writer = AnswerWriter(folder, fingerprint, replacing=("scored",) if rescore else ())
    unused = False
    try:
        if rescore:
            writer.delete_scores()
        yield writer
    except UserError:
        unused = is_new and not writer.has_requests()
        raise
    finally:
        writer.close()
        if unused:
            shutil.rmtree(folder)
            with suppress(OSError):  # it holds other runs
                folder.parent.rmdir()


def scheme_of(one: Benchmark, answer_steps: Sequence[str], request: BenchmarkRequest) -> Scheme:
    """Build the scoring scheme of a benchmark for a request.

    Args:
        answer_steps: the prompt's post-processing steps, which precede those of the benchmark.
    """
    gpu = has_gpu(request.running.device)
    steps_by_metric = {
        name: None if steps is None else steps_on(steps, gpu=gpu) for name, steps in one.metric_steps.items()
    }
    labels = list(labelled_judges(request))
    baseline = label_of(request.baseline, request.baseline_model, one.name)
    return Scheme.of([*answer_steps, *steps_on(one.process, gpu=gpu)], steps_by_metric, labels, baseline)


def labelled_judges(request: BenchmarkRequest) -> dict[str, str]:
    """Map the label of each judge, which its verdicts are recorded under, to its name.

    Raises:
        UserError: two of them are the same.
    """
    judges: dict[str, str] = {}
    for judge in request.judges:
        label = judge_label(judge, request.options.get(judge))
        if label in judges:
            raise UserError("same_judge", judges=judges[label], judge=judge, hint="name each judge once in --judge")
        judges[label] = judge
    return judges


def judge_label(judge: str, options: Mapping[str, Any] | None = None) -> str:
    """A judge's label in a protocol: its name, or a file's stem and content hash.

    The same file at another path is the same judge, and a changed file is another. A model in the options is a part of
    the label, as is a hash of their parameters: `openai-chat` is another judge for each of its models.
    """
    settings = dict(options or {})
    parameters = {name: value for name, value in settings.items() if name.partition(".")[0] == "parameters"}
    served = f":{settings['model']}" if settings.get("model") else ""
    encoded = json.dumps(parameters, sort_keys=True, default=str).encode()
    set_to = f"-{hashlib.blake2b(encoded, digest_size=4).hexdigest()}" if parameters else ""
    # A label may end the name of a metric, which has no other brackets and no second '@'.
    return _UNFIT.sub("_", f"{_judge_name(judge)}{served}{set_to}")


def _judge_name(judge: str) -> str:
    """Name a judge; custom code and files get a hash of their content."""
    if is_custom_code(judge):
        file, attribute = judge.partition(":")[0], judge.rpartition(":")[2]
        return f"{own_name(file.rpartition('/')[2])}:{attribute}-{code_hash(judge)[:8]}"
    if not is_custom_file(judge) or not Path(judge).is_file():
        return judge
    return f"{own_name(judge)}-{hashlib.blake2b(Path(judge).read_bytes(), digest_size=4).hexdigest()}"


def score_rules(one: Benchmark, scheme: Scheme, request: BenchmarkRequest) -> dict[str, Any]:
    """Collect what determines the scores: metrics, steps and judges, as JSON values."""
    judges = {}
    if scheme.judged:
        for label, name in labelled_judges(request).items():
            model = load_model(name, request.options.get(name), device=request.running.device)
            judges[label] = dict(model.identity)
    return {**one.scored, **scheme.identity(), "judges": judges}


async def started_model(model: Model) -> None:
    """Start a model.

    Raises:
        UserError: the model cannot be started, whatever exception it raised.
    """
    try:
        await model.start()
    except UserError:
        raise
    except Exception as error:  # a user's own model may raise anything
        raise UserError(
            "model_not_started_error", model=model.info.name, type=type(error).__name__, cause=error
        ) from error
