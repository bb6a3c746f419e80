"""All judges of a run, asked at once: each gives its verdicts on the same answers, and none waits for another.

Conventions
    If one judge cannot be used at all, the others are stopped too. The verdicts that came are kept, and the same command goes on
    with the missing ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codec_bench.benchmark.asking.sending import Answering
from codec_bench.benchmark.asking.spending import Purse
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.benchmark.judging.verdicts import judge_all
from codec_bench.benchmark.run_request import RunRequest, labelled_judges, started_model
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.models import check_served, load_model
from codec_bench.models.cache import ResponseCache
from codec_bench.registry import code_hash, is_own_code
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.record import Run


async def judge_at_once(
    run: Run, writer: AnswerWriter, scheme: Scheme, request: RunRequest, purse: Purse, name: str
) -> None:
    """Asks all judges for the verdicts that the record does not hold yet.

    Args:
        run, writer: the record, for reading and for writing.
        scheme: the metrics; those that are judged name their judges.
        request: what the command asked for. purse: what it may spend.
        name: of the benchmark, for the progress.

    Raises:
        UserError: a judge cannot be used, or a limit is reached. Verdicts that came are kept.
    """
    judges = labelled_judges(request)
    cache = ResponseCache.of_user() if request.running.cache else None
    told = _Told(request, f"{name}: judging" + (f" by {len(judges)} judges" if len(judges) > 1 else ""))
    asked = [
        _Judge(label, judge, cache, purse, told, f" by {label}" if len(judges) > 1 else "")
        for label, judge in judges.items()
    ]
    mine = {one.label: {n: m for n, m in scheme.judged.items() if m.judge == one.label} for one in asked}
    try:
        async with asyncio.TaskGroup() as group:
            for one in asked:
                group.create_task(one.judge(run, writer, mine[one.label], request))
    except BaseExceptionGroup as several:  # the first is why the others were stopped
        raise several.exceptions[0] from None
    finally:
        untold = {name: why for one in asked for name, why in one.untold.items()}
        if untold:
            writer.set_meta(judging={"untold": untold})
        if cache is not None:
            cache.close()


@dataclass(slots=True)
class _Judge:
    """One judge: its label, the model, the shared cache and purse, and what it could not be told once it was asked."""

    label: str
    asked: str
    cache: ResponseCache | None
    purse: Purse
    told: _Told
    by: str
    untold: dict[str, str] = field(default_factory=dict)

    async def judge(
        self, run: Run, writer: AnswerWriter, metrics: Mapping[str, JudgeMetric], request: RunRequest
    ) -> None:
        """Asks for the missing verdicts of these metrics."""
        options = request.options.get(self.asked)
        if not request.terms.anyway:
            check_served(self.asked, options)
        judge = load_model(self.asked, options, device=request.running.device)
        try:
            judge.set_waiting(lambda sentence: self.told.waits(f"{self.by.strip()} {sentence}".strip()), patient=request.terms.wait)  # fmt: skip
            own = {"code": code_hash(self.asked)} if is_own_code(self.asked) else {}
            answering = Answering(
                judge,
                lambda: started_model(judge),
                writer,
                self.cache,
                {**judge.identity, **own},
                shared=request.terms.reuse_answers,
                spending=self.purse.of(judge),
                noted_as=f"service of {self.label}",
            )
            await answering.start()
            await judge_all(run, writer, metrics, judge, answering.ask_all, self.told.of(self.label), request.seed)
            self.untold = {f"{parameter}{self.by}": why for parameter, why in judge.untold.items()}
        finally:
            await judge.close()


class _Told:
    """Tells the progress of all judges together, and that one of them waits for its service."""

    def __init__(self, request: RunRequest, stage: str) -> None:
        self._progress, self._stage = request.running.progress, stage
        self._counts: dict[str, tuple[int, int, int]] = {}

    def of(self, label: str) -> Callable[[int, int, int], None]:
        """Takes (verdicts in the record, verdicts wanted, failed) of one judge."""

        def tell(done: int, total: int, failed: int) -> None:
            self._counts[label] = (done, total, failed)
            self._progress(self._stage, *self._sums(), 0.0)

        return tell

    def waits(self, sentence: str) -> None:
        """Shows a sentence beside the stage until the next verdicts are written."""
        self._progress(f"{self._stage}; {sentence}", *self._sums(), 0.0)

    def _sums(self) -> tuple[int, int, int]:
        done, total, failed = (sum(counts) for counts in zip(*self._counts.values(), (0, 0, 0)))
        return done, total, failed


__all__ = ["judge_at_once"]
