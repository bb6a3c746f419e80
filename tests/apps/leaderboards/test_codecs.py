"""Codecs of runs and of publications side by side: what may share a table, fronts, delta rates, and pictures."""

from __future__ import annotations

import csv
import json
import re
from contextlib import closing
from types import MappingProxyType

import numpy as np
import pytest
from compared_runs import FINDING, SUSPECT, recorded
from refusals import refuses

from codec_bench.apps.leaderboards.codecs import LOCAL_RUNS, codec_board, published_codecs
from codec_bench.apps.leaderboards.codecs_command import print_codecs
from codec_bench.audio.level_checks import SILENT_ESTIMATE
from codec_bench.messages import Diagnostic
from codec_bench.stats.bd_rate import bd_rate
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

RATES = {"6": 6000.0, "12": 12000.0, "24": 24000.0, "48": 48000.0}
ITEMS = 30


def record(
    folder,
    values,
    *,
    protocol="q/1",
    data="d1",
    state="finished",
    metric="stoi",
    latents=(),
    facts_of=MappingProxyType({}),
    failed=0,
):
    """A run with a bitrate and one metric; `values` gives the mean by codec, the name of which ends with its kbps."""
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 0.05, ITEMS)
    facts = {
        metric: {"protocol": protocol, "unit": "", "higher_is_better": True, "aggregate": "mean"},
        "bitrate": {
            "protocol": "bitrate/payload",
            "unit": "bps",
            "higher_is_better": False,
            "aggregate": "ratio",
        },
    }
    samples = [Sample(f"s{n}", None, speaker=f"p{n}") for n in range(ITEMS)]
    with closing(RunWriter(folder, {"asked": {}})) as writer:
        writer.begin(
            {
                name: {"lookahead_s": 0.02, "latents": 64 if name in latents else None, **facts_of.get(name, {})}
                for name in values
            },
            facts,
            samples,
        )
        for name, mean in values.items():
            rate = RATES[name.rpartition("@")[2]]
            scores = [
                {
                    metric: Score.ok(float(mean + h + 0.01 * rng.normal()), protocol),
                    "bitrate": Score.ok(rate, "bitrate/payload", numerator=rate, denominator=1.0),
                }
                for h in hard
            ]
            scores[:failed] = [{metric: Score.failed("broke", protocol)}] * failed
            writer.write([(n, ItemRecord(name, s.id, "ok", None, scores[n])) for n, s in enumerate(samples)])
        writer.set_meta(config={}, state=state, data={"name": "speech", "samples": ITEMS, "fingerprint": data})


CURVES = {f"a@{k}": 0.5 + 0.1 * n for n, k in enumerate(RATES)} | {
    f"b@{k}": 0.55 + 0.1 * n for n, k in enumerate(RATES)
}


def custom(board):
    return [table for table in board.tables if table.source == LOCAL_RUNS]


def test_the_front_and_the_delta_rate_of_a_run_with_their_uncertainty(tmp_path):
    record(tmp_path / "r", CURVES)
    (table,) = custom(codec_board([tmp_path], anchor="a"))
    points = {point.name: point for point in table.points}
    assert [p.name for p in table.points if p.on_front] == ["b@6", "b@12", "b@24", "b@48"]
    assert points["b@6"].share == 1.0 and points["a@6"].share < 0.01
    assert points["a@6"].costs == {"bitrate": 6000.0, "lookahead": 0.02} and points["a@6"].ci95[0] < points["a@6"].value
    (rate,) = table.delta_rates
    curve = lambda family: [(p.costs["bitrate"], p.value) for p in table.points if p.family == family]  # noqa: E731
    assert rate.family == "b" and rate.value == pytest.approx(bd_rate(anchor=curve("a"), test=curve("b")))
    assert rate.interval.low < rate.value < rate.interval.high < 0 and rate.interval.units == ITEMS


def test_latents_have_a_front_of_their_own(tmp_path):
    record(tmp_path / "r", {"a@6": 0.9, "a@12": 0.8, "b@6": 0.6, "b@12": 0.5}, latents=("b@6", "b@12"))
    (table,) = custom(codec_board([tmp_path], axis="lookahead"))
    assert {point.name for point in table.points if point.on_front} == {"a@6", "b@6"}


def test_tokens_stand_next_to_the_bitrate_and_are_an_axis(tmp_path, capsys):
    facts = {
        "a@6": {"tokens_per_s": 600.0, "nominal_bitrate_bps": 6000.0},
        "a@12": {"tokens_per_s": 1000.0, "nominal_bitrate_bps": 12000.0},
    }
    record(tmp_path / "r", {"a@6": 0.9, "a@12": 0.8, "b@6": 0.6, "c@6": 0.5}, latents=("b@6",), facts_of=facts)
    (table,) = custom(codec_board([tmp_path], axis="tokens"))
    points = {point.name: point for point in table.points}
    assert {name: point.costs.get("tokens") for name, point in points.items()} == {
        "a@6": 600.0,
        "a@12": 1000.0,
        "b@6": None,
        "c@6": None,
    }
    assert [name for name, point in points.items() if point.on_front] == ["a@6"]
    print_codecs([tmp_path], axis="bitrate", metrics=["stoi"], anchor=None, seed=0, figures=None, as_json=False)
    shown = {
        line.split()[0]: re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines() if "@" in line
    }
    assert shown["a@6"][2:4] == ["600", "10"] and shown["a@12"][2:4] == ["1,000", "12"]
    assert shown["b@6"][2:4] == ["not discrete", "not discrete"]
    print_codecs([tmp_path], axis="bitrate", metrics=["stoi"], anchor=None, seed=0, figures=None, as_json=True)
    (built,) = [one for one in json.loads(capsys.readouterr().out)["tables"] if one["source"] == LOCAL_RUNS]
    assert {p["codec"]: p["bits_per_token"] for p in built["points"]} == {
        "a@6": 10.0,
        "a@12": 12.0,
        "b@6": None,
        "c@6": None,
    }


def test_other_data_and_other_protocols_are_tables_of_their_own(tmp_path):
    record(tmp_path / "r", CURVES)
    record(tmp_path / "p", CURVES, protocol="q/2")
    record(tmp_path / "d", CURVES, data="d2")
    record(tmp_path / "i", CURVES, protocol="imported/versa/stoi")
    tables = custom(codec_board([tmp_path]))
    assert len(tables) == 4 and sum(table.imported for table in tables) == 1
    assert len({(table.protocol, table.points[0].run) for table in tables}) == 4
    # No published table shares its place with an own one.
    assert {table.source for table in published_codecs()} & {LOCAL_RUNS} == set()


def test_runs_that_cannot_be_shown_and_two_numbers_of_one_codec_are_named(tmp_path):
    record(tmp_path / "1", {"a@6": 0.5})
    record(tmp_path / "2", {"a@6": 0.9})
    record(tmp_path / "3", {"a@12": 0.7}, state="running")
    board = codec_board([tmp_path])
    (table,) = custom(board)
    assert [round(point.value, 1) for point in table.points] == [0.9]
    assert any(
        "the later one is shown" in note and str(tmp_path / "1") in note and str(tmp_path / "2") in note
        for note in board.notes
    )
    assert any("not finished" in note and str(tmp_path / "3") in note for note in board.notes)
    with refuses("holds_no_run"):
        codec_board([tmp_path / "nothing"])
    with refuses("unknown_name", kind="codec_family"):
        codec_board([tmp_path], anchor="zzz")


def test_published_tables_are_whole_and_state_where_they_are_from():
    tables = published_codecs()
    assert {table.source.partition(",")[0] for table in tables} == {"Codec-SUPERB", "UltraEval-Audio"}
    for table in tables:
        assert table.protocol and table.data and len(table.points) >= 9
        assert all(point.costs["bitrate"] > 0 and np.isfinite(point.value) for point in table.points)
        assert all(point.ci95 is None and point.share is None for point in table.points)
    superb = {(t.data, t.metric, p.name): p.value for t in tables if "SUPERB" in t.source for p in t.points}
    assert {data for data, _, _ in superb} == {f"codec-superb-tiny, {kind}" for kind in ("speech", "sound", "music")}
    speech = "codec-superb-tiny, speech"
    assert superb[speech, "pesq_wb", "dac_24k"] == 4.351 and superb[speech, "stoi", "bigcodec_1k"] == 0.877
    assert {t.dimension for t in tables if t.data == "LibriSpeech test-clean"} == {"words", "voice", "sound"}


def test_the_values_of_ultraeval_are_those_of_its_board():
    from importlib.resources import files

    folder = files("codec_bench") / "configs"
    held = []
    for path in ("leaderboard/ultraeval-codec.csv", "published/codecs-ultraeval.csv"):
        lines = csv.DictReader((folder / path).read_text("utf-8").splitlines())
        held.append({line.pop("codec"): line for line in lines})
    board, mine = held
    assert board.keys() == mine.keys()
    for codec, line in mine.items():
        assert {name: board[codec][name] for name in line if "/" in name} == {n: v for n, v in line.items() if "/" in n}


def test_items_that_a_codec_failed_on_are_counted_wherever_the_board_is(command, tmp_path, monkeypatch):
    monkeypatch.setattr("codec_bench.apps.leaderboards.codecs.published_codecs", lambda: [])
    record(tmp_path / "r", {"a@6": 0.5, "a@12": 0.6}, metric="utmos", failed=2)
    board = codec_board([tmp_path / "r"])
    notes = [
        Diagnostic("codec_failures", codec=name, metrics=["utmos"], failed=2, items=ITEMS) for name in ("a@6", "a@12")
    ]
    assert list(board.notes) == notes and [(p.n, p.failed) for p in custom(board)[0].points] == [(ITEMS - 2, 2)] * 2
    code, out, err = command("leaderboard", "codecs", tmp_path / "r", "--figures", tmp_path / "figures")
    assert code == 0 and all(str(note) in " ".join(err.split()) for note in notes)
    (table,) = (tmp_path / "figures").glob("front-*.csv")
    assert {row["failed"] for row in csv.DictReader(table.open(encoding="utf-8"))} == {"2"}
    code, out, _ = command("leaderboard", "codecs", tmp_path / "r", "--json")
    held = json.loads(out)
    assert held["notes_code"] == [note.as_dict() for note in notes]
    assert [point["failed"] for point in held["tables"][0]["points"]] == [2, 2]


def test_on_the_command_line_with_pictures(command, tmp_path, monkeypatch):
    record(tmp_path / "r", CURVES)
    tables = [table for table in published_codecs() if table.data.startswith("LibriSpeech test-clean")]
    monkeypatch.setattr("codec_bench.apps.leaderboards.codecs.published_codecs", lambda: tables)
    figures = tmp_path / "figures"
    code, out, err = command("leaderboard", "codecs", tmp_path / "r", "--anchor", "a", "--figures", figures)
    assert code == 0 and "speech, 30 samples (your runs)" in out and "bitrate against a" in out
    assert "protocol q/1" in err and "Pareto front" in err
    with (figures / "front-your-runs-speech.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 and {row["on_front"] for row in rows} == {"True", "False"}
    assert (figures / "sides-ultraeval-audio-librispeech-test-clean.svg").stat().st_size > 10_000
    code, out, _ = command(
        "leaderboard", "codecs", tmp_path / "r", "--json", "--metrics", "stoi", "--axis", "lookahead"
    )
    held = json.loads(out)
    assert code == 0 and held["axis"] == "lookahead" and {t["metric"] for t in held["tables"]} == {"stoi"}
    code, _, err = command("leaderboard", "codecs", "--axis", "price")
    assert code == 2 and "real_time_factor" in err
    code, _, err = command("leaderboard", "codecs", "--robustness")
    assert code == 2 and "ranks" in err
    code, _, err = command("leaderboard", "ultraeval-codec", "--anchor", "a")
    assert code == 2 and "codecs" in err


def test_a_codec_that_gives_back_silence_is_on_no_front_and_is_reported(tmp_path, command):
    good = np.linspace(0.5, 0.9, 19)
    flags = {"silent": (19, SILENT_ESTIMATE)}
    recorded(tmp_path / "runs" / "alone", {"silent": good + 0.2}, flags=flags, kbps={"silent": 1.0})
    recorded(tmp_path / "runs" / "others", {"a": good, "b": good - 0.1}, kbps={"a": 6.0, "b": 9.0})
    (table,) = custom(codec_board([tmp_path / "runs"]))
    assert {point.name: point.on_front for point in table.points} == {"silent": None, "a": True, "b": False}
    _, out, err = command("leaderboard", "codecs", str(tmp_path / "runs"), "--metrics", "m")
    messages = "silent is not compared, and on no front: 19 of its 19 values are of sound that is not the speech"
    assert "silent (not compared)" in out and messages in " ".join(err.split())


def test_a_suspect_and_a_codec_that_failed_are_on_no_front(tmp_path, command):
    """Both are the cheapest and have the best values."""
    good = np.linspace(0.5, 0.9, 19)
    values = {"side": good + 0.2, "failed": [0.99, 0.98, *[None] * 17], "a": good, "b": good - 0.1}
    recorded(tmp_path / "run", values, checks=SUSPECT, kbps={"side": 2.0, "failed": 1.0, "a": 6.0, "b": 9.0})
    (table,) = custom(codec_board([tmp_path / "run"]))
    assert {point.name: point.on_front for point in table.points} == {
        "failed": None,
        "side": None,
        "a": True,
        "b": False,
    }
    _, out, err = command(
        "leaderboard", "codecs", str(tmp_path / "run"), "--metrics", "m", "--figures", str(tmp_path / "figures")
    )
    assert "side (not compared)" in out and "failed (not compared)" in out
    err = " ".join(err.split())
    assert f"side is not compared, and on no front: side information is suspect: {FINDING['found']}" in err
    assert "failed is not compared, and on no front: it has values for too few samples" in err
    (file,) = (tmp_path / "figures").glob("front-*.csv")
    with file.open(newline="") as opened:
        rows = {row["codec"]: row for row in csv.DictReader(opened)}
    assert FINDING["found"] in rows["side"]["doubt"] and rows["a"]["doubt"] == ""
