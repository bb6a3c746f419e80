"""Shards of an evaluation, merged: the run of one machine."""

from __future__ import annotations

import json

import pytest
from refusals import Containing, refuses

from codec_bench import evaluate, merge, open_run, score
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import Note

OPTIONS = {"workers": 1, "check": False, "cache": False, "page": False}
KIND = {
    "codec": "unprocessed,g711-ulaw",
    "data": "embedded",
    "metrics": "si_sdr,bitrate",
    "limit": 9,
    "seed": 4,
    "by": "speaker",
}


def rows(run):
    return [row._asdict() for row in run.rows()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of the shards' runs, and the run of one machine."""
    path = tmp_path_factory.mktemp("shards")
    for k in (1, 2):
        evaluate(**KIND, shard=f"{k}/2", out=path / "parts" / str(k), save_audio="all", **OPTIONS).close()
    return path, evaluate(**KIND, out=path / "whole", save_audio="all", **OPTIONS)


def test_the_merged_run_is_the_run_of_one_machine(runs, tmp_path):
    position, complete = runs
    merged = merge(parts=position / "parts", out=tmp_path / "merged")
    assert rows(merged) == rows(complete)
    one, other = (json.loads((run.folder / "summary.json").read_text()) for run in (merged, complete))
    for summary in (one, other):
        for system in summary["systems"].values():
            system.pop("timing", None)
    assert one.pop("record")["state"] == other.pop("record")["state"] == "finished"
    assert one == other
    output = [
        {path.relative_to(run.folder): path.read_bytes() for path in run.folder.rglob("*.flac")}
        for run in (merged, complete)
    ]
    assert output[0] == output[1] != {}
    assert "g711-ulaw" in (tmp_path / "merged" / "report.html").read_text()
    assert merged.meta["config"].items() >= {"command": "evaluate", "limit": 9, "seed": 4}.items()
    assert "shard" not in merged.meta["config"]


def test_a_part_is_continued_as_its_own_shard_only(runs):
    position, _ = runs
    item = evaluate(**KIND, shard=(1, 2), out=position / "parts" / "1", save_audio="all", **OPTIONS)
    assert item.meta["config"]["shard"] == "1/2" and item.meta["timings"]["items"] > 0
    with refuses("other_settings", folder="1", differences="shard was 1/2, now 2/2"):
        evaluate(**KIND, shard="2/2", out=position / "parts" / "1", **OPTIONS)


def test_a_shard_gets_a_page_only_when_it_is_requested(tmp_path, command):
    out = tmp_path / "part"
    evaluate(**KIND, shard="1/3", out=out, **{**OPTIONS, "page": True}).close()
    assert (out / "summary.json").is_file() and not (out / "report.html").exists()
    code, _, _ = command("report", str(out))
    assert code == 0 and "g711-ulaw" in (out / "report.html").read_text()


def test_merge_on_the_command_line(runs, tmp_path, command):
    position, complete = runs
    code, printed, stderr = command("merge", str(position / "parts" / "1"), "--out", str(tmp_path / "m"))
    assert code == 2, stderr
    text = stderr
    assert "1 of 2 shards are missing: 2/2" in text and "--partial" in text
    with pytest.warns(Note) as noted:
        merge(parts=position / "parts" / "1", out=tmp_path / "m", partial=True).close()
    assert noted[0].message.message == Diagnostic("merged_run_partial", shards=2, missing=1, unfinished=0)
    code, printed, stderr = command("merge", str(position / "parts"), "--out", str(tmp_path / "m"), "--json")
    assert code == 0, stderr
    summary = json.loads(printed)
    assert summary["systems"].keys() == complete.systems.keys()
    code, printed, stderr = command(
        "eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stoi", "--shard", "5/4"
    )
    assert code == 2, stderr
    assert "expected K/N" in stderr


def test_scored_audio_of_two_systems_is_sharded_too(runs, tmp_path):
    _, complete = runs
    names = {
        path.name: sample.id
        for path, sample in zip(sorted((complete.folder / "audio" / "reference").iterdir()), complete.samples())
    }
    for system, retained in (("a", "g711-ulaw"), ("b", "g711-ulaw")):
        for path in (complete.folder / "audio" / retained).glob("*.flac"):
            target = tmp_path / system / f"{names[path.name].replace('/', '_')}.flac"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "b" / sorted(p.name for p in (tmp_path / "b").iterdir())[0]).unlink()
    kind = {
        "generated": f"a={tmp_path / 'a'},b={tmp_path / 'b'}",
        "data": "embedded",
        "metrics": "si_sdr",
        "limit": 9,
        "seed": 4,
    }
    alone = score(**kind, out=tmp_path / "alone", workers=1, cache=False, page=False)
    for k in (1, 2):
        score(**kind, shard=f"{k}/2", out=tmp_path / "parts" / str(k), workers=1, cache=False, page=False).close()
    merged = merge(parts=[tmp_path / "parts"], out=tmp_path / "merged", page=False)
    assert rows(merged) == rows(alone)
    assert open_run(tmp_path / "merged").counts()["failed_items"] == 1


def test_what_is_no_part_is_named(runs, tmp_path):
    position, complete = runs
    with refuses("holds_no_run"):
        merge(parts=tmp_path, out=tmp_path / "out")
    with refuses("parts_wrong", causes=Containing("a run of all samples, not of a shard")):
        merge(parts=[position / "parts", complete.folder], out=tmp_path / "out")
    with refuses("no_part_named"):
        merge(parts=[], out=tmp_path / "out")
