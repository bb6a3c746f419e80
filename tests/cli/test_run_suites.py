"""Whole suites through the command line: against a local server over HTTP, and with models in the same process."""

from __future__ import annotations

import base64
import importlib.util
import io
import itertools
import json
import signal
import threading
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import forked
import numpy as np
import pytest
import soundfile
from command_line import COMMAND
from local_http import Connection, LocalServer

from codec_bench.benchmark import load_benchmark, suite
from codec_bench.models import model_info
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import exchanges

pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
pytest.importorskip("aiohttp", reason="models behind an address need aiohttp")
GOLDEN = Path(__file__).parents[1] / "golden"
SUITES = ("ultraeval-understanding", "voicebench", "spoken-qa-text")
WRONG_ROW = 1  # of every split, the row that the server answers wrongly


def _golden(name):
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


miniature = _golden("miniature")
_number = itertools.count()


def _a_sound_of_its_own(_index):
    number = next(_number)
    file = io.BytesIO()
    tone = miniature.tone(number % 300, 0.1 + 0.01 * (number // 300))
    soundfile.write(file, tone, miniature.RATE_HZ, format="WAV", subtype="PCM_16")
    return file.getvalue()


# Spoken questions of different benchmarks have the same prompt, so only the sound distinguishes them.
miniature._wav = _a_sound_of_its_own


def transcribe(samples):
    """The key by which a sound is looked up: its samples as 16-bit integers."""
    return np.round(np.asarray(samples).ravel() * 32768).astype(np.int16).tobytes()


class Server(LocalServer):
    """Chat completions as OpenAI defined them, from a table of expected requests.

    The model `answers` looks up the words and the sound that it is sent; the model `judge` gives the best verdict to
    every answer but the wrong ones, in the form that the rubric asks for.
    """

    def __init__(self):
        self.table, self.requests, self.lock = {}, [], threading.Lock()
        self.stop_after, self.stopped, self.go_on = None, threading.Event(), threading.Event()
        super().__init__(Handler)
        self.url += "/v1"

    def learn(self, names, mirror):
        """Adds every question of some benchmarks to the table."""
        for name in names:
            benchmark = load_benchmark(name)
            prompt = benchmark.prompt_for(model_info("openai-chat"))
            for number, question in enumerate(benchmark.questions(mirror=mirror)):
                if question.problem is not None:
                    continue
                wrong = number % miniature.ROWS == WRONG_ROW
                answer = (miniature.wrong_answer if wrong else miniature.right_answer)(question, prompt)
                words = prompt.render(question).messages[-1].content
                key = ("".join(w for w in words if isinstance(w, str)), transcribe(question.audio.read().samples))
                # If two benchmarks ask the same question, they must expect the same answer.
                assert self.table.setdefault(key, answer) == answer

    def reply(self, body):
        parts = body["messages"][-1]["content"]
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        words = "".join(item["text"] for item in parts if item["type"] == "text")
        if body["model"] == "judge":
            return self.verdict(words)
        (sound,) = [item["input_audio"] for item in parts if item["type"] == "input_audio"]
        samples, rate = soundfile.read(io.BytesIO(base64.b64decode(sound["data"])), dtype="float64")
        assert (sound["format"], rate) == ("wav", miniature.RATE_HZ)
        return self.table[words, transcribe(samples)]

    @staticmethod
    def verdict(words):
        wrong = "qqq www zzz" in words
        if "Yes or No" in words:
            return "No" if wrong else "Yes"
        return "1" if wrong else "5"


class Handler(Connection):
    """One connection."""

    def do_POST(self):  # the name that the base class calls
        server = self.server
        body = json.loads(self.body())
        with server.lock:
            server.requests.append(body["model"])
            late = server.stop_after is not None and len(server.requests) > server.stop_after
        if late:
            server.stopped.set()
            server.go_on.wait(60)
        message = {"role": "assistant", "content": server.reply(body)}
        built = {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 5},
        }
        self.send_json(200 if self.path == "/v1/chat/completions" else 404, built)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror")
    for name in {name for which in SUITES for name in suite(which)}:
        miniature.build(name, folder)
    return folder


@pytest.fixture
def server(tmp_path):
    built = Server()
    (tmp_path / "judge.yaml").write_text(
        f"version: 1\nsummary: The judge of the test.\nkind: openai-chat\n"
        f"options: {{base_url: '{built.url}', model: judge}}\n"
    )
    yield built
    built.go_on.set()
    built.close()


def arguments(which, mirror, server, out, *more):
    return [
        "run", "--suite", which, "--model", "openai-chat", "--data", mirror, "--out", out, "--judge", "./judge.yaml",
        "--set", f"openai-chat.base_url={server.url}", "--set", "openai-chat.model=answers", "--workers", "1", "--json",
        *more,
    ]  # fmt: skip


def numbers(printed):
    """Every value, interval and count by benchmark and metric, and the reason where there is no value; not what judges
    cost.
    """
    rows = json.loads(printed)["benchmarks"]
    for metric in (metric for row in rows for metric in row["metrics"].values()):
        metric.pop("judging", None)
    return {row["benchmark"]: (row["metrics"], row["failures"]["items"], row["failures"]["reasons"]) for row in rows}


def verdicts(which, folder, name, benchmark):
    """The primary metric's result for each row of each split: `best`, `worse` or a status."""
    with closing(open_run(folder / which / name / "openai-chat")) as run:
        facts = run.metrics[benchmark.primary]
        low, high = facts["range"]
        best = 100.0 if benchmark.primary.startswith("bleu") else high if facts["higher_is_better"] else low
        result = defaultdict(set)
        for number, score in enumerate(run.scores("openai-chat", benchmark.primary)):
            details = (
                score.status if score.status != "ok" else "best" if score.value == pytest.approx(best) else "worse"
            )
            result[number % miniature.ROWS].add(details)
    return dict(result)


def query(which, mirror, server, command, tmp_path):
    """Runs a suite, checks its answers and values, and runs it again from the cache; gives what it printed."""
    names = suite(which)
    server.learn(names, mirror)
    code, out, err = command(*arguments(which, mirror, server, "first", "--reuse-answers"))
    assert code == 3, err  # every split has a row without sound
    rows = {row["benchmark"]: row for row in json.loads(out)["benchmarks"]}
    assert sorted(rows) == sorted(names)
    assert server.requests.count("answers") == len(server.table)
    for name in names:
        benchmark = load_benchmark(name)
        entry = rows[name]["metrics"][benchmark.primary]
        assert entry["n"] + entry["failed"] == sum(1 for _ in benchmark.questions(mirror=mirror))
        text = verdicts("first", tmp_path, name, benchmark)
        assert [text[row] for row in (0, 2, 3, miniature.NO_SOUND)] == [{"best"}, {"best"}, {"best"}, {"failed"}], name
        assert text[WRONG_ROW] <= {"worse", "unparsed"}, name
        without_answer = {"undefined", "unparsed"} if "reference" in benchmark.data.columns else {"best"}
        assert text[miniature.NO_REFERENCE] <= without_answer | (
            {"best"} if "rating" in benchmark.primary else set()
        ), name
    requested = len(server.requests)
    _, again, _ = command(*arguments(which, mirror, server, "second", "--reuse-answers"))
    assert len(server.requests) == requested
    assert numbers(again) == numbers(out)
    return out


@pytest.mark.parametrize("which", SUITES[:-1])
def test_a_suite_is_queried_over_http_and_then_answered_by_the_cache(which, mirror, server, command, tmp_path):
    query(which, mirror, server, command, tmp_path)


def test_a_suite_that_was_killed_goes_on_where_it_was(mirror, server, command, tmp_path):
    which = SUITES[-1]
    complete = query(which, mirror, server, command, tmp_path)
    options = [str(item) for item in arguments(which, mirror, server, "killed", "--no-cache")]
    all_of_it = len(server.requests)
    server.requests.clear()
    server.stop_after = all_of_it // 2
    stopped = forked.start([*COMMAND, *options], cwd=tmp_path)
    assert server.stopped.wait(60)
    stopped.send_signal(signal.SIGKILL)
    assert stopped.wait(30) == -signal.SIGKILL
    server.stop_after = None
    server.go_on.set()
    server.requests.clear()
    code, out, err = command(*options)
    assert code == 3, err
    assert 0 < len(server.requests) < all_of_it  # questions that are in the record are not sent again
    assert numbers(out) == numbers(complete)


def test_a_suite_with_a_tiny_network_in_the_same_process(mirror, command, tmp_path):
    pytest.importorskip("transformers")
    _golden("tiny_audio_models").write_qwen2_audio(tmp_path / "tiny")
    # The prompts of this family ask for plain words, because a model with random weights does not write JSON.
    facts = "family: qwen2-audio\noptions: {weights: ./tiny, device: cpu, dtype: float32, parameters: {max_tokens: 4}}"
    (tmp_path / "tiny.yaml").write_text(f"version: 1\nsummary: A small one.\nkind: transformers\n{facts}\n")
    which = "ultraeval-understanding"
    code, out, err = command(
        "run", "--suite", which, "--model", "./tiny.yaml", "--data", mirror, "--limit", "2", "--json", "--out", "once"
    )
    assert code == 3, err
    rows = json.loads(out)["benchmarks"]
    assert sorted(row["benchmark"] for row in rows) == sorted(suite(which))
    text = set()
    for row in rows:
        entry = row["metrics"][row["primary"]]
        assert entry["n"] + entry["failed"] == 2
        # The only failures are rows without sound: the model answered all requests.
        assert reasons_of_whole_items(row) <= {"the row has no sound in 'audio'"}
        with closing(open_run(tmp_path / "once" / row["benchmark"] / "tiny")) as run:
            text |= {exchange.answer.text for exchange in exchanges(run) if exchange.answer.status == "ok"}
    assert len(text) >= 5  # it hears the sounds: different sounds give different answers


def test_the_recognition_sets_of_a_suite_with_a_recogniser(mirror, command, tmp_path):
    pytest.importorskip("pocketsphinx")
    facts = "inputs: [audio]\nreads: fields\noptions: {feature: pocketsphinx}"
    (tmp_path / "ear.yaml").write_text(f"version: 1\nsummary: A small one.\nkind: recogniser\n{facts}\n")
    names = [name for name in suite("ultraeval-understanding") if load_benchmark(name).category == "ASR"]
    code, out, err = command(
        "run", ",".join(names), "--model", "./ear.yaml", "--data", mirror, "--limit", "2", "--json", "--out", "run"
    )
    assert code == 3, err
    rows = {row["benchmark"]: row for row in json.loads(out)["benchmarks"]}
    assert sorted(rows) == sorted(names)
    for name, row in rows.items():
        entry = row["metrics"][row["primary"]]
        assert entry["n"] + entry["failed"] == 2
        assert reasons_of_whole_items(row) <= {"the row has no sound in 'audio'"}, name
    # The answers are tones, so the recogniser returns random words, or none.
    assert all(
        row["metrics"][row["primary"]]["value"] > 0.5 for row in rows.values() if row["metrics"][row["primary"]]["n"]
    )


def reasons_of_whole_items(row):
    return {reason["reason"] for reason in row["failures"]["reasons"] if reason["metric"] is None}
