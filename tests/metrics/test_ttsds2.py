"""TTSDS2's benchmarks of a run: made of the embeddings in the record, the same for merged shards, and refused for one
item.
"""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import evaluate
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.stats.embeddings import KEY, unpack_embeddings
from codec_bench.stats.sets import item_fold
from codec_bench.stats.summary import summarise
from codec_bench.stats.ttsds import SIDES, ttsds
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample

NAMES = ("ttsds2_pitch", "ttsds2_wav2vec2", "ttsds2_whisper")


def score(name, item):
    """The score of an item whose sides `(6, dimensions)` are given."""
    metric = build_metric(name)
    plain, noise = metric.reference_features
    reference = {plain: {"embedding": item[0]}, noise: {"embedding": item[2:]}}
    options = Inputs("a", 16_000, reference_features=reference, estimate_features={plain: {"embedding": item[1]}})
    return metric.compute([options])[0]


def write_run(folder, items, name, numbers=None):
    writer = RunWriter(folder, {"of": "a test"})
    metric = build_metric(name)
    facts = {
        "unit": "",
        "higher_is_better": True,
        "protocol": metric.protocol,
        "aggregate": metric.aggregate,
        "kind": "pair",
    }
    writer.begin({"codec": {}}, {name: facts}, [Sample(f"s{number}", None) for number in range(len(items))])
    for number in range(len(items)) if numbers is None else numbers:
        writer.write([(number, ItemRecord("codec", f"s{number}", "ok", None, {name: score(name, items[number])}))])
    writer.close()
    return Run(folder)


@pytest.fixture(params=[1, 7])
def items(rng, request):
    places = np.array([10.0, 11.0, 30.0, 40.0, 0.0, 0.0])
    return (places[:, None] + rng.standard_normal((70, len(SIDES), request.param))).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_the_value_of_a_run_is_that_of_its_set(tmp_path, items, name):
    entry = summarise(write_run(tmp_path / "run", items, name)).as_dict()["systems"]["codec"]["metrics"][name]
    expected = ttsds(items, [""] * 70, [f"item {number}" for number in range(70)])
    assert entry["value"] == pytest.approx(expected.value, rel=1e-9) and 50 < entry["value"] < 100
    assert entry["ci95"] == pytest.approx(expected.interval.ends, rel=1e-9)
    assert (entry["n"], entry["failed"], entry["extrapolated"]) == (70, 0, None)


def test_the_order_in_which_items_were_written_does_not_matter(tmp_path, items, rng):
    first = summarise(write_run(tmp_path / "a", items, NAMES[1])).as_dict()["systems"]["codec"]["metrics"][NAMES[1]]
    other = write_run(tmp_path / "b", items, NAMES[1], rng.permutation(70).tolist())
    assert summarise(other).as_dict()["systems"]["codec"]["metrics"][NAMES[1]] == first


def test_an_item_says_where_it_stands():
    item = np.array([[2.0], [4.0], [10.0], [-9.0], [0.0], [0.0]], np.float32)
    result = score("ttsds2_pitch", item)
    assert result.value == pytest.approx(100 * 16 / (16 + 4)), "the nearest noise is 4 away, and the reference 2"
    np.testing.assert_array_equal(unpack_embeddings(result.detail[KEY], len(SIDES)), item)
    assert score("ttsds2_pitch", np.ones((6, 1), np.float32)).value == 0.0


def test_one_item_is_refused_and_sets_are_not_compared(tmp_path, items):
    summary = summarise(write_run(tmp_path / "one", items[:1], NAMES[0])).as_dict()["systems"]["codec"]["metrics"][
        NAMES[0]
    ]
    assert summary["value"] is None and summary["note_code"] == {"code": "few_items", "needed": 2, "items": 1}
    with refuses("set_metric_compared", metric="ttsds2_pitch"):
        item_fold(NAMES[0], build_metric(NAMES[0]).aggregate)


def test_protocols_state_which_noise_there_is():
    for name in NAMES:
        metric = build_metric(name)
        assert metric.protocol.startswith(f"{name}/pairs/") and metric.protocol.endswith(
            "/noise-uniform-normal-ones-zeros/own-length/1"
        )
        assert metric.higher_is_better and metric.range == (0.0, 100.0)
    assert "/wasserstein-2/" in build_metric(NAMES[0]).protocol and "/frechet/" in build_metric(NAMES[1]).protocol


def test_a_run_of_a_codec_and_of_copies(tmp_path):
    pytest.importorskip("pyworld")
    run = evaluate(
        codec="g711-ulaw", data="embedded", metrics="ttsds2_pitch", out=tmp_path / "run", page=False, cache=False,
        check=False, workers=1,
        device="cpu", limit=6,
    )  # fmt: skip
    for entry in run.summary()["systems"].values():
        assert entry["metrics"]["ttsds2_pitch"]["n"] == 6 and 80 < entry["metrics"]["ttsds2_pitch"]["value"] <= 100
