"""`codec-bench profile` as it is typed: what it prints, what it leaves, how it exits."""

from __future__ import annotations

import json

import pytest

from codec_bench.apps.profiling.api import METRICS
from codec_bench.apps.profiling.steps import OPTIONAL

SMALL = (
    "--metrics",
    "none",
    "--limit",
    "2",
    "--device",
    "cpu",
    "--clip-s",
    "0.5",
    "--reencodings",
    "1",
    "--threads",
    "1",
)
SMALLER = (*SMALL, "--skip", ",".join(OPTIONAL))
"""For what does not depend on the measurements."""


def test_tables_a_page_and_a_record(cli, tmp_path):
    out = tmp_path / "profile"
    code, stdout, stderr = cli(
        "profile",
        "--codec",
        "g711-ulaw,g711-alaw",
        "--data",
        "embedded",
        "--out",
        str(out),
        *SMALL,
        "--skip",
        "stability,loss,bit_errors,transformer,probes",
    )
    assert code == 0, stderr
    for text in (
        "nominal bitrate kbps",
        "64.0",
        "real-time factor",
        "look-ahead samples",
        "no torch module",
        "checks:",
    ):
        assert text in stdout
    assert "profile.html" in stderr
    assert json.loads((out / "profile.json").read_text("utf-8"))["schema"] == 1
    assert "g711-alaw" in (out / "profile.html").read_text("utf-8")


def test_json_is_all_that_stdout_holds(cli, tmp_path):
    code, stdout, stderr = cli("profile", "--codec", "g711-ulaw", "--json", "--out", str(tmp_path / "p"), *SMALLER)
    assert code == 0, stderr
    facts = json.loads(stdout)
    assert facts["codecs"]["g711-ulaw"]["rate"]["nominal_bps"] == pytest.approx(64000)
    assert facts["how"]["settings"]["reencodings"] == 1


def test_a_fault_exits_with_3_and_input_with_2(cli, command, tmp_path, odd_codec):
    code, stdout, stderr = cli(
        "profile", "--codec", f"{odd_codec}:Broken,g711-ulaw", "--out", str(tmp_path / "p"), *SMALLER
    )
    assert code == 3
    assert "ZeroDivisionError: no luck" in stderr and "64.0" in stdout
    for arguments, text in (
        (("--codec", "opos-12k"), "did you mean"),
        (("--codec", "g711-ulaw", "--time-limit", "0"), "expected at least 1"),
        (("--codec", "g711-ulaw", "--data", str(tmp_path / "nothing")), "nothing"),
        (("--codec", "g711-ulaw", "--set", "nonsense"), "NAME.OPTION=VALUE"),
    ):
        code, stdout, stderr = command("profile", *arguments, "--out", str(tmp_path / "q"))
        assert code == 2 and text in stderr


def test_the_help_names_the_default_metrics(command):
    _, stdout, _ = command("profile", "--help")
    assert ",".join(METRICS) in "".join(stdout.split())


@pytest.fixture
def odd_codec(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text(
        "from codec_bench import CodecInfo\n"
        "class Broken:\n"
        "    info = CodecInfo('broken', (16000,))\n"
        "    def encode(self, batch): raise ZeroDivisionError('no luck')\n"
        "    def decode(self, codes): return []\n"
    )
    return path
