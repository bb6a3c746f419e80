"""Batch interfaces and Gemini's files against servers that behave as the documentation says; each names it and when it
was read.
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import pytest

from codec_bench.models import load_model
from codec_bench.models.endpoints.batches import BatchOutcome
from codec_bench.models.endpoints.gemini import LongBody
from codec_bench.models.endpoints.openai_batches import OpenAiBatches
from codec_bench.models.endpoints.retries import Retryable
from codec_bench.types import Request

KEY = "gm-UNMISTAKABLE-4321"


def body_of(text="a tone", **usage):
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 5}, "modelVersion": "gemini-3.8-flash-001",
    }  # fmt: skip


class Google:
    """Gemini's Files API and batch mode.

    https://ai.google.dev/api/files, https://ai.google.dev/api/batch-api and google-genai 3.4, read on 2026-11-22.
    """

    def __init__(self, kit):
        self.kit, self.files, self.batches, self.requests = kit, {}, {}, []
        self.life_s, self.state = "2099-01-01T00:00:00Z", "ACTIVE"

    def file(self, name):
        return {
            "name": name, "uri": f"https://generativelanguage.googleapis.com/v1beta/{name}", "state": self.state,
            "expirationTime": self.life_s, "mimeType": "audio/wav",
        }  # fmt: skip

    async def __call__(self, seen, writer):
        reply, kind = self.kit.reply, (seen.method, seen.path)
        assert seen.headers["x-goog-api-key"] == KEY
        if kind == ("POST", "/upload/v1/files"):
            assert seen.headers["x-goog-upload-protocol"] == "resumable"
            name = seen.json["file"].get("name", "files/chosen")
            position = f"http://{seen.headers['host']}/upload/v1/files?upload_id={name}"
            return reply({}, X_Goog_Upload_URL=position)
        if seen.path.startswith("/upload/v1/files?upload_id="):
            assert seen.headers["x-goog-upload-command"] == "upload, finalize"
            name = seen.path.partition("=")[2]
            self.files[name] = seen.body
            return reply({"file": self.file(name)})
        if seen.path.startswith("/v1/files/"):
            name = seen.path.removeprefix("/v1/")
            if name not in self.files:
                return reply({"error": {"code": 403, "message": "no permission, or it does not exist"}}, 403)
            if seen.method == "DELETE":
                del self.files[name]
                return reply({})
            return reply(self.file(name))
        if seen.path.endswith(":generateContent"):
            self.requests.append(seen.json)
            return reply(body_of())
        if seen.path.endswith(":batchGenerateContent"):
            name = f"batches/{len(self.batches)}"
            self.batches[name] = {"name": name, "metadata": {"state": "BATCH_STATE_PENDING", **seen.json["batch"]}}
            return reply(self.batches[name])
        if seen.path.startswith("/v1/batches?"):
            return reply({"operations": list(self.batches.values())})
        if seen.path.startswith("/v1/batches/"):
            return reply(self.batches[seen.path.removeprefix("/v1/")])
        if seen.path == "/download/v1/files/out:download?alt=media":
            return reply(self.files["files/out"])
        return reply({"error": {"message": f"no such place: {kind}"}}, 404)


@asynccontextmanager
async def gemini(kit, monkeypatch, **options):
    """(Gemini's server, a started model)."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    google = Google(kit)
    async with kit.serving(google) as service:
        model = load_model("gemini-3.8-flash", {"base_url": service.url, **options})
        kit.unhurried(model)
        async with kit.started(model):
            yield google, model


def test_a_batch_of_gemini_from_the_file_to_the_answers(kit, monkeypatch, tmp_path):
    async def main():
        prices = {"input": 1.0, "output": 10.0}
        async with gemini(kit, monkeypatch, prices=prices) as (google, model):
            interface = model.batches()
            await interface.start()
            request = kit.question("What?", kit.tone())
            line = interface.line("k-0", await model.ready(model.encode(request)))
            (tmp_path / "in.jsonl").write_bytes(line)
            file = await interface.upload(tmp_path / "in.jsonl", "0123abcd")
            assert google.files[file] == line and json.loads(line)["request"] == json.loads(model.encode(request))
            batch = await interface.submit(file, "0123abcd")
            assert batch == await interface.find("0123abcd") and batch.state == "running"
            assert await interface.find("another") is None
            lines = [
                {"key": "k-0", "response": body_of()}, {"key": "k-1", "error": {"code": 3, "message": "too long"}},
                {"key": "k-2", "error": {"code": 4, "message": "not executed"}}, {"key": "k-3", "error": {"code": 14}},
            ]  # fmt: skip
            google.files["files/out"] = "".join(json.dumps(one) + "\n" for one in lines).encode()
            google.batches[batch.id] |= {"done": True, "response": {"responsesFile": "files/out"}}
            google.batches[batch.id]["metadata"]["state"] = "BATCH_STATE_SUCCEEDED"
            ended = await interface.look(batch.id)
            assert (ended.state, ended.files) == ("ended", ("files/out",))
            await interface.fetch("files/out", tmp_path / "out.jsonl")
            results = [interface.outcome(json.loads(one)) for one in (tmp_path / "out.jsonl").read_text().splitlines()]
            assert [one.status for one in results] == [200, 400, None, 503]
            answers = [await interface.response(request, one, batch.id) for one in results if one.status]
            await interface.delete(file)
            assert file not in google.files
            await interface.close()
            return answers

    good, refused, failed = asyncio.run(main())
    assert good.text == "a tone" and good.served == {"model": "gemini-3.8-flash-001", "batch": "batches/0"}
    assert good.usage["cost_usd"] == pytest.approx((50 * 1e-6 + 5 * 10e-6) / 2)
    assert (refused.status, failed.status) == ("refused", "failed") and "too long" in refused.reason


@pytest.mark.parametrize(
    "state, becomes",
    [("BATCH_STATE_RUNNING", "running"), ("JOB_STATE_EXPIRED", "expired"), ("BATCH_STATE_CANCELLED", "cancelled")],
)
def test_googles_own_types_read_a_batch_as_we_do(state, becomes):
    batches = pytest.importorskip("google.genai.batches")
    from google.genai.types import BatchJob

    from codec_bench.models.endpoints.gemini_batches import GeminiBatches

    text = {
        "name": "batches/7",
        "metadata": {"state": state, "displayName": "m", "output": {"responsesFile": "files/o"}},
    }
    theirs = BatchJob.model_validate(batches._BatchJob_from_mldev(text))
    ours = GeminiBatches.batch(None, text)
    assert (ours.id, ours.files) == (theirs.name, (theirs.dest.file_name,)) and ours.state == becomes
    assert theirs.state.name.removeprefix("JOB_STATE_").lower() == becomes and theirs.display_name == "m"


def test_batches_fit_openais_types(kit, tmp_path):
    types = pytest.importorskip("openai.types")
    from openai.types.batch_create_params import BatchCreateParams
    from pydantic import TypeAdapter

    statuses = ("in_progress", "completed", "expired", "cancelled", "failed")
    sent = []

    async def handle(seen, writer):
        if seen.method == "POST":
            sent.append(seen.json)
            return kit.reply(b"<html>", 502, kind="text/html")
        status = statuses[int(seen.path[-1])]
        batch = types.Batch(
            id="b", completion_window="24h", created_at=1, endpoint="/v1/chat/completions", input_file_id="i",
            object="batch",
            status=status, output_file_id="o", error_file_id="e",
        )  # fmt: skip
        return kit.reply(json.loads(batch.model_dump_json()))

    async def main():
        async with kit.serving(handle) as service:
            model = load_model("gpt-audio-1.5", {"base_url": service.url, "key_env": None, "batched": True})
            interface = model.batches()
            await interface.start()
            with pytest.raises(Retryable):  # nobody knows whether there is a batch now, so it is tried once
                await interface.submit("file-1", "0123abcd")
            results = [await interface.look(str(number)) for number in range(5)]
            line = interface.line("k-0", model.encode(kit.question("What?", kit.tone())))
            await interface.close()
            return results, json.loads(line)

    result, line = asyncio.run(main())
    assert [one.state for one in result] == ["running", "ended", "expired", "cancelled", "failed"]
    assert result[1].files == ("o", "e") and len(sent) == 1
    TypeAdapter(BatchCreateParams).validate_python(sent[0])
    assert line["url"] == "/v1/chat/completions" and line["body"]["model"] == "gpt-audio-1.5"


@pytest.mark.parametrize(
    "line, outcome",
    [
        ({"custom_id": "k", "response": {"status_code": 200, "request_id": "r", "body": {}}, "error": None},
            BatchOutcome("k", 200, {}, "r")),
        ({"custom_id": "k", "response": None, "error": {"code": "batch_expired"}}, None),
        ({"custom_id": "k", "response": None, "error": {"code": "server_error"}}, 500),
        ({"custom_id": "k", "response": {"status_code": "x"}}, 500),
        ({"id": "no key"}, "nothing"),
        ([1], "nothing"),
    ],
)  # fmt: skip
def test_lines_of_any_shape(line, outcome):
    interface = OpenAiBatches(load_model("gpt-audio-1.5"), "/chat/completions")
    result = interface.outcome(line)
    if isinstance(outcome, BatchOutcome):
        assert result == outcome
    else:
        assert (result.status if result is not None else "nothing") == outcome


def test_long_sounds_go_through_files_and_are_deleted(kit, monkeypatch):
    async def main():
        async with gemini(kit, monkeypatch, inline_bytes=10_000) as (google, model):
            questions = [kit.question(f"{n}?", kit.tone(2.0), id=f"q{n}") for n in range(3)]
            answers = await asyncio.gather(*map(model.ask, questions))
            short = await model.ask(kit.question("?", kit.tone(0.1)))
            (name,) = google.files
            held = google.files[name]
        return answers, short, held, google

    answers, short, held, google = asyncio.run(main())
    assert {a.text for a in answers} == {"a tone"} and short.status == "ok" and held[:4] == b"RIFF"
    parts = [body["contents"][0]["parts"][0] for body in google.requests]
    uris = {item["fileData"]["fileUri"] for item in parts[:3]}
    assert len(uris) == 1 and "inlineData" in parts[3], (
        "one sound is one file, however many questions are asked about it"
    )
    assert google.files == {}, "they are deleted when the model is closed"


def test_a_sound_that_is_at_the_service_is_not_uploaded_again(kit, monkeypatch):
    async def main(life):
        async with gemini(kit, monkeypatch, inline_bytes=10_000) as (google, model):
            google.life_s = life
            request = kit.question("?", kit.tone(2.0))
            body = model.encode(Request("q", request.messages))
            assert isinstance(body, LongBody)
            (digest,) = body.sounds
            google.files[f"files/cb-{digest}"] = b"here already"
            await model.ask(request)
            return google.files[f"files/cb-{digest}"]

    assert asyncio.run(main("2099-01-01T00:00:00Z")) == b"here already"
    assert asyncio.run(main("2020-01-01T00:00:00Z"))[:4] == b"RIFF", "it is about to be deleted"


def test_an_upload_is_sent_only_to_the_service_itself(kit, monkeypatch):
    async def main():
        async with gemini(kit, monkeypatch, inline_bytes=10_000) as (google, model):
            real = google.__call__

            async def elsewhere(seen, writer):
                if seen.path == "/upload/v1/files":
                    return kit.reply({}, X_Goog_Upload_URL="http://elsewhere.example/up")
                return await real(seen, writer)

            monkeypatch.setattr(Google, "__call__", lambda self, seen, writer: elsewhere(seen, writer))
            return await model.ask(kit.question("?", kit.tone(2.0)))

    response = asyncio.run(main())
    assert response.status == "failed" and response.reason.code == "no_upload_address"


def test_the_file_of_a_sound_holds_the_sound(kit, monkeypatch):
    async def main():
        async with gemini(kit, monkeypatch, inline_bytes=10_000) as (google, model):
            request = kit.question("?", kit.tone(2.0))
            sent = json.loads(await model.ready(model.encode(request)))
            model.inline_bytes = 1 << 30
            inline = json.loads(model.encode(request))
        return google, sent, inline

    google, sent, inline = asyncio.run(main())
    types = pytest.importorskip("google.genai.types")
    item = types.Part.model_validate(sent["contents"][0]["parts"][0])
    name = item.file_data.file_uri.partition("/v1beta/")[2]
    assert google.files[name] == base64.b64decode(inline["contents"][0]["parts"][0]["inlineData"]["data"])
    assert (
        item.file_data.mime_type == "audio/wav"
        and sent["contents"][0]["parts"][1:] == inline["contents"][0]["parts"][1:]
    )
