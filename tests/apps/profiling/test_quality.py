"""Quality through the engine: curves of what it measured, and codecs that hang in its workers."""

from __future__ import annotations

from functools import partial

import pytest
from refusals import refuses

import codec_bench
from codec_bench.apps.profiling.steps import OPTIONAL

EXAMPLE = "examples/small_codec.py"


@pytest.fixture
def profiled(profiled):
    """Profiles quality, and the parts that cannot be skipped."""
    return partial(profiled, skip=list(OPTIONAL))


def test_quality_comes_from_the_engine_and_makes_curves(profiled):
    names = [f"{EXAMPLE}:Small{kbps}" for kbps in (8, 24)]
    result = profiled(*names, "g722", metrics="si_sdr", anchor="small", limit=2)
    assert not result.faults and result.facts["anchor"] == "small"
    assert list(result.facts["families"]) == ["small", "g722"]
    points = result.facts["curves"]["si_sdr"]["families"]["small"]
    rates = [p["bitrate_bps"] for p in points]
    assert rates == sorted(rates) and [round(r / 8000) for r in rates] == [1, 3]
    values = [p["value"] for p in points]
    assert values == sorted(values)
    assert result.facts["bd_rate"]["si_sdr"]["g722"]["reason"].startswith("the anchor curve has 2 points")
    run = codec_bench.open_run(result.folder / result.codecs[names[0]]["quality"]["run"])
    of_run = [s.value for s in run.scores("g722", "si_sdr")]
    assert result.codecs["g722"]["quality"]["metrics"]["si_sdr"]["value"] == pytest.approx(sum(of_run) / len(of_run))
    # Again into the same folder with another choice: the engine's earlier run is left as it is.
    again = profiled("six=g722", metrics="si_sdr", limit=1)
    assert again.codecs["six"]["quality"]["run"] == "quality-2" and again.facts["labels"] == {"six": "six"}


def test_what_only_this_process_can_import_is_not_profiled(tmp_path):
    class Here:
        def encode(self, batch):
            return batch

        decode = encode

    for codec, kind in ((Here, "class"), (Here(), "object")):
        with refuses("codec_of_this_process", type=kind) as caught:
            codec_bench.profile(codec=codec, data="embedded", out=tmp_path / "profile")
        assert "./my_codec.py:Here" in caught.value.hint
    assert not (tmp_path / "profile").exists()


def test_a_codec_that_hangs_in_the_engine_does_not_take_the_others_with_it(profiled, odd, hanging):
    hangs = odd("HangsOnSecondUse")
    result = profiled(hangs, "g711-ulaw", metrics="si_sdr", settings={"time_limit_s": 6.0})
    quality = result.codecs[hangs]["quality"]
    assert quality["state"] == "failed" and quality["metrics"]["si_sdr"]["n"] == 0
    assert quality["reason"] == f"3 clips gave no estimate: {hangs} took longer than its limit of 6 s, twice"
    assert result.codecs["g711-ulaw"]["quality"]["metrics"]["si_sdr"]["n"] == 3
    assert set(hanging) == {6.0}


def test_a_codec_that_hangs_now_and_then_costs_a_few_time_limits(profiled, odd, hanging):
    name = odd("HangsForSome")
    result = profiled(name, metrics="si_sdr", settings={"time_limit_s": 6.0}, limit=12)
    failures = {
        row["reason"]: row["count"] for row in result.codecs[name]["quality"]["failures"] if row["metric"] is None
    }
    late = f"{name} took longer than its limit of 6 s, twice"
    assert result.codecs[name]["quality"]["metrics"]["si_sdr"]["n"] and failures.pop(late) == 3, failures
    assert list(failures) == [f"{name} was stopped: 3 items did not come back within its limit of 6 s"]


@pytest.mark.parametrize(
    ("name", "ended"),
    [("HangsOnSecondLoading", "it did not answer for 6 s"), ("DiesOnSecondLoading", "exit code 7")],
)
def test_a_codec_that_cannot_be_loaded_a_second_time_leaves_the_others(profiled, odd, hanging, name, ended):
    result = profiled(odd(name), "g711-ulaw", metrics="si_sdr", settings={"time_limit_s": 6.0})
    quality = result.codecs[odd(name)]["quality"]
    assert (quality["state"], quality["reason_code"]["code"]) == ("failed", "not_loaded")
    assert ended in quality["reason"]
    assert result.codecs["g711-ulaw"]["quality"]["metrics"]["si_sdr"]["n"] == 3
