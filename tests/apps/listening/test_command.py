"""`codec-bench listen`: from a run to a page and back, and what a person can do wrong."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from codec_bench.audio.encode import write_flac
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample, Score


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two systems over three samples, with its audio."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    rows = [Sample(f"u{n}", None, None, None, None) for n in range(3)]
    writer = RunWriter(folder, {"data": "noise"})
    writer.begin({"first": {}, "second": {}}, {"stoi": {"protocol": "p", "higher_is_better": True}}, rows)
    noise = np.random.default_rng(0)
    for index in ("reference", "first", "second"):
        (folder / "audio" / index).mkdir(parents=True)
        for n in range(3):
            samples = (0.1 * noise.standard_normal(4_000)).astype(np.float32)
            write_flac(folder / f"audio/{index}/{n:07d}.flac", Audio(samples, 16_000))
    for n, row in enumerate(rows):
        scores = {"stoi": Score.ok(1.0, "p")}
        names = ("first", "second")
        items = [
            ItemRecord(s, row.id, "ok", None, scores, audio=f"audio/{s}/{n:07d}.flac", duration_s=0.25) for s in names
        ]
        writer.write([(n, item) for item in items])
    writer.set_meta(config={}, state="finished")
    writer.close()
    return folder


def answers(key, value=4):
    held = json.loads(key.read_text("utf-8"))
    rows = [
        {"trial": t["id"], "stimulus": one["id"], "value": value, "ms": 900}
        for t in held["trials"]
        for one in t["stimuli"]
    ]
    return {"format": "codec-bench listening answers", "sheet": held["sheet"], "rater": "Ann \u202e", "answers": rows}


def test_a_test_is_written_and_its_answers_are_read(command, run, tmp_path):
    code, out, err = command("listen", "export", run, "--kind", "rating", "--items", 2, "--training", 1, "--repeats", 1)
    page = run / "listening" / "rating.html"
    assert (code, out) == (0, f"{page}\n") and page.is_file()
    assert "5 trials about 2 items, with 1 shown a second time, after 1 for practice" in err and "16-bit FLAC" in err
    assert f"key, which raters must not see: {run / 'listening' / 'rating.key.json'}" in err
    (tmp_path / "a.json").write_text(json.dumps(answers(run / "listening" / "rating.key.json")), encoding="utf-8")
    code, out, err = command("listen", "import", "a.json", "--run", run, "--keep", "edited")
    assert code == 0 and "MOS" in out and "there are 1 raters; an interval needs at least 3" in out
    assert "edited file" in out and "\u202e" not in out and "ratings.csv" in err
    assert (tmp_path / "ratings.csv").read_text("utf-8").startswith("id,rater,system,score,kind,trial,")
    code, out, _ = command("listen", "import", "a.json", "--run", run, "--keep", "edited", "--json")
    assert {one["system"]: one["value"] for one in json.loads(out)["systems"]} == {"first": 4.0, "second": 4.0}


def test_the_reference_is_played_if_it_is_requested_and_the_value_is_then_dmos(command, run, tmp_path):
    for options, extra, value in (
        ((), False, "MOS"),
        (("--with-reference",), True, "DMOS"),
        (("--without-reference",), False, "MOS"),
    ):
        code, out, err = command("listen", "export", run, "--kind", "rating", "--out", tmp_path / "t.html", *options)
        assert code == 0, err
        page = (tmp_path / "t.html").read_text("utf-8")
        shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
        # Six trials with a sound of a system each: a reference that nobody can play is not in the page.
        assert [trial["open"] is not None for trial in shown["trials"]] == [extra] * 6
        assert page.count('id="clip-') == (12 if extra else 6)
        (tmp_path / "a.json").write_text(json.dumps(answers(tmp_path / "t.key.json")), encoding="utf-8")
        code, out, _ = command("listen", "import", "a.json", "--key", "t.key.json", "--json")
        assert code == 0 and json.loads(out)["measure"] == value


def test_a_p_value_is_never_shown_as_zero(command, run, tmp_path):
    command("listen", "export", run, "--kind", "rating", "--out", tmp_path / "t.html")
    key = json.loads((tmp_path / "t.key.json").read_text("utf-8"))
    is_first = {one["id"]: one["system"] == "first" for trial in key["trials"] for one in trial["stimuli"]}
    for rater in "abc":
        content = {**answers(tmp_path / "t.key.json"), "rater": rater}
        content["answers"] = [{**row, "value": 5 if is_first[row["stimulus"]] else 2} for row in content["answers"]]
        (tmp_path / f"{rater}.json").write_text(json.dumps(content), encoding="utf-8")
    files = [f"{rater}.json" for rater in "abc"]
    code, out, _ = command("listen", "import", *files, "--key", "t.key.json", "--keep", "edited,screened")
    (row,) = (line.split() for line in out.splitlines() if line.split()[:3] == ["first", "second", "3.00"])
    assert code == 0 and row[-3:] == ["<0.001", "<0.001", "9"]


def test_what_was_unusable_ends_with_3_and_no_answer_at_all_with_2(command, run, tmp_path):
    command("listen", "export", run, "--kind", "rating", "--items", 3, "--out", tmp_path / "t.html")
    (tmp_path / "a.json").write_text(json.dumps(answers(tmp_path / "t.key.json", 9)), encoding="utf-8")
    code, out, _ = command("listen", "import", "a.json", "--key", "t.key.json")
    assert code == 3 and "value out of range" in out and "answers that cannot be used: " in out
    (tmp_path / "b.json").write_text("nothing")
    code, _, err = command("listen", "import", "b.json", "--key", "t.key.json")
    assert code == 2 and "none of the files holds answers to the test" in err
    # A missing file cannot name its key; the message once said to look for the key.
    code, _, err = command("listen", "import", "c.json", "--run", run)
    assert code == 2 and "there is no file 'c.json'" in err and "--key" not in err


@pytest.mark.parametrize(
    "options,message",
    [
        (("--kind", "abcx"), "no kind of listening test called 'abcx'"),
        (("--audio", "first"), "--audio got 'first'; expected SYSTEM=FOLDER"),
        (("--audio", "third=here"), "no chosen system with a folder of audio called 'third'"),
        (("--instructions", "gone.txt"), "'gone.txt' cannot be read"),
        (("--format", "pdf"), "no format of a listening test called 'pdf'"),
        (("--systems", "frist"), "did you mean first?"),
    ],
)
def test_wrong_options_end_with_a_sentence(command, run, options, message):
    code, out, err = command("listen", "export", run, *options)
    assert (code, out) == (2, "") and message in err
