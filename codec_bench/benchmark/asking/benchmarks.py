"""Ask a model the questions of all benchmarks of a command.

The model is started once, and only if a question is left. A run may be continued with a larger limit or more draws;
only the rest is sent (see `extend`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.benchmark import Benchmark
from codec_bench.benchmark.asking.batches import Batched, check_no_batches
from codec_bench.benchmark.asking.canaries import Watch, count_canaries
from codec_bench.benchmark.asking.estimate import CostEstimate, estimate_of
from codec_bench.benchmark.asking.extend import grow, resume_size
from codec_bench.benchmark.asking.question_loop import Asking, check_length, format_request
from codec_bench.benchmark.asking.sending import Answering
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.benchmark.asking.user_model_process import load_apart
from codec_bench.benchmark.asking.variants import Draws, arrange_options, check_drawn, with_seed
from codec_bench.benchmark.controls import Planned, apply_control, check_control, control_questions, without_question
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.prompt import EACH, SEEDED, Prompt
from codec_bench.benchmark.run_request import (
    BenchmarkRequest,
    open_writer,
    run_folder,
    scheme_of,
    score_rules,
    started_model,
)
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.config.custom_code import is_custom_code
from codec_bench.engine.device import has_gpu
from codec_bench.engine.running import Progress, describe_machine, numbers_to_save
from codec_bench.messages import as_reason
from codec_bench.messages.errors import AnswersPending, MissingExtra, UserError
from codec_bench.models import code_identity, load_model, own_name
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.models.endpoints.batches import BatchableModel
from codec_bench.models.windows import window_of
from codec_bench.stats.answers import wordings_text
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.controls import CONTROL, Control
from codec_bench.store.draws import ALL_ROTATIONS, AS_WRITTEN
from codec_bench.store.record import DATABASE, REQUEST, Run
from codec_bench.types import Request

if TYPE_CHECKING:
    from codec_bench.benchmark.definition.questions import QuestionStream

_SHOWN = 3
"""How many requests a preview shows."""


async def ask(
    planned: Sequence[Planned], name: str, folder: Path, request: BenchmarkRequest, budget: Budget
) -> dict[tuple[str, Control], UserError]:
    """Send a model the questions of several benchmarks and record its answers.

    Args:
        planned: the benchmarks, each with its control.
        name: the model: a registered name, a configuration file or custom code.
        folder: folder of all runs.
        budget: the command's limits of cost and time.

    Returns:
        The error of each unfinished benchmark, by its name and control. Its answers so far are recorded.
    """
    model = load_apart(name, request.options.get(name), request.running.device)
    # A user's own code may change without a change of its identity, so its answers are not cached for other runs.
    cache = ResponseCache.of_user() if request.running.cache and not is_custom_code(name) else None
    identity = {**model.identity, **code_identity(name, request.options.get(name))}
    started, trouble = False, list[UserError]()
    terms = request.terms
    spending = budget.open_account(model)

    async def start() -> None:
        nonlocal started
        if trouble:  # an error of one benchmark, such as a missing key, is one of all
            raise trouble[0]
        if not started:
            request.running.progress(f"loading the model {model.info.name}", 0, 0, 0, 0.0)
            started = True
            try:
                await started_model(model)
            except UserError as error:
                trouble.append(error)
                raise

    async def through(left: Sequence[Planned]) -> dict[tuple[str, Control], UserError]:
        broken: dict[tuple[str, Control], UserError] = {}
        for one, control in left:
            path, mine = run_folder(folder, one.name, model.info.name, control), replace(request, control=control)
            try:
                opened = partial(Answering, model, start, shared=terms.reuse_answers, spending=spending)
                await _ask_one(one, model, partial(opened, cache=cache, identity=identity), identity, path, mine)
            except UserError as error:  # other benchmarks may have their data
                broken[one.name, control] = error
        return broken

    try:
        broken = await through(planned)
        while terms.wait and (left := await _wait_for_batches(planned, broken)):
            broken |= await through(left)
    finally:
        if started:
            await model.close()
        if cache is not None:
            cache.close()
    return broken


async def _wait_for_batches(planned: Sequence[Planned], broken: dict[tuple[str, Control], UserError]) -> list[Planned]:
    """Wait until the pending batches of the benchmarks end.

    Args:
        broken: the errors by benchmark and control; `AnswersPending` marks a pending batch. A successful wait removes
            the entry, and a failed one replaces it.

    Returns:
        The benchmarks whose batches have ended, with their controls.
    """
    ended = []
    for one, control in planned:
        key = one.name, control
        error = broken.get(key)
        if not isinstance(error, AnswersPending) or error.wait is None:
            continue
        try:
            await error.wait()
        except UserError as trouble:
            broken[key] = trouble
        else:
            del broken[key]
            ended.append((one, control))
    return ended


@dataclass(frozen=True, slots=True)
class _Plan:
    """A benchmark's questions and settings for one model; `drawn` has all repeats."""

    questions: QuestionStream
    prompt: Prompt
    decoding: dict[str, Any]
    repeats: int
    choices: str
    drawn: Draws

    @property
    def rotated(self) -> bool:
        """Whether every question is sent in every rotation of its options."""
        return self.choices == ALL_ROTATIONS


def _planned(one: Benchmark, model: Model, request: BenchmarkRequest) -> _Plan:
    """Plan a benchmark's questions, prompt, decoding and repeats for a model."""
    questions = one.questions(limit=request.limit, seed=request.seed, mirror=request.data)
    prompt, decoding = _decoded(one, model, request)
    repeats, choices = _draws_of(one, prompt, model, request)
    window_of(one.windows, model.info)
    check_control(request.control, one, prompt, model.info.name)
    orders = partial(arrange_options, ordering=choices, seed=request.seed) if choices != AS_WRITTEN else None
    controlled_questions = control_questions(questions, request.control, request.seed)
    drawn = Draws(controlled_questions, repeats, prompt.wording_of, orders, rotated=choices == ALL_ROTATIONS)
    return _Plan(questions, prompt, decoding, repeats, choices, drawn)


@dataclass(frozen=True, slots=True)
class Preview:
    """A benchmark's requests to a model: `cost` in a sentence, the first `requests`."""

    benchmark: str
    model: str
    cost: str
    requests: tuple[str, ...]


def preview(one: Benchmark, name: str, request: BenchmarkRequest) -> Preview:
    """Preview a benchmark's requests to the model `name`, without sending any.

    Raises:
        UserError: the benchmark or the model cannot be used as the command says.
    """
    model = load_model(name, request.options.get(name), device=request.running.device)
    plan = _planned(one, model, request)
    scheme = _scheme(one, plan.prompt.process, request)
    if scheme is not None and request.phase != "answers":  # find scoring errors before anything is paid
        score_rules(one, scheme, request)
        if scheme.reads_sound:
            scheme.plan(request.options, None, gpu=has_gpu(request.running.device))
    estimate = _estimate(one, model, plan, request, {})
    cost = "what that costs is not known: the model has no prices" if estimate is None else estimate.words
    if request.prompts == EACH:
        cost = f"each question in {wordings_text(plan.prompt.wordings)}; {cost}"
    first = tuple(format_request(r) for r in islice(_renderable(one, model, plan, request, {}), _SHOWN))
    return Preview(one.name, request.control.label(model.info.name), cost, first)


def _estimate(
    one: Benchmark, model: Model, plan: _Plan, request: BenchmarkRequest, answered: Mapping[int, str]
) -> CostEstimate | None:
    """Estimate the cost of the unanswered questions; None for a model without prices.

    Args:
        answered: the recorded answers' status, by question number.
    """
    total = plan.questions.total or min((n for n in (one.size, request.limit) if n is not None), default=None)
    if plan.rotated or request.shard is not None:  # their number is known once they are read
        total = None
    left = None if total is None else max(0, total * plan.repeats - len(answered))
    share = model.batches().share if request.terms.batch and isinstance(model, BatchableModel) else 1.0
    watched = not request.terms.batch and plan.prompt.template.rounds is None
    canaries = partial(count_canaries, model, continues=bool(answered)) if watched else lambda requests, questions: 0
    return estimate_of(model, _renderable(one, model, plan, request, answered), left, share, canaries)


def _renderable(
    one: Benchmark, model: Model, plan: _Plan, request: BenchmarkRequest, answered: Mapping[int, str]
) -> Iterator[Request]:
    """The requests of the questions without an answer, except unusable ones."""
    render = _renders(one, plan.prompt, model, request)
    for number, question in enumerate(plan.drawn):
        other = request.shard is not None and not request.shard.holds(question.draw_of or question.id)
        if number in answered or other or question.problem is not None:
            continue
        with suppress(UserError):
            yield render(question)


async def _ask_one(
    one: Benchmark,
    model: Model,
    opened: Callable[..., Answering],
    identity: Mapping[str, Any],
    folder: Path,
    request: BenchmarkRequest,
) -> None:
    """Send a benchmark's questions to a model and record the answers.

    Args:
        opened: builds the sender for a record, called with `writer=`.
        identity: the facts of the model that the record must agree with.
        folder: the run folder.
    """
    recorded = _fingerprint_of(folder)
    plan = _planned(one, model, request)
    questions, prompt, decoding, repeats = plan.questions, plan.prompt, plan.decoding, plan.repeats
    choices, drawn, rotated = plan.choices, plan.drawn, plan.rotated
    scheme = _scheme(one, prompt.process, request)
    rules = score_rules(one, scheme, request) if scheme is not None else recorded.get("scored", {})
    requested = {
        **one.request_facts, "limit": request.limit, "repeats": repeats, "prompt": prompt.identity,
        "model": identity, "seed": request.seed, "revision": questions.revision, "decoding": decoding,
        **({"choices": choices} if choices != AS_WRITTEN else {}),
        **({CONTROL: request.control.changes} if request.control else {}),
    }  # fmt: skip
    before = resume_size(requested, recorded.get(REQUEST, {}), folder)
    shard = None if request.shard is None else str(request.shard)
    with open_writer(folder, before, rules, shard=shard, rescore=request.rescore) as writer:
        if before != requested:
            grow(writer, drawn, requested)
        if request.running.retry_failed:
            writer.delete_failed_answers()
        answered = writer.answered()
        # The rotations and the shard of a question are known once it is read.
        total = 0 if rotated or shard is not None else (questions.total or 0) * repeats
        _describe(writer, one, model, prompt.process, scheme, request, (questions, total or None))
        ways = f" each question in {wordings_text(prompt.wordings)}" if request.prompts == EACH else ""
        progress = _Progress(request.running.progress, f"{one.name}: asking{ways}", len(answered), total)
        model.set_waiting(progress.waits, patient=request.terms.wait)
        progress(0, 0, 0.0)
        if (estimate := _estimate(one, model, plan, request, answered)) is not None:
            request.running.on_estimate(f"{one.name} with {model.info.name}: {estimate.words}")
        if (in_rounds := prompt.template.rounds is not None) and request.terms.batch:
            raise UserError("rounds_take_no_batches", name=one.name, hint="leave out --batch")
        answering = opened(writer=writer)
        batched = Batched(answering, progress.waits, anew=request.running.retry_failed) if request.terms.batch else None
        if batched is None:
            check_no_batches(writer)
        keeps = _keeps(
            request.running.save_audio,
            None if rotated else questions.total,
            one.wants == "audio" if scheme is None else scheme.compares,
        )
        asking = Asking(
            model,
            answering.start,
            _renders(one, prompt, model, request),
            writer,
            lambda number: keeps(number // repeats),
            answering.send_requests if batched is None else batched.send_requests,
            progress,
            Watch(
                model, writer, progress.waits, canaries=batched is None and not in_rounds, spending=answering.spending
            ),
            in_rounds=in_rounds,
        )
        timings = await asking.run(drawn, answered, request.shard)
        sent = timings["asked"]
        if sent or not answered:
            writer.set_meta(answering=timings)
        if sent:
            unsupported = {parameter: as_reason(why).as_dict() for parameter, why in model.unsupported.items()}
            writer.set_meta(decoding={"asked": decoding, "untold": unsupported})
        if batched is not None:
            batched.finish()
        writer.set_meta(state="answered")


def _draws_of(one: Benchmark, prompt: Prompt, model: Model, request: BenchmarkRequest) -> tuple[int, str]:
    """How often to send each question, and how to order its options (one of `ORDERS`)."""
    each = prompt.wording == EACH and prompt.wordings > 0
    repeats = prompt.wordings if each else request.repeats
    choices = request.choices if one.has_options else AS_WRITTEN
    if choices == ALL_ROTATIONS and repeats > 1:
        raise UserError(
            "repeats_in_rotations",
            repeats=repeats,
            name=one.name,
            hint="give --choices all-rotations without --repeats and without --prompts each",
        )
    if not each:
        check_drawn(repeats, prompt.parameters or {}, one.name, model)
    return repeats, choices


def _renders(one: Benchmark, prompt: Prompt, model: Model, request: BenchmarkRequest) -> Callable[[Question], Request]:
    """A function that renders a question's request, with the run's control and seed."""
    seed, control = request.seed, request.control

    def plain(question: Question) -> Request:
        return prompt.render(question if control.question == AS_WRITTEN else without_question(question))

    def render(question: Question) -> Request:
        """The request of a question, with control, seed and audio windows."""
        rendered = plain(question)
        if control:
            other = lambda: plain(question.other or question)  # noqa: E731
            rendered = apply_control(rendered, control, seed, question.draw_of or question.id, other)
        rendered = replace(with_seed(rendered, seed, question.draw, draws=model.draws), windows=one.windows)
        return check_length(rendered, model.info) if one.spec.too_long == "refuse" else rendered

    return render


class _Progress:
    """Reports progress, and that the model waits for its service.

    Args:
        before: questions with an answer in the record.
    """

    def __init__(self, progress: Progress, stage: str, before: int, total: int) -> None:
        self._progress, self._stage, self._before, self._total = progress, stage, before, total
        self._last = (0, 0, 0.0)

    def __call__(self, done: int, failed: int, audio_s: float) -> None:
        self._last = (done, failed, audio_s)
        self._progress(self._stage, self._before + done, self._total, failed, audio_s)

    def waits(self, sentence: str) -> None:
        """Show a sentence next to the stage until the next answers are written."""
        done, failed, audio_s = self._last
        self._progress(f"{self._stage}; {sentence}", self._before + done, self._total, failed, audio_s)


def _scheme(one: Benchmark, answer_steps: Sequence[str], request: BenchmarkRequest) -> Scheme | None:
    """The scoring scheme; None if only answers are requested and a package is missing."""
    try:
        return scheme_of(one, answer_steps, request)
    except MissingExtra:
        if request.phase != "answers":
            raise
        return None


def _fingerprint_of(folder: Path) -> Mapping[str, Any]:
    """The fingerprint of the record, or empty: its writer reports an unreadable one."""
    if not (folder / DATABASE).is_file():
        return {}
    try:
        with closing(Run(folder)) as run:
            fingerprint: Mapping[str, Any] = run.meta.get("fingerprint") or {}
            return fingerprint
    except UserError:
        return {}


def _decoded(one: Benchmark, model: Model, request: BenchmarkRequest) -> tuple[Prompt, dict[str, Any]]:
    """The model's prompt, and the decoding parameters that every request gets."""
    decoding = {**one.decoding(model.info), **_own_parameters(model, request)}
    if not model.reasons:
        decoding.pop("reasoning_tokens", None)
    prompt = one.prompt_for(model.info)
    return replace(prompt, wording=request.prompts, seed=request.seed, parameters=decoding), decoding


def _own_parameters(model: Model, request: BenchmarkRequest) -> dict[str, Any]:
    """The caller's decoding parameters for this model; they override the benchmark's."""
    parameters: dict[str, Any] = {}
    for name, options in request.options.items():
        if own_name(name) == model.info.name:
            mapping = options.get("parameters")
            parameters |= mapping if isinstance(mapping, Mapping) else {}
            dotted = {key: value for key, value in options.items() if key.startswith("parameters.")}
            parameters |= {key.partition(".")[2]: value for key, value in dotted.items()}
    return parameters


def _describe(
    writer: AnswerWriter,
    one: Benchmark,
    model: Model,
    answer_steps: Sequence[str],
    scheme: Scheme | None,
    request: BenchmarkRequest,
    selection: tuple[QuestionStream, int | None],
) -> None:
    """Write the facts and settings of the run into its record.

    Args:
        answer_steps: the prompt's post-processing steps.
        scheme: the scoring; None if a package for it is missing.
        selection: (the questions, the number of answers or None if unknown).
    """
    info, (questions, total) = asdict(model.info), selection
    facts = scheme.facts() if scheme is not None else {}
    writer.begin({model.info.name: {**info, **model.identity, "name": model.info.name}}, facts, ())
    config = {
        "command": "run", "benchmark": one.name, "model": model.info.name, "data": questions.name, "seed": request.seed,
        "limit": request.limit, "systems": [model.info.name], "metrics": list(one.metrics),
        "options": dict(request.set_options),
        "asked": next((typed for typed in request.models if own_name(typed) == model.info.name), model.info.name),
        "mirror": request.data, "judge": ",".join(request.judges) or None,
        **({"repeats": request.repeats} if request.repeats > 1 else {}),
        **({"shard": str(request.shard)} if request.shard is not None else {}),
        **({"prompts": request.prompts} if request.prompts != SEEDED else {}),
        **({"choices": request.choices} if request.choices != AS_WRITTEN and one.has_options else {}),
        **request.control.changes,
        **({"baseline": request.baseline} if request.baseline is not None else {}),
    }  # fmt: skip
    writer.set_meta(
        config=config, arguments=dict(request.arguments), benchmark=one.described, answer_steps=list(answer_steps),
        how={name: getattr(request.running, name) for name in ("device", "cache", "save_audio")}, **describe_machine(),
        started=datetime.now(UTC).isoformat(timespec="milliseconds"), state="answering",
        data={"name": questions.name, "samples": total, "fingerprint": questions.revision, "unmatched": []},
    )  # fmt: skip


def _keeps(save_audio: str | int | None, total: int | None, compares: bool) -> Callable[[int], bool]:
    """A function of a question's number: whether to copy its audio to the run folder.

    Args:
        save_audio: `all`, `none`, a number of questions, or None for the default.
        total: number of questions; None if unknown, which takes the first 24 unless `all` or `none`.
        compares: whether scores compare with this audio, which copies all.
    """
    if compares:
        return lambda number: True
    if total is None:
        return lambda number: save_audio == "all" or (save_audio != "none" and number < 24)
    numbers = numbers_to_save(save_audio, total)
    return lambda number: number in numbers
