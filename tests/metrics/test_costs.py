"""What metrics cost and where they come from, and the orders of their list."""

from __future__ import annotations

import csv

import pytest
from refusals import refuses

from codec_bench.api.metric_names import COST, metric_rows
from codec_bench.metrics import REGISTRY, TOPICS, build_metric, licences_of, weights_of
from codec_bench.metrics.costs import COSTS, FIELDS, cost_of


def test_the_file_names_metrics_and_seconds():
    with COSTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == FIELDS
    assert {name.partition("[")[0] for name, _ in rows[1:]} <= set(REGISTRY.names())
    assert all(float(seconds) > 0 for _, seconds in rows[1:])


def test_a_cost_is_that_of_the_form_that_was_measured(monkeypatch):
    monkeypatch.setattr(
        "codec_bench.metrics.costs._costs", lambda: {"sim": 90.0, "fad[ge2e]": 50.0, "wer[whisper-tiny.en]": 300.0}
    )
    assert cost_of("wer") == cost_of("wer[whisper-tiny.en]") == 300.0
    assert cost_of("sim") == 90.0
    assert cost_of("fad[ge2e]") == 50.0 and cost_of("fad") is None, "the plain name is another network"
    assert cost_of("wer[pocketsphinx]") is cost_of("sim[ge2e]") is cost_of("stoi") is None


@pytest.mark.parametrize(
    ("name", "licences"),
    [
        ("stoi", []),
        ("wer", []),
        ("utmos", ["MIT"]),
        ("dnsmos", ["MIT"]),
        ("nisqa_mos", ["CC-BY-NC-SA-4.0"]),
        ("speech_share", ["MIT"]),
    ],
)
def test_licences_are_those_of_the_weights(name, licences):
    assert [text.split(" (")[0] for text in licences_of(name)] == licences


def test_every_metric_says_what_it_agrees_with():
    by_variant = {name for name in REGISTRY.names() if weights_of(name) == "by variant"}
    built = {name: REGISTRY.resolve(name) if name in by_variant else build_metric(name) for name in REGISTRY.names()}
    assert [name for name, metric in built.items() if not metric.source] == []


def test_the_list_is_ordered_by_topic_need_or_cost(monkeypatch):
    monkeypatch.setattr("codec_bench.metrics.costs._costs", lambda: {"stoi": 2.0, "snr": 0.5, "wer": 9.0})
    about = [row["about"] for row in metric_rows("about")]
    assert about == sorted(about, key=list(TOPICS).index)
    needs = [row["needs"] for row in metric_rows("needs")]
    assert needs[0] == "" and needs[-1].count(",") == max(need.count(",") for need in needs)
    costs = [(row["name"], row[COST]) for row in metric_rows("cost")]
    assert costs[:3] == [("snr", 0.5), ("stoi", 2.0), ("wer", 9.0)]
    assert all(cost is None for _, cost in costs[3:])
    with refuses("unknown_name", hint="needs"):
        metric_rows("price")
