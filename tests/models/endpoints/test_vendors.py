"""The configs of vendors against servers that behave as the vendors' documentation says; each names it and when it was
read.
"""

import asyncio

import numpy as np

from codec_bench.models import load_model
from codec_bench.models.endpoints.describe import is_vendor
from codec_bench.types import Request

PCM = (np.arange(2400) % 100 * 100).astype("<i2")


def answered(kit, name, handle, request, **options):
    """(response, service) of one request to a shipped config whose address is a local server."""

    async def main():
        async with kit.serving(handle) as service:
            model = load_model(name, {"base_url": service.url, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service

    return asyncio.run(main())


SPEAK = Request("q", fields={"text": "Hello.", "language": "en"}, wants="audio")


def test_elevenlabs_speaks(kit, monkeypatch):
    """https://elevenlabs.io/docs/api-reference/text-to-speech/convert and the package
    elevenlabs, read on 2026-11-22.
    """
    monkeypatch.setenv("ELEVENLABS_API_KEY", "eleven-secret-key")

    async def handle(seen, writer):
        assert seen.path == "/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb?output_format=pcm_24000"
        assert seen.headers["xi-api-key"] == "eleven-secret-key"
        return kit.reply(PCM.tobytes(), kind="audio/pcm", maximum_concurrent_requests=2, request_id="r-1")

    response, service = answered(kit, "elevenlabs-v3", handle, SPEAK)
    assert response.status == "ok" and response.audio.sample_rate_hz == 24_000
    np.testing.assert_array_equal(response.audio.samples[0] * 32768, PCM)
    assert service.seen[0].json == {"text": "Hello.", "model_id": "eleven_v3", "language_code": "en", "seed": 0}
    assert response.served == {"request": "r-1"}


def test_elevenlabs_tells_what_is_wrong(kit, monkeypatch):
    monkeypatch.setenv("ELEVENLABS_API_KEY", "eleven-secret-key")

    async def handle(seen, writer):
        body = {"detail": {"status": "invalid_text", "message": "the text is too long"}}
        return kit.reply(body, 400)

    response, _ = answered(kit, "elevenlabs-v3", handle, SPEAK)
    assert response.status == "refused" and "invalid_text" in response.reason.parameters["message"]


def test_elevenlabs_transcribes(kit, monkeypatch):
    """https://elevenlabs.io/docs/api-reference/speech-to-text/convert, read on 2026-11-22."""
    monkeypatch.setenv("ELEVENLABS_API_KEY", "eleven-secret-key")

    async def handle(seen, writer):
        assert seen.path == "/v1/speech-to-text" and b"RIFF" in seen.body
        form = seen.body.split(b"RIFF")[0]
        assert b'name="model_id"\r\n\r\nscribe_v2' in form and b'name="language_code"\r\n\r\nen' in form
        assert b'name="response_format"' not in form and b'name="model"' not in form
        return kit.reply({"language_code": "en", "text": "hello there", "words": []})

    from codec_bench.audio.clip import Clip

    request = Request("q", fields={"audio": Clip(kit.tone()), "language": "en"}, parameters={"temperature": 0.0})
    response, _ = answered(kit, "elevenlabs-scribe-v2", handle, request)
    assert (response.status, response.text) == ("ok", "hello there")


def wav():
    import io

    import soundfile

    file = io.BytesIO()
    soundfile.write(file, PCM, 32_000, format="WAV", subtype="PCM_16")
    return file.getvalue()


def test_minimax_speaks(kit, monkeypatch):
    """https://platform.minimax.io/docs/api-reference/speech-t2a-http.md, read on 2026-11-22."""
    monkeypatch.setenv("MINIMAX_API_KEY", "minimax-secret-key")

    async def handle(seen, writer):
        assert seen.path == "/v1/t2a_v2" and seen.json["output_format"] == "hex"
        return kit.reply(
            {"data": {"audio": wav().hex(), "status": 2}, "base_resp": {"status_code": 0, "status_msg": "success"}}
        )

    response, service = answered(kit, "minimax-speech-2.8-hd", handle, SPEAK)
    assert response.status == "ok" and response.audio.sample_rate_hz == 32_000
    np.testing.assert_array_equal(response.audio.samples[0] * 32768, PCM)
    assert service.seen[0].json["text"] == "Hello."


def test_minimax_reports_errors_with_a_status_of_success(kit, monkeypatch):
    monkeypatch.setenv("MINIMAX_API_KEY", "minimax-secret-key")

    async def handle(seen, writer):
        return kit.reply({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}})

    response, _ = answered(kit, "minimax-speech-2.8-hd", handle, SPEAK, attempts=2)
    assert response.status == "failed" and "1008" in response.reason


def test_azure_speaks(kit, monkeypatch):
    """https://learn.microsoft.com/azure/ai-foundry/openai: /openai/v1/audio/speech?api-version=preview, read on
    2026-11-22.
    """
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-secret-key")

    async def handle(seen, writer):
        assert seen.path == "/v1/audio/speech?api-version=preview" and seen.headers["api-key"] == "azure-secret-key"
        return kit.reply(wav(), kind="audio/wav", apim_request_id="a-1")

    response, service = answered(kit, "azure-speech", handle, SPEAK, model="my-deployment")
    assert response.status == "ok" and response.served == {"request": "a-1"}
    assert service.seen[0].json == {
        "model": "my-deployment",
        "response_format": "wav",
        "voice": "alloy",
        "input": "Hello.",
    }


def test_hosts_of_workspaces_are_the_vendors_own():
    """https://help.aliyun.com/en/model-studio/omni/: https://WORKSPACE.cn-beijing.maas.aliyuncs.com, read on
    2026-11-22.
    """
    hosts = {
        "https://ws-1.cn-beijing.maas.aliyuncs.com/compatible-mode/v1": True,
        "https://api.openai.com/v1": True, "http://localhost:8000/v1": False,
        "https://maas.aliyuncs.com.evil.example/v1": False,
    }  # fmt: skip
    assert {url: is_vendor(url) for url in hosts} == hosts
    workspace = load_model("qwen3.5-omni-plus", {"base_url": next(iter(hosts))})
    assert workspace.service_parameter("repetition_penalty") is None and not workspace.tells_apart
