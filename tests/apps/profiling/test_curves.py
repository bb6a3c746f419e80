"""Families, curves, delta rates and the order of quality."""

from __future__ import annotations

import pytest

from codec_bench.apps.profiling import curves
from codec_bench.apps.profiling.rows import delta_rates
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.bd_rate import bd_rate


def entry(value, higher=True, half=0.01, unit=""):
    return {
        "value": value, "ci95": None if half is None else [value - half, value + half], "n": 5, "unit": unit,
        "higher_is_better": higher, "protocol": "p",
    }  # fmt: skip


def quality(points, higher=True, half=0.01):
    return {
        codec: {"bitrate": entry(1000.0 * kbps, False, None, "bps"), "q": entry(value, higher, half)}
        for codec, (kbps, value) in points.items()
    }


A = {"a@1": (1, 0.5), "a@2": (2, 0.6), "a@4": (4, 0.7), "a@8": (8, 0.8)}
B = {"b@2": (2, 0.5), "b@4": (4, 0.6), "b@8": (8, 0.7), "b@16": (16, 0.8)}


def test_points_of_one_codec_are_a_family():
    labels = {
        "opus-12k": "opus-12k",
        "opus@24": "opus@24",
        "./mine.py:Low": "mine@6",
        "./mine.py:High": "mine@12",
        "g711-ulaw": "g711-ulaw",
    }
    assert curves.families(labels) == {
        "opus": ["opus-12k", "opus@24"], "mine": ["./mine.py:Low", "./mine.py:High"], "g711-ulaw": ["g711-ulaw"],
    }  # fmt: skip


def test_twice_the_rate_for_the_same_quality_is_a_hundred_percent():
    groups = curves.families({name: name for name in {**A, **B}})
    result = curves.curves(groups, quality({**B, **A}))
    assert [p["bitrate_bps"] for p in result["q"]["families"]["a"]] == [1000, 2000, 4000, 8000]
    rates = curves.delta_rates(result, curves.anchor_family("a@4", groups))
    assert rates["q"] == {"b": {"value": pytest.approx(1.0), "reason": None, "excluded": []}}
    points = [[(1000 * k, v) for k, v in x.values()] for x in (A, B)]
    assert rates["q"]["b"]["value"] == bd_rate(anchor=points[0], test=points[1])
    lower = curves.curves(groups, quality({k: (r, -v) for k, (r, v) in {**A, **B}.items()}, higher=False))
    assert curves.delta_rates(lower, "a")["q"]["b"]["value"] == pytest.approx(1.0)


def test_points_that_are_not_compared_are_in_no_delta_rate():
    groups = curves.families({name: name for name in {**A, **B, "b@32": None}})
    entries = quality({**A, **B, "b@32": (32, 0.81)})
    without = curves.delta_rates(curves.curves(groups, {k: v for k, v in entries.items() if k != "b@32"}), "a")["q"]
    entries["b@32"]["q"]["standing"] = {"compared": False, "why": "its checks found something"}
    rates = curves.delta_rates(curves.curves(groups, entries), "a")["q"]
    assert rates == {"b": {**without["b"], "excluded": ["b@32"]}}
    entries["a@1"]["q"]["standing"] = {"compared": False}
    rates = curves.delta_rates(curves.curves(groups, entries), "a")["q"]["b"]
    assert rates["value"] is None and rates["reason"].as_dict()["points"] == 3 and rates["excluded"] == ["a@1", "b@32"]
    profile = {"labels": {"b@32": "wide@32"}, "bd_rate": {"q": {"b": {**rates, "reason": "why"}}}}
    assert delta_rates(profile) == [("q", "b", "–", "why; without a@1, wide@32: not compared")]


def test_too_few_points_are_refused_with_the_reason():
    small = dict(list(A.items())[:3])
    groups = curves.families({name: name for name in {**small, **B}})
    entry_ = curves.delta_rates(curves.curves(groups, quality({**small, **B})), "b")["q"]["a"]
    assert entry_["value"] is None and entry_["reason"].as_dict() == {
        "code": "curve_points",
        "curve": "test",
        "points": 3,
        "least": 4,
    }
    without = curves.delta_rates(curves.curves(groups, quality(small)), "b")["q"]["a"]
    assert without["value"] is None and without["reason"].as_dict() == {"code": "no_anchor_value", "anchor": "b"}
    with pytest.raises(UnknownName):
        curves.anchor_family("c", groups)


def test_quality_that_falls_with_bitrate_is_suspect_unless_the_intervals_overlap():
    groups = {"a": ["a@1", "a@2"]}
    fall = {"a@1": (1, 0.8), "a@2": (2, 0.7)}
    (result,) = curves.find_quality_drops(curves.curves(groups, quality(fall)))["a@2"]
    assert result["state"] == "suspect" and "0.7 at 2 kbit/s but 0.8 at 1 kbit/s" in result["found"]
    (near,) = curves.find_quality_drops(curves.curves(groups, quality(fall, half=0.1)))["a@2"]
    assert near["state"] == "ok" and "overlap" in near["found"]
    assert curves.find_quality_drops(curves.curves(groups, quality(fall, higher=False))) == {}
    assert curves.find_quality_drops(curves.curves(groups, quality({"a@1": (1, 0.7), "a@2": (2, 0.8)}))) == {}
