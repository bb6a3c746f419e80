"""A number that rests on a judge says how the judge did in its own test, wherever it is shown; `run` says it before it
spends.

A leaderboard says it too (`tests/apps/leaderboards`), and a site, whose pages are made of the same summaries and
boards.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from datetime import date

import pytest
import yaml
from local_http import Connection, LocalServer
from refusals import refuses

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.api.show import show
from codec_bench.api.trackers import collect_material
from codec_bench.benchmark.judge.metric import load_judge_metric
from codec_bench.models import describe_service_end
from codec_bench.report.open_run import open_run
from codec_bench.stats.summary import summarise
from codec_bench.store.judge_tests import NOT_TESTED, Figure, JudgeTest, PartTest, keep_test, saved_test

RUBRIC = "rating/alpaca-1-10-"
LABEL = "openai-chat:m"
TEXT = "judge tested 2026-11-24: J 0.62 [0.50, 0.70]"


@pytest.fixture
def url():
    class Chat(Connection):
        def do_POST(self):
            self.body()
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "[[7]]"}}
            state = self.server.states.pop(0) if self.server.states else None
            options = {} if state is None else {"system_fingerprint": state}
            self.send_json(200, {"model": "judge-1", "choices": [choice], "usage": {}, **options})

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        http.states = []
        yield http


def item(protocol, served=("judge-1",)):
    j = Figure(0.62, 0.5, 0.7, 100, 16)
    return JudgeTest(LABEL, {protocol: PartTest("2026-11-24", list(served), j, {}, Figure(0.0), {}, 200, 0, 0, 0)})


@pytest.fixture
def rated(command, tmp_path, url):
    """Runs a benchmark that the judge marks, as a person types it: (stdout, stderr, the folder of the run)."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"id": f"a{n}", "q": f"say {n}", "part": "ab"[n % 2]}) + "\n" for n in range(4))
    )
    (folder / "benchmark.yaml").write_text(yaml.safe_dump({
        "version": 1, "title": "Mine", "summary": "Questions.", "category": "QA", "kind": "qa", "language": "en",
        "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "part": "part"}},
        "subsets": {"part": "part"}, "primary": "rating[alpaca-1-10]",
        "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["rating[alpaca-1-10]"],
        "published": [{"source": "a paper", "metric": "rating[alpaca-1-10]", "values": {"Somebody": 6}}],
    }))  # fmt: skip
    (tmp_path / "models.py").write_text(
        "from codec_bench.models.base import Model, ModelInfo\nfrom codec_bench.types import Response\n"
        "class Fixed(Model):\n    info = ModelInfo('fixed')\n    identity = {}\n"
        "    async def ask(self, request):\n        return Response(text='it is fine')\n"
    )

    def run(out="out"):
        options = [
            f"--set=openai-chat.base_url={url.url}/v1",
            "--set=openai-chat.model=m",
            "--judge=openai-chat",
            f"--out={out}",
        ]
        code, out_text, err = command("run", "./mine", "--model=./models.py:Fixed", *options)
        assert code == 0, err
        return out_text, err, tmp_path / out / "mine" / "fixed"

    return run


def shown(command, folder, figures=False):
    """Every place that shows the numbers of a run: the page and the exports, written anew, and the summary."""
    command("report", folder, *(["--figures", folder.parent / "figures"] if figures else []))
    by_name = {"page": (folder / "report.html").read_text("utf-8")}
    for form in ("csv", "markdown", "latex"):
        by_name[form] = command("export", folder, "--summary", "--format", form)[1]
    by_name = {name: re.sub(r"[\\\\{}]", "", text) for name, text in by_name.items()}  # escapes of Markdown and LaTeX
    for form in ("csv", "jsonl", "model-index", "lm-eval", "inspect"):
        by_name[f"export {form}"] = " ".join(command("export", folder, "--format", form)[1].split())
    for file in sorted((folder.parent / "figures").glob("*.csv")):
        by_name[file.name] = file.read_text("utf-8")
    with closing(open_run(folder)) as run:
        by_name["trackers"] = str(collect_material(run, summarise(run), set()).rows)
    by_name["summary"] = (folder / "summary.json").read_text("utf-8")
    for form in ((), ("--json",)):
        by_name[" ".join(("compare", *form))] = " ".join(command("compare", folder, folder, *form)[1].split())
    people = folder.parent / "people.csv"
    people.write_text("id,rater,score\n" + "".join(f"a{n},ann,{n + 1}\n" for n in range(4)))
    options = ("agreement", folder, "--with", people, "--scale", "1-10")
    page = folder.parent / "agreement.html"
    by_name["agreement"] = " ".join(command(*options, "--out", page)[1].split())
    by_name["agreement --json"] = command(*options, "--json")[1]
    by_name["agreement page"] = page.read_text("utf-8")
    for form in ("table", "json", "csv"):
        messages = command("metrics", "--agree", folder, "--with", people, "--format", form)[1]
        by_name[f"metrics {form}"] = " ".join(messages.split())
    return by_name


def test_a_judge_that_was_not_tested_is_reported_everywhere_and_before_it_is_paid(rated, command):
    out, err, folder = rated()
    assert (
        f"the judge {LABEL} for rating[alpaca-1-10]: {NOT_TESTED}; codec-bench judge check openai-chat tests it" in err
    )
    assert NOT_TESTED in out
    places = shown(command, folder, figures=True)
    assert f"<td>gpt-4o-mini; {NOT_TESTED}</td>" in places["page"], "published numbers say by whom they were marked"
    assert [name for name, text in places.items() if NOT_TESTED not in text] == [] and len(places) == 21


def test_the_test_of_a_judge_is_reported_everywhere(rated, command, monkeypatch, tmp_path):
    _, _, folder = rated("first")
    from codec_bench.benchmark.judge.metric import JudgeMetric

    keep_test(item(JudgeMetric("alpaca-1-10").protocol))
    assert [
        name for name, text in shown(command, folder, figures=True).items() if TEXT not in text
    ] == []  # of an older run too
    out, err, folder = rated("second")
    assert TEXT in err and TEXT in out and NOT_TESTED not in out
    # The record holds the test for readers who have not made it, and what they know themselves stands before it.
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "elsewhere"))
    folder = tmp_path / "second" / "mine" / "fixed"
    assert not saved_test(LABEL).parts and all(TEXT in text for text in shown(command, folder).values())
    keep_test(item(JudgeMetric("alpaca-1-10").protocol, served=("judge-0",)))
    options = f"{TEXT} of judge-0, and judge-1 gave these verdicts"
    assert all(options in text for text in shown(command, folder).values())


def test_a_judge_of_another_fingerprint_is_reported_during_a_run_and_set_apart_from_that_of_another_run(rated, url):
    url.states = ["fp_1", "fp_1", "fp_2", "fp_2"]
    out, err, folder = rated("both")
    assert "the service named judge-1 fp_1 and judge-1 fp_2; so that the verdicts may be those of 2 judges" in out + err
    page = (folder / "report.html").read_text("utf-8")
    assert "judge-1 fp_1 and judge-1 fp_2" in page
    url.states = ["fp_3"] * 4
    _, _, other = rated("other")
    from codec_bench.apps.leaderboards.user_rows import _rater
    from codec_bench.apps.site.records import describe_run

    keys, protocols = set(), set()
    for one in (folder, other):
        with closing(open_run(one)) as run:
            (entry,) = summarise(run).systems.values()
            keys.add(_rater(run, "rating[alpaca-1-10]", entry.metrics["rating[alpaca-1-10]"]).key)
            protocols.add(describe_run(run)["metrics"]["rating[alpaca-1-10]"]["protocol"].partition(" ")[2])
    assert protocols == {"(judge-1 fp_1 and judge-1 fp_2)", "(judge-1 fp_3)"}, "columns of their own on a site"
    assert [key[1] for key in sorted(keys)] == [("judge-1 fp_1", "judge-1 fp_2"), ("judge-1 fp_3",)]


def test_a_change_of_the_judge_is_reported_once():
    from codec_bench.benchmark.judging import _watched
    from codec_bench.types import Response

    async def send_requests(states):
        for state in states:
            yield None, Response(text="7", served={"model": "j", "revision": state})

    async def follow():
        return [pair async for pair in _watched(send_requests, messages.append)(("a", "a", "b", "a", "b"))]

    messages: list[str] = []
    assert len(asyncio.run(follow())) == 5
    assert messages == ["the service now says that j b judges, and not j a"]


def test_a_file_that_is_not_a_test_is_one_sentence(rated, command, tmp_path):
    from codec_bench.benchmark.judge.metric import JudgeMetric

    path = keep_test(item(JudgeMetric("alpaca-1-10").protocol))
    path.write_text('{"judge": 3}')
    with refuses("not_a_judge_test"):
        saved_test(LABEL)


def test_benchmarks_state_by_whom_their_published_numbers_are_and_until_when():
    messages, after = show("instruct-tts-eval-en")["judges"]
    assert messages.startswith("published by gemini-2.5-pro (rating[instruct-tts]): ") and messages.endswith(NOT_TESTED)
    assert after == (
        "followed by gemini-3.8-flash (rating[instruct-tts]): a separate protocol, "
        f"{load_judge_metric('rating[instruct-tts]', 'gemini-3.8-flash').protocol}; {NOT_TESTED}"
    )
    _, after = show("voice-bench-commoneval")["judges"]
    assert after.startswith(
        "followed by gpt-6-luna (rating[voicebench-open]): a separate protocol, rating/voicebench-open-"
    )
    assert (
        describe_service_end("gemini-2.5-pro", today=date(2026, 11, 24))
        == "shuts down on 2026-12-01; its successor is gemini-3.8-flash"
    )
    assert "gemini-3.8-flash answers in its place" in describe_service_end("gemini-2.5-pro", today=date(2026, 12, 1))
    assert "2027-01-14" in describe_service_end("gpt-4o-mini", today=date(2026, 11, 24))
    assert "judges" not in show("librispeech-test-clean") and run_benchmark
