"""Benchmarks against models behind a local endpoint, from the command's arguments to the record."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from local_http import Connection, LocalServer
from refusals import Containing, refuses

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.agreement.api import agreement
from codec_bench.benchmark.run_request import Terms, judge_label, run_folder
from codec_bench.messages.errors import UserError
from codec_bench.report.answers import answer_notes, judge_notes
from codec_bench.report.open_run import open_run
from codec_bench.stats.answers import answers_of, is_other_model
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Answers, MetricSummary
from codec_bench.store.answers import exchanges

DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip


class Served:
    """What a local chat endpoint serves:

    `answer(question, body)` gives (status, body); `model` is its own name for it.
    """

    def __init__(self):
        self.model, self.root, self.finish, self.seen, self.prefix = "checkpoint-1", "/ckpt/1", "stop", [], ""
        self.refuse = lambda body: None
        self.paths: dict[str, object] = {}

    def reply(self, body):
        refused = self.refuse(body)
        if refused is not None:
            return refused
        text = self.prefix + body["messages"][-1]["content"].rpartition("|")[2].strip()
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": self.finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return 200, {"model": self.model, "system_fingerprint": "fp_1", "choices": [choice], "usage": usage}

    def get(self, path):
        if path == "/v1/models":
            return {
                "object": "list",
                "data": [{"id": "m", "root": self.root, "created": len(self.seen), "max_model_len": 4096}],
            }
        return self.paths.get(path)


@pytest.fixture
def server():
    """A chat endpoint on this machine: (what it serves, its base_url)."""
    served = Served()

    class Chat(Connection):
        def do_POST(self):
            body = json.loads(self.body())
            served.seen.append(body)
            status, reply = served.reply(body)
            self.send_json(status, reply, {"x-request-id": f"req-{len(served.seen)}"})

        def do_GET(self):
            result = served.get(self.path)
            self.send_json(200 if result is not None else 404, result or {})

    with closing(LocalServer(Chat)) as http:
        yield served, f"{http.url}/v1"


@pytest.fixture
def ask(tmp_path, monkeypatch, server):
    """Runs a benchmark of the test's own against the endpoint; returns the run's folder."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    _, url = server

    def run(questions=6, out="out", model="openai-chat", definition=(), options=None, more=None, **settings):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "README.md").write_text("# mine\n")
        (folder / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, **dict(definition)}))
        rows = [{"id": f"a{n}", "q": f"say | {n}", "right": str(n), "half": str(n // 3)} for n in range(questions)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        inputs = {model: {"base_url": url, "model": "m", **(options or {})}, **(more or {})}
        outcome = run_benchmark(
            benchmark=str(folder), model=model, out=tmp_path / out, options=inputs, page=False, workers=1, **settings
        )
        for done in outcome.runs.values():
            done.close()
        return run_folder(Path(tmp_path / out), "mine", "openai-chat")

    return run


def messages(folder):
    with closing(open_run(folder)) as run:
        return answers_of(run).as_dict()


def test_answers_are_decoded_as_the_definition_says(ask, server):
    served, _ = server
    served.finish = "length"
    answers = messages(ask())
    assert all(
        body | {"max_tokens": 256, "temperature": 0.0, "repetition_penalty": 1.0} == body for body in served.seen
    )
    assert answers["at_limit"] == {"n": 6, "share": 1.0} and answers["decoding"]["untold"] == {}
    assert answers["decoding"]["asked"] == {"max_tokens": 256, "temperature": 0.0, "repetition_penalty": 1.0}
    assert not any("reasoning_tokens" in body for body in served.seen), "this model does not reason"


@pytest.mark.parametrize("options", [{"parameters": {"max_tokens": 12}}, {"parameters.max_tokens": 12}])
def test_what_the_caller_sets_replaces_what_the_definition_says(ask, server, options):
    served, _ = server
    ask(options=options)
    assert {body["max_tokens"] for body in served.seen} == {12} and {body["temperature"] for body in served.seen} == {
        0.0
    }


def test_a_definition_may_leave_everything_to_the_model(ask, server):
    served, _ = server
    ask(definition={"parameters": "own"})
    assert not {"max_tokens", "temperature", "repetition_penalty"} & set().union(*served.seen)


def test_what_a_service_refuses_to_receive_is_noted(ask, server):
    served, _ = server
    refusal = {"error": {"message": "temperature must be 1", "param": "temperature", "code": "unsupported_value"}}
    served.refuse = lambda body: (400, refusal) if "temperature" in body else None
    answers = messages(ask())
    assert "temperature must be 1" in answers["decoding"]["untold"]["temperature"] and answers["failed"] == {}


def test_a_wrong_setting_stops_the_run_and_records_nothing(ask, server, tmp_path):
    served, _ = server
    served.refuse = lambda body: (
        400,
        {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}},
    )
    with refuses("service_status", message=Containing("does not exist"), hint="openai-chat.model=NAME"):
        ask(questions=20)
    assert len(served.seen) == 1
    served.refuse = lambda body: (400, {"error": {"message": f"no: {len(served.seen)}"}})
    with refuses("refused_alike", count=8):
        ask(questions=20)
    served.refuse = lambda body: None
    assert messages(ask(questions=20))["failed"] == {}, "no refusal was recorded"


def test_a_key_that_expires_stops_the_run_and_keeps_it(ask, server):
    served, _ = server
    served.refuse = lambda body: (401, {"error": {"message": "expired"}}) if len(served.seen) > 3 else None
    with refuses("service_status", message=Containing("expired"), hint="the same command continues"):
        ask(options={"concurrency": 1})
    served.refuse, before = (lambda body: None), len(served.seen)
    assert messages(ask(options={"concurrency": 1}))["asked"] == 6
    assert len(served.seen) - before == 3 + 3, "the rest, and the three as canaries"


def test_waiting_is_reported_as_progress(ask, server):
    served, _ = server
    stages = []
    served.refuse = lambda body: (429, {"error": {"message": "try again in 3ms"}}) if len(served.seen) == 2 else None
    ask(progress=lambda stage, *counts: stages.append(stage))
    assert any(stage.startswith("mine: asking; rate limited, next try in 1 s, ") for stage in stages)


# ------------------------------------------------------------------------------------------------------- who answered


def test_the_record_says_who_answered(ask, server):
    served, _ = server
    served.model = "m-2026-11-22"
    folder = ask()
    (who,) = messages(folder)["served"]
    assert who == {"model": "m-2026-11-22", "revision": "fp_1", "n": 6, "other": False}
    with closing(open_run(folder)) as run:
        first = next(iter(exchanges(run))).answer
        assert first.served["request"].startswith("req-")
        (service,) = run.meta["service"]
    assert service["model"] == {"id": "m", "root": "/ckpt/1", "max_model_len": 4096}, (
        "`created` is the time of the call"
    )


def test_another_checkpoint_behind_the_same_name_gets_no_earlier_answers(ask, server):
    served, _ = server
    first = ask(out="one")
    served.prefix = "no "  # the next checkpoint, under the same name and root
    second = ask(out="two")
    assert messages(second)["cached"] == 0, "an address of one's own does not say which checkpoint it serves"
    with closing(open_run(first)) as a, closing(open_run(second)) as b:
        assert [e.answer.text for e in exchanges(a)] == [str(n) for n in range(6)]
        assert [e.answer.text for e in exchanges(b)] == [f"no {n}" for n in range(6)]
    third = ask(out="three", terms=Terms(reuse_answers=True))
    assert messages(third)["cached"] == 6, "knowingly, and of a run that did not say so"
    with closing(open_run(third)) as c:
        assert [e.answer.text for e in exchanges(c)] == [f"no {n}" for n in range(6)], "the newest"
    assert messages(ask(out="four"))["cached"] == 0


def stopped_after(ask, served, n, **settings):
    """A run that a refused key stopped after n answers.

    A question that is sent again, after a lost connection, counts once.
    """
    requests = lambda: {json.dumps(body["messages"], sort_keys=True) for body in served.seen}  # noqa: E731
    served.refuse = lambda body: (401, {"error": {"message": "expired"}}) if len(requests()) > n else None
    with pytest.raises(UserError):
        ask(options={"concurrency": 1}, **settings)
    served.refuse = lambda body: None


def test_a_run_is_not_continued_with_another_model_behind_its_name(ask, server):
    served, _ = server
    stopped_after(ask, served, 3)
    served.root = "/ckpt/2"
    with refuses("other_model_behind_name", changes="root was '/ckpt/1', now '/ckpt/2'"):
        ask(options={"concurrency": 1})
    served.root = "/ckpt/1"
    assert messages(ask(options={"concurrency": 1}))["asked"] == 6


def test_a_swap_that_the_service_does_not_report_is_seen_in_the_answers(ask, server):
    served, _ = server
    stopped_after(ask, served, 3)
    requests = len(served.seen)
    assert messages(ask(options={"concurrency": 1}))["canary"] == {"asked": 3, "same": 3, "changed": []}
    assert len(served.seen) - requests == 3 + 3
    served.seen.clear()
    stopped_after(ask, served, 3, out="swapped")
    served.prefix = "no "
    stages = []
    answers = messages(
        ask(options={"concurrency": 1}, out="swapped", progress=lambda stage, *counts: stages.append(stage))
    )
    (changed,) = answers["canary"]["changed"]
    assert (changed["asked"], changed["same"], changed["answers"]) == (3, 0, 3)
    assert any("3 of 3 repeated questions got another answer" in stage for stage in stages)


def test_a_model_that_changes_in_the_middle_is_reported_and_shown(ask, server):
    served, _ = server
    stages = []

    def reply(body, plain=served.reply):
        served.model = "m" if len(served.seen) <= 4 else "gemini-3.8-flash"
        return plain(body)

    served.reply = reply
    definition = {"subsets": {"half": "half"}}
    definition["data"] = {**DEFINITION["data"], "columns": {**DEFINITION["data"]["columns"], "half": "half"}}
    answers = messages(
        ask(options={"concurrency": 1}, definition=definition, progress=lambda s, *counts: stages.append(s))
    )
    mine, other = answers["served"]
    assert (mine["model"], mine["other"], other["model"], other["other"]) == ("m", False, "gemini-3.8-flash", True)
    assert mine["subsets"]["half"] == {"0": 3, "1": 1} and other["subsets"]["half"] == {"1": 2}
    assert any("says that gemini-3.8-flash fp_1 answers, and not m fp_1" in stage for stage in stages)


@pytest.mark.parametrize(
    ("requests", "answered", "other"),
    [
        ("gpt-audio", "gpt-audio-2025-08-28", False),
        ("gemini-2.5-pro", "gemini-3.8-flash", True),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite", True),
        ("Qwen/Qwen2-Audio-7B", "qwen2-audio-7b", False),
        ("models/gemini-2.0-flash", "gemini-2.0-flash-001", False),
        ("/ckpt/mine", "/ckpt/mine@main", False),
        ("m", None, False),
        (None, "m", False),
    ],
)
def test_which_names_are_the_same_model(requests, answered, other):
    assert is_other_model(requests, answered) == other


def test_cached_answers_are_listed_and_evicted(ask, server, capsys):
    from codec_bench.cli.answers import evict, list_

    ask()
    list_(as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["model"], row["answers"]) == ("openai-chat", 6)
    with refuses("no_cached_answers", model="gpt"):
        evict("gpt")
    with refuses("model_or_all_expected"):
        evict()
    evict("openai-chat")
    list_(as_json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_a_limit_of_cost_stops_the_run_and_keeps_it(ask, server):
    served, _ = server
    priced = {"prices": {"input": 50_000, "output": 100_000, "date": "2026-11-22"}, "concurrency": 1}  # 1 USD an answer
    with refuses(
        "spending_stopped",
        cause={"code": "cost_limit_reached", "limit_usd": 2.5, "spent_usd": 2},
        count=4,
        hint="are recorded",
    ):
        ask(options=priced, terms=Terms(max_cost_usd=2.5))
    assert len(served.seen) == 2
    assert messages(ask(options=priced))["cost_usd"] == pytest.approx(8.0), "six answers, and two asked again"
    assert len(served.seen) == 8
    with refuses("not_above_zero", name="max_cost_usd", value=0):
        Terms(max_cost_usd=0)


def test_each_draw_is_stored_alone(ask, server):
    served, _ = server
    warm = {"parameters.temperature": 0.7, "concurrency": 1}
    with refuses("repeats_of_greedy", hint="--set openai-chat.parameters.temperature=0.7"):
        ask(repeats=3)
    assert served.seen == []
    ask(out="one", options=warm, repeats=2)
    seeds = [body["seed"] for body in served.seen]
    assert len(seeds) == 12 == len(set(seeds)), "a service that draws by its seed draws anew"
    assert messages(ask(out="one", options=warm, repeats=2))["cached"] == 0
    again = messages(ask(out="two", options=warm, repeats=3, terms=Terms(reuse_answers=True)))
    assert (again["asked"], again["cached"], again["draws"]) == (18, 12, 3), "the third draw alone is new"
    assert len(served.seen) == 18 and messages(ask(out="plain", options=warm))["draws"] == 1
    assert {body["seed"] for body in served.seen[18:]} < set(seeds), "a plain run asks the same as the first draw"


# -------------------------------------------------------------------------------------------------------------- judges


@pytest.fixture
def rated(ask, server, tmp_path):
    """Runs a benchmark that the endpoint rates, too, by a judge in a file; returns the run's folder."""
    served, _ = server
    reply = served.reply

    def rate(body):
        status, options = reply(body)
        if status == 200 and "<answer " in str(body["messages"][-1]["content"]):
            options["choices"][0]["message"]["content"] = "Good. [[7]]"
        return status, options

    served.reply = rate
    definition = {"metrics": ["rating[alpaca-1-10]"], "primary": "rating[alpaca-1-10]"}

    def run(judge, **settings):
        return ask(questions=3, definition=definition, judge=str(judge), **settings)

    return run


def judge_file(path, url, temperature=0.5):
    path.parent.mkdir(exist_ok=True)
    held = {
        "version": 1,
        "kind": "openai-chat",
        "summary": "Judges.",
        "inputs": ["text"],
        "outputs": ["text"],
        "options": {"base_url": url, "model": "judge-1", "parameters": {"top_p": temperature}},
    }
    path.write_text(yaml.safe_dump(held))
    return path


def test_a_judge_in_a_file_is_known_by_its_content(rated, server, tmp_path):
    served, url = server
    first = judge_file(tmp_path / "here" / "strict.yaml", url)
    folder = rated(first)
    requests = len(served.seen)
    moved = judge_file(tmp_path / "there" / "strict.yaml", url)
    assert rated(moved) == folder and len(served.seen) == requests, "the same file at another path is the same judge"
    with closing(open_run(folder)) as run:
        (protocol,) = (facts["protocol"] for facts in run.metrics.values())
    assert protocol.endswith(f"/{judge_label(str(first))}") and judge_label(str(first)).startswith("strict-")
    judge_file(moved, url, temperature=0.9)
    assert judge_label(str(moved)) != judge_label(str(first))
    with refuses("other_settings", differences=Containing("scored")):
        rated(moved)


def test_several_judges_give_their_verdicts_side_by_side(rated, server, tmp_path):
    """The second judge gives no verdict on one answer of three, which the result says."""
    served, url = server
    reply = served.reply

    def by_judge(body):
        status, options = reply(body)
        if body["model"] == "judge-1" and body.get("top_p") == 0.9:
            options["choices"][0]["message"]["content"] = "I cannot say." if "say | 2" in str(body) else "[[3]]"
        return status, options

    served.reply = by_judge
    judges = [judge_file(tmp_path / "mild.yaml", url), judge_file(tmp_path / "strict.yaml", url, temperature=0.9)]
    both = ",".join(map(str, judges))
    folder = rated(both)
    mild, strict = (judge_label(str(judge)) for judge in judges)
    plain, other = "rating[alpaca-1-10]", f"rating[alpaca-1-10]@{strict}"
    with closing(open_run(folder)) as run:
        assert list(run.metrics) == [plain, other]
        assert [run.metrics[n]["protocol"].rpartition("/")[2] for n in (plain, other)] == [mild, strict]
        assert [[s.value for s in run.scores(metric=n)] for n in (plain, other)] == [[7, 7, 7], [3, 3, None]]
        (entries,) = (system["metrics"] for system in summarise(run).as_dict()["systems"].values())
        assert run.meta["config"]["judge"] == both
    assert entries[plain]["judging"] == {
        "judge": mild, "rubric": "alpaca-1-10", "asked": 3, "failed": 0, "share": 0.0, "calls": 3, "cached": 0,
        "usage": {"input_tokens": 30, "output_tokens": 15}, "cost_usd": None, "served": ["checkpoint-1 fp_1"],
            "tested": "this judge was not tested",
            "tested_code": {"code": "judge_not_tested"},
    }  # fmt: skip
    assert "no verdict" not in (entries[plain]["note"] or "")
    assert "the judge gave no verdict on 1 of 3 answers (33.3 %)" in entries[other]["note"]
    messages = judge_notes(
        [(system, name, MetricSummary.from_dict(held)) for system, name, held in [("m", plain, entries[plain])]]
    )
    assert messages[0].startswith(
        f"{plain} of m: the judge {mild} gave 3 verdicts on 3 answers; 3 calls, 0 of them from the cache"
    )
    requests = len(served.seen)
    assert rated(both) == folder and len(served.seen) == requests, "nobody is asked twice"
    pair = agreement(runs=folder, judges=f"{strict},mild").pair(strict, mild)
    assert (pair.overall.n, pair.overall.coefficients["difference"].value) == (2, 4.0)
    with refuses("same_judge"):
        rated(f"{judges[0]},{tmp_path}/./mild.yaml")


def test_several_judges_are_called_at_once(rated, tmp_path):
    """Each judge answers its first request only after the other one has received one too."""
    (tmp_path / "pair.py").write_text(
        """
import asyncio
from pathlib import Path

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

folder = Path(__file__).parent  # each judge has a process of its own

class One(Model):
    info = ModelInfo("one")
    identity = {"judge": "one"}

    async def ask(self, request):
        (folder / f"asked-{self.info.name}").touch()
        async with asyncio.timeout(60.0):
            while len(list(folder.glob("asked-*"))) < 2:
                await asyncio.sleep(0.01)
        return Response(text="[[4]]")

class Two(One):
    info = ModelInfo("two")
    identity = {"judge": "two"}
"""
    )
    with closing(open_run(rated(",".join(f"{tmp_path / 'pair.py'}:{name}" for name in ("One", "Two"))))) as run:
        assert [[s.value for s in run.scores(metric=n)] for n in run.metrics] == [[4, 4, 4], [4, 4, 4]]


def test_verdicts_count_for_the_limit_of_cost(rated, server, tmp_path):
    """Three answers and three verdicts of one dollar each: the limit is the command's, for model and judge together."""
    served, url = server
    judge = judge_file(tmp_path / "dear.yaml", url)
    price = {"input": 50_000, "output": 100_000, "date": "2026-11-22"}
    options = {"prices": price, "concurrency": 1}
    judged = {str(judge): {"prices": price, "concurrency": 1}}
    with refuses("spending_stopped", cause={"code": "cost_limit_reached", "limit_usd": 4.5, "spent_usd": 4}):
        rated(judge, options=options, more=judged, terms=Terms(max_cost_usd=4.5))
    assert len(served.seen) == 4
    with refuses("spending_stopped", cause={"code": "cost_unknown", "model": "dear"}):
        rated(judge, options=options, terms=Terms(max_cost_usd=100.0))
    with closing(open_run(rated(judge, options=options, more=judged, terms=Terms(max_cost_usd=2.5)))) as run:
        (entry,) = next(iter(summarise(run).as_dict()["systems"].values()))["metrics"].values()
    assert len(served.seen) == 6 and (entry["n"], entry["value"]) == (3, 7.0), "verdicts that were given are kept"


def test_only_a_judge_that_comes_later_is_called(rated, server, tmp_path):
    served, url = server
    first, second = (judge_file(tmp_path / f"{name}.yaml", url, temperature=t) for name, t in (("a", 0.1), ("b", 0.9)))
    folder = rated(first)
    served.seen.clear()
    with refuses("other_settings", differences=Containing("scored")):
        rated(f"{first},{second}")
    assert rated(f"{first},{second}", rescore=True) == folder
    assert [body["top_p"] for body in served.seen] == [0.9, 0.9, 0.9], "the verdicts of the first are in the cache"


def test_a_changed_reader_reads_the_same_replies_anew(rated, server, tmp_path, monkeypatch):
    from codec_bench.benchmark.judge import metric as metric_module

    served, url = server
    judge = judge_file(tmp_path / "strict.yaml", url)
    folder = rated(judge)
    requests, rubric = len(served.seen), metric_module.load_rubric("alpaca-1-10")
    changed = rubric.model_copy(update={"reply": "official/audiobench/judge-0-5"})  # it reads no brackets, and gives 0
    monkeypatch.setattr(metric_module, "load_rubric", lambda name: changed)
    assert rated(judge, rescore=True) == folder and len(served.seen) == requests, "no judge is asked again"
    with closing(open_run(folder)) as run:
        assert [s.value for s in run.scores()] == [0.0, 0.0, 0.0]
        assert [s.detail["calls"]["cached"] for s in run.scores()] == [1, 1, 1]


def test_a_judge_is_another_one_for_each_model_that_it_is_set_to():
    assert (
        judge_label("openai-chat") == "openai-chat" and judge_label("openai-chat", {"base_url": "u"}) == "openai-chat"
    )
    assert judge_label("openai-chat", {"model": "gpt-4o"}) == "openai-chat:gpt-4o"
    warm = judge_label("openai-chat", {"model": "m", "parameters.temperature": 1.0})
    assert warm.startswith("openai-chat:m-") and warm != judge_label(
        "openai-chat", {"model": "m", "parameters": {"top_p": 1}}
    )
    assert judge_label("openai-chat", {"model": "org/name @[main]"}) == "openai-chat:org/name_main_", "fits into a name"


def test_what_the_judge_refuses_to_receive_is_noted_with_the_score(rated, server, tmp_path):
    served, url = server
    refusal = {"error": {"message": "temperature must be 1", "param": "temperature", "code": "unsupported_value"}}
    served.refuse = lambda body: (400, refusal) if body["model"] == "judge-1" and "temperature" in body else None
    folder = rated(judge_file(tmp_path / "strict.yaml", url))
    answers = messages(folder)
    assert "temperature must be 1" in answers["judging"]["untold"]["temperature"] and answers["failed"] == {}
    assert any(
        note.startswith("the judge does not accept 'temperature': ")
        for note in answer_notes(Answers.from_dict(answers))
    )


def test_a_run_that_costs_says_before_it_asks_what_it_will_cost(ask, server):
    served, _ = server
    priced = {"prices": {"input": 5.0, "output": 10.0, "date": "2026-11-22"}}
    earlier_notices = []

    def note(words):
        earlier_notices.append((words, len(served.seen)))

    ask(options=priced, on_estimate=note)
    ((words, requests),) = earlier_notices
    # An answer is at most 256 tokens, and the question "say | 0" at most 7.
    assert requests == 0 and "mine with openai-chat: 6 questions with 0 s of sound will cost 0 to 0.016 USD" in words
    assert words.endswith("by the prices of 2026-11-22"), "all questions were read"
    ask(options=priced, on_estimate=note)
    assert len(earlier_notices) == 1, "nothing is left to ask"
    ask(out="other", on_estimate=note)
    assert len(earlier_notices) == 1, "a model without prices"


def test_a_dry_run_shows_requests_and_asks_nothing(ask, server, tmp_path):
    served, url = server
    folder = ask()  # writes the definition
    requests = len(served.seen)
    options = {"openai-chat": {"base_url": url, "model": "m", "prices": {"input": 5.0, "output": 10.0}}}
    outcome = run_benchmark(
        benchmark=str(tmp_path / "mine"), model="openai-chat", out=tmp_path / "dry", options=options, dry_run=True
    )
    (seen,) = outcome.previews
    assert seen.requests == ("user: say | 0", "user: say | 1", "user: say | 2") and "6 questions" in seen.cost
    assert len(served.seen) == requests and outcome.runs == {}
    assert not (tmp_path / "dry").exists() and folder.is_dir()
    del options["openai-chat"]["prices"]
    (seen,) = run_benchmark(
        benchmark=str(tmp_path / "mine"), model="openai-chat", options=options, dry_run=True
    ).previews
    assert seen.cost == "what that costs is not known: the model has no prices"


@pytest.mark.parametrize(
    ("named", "fingerprint", "root", "message"),
    [("m", None, None, True), ("m", "fp_1", None, False), ("m", None, "/ckpt", False), ("n-2", None, None, False)],
)
def test_a_name_that_a_proxy_gave_is_reported_as_one(ask, server, named, fingerprint, root, message):
    served, _ = server
    served.model, reply, get = named, served.reply, served.get
    served.reply = lambda body: (200, {**reply(body)[1], "system_fingerprint": fingerprint})
    listed = {"id": "m", "owned_by": "openai", **({"root": root} if root else {})}
    served.get = lambda path: {"data": [listed]} if path == "/v1/models" else get(path)
    with closing(open_run(ask())) as run:
        notes = answer_notes(answers_of(run))
    assert any("'m' is a name that the service gave" in note for note in notes) == message


def reasons(served, reply):
    """Lets the endpoint say something before its answers, and rate what it is shown with 7."""
    plain = served.reply

    def other(body):
        status, options = plain(body)
        message = options["choices"][0]["message"]
        judged = "<answer " in str(body["messages"][-1]["content"])
        message["content"] = "<think>[[1]]</think>Good. [[7]]" if judged else reply(message["content"])
        return status, options

    served.reply = other


def test_reasoning_is_not_scored_not_judged_and_is_stored(ask, server, tmp_path):
    """Each answer is right and stands after the thought of a wrong one; the last ends inside of its thoughts."""
    served, url = server
    reasons(
        served, lambda text: "<think>So it is 0" if text == "5" else f"<think>It may be Zebra, 9.</think>\n\n{text}"
    )
    definition = {"metrics": ["accuracy[answer-match]", "rating[alpaca-1-10]"], "primary": "accuracy[answer-match]"}
    judge = judge_file(tmp_path / "judge.yaml", url)
    folder = ask(definition=definition, judge=str(judge))
    assert sum("<answer " in str(body["messages"]) for body in served.seen) == 5, "one answer was never finished"
    assert not any("Zebra" in str(body["messages"]) for body in served.seen)
    with closing(open_run(folder)) as run:
        scores = {s.id: s for s in run.scores(metric="accuracy[answer-match]")}
        ratings = [s.value for s in run.scores(metric=next(n for n in run.metrics if n.startswith("rating")))]
        texts = [text for (text,) in run.query("SELECT text FROM answers ORDER BY number")]
    assert [scores[f"a{n}"].value for n in range(6)] == [1, 1, 1, 1, 1, None]
    assert (scores["a5"].status, scores["a5"].detail["code"]) == ("unparsed", "truncated")
    assert ratings == [7, 7, 7, 7, 7, None] and all("<think>" in text for text in texts), "the record holds all of it"
    with closing(open_run(folder)) as run:
        result = summarise(run).as_dict()["answers"]
    assert result["with_reasoning"]["n"] == 6 and result["ways"] == {"truncated": 1}


def test_reasoning_in_a_field_of_its_own_is_stored(ask, server):
    served, _ = server
    plain = served.reply

    def other(body):
        status, options = plain(body)
        options["choices"][0]["message"]["reasoning_content"] = "It may be Zebra."
        return status, options

    served.reply = other
    with closing(open_run(ask())) as run:
        assert run.query("SELECT DISTINCT reasoning FROM answers") == [("It may be Zebra.",)]
        assert all("Zebra" not in text for (text,) in run.query("SELECT text FROM answers"))
