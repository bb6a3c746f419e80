"""Stability: planted metrics move by what is known beforehand, and the real ones as their definitions say."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import tiny_speech
from refusals import refuses

from codec_bench import Audio, metric_stability
from codec_bench.api.show import show
from codec_bench.apps.agreement import stability
from codec_bench.apps.agreement.stability import CHANGES, SYSTEMS, StabilityTable, _row
from codec_bench.apps.agreement.words import stability_rows
from codec_bench.data import open_source
from codec_bench.metrics.sensitivity import MEASURE, NOTABLE, sensitive_to, shifts_in_spreads
from codec_bench.types import Score

CHANGE = CHANGES[0]
CUSTOM_CODE = """
from codec_bench import Metric, Score


class Level(Metric):
    name, kind, rate_hz, protocol, range = "level", "single", 16000, "level/1", (None, None)

    def prepare_signal(self, signal):
        return signal

    def compute(self, batch):
        import numpy as np
        return [Score.ok(20 * float(np.log10(np.sqrt((item.estimate**2).mean()))), self.protocol) for item in batch]
"""


@pytest.fixture
def planted(tmp_path):
    (tmp_path / "own.py").write_text(CUSTOM_CODE)
    return f"{tmp_path / 'own.py'}:Level"


def test_a_gain_moves_a_level_by_the_gain_and_nothing_else_does(planted):
    by_name = {row.change: row for row in metric_stability([planted], limit=2).rows}
    assert by_name["6 dB louder"].mean_shift == pytest.approx(6, abs=1e-4)
    assert by_name["6 dB quieter"].largest_shift == pytest.approx(-6, abs=1e-4)
    for change in ("polarity turned", "two equal channels", "rounded to 24 bits"):
        assert by_name[change].mean_shift == pytest.approx(0, abs=1e-4)
    (clips,) = {row.n for row in by_name.values()}
    assert clips == 2 * len(SYSTEMS) and [*by_name] == [change.name for change in CHANGES]
    for seconds in (0.5, 5.0):
        lengths = [Audio.read(sample.audio).duration_s for sample in list(open_source("embedded"))[:2]]
        lower = np.mean([10 * np.log10(length / (length + 2 * seconds)) for length in lengths])
        assert by_name[f"{seconds:g} s of zeros before and after"].mean_shift == pytest.approx(lower, abs=1e-3)


def scores(**values):
    return {
        name: [Score.undefined("no", "p") if v is None else Score.ok(v, "p") for v in row]
        for name, row in values.items()
    }


def test_places_are_those_of_one_system_that_alone_is_changed():
    before = scores(a=[1.0, 1.0], b=[2.0, 2.0], c=[4.0, 4.0])
    row = _row("m", CHANGE, before, scores(a=[2.5, 2.5], b=[3.5, 3.5], c=[5.5, 5.5]))
    assert (row.mean_shift, row.largest_shift, row.n, row.lost) == (1.5, 1.5, 6, 0)
    assert row.places == 1, "a alone would pass b; b alone stays below c"
    assert row.spread == pytest.approx(np.std([1, 2, 4])) and row.in_spreads == pytest.approx(1.5 / np.std([1, 2, 4]))


def test_missing_scores_are_counted():
    row = _row("m", CHANGE, scores(a=[1.0, None], b=[2.0, 3.0]), scores(a=[1.5, 1.0], b=[None, 3.0]))
    assert (row.n, row.lost, row.mean_shift, row.largest_shift) == (2, 1, 0.25, 0.5)
    gone = _row("m", CHANGE, scores(a=[1.0]), scores(a=[None]))
    assert (gone.n, gone.lost, gone.mean_shift, gone.in_spreads) == (0, 1, None, None)


def test_the_command_prints_what_the_verb_gives(command, monkeypatch):
    monkeypatch.setattr(stability, "CHANGES", CHANGES[::4])
    monkeypatch.setattr(stability, "SYSTEMS", SYSTEMS[:2])
    code, out, _ = command("metrics", "--stability", "--metrics", "snr", "--limit", "2", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and [row["change"] for row in table] == [change.name for change in CHANGES[::4]]
    for one, other in zip(metric_stability("snr", limit=2).rows, table):
        assert float(other["mean_shift"]) == pytest.approx(one.mean_shift, rel=1e-3, abs=1e-5)
        assert int(other["places"]) == one.places


def test_the_table_shows_what_moves_most_first():
    rows = [
        _row("m", change, scores(a=[1.0], b=[2.0]), scores(a=[1.0 + k], b=[2.0])) for k, change in enumerate(CHANGES)
    ]
    heads, cells = stability_rows(StabilityTable(rows, ["x", "y"]), "m")
    assert [row[0] for row in cells] == [change.name for change in reversed(CHANGES)]
    assert cells[0][heads.index("moves by")] == f"{(len(CHANGES) - 1) / 2:.4f}"


def test_what_cannot_be_computed_is_refused():
    with refuses("no_value_for_one_clip"):
        metric_stability("fad[ge2e]", limit=2)
    with refuses("too_few_clips_with_sound"):
        metric_stability("snr", limit=1)


def test_show_says_what_was_measured():
    known = shifts_in_spreads()
    groups = {change.group for change in CHANGES}
    assert known and all(set(kinds) == groups for kinds in known.values())
    assert known["snr"]["polarity"] > 1 and "polarity" in str(sensitive_to("snr"))
    assert known["stoi"]["polarity"] < NOTABLE and "polarity" not in str(sensitive_to("stoi"))
    assert sensitive_to("utmos") is None
    moved = "moved by (in spreads over five codecs)"
    assert MEASURE.format("utmos") in show("utmos")[moved] and "polarity" in show("snr")[moved]
    assert show("fad")[moved] is None, "it has no value for one clip"


def test_a_metric_is_measured_with_weights_that_are_at_hand(command, tmp_path, monkeypatch):
    """Stand-in weights are found as published ones are."""
    (tmp_path / "nisqa").mkdir()
    tiny_speech.write_nisqa(tmp_path / "nisqa", "nisqa")
    monkeypatch.setattr(stability, "CHANGES", [change for change in CHANGES if change.group == "6 dB"])
    monkeypatch.setattr(stability, "SYSTEMS", SYSTEMS[:2])
    requests = [*MEASURE.format("nisqa").split()[1:], "--limit", "2", "--format", "csv"]
    code, _, messages = command(*requests)
    assert code == 2 and "codec-bench weights fetch nisqa" in messages
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    code, out, _ = command(*requests)
    table = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and len({row["metric"] for row in table}) == 5 and len(table) == 10
    assert all(int(row["n"]) == 2 * 2 for row in table)
    assert any(float(row["mean_shift"]) for row in table), "the level is no matter to the network"


def test_a_metric_that_others_bring_with_them_has_its_rows_once(monkeypatch):
    monkeypatch.setattr(stability, "CHANGES", CHANGES[:1])
    monkeypatch.setattr(stability, "SYSTEMS", SYSTEMS[:2])
    result = metric_stability("f0_corr,f0_rmse", limit=2)
    assert sorted(row.metric for row in result.rows) == ["f0_corr", "f0_rmse", "voiced_in_both"]
