"""docs/versa.md: each name that it gives for one of VERSA's can be built; and VERSA's own test pair has the scores that
its tests expect.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from codec_bench import score
from codec_bench.config import read_config
from codec_bench.metrics import build_metric, expand

DIFFERS = "what differs, or why there is none"
PAGE = Path(__file__).parents[2] / "docs" / "versa.md"
CHECKOUT = os.environ.get("CODEC_BENCH_TEST_VERSA")
EXPECTED = {
    "mcd": 5.045226506332897,
    "f0_corr[versa]": -0.07540903652440145,
    "f0_rmse[versa]": 20.281004489942777,
    "si_sdr[versa]": 1.0702790021896362,
    "pesq_wb": 1.5722705125808716,
    "stoi": 0.007625108859647406,
    "dnsmos_ovrl[versa]": 1.4526055142443377,
    "dnsmos_p808[versa]": 2.09430193901062,
    "warpq[versa]": 3.853,
}
"""What VERSA's tests (test/test_pipeline) expect of its pair at c398480, under our names."""


def rows(heading: str) -> list[dict[str, str]]:
    """The rows of the one table under a heading of the page, by the names of the columns."""
    item = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in item.splitlines() if line.startswith("|")]
    columns, _, *result = ([cell.strip() for cell in line] for line in lines)
    return [dict(zip(columns, row, strict=True)) for row in result]


def names(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


ALL = rows("All of VERSA's measures")
LISTED = {name for row in ALL for column in ("here", DIFFERS) for name in names(row[column])}


def test_every_name_of_ours_exists():
    for row in ALL:
        ours = names(row["here"])
        assert bool(ours) != (row["here"] == "none" or row["here"].endswith(".md)")), row
        for name in expand(ours):
            assert build_metric(name).protocol, name


def test_names_that_are_near_exist():
    near = {name.replace("[ASR]", "[whisper-large-v3]") for row in ALL for name in names(row[DIFFERS])}
    for name in near:
        if ": " not in name:  # an option of VERSA's configuration
            assert all(build_metric(member).protocol for member in expand([name])), name


def test_what_versa_names_has_a_name_here():
    unnamed = [row for row in ALL if row["here"] == "none"]
    assert [row["VERSA's name"] for row in unnamed] == ["2f-Model", "speaker turn taking", "`apa`"]
    assert "without code" in unnamed[2][DIFFERS]


@pytest.mark.parametrize("preset", ["versa-core", "versa"])
def test_the_presets_are_in_the_table(preset):
    requests = set(expand(read_config("preset", preset)["metrics"]))
    assert requests - {"dnsmos_sig[versa]", "dnsmos_bak[versa]"} <= LISTED  # VERSA reports two of the four


if CHECKOUT:

    def test_its_own_pair_has_the_scores_that_its_tests_expect(tmp_path):
        samples = Path(CHECKOUT) / "test" / "test_samples"
        run = score(
            generated=str(samples / "test2"), data=str(samples / "test1"), metrics=list(EXPECTED), out=tmp_path / "run",
            device="cpu", workers=1,
        )  # fmt: skip
        by_name = {row.metric: row.value for row in run.scores()}
        rounded = by_name.pop("warpq[versa]")  # to three digits by VERSA
        assert rounded == pytest.approx(EXPECTED["warpq[versa]"], abs=2e-3)
        assert by_name == pytest.approx({name: EXPECTED[name] for name in by_name}, abs=1e-5, rel=1e-6)


def test_directions_of_noresqa():
    """VERSA reports the network's output, which the authors subtract from 5; and the chance that the estimate is
    cleaner.
    """
    metrics = [build_metric(f"versa/{name}") for name in ("noresqa_mos", "noresqa_score")]
    assert [metric.higher_is_better for metric in metrics] == [False, True]
