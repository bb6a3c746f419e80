"""One sound under two ids, and two sounds under one id: both are seen in the record, whatever the files are called."""

from __future__ import annotations

import json
import os
from datetime import datetime
from functools import partial

import numpy as np
import pytest
import soundfile

from codec_bench import compare, merge, site
from codec_bench.apps.leaderboards.codecs import codec_board
from codec_bench.apps.site.contradictions import assign_boards
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.report.data_warnings import warned_notes
from codec_bench.report.page.columns import data_sets
from codec_bench.stats.summary import summarise

RATE_HZ = 8000


@pytest.fixture
def sounds(rng):
    """Six sounds of half a second that can be written to files without a loss."""
    return [np.round(rng.uniform(-0.5, 0.5, RATE_HZ // 2) * 2**15) / 2**15 for _ in range(6)]


def written(folder, sounds, ending="wav", speakers=None):
    """A manifest of sounds, each in a file of its own."""
    folder.mkdir()
    rows = []
    for n, samples in enumerate(sounds):
        soundfile.write(folder / f"s{n}.{ending}", samples, RATE_HZ, subtype="PCM_16")
        rows.append({"id": f"s{n}", "audio": f"s{n}.{ending}", **({"speaker": speakers[n]} if speakers else {})})
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "rows.jsonl"


@pytest.fixture
def run_it(run_it):
    return partial(run_it, check=False)


def entry(run):
    return summarise(run).systems["g711-ulaw"].metrics["snr"]


def reported_of(run):
    return warned_notes(summarise(run).systems)


@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_copies_of_a_sound_make_no_interval_shorter(run_it, tmp_path, sounds, ending):
    """Where the speaker is not known, thirty rows of six sounds say what the six say."""
    once = run_it(codec="g711-ulaw", data=str(written(tmp_path / "once", sounds)), metrics="snr", out="a")
    data = str(written(tmp_path / "often", sounds * 5, ending))
    often = run_it(codec="g711-ulaw", data=data, metrics="snr", out="b", workers=2)
    one, five = entry(once), entry(often)
    assert (one.units, five.units, five.n) == (6, 6, 30)
    assert five.value == pytest.approx(one.value) and five.ci95 == pytest.approx(one.ci95)
    details = "all 30 items have the audio of another item (6 different recordings)"
    assert any(details in note for note in reported_of(often))
    assert not any("of another item" in note for note in reported_of(once))


def test_known_speakers_stay_the_units(run_it, tmp_path, sounds):
    data = written(tmp_path / "often", [*sounds, sounds[0]], speakers=[*"aabbccd"])
    run = run_it(codec="g711-ulaw", data=str(data), metrics="snr")
    assert entry(run).units == 4
    assert any("2 of 7 items have the audio of another item" in note for note in reported_of(run))


def test_a_copy_is_seen_across_shards(run_it, tmp_path, sounds):
    """Each shard records its audio, so that the merged run knows the copies."""
    requested = {"codec": "g711-ulaw", "data": str(written(tmp_path / "often", sounds * 2)), "metrics": "snr"}
    shards = [run_it(**requested, out=f"shard{k}", shard=f"{k}/2").folder for k in (1, 2)]
    merged, complete = merge(parts=shards, out=tmp_path / "merged"), run_it(**requested, out="whole")
    assert (entry(merged).units, entry(merged).n) == (entry(complete).units, entry(complete).n) == (6, 12)
    assert entry(merged).ci95 == pytest.approx(entry(complete).ci95)


def test_other_sounds_under_the_same_names_and_sizes_are_other_data(run_it, tmp_path, sounds):
    """Half as loud, in files of the same names, sizes and times: no table, board or comparison takes them for the same
    data.
    """
    requests = {"codec": ["g711-ulaw", "g722"], "metrics": "snr"}
    data = written(tmp_path / "data", sounds)
    first, same = (run_it(**requests, data=str(data), out=out) for out in ("a", "same"))
    for file in data.parent.glob("*.wav"):
        held, (samples, rate_hz) = file.stat(), soundfile.read(file)
        soundfile.write(file, samples / 2, rate_hz, subtype="PCM_16")
        os.utime(file, ns=(held.st_atime_ns, held.st_mtime_ns))
    other = run_it(**requests, data=str(data), out="b")
    assert first.meta["data"]["fingerprint"] == other.meta["data"]["fingerprint"]
    # Two runs of one second are two runs of a site, since their start times are stored to the millisecond.
    assert any(datetime.fromisoformat(run.meta["started"]).microsecond for run in (first, same, other))
    one, two, three = data_sets([first, same, other])
    assert one == two != three and three.endswith("(other sounds)")
    assert data_sets([first, same]) == ["", ""]
    actual = [table for table in codec_board([first.folder, other.folder, same.folder]).tables if table.points[0].run]
    assert [(table.data.endswith("(other sounds)"), len(table.points)) for table in actual] == [(False, 2), (True, 2)]
    assert {pair.other_sounds for pair in compare(runs=[first, other])} == {(6, 6)}
    assert {pair.other_sounds for pair in compare(runs=[first, same])} == {(0, 6)}
    built = site([first.folder], out=tmp_path / "site")
    built = site([other.folder, same.folder], out=tmp_path / "site")
    boards = SiteFolder(built.folder).read_data("index")["boards"]
    assert sorted((board["title"].endswith("(other sounds)"), board["runs"]) for board in boards) == [
        (False, 2),
        (True, 1),
    ]
    assert not built.contradictions  # the values differ, and so do the data
    site([built.folder], out=tmp_path / "copy")
    assert [board["key"] for board in SiteFolder(tmp_path / "copy").read_data("index")["boards"]] == [
        board["key"] for board in boards
    ]


def test_a_run_with_sounds_that_could_not_be_read_or_are_not_there_yet_finds_its_place():
    ids = {f"{n:03d}": f"sound {n}" for n in range(10)}
    entries = [
        {"key": key, "board": {"key": "0123456789", "title": "data", "sounds": {"all": complete, "some": some}}}
        for key, complete, some in (
            ("whole", "a", ids), ("part", None, dict(list(ids.items())[3:])), ("other", "b", {**ids, "004": "another"}),
            ("empty", None, {}), ("other part", None, {"004": "another"}),
        )
    ]  # fmt: skip
    put = {entry["key"]: entry["board"] for entry in assign_boards(entries)}
    assert put["whole"] == put["part"] | {"sounds": put["whole"]["sounds"]}
    assert put["whole"]["key"] == put["empty"]["key"] != put["other"]["key"] == put["other part"]["key"]
    assert (put["whole"]["title"], put["other"]["title"]) == ("data", "data (other sounds)")
    # A run of the whole set has the same address in every order.
    assert assign_boards(entries[2:3])[0]["board"]["key"] == put["other"]["key"]


def test_compare_says_that_the_sounds_were_others(run_it, tmp_path, sounds, command):
    runs = [
        run_it(codec="g711-ulaw", data=str(written(tmp_path / name, of)), metrics="snr", out=f"run-{name}")
        for name, of in (("a", sounds), ("b", [*sounds[1:], sounds[0]]))
    ]
    code, out, _ = command("compare", *(str(run.folder) for run in runs))
    assert code == 0 and "for 6 of 6 ids" in " ".join(out.split())
