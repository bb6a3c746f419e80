"""What a person sees in terminals of several widths, without colours, through a pipe and in a dumb terminal."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def board(command, monkeypatch):
    def show(width=None):
        for name in ("COLUMNS", "NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in ({"COLUMNS": str(width)} if width else {}).items():
            monkeypatch.setenv(name, value)
        code, out, err = command("leaderboard", "ultraeval-codec")
        assert code == 0 and "published rows" in err
        return out

    return show


@pytest.mark.parametrize("width", [80, 100, 150, 220])
def test_headings_of_a_leaderboard_are_not_broken(board, width):
    out = board(width)
    assert max(map(len, out.splitlines())) <= width
    words = re.findall(r"[a-z][\w-]+", re.sub(r"(?m)^ [A-Z>].*$", "", out))
    known = {"average", "librispeech-dev-clean", "librispeech-test-clean", "aishell-1"}
    assert set(words) == known | {"wer", "cer", "sim", "utmos", "dnsmos_p808", "dnsmos_p835_ovrl"}
    assert out.count("↓ %") == 3 and out.count("sim ↑ %") == 3 and out.count("↑ MOS") == 9
    assert len(re.findall("(?m)^ Spark ", out)) > 1, "it does not fit and is spread over blocks"


@pytest.mark.parametrize(("width", "excluded"), [(80, "from, @kbps, "), (120, "revision"), (None, None)])
def test_a_list_shows_the_columns_that_fit_and_names_the_others(command, monkeypatch, width, excluded):
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = command("list", "codecs")
    assert code == 0 and max(map(len, out.splitlines())) <= (width or 1000)
    (row,) = [line.split() for line in out.splitlines() if line.startswith(" opus-24k ")]
    assert row[:2] == ["opus-24k", "packets"], "no word is broken"
    if width:
        assert "not shown for want of width: " in err and excluded in err and " @kbps " not in out.splitlines()[1]
    else:
        assert not err and " @kbps " in out.splitlines()[1]


def test_a_leaderboard_shows_groups_notes_and_chance_levels(command):
    code, out, err = command("leaderboard", "air-bench-foundation")
    assert code == 0 and "mean ↑ %" in out and out.count("(chance 50)") == 2 and out.count("(chance 25)") == 17
    assert "Macaw-LLM: its four values are as printed" in " ".join(err.split())
    code, out, _ = command("leaderboard", "audiobench")
    assert code == 0 and "average" not in out and out.count("mean ↓ %") == 1


def test_through_a_pipe_a_row_is_a_line(board):
    out = board()
    (row,) = [line for line in out.splitlines() if line.startswith(" Spark ")]
    assert row.split() == "Spark 82.29 2.39 79.94 4.18 3.85 3.24 2.53 79.53 4.18 3.83 3.24 3.66 74.76 3.63 2.85".split()
    assert "\x1b" not in out


def test_through_a_pipe_the_folder_is_named_first_and_nothing_is_drawn(cli):
    code, _, err = cli(
        "eval", "--codec", "g711-ulaw", "--data", "embedded", "--metrics", "si_sdr", "--limit", 2, "--no-cache"
    )
    assert code == 0 and err.splitlines()[0].startswith("run folder: runs/evaluate-") and "(new)" in err.splitlines()[0]
    assert "\x1b" not in err and "\r" not in err


@pytest.mark.parametrize("width", [80, 120])
def test_findings_have_room_and_are_followed_by_what_to_do(command, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = command("validate", "stoy")
    head, _, *rows = [line.split() for line in out.splitlines() if line.strip()]
    assert code == 2 and max(map(len, out.splitlines())) <= width
    assert head == (["what", "found", "do"] if width > 100 else ["what", "found"])
    assert rows[0][:2] == ["stoy", "WRONG"] and (width > 100 or ["do"] in [row[:1] for row in rows])
