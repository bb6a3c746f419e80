"""The option nearest to an answer, where the embeddings come through the proxy of the package litellm, which speaks as
OpenAI does.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from codec_bench.benchmark.judge.metric import load_judge_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.models import load_model

CASES = json.loads((Path(__file__).parents[2] / "golden" / "text" / "mmau_pro_nearest.json").read_text("utf-8"))[
    "cases"
]
STARTS_S = 120


class Embeddings(BaseHTTPRequestHandler):
    """The server behind the proxy; its embeddings are those that the golden file was made with."""

    def do_POST(self):
        requests = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = [
            {"object": "embedding", "index": n, "embedding": embedding(text)}
            for n, text in enumerate(requests["input"])
        ]
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        reply = json.dumps({"object": "list", "model": requests["model"], "data": data, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


def embedding(text):
    pairs = f"^{text}$"
    counts = [zlib.crc32(pairs[at : at + 2].encode()) % 32 for at in range(len(pairs) - 1)]
    return np.bincount(counts, minlength=32).astype(float).tolist()


def free_port():
    with socket.socket() as parameters:
        parameters.bind(("127.0.0.1", 0))
        return parameters.getsockname()[1]


@contextmanager
def proxy(folder, backend):
    """The address of the proxy, in an environment of its own."""
    from uv import find_uv_bin

    uv = find_uv_bin()
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), "litellm[proxy]"], check=True)
    behind = {"model": "openai/nv-embed", "api_base": f"{backend}/v1", "api_key": "none"}
    config = {"model_list": [{"model_name": "nvidia/NV-Embed-v2", "litellm_params": behind}]}
    (folder / "proxy.yaml").write_text(json.dumps(config))
    port = free_port()
    options = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    command = [
        python.with_name("litellm"),
        "--config",
        folder / "proxy.yaml",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(list(map(str, command)), env={**os.environ, **options}, stdout=log, stderr=log)
    try:
        for _ in range(STARTS_S):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=2).close()
                break
            except OSError:
                time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.terminate()
        running.wait()


@pytest.mark.install
def test_a_hundred_answers_are_read_as_the_authors_program_reads_them(tmp_path):
    backend = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    Thread(target=backend.serve_forever, daemon=True).start()
    metric = load_judge_metric("rating[mmau-pro-nearest-official]", "judge")

    async def judged(url):
        model = load_model("nv-embed-v2", {"base_url": url})
        await model.start()
        results = []
        for case in (case["input"] for case in CASES):
            fields = {"question": "What is heard?", "choices": case["choices"]}
            options = Answer("q1", case["answer"], (case["reference"],), fields, "en", case["answer"])
            (requested,) = metric.requests(options, None, 0)
            score = metric.score(options, 1, {requested.id: await model.ask(requested)})
            results.append({"option": score.detail.get("option"), "score": score.value})
        await model.close()
        return results

    try:
        with proxy(tmp_path, f"http://127.0.0.1:{backend.server_port}") as url:
            assert asyncio.run(judged(url)) == [case["expected"] for case in CASES]
    finally:
        backend.shutdown()
        backend.server_close()
