"""The warm scorer: scores as of a run, bad items, rewards, the HTTP service, verl-omni's protocol, faults."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import signal
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from aiohttp import ClientSession, FormData

from codec_bench import Audio, Scorer, load_metric, open_run
from codec_bench.apps.serving.items import BadItem, QueueFull
from codec_bench.apps.serving.rewards import NoReward, RewardSpec, compute_reward, read_reward
from codec_bench.apps.serving.server import BODY_BYTES, Service, _lines, run_service
from codec_bench.data import open_source
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.rewards import build_compute_score, build_reward_func, compute_rewards
from codec_bench.types import Score

METRICS = "stoi,si_sdr,wer[pocketsphinx]"
TOKEN = "a token"


@pytest.fixture(scope="module")
def scorer():
    with Scorer(METRICS, device="cpu", workers=2) as built:
        yield built


@pytest.fixture(scope="module")
def items():
    """The first 1.2 s of embedded utterances with noise, with their references and texts."""
    rng, result = np.random.default_rng(0), []
    for sample in list(open_source("embedded"))[:6]:
        read = Audio.read(sample.audio)
        clean = Audio(read.samples[:, : round(1.2 * read.sample_rate_hz)], read.sample_rate_hz)
        noise = 0.01 * rng.standard_normal(clean.samples.shape).astype(np.float32)
        noisy = Audio(np.clip(clean.samples + noise, -1, 1), clean.sample_rate_hz)
        result.append({"audio": noisy, "reference": clean, "text": sample.text, "language": "en", "id": sample.id})
    return result


@pytest.fixture(scope="module")
def expected(items):
    metric = load_metric(METRICS, device="cpu")
    return [
        metric(estimate=[i["audio"]], reference=[i["reference"]], text=[i["text"]], language="en")[0] for i in items
    ]


def agree(scores, expected):
    for name, score in expected.items():
        assert scores[name].status == score.status
        assert scores[name].value == pytest.approx(score.value, rel=1e-5)


def test_scores_are_those_of_each_item_alone(scorer, items, expected):
    for result, item, alone in zip(scorer.score(items), items, expected):
        assert result.id == item["id"] and result.duration_s > 1
        agree(result.scores, alone)


def test_scores_under_load_are_those_of_each_item_alone(scorer, items, expected):
    def one(position):
        return position % 6, scorer.score([items[position % 6]])[0]

    with ThreadPoolExecutor(12) as threads:
        for index, result in threads.map(one, range(18)):
            agree(result.scores, expected[index])
    assert scorer.waiting == 0


def test_an_asynchronous_caller_gets_the_same(scorer, items, expected):
    async def all_of_them():
        return await asyncio.gather(*(scorer.score_async(item) for item in items))

    for result, alone in zip(asyncio.run(all_of_them()), expected):
        agree(result.scores, alone)


def test_a_bad_item_fails_alone(scorer, items, expected):
    tone = np.zeros(16_000, np.float32)
    bad = [
        {"audio": b""}, {"audio": b"junk"}, {"sound": 1}, {"audio": Audio(tone, 1_000)}, {"audio": "/nonexistent.wav"},
        {"audio": tone}, {"audio": Audio(np.zeros((9, 100), np.float32), 16_000)}, {"audio": b"x", "text": 3},
        {"audio": items[0]["audio"], "reference_id": "nobody"},
    ]  # fmt: skip
    results = scorer.score([*bad, items[0]])
    assert all(score.status == "failed" for result in results[:-1] for score in result.scores.values())
    assert [{one.code for one in result.scores.values()} for result in results[:-1]] == [
        {"item_empty"}, {"not_a_sound"}, {"no_item_field"}, {"item_rate"}, {"item_unreadable"},
        {"item_type"}, {"item_channels"}, {"item_type"}, {"no_stored_reference"},
    ]  # fmt: skip
    agree(results[-1].scores, expected[0])
    for item, code in [
        ({"audio": b""}, "empty"),
        ({"audio": Audio(tone, 1_000)}, "bad_rate"),
        ({"audio": Audio(np.zeros(601 * 8_000, np.float32), 8_000)}, "too_long"),
        ({"audio": items[0]["audio"], "reference_id": "nobody"}, "unknown_reference"),
        ({"audio": items[0]["audio"], "text": "a" * 30_000}, "text_too_long"),
    ]:
        with pytest.raises(BadItem) as error:
            scorer.submit(item)
        assert error.value.code == pickle.loads(pickle.dumps(error.value)).code == code


def test_a_stored_reference_is_the_reference(scorer, items, expected):
    scorer.put_reference("voice", items[0]["reference"])
    item = {name: value for name, value in items[0].items() if name != "reference"}
    agree(scorer.score([{**item, "reference_id": "voice"}])[0].scores, expected[0])
    assert scorer.drop_reference("voice") and not scorer.drop_reference("voice")


def test_a_worker_that_dies_is_replaced(scorer, items, expected, caplog):
    before = scorer.replaced
    futures = [scorer.submit(item) for item in items]
    for worker in list(scorer._pool.workers):
        os.kill(worker.process.pid, signal.SIGKILL)
    for future, alone in zip(futures, expected):
        agree(future.result(120).scores, alone)
    assert scorer.replaced == before + 2
    assert len([one for one in caplog.records if one.levelname == "WARNING"]) == 2

    async def calls(session, url):
        async with session.get(f"{url}/metrics") as reply:
            return await reply.text()

    assert f"codec_bench_workers_replaced_total {before + 2}\n" in serve(scorer, calls)


def test_a_record_of_the_items_is_a_run(items, tmp_path, cli):
    """A service that starts again continues it; ids that come twice stay apart."""
    folder, actual = tmp_path / "run", []
    silent = {**items[1], "audio": Audio(np.zeros(16_000, np.float32), 16_000), "id": ""}
    for batch in (items[:3], [items[0], silent]):
        with Scorer("si_sdr,stoi", device="cpu", workers=1, record=folder) as scorer:
            scorer.warm_up()
            actual += scorer.score(batch)
    run = open_run(folder)
    assert [run.meta["state"], run.meta["data"]["samples"]] == ["finished", 5]
    rows = {(row.id, row.metric): row for row in run.scores()}
    ids = [*(item["id"] for item in items[:3]), f"{items[0]['id']}#3", "#4"]
    assert sorted({id for id, _ in rows}) == sorted(ids)
    for id, result in zip(ids, actual):
        for metric, score in result.scores.items():
            row = rows[id, metric]
            assert (row.value, row.status, row.protocol) == (score.value, score.status, score.protocol)
    code, out, err = cli("report", folder, "--json")
    assert code == 0, err
    assert json.loads(out)["systems"]["generated"]["metrics"]["stoi"]["n"] == sum(
        one.scores["stoi"].value is not None for one in actual
    )
    assert cli("export", folder, "--format", "csv")[0] == 0
    with pytest.raises(UserError):
        Scorer("si_sdr", device="cpu", workers=1, record=folder)


def test_a_full_queue_refuses(items):
    with Scorer("si_sdr", device="cpu", workers=1, queue=2, max_wait_ms=500) as scorer:
        futures = [scorer.submit(items[0]) for _ in range(2)]
        with pytest.raises(QueueFull):
            scorer.submit(items[0])
        assert all(future.result(60).scores["si_sdr"].status == "ok" for future in futures)
        assert scorer.waiting == 0
        assert len(scorer.score(items)) == 6
    with pytest.raises(UserError):
        scorer.submit(items[0])
    before = threading.active_count()
    scorer.close()
    assert threading.active_count() <= before


def test_a_metric_that_cannot_be_loaded_ends_the_start():
    with pytest.raises(UserError):
        Scorer("no-such-metric", device="cpu", workers=1)


# ---- rewards ----

BETTER = {"wer": False, "sim": True, "free": None}
SCORES = {"wer": Score.ok(0.25, "wer/1"), "sim": Score.ok(0.8, "sim/1")}


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ([], 0.25),
        ([{"negate": True}], -0.25),
        ([{"clip": [0.3, 1]}], 0.3),
        ([{"linear": {"scale": -2, "offset": 1}}], 0.5),
        ([{"threshold": {"at": 0.2}}], 1.0),
        ([{"threshold": {"at": 0.3, "below": -1}}], -1.0),
        ([{"exp": -2}], np.exp(-0.5)),
        ([{"negate": True}, {"exp": 1}], np.exp(-0.25)),
    ],
)
def test_transforms(steps, value):
    spec = read_reward({"terms": {"words": {"metric": "wer", "transform": steps, "weight": 3}}}, BETTER)
    assert compute_reward(spec, SCORES).score == pytest.approx(3 * value)


def test_a_name_alone_is_a_reward_that_rises_with_quality():
    assert compute_reward(read_reward("wer", BETTER), SCORES).score == -0.25
    assert compute_reward(read_reward("sim", BETTER), SCORES).score == 0.8


def test_a_missing_value_is_never_a_silent_zero():
    spec = read_reward("sim", BETTER)
    silent = Score.ok(0.9, "sim/1", detail={"flag": Diagnostic("silent_estimate")})
    for score in (Score.failed("broken", "sim/1"), silent):
        with pytest.raises(NoReward) as error:
            compute_reward(spec, {"sim": score})
        assert error.value.metric == "sim"
        stated = read_reward({"terms": {"voice": {"metric": "sim", "missing": -1}}}, BETTER)
        assert compute_reward(stated, {"sim": score}).score == -1


@pytest.mark.parametrize(
    "document",
    [{}, {"terms": {}}, {"terms": {"a": {"metric": "pesq"}}}, {"terms": {"a": {"metric": "wer", "weigth": 1}}},
     {"terms": {"a": {"metric": "wer", "transform": [{"log": 1}]}}}, "nothing.yaml", "no-metric",
     *({"terms": {"a": {"metric": "wer", "transform": [step]}}}
         for step in ({}, {"clip": [1, 0]}, {"clip": [0, 1], "negate": True}))],
)  # fmt: skip
def test_a_wrong_reward_is_refused(document):
    with pytest.raises(UserError):
        read_reward(document, BETTER)


def test_rewards_in_the_shapes_of_training_libraries(scorer, items, expected):
    reward = {"terms": {"fidelity": {"metric": "si_sdr"}}}
    columns = {name: [item[name] for item in items] for name in ("text", "language")}
    prompts = [
        {"array": item["reference"].samples[0], "sampling_rate": item["reference"].sample_rate_hz} for item in items
    ]
    call = build_reward_func(scorer, reward, reference="prompt", language="language")
    sounds = [Audio(p["array"], p["sampling_rate"]) for p in prompts]
    completions = [item["audio"] for item in items]
    for references in (
        sounds,
        prompts,
        [SimpleNamespace(get_all_samples=lambda one=one: _Samples(one)) for one in sounds],
    ):
        results = call(
            prompts=[""] * 6, completions=completions, completion_ids=[[1]] * 6, prompt=references, **columns
        )
        assert results == pytest.approx([one["si_sdr"].value for one in expected])
    assert build_reward_func(scorer, "configs/speech.yaml").__name__ == "speech"
    results = build_compute_score(scorer, reward)(
        "tts", items[0]["audio"], items[0]["text"], {"reference": items[0]["reference"]}
    )
    assert results["score"] == pytest.approx(expected[0]["si_sdr"].value)
    alone = {"audio": items[0]["audio"].samples[0], "sampling_rate": items[0]["audio"].sample_rate_hz}
    compute_score = build_compute_score(scorer, {"terms": {"fidelity": {"metric": "wer[pocketsphinx]"}}})
    other = compute_score(
        data_source="tts", solution_str="", ground_truth="x", extra_info={"audio": alone}, tokenizer=None
    )
    assert other.keys() == results.keys() and np.isnan(other["si_sdr"])


class _Samples:
    """What a decoder of torchcodec gives."""

    def __init__(self, audio):
        self.data, self.sample_rate = SimpleNamespace(numpy=lambda: audio.samples), audio.sample_rate_hz


def _endless_flac(seconds):
    """Silence at 8 kHz whose header does not say how long it is."""
    data = bytearray(flac(Audio(np.zeros(seconds * 8_000, np.float32), 8_000)))
    data[21] &= 0xF0  # of STREAMINFO: the count of samples, then their MD5
    data[22:42] = bytes(20)
    return bytes(data)


# ---- the service ----


def serve(scorer, calls, *, reward=None, token=None):
    """Runs `calls(session, url)` against a service of the scorer."""

    async def main():
        service = Service(scorer, None if reward is None else RewardSpec.model_validate(reward), token)
        stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
        running = asyncio.create_task(
            run_service(service, "127.0.0.1", 0, on_ready=address.set_result, stop=stop.wait())
        )
        try:
            async with ClientSession() as session:
                return await calls(session, await address)
        finally:
            stop.set()
            await running

    return asyncio.run(main())


def flac(audio):
    from codec_bench.audio.encode import flac_bytes

    return flac_bytes(audio)


def as_json(item):
    """An item as JSON, with 32-bit floats."""
    audio = item["audio"]
    return {
        "waveform_f32_base64": base64.b64encode(audio.samples[0].astype("<f4").tobytes()).decode(),
        "sample_rate_hz": audio.sample_rate_hz, "num_samples": audio.samples.shape[1],
        "reference": {"audio_base64": base64.b64encode(flac(item["reference"])).decode()},
        "text": item["text"], "language": item["language"], "id": item["id"],
    }  # fmt: skip


def test_the_service_scores(scorer, items, expected):
    async def calls(session, url):
        results = []
        form = FormData()
        form.add_field("audio", flac(items[0]["audio"]), filename="a.flac")
        form.add_field("reference", flac(items[0]["reference"]), filename="r.flac")
        form.add_field("item", json.dumps({"text": items[0]["text"], "language": "en"}))
        async with session.post(f"{url}/v1/score", data=form) as reply:
            results.append((reply.status, await reply.json()))
        async with session.post(f"{url}/v1/score", json=as_json(items[1])) as reply:
            results.append((reply.status, await reply.json()))
        lines = "\n".join([*(json.dumps(as_json(item)) for item in items), '{"id": "bad"}', "no json"])
        async with session.post(f"{url}/v1/scores", data=lines) as reply:
            many = [json.loads(line) async for line in reply.content]
        pages = {}
        for path in ("/v1/metrics", "/healthz", "/readyz", "/metrics", "/"):
            async with session.get(url + path) as reply:
                pages[path] = (reply.status, await reply.text())
        return results, many, pages

    result, many, pages = serve(scorer, calls)
    for (status, value), alone in zip(result, expected):
        assert status == 200
        for name, score in alone.items():
            # FLAC has 16 bits.
            assert value["scores"][name]["value"] == pytest.approx(score.value, abs=0.02)
    assert len(many) == 8 and sorted(one["error"]["code"] for one in many if "error" in one) == ["bad_json", "no_audio"]
    assert {one["id"] for one in many if "error" not in one} == {item["id"] for item in items}
    assert sorted(one["line"] for one in many) == list(range(1, 9))
    assert all(status == 200 for status, _ in pages.values())
    assert {one["name"] for one in json.loads(pages["/v1/metrics"][1])["metrics"]} == set(expected[0])
    assert 'codec_bench_requests_total{status="200"}' in pages["/metrics"][1]


def test_bad_requests_have_a_status_and_a_code(scorer, items):
    good = as_json(items[0])
    wrong = [
        ({**good, "waveform_f32_base64": "***"}, 422, "bad_base64"),
        ({**good, "waveform_f32_base64": "AAA="}, 422, "bad_count"),
        ({**good, "num_samples": 3}, 422, "bad_count"),
        ({**good, "waveform_f32_base64": base64.b64encode(np.full(100, np.nan, "<f4").tobytes()).decode(),
            "num_samples": 100}, 422, "not_finite"),
        ({**good, "waveform_f32_base64": "", "num_samples": 0}, 422, "empty"),
        ({**good, "sample_rate_hz": 400_000}, 422, "bad_rate"),
        ({**good, "sample_rate_hz": None}, 422, "bad_rate"),
        ({"text": "a"}, 422, "no_audio"),
        ({**good, "path": "/etc/passwd"}, 422, "bad_item"),
        ({**good, "text": 3}, 422, "bad_item"),
        ({**good, "reference": None, "reference_id": "nobody"}, 404, "unknown_reference"),
        ({**good, "reference": {"audio_base64": "AA=="}, "language": "xx" * 20_000}, 422, "text_too_long"),
        ({"audio_base64": base64.b64encode(b"junk").decode()}, 422, "unreadable"),
        ({**good, "reference_id": "x"}, 422, "bad_item"),
        ([1], 400, "bad_json"),
    ]  # fmt: skip

    async def calls(session, url):
        results = []
        for value, _, _ in wrong:
            async with session.post(f"{url}/v1/score", json=value) as reply:
                results.append((reply.status, (await reply.json())["error"]["code"]))
        async with session.post(f"{url}/v1/reward", json=good) as reply:
            no_reward = (reply.status, (await reply.json())["error"]["code"])
        async with session.get(f"{url}/nowhere") as reply:
            nowhere = (reply.status, (await reply.json())["error"]["code"])
        return results, no_reward, nowhere

    result, no_reward, nowhere = serve(scorer, calls)
    assert result == [(status, code) for _, status, code in wrong]
    assert (no_reward, nowhere) == ((422, "no_reward"), (404, "not_found"))


def test_a_token_is_needed_where_there_is_one(scorer):
    async def calls(session, url):
        results = []
        basic = base64.b64encode(f":{TOKEN}".encode()).decode()
        wrong = ("", "Bearer other", TOKEN, "Basic x", "Basic " + base64.b64encode(b"x:y").decode())
        for value in (*wrong, f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
            headers = {"Authorization": value}
            async with session.get(f"{url}/v1/metrics", headers=headers) as reply:
                results.append(reply.status)
        async with session.get(f"{url}/healthz") as reply:
            results.append(reply.status)
        return results

    assert serve(scorer, calls, token=TOKEN) == [401] * 5 + [200] * 4


def test_verl_omni(scorer, items, expected):
    """A client that repeats 408, 429 and 5xx, and stops at any other status or a score that is not finite."""
    audio = items[0]["audio"]
    request = {
        "protocol_version": "1",
        "waveform_f32_base64": base64.b64encode(audio.samples[0].astype("<f4").tobytes()).decode(),
        "num_samples": audio.samples.shape[1], "sample_rate": audio.sample_rate_hz, "prompt": items[0]["text"],
        "metadata": {"reference_id": "voice", "language": "en", "step": 3, "id": 7},
    }  # fmt: skip
    changes = [
        {},
        {"protocol_version": "2"},
        {"num_samples": 1},
        {"sample_rate": "fast"},
        {"metadata": {"reference_id": "x"}},
    ]
    reward = {"terms": {"fidelity": {"metric": "si_sdr", "weight": 0.1}, "words": {"metric": "wer[pocketsphinx]"}}}

    async def calls(session, url):
        async with session.put(f"{url}/v1/references/voice", data=flac(items[0]["reference"])) as reply:
            assert reply.status == 201
        results = []
        for change in changes:
            async with session.post(f"{url}/reward/verl-omni", json={**request, **change}) as reply:
                results.append((reply.status, await reply.json()))
        return results

    (status, value), *others = serve(scorer, calls, reward=reward)
    assert status == 200 and all(isinstance(one, float) and np.isfinite(one) for one in value.values())
    alone = 0.1 * expected[0]["si_sdr"].value + expected[0]["wer[pocketsphinx]"].value
    assert value["score"] == pytest.approx(alone, abs=0.01)
    assert [status for status, _ in others] == [422, 422, 422, 404]


def test_a_sum_that_is_not_finite_is_no_reward():
    terms = {name: {"metric": "wer", "transform": [{"linear": {"offset": 10}}], "weight": 1e308} for name in ("a", "b")}
    with pytest.raises(NoReward):
        compute_reward(read_reward({"terms": terms}, BETTER), SCORES)


def test_silence_is_not_rewarded_over_the_wire(scorer, items):
    silent = {**items[0], "audio": Audio(np.zeros_like(items[0]["audio"].samples), items[0]["audio"].sample_rate_hz)}
    reward = {"terms": {"fidelity": {"metric": "stoi"}}}

    async def calls(session, url):
        def remote():
            with Scorer.connect(url) as built:
                return compute_rewards(built, reward, [silent])

        return await asyncio.get_running_loop().run_in_executor(None, remote)

    for call in (lambda: compute_rewards(scorer, reward, [silent]), lambda: serve(scorer, calls)):
        with pytest.raises(NoReward):
            call()


def test_a_mistake_of_the_caller_is_no_missing_value(scorer, items):
    reward = {"terms": {"words": {"metric": "wer[pocketsphinx]", "missing": -1}}}
    with pytest.raises(NoReward):  # without a text
        compute_rewards(scorer, reward, [{"audio": items[0]["audio"], "language": "en"}])
    with pytest.raises(UserError, match="audio"):
        build_compute_score(scorer, reward)("tts", "a text", "hello", {})
    for text in ("", " ", "...", "\ud800"):  # no word to be wrong
        with pytest.raises(NoReward):
            compute_rewards(scorer, reward, [{"audio": items[0]["audio"], "language": "en", "text": text}])
    for audio in (b"junk", "/nonexistent.wav", Audio(np.zeros((1, 0)), 16_000), _endless_flac(3_600)):
        with pytest.raises(NoReward):
            compute_rewards(scorer, reward, [{"audio": audio, "language": "en", "text": "hello"}])
    broken = {"terms": {"fidelity": {"metric": "stoi", "missing": -1}}}
    short = {"audio": Audio(items[0]["audio"].samples[:, :200], items[0]["audio"].sample_rate_hz)}
    (result,) = compute_rewards(scorer, broken, [{**short, "reference": short["audio"]}])
    assert result.score == -1 and set(result.missing) == {"fidelity"}

    async def calls(session, url):
        results = []
        for data in (b"no sound at all", _endless_flac(3_600)):
            async with session.put(f"{url}/v1/references/r", data=data) as reply:
                results.append(reply.status)
        form = FormData()
        form.add_field("audio", flac(items[0]["reference"]), filename="r.flac")
        async with session.put(f"{url}/v1/references/r", data=form) as reply:
            results.append(reply.status)
        item = {"audio_base64": base64.b64encode(b"no sound at all").decode(), "reference_id": "r"}
        async with session.post(f"{url}/v1/reward", json=item) as reply:
            results.append((reply.status, (await reply.json())["error"]["code"]))
        return results

    assert serve(scorer, calls, reward=broken) == [422, 422, 201, (422, "unreadable")]


def test_the_length_is_that_of_the_audio_and_not_of_the_reference(scorer, items):
    tone = Audio(np.sin(np.arange(48_000) / 20).astype(np.float32), 16_000)
    (result,) = scorer.score([{"audio": tone, "reference": items[0]["reference"]}])
    assert result.duration_s == pytest.approx(3.0)


def test_malformed_bodies_are_refused(scorer):
    bodies = [
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"no parts at all"),
        ({"Content-Type": "multipart/form-data"}, b"--x"),
        ({}, b"\xff\xfe"),
        ({}, json.dumps({"audio_base64": "AAAA", "reference_id": "\ud800"}).encode()),
    ]

    async def calls(session, url):
        results = []
        for headers, body in bodies:
            async with session.post(f"{url}/v1/score", data=body, headers=headers) as reply:
                results.append(reply.status)
        async with session.get(f"{url}/") as reply:
            results.append(reply.status)
        return results

    *result, page = serve(scorer, calls)
    assert all(400 <= status < 500 for status in result), result
    assert page == 200


MULTIPART = b"Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked"


def _chunked(body):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"Content-Length: 6\r\nTransfer-Encoding: chunked", b"0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x", b"0\r\n\r\n", 400),
        (b"Content-Length: 2\r\nContent-Length: 40", b"{}GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"Content-Length: +2", b"{}", 400),
        (b"Content-Length : 2", b"{}", 400),
        (b"Transfer-Encoding:\r\n chunked", b"0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked", b"ZZ\r\n{}\r\n0\r\n\r\n", 400),
        (b"X: \x1b[31m\x00", b"", 400),
        (b"X: " + b"a" * 10_000, b"", 400),
        (b"\r\n".join(b"X-%d: a" % n for n in range(1_000)), b"", 400),
        (b"Content-Length: 1073741824", b"{}", 413),
        (b"Content-Length: 3\r\nContent-Encoding: gzip", b"abc", 415),
        (b"Content-Length: 3\r\nContent-Encoding: br", b"abc", 415),
        (b"Content-Length: 34", b'{"audio_base64":1,"audio_base64":2}', 400),
        (MULTIPART, _chunked(b"--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y--\r\n--x--"), 422),
        (MULTIPART, _chunked(2 * b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n'), 422),
    ],
)  # fmt: skip
def test_hostile_requests_are_one_answer_and_nothing_in_the_log(service_port, caplog, capfd, head, body, status):
    with socket.create_connection(("127.0.0.1", service_port), timeout=10) as client:
        client.sendall(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + head + b"\r\n\r\n" + body)
        reply = HTTPResponse(client)
        reply.begin()
        reply.read()
        client.settimeout(0.1)
        with suppress(TimeoutError):
            assert client.recv(1) == b""
    assert reply.status == status
    assert not caplog.records and capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def service_port(scorer):
    """The port of a service that runs in a thread."""
    port, stop = Future(), Future()

    async def main():
        ready = lambda url: port.set_result(int(url.rpartition(":")[2]))  # noqa: E731
        await run_service(Service(scorer), "127.0.0.1", 0, on_ready=ready, stop=asyncio.wrap_future(stop))

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    yield port.result(60)
    stop.set_result(None)
    thread.join()


def test_silent_connections_are_few_and_end(scorer, monkeypatch):
    monkeypatch.setattr("codec_bench.apps.serving.server.MOST_CONNECTIONS", 3)
    monkeypatch.setattr("codec_bench.apps.serving.server.HEAD_S", 0.3)

    async def calls(session, url):
        port = int(url.rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in silent:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost:")
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        refused = await asyncio.wait_for(reader.read(1), 5)
        ended = [await asyncio.wait_for(reader.read(1), 5) for reader, _ in silent]
        async with session.get(f"{url}/healthz") as reply:
            return refused, ended, reply.status

    assert serve(scorer, calls) == (b"", [b""] * 3, 200)


def test_the_page_shows_hostile_text_as_text(scorer):
    service = Service(scorer)
    hostile = "</td><script>alert(1)</script>\x1b[31m\ud800\u202e"
    service.errors.append((monotonic(), hostile, hostile))
    service.latencies.extend((monotonic(), seconds) for seconds in (0.1, 0.2, 0.4))
    text = asyncio.run(service.page(None)).body.decode()
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    assert "0.200 s" in text and "default-src &#39;none&#39;" in text.replace("'", "&#39;")


def test_lines_are_those_of_the_body_however_it_is_cut():
    rng = np.random.default_rng(0)
    body = b"\n".join([b"a" * int(n) for n in rng.integers(0, 300, 400)] + [b"  ", b"end"])
    for size in (1, 7, 1 << 16):

        class Content:
            async def iter_chunked(self, _, size=size):
                for start in range(0, len(body), size):
                    yield body[start : start + size]

        async def read(content, sizes):
            return [line async for line in _lines(SimpleNamespace(content=content), sizes.append)]

        sizes, lines = list[int](), [line for line in body.split(b"\n") if line.strip()]
        assert asyncio.run(read(Content(), sizes)) == lines
        assert sum(sizes) == sum(map(len, lines))


def test_memory_of_waiting_items_and_of_bodies_is_bounded(items, monkeypatch):
    """One item is always taken; a body of unknown length counts as the longest, and a stream as what it sent."""
    with Scorer("si_sdr", device="cpu", workers=1, max_wait_ms=500) as scorer:
        monkeypatch.setattr("codec_bench.apps.serving.scorer.QUEUE_BYTES", 1_000)
        future = scorer.submit(items[0])
        with pytest.raises(QueueFull):
            scorer.submit(items[1])
        assert future.result(60).scores["si_sdr"].status == "ok"
        assert scorer.submit(items[1]).result(60).scores["si_sdr"].status == "ok"
        monkeypatch.undo()
        monkeypatch.setattr("codec_bench.apps.serving.server.ALL_BODIES_BYTES", BODY_BYTES)

        async def calls(session, url):
            is_over, is_sent, results = asyncio.Event(), asyncio.Event(), []

            async def body():
                yield b"no json\n"
                is_sent.set()
                await is_over.wait()

            async def wait_and_post():
                await is_sent.wait()
                await asyncio.sleep(0.05)
                results.append(await post())
                is_over.set()

            async def post():
                async with session.post(f"{url}/v1/score", json=as_json(items[0])) as reply:
                    return reply.status, reply.headers.get("Retry-After")

            for path in ("score", "scores"):
                is_over.clear(), is_sent.clear()
                posting = asyncio.create_task(wait_and_post())
                async with session.post(f"{url}/v1/{path}", data=body()) as reply:
                    await reply.read()
                await posting
            return [*results, await post()]

        assert serve(scorer, calls) == [(503, "1"), (200, None), (200, None)]


def test_a_slow_body_may_be_sent_again(scorer, monkeypatch):
    monkeypatch.setattr("codec_bench.apps.serving.server.BODY_S", 0.1)

    async def calls(session, url):
        is_over = asyncio.Event()

        async def body():
            yield b"{"
            await is_over.wait()

        async with session.post(f"{url}/v1/reward", data=body()) as reply:
            is_over.set()
            return reply.status, (await reply.json())["error"]["code"]

    assert serve(scorer, calls) == (408, "slow_body")


def test_a_client_that_goes_away_is_no_error_of_the_service(scorer, caplog):
    async def calls(session, url):
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.sleep(0.05)
        async with session.get(f"{url}/metrics") as reply:
            return await reply.text()

    serve(scorer, calls)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def test_a_remote_scorer_has_the_same_methods(scorer, items, expected):
    async def calls(session, url):
        def remote():
            with Scorer.connect(url) as built:
                built.put_reference("kept", items[0]["reference"])
                return built.score([*items[:2], {"audio": b""}]), built.higher_is_better

        return await asyncio.get_running_loop().run_in_executor(None, remote)

    results, better = serve(scorer, calls)
    for result, alone in zip(results, expected[:2]):
        agree(result.scores, alone)
    assert all(score.status == "failed" for score in results[2].scores.values()) and better["stoi"] is True
    with pytest.raises(UserError):
        Scorer.connect("http://127.0.0.1:9")


def test_the_command_needs_a_token_for_other_machines(cli):
    code, out, err = cli("serve", "--metrics", "si_sdr", "--host", "0.0.0.0")
    assert (code, out) == (2, "") and "--token-env" in err
    with socket.create_server(("127.0.0.1", 0)) as busy:
        code, out, err = cli("serve", "--metrics", "no-such", "--port", str(busy.getsockname()[1]))
    assert (code, out) == (2, "") and "--port 0" in err
    code, out, err = cli("serve", "--metrics", "no-such", "--reward", "nowhere.yaml", "--port", "0")
    assert (code, out) == (2, "") and "nowhere.yaml" in err
    code, out, err = cli("serve", "--metrics", "si_sdr", "--host", "0.0.0.0", "--token-env", "NO_SUCH_VARIABLE")
    assert (code, out) == (2, "") and "NO_SUCH_VARIABLE" in err
