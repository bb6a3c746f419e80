"""Benchmarks in batches: submitted by one call, collected by the next, and never submitted twice."""

from __future__ import annotations

import json
import re
from contextlib import closing
from email.parser import BytesParser

import pytest
import yaml
from local_http import Connection, LocalServer
from refusals import Containing, refuses

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.benchmark.asking import batches
from codec_bench.benchmark.run_request import Terms, run_folder
from codec_bench.report.open_run import open_run
from codec_bench.stats.answers import answers_of
from codec_bench.store.answers import AnswerWriter, exchanges

DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip
PRICES = {"input": 10.0, "output": 20.0, "date": "2026-11-22"}


class Service:
    """OpenAI's files, batches and chats, as https://developers.openai.com/api/docs/guides/batch says, read on
    2026-11-22.

    A batch runs until the test ends it: `end(state, without=...)` leaves out the questions whose text is in `without`.
    """

    def __init__(self):
        self.files, self.batches, self.chats, self.submissions = {}, [], 0, 0
        self.loses_reply = self.refuses = False
        self.line = lambda question: None

    def chat(self, body):
        text = body["messages"][-1]["content"].rpartition("|")[2].strip()
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        return {
            "id": "c", "object": "chat.completion", "created": 1, "model": "m-2026", "choices": [choice],
            "usage": usage,
        }  # fmt: skip

    def end(self, state="completed", without=()):
        batch = self.batches[-1]
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            requests = json.loads(line)
            question = requests["body"]["messages"][-1]["content"]
            actual = self.line(question)
            entry = {"id": "r", "custom_id": requests["custom_id"], "response": None, "error": None}
            if any(item in question for item in without):
                bad.append(entry | {"error": {"code": f"batch_{state}", "message": "it was not executed"}})
            elif actual is not None:
                bad.append(entry | {"response": {"status_code": actual[0], "request_id": "req-9", "body": actual[1]}})
            else:
                body = self.chat(requests["body"])
                good.append(entry | {"response": {"status_code": 200, "request_id": "req-7", "body": body}})
        batch["status"] = state
        for name, lines in (("output_file_id", good[::-1]), ("error_file_id", bad)):
            if lines:
                batch[name] = f"file-{len(self.files)}"
                self.files[batch[name]] = "".join(json.dumps(line) + "\n" for line in lines)

    def answer(self, method, path, headers, data):
        """(status, body) of one request; a status of None breaks the connection."""
        if path == "/v1/chat/completions":
            self.chats += 1
            return 200, self.chat(json.loads(data))
        if (method, path) == ("POST", "/v1/files"):
            complete = BytesParser().parsebytes(
                b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + data
            )
            parts = {item.get_param("name", header="content-disposition"): item for item in complete.get_payload()}
            assert parts["purpose"].get_payload(decode=True) == b"batch"
            id = f"file-{len(self.files)}"
            self.files[id] = parts["file"].get_payload(decode=True).decode()
            return 200, {"id": id, "object": "file", "purpose": "batch"}
        if (method, path) == ("POST", "/v1/batches"):
            self.submissions += 1
            requests = json.loads(data)
            if self.refuses:
                return 400, {"error": {"message": "this model has no batches", "code": "unsupported"}}
            assert requests["endpoint"] == "/v1/chat/completions" and requests["completion_window"] == "24h"
            self.batches.append(
                {**requests, "id": f"batch_{len(self.batches)}", "object": "batch", "status": "validating"}
            )
            return (None, None) if self.loses_reply else (200, self.batches[-1])
        if path.startswith("/v1/batches?"):
            return 200, {"object": "list", "data": self.batches[::-1], "has_more": False}
        if path.startswith("/v1/batches/"):
            return 200, next(one for one in self.batches if one["id"] == path.rpartition("/")[2])
        if path.endswith("/content"):
            return 200, self.files[path.split("/")[3]].encode()
        if method == "DELETE":
            self.files.pop(path.rpartition("/")[2], None)
            return 200, {"deleted": True}
        return 404, {"error": {"message": "no such place"}}


@pytest.fixture
def service():
    """(the service, its base_url)."""
    held = Service()

    class Handler(Connection):
        def handle_any(self):
            status, body = held.answer(self.command, self.path, self.headers, self.body())
            if status is None:
                self.close_connection = True
                self.connection.close()
                return
            if isinstance(body, bytes):
                self.send(status, body)
            else:
                self.send_json(status, body)

        do_GET = do_POST = do_DELETE = handle_any

    with closing(LocalServer(Handler)) as http:
        yield held, f"{http.url}/v1"


@pytest.fixture
def ask(tmp_path, monkeypatch, service):
    """Runs a benchmark of the test's own in batches: (the outcome's reasons, the run's folder)."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(batches, "LOOKS_S", (0.0,))
    _, url = service

    def run(questions=6, out="out", batch=True, options=None, terms=None, **settings):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "README.md").write_text("# mine\n")
        (folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
        rows = [{"id": f"a{n}", "q": f"say | {n}", "right": str(n)} for n in range(questions)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        inputs = {"openai-chat": {"base_url": url, "model": "m", "prices": PRICES, **(options or {})}}
        outcome = run_benchmark(
            benchmark=str(folder), model="openai-chat", out=tmp_path / out, options=inputs, page=False, workers=1,
            terms=Terms(batch=batch, **(terms or {})), **settings,
        )  # fmt: skip
        for done in outcome.runs.values():
            done.close()
        return [why for _, _, why in outcome.excluded], run_folder(tmp_path / out, "mine", "openai-chat")

    return run


def held(folder):
    with closing(open_run(folder)) as run:
        return {e.question.id: e.answer for e in exchanges(run)}


def test_submitted_by_one_call_and_collected_by_the_next(ask, service):
    served, _ = service
    (why,), folder = ask()
    assert "5 requests wait in 1 batch" in why and "batch_0" in why and "the same command collects" in why
    assert (served.chats, served.submissions, len(held(folder))) == (1, 1, 1), "the first question is asked at once"
    (why,), _ = ask()
    assert "5 requests wait" in why and (served.chats, served.submissions) == (1, 1), "nothing is asked while it waits"
    served.end()
    reasons, folder = ask()
    answers = held(folder)
    assert reasons == [] and {id: a.text for id, a in answers.items()} == {f"a{n}": str(n) for n in range(6)}
    assert (served.chats, served.submissions) == (1, 1) and "file-0" not in served.files, "the questions are deleted"
    assert answers["a3"].served == {"model": "m-2026", "request": "req-7", "batch": "batch_0"}
    complete = 1000 * 10e-6 + 100 * 20e-6
    assert answers["a0"].usage["cost_usd"] == pytest.approx(complete)
    assert answers["a3"].usage["cost_usd"] == pytest.approx(complete / 2), "a batch costs half"
    with closing(open_run(folder)) as run:
        assert answers_of(run).as_dict()["cost_usd"] == pytest.approx(complete + 5 * complete / 2)


def test_a_line_fails_as_a_request_fails(ask, service):
    served, _ = service
    ask()
    error = {"error": {"message": "the prompt is not allowed", "code": "policy"}}
    served.line = lambda question: {"2": (400, error), "4": (500, {"error": {"message": "oops"}})}.get(question[-1])
    served.end()
    reasons, folder = ask()
    answers = held(folder)
    assert reasons == [] and (answers["a2"].status, answers["a4"].status) == ("refused", "failed")
    assert [answers[name].reason.parameters["status"] for name in ("a2", "a4")] == [400, 500] and answers[
        "a3"
    ].text == "3"
    served.line = lambda question: None
    reasons, folder = ask(retry_failed=True)
    assert reasons == [] and held(folder)["a4"].text == "4", "the only question that is left is asked at once"


def test_questions_that_a_batch_did_not_come_to_are_submitted_again(ask, service):
    served, _ = service
    ask()
    served.end("expired", without=("| 3", "| 4", "| 5"))
    (why,), folder = ask()
    assert "2 requests wait in 1 batch" in why and "batch_1" in why, "one was asked at once"
    assert sorted(held(folder)) == ["a0", "a1", "a2", "a3"] and served.submissions == 2
    served.end()
    reasons, folder = ask()
    assert reasons == [] and len(held(folder)) == 6


def test_a_batch_that_somebody_cancelled_is_not_submitted_again_at_once(ask, service):
    served, _ = service
    ask()
    served.end("cancelled", without=("| 4", "| 5"))
    with refuses("batches_stopped", causes={"code": "batch_stopped", "batch": "batch_0", "state": "cancelled"}):
        ask()
    (why,), folder = ask()
    assert len(held(folder)) == 5 and served.submissions == 2 and "1 request waits" in why


def test_a_batch_that_failed_stops_the_run_with_the_reason(ask, service):
    served, _ = service
    ask()
    served.batches[-1] |= {
        "status": "failed",
        "errors": {"data": [{"message": "Enqueued token limit reached", "line": 1}]},
    }
    with refuses(
        "batches_stopped", causes={"code": "batch_stopped", "message": Containing("Enqueued token limit reached")}
    ):
        ask()


@pytest.mark.parametrize("later", [0.0, 1000.0])
def test_a_submission_whose_reply_is_missing_is_recovered_and_not_repeated(ask, service, later):
    served, _ = service
    served.loses_reply = True
    (why,), _ = ask()
    assert "5 requests wait in 1 batch" in why and served.submissions == 1
    served.loses_reply = False
    served.end()
    assert ask()[0] == [] and served.submissions == 1


def killed_while_submitting(ask, service, monkeypatch):
    """A run that dies after the entry is in the record and before the batch has a name there."""
    from codec_bench.models.endpoints.openai_batches import OpenAiBatches

    async def submit(self, file, mark):
        await real(self, file, mark)
        raise KeyboardInterrupt

    real = OpenAiBatches.submit
    with monkeypatch.context() as patch:
        patch.setattr(OpenAiBatches, "submit", submit)
        with pytest.raises(KeyboardInterrupt):
            ask()


def test_a_killed_run_looks_for_its_batch(ask, service, monkeypatch):
    served, _ = service
    killed_while_submitting(ask, service, monkeypatch)
    (why,), _ = ask()
    assert "5 requests wait in 1 batch" in why and served.submissions == 1
    served.end()
    assert ask()[0] == [] and served.submissions == 1


def test_a_batch_that_is_not_listed_yet_is_not_submitted_again_for_some_minutes(ask, service, monkeypatch, tmp_path):
    served, _ = service
    killed_while_submitting(ask, service, monkeypatch)
    (dropped,) = served.batches
    served.batches.clear()
    with refuses("batch_unknown", requests=5):
        ask()
    with closing(AnswerWriter(tmp_path / "out" / "mine" / "openai-chat", fingerprint(tmp_path))) as writer:
        (entry,) = writer.meta(batches.BATCHES)
        writer.set_meta(batches=[entry | {"when": entry["when"] - batches.SETTLED_S}])
    (why,), folder = ask()
    assert "4 requests wait" in why and served.submissions == 2 and len(held(folder)) == 2
    assert re.fullmatch("[0-9a-f]{32}", dropped["metadata"]["codec_bench"])


def fingerprint(tmp_path):
    with closing(open_run(tmp_path / "out" / "mine" / "openai-chat")) as run:
        return run.meta["fingerprint"]


def test_a_batch_that_is_refused_stops_the_run(ask, service):
    served, _ = service
    served.refuses = True
    with refuses("batch_refused", cause=Containing("this model has no batches")):
        ask()
    served.refuses = False
    (why,), folder = ask()
    assert "4 requests wait" in why and len(held(folder)) == 2


def test_it_waits_on_request(ask, service, monkeypatch):
    served, _ = service
    monkeypatch.setattr(batches, "POLL_S", 0.01)
    seen = []

    def messages(stage, *numbers):
        if "next look" in stage:
            seen.append(stage)
            if len(seen) == 2:
                served.end()

    reasons, folder = ask(terms={"wait": True}, progress=messages)
    assert reasons == [] and len(held(folder)) == 6 and served.submissions == 1 and len(seen) >= 2


def test_what_waits_is_not_sent_a_second_time_without_batch(ask, service):
    served, _ = service
    ask()
    with refuses("questions_in_batches", batches="1 batch", hint="--batch collects"):
        ask(batch=False)
    assert served.chats == 1


def test_a_limit_of_cost_counts_half_prices(ask, service):
    served, _ = service
    complete = 1000 * 10e-6 + 100 * 20e-6
    (why,), _ = ask(terms={"max_cost_usd": complete + 2.1 * complete / 2})
    assert "2 requests wait" in why, "the first question is asked at the whole price"
    served.end()
    with refuses("spending_stopped", cause="cost_limit_reached"):
        ask(terms={"max_cost_usd": 1e-9})


def test_a_large_run_is_several_batches(ask, service, monkeypatch):
    from codec_bench.models.endpoints.openai_batches import OpenAiBatches

    served, _ = service
    monkeypatch.setattr(OpenAiBatches, "most_requests", 2)
    (why,), _ = ask()
    assert "5 requests wait in 3 batches" in why and served.submissions == 3
    assert all(line.count("\n") <= 2 for line in served.files.values())


def test_models_without_batches_report_it(ask):
    with refuses("batch_of_streams"):
        ask(options={"stream": True})


def test_collected_answers_are_stored_for_other_runs(ask, service):
    served, _ = service
    ask(terms={"reuse_answers": True})
    served.end()
    assert ask(terms={"reuse_answers": True})[0] == []
    reasons, folder = ask(out="second", terms={"reuse_answers": True})
    assert reasons == [] and all(answer.cached for answer in held(folder).values())
    assert (served.chats, served.submissions) == (1, 1)


def test_a_service_without_batches_is_refused(ask, service, monkeypatch):
    served, _ = service
    real = served.answer
    monkeypatch.setattr(
        served, "answer", lambda method, path, *more: (404, {}) if "files" in path else real(method, path, *more)
    )
    with refuses("batch_not_uploaded", message={"code": "service_status", "status": 404}, hint="batch interface"):
        ask()


def test_the_command_exits_with_3_while_answers_are_missing(ask, service, tmp_path):
    from typer.testing import CliRunner

    from codec_bench.cli.app import app

    served, url = service
    ask()
    words = [
        "run",
        str(tmp_path / "mine"),
        "--model",
        "openai-chat",
        "--out",
        str(tmp_path / "out"),
        "--batch",
        "--workers",
        "1",
    ]
    words += ["--set", f"openai-chat.base_url={url}", "--set", "openai-chat.model=m"]
    waits = CliRunner().invoke(app, words)
    assert waits.exit_code == 3 and "5 requests wait in 1 batch" in waits.output
    served.end()
    assert CliRunner().invoke(app, words).exit_code == 0


def test_a_run_grows_while_a_batch_is_under_way(ask, service):
    served, _ = service
    drawn = {"options": {"parameters": {"temperature": 0.7}}}
    ask(limit=3, **drawn)
    (why,), folder = ask(limit=5, repeats=2, **drawn)
    assert "8 requests wait in 2 batches" in why, (
        "of ten answers two were asked at once, and two were in the first batch"
    )
    lines = [json.loads(line) for one in served.batches for line in served.files[one["input_file_id"]].splitlines()]
    assert (
        len({line["custom_id"] for line in lines}) == len({line["body"]["seed"] for line in lines}) == len(lines) == 8
    )
    for batch in list(served.batches):
        served.batches.sort(key=lambda one: one is batch)
        served.end()
    reasons, folder = ask(limit=5, repeats=2, **drawn)
    answers = held(folder)
    assert reasons == [] and len(answers) == 10 and all(a.text == id[1] for id, a in answers.items())
