"""How likely a model finds two sounds: what it is given, what it may give back, and who is not asked at all."""

import asyncio
import io
import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from codec_bench import run_benchmark
from codec_bench.errors import UserError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.likelihood import LikelihoodModel, told, weighed
from codec_bench.types import Request, Response

WRITTEN = '''
import numpy as np

from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.likelihood import LikelihoodModel
from codec_bench.types import Response


class Low(LikelihoodModel):
    """Finds low tones likely."""

    info = ModelInfo("low")
    identity = {"version": 1}

    def log_likelihood(self, request):
        samples = request.fields["audio"].signal(16000)[0].samples[0]
        return -np.float32(np.abs(np.fft.rfft(samples)).argmax())


class Words(Model):
    """Answers, and cannot weigh."""

    info = ModelInfo("words")
    identity = {"version": 1}

    async def ask(self, request):
        raise AssertionError("it must not be asked")
'''


class Given(LikelihoodModel):
    info = ModelInfo("given")

    @property
    def identity(self):
        return {"version": 1}

    def __init__(self, values):
        self.values, self.seen, self.busy = list(values), [], threading.Lock()

    def log_likelihood(self, request):
        assert self.busy.acquire(blocking=False), "two calls at once"
        self.seen.append(request)
        self.busy.release()
        return self.values.pop(0)


def ask(model, sounds=("a", "b")):
    return asyncio.run(weighed(model, Request("x", (), dict(zip(("preferred", "other"), sounds)), "likelihood")))


def test_each_sound_is_given_by_itself_and_a_tensor_is_a_number():
    model = Given([np.float64(-2.5), np.array([-3])[0]])
    response = ask(model)
    assert response.status == "ok" and json.loads(response.text) == {"preferred": -2.5, "other": -3.0}
    assert [request.fields["audio"] for request in model.seen] == ["a", "b"]
    assert [request.messages[0].content for request in model.seen] == [("a",), ("b",)]
    assert [request.id for request in model.seen] == ["x/preferred", "x/other"]


@pytest.mark.parametrize("value", [None, "likely", float("nan"), float("-inf"), True, [1.0, 2.0]])
def test_what_is_no_finite_number_fails(value):
    response = ask(Given([-1.0, value]))
    assert response.status == "failed" and "the sound 'other'" in response.reason


def test_one_call_at_a_time():
    model = Given([-1.0] * 40)

    async def many():
        request = Request("x", (), {"preferred": "a", "other": "b"}, "likelihood")
        return await asyncio.gather(*(weighed(model, request) for _ in range(20)))

    assert {response.status for response in asyncio.run(many())} == {"ok"}
    assert ask(model, sounds=("a",)).reason == "the request has no sound 'other' to weigh"


def test_a_model_that_answers_may_weigh_too():
    class Both(Model):
        info = ModelInfo("both", outputs=("text",))

        @property
        def identity(self):
            return {"version": 1}

        async def ask(self, request):
            return Response(text="yes")

        def log_likelihood(self, request):
            return -1.0

    assert told(Both()).outputs == ("text", "likelihood")
    assert told(Given([])).outputs == ("likelihood",)
    assert asyncio.run(Given([]).ask(Request("x"))).status == "refused"


def tone(hz):
    file = io.BytesIO()
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * hz * np.arange(1600) / 16_000), 16_000, format="WAV")
    return {"bytes": file.getvalue(), "path": f"{hz}.wav"}


def test_a_set_is_run_by_one_call_and_who_cannot_weigh_is_not_asked(tmp_path, monkeypatch):
    name = "salmon-room-consistency"
    table = tmp_path / "slprl" / "SALMon" / "rir_consistency" / "train-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    pairs = [(300, 400), (400, 300), (300, 300), (300, None)]
    sides = [[None if hz is None else tone(hz) for hz in side] for side in zip(*pairs)]
    pq.write_table(pa.table(dict(zip(("positive_audio", "negative_audio"), sides))), table)
    card = "---\nconfigs:\n- config_name: rir_consistency\n  data_files:\n  - {split: train, path: rir_consistency/train-*}\n---\n"
    (tmp_path / "slprl" / "SALMon" / "README.md").write_text(card)
    (tmp_path / "mine.py").write_text(WRITTEN)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    how = {"benchmark": name, "data": tmp_path, "out": tmp_path / "run"}
    (run,) = run_benchmark(model=f"{tmp_path}/mine.py:Low", **how).runs.values()
    scores = list(run.scores("low", "pair_accuracy"))
    assert [score.value for score in scores] == [1.0, 0.0, 0.5, None]
    assert "the row has no sound in 'other_audio'" in scores[3].reason
    with pytest.raises(UserError, match="the model 'words' has no method log_likelihood"):
        run_benchmark(model=f"{tmp_path}/mine.py:Words", **how)
    with pytest.raises(UserError, match="nothing can be given in place of one"):
        run_benchmark(model=f"{tmp_path}/mine.py:Low", sound="silence", **how)
