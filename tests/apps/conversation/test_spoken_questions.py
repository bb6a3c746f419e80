"""A benchmark's questions spoken in time: which audio is sent, and how the recorded answers are scored."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile
import yaml
from refusals import refuses

from codec_bench import converse
from codec_bench.apps.conversation.full_duplex import WORDS

from .conftest import MODEL
from .server import RATE_HZ, Plan, tone

JUDGE = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Judge(Model):
    info = ModelInfo("planted", inputs=("text",), outputs=("text",), reads="messages")
    identity = {"planted": "1"}

    async def ask(self, request):
        told = request.messages[-1].content[-1]
        return Response(text="Yes" if "valid" in told.split("<answer")[1] and "invalid" not in told else "No")
"""


@pytest.fixture
def benchmark(tmp_path):
    """Big Bench Audio's own definition over three questions of tones."""
    from codec_bench.benchmark import load_benchmark

    folder = tmp_path / "bench"
    folder.mkdir()
    rows = []
    for number, answer in enumerate(("valid", "invalid", "3")):
        soundfile.write(
            folder / f"{number}.wav",
            np.concatenate([tone(0.5 + 0.2 * number, 200.0), tone(0.2, 1.0, level=0.0)]),
            RATE_HZ,
        )
        rows.append({"id": str(number), "audio": f"{number}.wav", "official_answer": answer, "category": "c"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    document = {
        "version": 1, "name": "bench", "title": "t", "summary": "s", "category": "Speech QA", "kind": "qa",
        "language": "en", "licence": "MIT",
        "wants": "text", "data": {"path": "rows.jsonl",
            "columns": {"audio": "audio", "reference": "official_answer", "id": "id"}},
        "prompt": "spoken-question", "primary": "rating[big-bench-audio]",
        "metrics": list(load_benchmark("big-bench-audio").metrics),
    }  # fmt: skip
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(document))
    (folder / "README.md").write_text("# bench\n")
    return folder / "benchmark.yaml"


def test_the_questions_are_sent_and_the_transcribed_answers_marked(benchmark, service, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    options, _ = service({"": Plan()})
    run = converse(model=MODEL, scripts=str(benchmark), out=tmp_path / "run", options={MODEL: options}, page=False)
    sessions = run.sessions[MODEL]
    assert [one.id for one in sessions] == ["00000-rows_0", "00001-rows_1", "00002-rows_2"] and not run.faults
    for number, one in enumerate(sessions):
        spoken = tone(0.5 + 0.2 * number, 200.0)
        begin = round(0.5 * RATE_HZ)
        assert np.abs(one.user[begin : begin + spoken.size].astype(int) - spoken).max() <= 1
    for one, text in zip(sessions, ("the argument is valid", "it is valid", "there are four")):
        chunks = [{"text": word, "timestamp": [2.0 + n, 2.5 + n]} for n, word in enumerate(text.split())]
        (run.folder / "sessions" / MODEL / one.id / WORDS).write_text(json.dumps({"chunks": chunks}))
    built = converse(remark=True, out=run.folder, page=False, judge="./judge.py:Judge")
    by_name = {
        name: [v.value for v in built.values[MODEL] if v.measure == name]
        for name in ("answer_matches", "answer_right", "turn_taken")
    }
    assert by_name == {"answer_matches": [1, 0, 0], "answer_right": [1, 0, 0], "turn_taken": [1, 1, 1]}


def test_big_bench_audio_is_known_and_others_state_why_not(service, tmp_path, monkeypatch):
    from codec_bench.apps.conversation import judged as spoken_questions
    from codec_bench.benchmark.definition.base import Question
    from codec_bench.benchmark.definition.benchmark import Benchmark

    requests = {
        "model": MODEL,
        "out": tmp_path / "run",
        "options": {MODEL: {"base_url": "ws://127.0.0.1:9", "key_env": None}},
    }
    monkeypatch.setattr(Benchmark, "questions", lambda self, limit=None: [Question("q", references=("a",))][:limit])
    with refuses("question_unspeakable", id="q", benchmark="big-bench-audio"):
        converse(scripts="big-bench-audio", limit=1, **requests)
    assert spoken_questions.RULE == "accuracy[answer-match]"
