"""How many speakers a difference needs, from a pilot run and from the command line."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from refusals import Containing, refuses
from written_runs import build_run

from codec_bench import compare, sample_size
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


@pytest.fixture
def pilot(tmp_path, rng):
    """A run of two systems over ten speakers of six utterances each."""
    samples = [Sample(f"s{k:02d}", None, speaker=f"speaker {k // 6}") for k in range(60)]
    writer = RunWriter(tmp_path / "pilot", {})
    about = {"unit": "", "higher_is_better": True, "aggregate": "mean"}
    facts = {
        "stoi": {"protocol": "stoi/p", **about},
        "pesq_wb": {"protocol": "pesq/p", "range": [1.0, 4.643889], **about},
    }
    writer.begin({"a": {}, "b": {}}, facts, samples)
    harder = rng.normal(0, 0.02, 10)
    for system, shift in (("a", 0.0), ("b", 0.01)):
        values = 0.8 + shift + (harder[np.arange(60) // 6] if system == "b" else 0) + rng.normal(0, 0.02, 60)
        records = [
            (
                k,
                ItemRecord(
                    system,
                    f"s{k:02d}",
                    "ok",
                    None,
                    {"stoi": Score.ok(value, "stoi/p"), "pesq_wb": Score.ok(pesq, "pesq/p")},
                ),
            )
            for k, (value, pesq) in enumerate(zip(values.tolist(), np.minimum(values * 6, 4.643889).tolist()))
        ]
        writer.write(records)
    writer.close()
    return tmp_path / "pilot"


def test_a_smaller_difference_needs_more_speakers(pilot):
    small, large = (sample_size(run=pilot, metric="stoi", difference=d).plans for d in (0.01, 0.02))
    assert all(a.speakers > b.speakers for a, b in zip(small, large))
    result = sample_size(run=pilot, metric="stoi", difference=0.01)
    assert (result.a, result.b, result.pilot.units, result.pilot.items) == ("a", "b", 10, 60)
    more = sample_size(run=pilot, metric="stoi", difference=0.01, power=0.95)
    assert more.plans[0].speakers > result.plans[0].speakers


def test_the_command_prints_plans(pilot, monkeypatch, capsys):
    from codec_bench.cli import main

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["codec-bench", "sample-size", str(pilot), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    code, out, err = run("--metric", "stoi", "--difference", "0.01")
    assert code == 0 and "speakers" in out and "80 %" in err and "fewer than 20 units" in err
    code, out, _ = run("--metric", "stoi", "--difference", "0.01", "--json")
    plans = json.loads(out)["plans"]
    assert code == 0 and plans[0]["utterances"] == plans[0]["speakers"] * plans[0]["utterances_per_speaker"]
    code, _, err = run("--metric", "stoy", "--difference", "0.01")
    assert code == 2 and "did you mean stoi" in err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"systems": "a"}, {"code": "two_systems_expected", "count": 1, "systems": "a"}),
        ({"systems": "a,c"}, {"code": "unknown_name", "name": "c"}),
        ({"difference": 0.0}, {"code": "difference_value", "difference": 0.0}),
        ({"power": 1.5}, {"code": "power_value", "power": 1.5}),
        ({"metric": "wer"}, {"code": "unknown_name", "kind": Containing("metric")}),
    ],
)
def test_wrong_input_is_named(pilot, wrong, message):
    with refuses(**message):
        sample_size(**{"run": pilot, "metric": "stoi", "difference": 0.01, **wrong})


def test_a_run_of_one_system_asks_for_what_it_lacks(tmp_path):
    """The hint named `--systems A,B`, and such a run has no B."""
    one = build_run(tmp_path / "run", samples=4, systems=["opus-12k"], metrics=["stoi"], audio=False)
    with refuses("one_system", systems="opus-12k") as caught:
        sample_size(run=one, metric="stoi", difference=0.01)
    assert "--systems" not in caught.value.hint
    with refuses("one_system", systems="opus-12k") as caught:
        compare(runs=[one])
    assert "--systems" not in caught.value.hint
