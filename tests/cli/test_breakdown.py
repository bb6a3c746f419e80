"""`--by`: a column of the manifest in the summary, in the terminal and in JSON, and what is said of a column that will
not do.
"""

from __future__ import annotations

import json
import shutil

import pytest

from codec_bench import evaluate, open_run
from codec_bench.data import open_source


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Six clips of the embedded speech with a manifest that has columns of its own."""
    folder = tmp_path_factory.mktemp("data")
    samples = list(open_source("embedded"))[::6]
    rows = [
        {"id": s.id, "audio": s.audio, "spk": s.speaker, "room": ("small", "large")[n % 2], "utt": f"u{n}"}
        for n, s in enumerate(samples)
    ]
    manifest = folder / "m.jsonl"
    manifest.write_text("\n".join(map(json.dumps, rows)))
    return manifest


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return evaluate(
        codec="unprocessed,g711-ulaw", data=data, metrics="stoi,bitrate", out=folder, by="room", cache=False, workers=1,
        page=False
    )  # fmt: skip


def test_the_summary_and_the_terminal_agree(command, run, data, tmp_path):
    code, out, _ = command(
        "eval", "--codec", "unprocessed,g711-ulaw", "--data", data, "--metrics", "stoi,bitrate", "--out", run.folder,
        "--by", "spk,room",
        "--by", "duration",
    )  # fmt: skip
    assert code == 0
    summary = json.loads((run.folder / "summary.json").read_text())
    assert summary.pop("record")["state"] == "finished"
    assert summary == open_run(run.folder).summary()
    stoi = summary["systems"]["g711-ulaw"]["metrics"]["stoi"]
    assert list(stoi["subsets"]) == ["speaker", "room", "duration"]
    assert {name: row["n"] for name, row in stoi["subsets"]["room"].items()} == {"large": 3, "small": 3}
    for title in ("stoi ↑ by speaker", "stoi ↑ by room", "bitrate (kbps) ↓ by room", "stoi ↑ by duration"):
        assert title in out
    table = out[out.index("stoi ↑ by room") :].splitlines()
    small = next(line.split() for line in table if line.split()[:1] == ["small"])
    value = small[-3 if small[-1].rstrip("*").endswith("]") else -2]  # before "±half", or before "[low, high]"
    assert small[1] == "3" and float(value) == pytest.approx(stoi["subsets"]["room"]["small"]["value"], abs=0.01)


def test_a_run_is_broken_down_afterwards(command, run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.folder, copy)
    code, out, _ = command("report", copy, "--by", "speaker")
    assert code == 0 and "stoi ↑ by speaker" in out and "by room" not in out
    assert out.splitlines()[-1] == str(copy / "report.html")
    held = json.loads((copy / "summary.json").read_text())
    assert held.pop("record") == {name: run.meta[name] for name in ("identity", "generation", "state")}
    assert list(held["systems"]["g711-ulaw"]["metrics"]["stoi"]["subsets"]) == ["speaker"]
    code, out, _ = command("report", copy, "--by", "speaker", "--json")
    assert code == 0 and json.loads(out) == held
    code, out, _ = command("report", copy, copy, "--json", "--out", "both.html")
    assert code == 0 and [list(one) for one in json.loads(out)] == [list(held)] * 2


@pytest.mark.parametrize(
    ("by", "says"),
    [
        (
            "acent",
            "has no column 'acent' to break results down by; its columns are speaker, duration, sample_rate, room, utt",
        ),
        ("", "--by got no column"),
    ],
)
def test_a_column_that_is_not_there_ends_before_anything_is_computed(command, data, run, tmp_path, by, says):
    code, out, err = command(
        "eval", "--codec", "g711-ulaw", "--data", data, "--metrics", "stoi", "--out", "new", "--by", by
    )
    assert (code, out) == (2, "") and says in err and "hint:" in err
    assert not (tmp_path / "new").exists()
    code, _, err = command("report", run.folder, "--by", by)
    assert code == 2 and says in err


def test_generated_audio_is_broken_down_too(command, data, tmp_path):
    built = tmp_path / "made"
    built.mkdir()
    for sample in open_source(data):
        shutil.copy(sample.audio, built / f"{sample.id}.flac")
    code, out, _ = command(
        "score",
        "--generated",
        built,
        "--data",
        data,
        "--metrics",
        "stoi",
        "--out",
        "r",
        "--by",
        "room",
        "--allow-same",
        "--json",
    )
    assert code == 0
    rooms = json.loads(out)["systems"]["generated"]["metrics"]["stoi"]["subsets"]["room"]
    assert {name: (row["n"], round(row["value"], 3)) for name, row in rooms.items()} == {
        "large": (3, 1.0),
        "small": (3, 1.0),
    }


def test_a_page_that_cannot_be_written_is_one_sentence(command, run):
    code, _, err = command("report", run.folder, "--out", "no/such/folder/page.html")
    assert code == 2 and "'no/such/folder/page.html' cannot be written" in err


def test_figures_are_written_next_to_the_page(command, run, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = command("report", run.folder, "--out", "page.html", "--figures", "new/figures", "--by", "room")
    assert code == 0 and out.splitlines()[-1] == "page.html" and "files of figures: new/figures" in err
    stems = {path.stem for path in (tmp_path / "new" / "figures").glob("*.pdf")}
    assert {"rate-stoi", "systems-stoi", "systems-bitrate", "by-room-stoi", "time-run"} == stems - {"by-room-bitrate"}
    (tmp_path / "file").write_text("")
    code, _, err = command("report", run.folder, "--out", "page.html", "--figures", "file")
    assert code == 2 and err.startswith("error: 'file' ")
