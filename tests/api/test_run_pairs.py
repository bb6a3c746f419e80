"""Two answers side by side, against a judge of known taste behind a local server: win rates,
orders, ties, baselines.
"""

from __future__ import annotations

import base64
import io
import json
import re
from contextlib import closing

import numpy as np
import pytest
import soundfile
import yaml
from local_http import Connection, LocalServer
from refusals import refuses

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.judging.compare import judge_compare
from codec_bench.apps.judging.strengths import OF_THE_DATA, judge_strengths
from codec_bench.stats.pairwise_preferences import Duel, strengths
from codec_bench.stats.summary import summarise

METRIC = "rating[pair-answers]"
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": [METRIC], "primary": METRIC,
}  # fmt: skip
COUNT = 12
# A model answers question n with a text as long as its entry; the judge prefers the longer one.
LENGTHS = {"long": lambda n: 40, "short": lambda n: 10, "mixed": lambda n: (60, 20, 40)[n % 3]}
MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response
class Teller(Model):
    info = ModelInfo("{name}")
    identity = {{"tells": "{name}"}}
    async def ask(self, request):
        n = int(request.messages[-1].content[0].split()[-1])
        return Response(text="x" * {lengths}[n % 3])
"""


@pytest.fixture
def taste():
    """A judge whose `says` gets the two answers, and its address."""

    class Taste:
        seen = 0

        @staticmethod
        def says(first, second):
            return "tie" if len(first) == len(second) else "first" if len(first) > len(second) else "second"

    class Chat(Connection):
        def do_POST(self):
            requests = json.loads(self.body())["messages"][-1]["content"]
            first, second = (
                re.search(rf"<{role} \w+>\n(.*?)\n</{role}", requests, re.S)[1] for role in ("first", "second")
            )
            Taste.seen += 1
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": Taste.says(first, second)},
                "finish_reason": "stop",
            }
            self.send_json(
                200, {"model": "j", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
            )

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        yield Taste, f"{http.url}/v1"


@pytest.fixture
def ask(tmp_path, monkeypatch, taste):
    """Runs the models against the judge; returns the outcome."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
    rows = [{"id": f"q{n}", "q": f"question {n}", "right": "x" * 20} for n in range(COUNT)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, lengths in LENGTHS.items():
        (tmp_path / f"{name}.py").write_text(MODEL.format(name=name, lengths=[lengths(n) for n in range(3)]))

    def run(*models, out="out", baseline=None, model_of_judge="j", also=None, **options):
        named = [str(tmp_path / f"{model}.py:Teller") for model in (*models, *([also] if also else []))]
        return run_benchmark(
            benchmark=str(folder), model=named, judge="openai-chat", out=tmp_path / out, page=False, workers=1,
            baseline=str(tmp_path / f"{baseline}.py:Teller") if baseline in LENGTHS else baseline,
            options={"openai-chat": {"base_url": taste[1], "model": model_of_judge}}, **options,
        )  # fmt: skip

    return run


def entry(outcome, model):
    (run,) = (run for (_, name), run in outcome.runs.items() if model in name)
    return summarise(run).systems[next(iter(run.systems))].metrics[METRIC]


def test_the_baseline_may_be_a_system_of_the_run(ask):
    outcome = ask("mixed", "short", "long", baseline="long")
    mixed, short = entry(outcome, "mixed"), entry(outcome, "short")
    assert (mixed.value, short.value) == (0.5, 0.0)  # 60, 20 and 40 against 40: a win, a loss and a tie of three
    assert mixed.compared.win_rate.value == pytest.approx(1 / 3) and mixed.compared.ties == pytest.approx(1 / 3)
    assert mixed.ci95[0] > 0 and mixed.ci95[1] < 1 and mixed.compared.changed == 0
    assert "beside-" in mixed.protocol and mixed.protocol != entry(ask("mixed", out="other"), "mixed").protocol
    actual = entry(outcome, "long")
    assert actual.value is None and actual.missing == {"refused": COUNT}


def test_it_may_be_an_earlier_run_or_the_expected_answer(ask, tmp_path):
    ask("long", out="kept", phase="answers")
    assert entry(ask("mixed", baseline=str(tmp_path / "kept")), "mixed").value == 0.5
    assert entry(ask("mixed", out="expected"), "mixed").value == pytest.approx((1 + 0.5 + 1) / 3)


def test_it_may_be_a_column_of_the_data(ask, tmp_path):
    definition = {
        **DEFINITION,
        "data": {**DEFINITION["data"], "columns": {**DEFINITION["data"]["columns"], "baseline": "other"}},
    }
    (tmp_path / "mine" / "benchmark.yaml").write_text(yaml.safe_dump(definition))
    rows = [{"id": f"q{n}", "q": f"question {n}", "right": "x" * 20, "other": "x" * 30} for n in range(COUNT)]
    (tmp_path / "mine" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert entry(ask("mixed", out="column"), "mixed").value == pytest.approx(
        (1 + 0 + 1) / 3
    )  # 60, 20 and 40 against 30
    # What the command names stands before the column.
    assert entry(ask("mixed", "long", out="named", baseline="long"), "mixed").value == 0.5


SPEECH = {
    "version": 1, "title": "Spoken", "summary": "Texts to be read.", "category": "TTS", "kind": "generation",
    "language": "en", "wants": "audio",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"text": "text", "audio": "sound"}, "optional": ["audio"]},
    "prompt": {"messages": [{"content": ["Read: {{ text }}"]}]}, "metrics": ["rating[pair-speech]"],
    "primary": "rating[pair-speech]",
}  # fmt: skip
READER = """
import numpy as np
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response
class Reader(Model):
    info = ModelInfo("{name}", outputs=("audio",))
    identity = {{"reads": "{name}"}}
    async def ask(self, request):
        n = int(request.messages[-1].content[0].split()[-1])
        noise = np.random.default_rng(n).normal(size=8000) * np.hanning(8000)
        return Response(audio=Audio(({levels}[n % 3] * noise / np.abs(noise).max()).astype(np.float32), 16000))
"""
LEVELS = {"loud": (0.4, 0.4, 0.4), "quiet": (0.1, 0.1, 0.1), "changing": (0.6, 0.2, 0.4)}


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Lets models read texts aloud before a judge that hears two sounds and takes the louder: the entry of a model, and
    what the judge heard.
    """
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "spoken"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(SPEECH))
    for name, levels in LEVELS.items():
        (tmp_path / f"{name}.py").write_text(READER.format(name=name, levels=levels))
    rows = []
    for n in range(COUNT):
        noise = np.random.default_rng(n).normal(size=8000) * np.hanning(8000)
        soundfile.write(folder / f"{n}.wav", 0.3 * noise / np.abs(noise).max(), 16000)
        rows.append({"id": f"t{n}", "text": f"text {n}", "sound": f"{n}.wav"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    received = []

    class Chat(Connection):
        def do_POST(self):
            parts = json.loads(self.body())["messages"][-1]["content"]
            sounds = [base64.b64decode(p["input_audio"]["data"]) for p in parts if p["type"] == "input_audio"]
            peaks = [round(float(np.abs(soundfile.read(io.BytesIO(sound))[0]).max()), 2) for sound in sounds]
            received.append(tuple(peaks))
            text = "tie" if peaks[0] == peaks[1] else "first" if peaks[0] > peaks[1] else "second"
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self.send_json(200, {"model": "j", "choices": [choice], "usage": {}})

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:

        def run(*models, baseline=None, **options):
            named = [str(tmp_path / f"{model}.py:Reader") for model in models]
            outcome = run_benchmark(
                benchmark=str(folder), model=named, judge="openai-chat", page=False, workers=1,
                **{"out": tmp_path / "out", **options},
                baseline=str(tmp_path / f"{baseline}.py:Reader") if baseline in LEVELS else baseline,
                options={"openai-chat": {"base_url": f"{http.url}/v1", "model": "j", "inputs": ["text", "audio"]}},
            )  # fmt: skip
            (result,) = (one for (_, name), one in outcome.runs.items() if models[0] in name)
            return summarise(result).systems[next(iter(result.systems))].metrics["rating[pair-speech]"], received

        yield run


def test_spoken_answers_are_compared_with_the_sound_of_the_data_in_both_orders(read):
    result, output = read("changing")
    assert (
        result.value == pytest.approx((1 + 0 + 1) / 3) and result.compared.changed == 0
    )  # 0.6, 0.2 and 0.4 against 0.3
    assert (
        sorted(set(output)) == [(0.2, 0.3), (0.3, 0.2), (0.3, 0.4), (0.3, 0.6), (0.4, 0.3), (0.6, 0.3)]
        and len(output) == 2 * COUNT
    )


def test_spoken_answers_are_compared_with_those_of_a_system_of_the_run_and_of_an_earlier_run(read, tmp_path):
    result, output = read("changing", "loud", baseline="loud")
    assert (
        result.value == 0.5
        and result.compared.ties == pytest.approx(1 / 3)
        and (0.4, 0.6) in output
        and (0.6, 0.4) in output
    )
    read("quiet", out=tmp_path / "kept")
    result, _ = read("changing", out=tmp_path / "other", baseline=str(tmp_path / "kept"))
    assert result.value == 1.0 and "beside-quiet-" in result.protocol


def test_a_baseline_without_sound_is_no_loss(read, tmp_path):
    rows = [{"id": f"t{n}", "text": f"text {n}"} for n in range(COUNT)]
    (tmp_path / "spoken" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result, output = read("changing")
    assert result.value is None and result.missing == {"refused": COUNT} and not output


def test_a_verdict_that_changes_with_the_order_is_a_tie_and_is_counted(ask, taste):
    taste[0].says = staticmethod(lambda first, second: "first")
    result = entry(ask("short"), "short")
    assert result.value == 0.5 and result.compared.changed == 1 and result.compared.win_rate.value == 0
    assert result.compared.position_bias.value == 1


def test_what_cannot_be_read_is_never_a_win(ask, taste):
    usual = taste[0].says
    taste[0].says = staticmethod(
        lambda first, second: "Both have merits." if len(first) == 60 else usual(first, second)
    )
    result = entry(ask("mixed"), "mixed")
    # One order in three questions has no verdict, so that the question has none; counted, it is a loss.
    assert result.missing == {"unparsed": COUNT // 3} and result.value == pytest.approx((0.5 + 1) / 2)
    assert result.counting_failures.of_all == pytest.approx((0 + 0.5 + 1) / 3)


def test_a_finished_run_goes_on_without_a_question(ask, taste):
    ask("mixed", "long", baseline="long")
    seen = taste[0].seen
    ask("mixed", "long", baseline="long")
    assert taste[0].seen == seen == 2 * COUNT


def test_a_baseline_that_is_none_is_one_sentence(ask, tmp_path):
    with refuses("not_a_baseline"):
        ask("mixed", baseline="nobody")
    (tmp_path / "empty").mkdir()
    with refuses("holds_no_run"):
        ask("mixed", baseline=str(tmp_path / "empty"))


def test_strengths_of_many_systems_come_from_the_verdicts_of_their_runs(ask, taste, tmp_path, command):
    usual = taste[0].says
    # The shorter one is preferred where the baseline's answer has 40 letters and the other one 20, so that nobody wins
    # throughout.
    taste[0].says = staticmethod(lambda a, b: usual(b, a) if {len(a), len(b)} == {10, 20} else usual(a, b))
    ask("mixed", "short", "long", out="beside-long", baseline="long")
    ask("short", out="of-data")
    ask("mixed", out="kept", baseline=str(tmp_path / "beside-long" / "mine" / "short"))
    (one,) = judge_strengths([tmp_path / "beside-long", tmp_path / "of-data", tmp_path / "kept"])
    assert (one.benchmark, one.judge, list(one.served), one.lost) == ("mine", "openai-chat:j", ["j"], 0)
    # The same duels, counted by hand from the lengths: the kept run that was a baseline is the system of that name.
    lengths = {name: [of(n) for n in range(COUNT)] for name, of in LENGTHS.items()} | {OF_THE_DATA: [20] * COUNT}
    duels = []
    for a, b in (("mixed", "long"), ("short", "long"), ("short", OF_THE_DATA), ("mixed", "short")):
        for n in range(COUNT):
            x, y = lengths[a][n], lengths[b][n]
            text = 0.5 if x == y else float((x > y) != ({x, y} == {10, 20}))
            duels.append(Duel(a, b, text, f"q{n}"))
    assert one.found == strengths(duels) and one.found.duels == 4 * COUNT and one.found.units == COUNT
    code, out, err = command("judge", "strengths", tmp_path / "beside-long", tmp_path / "of-data", tmp_path / "kept")
    assert code == 0 and "this judge was not tested" in " ".join(out.split()) and "mixed" in out, err
    code, out, _ = command("judge", "strengths", tmp_path / "beside-long", "--json")
    assert code == 0 and [held["system"] for held in json.loads(out)[0]["found"]["systems"]] == [
        "long",
        "mixed",
        "short",
    ]


def test_strengths_and_a_judges_successor_go_by_a_rubric_of_ones_own(ask, taste, tmp_path, monkeypatch):
    (tmp_path / "mine" / "own.yaml").write_text("extends: pair-answers\n")
    (tmp_path / "mine" / "benchmark.yaml").write_text(
        yaml.safe_dump({**DEFINITION, "metrics": ["rating[./own.yaml]"], "primary": "rating[./own.yaml]"})
    )
    ask("mixed", "short", "long", baseline="long")
    ask("mixed", out="data")
    # A process that has not read the rubric has what it needs from the record, or from the benchmark that it is given.
    monkeypatch.setattr("codec_bench.benchmark.judge.rubric._user_rubrics", {})
    (one,) = judge_strengths(tmp_path / "out")
    assert len(one.found.systems) == 3 and one.rubric.startswith("rating/own-")
    (change,) = judge_compare(
        tmp_path / "data", ["openai-chat", "openai-chat"], out=tmp_path / "again", benchmark=str(tmp_path / "mine"),
        options={"openai-chat": {"base_url": taste[1], "model": "j"}}, page=True,
    )  # fmt: skip
    assert change.rubric.startswith("rating/own-") and change.offset.value == 0.0


def test_verdicts_of_two_judges_are_not_mixed_and_bad_input_is_one_sentence(ask, taste, tmp_path):
    ask("mixed", "long", baseline="long")
    ask("short", out="data", model_of_judge="k")
    ask("mixed", out="third", model_of_judge="k", baseline="long", also="long")
    runs = [tmp_path / "out", tmp_path / "data", tmp_path / "third"]
    outcome = judge_strengths(runs)
    assert [(one.judge, len(one.found.systems)) for one in outcome] == [("openai-chat:j", 2), ("openai-chat:k", 0)]
    groups = "fall into groups that were never compared with each other: long, mixed and short, the answer of the data"
    assert groups in outcome[1].found.note
    with refuses("no_strengths", cause="comparisons_apart"):
        judge_strengths(runs[1:])
    with refuses("pair_compared_twice", system="mixed", baseline="long", benchmark="mine"):
        judge_strengths([tmp_path / "out", tmp_path / "out"])
    ask("mixed", out="unmarked", phase="answers")
    with refuses("no_pair_verdicts"):
        judge_strengths(tmp_path / "unmarked")
