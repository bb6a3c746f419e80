"""The warm scorer on Ray Serve: a replica passes requests on, references are those of all replicas, a local cluster."""

from __future__ import annotations

import asyncio
import base64
import shutil
import socket
import tempfile

import httpx
import numpy as np
import pytest
import yaml

from codec_bench import Audio, Scorer, load_metric
from codec_bench.apps.serving.items import wav_bytes
from codec_bench.messages.errors import UserError

RATE_HZ = 16_000
MISSING = "Ray Serve is not installed (the extra ray)"


@pytest.fixture(scope="module", autouse=True)
def application():
    """The module of the application; only the process that runs these tests imports Ray, which takes 70 MB."""
    # Ray is imported for a second before it says that this is missing.
    pytest.importorskip("grpc_reflection", reason=MISSING)
    pytest.importorskip("ray.serve", reason=MISSING, exc_type=ImportError)
    from codec_bench.apps.serving import ray

    return ray


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    clean = (0.3 * np.sin(np.arange(RATE_HZ) / 20)).astype(np.float32)
    return clean, (clean + 0.01 * rng.standard_normal(RATE_HZ)).astype(np.float32)


@pytest.fixture(scope="module")
def value(pair):
    clean, noisy = (Audio(samples, RATE_HZ) for samples in pair)
    return load_metric("si_sdr", device="cpu")(estimate=[noisy], reference=[clean])[0]["si_sdr"].value


def body(noisy, **more):
    return {
        "waveform_f32_base64": base64.b64encode(noisy.astype("<f4").tobytes()).decode(),
        "sample_rate_hz": RATE_HZ,
        **more,
    }


class Handle:
    """The handle of a deployment that is here."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        method = getattr(self._target, name)
        return type("Method", (), {"remote": staticmethod(method)})


async def use(client_of, pair, value):
    """What a service answers through two clients, whose references are the same."""
    clean, noisy = pair
    first, second = client_of(0), client_of(1)
    reply = await first.put("/v1/references/a%20voice", content=wav_bytes(clean, RATE_HZ, "reference"))
    assert reply.status_code == 201
    for client in (first, second):
        reply = await client.post("/v1/score", json=body(noisy, reference_id="a voice", id="x"))
        assert reply.status_code == 200, reply.text
        assert reply.json()["scores"]["si_sdr"]["value"] == pytest.approx(value, rel=1e-5)
    reply = await second.post("/v1/reward", json=body(noisy, reference_id="a voice"))
    assert reply.json()["score"] == pytest.approx(value, rel=1e-5)
    reply = await first.post("/v1/scores", content=b'{"id": "bad"}\nno json\n')
    assert sorted(line.count('"error"') for line in reply.text.splitlines()) == [1, 1]
    assert (await second.delete("/v1/references/a%20voice")).status_code == 204
    for client in (first, second):
        reply = await client.post("/v1/score", json=body(noisy, reference_id="a voice"))
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_reference")
    assert (await first.put("/v1/references/b", content=b"junk")).status_code == 422
    assert (await first.get("/readyz")).status_code == 200


def test_replicas_answer_as_one_service(application, pair, value, monkeypatch):
    """Both have one scorer here, which holds no reference."""
    from starlette.requests import Request

    scorer, references = Scorer("si_sdr", device="cpu", workers=1), application.References()
    monkeypatch.setattr(application, "Scorer", lambda *_, **__: scorer)
    arguments = application.Arguments(metrics="si_sdr", reward="si_sdr")
    replicas = [application.Replica(arguments, Handle(references)) for _ in range(2)]

    def client_of(number):
        async def app(scope, receive, send):
            await (await replicas[number](Request(scope, receive)))(scope, receive, send)

        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://replica")

    async def main():
        try:
            await use(client_of, pair, value)
            replicas[0].check_health()
        finally:
            for replica in replicas:
                await replica.close()
        with pytest.raises(RuntimeError):
            replicas[0].check_health()

    asyncio.run(main())


def test_a_cluster_gets_one_replica_a_gpu(application, tmp_path, monkeypatch):
    """Options come as texts from `serve run`."""
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    for gpus, options, replicas in ((3, {}, 3), (0, {}, 1), (0, {"replicas": "2", "cpus": "4"}, 2)):
        monkeypatch.setattr("ray.cluster_resources", lambda gpus=gpus: {"CPU": 8.0, "GPU": float(gpus)})
        result = application.deployment({"metrics": "si_sdr", **options})._bound_deployment
        assert result.num_replicas == replicas
        used = result.ray_actor_options
        assert (used["num_gpus"], used["num_cpus"]) == (1 if gpus else 0, int(options.get("cpus", 1)))
    terms = {"terms": {"fidelity": {"metric": "si_sdr"}}}
    (tmp_path / "reward.yaml").write_text(yaml.safe_dump(terms))
    result = application.deployment({"metrics": "si_sdr", "reward": str(tmp_path / "reward.yaml")})._bound_deployment
    assert result.init_args[0].reward == terms
    for options in ({}, {"metrics": "si_sdr", "replicas": "many"}, {"metrics": "si_sdr", "gpus": "1"}):
        with pytest.raises(UserError):
            application.deployment(options)


@pytest.mark.long
def test_a_local_cluster(application, pair, value, monkeypatch):
    import ray
    from ray import serve

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    folder = tempfile.mkdtemp(prefix="ray")  # a cluster beside others; paths of sockets must be short
    ray.init(
        "local", num_cpus=4, num_gpus=0, include_dashboard=False, object_store_memory=100 << 20, _temp_dir=folder,
        log_to_driver=False,
    )  # fmt: skip
    try:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        serve.start(http_options={"port": port, "host": "127.0.0.1"})
        serve.run(application.deployment({"metrics": "si_sdr", "reward": "si_sdr", "replicas": "2"}))

        def client_of(number):
            return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60)

        asyncio.run(use(client_of, pair, value))
    finally:
        serve.shutdown()
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
