"""The files of a site: every number is the record's, nothing of a run is lost or run, and a run is added without the
others.
"""

from __future__ import annotations

import json
import shutil
import sqlite3

import numpy as np
import pyarrow.parquet
import pytest
from refusals import refuses

from codec_bench.api.compare import compare
from codec_bench.apps.site.api import contradictions, site
from codec_bench.apps.site.folder import SiteFolder, age_key
from codec_bench.stats.intervals import ratios
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

SYSTEMS = ("opus-6k", "opus-12k", "mp3-24k")
METRICS = ("bitrate", "wer[pocketsphinx]", "stoi", "pesq_wb")


@pytest.fixture(scope="module")
def runs(make_run):
    """Three small runs: one with hostile texts and failures, one of other systems over the same data, one over other
    data.
    """
    small = {"samples": 14, "audio": False, "metrics": METRICS}
    return [
        make_run("first", systems=SYSTEMS, **small),
        make_run("second", systems=("g722",), **small),
        make_run("third", systems=("opus-6k",), data="other voices", seed=9, **small),
    ]


@pytest.fixture(scope="module")
def build(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    site([run.folder for run in runs], out=out, title="Voices & <b>more</b>")
    return SiteFolder(out)


def everything(folder: SiteFolder):
    """The entries of all runs by name."""
    return {entry["name"]: entry for entry in folder.entries()}


def test_differences_from_the_files_are_those_of_the_command(build, runs):
    """What a page reads gives the difference and the wins that `codec-bench compare` prints, also across runs."""
    entries = everything(build)
    for first, second, systems in ((0, 0, ("opus-6k", "opus-12k")), (0, 1, ("mp3-24k", "g722"))):
        sides = [(entries[runs[n].folder.name], name) for n, name in zip((first, second), systems)]
        (pair,) = compare(runs=[runs[n] for n in dict.fromkeys((first, second))], systems=systems)
        assert {c.metric for c in pair.comparisons} == set(METRICS)
        for expected in pair.comparisons:
            parts, units = zip(*(_parts(build, entry, name, expected.metric) for entry, name in sides))
            shared = [id for id in parts[0] if id in parts[1]]
            a, b = (np.array([role[id] for id in shared], float) for role in parts)
            codes = np.unique([units[0][id] for id in shared], return_inverse=True)[1]
            difference = float(ratios(a.sum(axis=0)) - ratios(b.sum(axis=0)))
            assert difference == pytest.approx(expected.test.difference, rel=1e-5)
            assert (len(shared), int(codes.max()) + 1) == (expected.pairs, expected.test.units)
            more, less = (int((sign * (a[:, 0] / a[:, 1] - b[:, 0] / b[:, 1]) > 0).sum()) for sign in (1, -1))
            assert {more, less} == {expected.wins, expected.losses}


def _parts(build, entry, system, metric):
    """What each sample adds to a metric of a system, and its unit, by id, as the site's files say."""
    samples = build.read_data(f"runs/{entry['key']}/samples")
    values = build.read_data(f"runs/{entry['key']}/values-{list(entry['metrics']).index(metric)}")
    held = values["systems"][list(entry["systems"]).index(system)]
    below = held.get("below") or [1] * len(held["above"])
    parts = {id: [x, y] for id, x, y in zip(samples["ids"], held["above"], below) if x is not None}
    return parts, dict(zip(samples["ids"], samples["units"]))


def test_the_numbers_are_those_of_the_record(build, runs):
    entries, index = everything(build), build.read_data("index")
    assert index["title"] == "Voices & <b>more</b>" and len(index["runs"]) == 3
    assert sorted(board["runs"] for board in index["boards"]) == [1, 2]  # other data is another leaderboard
    seen = 0
    for run in runs:
        entry = entries[run.folder.name]
        summary = summarise(run).as_dict()
        board = build.read_data(f"boards/{entry['board']['key']}")
        for row in (row for row in board["rows"] if row["run"] == entry["key"]):
            for column, cell in zip(board["columns"], row["cells"], strict=True):
                expected = summary["systems"][row["system"]]["metrics"][column["name"]]
                value, low, high, n, failed, _ = [*cell, *[None] * (6 - len(cell))]
                assert value == pytest.approx(expected["value"], rel=1e-6)
                ends = [low, high]
                if expected["ci95"] is None:
                    assert ends == [None, None]
                else:
                    assert ends == pytest.approx(expected["ci95"], rel=1e-6)
                assert (n, failed or 0) == (expected["n"], expected["failed"])
                seen += 1
    assert seen == 4 * 5


def test_the_scores_of_the_samples_are_those_of_the_record(build, runs):
    run = runs[0]
    key = everything(build)["first"]["key"]
    samples = build.read_data(f"runs/{key}/samples")
    assert samples["ids"] == [sample.id for sample in run.samples()]
    units = run.units()
    labels = [units[id] for id in samples["ids"]]
    assert len(set(zip(labels, samples["units"]))) == len(set(labels)) == len(set(samples["units"]))
    with sqlite3.connect(run.folder / "run.sqlite") as db:
        rows = db.execute("SELECT system, metric, sample, value, status FROM scores").fetchall()
    assert len(rows) == 14 * 3 * 4
    files = [build.read_data(f"runs/{key}/values-{m}") for m in range(len(METRICS))]
    for system, metric, sample, value, status in rows:
        held = files[metric]["systems"][system]
        above, below = held["above"][sample], held.get("below", [1] * 14)[sample]
        if status == "ok":
            assert above / below == pytest.approx(value, rel=1e-6)
        else:
            assert above is None
    table = pyarrow.parquet.read_table(build.run_folder(key) / "scores.parquet")
    assert table.num_rows == len(rows)
    assert json.loads((build.run_folder(key) / "summary.json").read_text())["systems"].keys() == set(SYSTEMS)


def test_why_a_value_is_missing_is_reported(build):
    entry = everything(build)["first"]
    texts = build.read_data(f"runs/{entry['key']}/texts-0")
    dropped = [
        (n, s, m, texts["reasons"][r]) for n, held in enumerate(texts["samples"]) for s, m, r in held.get("lost", ())
    ]
    assert {(n, list(entry["systems"])[s]) for n, s, _, (status, why) in dropped if "no packet" in why} == {
        (5, "mp3-24k"),
        (6, "mp3-24k"),
    }
    assert texts["samples"][0]["heard"].keys() == {"0", "1", "2"}


def test_no_data_file_can_end_a_script_or_be_anything_but_data(build):
    result = sorted((build.path / "data").rglob("*.js"))
    assert len(result) > 10
    hostile = 0
    for path in result:
        text = path.read_text("utf-8")
        assert text.startswith('codecBench("') and text.endswith(");\n")
        assert not set(text) & set("<>&\u2028\u2029")
        hostile += "\\u003c/script\\u003e" in text
        json.loads("[" + text[len("codecBench(") : -len(");\n")] + "]")
    assert hostile  # the texts of the runs try it


def test_half_a_character_is_written_and_read(tmp_path):
    folder = SiteFolder(tmp_path / "site")
    folder.write_data("x", {"heard": "\ud800 and \u2028"})
    assert folder.read_data("x") == {"heard": "? and \u2028"}


def test_a_run_is_added_without_the_others(runs, tmp_path):
    folders = [shutil.copytree(run.folder, tmp_path / run.folder.name) for run in runs]
    out = tmp_path / "site"
    assert site(folders[:2], out=out).added == ("first", "second")
    shutil.rmtree(folders[0])  # it is not needed again
    before = {path: path.stat().st_mtime_ns for path in (out / "data" / "runs").rglob("*") if path.is_file()}
    done = site(folders[1:], out=out)
    assert (done.added, done.unchanged) == (("third",), ("second",))
    assert before.items() <= {path: path.stat().st_mtime_ns for path in before}.items()
    assert len(SiteFolder(out).read_data("index")["runs"]) == 3
    complete = tmp_path / "whole"
    site([run.folder for run in runs], out=complete)
    for path in sorted((complete / "data").rglob("*.js")):
        if path.name != "index.js":  # it holds when it was made
            assert path.read_bytes() == (out / path.relative_to(complete)).read_bytes(), path


def test_a_run_that_went_on_replaces_what_was_held(make_run, tmp_path):
    item = make_run(
        "part", samples=8, audio=False, metrics=["stoi"], systems=["g722"], hostile=False, finish=False, stop_after=5
    )
    out = tmp_path / "site"
    site([item.folder], out=out)
    (row,) = next(iter(SiteFolder(out).entries()))["systems"].values()
    assert row["metrics"]["stoi"]["n"] == 5
    assert SiteFolder(out).read_data("index")["runs"][0][4] == "running"
    complete = make_run("whole", samples=8, audio=False, metrics=["stoi"], systems=["g722"], hostile=False)
    done = site([complete.folder], out=out)
    assert done.replaced == ("whole",)
    (entry,) = SiteFolder(out).entries()
    assert entry["systems"]["g722"]["metrics"]["stoi"]["n"] == 8 and entry["state"] == "finished"


def test_sites_of_two_people_become_one(make_run, tmp_path):
    output = make_run("heard", samples=3, systems=["g722"], metrics=["stoi"], hostile=False)
    other = make_run("other", samples=3, systems=["opus-6k"], metrics=["stoi"], hostile=False, audio=False)
    mine, theirs, both = (tmp_path / name for name in ("mine", "theirs", "both"))
    site([other.folder], out=mine)
    site([output.folder], out=theirs)
    done = site([theirs], out=mine)
    assert done.added == ("heard",)
    site([other.folder, output.folder], out=both)
    for path in sorted(both.rglob("*")):
        if path.is_file() and path.name not in ("index.js", "site.json"):
            assert path.read_bytes() == (mine / path.relative_to(both)).read_bytes(), path
    assert len(list((mine / "audio").rglob("*.flac"))) == 6  # three references and three estimates
    with refuses("site_into_itself"):
        site([mine], out=mine)


def test_nothing_of_another_site_is_run_or_copied_but_data_and_sound(runs, tmp_path):
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    site([runs[1].folder], out=theirs)
    folder = SiteFolder(theirs)
    (entry,) = folder.entries()
    texts = theirs / "data" / "runs" / entry["key"] / "texts-0.js"
    payload = folder.read_data(f"runs/{entry['key']}/texts-0")
    secret = tmp_path / "secret.flac"
    secret.write_text("no sound")
    payload["samples"][0]["sound"] = {"0": "../secret.flac"}
    payload["samples"][1]["sound"] = {"0": "javascript:alert(1)"}
    folder.write_data(f"runs/{entry['key']}/texts-0", payload)
    site([theirs], out=mine)
    assert not (mine / "audio").exists()
    assert not any("sound" in held for held in SiteFolder(mine).read_data(f"runs/{entry['key']}/texts-0")["samples"])
    retained = texts.read_text()
    for wrong in (retained + "alert(1)\n", retained.replace("spk0", "spk1", 1), retained[:-20], ""):
        assert wrong != retained
        texts.write_text(wrong)
        shutil.rmtree(mine)
        with refuses("site_file_unreadable"):
            site([theirs], out=mine)
    folder.write_data(f"runs/{entry['key']}/texts-0", [1, 2])
    with refuses("site_file_changed"):
        site([theirs], out=mine)
    texts.unlink()
    with refuses("site_run_lacks", files="texts-0"):
        site([theirs], out=mine)


@pytest.mark.parametrize(
    "changes",
    [
        {"board": {"key": "../../../x", "title": "t"}},
        {"metrics": []},
        {"systems": {"a": None}},
        {"counts": 3, "state": {}, "systems": 1},
    ],
)
def test_what_another_site_says_of_a_run_is_whole_or_refused(runs, tmp_path, changes):
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    site([runs[1].folder], out=theirs)
    folder = SiteFolder(theirs)
    (entry,) = folder.entries()
    folder.write_data(f"runs/{entry['key']}/run", {**entry, **changes})
    with refuses("site_facts_changed"):
        site([theirs], out=mine)
    assert not (mine / "data").exists()


def test_no_file_of_this_machine_gets_into_a_site_by_a_link(runs, tmp_path):
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    site([runs[1].folder], out=theirs)
    (entry,) = SiteFolder(theirs).entries()
    secret = tmp_path / "secret"
    secret.write_text('{"password": "a key"}')
    for name in ("scores.parquet", "run.json"):
        held = theirs / "data" / "runs" / entry["key"] / name
        held.unlink()
        held.symlink_to(secret)
    site([theirs], out=mine)
    assert not [
        path for path in mine.rglob("*") if path.is_file() and "a key" in path.read_text("utf-8", errors="replace")
    ]


def test_sound_is_bounded_and_equal_sound_is_stored_once(demo_run, tmp_path):
    def retained(out, audio_mb):
        site([demo_run.folder], out=out, audio_mb=audio_mb)
        (entry,) = SiteFolder(out).entries()
        return entry["heard"], [path.stat().st_size for path in (out / "audio").rglob("*.flac")]

    assert retained(tmp_path / "none", 0) == ([], [])
    some, sizes = retained(tmp_path / "some", 1.0)
    assert 0 < len(some) < 30 and 0 < sum(sizes) <= 1e6
    # The unprocessed audio is the file of the reference.
    assert len(sizes) <= len(some) * 9


def test_runs_that_contradict_each_other_are_reported(make_run, tmp_path):
    same = {"samples": 14, "audio": False, "hostile": False, "metrics": ["stoi"], "systems": ["g711-ulaw", "g722"]}
    first, second = make_run("first", **same), make_run("second", **same)
    assert contradictions([first.folder, second.folder]) == []
    bad = rewritten(shutil.copytree(first.folder, tmp_path / "bad"), moved={"g722": -0.3})
    (result,) = contradictions([first.folder, bad])
    assert (result.system, result.metric, result.run_a, result.run_b) == ("g722", "stoi", "first", "bad")
    assert not result.interval_b[0] <= result.value_a <= result.interval_b[1]
    assert result.value_a - result.value_b == pytest.approx(0.3)
    done = site([first.folder, bad], out=tmp_path / "site")
    assert done.contradictions == (result,)
    (row,) = SiteFolder(tmp_path / "site").read_data("checks")
    assert row[:2] == ["g722", "stoi"] and row[4][0] - row[5][0] == pytest.approx(0.3)
    (board,) = (
        SiteFolder(tmp_path / "site").read_data(f"boards/{key.stem}")
        for key in (tmp_path / "site/data/boards").iterdir()
    )
    assert {(row["system"], bool(row["doubted"])) for row in board["rows"]} == {("g711-ulaw", False), ("g722", True)}


def rewritten(folder, *, moved=None, protocol=None, meta=None):
    """Makes another, later run of a copied one through the package's own writer: scores of a system are moved, or the
    protocol changed.
    """
    run = Run(folder)
    meta = meta or run.meta
    systems, metrics, samples, scores = run.systems, run.metrics, list(run.samples()), list(run.scores())
    run.close()
    shutil.rmtree(folder)
    if protocol is not None:
        metrics = {name: {**facts, "protocol": protocol} for name, facts in metrics.items()}
    writer = RunWriter(folder, meta["fingerprint"])
    writer.begin(systems, metrics, [Sample(s.id, None, s.text, s.speaker, s.language) for s in samples])
    retained = {name: meta[name] for name in ("config", "versions", "machine", "data")}
    writer.set_meta(
        **retained, state="finished", started="2026-11-21T18:40:00+00:00", finished="2026-11-21T19:00:00+00:00"
    )
    places = {sample.id: n for n, sample in enumerate(samples)}
    items = {}
    for score in scores:
        value = score.value + (moved or {}).get(score.system, 0.0)
        items.setdefault((score.system, score.id), {})[score.metric] = Score.ok(value, protocol or score.protocol)
    writer.write([(places[id], ItemRecord(system, id, "ok", None, held)) for (system, id), held in items.items()])
    writer.close()
    return folder


def test_numbers_without_an_interval_or_of_another_system_contradict_none(make_run, tmp_path):
    small = {"samples": 2, "audio": False, "hostile": False, "metrics": ["stoi"], "systems": ["g722"]}
    first, again = make_run("a", **small), make_run("b", **small)
    bad = rewritten(shutil.copytree(again.folder, tmp_path / "bad"), moved={"g722": -0.3})
    assert contradictions([first.folder, bad]) == []


def test_what_is_no_run_and_no_site_is_refused(runs, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    with refuses("folder_of_something_else", files="thesis.tex"):
        site([runs[0].folder], out=full)
    assert [path.name for path in full.iterdir()] == ["thesis.tex"]
    with refuses("holds_no_run"):
        site([full], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with refuses("site_is_file"):
        site([runs[0].folder], out=full / "thesis.tex")
    with refuses("not_a_site"):
        site([], out=tmp_path / "nothing")
    with refuses("audio_mb_below_zero"):
        site([runs[0].folder], out=tmp_path / "out", audio_mb=-1)
    old = tmp_path / "old"
    old.mkdir()
    (old / "site.json").write_text('{"schema": 99, "folders": {}}')
    with refuses("site_schema", schema=99):
        site([runs[0].folder], out=old)
    with refuses("no_run_to_check"):
        contradictions([])


def test_a_damaged_record_is_refused(make_run, tmp_path):
    run = make_run("damaged", samples=4, audio=False, metrics=["stoi"], systems=["g722"])
    file = run.folder / "run.sqlite"
    held = bytearray(file.read_bytes())
    held[len(held) // 2] ^= 0xFF
    file.write_bytes(held)
    with refuses("record_damaged"):
        site([run.folder], out=tmp_path / "out")


def test_other_protocols_have_columns_of_their_own(make_run, tmp_path):
    first = make_run("first", samples=6, audio=False, hostile=False, metrics=["stoi"], systems=["g722"])
    other = rewritten(shutil.copytree(first.folder, tmp_path / "other"), protocol="stoi/another")
    site([first.folder, other], out=tmp_path / "site")
    (path,) = (tmp_path / "site" / "data" / "boards").iterdir()
    board = SiteFolder(tmp_path / "site").read_data(f"boards/{path.stem}")
    assert [column["protocol"] for column in board["columns"]] == ["stoi/pystoi-0.4", "stoi/another"]
    assert [[cell is None for cell in row["cells"]] for row in board["rows"]] == [[True, False], [False, True]]


def scored(make_run, name, moved, tmp_path):
    """A run of generated sound: the hash of its data is that of its own sound too."""
    run = make_run(name, samples=6, audio=False, hostile=False, metrics=["stoi"], systems=["g722"])
    folder = shutil.copytree(run.folder, tmp_path / name)
    meta = {
        **run.meta,
        "config": {"command": "score", "data": "prompts"},
        "fingerprint": {"data": name},
        "data": {"name": "prompts", "fingerprint": name},
    }
    return rewritten(folder, moved={"g722": moved}, meta=meta)


def test_runs_of_generated_sound_stand_on_one_leaderboard(make_run, tmp_path):
    """Whatever their sound is: they are known by ids and texts.

    New sound under the same name is a new revision, and contradicts nothing.
    """
    folders = [scored(make_run, "old", 0.0, tmp_path), scored(make_run, "new", -0.3, tmp_path)]
    done = site(folders, out=tmp_path / "site")
    (board,) = SiteFolder(tmp_path / "site").read_data("index")["boards"]
    assert (board["title"], board["generated"], board["runs"]) == ("prompts, generated", True, 2)
    rows = SiteFolder(tmp_path / "site").read_data(f"boards/{board['key']}")["rows"]
    assert rows[0]["identity"] != rows[1]["identity"] and done.contradictions == ()


def test_sounds_that_no_run_refers_to_any_more_are_removed(make_run, tmp_path):
    """A run is given again with other sound, and another run shares a reference with what it was before."""
    small = {"samples": 3, "metrics": ["stoi"], "hostile": False}
    before = make_run("before", systems=["g722"], **small)
    other = make_run("other", systems=["opus-6k"], **small)
    after = make_run("after", systems=["g722"], longer_s=0.3, **small)
    out, fresh = tmp_path / "site", tmp_path / "fresh"
    site([before.folder, other.folder], out=out)
    stray = out / "audio" / "00" / ("0" * 24 + ".flac")
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"")
    assert (
        site([other.folder], out=out).unchanged == ("other",) and stray.exists()
    )  # nothing was replaced, nothing is sought
    assert site([after.folder], out=out).replaced == ("after",)
    site([after.folder, other.folder], out=fresh)
    sounds = lambda at: {path.relative_to(at) for path in (at / "audio").rglob("*.flac")}  # noqa: E731
    assert sounds(out) == sounds(fresh) and len(sounds(fresh)) == 12


def test_runs_of_shards_are_omitted_and_reported(make_run, tmp_path):
    run = make_run("whole", samples=4, audio=False, hostile=False, metrics=["stoi"], systems=["g722"])
    folder = shutil.copytree(run.folder, tmp_path / "part")
    rewritten(folder, meta={**run.meta, "fingerprint": {"shard": "1/2"}})
    messages = []
    done = site([run.folder, folder], out=tmp_path / "site", notify=messages.append)
    assert done.added == ("whole",) and "1 run of a shard is excluded" in messages[0]
    assert contradictions([run.folder, folder]) == []


def test_of_runs_that_ended_in_one_second_the_one_that_began_first_is_older():
    """Which of two runs over other sounds keeps the plain title follows from their order, and not from a hash."""
    of_one_second = [
        {"date": "2026-05-01T10:00:02+00:00", "started": f"2026-05-01T10:00:0{began}+00:00", "key": key}
        for began, key in (("0.250", "c"), ("1.125", "a"), ("1.500", "b"))
    ]
    before = {"date": "2026-05-01T10:00:01+00:00", "started": "2026-05-01T10:00:00.750+00:00", "key": "d"}
    assert sorted([*of_one_second[::-1], before], key=age_key) == [before, *of_one_second]
