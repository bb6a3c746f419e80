"""FAD and KAD of a run: made of the embeddings in the record, the same for merged shards, and refused for one item."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.stats.embeddings import pack_embeddings, unpack_embeddings
from codec_bench.stats.frechet import frechet_distance
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

NAMES = tuple(f"{name}[ge2e]" for name in ("fad", "kad", "kid", "kl", "density", "coverage"))


def score(name, reference, estimate):
    sides = {"reference_features": reference, "estimate_features": estimate}
    options = {role: {"ge2e": {"embedding": value}} for role, value in sides.items()}
    return build_metric(name).compute([Inputs("a", 16_000, **options)])[0]


def facts(names=NAMES):
    built = {name: build_metric(name) for name in names}
    return {
        name: {"unit": "", "higher_is_better": False, "protocol": m.protocol, "aggregate": m.aggregate, "kind": m.kind}
        for name, m in built.items()
    }


def write_run(folder, pairs, systems=("codec",), dropped=()):
    """A run of systems whose items have these embeddings, and of which some have no score."""
    writer = RunWriter(folder, {"of": "a test"})
    writer.begin({name: {} for name in systems}, facts(), [Sample(f"s{n}", None) for n in range(len(pairs))])
    for system in systems:
        for n, (reference, estimate) in enumerate(pairs):
            scores = {name: score(name, reference, estimate) for name in NAMES}
            if n in dropped:
                scores = {name: Score.undefined("silence", build_metric(name).protocol) for name in NAMES}
            writer.write([(n, ItemRecord(system, f"s{n}", "ok", None, scores))])
    writer.close()
    return Run(folder)


@pytest.fixture
def pairs(rng):
    reference = rng.standard_normal((90, 6)).astype(np.float32)
    return np.stack([reference, reference + 0.4 * rng.standard_normal((90, 6)).astype(np.float32) + 0.2], axis=1)


def test_an_item_says_how_far_it_moved(pairs):
    for name in NAMES:
        result = score(name, *pairs[0])
        assert result.value == pytest.approx(((pairs[0, 0] - pairs[0, 1]) ** 2).sum(), rel=1e-6)
        np.testing.assert_array_equal(unpack_embeddings(result.detail["embeddings"]), pairs[0])
    np.testing.assert_array_equal(unpack_embeddings(pack_embeddings(*pairs[3])), pairs[3])


def test_the_value_of_a_run_is_that_of_its_set(tmp_path, pairs):
    with_scores = [n for n in range(90) if n not in (4, 17)]
    summary = summarise(write_run(tmp_path / "run", pairs, dropped=(4, 17))).as_dict()["systems"]["codec"]["metrics"]
    names = [f"item {n}" for n in with_scores]
    expected = frechet_distance(pairs[with_scores], names, names)
    entry = summary["fad[ge2e]"]
    assert entry["value"] == pytest.approx(expected.value, rel=1e-9)
    assert entry["ci95"] == pytest.approx(expected.interval.ends, rel=1e-9)
    assert (entry["n"], entry["failed"], entry["extrapolated"]) == (
        88,
        2,
        pytest.approx(expected.extrapolated, rel=1e-9),
    )
    assert expected.extrapolated is not None and summary["kad[ge2e]"]["extrapolated"] is None
    assert summary["kad[ge2e]"]["value"] > 0 and summary["kad[ge2e]"]["counting_failures"]["uncounted"] == 0


def test_the_page_of_a_run_shows_no_embeddings(tmp_path, pairs):
    from codec_bench.report.page import write_page

    run = write_run(tmp_path / "run", pairs[:4])
    (first, *_) = run.scores("codec", "fad[ge2e]")
    write_page([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "fad[ge2e]" in page and first.detail["embeddings"][:40] not in page


def test_one_item_is_refused_with_the_least_number(tmp_path, pairs):
    summary = summarise(write_run(tmp_path / "run", pairs[:1])).as_dict()["systems"]["codec"]["metrics"]
    for name in NAMES:
        assert summary[name]["value"] is None and summary[name]["note"]


def test_systems_are_compared_over_common_items(tmp_path, pairs):
    run = write_run(tmp_path / "run", pairs, systems=("a", "b"))
    metrics = summarise(run).as_dict()["systems"]["a"]["metrics"]
    assert metrics["fad[ge2e]"]["common"] is None
    by_speaker = summarise(run, by="duration").as_dict()["systems"]["a"]["metrics"]["fad[ge2e]"]
    assert by_speaker["value"] == metrics["fad[ge2e]"]["value"]


def test_a_set_is_not_compared_item_by_item(tmp_path, pairs):
    import codec_bench

    run = write_run(tmp_path / "run", pairs[:9], systems=("a", "b"))
    with refuses("set_metric_compared", metric="fad[ge2e]"):
        codec_bench.compare(runs=[run])
    with refuses("set_metric_compared", metric="kad[ge2e]"):
        codec_bench.sample_size(run=run, metric="kad[ge2e]", difference=0.1)


def test_a_record_without_embeddings_is_damaged(tmp_path):
    writer = RunWriter(tmp_path / "run", {"of": "a test"})
    writer.begin({"codec": {}}, facts(("fad[ge2e]",)), [Sample("s0", None)])
    writer.write(
        [(0, ItemRecord("codec", "s0", "ok", None, {"fad[ge2e]": Score.ok(1.0, "fad/p", detail={"embeddings": "x"})}))]
    )
    writer.close()
    with refuses("embeddings_missing", sample=0):
        summarise(Run(tmp_path / "run")).as_dict()


def test_names_and_encoders():
    assert build_metric("fad").name == "fad" and build_metric("fad").estimate_features == ("wavlm-large-sv",)
    metric = build_metric("kad[wavlm-base-plus-sv]@bfloat16")
    assert metric.name == "kad[wavlm-base-plus-sv]@bfloat16" and metric.protocol.startswith("kad/pairs/gaussian")
    assert metric.protocol.endswith("/wavlm-base-plus-sv/transformers/bfloat16-weights")
    with refuses("no_variant", name="fad", variant="vggish", hint="fad[ge2e]"):
        build_metric("fad[vggish]")
    with refuses("no_precision", name="kad[ge2e]", point="float16"):
        build_metric("kad[ge2e]@float16")
