"""How likely a model finds two sounds: its input, valid results, and models without likelihoods."""

import asyncio
import io
import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from refusals import refuses

from codec_bench import run_benchmark
from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.batching import BatchModel
from codec_bench.models.likelihood import LikelihoodBatchModel, LikelihoodModel, facts_of, pair_likelihoods
from codec_bench.types import Audio, Request, Response

WRITTEN = '''
import numpy as np

from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.likelihood import LikelihoodBatchModel, LikelihoodModel
from codec_bench.types import Response


class Low(LikelihoodModel):
    """Finds low tones likely."""

    info = ModelInfo("low")
    identity = {"version": 1}

    def log_likelihood(self, request):
        samples = request.fields["audio"].signal(16000)[0].samples[0]
        return -np.float32(np.abs(np.fft.rfft(samples)).argmax())


class Lows(LikelihoodBatchModel):
    """Low, for many sounds in one pass."""

    info = ModelInfo("lows")
    identity = {"version": 1}

    def log_likelihoods(self, batch):
        return [Low().log_likelihood(request) for request in batch]


class Words(Model):
    """Answers, and cannot weigh."""

    info = ModelInfo("words")
    identity = {"version": 1}

    async def ask(self, request):
        raise AssertionError("it must not be asked")
'''


class Scripted(LikelihoodModel):
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
    return asyncio.run(
        pair_likelihoods(model, Request("x", (), dict(zip(("preferred", "other"), sounds)), "likelihood"))
    )


def test_each_sound_is_passed_by_itself_and_a_tensor_is_a_number():
    model = Scripted([np.float64(-2.5), np.array([-3])[0]])
    response = ask(model)
    assert response.status == "ok" and json.loads(response.text) == {"preferred": -2.5, "other": -3.0}
    assert [request.fields["audio"] for request in model.seen] == ["a", "b"]
    assert [request.messages[0].content for request in model.seen] == [("a",), ("b",)]
    assert [request.id for request in model.seen] == ["x/preferred", "x/other"]


@pytest.mark.parametrize("value", [None, "likely", float("nan"), float("-inf"), True, [1.0, 2.0]])
def test_what_is_no_finite_number_fails(value):
    response = ask(Scripted([-1.0, value]))
    assert response.status == "failed" and response.reason.code == "likelihood_not_finite"


def test_one_call_at_a_time():
    model = Scripted([-1.0] * 40)

    async def many():
        request = Request("x", (), {"preferred": "a", "other": "b"}, "likelihood")
        return await asyncio.gather(*(pair_likelihoods(model, request) for _ in range(20)))

    assert {response.status for response in asyncio.run(many())} == {"ok"}
    assert ask(model, sounds=("a",)).reason == Diagnostic("no_sound_to_weigh", name="other")


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

    assert facts_of(Both()).outputs == ("text", "likelihood")
    assert facts_of(Scripted([])).outputs == ("likelihood",)
    assert asyncio.run(Scripted([]).ask(Request("x"))).status == "refused"


class Many(LikelihoodBatchModel):
    """The mean of the samples; it has memory for three sounds, and gives no number for silence."""

    info = ModelInfo("many", limit_s=0.01, window_s=0.005)
    concurrency = 40

    @property
    def identity(self):
        return {"version": 1}

    def __init__(self, gives=lambda values: values):
        self.gives, self.sizes = gives, []

    def log_likelihoods(self, batch):
        if len(batch) > 3:
            raise MemoryError
        self.sizes.append(len(batch))
        means = [float(request.fields["audio"].read().samples.mean()) for request in batch]
        return self.gives([mean if mean else None for mean in means])


def level(value, count=1600):
    return Clip(Audio(np.full(count, value, np.float32), 16_000))


async def all_pairs(model, pairs):
    requests = [Request(str(at), (), {"preferred": a, "other": b}, "likelihood") for at, (a, b) in enumerate(pairs)]
    responses = await asyncio.gather(*(pair_likelihoods(model, request) for request in requests))
    await model.close()
    return responses


def test_many_sounds_are_weighed_in_one_pass_and_each_as_by_itself():
    levels = [-at / 64 for at in range(1, 41)]
    pairs = [(level(one, 800 + 100 * at), level(2 * one)) for at, one in enumerate(levels[:20])]
    model = Many()
    responses = asyncio.run(all_pairs(model, pairs))
    assert [json.loads(response.text) for response in responses] == [
        {"preferred": one, "other": 2 * one} for one in levels[:20]
    ]
    assert sum(model.sizes) == 40 and max(model.sizes) >= 2 and len(model.sizes) < 40
    alone = [asyncio.run(all_pairs(Many(), [pair]))[0].text for pair in pairs]
    assert alone == [response.text for response in responses]
    assert facts_of(model).outputs == ("likelihood",)
    assert [one.status for one in model.answer([Request("x")] * 2)] == ["refused"] * 2


def test_one_sound_without_a_number_fails_its_pair_alone():
    responses = asyncio.run(all_pairs(Many(), [(level(-0.5), level(0.0)), (level(-0.5), level(-0.25))]))
    assert [response.status for response in responses] == ["failed", "ok"]
    assert responses[0].reason.as_dict() == {"code": "likelihood_not_finite", "name": "other", "value": None}
    (response,) = asyncio.run(all_pairs(Many(lambda values: values[1:]), [(level(-0.5), level(-0.25))]))
    assert response.status == "failed" and response.reason.as_dict() == {
        "code": "answers_miscounted",
        "answers": 0,
        "requests": 1,
    }


def test_a_model_that_answers_in_batches_may_weigh_too():
    class Both(BatchModel):
        info = ModelInfo("both", outputs=("text",))

        @property
        def identity(self):
            return {"version": 1}

        def answer(self, batch):
            return [Response(text="yes") for _ in batch]

    class Weighs(Both):
        def log_likelihoods(self, batch):
            return np.array([-1.0] * len(batch), np.float32)

    assert facts_of(Both()).outputs == ("text",) and facts_of(Weighs()).outputs == ("text", "likelihood")
    (response,) = asyncio.run(all_pairs(Weighs(), [(level(-0.5), level(-0.25))]))
    assert json.loads(response.text) == {"preferred": -1.0, "other": -1.0}


def tone(hz):
    file = io.BytesIO()
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * hz * np.arange(1600) / 16_000), 16_000, format="WAV")
    return {"bytes": file.getvalue(), "path": f"{hz}.wav"}


def test_a_set_is_run_by_one_call_and_a_model_without_likelihoods_is_not_queried(tmp_path, monkeypatch):
    name = "salmon-room-consistency"
    table = tmp_path / "slprl" / "SALMon" / "rir_consistency" / "train-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    pairs = [(300, 400), (400, 300), (300, 300), (300, None)]
    sides = [[None if hz is None else tone(hz) for hz in role] for role in zip(*pairs)]
    pq.write_table(pa.table(dict(zip(("positive_audio", "negative_audio"), sides))), table)
    card = (
        "---\nconfigs:\n- config_name: rir_consistency\n  data_files:\n"
        "  - {split: train, path: rir_consistency/train-*}\n---\n"
    )
    (tmp_path / "slprl" / "SALMon" / "README.md").write_text(card)
    (tmp_path / "mine.py").write_text(WRITTEN)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    options = {"benchmark": name, "data": tmp_path, "out": tmp_path / "run"}
    (run,) = run_benchmark(model=f"{tmp_path}/mine.py:Low", **options).runs.values()
    scores = list(run.scores("low", "pair_accuracy"))
    assert [score.value for score in scores] == [1.0, 0.0, 0.5, None]
    assert scores[3].reason.as_dict() == {"code": "row_without_sound", "field": "other_audio", "path": ""}
    (run,) = run_benchmark(model=f"{tmp_path}/mine.py:Lows", **options).runs.values()
    assert [(score.value, score.reason) for score in run.scores("lows", "pair_accuracy")] == [
        (score.value, score.reason) for score in scores
    ]
    with refuses("likelihood_needed", model="words"):
        run_benchmark(model=f"{tmp_path}/mine.py:Words", **options)
    with refuses("control_of_two_sounds"):
        run_benchmark(model=f"{tmp_path}/mine.py:Low", sound="silence", **options)
