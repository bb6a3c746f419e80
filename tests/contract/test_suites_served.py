"""Whole suites against a real `transformers serve` and a judge over HTTP, killed at random moments and continued."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from zlib import crc32

import miniature
import pytest
import tiny_audio_models
import yaml
from kills import COMMAND, rows_of
from tiny_server import serving

from codec_bench import open_run
from codec_bench.benchmark import suite
from codec_bench.store.answers import exchanges

SUITES = ("audiobench-scene", "air-bench-foundation-official")
REQUESTS = [*(name for one in SUITES for name in suite(one)), "air-bench-chat"]
KILLS = 3
SEED = 5


class Judge(BaseHTTPRequestHandler):
    """Verdicts that follow from the request: a rating, a pair of ratings, or the letter of an option, and now and
    then prose.
    """

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        requests = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        draw = crc32(requests.encode())
        text = f"As the reference has it.\nRating: {draw % 6}"
        if "rating of the first answer" in requests:
            text = f"{1 + draw % 10} {1 + draw // 10 % 10}"
        elif "letter" in requests:
            text = "ABCD"[draw % 4]
        elif "Rating: 0" in requests or "0 or 1" in requests:
            text = f"Rating: {draw % 2}"
        if draw % 13 == 0:
            text = "I would rather not say."
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self._reply(200, {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})

    def do_GET(self):
        self._reply(404, {})

    def _reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Says nothing of connections that a kill broke."""

    def handle_error(self, *args):
        pass


@contextmanager
def judging():
    """The address of the judge."""
    server = Server(("127.0.0.1", 0), Judge)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def start(folder, out, url):
    requested = ["run", ",".join(REQUESTS), "--model", "transformers-serve", "--judge", "./judge.yaml"]
    requested += ["--data", "mirror", "--limit", "4", "--out", str(out)]
    # AIR-Bench leaves the decoding to each model; only greedy answers can be compared.
    options = {"base_url": url, "model": str(folder / "tiny"), "parameters.max_tokens": 6, "parameters.temperature": 0}
    more = [item for name, value in options.items() for item in ("--set", f"transformers-serve.{name}={value}")]
    return subprocess.Popen(
        [*COMMAND, *requested, *more, "--no-cache", "--workers", "1"], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=(folder / "errors").open("w"), env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def ended(process, folder):
    """Waits for the end; there is a failure in every benchmark of miniature data, which the exit code says."""
    code = process.wait(300)
    text = (folder / "errors").read_text("utf-8", "replace")
    assert code == 3 and "Traceback" not in text, f"ended with {code}:\n{text[-3000:]}"


def record_of(out):
    """Every answer and every score, by benchmark."""
    by_name = {}
    for name in REQUESTS:
        with closing(open_run(out / name / "transformers-serve")) as run:
            answers = {e.question.id: (e.answer.status, e.answer.text, e.answer.reason) for e in exchanges(run)}
        by_name[name] = (answers, rows_of(out / name))
    return by_name


@pytest.mark.long
def test_suites_that_are_killed_and_continued_end_with_the_same_record(tmp_path):
    tiny_audio_models.write_qwen2_audio(tmp_path / "tiny")
    for name in REQUESTS:
        miniature.build(name, tmp_path / "mirror")
    rng = random.Random(SEED)
    with serving(tmp_path / "tiny") as url, judging() as judge:
        held = {
            "version": 1,
            "kind": "openai-chat",
            "summary": "Judges.",
            "inputs": ["text"],
            "outputs": ["text"],
            "options": {"base_url": judge, "model": "judge"},
        }
        (tmp_path / "judge.yaml").write_text(yaml.safe_dump(held))
        started = time.monotonic()
        ended(start(tmp_path, "calm", url), tmp_path)
        took_s = time.monotonic() - started
        kills = 0
        for _ in range(KILLS):
            process = start(tmp_path, "killed", url)
            time.sleep(rng.uniform(0.15, 0.5) * took_s)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
        ended(start(tmp_path, "killed", url), tmp_path)
    calm = record_of(tmp_path / "calm")
    assert kills >= 2 and record_of(tmp_path / "killed") == calm
    texts = {text for answers, _ in calm.values() for status, text, _ in answers.values() if status == "ok"}
    verdicts = [
        status
        for _, rows in calm.values()
        for (_, _, metric), (_, status, _, _) in rows.items()
        if metric.startswith("rating")
    ]
    assert len(texts) > 5 and {"ok", "unparsed"} <= set(verdicts), "the model and the judge say different things"
    sys.stdout.write(
        f"{len(calm)} benchmarks, {sum(len(a) for a, _ in calm.values())} questions, {took_s:.0f} s, {kills} kills\n"
    )
