"""Benchmarks end to end, with definitions, models and judges of the test, through the calls that users make."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import soundfile
import yaml
from command_line import COMMAND
from refusals import Containing, refuses

from codec_bench.api.run_benchmark import run_benchmark, run_codecs
from codec_bench.benchmark.definition.validate import validate_benchmark
from codec_bench.benchmark.judge.rubric import Rubric, load_rubric
from codec_bench.benchmark.metrics.accuracy import TWO_CORRECT_OPTIONS
from codec_bench.benchmark.run_request import run_folder
from codec_bench.config.custom_code import code_hash
from codec_bench.engine import pool
from codec_bench.messages.errors import RunMismatch
from codec_bench.report.open_run import Run, open_run
from codec_bench.stats.answers import answers_of
from codec_bench.stats.intervals import clopper_pearson
from codec_bench.store.answers import exchanges

MODELS = '''
import asyncio, os, signal
import numpy as np
from codec_bench.messages.errors import AudioError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response


class Echo(Model):
    """Answers a question with what `answers` says, else with its last word."""

    outputs = ("text",)

    def __init__(self, log, name="echo", break_on="", stop_after=0, flavour="a"):
        self.info = ModelInfo(name, outputs=self.outputs)
        self.log, self.break_on, self.stop_after, self.flavour = log, break_on, stop_after, flavour
        self.asked = 0

    @property
    def identity(self):
        return {"echo": 1, "flavour": self.flavour}

    async def ask(self, request):
        await asyncio.sleep(0)
        with open(self.log, "a") as file:
            file.write(request.id + "\\n")
        self.asked += 1
        if self.stop_after and self.asked > self.stop_after:
            os.kill(os.getppid(), signal.SIGKILL)
        if self.break_on and self.break_on in request.id:
            return Response.failed("the line is down")
        return self.answer(request)

    def answer(self, request):
        said = request.messages[-1].content[-1]
        return Response(text=said.rpartition("|")[2].strip(), usage={"input_tokens": 3})


class Hears(Echo):
    """Reads the sound before it answers."""

    def answer(self, request):
        request.messages[-1].content[0].read()
        return super().answer(request)


class Speaker(Echo):
    """Gives back the sound that it was given; odd rows go wrong."""

    outputs = ("text", "audio")

    def answer(self, request):
        try:
            sound = next(part for part in request.messages[-1].content if not isinstance(part, str)).read()
        except AudioError as error:
            return Response.failed(error.message)
        last = request.id[-1]
        if last == "3":
            return Response(text="only words")
        if last == "4":
            return Response(audio=Audio(np.full(1600, np.nan, np.float32), 16000))
        return Response(audio=sound)


class Judge(Echo):
    """Gives ten to an answer that says Paris, else two."""

    def answer(self, request):
        answer = request.messages[-1].content[-1].partition("<answer ")[2].partition("</answer")[0]
        return Response(text="[[10]]" if "Paris" in answer else "[[2]]" if "Rome" in answer else "no verdict")
'''
SCRIPT = "<script>alert('owned')</script></script><!--"
ROWS = [
    {"id": "a1", "q": "capital of France | Paris", "right": "Paris", "level": "easy"},
    {"id": "a2", "q": "capital of Italy | Rome", "right": ["Rome", "Roma"], "level": "easy"},
    {"id": "a3", "q": "capital of Spain | Paris", "right": "Madrid", "level": "hard"},
    {"id": "a4", "q": f"page | {SCRIPT}", "right": "x", "level": "hard"},
    {"id": "a5", "q": "nothing |", "right": "ü", "level": "hard"},
    {"id": "a6", "q": None, "right": "never asked", "level": "easy"},
]
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right", "level": "level"}},
    "prompt": {"messages": [{"role": "system", "content": ["Be brief."]}, {"content": ["{{ question }}"]}]},
    "metrics": ["accuracy[exact]", "wer[answer]", "bleu[13a]"], "primary": "accuracy[exact]",
    "subsets": {"level": "level"},
    "published": [{"source": "a paper", "metric": "accuracy[exact]", "scale": 0.01, "values": {"Somebody": 61.5}}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    """Puts the user's caches into the test's own folder."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def models(tmp_path):
    """The names of the models of the test, by class."""
    (tmp_path / "models.py").write_text(MODELS)
    return lambda kind: f"{tmp_path / 'models.py'}:{kind}"


@pytest.fixture
def define(tmp_path):
    """Writes a benchmark of the test's own and returns its folder."""

    def write(name="mine", rows=ROWS, **changes):
        folder = tmp_path / "benchmarks" / name
        folder.mkdir(parents=True, exist_ok=True)
        definition = {**DEFINITION, **changes}
        (folder / "benchmark.yaml").write_text(yaml.safe_dump(definition, allow_unicode=True))
        (folder / "README.md").write_text(f"# {name}\n")
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(folder)

    return write


@pytest.fixture
def ask(tmp_path, models):
    """Runs with the test's model; returns the outcome and the questions that this call sent."""

    def run(benchmark, kind="Echo", model=None, out="out", **settings):
        log = tmp_path / "log"
        log.write_text("")
        actual = {"log": str(log), **settings.pop("own", {})}
        name = model or models(kind)
        options = {one: actual for one in name.split(",")} | settings.pop("options", {})
        settings = {"page": False, "cache": False, "workers": 1, **settings}
        outcome = run_benchmark(benchmark=benchmark, model=name, out=tmp_path / out, options=options, **settings)
        for done in outcome.runs.values():
            done.close()
        return outcome, log.read_text().split()

    return run


def numbers(folder):
    """Every score of a run folder by (question, metric)."""
    with closing(open_run(folder)) as run:
        return {(s.id, s.metric): (s.value, s.status, s.reason) for s in run.scores()}


def mine(folder, model="echo", name="mine"):
    return run_folder(Path(folder), name, model)


def overview(folder):
    return json.loads((Path(folder) / "summary.json").read_text("utf-8"))


def test_both_phases_from_questions_to_numbers(tmp_path, define, ask):
    outcome, requests = ask(define())
    assert requests == ["a1", "a2", "a3", "a4", "a5"], "a6 has nothing to ask"
    assert list(outcome.runs) == [("mine", "echo")] and outcome.excluded == ()
    folder = mine(tmp_path / "out")
    assert {p.name for p in folder.iterdir()} == {"run.sqlite", "run.lock", "run.seal", "run.json", "summary.json"}
    result = numbers(folder)
    exact = [result[f"a{n}", "accuracy[exact]"] for n in range(1, 7)]
    assert [value for value, _, _ in exact] == [1, 1, 0, 0, 0, None]
    assert exact[5][1:] == ("failed", "the row has nothing in 'question'")
    entry = overview(tmp_path / "out")["benchmarks"][0]
    accuracy = entry["metrics"]["accuracy[exact]"]
    assert (accuracy["value"], accuracy["n"], accuracy["failed"]) == (0.4, 5, 1)
    assert accuracy["counting_failures"] == {"value": pytest.approx(2 / 6), "n": 6, "uncounted": 0}
    easy = accuracy["subsets"]["level"]["easy"]
    assert (easy["value"], easy["n"], easy["failed"]) == (1.0, 2, 1)
    assert easy["ci95"] == pytest.approx(list(clopper_pearson(1.0, 2, 0.95)))
    assert accuracy["subsets"]["level"]["hard"]["value"] == 0.0 and set(accuracy["subsets"]) == {"level"}
    assert (entry["benchmark"], entry["model"], entry["primary"]) == ("mine", "echo", "accuracy[exact]")
    assert entry["published"] == [
        {"model": "Somebody", "metric": "accuracy[exact]", "value": 0.615, "source": "a paper"}
    ]
    assert next(iter(entry["metrics"])) == "accuracy[exact]" and set(entry["metrics"]) == set(DEFINITION["metrics"])
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["failures"]["items"] == 1 and summary["systems"]["echo"]["metrics"] == entry["metrics"]
    with closing(open_run(folder)) as run:
        first, *_, last = exchanges(run)
        assert first.question.prompt == "system: Be brief.\n\nuser: capital of France | Paris"
        assert (first.answer.text, first.reading.parsed) == ("Paris", "Paris") and last.answer.status == "failed"
        assert run.meta["state"] == "finished" and run.meta["answering"]["asked"] == 6
        assert answers_of(run).as_dict()["usage"] == {"input_tokens": 15}


def test_a_row_that_cannot_be_parsed_is_a_failure_of_the_run(tmp_path, define, ask, command):
    """Its reference is unknown, which must not make its scores undefined."""
    metrics = ["accuracy[exact]", "wer[answer]", "cider"]
    benchmark = define(rows=ROWS[:5], metrics=metrics)
    with Path(benchmark, "rows.jsonl").open("a") as file:
        file.write('{"id": "a7", "q": "capital of\n')
    _, requests = ask(benchmark, page=True)
    folder = mine(tmp_path / "out")
    with closing(open_run(folder)) as run:
        (broken,) = [sample.id for sample in run.samples() if sample.id not in requests]
    result = numbers(folder)
    for metric in metrics:
        _, status, reason = result[broken, metric]
        assert (metric, status, reason.code) == (metric, "failed", "row_problem")
        assert reason.parameters["cause"].code == "row_not_json"
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    assert summary["failures"]["items"] == 1
    assert {row["reason_code"]["code"] for row in summary["failures"]["reasons"]} == {"row_problem"}
    accuracy = summary["systems"]["echo"]["metrics"]["accuracy[exact]"]
    assert (accuracy["value"], accuracy["n"], accuracy["failed"]) == (0.4, 5, 1)
    assert accuracy["counting_failures"] == {"value": pytest.approx(2 / 6), "n": 6, "uncounted": 0}
    code, out, _ = command("export", folder, "--format", "jsonl")
    rows = [row for row in map(json.loads, out.splitlines()) if row["id"] == broken]
    assert code == 0 and {row["status"] for row in rows} == {"failed"} and len(rows) == len(metrics)
    assert "is not JSON" in (folder / "report.html").read_text("utf-8")


def test_results_are_broken_down_by_a_field_of_the_questions(tmp_path, define, ask, command, models):
    rows = [{**row, "room": ("small", "large")[n % 2]} for n, row in enumerate(ROWS)]
    benchmark = define(
        rows=rows, data={**DEFINITION["data"], "columns": {**DEFINITION["data"]["columns"], "room": "room"}}
    )
    with refuses("no_column_to_group_by", name="rooms", hint="did you mean room"):
        ask(benchmark, by="rooms")
    _, requests = ask(benchmark, by="room")
    assert requests == [], "the answers were recorded before the column was missed"
    result = overview(tmp_path / "out")["benchmarks"][0]["metrics"]["accuracy[exact]"]["subsets"]
    assert {name: (row["value"], row["n"], row["failed"]) for name, row in result["room"].items()} == {
        "small": (pytest.approx(1 / 3), 3, 0), "large": (0.5, 2, 1),
    }  # fmt: skip
    ask(benchmark, phase="scores")
    again = ("run", benchmark, "--model", "echo", "--phase", "scores", "--out", tmp_path / "out")
    code, out, _ = command(*again)
    assert code == 3 and "by room" not in out, "printed where it is asked for"
    code, out, _ = command(*again, "--by", "level,room")
    assert code == 3 and "by level" in out and "by room" in out
    assert json.loads((mine(tmp_path / "out") / "run.json").read_text())["by"] == ["level", "room"]


METRIC = """
from codec_bench.benchmark.metrics.base import AnswerMetric
from codec_bench.types import Score
import helper


class Mine(AnswerMetric):
    name, protocol = "mine", "mine/1"

    def compute(self, answers):
        return [Score.ok(helper.FACTOR * len(one.text), self.protocol) for one in answers]
"""


def test_a_metric_of_a_definition_works_from_any_folder(tmp_path, define, ask, monkeypatch):
    name = "./mine.py:Mine"
    benchmark = Path(define(rows=ROWS[:5], metrics=[name, "accuracy[exact]"], primary=name, published=[]))
    (benchmark / "mine.py").write_text(METRIC)
    (benchmark / "helper.py").write_text("FACTOR = 2")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text("raise ValueError('the metric of another folder')")
    sent = []
    for folder, named in ((elsewhere, str(benchmark)), (benchmark, "./"), (tmp_path, f"./benchmarks/{benchmark.name}")):
        monkeypatch.chdir(folder)
        assert validate_benchmark(named) == []
        sent.append(len(ask(named)[1]))
        outcome = numbers(mine(tmp_path / "out"))
        assert [outcome[id, name][0] for id in ("a1", "a2")] == [2 * len("Paris"), 2 * len("Rome")]
        code = code_hash(f"{benchmark}/mine.py:Mine")
        with closing(open_run(mine(tmp_path / "out"))) as run:
            assert run.meta["fingerprint"]["scored"]["code"] == {name: code}
    assert sent == [5, 0, 0], "the run continues from each folder"


PEAK = """
from codec_bench import Metric, Score


class Peak(Metric):
    name, kind, rate_hz, protocol = "peak", "single", 16000, "peak/1"

    def compute(self, batch):
        return [Score.ok(float(abs(item.estimate).max()), self.protocol) for item in batch]
"""


def test_metrics_of_sound_of_a_definition_work_from_any_folder(tmp_path, monkeypatch):
    """One in Python, and one that is a program."""
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "peak.py").write_text(PEAK)
    program = {
        "version": 1,
        "program": ["echo", "7", "{estimate}"],
        "kind": "single",
        "rate_hz": 16000,
        "value": "^(7)",
    }
    (folder / "seven.yaml").write_text(yaml.safe_dump(program))
    soundfile.write(folder / "a.wav", [0.0, 0.5] * 8000, 16000)
    (folder / "rows.jsonl").write_text(json.dumps({"id": "a", "sound": "a.wav", "says": "x"}))
    metrics = ["./peak.py:Peak", "./seven.yaml"]
    definition = {
        "version": 1, "title": "Mine", "summary": "Sounds.", "category": "Codec", "kind": "codec", "wants": "audio",
        "data": {"path": "rows.jsonl", "id": "id", "columns": {"audio": "sound", "reference": "says"}},
        "metrics": metrics, "primary": metrics[0],
    }  # fmt: skip
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(definition))
    monkeypatch.chdir(tmp_path)
    outcome = run_codecs(
        benchmark="./bench", codec="unprocessed", out=tmp_path / "out", workers=1, cache=False, page=False, check=False
    )
    (run,) = outcome.runs.values()
    with closing(run):
        assert {s.metric: s.value for s in run.scores()} == {metrics[0]: pytest.approx(0.5), metrics[1]: 7.0}


def test_options_next_to_running_are_refused(tmp_path, define, ask):
    from codec_bench import evaluate
    from codec_bench.engine.running import Running

    with refuses(
        "running_and_options", options="page=, cache=, workers=", hint="Running(page=False, cache=False, workers=1)"
    ):
        ask(define(), running=Running(device="cpu"))
    with refuses("running_and_options", options="workers="):
        evaluate(codec="opus-12k", data="embedded", metrics="stoi", out=tmp_path / "r", running=Running(), workers=2)
    assert not (tmp_path / "r").exists()


def test_progress_is_shown_as_requested(define, ask):
    stages = []
    wishes = (None, False, True, lambda stage, *counts: stages.append(stage))
    for wish in wishes:
        _, requests = ask(define(), out=f"out-{wishes.index(wish)}", progress=wish)
        assert requests == ["a1", "a2", "a3", "a4", "a5"]
    assert any(stage.startswith("mine: ") for stage in stages)
    with refuses("option_value", expected="progress"):
        ask(define(), out="other", progress="yes")


@pytest.mark.parametrize("phase", ["both", "answers", "scores"])
@pytest.mark.parametrize("name", ["dnsmos", "gpt-audio", "nothing"])
def test_an_option_that_nothing_in_the_run_reads_is_refused(define, ask, name, phase):
    with refuses("unknown_name", name=name):
        ask(define(), phase=phase, options={name: {"weights": "/x"}})


def test_the_phases_can_run_apart_and_on_another_machine(tmp_path, define, ask, models):
    benchmark = define()
    ask(benchmark, out="whole")
    outcome, requests = ask(benchmark, out="there", phase="answers")
    assert len(requests) == 5 and numbers(mine(tmp_path / "there")) == {}
    entry = overview(tmp_path / "there")["benchmarks"][0]["metrics"]["accuracy[exact]"]
    assert (entry["value"], entry["n"]) == (None, 0)
    shutil.move(tmp_path / "there", tmp_path / "here")
    (tmp_path / "benchmarks" / "mine" / "rows.jsonl").unlink()
    (tmp_path / "models.py").rename(tmp_path / "elsewhere.py")
    outcome, requests = ask(benchmark, model="echo", out="here", phase="scores")
    assert requests == [] and list(outcome.runs) == [("mine", "echo")]
    assert numbers(mine(tmp_path / "here")) == numbers(mine(tmp_path / "whole"))
    same = [overview(tmp_path / name)["benchmarks"][0] for name in ("here", "whole")]
    assert same[0] == same[1]


def test_answers_need_nothing_that_only_scores_need(tmp_path, define, ask, monkeypatch):
    from codec_bench.benchmark.asking import benchmarks as asking
    from codec_bench.messages.errors import MissingExtra

    def missing(*_):
        raise MissingExtra("BLEU", "sacrebleu", "text")

    benchmark = define()
    with monkeypatch.context() as here:
        here.setattr(asking, "scheme_of", missing)
        ask(benchmark, phase="answers")
        ask(benchmark, phase="answers")
        with pytest.raises(MissingExtra):
            ask(benchmark)
    ask(benchmark, phase="scores")
    complete = numbers(mine(tmp_path / "out"))
    with monkeypatch.context() as here:  # scored in another folder, continued here
        here.setattr(asking, "scheme_of", missing)
        ask(benchmark, phase="answers")
    assert numbers(mine(tmp_path / "out")) == complete


def test_scores_without_answers_are_reported(tmp_path, define, ask):
    with refuses("no_answers_to_score", hint="answers"):
        ask(define(), phase="scores")


def test_a_finished_run_asks_nobody_again(tmp_path, define, ask):
    benchmark = define()
    ask(benchmark)
    before = numbers(mine(tmp_path / "out"))
    for settings in ({}, {"rescore": True}, {"phase": "scores"}, {"phase": "scores", "rescore": True}):
        _, requests = ask(benchmark, **settings)
        assert requests == [] and numbers(mine(tmp_path / "out")) == before, settings


def test_failed_questions_are_sent_again_on_request(tmp_path, define, ask):
    benchmark = define()
    ask(benchmark, own={"break_on": "a2"})
    assert numbers(mine(tmp_path / "out"))["a2", "accuracy[exact]"] == (None, "failed", "the line is down")
    _, requests = ask(benchmark)
    assert requests == []
    _, requests = ask(benchmark, retry_failed=True)
    assert requests == ["a2"]
    ask(benchmark, out="whole")
    assert numbers(mine(tmp_path / "out")) == numbers(mine(tmp_path / "whole"))
    paired = [overview(tmp_path / name)["benchmarks"][0]["metrics"] for name in ("out", "whole")]
    assert paired[0] == paired[1]


CHANGED = {"messages": [{"role": "system", "content": ["Be kind."]}, {"content": ["{{ question }}"]}]}


CHANGES = (
    ({"prompt": CHANGED}, {}, {"differences": Containing("asked.prompt")}),
    ({}, {"own": {"flavour": "b"}}, {"differences": "asked.model.flavour was a, now b"}),
    ({}, {"seed": 1}, {"differences": "asked.seed was 0, now 1"}),
    ({}, {"limit": 2}, {"code": "limit_lowered", "before": None, "unit": "question", "limit": 2}),
    ({"rows": ROWS[:3]}, {}, {"differences": Containing("asked.revision")}),
    ({"parameters": {"max_tokens": 5}}, {},
        {"differences": Containing("asked.parameters.max_tokens was absent, now 5")}),
    ({"metrics": ["accuracy[contains]"], "primary": "accuracy[contains]"}, {},
        {"differences": Containing("scored.metrics")}),
    ({"postprocess": ["first-line"]}, {}, {"differences": Containing("scored.postprocess")}),
)  # fmt: skip


def test_what_changed_is_refused_with_the_difference(tmp_path, define, ask):
    ask(define())
    before = numbers(mine(tmp_path / "out"))
    for changes, settings, says in CHANGES:
        with refuses(**{"code": "other_settings", "hint": "--out", **says}):
            ask(define(**changes), **settings)
        assert numbers(mine(tmp_path / "out")) == before, says
    with refuses("other_settings", differences=Containing("asked.prompt")):
        ask(define(prompt=CHANGED), rescore=True)
    assert numbers(mine(tmp_path / "out")) == before, "a refused rescoring drops nothing"
    _, requests = ask(define())
    assert requests == [], "what was refused left the run as it was"


def test_changed_code_of_a_package_is_refused_as_that_of_a_file(tmp_path, monkeypatch, define, models):
    models("Echo")
    (tmp_path / "own_package").mkdir()
    code = tmp_path / "own_package" / "models.py"
    code.write_text((tmp_path / "models.py").read_text())
    monkeypatch.chdir(tmp_path)
    name = "own_package.models:Echo"
    settings = {"benchmark": define(), "model": name, "options": {name: {"log": str(tmp_path / "log")}}, "out": "out"}
    run_benchmark(**settings, limit=2, page=False)
    assert code_hash(name) == code_hash(f"{code}:Echo") != ""
    code.write_text(code.read_text() + "# changed\n")
    with refuses("other_settings", differences=Containing("asked.model.code was")):
        run_benchmark(**settings, page=False)


@pytest.mark.parametrize("phase", ["both", "scores"])
def test_new_rules_are_accepted_when_scores_are_recomputed(tmp_path, define, ask, phase):
    ask(define())
    changed = {"metrics": ["accuracy[contains]", "accuracy[exact]"], "primary": "accuracy[contains]"}
    _, requests = ask(define(**changed), rescore=True, phase=phase)
    assert requests == []
    result = numbers(mine(tmp_path / "out"))
    assert {metric for _, metric in result} == {"accuracy[contains]", "accuracy[exact]"} and len(result) == 12
    assert overview(tmp_path / "out")["benchmarks"][0]["primary"] == "accuracy[contains]"
    with pytest.raises(RunMismatch):
        ask(define(), phase="scores")


LENGTH = """
from codec_bench.benchmark.metrics.base import SeparateMetric
from codec_bench.types import Score


class Length(SeparateMetric):
    protocol, range, name = "length/1", (0.0, None), "length"

    def _one(self, answer):
        return Score.ok(UNIT * float(len(answer.text)), self.protocol)
"""


def test_changed_code_of_a_metric_of_answers_needs_a_rescore(tmp_path, define, ask):
    code = tmp_path / "length.py"
    name = f"{code}:Length"
    benchmark = define(metrics=["accuracy[exact]", name])

    def lengths(unit, **settings):
        code.write_text(LENGTH.replace("UNIT", str(unit)))
        ask(benchmark, **settings)
        return {id: value for (id, metric), (value, *_) in numbers(mine(tmp_path / "out")).items() if metric == name}

    before = lengths(1)
    with refuses("other_settings", differences=Containing("scored.code")):
        lengths(2)
    after = lengths(2, rescore=True)
    assert before["a1"] and after["a1"] == 2 * before["a1"]


def test_rules_may_change_before_the_first_score(tmp_path, define, ask):
    ask(define(), phase="answers")
    ask(define(metrics=["bleu[13a]", "accuracy[contains]"], primary="bleu[13a]"), phase="scores")
    ask(define(metrics=["bleu[13a]", "accuracy[contains]"], primary="bleu[13a]"), out="whole")
    assert numbers(mine(tmp_path / "out")) == numbers(mine(tmp_path / "whole"))
    paired = [overview(tmp_path / name)["benchmarks"][0] for name in ("out", "whole")]
    assert paired[0] == paired[1]


def test_a_limit_takes_the_same_questions_for_every_model(tmp_path, define, ask, models):
    rows = [{"id": f"r{n:03d}", "q": f"{n} | {n % 3}", "right": "1", "level": "x"} for n in range(50)]
    benchmark = define(rows=rows)
    parameters = {}
    for seed in (0, 0, 1):
        _, requests = ask(benchmark, out=f"out{len(parameters)}-{seed}", seed=seed, limit=7)
        assert len(set(requests)) == 7
        assert parameters.setdefault(seed, requests) == requests
    assert parameters[0] != parameters[1]
    (tmp_path / "copy.py").write_text(MODELS.replace('name="echo"', 'name="other"'))
    both = f"{models('Echo')},{tmp_path / 'copy.py'}:Echo"
    outcome, requests = ask(benchmark, model=both, out="two", limit=7)
    assert requests == parameters[0] * 2 and list(outcome.runs) == [("mine", "echo"), ("mine", "other")]
    rows = overview(tmp_path / "two")["benchmarks"]
    assert [row["model"] for row in rows] == ["echo", "other"] and rows[0]["metrics"] == rows[1]["metrics"]


def test_answers_come_from_the_cache_but_never_those_of_own_code(tmp_path, define, ask):
    benchmark = define()
    _, first = ask(benchmark, out="one", cache=True)
    _, second = ask(benchmark, out="two", cache=True)
    assert len(first) == len(second) == 5, "code of one's own may have changed"


def test_a_judge_rates_and_is_called_once(tmp_path, define, ask, models):
    benchmark = define(metrics=["rating[alpaca-1-10]", "accuracy[exact]"], primary="rating[alpaca-1-10]")
    judge = models("Judge")
    with refuses("judge_needed"):
        ask(benchmark)
    log = tmp_path / "judged"
    settings = {"judge": judge, "options": {judge: {"log": str(log), "name": "judge"}}}
    ask(benchmark, phase="answers")
    ask(benchmark, phase="scores", **settings)
    result = numbers(mine(tmp_path / "out"))
    verdicts = [result[f"a{n}", "rating[alpaca-1-10]"][:2] for n in range(1, 7)]
    assert verdicts == [(10, "ok"), (2, "ok"), (10, "ok"), (None, "unparsed"), (None, "unparsed"), (None, "failed")]
    assert len(log.read_text().split()) == 5
    ask(benchmark, **settings)
    assert len(log.read_text().split()) == 5
    entry = overview(tmp_path / "out")["benchmarks"][0]["metrics"]["rating[alpaca-1-10]"]
    assert (entry["value"], entry["n"], entry["failed"]) == (pytest.approx(22 / 3), 3, 3)
    assert entry["counting_failures"]["value"] == pytest.approx((22 + 3 * 1) / 6)


def test_a_rubric_of_ones_own_is_a_file_next_to_the_benchmark(tmp_path, define, ask, models, monkeypatch):
    judge, log = models("Judge"), tmp_path / "judged"
    settings = {"judge": judge, "options": {judge: {"log": str(log), "name": "judge"}}}
    benchmark = define(metrics=["rating[./alpaca-1-10.yaml]"], primary="rating[./alpaca-1-10.yaml]")
    file = Path(benchmark) / "alpaca-1-10.yaml"
    with refuses("no_rubric_file", file="alpaca-1-10.yaml"):
        ask(benchmark, **settings)
    file.write_text("extends: alpaca-1-10\n")
    same = load_rubric("alpaca-1-10").digest
    ask(benchmark, **settings)
    assert {name for _, name in numbers(mine(tmp_path / "out"))} == {f"rating[alpaca-1-10-{same}]"}
    assert len(log.read_text().split()) == 5
    # It goes on from another folder in a process that has not read the rubric, and there the record says what it was.
    monkeypatch.setattr("codec_bench.benchmark.judge.rubric._user_rubrics", {})
    monkeypatch.chdir(Path(benchmark).parent)
    ask(f"./{Path(benchmark).name}", **settings)
    assert len(log.read_text().split()) == 5
    done = pool.subprocess.run(
        [*COMMAND, "report", "--json", str(mine(tmp_path / "out"))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0 and f"alpaca-1-10-{same}" in done.stdout, done.stderr
    with closing(Run(mine(tmp_path / "out"))) as run:
        (facts,) = run.metrics.values()
    assert facts["protocol"].startswith(f"rating/alpaca-1-10-{same}-{same}/")
    assert Rubric(**facts["own_rubric"]).digest == same
    # Another wording is another column, which the record does not take for the first one.
    file.write_text("extends: alpaca-1-10\nsystem: Be strict.\n")
    with refuses("other_settings", differences=Containing("scored")):
        ask(benchmark, **settings)
    ask(benchmark, rescore=True, **settings)
    ((column,),) = [{name for _, name in numbers(mine(tmp_path / "out"))}]
    assert column.startswith("rating[alpaca-1-10-") and same not in column
    file.write_text("extends: alpaca-1-10\nrange: ten\n")
    with refuses("does_not_fit", path="alpaca-1-10.yaml", mistakes={"code": "wrong_field", "name": "range"}):
        ask(benchmark, **settings)


def test_failed_verdicts_are_requested_again_on_request(tmp_path, define, ask, models):
    benchmark = define(metrics=["rating[alpaca-1-10]"], primary="rating[alpaca-1-10]", rows=ROWS[:3])
    judge, log = models("Judge"), tmp_path / "judged"

    def judged(break_on, **settings):
        log.write_text("")
        actual = {judge: {"log": str(log), "name": "judge", "break_on": break_on}}
        _, requests = ask(benchmark, judge=judge, options=actual, **settings)
        return requests, log.read_text().split()

    assert judged("a2") == (["a1", "a2", "a3"], ["a1#0", "a2#0", "a3#0"])
    assert numbers(mine(tmp_path / "out"))["a2", "rating[alpaca-1-10]"][2] == "the judge: the line is down"
    assert judged("") == ([], []), "not unless it is said"
    assert judged("", retry_failed=True) == ([], ["a2#0"])
    assert [value for value, _, _ in numbers(mine(tmp_path / "out")).values()] == [10, 2, 10]


def spoken_rows(folder):
    from codec_bench.data import open_source

    folder = Path(folder)
    sounds = [sample for _, sample in zip(range(3), open_source("embedded"))]
    rows = []
    for n, sample in enumerate(sounds, 1):
        shutil.copy(sample.audio, folder / f"{n}.flac")
        rows.append({"id": f"s{n}", "sound": f"{n}.flac", "says": sample.text})
    return [*rows, {**rows[0], "id": "s4"}, {"id": "s5", "sound": "gone.flac", "says": "x"}]


SPOKEN = {
    "kind": "generation", "wants": "audio", "subsets": {}, "published": [],
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"audio": "sound", "text": "says", "reference": "says"}},
    "prompt": {"messages": [{"content": [{"audio": "audio"}, "Say: {{ text }}"]}]},
    "postprocess": ["transcript[pocketsphinx]"], "metrics": ["accuracy[exact]", "wer[pocketsphinx]", "sim[ge2e]"],
    "primary": "wer[pocketsphinx]",
}  # fmt: skip


def test_spoken_answers_are_transcribed_compared_and_read(tmp_path, define, ask):
    """The model answers with the recording that it was given, so voice and words are those of the recording."""
    benchmark = define(**SPOKEN)
    define(rows=spoken_rows(benchmark), **SPOKEN)
    _, requests = ask(benchmark, "Speaker")
    folder = mine(tmp_path / "out")
    result = numbers(folder)
    assert requests == ["s1", "s2", "s3", "s4", "s5"]
    for id in ("s1", "s2"):
        assert result[id, "sim[ge2e]"][0] == pytest.approx(1.0, abs=1e-4), "16-bit copies of one sound"
        assert result[id, "wer[pocketsphinx]"][1] == "ok"
    assert [result[f"s{n}", "wer[pocketsphinx]"][1] for n in (3, 4, 5)] == ["failed"] * 3
    assert result["s3", "sim[ge2e]"][2] == "the model gave no audio, and the benchmark needs it"
    reason = result["s4", "accuracy[exact]"][2]
    assert (reason.code, reason.parameters["samples"], reason.parameters["at_s"]) == ("samples_not_finite", 1600, 0.0)
    with closing(open_run(folder)) as run:
        output = {e.question.id: e for e in exchanges(run)}
        assert output["s1"].reading.transcript and output["s1"].reading.parsed == output["s1"].reading.transcript
        assert output["s1"].audio_path.is_file() and output["s1"].answer_path.is_file()
        assert output["s3"].reading.transcript is None and output["s3"].answer.text == "only words"
    entry = overview(tmp_path / "out")["benchmarks"][0]["metrics"]
    assert all((entry[m]["n"], entry[m]["failed"]) == (2, 3) for m in SPOKEN["metrics"])
    assert entry["wer[pocketsphinx]"]["counting_failures"]["n"] == 5
    shutil.move(tmp_path / "out", tmp_path / "moved")
    shutil.rmtree(benchmark, ignore_errors=False)
    define(rows=[], **SPOKEN)
    _, requests = ask(benchmark, model="echo", out="moved", phase="scores", rescore=True)
    again = numbers(mine(tmp_path / "moved"))
    assert requests == [] and {key: rest for key, (_, *rest) in again.items()} == {
        key: rest for key, (_, *rest) in result.items()
    }, "the run folder is enough"
    # Which sounds share a batch of the embedding depends on timing: it changes the last digit of float32.
    assert {key: value for key, (value, *_) in again.items()} == {
        key: value if value is None else pytest.approx(value, abs=1e-6) for key, (value, *_) in result.items()
    }


def test_results_are_broken_down_by_the_length_of_the_questions_sounds(tmp_path, define, ask):
    """Sounds that were neither kept nor decoded are measured for it, once; one that is not there, or empty, has no
    length.
    """
    rows = [{"id": f"s{n}", "sound": f"{n}.wav", "q": "x | Paris", "right": "Paris"} for n in (1, 3, 30, 99, 0)]
    columns = {"audio": "sound", "question": "q", "reference": "right"}
    template = {"messages": [{"content": [{"audio": "audio"}, "{{ question }}"]}]}
    benchmark = define(
        rows=rows, data={"path": "rows.jsonl", "id": "id", "columns": columns}, subsets={}, prompt=template
    )
    for seconds in (0, 1, 3, 30):
        soundfile.write(Path(benchmark, f"{seconds}.wav"), [0.0] * (8000 * seconds), 8000)
    ask(benchmark, "Hears", save_audio="none")
    assert "duration" not in overview(tmp_path / "out")["benchmarks"][0]["metrics"]["accuracy[exact]"]["subsets"]
    ask(benchmark, "Hears", save_audio="none", by="duration")
    result = overview(tmp_path / "out")["benchmarks"][0]["metrics"]["accuracy[exact]"]["subsets"]["duration"]
    dropped = overview(tmp_path / "out")["benchmarks"][0]["failures"]
    codes = {row["reason_code"].get("cause", row["reason_code"])["code"] for row in dropped["reasons"]}
    assert dropped["items"] == 2 and codes >= {"sound_without_samples", "no_file"}
    assert {name: row["n"] + row["failed"] for name, row in result.items()} == {
        "under 2 s": 1,
        "2 to 5 s": 1,
        "20 to 60 s": 1,
        "": 2,
    }
    with closing(open_run(mine(tmp_path / "out"))) as run:
        assert [s.duration_s for s in run.samples()] == [1.0, 3.0, 30.0, None, None]
        run.check()


def test_chance_levels_and_rules_for_failures_are_shown_wherever_the_score_is(tmp_path, define, ask, command):
    """Two questions with two options and one with four; the last answer cannot be read."""
    rows = [
        {"id": "c1", "q": "? | A", "right": "cat", "choices": ["cat", "dog"]},
        {"id": "c2", "q": "? | A", "right": "dog", "choices": ["cat", "dog"]},
        {"id": "c3", "q": "? | A", "right": "dog", "choices": ["cat", "dog", "cow", "dog"]},
        {"id": "c4", "q": "? | perhaps", "right": "cat", "choices": ["cat", "dog"]},
    ]
    columns = {"question": "q", "reference": "right", "choices": "choices"}
    benchmark = define(
        rows=rows, data={"path": "rows.jsonl", "id": "id", "columns": columns}, subsets={},
        postprocess=["option-letter"],
        metrics=["accuracy[choice]"], primary="accuracy[choice]", failures={"toolkit": "Theirs", "counts": "as-wrong"},
        published=[],
    )  # fmt: skip
    ask(benchmark, page=True)
    (row,) = overview(tmp_path / "out")["benchmarks"]
    entry = row["metrics"]["accuracy[choice]"]
    # The third question holds its answer twice, so that a guess is right in two of four.
    assert (entry["n"], entry["failed"], entry["chance"]) == (3, 1, 0.5)
    assert entry["policies"]["official"] == {"toolkit": "Theirs", "counts": "as-wrong", "value": 0.25}
    assert [reason["reason"] for reason in row["failures"]["reasons"] if reason["status"] == "flagged"] == [
        TWO_CORRECT_OPTIONS
    ]
    text = "with failures excluded and as wrong: accuracy[choice] 0.333 and 0.250; Theirs counts them as wrong"
    page = (mine(tmp_path / "out") / "report.html").read_text("utf-8")
    assert '<span class="count quiet">chance 0.50</span>' in page and text in page
    code, out, _ = command("run", benchmark, "--model", "echo", "--phase", "scores", "--out", tmp_path / "out")
    heads = next(line for line in out.splitlines() if "chance" in line)
    assert code == 3 and heads.split()[-5:] == ["chance", "n", "failed", "counting", "failures"]
    assert "accuracy[choice] 0.333 and 0.250; Theirs counts them as wrong" in " ".join(out.split())
    code, out, _ = command("export", mine(tmp_path / "out"), "--summary", "--format", "markdown")
    assert code == 0 and "chance 0.50 (a guess among the options)" in out and "Theirs counts them as wrong" in out


def test_a_model_without_a_voice_is_omitted_and_reported(tmp_path, define, ask):
    text, spoken = define(), define("spoken", rows=[], **SPOKEN)
    outcome, requests = ask(f"{text},{spoken}")
    assert len(requests) == 5 and list(outcome.runs) == [("mine", "echo")]
    ((benchmark, model, why),) = outcome.excluded
    cause = why.parameters["cause"]
    assert (benchmark, model, why.code, cause.code) == ("spoken", "echo", "pair_cannot_run", "output_needed")
    assert cause.parameters["needed"] == "audio" and "gives text" in why
    (stored,) = overview(tmp_path / "out")["left_out"]
    assert stored == {"benchmark": "spoken", "model": "echo", "reason": why, "reason_code": why.as_dict()}
    with refuses("output_needed", benchmark="spoken", needed="audio"):
        ask(spoken, out="other")


def test_bad_input_is_reported(tmp_path, define, ask):
    with refuses("no_benchmark_named"):
        ask("")
    with refuses("no_model_named"):
        ask(define(), model=",")
    with refuses("option_choice", option="phase", value="later"):
        ask(define(), phase="later")
    with refuses("benchmark_column_missing", column="qq", data="rows", hint="its columns are id, q, right, level"):
        columns = {**DEFINITION["data"]["columns"], "question": "qq"}
        ask(define(data={**DEFINITION["data"], "columns": columns}))
    with refuses("model_option_unknown", option="colour"):
        ask(define(), own={"colour": "red"})


@pytest.fixture
def command(tmp_path):
    """Runs `codec-bench ARGS` in the temporary folder: (exit code, stdout, stderr)."""

    def run(*args):
        done = pool.subprocess.run(
            [*COMMAND, *map(str, args)], capture_output=True, text=True, cwd=tmp_path, timeout=120
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_command_prints_numbers_and_writes_a_page_that_runs_nothing_foreign(tmp_path, define, command, models):
    endless = {"id": "a7", "q": f"{SCRIPT} | {'x' * 100_000}", "right": SCRIPT, "level": SCRIPT}
    benchmark, model = define(rows=[*ROWS, endless]), models("Echo")
    code, out, err = command(
        "run", benchmark, "--model", model, "--set", f"{model}.log={tmp_path / 'log'}", "--out", "r"
    )
    assert code == 3, "one question failed"
    assert "accuracy[exact]" in out and "(primary)" in out and "mine" in out and "echo" in out
    assert "the row has nothing in" in " ".join(out.split()) and "report.html" in err
    page = (mine(tmp_path / "r") / "report.html").read_text("utf-8")
    assert "alert(" in page and SCRIPT not in page and "<script>alert" not in page
    assert "capital of France" in page and "Somebody" in page and "Marked by" not in page, "no judge marked a number"
    code, out, _ = command("run", benchmark, "--model", "echo", "--phase", "scores", "--out", "r", "--json")
    assert code == 3 and json.loads(out) == overview(tmp_path / "r")
    assert "more characters are in the record" in page, "of an answer of 100,000"
    complete, spoken, log = (
        define("whole", rows=ROWS[:2]),
        define("spoken", rows=[], **SPOKEN),
        f"{model}.log={tmp_path / 'log'}",
    )
    code, out, _ = command("run", complete, "--model", model, "--set", log, "--out", "s", "--json")
    assert code == 0 and json.loads(out)["benchmarks"][0]["metrics"]["accuracy[exact]"]["value"] == 1.0
    code, _, err = command("run", f"{complete},{spoken}", "--model", model, "--set", log, "--out", "s")
    assert code == 3 and "skipped: spoken with echo: 'spoken' needs answers in audio" in " ".join(err.split())


def test_answers_that_are_not_scored_are_counted_and_not_shown_as_scores(tmp_path, define, command, models):
    model = models("Echo")
    requests = (
        "run",
        define(rows=ROWS[:2]),
        "--model",
        model,
        "--set",
        f"{model}.log={tmp_path / 'log'}",
        "--out",
        "r",
    )
    code, out, err = command(*requests, "--phase", "answers")
    assert (code, out) == (0, "") and "2 answers are recorded and not scored yet" in err
    code, out, err = command(*requests, "--phase", "scores")
    assert code == 0 and "accuracy[exact]" in out and "not scored" not in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "mime", "--model", "x"], "no benchmark called 'mime'"),
        (["run", "--model", "x"], "no benchmark was named"),
        (["run", "librispeech-test-clean"], "both models and codecs, or neither"),
        (["run", "librispeech-test-clean", "--model", "qwen2-audio-7b-instrukt"], "qwen2-audio-7b-instruct"),
    ],
)
def test_mistakes_of_a_command_are_one_sentence(command, args, says):
    code, out, err = command(*args)
    assert code == 2 and says in " ".join(err.split()) and out == ""


def test_a_killed_run_continues_with_the_same_numbers(tmp_path, define, ask, command, models):
    rows = [{"id": f"r{n:03d}", "q": f"{n} | {n % 4}", "right": "1", "level": str(n % 2)} for n in range(140)]
    benchmark, model, log = define(rows=rows), models("Echo"), tmp_path / "first"
    options = [f"{model}.log={log}", f"{model}.stop_after=130"]
    args = [
        "run",
        benchmark,
        "--model",
        model,
        "--out",
        "out",
        "--no-cache",
        *(p for o in options for p in ("--set", o)),
    ]
    done = subprocess.run([*COMMAND, *map(str, args)], capture_output=True, cwd=tmp_path, timeout=120, env=os.environ)
    assert done.returncode == -9 and len(log.read_text().split()) == 131
    with closing(open_run(mine(tmp_path / "out"))) as run:
        retained = [e.question.id for e in exchanges(run)]
    assert len(retained) >= 64 and retained == [f"r{n:03d}" for n in range(len(retained))]
    _, requests = ask(benchmark)
    assert requests == [f"r{n:03d}" for n in range(len(retained), 140)]
    ask(benchmark, out="whole")
    assert numbers(mine(tmp_path / "out")) == numbers(mine(tmp_path / "whole"))
    paired = [overview(tmp_path / name)["benchmarks"][0] for name in ("out", "whole")]
    assert paired[0] == paired[1]


def test_inside_an_event_loop_it_is_explained_how_to_call_it():
    requests = {"benchmark": "no-such-benchmark", "model": "gpt-4o-audio"}

    async def cell():
        with refuses("inside_event_loop", hint="await asyncio.to_thread(run_benchmark, "):
            run_benchmark(**requests)
        with refuses("unknown_name", kind="benchmark", name="no-such-benchmark"):
            await asyncio.to_thread(run_benchmark, **requests)

    asyncio.run(cell())
