"""Batch requests: questions go in files, and a later call collects the answers.

The record has an entry for each batch: mark, keys of its questions, state, and the service's id once known. It is
written before submission: after a kill, the batch is found by its mark and never submitted twice. A question belongs to
the last batch with its key. It is answered from that batch, waits for it, or goes into a new one if the batch ended
early. The first new question is sent on its own, to find wrong settings at once and learn the price.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from time import time
from typing import Any

from codec_bench.benchmark.asking.batch_files import AnswerFiles, RequestFile, custom_id
from codec_bench.benchmark.asking.sending import Answering, checked, send_request
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import AnswersPending, UserError, first_of
from codec_bench.models.base import Model
from codec_bench.models.endpoints.batches import Batch, BatchableModel, BatchInterface
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable
from codec_bench.models.windows import join
from codec_bench.store.answers import BATCHES, AnswerWriter
from codec_bench.types import Request, Response

FOLDER = ".batch-"
"""Prefix of the folders of requests and answers during a command."""
POLL_S = 60.0
LOOKS_S = (0.0, 2.0, 10.0)
"""Waits in seconds before each look for a batch whose submission got no answer."""
SETTLED_S = 180.0
"""After this time, the service lists a submitted batch if it has it."""

_NO_BATCHES = (
    "does the service have a batch interface for this model? Without --batch each question is a separate request"
)


class Batched:
    """Sends the questions of one run in batches.

    Args:
        anew: whether to repeat questions whose answers failed in earlier batches.

    Raises:
        UserError: the model's service has no batch interface.
    """

    def __init__(self, answering: Answering, notify: Callable[[str], None], *, anew: bool = False) -> None:
        model = answering.model
        if not isinstance(model, BatchableModel):
            raise UserError(
                "no_batches",
                name=model.info.name,
                hint="leave out --batch; OpenAI's chat models and Gemini take batches",
            )
        self._model, self._writer, self.notify = model, answering.writer, notify
        self._answering, self._spending = answering, answering.spending
        self._interface: BatchInterface = model.batches()
        entries: list[dict[str, Any]] = list(self._writer.meta(BATCHES) or [])
        # To repeat failed questions, batches with recorded answers are dropped.
        self._entries = [entry for entry in entries if not (anew and entry.get("collected"))]
        if anew:
            self._save()
        self._stopped: dict[str, Diagnostic] = {}
        self._held_back = 0

    async def send_requests(
        self, _: Model, requests: Iterable[Request], *, on_stored: Callable[[], None]
    ) -> AsyncGenerator[tuple[Request, Response | None], None]:
        """Yield each request with its answer, or None while it waits; submit new ones.

        Args:
            on_stored: writes the yielded answers; called after the answer to a single request.

        Raises:
            UserError: the service denies the request, or the fate of a submission is unknown. Earlier answers are
                yielded first.
        """
        lookup = self._answering.open_lookup()
        async with AsyncExitStack() as stack:
            if lookup is not None:
                stack.push_async_callback(lookup.close)
            stack.callback(self._save)
            for left in self._writer.folder.glob(f"{FOLDER}*"):  # of a command that was killed
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=FOLDER, dir=self._writer.folder)))
            await self._interface.start()
            stack.push_async_callback(self._interface.close)
            await self._poll()
            held = {key: entry for entry in self._entries for key in entry["keys"]}
            files = {entry["mark"]: AnswerFiles(self._interface, entry, folder) for entry in self._entries}
            next_batch = RequestFile(self._interface, folder / "requests.jsonl")
            stack.callback(next_batch.close)
            proven = False
            for request in requests:
                entry = held.get(custom_id(request))
                if entry is not None and entry["state"] == "running":
                    yield request, None
                    continue
                key, stored = (await lookup.find([request]))[0] if lookup is not None else (None, None)
                response = await self._batch_response(request, files[entry["mark"]]) if entry is not None else None
                response = stored if response is None else response
                if response is None and entry is not None and entry["mark"] in self._stopped:
                    yield request, None
                    continue
                if response is None and not proven:
                    response = await self._send_alone(request)
                    proven = response is not None and response.attempts > 0
                elif response is None:
                    response = await self._add(request, next_batch)
                reached = self._spending is not None and self._spending.budget.stop_reason is not None
                self._held_back += response is None and reached
                if lookup is not None and key is not None and response is not None and not response.cached:
                    await lookup.put(key, request, response)
                yield request, None if response is None else checked(response)
                if entry is None and response is not None:
                    on_stored()
            await self._submit(next_batch)

    def finish(self) -> None:
        """Mark ended batches as collected, and raise if questions still wait.

        Call it once the answers of a pass over the questions are recorded.

        Raises:
            AnswersPending: questions wait in batches.
            UserError: a batch was cancelled or failed, or a limit is reached: questions wait for another call.
        """
        for entry in self._entries:
            entry["collected"] = entry["state"] != "running"
        self._save()
        if self._stopped:
            raise UserError(
                "batches_stopped",
                causes=list(self._stopped.values()),
                hint="answers so far are recorded; the same command submits the rest again",
            )
        running = self._running()
        if running:
            count = sum(len(entry["keys"]) for entry in running)
            names = first_of([str(entry["id"]) for entry in running], 3)
            waiting = "requests wait" if count != 1 else "request waits"
            raise AnswersPending(
                "answers_pending",
                count=count,
                unit=waiting,
                batches=_batches(len(running)),
                names=names,
                hint="the same command collects the answers; with --wait it stays until they are there",
                wait=self.wait,
            )
        if self._spending is not None and self._spending.budget.stop_reason is not None:
            raise self._spending.budget.limit_error(self._held_back)

    async def wait(self) -> None:
        """Wait until every batch has ended, without writing the record.

        Raises:
            UserError: a time limit is reached, or the service does not report on the batches.
        """
        await self._interface.start()
        try:
            while running := self._running():
                budget = self._spending.budget if self._spending is not None and not self._spending.allows(0) else None
                if budget is not None and (reached := budget.stop_reason) is not None:
                    raise UserError(reached, hint=budget.hint)
                self.notify(f"{_batches(len(running))} at the service, next look in {POLL_S:.0f} s")
                await asyncio.sleep(POLL_S)
                for entry in running:
                    self._note(entry, await self._look_up(entry))
        finally:
            await self._interface.close()

    async def _poll(self) -> None:
        """Update the state of every batch."""
        for entry in list(self._entries):
            if entry["state"] == "submitting":
                await self._settle(entry, (0.0,))
            if entry["state"] == "running":
                self._note(entry, await self._look_up(entry))

    async def _look_up(self, entry: dict[str, Any]) -> Batch:
        try:
            return await self._interface.look(entry["id"])
        except RequestFailed as end:
            raise UserError(as_reason(end.reason, "service_refusal"), hint="the same command looks again") from None

    def _note(self, entry: dict[str, Any], batch: Batch) -> None:
        """Store a batch's state, and the reason if it was cancelled or failed."""
        entry |= {"state": batch.state, "files": list(batch.files)}
        if batch.state in ("cancelled", "failed"):
            self._stopped[entry["mark"]] = Diagnostic(
                "batch_stopped", batch=batch.id, state=batch.state, message=batch.message
            )

    async def _settle(self, entry: dict[str, Any], waits_s: Iterable[float]) -> None:
        """Find a submitted batch at the service; drop its entry if the service has none.

        Args:
            entry: the batch in the record. If it is found, it gets the service's id and the state `running`.
            waits_s: seconds to wait before each attempt.

        Raises:
            UserError: the batch may still appear.
        """
        for wait_s in waits_s:
            await asyncio.sleep(wait_s)
            try:
                remote = await self._interface.find(entry["mark"])
            except RequestFailed as end:
                raise UserError(as_reason(end.reason, "service_refusal"), hint="the same command looks again") from None
            if remote is not None:
                entry |= {"id": remote.id, "state": "running"}
                self._save()
                return
        if time() - entry["when"] < SETTLED_S:
            count = len(entry["keys"])
            raise UserError(
                "batch_unknown",
                requests=count,
                hint=f"run the same command again in {SETTLED_S / 60:.0f} minutes; it looks for this batch first",
            )
        self._entries.remove(entry)
        self._save()

    async def _submit(self, file: RequestFile) -> None:
        """Submit the collected requests as a batch, and begin a new file.

        Raises:
            UserError: the service refuses it, or it is unknown whether it accepted.
        """
        if not file.keys:
            return
        mark = secrets.token_hex(16)
        self.notify(f"uploading {len(file.keys):,} requests")
        entry: dict[str, Any] = {"mark": mark, "state": "submitting", "id": None, "keys": file.keys, "files": []}
        try:
            entry["file"] = await self._interface.upload(file.close(), mark)
        except (RequestFailed, UserError) as error:
            message = error.message if isinstance(error, UserError) else error.reason
            raise UserError("batch_not_uploaded", message=message, hint=_NO_BATCHES) from None
        try:
            entry["when"] = time()
            self._entries.append(entry)
            self._save()
            entry["id"] = (await self._interface.submit(entry["file"], mark)).id
        except Retryable as again:
            self.notify(f"{again.reason}; looking whether the batch was taken")
            await self._settle(entry, LOOKS_S)
        except (RequestFailed, Denied) as no:
            self._entries = [other for other in self._entries if other is not entry]
            self._save()
            hint = no.hint if isinstance(no, Denied) else _NO_BATCHES
            raise UserError("batch_refused", cause=no.reason, hint=hint) from None
        else:
            entry["state"] = "running"
            self._save()
        file.begin()

    async def _send_alone(self, request: Request) -> Response | None:
        """Send a request outside of batches; None if the budget is exhausted."""
        if self._spending is not None and not await self._spending.begin():
            return None
        response = await send_request(self._model, request)
        if self._spending is not None:
            self._spending.end(response)
        return response

    async def _add(self, request: Request, file: RequestFile) -> Response | None:
        """Put a request into the next batch, which is submitted first if it is full.

        Returns:
            A failed or refused response if the request cannot be sent; None if it waits in `file`, or the budget is
            spent.
        """
        refusal = self._model.check(request)
        if refusal is not None:
            return Response.refused(refusal, attempts=0)
        waiting = sum(len(entry["keys"]) for entry in self._running()) + len(file.keys)
        if self._spending is not None and not self._spending.allows(waiting + 1, self._interface.share):
            return None
        prepared, body = await asyncio.to_thread(self._model.prepare, request)
        if isinstance(prepared, Response):
            return prepared
        try:
            bodies = [await self._model.ready(body)]
            for request_part in prepared.requests[1:]:
                bodies.append(await self._model.ready(await asyncio.to_thread(self._model.encode, request_part)))
        except RequestFailed as end:  # a long sound could not be uploaded
            return Response.failed(end.reason)
        if not file.fits(bodies):
            await self._submit(file)
        for number, ready in enumerate(bodies):
            file.add(custom_id(request, number), ready)
        return None

    async def _batch_response(self, request: Request, files: AnswerFiles) -> Response | None:
        """The response from an ended batch, charged to the budget; None if it has none."""
        outcomes = await files.outcomes(request)
        if outcomes is None:
            return None
        prepared, _ = await asyncio.to_thread(self._model.prepare, request)
        if isinstance(prepared, Response):
            return prepared
        answers: list[Response] = []
        for request_part, outcome in zip(prepared.requests, outcomes):
            answers.append(await self._interface.response(request_part, outcome, files.batch))
            if answers[-1].status != "ok":
                break
        try:
            response = join(answers, prepared)
        except UserError as error:
            response = Response.failed(error.message)
        if self._spending is not None:
            self._spending.add(response)
        return response

    def _running(self) -> list[dict[str, Any]]:
        return [entry for entry in self._entries if entry["state"] == "running"]

    def _save(self) -> None:
        self._writer.set_meta(**{BATCHES: self._entries})


def check_no_batches(writer: AnswerWriter) -> None:
    """Refuse a run with questions in a batch, because they would be paid twice.

    Raises:
        UserError: some wait there.
    """
    waiting = [entry for entry in writer.meta(BATCHES) or [] if entry["state"] in ("submitting", "running")]
    if waiting:
        raise UserError(
            "questions_in_batches",
            folder=writer.folder,
            batches=_batches(len(waiting)),
            hint="--batch collects the answers; another --out asks every question again",
        )


def _batches(count: int) -> str:
    return f"{count} batch{'es' if count != 1 else ''}"
