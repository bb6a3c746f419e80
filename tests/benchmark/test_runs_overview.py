"""The overview of several runs: a damaged summary of one of them is named, whatever is missing in it."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from codec_bench.benchmark.runs_overview import RunOutcome, write_overview
from codec_bench.report.open_run import Run
from codec_bench.report.results import write_results
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    """The summary of a run of one benchmark, one of whose two scores failed."""
    facts = {"protocol": "s", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}
    folder = tmp_path / "b" / "model"
    with closing(RunWriter(folder, {})) as writer:
        writer.begin({"model": {}}, {"m": facts}, [Sample("a", None, "words"), Sample("b", None, "words")])
        writer.write([(0, ItemRecord("model", "a", "ok", None, {"m": Score.ok(0.5, "s")}))])
        writer.write([(1, ItemRecord("model", "b", "ok", None, {"m": Score.failed("no", "s")}))])
        writer.set_meta(
            state="finished", data={"name": "made"}, benchmark={"name": "b", "category": "c", "primary": "m"}
        )
    with closing(Run(folder)) as run:
        write_results(run, page=False)
    return folder / "summary.json"


def _first_reason(held: dict[str, Any]) -> dict[str, Any]:
    return next(iter(held["failures"]["reasons"]))


DAMAGES: list[Callable[[dict[str, Any]], object]] = [
    lambda held: held.pop("systems"),
    lambda held: held.update(systems=[1]),
    lambda held: held["systems"]["model"].pop("metrics"),
    lambda held: held["systems"]["model"].update(metrics={"m": 3}),
    lambda held: held["failures"].pop("reasons"),
    lambda held: _first_reason(held).pop("status"),
    lambda held: _first_reason(held).update(count="many"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_summary_is_named(summary: Path, damage: Callable[[dict[str, Any]], object]) -> None:
    """Every part of a summary that the overview needs is required by one message that names the file."""
    outcome = RunOutcome(summary.parents[2], {})
    write_overview(outcome)
    held = json.loads(summary.read_text("utf-8"))
    damage(held)
    summary.write_text(json.dumps(held), "utf-8")
    with refuses("not_a_summary", path="summary.json"):
        write_overview(outcome)
