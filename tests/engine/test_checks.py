"""The checks of a run's codecs: what they find stands beside the row, and no score depends on them."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_bench.api.evaluate import evaluate
from codec_bench.codecs import load_codec
from codec_bench.data import open_source
from codec_bench.engine import checks
from codec_bench.report.numbers import remarks, system_notes
from codec_bench.report.open_run import Run
from codec_bench.stats.summary_types import SystemSummary
from codec_bench.store.merge import merge_records
from codec_bench.store.rescue import verify_record
from codec_bench.types import Sample

WRONG = Path(__file__).parents[1] / "codecs" / "checks" / "assets" / "wrong_codecs.py"
CODECS = [f"{WRONG}:{name}" for name in ("TurnedOver", "PassesAside", "Right")]


@pytest.fixture
def run_it(run_it):
    """Runs that check their codecs."""
    return partial(run_it, check=True)


@pytest.fixture(scope="module")
def samples():
    return list(open_source("embedded"))[:2]


def test_findings_stand_next_to_the_row_and_change_no_score(run_it, same, samples):
    requested = {"codec": CODECS, "data": samples, "metrics": "si_sdr,bitrate"}
    checked = run_it(**requested, workers=1)  # whose only worker is started anew, to decode what it has encoded
    plain = run_it(**requested, out="plain", check=False)
    same(checked, plain)
    assert checked.meta["fingerprint"] == plain.meta["fingerprint"]
    summary = json.loads((checked.folder / "summary.json").read_text("utf-8"))["systems"]
    by_name = {name: [f["check"] for f in system["checks"]["findings"]] for name, system in summary.items()}
    assert by_name == {"TurnedOver": ["polarity"], "PassesAside": ["decoded elsewhere"], "Right": []}
    typed = {name: SystemSummary.from_dict(system) for name, system in summary.items()}
    assert remarks(typed["TurnedOver"]) == ["suspect: polarity"]
    assert any("PassesAside: decoded elsewhere failed: " in note for note in system_notes(typed))
    assert all(system["checks"] is None for system in plain.summary()["systems"].values())
    # A run that goes on has its checks; what was not checked before is.
    assert run_it(**requested, workers=1).meta["checks"] == checked.meta["checks"]
    assert set(run_it(**requested, out="plain").meta["checks"]) == set(by_name)


def test_a_value_of_a_codec_whose_delay_is_unknown_says_so_in_its_row(run_it, samples, tmp_path):
    requested = {
        "codec": [f"{WRONG}:LevelAlone", f"{WRONG}:FourKbps", CODECS[2]],
        "data": samples,
        "metrics": "si_sdr,snr,bitrate",
    }
    run = run_it(**requested)
    details = [one["reason"] for one in run.meta["checks"]["LevelAlone"]["unchecked"] if one["check"] == "hidden delay"]
    assert details and details[0].startswith("unknown")
    flagged = {
        (row.system, row.metric)
        for row in run.rows()
        if json.loads(row.detail).get("flag") == {"code": "alignment_unknown"}
    }
    assert flagged == {("LevelAlone", "si_sdr"), ("LevelAlone", "snr")}
    assert {r["metric"] for r in run.summary()["failures"]["reasons"] if r["status"] == "flagged"} == {"si_sdr", "snr"}
    assert all(check.is_intact for check in verify_record(run.folder))
    again = run_it(**requested)  # nothing is flagged twice
    assert list(map(tuple, again.rows())) == list(map(tuple, run.rows()))


def test_what_cannot_be_checked_says_so(run_it, samples, monkeypatch):
    live = load_codec(CODECS[2])
    run = run_it(codec=live, data=samples, metrics="bitrate", out="live")
    (left,) = run.meta["checks"]["Right"]["unchecked"]
    assert left["check"] == "decoded elsewhere" and left["reason"].code == "one_process_only"
    monkeypatch.setattr(checks, "LOADED_WITHIN_S", -1.0)
    run = run_it(codec=CODECS[2], data=samples, metrics="bitrate", out="slow", workers=1)
    (left,) = run.meta["checks"]["Right"]["unchecked"]
    assert left["reason"].code == "slow_to_load"


def test_a_codec_that_ends_its_process_is_named_once(run_it, samples):
    run = run_it(codec=[f"{WRONG}:Aborts", CODECS[2]], data=samples, metrics="bitrate", workers=2)
    (finding,) = run.meta["checks"]["Aborts"]["findings"]
    assert finding["found"] == "the worker process died (killed by signal 6) while computing check of Aborts"
    assert run.counts()["failed_items"] == 2 and not run.meta["checks"]["Right"]["findings"]


def test_the_bitrate_of_several_channels_is_reported_per_channel(run_it, tmp_path):
    rng = np.random.default_rng(0)
    soundfile.write(tmp_path / "stereo.wav", 0.1 * rng.standard_normal((16000, 2)), 16000)
    run = run_it(codec=CODECS[2], data=tmp_path, metrics="bitrate", check=False)
    system = run.summary()["systems"]["Right"]
    assert system["metrics"]["bitrate"]["value"] == pytest.approx(2 * 129600)
    assert system["channels"] == {"items": 1, "each": True, "bitrate_bps": pytest.approx(129600)}
    assert system_notes({"Right": SystemSummary.from_dict(system)}) == [
        "bitrate counts the bits of all channels; 1 clip has several channels, coded each by itself: Right (130 kbit/s "
        "for each channel)"
    ]


FLAGGED = {"codec": [f"{WRONG}:LevelAlone", CODECS[2]], "metrics": "si_sdr,bitrate"}


@pytest.fixture(scope="module")
def flagged(tmp_path_factory):
    """A run of four clips, and the first of its two shards."""
    folder = tmp_path_factory.mktemp("flagged")
    settings = {**FLAGGED, "data": list(open_source("embedded"))[:4], "page": False, "cache": False, "workers": 1}
    settings |= {"save_audio": "none", "check": True}
    return evaluate(out=folder / "whole", **settings), evaluate(out=folder / "part1", shard="1/2", **settings)


@pytest.mark.parametrize("checked", [False, True], ids=["the first part alone", "both parts"])
def test_merged_parts_carry_the_flags_of_one_machine(run_it, flagged, checked, tmp_path):
    complete, first = flagged
    assert any("alignment_unknown" in row.detail for row in complete.rows())
    data = list(open_source("embedded"))[:4]
    parts = [first, run_it(**FLAGGED, data=data, out="part2", shard="2/2", check=checked)]
    assert not any("alignment_unknown" in row.detail for item in parts for row in item.rows())
    out = tmp_path / "merged"
    merge_records([parts[0].folder], out, partial=True)
    merge_records([item.folder for item in parts], out)
    with closing(Run(out)) as merged:
        assert list(map(tuple, merged.rows())) == list(map(tuple, complete.rows()))
    assert all(check.is_intact for check in verify_record(out))


def test_a_part_that_could_report_more_than_the_first_clips_changes_no_flag(run_it, tmp_path):
    """One machine checks a codec with the first four sounds.

    Here these are silent, so that they show no delay.
    """
    quiet = [Sample(f"q{n}", str(tmp_path / f"q{n}.wav")) for n in range(4)]
    for sample in quiet:
        soundfile.write(sample.audio, np.zeros(16000), 16000)
    requests = {"codec": CODECS[2], "data": [*quiet, *list(open_source("embedded"))[:4]], "metrics": "si_sdr"}
    complete = run_it(**requests, out="whole")
    assert any("alignment_unknown" in row.detail for row in complete.rows())
    parts = [run_it(**requests, out=f"part{k}", shard=f"{k}/3") for k in (1, 2, 3)]
    out = complete.folder.parent / "merged"
    merge_records([item.folder for item in parts], out)
    with closing(Run(out)) as merged:
        assert list(map(tuple, merged.rows())) == list(map(tuple, complete.rows()))
        assert merged.meta["checks"]["Right"]["unchecked"] == complete.meta["checks"]["Right"]["unchecked"]
