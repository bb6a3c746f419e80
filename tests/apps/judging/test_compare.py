"""Another judge over the same answers: what it changes is known here, because both judges are made so."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, closing

import pytest
import yaml
from local_http import Connection, LocalServer
from refusals import Containing, refuses

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.judging.compare import PAGE, judge_compare
from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.report.page.collect import collect
from codec_bench.report.page.columns import side_by_side
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.judge_successions import saved_successions
from codec_bench.store.judge_tests import NOT_TESTED
from codec_bench.store.record import Run

SKILL = {"poor": 3, "fair": 5, "good": 7}


@pytest.fixture(scope="module")
def service():
    """Two judges by the name of the model: `old` gives what the answer says, and `new` gives hard ones two less, and
    easy ones the same.

    From its second state on the service gives what `new` gives under the name of `old` too.
    """

    class Chat(Connection):
        def do_POST(self):
            body = json.loads(self.body())
            text = body["messages"][-1]["content"]
            strict = body["model"] == "new" or self.server.state > 1
            mark = int(text.partition("worth ")[2][0]) - 2 * (strict and "hard" in text)
            self.server.requests.append(body["model"])
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": f"[[{mark}]]"}}
            served = f"{body['model']}-{self.server.state}"
            self.send_json(200, {"model": served, "choices": [choice], "usage": {}})

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        http.requests, http.state = [], 1
        yield http


@pytest.fixture
def url(marked, service):
    """The service, in its first state and with its requests."""
    return service


@pytest.fixture(scope="module")
def build(tmp_path_factory, service):
    """A folder with runs of three systems, marked by the old judge, and with what they were made of."""
    tmp_path = tmp_path_factory.mktemp("made")
    folder = tmp_path / "mine"
    folder.mkdir()
    rows = [
        {"id": f"a{n}", "q": f"{'hard' if n < 4 else 'easy'} question {n}", "level": "hard" if n < 4 else "easy"}
        for n in range(16)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "benchmark.yaml").write_text(yaml.safe_dump({
        "version": 1, "title": "Mine", "summary": "Questions.", "category": "QA", "kind": "qa", "language": "en",
        "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "level": "level"}},
        "subsets": {"level": "level"},
        "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["rating[alpaca-1-10]"],
        "primary": "rating[alpaca-1-10]",
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
            "options": {"base_url": f"{service.url}/v1", "model": name},
        }))  # fmt: skip
        judges.append(str(path))
    models = [f"{tmp_path / 'models.py'}:{name.title()}" for name in SKILL]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
        done = run_benchmark(
            benchmark=str(folder), model=models, judge=judges[0], out=tmp_path / "runs", page=False, workers=1
        )
    for one in done.runs.values():
        one.close()
    return tmp_path


@pytest.fixture
def marked(tmp_path, monkeypatch, build, service):
    """What the comparison is called with, over runs and a cache of the test's own."""
    service.state, service.requests = 1, ["old"] * 48
    shutil.copytree(build, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    judges = [str(tmp_path / f"{name}.yaml") for name in ("old", "new")]
    return {
        "runs": tmp_path / "runs",
        "judges": judges,
        "out": tmp_path / "copies",
        "benchmark": str(tmp_path / "mine"),
    }


def test_a_custom_benchmark_is_located_above_its_runs(marked, url):
    options = judge_compare(**{**marked, "benchmark": None})
    assert [one.offset.value for one in options] == [-0.5]


def test_what_a_new_judge_changes_is_reported(marked, url):
    before = (marked["runs"] / "mine" / "good" / "run.sqlite").read_bytes()
    (outcome,) = judge_compare(**marked, progress=False)
    # Every fourth answer gets two less: 0.5 over all, and nothing of the order of the systems changes.
    assert outcome.offset.value == -0.5 and outcome.offset.n == 48 and outcome.offset.units == 16
    assert outcome.offset.low < -0.5 < outcome.offset.high and outcome.equal.value == 0.75
    assert list(outcome.kinds) == ["level=hard", "level=easy"] and [one.value for one in outcome.kinds.values()] == [
        -2.0,
        0.0,
    ]
    assert outcome.ranks.value == 1.0 and outcome.lost == 0 and outcome.served == (["old-1"], ["new-1"])
    half = (outcome.offset.high - outcome.offset.low) / 2
    assert outcome.words == f"by {outcome.new}, minus 0.50 ± {half:.2f} relative to {outcome.old}"
    assert (marked["runs"] / "mine" / "good" / "run.sqlite").read_bytes() == before, "the run itself stays as it is"
    assert url.requests.count("old") == url.requests.count("new") == 48
    assert judge_compare(**marked) == [outcome] and len(url.requests) == 96, "the same call asks nothing again"


def test_wrong_judges_and_other_answers_are_one_sentence(marked):
    with refuses("judges_to_compare", count=1):
        judge_compare(**{**marked, "judges": marked["judges"][:1]})
    with refuses("no_verdicts_of_judge", judge=Containing("new-")):
        judge_compare(**{**marked, "judges": marked["judges"][::-1]})
    poor, good = (marked["runs"] / "mine" / name for name in ("poor", "good"))
    judge_compare(**marked)
    shutil.rmtree(marked["out"] / "mine" / "good")
    shutil.copytree(poor, marked["out"] / "mine" / "good")
    with refuses("answers_differ"):
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
    page = (marked["out"] / PAGE).read_text("utf-8")
    assert out.split()[-1] == str(marked["out"] / PAGE)
    # Twelve answers of 48 move, all of them by two, and no others are among those that move most.
    body = page.partition('id="items-table"')[2].partition("</table>")[0]
    assert body.count("<tr>") == 1 + 12 and "easy question" not in body and "hard question" in body
    assert "minus 0.50 ±" in page and page.count(NOT_TESTED) == 2, "each of the two judges says that it was not tested"


@pytest.fixture
def board(marked):
    """The board of the benchmark, with the rows of some folders of runs; ratings of the rubric are shown times 10."""
    column = {"name": "Mine", "benchmark": marked["benchmark"], "metric": "rating[alpaca-1-10]", "counts": "rating"}
    path = marked["runs"].parent / "board.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "summary": "A board.", "columns": [column]}))
    return lambda *runs: leaderboard(str(path), runs)


def test_a_board_has_a_row_for_each_judge_and_shows_the_bridge_where_there_is_one(marked, board, command):
    old = board(marked["runs"])
    assert [row.name for row in old.rows] == ["fair", "good", "poor"] and old.judge_notes == []
    (outcome,) = judge_compare(**marked)
    both = board(marked["runs"], marked["out"])
    assert [row.name for row in both.rows] == [
        f"{name} (rated by {judge} as {judge[:3]}-1)"
        for name in ("fair", "good", "poor")
        for judge in (outcome.new, outcome.old)
    ]
    assert all(not row.complete and row.average is None for row in both.rows), "nothing is ranked"
    half = 10 * (outcome.offset.high - outcome.offset.low) / 2
    options = (
        f"Mine: by {outcome.new}, minus 5.00 ± {half:.2f} relative to {outcome.old}, measured over 48 answers with "
        f"alpaca-1-10-b2d44e9c; the two are not ranked against each other"
    )
    assert both.judge_notes == [options] and saved_successions() == [outcome]
    path = marked["runs"].parent / "board.yaml"
    code, out, err = command("leaderboard", path, marked["runs"], marked["out"], "--json")
    held = json.loads(out)
    assert code == 0 and held["judges"] == [options]
    assert held["rows"][0]["raters"]["Mine"] == {
        "judge": outcome.new,
        "served": ["new-1"],
        "rubric": "rating/alpaca-1-10-b2d44e9c",
        "in_place_of": "gpt-4o-mini",
    }
    latex = marked["runs"].parent / "board.tex"
    code, _, err = command("leaderboard", path, marked["runs"], marked["out"], "--latex", latex)
    assert code == 0 and "minus 5.00 ±" in " ".join(err.split()) and "minus 5.00" in latex.read_text()


def test_another_state_of_a_judge_is_another_judge_until_the_two_are_compared(marked, board, url):
    url.state = 2
    other = run_benchmark(
        benchmark=marked["benchmark"], model=f"{marked['runs'].parent / 'models.py'}:Good", judge=marked["judges"][0],
        out=marked["runs"].parent / "later", page=False, workers=1, cache=False,
    )  # fmt: skip
    for run in other.runs.values():
        run.close()
    later = marked["runs"].parent / "later"
    split = board(marked["runs"], later)
    label = next(iter(split.rows[0].raters.values())).judge
    assert [row.name for row in split.rows] == [
        "fair",
        f"good (rated by {label} as old-1)",
        f"good (rated by {label} as old-2)",
        "poor",
    ]
    assert split.judge_notes == [
        f"Mine: values by {label} as old-1 and by {label} as old-2 are not ranked against each other, and no bridge "
        f"between them was "
        "measured (codec-bench judge compare)"
    ]
    with ExitStack() as opened:
        runs = [opened.enter_context(closing(Run(index.parent))) for index in (
            *sorted(marked["runs"].rglob("run.sqlite")), *later.rglob("run.sqlite"))]  # fmt: skip
        role = side_by_side(runs, [summarise(run) for run in runs])
        page = collect(runs, None, audio_bytes=0, max_rows=9, folder=later)
    first, second = role.columns
    assert first.protocol.endswith(" (old-1)") and second.protocol.endswith(" (old-2)")
    assert first.protocol[:-8] == second.protocol[:-8] and first[::2] == second[::2]
    held = [[entry is not None for entry in row] for row in role.entries]
    assert held == [[True, False]] * 3 + [[False, True]], "a report keeps the two apart"
    assert [head["protocol"] for head in page.data["columns"]] == [first.protocol, second.protocol]
    requests = len(url.requests)
    again = {**marked, "judges": [marked["judges"][0]] * 2, "out": marked["runs"].parent / "again"}
    (outcome,) = judge_compare(**again)
    assert (
        outcome.served == (["old-1"], ["old-2"]) and outcome.offset.value == -0.5 and len(url.requests) == requests + 48
    )
    assert outcome.words.startswith(f"by {label} as old-2, minus 0.50 ±") and outcome.words.endswith(
        f" {label} as old-1"
    )
    assert judge_compare(**again) == [outcome] and len(url.requests) == requests + 48, (
        "the same call asks nothing again"
    )
    (messages,) = board(marked["runs"], later).judge_notes
    assert messages.startswith(f"Mine: by {label} as old-2, minus 5.00 ±")


def test_what_is_stored_of_two_judges_is_whole_or_refused(marked, board):
    judge_compare(**marked)
    from codec_bench.config.paths import cache_folder

    (path,) = (cache_folder() / "judge-successions").iterdir()
    path.write_text('{"rubric": "rating/alpaca-1-10-b2d44e9c"}')
    with refuses("not_a_judge_comparison"):
        board(marked["runs"], marked["out"]).judge_notes  # noqa: B018 - it is read where it is shown


def test_published_values_state_by_whom_they_were_marked():
    (messages,) = leaderboard("ultraeval-generation").judge_notes
    assert messages.startswith("published values of speech-alpacaeval were marked by gpt-4o-mini: ")
    assert "2027-01-14" in messages and messages.endswith(NOT_TESTED)
    (messages,) = leaderboard("air-bench-chat").judge_notes  # its source names the judge, of which there is no config
    assert messages.endswith(f"were marked by a judge that is not among the models here: {NOT_TESTED}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda built: {"judges": [built["judges"][0], "nobody"]},
            {"code": "unknown_name", "kind": "model", "name": "nobody"},
        ),
        (
            lambda built: {"benchmark": shutil.rmtree(built["benchmark"])},
            {"code": "benchmark_of_folder_missing", "benchmark": "mine", "folder": "fair"},
        ),
        (lambda built: {"runs": built["runs"].parent / "nowhere"}, {"code": "holds_no_run"}),
    ],
)
def test_what_cannot_be_compared_is_one_sentence_and_nothing_is_copied(marked, change, message):
    with refuses(**message) as error:
        judge_compare(**{**marked, **change(marked)})
    assert "\n" not in error.value.message and not marked["out"].exists()


def test_a_control_is_no_answer_that_judges_are_compared_on(marked):
    good, blind = (marked["runs"] / "mine" / name for name in ("good", "good+sound-none"))
    shutil.copytree(good, blind)
    with closing(Run(blind)) as run:
        held = run.meta["fingerprint"]
    with closing(AnswerWriter(blind, held)) as writer:
        writer.set_meta(fingerprint={**held, "asked": {**held["asked"], "control": {"sound": "none"}}})
    (outcome,) = judge_compare(**marked)
    assert outcome.offset.n == 48 and list(outcome.kinds) == ["level=hard", "level=easy"]
    with refuses("control_no_result"):
        judge_compare(**{**marked, "runs": blind})
