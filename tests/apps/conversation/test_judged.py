"""Requests to a judge about Full-Duplex-Bench's sessions, cached replies, and repeated requests."""

from __future__ import annotations

import json
import shutil

import pytest
from refusals import refuses

from codec_bench import converse
from codec_bench.apps.conversation.full_duplex import INPUT, WORDS
from codec_bench.apps.conversation.judged import VERDICTS
from codec_bench.apps.conversation.measures import BEHAVIOURS, OFFICIAL, OFFICIAL_15
from codec_bench.messages.errors import DamagedRecord

from .conftest import MODEL
from .server import Plan
from .test_full_duplex import layout  # noqa: F401

JUDGE = """
from pathlib import Path

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Judge(Model):
    info = ModelInfo("planted", inputs=("text",), outputs=("text",), reads="messages")
    identity = {"planted": "1"}

    async def ask(self, request):
        told = request.messages[-1].content[-1]
        with Path("asked.txt").open("a") as log:
            log.write(told + "\\n=====\\n")
        return Response(text="It fits well. [[4]]" if "interrupting:" in told else Path("kind.txt").read_text())
"""


def words(folder, name, texts, begin_s):
    chunks = [{"text": text, "timestamp": [begin_s + 0.4 * n, begin_s + 0.4 * n + 0.3]} for n, text in enumerate(texts)]
    (folder / name).write_text(json.dumps({"text": " ".join(texts), "chunks": chunks}))


def keep(path, *kinds):
    """Leave only the samples of these kinds."""
    for folder in path.glob("*/*"):
        if folder.is_dir() and f"{folder.parent.name}/{folder.name}" not in kinds:
            shutil.rmtree(folder)


def values(built, name):
    return {v.session: (v.value, v.reason) for v in built.values[MODEL] if v.measure == name}


def test_the_verdicts_of_sessions(layout, service, tmp_path, monkeypatch):  # noqa: F811
    """The interruption ends at 4.1 s: the words before it are not shown. The kinds rest on the words of four tracks."""
    monkeypatch.chdir(tmp_path)
    keep(layout, "v1_0/synthetic_user_interruption", "v1_0/candor_turn_taking", "v1_5/user_interruption")
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "kind.txt").write_text("3")
    (layout / "v1_0" / "synthetic_user_interruption" / "1" / "interrupt.json").write_text(
        json.dumps([{"context": "any books?", "interrupt": "rather films", "timestamp": [2.9, 4.1]}])
    )
    options, _ = service({"": Plan(answer_s=1.0)})
    run = converse(model=MODEL, scripts=layout, out=tmp_path / "run", options={MODEL: options}, at_once=12, page=False)
    assert not values(run, f"{OFFICIAL}/rating") and not values(run, f"{OFFICIAL_15}/responds")
    held = run.folder / "sessions" / MODEL
    rated, kinds = held / "v1_0-synthetic_user_interruption-1", held / "v1_5-user_interruption-1"
    words(rated, WORDS, ["too", "soon"], 3.0)
    words(kinds, WORDS, ["sorry", "what"], 4.5)
    for index in (kinds, held / f"{kinds.name}-clean"):
        words(index, INPUT, ["tell", "me"], 0.5)
    words(held / f"{kinds.name}-clean", WORDS, ["of", "course"], 2.5)
    requests = {"remark": True, "out": run.folder, "page": False, "judge": "./judge.py:Judge"}

    built = converse(**requests)
    (messages,) = (tmp_path / "asked.txt").read_text().split("=====")[:-1]  # an answer that takes no turn is not rated
    assert "4.50 4.80 sorry" in messages and "0.50 0.80 tell" in messages and "2.90 3.20 course" in messages
    for number, name in enumerate(BEHAVIOURS, 1):
        assert values(built, f"{OFFICIAL_15}/{name}") == {kinds.name: (float(number == 3), "")}

    words(rated, WORDS, ["too", "soon", "here", "are", "films", "to", "see"], 3.0)
    built = converse(**requests)
    _, messages = (tmp_path / "asked.txt").read_text().split("=====")[:-1]  # the other verdict is kept
    assert "interrupting: rather films" in messages and "before: any books?" in messages
    assert "are films to see" in messages and "soon" not in messages
    assert values(built, f"{OFFICIAL}/rating") == {rated.name: (4.0, "")}
    assert built.summary["systems"][MODEL]["measures"][f"{OFFICIAL}/rating"]["value"] == 4
    assert built.summary["judge"]["calls"] == 2

    converse(**requests)
    assert converse(remark=True, out=run.folder, page=False).summary == built.summary
    assert (tmp_path / "asked.txt").read_text().count("=====") == 2
    words(rated, WORDS, ["quite", "other", "words", "were", "spoken"], 4.3)
    with pytest.raises(DamagedRecord):  # the verdict is of the words before
        converse(remark=True, out=run.folder, page=False)
    words(rated, WORDS, ["too", "late", "here", "are", "films", "to", "see"], 3.0)
    assert converse(**requests).summary == built.summary, "the judge was shown no word that differs"
    assert converse(remark=True, out=run.folder, page=False).summary == built.summary
    assert (tmp_path / "asked.txt").read_text().count("=====") == 2
    (tmp_path / "kind.txt").write_text("I cannot say.")
    (kinds / VERDICTS).unlink()
    built = converse(**requests)
    value, reason = values(built, f"{OFFICIAL_15}/resumes")[kinds.name]
    assert value is None and (reason.code, reason.parameters["status"]) == ("score_status", "unparsed")


def test_the_words_of_the_user_are_written_where_a_judge_needs_them(layout, service, tmp_path):  # noqa: F811
    keep(layout, "v1_0/candor_turn_taking", "v1_5/user_interruption")
    options, _ = service({"": Plan(answer_s=1.0)})
    run = converse(
        model=MODEL, scripts=layout, out=tmp_path / "run", options={MODEL: options}, at_once=12, page=False, limit=12,
        words="pocketsphinx",
    )  # fmt: skip
    held = run.folder / "sessions" / MODEL
    there = {index.name for index in held.iterdir() if (index / INPUT).exists()}
    assert there == {name for one in (p.name for p in held.iterdir()) if (name := one).startswith("v1_5")}
    output = json.loads((held / "v1_5-user_interruption-1" / INPUT).read_text())
    assert output["chunks"] and output["recogniser"].startswith("pocketsphinx")


@pytest.mark.parametrize(
    "judge, message",
    [
        ("none-such", {"code": "unknown_name", "name": "none-such"}),
        ("tts-1", {"code": "judge_without_text_answers"}),
    ],
)
def test_a_judge_that_is_none(tmp_path, judge, message):
    with refuses(**message):
        converse(remark=True, out=tmp_path, judge=judge)
