"""Another judge over the same answers: what it changes is known here, because both judges are made so."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
import yaml
from local_http import Connection, LocalServer

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.judging.compare import judge_compare
from codec_bench.errors import UserError

SKILL = {"poor": 3, "fair": 5, "good": 7}


@pytest.fixture
def url():
    """Two judges by the name of the model: `old` gives what the answer says, and `new` gives hard ones two less, and easy ones the same."""

    class Chat(Connection):
        def do_POST(self):
            body = json.loads(self.body())
            text = body["messages"][-1]["content"]
            mark = int(text.partition("worth ")[2][0]) - 2 * (body["model"] == "new" and "hard" in text)
            self.server.asked.append(body["model"])
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": f"[[{mark}]]"}}
            self.send_json(200, {"model": f"{body['model']}-1", "choices": [choice], "usage": {}})

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        http.asked = []
        yield http


@pytest.fixture
def marked(tmp_path, monkeypatch, url):
    """Runs of three systems, marked by the old judge; what the comparison is called with."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    rows = [
        {"id": f"a{n}", "q": f"{'hard' if n < 4 else 'easy'} question {n}", "level": "hard" if n < 4 else "easy"}
        for n in range(16)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "benchmark.yaml").write_text(yaml.safe_dump({
        "version": 1, "title": "Mine", "summary": "Questions.", "category": "QA", "kind": "qa", "language": "en",
        "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "level": "level"}}, "subsets": {"level": "level"},
        "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["rating[alpaca-1-10]"], "primary": "rating[alpaca-1-10]",
    }))  # fmt: skip
    (tmp_path / "models.py").write_text(
        "from codec_bench.models.base import Model, ModelInfo\nfrom codec_bench.types import Response\n"
        + "".join(
            f"class {name.title()}(Model):\n    info = ModelInfo('{name}')\n    identity = {{}}\n"
            f"    async def ask(self, request):\n        return Response(text='this is worth {skill} points')\n"
            for name, skill in SKILL.items()
        )
    )
    judges = []
    for name in ("old", "new"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({
            "version": 1, "summary": "A judge.", "kind": "openai-chat", "inputs": ["text"], "outputs": ["text"],
            "options": {"base_url": f"{url.url}/v1", "model": name},
        }))  # fmt: skip
        judges.append(str(path))
    models = [f"{tmp_path / 'models.py'}:{name.title()}" for name in SKILL]
    done = run_benchmark(
        benchmark=str(folder), model=models, judge=judges[0], out=tmp_path / "runs", page=False, workers=1
    )
    for one in done.runs.values():
        one.close()
    return {"runs": tmp_path / "runs", "judges": judges, "out": tmp_path / "copies", "benchmark": str(folder)}


def test_what_a_new_judge_changes_is_told(marked, url):
    before = (marked["runs"] / "mine" / "good" / "run.sqlite").read_bytes()
    (found,) = judge_compare(**marked)
    # Every fourth answer gets two less: 0.5 over all, and nothing of the order of the systems changes.
    assert found.offset.value == -0.5 and found.offset.n == 48 and found.offset.units == 16
    assert found.offset.low < -0.5 < found.offset.high and found.equal.value == 0.75
    assert list(found.kinds) == ["level=hard", "level=easy"] and [one.value for one in found.kinds.values()] == [
        -2.0,
        0.0,
    ]
    assert found.ranks.value == 1.0 and found.lost == 0 and found.served == {found.old: ["old-1"], found.new: ["new-1"]}
    half = (found.offset.high - found.offset.low) / 2
    assert found.words == f"by {found.new}, minus 0.50 ± {half:.2f} beside {found.old}"
    assert (marked["runs"] / "mine" / "good" / "run.sqlite").read_bytes() == before, "the run itself stays as it is"
    assert url.asked.count("old") == url.asked.count("new") == 48
    assert judge_compare(**marked) == [found] and len(url.asked) == 96, "the same call asks nothing again"


def test_wrong_judges_and_other_answers_are_one_sentence(marked):
    with pytest.raises(UserError, match="1 judges were named; expected the old one and the new one"):
        judge_compare(**{**marked, "judges": marked["judges"][:1]})
    with pytest.raises(UserError, match="holds no verdicts of the judge 'new-"):
        judge_compare(**{**marked, "judges": marked["judges"][::-1]})
    poor, good = (marked["runs"] / "mine" / name for name in ("poor", "good"))
    judge_compare(**marked)
    import shutil

    shutil.rmtree(marked["out"] / "mine" / "good")
    shutil.copytree(poor, marked["out"] / "mine" / "good")
    with pytest.raises(UserError, match="are not those in"):
        judge_compare(**{**marked, "runs": good})


def test_the_command_prints_the_bridge(marked, command):
    old, new = marked["judges"]
    code, out, err = command(
        "judge",
        "compare",
        marked["runs"],
        "--judge",
        old,
        "--judge",
        new,
        "--out",
        marked["out"],
        "--benchmark",
        marked["benchmark"],
    )
    assert code == 0, err
    assert "level=hard" in out and "-2.00" in out and "minus 0.50 ±" in out
