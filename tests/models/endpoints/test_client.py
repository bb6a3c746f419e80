import asyncio
import gzip
import json
import logging
import random
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from refusals import Containing, refuses

from codec_bench.messages.errors import UserError
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.error_texts import parse_duration, wait_of
from codec_bench.models.endpoints.keys import ApiKey, check_headers, check_url, clean
from codec_bench.models.endpoints.replies import error_of, read_json
from codec_bench.models.endpoints.retries import Patience, RequestFailed


def build(url, clock, **more):
    return Client(url, clock=clock, sleep=clock.sleep, rng=random.Random(3), **more)


def send(kit, handle, *, times=1, **options):
    """Runs a client against a server: ([value or exception], service, clock)."""

    async def main():
        clock = kit.Clock()
        async with kit.serving(handle) as service:
            client = build(service.url, clock, **options)
            await client.start()
            try:
                out = [(await one(client)) for _ in range(times)]
            finally:
                await client.close()
            return out, service, clock

    async def one(client):
        try:
            return await client.send("POST", "/x", read_json, json={"a": 1})
        except (RequestFailed, UserError) as error:
            return error

    return asyncio.run(main())


def replies(kit, *answers):
    left = list(answers)

    async def handle(seen, writer):
        return left.pop(0) if len(left) > 1 else left[0]

    return handle


def test_a_reply_comes_back_with_its_attempts(kit):
    (reply,), service, clock = send(kit, replies(kit, kit.reply({"b": 2})))
    assert reply.value == {"b": 2} and reply.attempts == 1 and clock.slept == []
    assert service.seen[0].json == {"a": 1} and service.seen[0].path == "/v1/x"


def test_what_may_pass_is_tried_again_with_growing_jittered_waits(kit):
    handle = replies(kit, *[kit.reply({"error": {"message": "boom"}}, 500)] * 4, kit.reply({"b": 2}))
    (reply,), service, clock = send(kit, handle)
    assert reply.attempts == 5 and len(service.seen) == 5 and len(clock.slept) == 4
    assert all(0 <= wait <= 0.5 * 2**n for n, wait in enumerate(clock.slept)) and len(set(clock.slept)) == 4


def test_jitter_is_full():
    clock_free = Client("http://localhost:1", rng=random.Random(1))
    waits = [clock_free._jitter(4) for _ in range(2000)]
    # Uniform over [0, 4]: the mean of 2,000 has a standard error of 0.026.
    assert max(waits) <= 4.0 and min(waits) < 0.05 and abs(sum(waits) / 2000 - 2.0) < 0.13


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 409, 425])
def test_it_ends_after_the_attempts(kit, status):
    (end,), service, _ = send(
        kit, replies(kit, kit.reply(b"down", status, "text/plain")), patience=Patience(attempts=3, throttled_s=0.01)
    )
    assert isinstance(end, RequestFailed) and not end.refused and f"{status}: down" in end.reason
    assert len(service.seen) == (1 if status == 503 else 3)  # 503 counts as throttling; its time limit is short here


def test_retry_after_is_heeded_and_throttling_is_no_attempt(kit):
    busy = [kit.reply({"error": "slow down"}, 429, Retry_After="7")] * 9
    (reply,), service, clock = send(kit, replies(kit, *busy, kit.reply({})), patience=Patience(attempts=2))
    assert clock.slept[:4] == [7.0] * 4 and all(wait >= 7.0 for wait in clock.slept)
    assert reply.attempts == 10 and len(service.seen) == 10


def test_throttling_ends_too(kit):
    (end,), _, clock = send(
        kit, replies(kit, kit.reply({"error": "slow down"}, 429, Retry_After="100")), patience=Patience(throttled_s=250)
    )
    assert isinstance(end, RequestFailed) and "429" in end.reason and clock.slept == [100.0, 100.0]


def test_a_used_up_rate_limit_closes_the_gate_for_all(kit):
    used_up = kit.reply({}, x_ratelimit_remaining_requests=0, x_ratelimit_reset_requests="1m30s")
    _, _, clock = send(kit, replies(kit, used_up, kit.reply({})), times=2)
    assert clock.slept == [90.0]


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_request_is_not_sent_again(kit, status):
    refused = kit.reply({"error": {"message": "audio of this length is not supported", "code": str(status)}}, status)
    (end,), service, _ = send(kit, replies(kit, refused))
    assert end.refused and end.reason.parameters["status"] == status and len(service.seen) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 402, 410])
def test_a_wrong_key_or_name_ends_everything_at_first_and_one_request_later(kit, status, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "abc-very-secret-value")
    denied = kit.reply({"error": {"message": "no"}}, status)
    (first,), _, _ = send(kit, replies(kit, denied), key=ApiKey("SOME_KEY"))
    assert isinstance(first, UserError) and ("base_url" if status == 404 else "SOME_KEY") in first.hint
    (_, *later), _, _ = send(kit, replies(kit, kit.reply({}), denied), times=9, key=ApiKey("SOME_KEY"))
    if status in (401, 402):  # the key has expired, or the credit is used up
        assert isinstance(later[0], UserError) and "the same command continues" in later[0].hint
    else:
        assert all(isinstance(one, RequestFailed) and not one.refused for one in later[:7])
        assert isinstance(later[7], UserError) and later[7].message.code == "refused_alike"


def test_a_missing_key_is_named_before_anything_is_sent(kit, monkeypatch):
    monkeypatch.delenv("ABSENT_KEY", raising=False)
    with refuses("key_not_set", variable="ABSENT_KEY"):
        send(kit, replies(kit, kit.reply({})), key=ApiKey("ABSENT_KEY"))


def test_spent_credit_is_not_waited_for(kit):
    spent = kit.reply({"error": {"message": "quota", "code": "insufficient_quota"}}, 429, Retry_After="1")
    (end,), service, clock = send(kit, replies(kit, spent))
    assert isinstance(end, UserError) and "credit" in end.hint and clock.slept == [] and len(service.seen) == 1


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("https://elsewhere.example/v1/x",
            "redirects to https://elsewhere.example/v1/x; give https://elsewhere.example/v1 as base_url"),
        ("/v2/x", "give http://127.0.0.1:PORT/v2 as base_url"),
        ("https://elsewhere.example/login",
            "redirects to https://elsewhere.example/login; is base_url (http://127.0.0.1:PORT/v1) right?"),
    ],
)  # fmt: skip
def test_a_redirect_is_reported_as_the_base_url_that_it_means_and_not_followed(kit, location, hint):
    (end,), service, _ = send(kit, replies(kit, kit.reply(b"", 301, Location=location)))
    port = service.url.split(":")[2].split("/")[0]
    assert isinstance(end, UserError) and hint.replace("PORT", port) in end.hint and len(service.seen) == 1


@pytest.mark.parametrize(
    ("after", "hint"),
    [("/v1/x", "base_url=http://127.0.0.1:PORT/v1"), ("", "http://127.0.0.1:PORT/v1"), ("/v1", "right?")],
)
def test_a_base_url_with_the_path_or_without_the_version_is_reported(kit, after, hint):
    async def main():
        async with kit.serving(replies(kit, kit.reply(b"404: Not Found", 404, kind="text/plain"))) as service:
            host = service.url.removesuffix("/v1")
            client = build(host + after, kit.Clock())
            await client.start()
            try:
                with pytest.raises(UserError) as caught:
                    await client.send("POST", "/x", read_json)
            finally:
                await client.close()
            return caught.value, host.split(":")[2]

    error, port = asyncio.run(main())
    assert error.message.parameters["status"] == 404 and error.message.parameters["message"] == "Not Found"
    assert error.hint.endswith(hint.replace("PORT", port))


def insecure(kit, tls):
    """The error of a secure connection to a server on this machine."""

    def answer(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main():
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
            client = build(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", kit.Clock())
            await client.start()
            try:
                with refuses("no_secure_connection") as caught:
                    await client.send("POST", "/x", read_json)
            finally:
                await client.close()
            return caught.value

    return asyncio.run(main())


def test_a_service_without_tls_is_distinguished_from_nobody(kit):
    assert "does the service speak TLS?" in insecure(kit, None).hint


def test_a_certificate_that_nobody_vouches_for_is_reported(kit, tmp_path):
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    )
    signed = signed.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    (tmp_path / "both.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + signed.sign(key, SHA256()).public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    assert "SSL_CERT_FILE" in insecure(kit, context).hint


def test_a_cut_connection_is_tried_again(kit):
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    count = 0

    async def handle(seen, writer):
        nonlocal count
        count += 1
        if count < 3:
            writer.write(cut)
            await writer.drain()
            return None
        return kit.reply({"whole": True})

    (reply,), _, _ = send(kit, handle)
    assert reply.value == {"whole": True} and reply.attempts == 3


@pytest.mark.parametrize("body", [b"<html><h1>Welcome</h1><script>x</script></html>", b'{"a": ', b"", b"\xff\xfe\x00"])
def test_what_is_not_json_is_tried_again_and_reported(kit, body):
    (end,), service, _ = send(kit, replies(kit, kit.reply(body, kind="text/html")), patience=Patience(attempts=2))
    assert isinstance(end, RequestFailed) and end.reason.code == "reply_not_json" and len(service.seen) == 2
    assert "<" not in end.reason and len(end.reason) < 400


def test_json_that_was_cut_off_is_called_so(kit):
    (end,), _, _ = send(kit, replies(kit, kit.reply(b'{"a": ')), patience=Patience(attempts=1))
    assert end.reason.code == "reply_json_damaged" and end.reason.parameters["kind"] == "application/json"


def test_a_slow_answer_is_allowed_two_chances(kit):
    async def handle(seen, writer):
        await asyncio.sleep(5)

    (end,), _, clock = send(kit, handle, patience=Patience(timeout_s=0.05))
    # One pause lies between two attempts. On a busy machine the service may see fewer of them than were sent.
    assert (
        isinstance(end, RequestFailed)
        and end.reason.as_dict() == {"code": "no_complete_answer", "limit_s": 0.05}
        and len(clock.slept) == 1
    )


def test_nobody_there(kit, unused_port):
    async def main():
        clock = kit.Clock()
        client = build(f"http://127.0.0.1:{unused_port}/v1", clock)
        await client.start()
        try:
            with refuses("nothing_answers", url=Containing("http")):
                await client.send("POST", "/x", read_json)
        finally:
            await client.close()
        assert len(clock.slept) == 4

    asyncio.run(main())


def test_a_service_that_is_gone_is_not_insisted_on(kit):
    async def main():
        clock = kit.Clock()
        async with kit.serving(replies(kit, kit.reply({}), kit.reply(b"", 500))) as service:
            client = build(service.url, clock, patience=Patience(attempts=3))
            await client.start()
            await client.send("POST", "/x", read_json)
            for _ in range(12):
                with pytest.raises(RequestFailed):
                    await client.send("POST", "/x", read_json)
            await client.close()
            return len(service.seen)

    # One answered, eight given up after three attempts each, four after one.
    assert asyncio.run(main()) == 1 + 8 * 3 + 4


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_connections_are_used_again(kit):
    async def main():
        clock, ports = kit.Clock(), set()

        async def handle(seen, writer):
            ports.add(writer.get_extra_info("peername")[1])
            await asyncio.sleep(0.001)
            return kit.reply({})

        async with kit.serving(handle) as service:
            client = build(service.url, clock, concurrency=4)
            await client.start()
            for _ in range(5):
                await asyncio.gather(*[client.send("POST", "/x", read_json) for _ in range(8)])
            await client.close()
            return len(ports), service.most_busy

    assert asyncio.run(main()) == (4, 4)


def test_cancelled_in_the_middle_nothing_is_left_and_the_client_goes_on(kit):
    async def main():
        waiting = asyncio.Event()

        async def handle(seen, writer):
            if not waiting.is_set():
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")  # the reply has started
                await asyncio.sleep(30)
            return kit.reply({"a": 1})

        async with kit.serving(handle) as service:
            client = build(service.url, kit.Clock(), concurrency=4)
            await client.start()
            sends = [asyncio.create_task(client.send("POST", "/x", read_json)) for _ in range(8)]
            while service.busy < 4:
                await asyncio.sleep(0.001)
            for send in sends:
                send.cancel()
            ends = await asyncio.gather(*sends, return_exceptions=True)
            waiting.set()
            reply = await client.send("POST", "/x", read_json)
            busy = client.gate.busy
            await client.close()
            return [type(end) for end in ends], reply.value, busy

    ends, value, busy = asyncio.run(main())
    assert ends == [asyncio.CancelledError] * 8 and value == {"a": 1} and busy == 0


def test_an_endless_reply_ends(kit, monkeypatch):
    monkeypatch.setattr("codec_bench.models.endpoints.replies.MAX_BYTES", 1 << 20)

    async def handle(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()

    (end,), service, _ = send(kit, handle)
    assert (
        isinstance(end, RequestFailed)
        and end.reason.as_dict() == {"code": "reply_too_large", "most_mib": 1}
        and len(service.seen) == 1
    )


def test_the_key_is_sent_and_never_shown(kit, monkeypatch, caplog):
    key = "zq-UNMISTAKABLE-0123456789"
    monkeypatch.setenv("MY_KEY", f"  {key} ")
    caplog.set_level(logging.DEBUG)
    echo = {}

    async def handle(seen, writer):
        echo.update(seen.headers)
        return kit.reply({"error": {"message": f"Incorrect key {seen.headers['authorization']} given"}}, 500)

    (end,), _, _ = send(kit, handle, key=ApiKey("MY_KEY"), patience=Patience(attempts=2))
    assert echo["authorization"] == f"Bearer {key}"
    assert "***" in end.reason
    assert key not in end.reason + caplog.text + repr(end.__cause__) + repr(end.__context__)


def test_keys_where_none_may_be():
    key = "sk-abcdefghijklmnop1234"
    for make in (lambda: ApiKey(key), lambda: ApiKey("my key"), lambda: check_url(f"https://me:{key}@host/v1"),
                 lambda: check_url(f"https://host/v1?api_key={key}"),
        lambda: check_headers({"X-Api-Key": key})):  # fmt: skip
        with pytest.raises(UserError) as caught:
            make()
        assert key not in str(caught.value)
    assert clean(f"bad key {key}, Bearer abc.def, AIzaSyA-1234567890abcdef") == "bad key ***, Bearer ***, ***"


def test_what_a_service_says_is_one_short_line():
    assert clean("<style>p{}</style><b>no</b>\n\x1b[31m room\x00") == "no [31m room"
    assert len(clean("x" * 10**6)) == 300


def test_errors_of_every_layout():
    for body in (
        {"error": {"message": "m", "code": "c"}},
        {"error": "m"},
        {"message": "m"},
        {"detail": "m"},
        [{"error": {"message": "m"}}],
    ):
        assert error_of(json.dumps(body))[0] == "m"
    assert error_of('{"detail": [{"loc": ["x"]}]}')[0] == '[{"loc": ["x"]}]'
    assert error_of("plain")[0] == "plain"
    google = {"error": {"message": "API key not valid", "status": "X", "details": [{"reason": "API_KEY_INVALID"}]}}
    assert "API_KEY_INVALID" in error_of(json.dumps(google))[1]


def test_durations():
    assert [parse_duration(t) for t in ("1s", "6m0s", "20ms", "1h2m", "3", "1.5s", "soon", "")] == [
        1, 360, 0.02, 3720, 3, 1.5, None, None]  # fmt: skip
    assert wait_of({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert wait_of({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) is None
    assert wait_of({"retry-after": "whenever"}) is None


def test_compressed_replies_are_read_and_damaged_ones_tried_again(kit):
    packed = gzip.compress(json.dumps({"b": 2}).encode())
    damaged = kit.reply(b"no gzip at all", Content_Encoding="gzip")
    (reply,), _, _ = send(kit, replies(kit, damaged, kit.reply(packed, Content_Encoding="gzip")))
    assert reply.value == {"b": 2} and reply.attempts == 2
    (end,), service, _ = send(kit, replies(kit, damaged), patience=Patience(attempts=2))
    assert end.reason.code == "reply_unreadable" and len(service.seen) == 2


def test_what_is_no_http_is_reported(kit):
    (end,), _, _ = send(kit, replies(kit, b"220 smtp.example ready\r\n\r\n"), patience=Patience(attempts=1))
    assert (end.reason if isinstance(end, RequestFailed) else end.message).code == "reply_unreadable"


def test_a_file_is_sent_whole_at_every_attempt(kit, tmp_path):
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b'{"a": 1}\n' * 1000)

    async def main():
        clock = kit.Clock()
        async with kit.serving(replies(kit, kit.reply({}, 500), kit.reply({"id": "f"}))) as service:
            client = build(service.url, clock)
            await client.start()
            form = {"data": {"purpose": "batch"}, "files": {"file": ("b.jsonl", file, "application/jsonl")}}
            reply = await client.send("POST", "/files", read_json, **form)
            await client.close()
            return reply, service

    reply, service = asyncio.run(main())
    assert reply.attempts == 2 and len(service.seen) == 2
    for seen in service.seen:
        assert file.read_bytes() in seen.body and b'name="purpose"' in seen.body and b'filename="b.jsonl"' in seen.body


def test_a_proxy_of_the_environment_is_queried_and_omitted_where_it_says_so(kit, monkeypatch):
    """The server plays the proxy: it is sent the whole address of a host that does not exist."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async def main(hosts):
        clock = kit.Clock()
        async with kit.serving(replies(kit, kit.reply({"b": 2}))) as service:
            monkeypatch.setenv("http_proxy", service.url.removesuffix("/v1"))
            monkeypatch.setenv("no_proxy", hosts)
            client = build("http://service.invalid/v1", clock, patience=Patience(attempts=1))
            await client.start()
            try:
                return await client.send("POST", "/x", read_json, json={}), service
            except UserError as error:
                return error, service
            finally:
                await client.close()

    reply, service = asyncio.run(main("other.invalid"))
    assert reply.value == {"b": 2} and service.seen[0].path == "http://service.invalid/v1/x"
    end, service = asyncio.run(main("service.invalid"))
    assert isinstance(end, UserError) and service.seen == []
