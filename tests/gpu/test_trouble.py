"""A run whose memory is full, and one of whose workers is killed, on a GPU gives the scores of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from codec_bench import evaluate

TROUBLED = f"{Path(__file__).with_name('troubled.py')}:Troubled"


def scored(folder, metrics, device, trouble):
    """The scores of a run, and how often each trouble was met."""
    run = evaluate(
        codec=TROUBLED, data="embedded", metrics=metrics, device=device,
        options={TROUBLED: {"marks": str(folder), "trouble": trouble}},
        out=folder / "run", limit=24, page=False, cache=False, check=False, save_audio="none",
    )  # fmt: skip
    marks = [mark.name.partition("-")[0] for mark in folder.glob("*-*")]
    return {(score.id, score.metric): score.value for score in run.scores()}, marks


@pytest.mark.parametrize(
    ("device", "metrics"),
    [
        pytest.param("cpu", "si_sdr", marks=pytest.mark.long),
        pytest.param("cuda:0", "si_sdr,sim[ge2e]", marks=pytest.mark.gpu),
    ],
)
def test_a_run_meets_a_full_memory_and_a_killed_worker_and_loses_nothing(device, metrics, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "troubled").mkdir()
    expected, _ = scored(tmp_path / "plain", metrics, "cpu", False)
    result, marks = scored(tmp_path / "troubled", metrics, device, True)
    assert "full" in marks and marks.count("killed") == 1
    assert None not in expected.values()
    assert result == pytest.approx(expected, rel=0.0, abs=0.0 if device == "cpu" else 0.05)
