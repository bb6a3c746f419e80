"""What commands print: nothing from data controls the terminal, and an output that cannot be
written is one sentence.
"""

from __future__ import annotations

import io
import os
import sys

import pytest

from codec_bench.cli import main
from codec_bench.messages.errors import plain
from codec_bench.terminal.output import table, talk

HOSTILE = "./\x1b[2Jmine\x07\u202e.py:Own\udcff"


def shown(built) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=10_000).print(built)
    return out.getvalue()


def test_nothing_from_data_controls_the_terminal(capsys):
    text = shown(table(("name\x1b", "count"), [(HOSTILE, 3), ("x" * 20_000, None)]))
    assert "\x1b" not in text and "\u202e" not in text and "\udcff" not in text and "mine" in text
    assert max(map(len, text.splitlines())) < 1_000 and "…" in text
    talk(f"error: {HOSTILE}\n{'y' * 20_000}")
    err = capsys.readouterr().err
    assert "\x1b" not in err and len(err) < 3_000 and err.count("\n") == 2


def test_a_narrow_terminal_breaks_no_word_of_a_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    result = "there is no README.md beside benchmark.yaml, and one is needed"
    built = table(("what", "", "found", "do"), [("./telling", "WRONG", result, "write what the benchmark measures")])
    lines = shown(built).split()
    assert all(word in lines for word in f"{result} write what the benchmark measures ./telling WRONG".split())


def test_long_texts_show_both_ends():
    assert plain("a" * 400 + "b" * 400, 40) == "a" * 29 + "…" + "b" * 10
    assert plain("a" * 500) == "a" * 500


def test_an_encoding_without_the_arrows_of_tables_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["codec-bench", "list", "metrics"])
    with io.TextIOWrapper(io.BytesIO(), "ascii") as narrow, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", narrow)
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: standard output is written as ascii, which has no '\\")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", ["list codecs", "list presets --json", "--version", "show opus-12k"])
def test_a_full_disk_is_one_sentence(monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["codec-bench", *command.split()])
    monkeypatch.setattr("codec_bench.store.export.drop_output", lambda: None)  # it is for the process's own output
    with open("/dev/full", "w") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as end:
            main()
        patched.undo()
        err = capsys.readouterr().err
        assert end.value.code == 2 and err == "error: standard output cannot be written: No space left on device\n"
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # so that what is left in its buffer goes nowhere
