"""The correlations of a board's columns: on the command line, as JSON and as files."""

from __future__ import annotations

import csv
import json
import re

import pytest

from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.formats import write_heatmap

BOARD = "ultraeval-understanding"


def test_files_hold_every_pair_and_are_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    likeness = leaderboard(BOARD, correlations=True).likeness
    files = write_heatmap(likeness, tmp_path / "a", "map")
    again = write_heatmap(likeness, tmp_path / "b", "map")
    assert [path.name for path in files] == ["map.svg", "map.pdf", "map.csv"]
    assert [path.read_bytes() for path in files] == [path.read_bytes() for path in again]
    with files[2].open(encoding="utf-8") as table:
        rows = list(csv.reader(table))[1:]
    assert len(rows) == 13 * 12 // 2 and {row[2] for row in rows} == {"12"}
    assert all(-1 <= float(row[4]) < float(row[3]) < float(row[5]) <= 1 for row in rows)
    # A square for every pair.
    assert len(re.findall(r'id="FillBetweenPolyCollection_\d+"|id="PolyCollection_\d+"', files[0].read_text())) == 78


def test_the_order_of_columns_puts_those_that_are_alike_together():
    likeness = leaderboard(BOARD, correlations=True).likeness
    assert sorted(likeness.order) == sorted(likeness.columns)
    neighbours = [likeness.value(a, b).value for a, b in zip(likeness.order, likeness.order[1:], strict=False)]
    others = [pair.spearman.value for pair in likeness.pairs]
    assert sum(neighbours) / len(neighbours) > sum(others) / len(others) + 0.1
    assert likeness.value("tedlium", "tedlium") is None


def test_on_the_command_line(command, tmp_path):
    code, printed, _ = command("leaderboard", BOARD, "--correlations", "--json")
    held = json.loads(printed)["correlations"]
    assert code == 0 and len(held["pairs"]) == 78 and len(held["order"]) == 13
    assert held["pairs"][0]["spearman"]["ci95"][0] < held["pairs"][0]["spearman"]["value"]
    code, printed, text = command("leaderboard", "air-bench-chat", "--correlations")
    assert code == 0 and "Spearman's rho" in printed and "0 rows have a cell in both columns" in text
    code, _, text = command("leaderboard", BOARD, "--figures", tmp_path)
    assert code == 2 and "give --correlations too" in text
    (tmp_path / "file").write_text("")
    code, _, text = command("leaderboard", BOARD, "--correlations", "--figures", tmp_path / "file" / "x")
    assert code == 2 and "cannot be written" in text
